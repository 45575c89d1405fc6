/* SPDX-License-Identifier: BSD-3-Clause */
#include "pooljournal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "filesystem.h"
#include "lineage.h"
#include "poolapply.h"
#include "poolkept.h"
#include "space.h"
#include "wire.h"

#define TIDY         (64U << 20) /* of space given back at once: a hundredth of a second */
#define TIDY_LAST_NS NS_PER_S

/*
 * The space of one that is gone is kept for a while: the next round of a resync writes over it,
 * and memory that is there costs a fraction of memory that has to be had.
 */
#define KEEP_NS (2 * NS_PER_S)

/*
 * Of what is staged, and of what is kept, no more than twice this is still on its way to media: the
 * commit, for which the initiator's program stands still, has only the rest of it to wait for.
 */
#define WRITEBACK (16U << 20)

/*
 * In memory so much is to be free, or all that it has yet to take: more may have been asked for at
 * its beginning than ever comes, and some others take theirs meanwhile.
 */
#define MEMORY_FREE (16ULL * SPACE_SHARE)

/* Looked at in one call, so that it is soon answered; what is asked for space may have to be read.
 */
#define KEPT_BYTES (8U << 20)
#define KEPT_NS    (NS_PER_S / 2)

enum phase {
	PHASE_NONE,
	PHASE_RESUMING, /* what an earlier session has left is looked at */
	PHASE_FILLING,
	PHASE_COMMITTED,
	PHASE_DOUBT, /* the sidecar's copies may tell different things, or the journal is no good */
};

struct pooljournal {
	int fd;  /* the sidecar's: its updates, its length */
	int own; /* another of it, for what is in the region */
	_Atomic int phase;
	pthread_mutex_t lock;  /* guards what append changes, and room */
	uint64_t off;          /* of the region in the sidecar's file */
	uint64_t room;         /* for messages */
	uint64_t share;        /* of it what may be filled before memory is asked for again */
	uint64_t old, old_end; /* of what an earlier one has left, not to be written over */
	uint64_t writing;   /* of the messages' bytes those before it are on their way to media */
	uint64_t written;   /* and those before this have come there */
	_Atomic int failed; /* why no message is taken any more: one may be on its way still */
	struct journal_commit is; /* what is in it; state and chain once it is committed */
	struct poolkept *kept;    /* what is still to be looked at */
	struct poolapply *apply;  /* from its first call to its last */
	bool waited;              /* of the chain, as in the sidecar */
	bool untidy;              /* the file may be longer than its regions */
	bool resumed;             /* another session's is in it */
	uint64_t ended_ns;        /* when it last became so by a journal's end */
};

int
pooljournal_new(int sidecar_fd, struct pooljournal **out, struct err *e)
{
	struct pooljournal *j = calloc(1, sizeof(*j));
	int rc;

	*out = j;
	if (!j)
		return err_set(e, REPL_E_NOMEM, "no memory for a journal");
	j->fd = sidecar_fd;
	j->own = filesystem_again(sidecar_fd, O_RDWR);
	/* Without /proc it is the same one. */
	if (j->own < 0)
		j->own = fcntl(sidecar_fd, F_DUPFD_CLOEXEC, 0);
	j->untidy = true; /* by a writer that was killed */
	(void)pthread_mutex_init(&j->lock, NULL);
	if (j->own >= 0)
		return 0;
	rc = err_errno(e, err_from_errno(errno), errno, "journal: open the sidecar again");
	*out = NULL;
	pooljournal_free(j);
	return rc;
}

static void
journal_forget(struct pooljournal *j)
{
	atomic_store(&j->phase, PHASE_NONE);
	poolapply_free(j->apply);
	j->apply = NULL;
	poolkept_free(j->kept);
	j->kept = NULL;
}

void
pooljournal_free(struct pooljournal *j)
{
	if (!j)
		return;
	journal_forget(j);
	if (j->own >= 0)
		(void)close(j->own);
	(void)pthread_mutex_destroy(&j->lock);
	free(j);
}

bool
pooljournal_is_open(const struct pooljournal *j)
{
	return j && atomic_load_explicit(&j->phase, memory_order_relaxed) != PHASE_NONE;
}

