/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a pool, with the lock that goes with it, and what is done with an open one. */
#include "poolstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "boot.h"
#include "clock.h"
#include "filesystem.h"
#include "lineage.h"
#include "lock.h"
#include "log.h"
#include "pooldevice.h"
#include "space.h"

/* Of a lock that was not to be had: only those have it who look at the pool, or read it. */
static bool
is_only_read(int sidecar_fd)
{
	if (!lock_take_shared(sidecar_fd, 0))
		return false;
	lock_drop(sidecar_fd);
	return true;
}

/*
 * Whoever has the lock is not on record: it is about to be, as a writer, or brings in as a reader
 * what the recorded one has left.
 */
static bool
is_entering(int sidecar_fd)
{
	bool is = !lock_look(sidecar_fd);

	lock_look_end(sidecar_fd);
	return is;
}

/* Nobody else gets the lock while that is looked at. */
static bool
is_writers(int sidecar_fd)
{
	bool is = lock_look(sidecar_fd) && !is_only_read(sidecar_fd);

	lock_look_end(sidecar_fd);
	return is;
}

int
pool_busy(int sidecar_fd, const char *name, struct err *e)
{
	struct sidecar meta;
	bool repair;

	bool known = sidecar_read(sidecar_fd, &meta, &repair, NULL) == 0;

	if (known && meta.primary)
		return err_set(e, REPL_E_BUSY,
			       "pool '%s' is a primary and in use on this machine by its own "
			       "program, or by one that reads it: end that first",
			       name);
	/* A killed writer stays on record. */
	if (is_only_read(sidecar_fd)) {
		(void)err_set(e, REPL_E_BUSY,
			      "pool '%s' is in use by another session that reads it, such as a "
			      "restore: see 'replctl status'",
			      name);
		return err_because(e, REPL_REASON_BEING_READ);
	}
	if (is_entering(sidecar_fd))
		return err_set(e, REPL_E_BUSY,
			       "pool '%s': another session is opening it and brings in what its "
			       "last writer has left: try again when that is done, see 'replctl "
			       "status'",
			       name);
	if (known && meta.writer_open && meta.writer[0])
		return err_set(e, REPL_E_BUSY, "pool '%s' is open for writing by %s", name,
			       meta.writer);
	return err_set(e, REPL_E_BUSY,
		       "pool '%s' is in use by another session: see 'replctl status'", name);
}

int
pool_use_lock(int fd, bool shared, const char *name, struct err *e)
{
	if (shared ? lock_take_shared(fd, LOCK_WRITER_MS) : lock_take(fd, LOCK_WRITER_MS))
		return 0;
	/* Where there are no such locks nobody has one. */
	if (errno != EWOULDBLOCK)
		return 0;
	return err_set(e, REPL_E_BUSY,
		       "pool '%s': a program on the target's machine has it open where it lies: "
		       "end that first",
		       name);
}

/* A device is locked when it is opened. */
static int
files_use_lock(const struct pool_files *f, bool shared, const char *name, struct err *e)
{
	return pooldevice_is_open(&f->st) ? 0 : pool_use_lock(f->fd, shared, name, e);
}

/* Who is entering may be a session that only clears away: its turn is short. */
static int
writer_lock(struct pool_files *f, const char *name, struct err *e)
{
	uint64_t deadline = clock_deadline(LOCK_ENTERING_MS);
	bool entering = true;

	while (!lock_enter(f->sidecar_fd, LOCK_WRITER_MS)) {
		if (errno != EWOULDBLOCK)
			return err_errno(e, err_from_errno(errno), errno, "pool '%s': lock", name);
		/* Once more behind one that was: it may have gone just now. */
		if (!entering || clock_left_ms(deadline) == 0)
			return pool_busy(f->sidecar_fd, name, e);
		entering = is_entering(f->sidecar_fd);
	}
	return pool_check_present(f, name, e);
}

/* ---- the receive ring ---- */

