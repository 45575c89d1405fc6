/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolround - the round log of an open pool, or where it has none its position record, and what is
 * done with one that a writer has left.
 */
#include "poolstore.h"

#include <inttypes.h>
#include <stdlib.h>

#include "log.h"
#include "pagecache.h"

int
pool_log_make(struct pool *p, struct pmem_map *map, struct roundlog **out, struct err *e)
{
	const struct sidecar *meta = &p->info.meta;
	char *path = pool_sidecar_path(p->path);
	int rc;

	*out = NULL;
	if (!path)
		rc = err_set(e, REPL_E_NOMEM, "no memory for a round log");
	else if (!p->write || meta->ring_len || meta->journal_len || meta->dirty_len ||
		 meta->log_len)
		rc = err_set(e, REPL_E_REFUSED,
			     "open for reading, or there is a receive ring, a journal or a log");
	/* A set's parts may be on a disk, and the sidecar beside the set file is not. */
	else if (pmem_map_groups(map) && pagecache_in_memory(p->files.sidecar_fd))
		rc = err_set(e, REPL_E_REFUSED, "its sidecar is only in memory");
	else
		rc = roundlog_make(p->files.sidecar_fd, path, &p->info.meta, map, out, e);
	free(path);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_log_end(struct pool *p, struct roundlog *log, bool failed, struct err *e)
{
	struct sidecar *meta = &p->info.meta;
	int rc = 0;

	if (!log)
		return 0;
	if (failed)
		rc = err_set(e, REPL_E_IO, "a flush has failed, the round log is kept");
	if (failed)
		(void)roundlog_end(log, false, NULL);
	else
		rc = roundlog_end(log, true, e);
	if (!rc)
		rc = roundlog_drop(p->files.sidecar_fd, meta, meta, e);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

/* Pages of what is missing may be in the pool or not, in any order. */
static enum sidecar_state
damaged(const char *path, const char *why)
{
	log_error("pool '%s': %s: updates that were acknowledged may be missing, the pool is now "
		  "inconsistent; sync it again from its primary",
		  path, why);
	return SIDECAR_INCONSISTENT;
}

void
pool_rounds_look(const struct pool_files *f, struct sidecar *meta)
{
	struct roundlog_replayed done = {0};
	uint64_t position = 0;
	struct sidecar now;
	int rc = 0;
	bool repair;

	if (meta->log_len) {
		rc = roundlog_replay(f->sidecar_fd, meta, NULL, &done, NULL);
		position = done.position;
	} else if (meta->position_len) {
		rc = poolposition_read(f->sidecar_fd, meta, &position, NULL);
	}
	/* Somebody else may have begun to write meanwhile. */
	if (sidecar_read(f->sidecar_fd, &now, &repair, NULL) || now.sequence != meta->sequence)
		return;
	if (meta->log_len && (rc == REPL_E_CORRUPT || done.damaged))
		meta->state = SIDECAR_INCONSISTENT;
	else if (rc)
		meta->position = 0;
	else if (position > meta->position)
		meta->position = position;
}

int
pool_log_recover(struct pool_files *f, const char *path, struct sidecar *meta, struct err *e)
{
	struct roundlog_replayed done = {0};
	struct sidecar next = *meta;
	struct pmem_map *map = NULL;
	int rc;

	if (meta->log_len == 0)
		return 0;
	rc = pool_files_map(f, path, meta->pool_size, true, &map, e);
	if (!rc)
		rc = roundlog_replay(f->sidecar_fd, meta, map, &done, e);
	pmem_map_free(map);
	if (rc == REPL_E_CORRUPT)
		next.state = damaged(path, e ? e->text : "the round log is damaged");
	else if (done.damaged)
		next.state = damaged(path, "a frame of the round log is damaged");
	else if (done.position > next.position)
		next.position = done.position;
	if (rc && rc != REPL_E_CORRUPT)
		return rc;
	rc = roundlog_drop(f->sidecar_fd, meta, &next, e);
	if (!rc && done.messages > 0)
		log_info("pool '%s': %" PRIu64 " messages of a dead writer's round log brought in",
			 path, done.messages);
	return rc;
}

/* ---- the position record ---- */

int
pool_record_make(struct pool *p, struct poolposition **out, struct err *e)
{
	const struct sidecar *meta = &p->info.meta;
	char *path = pool_sidecar_path(p->path);
	int rc;

	*out = NULL;
	if (!path)
		rc = err_set(e, REPL_E_NOMEM, "no memory for a position record");
	else if (!p->write || meta->ring_len || meta->journal_len || meta->dirty_len ||
		 meta->log_len || meta->position_len)
		rc = err_set(e, REPL_E_REFUSED, "open for reading, or there is another region");
	else
		rc = pool_place_check(p, e);
	if (!rc)
		rc = poolposition_make(p->files.sidecar_fd, path, &p->info.meta, out, e);
	free(path);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_record_end(struct pool *p, struct poolposition *record, struct err *e)
{
	struct sidecar *meta = &p->info.meta;
	int rc;

	if (!record)
		return 0;
	poolposition_free(record);
	rc = poolposition_drop(p->files.sidecar_fd, meta, meta->position, e);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_position_recover(struct pool_files *f, const char *path, struct sidecar *meta, struct err *e)
{
	uint64_t position = 0;
	struct err why;

	if (meta->position_len == 0)
		return 0;
	err_clear(&why);
	/* Nothing of the pool depends on it. */
	if (poolposition_read(f->sidecar_fd, meta, &position, &why))
		log_warning("pool '%s': %s: how far its writer came is not known", path, why.text);
	else if (position < meta->position)
		position = meta->position;
	return poolposition_drop(f->sidecar_fd, meta, position, e);
}
