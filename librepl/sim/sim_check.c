/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariants of docs/RELIABILITY.md, against what was really written.
 *
 * What a chain says is taken at its word: a copy whose chain names a generation
 * holds everything that was acknowledged in it. That is what one relies on who
 * judges two copies by their chains, or promotes one.
 */
#include <string.h>

#include "newest.h"
#include "sim_impl.h"

struct view {
	uint32_t content[SIM_BLOCKS];
	struct sidecar label;
	bool named[SIM_GENERATIONS];
	uint32_t current;
	uint64_t newest; /* start of the last write that is in it */
	uint32_t torn;   /* blocks with bytes of no write */
	bool damaged;    /* its round log lacks frames that count */
	bool unsynced;   /* what its own program wrote may not be on media yet */
};

uint32_t
gen_number(const struct gen_id *id)
{
	uint64_t n;

	memcpy(&n, id->b, sizeof(n));
	return n < SIM_GENERATIONS ? (uint32_t)n : 0;
}

/* ---- what a copy is worth: with what recovery is bound to do ---- */

static void
node_content(const struct sim_node *node, const struct sim_redo *log, bool durable,
	     uint32_t out[SIM_BLOCKS])
{
	const struct sim_journal *j = &node->journal;

	memcpy(out, durable ? node->disk : node->mem, sizeof(node->disk));
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		out[b] = log->blocks >> b & 1 ? log->content[b] : out[b];
	for (unsigned i = 0; j->committed && i < j->count; i++)
		out[j->block[i]] = j->version[i];
}

/* What has come and is not applied yet. */
static void
view_redo(const struct sim *s, unsigned n, bool durable, struct view *v)
{
	struct sim_redo redo = {0};

	ring_content(s, n, durable, &redo);
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		if (redo.blocks >> b & 1)
			v->content[b] = redo.content[b];
	v->torn |= redo.torn;
}

static void
view_make(const struct sim *s, unsigned n, bool durable, struct view *v)
{
	const struct sim_node *node = &s->node[n];
	struct sim_redo log = {0};

	memset(v, 0, sizeof(*v));
	v->damaged = !log_content(s, n, &log);
	v->torn = log.torn;
	node_content(node, &log, durable, v->content);
	view_redo(s, n, durable, v);
	v->label = node->meta;
	v->unsynced = s->lazy && durable && node->meta.writer_open;
	if (node->journal.committed) {
		v->label.state = node->journal.state;
		if (node->journal.has_chain)
			v->label.generation = node->journal.chain;
	}
	if (node->journal.committed && node->journal.has_chain) {
		v->label.position = 0;
		v->label.waited = node->session ? node->journal.waited
						: node->meta.waited &&
							  node->journal.state == SIDECAR_OUTDATED;
		if (node->journal.position)
			lineage_part(&v->label, node->journal.position);
	}
	v->current = gen_number(&v->label.generation.current);
	v->named[v->current] = true;
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		v->named[gen_number(&v->label.generation.history[i])] = true;
	v->named[0] = false;
	for (unsigned b = 0; b < SIM_BLOCKS; b++) {
		if (s->op[v->content[b]].start > v->newest)
			v->newest = s->op[v->content[b]].start;
	}
}

/* ---- rules ---- */

/*
 * Of an outdated copy the current generation is there up to some moment only (I2), and so it is
 * of a queued one.
 */
static bool
must_hold(const struct view *v, unsigned n, const struct sim_op *op)
{
	if (op->ack == SIM_NEVER || op->forsaken || op->unsynced || !v->named[op->gen] ||
	    (v->unsynced && op->node == n))
		return false;
	if (op->gen != v->current)
		return true;
	if (v->label.state == SIDECAR_OUTDATED || op->queued >> n & 1)
		return op->ack < v->newest;
	return true;
}

static void
check_holds(struct sim *s, unsigned n, const struct view *v)
{
	for (uint32_t i = 1; i <= s->ops; i++) {
		const struct sim_op *op = &s->op[i];

		if (!must_hold(v, n, op) || v->content[op->block] >= i)
			continue;
		sim_fail(s,
			 "%s: node %u is %s in generation %u and lacks write %u of block %u "
			 "(it has %u), acknowledged in generation %u by node %u",
			 v->label.state == SIDECAR_OUTDATED ? "I2" : "I3", n,
			 sidecar_state_name(v->label.state), v->current, i, op->block,
			 v->content[op->block], op->gen, op->node);
		return;
	}
}