char *
pool_sidecar_path(const char *path)
{
	char *text = NULL;

	return asprintf(&text, "%s" SIDECAR_SUFFIX, path) < 0 ? NULL : text;
}

int
pool_files_map(const struct pool_files *f, const char *path, uint64_t size, bool write,
	       struct pmem_map **out, struct err *e)
{
	if (f->parts)
		return poolparts_map(f->parts, path, size, size, write, out, e);
	return pmem_map_new(f->fd, path, size, write, out, e);
}

/* Under the writer's lock, with both files open for writing. */
static int
ring_replay(struct pool_files *f, const char *path, struct sidecar *meta, struct err *e)
{
	char *sidecar = pool_sidecar_path(path);
	struct poolring *ring = NULL;
	struct pmem_map *map = NULL;
	uint64_t count = 0;
	int rc = sidecar ? 0 : err_set(e, REPL_E_NOMEM, "no memory for the receive ring");

	if (!rc)
		rc = poolring_open(f->sidecar_fd, sidecar, meta, &ring, e);
	if (!rc)
		rc = pool_files_map(f, path, meta->pool_size, true, &map, e);
	if (!rc)
		rc = poolring_replay(ring, map, &count, e);
	poolring_free(ring);
	pmem_map_free(map);
	free(sidecar);
	if (!rc)
		rc = poolring_drop(f->sidecar_fd, meta, e);
	if (!rc)
		log_info("pool '%s': %llu updates of a dead writer brought in from its receive "
			 "ring",
			 path, (unsigned long long)count);
	return rc;
}

/* Without it what is in the pool's file is not the pool. */
static bool
updates_due(const struct sidecar *meta)
{
	return meta->ring_len || (meta->journal_len && meta->journal_committed) || meta->log_len;
}

static bool
recovery_due(const struct sidecar *meta)
{
	return updates_due(meta) || meta->position_len;
}

static int
files_settle(const struct pool_files *f, struct err *e)
{
	for (const struct poolparts *r = f->parts; r; r = r->next)
		for (unsigned i = 0; i < r->count; i++)
			if (fsync(r->part[i].fd) != 0)
				return err_errno(e, REPL_E_IO, errno, "sync of part '%s'",
						 r->part[i].name);
	return fsync(f->fd) == 0 ? 0 : err_errno(e, REPL_E_IO, errno, "sync");
}

/*
 * What a program has stored in a pool of its own is the pool, whatever media have of it: in a
 * primary, or a replica that it uses where it lies, which has no writer of ours on record.
 */
static bool
memory_counts(const struct sidecar *meta)
{
	return meta->primary || !meta->writer[0];
}

/* As it is said in pool_flush_lost(). What is in memory of the files is synced before. */
static int
files_agree(const struct pool_files *f, bool memory, const char *path, struct err *e)
{
	enum pagecache_right right = memory ? PAGECACHE_MEMORY : PAGECACHE_MEDIA;
	uint64_t lost = 0;
	int rc;

	if (pooldevice_is_open(&f->st))
		return 0;
	rc = files_settle(f, e);
	if (!memory)
		pool_files_forget(f);
	for (const struct poolparts *r = f->parts; !rc && r; r = r->next)
		for (unsigned i = 0; !rc && i < r->count; i++)
			rc = filesystem_agree(r->part[i].fd, right, &lost, e);
	if (!rc && !f->parts)
		rc = filesystem_agree(f->fd, right, &lost, e);
	if (!rc && lost > 0)
		rc = files_settle(f, e);
	if (lost > 0)
		log_warning("pool '%s': %llu bytes in memory were not on media, a sync had lost "
			    "them",
			    path, (unsigned long long)lost);
	return rc;
}

/*
 * The record is true of us now, who have the lock. If its writer was killed, maybe behind a sync
 * that had failed, or has told of one, to settle that and to bring in what it has left may take
 * long: whoever asks meanwhile is told.
 */
