/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolset_make - pools in the parts of a set come into being and go: the order of
 * docs/POOL-FORMAT.md, section 4. The sidecar says with "made" whether there is a
 * pool: 0 while its parts get their names and while they lose them.
 */
#include "poolstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lock.h"

/* Of the pool of a set: more than a set file may have, which tells the two apart. */
#define SIZE_MIN (POOLSET_FILE_MAX + 1U)

/* REPL_E_CORRUPT: it was read, and says nothing. */
static int
sidecar_look(const struct pool_place *place, struct sidecar *meta)
{
	struct err why;
	struct stat st;
	bool repair;
	int fd, rc;

	err_clear(&why);
	rc = pool_file_open(place, place->sidecar, place->leaf, O_RDONLY, &fd, &st, NULL);
	if (rc)
		return rc;
	rc = sidecar_read(fd, meta, &repair, &why);
	(void)close(fd);
	return rc && why.errnum ? REPL_E_IO : rc;
}

int
pool_set_peek(const struct pool_place *place, const char *name, int *fd, struct err *e)
{
	struct sidecar meta;
	struct stat st;
	bool begins;
	int rc;

	*fd = -1;
	if (fstatat(place->dir, place->leaf, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(st.st_mode) || st.st_size > POOLSET_FILE_MAX)
		return 0;
	rc = pool_file_open(place, place->leaf, name, O_RDONLY, fd, &st, e);
	if (rc)
		return rc;
	rc = poolparts_begins(*fd, &st, name, &begins, e);
	/* A small pool of just that content: its sidecar knows its size. */
	if (rc || !begins ||
	    (sidecar_look(place, &meta) == 0 && meta.pool_size <= POOLSET_FILE_MAX)) {
		(void)close(*fd);
		*fd = -1;
	}
	return rc;
}

const char *
pool_set_lost(const struct pool_place *place)
{
	struct sidecar meta;
	struct stat st;
	bool missing = fstatat(place->dir, place->leaf, &st, AT_SYMLINK_NOFOLLOW) != 0;
	int rc = sidecar_look(place, &meta);

	if (rc == REPL_E_NOT_FOUND || rc == REPL_E_CORRUPT)
		return NULL;
	/* It may be a set's. A file that is there is the pool of one. */
	if (rc && !missing)
		return NULL;
	if (rc == REPL_E_VERSION)
		return "its set file may be missing, a newer version made its sidecar";
	if (rc)
		return "its set file may be missing, its sidecar can't be read";
	if (meta.created_s == 0 || !(meta.layout || meta.order || !pmdk_attr_none(meta.attr)))
		return NULL;
	return missing ? "its set file is missing"
		       : "its set file does not begin with " POOLSET_SIGNATURE " any more";
}

int
pool_set_is(struct pool_store *s, const char *name, bool *is, struct err *e)
{
	struct pool_place place;
	int fd = -1, rc;

	*is = false;
	rc = pool_place_open(s->dirfd, name, false, &place, e);
	if (rc == REPL_E_NOT_FOUND) {
		err_clear(e);
		return 0;
	}
	if (rc)
		return rc;
	rc = pool_set_peek(&place, name, &fd, e);
	*is = fd >= 0;
	if (fd >= 0)
		(void)close(fd);
	pool_place_close(&place);
	return rc;
}

/* ---- looking ---- */

struct sets_walk {
	struct pool_store *s;
	pool_set_part_visit *visit;
	void *ctx;
};

/* Any set file counts, whether its pool was made or not. */
static int
sets_walk_visit(void *ctx, int dir, const char *leaf, const char *name)
{
	struct sets_walk *w = ctx;
	struct pool_place place = {.dir = dir};
	struct poolparts *p = NULL;
	int end = 0, fd;

	if (pool_name_check(name, NULL))
		return 0;
	pool_place_name(&place, leaf);
	if (pool_set_peek(&place, name, &fd, NULL) || fd < 0)
		return 0;
	if (poolparts_read(w->s->dirfd, w->s->dir, fd, name, &p, NULL) == 0) {
		for (const struct poolparts *r = p; !end && r; r = r->next)
			for (unsigned i = 0; !end && i < r->count; i++)
				end = w->visit(w->ctx, r->part[i].name, name);
		poolparts_free(p);
	}
	(void)close(fd);
	return end;
}

void
pool_sets_visit(struct pool_store *s, pool_set_part_visit *visit, void *ctx)
{
	struct sets_walk w = {.s = s, .visit = visit, .ctx = ctx};

	(void)pool_walk(s->dirfd, sets_walk_visit, &w, NULL);
}

struct part_search {
	const char *part;
	char *set;
};

static bool
part_search_visit(void *ctx, const char *part, const char *set)
{
	struct part_search *q = ctx;

	if (strcmp(part, q->part) != 0)
		return false;
	(void)snprintf(q->set, TARGET_POOL_MAX + 1, "%.*s", TARGET_POOL_MAX, set);
	return true;
}

bool
pool_part_of(struct pool_store *s, const char *name, char set[TARGET_POOL_MAX + 1])
{
	struct part_search q = {.part = name, .set = set};

	set[0] = '\0';
	pool_sets_visit(s, part_search_visit, &q);
	return set[0] != '\0';
}

static bool
has_sidecar(struct pool_store *s, const char *name)
{
	struct pool_place place;
	struct stat st;
	bool has;

	if (pool_place_open(s->dirfd, name, false, &place, NULL))
		return false;
	has = fstatat(place.dir, place.sidecar, &st, AT_SYMLINK_NOFOLLOW) == 0;
	pool_place_close(&place);
	return has;
}

struct unread {
	struct pool_store *s;
	bool made; /* only sets that have a sidecar */
	char *set;
};

/* At the set file as well as at the sidecar, one of which may be missing or damaged. */
static int
unread_visit(void *ctx, int dir, const char *leaf, const char *name)
{
	const size_t suffix = strlen(SIDECAR_SUFFIX);
	struct unread *u = ctx;
	struct pool_place place = {.dir = dir};
	struct poolparts *p = NULL;
	char base[TARGET_POOL_MAX + 1];
	size_t len = strlen(name), leaf_len = strlen(leaf);
	int fd, rc = 0;

	if (leaf_len > suffix && strcmp(leaf + leaf_len - suffix, SIDECAR_SUFFIX) == 0) {
		len -= suffix;
		leaf_len -= suffix;
	}
	if (len > TARGET_POOL_MAX)
		return 0;
	(void)snprintf(base, sizeof(base), "%.*s", (int)len, name);
	if (pool_name_check(base, NULL))
		return 0;
	pool_place_name(&place, base + len - leaf_len);
	/* What can't be looked at is what its sidecar says. */
	if (pool_set_peek(&place, base, &fd, NULL) == 0 && fd >= 0) {
		rc = poolparts_read(u->s->dirfd, u->s->dir, fd, base, &p, NULL);
		poolparts_free(p);
		(void)close(fd);
	} else {
		rc = pool_set_lost(&place) ? REPL_E_CORRUPT : 0;
	}
	if (!rc || (u->made && !has_sidecar(u->s, base)))
		return 0;
	(void)snprintf(u->set, TARGET_POOL_MAX + 1, "%s", base);
	return 1;
}

bool
pool_set_unread(struct pool_store *s, bool made, char set[TARGET_POOL_MAX + 1])
{
	struct unread u = {.s = s, .made = made, .set = set};

	set[0] = '\0';
	(void)pool_walk(s->dirfd, unread_visit, &u, NULL);
	return set[0] != '\0';
}

/* The set at a place, none of its parts open. */
static int
set_read(struct pool_store *s, const struct pool_place *place, const char *name,
	 struct poolparts **out, struct err *e)
{
	int fd, rc = pool_set_peek(place, name, &fd, e);

	if (rc)
		return rc;
	if (fd < 0)
		return err_set(e, REPL_E_NOT_FOUND, "pool set '%s': not found", name);
	rc = poolparts_read(s->dirfd, s->dir, fd, name, out, e);
	(void)close(fd);
	return rc;
}

void
pool_set_take_room(struct pool_store *s, const char *name, struct poolparts *p)
{
	struct poolparts *now = NULL;
	struct pool_place place;
	struct err why;

	err_clear(&why);
	if (pool_place_open(s->dirfd, name, false, &place, &why))
		return;
	if (!set_read(s, &place, name, &now, &why))
		poolparts_take_room(p, now);
	poolparts_free(now);
	pool_place_close(&place);
}

int
pool_set_parts(struct pool_store *s, const char *name, pool_part_visit *visit, void *ctx,
	       struct err *e)
{
	struct poolparts *p = NULL;
	struct pool_place place;
	int rc = pool_place_open(s->dirfd, name, false, &place, e);

	if (rc)
		return rc;
	rc = set_read(s, &place, name, &p, e);
	for (const struct poolparts *r = p; !rc && r; r = r->next)
		for (unsigned i = 0; i < r->count; i++)
			visit(ctx, r->part[i].name, r->part[i].file_size, r->replica);
	poolparts_free(p);
	pool_place_close(&place);
	if (rc == REPL_E_NOT_FOUND)
		err_clear(e);
	return rc == REPL_E_NOT_FOUND ? 0 : rc;
}

/* ---- what is not this set's ---- */

struct others {
	struct pool_store *s;
	const char *name; /* of the set that is to go */
	const struct poolparts *parts;
	char part[TARGET_POOL_MAX + 1], set[TARGET_POOL_MAX + 1];
};

static bool
others_visit(void *ctx, const char *part, const char *set)
{
	struct others *o = ctx;

	if (strcmp(set, o->name) == 0)
		return false;
	for (const struct poolparts *r = o->parts; r; r = r->next)
		for (unsigned i = 0; i < r->count; i++)
			if (strcmp(r->part[i].name, part) == 0 && has_sidecar(o->s, set)) {
				(void)snprintf(o->part, sizeof(o->part), "%s", part);
				(void)snprintf(o->set, sizeof(o->set), "%s", set);
				return true;
			}
	return false;
}

/* What can't be opened can still be removed, and is nobody's. */
static int
part_own(struct pool_store *s, struct poolpart *part, const char *name, struct err *e)
{
	struct pool_place place;
	struct stat st;
	bool is_pool;

	if (pool_place_open(s->dirfd, part->name, false, &place, NULL))
		return 0;
	is_pool = fstatat(place.dir, place.leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		  fstatat(place.dir, place.sidecar, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is_pool && part->fd < 0)
		(void)pool_file_open(&place, place.leaf, part->name, O_RDONLY, &part->fd, &st,
				     NULL);
	pool_place_close(&place);
	if (is_pool)
		return err_set(e, REPL_E_REFUSED,
			       "pool set '%s': '%s' is a pool of its own, which has a sidecar: "
			       "take it out of the set file, or remove that pool first",
			       name, part->name);
	return part->fd < 0 ? 0 : pool_use_lock(part->fd, false, name, e);
}

/*
 * Whatever the lines name now, and whatever disks are mounted: what may go with this set is this
 * set's. sidecar_fd -1: there is none.
 */
static int
parts_own(struct pool_store *s, struct poolparts *parts, const char *name, int sidecar_fd,
	  struct err *e)
{
	struct others o = {.s = s, .name = name, .parts = parts};
	struct sidecar meta;
	bool repair;
	int rc = 0;

	pool_sets_visit(s, others_visit, &o);
	if (o.set[0])
		return err_set(e, REPL_E_REFUSED,
			       "pool set '%s': '%s' is a part of pool set '%s', too: take it out "
			       "of the set file that it does not belong to",
			       name, o.part, o.set);
	if (pool_set_unread(s, true, o.set))
		return err_set(e, REPL_E_REFUSED,
			       "pool set '%s': its parts may be those of pool set '%s', too, whose "
			       "set file can't be read: mend that one first",
			       name, o.set);
	for (struct poolparts *r = parts; !rc && r; r = r->next)
		for (unsigned i = 0; !rc && i < r->count; i++)
			rc = part_own(s, &r->part[i], name, e);
	if (!rc && sidecar_fd >= 0 && sidecar_read(sidecar_fd, &meta, &repair, NULL) == 0 &&
	    (rc = poolparts_attr_foreign(parts, meta.attr, e)) != 0)
		rc = err_prefix(e, "pool set '%s'", name);
	return rc;
}

/* Under the lock on names, of parts that may be removed. */
static void
parts_free(struct pool_store *s, struct poolparts *parts)
{
	for (struct poolparts *r = parts; r; r = r->next)
		for (unsigned i = 0; i < r->count; i++) {
			if (r->part[i].fd >= 0)
				pool_store_close_late(s, r->part[i].fd);
			r->part[i].fd = -1;
		}
	poolparts_free(parts);
}

/* ---- making ---- */

struct set_making {
	struct pool_store *s;
	const char *name;
	struct pool_place place;
	struct poolparts *parts;
	struct poolparts_made *made;
	struct sidecar meta;
	int sidecar_fd;
	bool published; /* a beginning of it, which is to be taken back */
};

static int
sync_place(const struct pool_place *place, const char *name, struct err *e)
{
	if (fsync(place->dir) == 0)
		return 0;
	return err_errno(e, REPL_E_IO, errno, "pool set '%s': sync of its directory", name);
}

/*
 * Under the lock on names: what a killed creation or removal has left of this set
 * is removed; a pool that is there, or a sidecar that says nothing, is EXISTS.
 */
static int
set_clear(struct pool_store *s, const struct pool_place *place, const char *name,
	  struct poolparts *parts, struct err *e)
{
	struct sidecar meta;
	struct stat st;
	bool repair;
	int fd = -1, rc;

	rc = pool_file_open(place, place->sidecar, name, O_RDWR, &fd, &st, e);
	if (rc == REPL_E_NOT_FOUND) {
		err_clear(e);
		return 0;
	}
	if (rc)
		return rc;
	rc = pool_remove_check(fd, name, false, POOL_REMOVE_PRIMARY, NULL, e);
	if (!rc && sidecar_read(fd, &meta, &repair, NULL) != 0)
		rc = err_set(e, REPL_E_EXISTS,
			     "pool set '%s': there is a sidecar, which is damaged: remove the pool "
			     "first",
			     name);
	else if (!rc && (meta.created_s != 0 || !lock_take(fd, 0)))
		rc = err_set(e, REPL_E_EXISTS, "pool '%s': already exists", name);
	if (!rc)
		rc = parts_own(s, parts, name, fd, e);
	if (!rc)
		rc = poolparts_remove(parts, name, e);
	if (!rc && unlinkat(place->dir, place->sidecar, 0) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "pool set '%s': remove '%s'", name,
			       place->sidecar);
	(void)close(fd);
	return rc;
}

static int
set_begin(struct set_making *m, struct err *e)
{
	int rc = pool_place_open(m->s->dirfd, m->name, false, &m->place, e);

	if (!rc)
		rc = set_read(m->s, &m->place, m->name, &m->parts, e);
	if (!rc && m->meta.pool_size > poolparts_room(m->parts))
		rc = err_set(e, REPL_E_INVAL,
			     "pool set '%s': its parts hold %llu bytes without their headers, %llu "
			     "are needed: make them larger in the set file",
			     m->name, (unsigned long long)poolparts_room(m->parts),
			     (unsigned long long)m->meta.pool_size);
	if (!rc)
		rc = set_clear(m->s, &m->place, m->name, m->parts, e);
	/* What was cleared may have been in directories. */
	parts_free(m->s, m->parts);
	m->parts = NULL;
	if (!rc)
		rc = set_read(m->s, &m->place, m->name, &m->parts, e);
	if (!rc)
		rc = poolparts_absent(m->parts, m->name, e);
	if (!rc && (rc = poolparts_plan(m->parts, m->meta.pool_size, e)) != 0)
		rc = err_prefix(e, "pool set '%s'", m->name);
	if (!rc)
		rc = poolparts_make(m->parts, m->name, &m->made, e);
	return rc;
}

/* Whole when it gets its name, so that it says at any moment what there is. */
static int
set_publish_sidecar(struct set_making *m, struct err *e)
{
	static const char temp[] = POOL_TEMP_PREFIX "set" SIDECAR_SUFFIX;
	int rc;

	m->meta.created_s = 0;
	/* One that a kill has left: nobody else is here. */
	(void)unlinkat(m->place.dir, temp, 0);
	m->sidecar_fd = path_open(m->place.dir, temp, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (m->sidecar_fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "pool set '%s': make its sidecar",
				 m->name);
	rc = sidecar_write(m->sidecar_fd, &m->meta, e);
	if (!rc && fsync(m->sidecar_fd) != 0)
		rc = err_errno(e, REPL_E_IO, errno, "pool set '%s': sync its sidecar", m->name);
	if (!rc && pool_rename_new(m->place.dir, temp, m->place.sidecar) == 0)
		m->published = true;
	else if (!rc && errno == EEXIST)
		rc = err_set(e, REPL_E_EXISTS, "pool '%s': already exists", m->name);
	else if (!rc)
		rc = err_errno(e, err_from_errno(errno), errno, "pool set '%s': rename", m->name);
	if (rc)
		(void)unlinkat(m->place.dir, temp, 0);
	return rc ? rc : sync_place(&m->place, m->name, e);
}

/* Under the lock on names. */
static int
set_publish(struct set_making *m, struct err *e)
{
	uint64_t made_s = m->meta.created_s;
	int rc = poolparts_absent(m->parts, m->name, e);

	if (rc)
		return rc;
	rc = set_publish_sidecar(m, e);
	if (!rc)
		rc = poolparts_publish(m->made, e);
	m->meta.created_s = made_s;
	if (!rc)
		rc = sidecar_write(m->sidecar_fd, &m->meta, e);
	if (!rc)
		m->published = false;
	return rc;
}

static void
set_end(struct set_making *m)
{
	/* It failed in between: the parts have lost their names again. */
	if (m->published) {
		(void)poolparts_remove(m->parts, m->name, NULL);
		(void)unlinkat(m->place.dir, m->place.sidecar, 0);
	}
	if (m->sidecar_fd >= 0)
		(void)close(m->sidecar_fd);
}

static int
set_fill(struct set_making *m, const uint8_t *attr, struct err *e)
{
	_Static_assert(SIDECAR_ATTR_SIZE == PMDK_ATTR_SIZE, "attributes fit into a sidecar");
	int rc = poolparts_attr_check(m->parts, attr, e);

	if (rc)
		return err_prefix(e, "pool set '%s'", m->name);
	rc = poolparts_fill(m->made, e);
	if (!rc && m->parts->headers != POOLSET_NONE)
		rc = poolparts_attr_set(m->parts, attr, e);
	if (!rc && m->parts->linked)
		memcpy(m->meta.attr, attr, sizeof(m->meta.attr));
	m->meta.backing = poolparts_backing(m->parts);
	m->meta.layout = poolparts_layout(m->parts, m->meta.pool_size);
	m->meta.order = poolparts_order(m->parts);
	return rc ? rc : poolparts_sync(m->made, e);
}

int
pool_set_create(struct pool_store *s, const char *name, uint64_t size, const struct gen_id *uuid,
		const uint8_t *attr, bool filling, struct pool_info *info, struct err *e)
{
	struct set_making m = {.s = s, .name = name, .place = {.dir = -1}, .sidecar_fd = -1};
	int rc;

	if (size == 0 || size % POOLPARTS_ALIGN || size > INT64_MAX)
		return err_set(e, REPL_E_INVAL,
			       "pool '%s': size %llu is not a positive multiple of %u below 2^63, "
			       "as that of a pool in the files of a set is",
			       name, (unsigned long long)size, POOLPARTS_ALIGN);
	rc = pool_new_meta(size < SIZE_MIN ? SIZE_MIN : size, uuid, &m.meta, e);
	if (filling)
		m.meta.state = SIDECAR_INCONSISTENT;
	if (!rc)
		rc = pool_store_lock(s, name, e);
	if (rc)
		return rc;
	rc = set_begin(&m, e);
	pool_store_unlock(s);
	if (!rc)
		rc = set_fill(&m, attr, e);
	if (!rc && (rc = pool_store_lock(s, name, e)) == 0) {
		rc = set_publish(&m, e);
		set_end(&m);
		pool_store_unlock(s);
	}
	poolparts_made_free(m.made);
	poolparts_free(m.parts);
	pool_place_close(&m.place);
	return rc ? rc : pool_info(s, name, info, e);
}

/* ---- removing ---- */

/* The mark that there is no pool any more, then its parts, then the sidecar. */
static int
set_remove_made(const struct pool_place *place, const char *name, const struct poolparts *parts,
		int fd, struct err *e)
{
	unsigned before = poolparts_there(parts);
	uint64_t created_s;
	int rc;

	pool_removal_mark(fd, name, &created_s);
	rc = poolparts_remove(parts, name, e);
	if (rc && poolparts_there(parts) == before)
		pool_removal_unmark(fd, created_s);
	if (!rc && unlinkat(place->dir, place->sidecar, 0) != 0 && errno != ENOENT)
		rc = err_errno(e, err_from_errno(errno), errno, "pool set '%s': remove '%s'", name,
			       place->sidecar);
	return rc ? rc : sync_place(place, name, e);
}

static int
set_remove(struct pool_store *s, const struct pool_place *place, const char *name, unsigned flags,
	   const struct pool_seen *seen, struct err *e)
{
	struct poolparts *parts = NULL;
	struct stat st;
	int fd = -1, rc;

	rc = set_read(s, place, name, &parts, e);
	if (rc)
		return rc;
	rc = pool_file_open(place, place->sidecar, name, O_RDWR, &fd, &st, e);
	if (rc == REPL_E_NOT_FOUND && flags & (POOL_REMOVE_SET | POOL_REMOVE_FORCE)) {
		err_clear(e);
		rc = flags & POOL_REMOVE_FORCE ? parts_own(s, parts, name, -1, e) : 0;
		if (!rc && (flags & POOL_REMOVE_FORCE))
			rc = poolparts_remove(parts, name, e);
	} else if (!rc) {
		rc = lock_take(fd, LOCK_WRITER_MS) ? parts_own(s, parts, name, fd, e)
						   : pool_busy(fd, name, e);
		if (!rc)
			rc = pool_remove_check(fd, name, false, flags, seen, e);
		if (!rc)
			rc = set_remove_made(place, name, parts, fd, e);
		(void)close(fd);
	}
	if (!rc && (flags & POOL_REMOVE_SET)) {
		if (unlinkat(place->dir, place->leaf, 0) != 0)
			rc = err_errno(e, err_from_errno(errno), errno, "remove set file '%s'",
				       name);
		else
			rc = sync_place(place, name, e);
	}
	parts_free(s, parts);
	return rc;
}

int
pool_set_remove(struct pool_store *s, const char *name, unsigned flags,
		const struct pool_seen *seen, struct err *e)
{
	struct pool_place place;
	int rc = pool_store_lock(s, name, e);

	if (rc)
		return rc;
	rc = pool_remove_check_damage(s, name, flags, e);
	if (!rc)
		rc = pool_place_open(s->dirfd, name, false, &place, e);
	if (!rc) {
		rc = set_remove(s, &place, name, flags, seen, e);
		pool_place_close(&place);
	}
	pool_store_unlock(s);
	return rc;
}