/* ---- the file ---- */

static int
file_write(int fd, const uint8_t *p, size_t len, uint64_t off, struct err *e)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, n < 0 ? err_from_errno(errno) : REPL_E_IO, errno,
					 "journal: write");
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * Send what was written to media, without waiting but for what was sent before. It proves
 * nothing: that is the sync's part, which has little left to do.
 */
static int
file_writeback(int fd, uint64_t off, uint64_t len, uint64_t before, struct err *e)
{
	const unsigned wait =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	/* Not every file system knows it; an error of the device is one. */
	if (sync_file_range(fd, (off_t)off, (off_t)len, SYNC_FILE_RANGE_WRITE) == 0 &&
	    (before == 0 || sync_file_range(fd, (off_t)(off - before), (off_t)before, wait) == 0))
		return 0;
	if (errno == EINVAL || errno == ENOSYS || errno == ESPIPE)
		return 0;
	return err_errno(e, REPL_E_IO, errno, "journal: writing it back");
}

/* Of the messages what has not been sent yet, once it is enough. */
static int
messages_writeback(struct pooljournal *j, struct err *e)
{
	uint64_t len = j->is.bytes - j->writing;
	int rc;

	if (len < WRITEBACK)
		return 0;
	rc = file_writeback(j->own, j->off + JOURNAL_DATA + j->writing, len,
			    j->writing - j->written, e);
	j->written = j->writing;
	j->writing = j->is.bytes;
	return rc;
}

static int
file_sync(int fd, struct err *e)
{
	return fdatasync(fd) ? err_errno(e, REPL_E_IO, errno, "journal: sync") : 0;
}

/* ---- begin ---- */

static int
journal_format(struct pooljournal *j, const struct sidecar *meta, struct err *e)
{
	struct journal_header h = {.epoch = meta->epoch, .pool_uuid = meta->pool_uuid};
	uint8_t page[JOURNAL_PAGE];
	int rc;

	journal_header_encode(&h, page);
	rc = file_write(j->own, page, sizeof(page), j->off, e);
	return rc ? rc : file_sync(j->own, e);
}

static uint64_t
region_end(uint64_t off, uint64_t len)
{
	return len ? off + len : SIDECAR_SIZE;
}

/* Behind all other regions. */
static uint64_t
other_end(const struct sidecar *meta)
{
	uint64_t dirty = region_end(meta->dirty_off, meta->dirty_len);
	uint64_t ring = region_end(meta->ring_off, meta->ring_len);
	uint64_t log = region_end(meta->log_off, meta->log_len);
	uint64_t record = region_end(meta->position_off, meta->position_len);

	if (ring > dirty)
		dirty = ring;
	if (record > dirty)
		dirty = record;
	return log > dirty ? log : dirty;
}

static int
journal_name(struct pooljournal *j, struct sidecar *meta, uint64_t len, struct err *e)
{
	struct sidecar next = *meta;
	int rc;

	next.journal_off = j->off;
	next.journal_len = len;
	rc = sidecar_write(j->fd, &next, e);
	if (rc)
		return rc;
	*meta = next;
	return 0;
}

/*
 * What was not written once is not to be written over: ext4 goes on to call such blocks unwritten,
 * and another sync of them reports success. To cut all of it may take long: so it goes in pieces,
 * each before the journal gets there.
 */
static int
old_cut(struct pooljournal *j, uint64_t end, struct err *e)
{
	while (j->old < j->old_end && j->old < end) {
		uint64_t to = j->old_end - j->old > TIDY ? j->old + TIDY : j->old_end;

		if (!space_punch(j->own, j->old, to))
			return err_errno(e, REPL_E_IO, errno, "journal: cut what was there");
		j->old = to;
	}
	return 0;
}

