/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side: its session, its journal, its sidecar. */
#include <string.h>

#include "librepl.h"
#include "sim_impl.h"

/* ---- media ---- */

/* Into memory; true if it may be: a fenced writer changes nothing (I4). */
bool
media_store(struct sim *s, unsigned n, unsigned block, uint32_t version, uint64_t session)
{
	struct sim_node *node = &s->node[n];

	if (session && node->is_primary)
		sim_fail(s, "I4: session %u changed block %u of node %u, which is a primary",
			 (unsigned)session, block, n);
	else if (session && session <= node->fence)
		sim_fail(s, "I4: session %u changed block %u of node %u after it was fenced",
			 (unsigned)session, block, n);
	else if (session && block >= node->mapped)
		sim_fail(s, "I2: session %u wrote block %u of node %u, which has %u",
			 (unsigned)session, block, n, node->mapped);
	node->mem[block] = version;
	s->changed = true;
	return !s->failed;
}

/* All or nothing, through the real slot; false: not written, the old one stands. */
bool
media_sidecar(struct sim *s, unsigned n, const struct sidecar *meta)
{
	struct sim_node *node = &s->node[n];
	struct sidecar next = *meta;

	if (node->sidecar_fails) {
		node->sidecar_fails--;
		return false;
	}
	if (node->app.running && s->now < node->beside_fails_until)
		return false;
	next.sequence = node->meta.sequence + 1;
	sidecar_encode(&next, node->slot);
	if (sidecar_decode(node->slot, &node->meta, NULL))
		sim_fail(s, "I7: node %u: a sidecar that was written cannot be read", n);
	s->changed = true;
	return true;
}

void
media_flush(struct sim *s, unsigned n, uint32_t blocks)
{
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		if (blocks >> b & 1)
			s->node[n].disk[b] = s->node[n].mem[b];
	s->changed = true;
}

void
target_sync(struct sim *s, unsigned n)
{
	memcpy(s->node[n].disk, s->node[n].mem, sizeof(s->node[n].disk));
	s->changed = true;
}

/* ---- journal ---- */

static void
journal_apply(struct sim *s, unsigned n, unsigned max)
{
	struct sim_journal *j = &s->node[n].journal;

	for (; max && j->applied < j->count; max--, j->applied++)
		(void)media_store(s, n, j->block[j->applied], j->version[j->applied], 0);
}

static bool
waits_for(const struct sim *s, unsigned n, unsigned k)
{
	return sim_broken(s, SIM_QUEUE_WAITED) || !queued_serves(s, n, k);
}

/* All is in memory: durable, then one update says so and drops the journal. */
static bool
journal_finish(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sidecar meta = node->meta;

	target_sync(s, n);
	meta.state = node->journal.state;
	if (node->journal.has_chain) {
		meta.generation = node->journal.chain;
		meta.position = 0;
		meta.waited = node->journal.waited;
	}
	if (node->journal.position)
		lineage_part(&meta, node->journal.position);
	if (!media_sidecar(s, n, &meta))
		return false;
	memset(&node->journal, 0, sizeof(node->journal));
	return true;
}

void
target_recover(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_journal *j = &node->journal;
	struct sidecar meta;

	if (!log_recover(s, n))
		return;
	if (sim_broken(s, SIM_APPLY_UNCOMMITTED) && j->open && !j->committed && j->count) {
		journal_apply(s, n, SIM_JOURNAL);
		target_sync(s, n);
	}
	if (sim_broken(s, SIM_DROP_COMMITTED) && j->committed) {
		meta = node->meta;
		meta.state = j->state;
		meta.generation = j->chain;
		if (media_sidecar(s, n, &meta))
			memset(j, 0, sizeof(*j));
	}
	if (j->committed) {
		j->applied = 0;
		j->waited = node->meta.waited && j->state == SIDECAR_OUTDATED;
		journal_apply(s, n, SIM_JOURNAL);
		if (!journal_finish(s, n))
			return;
	}
	memset(j, 0, sizeof(*j));
	if (!ring_recover(s, n))
		return;
	meta = node->meta;
	if (meta.writer_open) {
		if (s->lazy)
			target_sync(s, n);
		meta.writer_open = false;
		if (meta.state == SIDECAR_UP_TO_DATE)
			meta.state = SIDECAR_UNKNOWN;
		(void)media_sidecar(s, n, &meta);
	}
}

