/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region of the local sidecar: reading what was left in it, making it anew,
 * and its pages.
 *
 * A region is never changed in its layout: a new one is written beside it, then
 * the sidecar names that one.
 */
#include "dirty_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dirtyload.h"
#include "filewrite.h"
#include "ownwait.h"

/* ---- pages ---- */

int
region_write(struct dirty *d, uint64_t index, const uint8_t page[DIRTYPAGE_SIZE], struct err *e)
{
	uint64_t off = d->region.off + index * DIRTYPAGE_SIZE;

	if (filewrite_all(d->local->fd, page, DIRTYPAGE_SIZE, (off_t)off))
		return err_errno(e, err_from_errno(errno), errno, "%s: writing the dirty map",
				 d->local->path);
	return 0;
}

int
is_parents(const struct dirty *d, struct err *e)
{
	return err_set(e, REPL_E_IO, "%s is another process's", d->local->path);
}

/* whole: all that is relied upon was written since another one has failed. */
static int
sync_own(struct dirty *d, bool whole, struct err *e)
{
	int rc = 0;

	diskclock_begin(&d->local->disk);
	if (!ownwait_lock(&d->sync_lock, &d->abandoned)) {
		diskclock_end(&d->local->disk);
		return is_parents(d, e);
	}
	if (d->sync_lost && !whole)
		rc = err_set(e, REPL_E_IO, "%s: syncing the dirty map: an earlier sync has failed",
			     d->local->path);
	else if (fdatasync(d->sync_fd))
		rc = err_errno(e, REPL_E_IO, errno, "%s: syncing the dirty map", d->local->path);
	d->sync_lost |= rc != 0;
	pthread_mutex_unlock(&d->sync_lock);
	diskclock_end(&d->local->disk);
	return rc;
}

int
region_sync(struct dirty *d, struct err *e)
{
	return sync_own(d, false, e);
}

