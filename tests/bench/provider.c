/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * provider - what libfabric's tcp provider takes for a round trip of two messages by itself, beside
 * a bare TCP one of the same size: no persist over it can be faster. The same completion queues,
 * hints and waiting as the lanes have, and nothing else. Prints one JSON object.
 *
 * usage: provider ROUNDS
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "fabric_ofi.h"
#include "side.h"
#include "spin.h"
#include "tcpraw.h"

#define ADDRESS    "127.0.0.1"
#define TIMEOUT_MS 120000
#define SLOTS      2U
#define SIZE_MAX_B 4096U
#define TRIPS      4000U
#define ROUNDS_MAX SIDE_ROUNDS_MAX

static const uint32_t sizes[] = {8, 64, 1024, 4096};

/* One end of a connection. */
struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct ofi_queues queues;
	struct spin spin;
	uint8_t in[SLOTS][SIZE_MAX_B], out[SIZE_MAX_B];
	struct ofi_op op[SLOTS];
	unsigned slot; /* that the next message comes into */
};

static void
check(long ret, const char *what)
{
	if (ret >= 0)
		return;
	(void)fprintf(stderr, "provider: %s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static void
check_err(int rc, const struct err *e)
{
	if (!rc)
		return;
	(void)fprintf(stderr, "provider: %s\n", e->text);
	exit(1);
}

static void
end_fabric(struct end *d, uint16_t port, uint64_t flags)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
	struct err e;

	err_clear(&e);
	check_err(ofi_info_new("tcp", ADDRESS, port, flags, &d->info, &e), &e);
	check(fi_fabric(d->info->fabric_attr, &d->fabric, NULL), "fi_fabric");
	check(fi_eq_open(d->fabric, &attr, &d->eq, NULL), "fi_eq_open");
}

static void
end_recv(struct end *d, unsigned slot)
{
	check(fi_recv(d->ep, d->in[slot], SIZE_MAX_B, NULL, 0, &d->op[slot]), "fi_recv");
}

static void
end_endpoint(struct end *d, struct fi_info *info)
{
	struct err e;

	err_clear(&e);
	check(fi_domain(d->fabric, info, &d->domain, NULL), "fi_domain");
	check_err(ofi_queues_open(info, d->domain, SLOTS, SLOTS, &d->queues, &e), &e);
	check(fi_endpoint(d->domain, info, &d->ep, NULL), "fi_endpoint");
	check(fi_ep_bind(d->ep, &d->eq->fid, 0), "fi_ep_bind");
	check(ofi_queues_bind(d->ep, &d->queues), "fi_ep_bind");
	check(fi_enable(d->ep), "fi_enable");
	for (unsigned i = 0; i < SLOTS; i++)
		end_recv(d, i);
}

static void
end_event(struct end *d, uint32_t expected, struct fi_eq_cm_entry *entry)
{
	uint64_t deadline = clock_deadline(TIMEOUT_MS);
	uint32_t event = 0;
	ssize_t n;

	do {
		n = fi_eq_read(d->eq, &event, entry, sizeof(*entry), 0);
	} while (n == -FI_EAGAIN && clock_now_ns() < deadline);
	check(n, "fi_eq_read");
	check(event == expected ? 0 : -FI_EOTHER, "an event that was not expected");
}

/* Wait for a message as a lane does; 1: the other end has gone. */
static int
end_await(struct end *d)
{
	struct fi_cq_data_entry entry;
	ssize_t n;

	spin_reset(&d->spin);
	while ((n = fi_cq_read(d->queues.rx, &entry, 1)) == -FI_EAGAIN) {
		struct pollfd pfd[OFI_WAIT_FDS];
		nfds_t count = 0;

		if (spin_again(&d->spin) ||
		    !ofi_queues_wait(d->fabric, &d->queues, d->eq, false, pfd, &count))
			continue;
		(void)poll(pfd, count, 2);
		spin_reset(&d->spin);
	}
	return n < 0;
}

static void
end_next(struct end *d)
{
	end_recv(d, d->slot);
	d->slot = (d->slot + 1) % SLOTS;
}

/* The target: each message is sent back in its size. */
static int
serve(struct end *d)
{
	struct fi_eq_cm_entry entry;

	end_event(d, FI_CONNREQ, &entry);
	end_endpoint(d, entry.info);
	check(fi_accept(d->ep, NULL, 0), "fi_accept");
	end_event(d, FI_CONNECTED, &entry);
	while (end_await(d) == 0) {
		uint32_t size;

		memcpy(&size, d->in[d->slot], sizeof(size));
		if (size > SIZE_MAX_B)
			return 1;
		check(fi_send(d->ep, d->in[d->slot], size, NULL, 0, NULL), "fi_send");
		end_next(d);
	}
	return 0;
}

static void
fabric_trips(struct end *d, uint32_t size, uint32_t *ns)
{
	for (unsigned i = 0; i < TRIPS; i++) {
		uint64_t begin = clock_now_ns();

		memcpy(d->out, &size, sizeof(size));
		check(fi_send(d->ep, d->out, size, NULL, 0, NULL), "fi_send");
		check(end_await(d) ? -FI_ENOTCONN : 0, "waiting for the answer");
		ns[i] = (uint32_t)(clock_now_ns() - begin);
		end_next(d);
	}
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double
median(uint32_t *ns)
{
	qsort(ns, TRIPS, sizeof(*ns), compare);
	return ns[TRIPS / 2];
}

/* In turns, round by round; the one before the first warms up. */
static void
measure(struct end *d, struct tcpraw *raw, uint32_t size, unsigned rounds)
{
	static uint32_t ns[TRIPS];
	double own[ROUNDS_MAX], bare[ROUNDS_MAX], ratio[ROUNDS_MAX];
	struct err e;

	err_clear(&e);
	for (unsigned r = 0; r <= rounds; r++) {
		unsigned at = r > 0 ? r - 1 : 0;

		fabric_trips(d, size, ns);
		own[at] = median(ns);
		check_err(tcpraw_pingpong(raw, size, TRIPS, ns, &e), &e);
		bare[at] = median(ns);
		ratio[at] = own[at] / bare[at];
	}
	(void)printf("{\"size\": %u, \"tcp_ns\": %.0f, \"provider_ns\": %.0f, \"ratio\": %.3f}",
		     size, side_median(bare, rounds), side_median(own, rounds),
		     side_median(ratio, rounds));
}

/* A process of its own, as repld is. */
static pid_t
start_raw(const uint8_t *token, uint16_t *port)
{
	struct err e;
	pid_t pid;
	int fd;

	err_clear(&e);
	check_err(tcpraw_listen(ADDRESS, 0, 0, &fd, port, &e), &e);
	pid = fork();
	if (pid == 0)
		_exit(tcpraw_serve(fd, token, clock_deadline(TIMEOUT_MS), &e) ? 1 : 0);
	(void)close(fd);
	return pid;
}

/* The same; libfabric is not used before the fork. */
static pid_t
start_fabric(uint16_t *port)
{
	struct sockaddr_in6 name;
	size_t len = sizeof(name);
	static struct end d;
	int told[2];
	pid_t pid;

	check(pipe(told) ? -FI_EIO : 0, "pipe");
	pid = fork();
	if (pid == 0) {
		end_fabric(&d, 0, FI_SOURCE);
		check(fi_passive_ep(d.fabric, d.info, &d.pep, NULL), "fi_passive_ep");
		check(fi_pep_bind(d.pep, &d.eq->fid, 0), "fi_pep_bind");
		check(fi_listen(d.pep), "fi_listen");
		check(fi_getname(&d.pep->fid, &name, &len), "fi_getname");
		*port = ntohs(((const struct sockaddr_in *)(const void *)&name)->sin_port);
		check(write(told[1], port, sizeof(*port)) == sizeof(*port) ? 0 : -FI_EIO, "pipe");
		_exit(serve(&d));
	}
	(void)close(told[1]);
	if (pid > 0)
		check(read(told[0], port, sizeof(*port)) == sizeof(*port) ? 0 : -FI_EIO,
		      "the target's port");
	(void)close(told[0]);
	return pid;
}

static void
run(uint16_t port, uint16_t raw_port, const uint8_t *token, unsigned rounds)
{
	static struct end d;
	struct fi_eq_cm_entry entry;
	struct tcpraw *raw = NULL;
	struct err e;

	err_clear(&e);
	end_fabric(&d, port, 0);
	end_endpoint(&d, d.info);
	check(fi_connect(d.ep, d.info->dest_addr, NULL, 0), "fi_connect");
	end_event(&d, FI_CONNECTED, &entry);
	check_err(tcpraw_connect(ADDRESS, raw_port, token, clock_deadline(TIMEOUT_MS), &raw, &e),
		  &e);
	(void)printf("{\"rounds\": %u, \"sizes\": [", rounds);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		(void)fputs(i > 0 ? ", " : "", stdout);
		measure(&d, raw, sizes[i], rounds);
	}
	(void)puts("]}");
	tcpraw_free(raw);
	ofi_close(&d.ep->fid);
}

int
main(int argc, char **argv)
{
	long rounds = argc == 2 ? atol(argv[1]) : 0;
	uint8_t token[TCPRAW_TOKEN_SIZE];
	uint16_t port = 0, raw_port = 0;
	pid_t targets[2];

	if (rounds < 1 || rounds > (long)ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: provider ROUNDS (1 .. %u)\n", ROUNDS_MAX);
		return 2;
	}
	check(getrandom(token, sizeof(token), 0) == sizeof(token) ? 0 : -FI_EIO, "getrandom");
	targets[0] = start_raw(token, &raw_port);
	targets[1] = start_fabric(&port);
	if (targets[0] < 0 || targets[1] < 0) {
		perror("provider: fork");
		return 1;
	}
	run(port, raw_port, token, (unsigned)rounds);
	for (unsigned i = 0; i < 2; i++) {
		(void)kill(targets[i], SIGTERM);
		(void)waitpid(targets[i], NULL, 0);
	}
	return 0;
}
