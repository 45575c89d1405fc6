/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "describe.h"
#include "log.h"
#include "plan.h"
#include "provider.h"

#define WINDOW_PINNED   65536U /* a lane's, by verbs */
#define PUBLISH_NS      NS_PER_S
#define SIZE_SMALL      64
#define SIZE_LARGE      (1U << 20)
#define METHOD_NAME_MAX 64

void
state_init(struct state *s, const struct conf *c)
{
	uint32_t salt = 0;

	memset(s, 0, sizeof(*s));
	s->conf = c;
	s->since = time(NULL);
	/* Only a name for people; the process id alone tells sessions apart. */
	(void)!getrandom(&salt, sizeof(salt), GRND_NONBLOCK);
	(void)snprintf(s->id, sizeof(s->id), "%d-%08x", (int)getpid(), (unsigned)salt);
	(void)snprintf(s->peer, sizeof(s->peer), "unnamed peer of uid %u", (unsigned)getuid());
}

/* It was never opened here. */
static void
made_end(struct state *s)
{
	struct err e;

	err_clear(&e);
	if (!s->made[0])
		return;
	state_quiet(s);
	if (pool_remove_unused(s->store, s->made, &s->made_id, s->peer, &e))
		log_warning("a pool that was made and not used stays: %s", e.text);
	s->made[0] = '\0';
}

void
state_pool_made(struct state *s, const struct pool_info *info, bool again)
{
	made_end(s);
	(void)snprintf(s->made, sizeof(s->made), "%s", info->name);
	s->made_id = info->meta.pool_uuid;
	s->made_untold = again;
}

void
state_heard(struct state *s)
{
	s->made_untold = false;
}

static bool
made_is_open(const struct state *s)
{
	return s->write && strcmp(s->made, s->pool_name) == 0 &&
	       gen_id_equal(&s->made_id, &pool_get_info(s->pool)->meta.pool_uuid);
}

void
state_fini(struct state *s, const char *reason)
{
	struct err e;
	bool write = s->write;
	char name[sizeof(s->pool_name)];

	err_clear(&e);
	memcpy(name, s->pool_name, sizeof(name));
	if (s->pool)
		pool_left(s->pool);
	if (!s->pool)
		log_info("session ends: %s", reason);
	else if (state_pool_close(s, false, &e))
		log_error("session ends: %s; closing pool '%s': %s", reason, name, e.text);
	else if (write)
		log_warning("session ends: %s, pool '%s' was open for writing and is not known "
			    "to be complete",
			    reason, name);
	else
		log_info("session ends: %s, pool '%s' was open for reading", reason, name);
	/* As often as it asks anew it would go again, and wait as long. */
	if (s->made[0] && s->made_untold)
		log_warning("pool '%s' was made when its initiator had gone: it stays, empty, for "
			    "when that comes again",
			    s->made);
	else
		made_end(s);
	fab_warm_free(s->warm);
	s->warm = NULL;
	publisher_free(s->publisher);
	s->publisher = NULL;
	registry_leave(s->registry);
	s->registry = NULL;
	json_object_put(s->report);
	s->report = NULL;
	pool_store_free(s->store);
	s->store = NULL;
}

unsigned
state_phase(const struct state *s)
{
	unsigned phase = 0;

	if (s->registry)
		phase |= PHASE_HELLO;
	if (s->pool)
		phase |= PHASE_POOL;
	if (s->pool && s->write)
		phase |= PHASE_WRITE;
	if (s->data)
		phase |= PHASE_LANES;
	return phase;
}

static void
peer_set(struct state *s, const char *peer)
{
	char context[sizeof(s->id) + sizeof(s->peer) + 16];
	size_t i;

	for (i = 0; peer[i] && i + 1 < sizeof(s->peer); i++)
		s->peer[i] = (char)(peer[i] >= 0x20 && peer[i] < 0x7f ? peer[i] : '?');
	if (i > 0)
		s->peer[i] = '\0';
	(void)snprintf(context, sizeof(context), "session %s %s", s->id, s->peer);
	log_set_context(context);
}

