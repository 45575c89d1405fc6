/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A resolver that hangs for ever is left a bounded number of threads for each host; that is no
 * reason not to look up another one, nor for a child of a fork, which has none of them.
 */
#include "unit.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "dial.h"

#define TRIES 40U

static _Atomic bool hangs;

/* In place of the C library's. */
int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list)
{
	(void)host;
	(void)service;
	(void)list;
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_lookups_are_left_to_a_resolver_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
