/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolmake - pools come into being and go: the order of docs/POOL-FORMAT.md,
 * section 2, which leaves after a kill at any point a whole pool, or a sidecar
 * without a pool, which counts as nothing.
 */
#include "poolstore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "clock.h"
#include "hex.h"
#include "lock.h"
#include "log.h"
#include "pooldevice.h"
#include "space.h"

/* What another session makes is seldom more than a name; else who asks for it comes again. */
#define MAKING_MS      1000U
#define MAKING_LOOK_MS 5

/* How long a journal is kept that nobody goes on with. */
#define JOURNAL_LEFT_S (7L * 24 * 3600)

/*
 * So many of them, and so long, a session that begins looks for one and gives back what is left:
 * it has the lock on names.
 */
#define CLEAN_LOOKS 1024U
#define CLEAN_NS    (NS_PER_S / 5)

/* A pool under way: two temporary files, locked so that others leave them alone. */
struct making {
	struct pool_place place;
	const char *name;
	char temp[POOL_TEMP_MAX];
	char temp_sidecar[POOL_TEMP_MAX];
	int fd;
	int sidecar_fd;
	bool device; /* nothing is made but the sidecar */
	bool busy;   /* another session is making it */
};

static int
get_random(void *out, size_t len, struct err *e)
{
	if (getrandom(out, len, 0) != (ssize_t)len)
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	return 0;
}

static int
check_new_size(const char *name, uint64_t size, struct err *e)
{
	if (size == 0 || size > INT64_MAX)
		return err_set(e, REPL_E_INVAL, "pool '%s': size %llu is not from 1 to 2^63 - 1",
			       name, (unsigned long long)size);
	return 0;
}

static int
sync_dir(const struct pool_place *p, const char *name, struct err *e)
{
	if (fsync(p->dir) != 0)
		return err_errno(e, REPL_E_IO, errno, "pool '%s': sync of its directory", name);
	return 0;
}

/* Whether there is a regular file, or a device; what is of another kind is refused. */
static int
look(const struct pool_place *p, const char *leaf, const char *name, bool *present, struct err *e)
{
	struct stat st;

	*present = fstatat(p->dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!*present && errno != ENOENT)
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': '%s'", name, leaf);
	if (*present && !S_ISREG(st.st_mode) && !pooldevice_is(p->dir, leaf))
		return pool_file_refuse(p, leaf, name, st.st_mode, e);
	return 0;
}

/* A sidecar without its pool: the rest of a creation or removal, or the pool is elsewhere for now.
 */
static int
check_rest(const struct pool_place *p, const char *name, struct err *e)
{
	struct stat st;
	int fd, rc = pool_file_open(p, p->sidecar, name, O_RDONLY, &fd, &st, e);

	if (rc)
		return rc;
	rc = pool_primary_away(fd, name, e);
	/* A session has it, and its files. */
	if (!rc && !lock_take(fd, LOCK_WRITER_MS))
		rc = pool_busy(fd, name, e);
	(void)close(fd);
	return rc;
}

static int
check_absent(const struct pool_place *p, const char *name, struct err *e)
{
	const char *lost = pool_set_lost(p);
	bool pool, sidecar;
	int rc;

	rc = look(p, p->leaf, name, &pool, e);
	if (!rc)
		rc = look(p, p->sidecar, name, &sidecar, e);
	if (!rc && !pool && lost)
		return err_set(e, REPL_E_CORRUPT, POOL_SET_LOST, name, lost);
	if (!rc && !pool && sidecar)
		rc = check_rest(p, name, e);
	if (rc || !pool)
		return rc;
	if (sidecar)
		return err_set(e, REPL_E_EXISTS, "pool '%s': already exists", name);
	if (pooldevice_is(p->dir, p->leaf))
		return 0;
	return err_set(
		e, REPL_E_EXISTS,
		"pool '%s': there is a file of this name that has no sidecar: move it away or "
		"remove the pool first",
		name);
}

/* A leftover of a kill, whose lock can be had, goes. */
static int
temp_clear(const struct pool_place *p, const char *temp, struct err *e)
{
	int fd = path_open(p->dir, temp, O_RDONLY, 0);
	int rc = 0;

	if (fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "'%s'", temp);
	if (!lock_take(fd, 0))
		rc = err_set(e, REPL_E_BUSY,
			     "another session is making it: come again when it has");
	else if (unlinkat(p->dir, temp, 0) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "remove '%s'", temp);
	(void)close(fd);
	return rc;
}

