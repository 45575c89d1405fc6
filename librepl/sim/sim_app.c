/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator: the application's calls, what a loss records, and holds. */
#include <string.h>

#include "librepl.h"
#include "sim_impl.h"

#define CALLS_MAX     8U
#define CLOSE_TIMEOUT (3000 * SIM_MS)
#define BLOCK_TIMEOUT (8000 * SIM_MS)

/* A drain here ends by the silence of those that it waits for, of which several may be noticed one
 * after the other. */
#define CALL_LIMIT (SIM_OP_TIMEOUT + SIM_OP_TIMEOUT / 2)

/* ---- opening and closing ---- */

static void
app_open_keeper(struct sim *s, unsigned n, unsigned k, bool crashed)
{
	struct sim_node *node = &s->node[n];
	struct sim_keeper *keeper = &node->app.keeper[k];
	bool believed = !crashed || sim_broken(s, SIM_TRUST_AFTER_CRASH);

	if (!s->maps && node->map[k].tracked) {
		keeper->tracked = true;
		keeper->worth.base = node->map[k].base;
		keeper->worth.untrusted = !believed;
		keeper->dirty = node->map[k].bits;
	}
	keeper->at_open = s->node[k].up && !s->cut[n][k];
	keeper->timer = SIM_NEVER;
	fsm_init(&keeper->fsm, 200 * SIM_MS, 30000 * SIM_MS, s->now);
}

static void advance_begin(struct sim *s, unsigned n);
static void lane_return(struct sim *s, unsigned n, unsigned l, bool acknowledge);

/* Who goes on from node n's copy calls it by this chain. */
static void
disown_by(struct sim *s, unsigned n, const struct generation *chain)
{
	struct sidecar *meta = &s->node[n].meta;
	const struct generation was = meta->generation;

	meta->generation = *chain;
	check_disown(s, n);
	meta->generation = was;
}

/* All that were there are equal by now, or are lost: the generation to go on with. */
static void
opening_tell(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_app *app = &node->app;
	struct sidecar meta = node->meta;
	struct gen_id id;

	check_forsake(s, n);
	if (meta.position) {
		sim_new_id(s, &id);
		lineage_forget_part(&meta, &id);
		app->chain = meta.generation;
		disown_by(s, n, &app->chain);
	}
	app->opening = OPENING_TELL;
	advance_begin(s, n);
}

/* It is open: those that could not be reached are sought. */
static void
opening_end(struct sim *s, unsigned n)
{
	static const struct fsm_event start = {.kind = FSM_START};
	struct sim_app *app = &s->node[n].app;

	if (s->maps && !maps_begin(s, n)) {
		app_kill(s, n);
		return;
	}
	app->opening = OPENING_NOT;
	for (unsigned k = 0; k < s->nodes; k++) {
		struct sim_keeper *keeper = &app->keeper[k];

		if (k == n)
			continue;
		if (keeper->installed)
			queued_install(s, n, k);
		else if (keeper->fsm.status)
			keeper->timer = keeper->fsm.until_ns;
		else
			keeper_event(s, n, k, &start);
	}
}

static void
opening_progress(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	for (unsigned k = 0; k < s->nodes && app->opening == OPENING_BRING; k++)
		if (k != n && (app->keeper[k].fsm.state == FSM_CONNECTING ||
			       app->keeper[k].fsm.state == FSM_RESYNCING))
			return;
	if (app->opening == OPENING_BRING)
		opening_tell(s, n);
	if (app->running && app->opening == OPENING_TELL && !app->advancing)
		opening_end(s, n);
}

