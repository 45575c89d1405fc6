/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs do to the name of a pool's file:
 *
 *   recreate  the file is deleted and made anew while it stays mapped
 *   realiased the same, and its name was a symbolic link to it until then
 *   anew      the same while it is not mapped, and zeros are made durable first
 *   renamed   the file is made, mapped and half filled by another name
 *   linked    the same, with link(2)
 *   unnamed   the same of a file that had no name, by O_TMPFILE
 *   crowded   the same, and no descriptor is left at that moment
 *   crowds    the same while another one is the pool, and METRICS are written before more is
 *             made durable
 *   directory as renamed, and its directory gets its name
 *   aliased   the same, and its name is a symbolic link to the one that it gets
 *   replaced  a whole file takes its name, mapped before, and nothing is made durable from then on
 *   reopened  the same, mapped afterwards
 *   reborn    the same of one that has the number of the first one, which is gone
 *   hidden    its name is gone when more of it is mapped
 *   adrift    its name is gone when it gets longer, and what is new is made durable
 *   drifts    the same, and nothing of what is new is
 *   unknown   the same by a call that is not followed
 *   unknown_odd  the same, by less than a page, of which no mapping tells
 *   denied    its path can't be looked up any more when it is mapped first
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

static void
recreate(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *fresh;

	put(at, 'o', PAGE);
	check(unlink(path) == 0, "unlink");
	fd = file_new(path, 2 * SIZE);
	fresh = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE);
	put(at + PAGE, 'o', PAGE);
	put(fresh + 2 * PAGE, 'n', PAGE);
	put(fresh + SIZE + PAGE, 'n', PAGE);
	put(at + 3 * PAGE, 'o', PAGE);
	(void)munmap(at, SIZE);
	put(fresh + 4 * PAGE, 'n', PAGE);
}

static void
anew(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'o', 3 * PAGE);
	check(munmap(at, SIZE) == 0 && unlink(path) == 0, "unlink");
	at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	put(at, 0, SIZE);
	check(munmap(at, SIZE) == 0, "munmap");
	at = map_fd(open(path, O_RDWR), 0, SIZE, PROT_READ | PROT_WRITE);
	put(at + 2 * PAGE, 0, PAGE);
	put(at + PAGE, 'n', PAGE);
}

static void
renamed(const char *path)
{
	char by[4096];
	char *at, *part;
	int fd;

	for (int i = 0; i < 3; i++) {
		(void)snprintf(by, sizeof(by), "%s.new", path);
		fd = file_new(by, SIZE);
		at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
		part = map_fd(fd, 16 * PAGE, PAGE, PROT_READ | PROT_WRITE);
		(void)close(fd);
		put(at, 'a' + i, 3 * PAGE);
		check(i == 1 ? renameat(AT_FDCWD, by, AT_FDCWD, path) == 0 : rename(by, path) == 0,
		      "rename");
		put(at + 2 * PAGE, 'n', 2 * PAGE);
		put(part, 'p', 64);
		if (i < 2)
			(void)munmap(at, SIZE);
		if (i < 2)
			(void)munmap(part, PAGE);
	}
}

