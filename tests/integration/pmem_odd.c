/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_odd MODE FILE - what programs do to their mappings beside using them; each mode leaves bytes
 * in FILE that were made durable. Of those here (pmem_odd_process.c and pmem_odd_kin.c have more):
 *
 *   grow      the file gets longer, and is mapped at its end
 *   outgrow   the same, by more at once than there is room for beside our own mapping
 *   recreate  the file is deleted and made anew while it stays mapped
 *   part      a mapping of an odd length is taken back, its address is used for another file
 *   protect   mapped for reading, then made writable
 *   fixed     the pool is mapped over a mapping of another file, and moved
 *   nodrain   flushed but not drained before the mapping is taken back
 *   moves     threads move memory that is no pool's while others map the pool where that was
 *   over      threads write to a mapping that is mapped over itself meanwhile
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
 *   denied    its path can't be looked up any more when it is mapped first
 *   stays     mapped anew by mremap(2) beside the old mapping, which is used on
 *   paged     the first pages of the mapping become the last ones, by remap_file_pages(2)
 *   early     a library of the program's has mapped it in its constructor
 *   loaded    the same of a library that it loads, $LOADED; it writes on until FILE.enough is there
 *   locked    the file is locked by fcntl(2), and remains so
 *   page      msync(2) of less than what was stored in its pages, all of which it syncs
 *   beyond    msync(2) of a mapping that is longer than the file
 *   fsync     fsync(2) and its kind of the file, beside msync(2)
 *   longer    the file gets longer, and what is there is neither mapped nor made durable
 *   regrown   the file gets shorter and as long again while it stays mapped
 *   resized   the same, by calls that fail when they have done it
 *   scarce    its disk is full before posix_fallocate(3) has made it as long as it was
 *   punched   bytes of the file become zero by fallocate(2) and madvise(2)
 *   shrink    the file gets shorter than its mapping, which is synced
 *   cutaway   it does so while it has another name
 *   steps     mapped in many steps, each beside another, and made longer in as many by mremap(2)
 *   large     all of a large file is synced at once
 *   sized     made durable while the file is empty, and while its size is odd
 *   behind    it gets longer by an odd length, and what is there is made durable, often
 *   looks     mapped for reading by a descriptor for both
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define MOVERS 3
#define MOVES  100UL
#define FILLS  (SIZE / 2)
#define STEPS  400UL
#define LARGE  (24 * SIZE)

char *
map_fd(int fd, size_t off, size_t len, int prot)
{
	char *at = mmap(NULL, len, prot, MAP_SHARED, fd, (off_t)off);

	check(at != MAP_FAILED, "mmap");
	return at;
}

int
file_new(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	check(fd >= 0 && ftruncate(fd, (off_t)size) == 0, path);
	return fd;
}

void
put(char *at, int c, size_t len)
{
	memset(at, c, len);
	(void)pmem_msync(at, len);
}

static void
grow(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *more;

	put(at, 'a', 100);
	for (size_t size = SIZE; size < 8 * SIZE; size += SIZE) {
		check(ftruncate(fd, (off_t)(size + SIZE)) == 0, "ftruncate");
		check(pwrite(fd, "by a call", 9, (off_t)(size + 3 * PAGE)) == 9, "pwrite");
		more = map_fd(fd, size, SIZE, PROT_READ | PROT_WRITE);
		put(more + SIZE - 300, 'b', 300);
		put(at + size / SIZE * PAGE, 'c', 100);
	}
}

static void
outgrow(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *more;

	put(at, 'a', 100);
	check(ftruncate(fd, 256 * SIZE) == 0, "ftruncate");
	more = map_fd(fd, 200 * SIZE, SIZE, PROT_READ | PROT_WRITE);
	put(more + PAGE, 'b', 300);
	put(at + PAGE, 'c', 100);
}

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
part(const char *path)
{
	char other[4096], *at, *again;
	int fd = file_new(path, SIZE), fd2;

	(void)snprintf(other, sizeof(other), "%s.other", path);
	fd2 = file_new(other, SIZE);
	at = map_fd(fd, 0, 5 * PAGE, PROT_READ | PROT_WRITE);
	put(at, 'p', PAGE);
	/* In vain: its address is odd. */
	check(munmap(at + 1, PAGE) != 0, "munmap");
	put(at + PAGE, 'q', PAGE);
	/* So it is with an end behind all addresses. */
	check(munmap(at, 1UL << 47) != 0, "munmap");
	put(at + 2 * PAGE, 'r', PAGE);
	/* All five pages. */
	check(munmap(at, 4 * PAGE + 1) == 0, "munmap");
	again = mmap(at, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd2,
		     0);
	/* Another thread of the process may have taken the place meanwhile. */
	if (again == MAP_FAILED && errno == EEXIST)
		again = map_fd(fd2, 0, 5 * PAGE, PROT_READ | PROT_WRITE);
	check(again != MAP_FAILED, "mmap");
	put(again + 4 * PAGE, 'x', PAGE);
}