bool
app_start(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_app *app = &node->app;
	struct generation equal;
	bool crashed;

	if (!node->up || app->running || node->session || !(node->home || node->meta.primary))
		return false;
	target_sync(s, n);
	/* Who has recovered it since has cleared the flag and left the state. */
	crashed = node->meta.writer_open || node->meta.state != SIDECAR_UP_TO_DATE;
	if (node->journal.open || ring_is_left(s, n) || log_is_left(s, n))
		target_recover(s, n);
	/* Half a copy, or one known to be old, is nobody's to go on with. */
	if (node->meta.state == SIDECAR_INCONSISTENT || node->meta.state == SIDECAR_OUTDATED ||
	    target_left(s, n))
		return false;
	/* Its replicas are called so from when they are equal. */
	equal = node->meta.generation;
	(void)lineage_equal(&node->meta, &equal);
	disown_by(s, n, &equal);
	memset(app, 0, sizeof(*app));
	app->hold = app->hold_wanted = -1;
	/* What it has let grow, and was cut off before that was recorded. */
	app->size = app->map_size = maps_pool_size(node->file);
	if (s->maps)
		maps_load(s, n, crashed, &node->meta.generation.current);
	queued_begin(s, n);
	app->found = node->meta;
	app->chain = app->found.generation;
	app->running = true;
	app->opening = OPENING_BRING;
	for (unsigned k = 0; k < s->nodes; k++) {
		static const struct fsm_event start = {.kind = FSM_START};

		app_open_keeper(s, n, k, crashed);
		if (k != n && app->keeper[k].at_open)
			keeper_event(s, n, k, &start);
	}
	app_progress(s, n);
	return true;
}

/* The process is gone; its file is as it was mapped. */
void
app_kill(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	if (!app->running)
		return;
	app->running = false;
	queued_end(s, n);
	/* The kernel closes its connections, if the machine lives. */
	for (unsigned k = 0; s->node[n].up && k < s->nodes; k++) {
		struct sim_msg m = {.kind = SIM_FIN};

		if (app->keeper[k].session)
			keeper_send(s, n, k, &m);
	}
}

static void
app_keep_map(struct sim *s, unsigned n, unsigned k)
{
	struct sim_node *node = &s->node[n];
	struct sim_keeper *keeper = &node->app.keeper[k];

	node->map[k].tracked = keeper->tracked && !keeper->worth.untrusted && !keeper->installed;
	node->map[k].bits = keeper->dirty | keeper->batch;
	node->map[k].base = keeper->worth.base;
}

bool
app_quiet(const struct sim *s, unsigned n)
{
	const struct sim_app *app = &s->node[n].app;

	if (!app->running || app->opening || !app_lanes_idle(s, n) || app->advancing)
		return false;
	for (unsigned l = 0; l < SIM_LANES; l++) {
		/* What is not drained a map on media tells. */
		if ((app->lane[l].pending && !s->maps) || app->lane[l].queued ||
		    app->lane[l].blocked)
			return false; /* not drained, not begun */
	}
	return true;
}

/* In order, between calls, when what is queued has come to all, or those are lost that it has not.
 */
static void
app_closed(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_app *app = &node->app;
	struct sidecar meta;

	/* A program that ends in order has flushed what it has stored; docs/RELIABILITY.md. */
	if (!s->lazy || !sim_broken(s, SIM_CLOSE_UNSYNCED))
		target_sync(s, n);
	if (s->maps && !maps_finish(s, n))
		return;
	for (unsigned k = 0; k < s->nodes; k++) {
		struct sim_msg m = {.kind = SIM_CLOSE};

		if (k == n)
			continue;
		app_keep_map(s, n, k);
		m.kind = app->keeper[k].installed ? SIM_CLOSE : SIM_FIN;
		if (app->keeper[k].session)
			keeper_send(s, n, k, &m);
	}
	app->running = false;
	queued_end(s, n);
	meta = node->meta;
	meta.generation = app->chain; /* an earlier update may have failed */
	if (s->maps)
		maps_record(s, n, &meta);
	meta.writer_open = false;
	(void)media_sidecar(s, n, &meta);
}