int
state_join(struct state *s, const char *peer, struct err *e)
{
	int rc;

	if (!s->conf->pool_dir)
		return err_set(e, REPL_E_CONFIG,
			       "there is no configuration on this target: make /etc/repld.conf "
			       "there, with the key 'pool-dir', or name a file by --config in the "
			       "command");
	if (!s->store) {
		rc = pool_store_new(s->conf->pool_dir, &s->store, e);
		if (rc)
			return rc;
	}
	peer_set(s, peer);
	rc = registry_join(pool_store_dirfd(s->store), s->conf->sessions_max, &s->registry, e);
	if (rc)
		return rc;
	rc = publisher_new(s->registry, &s->publisher, e);
	if (rc) {
		registry_leave(s->registry);
		s->registry = NULL;
		return rc;
	}
	s->dirty = true;
	return REPL_OK;
}

void
state_quiet(struct state *s)
{
	fab_warm_free(s->warm);
	s->warm = NULL;
}

static void
publish_now(struct state *s)
{
	s->dirty = true;
	s->published_ns = 0;
	state_publish(s);
}

void
state_work_begin(struct state *s, const char *what, const char *name)
{
	s->work = what;
	(void)snprintf(s->pool_name, sizeof(s->pool_name), "%s", name);
	publish_now(s);
}

void
state_work_end(struct state *s)
{
	s->work = NULL;
	if (!s->pool)
		s->pool_name[0] = '\0';
	publish_now(s);
}

static int
pool_take(struct state *s, const struct state_opening *o, struct err *e)
{
	const struct pool_claim claim = {.writer = s->peer,
					 .chain = o->chain,
					 .force = o->force,
					 .waits = o->waits == WAITS_EACH,
					 .resumes = o->resumes};
	bool write = o->mode == POOL_WRITE;
	struct pool *pool = NULL;
	struct pmem_map *map = NULL;
	int rc;

	/* Mapping wants the process for itself, see pmem.h: opening may map, too. */
	state_quiet(s);
	rc = write ? pool_open_by(s->store, o->name, &claim, &pool, e)
		   : pool_open(s->store, o->name, o->mode, s->peer, &pool, e);
	if (rc)
		return rc;
	rc = pool_map(pool, write, &map, e);
	if (rc)
		goto out;
	/* Of the lanes to come nothing is known yet. */
	rc = provider_probe(s->conf, pool_fd(pool), map, write, pool_get_info(pool)->replicas > 0,
			    "tcp", "", &s->probe, e);
	if (rc)
		goto out;
	s->pool = pool;
	s->map = map;
	s->write = write;
	s->positions = o->waits == WAITS_NEVER;
	/* Who opens a pool opens lanes next. */
	s->warm = fab_warm_new();
	return REPL_OK;
out:
	/* Nothing was written, so the pool is what it was. */
	pmem_map_free(map);
	(void)pool_close(pool, true, NULL);
	return rc;
}

int
state_pool_open(struct state *s, const struct state_opening *o, struct err *e)
{
	int rc;

	/* What a dead writer has left is brought in. */
	state_work_begin(s, "open", o->name);
	rc = pool_take(s, o, e);
	/* At once: a writer on record of which no session says that it has the pool looks dead. */
	state_work_end(s);
	return rc;
}

int
state_check_files(struct state *s, struct err *e)
{
	int rc = pool_check_files(s->pool, e);

	if (!rc)
		return 0;
	log_warning("%s", e->text);
	s->ends = "files are not what they were";
	return rc;
}

/*
 * With addresses for total bytes. The old ones are given up first: with a limit on them there are
 * no others.
 */