static int
page_read(const struct dirty *d, uint64_t index, uint8_t page[DIRTYPAGE_SIZE], struct err *e)
{
	uint64_t off = d->local->meta.dirty_off + index * DIRTYPAGE_SIZE;
	size_t done = 0;

	while (done < DIRTYPAGE_SIZE) {
		ssize_t n = pread(d->local->fd, page + done, DIRTYPAGE_SIZE - done,
				  (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, REPL_E_CORRUPT, "%s: the dirty map can't be read",
				       d->local->path);
		done += (size_t)n;
	}
	return 0;
}

/* Things as they are now; in the layout of the region. */
static void
header_fill(struct dirty *d, struct dirtypage_header *h)
{
	*h = d->region.layout;
	h->file = d->file;
	h->activity = d->keep;
	h->broken = atomic_load(&d->broken);
	if (!ownwait_rdlock(&d->maps_lock, &d->abandoned))
		return;
	for (unsigned i = 0; i < d->count; i++) {
		const struct track *t = &d->track[i];

		h->slot[i] = (struct dirtypage_slot){
			.tracked = atomic_load(&t->tracked),
			.untrusted = d->bases || t->worth.untrusted || t->worth.suspect,
			.base = t->worth.base,
			.epoch = t->worth.epoch,
		};
		memcpy(h->slot[i].name, d->name[i], HASH128_SIZE);
	}
	pthread_rwlock_unlock(&d->maps_lock);
}

/* With header_lock held, or where nobody else can be at it. */
static int
header_write(struct dirty *d, struct err *e)
{
	struct dirtypage_header h;
	uint8_t page[DIRTYPAGE_SIZE];

	header_fill(d, &h);
	dirtypage_header_encode(&h, &d->region.pool, page);
	return region_write(d, 0, page, e);
}

/* With header_lock held. */
static int
header_put(struct dirty *d, struct err *e)
{
	bool broken = atomic_load(&d->broken);
	int rc = header_write(d, e);

	/* A header that is broken speaks of no other page, nor does one of bases. */
	if (!rc)
		rc = sync_own(d, broken || d->bases, e);
	if (!rc && broken)
		atomic_store(&d->broken_told, true);
	return rc;
}

int
region_write_header(struct dirty *d, struct err *e)
{
	int rc;

	if (!ownwait_lock(&d->header_lock, &d->abandoned))
		return is_parents(d, e);
	rc = header_put(d, e);
	pthread_mutex_unlock(&d->header_lock);
	return rc;
}

/* Under the lock to its end: who sees broken, and that it is untold, waits for that. */
void
region_fail(struct dirty *d, const struct err *why)
{
	if (!ownwait_lock(&d->header_lock, &d->abandoned))
		return;
	if (!atomic_load(&d->broken)) {
		(void)snprintf(d->why, sizeof(d->why), "%.*s", (int)sizeof(d->why) - 1, why->text);
		atomic_store(&d->broken, true);
	}
	/* If this fails too the thread tries again. */
	if (d->region.off)
		(void)header_put(d, NULL);
	pthread_mutex_unlock(&d->header_lock);
}

bool
dirty_untold(const struct dirty *d)
{
	return atomic_load(&d->broken) && !atomic_load(&d->broken_told);
}

/* Of a region that is in use: nobody writes to it from now on. */
bool
dirty_disown(struct dirty *d)
{
	bool due = false;

	if (!ownwait_lock(&d->io_lock, &d->abandoned))
		return false;
	if (ownwait_lock(&d->header_lock, &d->abandoned)) {
		due = d->region.off && dirty_untold(d);
		pthread_mutex_unlock(&d->header_lock);
	}
	if (due) {
		activity_suspend(d);
		d->region.off = 0;
		d->local->meta.dirty_off = d->local->meta.dirty_len = 0;
		activity_resume(d, false);
	}
	pthread_mutex_unlock(&d->io_lock);
	return due;
}

void
dirty_recorded(struct dirty *d)
{
	if (!ownwait_lock(&d->io_lock, &d->abandoned))
		return;
	if (ownwait_lock(&d->header_lock, &d->abandoned)) {
		if (!d->region.off && atomic_load(&d->broken))
			atomic_store(&d->broken_told, true);
		pthread_mutex_unlock(&d->header_lock);
	}
	pthread_mutex_unlock(&d->io_lock);
}

/* ---- bits ---- */

static int
map_write(struct dirty *d, unsigned replica, unsigned page, struct err *e)
{
	struct track *t = &d->track[replica];
	uint64_t words[DIRTYMAP_PAGE_WORDS] = {0};
	uint8_t bytes[DIRTYPAGE_SIZE];
	uint64_t epoch, index;

	pthread_rwlock_rdlock(&d->maps_lock);
	if (t->current)
		dirtymap_page_get(t->current, page, words);
	if (t->batch)
		dirtymap_page_get(t->batch, page, words);
	epoch = t->worth.epoch;
	pthread_rwlock_unlock(&d->maps_lock);
	index = dirtypage_index(&d->region.layout, replica, page);
	dirtypage_map_encode(words, &d->region.pool, index, epoch, bytes);
	return region_write(d, index, bytes, e);
}

/* The next 64 pages' marks, which are taken off: what comes from now on is written again. */
static uint64_t
changed_take(struct dirty *d, unsigned replica, unsigned word)
{
	struct track *t = &d->track[replica];
	uint64_t bits = 0;

	pthread_rwlock_rdlock(&d->maps_lock);
	if (t->changed && atomic_load(&t->changed[word]))
		bits = atomic_exchange(&t->changed[word], 0);
	pthread_rwlock_unlock(&d->maps_lock);
	return bits;
}

int
region_write_maps(struct dirty *d, bool *any, struct err *e)
{
	uint64_t pages = dirtymap_pages_of(d->region.layout.pool_size, d->shift);
	int rc = 0;

	*any = false;
	for (unsigned i = 0; i < d->count; i++) {
		for (unsigned w = 0; w < (pages + 63) / 64 && !rc; w++) {
			uint64_t bits = changed_take(d, i, w);

			for (; bits && !rc; bits &= bits - 1) {
				rc = map_write(d, i, w * 64 + (unsigned)__builtin_ctzll(bits), e);
				*any = true;
			}
		}
	}
	return rc;
}

/* ---- making and dropping ---- */

uint64_t
region_place(const struct sidecar *meta, uint64_t len)
{
	const struct range taken[] = {
		{meta->ring_off, meta->ring_len},
		{meta->dirty_off, meta->dirty_len},
		{meta->journal_off, meta->journal_len},
		{meta->log_off, meta->log_len},
	};
	const unsigned count = sizeof(taken) / sizeof(taken[0]);
	uint64_t at = SIDECAR_SIZE;

	for (unsigned i = 0; i < count; i++) {
		const struct range *r = &taken[i];

		if (r->len && at < r->off + r->len && r->off < at + len) {
			at = r->off + r->len;
			i = UINT32_MAX; /* from the first one again */
		}
	}
	return at;
}

static uint64_t
sidecar_end(const struct sidecar *meta)
{
	uint64_t end = SIDECAR_SIZE;

	if (meta->ring_len && meta->ring_off + meta->ring_len > end)
		end = meta->ring_off + meta->ring_len;
	if (meta->dirty_len && meta->dirty_off + meta->dirty_len > end)
		end = meta->dirty_off + meta->dirty_len;
	if (meta->journal_len && meta->journal_off + meta->journal_len > end)
		end = meta->journal_off + meta->journal_len;
	if (meta->log_len && meta->log_off + meta->log_len > end)
		end = meta->log_off + meta->log_len;
	return end;
}

/* Only space: it may fail. */
void
region_trim(struct dirty *d)
{
	if (d->local->path && d->local->fd >= 0)
		(void)!ftruncate(d->local->fd, (off_t)sidecar_end(&d->local->meta));
}

/* Give back the space of a region that the sidecar no longer names. */
static void
space_release(struct dirty *d, uint64_t off, uint64_t len)
{
	if (len)
		(void)fallocate(d->local->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)off, (off_t)len);
	region_trim(d);
}

