/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that gets a pool's name while the program has it mapped already, as one that is made by
 * another name and renamed when it is whole: its mappings are the pool's from then on. The
 * kernel knows them. Nothing is allocated: rename(2) may be called in a signal handler.
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "maps.h"
#include "pools.h"
#include "pools_impl.h"
#include "proc.h"
#include "procself.h"

struct renamed {
	const struct stat *st; /* of the file that has the name now */
	const char *path;      /* resolved */
	int fd, mount;
	dev_t dev; /* of its mount */
	unsigned pool;
	bool renewed;
};

/* Whether the last component of path, which may end with slashes, is one of the other's. */
static bool
ends_within(const char *path, const char *other)
{
	size_t end = strlen(path), begin, len;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--)
		continue;
	len = end - begin;
	for (const char *c = other; c && len; c = strchr(c, '/')) {
		c += *c == '/';
		if (strncmp(c, path + begin, len) == 0 && (c[len] == '/' || c[len] == '\0'))
			return true;
	}
	return false;
}

/*
 * The library's own mapping of a pool with this file, made for the first of the program's, maybe a
 * line ago. Another one may be opened meanwhile, which takes its time.
 */
static bool
is_view(unsigned long from, ino_t ino)
{
	bool is = false;

	for (unsigned i = 0; i < pool_count && !is; i++) {
		unsigned forks = pools_forks();
		struct calm calm;

		if (pools[i].ino != ino)
			continue;
		calm = calm_begin();
		(void)pthread_rwlock_rdlock(&pools[i].lock);
		is = pools[i].view == (uint8_t *)from;
		(void)pool_unlock(&pools[i], forks);
		calm_end(calm);
	}
	return is;
}

/* They are told of once: a mapping that is followed has nothing to gain. */
static bool
is_followed(uintptr_t at, uintptr_t end, unsigned pool)
{
	struct maps_piece piece;

	while (at < end && maps_find(at, end, &piece) && piece.end - piece.len == at &&
	       piece.pool == pool)
		at = piece.end;
	return at >= end;
}

static void
fdinfo_take(void *arg, const char *line)
{
	struct renamed *n = arg;

	(void)sscanf(line, "mnt_id: %d", &n->mount);
}

static void
mountinfo_take(void *arg, const char *line)
{
	struct renamed *n = arg;
	unsigned major, minor;
	int id;

	if (sscanf(line, "%d %*d %u:%u", &id, &major, &minor) == 3 && id == n->mount)
		n->dev = makedev(major, minor);
}

/* Some file systems, as btrfs, give it another device than they give to stat(2). */
static void
device_find(struct renamed *n)
{
	char file[64];

	n->mount = -1;
	n->dev = n->st->st_dev;
	(void)snprintf(file, sizeof(file), PROCSELF "/fdinfo/%d", n->fd);
	if (proc_lines(file, fdinfo_take, n) == 0)
		(void)proc_lines(PROCSELF "/mountinfo", mountinfo_take, n);
}

/* A line of maps. */
static void
map_take(void *arg, const char *line)
{
	struct renamed *n = arg;
	unsigned long from, to, off, ino;
	unsigned major, minor;
	char perms[5];
	int at = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &from, &to, perms, &off, &major, &minor,
		   &ino, &at) < 7 ||
	    perms[3] != 's' || ino != n->st->st_ino || is_view(from, n->st->st_ino) ||
	    is_followed(from, to, n->pool))
		return;
	if (makedev(major, minor) == n->st->st_dev || makedev(major, minor) == n->dev ||
	    (at && strcmp(line + at, n->path) == 0))
		n->renewed |= mapping_add((void *)from, to - from, PROT_READ | PROT_WRITE,
					  MAP_SHARED, n->fd, (off_t)off);
}

static atomic_uint due; /* a bit each: what is mapped could not be looked at */

static bool
is_due(unsigned pool)
{
	return atomic_load(&due) & 1U << pool;
}

/* Why is errno. For want of a descriptor it is put off. */
static void
look_failed(unsigned pool, const char *path, const char *file)
{
	const char *why = strerror(errno);

	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
		report("%s: %s: %s: what was mapped before is NOT REPLICATED", path, file, why);
	else if (!(atomic_fetch_or(&due, 1U << pool) & 1U << pool))
		report("%s: %s: %s: what was mapped before is NOT REPLICATED; it is looked at "
		       "again with what is made durable next",
		       path, file, why);
}

static void
look_done(unsigned pool, const char *path)
{
	if (atomic_fetch_and(&due, ~(1U << pool)) & 1U << pool)
		report("%s: what was mapped before is followed now", path);
}

/* Its own name, that of a directory on the way to it, or one that its name is a link to. */
static bool
is_named(const char *path, const char *resolved, const char *by)
{
	return ends_within(by, path) || ends_within(by, resolved);
}

/* from is NULL: whatever its name. */
static void
pool_look_again(unsigned pool, const char *from, const char *to)
{
	const char *name = pools[pool].path;
	char path[PATH_MAX];
	struct stat st;
	struct renamed n = {.st = &st, .path = name, .pool = pool};

	if (realpath(name, path))
		n.path = path;
	if (from && !is_due(pool) && !is_named(name, n.path, from) && !is_named(name, n.path, to))
		return;
	if (stat(name, &st) || !S_ISREG(st.st_mode)) {
		(void)atomic_fetch_and(&due, ~(1U << pool));
		return;
	}
	if (pools_busy()) {
		report("%s: named by a signal handler amid a flush: what was mapped before is NOT "
		       "REPLICATED",
		       name);
		return;
	}
	n.fd = open(name, O_PATH | O_CLOEXEC);
	if (n.fd < 0) {
		look_failed(pool, n.path, "opening it");
		return;
	}
	device_find(&n);
	if (proc_lines(PROCSELF "/maps", map_take, &n))
		look_failed(pool, n.path, PROCSELF "/maps");
	else
		look_done(pool, n.path);
	(void)close(n.fd);
	if (n.renewed)
		pool_renewed(&pools[pool]);
}

void
pools_mapped_before(void)
{
	for (unsigned i = 0; i < pool_count; i++)
		pool_look_again(i, NULL, NULL);
}

void
pools_renamed(const char *from, const char *to)
{
	int saved_errno = errno, cancel;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (unsigned i = 0; i < pool_count; i++)
		pool_look_again(i, from, to);
	(void)pthread_setcancelstate(cancel, NULL);
	errno = saved_errno;
}

bool
pools_look_due(void)
{
	if (atomic_load_explicit(&due, memory_order_relaxed) == 0 || pools_busy())
		return false;
	/* Of no name. */
	pools_renamed("", "");
	return true;
}
