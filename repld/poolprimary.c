/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may write to a pool: the judgement of a writer's chain, and a replica that
 * becomes the primary and back.
 *
 * A promotion records the new generation before it touches a byte of the pool and the primary
 * flag last. So a pool that differs from its old primary, if only by PMDK's shutdown
 * state, is never of the same generation: a delta would leave that difference there for ever.
 */
#include "poolstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "filesystem.h"
#include "log.h"
#include "pooldevice.h"
#include "space.h"
#include "lineage.h"
#include "takeover.h"

/* Bounds of a promotion that ends sessions, also against one that reconnects at once. */
#define FORCE_MS  8000U
#define SETTLE_MS 1000U /* a lock of nobody's session: of a reader that looks, for a moment */

/* Words are for people: the peer goes by the reason. */
static int
judge_relation(enum gen_relation relation, const char *name, struct err *e)
{
	const char *why;
	enum repl_reason reason;

	switch (relation) {
	case GEN_BEHIND:
		reason = REPL_REASON_BEHIND;
		why = "the replica is newer than the data of who wants to write: it was "
		      "promoted or written by another since";
		break;
	case GEN_DIVERGED:
		reason = REPL_REASON_DIVERGED;
		why = "the replica and the data of who wants to write have diverged: both "
		      "were written since they were the same";
		break;
	default:
		reason = REPL_REASON_UNRELATED;
		why = "the replica and the data of who wants to write have no generation "
		      "in common";
	}
	(void)err_set(e, REPL_E_DIVERGED, "pool '%s': %s", name, why);
	(void)err_because(e, reason);
	return REPL_E_DIVERGED;
}

int
pool_judge(const struct sidecar *meta, const char *name, const struct pool_claim *claim,
	   struct err *e)
{
	enum gen_relation relation;

	if (meta->primary && !claim->primary) {
		(void)err_set(e, REPL_E_REFUSED,
			      "pool '%s' was %s; it is the primary now and takes no replication",
			      name, meta->writer[0] ? meta->writer : "promoted");
		(void)err_because(e, REPL_REASON_PROMOTED);
		return REPL_E_REFUSED;
	}
	if (claim->force || !claim->chain || gen_id_is_nil(&meta->generation.current))
		return 0;
	relation = gen_compare(claim->chain, &meta->generation);
	if (relation == GEN_EQUAL || relation == GEN_AHEAD)
		return 0;
	return judge_relation(relation, name, e);
}

int
pool_primary_away(int sidecar_fd, const char *name, struct err *e)
{
	struct sidecar meta;
	bool repair;

	/* The rest of one whose removal has begun is no pool any more. */
	if (sidecar_read(sidecar_fd, &meta, &repair, NULL) || !meta.primary || meta.created_s == 0)
		return 0;
	(void)err_set(e, REPL_E_REFUSED,
		      "pool '%s' was %s; it is the primary now, and its file is not there: put it "
		      "back; only if nothing in it counts remove '%s%s' by hand",
		      name, meta.writer[0] ? meta.writer : "promoted", name, SIDECAR_SUFFIX);
	(void)err_because(e, REPL_REASON_PROMOTED);
	return REPL_E_REFUSED;
}

int
pool_sidecar_alone(struct pool_store *s, const char *name)
{
	struct pool_place place;
	struct stat st;
	int fd = -1;

	if (pool_place_open(s->dirfd, name, false, &place, NULL))
		return -1;
	if (pool_file_open(&place, place.sidecar, name, O_RDONLY, &fd, &st, NULL))
		fd = -1;
	pool_place_close(&place);
	return fd;
}

int
pool_away(struct pool_store *s, const char *name, struct err *e)
{
	int fd = pool_sidecar_alone(s, name), rc;

	if (fd < 0)
		return REPL_E_NOT_FOUND;
	rc = pool_primary_away(fd, name, e);
	(void)close(fd);
	return rc ? rc : REPL_E_NOT_FOUND;
}

