/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem_busy - a program of librpmem.so.1 whose lanes are in use, or that may have no more threads.
 * librepl's calls come by here: some are told so that are not made, and those that librepl tells so
 * are counted.
 *
 *   rpmem_busy TARGET           busy.set is there, of 4M without headers. Each call of some that
 *                               find their lane in use twice, and one by another thread
 *   rpmem_busy TARGET stopped   threads persist one word until librepl has told one of them so; a
 *                               line when they have begun, and one when that was
 *   rpmem_busy TARGET threadless  busy.set was made by the first; it is opened, and all of it
 *                               persisted when no thread can be made any more
 *   rpmem_busy TARGET stalled   the same with threads, while the disk of the mapped file takes
 *                               STALL_MS for a sync
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "librepl.h"
#include "rpmem.h"

#define SIZE    ((size_t)4 << 20)
#define THREADS 4U

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "%d: not so: %s (errno %d, %s)\n", __LINE__, #cond,  \
				      errno, rpmem_errormsg());                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* ---- in front of librepl ---- */

static _Atomic int forge;   /* so many calls find their lane in use */
static _Atomic bool forges; /* all do */
static _Atomic unsigned forged, busy;

static bool
is_forged(void)
{
	if (atomic_load(&forges)) {
		atomic_fetch_add(&forged, 1);
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		return true;
	}
	return atomic_load(&forge) > 0 && atomic_fetch_sub(&forge, 1) > 0;
}

static int
counted(int rc)
{
	if (rc == REPL_E_BUSY)
		atomic_fetch_add(&busy, 1);
	return rc;
}

int
repl_flush(struct repl *r, unsigned lane, size_t off, size_t len)
{
	int (*real)(struct repl *, unsigned, size_t, size_t) = dlsym(RTLD_NEXT, "repl_flush");

	return is_forged() ? REPL_E_BUSY : counted(real(r, lane, off, len));
}

int
repl_drain(struct repl *r, unsigned lane)
{
	int (*real)(struct repl *, unsigned) = dlsym(RTLD_NEXT, "repl_drain");

	return is_forged() ? REPL_E_BUSY : counted(real(r, lane));
}

int
repl_persist(struct repl *r, unsigned lane, size_t off, size_t len)
{
	int (*real)(struct repl *, unsigned, size_t, size_t) = dlsym(RTLD_NEXT, "repl_persist");

	return is_forged() ? REPL_E_BUSY : counted(real(r, lane, off, len));
}

int
repl_persist_atomic8(struct repl *r, unsigned lane, size_t off)
{
	int (*real)(struct repl *, unsigned, size_t) = dlsym(RTLD_NEXT, "repl_persist_atomic8");

	return is_forged() ? REPL_E_BUSY : counted(real(r, lane, off));
}

int
repl_read(struct repl *r, unsigned lane, unsigned replica, void *buf, size_t off, size_t len)
{
	int (*real)(struct repl *, unsigned, unsigned, void *, size_t, size_t) =
		dlsym(RTLD_NEXT, "repl_read");

	return is_forged() ? REPL_E_BUSY : counted(real(r, lane, replica, buf, off, len));
}

static _Atomic bool threadless;

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");

	return atomic_load(&threadless) ? EAGAIN : real(thread, attr, run, arg);
}

static _Atomic bool stalled;

#define STALL_MS 4500

__attribute__((visibility("default"))) long
syscall(long number, ...)
{
	long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	va_start(args, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_msync && atomic_load(&stalled))
		(void)nanosleep(&(struct timespec){.tv_sec = STALL_MS / 1000,
						   .tv_nsec = STALL_MS % 1000 * 1000000},
				NULL);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- the program ---- */

static RPMEMpool *pool;
static char *mem;

/* It is done, and not before librepl was called a third time. */
#define WAITS(call)                                                                                \
	do {                                                                                       \
		atomic_store(&forge, 2);                                                           \
		CHECK((call) == 0);                                                                \
		CHECK(atomic_load(&forge) <= 0);                                                   \
	} while (0)

static void
calls_wait(void)
{
	char back[8] = "";

	memset(mem, 'b', 16384);
	WAITS(rpmem_persist(pool, 0, 8, 0, 0));
	WAITS(rpmem_persist(pool, 8, 4088, 0, 0));
	WAITS(rpmem_deep_persist(pool, 4096, 4096, 0));
	WAITS(rpmem_flush(pool, 8192, 4096, 0, 0));
	WAITS(rpmem_flush(pool, 12288, 8, 0, 0));
	WAITS(rpmem_flush(pool, 12296, 4088, 0, 0));
	WAITS(rpmem_drain(pool, 0, 0));
	WAITS(rpmem_read(pool, back, 8192, sizeof(back), 0));
	CHECK(memcmp(back, mem, sizeof(back)) == 0);
}

static void *
drain_run(void *arg)
{
	(void)arg;
	CHECK(rpmem_drain(pool, 0, 0) == 0);
	return NULL;
}

/* Who is in a lane with another thread is told, as ever. */
static void
other_is_told(void)
{
	pthread_t thread;

	atomic_store(&forged, 0);
	atomic_store(&forges, true);
	CHECK(pthread_create(&thread, NULL, drain_run, NULL) == 0);
	while (atomic_load(&forged) < 2)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	errno = 0;
	CHECK(rpmem_drain(pool, 0, 0) == -1 && errno == EBUSY);
	atomic_store(&forges, false);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rpmem_drain(pool, 0, 0) == 0);
}

static void *
word_run(void *arg)
{
	const unsigned *lane = arg;

	while (atomic_load(&busy) == 0)
		CHECK(rpmem_persist(pool, 0, 8, *lane, 0) == 0);
	return NULL;
}

static void
stopped(void)
{
	unsigned lanes[THREADS];
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		lanes[i] = i;
		CHECK(pthread_create(&threads[i], NULL, word_run, &lanes[i]) == 0);
	}
	(void)puts("begun");
	(void)fflush(stdout);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	(void)puts("busy");
}

static void
hindered(const char *target, _Atomic bool *hinders)
{
	unsigned lanes = THREADS;

	pool = rpmem_open(target, "busy.set", mem, SIZE, &lanes, NULL);
	CHECK(pool);
	atomic_store(hinders, true);
	/* What it has before its first write it gets before that. */
	CHECK(rpmem_persist(pool, 0, 8, 0, 0) == 0);
	memset(mem, 'c', SIZE);
	CHECK(rpmem_persist(pool, 0, SIZE, 0, 0) == 0);
	CHECK(rpmem_close(pool) == 0);
}

int
main(int argc, char **argv)
{
	unsigned lanes = THREADS;

	if (argc < 2)
		return 2;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	if (argc > 2 && strcmp(argv[2], "stopped") != 0) {
		hindered(argv[1], strcmp(argv[2], "stalled") == 0 ? &stalled : &threadless);
		return 0;
	}
	pool = rpmem_create(argv[1], "busy.set", mem, SIZE, &lanes, NULL);
	CHECK(pool && lanes == THREADS);
	if (argc > 2)
		stopped();
	else
		calls_wait();
	other_is_told();
	CHECK(rpmem_close(pool) == 0);
	return 0;
}
