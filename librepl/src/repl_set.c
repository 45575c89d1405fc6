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
#include "ownwait.h"
#include "repl_lanes.h"
#include "siblings.h"
#include "text.h"
#include "transfer.h"

#define SET_PAGE     4096U
#define SET_CLOSE_MS 1000U

/* ---- opening ---- */

static int
set_config(const struct repl_config *cfg, const char *target, bool keep, struct repl_config **out,
	   struct err *e)
{
	int rc = config_copy_for(cfg, target, out, e);

	/* One that does not come back is not waited for. */
	if (!rc && !keep && (*out)->on_loss == REPL_ON_LOSS_BLOCK)
		(*out)->on_loss = REPL_ON_LOSS_FAIL;
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

/* Under r->lock */
static bool
set_is_found(const struct repl *r, const struct replica_info *info)
{
	const struct repl_set *set = r->set;

	return gen_id_equal(&info->meta.pool_uuid, &set->found.pool_uuid) &&
	       info->header == set->header && info->has_attr == set->has_attr &&
	       memcmp(info->attr, set->attr, PMDK_ATTR_SIZE) == 0;
}

/* What one of another size lacks, a comparison can't tell. */
static int
set_size_check(const struct repl *r, const struct remote *remote, struct err *e)
{
	const struct replica_info *info = remote_info(remote);

	if (r->size == info->meta.pool_size)
		return 0;
	(void)err_set(e, REPL_E_INVAL,
		      "pool set '%s' on the target has %" PRIu64 " bytes, and %zu are open here: "
		      "what it lacks can't be told; next: replctl remove --force of it, then "
		      "pmempool sync of the set file, which makes it anew",
		      info->name, info->meta.pool_size, (size_t)r->size);
	(void)err_because(e, REPL_REASON_SIZE);
	return REPL_E_INVAL;
}

int
repl_set_open_again(struct repl *r, struct remote *remote, struct err *e)
{
	const struct replica_info *info;
	bool found;
	int rc;

	/* Until then it is not known what it lacked before it was lost. */
	if (!atomic_load(&r->set->begun))
		return err_set(e, REPL_E_BUSY, "the program has not written to the pool set yet");
	rc = remote_pool_open(remote, remote_target(remote)->pool, REMOTE_WRITE, e);
	if (rc)
		return rc;
	info = remote_info(remote);
	if (info->header_damage[0])
		return err_set(e, REPL_E_CORRUPT, "%s", info->header_damage);
	if (set_size_check(r, remote, e))
		return e->code;
	pthread_mutex_lock(&r->lock);
	found = set_is_found(r, info);
	pthread_mutex_unlock(&r->lock);
	if (found)
		return 0;
	return err_set(
		e, REPL_E_DIVERGED,
		"pool set '%s' on the target is not the one that was lost: it was made anew, "
		"or its headers have changed; nothing was changed; next: start the program "
		"again, which compares",
		info->name);
}

bool
repl_set_gives_up(const struct repl *r)
{
	return r->set && !r->set->keep;
}

bool
repl_set_is_away(const struct repl *r)
{
	return atomic_load(&r->replicas[0].lost) != 0;
}

bool
repl_set_by_resync(const struct repl *r)
{
	const struct sidecar *meta = &remote_info(r->replicas[0].remote)->meta;

	/* As in set_is_known(): before it is known what others have. */
	return r->size == meta->pool_size && !setsource_is_whole(meta) &&
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
	set = malloc(sizeof(*set));
	if (!set)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	*set = *how;
	set->asking = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	set->keep = how->keep && twin_map(&set->twin, addr, size);
	rc = set_config(cfg, target, set->keep, &mine, e);
	if (rc) {
		twin_unmap(&set->twin);
		free(set);
		return rc;
	}
	if (set->keep)
		addr = set->twin.mem;
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
	struct repl_set how = {.create = true, .fill = fill, .keep = !fill};
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
repl_set_open(const struct repl_config *cfg, const char *target, void *addr, size_t size, bool keep,
	      uint8_t attr[PMDK_ATTR_SIZE], bool *has_attr, struct repl **out)
{
	ENTRY_WHOLE();
	const struct repl_set how = {.keep = keep};
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

/* Its grow_lock, of a handle of this process. */
static bool
set_lock(struct repl *r, struct err *e)
{
	if (handle_check(r, e))
		return false;
	if (ownwait_lock(&r->grow_lock, &r->abandoned))
		return true;
	(void)handle_abandoned(e);
	return false;
}

/* Under grow_lock: nobody takes the remote away. */
static int
set_attr(struct repl *r, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	struct remote *remote = r->replicas[0].remote;
	struct json_object *params;
	char hex[2 * PMDK_ATTR_SIZE + 1];
	int rc;

	if (!remote)
		return err_set(e, REPL_E_LOST, "the replica is lost");
	params = json_object_new_object();
	hex_encode(attr, PMDK_ATTR_SIZE, hex);
	control_add(params, "attr", json_object_new_string(hex));
	rc = remote_call(remote, "pool.attr", params, NULL, e);
	if (rc)
		return rc;
	pthread_mutex_lock(&r->lock);
	memcpy(r->set->attr, attr, PMDK_ATTR_SIZE);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

int
repl_set_attr(struct repl *r, const uint8_t attr[PMDK_ATTR_SIZE])
{
	ENTRY_WHOLE();
	struct err e;
	int rc;

	err_clear(&e);
	if (!set_lock(r, &e))
		return config_report(&e);
	rc = set_attr(r, attr, &e);
	pthread_mutex_unlock(&r->grow_lock);
	return rc ? config_report(&e) : 0;
}

/* ---- before the first write ---- */

static void
set_remote(struct repl *r, struct remote *remote)
{
	pthread_mutex_lock(&r->lock);
	pthread_mutex_lock(&r->reason_lock);
	r->replicas[0].remote = remote;
	pthread_mutex_unlock(&r->reason_lock);
	pthread_mutex_unlock(&r->lock);
}

/*
 * With the lanes that the handle was configured for in place of those that a resync goes by. Nobody
 * is in a lane, and no sibling tells it of a loss yet; who looks at what has gone over them sees
 * none meanwhile.
 */
static int
set_reopen_lanes(struct repl *r, struct remote *remote, struct err *e)
{
	int rc;

	set_remote(r, NULL);
	rc = remote_lanes_reopen(remote, r->lane_count, e);
	if (!rc)
		remote_bind(remote, r->mem, &r->replicas[0].lost);
	set_remote(r, remote);
	return rc;
}

/*
 * As each opening of other pools, but that nothing is known of a former one. What it is made equal
 * to is of the siblings' generation, also if we end before that is recorded.
 */
static int
set_resync(struct repl *r, struct remote *remote, struct err *e)
{
	struct generation chain;
	int rc = siblings_generation(r, &chain, e);

	if (!rc)
		rc = bring_resync(r, 0, r->dirty, RESYNC_HASHES, &chain, e);
	if (rc)
		return rc;
	dirty_untrack(r->dirty, 0);
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

	repl_direct_note(r, 0);
	rc = remote_pool_mark(remote, SIDECAR_INCONSISTENT, NULL, e);
	return rc ? rc : transfer_push(&t, r->mem, r->size, &sum, e);
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

/*
 * One that was whole when others were gone on with without it is not. What one lacks that is not
 * known to be is in no map. One that was never written to holds zeros, as does the pool.
 */
static bool
set_is_known(struct repl *r, const struct sidecar *meta)
{
	const struct repl *other;

	return setsource_is_whole(meta) && siblings_judge(r, &other) == SETSOURCE_WHOLE;
}

/* Its requests keep the session alive: the keeper, who may not, does not. */
static int
set_catch_up(struct repl *r, struct remote *remote, struct err *e)
{
	int rc;

	if (!ownwait_lock(&r->set->asking, &r->abandoned))
		return handle_abandoned(e);
	rc = repl_set_by_resync(r) ? set_resync(r, remote, e) : set_copy(r, remote, e);
	pthread_mutex_unlock(&r->set->asking);
	return rc;
}

/* Under grow_lock. */
static int
set_begin(struct repl *r, struct err *e)
{
	struct remote *remote = r->replicas[0].remote;
	const struct sidecar *meta = &remote_info(remote)->meta;
	/* The replica is to be made equal to what a power cut leaves here, not to more. */
	int rc = local_settle(r->mem, r->size, e);

	r->generation = meta->generation;
	if (!rc && !set_is_known(r, meta)) {
		rc = set_size_check(r, remote, e);
		if (!rc)
			rc = set_borrow_lanes(r, e);
		if (rc)
			return rc;
		rc = set_catch_up(r, remote, e);
		for (unsigned i = r->lane_count; i > 0; i--)
			lane_leave(r, i - 1);
	}
	if (!rc)
		rc = siblings_record(r, false, clock_deadline(r->cfg->op_timeout_ms), e);
	/* Until then it was not whole. */
	repl_direct_end(r, 0);
	if (!rc)
		atomic_store(&r->set->unfinished, false);
	return rc;
}

/* What it lacked when it was opened is in no map: only a comparison tells. */
static void
set_doubt(struct repl *r)
{
	pthread_mutex_lock(&r->lock);
	if (atomic_load(&r->replicas[0].lost))
		dirty_doubt(r->dirty, 0);
	pthread_mutex_unlock(&r->lock);
}

static void
set_lose(struct repl *r, const struct err *e)
{
	const struct repl_loss loss = {.status = e->code, .why = e->text, .reason = e->reason};

	repl_lose_all(r, &loss, 1, clock_deadline(r->cfg->op_timeout_ms));
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
	if (!set_lock(r, &e))
		return config_report(&e);
	if (!atomic_load(&r->set->begun)) {
		/* One that is lost before has a keeper that waits for this, and perhaps no remote.
		 */
		rc = repl_set_is_away(r) ? 0 : set_begin(r, &e);
		if (rc)
			set_lose(r, &e);
		set_doubt(r);
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
	if (!set_lock(r, &e))
		return config_report(&e);
	rc = siblings_record(r, true, clock_deadline(r->cfg->op_timeout_ms), &e);
	pthread_mutex_unlock(&r->grow_lock);
	return rc ? config_report(&e) : 0;
}

void
repl_set_unfilled(struct repl *r)
{
	ENTRY_WHOLE();

	if (handle_check(r, NULL))
		return;
	keepers_stop(r);
	pthread_mutex_lock(&r->grow_lock);
	if (!repl_set_is_away(r))
		repl_set_undo(r, r->replicas[0].remote);
	pthread_mutex_unlock(&r->grow_lock);
}

/* None opens the pool while another replica of it is still to be made, as by the refused sync. */
int
repl_set_readable(struct repl *r)
{
	char text[TARGET_TEXT_MAX], word[2 * TARGET_TEXT_MAX];
	struct err e;

	err_clear(&e);
	if (!atomic_load(&r->set->unfinished))
		return 0;
	target_format(&r->cfg->targets[0], text, sizeof(text));
	(void)err_set(&e, REPL_E_REFUSED,
		      "a copy into pool set '%s' was begun and not finished: it can't be read; "
		      "next: a program that writes to the pool finishes it; where none can open "
		      "it, as for want of another replica, and the local pool is whole: replctl "
		      "remove --force %s, then pmempool sync makes it anew",
		      r->cfg->targets[0].pool,
		      text_quote(text, word, sizeof(word)) ? word : "TARGET/POOL");
	return config_report(&e);
}

int
repl_set_settle(const void *mem, size_t size)
{
	ENTRY_WHOLE();
	struct err e;

	err_clear(&e);
	return local_settle(mem, size, &e) ? config_report(&e) : 0;
}

bool
repl_set_has_new(const void *mem, size_t size)
{
	ENTRY_WHOLE();
	return local_has_new(mem, size);
}

/* ---- beside the others of the set ---- */

static int
set_refuse(const struct repl *r, const struct repl *other, enum setsource verdict, struct err *e)
{
	static const char *const what[] = {
		[SETSOURCE_BEHIND] = "is behind that of",
		[SETSOURCE_DIVERGED] = "and the other have gone on without each other: that of",
		[SETSOURCE_UNTOLD] =
			"was not closed by its last program, and may be behind that of",
	};
	char mine[TARGET_TEXT_MAX], theirs[TARGET_TEXT_MAX];

	target_format(&r->cfg->targets[0], mine, sizeof(mine));
	target_format(&other->cfg->targets[0], theirs, sizeof(theirs));
	return err_set(e, REPL_E_REFUSED,
		       "the replica %s %s %s; nothing was changed; next: replctl remove --force "
		       "of the one whose data are not wanted, and pmempool sync makes it anew",
		       mine, what[verdict], theirs);
}

/* What half is worth is gone, whatever the other one lacks. */
static int
set_refuse_half(const struct repl *half, struct err *e)
{
	char text[TARGET_TEXT_MAX], word[2 * TARGET_TEXT_MAX];

	target_format(&half->cfg->targets[0], text, sizeof(text));
	return err_set(e, REPL_E_REFUSED,
		       "a copy into the replica %s was begun and not finished: it can't be read, "
		       "and what it had more than the other one is lost if the local pool is; "
		       "nothing was changed; next: replctl remove --force %s, then pmempool sync "
		       "takes the other one",
		       text, text_quote(text, word, sizeof(word)) ? word : "TARGET/POOL");
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
	if (atomic_load(&r->set->unfinished) && siblings_readable(r))
		(void)set_refuse_half(r, &e);
	else if (verdict == SETSOURCE_WHOLE || (choosing && siblings_earlier_whole(r)))
		return repl_set_readable(r);
	else if (atomic_load(&other->set->unfinished))
		(void)set_refuse_half(other, &e);
	else
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
	return setsource_is_whole(&r->set->found);
}

bool
repl_set_is_demoted(const struct repl *r)
{
	return r->set->found.state == SIDECAR_UP_TO_DATE && !setsource_is_whole(&r->set->found);
}

bool
repl_set_is_single(const struct repl *r)
{
	return !atomic_load(&r->set->beside);
}

/* ---- removing ---- */

int
repl_set_remove(const struct repl_config *cfg, const char *target, bool with_set, bool force,
		bool damaged)
{
	ENTRY_WHOLE();
	struct json_object *params;
	struct repl_config *mine;
	struct remote *remote = NULL;
	struct err e;
	int rc;

	err_clear(&e);
	rc = set_config(cfg, target, false, &mine, &e);
	if (rc)
		return config_report(&e);
	rc = remote_new(mine, &mine->targets[0], NULL, &remote, &e);
	if (!rc) {
		params = json_object_new_object();
		control_add(params, "name", json_object_new_string(mine->targets[0].pool));
		control_add(params, "set", json_object_new_boolean(with_set));
		control_add(params, "force", json_object_new_boolean(force));
		control_add(params, "damaged", json_object_new_boolean(damaged));
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
