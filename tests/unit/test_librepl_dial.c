/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A resolver that hangs for ever is left a bounded number of threads for each host; that is no
 * reason not to look up another one, nor for a child of a fork, which has none of them. What this
 * machine lacks to connect is not told as the other side's.
 */
#include "unit.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "dial.h"

#define TRIES 40U

static _Atomic bool hangs;
static int family, connect_errno; /* of an address that is known; 0: none is */

/* In place of the C library's. */
static int
address_new(const struct addrinfo *hints, struct addrinfo **list)
{
	struct addrinfo *a = calloc(1, sizeof(*a) + sizeof(struct sockaddr_in6));

	if (!a)
		return EAI_MEMORY;
	a->ai_family = family;
	a->ai_socktype = hints->ai_socktype;
	a->ai_addr = (struct sockaddr *)(a + 1);
	a->ai_addr->sa_family = (sa_family_t)family;
	a->ai_addrlen =
		family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	*list = a;
	return 0;
}

void
freeaddrinfo(struct addrinfo *a)
{
	free(a);
}

int
connect(int fd, const struct sockaddr *to, socklen_t len)
{
	(void)fd;
	(void)to;
	(void)len;
	errno = connect_errno;
	return -1;
}

int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list)
{
	(void)host;
	(void)service;
	if (family)
		return address_new(hints, list);
	if (hints->ai_flags & AI_NUMERICHOST)
		return EAI_NONAME;
	while (atomic_load(&hangs))
		(void)usleep(1000);
	return EAI_NONAME;
}

static int
try(const char *host, struct err *e)
{
	int fd = -1;

	err_clear(e);
	return dial_tcp(host, 22, clock_deadline(10), NULL, &fd, e);
}

static bool
is_tried_in_a_child(const char *host)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e;

		(void)try(host, &e);
		_exit(strstr(e.text, "not tried") != NULL);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void
few_lookups_are_left_to_a_resolver_that_hangs(void **state)
{
	unsigned left = 0;
	struct err e;

	(void)state;
	atomic_store(&hangs, true);
	while (left < TRIES && try("silent", &e) && !strstr(e.text, "not tried"))
		left++;
	assert_int_equal(e.code, REPL_E_TIMEOUT);
	assert_int_equal(left, 16);
	assert_non_null(strstr(e.text, "silent"));
	assert_int_equal(try("other", &e), REPL_E_TIMEOUT);
	assert_non_null(strstr(e.text, "no answer from the resolver"));
	assert_true(is_tried_in_a_child("silent"));
	/* They end when it answers. */
	atomic_store(&hangs, false);
	while (try("silent", &e) == REPL_E_TIMEOUT)
		(void)usleep(1000);
	assert_int_equal(e.code, REPL_E_UNREACHABLE);
}

static void
what_is_lacking_here_is_not_the_other_sides(void **state)
{
	static const struct {
		int family, errnum, rc;
		const char *text;
		enum repl_reason reason;
	} rows[] = {
		{AF_INET, EADDRNOTAVAIL, REPL_E_UNREACHABLE, "net.ipv4.ip_local_port_range",
		 REPL_REASON_LOCAL},
		{AF_INET, ENOBUFS, REPL_E_UNREACHABLE, "no memory", REPL_REASON_LOCAL},
		{AF_INET6, ENOMEM, REPL_E_UNREACHABLE, "no memory", REPL_REASON_LOCAL},
		{AF_INET, EMFILE, REPL_E_LIMIT, "RLIMIT_NOFILE", REPL_REASON_LOCAL},
		/* There may be no address to connect from. */
		{AF_INET6, EADDRNOTAVAIL, REPL_E_UNREACHABLE, "no address to connect from",
		 REPL_REASON_NONE},
		{AF_INET, ECONNREFUSED, REPL_E_UNREACHABLE, "is an SSH server running there",
		 REPL_REASON_NONE},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err e;

		family = rows[i].family;
		connect_errno = rows[i].errnum;
		assert_int_equal(try("there", &e), rows[i].rc);
		assert_int_equal(e.code, rows[i].rc);
		assert_int_equal(e.reason, rows[i].reason);
		if (!strstr(e.text, rows[i].text) || strncmp(e.text, "there:22: ", 10) != 0)
			fail_msg("no '%s' in: %s", rows[i].text, e.text);
		if (rows[i].errnum != ECONNREFUSED)
			assert_null(strstr(e.text, "SSH server"));
	}
	family = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_lookups_are_left_to_a_resolver_that_hangs),
		cmocka_unit_test(what_is_lacking_here_is_not_the_other_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
