/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistence on an open replica set, and what can be seen of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dirty.h"
#include "entry.h"
#include "keeper.h"
#include "repl_impl.h"
#include "repl_lanes.h"
#include "ship.h"
#include "words.h"

#define STAT_SIZE_MAX 65536U /* of a version to come; more is no size that anybody has set */

/*
 * Memory takes 8 aligned bytes that are stored at once, and gives them to its media so: no replica
 * gets one part of them before another, whichever a range names. The pool's last ones may be fewer.
 */
static struct range
whole_words(const struct repl *r, size_t off, size_t len)
{
	size_t size = atomic_load_explicit(&r->size, memory_order_acquire);
	size_t from = off - off % WORDS_SIZE, end = off + len, over = end % WORDS_SIZE;

	if (over)
		end = size - end < WORDS_SIZE - over ? size : end + WORDS_SIZE - over;
	return (struct range){.off = from, .len = len ? end - from : 0};
}

/* ---- public ---- */

int
repl_flush(struct repl *r, unsigned lane, size_t off, size_t len)
{
	ENTRY_WHOLE();
	struct range words;
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, len, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	words = whole_words(r, off, len);
	rc = lanes_flush(r, lane, words.off, words.len, 0, &e);
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
}

int
repl_drain(struct repl *r, unsigned lane)
{
	ENTRY_WHOLE();
	struct err e;
	int rc;

	err_clear(&e);
	rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_drain(r, lane, LANE_DRAIN, 0, 0, &e);
	return lane_answer(r, lane, rc, &e);
}

int
repl_persist(struct repl *r, unsigned lane, size_t off, size_t len)
{
	ENTRY_WHOLE();
	struct range words;
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, len, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	words = whole_words(r, off, len);
	rc = lanes_flush(r, lane, words.off, words.len, 0, &e);
	if (!rc)
		rc = lanes_drain(r, lane, LANE_DRAIN, 0, 0, &e);
	return lane_answer(r, lane, rc, &e);
}

int
repl_persist_atomic8(struct repl *r, unsigned lane, size_t off)
{
	ENTRY_WHOLE();
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, 8, &e);
	if (!rc && off % 8)
		rc = err_set(&e, REPL_E_INVAL, "offset %zu is not a multiple of 8", off);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_drain(r, lane, LANE_ATOMIC8, off, 8, &e);
	return lane_answer(r, lane, rc, &e);
}

static int
pair_check(const struct repl *r, size_t a_off, size_t a_len, size_t b_off, size_t b_len,
	   struct err *e)
{
	int rc = range_check(r, a_off, a_len, e);

	if (!rc)
		rc = range_check(r, b_off, b_len, e);
	if (!rc && (a_len == 0 || b_len == 0))
		rc = err_set(e, REPL_E_INVAL, "a range of the pair is empty");
	if (!rc && a_off < b_off + b_len && b_off < a_off + a_len)
		rc = err_set(e, REPL_E_INVAL,
			     "the ranges of the pair overlap: %zu bytes at %zu and %zu at %zu",
			     a_len, a_off, b_len, b_off);
	return rc;
}

/* Of a word that they have in common b's bytes are not to be there first. */
static struct range
pair_first(const struct repl *r, size_t a_off, size_t a_len, size_t b_off, size_t b_len)
{
	struct range a = whole_words(r, a_off, a_len);
	size_t end = a.off + a.len;

	if (b_off < a_off && b_off + b_len > a.off)
		a.off = b_off + b_len;
	if (b_off > a_off && b_off < end)
		end = b_off;
	a.len = end - a.off;
	return a;
}

int
repl_persist_pair(struct repl *r, unsigned lane, size_t a_off, size_t a_len, size_t b_off,
		  size_t b_len)
{
	ENTRY_WHOLE();
	struct range a, b;
	struct err e;
	int rc;

	err_clear(&e);
	rc = pair_check(r, a_off, a_len, b_off, b_len, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	a = pair_first(r, a_off, a_len, b_off, b_len);
	b = whole_words(r, b_off, b_len);
	rc = lanes_flush(r, lane, a.off, a.len, b.len, &e);
	if (!rc)
		rc = lanes_drain(r, lane, LANE_PAIR, b.off, b.len, &e);
	return lane_answer(r, lane, rc, &e);
}

int
repl_persist_behind(struct repl *r, unsigned lane, const struct repl_behind *behind)
{
	const struct range *a = behind->a, *b = &behind->b;
	/* As repl_flush() and repl_persist_atomic8(), or as repl_persist_pair(). */
	size_t second = b->len == WORDS_SIZE ? 0 : b->len;
	struct err e;
	int rc;

	err_clear(&e);
	rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_drain_met(r, lane, b, &e);
	if (!rc)
		rc = lanes_flush(r, lane, a[0].off, a[0].len, second, &e);
	if (!rc)
		rc = lanes_flush(r, lane, a[1].off, a[1].len, second, &e);
	if (!rc)
		rc = lanes_drain_behind(r, lane, behind, &e);
	return lane_answer(r, lane, rc, &e);
}

int
repl_trim(struct repl *r, unsigned lane, size_t off, size_t len)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, len, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_drain(r, lane, LANE_TRIM, off, len, &e);
	return lane_answer(r, lane, rc, &e);
}

