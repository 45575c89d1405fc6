/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_onto FILE - a descriptor that has just been opened for the replicas, and of which nobody but
 * the kernel knows yet, is what another thread puts one of its own onto, or closes: the first by
 * dup2(2), the next by dup3(2), the one after by close(2). All are refused.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <libpmem.h>

#define SIZE  (1UL << 20)
#define WAYS  3
#define ROUND 30 /* of the descriptors that are opened for a replica */

static atomic_int fresh = -1; /* the number */
static atomic_bool over;
static atomic_uint refused;
static const char *path;

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(2);
}

static void *
meddle(void *arg)
{
	int own = open("/dev/null", O_RDWR), fd, rc;

	(void)arg;
	check(own >= 0, "/dev/null");
	while (!atomic_load(&over)) {
		fd = atomic_exchange(&fresh, -1);
		if (fd < 0)
			continue;
		switch (refused++ % WAYS) {
		case 0:
			rc = dup2(own, fd);
			check(rc < 0 && errno == EBUSY, "dup2");
			break;
		case 1:
			rc = dup3(own, fd, O_CLOEXEC);
			check(rc < 0 && errno == EBUSY, "dup3");
			break;
		default:
			rc = close(fd);
			check(rc < 0 && errno == EBADF, "close");
		}
	}
	return NULL;
}

/* In libc's place, for whoever calls it by its name. */
__attribute__((visibility("default"))) long
syscall(long number, ...)
{
	static long (*real)(long, ...);
	const struct timespec moment = {.tv_nsec = 2000000};
	long a[6], got;
	va_list ap;

	va_start(ap, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!real)
		real = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	got = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	/* These stay open for as long as the replica is. */
	if ((number == SYS_eventfd2 || number == SYS_epoll_create1) && got > STDERR_FILENO &&
	    refused < ROUND) {
		atomic_store(&fresh, (int)got);
		while (atomic_load(&fresh) >= 0)
			(void)nanosleep(&moment, NULL);
		(void)nanosleep(&moment, NULL);
	}
	return got;
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	char *at;
	int fd;

	if (argc != 2)
		return 2;
	path = argv[1];
	fd = open(path, O_RDWR | O_CREAT, 0600);
	check(fd >= 0 && ftruncate(fd, SIZE) == 0, path);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(at != MAP_FAILED, "mmap");
	check(!pthread_create(&thread, NULL, meddle, NULL), "thread");
	memset(at, 'a', SIZE);
	check(pmem_msync(at, SIZE) == 0, "pmem_msync");
	atomic_store(&over, true);
	(void)pthread_join(thread, NULL);
	check(refused >= WAYS, "nothing was opened");
	return 0;
}
