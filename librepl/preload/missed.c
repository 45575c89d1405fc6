/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that maps none of the pools but makes bytes of another file durable: its user has named
 * the wrong one, and it is not replicated. It is told when the program ends, or, since some never
 * do, a while after: it may map the pool later, or give the file its name. The kernel knows
 * what is mapped where, and is asked a few times at most. Nothing is allocated: a signal handler
 * may flush.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "filelock.h"
#include "pools.h"
#include "pools_impl.h"
#include "proc.h"
#include "procself.h"
#include "real.h"
#include "sidecar.h"
#include "target.h"
#include "text.h"

#define LOOKS_MAX 64U /* programs flush memory that is no file's, too */

enum missed_state {
	MISSED_NOTHING,
	MISSED_LOOKING, /* a thread does, and writes what follows */
	MISSED_FILE,
	MISSED_DONE, /* a pool was mapped, or it is told */
};

static _Atomic int state;
static _Atomic unsigned looks;
static uint64_t since_ns;
static char file[PATH_MAX];

/*
 * By pool->file, or 0: of which file some was made durable, and which one has taken the place of
 * such a one, till it is opened. Children have the same.
 */
struct files {
	_Atomic uint64_t flushed, renewed;
};

static struct files alone[POOLS_MAX];
static struct files *files = alone;
static struct timespec begun;

void
missed_none(void)
{
	atomic_store(&state, MISSED_DONE);
}

void
missed_end(void)
{
	int was = MISSED_FILE;

	/* In a child that nobody told of. */
	(void)pools_any();
	if (atomic_compare_exchange_strong(&state, &was, MISSED_DONE))
		report("NOTHING REPLICATED: %s is made durable, which no --pool names; %s%s not "
		       "mapped",
		       file, pools[0].path, pool_count > 1 ? " and the others are" : " is");
}

static bool
is_since(const struct timespec *t, const struct timespec *since)
{
	return t->tv_sec > since->tv_sec ||
	       (t->tv_sec == since->tv_sec && t->tv_nsec >= since->tv_nsec);
}

/* Not only zeros, of whoever has given it its space; where it can't be read, it has that. */
static bool
has_bytes(const struct pool *p, const struct stat *st)
{
	int fd = open(p->path, O_PATH | O_CLOEXEC), data = -1;
	bool has = st->st_blocks > 0;

	if (fd >= 0 && has && !filelock_seen(fd))
		data = view_again(fd);
	if (data >= 0)
		has = pool_any_written(data, (size_t)st->st_size);
	filelock_close(data);
	if (fd >= 0)
		(void)close(fd);
	return has;
}

/*
 * By a program that has it open, or had since this one began: what that made durable the replicas
 * have, and to this one it may have been but something to hold, as for a lock.
 */