/* Let the sidecar name another region, or none. */
static int
region_name(struct dirty *d, uint64_t off, uint64_t len, struct err *e)
{
	struct sidecar *meta = &d->local->meta;
	uint64_t old_off = meta->dirty_off, old_len = meta->dirty_len;
	int rc;

	meta->dirty_off = off;
	meta->dirty_len = len;
	rc = local_store(d->local, e);
	if (rc) {
		/* One copy may name it: its space stays. */
		meta->dirty_off = old_off;
		meta->dirty_len = old_len;
		return rc;
	}
	space_release(d, old_off, old_len);
	return 0;
}

static int
region_write_all(struct dirty *d, struct err *e)
{
	uint64_t pages = dirtymap_pages_of(d->region.layout.pool_size, d->shift);
	int rc = 0;

	for (unsigned i = 0; i < d->count && !rc; i++) {
		for (unsigned p = 0; p < pages && !rc; p++) {
			if (p % 64 == 0)
				(void)changed_take(d, i, p / 64);
			rc = map_write(d, i, p, e);
		}
	}
	if (!rc)
		rc = activity_format(d, e);
	if (!rc)
		rc = header_write(d, e);
	return rc ? rc : sync_own(d, true, e);
}

static int
space_take(struct dirty *d, uint64_t off, uint64_t len, struct err *e)
{
	int ret = filewrite_allocate(d->local->fd, (off_t)off, (off_t)len);

	if (ret)
		return err_errno(e, err_from_errno(ret), ret,
				 "%s: %" PRIu64 " bytes for the dirty map", d->local->path, len);
	return 0;
}

/* What the pages' places followed from before. */
struct region_was {
	uint64_t off;
	struct gen_id pool;
	struct dirtypage_header layout;
};

static struct region_was
region_is(const struct dirty *d)
{
	return (struct region_was){d->region.off, d->region.pool, d->region.layout};
}

/* What is told of it is told where the sidecar looks. */
static void
region_return(struct dirty *d, const struct region_was *was)
{
	d->region.off = was->off;
	d->region.pool = was->pool;
	d->region.layout = was->layout;
}