static void
closing_progress(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;
	bool labelled = true;

	if (!app->closing)
		return;
	for (unsigned k = 0; k < s->nodes; k++)
		labelled &= !app->keeper[k].installed || !app->keeper[k].behind;
	if (s->now - app->closing > CLOSE_TIMEOUT)
		queued_lose_late(s, n);
	/* A label that does not come in time stays as it is: it tells less than there is. */
	if (app_quiet(s, n) && queued_empty(s, n) &&
	    (labelled || s->now - app->closing > CLOSE_TIMEOUT))
		app_closed(s, n);
}

void
app_close(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	if (!app_quiet(s, n) || app->closing || app->growing)
		return;
	app->closing = s->now;
	closing_progress(s, n);
}

/* ---- calls ---- */

bool
app_lanes_idle(const struct sim *s, unsigned n)
{
	for (unsigned l = 0; l < SIM_LANES; l++)
		if (s->node[n].app.lane[l].draining || s->node[n].app.lane[l].held)
			return false;
	return true;
}

/* For how long a call has: for a hold, or for the one before it, which waits for the record. */
static uint64_t
lane_waits(const struct sim *s, const struct sim_lane *lane)
{
	if (!lane->queued || lane->draining || lane->blocked)
		return 0;
	return s->now - lane->queued_since;
}

uint64_t
app_waits(const struct sim *s, unsigned n)
{
	uint64_t longest = 0;

	for (unsigned l = 0; l < SIM_LANES; l++) {
		uint64_t waits = lane_waits(s, &s->node[n].app.lane[l]);

		longest = waits > longest ? waits : longest;
	}
	return longest;
}

static void
lane_post(struct sim *s, unsigned n, unsigned l, unsigned block)
{
	struct sim_app *app = &s->node[n].app;

	for (unsigned k = 0; k < s->nodes; k++) {
		struct sim_msg m = {.kind = SIM_COMMIT, .channel = l + 1, .count = 1};

		if (!app->keeper[k].installed || queued_serves(s, n, k))
			continue;
		if (app->keeper[k].ring.on) {
			ring_post(s, n, k, l, block);
			continue;
		}
		m.block[0] = (uint8_t)block;
		m.version[0] = s->node[n].mem[block];
		app->keeper[k].outstanding[l]++;
		s->op[m.version[0]].posted |= 1U << k;
		keeper_send(s, n, k, &m);
	}
}

/* ---- claims: no block is on two lanes' way at once ---- */

static bool
lane_is_free(const struct sim *s, unsigned n, unsigned l, unsigned block)
{
	const struct sim_app *app = &s->node[n].app;
	const struct sim_lane *lane = &app->lane[l];

	for (unsigned other = 0; other < SIM_LANES; other++) {
		const struct sim_lane *o = &app->lane[other];

		if (other == l)
			continue;
		if (o->flying >> block & 1)
			return false;
		/* Those who wait go in turn. */
		if (o->claimed >> block & 1 &&
		    (!(lane->claimed >> block & 1) || o->claimed_turn < lane->claimed_turn))
			return false;
	}
	return true;
}

/* Posted as it is when it is. */
static void
lane_claim(struct sim *s, unsigned n, unsigned l, unsigned block)
{
	struct sim_lane *lane = &s->node[n].app.lane[l];

	if (!lane_is_free(s, n, l, block) && !sim_broken(s, SIM_NO_CLAIMS)) {
		if (!lane->claimed)
			lane->claimed_turn = s->turns++;
		lane->claimed |= 1U << block;
		return;
	}
	lane->claimed &= ~(1U << block);
	lane->flying |= 1U << block;
	lane_post(s, n, l, block);
}

static void
lane_claims_progress(struct sim *s, unsigned n, unsigned l)
{
	struct sim_app *app = &s->node[n].app;
	bool answered = true;

	for (unsigned k = 0; k < s->nodes; k++)
		answered &= !app->keeper[k].installed || !app->keeper[k].outstanding[l];
	if (answered)
		app->lane[l].flying = 0;
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		if (app->lane[l].claimed >> b & 1)
			lane_claim(s, n, l, b);
}

