/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel_cat - a control channel from a shell, for the integration tests.
 *
 * usage: channel_cat [-i IDENTITY] [-k KNOWN_HOSTS] [-c COMMAND] [-t MS] MODE TARGET [COUNT]
 *   cat    send each line of stdin, print the line that answers it
 *   pump   send COUNT bytes and check that they come back unchanged
 *   open   open and close the channel COUNT times; descriptors, memory in
 *          use and processes must not grow
 *   peer   print the peer's address
 * An error is printed as "CODE: TEXT", exit status 1. Each step has MS to end.
 */
#include "channel.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define CHUNK           40000U
#define HEAP_GROWTH_MAX 16384U

struct client {
	struct channel_options options;
	unsigned timeout_ms;
	unsigned long count;
};

static int
client_fail(const struct err *e)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "%s: %s\n", err_name(e->code), e->text);
	return 1;
}

static int
client_cat(struct channel *c, const struct client *cl, struct err *e)
{
	char line[65536];
	int rc;

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t deadline = clock_deadline(cl->timeout_ms);
		size_t len = 0;

		rc = channel_write(c, line, strlen(line), deadline, e);
		if (rc)
			return rc;
		do {
			rc = channel_read(c, line + len, 1, deadline, &(size_t){0}, e);
			if (rc)
				return rc;
		} while (line[len++] != '\n' && len < sizeof(line));
		(void)fwrite(line, 1, len, stdout);
		(void)fflush(stdout);
	}
	return REPL_OK;
}

static int
client_pump(struct channel *c, const struct client *cl, struct err *e)
{
	static unsigned char out[CHUNK], in[CHUNK];
	uint32_t x = 1;
	unsigned long done = 0;

	while (done < cl->count) {
		size_t len = cl->count - done < CHUNK ? (size_t)(cl->count - done) : CHUNK;
		size_t got = 0;
		int rc;

		for (size_t i = 0; i < len; i++) {
			x = x * 1664525U + 1013904223U;
			out[i] = (unsigned char)(x >> 24);
		}
		rc = channel_write(c, out, len, clock_deadline(cl->timeout_ms), e);
		for (size_t have = 0; !rc && have < len; have += got)
			rc = channel_read(c, in + have, len - have, clock_deadline(cl->timeout_ms),
					  &got, e);
		if (rc)
			return rc;
		if (memcmp(in, out, len) != 0)
			return err_set(e, REPL_E_DIFFER, "bytes from %lu on came back changed",
				       done);
		done += len;
	}
	(void)printf("%lu bytes equal\n", done);
	return REPL_OK;
}

static unsigned
count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

/* The first tenth fills caches. Under a sanitizer mallinfo2() is all zeros: it looks itself. */
static int
client_open_often(const struct client *cl, struct err *e)
{
	unsigned fds = count_descriptors();
	size_t heap = 0;

	for (unsigned long i = 0; i < cl->count; i++) {
		struct channel *c = NULL;
		int rc = channel_open(&cl->options, clock_deadline(cl->timeout_ms), &c, e);

		channel_free(c);
		if (rc && !getenv("CHANNEL_CAT_EXPECT_ERRORS"))
			return rc;
		if (i == cl->count / 10)
			heap = mallinfo2().uordblks;
	}
	if (count_descriptors() != fds)
		return err_set(e, REPL_E_LIMIT, "%u descriptors became %u", fds,
			       count_descriptors());
	if (mallinfo2().uordblks > heap + HEAP_GROWTH_MAX)
		return err_set(e, REPL_E_LIMIT, "%zu bytes in use became %zu", heap,
			       mallinfo2().uordblks);
	if (waitpid(-1, NULL, WNOHANG) != -1)
		return err_set(e, REPL_E_LIMIT, "a process of the proxy command is left behind");
	(void)printf("%lu opened and closed\n", cl->count);
	return REPL_OK;
}

static int
client_run(const struct client *cl, const char *mode)
{
	struct channel *c = NULL;
	struct err e = {0};
	sigset_t before, after;
	int rc;

	(void)sigprocmask(SIG_SETMASK, NULL, &before);
	if (strcmp(mode, "open") == 0)
		return client_open_often(cl, &e) ? client_fail(&e) : 0;
	rc = channel_open(&cl->options, clock_deadline(cl->timeout_ms), &c, &e);
	if (!rc && strcmp(mode, "peer") == 0)
		(void)puts(channel_peer(c));
	else if (!rc && strcmp(mode, "pump") == 0)
		rc = client_pump(c, cl, &e);
	else if (!rc)
		rc = client_cat(c, cl, &e);
	channel_free(c);
	(void)sigprocmask(SIG_SETMASK, NULL, &after);
	if (sigismember(&before, SIGPIPE) != sigismember(&after, SIGPIPE)) {
		(void)fputs("the signal mask was changed\n", stderr);
		return 1;
	}
	return rc ? client_fail(&e) : 0;
}

int
main(int argc, char **argv)
{
	struct client cl = {.options = {.command = "repld session"}, .timeout_ms = 5000};
	struct target t;
	struct err e;
	int opt;

	while ((opt = getopt(argc, argv, "i:k:c:t:")) != -1) {
		if (opt == 'i')
			cl.options.identity = optarg;
		else if (opt == 'k')
			cl.options.known_hosts = optarg;
		else if (opt == 'c')
			cl.options.command = optarg;
		else if (opt == 't')
			cl.timeout_ms = (unsigned)strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (argc - optind < 2)
		return 2;
	if (target_parse(argv[optind + 1], false, &t, &e))
		return client_fail(&e);
	cl.options.target = &t;
	if (argc - optind > 2)
		cl.count = strtoul(argv[optind + 2], NULL, 10);
	return client_run(&cl, argv[optind]);
}