static int
map_again(struct state *s, uint64_t total, struct err *e)
{
	struct err why;
	int rc;

	err_clear(&why);
	/* Mapping wants the process for itself, see pmem.h. */
	baseline_free(s->baseline);
	s->baseline = NULL;
	state_quiet(s);
	pmem_map_free(s->map);
	s->map = NULL;
	rc = pool_map_for(s->pool, total, &s->map, e);
	if (!rc || !pool_map(s->pool, true, &s->map, &why))
		return rc;
	log_error("%s", why.text);
	s->ends = "the pool can't be mapped again";
	return rc;
}

/* Lanes use the addresses that the pool has; until they are opened it can have others. */
static int
grow_room(struct state *s, uint64_t size, struct err *e)
{
	int rc;

	if (size <= pmem_map_room(s->map))
		return 0;
	if (s->data)
		return err_set(e, REPL_E_LIMIT,
			       "pool '%s' can grow to %zu bytes in this session, for which it has "
			       "addresses, and not to %llu",
			       s->pool_name, pmem_map_room(s->map), (unsigned long long)size);
	/* What was prepared is mapped behind the old ones. */
	if (s->grown)
		(void)pool_grow_undo(s->pool, NULL);
	s->grown = 0;
	rc = map_again(s, size, e);
	if (rc == REPL_E_LIMIT)
		(void)err_set(e, rc,
			      "pool '%s' can't grow to %llu bytes: there are no addresses for so "
			      "many on the target",
			      s->pool_name, (unsigned long long)size);
	return rc;
}

/* Whatever may be refused: behind this step a replica that does not grow is lost. */
static int
grow_prepare(struct state *s, uint64_t size, struct err *e)
{
	/* First: what was cut off would be zeros again, and the file whole. */
	int rc = state_check_files(s, e);

	if (!rc && s->data)
		rc = data_grow_check(s->data, size, e);
	if (!rc)
		rc = grow_room(s, size, e);
	if (rc)
		return rc;
	s->grown = 0;
	rc = pool_grow_space(s->pool, size, e);
	if (!rc)
		rc = pool_map_extend(s->pool, s->map, size, e);
	if (rc)
		(void)pool_grow_undo(s->pool, NULL);
	else
		s->grown = size;
	return rc;
}

static int
grow(struct state *s, uint64_t size, bool prepare, struct err *e)
{
	uint64_t now = pmem_map_size(s->map);
	int rc = 0;

	if (size < now)
		return err_set(e, REPL_E_INVAL, "pool '%s' has %llu bytes and can't have less",
			       s->pool_name, (unsigned long long)now);
	if (size == now) {
		s->grown = 0;
		return pool_grow_undo(s->pool, e);
	}
	/* What it is compared with has the size that it has. */
	if (pool_get_info(s->pool)->header)
		return err_set(e, REPL_E_REFUSED,
			       "pool set '%s' has headers: it is as large as the set of its "
			       "initiator, of which none grows that has a replica; for a larger "
			       "pool make both anew, by pmempool create",
			       s->pool_name);
	if (s->grown != size)
		rc = grow_prepare(s, size, e);
	if (rc || prepare)
		return rc;
	if (s->data)
		rc = data_grow(s->data, size, e);
	if (!rc)
		rc = pool_grow_record(s->pool, size, e);
	if (rc)
		return rc;
	/* From its next message on the data thread takes ranges of the new part. */
	pmem_map_set_size(s->map, size);
	s->grown = 0;
	return 0;
}

int
state_pool_grow(struct state *s, uint64_t size, bool prepare, struct err *e)
{
	int rc = grow(s, size, prepare, e);

	if (pool_sync_failed(s->pool))
		state_flush_lost(s);
	return rc;
}

bool
state_flush_failed(const struct state *s)
{
	return s->flush_failed || (s->data && data_failed(s->data));
}

void
state_flush_lost(struct state *s)
{
	s->flush_failed = true;
	if (s->log)
		roundlog_fail(s->log);
	if (s->data)
		data_fail(s->data, REPL_E_IO);
}