void
pool_temp_name(char temp[POOL_TEMP_MAX], const char *name, const char *suffix)
{
	(void)snprintf(temp, POOL_TEMP_MAX, POOL_TEMP_PREFIX "%016" PRIx64 "%s",
		       sum64(name, strlen(name)), suffix);
}

int
pool_temp_open(const struct pool_place *p, const char *temp, int *fd, struct err *e)
{
	*fd = path_open(p->dir, temp, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (*fd < 0 && errno == EEXIST) {
		int rc = temp_clear(p, temp, e);

		if (rc)
			return rc;
		*fd = path_open(p->dir, temp, O_RDWR | O_CREAT | O_EXCL, 0600);
	}
	if (*fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "make a file");
	if (!lock_take(*fd, 0))
		return err_errno(e, err_from_errno(errno), errno, "lock");
	return 0;
}

static int
temp_open(struct making *m, const char *temp, int *fd, struct err *e)
{
	int rc = pool_temp_open(&m->place, temp, fd, e);

	m->busy = rc == REPL_E_BUSY;
	return rc ? err_prefix(e, "pool '%s'", m->name) : 0;
}

static int
device_begin(struct pool_store *s, struct making *m, struct err *e)
{
	struct stat st;
	int rc;

	m->temp[0] = '\0';
	rc = pooldevice_open(m->place.dir, m->place.leaf, m->name, O_RDWR, true, &m->fd, &st, e);
	return rc ? rc : pool_device_is_free(s, m->name, st.st_rdev, e);
}

/* Under the lock on names, so that nobody takes the new files for leftovers before they are locked.
 */
static int
making_try(struct pool_store *s, struct making *m, struct err *e)
{
	int rc;

	pool_temp_name(m->temp, m->name, "");
	pool_temp_name(m->temp_sidecar, m->name, SIDECAR_SUFFIX);
	rc = pool_store_lock(s, m->name, e);
	if (rc)
		return rc;
	rc = pool_place_open(s->dirfd, m->name, true, &m->place, e);
	if (!rc)
		rc = check_absent(&m->place, m->name, e);
	if (!rc)
		rc = temp_open(m, m->temp_sidecar, &m->sidecar_fd, e);
	m->device = !rc && pooldevice_is(m->place.dir, m->place.leaf);
	if (m->device)
		rc = device_begin(s, m, e);
	else if (!rc)
		rc = temp_open(m, m->temp, &m->fd, e);
	pool_store_unlock(s);
	return rc;
}

static void making_end(struct pool_store *s, struct making *m);

static int
making_begin(struct pool_store *s, struct making *m, const char *name, struct err *e)
{
	const struct timespec pause = {.tv_nsec = MAKING_LOOK_MS * (long)NS_PER_MS};
	uint64_t deadline = clock_deadline(MAKING_MS);
	int rc;

	for (;;) {
		*m = (struct making){
			.place = {.dir = -1}, .name = name, .fd = -1, .sidecar_fd = -1};
		rc = making_try(s, m, e);
		if (!m->busy || clock_left_ms(deadline) == 0)
			return rc;
		making_end(s, m);
		err_clear(e);
		(void)nanosleep(&pause, NULL);
	}
}

static int
device_fill(struct making *m, struct sidecar *meta, struct err *e)
{
	struct stat st;
	int rc;

	if (meta->sparse)
		return err_set(e, REPL_E_INVAL, "a pool on a device can't be sparse");
	if (fstat(m->fd, &st) != 0)
		return err_errno(e, REPL_E_IO, errno, "fstat");
	rc = pooldevice_check(&st, m->name, meta->pool_size, e);
	if (!rc)
		rc = pooldevice_zero(m->fd, m->name, meta->pool_size, e);
	if (rc)
		return rc;
	meta->settled = true;
	pool_backing_note(&(struct pool_files){.fd = m->fd, .st = st}, meta);
	return 0;
}

static int
making_fill_pool(struct making *m, struct sidecar *meta, struct err *e)
{
	int rc;

	if (m->device)
		return device_fill(m, meta, e);
	rc = meta->sparse ? space_extend_sparse(m->fd, meta->pool_size, e)
			  : space_allocate(m->fd, meta->pool_size, e);
	if (rc)
		return err_prefix(e, "pool '%s'", m->name);
	if (fsync(m->fd) != 0)
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': sync", m->name);
	return 0;
}

static int
making_fill(struct making *m, struct sidecar *meta, struct err *e)
{
	int rc = making_fill_pool(m, meta, e);

	if (rc)
		return rc;
	rc = sidecar_write(m->sidecar_fd, meta, e);
	if (rc)
		return err_prefix(e, "pool '%s'", m->name);
	/* Beyond fdatasync: owner and mode. */
	if (fsync(m->sidecar_fd) != 0)
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': sync", m->name);
	return 0;
}

int
pool_rename_new(int dir, const char *from, const char *to)
{
	if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (linkat(dir, from, dir, to, 0) != 0)
		return -1;
	return unlinkat(dir, from, 0);
}

/* Under the lock on names. Until the last rename there is no pool of this name. */
static int
making_publish(struct making *m, struct err *e)
{
	const struct pool_place *p = &m->place;
	int rc;

	rc = check_absent(p, m->name, e);
	if (rc)
		return rc;
	if (renameat(p->dir, m->temp_sidecar, p->dir, p->sidecar) != 0)
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': rename", m->name);
	m->temp_sidecar[0] = '\0';
	rc = sync_dir(p, m->name, e);
	if (!rc && !m->device && pool_rename_new(p->dir, m->temp, p->leaf) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "pool '%s': rename", m->name);
	if (rc) {
		(void)unlinkat(p->dir, p->sidecar, 0);
		return rc;
	}
	m->temp[0] = '\0';
	return sync_dir(p, m->name, e);
}

/* Leaves nothing of what was not published. */
static void
making_end(struct pool_store *s, struct making *m)
{
	if (m->sidecar_fd >= 0) {
		if (m->temp_sidecar[0])
			(void)unlinkat(m->place.dir, m->temp_sidecar, 0);
		lock_drop(m->sidecar_fd);
		(void)close(m->sidecar_fd);
	}
	if (m->fd >= 0) {
		if (m->temp[0])
			(void)unlinkat(m->place.dir, m->temp, 0);
		(void)close(m->fd);
	}
	pool_place_close(&m->place);
	if (m->temp[0] && lock_take(s->dirfd, LOCK_NAMES_MS)) {
		pool_place_prune(s->dirfd, m->name);
		pool_store_unlock(s);
	}
}

int
pool_new_meta(uint64_t size, const struct gen_id *uuid, struct sidecar *meta, struct err *e)
{
	time_t now = time(NULL);
	int rc = 0;

	memset(meta, 0, sizeof(*meta));
	meta->pool_size = size;
	meta->state = SIDECAR_UP_TO_DATE;
	/* 0 is a pool in parts that is being made: a clock may begin with that. */
	meta->created_s = now > 0 ? (uint64_t)now : 1;
	if (uuid) {
		meta->pool_uuid = *uuid;
		return 0;
	}
	rc = get_random(meta->pool_uuid.b, GEN_ID_SIZE, e);
	/* A random UUID: version 4, variant 1. */
	meta->pool_uuid.b[6] = (uint8_t)((meta->pool_uuid.b[6] & 0x0f) | 0x40);
	meta->pool_uuid.b[8] = (uint8_t)((meta->pool_uuid.b[8] & 0x3f) | 0x80);
	return rc;
}

int
pool_create(struct pool_store *s, const char *name, uint64_t size, const struct gen_id *uuid,
	    bool sparse, struct pool_info *info, struct err *e)
{
	struct making m;
	struct sidecar meta;
	int rc;

	rc = pool_name_check(name, e);
	if (!rc)
		rc = check_new_size(name, size, e);
	if (!rc)
		rc = pool_new_meta(size, uuid, &meta, e);
	if (rc)
		return rc;
	meta.sparse = sparse;
	rc = making_begin(s, &m, name, e);
	if (rc)
		goto out;
	rc = making_fill(&m, &meta, e);
	if (rc)
		goto out;
	rc = pool_store_lock(s, name, e);
	if (rc)
		goto out;
	rc = making_publish(&m, e);
	pool_store_unlock(s);
out:
	making_end(s, &m);
	return rc ? rc : pool_info(s, name, info, e);
}

static int
unlink_file(const struct pool_place *p, const char *leaf, const char *name, struct err *e)
{
	if (unlinkat(p->dir, leaf, 0) != 0 && errno != ENOENT)
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': remove '%s'", name,
				 leaf);
	return sync_dir(p, name, e);
}