static int
files_left(const struct pool_files *f, const char *path, bool writes, struct sidecar *meta,
	   struct err *e)
{
	struct sidecar next = *meta;
	int rc = 0;

	if (meta->writer_open) {
		pool_writer_lost(&next);
		next.writer_open = true;
	}
	if (next.state != meta->state)
		rc = sidecar_write(f->sidecar_fd, &next, e);
	if (rc)
		return rc;
	/* A reader is no writer, and gone when it is done: others wait for that, or are told. */
	if (writes)
		lock_entered(f->sidecar_fd);
	*meta = next;
	return meta->writer_open ? files_agree(f, memory_counts(meta), path, e) : 0;
}

/*
 * What a dead writer has left. A journal is committed when the log has been settled, so what
 * is in the log is older. keep: one that is not committed stays.
 *
 * A killed one may have left in the page cache what media do not hold: a frame, the word that a
 * journal counts. A power cut while that is brought in would leave a part of it in the pool, and
 * nothing to bring the rest.
 */
static int
files_recover(struct pool_files *f, const char *path, struct sidecar *meta, bool keep,
	      struct err *e)
{
	int rc = 0;

	if ((recovery_due(meta) || meta->journal_len) && fdatasync(f->sidecar_fd) != 0)
		rc = err_errno(e, REPL_E_IO, errno, "sidecar: sync");
	if (!rc)
		rc = pool_position_recover(f, path, meta, e);
	if (!rc)
		rc = pool_log_recover(f, path, meta, e);
	if (!rc)
		rc = pool_journal_recover(f, path, meta, keep, e);
	if (!rc && meta->ring_len)
		rc = ring_replay(f, path, meta, e);
	return rc;
}

/*
 * The error may be for what the last writer has left to be written, and is told once. Memory that
 * counts may be all that has it.
 */
static int
files_doubt(const struct pool_files *f, const struct sidecar *meta, int rc)
{
	if (rc == REPL_E_IO && !memory_counts(meta))
		pool_files_forget(f);
	return rc;
}

static bool
recovery_seen(const struct pool_files *f, bool (*due)(const struct sidecar *meta))
{
	struct sidecar meta;
	bool repair;

	return sidecar_read(f->sidecar_fd, &meta, &repair, NULL) == 0 && due(&meta);
}

/*
 * *had is false without an error if its writer is alive. Who only looks is in the way for a moment;
 * another reader until it has brought all in.
 */
static int
reader_lock(const struct pool_files *f, const char *name, bool *had, struct err *e)
{
	uint64_t deadline = clock_deadline(LOCK_READER_MS);
	bool only_read = false;

	for (unsigned ms = 0; ms == 0 || (!only_read && clock_left_ms(deadline) > 0);
	     ms = LOCK_WRITER_MS) {
		*had = lock_enter(f->sidecar_fd, ms);
		if (*had || is_writers(f->sidecar_fd))
			return 0;
		only_read = ms > 0 && is_only_read(f->sidecar_fd);
	}
	if (!only_read)
		return pool_busy(f->sidecar_fd, name, e);
	return err_set(e, REPL_E_BUSY,
		       "pool '%s': what its last writer has left can't be brought in while others "
		       "look at it: try again",
		       name);
}

/*
 * Before anything is read, brought into files, or made equal to them: they are what the sidecar
 * speaks of, as far as headers tell. Another disk may be mounted in their place.
 */
static int
files_own(const struct pool_files *f, const struct sidecar *meta, struct err *e)
{
	return f->parts ? poolparts_attr_own(f->parts, meta->attr, f->write, e) : 0;
}

/* With the lock, for a moment. */
static int
reader_lead(struct pool_store *s, struct pool_files *f, const char *name, const char *path,
	    struct err *e)
{
	struct pool_info info;
	bool repair;
	int rc;