static int
replica_lost(unsigned replica, struct err *e)
{
	return err_set(e, REPL_E_LOST, "replica %u is lost", replica);
}

/* The replica's own lane; with a queue that is one for all. */
static int
replica_read(struct repl *r, unsigned lane, unsigned replica, void *buf, size_t off, size_t len,
	     struct err *e)
{
	uint64_t deadline_ns, loss_ns = (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS / 4;
	bool queued = ship_serves(r->ship, replica), slow;
	struct replica *p = &r->replicas[replica];
	struct remote_read_until until;
	unsigned l = queued ? 0 : lane;
	int rc;

	if (atomic_load(&p->lost))
		return replica_lost(replica, e);
	if (queued && !ship_lane_borrow(r->ship, replica, clock_deadline(r->cfg->op_timeout_ms)))
		return atomic_load(&p->lost)
			       ? replica_lost(replica, e)
			       : err_set(e, REPL_E_BUSY,
					 "replica %u: others have read from it, or its queue has "
					 "not emptied, for op-timeout: call again",
					 replica);
	/* Only from here on it is the target that is waited for. */
	deadline_ns = clock_deadline(r->cfg->op_timeout_ms);
	until.deadline_ns = deadline_ns - loss_ns;
	/* The last piece must have time as well. */
	until.more_ns = until.deadline_ns - loss_ns;
	rc = remote_read_pieces(p->remote, l, buf, off, len, &until, e);
	/* A target that has answered each piece is none the worse for how many there were. */
	slow = rc == REPL_E_TIMEOUT && remote_lane(p->remote, l)->status == 0;
	if (queued)
		ship_lane_return(r->ship, replica);
	/* The others must have time to hear of it, or they would be lost as well. */
	if (rc && !slow && !atomic_load(&p->lost))
		repl_lose(r, replica, rc, e->text, deadline_ns);
	return rc;
}

static int
replica_check(const struct repl *r, unsigned replica, struct err *e)
{
	if (replica < r->replica_count)
		return 0;
	return err_set(e, REPL_E_INVAL, "replica %u of %u", replica, r->replica_count);
}

int
repl_read(struct repl *r, unsigned lane, unsigned replica, void *buf, size_t off, size_t len)
{
	ENTRY_WHOLE();
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, len, &e);
	if (!rc && !buf && len)
		rc = err_set(&e, REPL_E_INVAL, "no place for what is read");
	if (!rc)
		rc = replica_check(r, replica, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = replica_read(r, lane, replica, buf, off, len, &e);
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
}

unsigned
repl_lanes(const struct repl *r)
{
	return r ? r->lane_count : 0;
}

unsigned
repl_replicas(const struct repl *r)
{
	return r ? r->replica_count : 0;
}

/* ---- observation ---- */

void
repl_snapshot(struct repl *r, unsigned replica, struct replica_snapshot *out)
{
	struct replica *p = &r->replicas[replica];

	memset(out, 0, sizeof(*out));
	if (!repl_reason_lock(r))
		return;
	out->lost = atomic_load(&p->lost);
	out->connection = atomic_load(&p->connection);
	out->replication = atomic_load(&p->replication);
	out->data = atomic_load(&p->data);
	out->traffic = p->traffic;
	memcpy(out->provider, p->provider, sizeof(out->provider));
	memcpy(out->provider_why, p->provider_why, sizeof(out->provider_why));
	if (p->remote)
		remote_traffic_add(p->remote, &out->traffic);
	if (out->replication != REPL_REPL_ESTABLISHED) {
		out->why = atomic_load(&p->why);
		memcpy(out->reason, p->reason, sizeof(out->reason));
		memcpy(out->trouble, p->trouble, sizeof(out->trouble));
	}
	pthread_mutex_unlock(&r->reason_lock);
	out->paused = atomic_load(&p->paused);
	out->error_count = atomic_load(&p->error_count);
	out->degraded_count = atomic_load(&p->degraded_count);
	out->reconnect_count = atomic_load(&p->reconnect_count);
}

static void
stat_fill_resync(const struct resync_progress *p, struct repl_stat *st)
{
	st->resync_total = atomic_load(&p->total);
	st->resync_done = atomic_load(&p->done);
	st->resync_moved = atomic_load(&p->moved);
	st->resync_rate = atomic_load(&p->rate);
	st->resync_eta_ms = atomic_load(&p->eta_ms);
}

static void
stat_fill(struct repl *r, unsigned replica, struct repl_stat *st)
{
	struct replica_snapshot now;

	for (unsigned i = 0; i < r->lane_count; i++) {
		struct lane_slot *s = &r->slots[i];

		st->flush_count += atomic_load(&s->flush_count);
		st->merged_count += atomic_load(&s->merged_count);
		st->drain_count += atomic_load(&s->drain_count);
		st->latency_sum_ns += atomic_load(&s->latency_sum_ns);
		for (unsigned b = 0; b < REPL_HIST_BUCKETS; b++)
			st->latency_ns[b] += atomic_load(&s->latency_ns[b]);
	}
	/* Before the axes: nothing is on its way to one that is lost, which is not well by that. */
	ship_lag(r->ship, replica, &st->lag_bytes, &st->lag_ms);
	repl_snapshot(r, replica, &now);
	st->message_count = now.traffic.messages;
	st->write_count = now.traffic.writes;
	st->read_count = now.traffic.reads;
	st->byte_count = now.traffic.bytes;
	st->immediate_count = now.traffic.immediates;
	st->error_count = now.error_count;
	st->degraded_count = now.degraded_count;
	st->connection = now.connection;
	st->replication = now.replication;
	st->data = now.data;
	/* The last try to get it back tells more than how it went away. */
	memcpy(st->reason, now.trouble[0] && !now.paused ? now.trouble : now.reason,
	       sizeof(st->reason));
	st->reason_code = now.why;
	st->paused = now.paused;
	st->reconnect_count = now.reconnect_count;
	st->uncopied_count = now.traffic.uncopied;
	memcpy(st->provider, now.provider, sizeof(st->provider));
	memcpy(st->provider_why, now.provider_why, sizeof(st->provider_why));
	if (st->replication != REPL_REPL_ESTABLISHED && r->dirty)
		st->dirty_bytes = dirty_bytes(r->dirty, replica);
	if (st->replication == REPL_REPL_RESYNCING)
		stat_fill_resync(keeper_progress(r, replica), st);
}

static int
stat_check(const struct repl_stat *st, struct err *e)
{
	if (!st)
		return err_set(e, REPL_E_INVAL, "no place for the counters: it is NULL");
	if (st->struct_size >= sizeof(size_t) && st->struct_size <= STAT_SIZE_MAX)
		return 0;
	return err_set(e, REPL_E_INVAL, "struct_size is %zu: set it to sizeof(struct repl_stat)",
		       st->struct_size);
}

int
repl_stat(struct repl *r, unsigned replica, struct repl_stat *st)
{
	ENTRY_WHOLE();
	struct repl_stat now = {0};
	struct err e;
	size_t size;

	err_clear(&e);
	if (handle_check(r, &e) || replica_check(r, replica, &e) || stat_check(st, &e))
		return config_report(&e);
	stat_fill(r, replica, &now);
	size = st->struct_size < sizeof(now) ? st->struct_size : sizeof(now);
	now.struct_size = st->struct_size;
	memcpy(st, &now, size);
	/* A program of a later version: what we know nothing of is zero. */
	memset((char *)st + size, 0, now.struct_size - size);
	return 0;
}

char *
repl_profile_text(struct remote *remote)
{
	static const uint64_t sizes[] = {8, 64, 4096, 65536, 1048576};
	const struct profile *profile = remote_profile(remote);
	const struct plan_limits *lim = &remote_lane(remote, 0)->limits;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	char facts[4096];

	if (!f)
		return NULL;
	(void)profile_format(profile, facts, sizeof(facts));
	(void)fputs(facts, f);
	(void)remote_source_format(remote, facts, sizeof(facts));
	(void)fputs(facts, f);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct plan plan = plan_choose(profile, PLAN_SINGLETON, sizes[i], lim);

		(void)fprintf(f, "method for %" PRIu64 " bytes = %s (%s)\n", sizes[i],
			      plan_method_name(plan.method), plan.reason);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

int
repl_profile(struct repl *r, unsigned replica, const char **text)
{
	ENTRY_WHOLE();
	const struct profile_note *note;
	struct replica *p;
	struct err e;

	err_clear(&e);
	if (handle_check(r, &e) || replica_check(r, replica, &e))
		return config_report(&e);
	if (!text)
		return config_report_set(REPL_E_INVAL, "no place for the text: it is NULL");
	p = &r->replicas[replica];
	pthread_mutex_lock(&r->reason_lock);
	/* What became of large writes is known when there have been some. */
	if (p->remote && atomic_load(&p->lost) == 0)
		repl_note_profile(p, repl_profile_text(p->remote));
	note = p->profiles;
	pthread_mutex_unlock(&r->reason_lock);
	if (!note)
		return config_report_set(REPL_E_LOST, "the replica has not been reachable yet");
	*text = note->text;
	return 0;
}