bool
pool_is_seen(const struct sidecar *meta, const struct pool_seen *seen)
{
	return gen_id_equal(&meta->pool_uuid, &seen->uuid) &&
	       (seen->forgotten || gen_id_equal(&meta->generation.current, &seen->generation));
}

static int
seen_changed(const char *name, struct err *e)
{
	return err_set(e, REPL_E_REFUSED,
		       "pool '%s' is not what it was when it was looked at: it was made, written, "
		       "promoted or demoted since; nothing was changed, look again",
		       name);
}

int
pool_remove_check(int sidecar_fd, const char *name, bool whole, unsigned flags,
		  const struct pool_seen *seen, struct err *e)
{
	struct sidecar meta;
	struct err why;
	bool repair;
	int rc = sidecar_read(sidecar_fd, &meta, &repair, &why);

	if (rc == REPL_E_VERSION)
		return err_set(e, REPL_E_VERSION, "pool '%s': %s", name, why.text);
	if (rc)
		return seen ? seen_changed(name, e) : 0;
	/* The rest of one whose removal has begun is no pool any more. */
	if (meta.created_s == 0 && !whole)
		return 0;
	if (!meta.primary || flags & POOL_REMOVE_PRIMARY)
		return !seen || pool_is_seen(&meta, seen) ? 0 : seen_changed(name, e);
	(void)err_set(e, REPL_E_REFUSED,
		      "pool '%s' was %s; it is the primary now, what it has may be nowhere else",
		      name, meta.writer[0] ? meta.writer : "promoted");
	(void)err_because(e, REPL_REASON_PROMOTED);
	return REPL_E_REFUSED;
}