bool
target_left(const struct sim *s, unsigned n)
{
	const struct sim_node *node = &s->node[n];

	return !node->up || node->journal.open || log_is_left(s, n) ||
	       (ring_is_left(s, n) && !sim_broken(s, SIM_RING_KEPT));
}

void
target_position(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];

	if (node->session && node->position > node->meta.position)
		node->meta.position = node->position;
}

void
target_end(struct sim *s, unsigned n, bool clean)
{
	struct sim_node *node = &s->node[n];
	struct sidecar meta;

	if (!node->session)
		return;
	target_position(s, n);
	node->session = 0;
	net_forget(s, n);
	/* It stays for who opens the pool next. */
	if (!log_end(s, n) || !ring_recover(s, n))
		return;
	/* Room that was made and not used. */
	grow_cut(s, n);
	meta = node->meta;
	if (clean && !node->journal.open) {
		meta.writer_open = false;
		(void)media_sidecar(s, n, &meta);
		return;
	}
	target_recover(s, n);
}

/* ---- requests ---- */

void
target_reply(struct sim *s, const struct sim_msg *m, int rc, struct sim_msg *reply)
{
	reply->from = m->to;
	reply->to = m->from;
	reply->session = m->session;
	reply->channel = m->channel;
	reply->rpc = m->rpc;
	reply->of = m->kind;
	reply->kind = SIM_REPLY;
	reply->number = m->number;
	reply->rc = rc;
	net_send(s, reply);
}

static int
target_open(struct sim *s, const struct sim_msg *m, struct sim_msg *reply)
{
	struct sim_node *node = &s->node[m->to];
	enum gen_relation relation;
	struct sidecar meta;

	if (node->app.running || node->session)
		return REPL_E_BUSY;
	grow_cut(s, m->to);
	target_recover(s, m->to);
	if (target_left(s, m->to) || node->meta.writer_open)
		return REPL_E_IO;
	if (!sim_broken(s, SIM_NO_SYNC_AT_OPEN))
		target_sync(s, m->to);
	if (node->meta.primary)
		return REPL_E_REFUSED;
	relation = gen_compare(&m->chain, &node->meta.generation);
	if (s->target_checks && !sim_broken(s, SIM_ACCEPT_OLDER) && relation != GEN_EQUAL &&
	    relation != GEN_AHEAD)
		return REPL_E_DIVERGED;
	reply->meta = meta = node->meta;
	meta.epoch++;
	meta.writer_open = true;
	if (!sim_broken(s, SIM_KEEP_MAP))
		meta.dirty_off = meta.dirty_len = 0;
	if (!media_sidecar(s, m->to, &meta))
		return REPL_E_IO;
	/* What others missed of a pool that is written by another is not in its map. */
	if (!sim_broken(s, SIM_KEEP_MAP))
		memset(node->map, 0, sizeof(node->map));
	node->session = m->session;
	node->session_from = m->from;
	node->unusable = reply->meta.state == SIDECAR_INCONSISTENT;
	node->position = node->position_next = 0;
	node->unsynced = 0;
	node->mapped = maps_blocks(node->meta.pool_size);
	return log_make(s, m->to) ? 0 : REPL_E_LOST;
}

static int
target_store(struct sim *s, const struct sim_msg *m)
{
	if (s->node[m->to].journal.open)
		return REPL_E_PROTOCOL;
	for (unsigned i = 0; m->kind == SIM_PUSH && i < m->count; i++)
		check_overwritten(s, m->to, m->block[i], m->version[i]);
	for (unsigned i = 0; i < m->count; i++)
		if (!media_store(s, m->to, m->block[i], m->version[i], m->session))
			return REPL_E_FAILED;
	return 0;
}