/* A store, made durable here and posted to the installed replicas. */
static void
lane_flush(struct sim *s, unsigned n, unsigned l, unsigned block, bool flush)
{
	struct sim_node *node = &s->node[n];
	struct sim_lane *lane = &node->app.lane[l];

	if (s->ops == SIM_OPS || lane->count == SIM_PENDING)
		return;
	s->ops++;
	s->op[s->ops] = (struct sim_op){.node = n,
					.block = block,
					.before = node->mem[block],
					.start = s->now,
					.ack = SIM_NEVER};
	(void)media_store(s, n, block, s->ops, 0);
	s->stats.writes++;
	if (!flush)
		return;
	if (!s->lazy)
		node->disk[block] = node->mem[block];
	lane->op[lane->count++] = s->ops;
	lane->pending |= 1U << block;
	if (!s->maps)
		lane_claim(s, n, l, block);
}

/*
 * What is in no log, and nothing on media says so: who is there gets a generation that our record
 * does not name. False: it has not got it yet, or the call fails, since one is away.
 */
static bool
lane_told(struct sim *s, unsigned n, unsigned l)
{
	struct sim_app *app = &s->node[n].app;

	if (!maps_untold(s, n) || sim_broken(s, SIM_LOG_UNTOLD))
		return true;
	if (maps_disown(s, n)) {
		app->believed = UINT32_MAX;
		app_advance(s, n);
	}
	app->lane[l].held = app->advancing;
	if (app->advancing)
		return false;
	app->believed &= app_lost(s, n);
	if (maps_untold(s, n) && app->believed)
		lane_return(s, n, l, false);
	return !maps_untold(s, n) || !app->believed;
}

/* With an activity log, which has to have it first, what was flushed is sent now. */
static void
lane_drain(struct sim *s, unsigned n, unsigned l)
{
	struct sim_lane *lane = &s->node[n].app.lane[l];
	bool on = true;

	lane->held = false;
	if (s->maps && !maps_use(s, n, lane->pending, &on))
		return;
	if (!on && !lane_told(s, n, l))
		return;
	lane->draining = true;
	lane->since = s->now;
	lane->unposted = lane->pending;
	for (unsigned b = 0; s->maps && b < SIM_BLOCKS; b++)
		if (lane->pending >> b & 1)
			lane_claim(s, n, l, b);
	for (unsigned i = 0; s->maps && i < lane->count; i++)
		s->op[lane->op[i]].drained = true;
}

/*
 * A lane writes blocks of its own; in some runs the same ones as the other at the same time; with
 * receive rings or round logs the same ones, one behind the other, and some more often.
 */
static unsigned
lane_block(const struct sim *s, unsigned l, uint32_t random, unsigned blocks)
{
	if (!s->rings && !s->logs && !s->shared)
		return random % (blocks / SIM_LANES) * SIM_LANES + l;
	return random & 1 ? random / 2 % 3 : random % blocks;
}

/* Another thread has not come back from what it has flushed there. */
static bool
lane_is_taken(const struct sim *s, unsigned n, unsigned l, unsigned block)
{
	for (unsigned other = 0; other < SIM_LANES && (s->rings || s->logs); other++) {
		const struct sim_lane *lane = &s->node[n].app.lane[other];

		for (unsigned i = 0; i < lane->count && other != l; i++)
			if (s->op[lane->op[i]].block == block)
				return true;
	}
	return false;
}

static void
lane_begin(struct sim *s, unsigned n, unsigned l, uint32_t random)
{
	struct sim_lane *lane = &s->node[n].app.lane[l];
	unsigned count = 1 + random % 3, blocks = maps_blocks(s->node[n].app.size);

	for (unsigned i = 0; i < count; i++) {
		unsigned block = lane_block(s, l, random >> (8 + 4 * i), blocks);

		/* A map covers what was flushed and drained: repl.conf(5). */
		if (!lane_is_taken(s, n, l, block))
			lane_flush(s, n, l, block, i == 0 || s->maps || !(random >> 20 & 3));
	}
	/* Sometimes the drain is a later call's. */
	if (random >> 24 & 3 || lane->count + 3 > SIM_PENDING)
		lane_drain(s, n, l);
}