static void
protect(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ);

	check(mprotect(at, SIZE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	put(at + PAGE, 'w', PAGE);
}

static void
fixed(const char *path)
{
	char other[4096], *at, *moved;
	int fd = file_new(path, SIZE);

	(void)snprintf(other, sizeof(other), "%s.other", path);
	at = map_fd(file_new(other, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	check(mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at, "mmap");
	put(at + PAGE, 'f', PAGE);
	moved = map_fd(fd, SIZE / 2, SIZE / 2, PROT_READ | PROT_WRITE);
	/* Where a mapping of the pool's second half was is its first half now. */
	moved = mremap(at, SIZE / 2, SIZE / 2, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	check(moved != MAP_FAILED, "mremap");
	put(moved + 3 * PAGE, 'm', PAGE);
	put(at + SIZE / 2, 'h', PAGE);
}

static void
nodrain(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'n', 10);
	for (size_t i = 1; i < 100; i++)
		(void)pmem_memset_nodrain(at + i * PAGE, (int)i, 1000);
	check(munmap(at, SIZE) == 0, "munmap");
}

static atomic_bool stop;

static void *
move_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		char *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		check(at != MAP_FAILED, "mmap");
		at = mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
		check(at != MAP_FAILED, "mremap");
		(void)munmap(at, 2 * PAGE);
	}
	return NULL;
}

static void
moves(const char *path)
{
	int fd = file_new(path, MOVES * PAGE);
	pthread_t mover[MOVERS];

	/* So that the pool stays open. */
	(void)map_fd(fd, 0, PAGE, PROT_READ | PROT_WRITE);
	for (int i = 0; i < MOVERS; i++)
		check(!pthread_create(&mover[i], NULL, move_on, NULL), "thread");
	for (size_t i = 0; i < MOVES; i++) {
		char *at = map_fd(fd, i * PAGE, PAGE, PROT_READ | PROT_WRITE);

		put(at, 'm', 64);
		(void)munmap(at, PAGE);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < MOVERS; i++)
		(void)pthread_join(mover[i], NULL);
}

static atomic_uint filled;

/* Each part of it once. */
static void *
fill(void *arg)
{
	char *at = arg;

	for (size_t off = 0; off < FILLS; off += 512)
		put(at + off, 'f', 64);
	atomic_fetch_add(&filled, 1);
	return NULL;
}

static void
over(const char *path)
{
	int fd = file_new(path, 2 * FILLS);
	char *at = map_fd(fd, 0, 2 * FILLS, PROT_READ | PROT_WRITE);
	pthread_t filler[2];

	/* So that the pool stays open. */
	(void)map_fd(fd, 0, PAGE, PROT_READ | PROT_WRITE);
	put(at, 'o', 64);
	for (unsigned i = 0; i < 2; i++)
		check(!pthread_create(&filler[i], NULL, fill, at + i * FILLS), "thread");
	while (atomic_load(&filled) < 2) {
		check(mmap(at, 2 * FILLS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
			      at,
		      "mmap");
		(void)usleep(1000);
	}
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(filler[i], NULL);
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
paged(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', SIZE);
	check(remap_file_pages(at, 5 * PAGE, 0, SIZE / PAGE - 5, 0) == 0, "remap_file_pages");
	put(at + 4 * PAGE - 100, 'b', 200);
	put(at + 5 * PAGE, 'c', 100);
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

static void
stays(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *more;

	put(at, 'a', PAGE);
	more = mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	/* Not before Linux 5.13. */
	if (more == MAP_FAILED)
		more = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(more + PAGE, 'b', PAGE);
	put(at + 2 * PAGE, 'c', PAGE);
	more = mremap(at, 0, SIZE, MREMAP_MAYMOVE);
	check(more != MAP_FAILED, "mremap");
	put(more + 3 * PAGE, 'd', PAGE);
	put(at + 4 * PAGE, 'e', PAGE);
}

void early_write(void);

static void
early(const char *path)
{
	(void)path;
	early_write();
}

static void
loaded(const char *path)
{
	char enough[4096];
	void (*write)(void);
	void *library;

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	check(setenv("EARLY_POOL", path, 1) == 0, "setenv");
	library = dlopen(getenv("LOADED"), RTLD_NOW);
	check(library != NULL, "dlopen");
	write = (void (*)(void))(uintptr_t)dlsym(library, "early_write");
	check(write != NULL, "early_write");
	while (access(enough, F_OK)) {
		write();
		(void)usleep(10000);
	}
}

static void
check_locked(int fd, const char *when)
{
	struct flock lock = {.l_type = F_WRLCK};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK);
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, when);
}

static void
locked(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK};
	int fd = file_new(path, SIZE);
	char *at, *more;

	check(fcntl(fd, F_SETLK, &lock) == 0, "fcntl");
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	check_locked(fd, "mapped");
	put(at, 'a', PAGE);
	check_locked(fd, "opened");
	check(ftruncate(fd, (off_t)(2 * SIZE)) == 0, "ftruncate");
	check(pwrite(fd, "by a call", 9, (off_t)(SIZE + 3 * PAGE)) == 9, "pwrite");
	more = map_fd(fd, SIZE, SIZE, PROT_READ | PROT_WRITE);
	put(more, 'b', PAGE);
	check_locked(fd, "grown");
}

static void
page(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', 2 * PAGE);
	check(msync(at + PAGE, PAGE + 1, MS_SYNC) == 0, "msync");
	memset(at + 5 * PAGE, 'b', PAGE);
	check(msync(at + 5 * PAGE, 1, MS_SYNC) == 0, "msync");
}

static void
by_fsync(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', PAGE);
	check(fsync(fd) == 0, "fsync");
	check(fdatasync(fd) == 0, "fdatasync");
	check(sync_file_range(fd, 0, SIZE, SYNC_FILE_RANGE_WRITE) == 0, "sync_file_range");
	check(syncfs(fd) == 0, "syncfs");
	check(msync(at + PAGE, PAGE, MS_SYNC) == 0, "msync");
}

static void
beyond(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, 4 * SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', PAGE);
	check(msync(at, 4 * SIZE, MS_SYNC) == 0, "msync");
	check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
	memset(at + SIZE, 'b', PAGE);
	check(msync(at, 4 * SIZE, MS_SYNC) == 0, "msync");
	memset(at + PAGE, 'c', PAGE);
	check(pmem_msync(at, 4 * SIZE) == 0, "pmem_msync");
}

static void
shrink(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', SIZE);
	check(ftruncate(fd, SIZE / 2) == 0, "ftruncate");
	memset(at + PAGE, 'b', PAGE);
	check(msync(at, SIZE, MS_SYNC) == 0, "msync");
}

static void
map_step(char *at, int fd, size_t i)
{
	check(mmap(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		   (off_t)(i * PAGE)) == at + i * PAGE,
	      "mmap");
}

static void
steps(const char *path)
{
	int fd = file_new(path, STEPS * PAGE);
	char *at = mmap(NULL, STEPS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *more;

	check(at != MAP_FAILED, "mmap");
	/* Behind the one before, in front of it, and between two. */
	for (size_t i = 0; i < STEPS / 2; i++)
		map_step(at, fd, i);
	for (size_t i = STEPS; i-- > STEPS / 2 + 100;)
		map_step(at, fd, i);
	for (size_t i = STEPS / 2; i < STEPS / 2 + 100; i += 2)
		map_step(at, fd, i);
	for (size_t i = STEPS / 2 + 1; i < STEPS / 2 + 100; i += 2)
		map_step(at, fd, i);
	/* Not on all file systems are they one for the kernel, which makes none longer else. */
	more = mmap(NULL, STEPS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(more != MAP_FAILED, "mmap");
	map_step(more, fd, 0);
	check(munmap(more + PAGE, (STEPS - 1) * PAGE) == 0, "munmap");
	for (size_t i = 1; i < STEPS; i++)
		check(mremap(more, i * PAGE, (i + 1) * PAGE, 0) == more, "mremap");
	for (size_t i = 0; i < STEPS; i += 7) {
		put(at + i * PAGE, 's', 64);
		put(more + i * PAGE + 100, 'm', 64);
	}
}

static void
large(const char *path)
{
	char *at = map_fd(file_new(path, LARGE), 0, LARGE, PROT_READ | PROT_WRITE);

	put(at, 'f', PAGE);
	put(at + PAGE, 'l', LARGE - PAGE);
}

static void
longer(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, '1', 8);
	check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
	put(at, '2', 8);
	check(posix_fallocate(fd, SIZE, 2 * SIZE) == 0, "posix_fallocate");
	put(at, '3', 8);
	check(fallocate(fd, 0, 3 * SIZE, SIZE) == 0, "fallocate");
	put(at, '4', 8);
}

static void
regrown(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', SIZE);
	check(ftruncate(fd, 0) == 0 && ftruncate(fd, SIZE) == 0, "ftruncate");
	put(at + PAGE, 'b', SIZE / 2);
	check(truncate(path, 3 * PAGE + 100) == 0 && truncate(path, SIZE) == 0, "truncate");
	put(at + 8 * PAGE, 'c', PAGE);
	put(at, 'd', SIZE);
	check(ftruncate(fd, SIZE / 2) == 0, "ftruncate");
	check(posix_fallocate(fd, SIZE / 2, SIZE / 2) == 0, "posix_fallocate");
	put(at + SIZE / 4 * 3, 'e', SIZE / 4);
	check(ftruncate(fd, SIZE / 4 * 3) == 0, "ftruncate");
	check(fallocate(fd, 0, SIZE / 4 * 3, SIZE / 4) == 0, "fallocate");
}

static void
resized(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	struct stat st;

	put(at, 'a', SIZE);
	check(ftruncate(fd, SIZE / 2) == 0, "ftruncate");
	check(ftruncate(fd, SIZE / 4 * 3) == -1 && errno == EIO, "ftruncate does not fail");
	check(fstat(fd, &st) == 0 && st.st_size == SIZE / 4 * 3, "its size");
	check(ftruncate(fd, SIZE) == 0, "ftruncate");
	put(at, 'b', SIZE);
	check(truncate(path, SIZE / 4) == 0, "truncate");
	check(truncate(path, SIZE / 4 * 3) == -1 && errno == EIO, "truncate does not fail");
	check(truncate(path, SIZE) == 0, "truncate");
}

static void
cutaway(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), away[4096];

	check(snprintf(away, sizeof(away), "%s.away", path) < (int)sizeof(away), "a name");
	put(at, 'a', SIZE);
	check(rename(path, away) == 0, "rename");
	check(ftruncate(fd, SIZE / 2) == 0, "ftruncate");
	memset(at, 'b', SIZE / 2);
	check(msync(at, SIZE, MS_SYNC) == 0, "msync");
	check(ftruncate(fd, SIZE) == 0, "ftruncate");
	put(at + SIZE / 2 + PAGE, 'c', PAGE);
	check(rename(away, path) == 0, "rename");
}

static void
scarce(const char *path)
{
	int fd = file_new(path, SIZE), other;
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), filler[4096];
	struct stat st;

	put(at, 'a', SIZE);
	check(ftruncate(fd, SIZE / 2) == 0, "ftruncate");
	check(snprintf(filler, sizeof(filler), "%s.filler", path) < (int)sizeof(filler), "a name");
	other = file_new(filler, SIZE / 4);
	check(posix_fallocate(other, 0, SIZE / 4) == 0, "posix_fallocate");
	(void)lseek(other, SIZE / 4, SEEK_SET);
	while (write(other, filler, sizeof(filler)) > 0)
		;
	check(fsync(other) == 0 && fallocate(other, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					     SIZE / 4) == 0,
	      "its disk's space");
	check(fsync(other) == 0 && posix_fallocate(fd, SIZE / 2, SIZE / 2) == ENOSPC, "ENOSPC");
	check(fstat(fd, &st) == 0 && st.st_size > (off_t)SIZE / 2, "no part of it");
	check(ftruncate(other, 0) == 0 && fsync(other) == 0, "ftruncate");
	check(ftruncate(fd, SIZE) == 0, "ftruncate");
}

