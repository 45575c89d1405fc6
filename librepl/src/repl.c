/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistence on an open replica set, and what can be seen of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "reason.h"
#include "repl_impl.h"
#include "repl_lanes.h"

static unsigned
latency_bucket(uint64_t ns)
{
	unsigned b = ns ? 63U - (unsigned)__builtin_clzll(ns) : 0;

	return b < REPL_HIST_BUCKETS ? b : REPL_HIST_BUCKETS - 1;
}

static int
lanes_drain(struct repl *r, unsigned lane, enum lane_kind kind, size_t off, size_t len,
	    struct err *e)
{
	struct lane_slot *slot = &r->slots[lane];
	uint64_t begin_ns = clock_now_ns();
	int rc;

	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l = lane_of(r, i, lane);

		if (l)
			lane_begin(l, kind, off, len);
	}
	rc = lanes_finish(r, lane, lane_done, e);
	atomic_fetch_add_explicit(&slot->drain_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->latency_ns[latency_bucket(clock_now_ns() - begin_ns)], 1,
				  memory_order_relaxed);
	return rc;
}

/* ---- public ---- */

int
repl_flush(struct repl *r, unsigned lane, size_t off, size_t len)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, len, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_flush(r, lane, off, len, 0, &e);
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
}

int
repl_drain(struct repl *r, unsigned lane)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_drain(r, lane, LANE_DRAIN, 0, 0, &e);
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
}

int
repl_persist(struct repl *r, unsigned lane, size_t off, size_t len)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, len, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_flush(r, lane, off, len, 0, &e);
	if (!rc)
		rc = lanes_drain(r, lane, LANE_DRAIN, 0, 0, &e);
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
}

int
repl_persist_atomic8(struct repl *r, unsigned lane, size_t off)
{
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
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
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

int
repl_persist_pair(struct repl *r, unsigned lane, size_t a_off, size_t a_len, size_t b_off,
		  size_t b_len)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = pair_check(r, a_off, a_len, b_off, b_len, &e);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_flush(r, lane, a_off, a_len, b_len, &e);
	if (!rc)
		rc = lanes_drain(r, lane, LANE_PAIR, b_off, b_len, &e);
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
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
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
}

int
repl_read(struct repl *r, unsigned lane, unsigned replica, void *buf, size_t off, size_t len)
{
	uint64_t deadline_ns = clock_deadline(r->cfg->op_timeout_ms);
	uint64_t loss_ns = (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS / 4;
	struct err e;
	int rc;

	err_clear(&e);
	rc = range_check(r, off, len, &e);
	if (!rc && replica >= r->replica_count)
		rc = err_set(&e, REPL_E_INVAL, "replica %u of %u", replica, r->replica_count);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	if (!lane_of(r, replica, lane))
		rc = err_set(&e, REPL_E_LOST, "replica %u is lost", replica);
	else
		rc = remote_read(r->replicas[replica].remote, lane, buf, off, len,
				 deadline_ns - loss_ns, &e);
	/* The others must have time to hear of it, or they would be lost as well. */
	if (rc && lane_of(r, replica, lane))
		repl_lose(r, replica, rc, e.text, deadline_ns);
	lane_leave(r, lane);
	return rc ? config_report(&e) : 0;
}

unsigned
repl_lanes(const struct repl *r)
{
	return r->lane_count;
}

unsigned
repl_replicas(const struct repl *r)
{
	return r->replica_count;
}

/* ---- observation ---- */

static void
stat_fill(struct repl *r, struct replica *p, struct repl_stat *st)
{
	for (unsigned i = 0; i < r->lane_count; i++) {
		struct lane_slot *s = &r->slots[i];

		st->flush_count += atomic_load(&s->flush_count);
		st->merged_count += atomic_load(&s->merged_count);
		st->drain_count += atomic_load(&s->drain_count);
		for (unsigned b = 0; b < REPL_HIST_BUCKETS; b++)
			st->latency_ns[b] += atomic_load(&s->latency_ns[b]);
		if (p->remote) {
			struct lane_counters *c = &remote_lane(p->remote, i)->counters;

			st->message_count += atomic_load(&c->messages);
			st->write_count += atomic_load(&c->writes);
			st->read_count += atomic_load(&c->reads);
			st->byte_count += atomic_load(&c->bytes);
			st->immediate_count += atomic_load(&c->immediates);
		}
	}
	st->error_count = atomic_load(&p->error_count);
	st->degraded_count = atomic_load(&p->degraded_count);
}

/* With reason_lock held. */
static enum repl_reason
lost_reason(const struct replica *p)
{
	struct err e = {.code = atomic_load(&p->lost)};

	(void)snprintf(e.text, sizeof(e.text), "%s", p->reason);
	return reason_of_error(&e, p->remote ? REASON_USE : REASON_CONNECT);
}

int
repl_stat(struct repl *r, unsigned replica, struct repl_stat *st)
{
	struct repl_stat now = {0};
	struct replica *p;
	size_t size;

	if (!st || st->struct_size < sizeof(size_t) || replica >= r->replica_count)
		return config_report_set(REPL_E_INVAL, "bad replica or struct_size");
	p = &r->replicas[replica];
	stat_fill(r, p, &now);
	pthread_mutex_lock(&r->reason_lock);
	if (atomic_load(&p->lost)) {
		now.connection = REPL_CONN_STANDALONE;
		now.replication = REPL_REPL_DEGRADED;
		now.data = REPL_DATA_OUTDATED;
		(void)snprintf(now.reason, sizeof(now.reason), "%s", p->reason);
		now.reason_code = lost_reason(p);
	}
	pthread_mutex_unlock(&r->reason_lock);
	size = st->struct_size < sizeof(now) ? st->struct_size : sizeof(now);
	now.struct_size = st->struct_size;
	memcpy(st, &now, size);
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
	if (replica >= r->replica_count || !text)
		return config_report_set(REPL_E_INVAL, "bad replica");
	if (!r->replicas[replica].profile_text)
		return config_report_set(REPL_E_LOST, "the replica was not reachable at open");
	*text = r->replicas[replica].profile_text;
	return 0;
}