int
pool_remove_check_damage(struct pool_store *s, const char *name, unsigned flags, struct err *e)
{
	struct pool_info info;
	int rc;

	if (!(flags & POOL_REMOVE_DAMAGED))
		return 0;
	rc = pool_info(s, name, &info, e);
	if (rc == REPL_E_CORRUPT) {
		err_clear(e);
		return 0;
	}
	if (rc || info.header_damage[0])
		return rc;
	return err_set(e, REPL_E_REFUSED,
		       "pool '%s' is not what it was when it was looked at, or only a local "
		       "replica of it is damaged: it can be read; nothing was changed, look again",
		       name);
}

void
pool_removal_mark(int sidecar_fd, const char *name, uint64_t *created_s)
{
	struct sidecar meta;
	struct err why;
	bool repair;

	err_clear(&why);
	*created_s = 0;
	if (sidecar_read(sidecar_fd, &meta, &repair, NULL))
		return;
	*created_s = meta.created_s;
	meta.created_s = 0;
	if (sidecar_write(sidecar_fd, &meta, &why))
		log_warning("pool '%s': its removal is not noted: %s", name, why.text);
}

void
pool_removal_unmark(int sidecar_fd, uint64_t created_s)
{
	struct sidecar meta;
	bool repair;

	if (created_s == 0 || sidecar_read(sidecar_fd, &meta, &repair, NULL))
		return;
	meta.created_s = created_s;
	(void)sidecar_write(sidecar_fd, &meta, NULL);
}

/* What a removal that is cut off leaves of it is none whose file is elsewhere for now. */
static bool
is_primary(int sidecar_fd)
{
	struct sidecar meta;
	bool repair;

	return sidecar_fd >= 0 && sidecar_read(sidecar_fd, &meta, &repair, NULL) == 0 &&
	       meta.primary;
}

/*
 * Under the lock on names. A pool without a sidecar, or with one that is damaged, and the reverse,
 * can be removed too.
 */