/* A chain that is full has forgotten what was before its oldest generation. */
static bool
is_forgotten(const struct view *v, unsigned gen)
{
	if (gen_id_is_nil(&v->label.generation.history[GEN_HISTORY - 1]))
		return false;
	for (unsigned i = 0; i <= gen; i++)
		if (v->named[i])
			return false;
	return true;
}

/* Nothing in it of a history that is not its own. */
static void
check_unmixed(struct sim *s, unsigned n, const struct view *v)
{
	for (unsigned b = 0; b < SIM_BLOCKS; b++) {
		const struct sim_op *op = &s->op[v->content[b]];

		if (!v->content[b] || op->ack == SIM_NEVER || op->disowned || op->node == n ||
		    op->posted >> n & 1 || v->named[op->gen] || is_forgotten(v, op->gen))
			continue;
		sim_fail(s,
			 "I2: node %u is %s in generation %u and has write %u of block %u, which "
			 "was made in generation %u",
			 n, sidecar_state_name(v->label.state), v->current, v->content[b], b,
			 op->gen);
		return;
	}
}

/*
 * What somebody chooses who has only the replicas of node n's program, all of them, by RECOVERY.md.
 * The number of nodes: it can't be told.
 */
static unsigned
best_copy(const struct sim *s, unsigned n, const struct view *v)
{
	const struct sidecar *labels[SIM_NODES];
	struct sidecar label[SIM_NODES];
	unsigned nodes[SIM_NODES], count = 0, doubt, best;

	for (unsigned k = 0; k < s->nodes; k++) {
		if (k == n)
			continue;
		label[count] = v[k].label;
		if (s->node[k].session && s->node[k].position > label[count].position)
			label[count].position = s->node[k].position;
		labels[count] = &label[count];
		nodes[count++] = k;
	}
	best = newest_of(labels, count, &doubt);
	return best < count ? nodes[best] : s->nodes;
}

/* I8 */
static void
check_best(struct sim *s, unsigned n, const struct view *v)
{
	unsigned best = best_copy(s, n, v);
	uint32_t excused = 0;

	/* None, or somebody has gone on from it. */
	if (best == s->nodes || !v[n].named[v[best].current])
		return;
	/* What only a copy has that another one is being copied into. */
	for (unsigned k = 0; k < s->nodes; k++)
		excused |= v[k].label.state == SIDECAR_INCONSISTENT ? 1U << k : 0;
	for (uint32_t i = 1; i <= s->ops; i++) {
		const struct sim_op *op = &s->op[i];

		if (op->node != n || op->forsaken || op->unsynced || !(op->held & ~excused) ||
		    v[best].content[op->block] >= i)
			continue;
		sim_fail(s,
			 "I8: of the replicas of node %u's program node %u looks best, in "
			 "generation %u, and lacks write %u of block %u (it has %u), acknowledged "
			 "in generation %u",
			 n, best, v[best].current, i, op->block, v[best].content[op->block],
			 op->gen);
		return;
	}
}

/* Of node n's replicas k is queued, its program knows what it has, and drains wait for other. */
static bool
are_unlike(const struct sim *s, unsigned n, unsigned k, unsigned other)
{
	const struct sim_keeper *keeper = &s->node[n].app.keeper[k];

	return other != n && other != k && !queued_serves(s, n, other) && !keeper->label_rpc &&
	       queued_serves(s, n, k) && keeper->installed;
}

static bool
is_before(const struct view *owner, const struct view *a, const struct view *b)
{
	return newest_usable(&a->label) && newest_usable(&b->label) && owner->named[a->current] &&
	       newest_over(&a->label, &b->label) != NEWEST_UNTOLD &&
	       newest_over(&b->label, &a->label) == NEWEST_UNTOLD;
}

/*
 * I8, of a queued replica beside one that drains waited for, whichever others are lost: the one
 * that looks better has what was acknowledged and the queued one has answered.
 */
