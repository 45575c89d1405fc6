/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolredo - the resync journal of an open pool, and what is done with one that
 * a writer has left: a committed one is brought in, another one is dropped or resumed.
 */
#include "poolstore.h"

#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "filesystem.h"
#include "log.h"

struct pooljournal *
pool_journal(const struct pool *p)
{
	return p->journal;
}

static int
ring_check(const struct pool *p, struct err *e)
{
	if (!p->info.meta.ring_len)
		return 0;
	return err_set(e, REPL_E_REFUSED, "pool '%s' has a receive ring: no journal beside it",
		       p->info.name);
}

int
pool_journal_spare(struct pool *p, uint64_t bytes, struct err *e)
{
	int rc = p->info.meta.sparse ? pooljournal_spare(p->journal, bytes, e) : 0;

	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_journal_begin(struct pool *p, uint64_t bytes, struct err *e)
{
	struct sidecar *meta = &p->info.meta;
	int rc = ring_check(p, e);

	if (rc)
		return rc;
	if (pooljournal_is_left(p->journal, meta))
		rc = pooljournal_drop(p->journal, meta, e);
	if (!rc)
		rc = pooljournal_begin(p->journal, meta, bytes, e);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_journal_resume(struct pool *p, uint64_t bytes, bool *resumed, struct err *e)
{
	struct sidecar *meta = &p->info.meta;
	struct err why;
	int rc = ring_check(p, e);

	*resumed = false;
	if (rc)
		return rc;
	if (!pooljournal_is_left(p->journal, meta))
		return pool_journal_begin(p, bytes, e);
	err_clear(&why);
	*resumed = pooljournal_resume(p->journal, meta, &why) == 0;
	if (*resumed)
		return 0;
	log_warning("pool '%s': %s: what was left of a journal is dropped", p->info.name, why.text);
	return pool_journal_begin(p, bytes, e);
}

int
pool_journal_kept(struct pool *p, struct pmem_map *map, const struct hash_key *key,
		  struct journal_kept *kept, unsigned max, unsigned *count, uint64_t *bytes,
		  bool *more, struct err *e)
{
	int rc;

	/* It was asked for before that was known. */
	if (pooljournal_is_told(p->journal, bytes)) {
		*count = 0;
		*more = false;
		return 0;
	}
	rc = pooljournal_kept(p->journal, &p->info.meta, pool_takes_space(p), map, key, kept, max,
			      count, bytes, more, e);
	if (!rc && !*more)
		log_info("pool '%s': %" PRIu64 " bytes of a journal are gone on with", p->info.name,
			 *bytes);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_journal_commit(struct pool *p, enum sidecar_state state, const struct generation *g,
		    uint64_t position, struct err *e)
{
	int rc = pooljournal_commit(p->journal, &p->info.meta, state, g, position, p->waited, e);

	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

/* It can't be believed, and the pool may hold some of it. */
static int
journal_spoil(struct pooljournal *j, struct sidecar *meta, const char *name, const struct err *why)
{
	struct err e;

	err_clear(&e);
	if (pooljournal_spoil(j, meta, &e)) {
		log_error("pool '%s': %s; and it could not be marked inconsistent: %s", name,
			  why->text, e.text);
		return REPL_E_IO;
	}
	log_error("pool '%s': %s: the pool may hold a part of it and is now inconsistent; sync it "
		  "again from its primary",
		  name, why->text);
	return 0;
}

int
pool_journal_apply(struct pool *p, struct pmem_map *map, uint64_t max,
		   struct journal_progress *done, struct err *e)
{
	int rc = pool_written(p, e);

	if (rc)
		return rc;
	rc = pooljournal_apply(p->journal, &p->info.meta, map, max, done, e);
	if (rc == REPL_E_CORRUPT)
		(void)journal_spoil(p->journal, &p->info.meta, p->info.name, e);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_journal_drop(struct pool *p, struct err *e)
{
	int rc = pooljournal_drop(p->journal, &p->info.meta, e);

	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

bool
pool_journal_tidy(struct pool *p)
{
	return p->write && p->journal && pooljournal_tidy(p->journal, &p->info.meta);
}

void
pool_journal_tidy_last(struct pool *p)
{
	if (p->write && p->journal)
		pooljournal_tidy_last(p->journal, &p->info.meta);
}

uint64_t
pool_journal_tidy_at(const struct pool *p)
{
	return p->write && p->journal ? pooljournal_tidy_at(p->journal, &p->info.meta) : UINT64_MAX;
}

int
pool_journal_end(struct pool *p, struct pmem_map *map, bool failed, struct err *e)
{
	struct sidecar *meta = &p->info.meta;
	struct journal_progress done;
	int rc;

	if (!p->write || meta->journal_len == 0)
		return 0;
	if (!meta->journal_committed && p->resumes && pooljournal_is_resumable(p->journal, meta)) {
		log_info("pool '%s': a journal that is not committed is kept", p->info.name);
		return 0;
	}
	if (!meta->journal_committed)
		return pool_journal_drop(p, e);
	if (failed)
		return err_set(e, REPL_E_IO, "pool '%s': a flush has failed, the journal is kept",
			       p->info.name);
	rc = pool_journal_apply(p, map, UINT64_MAX, &done, e);
	if (!rc)
		log_info("pool '%s': %" PRIu64 " bytes of a committed journal brought in",
			 p->info.name, done.total);
	/* The pool says what it is. */
	return rc == REPL_E_CORRUPT ? 0 : rc;
}

static int
journal_redo(struct pool_files *f, const char *path, struct sidecar *meta, struct pooljournal *j,
	     struct err *e)
{
	struct journal_progress done = {0};
	struct pmem_map *map = NULL;
	int rc;

	rc = pooljournal_load(j, meta, e);
	if (!rc && !meta->journal_committed) {
		log_info("pool '%s': a journal that its writer has left, not committed, is dropped",
			 path);
		return pooljournal_drop(j, meta, e);
	}
	if (!rc)
		rc = pool_files_map(f, path, meta->pool_size, true, &map, e);
	if (!rc)
		rc = pooljournal_apply(j, meta, map, UINT64_MAX, &done, e);
	pmem_map_free(map);
	if (rc == REPL_E_CORRUPT)
		return journal_spoil(j, meta, path, e);
	if (!rc)
		log_info("pool '%s': %" PRIu64 " bytes of a dead writer's committed journal "
			 "brought in",
			 path, done.total);
	return rc;
}

int
pool_journal_recover(struct pool_files *f, const char *path, struct sidecar *meta, bool keep,
		     struct err *e)
{
	struct pooljournal *j = NULL;
	int rc;

	if (meta->journal_len == 0 || (keep && !meta->journal_committed))
		return 0;
	rc = pooljournal_new(f->sidecar_fd, &j, e);
	if (!rc)
		rc = journal_redo(f, path, meta, j, e);
	if (!rc)
		pooljournal_tidy_last(j, meta);
	pooljournal_free(j);
	return rc;
}

int
pool_journal_discard(int sidecar_fd, struct sidecar *meta, uint64_t end_ns, bool *rest,
		     struct err *e)
{
	struct pooljournal *j = NULL;
	int rc = pooljournal_new(sidecar_fd, &j, e);

	if (!rc)
		rc = pooljournal_drop(j, meta, e);
	while (!rc && pooljournal_tidy(j, meta) && clock_now_ns() < end_ns)
		;
	*rest = !rc && pooljournal_tidy_at(j, meta) != UINT64_MAX;
	pooljournal_free(j);
	return rc;
}
