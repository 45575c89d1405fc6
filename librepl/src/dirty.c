/* SPDX-License-Identifier: BSD-3-Clause */
/* The maps of all replicas, and what they are worth. */
#include "dirty_impl.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "clock.h"
#include "ownwait.h"

#define MERGE_SLICE (1ULL << 30) /* bytes of the pool */

/*
 * The grain keeps all maps of all replicas, two of each, below 1/32768 of the
 * pool: two blocks of 4 KiB a bit with one replica, twice as many with two.
 */
static unsigned
grain_shift(unsigned replicas)
{
	unsigned shift = DIRTYMAP_SHIFT_MIN + 1;

	while ((1U << (shift - DIRTYMAP_SHIFT_MIN - 1)) < replicas && shift < DIRTYMAP_SHIFT_MAX)
		shift++;
	return shift;
}

uint64_t
dirty_memory(uint64_t pool_size, unsigned replicas)
{
	uint64_t blocks = ((pool_size - 1) >> grain_shift(replicas)) + 1;

	return 2 * replicas * ((blocks + 63) / 64 * 8);
}

static int
locks_init(struct dirty *d, struct err *e)
{
	pthread_rwlockattr_t rw;
	pthread_condattr_t mono;
	int ret;

	if (activity_init(&d->activity, e))
		return REPL_E_NOMEM;
	(void)pthread_mutex_init(&d->io_lock, NULL);
	(void)pthread_mutex_init(&d->header_lock, NULL);
	(void)pthread_mutex_init(&d->sync_lock, NULL);
	(void)pthread_mutex_init(&d->pool_lock, NULL);
	(void)pthread_mutex_init(&d->stop_lock, NULL);
	(void)pthread_condattr_init(&mono);
	(void)pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	ret = pthread_cond_init(&d->wake, &mono);
	(void)pthread_condattr_destroy(&mono);
	(void)pthread_rwlockattr_init(&rw);
	/* Who exchanges the maps must not wait for a moment in which nobody marks. */
	(void)pthread_rwlockattr_setkind_np(&rw, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	ret |= pthread_rwlock_init(&d->maps_lock, &rw);
	(void)pthread_rwlockattr_destroy(&rw);
	return ret ? err_set(e, REPL_E_NOMEM, "out of memory") : 0;
}

static void
locks_fini(struct dirty *d)
{
	(void)pthread_rwlock_destroy(&d->maps_lock);
	(void)pthread_cond_destroy(&d->wake);
	(void)pthread_mutex_destroy(&d->stop_lock);
	(void)pthread_mutex_destroy(&d->pool_lock);
	(void)pthread_mutex_destroy(&d->sync_lock);
	(void)pthread_mutex_destroy(&d->header_lock);
	(void)pthread_mutex_destroy(&d->io_lock);
	activity_fini(&d->activity);
}

/* The file system may not tell. */
static struct dirtypage_file
file_of(const struct local *l)
{
	struct dirtypage_file file = {0};
	size_t len = l->path ? strlen(l->path) - strlen(SIDECAR_SUFFIX) : 0;
	char *path = l->path ? strndup(l->path, len) : NULL;
	struct statx st = {.stx_mask = 0};

	if (path && statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st))
		st.stx_mask = 0;
	free(path);
	if (st.stx_mask & STATX_INO)
		file.inode = st.stx_ino;
	if (st.stx_mask & STATX_BTIME)
		file.born = (uint64_t)st.stx_btime.tv_sec * NS_PER_S + st.stx_btime.tv_nsec;
	return file;
}