static void
check_laggard(struct sim *s, unsigned n, unsigned k, unsigned other, const struct view *v)
{
	const struct shipqueue *q = &s->node[n].app.q;

	for (uint32_t i = 1; i <= s->ops; i++) {
		const struct sim_op *op = &s->op[i];

		if (op->node != n || op->ack == SIM_NEVER || op->forsaken || op->unsynced ||
		    !op->number || !shipqueue_has(q, k, op->number) ||
		    v[other].content[op->block] >= i)
			continue;
		sim_fail(s,
			 "I8: node %u looks better than node %u, in generations %u and %u, and "
			 "lacks write %u of block %u (it has %u), which that one has answered",
			 other, k, v[other].current, v[k].current, i, op->block,
			 v[other].content[op->block]);
		return;
	}
}

/* The same, where the queued one looks better: what was acknowledged and the other one has. */
static void
check_waited(struct sim *s, unsigned n, unsigned k, unsigned other, const struct view *v)
{
	for (uint32_t i = 1; i <= s->ops; i++) {
		const struct sim_op *op = &s->op[i];

		if (op->node != n || op->ack == SIM_NEVER || op->forsaken || op->unsynced ||
		    !v[other].named[op->gen] || v[other].content[op->block] < i ||
		    v[k].content[op->block] >= i)
			continue;
		sim_fail(
			s,
			"I8: node %u, which is queued, looks better than node %u, in generations "
			"%u and %u, and lacks write %u of block %u (it has %u), which that one has",
			k, other, v[k].current, v[other].current, i, op->block,
			v[k].content[op->block]);
		return;
	}
}

static void
check_laggards(struct sim *s, unsigned n, const struct view *v)
{
	const struct sim_app *app = &s->node[n].app;

	if (!app->running || app->opening || app->advancing)
		return;
	for (unsigned k = 0; k < s->nodes; k++)
		for (unsigned other = 0; other < s->nodes; other++) {
			if (!are_unlike(s, n, k, other))
				continue;
			if (is_before(&v[n], &v[other], &v[k]))
				check_laggard(s, n, k, other, v);
			if (is_before(&v[n], &v[k], &v[other]))
				check_waited(s, n, k, other, v);
		}
}

static void
check_view(struct sim *s, unsigned n, const struct view *v)
{
	if (v->label.state == SIDECAR_INCONSISTENT || !v->current)
		return;
	if (v->damaged)
		sim_fail(s, "I3: node %u: frames of its round log are missing", n);
	if (v->torn)
		sim_fail(s, "I2: node %u has bytes of no write in block %u", n,
			 (unsigned)__builtin_ctz(v->torn));
	check_holds(s, n, v);
	check_unmixed(s, n, v);
}

void
check_all(struct sim *s)
{
	struct view durable[SIM_NODES], live;

	for (unsigned n = 0; n < s->nodes && !s->failed; n++) {
		view_make(s, n, false, &live);
		check_view(s, n, &live);
		view_make(s, n, true, &durable[n]);
		check_view(s, n, &durable[n]);
	}
	for (unsigned n = 0; n < s->nodes && !s->failed; n++) {
		check_best(s, n, durable);
		check_laggards(s, n, durable);
	}
}

/* I1 of queued ones: as many as the policy asks for have it, or all that are left. */
static void
check_needed(struct sim *s, unsigned n, struct sim_op *op, uint32_t version)
{
	const struct sim_app *app = &s->node[n].app;
	/* Not as the program has worked it out. */
	unsigned needed = ack_needed(s->ack, (unsigned)__builtin_popcount(app->policy.sync));
	uint32_t lacks = 0;
	unsigned has = 0;

	for (unsigned k = 0; k < s->nodes; k++) {
		struct view v;

		if (!app->keeper[k].installed || !(app->policy.sync >> k & 1))
			continue;
		view_make(s, k, true, &v);
		/* Of one that was discarded since, what it had when it answered is gone. */
		if (v.content[op->block] >= version ||
		    app->keeper[k].session <= s->node[k].discarded)
			has++;
		else
			lacks |= 1U << k;
	}
	s->held |= op->held != 0;
	if (has < needed && lacks)
		sim_fail(s,
			 "I1: write %u of block %u was acknowledged by node %u with fewer replicas "
			 "than needed, and node %u lacks it",
			 version, op->block, n, (unsigned)__builtin_ctz(lacks));
}