static void
punched(const char *path)
{
	int fd = file_new(path, SIZE), hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < SIZE / PAGE; i++)
		put(at + i * PAGE, 'a' + (int)(i % 26), PAGE);
	check(fallocate(fd, hole, PAGE + 100, 3 * PAGE) == 0, "fallocate");
	check(madvise(at + 16 * PAGE, 2 * PAGE, MADV_REMOVE) == 0, "madvise");
	/* Those that fail have done so in a part. (Sanitizers make mlock(2) do nothing.) */
	check(munmap(at + 21 * PAGE, PAGE) == 0 && syscall(SYS_mlock, at + 26 * PAGE, PAGE) == 0,
	      "munmap");
	check(madvise(at + 20 * PAGE, 3 * PAGE, MADV_REMOVE) == -1 && errno == ENOMEM, "a gap");
	check(madvise(at + 24 * PAGE, 3 * PAGE, MADV_REMOVE) == -1 && errno == EINVAL, "a lock");
	/* Not on all file systems. */
	if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 32 * PAGE, PAGE) == 0)
		check(ftruncate(fd, SIZE) == 0, "ftruncate");
	(void)fallocate(fd, FALLOC_FL_ZERO_RANGE, 64 * PAGE, PAGE);
	put(at, 'i', PAGE);
	(void)fallocate(fd, FALLOC_FL_INSERT_RANGE, 80 * PAGE, 2 * PAGE);
}