static void
journal_end(struct state *s)
{
	struct err e;

	err_clear(&e);
	if (!pool_journal_end(s->pool, s->map, s->flush_failed || !s->map, &e))
		return;
	log_error("%s: it is seen to when the pool is opened next", e.text);
	s->flush_failed = true;
}

bool
state_tidy(struct state *s)
{
	return s->pool && pool_journal_tidy(s->pool);
}

uint64_t
state_tidy_at(const struct state *s)
{
	return s->pool ? pool_journal_tidy_at(s->pool) : UINT64_MAX;
}

int
state_pool_close(struct state *s, bool clean, struct err *e)
{
	int rc;

	state_lanes_close(s);
	journal_end(s);
	json_object_put(s->report);
	s->report = NULL;
	/* So none is there when the next pool is mapped, see pmem.h. */
	baseline_free(s->baseline);
	s->baseline = NULL;
	pmem_map_free(s->map);
	s->map = NULL;
	if (s->grown) {
		(void)pool_grow_undo(s->pool, NULL);
		s->flush_failed |= pool_sync_failed(s->pool);
	}
	s->grown = 0;
	if (s->flush_failed)
		pool_flush_lost(s->pool);
	clean = clean && !s->flush_failed;
	if (made_is_open(s)) {
		rc = pool_close_unused(s->pool, clean, e);
		s->made[0] = '\0';
	} else {
		rc = pool_close(s->pool, clean, e);
	}
	s->pool = NULL;
	s->write = false;
	s->flush_failed = false;
	s->dirty = true;
	s->pool_name[0] = '\0';
	return rc;
}