/* "promoted 2026-11-22T02:45:00Z by PEER" */
static void
meta_sign(struct sidecar *meta, const char *what, const char *by)
{
	char when[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (gmtime_r(&now, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	memset(meta->writer, 0, sizeof(meta->writer));
	(void)snprintf(meta->writer, sizeof(meta->writer), "%s %s by %s", what, when, by);
}

/* ---- promote ---- */

static int
promote_check(const struct sidecar *meta, const char *name, bool force, struct err *e)
{
	bool never = gen_id_is_nil(&meta->generation.current);

	if (force)
		return 0;
	if (meta->state == SIDECAR_OUTDATED || meta->state == SIDECAR_INCONSISTENT)
		return err_set(e, REPL_E_REFUSED, "pool '%s' is %s: %s", name,
			       sidecar_state_name(meta->state),
			       meta->state == SIDECAR_OUTDATED
				       ? "it is known to miss updates that were acknowledged"
			       : never ? "its first copy has begun and not ended, or its file was "
					 "cut or replaced"
				       : "a copy into it has begun and not ended");
	if (never)
		return err_set(e, REPL_E_REFUSED, "pool '%s' has never been written", name);
	return 0;
}

/* With force each turn ends one session that has the lock. */
static int
promote_open(struct pool_store *s, const char *name, const struct pool_claim *claim,
	     struct pool **out, struct err *e)
{
	uint64_t end = clock_deadline(FORCE_MS), settled = clock_deadline(SETTLE_MS);
	int rc;

	while ((rc = pool_open_by(s, name, claim, out, e)) == REPL_E_BUSY && claim->force &&
	       clock_left_ms(end) > 0) {
		struct err why;

		err_clear(&why);
		rc = takeover_end_writer(s, name, &why);
		if (rc == REPL_E_NOT_FOUND && clock_left_ms(settled) > 0)
			continue;
		if (rc)
			return err_set(e, rc == REPL_E_NOT_FOUND ? REPL_E_BUSY : rc, "%s",
				       why.text);
		err_clear(e);
	}
	return rc;
}

/* What a device that the initiator had said of itself is none of this machine's business. */
static int
promote_header(struct pool *p, struct err *e)
{
	struct range whole = {.off = 0, .len = PMDK_HEADER_SIZE};
	uint8_t header[PMDK_HEADER_SIZE];
	struct pmem_map *map = NULL;
	int rc;

	rc = pool_map(p, true, &map, e);
	if (rc)
		return rc;
	memcpy(header, pmem_map_addr(map), sizeof(header));
	(void)pmdk_shutdown_settle(header, pagecache_is_dax(pool_fd(p)));
	if (pmem_map_back(map, 0, sizeof(header))) {
		pmem_map_copy(map, 0, header, sizeof(header));
		rc = pmem_map_persist(map, &whole, 1, e);
	} else {
		rc = err_set(e, REPL_E_NOSPC, "no space is left for its header: make room");
	}
	pmem_map_free(map);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

/* Whether PMDK's state of the pool has to be made anew. */
static bool
header_is_foreign(struct pool *p)
{
	uint8_t header[PMDK_HEADER_SIZE];

	if (p->info.meta.pool_size < sizeof(header))
		return false;
	if (pooldevice_is_open(&p->files.st)
		    ? !pooldevice_head(p->files.fd, p->path, header, sizeof(header))
		    : pread(p->files.fd, header, sizeof(header), p->info.header) !=
			      (ssize_t)sizeof(header))
		return false;
	return pmdk_shutdown_settle(header, pagecache_is_dax(p->files.fd));
}

static int
meta_record(struct pool *p, const struct sidecar *next, struct err *e)
{
	struct sidecar meta = *next;
	int rc = sidecar_write(p->files.sidecar_fd, &meta, e);

	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	p->info.meta = meta;
	return 0;
}

static int
id_new(struct gen_id *id, struct err *e)
{
	if (getrandom(id->b, sizeof(id->b), 0) != (ssize_t)sizeof(id->b))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	/* As of any random UUID (version 4); it keeps it from being nil, too. */
	id->b[6] = (uint8_t)((id->b[6] & 0x0f) | 0x40);
	id->b[8] = (uint8_t)((id->b[8] & 0x3f) | 0x80);
	return 0;
}

/*
 * The headers of a set name the replicas that its initiator has, and PMDK would miss them here.
 * What they say of these is kept in the sidecar from now on, for the initiator's next opening.
 */
static int
promote_attr(struct pool *p, bool force, uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	const struct pool_info *info = &p->info;

	memset(attr, 0, PMDK_ATTR_SIZE);
	if (!info->header)
		return 0;
	if (!pmdk_attr_none(info->meta.attr))
		memcpy(attr, info->meta.attr, PMDK_ATTR_SIZE);
	else if (!info->header_damage[0])
		memcpy(attr, info->attr, PMDK_ATTR_SIZE);
	else if (!force)
		return err_set(e, REPL_E_CORRUPT,
			       "pool '%s': %s; no program of PMDK's opens it as it is", info->name,
			       info->header_damage);
	return 0;
}

static int
promote_set(struct pool *p, const struct sidecar *first, struct err *e)
{
	int rc = meta_record(p, first, e);

	if (!rc)
		rc = poolparts_attr_link(p->files.parts, first->attr, e);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

static int
promote_record(struct pool *p, const char *by, bool force, struct err *e)
{
	struct sidecar first = p->info.meta, next = first;
	struct gen_id id;
	int rc = id_new(&id, e);

	if (!rc)
		rc = promote_attr(p, force, next.attr, e);
	if (rc)
		return rc;
	memcpy(first.attr, next.attr, sizeof(first.attr));
	lineage_promote_begin(&first, &id);
	lineage_promote(&next, &id);
	if (!pmdk_attr_none(first.attr)) {
		rc = promote_set(p, &first, e);
		if (rc)
			return rc;
	} else if (header_is_foreign(p)) {
		rc = meta_record(p, &first, e);
		if (!rc)
			rc = promote_header(p, e);
		if (rc)
			return rc;
	}
	meta_sign(&next, "promoted", by);
	return meta_record(p, &next, e);
}

int
pool_promote(struct pool_store *s, const char *name, const char *by, bool force,
	     struct pool_info *info, struct err *e)
{
	const struct pool_claim claim = {.writer = by, .force = force, .primary = true};
	struct pool *p = NULL;
	struct err closing;
	int rc = pool_info(s, name, info, e);

	if (rc || info->meta.primary)
		return rc;
	/* A committed journal says what the pool is: the opening brings it in. */
	if (!info->meta.journal_committed)
		rc = promote_check(&info->meta, name, force, e);
	info->lacks = rc != 0;
	if (!rc)
		rc = promote_open(s, name, &claim, &p, e);
	if (rc)
		return rc;
	/*
	 * Looked at without the lock before: another's promotion may have come between. A refusal
	 * tells what the pool is by now.
	 */
	if (!p->info.meta.primary)
		rc = promote_check(&p->info.meta, name, force, e);
	p->info.lacks = rc != 0;
	if (!rc && !p->info.meta.primary)
		rc = promote_record(p, by, force, e);
	/* Or the next try finds the header reset, and not on media. */
	if (rc == REPL_E_IO)
		pool_flush_lost(p);
	*info = p->info;
	if (!rc)
		log_warning("pool '%s' is the primary now: %s", name, info->meta.writer);
	err_clear(&closing);
	if (pool_close(p, true, &closing) && !rc) {
		*e = closing;
		rc = closing.code;
	}
	return rc;
}

/* ---- demote ---- */

/*
 * Its program may have let the file grow, or made holes in it. What has no space on a full disk is
 * told of a sparse pool only.
 */
static bool
has_its_space(const struct pool *p)
{
	return p->files.parts || pooldevice_is_open(&p->files.st) ||
	       space_complete(p->files.fd, p->info.meta.pool_size, NULL) == 0;
}

static void
demote_log(const struct pool_info *info)
{
	log_warning("pool '%s' is a replica again: %s", info->name, info->meta.writer);
	if (info->power != BOOT_KEPT)
		log_warning("pool '%s': its program ended without closing it, and this machine %s: "
			    "it may lack what other replicas have, and is called no newer than "
			    "those",
			    info->name,
			    info->power == BOOT_CUT ? "was started anew since"
						    : "may have lost its power since");
}

int
pool_demote(struct pool_store *s, const char *name, const char *by, struct pool_info *info,
	    struct err *e)
{
	const struct pool_claim claim = {.force = true, .primary = true};
	struct sidecar next;
	struct pool *p = NULL;
	struct gen_id id;
	int rc = pool_info(s, name, info, e);

	if (rc || !info->meta.primary)
		return rc;
	rc = pool_open_by(s, name, &claim, &p, e);
	if (rc)
		return rc;
	next = p->info.meta;
	rc = id_new(&id, e);
	if (!rc) {
		lineage_demote(&next, p->info.power != BOOT_KEPT, &id);
		next.sparse = next.sparse || !has_its_space(p);
		meta_sign(&next, "demoted", by);
		rc = meta_record(p, &next, e);
	}
	*info = p->info;
	if (!rc)
		demote_log(info);
	/* Closed, the next try would find one that lacks nothing. */
	if (rc && p->info.power != BOOT_KEPT)
		pool_free(p);
	else
		(void)pool_close(p, true, NULL);
	return rc;
}
