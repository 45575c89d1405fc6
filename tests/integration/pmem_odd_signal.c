/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What signal handlers do while a program has a pool:
 *
 *   exit      exits in a signal handler, in the middle of a persist
 *   handler   a signal handler forks that has interrupted the mapping of the pool
 *   amid      a signal handler persists in the middle of a copy to the same page
 *   ticks     a signal handler persists, often while its thread does
 *   heap      a signal handler persists that has interrupted malloc(3), until FILE.enough is there
 *   forkticks as ticks, while it forks and other threads persist
 *   many      a signal handler persists in many places while its thread waits for the replicas, and
 *             says so; it begins with FILE.go
 *   jumps     a signal handler leaves a copy by siglongjmp(3)
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define HANDLED 100U

static void
on_alarm(int sig)
{
	(void)sig;
	exit(0);
}

static void
exit_amid(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'x', 10);
	(void)signal(SIGALRM, on_alarm);
	(void)ualarm(50000, 0);
	(void)persist_on(at);
}

static _Atomic unsigned handled;

/*
 * One signal, a while from now. Handlers ask for the next one at their end: a timer that goes on by
 * itself leaves nothing to what it interrupts, where a handler takes longer than its period.
 */
static void
tick_in(suseconds_t us)
{
	const struct itimerval once = {.it_value.tv_usec = us};

	check(setitimer(ITIMER_REAL, &once, NULL) == 0, "setitimer");
}

static void
on_timer(int number)
{
	pid_t child = fork();

	(void)number;
	if (child == 0)
		_exit(0);
	(void)waitpid(child, NULL, 0);
	if (++handled < HANDLED)
		tick_in(1000);
}

/* Before anything is flushed: there are no threads, whose locks a handler's fork would wait for. */
static void
fork_in_handler(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at;

	/* So many that one more takes its time. */
	for (int i = 0; i < 250; i++)
		(void)map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	(void)signal(SIGALRM, on_timer);
	tick_in(1000);
	while (handled < HANDLED) {
		at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
		check(munmap(at, SIZE) == 0, "munmap");
	}
	put(map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), 'h', PAGE);
}

static char *volatile handled_at;

static char *closed;

static sigjmp_buf back;

static volatile sig_atomic_t jump;

static void
on_closed(int number)
{
	(void)number;
	put(handled_at, 'h', 64);
	check(mprotect(closed, PAGE, PROT_READ) == 0, "mprotect");
	if (jump)
		siglongjmp(back, 1);
}

/* The copy comes to a page that can't be read. */
static void
copy_amid(char *to, void *(*copy)(void *, const void *, size_t))
{
	check(mprotect(closed, PAGE, PROT_NONE) == 0, "mprotect");
	if (sigsetjmp(back, 1) == 0)
		(void)copy(to, closed - 100, 300);
}

static char *
closed_new(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	closed = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(closed != MAP_FAILED, "mmap");
	memset(closed, 'c', 2 * PAGE);
	closed += PAGE;
	(void)signal(SIGSEGV, on_closed);
	put(at, 'a', PAGE);
	return at;
}

static void
amid(const char *path)
{
	char *at = closed_new(path);

	handled_at = at + PAGE + 400;
	copy_amid(at + PAGE, pmem_memcpy_persist);
	handled_at = at + 9 * PAGE;
	copy_amid(at + 8 * PAGE, pmem_memcpy_nodrain);
	pmem_drain();
}

static void
jumps(const char *path)
{
	char *at = closed_new(path);

	jump = true;
	handled_at = at + 8 * PAGE;
	copy_amid(at + 4 * PAGE, pmem_memcpy_persist);
	put(at + 4 * PAGE, 'j', 2 * PAGE);
	put(at + 16 * PAGE, 'k', PAGE);
}

static void
on_tick(int number)
{
	(void)number;
	put(handled_at + (size_t)handled * 64, 'A' + (int)(handled % 26), 64);
	if (++handled < 2 * HANDLED)
		tick_in(2000);
}

static void
tick_on(char *at, void (*work)(char *))
{
	handled_at = at + SIZE / 2;
	put(at, 'a', PAGE);
	(void)signal(SIGALRM, on_tick);
	tick_in(2000);
	while (handled < 2 * HANDLED)
		work(at + PAGE);
}

static void
put_page(char *at)
{
	put(at, 'a' + (int)(handled % 26), PAGE);
}

static void
ticks(const char *path)
{
	tick_on(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), put_page);
}

#define PLACES 40U

static void
on_many(int number)
{
	(void)number;
	for (unsigned i = 0; i < PLACES; i++)
		put(handled_at + (size_t)i * 2 * PAGE, 'A' + (int)(i % 26), PAGE);
	handled = 1;
	(void)!write(STDOUT_FILENO, "handled\n", 8);
}

static void
many(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	handled_at = at + SIZE / 2;
	put(at, 'a', PAGE);
	say("open");
	wait_for_file(path, "go");
	(void)signal(SIGALRM, on_many);
	tick_in(500000);
	for (int i = 0; !handled; i++)
		put(at + PAGE, 'a' + i % 26, PAGE);
}

static void
on_heap_tick(int number)
{
	(void)number;
	handled++;
	put(handled_at, 'A' + (int)(handled % 26), 64);
	tick_in(1000);
}

static void
heap(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	char enough[4096];
	void *mem[64] = {NULL};

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	handled_at = at + SIZE / 2;
	put(at, 'a', PAGE);
	(void)signal(SIGALRM, on_heap_tick);
	tick_in(1000);
	for (unsigned i = 0; i % 4096 || access(enough, F_OK); i++) {
		free(mem[i % 64]);
		mem[i % 64] = malloc(1024 + i * 7919UL % (99 * 1024));
		check(mem[i % 64] != NULL, "malloc");
	}
	(void)signal(SIGALRM, SIG_IGN);
	check(handled > 0, "a handler");
	put(at + PAGE, 'b', PAGE);
	for (unsigned i = 0; i < 64; i++)
		free(mem[i]);
}

static void
fork_once(char *at)
{
	pid_t child = fork();
	int status;

	(void)at;
	if (child == 0)
		_exit(0);
	check(child > 0, "fork");
	while (waitpid(child, &status, 0) < 0)
		check(errno == EINTR, "waitpid");
}

static void
forkticks(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t writer[WRITERS];
	sigset_t tick;

	(void)sigemptyset(&tick);
	(void)sigaddset(&tick, SIGALRM);
	(void)pthread_sigmask(SIG_BLOCK, &tick, NULL);
	for (int i = 0; i < WRITERS; i++)
		check(!pthread_create(&writer[i], NULL, persist_on, at + (i + 1) * 64), "thread");
	(void)pthread_sigmask(SIG_UNBLOCK, &tick, NULL);
	tick_on(at, fork_once);
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++)
		(void)pthread_join(writer[i], NULL);
}

const struct odd_mode odd_signal[] = {
	{"exit", exit_amid},
	{"handler", fork_in_handler},
	{"amid", amid},
	{"jumps", jumps},
	{"ticks", ticks},
	{"heap", heap},
	{"forkticks", forkticks},
	{"many", many},
	{NULL, NULL},
};