int
dirty_open(struct local *l, const struct repl_config *c, uint64_t pool_size, bool crashed,
	   struct dirty **out, struct err *e)
{
	struct dirty *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	d->local = l;
	d->sync_fd = -1;
	d->count = c->target_count;
	d->shift = grain_shift(d->count);
	d->pool_size = pool_size;
	d->file = file_of(l);
	d->keep = l->path && c->after_crash == CONFIG_CRASH_DIRTY_MAP;
	d->bases = l->path && !d->keep;
	d->found = l->meta.generation.current;
	/* A drain that takes its time must find its extents still there at its end. */
	extentlog_init(&d->activity.log, pool_size, DIRTY_IDLE_ROUNDS + c->op_timeout_ms / 1000);
	for (unsigned i = 0; i < d->count; i++) {
		char text[TARGET_TEXT_MAX];

		target_format(&c->targets[i], text, sizeof(text));
		hash128(text, strlen(text), d->name[i]);
	}
	rc = locks_init(d, e);
	if (rc) {
		free(d);
		return rc;
	}
	region_load(d, crashed);
	*out = d;
	return 0;
}

/* Where it fails media are told before anybody goes on. */
static bool
region_make(struct dirty *d)
{
	struct err why;
	bool made;

	err_clear(&why);
	activity_suspend(d);
	activity_grow(d, d->pool_size);
	made = region_rebuild(d, &why) == 0;
	if (!made)
		region_fail(d, &why);
	activity_resume(d, made);
	return made;
}

static bool
any_tracked(const struct dirty *d)
{
	for (unsigned i = 0; i < d->count; i++) {
		if (atomic_load(&d->track[i].tracked))
			return true;
	}
	return false;
}

void
dirty_begin(struct dirty *d)
{
	/* A region may be of the size that it records by then: nothing tells what has grown. */
	if (d->keep && d->local->recorded >= d->pool_size)
		return;
	pthread_mutex_lock(&d->io_lock);
	if (d->bases && d->local->fd >= 0 && any_tracked(d)) {
		atomic_store(&d->header_changed, false);
		if (!region_make_bases(d))
			atomic_store(&d->header_changed, true);
	} else {
		d->local->meta.dirty_off = d->local->meta.dirty_len = 0;
	}
	pthread_mutex_unlock(&d->io_lock);
}

int
dirty_start(struct dirty *d, struct err *e)
{
	int rc = 0;

	d->begun = true;
	if (d->keep) {
		pthread_mutex_lock(&d->io_lock);
		/* In memory it goes on. What the sidecar names nobody keeps up then: after a crash
		 * of ours it would be believed. */
		if (!region_make(d) && dirty_untold(d))
			rc = region_disown(d, e);
		pthread_mutex_unlock(&d->io_lock);
	} else {
		dirty_note_bases(d);
	}
	if (!rc && (d->keep || (d->local->path && d->record_again)))
		rc = dirty_thread_start(d, e);
	return rc;
}

bool
dirty_bases_due(const struct dirty *d)
{
	return d->bases && atomic_load(&d->header_changed);
}

static int
bases_name(struct dirty *d)
{
	int rc = local_store(d->local, NULL);

	/* It is made once more, so that it is named. */
	if (rc)
		d->region.off = 0;
	return rc;
}

void
dirty_note_bases(struct dirty *d)
{
	bool noted = true;

	if (!dirty_bases_due(d))
		return;
	if (!ownwait_lock(&d->io_lock, &d->abandoned))
		return;
	atomic_store(&d->header_changed, false);
	if (d->region.off)
		noted = region_write_header(d, NULL) == 0;
	else if (any_tracked(d))
		noted = region_make_bases(d) && bases_name(d) == 0;
	if (!noted)
		atomic_store(&d->header_changed, true);
	pthread_mutex_unlock(&d->io_lock);
}

/* The region that there is tells no more than what replicas have: no longer than the one to be. */
static bool
bases_stay(struct dirty *d)
{
	d->bases = true;
	if (region_write_header(d, NULL))
		return false;
	region_trim(d);
	return true;
}

static void
doubt_all(struct dirty *d)
{
	for (unsigned i = 0; i < d->count; i++)
		dirty_doubt(d, i);
}