/* What lies in front of a BARRIER is durable before anything behind it is stored. */
static void
target_barrier(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];

	for (unsigned b = 0; b < SIM_BLOCKS && !sim_broken(s, SIM_QUEUE_NO_BARRIER); b++)
		if (node->unsynced >> b & 1)
			node->disk[b] = node->mem[b];
	node->position = node->position_next;
	node->position_next = m->number;
	node->unsynced = 0;
	for (unsigned i = 0; i < m->count; i++)
		node->unsynced |= 1U << m->block[i];
}

static void
target_commit(struct sim *s, const struct sim_msg *m)
{
	struct sim_msg later = *m, reply = {0};
	int rc;

	if (log_takes(s, m)) {
		rc = log_commit(s, m);
		if (rc)
			target_reply(s, m, rc, &reply);
		return;
	}
	if (m->kind == SIM_SHIP)
		target_barrier(s, m);
	rc = target_store(s, m);
	if (rc || sim_broken(s, SIM_ACK_EARLY)) {
		target_reply(s, m, rc, &reply);
		if (rc)
			return;
	}
	later.kind = SIM_PERSIST;
	later.of = m->kind;
	net_self(s, &later, 50000 + sim_random(s) % (4 * SIM_MS));
}

static void
target_persist(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];
	struct sim_msg asked = *m, reply = {0};

	if (m->of == SIM_DEPOSIT) {
		ring_persist(s, m);
		return;
	}
	/* What a flush makes durable is what is there now. */
	for (unsigned i = 0; i < m->count; i++)
		node->disk[m->block[i]] = node->mem[m->block[i]];
	if (m->of == SIM_SHIP && m->number > node->position)
		node->position = m->number;
	s->changed = true;
	asked.kind = m->of;
	if (!sim_broken(s, SIM_ACK_EARLY))
		target_reply(s, &asked, 0, &reply);
}

static int
target_stage(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];
	struct sim_journal *j = &node->journal;

	if (!j->open || j->committed)
		return REPL_E_PROTOCOL;
	if (node->journal_fails) {
		node->journal_fails--;
		return REPL_E_IO;
	}
	if (j->count + m->count > SIM_JOURNAL)
		return REPL_E_NOSPC;
	for (unsigned i = 0; i < m->count; i++) {
		j->block[j->count] = m->block[i];
		j->version[j->count++] = m->version[i];
	}
	return 0;
}

static int
target_jcommit(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];

	if (!node->journal.open || node->journal.committed)
		return REPL_E_PROTOCOL;
	if (node->journal_fails) {
		node->journal_fails--;
		return REPL_E_IO;
	}
	if (!log_settle(s, m->to, UINT32_MAX))
		return REPL_E_LOST;
	for (unsigned i = 0; i < node->journal.count; i++)
		check_overwritten(s, m->to, node->journal.block[i], node->journal.version[i]);
	node->journal.committed = true;
	node->journal.state = m->state;
	node->journal.has_chain = m->has_chain;
	node->journal.chain = m->chain;
	node->journal.position = m->position;
	node->journal.waited = waits_for(s, m->from, m->to);
	s->changed = true;
	return 0;
}

static int
target_japply(struct sim *s, const struct sim_msg *m, struct sim_msg *reply)
{
	struct sim_journal *j = &s->node[m->to].journal;

	if (!j->committed)
		return REPL_E_PROTOCOL;
	journal_apply(s, m->to, SIM_BATCH);
	if (j->applied < j->count)
		return 0;
	reply->last = true;
	return journal_finish(s, m->to) ? 0 : REPL_E_IO;
}