	pool_info_init(&info, name);
	rc = pool_meta_read(f, &info.meta, &repair, e);
	if (rc)
		return err_prefix(e, "pool '%s'", name);
	rc = files_own(f, &info.meta, e);
	if (!rc)
		rc = pool_check_size(f, &info, e);
	if (!rc)
		rc = pool_files_record_moved(s, f, name, &info.meta, e);
	if (!rc)
		rc = files_left(f, path, false, &info.meta, e);
	if (!rc)
		rc = files_recover(f, path, &info.meta, true, e);
	rc = files_doubt(f, &info.meta, rc);
	return rc ? err_prefix(e, "pool '%s'", name) : 0;
}

/*
 * For a reader, who has looked at the sidecar and may have met a journal, a ring or a
 * round log: bring it in unless its writer is alive.
 */
static int
reader_bring(struct pool_store *s, const char *name, const char *path, struct err *e)
{
	struct pool_files f;
	bool had;
	int rc;

	rc = pool_files_open(s, name, O_RDWR, &f, e);
	if (rc)
		return rc;
	rc = reader_lock(&f, name, &had, e);
	if (!rc && had)
		rc = pool_files_again(s, name, &f, e);
	if (!rc && had)
		rc = reader_lead(s, &f, name, path, e);
	pool_files_close(&f);
	return rc;
}