static int
remove_files(struct pool_store *s, const struct pool_place *p, const char *name, unsigned flags,
	     const struct pool_seen *seen, struct err *e)
{
	const char *lost = pool_set_lost(p);
	char set[TARGET_POOL_MAX + 1], owner[TARGET_POOL_MAX + 1];
	bool pool, sidecar, device;
	struct stat st;
	uint64_t created_s = 0;
	int fd = -1, pool_fd = -1;
	int rc;

	device = pooldevice_is(p->dir, p->leaf);
	rc = look(p, p->leaf, name, &pool, e);
	if (!rc)
		rc = look(p, p->sidecar, name, &sidecar, e);
	if (rc)
		return rc;
	/* A sidecar without its pool, which another hand may have moved, is nothing that was seen.
	 */
	if ((!pool && (!sidecar || seen)) || (!sidecar && device))
		return err_set(e, REPL_E_NOT_FOUND, "pool '%s': not found", name);
	if (!sidecar && seen)
		return seen_changed(name, e);
	if (lost)
		return err_set(e, REPL_E_REFUSED,
			       "pool '%s': %s, and nothing else names its parts: put it back as it "
			       "was, then remove the pool; or remove '%s' and the parts by hand",
			       name, lost, p->sidecar);
	if (!sidecar && pool_place_is_beside(p, name, owner))
		return err_set(e, REPL_E_REFUSED,
			       "'%s' is no pool, but a file that belongs to pool '%s'", name,
			       owner);
	if (!sidecar && pool_part_of(s, name, set))
		return err_set(e, REPL_E_REFUSED,
			       "'%s' is a part of pool set '%s': remove that pool", name, set);
	if (!sidecar && pool_set_unread(s, false, set))
		return err_set(e, REPL_E_REFUSED,
			       "'%s' may be a part of pool set '%s', whose set file can't be read: "
			       "mend that one first",
			       name, set);
	if (sidecar) {
		rc = pool_file_open(p, p->sidecar, name, O_RDWR, &fd, &st, e);
		if (rc)
			return rc;
		if (!lock_take(fd, LOCK_WRITER_MS)) {
			rc = pool_busy(fd, name, e);
			goto out;
		}
		rc = pool_remove_check(fd, name, pool, flags, seen, e);
		if (rc)
			goto out;
	}
	if (pool && !device) {
		/* One that can't be opened can still be removed. */
		if (pool_file_open(p, p->leaf, name, O_RDONLY, &pool_fd, &st, e))
			err_clear(e);
		else
			rc = pool_use_lock(pool_fd, false, name, e);
	}
	if (!rc && is_primary(fd))
		pool_removal_mark(fd, name, &created_s);
	/* The link to a device is its administrator's. */
	if (!rc && !device)
		rc = unlink_file(p, p->leaf, name, e);
	if (!rc)
		rc = unlink_file(p, p->sidecar, name, e);
out:
	if (rc && created_s && look(p, p->leaf, name, &pool, NULL) == 0 && pool)
		pool_removal_unmark(fd, created_s);
	if (pool_fd >= 0)
		pool_store_close_late(s, pool_fd);
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* Under the pool's own writer lock: who waits for that finds the files gone. */
static int
discard_files(struct pool *p, struct err *e)
{
	struct pool_store *s = p->store;
	struct pool_place place;
	int rc = pool_store_lock(s, p->info.name, e);

	if (rc)
		return rc;
	/* Another hand's have come in their place. */
	rc = pool_check_named(p, e);
	if (!rc)
		rc = pool_place_open(s->dirfd, p->info.name, false, &place, e);
	if (!rc) {
		if (!pooldevice_is_open(&p->files.st))
			rc = unlink_file(&place, place.leaf, p->info.name, e);
		if (!rc)
			rc = unlink_file(&place, place.sidecar, p->info.name, e);
		pool_place_close(&place);
	}
	if (!rc)
		pool_place_prune(s->dirfd, p->info.name);
	pool_store_unlock(s);
	return rc;
}

int
pool_close_unused(struct pool *p, bool clean, struct err *e)
{
	const struct sidecar *meta = &p->info.meta;
	int rc;

	if (!p->write || p->files.parts || meta->state != SIDECAR_UP_TO_DATE || meta->primary ||
	    !gen_id_is_nil(&meta->generation.current))
		return pool_close(p, clean, e);
	rc = discard_files(p, e);
	if (rc)
		(void)pool_close(p, clean, NULL);
	else
		pool_free(p);
	return rc;
}

int
pool_remove_unused(struct pool_store *s, const char *name, const struct gen_id *uuid,
		   const char *writer, struct err *e)
{
	struct pool_info info;
	struct pool *p;
	int rc = pool_info(s, name, &info, e);

	if (!rc && !gen_id_equal(&info.meta.pool_uuid, uuid))
		return 0;
	if (!rc)
		rc = pool_open(s, name, POOL_WRITE, writer, &p, e);
	/* Of that name somebody may have made another one in between. */
	if (!rc)
		rc = gen_id_equal(&p->info.meta.pool_uuid, uuid) ? pool_close_unused(p, true, e)
								 : pool_close(p, true, e);
	return rc == REPL_E_BUSY || rc == REPL_E_NOT_FOUND ? 0 : rc;
}

int
pool_remove(struct pool_store *s, const char *name, unsigned flags, const struct pool_seen *seen,
	    struct err *e)
{
	struct pool_place place;
	bool is_set;
	int rc;

	rc = pool_set_is(s, name, &is_set, e);
	if (!rc && is_set)
		return pool_set_remove(s, name, flags, seen, e);
	if (!rc)
		rc = pool_store_lock(s, name, e);
	if (rc)
		return rc;
	rc = pool_remove_check_damage(s, name, flags, e);
	if (!rc)
		rc = pool_place_open(s->dirfd, name, false, &place, e);
	if (!rc) {
		rc = remove_files(s, &place, name, flags, seen, e);
		pool_place_close(&place);
	}
	if (!rc)
		pool_place_prune(s->dirfd, name);
	pool_store_unlock(s);
	return rc;
}

static bool
clean_is_stale(int dir, const char *leaf, struct timespec *when)
{
	struct stat st;

	if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
	    st.st_size <= SIDECAR_SIZE || st.st_mtime + JOURNAL_LEFT_S >= time(NULL))
		return false;
	*when = st.st_mtim;
	return true;
}

