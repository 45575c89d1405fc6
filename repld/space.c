/* SPDX-License-Identifier: BSD-3-Clause */
#include "space.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "freespace.h"

#define ZEROS_SIZE (1U << 20)

/*
 * Where space is memory the kernel makes each page zero, and gives the core away before all of it
 * is done when it likes: so pieces, of some 200 us.
 */
#define PIECE_MEMORY SPACE_SHARE

/*
 * So many may take memory at the same time, each its share, before it is used up; and where there
 * is much it is seldom asked for.
 */
#define SHARES 64

static int
no_space(uint64_t size, uint64_t have, struct err *e)
{
	return err_set(
		e, REPL_E_NOSPC,
		"%llu bytes are wanted and %llu are free: choose a smaller size or make room",
		(unsigned long long)size, (unsigned long long)have);
}

/* Exceeding it would raise SIGXFSZ. */
static int
check_limit(uint64_t size, struct err *e)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    size <= limit.rlim_cur)
		return 0;
	return err_set(e, REPL_E_LIMIT,
		       "the limit on the size of files is %llu bytes, the pool needs %llu: raise "
		       "'fsize' in limits.conf",
		       (unsigned long long)limit.rlim_cur, (unsigned long long)size);
}

/* Up to size, of a file that has the space of has bytes. */
static int
write_failed(int fd, uint64_t has, uint64_t size, int errnum, struct err *e)
{
	uint64_t lacks = size - has;

	if (errnum == ENOSPC)
		return no_space(lacks, freespace_bytes(fd, lacks), e);
	if (errnum == EDQUOT)
		return err_set(e, REPL_E_NOSPC,
			       "%llu bytes are wanted, more than the disk quota of the user that "
			       "repld runs as (uid %u) leaves: raise it, or choose a smaller size",
			       (unsigned long long)lacks, (unsigned)geteuid());
	if (errnum == EFBIG)
		return err_set(e, REPL_E_LIMIT,
			       "the file system takes no file of %llu bytes: choose a smaller "
			       "size, or another file system for the pools",
			       (unsigned long long)size);
	return err_errno(e, err_from_errno(errnum), errnum, "allocate %llu bytes",
			 (unsigned long long)lacks);
}

static int
write_zeros(int fd, uint64_t from, uint64_t size, struct err *e)
{
	uint8_t *zeros = calloc(1, ZEROS_SIZE);
	uint64_t done = from;
	int rc = 0;

	if (!zeros)
		return err_set(e, REPL_E_NOMEM, "no memory for %u bytes", ZEROS_SIZE);
	while (done < size && !rc) {
		size_t len = size - done < ZEROS_SIZE ? (size_t)(size - done) : ZEROS_SIZE;
		ssize_t n = pwrite(fd, zeros, len, (off_t)done);

		if (n > 0)
			done += (uint64_t)n;
		else if (n == 0 || errno != EINTR)
			rc = write_failed(fd, from, size, n == 0 ? ENOSPC : errno, e);
	}
	free(zeros);
	return rc;
}

int
space_allocate(int fd, uint64_t size, struct err *e)
{
	return space_extend(fd, 0, size, e);
}

/*
 * Blocks are more than those of what it holds where the file system counts its own, or where some
 * lie behind the end; so they only tell about how much is missing.
 */
static uint64_t
lacking(int fd, uint64_t size)
{
	struct stat st;
	uint64_t has = fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;

	return has < size ? size - has : 0;
}

/* Of which it lacks so much. 0, an errno, or a status that is in *e. */
static int
allocate(int fd, uint64_t from, uint64_t size, uint64_t lacks, struct err *e)
{
	bool memory = freespace_is_memory(fd);
	uint64_t piece = memory ? PIECE_MEMORY : size, share = 0;

	while (from < size) {
		uint64_t len = size - from < piece ? size - from : piece;

		if (share < len) {
			uint64_t rest = lacking(fd, size);
			int rc;

			rest = rest < size - from ? rest : size - from;
			rc = space_share(fd, rest, lacks, &share, e);
			if (rc)
				return rc;
		}
		if (fallocate(fd, 0, (off_t)from, (off_t)len) == 0) {
			from += len;
			share -= len;
		} else if (errno != EINTR) {
			return errno;
		}
		if (memory)
			(void)sched_yield();
	}
	return 0;
}

int
space_extend(int fd, uint64_t from, uint64_t size, struct err *e)
{
	int rc = check_limit(size, e);

	if (rc)
		return rc;
	/* Asked first: an attempt would take the space of others until it fails. */
	rc = space_is_free(fd, size - from, size - from, e);
	if (rc)
		return rc;
	rc = allocate(fd, from, size, size - from, e);
	if (rc == EOPNOTSUPP || rc == ENOSYS)
		return write_zeros(fd, from, size, e);
	return rc > 0 ? write_failed(fd, from, size, rc, e) : rc;
}

/* In memory blocks are pages, and to ask for those again takes seconds a GiB. */
int
space_complete(int fd, uint64_t size, struct err *e)
{
	uint64_t lacks = lacking(fd, size);
	int rc;

	if (lacks == 0 && freespace_is_memory(fd))
		return 0;
	rc = space_is_free(fd, lacks, lacks, e);
	if (rc)
		return rc;
	rc = allocate(fd, 0, size, lacks, e);
	/* What can't be asked for is not known better. */
	if (lacks == 0 && (rc == EOPNOTSUPP || rc == ENOSYS))
		return 0;
	return rc > 0 ? write_failed(fd, size - lacks, size, rc, e) : rc;
}

int
space_is_free(int fd, uint64_t bytes, uint64_t all, struct err *e)
{
	uint64_t have = freespace_bytes(fd, all);

	return bytes > have ? no_space(bytes, have, e) : 0;
}

int
space_share(int fd, uint64_t bytes, uint64_t all, uint64_t *share, struct err *e)
{
	uint64_t have;

	*share = UINT64_MAX;
	if (!freespace_is_memory(fd))
		return 0;
	have = freespace_bytes(fd, all);
	*share = have / SHARES > SPACE_SHARE ? have / SHARES : SPACE_SHARE;
	return bytes > have ? no_space(bytes, have, e) : 0;
}

int
space_fill(int fd, uint64_t from, uint64_t size, struct err *e)
{
	int rc = space_extend(fd, from, size, e);

	return rc ? rc : write_zeros(fd, from, size, e);
}

int
space_extend_sparse(int fd, uint64_t size, struct err *e)
{
	int rc = check_limit(size, e);

	if (!rc && ftruncate(fd, (off_t)size) != 0)
		rc = write_failed(fd, 0, size, errno, e);
	return rc;
}

bool
space_punch(int fd, uint64_t from, uint64_t to)
{
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int rc;

	do
		rc = fallocate(fd, mode, (off_t)from, (off_t)(to - from));
	while (rc && errno == EINTR);
	return rc == 0;
}

int
space_cut(int fd, uint64_t from, uint64_t to, struct err *e)
{
	struct stat st;

	if (to <= from)
		return 0;
	if (fstat(fd, &st))
		return err_errno(e, err_from_errno(errno), errno, "cut");
	if ((uint64_t)st.st_size > to && space_punch(fd, from, to))
		return 0;
	return ftruncate(fd, (off_t)from) ? err_errno(e, err_from_errno(errno), errno, "cut") : 0;
}
