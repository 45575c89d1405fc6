/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_forks FILE: a thread is about to fork, and has run what is to be run before that, when
 * another one does so in a signal handler that has interrupted its flush. Both go on. Then one
 * makes bytes durable under a lock that is taken before forks, by what was registered before the
 * constructors of libraries, while the other one forks. Then one opens the pool again and again: no
 * fork waits for longer than that takes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpmem.h>

#include "check.h"

#define SIZE    (1UL << 20)
#define GO_ON_S 10
#define FORKS   100
#define OPENS   5
#define FORK_S  10 /* for which one waits at most, see docs/PMDK.md */

static pthread_t flusher;
static atomic_uint flushes;
static atomic_bool stop, enters; /* enters: the handler's fork has begun */
static bool holds;               /* who forks waits for the other one */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool locks; /* who forks takes it */

static void
moment(void)
{
	(void)nanosleep(&(const struct timespec){.tv_nsec = 200000000}, NULL);
}

/* The last one that is run before a fork. */
static void
hold(void)
{
	if (!holds || pthread_equal(pthread_self(), flusher))
		return;
	holds = false;
	/* Its flush waits for the end of this fork. */
	moment();
	check(pthread_kill(flusher, SIGUSR1) == 0, "pthread_kill");
	while (!atomic_load(&enters))
		moment();
	moment();
}

/* The first one. */
static void
enter(void)
{
	if (pthread_equal(pthread_self(), flusher))
		atomic_store(&enters, true);
}

static void
lock_take(void)
{
	if (locks)
		(void)pthread_mutex_lock(&lock);
}

static void
lock_give(void)
{
	if (locks)
		(void)pthread_mutex_unlock(&lock);
}

/*
 * Before the constructors of all libraries: what is registered first is run last. By libc's own
 * function, which programs of old have and nothing is put in front of, where this machine has it.
 */
static void
before_all(void)
{
	int (*first)(void (*)(void), void (*)(void), void (*)(void));
	/* What an allocator does first, it does before all. */
	void *volatile any = malloc(1);

	free(any);
	first = (__typeof__(first))(uintptr_t)dlvsym(RTLD_DEFAULT, "pthread_atfork", "GLIBC_2.2.5");
	check((first ? first : pthread_atfork)(hold, NULL, NULL) == 0, "pthread_atfork");
	check(pthread_atfork(lock_take, lock_give, lock_give) == 0, "pthread_atfork");
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = before_all;

static void
fork_once(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(0);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	check(child > 0 && status == 0, "a child");
}

static void
on_signal(int number)
{
	(void)number;
	fork_once();
}

static void *
flush_on(void *arg)
{
	char *at = arg;

	while (!atomic_load(&stop)) {
		*at = (char)('a' + atomic_fetch_add(&flushes, 1) % 26);
		pmem_persist(at, 1);
	}
	return NULL;
}

static void *
flush_locked(void *arg)
{
	char *at = arg;

	while (!atomic_load(&stop)) {
		lock_take();
		*at = (char)('a' + atomic_fetch_add(&flushes, 1) % 26);
		pmem_persist(at, 1);
		lock_give();
	}
	return NULL;
}

static void *
pool_map(int fd)
{
	void *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(at != MAP_FAILED, "mmap");
	return at;
}

static void *
open_again(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < OPENS; i++) {
		char *at = pool_map(fd);

		*at = (char)('A' + i);
		pmem_persist(at, 1);
		check(munmap(at, SIZE) == 0, "munmap");
	}
	atomic_store(&stop, true);
	return NULL;
}

static void
fork_amid(int fd)
{
	struct timespec begin, end;

	atomic_store(&stop, false);
	check(pthread_create(&flusher, NULL, open_again, &fd) == 0, "a thread");
	while (!atomic_load(&stop)) {
		(void)clock_gettime(CLOCK_MONOTONIC, &begin);
		fork_once();
		(void)clock_gettime(CLOCK_MONOTONIC, &end);
		check(end.tv_sec - begin.tv_sec < FORK_S, "a fork in time");
	}
	(void)pthread_join(flusher, NULL);
}

static void
flusher_begin(void *(*run)(void *), void *at)
{
	atomic_store(&flushes, 0);
	atomic_store(&stop, false);
	check(pthread_create(&flusher, NULL, run, at) == 0, "a thread");
	while (atomic_load(&flushes) < 10)
		moment();
}

static void
flusher_end(void)
{
	struct timespec end;

	atomic_store(&stop, true);
	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += GO_ON_S;
	errno = pthread_timedjoin_np(flusher, NULL, &end);
	check(errno == 0, "the thread that flushes");
}

int
main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	void *at;

	check(fd >= 0 && ftruncate(fd, (off_t)SIZE) == 0, "the file");
	at = pool_map(fd);
	check(pthread_atfork(enter, NULL, NULL) == 0, "pthread_atfork");
	(void)signal(SIGUSR1, on_signal);
	flusher_begin(flush_on, at);
	holds = true;
	fork_once();
	flusher_end();
	locks = true;
	flusher_begin(flush_locked, at);
	for (int i = 0; i < FORKS; i++)
		fork_once();
	flusher_end();
	check(munmap(at, SIZE) == 0, "munmap");
	fork_amid(fd);
	return 0;
}
