/* SPDX-License-Identifier: BSD-3-Clause */
#include "repl_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bring.h"
#include "clock.h"
#include "control.h"
#include "dirty.h"
#include "entry.h"
#include "hex.h"
#include "keeper.h"
#include "repl_lanes.h"
#include "siblings.h"
#include "transfer.h"

#define SET_PAGE     4096U
#define SET_CLOSE_MS 1000U

/* ---- opening ---- */

/*
 * cfg with that target in place of its own. A handle has one replica, and waits for it: what cfg
 * says of several is of none. Of one set there are several handles, and of a socket and a file with
 * metrics one each.
 */
static int
set_config(const struct repl_config *cfg, const char *target, struct repl_config **out,
	   struct err *e)
{
	int rc = config_copy(cfg, out, e);

	if (rc)
		return rc;
	(*out)->target_count = 0;
	memset((*out)->async, 0, sizeof((*out)->async));
	(*out)->ack = ACK_ALL;
	/* A set's replica does not come back: there is nothing to wait for. */
	if ((*out)->on_loss == REPL_ON_LOSS_BLOCK)
		(*out)->on_loss = REPL_ON_LOSS_FAIL;
	free((*out)->status_socket);
	(*out)->status_socket = NULL;
	free((*out)->metrics_file);
	(*out)->metrics_file = NULL;
	rc = config_add_target(*out, target, e);
	if (rc) {
		repl_config_free(*out);
		*out = NULL;
	}
	return rc;
}

static int
set_create(struct repl *r, struct remote *remote, struct err *e)
{
	struct json_object *params = json_object_new_object();
	unsigned header = r->set->has_attr ? PMDK_HEADER_SIZE : 0;
	char hex[2 * PMDK_ATTR_SIZE + 1];
	int rc;

	control_add(params, "name", json_object_new_string(remote_target(remote)->pool));
	control_add(params, "size", json_object_new_int64((int64_t)(r->size - header)));
	hex_encode(r->set->attr, PMDK_ATTR_SIZE, hex);
	control_add(params, "attr", json_object_new_string(hex));
	control_add(params, "filling", json_object_new_boolean(r->set->fill));
	rc = remote_call(remote, "pool.create", params, NULL, e);
	r->set->created = rc == 0;
	return rc;
}

/*
 * It holds a copy that was not finished; or zeros, as nobody has opened it since it was made: a
 * target of an earlier version does not call that so whose maker is gone.
 */
static bool
set_unfinished(const struct repl *r, const struct remote *remote, const struct sidecar *meta)
{
	return meta->state == SIDECAR_INCONSISTENT ||
	       (!r->set->create && gen_id_is_nil(&meta->generation.current) &&
		remote_epoch(remote) == 1);
}

/* The caller's range becomes what the pool is of it. */
static int
set_take_info(struct repl *r, const struct remote *remote, struct err *e)
{
	const struct replica_info *info = remote_info(remote);

	if (info->header_damage[0])
		return err_set(e, REPL_E_CORRUPT, "%s", info->header_damage);
	if (r->size <= info->header || r->size - info->header > info->meta.pool_size)
		return err_set(e, REPL_E_INVAL,
			       "pool set '%s' on the target has room for %" PRIu64
			       " bytes with its header, the local pool has %zu",
			       info->name, info->meta.pool_size + info->header, (size_t)r->size);
	r->set->header = info->header;
	r->set->has_attr = info->has_attr;
	atomic_store(&r->set->unfinished, set_unfinished(r, remote, &info->meta));
	r->set->found = info->meta;
	memcpy(r->set->attr, info->attr, PMDK_ATTR_SIZE);
	r->mem += info->header;
	r->size -= info->header;
	return 0;
}

int
repl_set_open_pool(struct repl *r, struct remote *remote, struct err *e)
{
	int rc = r->set->create ? set_create(r, remote, e) : 0;

	if (!rc)
		rc = remote_pool_open(remote, remote_target(remote)->pool, REMOTE_WRITE, e);
	return rc ? rc : set_take_info(r, remote, e);
}

bool
repl_set_by_resync(const struct repl *r)
{
	const struct sidecar *meta = &remote_info(r->replicas[0].remote)->meta;

	return r->size == meta->pool_size && meta->state != SIDECAR_UP_TO_DATE &&
	       meta->state != SIDECAR_INCONSISTENT && !gen_id_is_nil(&meta->generation.current);
}

