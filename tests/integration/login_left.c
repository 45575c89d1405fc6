/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: login_left KNOWN-HOSTS IDENTITY SILENT-TARGET TARGET
 *
 * Logs in to the first target until no more logins to it are left waiting for the agent. Those
 * are no reason not to try the other one, nor for a child of a fork, which has none of them.
 */
#include "channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define TRIES   40U
#define SHORT   500U
#define AT_LAST 20000U

static int
try(const struct channel_options *o, unsigned ms, struct err *e)
{
	struct channel *c = NULL;
	int rc;

	err_clear(e);
	rc = channel_open(o, clock_deadline(ms), &c, e);
	channel_free(c);
	return rc;
}

static bool
leave_all(const struct channel_options *o, struct err *e)
{
	for (unsigned i = 0; i < TRIES; i++) {
		if (!try(o, SHORT, e))
			return false;
		if (strstr(e->text, "not tried"))
			return true;
	}
	return false;
}

static int
try_in_child(const struct channel_options *o)
{
	struct err e;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int rc = try(o, AT_LAST, &e);

		if (rc)
			(void)fprintf(stderr, "child: %s\n", e.text);
		_exit(rc ? 1 : 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct channel_options o = {.command = "cat"};
	struct target silent, other;
	struct err e;

	if (argc != 5 || target_parse(argv[3], false, &silent, &e) ||
	    target_parse(argv[4], false, &other, &e))
		return 2;
	o.known_hosts = argv[1];
	o.target = &silent;
	if (!leave_all(&o, &e)) {
		(void)fprintf(stderr, "none is refused: %s\n", e.text);
		return 1;
	}
	(void)unsetenv("SSH_AUTH_SOCK");
	o.identity = argv[2];
	o.target = &other;
	if (try(&o, AT_LAST, &e)) {
		(void)fprintf(stderr, "another target: %s\n", e.text);
		return 1;
	}
	o.target = &silent;
	return try_in_child(&o);
}