/* All from there on where it is little, or can't be done in pieces. */
static int
old_begin(struct pooljournal *j, uint64_t from, struct err *e)
{
	struct stat st;

	if (fstat(j->fd, &st))
		return err_errno(e, REPL_E_IO, errno, "journal: the sidecar's length");
	j->old = from;
	j->old_end = (uint64_t)st.st_size;
	if (j->old + TIDY < j->old_end && old_cut(j, from + JOURNAL_DATA, NULL) == 0)
		return 0;
	j->old_end = 0;
	if (ftruncate(j->fd, (off_t)from))
		return err_errno(e, REPL_E_IO, errno, "journal: cut the sidecar");
	return 0;
}

/* What a region of len has yet to take: the blocks of what an earlier one has left are at hand. */
static int
journal_lacks(const struct pooljournal *j, uint64_t len, uint64_t *lacks, uint64_t *size,
	      struct err *e)
{
	struct stat st;
	uint64_t taken;

	if (fstat(j->fd, &st))
		return err_errno(e, REPL_E_IO, errno, "journal: the sidecar's length");
	taken = (uint64_t)st.st_blocks * 512;
	taken = taken > j->off ? taken - j->off : 0;
	*lacks = taken < len ? len - taken : 0;
	*size = (uint64_t)st.st_size;
	return 0;
}

/* The file gets no shorter. */
static int
journal_space(const struct pooljournal *j, uint64_t len, struct err *e)
{
	uint64_t lacks, size;
	int rc = journal_lacks(j, len, &lacks, &size, e);

	if (!rc && lacks)
		rc = space_is_free(j->fd, lacks, len, e);
	if (!rc && size < j->off + len)
		rc = space_extend_sparse(j->fd, j->off + len, e);
	return rc;
}

/* As others take memory it is asked for again, before messages up to end are written. */
static int
journal_share(struct pooljournal *j, uint64_t end, struct err *e)
{
	uint64_t len = JOURNAL_DATA + j->room, lacks, size, share;
	int rc;

	if (end <= j->share)
		return 0;
	rc = journal_lacks(j, len, &lacks, &size, e);
	if (!rc)
		rc = space_share(j->fd, lacks < MEMORY_FREE ? lacks : MEMORY_FREE, len, &share, e);
	if (rc)
		return err_prefix(e, "STAGE");
	j->share = share < UINT64_MAX - j->is.bytes ? j->is.bytes + share : UINT64_MAX;
	return 0;
}

static int
journal_make(struct pooljournal *j, struct sidecar *meta, uint64_t len, struct err *e)
{
	int rc = 0;

	j->off = other_end(meta);
	j->untidy = true;
	if (j->failed || j->ended_ns == 0)
		rc = old_begin(j, j->off, e);
	else if (j->old < j->off)
		j->old = j->off; /* another region is there by now */
	if (!rc)
		rc = journal_space(j, len, e);
	if (!rc)
		rc = journal_format(j, meta, e);
	if (rc) {
		j->failed = rc;
		return rc;
	}
	rc = journal_name(j, meta, len, e);
	if (rc)
		return rc;
	memset(&j->is, 0, sizeof(j->is));
	j->is.epoch = meta->epoch;
	j->failed = 0;
	j->resumed = false;
	j->writing = j->written = 0;
	j->share = 0;
	j->room = len - JOURNAL_DATA;
	atomic_store(&j->phase, PHASE_FILLING);
	return 0;
}

/* The data thread may be writing below the old end meanwhile. */
static int
journal_grow(struct pooljournal *j, struct sidecar *meta, uint64_t len, struct err *e)
{
	int rc = journal_space(j, len, e);

	if (!rc)
		rc = journal_name(j, meta, len, e);
	if (rc)
		return rc;
	pthread_mutex_lock(&j->lock);
	j->room = len - JOURNAL_DATA;
	pthread_mutex_unlock(&j->lock);
	return 0;
}

