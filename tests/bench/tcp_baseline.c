/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_baseline - what a bare TCP connection does between two processes of this
 * machine: round trips by size, spinning for a while and sleeping at once, and
 * streams both ways. The yardstick for everything else in here.
 *
 * usage: tcp_baseline [ADDRESS [ROUND-TRIPS [STREAM-MIB]]]
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "spin.h"
#include "tcpraw.h"

#define TIMEOUT_MS 120000
#define WARM_UP    200
#define CHUNK      (256U << 10)
#define GIB        (1ULL << 30)

struct options {
	const char *address;
	uint32_t count;
	uint64_t bytes;
};

static int
compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The q-th 1/1000 of sorted times, in microseconds. */
static double
quantile_us(const uint32_t *ns, uint32_t count, unsigned q)
{
	uint64_t i = (uint64_t)count * q / 1000;

	return ns[i < count ? i : count - 1] / 1000.0;
}

static int
run_pingpong(struct tcpraw *c, const struct options *o, uint32_t *ns, struct err *e)
{
	static const uint32_t sizes[] = {8, 64, 512, 4096, 65536};
	static const unsigned spins[] = {SPIN_NS / 1000, 0};
	int rc = 0;

	(void)printf("%-9s %8s %9s %9s %9s\n", "spin us", "bytes", "p50 us", "p99 us", "p99.9 us");
	for (size_t i = 0; !rc && i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned spin_us = spins[i % 2];
		uint32_t size = sizes[i / 2];

		tcpraw_set_spin(c, spin_us);
		rc = tcpraw_pingpong(c, size, o->count < WARM_UP ? o->count : WARM_UP, ns, e);
		if (!rc)
			rc = tcpraw_pingpong(c, size, o->count, ns, e);
		if (rc)
			break;
		qsort(ns, o->count, sizeof(*ns), compare_u32);
		(void)printf("%-9u %8u %9.1f %9.1f %9.1f\n", spin_us, size,
			     quantile_us(ns, o->count, 500), quantile_us(ns, o->count, 990),
			     quantile_us(ns, o->count, 999));
	}
	return rc;
}

static double
gib_per_s(uint64_t bytes, uint64_t ns)
{
	return (double)bytes / (double)GIB / ((double)ns / (double)NS_PER_S);
}

static int
run_stream(struct tcpraw *c, const struct options *o, struct err *e)
{
	uint64_t out_ns = 0, in_ns = 0;
	int rc = tcpraw_stream_out(c, o->bytes, CHUNK, &out_ns, e);

	if (!rc)
		rc = tcpraw_stream_in(c, o->bytes, CHUNK, &in_ns, e);
	if (!rc)
		(void)printf("stream of %llu MiB: out %.2f GiB/s, in %.2f GiB/s\n",
			     (unsigned long long)(o->bytes >> 20), gib_per_s(o->bytes, out_ns),
			     gib_per_s(o->bytes, in_ns));
	return rc;
}

static int
run_client(const struct options *o, uint16_t port, const uint8_t *token, struct err *e)
{
	uint32_t *ns = calloc(o->count, sizeof(*ns));
	struct tcpraw *c = NULL;
	int rc;

	if (!ns)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	rc = tcpraw_connect(o->address, port, token, clock_deadline(TIMEOUT_MS), &c, e);
	if (!rc)
		rc = run_pingpong(c, o, ns, e);
	if (!rc)
		rc = run_stream(c, o, e);
	tcpraw_free(c);
	free(ns);
	return rc;
}

/* The target: a process of its own, as repld is. */
static int
run_server(int fd, const uint8_t *token)
{
	struct err e;

	if (tcpraw_serve(fd, token, clock_deadline(TIMEOUT_MS), &e) == 0)
		return 0;
	(void)fprintf(stderr, "tcp_baseline: target: %s\n", e.text);
	return 1;
}

static bool
parse_options(int argc, char **argv, struct options *o)
{
	long count = argc > 2 ? atol(argv[2]) : 20000;
	long mib = argc > 3 ? atol(argv[3]) : 1024;

	o->address = argc > 1 ? argv[1] : "127.0.0.1";
	o->count = (uint32_t)count;
	o->bytes = (uint64_t)mib << 20;
	return argc <= 4 && count > 0 && count <= 10000000 && mib > 0 && mib <= 1 << 20;
}

int
main(int argc, char **argv)
{
	uint8_t token[TCPRAW_TOKEN_SIZE];
	struct options o;
	uint16_t port;
	struct err e;
	pid_t pid;
	int fd, status;

	if (!parse_options(argc, argv, &o)) {
		(void)fputs("usage: tcp_baseline [ADDRESS [ROUND-TRIPS [STREAM-MIB]]]\n", stderr);
		return 2;
	}
	if (getrandom(token, sizeof(token), 0) != sizeof(token) ||
	    tcpraw_listen(o.address, 0, 0, &fd, &port, &e)) {
		(void)fprintf(stderr, "tcp_baseline: cannot listen on '%s'\n", o.address);
		return 1;
	}
	pid = fork();
	if (pid < 0) {
		perror("tcp_baseline: fork");
		return 1;
	}
	if (pid == 0)
		_exit(run_server(fd, token));
	(void)close(fd);
	if (run_client(&o, port, token, &e)) {
		(void)fprintf(stderr, "tcp_baseline: %s\n", e.text);
		(void)kill(pid, SIGTERM);
		return 1;
	}
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
