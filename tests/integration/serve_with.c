/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve_with - the embedded SSH server with another program in repld's place.
 *
 * usage: serve_with LISTEN HOST-KEY AUTHORIZED-KEYS PROGRAM SESSIONS-MAX
 *        serve_with session
 * The second form is a program for the first: it sends back what it gets.
 */
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "environment" and "exit N" on a line of their own are answered, not echoed. */
static int
echo(void)
{
	static char buf[65536];
	ssize_t n;

	while ((n = read(STDIN_FILENO, buf, sizeof(buf) - 1)) > 0) {
		size_t len = (size_t)n;

		buf[len] = '\0';
		if (strcmp(buf, "environment\n") == 0)
			len = (size_t)snprintf(buf, sizeof(buf), "%s\n", getenv("SSH_CONNECTION"));
		else if (strncmp(buf, "exit ", 5) == 0)
			return atoi(buf + 5);
		for (size_t done = 0; done < len; done += (size_t)n) {
			n = write(STDOUT_FILENO, buf + done, len - done);
			if (n < 0)
				return 1;
		}
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct conf c;
	struct err e = {0};
	int rc;

	if (argc > 1 && strcmp(argv[1], "session") == 0)
		return echo();
	if (argc != 6)
		return 2;
	memset(&c, 0, sizeof(c));
	c.listen = argv[1];
	c.host_key = argv[2];
	c.authorized_keys = argv[3];
	c.sessions_max = (unsigned)strtoul(argv[5], NULL, 10);
	c.log_level = CONF_LEVEL_INFO;
	rc = serve_run(&c, argv[4], &e);
	if (rc)
		(void)fprintf(stderr, "%s: %s\n", err_name(rc), e.text);
	return rc ? 1 : 0;
}