int
pooljournal_begin(struct pooljournal *j, struct sidecar *meta, uint64_t bytes, struct err *e)
{
	int phase = atomic_load(&j->phase);
	uint64_t len;

	if (phase == PHASE_RESUMING)
		return err_set(e, REPL_E_PROTOCOL,
			       "the journal is not looked through: journal.kept to its end first");
	if (phase != PHASE_NONE && phase != PHASE_FILLING)
		return err_set(e, REPL_E_PROTOCOL,
			       "the journal is committed: journal.apply to its end first");
	if (bytes > INT64_MAX / 2)
		return err_set(e, REPL_E_INVAL, "journal of %" PRIu64 " bytes", bytes);
	len = JOURNAL_DATA + (bytes + JOURNAL_PAGE - 1) / JOURNAL_PAGE * JOURNAL_PAGE;
	if (phase == PHASE_NONE)
		return journal_make(j, meta, len, e);
	return len <= meta->journal_len ? 0 : journal_grow(j, meta, len, e);
}

int
pooljournal_spare(struct pooljournal *j, uint64_t bytes, struct err *e)
{
	uint64_t staged = 0;

	pthread_mutex_lock(&j->lock);
	if (atomic_load(&j->phase) == PHASE_FILLING)
		staged = j->is.bytes;
	pthread_mutex_unlock(&j->lock);
	/* It has its space in the pool already, and gives back as much. */
	return bytes / 2 > staged ? space_is_free(j->fd, bytes - 2 * staged, bytes, e) : 0;
}

/* ---- resume ---- */

bool
pooljournal_is_left(const struct pooljournal *j, const struct sidecar *meta)
{
	return meta->journal_len && !meta->journal_committed && !pooljournal_is_open(j);
}

bool
pooljournal_is_resumable(const struct pooljournal *j, const struct sidecar *meta)
{
	int phase = atomic_load(&j->phase);

	return pooljournal_is_left(j, meta) || phase == PHASE_RESUMING ||
	       (phase == PHASE_FILLING && !j->failed && j->is.bytes > 0);
}

/*
 * What the session before has written may be lost, and in memory alone, as if it were on media: it
 * is read from there.
 */
static int
left_settle(const struct pooljournal *j, const struct sidecar *meta, struct err *e)
{
	int rc = file_sync(j->own, e);

	if (!rc)
		(void)posix_fadvise(j->own, (off_t)meta->journal_off, (off_t)meta->journal_len,
				    POSIX_FADV_DONTNEED);
	return rc;
}

int
pooljournal_resume(struct pooljournal *j, const struct sidecar *meta, struct err *e)
{
	struct journal_header h;
	uint8_t page[JOURNAL_PAGE];
	int rc;

	j->off = meta->journal_off;
	if (meta->journal_len <= JOURNAL_DATA || j->off < other_end(meta))
		return err_set(e, REPL_E_CORRUPT, "journal: a region as no writer leaves it");
	j->room = meta->journal_len - JOURNAL_DATA;
	rc = left_settle(j, meta, e);
	if (!rc)
		rc = poolapply_read(j->own, page, sizeof(page), j->off, e);
	if (!rc)
		rc = journal_header_decode(page, &h, e);
	if (!rc && !gen_id_equal(&h.pool_uuid, &meta->pool_uuid))
		rc = err_set(e, REPL_E_CORRUPT, "journal: it is not this pool's");
	if (!rc)
		rc = journal_format(j, meta, e);
	if (!rc)
		rc = poolkept_new(j->own, j->off + JOURNAL_DATA, j->room, meta->epoch, &j->kept, e);
	if (rc)
		return rc;
	memset(&j->is, 0, sizeof(j->is));
	j->is.epoch = meta->epoch;
	j->failed = 0;
	j->writing = j->written = 0;
	j->share = 0;
	j->resumed = true;
	atomic_store(&j->phase, PHASE_RESUMING);
	return 0;
}

/* All that is whole was seen: what is behind means nothing, and goes as the next ones come. */
static int
kept_end(struct pooljournal *j, const struct sidecar *meta, struct err *e)
{
	uint64_t end = j->off + JOURNAL_DATA + j->is.bytes;
	int rc = old_begin(j, end, e);

	if (!rc && j->old_end < j->off + meta->journal_len)
		rc = space_extend_sparse(j->own, j->off + meta->journal_len, e);
	if (rc)
		return rc;
	poolkept_free(j->kept);
	j->kept = NULL;
	j->untidy = true;
	/* The data thread sees all of it. */
	pthread_mutex_lock(&j->lock);
	atomic_store(&j->phase, PHASE_FILLING);
	pthread_mutex_unlock(&j->lock);
	return 0;
}