/* It is mapped as from, and is to's when take() has been called: the pool's file. */
static void
take_name(const char *from, const char *to, int (*take)(const char *, const char *))
{
	int fd = file_new(from, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	(void)close(fd);
	put(at, 'a', 3 * PAGE);
	check(take(from, to) == 0, to);
	put(at + 2 * PAGE, 'n', 2 * PAGE);
}

/* A pool that is in use, and what is to take its place. */
static void
make_two(const char *path, char by[4096], char **old, char **fresh)
{
	*old = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	put(*old, 'o', 3 * PAGE);
	(void)snprintf(by, 4096, "%s.new", path);
	*fresh = map_fd(file_new(by, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	put(*fresh, 'n', 2 * PAGE);
}

static void
replaced(const char *path)
{
	char by[4096], *old, *fresh;

	make_two(path, by, &old, &fresh);
	check(rename(by, path) == 0, "rename");
	check(munmap(old, SIZE) == 0, "munmap");
	check(fresh[PAGE] == 'n', "a byte");
}

static void
reopened(const char *path)
{
	char by[4096], *old, *fresh;

	make_two(path, by, &old, &fresh);
	check(munmap(fresh, SIZE) == 0 && munmap(old, SIZE) == 0, "munmap");
	check(rename(by, path) == 0, "rename");
	fresh = map_fd(open(path, O_RDWR), 0, SIZE, PROT_READ | PROT_WRITE);
	check(fresh[PAGE] == 'n', "a byte");
}

static void
reborn(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), by[4096];
	struct stat before, now;
	int fd;

	put(at, 'o', 3 * PAGE);
	check(stat(path, &before) == 0, path);
	check(munmap(at, SIZE) == 0 && unlink(path) == 0, "munmap");
	/* So that no descriptor keeps it. */
	for (fd = 3; fd < 64; fd++)
		(void)close(fd);
	(void)snprintf(by, sizeof(by), "%s.new", path);
	fd = file_new(by, SIZE);
	check(pwrite(fd, "new", 3, PAGE) == 3 && rename(by, path) == 0, "rename");
	check(fstat(fd, &now) == 0 && now.st_ino == before.st_ino, "another number");
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	check(at[PAGE] == 'n', "a byte");
}

static void
linked(const char *path)
{
	char by[4096];

	(void)snprintf(by, sizeof(by), "%s.new", path);
	take_name(by, path, link);
}

static void
unnamed(const char *path)
{
	char dir[4096], by[64], *at;
	int fd;

	(void)snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	fd = open(dir, O_RDWR | O_TMPFILE, 0600);
	check(fd >= 0 && ftruncate(fd, SIZE) == 0, dir);
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(at, 'a', 3 * PAGE);
	(void)snprintf(by, sizeof(by), "/proc/self/fd/%d", fd);
	check(linkat(AT_FDCWD, by, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0, path);
	put(at + 2 * PAGE, 'n', 2 * PAGE);
}

static int
rename_crowded(const char *from, const char *to)
{
	struct rlimit limit, none;
	int rc;

	check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	none = limit;
	none.rlim_cur = 0;
	check(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
	rc = rename(from, to);
	check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	return rc;
}

static void
crowded(const char *path)
{
	char by[4096];

	(void)snprintf(by, sizeof(by), "%s.new", path);
	take_name(by, path, rename_crowded);
}

/* Another file of them than that, 0: any. Returns it. */
static ino_t
metrics_wait(ino_t before)
{
	const char *file = getenv("METRICS");
	struct stat now;

	check(file != NULL, "METRICS");
	while (stat(file, &now) != 0 || now.st_ino == before)
		(void)usleep(100000);
	(void)usleep(100000);
	return now.st_ino;
}

static void
crowds(const char *path)
{
	char by[4096], *old, *fresh;
	ino_t metrics;

	make_two(path, by, &old, &fresh);
	/* The first ones are not written without a descriptor. */
	metrics = metrics_wait(0);
	check(rename_crowded(by, path) == 0, "rename");
	(void)metrics_wait(metrics);
	put(fresh + 2 * PAGE, 'n', 2 * PAGE);
}

static int
publish(const char *from, const char *to)
{
	char by[4096], dir[4096];

	(void)snprintf(by, sizeof(by), "%s", from);
	(void)snprintf(dir, sizeof(dir), "%s", to);
	*strrchr(by, '/') = '\0';
	*strrchr(dir, '/') = '\0';
	return rmdir(dir) || rename(by, dir);
}

static void
directory(const char *path)
{
	char by[4096];
	const char *slash = strrchr(path, '/');

	(void)snprintf(by, sizeof(by), "%.*s.new", (int)(slash - path), path);
	check(mkdir(by, 0700) == 0, by);
	(void)strcat(by, slash);
	take_name(by, path, publish);
}

static void
aliased(const char *path)
{
	char by[4096], other[4096];

	(void)snprintf(by, sizeof(by), "%s.new", path);
	(void)snprintf(other, sizeof(other), "%s.1", path);
	check(symlink(other, path) == 0, "symlink");
	take_name(by, other, rename);
}

static void
hidden(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE / 2, PROT_READ | PROT_WRITE), *more, by[4096];

	put(at, 'a', PAGE);
	(void)snprintf(by, sizeof(by), "%s.kept", path);
	check(rename(path, by) == 0, "rename");
	more = map_fd(fd, SIZE / 2, SIZE / 2, PROT_READ | PROT_WRITE);
	put(more + PAGE, 'b', PAGE);
	check(rename(by, path) == 0, "rename");
}

static void
adrift(const char *path)
{
	bool all = strstr(path, "adrift") != NULL;
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), by[4096];

	put(at, 'a', PAGE);
	(void)snprintf(by, sizeof(by), "%s.kept", path);
	check(rename(path, by) == 0, "rename");
	check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
	put(at + PAGE, 'b', PAGE);
	if (all)
		put(map_fd(fd, SIZE, SIZE, PROT_READ | PROT_WRITE) + PAGE, 'c', PAGE);
	check(rename(by, path) == 0, "rename");
}

static void
unknown(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE), by[4096];

	put(at, 'a', PAGE);
	(void)snprintf(by, sizeof(by), "%s.kept", path);
	check(rename(path, by) == 0, "rename");
	check(pwrite(fd, "u", 1, 2 * SIZE - 1) == 1, "pwrite");
	put(at + SIZE, 'b', PAGE);
	check(rename(by, path) == 0, "rename");
	put(at, 'c', PAGE);
}

/* So by less than a page, of which no mapping tells. */
static void
unknown_odd(const char *path)
{
	int fd = file_new(path, SIZE + 100);
	char *at = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE), by[4096];

	put(at, 'a', PAGE);
	(void)snprintf(by, sizeof(by), "%s.kept", path);
	check(rename(path, by) == 0, "rename");
	check(pwrite(fd, "u", 1, SIZE + 3000) == 1, "pwrite");
	put(at + SIZE + 200, 'b', 100);
	check(rename(by, path) == 0, "rename");
	put(at, 'c', PAGE);
}

static void
denied(const char *path)
{
	int fd = file_new(path, SIZE);
	char dir[4096];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	check(chmod(dir, 0) == 0, dir);
	/* root may look up anything. */
	check(geteuid() != 0 || setuid(65534) == 0, "setuid");
	for (int i = 0; i < 2; i++)
		put(map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), 'd', PAGE);
}

const struct odd_mode odd_name[] = {
	{"recreate", recreate},
	{"renamed", renamed},
	{"linked", linked},
	{"directory", directory},
	{"aliased", aliased},
	{"reborn", reborn},
	{"unnamed", unnamed},
	{"replaced", replaced},
	{"reopened", reopened},
	{"hidden", hidden},
	{"denied", denied},
	{"crowded", crowded},
	{"crowds", crowds}, /* with METRICS */
	{"adrift", adrift},
	{"drifts", adrift},
	{"unknown", unknown},
	{"unknown_odd", unknown_odd},
	{"realiased", recreate},
	{"anew", anew},
	{NULL, NULL},
};