/* A writer that has closed leaves a region that is right, or none. */
static void
region_close(struct dirty *d)
{
	bool bases = d->bases && d->region.off && d->region.off == d->local->meta.dirty_off;

	if (any_tracked(d) && !settle_pool(d, d->pool_size))
		doubt_all(d);
	d->local->lost |= atomic_load(&d->pool_lost);
	/* It may have come back, and what is wrong with it is not written again. */
	atomic_store(&d->broken, false);
	atomic_store(&d->broken_told, false);
	/* Its activity log is no writer's any more: of what one writes that comes later it says
	 * nothing. */
	d->keep = d->bases = false;
	if (any_tracked(d) && (!region_rebuild(d, NULL) || (bases && bases_stay(d))))
		return;
	/* Where that fails, or there is none, it goes with the word that the writer has closed. */
	if (any_tracked(d) || d->local->meta.dirty_len > 0)
		(void)region_disown(d, NULL);
}

void
dirty_settle(struct dirty *d)
{
	if (d && d->local->path && d->local->fd >= 0 && d->begun)
		(void)settle_pool(d, d->pool_size);
}

static void
track_free(struct track *t)
{
	dirtymap_free(t->current);
	dirtymap_free(t->batch);
	free(t->changed);
	t->current = t->batch = NULL;
	t->changed = NULL;
}

void
dirty_close(struct dirty *d)
{
	if (!d)
		return;
	dirty_thread_stop(d);
	/* Where opening has failed the sidecar is as it was. */
	if (d->local->path && d->local->fd >= 0 && d->begun)
		region_close(d);
	for (unsigned i = 0; i < d->count; i++)
		track_free(&d->track[i]);
	locks_fini(d);
	free(d);
}

/* ---- which replicas ---- */

static uint64_t
changed_words(uint64_t pool_size, unsigned shift)
{
	return (dirtymap_pages_of(pool_size, shift) + 63) / 64;
}

