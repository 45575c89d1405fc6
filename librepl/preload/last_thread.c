/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program's main() may leave by pthread_exit(3) or thrd_exit(3): the process ends with its last
 * thread. With the replicas' threads it has more than those of its own, so from then on it is
 * looked at whether any of them is left.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"
#include "pools.h"
#include "pools_impl.h"
#include "proc.h"

#define EXPORT  __attribute__((visibility("default")))
#define LOOK_NS 50000000L
#define OTHERS  2U /* main(), which counts until all end, and who looks */
#define LINKS   2U /* that each directory has */

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

struct begin {
	void *(*run)(void *);
	void *arg;
};

static atomic_uint replicas; /* threads of theirs, counted while they exist */
static __thread bool theirs __attribute__((tls_model("initial-exec"))); /* this one is */

static struct {
	create_fn *create;
	void (*exit)(void *);
	void (*exit_c11)(int);
} next;

/* Looked up at once: later the linker may be another thread's, who waits for this one. */
__attribute__((constructor)) static void
next_init(void)
{
	next.create = (create_fn *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
	next.exit = (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_exit");
	next.exit_c11 = (void (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "thrd_exit");
}

static create_fn *
next_create(void)
{
	if (!next.create)
		next_init();
	return next.create;
}

static void
replicas_end(void *arg)
{
	(void)arg;
	atomic_fetch_sub(&replicas, 1);
}

static void *
replicas_run(void *arg)
{
	struct begin b = *(struct begin *)arg;
	void *got;

	free(arg);
	theirs = true;
	atomic_fetch_add(&replicas, 1);
	pthread_cleanup_push(replicas_end, NULL);
	got = b.run(b.arg);
	pthread_cleanup_pop(1);
	return got;
}

EXPORT int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	struct begin *b;
	int rc;

	if (!descriptors_caller(__builtin_return_address(0)))
		return next_create()(thread, attr, run, arg);
	b = malloc(sizeof(*b));
	if (!b)
		return EAGAIN;
	*b = (struct begin){.run = run, .arg = arg};
	rc = next_create()(thread, attr, replicas_run, b);
	if (rc)
		free(b);
	return rc;
}

bool
thread_is_theirs(void)
{
	return theirs;
}

void
last_thread_forked(void)
{
	atomic_store(&replicas, 0);
}

/* Its cleanup handlers and its data's destructors run before that. */
static bool
main_gone(void)
{
	return proc_state("/proc/self/stat") == 'Z';
}

/*
 * The kernel's count is one moment's. One of the replicas' that is just born counts as the
 * program's; one that ends meanwhile is seen by their number.
 */
static bool
none_left(const struct stat *tasks, unsigned before)
{
	return tasks->st_nlink == LINKS + OTHERS + before && atomic_load(&replicas) == before;
}

static void *
look(void *arg)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	unsigned before = atomic_load(&replicas);
	bool gone = main_gone(); /* first: until then it may start others */
	struct stat tasks;

	(void)arg;
	while (stat("/proc/self/task", &tasks) == 0) {
		if (gone && none_left(&tasks, before))
			exit(0);
		(void)nanosleep(&pause, NULL);
		before = atomic_load(&replicas);
		gone = main_gone();
	}
	return NULL;
}

static void
look_on(void)
{
	sigset_t all, mine;
	pthread_t thread;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mine);
	if (next_create()(&thread, NULL, look, NULL) == 0)
		(void)pthread_detach(thread);
	(void)pthread_sigmask(SIG_SETMASK, &mine, NULL);
}

static void
main_ends(void)
{
	if (pools_any() && gettid() == getpid())
		look_on();
}

EXPORT void
pthread_exit(void *value)
{
	if (!next.exit)
		next_init();
	main_ends();
	next.exit(value);
	__builtin_unreachable();
}

/* It does not come by the one above: it is libc's own call. */
EXPORT void
thrd_exit(int code)
{
	if (!next.exit_c11)
		next_init();
	main_ends();
	next.exit_c11(code);
	__builtin_unreachable();
}