/* I1: on the media of every replica that counts, under a name that says so. */
void
check_acknowledged(struct sim *s, unsigned n, struct sim_op *op, uint32_t version)
{
	const struct sim_app *app = &s->node[n].app;

	check_needed(s, n, op, version);

	for (unsigned k = 0; k < s->nodes; k++) {
		struct view v;

		if (!app->keeper[k].installed || app->keeper[k].session <= s->node[k].discarded ||
		    queued_serves(s, n, k))
			continue;
		view_make(s, k, true, &v);
		if (v.content[op->block] < version)
			sim_fail(s,
				 "I1: write %u of block %u was acknowledged by node %u and is not "
				 "on the media of node %u, which has %u",
				 version, op->block, n, k, v.content[op->block]);
		else if (!v.named[op->gen])
			sim_fail(s,
				 "I1: write %u was acknowledged in generation %u, node %u has it "
				 "and "
				 "is recorded in generation %u",
				 version, op->gen, k, v.current);
	}
}

void
check_unsynced(struct sim *s, unsigned n, unsigned block)
{
	const struct sim_node *node = &s->node[n];
	uint32_t i = node->mem[block];

	for (; s->lazy && node->meta.writer_open && i > node->disk[block]; i = s->op[i].before)
		s->op[i].unsynced |= s->op[i].node == n;
}

void
check_forsake(struct sim *s, unsigned n)
{
	struct view v;

	view_make(s, n, false, &v);
	s->forked[v.current] = true;
	for (uint32_t i = 1; i <= s->ops; i++) {
		struct sim_op *op = &s->op[i];

		if (op->ack != SIM_NEVER && op->queued >> n & 1 && op->gen == v.current &&
		    v.content[op->block] < i)
			op->forsaken = true;
	}
}

/* Of a queue's what an answer has told of, since more than its position says may be there. */
static bool
is_known_of(const struct sim_op *op, unsigned n)
{
	return op->ack != SIM_NEVER && !op->unsynced &&
	       (!(op->queued >> n & 1) || op->held >> n & 1);
}

/*
 * I9: nobody has a usable copy overwritten by itself by one that lacks something which is there and
 * was acknowledged in a generation that it names: not even after a person has gone on from that
 * one.
 */
void
check_overwritten(struct sim *s, unsigned n, unsigned block, uint32_t version)
{
	struct view v;

	if (s->node[n].unusable)
		return;
	view_make(s, n, false, &v);
	for (uint32_t i = v.content[block]; i; i = s->op[i].before) {
		uint32_t at = version;

		while (at > i)
			at = s->op[at].before;
		if (at == i)
			return;
		if (is_known_of(&s->op[i], n) && v.named[s->op[i].gen])
			sim_fail(s,
				 "I9: write %u of block %u, acknowledged in generation %u by node "
				 "%u, is overwritten on node %u by write %u, which came without it",
				 i, block, s->op[i].gen, s->op[i].node, n, version);
	}
}

/* on-loss = block: those that were lost have it, since they were back. */
void
check_blocked(struct sim *s, unsigned n, const struct sim_op *op, uint32_t version, uint32_t lost)
{
	for (unsigned k = 0; k < s->nodes; k++) {
		struct view v;

		if (!(lost >> k & 1) || s->node[k].discarded || s->node[k].fence)
			continue;
		view_make(s, k, true, &v);
		if (v.content[op->block] < version)
			sim_fail(s,
				 "I1: a call on node %u returned that waited for node %u, which "
				 "lacks write %u of block %u",
				 n, k, version, op->block);
	}
}

/*
 * An operator has a copy that told what it holds overwritten by an outdated one, by force. What is
 * left of its kind looks like less.
 */
static uint32_t
no_longer_told(const struct sim *s, unsigned to)
{
	uint32_t nodes = UINT32_C(1) << to;

	for (unsigned k = 0; k < s->nodes; k++) {
		if (s->node[k].meta.state == SIDECAR_OUTDATED)
			nodes |= UINT32_C(1) << k;
	}
	return nodes;
}