/* Where there is no room for a ring the lanes do without. */
static void
ring_make(struct state *s, struct data_params *p)
{
	struct ring_geometry g = {
		.lanes = p->lanes,
		.slots = FAB_SERVER_SLOTS(p->depth),
		.slot_size = (uint32_t)((p->msg_size + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN),
	};
	struct err e;

	err_clear(&e);
	/* Mapping wants the process for itself, see pmem.h. */
	baseline_free(s->baseline);
	s->baseline = NULL;
	if (pool_ring_make(s->pool, &g, &s->ring, &e))
		log_warning("no receive ring: %s", e.text);
	p->ring = s->ring;
}

static void
ring_end(struct state *s)
{
	struct err e;

	err_clear(&e);
	if (!pool_ring_end(s->pool, s->ring, s->map, s->flush_failed, &e))
		goto out;
	log_error("%s: it is replayed when the pool is opened next", e.text);
	s->flush_failed = true;
out:
	s->ring = NULL;
}

/* Where syncs are dear. Without room for a log the lanes do without. */
static void
log_make(struct state *s, struct data_params *p)
{
	struct err e;

	/* What is in a log is not yet in local replicas. */
	if (!s->write || s->ring || !pmem_map_groups(s->map) ||
	    pool_get_info(s->pool)->replicas > 0)
		return;
	/* Its writer is about to go on with that, and all goes by it. */
	if (pool_get_info(s->pool)->meta.journal_len)
		return;
	err_clear(&e);
	/* Mapping wants the process for itself, see pmem.h. */
	baseline_free(s->baseline);
	s->baseline = NULL;
	if (pool_log_make(s->pool, s->map, &s->log, &e))
		log_warning("no round log, so each update waits for syncs of the pool: %s", e.text);
	p->log = s->log;
}

static void
log_end(struct state *s)
{
	struct err e;

	err_clear(&e);
	if (pool_log_end(s->pool, s->log, s->flush_failed, &e)) {
		log_error("%s: it is replayed when the pool is opened next", e.text);
		s->flush_failed = true;
	}
	s->log = NULL;
}

/* Where none can be kept nobody knows after a kill how far the pool has come. */
static void
record_make(struct state *s, struct data_params *p)
{
	struct err e;

	if (!s->write || s->ring || s->log)
		return;
	if (pmem_map_groups(s->map)) {
		log_warning("no position record: where updates wait for a sync the round log is "
			    "one, and there is none");
		return;
	}
	err_clear(&e);
	/* Mapping wants the process for itself, see pmem.h. */
	baseline_free(s->baseline);
	s->baseline = NULL;
	if (pool_record_make(s->pool, &s->record, &e))
		log_warning("no position record: %s", e.text);
	p->record = s->record;
}

static void
record_end(struct state *s)
{
	struct err e;

	err_clear(&e);
	if (pool_record_end(s->pool, s->record, &e)) {
		log_error("%s: it is looked at when the pool is opened next", e.text);
		s->flush_failed = true;
	}
	s->record = NULL;
}

int
state_persist(struct state *s, struct range *r, size_t count, struct err *e)
{
	int rc = s->log ? roundlog_persist(s->log, r, count, e)
			: pmem_map_persist(s->map, r, count, e);

	if (rc)
		state_flush_lost(s);
	return rc;
}

int
state_log_settle(struct state *s, struct err *e)
{
	int rc = s->log ? roundlog_settle(s->log, e) : 0;

	if (rc)
		state_flush_lost(s);
	return rc;
}

/*
 * Where an RNIC can't have the pool all reads go by FETCH, and windows are pinned. Elsewhere only
 * those of who reads a whole pool, where that is cheaper by the file.
 */
static size_t
lane_window(const struct data_params *p)
{
	if (strcmp(p->provider, "verbs") == 0)
		return p->rma ? 0 : WINDOW_PINNED;
	return pmem_map_by_file(p->map) ? WIRE_FETCH_MAX : 0;
}

int
state_lanes_open(struct state *s, struct data_params *p, bool ring, struct err *e)
{
	int rc;

	fab_warm_free(s->warm);
	s->warm = NULL;
	/* Its replay would undo what these lanes do. */
	if (s->write &&
	    (pool_get_info(s->pool)->meta.ring_len || pool_get_info(s->pool)->meta.log_len))
		return err_set(e, REPL_E_IO,
			       "pool '%s': a %s could not be taken in: close the pool and open it "
			       "again",
			       s->pool_name,
			       pool_get_info(s->pool)->meta.ring_len ? "receive ring"
								     : "round log");
	rc = s->write ? pool_written(s->pool, e) : 0;
	if (rc)
		return rc;
	if (ring)
		ring_make(s, p);
	log_make(s, p);
	if (s->positions)
		record_make(s, p);
	/* Where a singleton goes without a checksum of its bytes, and nothing of a message lies on
	 * media. */
	p->bare = p->rma && !p->ring && !p->log;
	p->window = lane_window(p);
	p->put = s->write && p->rma && !p->ring && pmem_map_by_file(p->map);
	rc = data_new(p, &s->data, e);
	if (rc) {
		ring_end(s);
		log_end(s);
		record_end(s);
		return rc;
	}
	s->lanes = p->lanes;
	s->rma = p->rma;
	s->msg_size = (unsigned)p->msg_size;
	s->published_commits = 0;
	s->dirty = true;
	return REPL_OK;
}

void
state_lanes_close(struct state *s)
{
	/* The last round may be the one that fails. */
	data_stop(s->data);
	s->flush_failed = state_flush_failed(s);
	if (s->data)
		pool_position(s->pool, data_position(s->data));
	data_free(s->data);
	s->data = NULL;
	ring_end(s);
	log_end(s);
	record_end(s);
	s->lanes = 0;
	s->dirty = true;
}

/* What an initiator is told to do by the same rules that it applies itself. */
static void
method_text(const struct state *s, char out[METHOD_NAME_MAX])
{
	struct plan_limits lim = {.inline_max = s->msg_size,
				  .message_max = s->msg_size,
				  .single_max = s->msg_size,
				  .rma = s->rma,
				  .can = PLAN_CAN_ALWAYS | PLAN_COMMITTED |
					 (s->data && data_imm_unit(s->data) ? PLAN_IMMEDIATE : 0)};
	struct plan small, large;

	/* Lanes with a ring carry nothing else. */
	if (s->ring) {
		(void)snprintf(out, METHOD_NAME_MAX, "%s", plan_method_name(PLAN_DEPOSIT));
		return;
	}

	small = plan_choose(&s->probe.profile, PLAN_SINGLETON, SIZE_SMALL, &lim);
	large = plan_choose(&s->probe.profile, PLAN_SINGLETON, SIZE_LARGE, &lim);
	if (small.method == large.method)
		(void)snprintf(out, METHOD_NAME_MAX, "%s", plan_method_name(small.method));
	else
		(void)snprintf(out, METHOD_NAME_MAX, "%s, large ranges %s",
			       plan_method_name(small.method), plan_method_name(large.method));
}

static uint64_t
commit_count(const struct state *s)
{
	return s->data ? atomic_load(&data_get_counters(s->data)->commits) : 0;
}

static void
entry_add_counters(const struct state *s, struct json_object *o)
{
	const struct data_counters *c = data_get_counters(s->data);
	char method[METHOD_NAME_MAX];

	method_text(s, method);
	describe_add_u64(o, "commits", atomic_load(&c->commits));
	describe_add_u64(o, "commit_bytes", atomic_load(&c->commit_bytes));
	describe_add_u64(o, "write_bytes", atomic_load(&c->write_bytes));
	describe_add_u64(o, "last_commit", atomic_load(&c->last_commit_s));
	describe_add_text(o, "method", method);
	describe_add_text(o, "provider", s->probe.profile.provider_name);
}

struct json_object *
state_entry(const struct state *s)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	describe_add_text(o, "session", s->id);
	describe_add_u64(o, "pid", (uint64_t)getpid());
	describe_add_text(o, "peer", s->peer);
	describe_add_u64(o, "since", (uint64_t)s->since);
	if (s->pool) {
		describe_add_text(o, "pool", s->pool_name);
		describe_add_text(o, "mode", s->write ? "write" : "read");
		control_add(o, "overrides", describe_overrides(s->conf, &s->probe.profile));
	} else if (s->work) {
		describe_add_text(o, "pool", s->pool_name);
		describe_add_text(o, "mode", s->work);
	}
	describe_add_u64(o, "lanes", s->lanes);
	if (s->pool && s->report)
		control_add(o, "report", json_object_get(s->report));
	if (s->data)
		entry_add_counters(s, o);
	return o;
}

