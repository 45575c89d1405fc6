/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs do to the size of a pool's file, and to its space on disk:
 *
 *   grow      the file gets longer, and is mapped at its end
 *   outgrow   the same, by more at once than there is room for beside our own mapping
 *   beyond    msync(2) of a mapping that is longer than the file
 *   longer    the file gets longer, and what is there is neither mapped nor made durable
 *   regrown   the file gets shorter and as long again while it stays mapped
 *   resized   the same, by calls that fail when they have done it
 *   scarce    its disk is full before posix_fallocate(3) has made it as long as it was
 *   punched   bytes of the file become zero by fallocate(2) and madvise(2)
 *   shrink    the file gets shorter than its mapping, which is synced
 *   cutaway   it does so while it has another name
 *   sized     made durable while the file is empty, and while its size is odd
 *   behind    it gets longer by an odd length, and what is there is made durable, often
 *   cut       the file gets shorter than what was flushed, and then drained
 *   cutby     another program does that
 *   cutlast   likewise, and it ends without a drain
 *   emptied   open(2) and creat(2) take all of it away between flush and drain, and it gets as long
 * again recut     it gets longer twice by the same odd length: another thread, cut_once.so, has cut
 * it full      its disk, of less than the file would take, is full when all of the file is synced
 *   nameless  the same, and it has lost its name before
 *   unfull    the same, and half of the file becomes a hole
 *   sparse    its disk, of less than the file would take, has space: no hole takes any of that
 *   shorter   it gets so behind what is durable while FILE.away is there, until FILE.enough is
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define HOLES (16 * SIZE)

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
cut(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', PAGE);
	memset(at + SIZE / 2, 'b', 100);
	pmem_flush(at + SIZE / 2, 100);
	check(truncate(path, SIZE / 4) == 0, "truncate");
	pmem_drain();
	put(at + PAGE, 'c', PAGE);
}

/* Flushed, and cut off by a program that is no part of this one. */
static char *
flushed_and_gone(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pid_t child;
	int status;

	put(at, 'a', PAGE);
	memset(at + SIZE / 2, 'b', 100);
	pmem_flush(at + SIZE / 2, 100);
	child = fork();
	if (child == 0) {
		(void)execlp("truncate", "truncate", "-s", "256K", path, (char *)NULL);
		_exit(1);
	}
	check(waitpid(child, &status, 0) == child && status == 0, "truncate");
	return at;
}

static void
cutby(const char *path)
{
	char *at = flushed_and_gone(path);

	pmem_drain();
	put(at + PAGE, 'c', PAGE);
}

static void
cutlast(const char *path)
{
	(void)flushed_and_gone(path);
}

static void
emptied(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	for (int way = 0; way < 3; way++) {
		put(at, 'a', SIZE);
		memset(at + SIZE / 2, 'b', 100);
		pmem_flush(at + SIZE / 2, 100);
		if (way == 0)
			check(open(path, O_RDWR | O_TRUNC) >= 0, "open");
		else if (way == 1)
			check(openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC, 0600) >= 0,
			      "openat");
		else
			check(creat(path, 0600) >= 0, "creat");
		pmem_drain();
		check(ftruncate(fd, SIZE) == 0, "ftruncate");
		put(at + PAGE, 'c', PAGE);
	}
}

static void
recut(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', PAGE);
	check(ftruncate(fd, SIZE + 100) == 0, "ftruncate");
	put(at, 'b', 100);
	check(ftruncate(fd, SIZE + 100) == 0, "ftruncate");
	put(at + SIZE, 'c', 100);
}

static void
shorter(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK};
	int fd = open(path, O_RDWR);
	struct stat st;
	size_t half;
	char *at;

	check(fd >= 0 && fstat(fd, &st) == 0, path);
	check(!strstr(path, "locked") || fcntl(fd, F_SETLK, &lock) == 0, "fcntl");
	half = (size_t)st.st_size / 2;
	at = map_fd(fd, 0, 2 * half, PROT_READ | PROT_WRITE);
	put(at, 'a', half);
	say("begun");
	wait_for_file(path, "away");
	put(at + PAGE, 'b', 2 * half - 2 * PAGE);
	check(ftruncate(fd, (off_t)half) == 0, "ftruncate");
	say("shorter");
	wait_for_file(path, "enough");
	put(at + 2 * PAGE, 'c', PAGE);
}

static blkcnt_t
blocks_of(int fd)
{
	struct stat st;

	check(fstat(fd, &st) == 0, "fstat");
	return st.st_blocks;
}

/* kin: by a child that has opened nothing. */
static void
sync_all(const char *path, char *at)
{
	pid_t child = strstr(path, "kin") ? fork() : -1;
	int status;

	if (child > 0) {
		check(waitpid(child, &status, 0) == child && status == 0, "its child");
		return;
	}
	check(msync(at, HOLES, MS_SYNC) == 0, "msync");
	if (child == 0)
		_exit(0);
}

/* What the replicas have is overwritten, and what is a hole there. */
static char *
store(int fd)
{
	char *at = map_fd(fd, 0, HOLES, PROT_READ | PROT_WRITE);

	put(at + 3 * SIZE, 'a', PAGE);
	memset(at + 3 * SIZE, 'b', PAGE);
	memset(at + HOLES / 2 + SIZE, 'c', PAGE);
	return at;
}

static void
sparse(const char *path)
{
	int fd = file_new(path, HOLES);
	char *at = store(fd);
	blkcnt_t blocks = blocks_of(fd);

	sync_all(path, at);
	check(blocks_of(fd) == blocks, "its holes have space");
	memset(at, 'd', SIZE);
	sync_all(path, at);
}

static char *
fill(const char *path, int fd)
{
	char *at = store(fd), filler[4096];
	int other;

	(void)snprintf(filler, sizeof(filler), "%s.filler", path);
	other = file_new(filler, 0);
	while (write(other, filler, sizeof(filler)) > 0)
		;
	check(!strstr(path, "nameless") || unlink(path) == 0, path);
	sync_all(path, at);
	return at;
}

static void
full(const char *path)
{
	(void)fill(path, file_new(path, HOLES));
}

static void
unfull(const char *path)
{
	int fd = file_new(path, HOLES);
	char *at = fill(path, fd);

	check(ftruncate(fd, HOLES / 2) == 0 && ftruncate(fd, HOLES) == 0, "ftruncate");
	check(msync(at, HOLES, MS_SYNC) == 0, "msync");
}

const struct odd_mode odd_size[] = {
	{"grow", grow},     {"outgrow", outgrow}, {"beyond", beyond},   {"shrink", shrink},
	{"sized", sized},   {"behind", behind},   {"regrown", regrown}, {"punched", punched},
	{"scarce", scarce}, {"cutaway", cutaway}, {"longer", longer},   {"resized", resized},
	{"cut", cut},       {"recut", recut},     {"shorter", shorter}, {"full", full},
	{"nameless", full}, {"unfull", unfull},   {"sparse", sparse},   {"emptied", emptied},
	{"cutby", cutby},   {"cutlast", cutlast}, {NULL, NULL},
};