/* A new one is on media, and no sidecar names it. */
static int
region_prepare(struct dirty *d, struct range *at, struct err *e)
{
	struct dirtypage_header layout = {
		.count = d->count,
		.shift = d->shift,
		/* A log that nobody keeps has not grown with the pool. */
		.extent_shift = d->keep ? atomic_load(&d->activity.log.shift)
					: dirtypage_extent_shift(d->pool_size),
		/* What lies behind is dirty: so there are no maps to write. */
		.pool_size =
			d->bases && d->pool_size > DIRTYPAGE_SIZE ? DIRTYPAGE_SIZE : d->pool_size,
	};
	struct region_was was = region_is(d);
	int rc;

	d->sync_fd = local_again(d->local);
	at->len = dirtypage_region_len(&layout);
	at->off = region_place(&d->local->meta, at->len);
	rc = space_take(d, at->off, at->len, e);
	if (rc)
		return rc;
	d->region.off = at->off;
	d->region.layout = layout;
	d->region.pool = d->local->meta.pool_uuid;
	rc = region_write_all(d, e);
	if (rc)
		region_return(d, &was);
	return rc;
}

int
region_rebuild(struct dirty *d, struct err *e)
{
	static const uint8_t none[DIRTYPAGE_SIZE];
	struct region_was was = region_is(d);
	struct range at;
	int rc = region_prepare(d, &at, e);

	if (rc)
		return rc;
	rc = region_name(d, at.off, at.len, e);
	if (!rc) {
		/* Its header says what is wrong with the one before. */
		atomic_store(&d->broken_told, atomic_load(&d->broken));
		return 0;
	}
	/* One copy of the sidecar may name it, and from now on nobody keeps it up. */
	if (!region_write(d, 0, none, NULL))
		(void)sync_own(d, true, NULL);
	region_return(d, &was);
	return rc;
}

bool
region_make_bases(struct dirty *d)
{
	struct sidecar *meta = &d->local->meta;
	struct range at = {0};
	bool made;

	made = d->local->fd >= 0 && !region_prepare(d, &at, NULL);
	meta->dirty_off = made ? at.off : 0;
	meta->dirty_len = made ? at.len : 0;
	return made;
}

int
region_disown(struct dirty *d, struct err *e)
{
	int rc;

	d->region.off = 0;
	d->local->meta.dirty_off = d->local->meta.dirty_len = 0;
	rc = local_store(d->local, e);
	if (rc)
		return rc;
	atomic_store(&d->broken_told, atomic_load(&d->broken));
	region_trim(d);
	return 0;
}

/* ---- reading ---- */

static bool
load_read(void *arg, uint64_t index, uint8_t page[DIRTYPAGE_SIZE])
{
	return page_read(arg, index, page, NULL) == 0;
}

struct marking {
	struct dirty *d;
	unsigned replica;
};

static void
load_mark(void *arg, uint64_t off, uint64_t len)
{
	const struct marking *m = arg;

	dirty_mark(m->d, m->replica, off, len);
}

/* Take over what is known of a replica. Without memory for it nothing is to be trusted. */
static void
load_replica(struct dirty *d, const struct dirtyload *l, unsigned replica)
{
	struct track *t = &d->track[replica];
	int slot = dirtyload_slot(l, d->name[replica]);
	struct marking m = {.d = d, .replica = replica};

	if (slot < 0 && !(l->covered && dirtyload_names(l, d->name[replica])))
		return;
	if (dirty_track_new(d, replica, NULL)) {
		t->worth.suspect = true;
		return;
	}
	t->worth.base = slot < 0 ? d->found : l->h.slot[slot].base;
	t->worth.untrusted |= slot >= 0 && l->h.slot[slot].untrusted;
	if (dirtyload_marks(l, slot, load_mark, &m, NULL))
		t->worth.suspect = t->worth.untrusted = true;
}

void
region_load(struct dirty *d, bool crashed)
{
	const struct sidecar *meta = &d->local->meta;
	const struct dirtyload_from from = {.read = load_read,
					    .arg = d,
					    .pool = meta->pool_uuid,
					    .len = meta->dirty_len,
					    .pool_size = d->pool_size,
					    .recorded = d->local->recorded,
					    .file = d->file,
					    .crashed = crashed,
					    .keep = d->keep};
	struct dirtyload l;

	dirtyload_begin(&l, &from);
	for (unsigned i = 0; i < d->count; i++) {
		d->track[i].worth.suspect = l.suspect;
		load_replica(d, &l, i);
	}
}