void
app_write(struct sim *s, unsigned n, uint32_t random)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_lane *lane = &app->lane[random >> 28 & (SIM_LANES - 1)];

	if (!app->running || app->opening || app->closing || lane->queued == CALLS_MAX)
		return;
	if (!lane->queued)
		lane->queued_since = s->now;
	lane->call[lane->queued++] = random;
	app_progress(s, n);
}

static bool
lane_answered(struct sim *s, unsigned n, unsigned l)
{
	const struct sim_app *app = &s->node[n].app;

	if (app->lane[l].claimed)
		return false;
	for (unsigned k = 0; k < s->nodes; k++)
		if (app->keeper[k].installed && app->keeper[k].outstanding[l])
			return false;
	/* Last, so that what is queued is nothing that the others lack. */
	return queued_through(s, n, l);
}

uint32_t
app_lost(const struct sim *s, unsigned n)
{
	uint32_t lost = 0;

	for (unsigned k = 0; k < s->nodes; k++)
		lost |= k != n && !s->node[n].app.keeper[k].installed ? 1U << k : 0;
	return lost;
}

static uint32_t
app_installed(const struct sim *s, unsigned n)
{
	uint32_t all = (1U << s->nodes) - 1;

	return all & ~(1U << n) & ~app_lost(s, n);
}

/* The call returns; what it has drained is acknowledged if it says so. */
static void
lane_return(struct sim *s, unsigned n, unsigned l, bool acknowledge)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_lane *lane = &app->lane[l];

	for (unsigned i = 0; acknowledge && i < lane->count; i++) {
		struct sim_op *op = &s->op[lane->op[i]];

		op->ack = s->now;
		op->queued = app->policy.served;
		op->held = lane->holders | (app_installed(s, n) & ~app->policy.served);
		op->held &= ~op->discarded;
		op->gen = gen_number(&app->chain.current);
		op->forsaken = op->queued && s->forked[op->gen];
		s->stats.acks++;
		check_acknowledged(s, n, op, lane->op[i]);
		if (lane->blocked)
			check_blocked(s, n, op, lane->op[i], lane->lost & ~app->policy.served);
	}
	/* Its thread's next one comes now. */
	lane->queued_since = s->now;
	lane->count = 0;
	lane->holders = 0;
	lane->blocked = false;
	s->changed = true;
}

static void
lane_unblock(struct sim *s, unsigned n, unsigned l)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_lane *lane = &app->lane[l];
	uint32_t live = ~app_lost(s, n);
	bool back = ack_awaited(&app->policy, lane->lost, live, lane->back) == 0;

	if (sim_broken(s, SIM_BLOCK_FIRST))
		back |= lane->back != 0;
	if (back && !app->advancing)
		lane_return(s, n, l, true);
	else if (s->now - lane->blocked_since > BLOCK_TIMEOUT)
		lane_return(s, n, l, false);
}

static void
lane_end(struct sim *s, unsigned n, unsigned l)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_lane *lane = &app->lane[l];
	bool on;

	for (unsigned k = 0; k < s->nodes; k++) {
		if (k != n && !app->keeper[k].installed && !sim_broken(s, SIM_NO_MARK))
			app->keeper[k].dirty |= lane->pending;
	}
	if (s->maps && !maps_use(s, n, lane->pending, &on))
		return;
	lane->pending = 0;
	lane->draining = false;
	lane->lost = app_lost(s, n);
	lane->back = 0;
	if (s->on_loss == REPL_ON_LOSS_BLOCK && lane->lost) {
		lane->blocked = true;
		lane->blocked_since = s->now;
		lane_unblock(s, n, l);
		return;
	}
	/* The error says that the update is here, and on those that are left. */
	lane_return(s, n, l, s->on_loss != REPL_ON_LOSS_FAIL || !lane->lost);
}