static bool
is_replicated(const struct pool *p)
{
	char name[PATH_MAX], record[PATH_MAX + sizeof(SIDECAR_SUFFIX)];
	struct stat st;
	bool is;
	int fd;

	if (!realpath(p->path, name))
		return false;
	(void)snprintf(record, sizeof(record), "%s" SIDECAR_SUFFIX, name);
	fd = open(record, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	is = fstat(fd, &st) == 0 && is_since(&st.st_mtim, &begun);
	is = is || (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK);
	(void)close(fd);
	return is;
}

/*
 * By a descriptor of its own. One that was only made has nothing in it; of one that is mapped for
 * reading nobody knows what it had before.
 */
static bool
is_written(const struct pool *p, const struct stat *st)
{
	if (st->st_dev != p->written_dev || st->st_ino != p->written_ino)
		return false;
	if (st->st_dev == p->dev && st->st_ino == p->ino)
		return !is_since(&p->mapped_mtim, &st->st_mtim);
	return has_bytes(p, st);
}

/*
 * By this program, since that began. On tmpfs a store to a page that was read before is not seen.
 */
static bool
is_changed(const struct pool *p)
{
	struct stat st;

	if (stat(p->path, &st) || !is_since(&st.st_mtim, &begun))
		return false;
	return (p->stored && st.st_dev == p->dev && st.st_ino == p->ino) ||
	       (is_written(p, &st) && !is_replicated(p));
}

/* A line has no room for longer ones. */
static void
tell_changed(const struct pool *p)
{
	char path[512], target[TARGET_TEXT_MAX + 64];

	if (!text_quote(p->path, path, sizeof(path)))
		(void)snprintf(path, sizeof(path), "FILE");
	if (!text_quote(p->targets[0], target, sizeof(target)))
		(void)snprintf(target, sizeof(target), "TARGET/POOL");
	report("%s: changed, and nothing of it made durable by msync(2), libpmem or libpmem2: NOT "
	       "REPLICATED; next: replctl sync %s %s",
	       p->path, path, target);
}

static void
at_exit(void)
{
	missed_end();
	for (unsigned i = 0; i < pool_count; i++) {
		const struct pool *p = &pools[i];

		if (!atomic_load(&files[i].flushed) && is_changed(p))
			tell_changed(p);
	}
}

void
missed_begin(void)
{
	void *page = real_mmap(NULL, sizeof(alone), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED)
		files = page;
	/* The clock of the files' times. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &begun);
	(void)atexit(at_exit);
}

void
missed_flushed(const struct pool *p)
{
	_Atomic uint64_t *any = &files[p - pools].flushed;
	uint64_t none = 0;

	if (!atomic_load_explicit(any, memory_order_relaxed))
		(void)atomic_compare_exchange_strong(any, &none, p->file);
}

bool
missed_forget(const struct pool *p)
{
	struct files *f = &files[p - pools];
	uint64_t flushed = atomic_load(&f->flushed), before = atomic_load(&f->renewed);

	if (!(flushed && flushed != p->file) && !(before && before != p->file))
		return false;
	/* First: others of the kin that have the file open it perhaps. */
	atomic_store(&f->renewed, p->file);
	(void)atomic_compare_exchange_strong(&f->flushed, &flushed, 0);
	return true;
}

bool
missed_renewed(const struct pool *p)
{
	return p->file && atomic_load(&files[p - pools].renewed) == p->file;
}

void
missed_opened(const struct pool *p)
{
	uint64_t is = p->file;

	(void)atomic_compare_exchange_strong(&files[p - pools].renewed, &is, 0);
}

/* Its own threads and their looks are the parent's. */
void
missed_forked(void)
{
	if (atomic_load(&state) == MISSED_DONE)
		return;
	atomic_store(&looks, 0);
	atomic_store(&state, MISSED_NOTHING);
}

/* A line of maps. */
static void
map_take(void *arg, const char *line)
{
	uintptr_t at = (uintptr_t)arg;
	unsigned long from, to, ino;
	struct stat st;
	char perms[5];
	int name = 0;

	if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu %n", &from, &to, perms, &ino, &name) < 4 ||
	    at < from || at >= to || name == 0 || perms[1] != 'w' || perms[3] != 's')
		return;
	/* Memory that is shared has a name that leads nowhere, and so has a file that is gone. */
	if (stat(line + name, &st) == 0 && st.st_ino == ino &&
	    (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
		(void)snprintf(file, sizeof(file), "%s", line + name);
}

static void
look(const void *addr)
{
	int saved_errno = errno, cancel, was = MISSED_NOTHING;

	if (!atomic_compare_exchange_strong(&state, &was, MISSED_LOOKING))
		return;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	file[0] = '\0';
	(void)proc_lines(PROCSELF "/maps", map_take, (void *)(uintptr_t)addr);
	since_ns = now_ns();
	was = MISSED_LOOKING;
	(void)atomic_compare_exchange_strong(&state, &was, file[0] ? MISSED_FILE : MISSED_NOTHING);
	(void)pthread_setcancelstate(cancel, NULL);
	errno = saved_errno;
}

void
pools_missed(const void *addr)
{
	int is = atomic_load_explicit(&state, memory_order_acquire);

	if (is == MISSED_FILE && now_ns() - since_ns >= LATE_NS)
		missed_end();
	else if (is == MISSED_NOTHING && atomic_fetch_add(&looks, 1) < LOOKS_MAX)
		look(addr);
	else if (is == MISSED_NOTHING)
		missed_none();
}