static bool
is_readonly(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* Where nothing can be written a position record is read as it lies. */
static int
reader_recover(struct pool_store *s, const struct pool *p, struct err *e)
{
	int rc = reader_bring(s, p->info.name, p->path, e);

	if (rc && !recovery_seen(&p->files, updates_due)) {
		err_clear(e);
		return 0;
	}
	if (rc && is_readonly(p->files.sidecar_fd))
		return err_set(e, rc,
			       "pool '%s': updates in '%s.repl' can't be brought in, since the "
			       "file system is read-only: copy both files into another pool "
			       "directory and open the pool there",
			       p->info.name, p->info.name);
	return rc;
}

/* What a primary's program has kept of its own replicas says nothing of what is written now. */
static int
dirty_drop(struct pool *p, struct err *e)
{
	struct sidecar next = p->info.meta;
	uint64_t off = next.dirty_off, len = next.dirty_len;
	int rc;

	next.dirty_off = next.dirty_len = 0;
	rc = sidecar_write(p->files.sidecar_fd, &next, e);
	if (rc)
		return rc;
	p->info.meta = next;
	/* Only space. */
	if (!next.ring_len && !next.journal_len)
		(void)space_cut(p->files.sidecar_fd, off, off + len, NULL);
	return 0;
}

/*
 * What a killed process has stored reads like what is durable, and a comparison would
 * leave it as it is.
 */
static int
writer_settle(const struct pool *p, struct err *e)
{
	/*
	 * Nobody but us knows which lines of a device are dirty: none since the last time that all
	 * were flushed, if nothing was written.
	 */
	if (pooldevice_is_open(&p->files.st) && p->info.meta.settled && !p->info.meta.primary)
		return 0;
	if (pooldevice_is_open(&p->files.st))
		return pooldevice_settle(p->files.fd, p->path, p->info.meta.pool_size, e);
	return files_settle(&p->files, e);
}

/* The sync was the last to be told of what was lost; the next writer is to know. */
static void
writer_doubt(struct pool *p)
{
	struct sidecar next = p->info.meta;

	/* What its program had acknowledged may be among that. */
	if (next.primary)
		boot_none(&next.boot);
	next.writer_open = true;
	(void)sidecar_write(p->files.sidecar_fd, &next, NULL);
}

/*
 * Local replicas follow the pool with each flush, so they are equal to it whenever their writer has
 * closed in order. Behind any other, behind a program of this machine's that had the pool as a
 * primary, and where there are other files than those, all is compared, and the pool counts.
 */
static int
copies_settle(struct pool *p, struct err *e)
{
	const struct sidecar *meta = &p->info.meta;
	struct poolparts *parts = p->files.parts;
	bool same = !meta->writer_open && !meta->primary;
	struct pmem_map *map = NULL;
	uint64_t differed = 0;
	int rc = 0;

	if (!parts || !(parts->linked || parts->next))
		return 0;
	if (parts->next)
		same = same && pool_copies_are_known(parts, meta);
	if (parts->linked)
		rc = poolparts_attr_mend(parts, meta->attr, &same, e);
	if (!rc && !same && parts->next)
		rc = pool_files_map(&p->files, p->path, meta->pool_size, true, &map, e);
	if (!rc && map)
		rc = pmem_map_settle_copies(map, &differed, e);
	pmem_map_free(map);
	if (!rc && differed)
		log_warning("pool '%s': its local replicas differed from it in %llu bytes and have "
			    "been made equal",
			    p->info.name, (unsigned long long)differed);
	return rc;
}

/* The pool as the writer before has left it. */
static int
writer_recover(struct pool *p, struct err *e)
{
	int rc = files_recover(&p->files, p->path, &p->info.meta, p->resumes, e);

	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

/* A primary's stays as well known as it was if we are killed, all being synced; a replica has none.
 */
static void
boot_note(struct sidecar *meta, enum boot_power power)
{
	memset(&meta->boot, 0, sizeof(meta->boot));
	if (meta->primary && power == BOOT_KEPT)
		boot_now(&meta->boot);
	else if (meta->primary && power == BOOT_CUT)
		boot_none(&meta->boot);
}

/* Record the writer, and that the one before it did not close if that is so. */
static int
writer_succeed(struct pool *p, const struct pool_claim *claim, struct err *e)
{
	struct sidecar *meta = &p->info.meta;
	int rc = files_own(&p->files, meta, e);

	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	rc = pool_check_size(&p->files, &p->info, e);
	if (rc == REPL_E_CORRUPT)
		pool_files_record_cut(&p->files, p->info.name, meta);
	if (!rc)
		rc = pool_files_record_moved(p->store, &p->files, p->info.name, meta, e);
	if (!rc)
		rc = pool_judge(meta, p->info.name, claim, e);
	if (!rc)
		rc = pool_grow_undo(p, e);
	if (!rc) {
		rc = files_left(&p->files, p->path, true, meta, e);
		if (rc == REPL_E_IO)
			writer_doubt(p);
	}
	if (!rc)
		rc = writer_recover(p, e);
	/* A journal that was brought in has made it of another generation. */
	if (!rc)
		rc = pool_judge(meta, p->info.name, claim, e);
	if (rc)
		return rc;
	if (meta->dirty_len)
		rc = dirty_drop(p, e);
	if (!rc)
		rc = writer_settle(p, e);
	if (rc == REPL_E_IO)
		writer_doubt(p);
	if (!rc) {
		meta->pool_size = pool_size_now(&p->files, meta);
		rc = copies_settle(p, e);
	}
	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	filesystem_name(p->files.fd, p->info.filesystem, sizeof(p->info.filesystem));
	if (meta->writer_open)
		pool_info_left(&p->info);
	meta->writer_open = true;
	boot_note(meta, p->info.power);
	meta->opening = false;
	meta->settled = pooldevice_is_open(&p->files.st);
	pool_backing_note(&p->files, meta);
	memset(meta->writer, 0, sizeof(meta->writer));
	(void)snprintf(meta->writer, sizeof(meta->writer), "%s",
		       claim->writer ? claim->writer : "");
	meta->epoch++;
	rc = sidecar_write(p->files.sidecar_fd, meta, e);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

static int
writer_enter(struct pool *p, const struct pool_claim *claim, struct err *e)
{
	bool repair;
	int rc = pool_meta_read(&p->files, &p->info.meta, &repair, e);

	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	return files_doubt(&p->files, &p->info.meta, writer_succeed(p, claim, e));
}

/* Keep writers out; what was read before the lock was had is read again. */
static int
reader_enter(struct pool *p, struct err *e)
{
	int rc;

	if (!lock_take_shared(p->files.sidecar_fd, LOCK_WRITER_MS)) {
		if (errno == EWOULDBLOCK)
			return pool_busy(p->files.sidecar_fd, p->info.name, e);
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': lock", p->info.name);
	}
	rc = files_use_lock(&p->files, true, p->info.name, e);
	if (!rc)
		rc = pool_read_settled(&p->files, &p->info, e);
	/* Left between our look for one and the lock. */
	if (!rc && updates_due(&p->info.meta))
		rc = err_set(e, REPL_E_BUSY,
			     "pool '%s': its writer has just gone, try again to read it",
			     p->info.name);
	if (!rc && p->info.meta.position_len)
		pool_rounds_look(&p->files, &p->info.meta);
	if (!rc && p->info.meta.writer_open)
		pool_info_left(&p->info);
	return rc;
}

void
pool_free(struct pool *p)
{
	if (!p)
		return;
	pooljournal_free(p->journal);
	pool_files_close(&p->files);
	free(p->path);
	free(p);
}

/* The lock of a primary may be its own program's: what it is comes before who has it. */
static int
writer_look(int sidecar_fd, const char *name, const struct pool_claim *claim, struct err *e)
{
	struct sidecar meta;
	bool repair;

	if (sidecar_read(sidecar_fd, &meta, &repair, NULL) || !meta.primary)
		return 0;
	return pool_judge(&meta, name, claim, e);
}

/*
 * Of files that can't be opened, and why not: what a primary is comes before what it lacks, too.
 * Who is told of damage has the replica made anew.
 */
static int
writer_look_damaged(struct pool_store *s, const char *name, const struct pool_claim *claim, int why,
		    struct err *e)
{
	int fd = pool_sidecar_alone(s, name), rc = 0;

	if (fd < 0)
		return why;
	rc = writer_look(fd, name, claim, e);
	(void)close(fd);
	return rc ? rc : why;
}

static int
open_write(struct pool *p, const struct pool_claim *claim, struct err *e)
{
	const char *name = p->info.name;
	int rc = writer_look(p->files.sidecar_fd, name, claim, e);

	if (!rc)
		rc = pooljournal_new(p->files.sidecar_fd, &p->journal, e);
	if (!rc)
		rc = writer_lock(&p->files, name, e);
	if (!rc)
		rc = pool_files_again(p->store, name, &p->files, e);
	/* Of a replica nobody is to have it; a primary, or what becomes one, is a program's. */
	if (!rc && claim->primary)
		rc = files_use_lock(&p->files, false, name, e);
	if (!rc)
		rc = writer_enter(p, claim, e);
	return rc;
}

static int
open_read(struct pool_store *s, struct pool *p, bool stable, struct err *e)
{
	const char *name = p->info.name;
	int rc = pool_check_present(&p->files, name, e);

	if (!rc && recovery_seen(&p->files, recovery_due))
		rc = reader_recover(s, p, e);
	if (!rc)
		rc = pool_read_info(&p->files, &p->info, e);
	if (!rc && (rc = files_own(&p->files, &p->info.meta, e)) != 0)
		rc = err_prefix(e, "pool '%s'", name);
	if (!rc && stable)
		rc = reader_enter(p, e);
	return rc;
}

static int
open_mode(struct pool_store *s, const char *name, enum pool_mode mode,
	  const struct pool_claim *claim, struct pool **out, struct err *e)
{
	bool write = mode == POOL_WRITE;
	struct pool *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_set(e, REPL_E_NOMEM, "no memory for pool '%s'", name);
	p->store = s;
	p->write = write;
	p->waited = claim->waits;
	p->resumes = claim->resumes;
	pool_info_init(&p->info, name);
	p->files.fd = p->files.sidecar_fd = -1;
	p->files.parts = NULL;
	if (asprintf(&p->path, "%s/%s", s->dir, name) < 0) {
		p->path = NULL;
		rc = err_set(e, REPL_E_NOMEM, "no memory for pool '%s'", name);
		goto out;
	}
	rc = pool_files_open(s, name, write ? O_RDWR : O_RDONLY, &p->files, e);
	if (rc == REPL_E_NOT_FOUND)
		rc = pool_away(s, name, e);
	else if (rc && write)
		rc = writer_look_damaged(s, name, claim, rc, e);
	else if (!rc)
		rc = write ? open_write(p, claim, e) : open_read(s, p, mode == POOL_STABLE, e);
	if (rc)
		goto out;
	pool_info_add_set(&p->files, &p->info);
	*out = p;
	p = NULL;
out:
	pool_free(p);
	return rc;
}

int
pool_open_by(struct pool_store *s, const char *name, const struct pool_claim *claim,
	     struct pool **out, struct err *e)
{
	return open_mode(s, name, POOL_WRITE, claim, out, e);
}

int
pool_open(struct pool_store *s, const char *name, enum pool_mode mode, const char *writer,
	  struct pool **out, struct err *e)
{
	const struct pool_claim claim = {.writer = writer};

	return open_mode(s, name, mode, &claim, out, e);
}

int
pool_fd(const struct pool *p)
{
	return p->files.fd;
}

bool
pool_takes_space(const struct pool *p)
{
	bool takes = p->info.meta.sparse || filesystem_shares(p->files.fd);

	for (const struct poolparts *r = p->files.parts; r; r = r->next)
		for (unsigned i = 0; !takes && i < r->count; i++)
			takes = filesystem_shares(r->part[i].fd);
	return takes;
}

int
pool_extents_fd(const struct pool *p)
{
	return p->files.parts || pooldevice_is_open(&p->files.st) ? -1 : p->files.fd;
}

int
pool_map(const struct pool *p, bool write, struct pmem_map **out, struct err *e)
{
	return pool_files_map(&p->files, p->path, p->info.meta.pool_size, write, out, e);
}

int
pool_set_attr(struct pool *p, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	int rc;

	if (!p->write)
		return err_set(e, REPL_E_REFUSED,
			       "pool '%s' is open for reading: open it for writing", p->info.name);
	if (!p->info.header)
		return err_set(e, REPL_E_INVAL,
			       "pool '%s' has no headers to keep attributes in: it is no pool set, "
			       "or one with OPTION NOHDRS",
			       p->info.name);
	rc = pool_written(p, e);
	if (!rc)
		rc = poolparts_attr_set(p->files.parts, attr, e);
	if (!rc && p->files.parts->linked) {
		struct sidecar next = p->info.meta;

		memcpy(next.attr, attr, sizeof(next.attr));
		rc = sidecar_write(p->files.sidecar_fd, &next, e);
		if (!rc)
			p->info.meta = next;
	}
	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	memcpy(p->info.attr, attr, PMDK_ATTR_SIZE);
	p->info.header_damage[0] = '\0';
	return 0;
}

const char *
pool_path(const struct pool *p)
{
	return p->path;
}

const struct pool_info *
pool_get_info(const struct pool *p)
{
	return &p->info;
}

int
pool_mark(struct pool *p, enum sidecar_state state, const struct generation *g, uint64_t position,
	  struct err *e)
{
	struct sidecar next;
	int rc = 0;

	if (!p->write)
		return err_set(e, REPL_E_REFUSED,
			       "pool '%s' is open for reading: open it for writing", p->info.name);
	if (pooljournal_is_left(p->journal, &p->info.meta))
		rc = pool_journal_drop(p, e);
	if (rc)
		return rc;
	next = p->info.meta;
	next.state = state;
	if (g) {
		next.generation = *g;
		next.position = 0;
		next.waited = p->waited;
	}
	if (position)
		lineage_part(&next, position);
	rc = sidecar_write(p->files.sidecar_fd, &next, e);
	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	p->info.meta = next;
	return 0;
}

void
pool_position(struct pool *p, uint64_t position)
{
	if (p->write && position > p->info.meta.position)
		p->info.meta.position = position;
}

/* Of a set, whose parts may lie on a device of their own, the sidecar is beside the set file. */
int
pool_place_check(const struct pool *p, struct err *e)
{
	int fd = p->files.fd, beside = p->files.sidecar_fd;
	struct stat pool, sidecar;

	if (fstat(fd, &pool) != 0 || fstat(beside, &sidecar) != 0)
		return err_errno(e, REPL_E_IO, errno, "the sidecar");
	if (pool.st_dev == sidecar.st_dev && pagecache_is_dax(fd) == pagecache_is_dax(beside))
		return 0;
	return err_set(e, REPL_E_REFUSED,
		       "its sidecar is not on the file system of the pool, or not as durable");
}

int
pool_ring_make(struct pool *p, const struct ring_geometry *g, struct poolring **out, struct err *e)
{
	struct ring_geometry mine = *g;
	char *sidecar = pool_sidecar_path(p->path);
	int rc;

	*out = NULL;
	mine.epoch = p->info.meta.epoch;
	if (!sidecar)
		rc = err_set(e, REPL_E_NOMEM, "no memory for the receive ring");
	else if (!p->write || recovery_due(&p->info.meta) || p->info.meta.journal_len)
		rc = err_set(e, REPL_E_REFUSED,
			     "open for reading, or there is a receive ring or a journal");
	else
		rc = pool_place_check(p, e);
	if (!rc)
		rc = poolring_make(p->files.sidecar_fd, sidecar, &p->info.meta, &mine, out, e);
	free(sidecar);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_ring_end(struct pool *p, struct poolring *ring, struct pmem_map *map, bool failed,
	      struct err *e)
{
	uint64_t count = 0;
	int rc = 0;

	if (!ring)
		return 0;
	if (failed)
		rc = err_set(e, REPL_E_IO, "a flush has failed, the receive ring is kept");
	if (!rc)
		rc = poolring_replay(ring, map, &count, e);
	poolring_free(ring);
	if (!rc)
		rc = poolring_drop(p->files.sidecar_fd, &p->info.meta, e);
	if (!rc && count)
		log_debug("pool '%s': %llu updates brought in from the receive ring", p->info.name,
			  (unsigned long long)count);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_written(struct pool *p, struct err *e)
{
	struct sidecar next = p->info.meta;
	int rc = 0;

	p->written = true;
	next.settled = false;
	if (p->info.meta.settled)
		rc = sidecar_write(p->files.sidecar_fd, &next, e);
	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	p->info.meta = next;
	return 0;
}

void
pool_left(struct pool *p)
{
	struct sidecar next = p->info.meta;

	pool_writer_lost(&next);
	next.writer_open = true;
	/* Of one that was never written nothing is claimed, and it may be taken away. */
	if (!p->write || next.state == p->info.meta.state ||
	    gen_id_is_nil(&next.generation.current))
		return;
	if (sidecar_write(p->files.sidecar_fd, &next, NULL) == 0)
		p->info.meta = next;
}

int
pool_close(struct pool *p, bool clean, struct err *e)
{
	int rc = 0;

	if (!p)
		return 0;
	if (p->write) {
		if (!clean)
			pool_writer_lost(&p->info.meta);
		/*
		 * That its local replicas may differ, or media from memory, is not forgotten: as if
		 * it had been killed. If nobody has written they are as they were made equal when
		 * it was opened: its initiator may not have had the time to wait for that, and the
		 * next opening is not to begin anew.
		 */
		p->info.meta.writer_open =
			p->flush_lost ||
			(!clean && p->written && p->files.parts && p->files.parts->next);
		/* It may have grown. */
		pool_backing_note(&p->files, &p->info.meta);
		rc = sidecar_write(p->files.sidecar_fd, &p->info.meta, e);
		if (rc)
			rc = err_prefix(e, "pool '%s': close", p->info.name);
		if (!rc)
			pool_journal_tidy_last(p);
	}
	pool_free(p);
	return rc;
}