static int
kept_take(struct pooljournal *j, bool asks, struct pmem_map *map, const struct hash_key *key,
	  const struct wire_commit_view *v, struct journal_kept *kept, struct err *e)
{
	const uint8_t *from = v->payload, *msg;
	size_t len;

	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);

		/* Had once; a power cut may have taken it, or another file shares it by now. */
		if (asks && !pmem_map_back(map, en.off, en.len))
			return err_set(e, REPL_E_NOSPC,
				       "journal: no space is left for %u bytes at %" PRIu64
				       " of the pool",
				       en.len, en.off);
		kept[i].off = en.off;
		kept[i].len = en.len;
		hash128_keyed(key, from, en.len, kept[i].hash);
		from += en.len;
	}
	msg = wire_commit_message(v, &len);
	j->is.chain = wire_stage_chain(j->is.chain, msg);
	j->is.bytes += len;
	j->is.count++;
	/* Its header is written anew: a page of each is dirty. */
	return messages_writeback(j, e);
}

int
pooljournal_kept(struct pooljournal *j, const struct sidecar *meta, bool asks, struct pmem_map *map,
		 const struct hash_key *key, struct journal_kept *kept, unsigned max,
		 unsigned *count, uint64_t *bytes, bool *more, struct err *e)
{
	uint64_t begin = j->is.bytes, end_ns = clock_now_ns() + KEPT_NS;
	struct wire_commit_view v;
	int rc = 0;

	*count = 0;
	*more = true;
	if (atomic_load(&j->phase) != PHASE_RESUMING)
		return err_set(e, REPL_E_PROTOCOL, "no journal is being resumed");
	while (!rc && *more && *count + JOURNAL_KEPT_MIN <= max &&
	       j->is.bytes - begin < KEPT_BYTES && (*count == 0 || clock_now_ns() < end_ns)) {
		*more = poolkept_next(j->kept, pmem_map_size(map), &v);
		if (*more)
			rc = kept_take(j, asks, map, key, &v, kept + *count, e);
		if (*more && !rc)
			*count += v.entry_count;
	}
	if (!rc && !*more)
		rc = kept_end(j, meta, e);
	*bytes = j->is.bytes;
	return rc;
}

bool
pooljournal_is_told(struct pooljournal *j, uint64_t *bytes)
{
	bool told = j->resumed && atomic_load(&j->phase) == PHASE_FILLING;

	pthread_mutex_lock(&j->lock);
	*bytes = j->is.bytes;
	pthread_mutex_unlock(&j->lock);
	return told;
}

/* ---- append ---- */

static int
append_locked(struct pooljournal *j, const uint8_t *msg, size_t len, struct err *e)
{
	uint64_t end = j->is.bytes + len;

	if (atomic_load(&j->phase) != PHASE_FILLING)
		return err_set(e, REPL_E_PROTOCOL, "STAGE when no journal takes any");
	if (j->failed)
		return err_set(e, j->failed, "STAGE to a journal that has failed");
	if (len > j->room - j->is.bytes)
		j->failed = err_set(e, REPL_E_NOSPC,
				    "STAGE of %zu bytes, the journal has room for %" PRIu64, len,
				    j->room - j->is.bytes);
	else
		j->failed = journal_share(j, end, e);
	if (!j->failed)
		j->failed = old_cut(j, j->off + JOURNAL_DATA + end, e);
	if (!j->failed)
		j->failed = file_write(j->own, msg, len, j->off + JOURNAL_DATA + j->is.bytes, e);
	if (j->failed)
		return j->failed;
	j->is.chain = wire_stage_chain(j->is.chain, msg);
	j->is.bytes += len;
	j->is.count++;
	j->failed = messages_writeback(j, e);
	return j->failed;
}

int
pooljournal_append(struct pooljournal *j, const uint8_t *msg, size_t len, struct err *e)
{
	int rc;

	pthread_mutex_lock(&j->lock);
	rc = append_locked(j, msg, len, e);
	pthread_mutex_unlock(&j->lock);
	return rc;
}