/* ---- a loss ---- */

/* 0: on media, or a status. */
static int
record_store(struct sim *s, unsigned n, struct sidecar *meta)
{
	if (s->maps)
		maps_record(s, n, meta);
	if (!media_sidecar(s, n, meta))
		return REPL_E_IO;
	if (s->maps)
		maps_recorded(s, n);
	return 0;
}

static void
advance_begin(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_app *app = &node->app;
	struct gen_id keep[3 * SIM_NODES], id;
	struct sidecar meta = node->meta;
	unsigned count = 0;

	/* What those that are away, or are lost now, may come back with stays in the chain. */
	for (unsigned k = 0; k < s->nodes; k++) {
		if (app->keeper[k].tracked)
			keep[count++] = app->keeper[k].worth.base;
		keep[count++] = app->keeper[k].label;
		keep[count++] = app->keeper[k].committed;
	}
	sim_new_id(s, &id);
	gen_advance_keeping(&app->chain, &id, keep, count);
	shipqueue_ended(&app->q, &app->chain);
	meta.generation = app->chain;
	if (app->opening) {
		/* The maps that there are may be of that size, and not tell what has grown. */
		if (s->maps && meta.pool_size < app->size)
			meta.dirty_off = meta.dirty_len = 0;
		meta.pool_size = app->size;
		meta.writer_open = true;
		meta.state = SIDECAR_UP_TO_DATE;
		/* That of a part, which opening_tell() has forgotten. */
		meta.position = 0;
	}
	if (record_store(s, n, &meta)) {
		/* The replicas are ahead of us, and that is told at the next opening; without it
		 * nothing opens. */
		s->told |= !app->opening;
		if (app->opening) {
			app_kill(s, n);
			return;
		}
	}
	app->advancing = true;
	app->again = false;
	for (unsigned k = 0; k < s->nodes; k++) {
		struct sim_keeper *keeper = &app->keeper[k];
		struct sim_msg m = {
			.kind = SIM_MARK, .state = SIDECAR_UP_TO_DATE, .has_chain = true};

		keeper->advance_rpc = 0;
		if (!keeper->installed)
			continue;
		m.chain = app->chain;
		queued_tell(s, n, k, &m);
		keeper_send(s, n, k, &m);
		keeper->advance_rpc = m.rpc;
	}
}

static bool
lost_in_one_generation(const struct sim_app *app, unsigned i, unsigned k)
{
	const struct sim_keeper *other = &app->keeper[i];

	return i != k && other->tracked && !other->installed &&
	       gen_id_equal(&other->worth.base, &app->keeper[k].worth.base);
}

static uint32_t
others_lack(const struct sim_app *app, unsigned nodes, unsigned k)
{
	uint32_t blocks = 0;

	for (unsigned i = 0; i < nodes; i++)
		if (lost_in_one_generation(app, i, k))
			blocks |= app->keeper[i].dirty | app->keeper[i].batch;
	return blocks;
}

static void
others_share(struct sim_app *app, unsigned nodes, unsigned k)
{
	for (unsigned i = 0; i < nodes; i++)
		if (lost_in_one_generation(app, i, k))
			app->keeper[i].dirty |= app->keeper[k].dirty;
}

void
app_lose(struct sim *s, unsigned n, unsigned k)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_keeper *keeper = &app->keeper[k];

	keeper->installed = false;
	keeper->tracked = true;
	dirtytrack_begin(&keeper->worth);
	keeper->worth.base = keeper->label;
	keeper->dirty = others_lack(app, s->nodes, k);
	keeper->batch = 0;
	keeper->advance_rpc = keeper->grow_rpc = 0;
	memset(keeper->outstanding, 0, sizeof(keeper->outstanding));
	memset(&keeper->ring, 0, sizeof(keeper->ring));
	queued_lost(s, n, k);
	others_share(app, s->nodes, k);
	s->stats.losses++;
	if (!sim_broken(s, SIM_NO_ADVANCE))
		app_advance(s, n);
}