int
dirty_track_new(struct dirty *d, unsigned replica, struct err *e)
{
	struct track *t = &d->track[replica];
	_Atomic uint64_t *changed;
	struct dirtymap *m = NULL;
	int rc = dirtymap_new(d->pool_size, d->shift, &m, e);

	if (rc)
		return rc;
	changed = calloc(changed_words(d->pool_size, d->shift), sizeof(*changed));
	if (!changed) {
		dirtymap_free(m);
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	if (!ownwait_wrlock(&d->maps_lock, &d->abandoned)) {
		free(changed);
		dirtymap_free(m);
		return is_parents(d, e);
	}
	t->current = m;
	t->changed = changed;
	dirtytrack_begin(&t->worth);
	t->compared = 0;
	atomic_store(&t->tracked, true);
	pthread_rwlock_unlock(&d->maps_lock);
	return 0;
}

static void
page_change(struct track *t, uint64_t page)
{
	uint64_t bit = 1ULL << (page % 64);

	if (!(atomic_load(&t->changed[page / 64]) & bit))
		(void)atomic_fetch_or(&t->changed[page / 64], bit);
}

/* With maps_lock held for writing. */
static void
track_change_all(struct track *t)
{
	for (unsigned p = 0; t->current && p < dirtymap_pages(t->current); p++)
		page_change(t, p);
}

/*
 * A map that is trusted on media becomes one that is not: of a newer epoch its pages are all dirty
 * until the header says so, whatever they tell by then. With maps_lock held for writing.
 */
static void
track_renew(struct track *t)
{
	t->worth.epoch++;
	track_change_all(t);
}

static bool
lost_in_one_generation(const struct track *a, const struct track *b)
{
	return a != b && atomic_load(&a->tracked) && atomic_load(&b->tracked) &&
	       gen_id_equal(&a->worth.base, &b->worth.base);
}

/* With maps_lock held for writing. */
static void
track_take(struct track *t, const struct track *other)
{
	if (!t->current)
		return;
	if (other->current)
		dirtymap_merge(t->current, other->current, 0, UINT64_MAX);
	if (other->batch)
		dirtymap_merge(t->current, other->batch, 0, UINT64_MAX);
	track_change_all(t);
}

/*
 * A replica may have more of a generation than another one that was lost in it, and its content may
 * be replaced by that one's, by hand, under the same name: its map begins with the other's
 * marks. With maps_lock held for writing.
 */
static void
track_join(struct dirty *d, unsigned replica)
{
	struct track *t = &d->track[replica];

	for (unsigned i = 0; i < d->count; i++) {
		if (lost_in_one_generation(t, &d->track[i]))
			track_take(t, &d->track[i]);
	}
}

int
dirty_track(struct dirty *d, unsigned replica, const struct gen_id *base)
{
	struct track *t = &d->track[replica];
	bool found, trusted;
	struct err e;

	assert(replica < d->count);
	err_clear(&e);
	found = atomic_load(&t->tracked);
	if (!found && dirty_track_new(d, replica, &e))
		return e.code;
	if (!ownwait_wrlock(&d->maps_lock, &d->abandoned))
		return is_parents(d, &e);
	if (!found) {
		t->worth.base = base ? *base : d->found;
		track_join(d, replica);
	} else if (base) {
		trusted = !t->worth.untrusted;
		dirtytrack_go_on(&t->worth, base);
		if (trusted && t->worth.untrusted)
			track_renew(t);
	}
	pthread_rwlock_unlock(&d->maps_lock);
	atomic_store(&d->header_changed, true);
	return 0;
}

void
dirty_share(struct dirty *d, unsigned replica)
{
	const struct track *t = &d->track[replica];

	assert(replica < d->count);
	if (!ownwait_wrlock(&d->maps_lock, &d->abandoned))
		return;
	for (unsigned i = 0; i < d->count; i++) {
		if (lost_in_one_generation(&d->track[i], t))
			track_take(&d->track[i], t);
	}
	pthread_rwlock_unlock(&d->maps_lock);
}

int
dirty_track_found(struct dirty *d, unsigned replica, const struct gen_id *has)
{
	struct gen_id base;
	int rc;

	if (dirty_base(d, replica, &base))
		return gen_id_is_nil(has) || gen_id_equal(&base, has)
			       ? 0
			       : dirty_track(d, replica, has);
	rc = dirty_track(d, replica, has);
	if (!rc)
		dirty_doubt(d, replica);
	return rc;
}

void
dirty_rebase(struct dirty *d, unsigned replica, const struct gen_id *base)
{
	struct track *t = &d->track[replica];

	assert(replica < d->count && atomic_load(&t->tracked));
	pthread_rwlock_wrlock(&d->maps_lock);
	dirtytrack_rebase(&t->worth, base);
	t->compared = 0;
	pthread_rwlock_unlock(&d->maps_lock);
	atomic_store(&d->header_changed, true);
}

/* With maps_lock held for writing. */
static void
track_doubt(struct track *t)
{
	if (!t->worth.untrusted)
		track_renew(t);
	t->worth.untrusted = true;
}

void
dirty_doubt(struct dirty *d, unsigned replica)
{
	assert(replica < d->count);
	if (!ownwait_wrlock(&d->maps_lock, &d->abandoned))
		return;
	track_doubt(&d->track[replica]);
	pthread_rwlock_unlock(&d->maps_lock);
	atomic_store(&d->header_changed, true);
}

void
dirty_forsake(struct dirty *d, unsigned replica)
{
	assert(replica < d->count);
	pthread_rwlock_wrlock(&d->maps_lock);
	track_doubt(&d->track[replica]);
	d->track[replica].compared = 0;
	pthread_rwlock_unlock(&d->maps_lock);
	atomic_store(&d->header_changed, true);
}

void
dirty_untrack(struct dirty *d, unsigned replica)
{
	struct track *t = &d->track[replica];

	assert(replica < d->count);
	pthread_rwlock_wrlock(&d->maps_lock);
	atomic_store(&t->tracked, false);
	track_free(t);
	dirtytrack_end(&t->worth);
	pthread_rwlock_unlock(&d->maps_lock);
	atomic_store(&d->header_changed, true);
}

bool
dirty_tracked(const struct dirty *d, unsigned replica)
{
	assert(replica < d->count);
	return atomic_load(&d->track[replica].tracked);
}

/* The lock is no part of what is looked at. */
static pthread_rwlock_t *
lock_of(const struct dirty *d)
{
	return &((struct dirty *)(uintptr_t)d)->maps_lock;
}

enum dirty_trust
dirty_found(const struct dirty *d, unsigned replica, const struct gen_id *replica_current)
{
	const struct track *t = &d->track[replica];
	enum dirty_trust trust = DIRTY_TRUSTED;

	assert(replica < d->count);
	pthread_rwlock_rdlock(lock_of(d));
	if (!atomic_load(&t->tracked))
		trust = DIRTY_NONE;
	else if (!dirtytrack_speaks_of(&t->worth, replica_current))
		trust = DIRTY_UNTRUSTED;
	pthread_rwlock_unlock(lock_of(d));
	return trust;
}

bool
dirty_base(const struct dirty *d, unsigned replica, struct gen_id *base)
{
	const struct track *t = &d->track[replica];
	bool tracked;

	assert(replica < d->count);
	if (!ownwait_rdlock(lock_of(d), &d->abandoned))
		return false;
	tracked = atomic_load(&t->tracked);
	*base = t->worth.base;
	pthread_rwlock_unlock(lock_of(d));
	return tracked;
}

/* ---- marks ---- */

void
dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len)
{
	struct track *t = &d->track[replica];

	assert(replica < d->count);
	if (!atomic_load(&t->tracked) || len == 0)
		return;
	if (!ownwait_rdlock(&d->maps_lock, &d->abandoned))
		return;
	if (t->current && off < d->pool_size && dirtymap_set(t->current, off, len)) {
		uint64_t end = len < d->pool_size - off ? off + len : d->pool_size;

		for (uint64_t p = dirtymap_page_at(t->current, off);
		     p <= dirtymap_page_at(t->current, end - 1); p++)
			page_change(t, p);
	}
	pthread_rwlock_unlock(&d->maps_lock);
}

