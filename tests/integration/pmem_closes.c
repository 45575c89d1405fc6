/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_closes HOW FILE DIRECTORY - persists to FILE, closes by HOW all descriptors above standard
 * error, opens files in DIRECTORY, and goes on with both.
 *
 *   loop    close(2) of each number
 *   all     close(2) of each number, those of standard input, output and error as well
 *   listed  close(2) of what stands in /proc/self/fd
 *   range   close_range(2)
 *   from    closefrom(3)
 *   onto    dup2(2) and dup3(2) of a file of its own to each number
 *   call    by system calls that nobody sees
 *   exec    by executing a command, which is only looked at: what is left to it was open before
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <libpmem.h>

#include "check.h"

#define SIZE   (1UL << 20)
#define PAGE   4096UL
#define FILES  100
#define NUMBER 200 /* of the highest that may be in use */
#define TEXT   "the program's own"

static const char *directory;
static int files[FILES];
static bool before[NUMBER];

static void
put(char *at, int c, size_t len)
{
	memset(at, c, len);
	pmem_msync(at, len);
}

static int
file_open(int i)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%d", directory, i);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void
by_loop(void)
{
	for (int fd = 3; fd < NUMBER; fd++)
		(void)close(fd);
}

static void
by_all(void)
{
	for (int fd = 0; fd < NUMBER; fd++)
		(void)close(fd);
}

static void
by_list(void)
{
	int found[NUMBER], count = 0;
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;

	check(d != NULL, "/proc/self/fd");
	while ((entry = readdir(d)) != NULL) {
		int fd = atoi(entry->d_name);

		if (fd > 2 && fd != dirfd(d) && count < NUMBER)
			found[count++] = fd;
	}
	(void)closedir(d);
	while (count > 0)
		(void)close(found[--count]);
}

static void
by_range(void)
{
	check(close_range(3, 5, 0) == 0, "close_range");
	check(close_range(4, ~0U, 0) == 0, "close_range");
}

static void
by_from(void)
{
	closefrom(3);
}

static void
by_dup(void)
{
	int fd = file_open(FILES);

	check(fd >= 0, "open");
	for (int to = 3; to < NUMBER; to++) {
		if (to != fd)
			(void)(to % 2 ? dup2(fd, to) : dup3(fd, to, O_CLOEXEC));
	}
	by_loop();
}

static void
by_call(void)
{
	for (int fd = 3; fd < NUMBER; fd++)
		(void)syscall(SYS_close, fd);
}

/* Of the replicas' none. */
static void
by_exec(void)
{
	for (int fd = 3; fd < NUMBER; fd++) {
		int flags = fcntl(fd, F_GETFD);

		check(before[fd] || flags < 0 || (flags & FD_CLOEXEC), "a command has it too");
	}
}

/* They have the lowest numbers that are free. */
static void
files_open(void)
{
	for (int i = 0; i < FILES; i++) {
		files[i] = file_open(i);
		check(files[i] >= 0, "open");
		check(write(files[i], TEXT, sizeof(TEXT)) == sizeof(TEXT), "write");
	}
}

static void
files_check(void)
{
	char text[PAGE];

	for (int i = 0; i < FILES; i++) {
		struct stat st;

		errno = 0;
		check(fstat(files[i], &st) == 0 && st.st_size == sizeof(TEXT), "a file's size");
		check(lseek(files[i], 0, SEEK_CUR) == sizeof(TEXT), "a file's place");
		check(pread(files[i], text, PAGE, 0) == sizeof(TEXT), "reading a file");
		check(memcmp(text, TEXT, sizeof(TEXT)) == 0, "a file's bytes");
		check(close(files[i]) == 0, "closing a file");
	}
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} hows[] = {{"loop", by_loop}, {"all", by_all},  {"listed", by_list}, {"range", by_range},
		    {"from", by_from}, {"onto", by_dup}, {"call", by_call},   {"exec", by_exec}};
	size_t how = 0;
	char *at;
	int fd;

	while (argc == 4 && how < sizeof(hows) / sizeof(hows[0]) &&
	       strcmp(hows[how].name, argv[1]) != 0)
		how++;
	if (argc != 4 || how == sizeof(hows) / sizeof(hows[0]))
		return 2;
	directory = argv[3];
	fd = open(argv[2], O_RDWR | O_CREAT, 0600);
	check(fd >= 0 && ftruncate(fd, SIZE) == 0, argv[2]);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(at != MAP_FAILED, "mmap");
	for (int i = 0; i < NUMBER; i++)
		before[i] = fcntl(i, F_GETFD) >= 0;
	put(at, 'a', 2 * PAGE);
	hows[how].run();
	files_open();
	for (size_t i = 0; i < 20; i++)
		put(at + i * PAGE, 'b' + (int)i, PAGE);
	files_check();
	return 0;
}