static int
target_mark(struct sim *s, const struct sim_msg *m)
{
	struct sidecar meta = s->node[m->to].meta;

	meta.state = m->state;
	if (m->has_chain) {
		meta.generation = m->chain;
		meta.position = sim_broken(s, SIM_POSITION_KEPT) ? meta.position : 0;
		meta.waited = waits_for(s, m->from, m->to);
	}
	if (m->position)
		lineage_part(&meta, m->position);
	return media_sidecar(s, m->to, &meta) ? 0 : REPL_E_IO;
}

static int
target_call(struct sim *s, const struct sim_msg *m, struct sim_msg *reply)
{
	switch (m->kind) {
	case SIM_PING:
		/* A verification, beside the lanes. */
		if (log_is_left(s, m->to) && sim_random(s) % 4 == 0 &&
		    !log_settle(s, m->to, (1U << SIM_BLOCKS) - 1))
			return REPL_E_LOST;
		return 0;
	case SIM_HASH:
		if (!log_settle(s, m->to, (1U << SIM_BLOCKS) - 1))
			return REPL_E_LOST;
		memcpy(reply->content, s->node[m->to].mem, sizeof(reply->content));
		return 0;
	case SIM_JBEGIN:
		memset(&s->node[m->to].journal, 0, sizeof(s->node[m->to].journal));
		s->node[m->to].journal.open = true;
		return 0;
	case SIM_STAGE:
		return target_stage(s, m);
	case SIM_JCOMMIT:
		return target_jcommit(s, m);
	case SIM_JAPPLY:
		return target_japply(s, m, reply);
	case SIM_MARK:
		return target_mark(s, m);
	case SIM_GROW:
		return grow_target(s, m);
	case SIM_LANES_OPEN:
		return ring_lanes(s, m, reply);
	default:
		return 0;
	}
}

static void
target_answer(struct sim *s, const struct sim_msg *m)
{
	struct sim_msg reply = {0};
	int rc = target_call(s, m, &reply);

	/* It may have died over it. */
	if (s->node[m->to].session == m->session)
		target_reply(s, m, rc, &reply);
}

static void
target_enter(struct sim *s, const struct sim_msg *m)
{
	struct sim_msg reply = {0};
	int rc = target_open(s, m, &reply);

	/* Likewise, over what the one before has left. */
	if (s->node[m->to].up && rc != REPL_E_LOST)
		target_reply(s, m, rc, &reply);
}

/* What is of a session that has ended finds nobody. */
static bool
target_heeds(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];

	if (node->session == m->session)
		return true;
	return sim_broken(s, SIM_NO_FENCE) && m->kind == SIM_COMMIT && m->session <= node->fence;
}

void
target_take(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];
	struct sim_msg reply = {0};

	if (!node->up)
		return;
	if (m->kind != SIM_OPEN && !target_heeds(s, m)) {
		reply = (struct sim_msg){.from = m->to,
					 .to = m->from,
					 .session = m->session,
					 .kind = SIM_RESET,
					 .of = m->kind};
		if (m->kind != SIM_FIN && m->kind != SIM_PERSIST && m->kind != SIM_ROUND &&
		    m->kind != SIM_LOG_STEP)
			net_send(s, &reply);
		return;
	}
	node->session_heard = s->now;
	if (m->kind == SIM_FIN || m->kind == SIM_CLOSE)
		target_end(s, m->to, m->kind == SIM_CLOSE);
	else if (m->kind == SIM_PERSIST)
		target_persist(s, m);
	else if (m->kind == SIM_COMMIT || m->kind == SIM_PUSH || m->kind == SIM_SHIP)
		target_commit(s, m);
	else if (m->kind == SIM_DEPOSIT)
		ring_deposit(s, m);
	else if (m->kind == SIM_ROUND)
		ring_round(s, m);
	else if (m->kind == SIM_LOG_STEP)
		log_step(s, m);
	else if (m->kind == SIM_OPEN)
		target_enter(s, m);
	else
		target_answer(s, m);
}

void
target_tick(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];

	log_tick(s, n);
	if (node->session && s->now - node->session_heard > SIM_TARGET_PATIENCE)
		target_end(s, n, false);
}