void
dirty_mark_all(struct dirty *d, unsigned replica)
{
	dirty_mark(d, replica, 0, UINT64_MAX);
}

struct dirtymap *
dirty_batch_begin(struct dirty *d, unsigned replica)
{
	struct track *t = &d->track[replica];
	struct dirtymap *empty = NULL;

	assert(replica < d->count && !t->batch);
	if (!atomic_load(&t->tracked) || dirtymap_new(d->pool_size, d->shift, &empty, NULL))
		return NULL;
	pthread_rwlock_wrlock(&d->maps_lock);
	t->batch = t->current;
	t->current = empty;
	pthread_rwlock_unlock(&d->maps_lock);
	return t->batch;
}

/*
 * What the batch has from there on is marked again. It is in both until the batch goes, and so at
 * no moment in neither. In slices: who marks need not wait for all of it, nor for who waits for
 * that.
 */
static void
batch_merge(struct dirty *d, struct track *t, uint64_t from)
{
	bool more = true;

	for (uint64_t off = from; more; off += MERGE_SLICE) {
		pthread_rwlock_rdlock(&d->maps_lock);
		more = t->batch && off < d->pool_size;
		if (more)
			dirtymap_merge(t->current, t->batch, off, MERGE_SLICE);
		pthread_rwlock_unlock(&d->maps_lock);
	}
}

void
dirty_batch_end(struct dirty *d, unsigned replica, bool done)
{
	struct track *t = &d->track[replica];
	struct dirtymap *batch;

	assert(replica < d->count);
	if (!done)
		batch_merge(d, t, 0);
	pthread_rwlock_wrlock(&d->maps_lock);
	batch = t->batch;
	t->batch = NULL;
	for (unsigned p = 0; batch && done && p < dirtymap_pages(batch); p++)
		page_change(t, p);
	pthread_rwlock_unlock(&d->maps_lock);
	dirtymap_free(batch);
}

