/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_handed FILE LIBRARY - persists to FILE; LIBRARY, fake_verbs.c, gets two descriptors from the
 * kernel. The program closes all above standard error, and opens a file of its own until it
 * has the number of one of them: of the first it never does, and when the library closes both the
 * program's files stay.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libpmem.h>

#include "check.h"

#define SIZE (1UL << 20)

static void *
function(void *library, const char *name)
{
	void *f = dlsym(library, name);

	check(f != NULL, name);
	return f;
}

int
main(int argc, char **argv)
{
	int (*fake_open)(int channels[2]);
	int (*fake_close)(const int channels[2]);
	int channels[2], fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	void *library, *f;
	char *pool;

	check(argc == 3 && fd >= 0 && ftruncate(fd, SIZE) == 0, "usage");
	pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(pool != MAP_FAILED, "mmap");
	memset(pool, 1, SIZE);
	check(pmem_msync(pool, SIZE) == 0, "pmem_msync");
	library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	check(library != NULL, "dlopen");
	f = function(library, "fake_open");
	memcpy(&fake_open, &f, sizeof(f));
	f = function(library, "fake_close");
	memcpy(&fake_close, &f, sizeof(f));
	check(fake_open(channels) == 0, "fake_open");
	closefrom(STDERR_FILENO + 1);
	do {
		fd = open("/dev/null", O_RDWR);
		check(fd >= 0 && fd != channels[0], "a number that is in use");
	} while (fd < channels[1]);
	check(fd == channels[1], "the number of the other one");
	check(fake_close(channels) == 0, "fake_close");
	check(fcntl(channels[0], F_GETFD) < 0, "its own is open");
	check(fcntl(channels[1], F_GETFD) >= 0, "the program's file");
	memset(pool, 2, SIZE);
	check(pmem_msync(pool, SIZE) == 0, "pmem_msync");
	return 0;
}