void
pooljournal_fail(struct pooljournal *j, int status)
{
	pthread_mutex_lock(&j->lock);
	if (!j->failed)
		j->failed = status;
	pthread_mutex_unlock(&j->lock);
}

/* ---- commit ---- */

/* From here on nothing is added. */
static int
journal_seal(struct pooljournal *j, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&j->lock);
	if (atomic_load(&j->phase) != PHASE_FILLING)
		rc = err_set(e, REPL_E_PROTOCOL, "no journal was begun, or it is committed");
	else if (j->failed)
		rc = err_set(e, j->failed, "the journal lacks what could not be added to it");
	else
		atomic_store(&j->phase, PHASE_DOUBT);
	pthread_mutex_unlock(&j->lock);
	return rc;
}

int
pooljournal_commit(struct pooljournal *j, struct sidecar *meta, enum sidecar_state state,
		   const struct generation *g, uint64_t position, bool waited, struct err *e)
{
	struct sidecar next = *meta;
	uint8_t page[JOURNAL_PAGE];
	int rc = journal_seal(j, e);

	if (rc)
		return rc;
	j->is.state = state;
	j->is.has_generation = g != NULL;
	j->is.position = position;
	j->waited = waited;
	if (g)
		j->is.generation = *g;
	journal_commit_encode(&j->is, page);
	rc = file_write(j->own, page, sizeof(page), j->off + JOURNAL_PAGE, e);
	/* Pages and messages in one: only the sidecar says that they count. */
	if (!rc)
		j->failed = rc = file_sync(j->own, e);
	next.journal_committed = true;
	if (!rc)
		rc = sidecar_write(j->fd, &next, e);
	if (rc)
		return rc;
	*meta = next;
	atomic_store(&j->phase, PHASE_COMMITTED);
	return 0;
}

/* ---- apply ---- */

/* The region's name goes, with whatever else *next says; its space is given back later. */
static int
journal_unname(struct pooljournal *j, struct sidecar *meta, struct sidecar *next, struct err *e)
{
	int rc;

	next->journal_off = next->journal_len = 0;
	next->journal_committed = false;
	rc = sidecar_write(j->fd, next, e);
	if (rc)
		return rc;
	*meta = *next;
	journal_forget(j);
	j->untidy = true;
	j->ended_ns = clock_now_ns();
	return 0;
}

static int
apply_end(struct pooljournal *j, struct sidecar *meta, struct err *e)
{
	struct sidecar next = *meta;

	/* One that another hand has cut is not made whole by a part. */
	if (meta->state == SIDECAR_INCONSISTENT)
		return journal_unname(j, meta, &next, e);
	next.state = j->is.state;
	if (j->is.has_generation) {
		next.generation = j->is.generation;
		next.position = 0;
		next.waited = j->waited;
	}
	if (j->is.position)
		lineage_part(&next, j->is.position);
	return journal_unname(j, meta, &next, e);
}

int
pooljournal_apply(struct pooljournal *j, struct sidecar *meta, struct pmem_map *map, uint64_t max,
		  struct journal_progress *p, struct err *e)
{
	int rc = 0;

	p->done = p->total = j->is.bytes;
	if (atomic_load(&j->phase) != PHASE_COMMITTED)
		return err_set(e, REPL_E_PROTOCOL, "no journal is committed");
	if (!j->apply)
		rc = poolapply_new(j->own, j->off + JOURNAL_DATA, &j->is, &j->apply, e);
	if (!rc)
		rc = poolapply_run(j->apply, map, max, e);
	if (rc)
		return rc;
	p->done = poolapply_done(j->apply);
	return p->done < p->total ? 0 : apply_end(j, meta, e);
}

/* ---- its end ---- */

