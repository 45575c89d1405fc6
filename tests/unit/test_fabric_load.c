/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is forked while another thread loads libfabric, or sets it up, never hangs on that. When it
 * is loaded nothing is asked of the linker any more.
 */
#include "unit.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *slow_dlopen(const char *name, int flags);

#define dlopen slow_dlopen
#include "../../librepl/common/fabric_load.c"
#undef dlopen

static pid_t parent;
static atomic_bool inside, may_go_on;
static atomic_uint asked;
static bool no_verbs;

/* Until it is told to go on; a child has it at once. */
static void
stay(void)
{
	if (getpid() != parent)
		return;
	atomic_store(&inside, true);
	while (!atomic_load(&may_go_on))
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *
slow_dlopen(const char *name, int flags)
{
	atomic_fetch_add(&asked, 1);
	stay();
	if (no_verbs && strcmp(name, VERBS_LIBRARY) == 0)
		return NULL;
	return dlopen(name, flags);
}

static int
slow_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	     const struct fi_info *hints, struct fi_info **info)
{
	(void)version;
	(void)node;
	(void)service;
	(void)flags;
	(void)hints;
	(void)info;
	stay();
	return 0;
}

static void *
load_main(void *arg)
{
	return ofi_load(NULL) ? NULL : arg;
}

static void *
set_up_main(void *arg)
{
	return fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, NULL) ? NULL : arg;
}

/* The status that ofi_load() has in a child that is forked while the thread is inside. */
static int
forked_amid(void *(*thread)(void *))
{
	int status = 0, succeeds = 1;
	pthread_t other;
	void *done;
	pid_t child;

	parent = getpid();
	atomic_store(&inside, false);
	atomic_store(&may_go_on, false);
	assert_int_equal(pthread_create(&other, NULL, thread, &succeeds), 0);
	while (!atomic_load(&inside))
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	child = fork();
	if (child == 0) {
		(void)alarm(20);
		_exit(-ofi_load(NULL));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	atomic_store(&may_go_on, true);
	(void)pthread_join(other, &done);
	assert_non_null(done);
	/* No signal. */
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* What is there of a library that was being loaded must not be used: it may not be relocated. */
static void
what_was_being_loaded_is_refused(void **state)
{
	(void)state;
	assert_int_equal(forked_amid(load_main), REPL_E_FAILED);
	assert_int_equal(ofi_load(NULL), 0);
}

/* libfabric holds a lock over that, which nobody in the child gives back. */
static void
what_was_being_set_up_is_refused(void **state)
{
	__typeof__(fi_getinfo) *getinfo = ofi.getinfo;

	(void)state;
	ofi.getinfo = slow_getinfo;
	assert_int_equal(forked_amid(set_up_main), REPL_E_FAILED);
	assert_int_equal(ofi_load(NULL), 0);
	/* From then on a child can use it. */
	assert_int_equal(forked_amid(set_up_main), 0);
	ofi.getinfo = getinfo;
}

static void
what_is_loaded_asks_the_linker_nothing(void **state)
{
	unsigned before;

	(void)state;
	/* Not each libfabric brings it along. */
	no_verbs = true;
	fab_warm_free(fab_warm_new());
	before = atomic_load(&asked);
	assert_int_equal(ofi_load(NULL), 0);
	(void)ofi_fork_safe();
	assert_int_equal(atomic_load(&asked), before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_being_loaded_is_refused),
		cmocka_unit_test(what_was_being_set_up_is_refused),
		cmocka_unit_test(what_is_loaded_asks_the_linker_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