void
repl_set_undo(struct repl *r, struct remote *remote)
{
	struct json_object *params;

	if (!r->set->created)
		return;
	params = json_object_new_object();
	control_add(params, "name", json_object_new_string(remote_target(remote)->pool));
	(void)remote_pool_close(remote, NULL);
	(void)remote_call(remote, "pool.remove", params, NULL, NULL);
}

static int
set_open(const struct repl_config *cfg, const char *target, void *addr, size_t size,
	 const struct repl_set *how, struct repl **out, struct err *e)
{
	struct repl_set *set;
	struct repl_config *mine;
	int rc;

	if (!addr || (uintptr_t)addr % SET_PAGE || size == 0 || size % SET_PAGE || size > INT64_MAX)
		return err_set(e, REPL_E_INVAL,
			       "address %p or size %zu is not a positive multiple of %u", addr,
			       size, SET_PAGE);
	if (how->create && how->has_attr && size <= PMDK_HEADER_SIZE)
		return err_set(e, REPL_E_INVAL, "size %zu leaves nothing behind the header", size);
	rc = set_config(cfg, target, &mine, e);
	if (rc)
		return rc;
	set = malloc(sizeof(*set));
	if (!set) {
		repl_config_free(mine);
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	*set = *how;
	rc = repl_open_with(mine, set, addr, size, REPL_OPEN_NO_COMPARE, out, e);
	if (rc)
		return rc;
	rc = siblings_join(*out, e);
	if (rc) {
		repl_set_undo(*out, (*out)->replicas[0].remote);
		repl_free(*out, clock_deadline(SET_CLOSE_MS));
		*out = NULL;
	}
	return rc;
}

int
repl_set_create(const struct repl_config *cfg, const char *target, void *addr, size_t size,
		const uint8_t *attr, bool fill, struct repl **out)
{
	ENTRY_WHOLE();
	struct repl_set how = {.create = true, .fill = fill};
	struct err e;

	err_clear(&e);
	*out = NULL;
	if (attr && !pmdk_attr_none(attr)) {
		how.has_attr = true;
		memcpy(how.attr, attr, PMDK_ATTR_SIZE);
	}
	return set_open(cfg, target, addr, size, &how, out, &e) ? config_report(&e) : 0;
}

int
repl_set_open(const struct repl_config *cfg, const char *target, void *addr, size_t size,
	      uint8_t attr[PMDK_ATTR_SIZE], bool *has_attr, struct repl **out)
{
	ENTRY_WHOLE();
	const struct repl_set how = {.create = false};
	struct err e;

	err_clear(&e);
	*out = NULL;
	if (set_open(cfg, target, addr, size, &how, out, &e))
		return config_report(&e);
	*has_attr = (*out)->set->has_attr;
	memcpy(attr, (*out)->set->attr, PMDK_ATTR_SIZE);
	return 0;
}

unsigned
repl_set_header(const struct repl *r)
{
	return r->set->header;
}

/* ---- attributes ---- */

int
repl_set_attr(struct repl *r, const uint8_t attr[PMDK_ATTR_SIZE])
{
	ENTRY_WHOLE();
	struct json_object *params;
	char hex[2 * PMDK_ATTR_SIZE + 1];
	struct err e;

	err_clear(&e);
	if (handle_check(r, &e))
		return config_report(&e);
	params = json_object_new_object();
	hex_encode(attr, PMDK_ATTR_SIZE, hex);
	control_add(params, "attr", json_object_new_string(hex));
	if (remote_call(r->replicas[0].remote, "pool.attr", params, NULL, &e))
		return config_report(&e);
	memcpy(r->set->attr, attr, PMDK_ATTR_SIZE);
	return 0;
}

/* ---- before the first write ---- */

/*
 * With the lanes that the handle was configured for in place of those that a resync goes by. Nobody
 * is in a lane; who looks at what has gone over them sees none meanwhile.
 */
static int
set_reopen_lanes(struct repl *r, struct remote *remote, struct err *e)
{
	struct replica *p = &r->replicas[0];
	int rc;

	pthread_mutex_lock(&r->lock);
	pthread_mutex_lock(&r->reason_lock);
	p->remote = NULL;
	pthread_mutex_unlock(&r->reason_lock);
	rc = remote_lanes_reopen(remote, r->lane_count, e);
	if (!rc)
		remote_bind(remote, r->mem, &p->lost);
	pthread_mutex_lock(&r->reason_lock);
	p->remote = remote;
	pthread_mutex_unlock(&r->reason_lock);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

/*
 * As each opening of other pools, but that nothing is known of a former one: a map for this
 * comparison alone. What it is made equal to is of the siblings' generation, also if we end before
 * that is recorded.
 */
static int
set_resync(struct repl *r, struct remote *remote, struct err *e)
{
	struct generation chain;
	struct dirty *dirty = NULL;
	int rc = siblings_generation(r, &chain, e);

	if (!rc)
		rc = dirty_open(&r->local, r->cfg, r->size, false, &dirty, e);
	if (rc)
		return rc;
	rc = bring_resync(r, 0, dirty, RESYNC_HASHES, &chain, e);
	dirty_close(dirty);
	if (rc)
		return rc;
	r->generation = chain;
	return set_reopen_lanes(r, remote, e);
}

/* Into what is no prefix of anything. */
static int
set_copy(struct repl *r, struct remote *remote, struct err *e)
{
	struct transfer t = {.remote = remote,
			     .deadline_ns = clock_deadline(r->cfg->resync_timeout_ms)};
	struct transfer_progress sum;
	int rc;

	rc = remote_pool_mark(remote, SIDECAR_INCONSISTENT, NULL, e);
	return rc ? rc : transfer_push(&t, r->mem, r->size, &sum, e);
}

/* No keeper meanwhile: requests are on their way, and they keep the session alive. */
static int
set_catch_up(struct repl *r, struct remote *remote, struct err *e)
{
	struct err why;
	int rc;

	err_clear(&why);
	keepers_stop(r);
	rc = repl_set_by_resync(r) ? set_resync(r, remote, e) : set_copy(r, remote, e);
	if (keepers_start(r, &why) && !rc) {
		*e = why;
		rc = why.code;
	}
	return rc;
}

/* In which somebody may be reading. */
static int
set_borrow_lanes(struct repl *r, struct err *e)
{
	uint64_t deadline_ns = clock_deadline(r->cfg->op_timeout_ms);

	for (unsigned i = 0; i < r->lane_count; i++) {
		if (lane_borrow(r, i, deadline_ns))
			continue;
		while (i-- > 0)
			lane_leave(r, i);
		return err_set(e, REPL_E_BUSY, "a lane is in use by another thread");
	}
	return 0;
}

/* Under grow_lock. */
static int
set_begin(struct repl *r, struct err *e)
{
	struct remote *remote = r->replicas[0].remote;
	const struct sidecar *meta = &remote_info(remote)->meta;
	const struct repl *other;
	int rc = 0;

	if (atomic_load(&r->replicas[0].lost))
		return 0;
	r->generation = meta->generation;
	/* One that was up to date when others were gone on with without it is not. */
	if (meta->state != SIDECAR_UP_TO_DATE || siblings_judge(r, &other) != SETSOURCE_WHOLE) {
		/* A part of the pool can't say anything for the whole. */
		if (r->size != meta->pool_size)
			return 0;
		rc = set_borrow_lanes(r, e);
		if (rc)
			return rc;
		rc = set_catch_up(r, remote, e);
		for (unsigned i = r->lane_count; i > 0; i--)
			lane_leave(r, i - 1);
	}
	if (!rc)
		rc = siblings_record(r, false, clock_deadline(r->cfg->op_timeout_ms), e);
	if (!rc)
		atomic_store(&r->set->unfinished, false);
	return rc;
}

int
repl_set_begin(struct repl *r)
{
	ENTRY_WHOLE();
	struct err e;
	int rc = 0;

	if (atomic_load_explicit(&r->set->begun, memory_order_acquire))
		return 0;
	err_clear(&e);
	if (handle_check(r, &e))
		return config_report(&e);
	pthread_mutex_lock(&r->grow_lock);
	if (!atomic_load(&r->set->begun)) {
		rc = set_begin(r, &e);
		if (rc)
			repl_lose(r, 0, rc, e.text, clock_deadline(r->cfg->op_timeout_ms));
		atomic_store_explicit(&r->set->begun, true, memory_order_release);
	}
	pthread_mutex_unlock(&r->grow_lock);
	return rc && r->cfg->on_loss == REPL_ON_LOSS_FAIL ? config_report(&e) : 0;
}

int
repl_set_fill(struct repl *r)
{
	ENTRY_WHOLE();
	struct err e;

	err_clear(&e);
	if (handle_check(r, &e) ||
	    remote_pool_mark(r->replicas[0].remote, SIDECAR_INCONSISTENT, NULL, &e))
		return config_report(&e);
	atomic_store(&r->set->begun, true);
	return 0;
}

int
repl_set_filled(struct repl *r)
{
	ENTRY_WHOLE();
	struct err e;
	int rc;

	err_clear(&e);
	if (handle_check(r, &e))
		return config_report(&e);
	pthread_mutex_lock(&r->grow_lock);
	rc = siblings_record(r, true, clock_deadline(r->cfg->op_timeout_ms), &e);
	pthread_mutex_unlock(&r->grow_lock);
	return rc ? config_report(&e) : 0;
}

int
repl_set_readable(struct repl *r)
{
	struct err e;

	err_clear(&e);
	if (!atomic_load(&r->set->unfinished))
		return 0;
	(void)err_set(&e, REPL_E_REFUSED,
		      "a copy into pool set '%s' was begun and not finished: it can't be read; a "
		      "program that writes to the pool finishes it",
		      remote_info(r->replicas[0].remote)->name);
	return config_report(&e);
}

/* ---- beside the others of the set ---- */

static int
set_refuse(const struct repl *r, const struct repl *other, enum setsource verdict, struct err *e)
{
	static const char *const what[] = {
		[SETSOURCE_BEHIND] = "is behind that of",
		[SETSOURCE_DIVERGED] = "and the other have gone on without each other: that of",
		[SETSOURCE_UNTOLD] = "was not closed, and may be behind that of",
	};
	char mine[TARGET_TEXT_MAX], theirs[TARGET_TEXT_MAX];

	target_format(&r->cfg->targets[0], mine, sizeof(mine));
	target_format(&other->cfg->targets[0], theirs, sizeof(theirs));
	return err_set(e, REPL_E_REFUSED,
		       "the replica %s %s %s; nothing was changed; next: replctl remove --force "
		       "of the one whose data are not wanted, and pmempool sync makes it anew",
		       mine, what[verdict], theirs);
}

int
repl_set_source(struct repl *r, bool choosing)
{
	const struct repl *other = NULL;
	enum setsource verdict;
	struct err e;

	err_clear(&e);
	if (handle_check(r, &e))
		return config_report(&e);
	verdict = siblings_judge(r, &other);
	if (verdict == SETSOURCE_WHOLE || (choosing && siblings_earlier_whole(r)))
		return repl_set_readable(r);
	(void)set_refuse(r, other, verdict, &e);
	return config_report(&e);
}

int
repl_set_agrees(struct repl *r)
{
	const struct repl *other = NULL;
	struct err e;

	err_clear(&e);
	if (handle_check(r, &e))
		return config_report(&e);
	if (siblings_judge(r, &other) != SETSOURCE_DIVERGED)
		return 0;
	(void)set_refuse(r, other, SETSOURCE_DIVERGED, &e);
	return config_report(&e);
}

bool
repl_set_closed(const struct repl *r)
{
	return r->set->found.state == SIDECAR_UP_TO_DATE;
}

/* ---- removing ---- */

int
repl_set_remove(const struct repl_config *cfg, const char *target, bool with_set, bool force)
{
	ENTRY_WHOLE();
	struct json_object *params;
	struct repl_config *mine;
	struct remote *remote = NULL;
	struct err e;
	int rc;

	err_clear(&e);
	rc = set_config(cfg, target, &mine, &e);
	if (rc)
		return config_report(&e);
	rc = remote_new(mine, &mine->targets[0], NULL, &remote, &e);
	if (!rc) {
		params = json_object_new_object();
		control_add(params, "name", json_object_new_string(mine->targets[0].pool));
		control_add(params, "set", json_object_new_boolean(with_set));
		control_add(params, "force", json_object_new_boolean(force));
		rc = remote_call(remote, "pool.remove", params, NULL, &e);
		if (rc == REPL_E_NOT_FOUND && force)
			rc = 0;
	}
	if (remote)
		remote_free(remote, SET_CLOSE_MS);
	if (rc)
		(void)err_prefix(&e, "%s", target);
	repl_config_free(mine);
	return rc ? config_report(&e) : 0;
}