void
app_advance(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	/* Of one that is being opened all get a new one. */
	if (!app->running || app->opening == OPENING_BRING)
		return;
	app->lost_some = app->losing;
	if (app->losing)
		return;
	if (app->advancing)
		app->again = true;
	else
		advance_begin(s, n);
}

static void
advance_progress(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	if (!app->advancing)
		return;
	for (unsigned k = 0; k < s->nodes; k++)
		if (app->keeper[k].installed && app->keeper[k].advance_rpc)
			return;
	/* One that was lost over it may have the new one: the others need another. */
	if (app->again) {
		advance_begin(s, n);
		return;
	}
	app->advancing = false;
	for (unsigned k = 0; k < s->nodes; k++)
		queued_label(s, n, k);
}

/* ---- going on ---- */

static void
lane_progress(struct sim *s, unsigned n, unsigned l)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_lane *lane = &app->lane[l];

	lane_claims_progress(s, n, l);
	if (lane->held && !app->advancing)
		lane_drain(s, n, l);
	if (!app->running)
		return;
	/* In this order: who counts may be lost over the record. */
	if (lane->draining && (!app->advancing || sim_broken(s, SIM_ACK_UNRECORDED)) &&
	    lane_answered(s, n, l) && (!app->advancing || sim_broken(s, SIM_ACK_UNRECORDED)))
		lane_end(s, n, l);
	if (!app->running)
		return;
	/* New calls wait for a hold, also for one that is wanted: else it would never come. */
	if (lane->blocked)
		lane_unblock(s, n, l);
	while (app->running && !lane->draining && !lane->held && !lane->blocked && lane->queued &&
	       app->hold < 0 && app->hold_wanted < 0) {
		uint32_t random = lane->call[0];

		memmove(lane->call, lane->call + 1, --lane->queued * sizeof(lane->call[0]));
		lane->queued_since = s->now;
		lane_begin(s, n, l, random);
	}
}

void
app_progress(struct sim *s, unsigned n)
{
	if (!s->node[n].app.running)
		return;
	advance_progress(s, n);
	opening_progress(s, n);
	if (!s->node[n].app.running || s->node[n].app.opening)
		return;
	grow_progress(s, n);
	for (unsigned l = 0; l < SIM_LANES && s->node[n].app.running; l++)
		lane_progress(s, n, l);
	if (s->node[n].app.running)
		closing_progress(s, n);
}

/* A generation that could not be put on record. */
static void
record_again(struct sim *s, unsigned n)
{
	struct sidecar meta = s->node[n].meta;

	if (gen_id_equal(&meta.generation.current, &s->node[n].app.chain.current))
		return;
	meta.generation = s->node[n].app.chain;
	(void)record_store(s, n, &meta);
}

void
app_tick(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	if (!app->running)
		return;
	if (!app->opening)
		record_again(s, n);
	for (unsigned k = 0; k < s->nodes; k++) {
		if (k != n)
			keeper_tick(s, n, k);
	}
	if (s->maps && app->running && !app->opening)
		maps_tick(s, n);
	app_progress(s, n);
	if (app->running && !app->opening)
		grow_tick(s, n);
	if (!app->running)
		return;
	for (unsigned l = 0; l < SIM_LANES; l++) {
		const struct sim_lane *lane = &app->lane[l];

		if (lane->draining && s->now - lane->since > CALL_LIMIT)
			sim_fail(s, "I5: a drain on node %u has not returned by its deadline", n);
		if (lane_waits(s, lane) > SIM_OP_TIMEOUT)
			sim_fail(s, "I5: a call on node %u waits for its lane past its deadline",
				 n);
		if (lane->blocked && s->now - lane->blocked_since > BLOCK_TIMEOUT + SIM_TICK)
			sim_fail(s, "I5: a call on node %u is blocked past block-timeout", n);
	}
}