static void
sized(const char *path)
{
	int fd = file_new(path, 0);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	check(msync(at, PAGE, MS_SYNC) == 0, "msync");
	check(ftruncate(fd, 5000) == 0, "ftruncate");
	put(at, 'a', 5000);
	/* The rest of the page is of no file, until it grows. */
	put(at, 'b', 2 * PAGE);
	check(msync(at, 2 * PAGE, MS_SYNC) == 0, "msync");
	check(ftruncate(fd, 5001) == 0, "ftruncate");
	check(ftruncate(fd, SIZE) == 0, "ftruncate");
	put(at + 3 * PAGE, 'c', PAGE);
}

static void
behind(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', PAGE);
	check(ftruncate(fd, SIZE + 100) == 0, "ftruncate");
	for (int i = 0; i < 200; i++)
		put(at + SIZE, 'b', 100);
	check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
	put(at + SIZE + PAGE, 'c', PAGE);
}

static void
looks(const char *path)
{
	check(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ)[0] == '\0', "a byte");
}

static const struct odd_mode odd_file[] = {
	{"grow", grow},
	{"outgrow", outgrow},
	{"recreate", recreate},
	{"part", part},
	{"protect", protect},
	{"fixed", fixed},
	{"nodrain", nodrain},
	{"page", page},
	{"moves", moves},
	{"beyond", beyond},
	{"shrink", shrink},
	{"renamed", renamed},
	{"fsync", by_fsync},
	{"linked", linked},
	{"directory", directory},
	{"aliased", aliased},
	{"reborn", reborn},
	{"stays", stays},
	{"early", early},
	{"loaded", loaded},
	{"locked", locked},
	{"steps", steps},
	{"sized", sized},
	{"behind", behind},
	{"looks", looks},
	{"large", large},
	{"regrown", regrown},
	{"punched", punched},
	{"scarce", scarce},
	{"cutaway", cutaway},
	{"unnamed", unnamed},
	{"longer", longer},
	{"paged", paged},
	{"replaced", replaced},
	{"reopened", reopened},
	{"over", over},
	{"hidden", hidden},
	{"denied", denied},
	{"resized", resized},
	{"crowded", crowded},
	{"crowds", crowds}, /* with METRICS */
	{"adrift", adrift},
	{"drifts", adrift},
	{"unknown", unknown},
	{"unknown_odd", unknown_odd},
	{NULL, NULL},
};

static const struct odd_mode *
mode_find(const struct odd_mode *m, const char *name)
{
	while (m->name && strcmp(m->name, name) != 0)
		m++;
	return m->name ? m : NULL;
}

int
main(int argc, char **argv)
{
	const struct odd_mode *m = NULL;

	if (argc == 3)
		m = mode_find(odd_file, argv[1]);
	if (argc == 3 && !m)
		m = mode_find(odd_process, argv[1]);
	if (argc == 3 && !m)
		m = mode_find(odd_kin, argv[1]);
	if (!m)
		return 2;
	m->run(argv[2]);
	return 0;
}
