/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_forks FILE: a thread is about to fork, and has run what is to be run before that, when
 * another one does so in a signal handler that has interrupted its flush. Both go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpmem.h>

#include "check.h"

#define SIZE    (1UL << 20)
#define GO_ON_S 10

static pthread_t flusher;
static atomic_uint flushes;
static atomic_bool stop, enters; /* enters: the handler's fork has begun */
static bool holds;               /* who forks waits for the other one */

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

/* Before the constructors of all libraries: what is registered first is run last. */
static void
before_all(void)
{
	(void)pthread_atfork(hold, NULL, NULL);
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

int
main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	struct timespec end;
	void *at;

	check(fd >= 0 && ftruncate(fd, (off_t)SIZE) == 0, "the file");
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(at != MAP_FAILED, "mmap");
	check(pthread_atfork(enter, NULL, NULL) == 0, "pthread_atfork");
	(void)signal(SIGUSR1, on_signal);
	check(pthread_create(&flusher, NULL, flush_on, at) == 0, "a thread");
	while (atomic_load(&flushes) < 10)
		moment();
	holds = true;
	fork_once();
	atomic_store(&stop, true);
	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += GO_ON_S;
	errno = pthread_timedjoin_np(flusher, NULL, &end);
	check(errno == 0, "the thread that flushes");
	return 0;
}
