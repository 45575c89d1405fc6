/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem_unmaps - a program of librpmem.so.1 that unmaps its pool before it closes the replica, as
 * libpmemobj does, while that gets what it missed.
 *
 *   rpmem_unmaps TARGET FILE    unmaps.set is there, of 24M without headers. It is lost when
 *                               FILE.lost is made, gets it back when FILE.back is, and has it when
 *                               FILE.done is
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rpmem.h"

#define SIZE ((size_t)24 << 20)

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "%d: not so: %s (%s)\n", __LINE__, #cond,            \
				      rpmem_errormsg());                                           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void
wait_for(const char *file, const char *suffix)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s.%s", file, suffix);
	while (access(path, F_OK) != 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void
persist(RPMEMpool *p, char *mem, int c)
{
	memset(mem, c, SIZE);
	CHECK(rpmem_persist(p, 0, SIZE, 0, 0) == 0);
}

int
main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
	unsigned lanes = 1;
	RPMEMpool *p;
	char *mem;

	if (fd < 0 || ftruncate(fd, (off_t)SIZE) != 0)
		return 2;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mem != MAP_FAILED);
	p = rpmem_create(argv[1], "unmaps.set", mem, SIZE, &lanes, NULL);
	CHECK(p);
	persist(p, mem, 'a');
	(void)puts("made");
	(void)fflush(stdout);
	wait_for(argv[2], "lost");
	persist(p, mem, 'b');
	wait_for(argv[2], "back");
	CHECK(munmap(mem, SIZE) == 0);
	/* A half of it is somebody else's by then. */
	CHECK(mmap(mem, SIZE / 2, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == mem);
	memset(mem, 'x', SIZE / 2);
	wait_for(argv[2], "done");
	CHECK(rpmem_close(p) == 0);
	return 0;
}