/* An operator has this copy overwritten by that one. */
void
check_discard(struct sim *s, unsigned from, unsigned to)
{
	uint32_t untold = no_longer_told(s, to);
	struct view kept, gone;

	/* Nothing that its label tells of is in memory only. */
	view_make(s, from, true, &kept);
	view_make(s, to, false, &gone);
	for (uint32_t i = 1; i <= s->ops; i++) {
		struct sim_op *op = &s->op[i];

		if (gone.content[op->block] >= i && kept.content[op->block] < i)
			op->forsaken |= op->queued != 0;
		/* The answer may still be on its way to the program. */
		if (gone.content[op->block] >= i && op->ack == SIM_NEVER)
			op->discarded |= UINT32_C(1) << to;
		/* What is told of it from now on is what is told of the other one. */
		if (gone.content[op->block] >= i && !op->queued)
			op->held = 0;
		/* Nor by the name of an older one that has it by chance. */
		if (gone.content[op->block] >= i && !kept.named[op->gen])
			op->held &= ~(UINT32_C(1) << to);
		if (kept.label.state == SIDECAR_OUTDATED && gone.content[op->block] >= i)
			op->held &= ~untold;
	}
}

void
check_disown(struct sim *s, unsigned n)
{
	struct view v;

	view_make(s, n, false, &v);
	for (unsigned b = 0; b < SIM_BLOCKS; b++) {
		struct sim_op *op = &s->op[v.content[b]];

		if (op->ack == SIM_NEVER || !v.named[op->gen])
			op->disowned = true;
	}
}

/* What was not drained a resync may have brought, and a power cut taken from the file:
 * repl.conf(5). */
static bool
is_there_alone(const struct sim *s, uint32_t there)
{
	return s->lazy && s->op[there].ack == SIM_NEVER && !s->op[there].drained;
}

static void
check_established(struct sim *s, unsigned n, unsigned k)
{
	const struct sim_app *app = &s->node[n].app;
	uint32_t pending = 0;
	struct view v;

	for (unsigned l = 0; l < SIM_LANES; l++)
		pending |= app->lane[l].pending;
	view_make(s, k, true, &v);
	if (v.label.state != SIDECAR_UP_TO_DATE)
		sim_fail(s, "I3: node %u is established on node %u and recorded as %s", k, n,
			 sidecar_state_name(v.label.state));
	if (s->node[k].meta.pool_size < app->size)
		sim_fail(s, "I3: node %u is established on node %u and has not its size", k, n);
	for (unsigned b = 0; b < SIM_BLOCKS; b++) {
		uint32_t here = s->node[n].mem[b];

		/* A store that was never flushed, or drained, may be here alone. */
		if (!(pending >> b & 1) && !is_there_alone(s, v.content[b]) &&
		    (s->op[here].ack != SIM_NEVER || s->op[here].drained) && v.content[b] != here)
			sim_fail(s, "I2: node %u is established and block %u is %u, on node %u %u",
				 k, b, v.content[b], n, here);
	}
}

/* Larger, or of another size without one naming the other: that is told to people. */
static bool
is_of_other_size(const struct sim_app *app, const struct sidecar *other)
{
	enum gen_relation relation = gen_compare(&app->chain, &other->generation);

	return other->pool_size > app->size ||
	       (other->pool_size < app->size && relation != GEN_EQUAL && relation != GEN_AHEAD &&
		relation != GEN_BEHIND);
}

/* Everything is well again for long: every replica is back, or waits for a person for a reason. */
void
check_settled(struct sim *s)
{
	for (unsigned n = 0; n < s->nodes; n++) {
		for (unsigned k = 0; k < s->nodes && s->node[n].app.running; k++) {
			const struct sim_node *other = &s->node[k];
			enum fsm_state state = s->node[n].app.keeper[k].fsm.state;

			if (k == n || state == FSM_PAUSED)
				continue;
			if (state == FSM_STANDALONE && !s->told)
				sim_fail(
					s,
					"node %u is refused by node %u, and nothing was done to it",
					k, n);
			if (state == FSM_STANDALONE ||
			    is_of_other_size(&s->node[n].app, &other->meta))
				continue;
			if (state == FSM_ESTABLISHED)
				check_established(s, n, k);
			else if (!other->app.running &&
				 !(other->session && other->session_from != n))
				sim_fail(s, "node %u has not come back to node %u: %s", k, n,
					 fsm_state_name(state));
		}
	}
}