void
state_report(struct state *s, struct json_object *report)
{
	if (!report)
		return;
	if (json_object_equal(report, s->report)) {
		json_object_put(report);
		return;
	}
	json_object_put(s->report);
	s->report = report;
	s->dirty = true;
}

uint64_t
state_publish_at(const struct state *s)
{
	if (!s->registry || (!s->dirty && !s->data))
		return UINT64_MAX;
	return s->published_ns + PUBLISH_NS;
}

void
state_publish(struct state *s)
{
	struct json_object *entry;
	struct err e;
	uint64_t now = clock_now_ns();

	if (now < state_publish_at(s))
		return;
	s->published_ns = now;
	if (!s->dirty && commit_count(s) == s->published_commits)
		return;
	err_clear(&e);
	s->dirty = false;
	s->published_commits = commit_count(s);
	entry = state_entry(s);
	if (!control_complete(entry))
		(void)err_set(&e, REPL_E_NOMEM, "out of memory");
	else
		(void)publisher_put(s->publisher, entry, &e);
	json_object_put(entry);
	/* Status for others is no reason to end this session, nor for a line each second. */
	if (e.code && strcmp(e.text, s->unpublished) != 0)
		log_warning("status entry: %s", e.text);
	memcpy(s->unpublished, e.text, sizeof(s->unpublished));
}