int
pooljournal_drop(struct pooljournal *j, struct sidecar *meta, struct err *e)
{
	bool left = pooljournal_is_left(j, meta);
	struct sidecar next = *meta;
	int rc;

	if (meta->journal_len == 0)
		return 0;
	if (atomic_load(&j->phase) == PHASE_COMMITTED)
		return err_set(e, REPL_E_PROTOCOL,
			       "the journal is committed: journal.apply to its end");
	left |= j->resumed;
	/* A message may be on its way into it. */
	pthread_mutex_lock(&j->lock);
	atomic_store(&j->phase, PHASE_DOUBT);
	pthread_mutex_unlock(&j->lock);
	rc = journal_unname(j, meta, &next, e);
	/* Nobody knows what of another session's was written: it is cut before the next one. */
	if (!rc && left)
		j->ended_ns = 0;
	return rc;
}

int
pooljournal_spoil(struct pooljournal *j, struct sidecar *meta, struct err *e)
{
	struct sidecar next = *meta;

	next.state = SIDECAR_INCONSISTENT;
	return journal_unname(j, meta, &next, e);
}

uint64_t
pooljournal_tidy_at(const struct pooljournal *j, const struct sidecar *meta)
{
	if (!j->untidy || meta->journal_len)
		return UINT64_MAX;
	return j->ended_ns ? j->ended_ns + KEEP_NS : 0;
}

bool
pooljournal_tidy(struct pooljournal *j, const struct sidecar *meta)
{
	uint64_t end = other_end(meta);
	struct sidecar is;
	struct stat st;
	bool repair;

	if (!j->untidy || meta->journal_len)
		return false;
	j->untidy = fstat(j->fd, &st) == 0 && (uint64_t)st.st_size > end;
	if (!j->untidy)
		return false;
	/* An update that failed may have named a region all the same. */
	if (sidecar_read(j->fd, &is, &repair, NULL) || repair || is.journal_len ||
	    other_end(&is) != end) {
		j->untidy = false;
		return false;
	}
	if ((uint64_t)st.st_size - end > TIDY)
		end = (uint64_t)st.st_size - TIDY;
	/* Only space: what makes the next region cuts it as well. */
	j->untidy = ftruncate(j->fd, (off_t)end) == 0;
	if (j->untidy && j->old_end > end)
		j->old_end = end;
	return true;
}

void
pooljournal_tidy_last(struct pooljournal *j, const struct sidecar *meta)
{
	uint64_t end_ns = clock_now_ns() + TIDY_LAST_NS;

	/* The next writer has the rest to do. */
	while (pooljournal_tidy(j, meta) && clock_now_ns() < end_ns)
		;
}

static int
load_pages(struct pooljournal *j, const struct sidecar *meta, struct err *e)
{
	struct journal_header h;
	uint8_t page[JOURNAL_PAGE];
	int rc;

	rc = poolapply_read(j->own, page, sizeof(page), j->off, e);
	if (!rc)
		rc = journal_header_decode(page, &h, e);
	if (!rc)
		rc = poolapply_read(j->own, page, sizeof(page), j->off + JOURNAL_PAGE, e);
	if (!rc)
		rc = journal_commit_decode(page, &j->is, e);
	if (rc)
		return rc;
	if (memcmp(&h.pool_uuid, &meta->pool_uuid, sizeof(h.pool_uuid)) != 0 ||
	    h.epoch != j->is.epoch || h.epoch > meta->epoch)
		return err_set(e, REPL_E_CORRUPT, "journal: it is not this pool's");
	if (meta->journal_len < JOURNAL_DATA || j->is.bytes > meta->journal_len - JOURNAL_DATA)
		return err_set(e, REPL_E_CORRUPT,
			       "journal: %" PRIu64 " bytes in a region of "
			       "%" PRIu64,
			       j->is.bytes, meta->journal_len);
	return 0;
}

int
pooljournal_load(struct pooljournal *j, const struct sidecar *meta, struct err *e)
{
	int rc;

	j->off = meta->journal_off;
	if (!meta->journal_committed)
		return 0;
	rc = load_pages(j, meta, e);
	if (rc)
		return rc;
	/*
	 * Amid a resync it has all that it had before. Of what was drained behind the last round
	 * nobody knows whether that waited for it.
	 */
	j->waited = meta->waited && j->is.state == SIDECAR_OUTDATED;
	atomic_store(&j->phase, PHASE_COMMITTED);
	return 0;
}