void
dirty_batch_compared(struct dirty *d, unsigned replica, const struct gen_id *of, uint64_t upto,
		     bool whole)
{
	struct track *t = &d->track[replica];
	struct dirtymap *batch;

	assert(replica < d->count);
	if (!whole)
		batch_merge(d, t, upto);
	pthread_rwlock_wrlock(&d->maps_lock);
	batch = t->batch;
	t->batch = NULL;
	for (unsigned p = 0; batch && p < dirtymap_pages(batch); p++)
		page_change(t, p);
	t->compared_of = *of;
	t->compared = upto;
	pthread_rwlock_unlock(&d->maps_lock);
	dirtymap_free(batch);
}

uint64_t
dirty_compared(const struct dirty *d, unsigned replica, const struct gen_id *of)
{
	const struct track *t = &d->track[replica];
	uint64_t upto = 0;

	assert(replica < d->count);
	pthread_rwlock_rdlock(lock_of(d));
	if (atomic_load(&t->tracked) && !gen_id_is_nil(of) && gen_id_equal(&t->compared_of, of))
		upto = t->compared;
	pthread_rwlock_unlock(lock_of(d));
	return upto;
}

uint64_t
dirty_bytes(const struct dirty *d, unsigned replica)
{
	const struct track *t = &d->track[replica];
	uint64_t bytes = 0;

	assert(replica < d->count);
	pthread_rwlock_rdlock(lock_of(d));
	if (t->current)
		bytes += dirtymap_bytes(t->current);
	if (t->batch)
		bytes += dirtymap_bytes(t->batch);
	pthread_rwlock_unlock(lock_of(d));
	return bytes;
}

unsigned
dirty_grain(const struct dirty *d)
{
	return 1U << d->shift;
}

/* ---- growth ---- */

static int
track_grow(struct track *t, uint64_t old_words, uint64_t words, uint64_t pool_size, struct err *e)
{
	_Atomic uint64_t *changed;

	if (!t->current)
		return 0;
	changed = realloc(t->changed, words * sizeof(*changed));
	if (!changed)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	for (uint64_t w = old_words; w < words; w++)
		atomic_init(&changed[w], 0);
	t->changed = changed;
	return dirtymap_grow(t->current, pool_size, e);
}

/* With maps_lock held for writing. */
static void
maps_shrink(struct dirty *d, uint64_t pool_size)
{
	for (unsigned i = 0; i < d->count; i++) {
		if (d->track[i].current)
			dirtymap_grow_undo(d->track[i].current, pool_size);
		if (d->track[i].batch)
			dirtymap_grow_undo(d->track[i].batch, pool_size);
	}
}

int
dirty_grow(struct dirty *d, uint64_t pool_size, struct err *e)
{
	uint64_t words = changed_words(pool_size, d->shift);
	int rc = 0;

	if (pool_size <= d->pool_size)
		return 0;
	pthread_mutex_lock(&d->io_lock);
	pthread_rwlock_wrlock(&d->maps_lock);
	for (unsigned i = 0; i < d->count && !rc; i++) {
		rc = track_grow(&d->track[i], changed_words(d->pool_size, d->shift), words,
				pool_size, e);
	}
	/* Without memory for all of them some have grown: a map that begins now is of one size with
	 * them. */
	if (rc)
		maps_shrink(d, d->pool_size);
	else
		d->pool_size = pool_size;
	pthread_rwlock_unlock(&d->maps_lock);
	if (!rc && d->keep && d->region.off)
		(void)region_make(d);
	pthread_mutex_unlock(&d->io_lock);
	return rc;
}

void
dirty_grow_undo(struct dirty *d, uint64_t pool_size)
{
	bool region = pool_size < d->pool_size;

	pthread_mutex_lock(&d->io_lock);
	pthread_rwlock_wrlock(&d->maps_lock);
	maps_shrink(d, pool_size);
	if (region)
		d->pool_size = pool_size;
	pthread_rwlock_unlock(&d->maps_lock);
	if (region && d->keep && d->region.off)
		(void)region_make(d);
	pthread_mutex_unlock(&d->io_lock);
}

bool
dirty_media_ok(const struct dirty *d, const char **why)
{
	bool broken = atomic_load(&d->broken);

	if (why)
		*why = broken ? d->why : "";
	return !broken;
}