struct cleaning {
	struct pool_store *s;
	/* Of the sidecars that were seen those that are looked at; NULL: none. */
	char (*sidecars)[TARGET_POOL_MAX + sizeof(SIDECAR_SUFFIX)];
	unsigned long seen;
	unsigned short lot[3];
	uint64_t end_ns;
};

/* However many there are, each has the same chance to be looked at: the next session goes on. */
static void
clean_note(struct cleaning *c, const char *name)
{
	unsigned long at = c->seen;

	if (!c->sidecars || strlen(name) >= sizeof(c->sidecars[0]))
		return;
	c->seen++;
	if (at >= CLEAN_LOOKS)
		at = (unsigned long)nrand48(c->lot) % c->seen;
	if (at < CLEAN_LOOKS)
		(void)snprintf(c->sidecars[at], sizeof(c->sidecars[at]), "%s", name);
}

/*
 * A journal that a writer has left to be gone on with, and has not come back to. Without a look at
 * the date nothing is opened. What has more space than there is time for keeps its date, and the
 * next session goes on.
 */
static void
clean_journal(const struct cleaning *c, const char *name)
{
	struct timespec when[2] = {{.tv_nsec = UTIME_OMIT}};
	int dir = c->s->dirfd, fd;
	struct sidecar meta;
	bool repair, rest = false;

	if (!clean_is_stale(dir, name, &when[1]))
		return;
	fd = path_open(dir, name, O_RDWR, 0);
	if (fd < 0)
		return;
	if (lock_enter(fd, 0) && clean_is_stale(dir, name, &when[1]) &&
	    sidecar_read(fd, &meta, &repair, NULL) == 0 && !meta.journal_committed) {
		bool had = meta.journal_len > 0;

		if (pool_journal_discard(fd, &meta, c->end_ns, &rest, NULL) == 0 && had)
			log_info("%s: a journal that nobody has gone on with is dropped", name);
		if (rest)
			(void)futimens(fd, when);
	}
	(void)close(fd);
}

static void
clean_journals(struct cleaning *c)
{
	c->end_ns = clock_now_ns() + CLEAN_NS;
	for (unsigned i = 0; i < CLEAN_LOOKS && i < c->seen && clock_now_ns() < c->end_ns; i++)
		clean_journal(c, c->sidecars[i]);
}

static int
clean_visit(void *ctx, int dir, const char *leaf, const char *name)
{
	size_t len = strlen(leaf), suffix = strlen(SIDECAR_SUFFIX);
	struct cleaning *c = ctx;
	int fd;

	if (len > suffix && strcmp(leaf + len - suffix, SIDECAR_SUFFIX) == 0)
		clean_note(c, name);
	if (strncmp(leaf, POOL_TEMP_PREFIX, strlen(POOL_TEMP_PREFIX)) != 0)
		return 0;
	fd = path_open(dir, leaf, O_RDONLY, 0);
	if (fd < 0)
		return 0;
	if (lock_take(fd, 0)) {
		(void)unlinkat(dir, leaf, 0);
		/* A directory that a set names is its administrator's: it stays. */
		if (!poolparts_is_temp(name, leaf))
			pool_place_prune(c->s->dirfd, name);
	}
	pool_store_close_late(c->s, fd);
	return 0;
}

void
pool_make_clean(struct pool_store *s)
{
	struct cleaning c = {.s = s};

	if (!lock_take(s->dirfd, 0))
		return;
	c.sidecars = calloc(CLEAN_LOOKS, sizeof(c.sidecars[0]));
	(void)get_random(c.lot, sizeof(c.lot), NULL);
	(void)pool_walk(s->dirfd, clean_visit, &c, NULL);
	clean_journals(&c);
	pool_store_unlock(s);
	free(c.sidecars);
}
