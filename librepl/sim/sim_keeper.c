/* SPDX-License-Identifier: BSD-3-Clause */
/* A keeper: does what replica_fsm says, and the rounds of a resync. */
#include <string.h>

#include "librepl.h"
#include "sim_impl.h"

static struct sim_keeper *
keeper_of(struct sim *s, unsigned n, unsigned k)
{
	return &s->node[n].app.keeper[k];
}

void
keeper_send(struct sim *s, unsigned n, unsigned k, struct sim_msg *m)
{
	m->from = n;
	m->to = k;
	m->session = keeper_of(s, n, k)->session;
	m->rpc = ++s->rpcs;
	net_send(s, m);
}

/* A step of the script: its answer is waited for. */
static void
keeper_call(struct sim *s, unsigned n, unsigned k, enum sim_phase phase, struct sim_msg *m)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);

	keeper->phase = phase;
	keeper_send(s, n, k, m);
	keeper->rpc = m->rpc;
}

/* ---- what the machine says ---- */

static void
hold_release(struct sim *s, unsigned n, unsigned k)
{
	struct sim_app *app = &s->node[n].app;

	if (app->hold == (int)k)
		app->hold = -1;
	if (app->hold_wanted == (int)k)
		app->hold_wanted = -1;
}

static void
keeper_disconnect(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = SIM_FIN};

	if (keeper->session)
		keeper_send(s, n, k, &m);
	keeper->session = keeper->rpc = 0;
	keeper->phase = PHASE_IDLE;
	keeper->dirty |= keeper->batch;
	keeper->batch = keeper->todo = 0;
	/* It may be recorded as up-to-date by now: as a loss, before anything is acknowledged. */
	if (keeper->in_doubt && !keeper->installed && !sim_broken(s, SIM_NO_ADVANCE_IN_DOUBT))
		app_advance(s, n);
	keeper->in_doubt = keeper->at_open = false;
	hold_release(s, n, k);
	if (keeper->installed)
		app_lose(s, n, k);
}

static void
keeper_connect(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = SIM_OPEN};

	keeper->session = ++s->sessions;
	memset(&keeper->ring, 0, sizeof(keeper->ring));
	keeper->heard = keeper->ping_at = s->now;
	m.chain = keeper->at_open ? s->node[n].app.found.generation : s->node[n].app.chain;
	keeper_call(s, n, k, PHASE_OPEN, &m);
}

/*
 * What a replica is called that has all that the program's file has: chain. The file may be but a
 * part of the generation that was found, up to a position: so is what is made equal to it. 0: it is
 * no part.
 */
static uint64_t
equal_to(const struct sim *s, unsigned n, struct generation *chain)
{
	const struct sim_app *app = &s->node[n].app;

	*chain = app->chain;
	return app->opening ? lineage_equal(&app->found, chain) : 0;
}

static void
keeper_mark(struct sim *s, unsigned n, unsigned k, enum sidecar_state state, enum sim_phase phase)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = SIM_MARK, .state = state};

	if (state == SIDECAR_UP_TO_DATE) {
		m.has_chain = true;
		m.position = equal_to(s, n, &m.chain);
		keeper->committed = m.chain.current;
		keeper->in_doubt = true;
		if (m.position)
			m.state = SIDECAR_OUTDATED;
	}
	keeper_call(s, n, k, phase, &m);
}

/* It is called that part already, of which it knows how much. */
static bool
is_called_part(const struct sim *s, unsigned n, unsigned k)
{
	const struct sim_keeper *keeper = &s->node[n].app.keeper[k];
	struct generation chain;

	return equal_to(s, n, &chain) && !(keeper->dirty | keeper->batch) && !keeper->marked &&
	       keeper->found.position && keeper->found.state != SIDECAR_INCONSISTENT &&
	       gen_id_equal(&keeper->found.generation.current, &chain.current);
}

static void resync_finish(struct sim *s, unsigned n, unsigned k);

/* A round: what is dirty now becomes the batch. */
static void
resync_round(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = SIM_JBEGIN};

	if (is_called_part(s, n, k) && !keeper->rounds) {
		keeper->committed = s->node[n].app.chain.current;
		resync_finish(s, n, k);
		return;
	}
	keeper->rounds++;
	keeper->batch |= keeper->dirty;
	keeper->dirty = 0;
	keeper->todo = keeper->batch;
	if (!keeper->direct) {
		keeper_call(s, n, k, PHASE_JBEGIN, &m);
	} else if (!keeper->marked && !sim_broken(s, SIM_NO_INCONSISTENT)) {
		if (s->node[k].meta.state != SIDECAR_INCONSISTENT)
			s->node[k].away = app_lost(s, n);
		keeper->marked = true;
		keeper_mark(s, n, k, SIDECAR_INCONSISTENT, PHASE_MARK_INCONSISTENT);
	} else {
		m.kind = SIM_PUSH;
		keeper_call(s, n, k, PHASE_PUSH, &m);
	}
}

static void keeper_trouble(struct sim *s, unsigned n, unsigned k, enum fsm_event_kind kind,
			   int status);

static void
resync_begin(struct sim *s, unsigned n, unsigned k, enum judge_verdict what)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = SIM_HASH};

	if (!gen_id_is_nil(&keeper->found.generation.current))
		dirtytrack_go_on(&keeper->worth, &keeper->found.generation.current);
	/* What it holds may be nowhere else that looks as good; and a growth goes first. */
	if (queued_settling(s, n) ||
	    (s->node[n].app.growing && !sim_broken(s, SIM_GROW_BESIDE_RESYNC)) ||
	    (keeper->found.pool_size != s->node[n].app.size && !sim_broken(s, SIM_FOLLOW_NOT) &&
	     !sim_broken(s, SIM_GROW_LOCAL_FIRST))) {
		keeper_trouble(s, n, k, FSM_FAILED, REPL_E_BUSY);
		return;
	}
	s->stats.resyncs++;
	keeper->rounds = 0;
	keeper->marked = keeper->final = false;
	keeper->direct = what == JUDGE_FULL || sim_random(s) % 3 == 0;
	if (what == JUDGE_FULL)
		keeper->dirty = (1U << maps_blocks(s->node[n].app.size)) - 1;
	if (what == JUDGE_HASHES)
		keeper_call(s, n, k, PHASE_HASH, &m);
	else
		resync_round(s, n, k);
}

static void
keeper_install(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);

	keeper->installed = true;
	keeper->phase = PHASE_INSTALLED;
	keeper->tracked = false;
	dirtytrack_end(&keeper->worth);
	keeper->dirty = keeper->batch = 0;
	keeper->label = keeper->committed;
	memset(keeper->outstanding, 0, sizeof(keeper->outstanding));
	if (!s->node[n].app.opening)
		queued_install(s, n, k);
	for (unsigned l = 0; l < SIM_LANES; l++)
		s->node[n].app.lane[l].back |= UINT32_C(1) << k;
	hold_release(s, n, k);
}

void
keeper_event(struct sim *s, unsigned n, unsigned k, const struct fsm_event *event)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct fsm_action action = fsm_step(&keeper->fsm, event, s->now, sim_random(s));
	static const struct fsm_event installed = {.kind = FSM_INSTALLED};

	if (action.disconnect)
		keeper_disconnect(s, n, k);
	keeper->timer = action.kind == FSM_DO_WAIT ? action.until_ns : SIM_NEVER;
	if (action.kind == FSM_DO_CONNECT)
		keeper_connect(s, n, k);
	else if (action.kind == FSM_DO_RESYNC)
		resync_begin(s, n, k, action.what);
	else if (keeper->fsm.state == FSM_STANDALONE && action.changed)
		s->stats.refused++;
	if (action.kind != FSM_DO_INSTALL)
		return;
	keeper_install(s, n, k);
	(void)fsm_step(&keeper->fsm, &installed, s->now, 0);
}

static void
keeper_trouble(struct sim *s, unsigned n, unsigned k, enum fsm_event_kind kind, int status)
{
	struct fsm_event event = {.kind = kind, .status = status};

	keeper_event(s, n, k, &event);
}

/* ---- the steps of a resync ---- */

static void
resync_stage(struct sim *s, unsigned n, unsigned k, enum sim_kind kind, enum sim_phase phase)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = kind};

	for (unsigned b = 0; b < SIM_BLOCKS && m.count < SIM_BATCH; b++) {
		if (!(keeper->todo >> b & 1))
			continue;
		keeper->todo &= ~(1U << b);
		m.block[m.count] = (uint8_t)b;
		m.version[m.count++] = s->node[n].mem[b];
		if (s->op[s->node[n].mem[b]].ack == SIM_NEVER)
			s->op[s->node[n].mem[b]].posted |= 1U << k;
	}
	keeper_call(s, n, k, phase, &m);
}

static void
resync_commit(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = SIM_JCOMMIT, .state = SIDECAR_OUTDATED, .has_chain = true};
	uint64_t part = equal_to(s, n, &m.chain);

	/* Nobody writes into what is being opened: one round does it, so that none is outdated in
	 * between. */
	keeper->final = keeper->rounds > 2 || sim_random(s) % 2 ||
			(s->node[n].app.opening && !sim_broken(s, SIM_OPEN_IN_PIECES));
	keeper->in_doubt = keeper->final;
	if (keeper->final) {
		m.position = part;
		m.state = m.position ? SIDECAR_OUTDATED : SIDECAR_UP_TO_DATE;
	} else if (sim_broken(s, SIM_OUTDATED_OLD_LABEL)) {
		m.has_chain = false;
	}
	if (sim_broken(s, SIM_CLEAR_EARLY))
		keeper->batch = 0;
	keeper->committed = m.has_chain ? m.chain.current : keeper->worth.base;
	keeper_call(s, n, k, PHASE_JCOMMIT, &m);
}

/* The hold is ours: what was flushed and not drained goes along. */
static void
resync_held(struct sim *s, unsigned n, unsigned k)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_keeper *keeper = &app->keeper[k];

	if (!sim_broken(s, SIM_INSTALL_NO_HOLD)) {
		for (unsigned l = 0; l < SIM_LANES; l++)
			keeper->dirty |= app->lane[l].pending;
	}
	keeper->batch |= keeper->dirty;
	keeper->todo = keeper->dirty;
	keeper->dirty = 0;
	if (keeper->direct && sim_broken(s, SIM_EARLY_UP_TO_DATE))
		keeper_mark(s, n, k, SIDECAR_UP_TO_DATE, PHASE_MARK_INCONSISTENT);
	else if (keeper->direct)
		resync_stage(s, n, k, SIM_PUSH, PHASE_PUSH_HELD);
	else
		resync_stage(s, n, k, SIM_STAGE, PHASE_STAGE_HELD);
}

static void
hold_try(struct sim *s, unsigned n, unsigned k)
{
	struct sim_app *app = &s->node[n].app;

	if (sim_broken(s, SIM_INSTALL_NO_HOLD)) {
		resync_held(s, n, k);
		return;
	}
	if (app->hold < 0 && app->hold_wanted < 0)
		app->hold_wanted = (int)k;
	if (app->hold_wanted != (int)k || !app_lanes_idle(s, n))
		return;
	app->hold_wanted = -1;
	app->hold = (int)k;
	app->keeper[k].held_since = s->now;
	resync_held(s, n, k);
}

static void
hold_begin(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);

	keeper->phase = PHASE_HOLD;
	keeper->hold_since = s->now;
	hold_try(s, n, k);
}

static void
resync_finish(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	static const struct fsm_event done = {.kind = FSM_RESYNCED};
	struct sim_msg lanes = {.kind = SIM_LANES_OPEN};

	/* A journal and a receive ring are never there together. */
	if (ring_wanted(s, n, k) && !keeper->ring.asked) {
		keeper->ring.asked = true;
		keeper_call(s, n, k, PHASE_LANES, &lanes);
		return;
	}
	/* Another replica was lost meanwhile: what is installed has the generation of now. */
	if (!gen_id_equal(&keeper->committed, &s->node[n].app.chain.current) &&
	    !sim_broken(s, SIM_STALE_LABEL))
		keeper_mark(s, n, k, SIDECAR_UP_TO_DATE, PHASE_MARK_FINAL);
	else
		keeper_event(s, n, k, &done);
}

/* ---- answers ---- */

static void
keeper_judge(struct sim *s, unsigned n, unsigned k)
{
	struct sim_node *node = &s->node[n];
	struct sim_keeper *keeper = &node->app.keeper[k];
	const struct sidecar *found = &keeper->found;
	struct sidecar local = node->meta;
	struct judge_input in = {
		.local = &local,
		.replica = found,
		.trusted = keeper->tracked &&
			   dirtytrack_speaks_of(&keeper->worth, &found->generation.current),
		.dirty_bytes = keeper->dirty};
	struct fsm_event event = {.kind = FSM_CONNECTED};
	struct judgement out;

	/* By what the file is a copy of, of which it may have a part: then it goes on from that. */
	if (keeper->at_open)
		local = node->app.found;
	else
		local.generation = node->app.chain;
	keeper->at_open = false;
	if (sim_broken(s, SIM_PART_OVER_MORE))
		local.position = 0;
	if (in.trusted)
		in.base = &found->generation.current;
	if (keeper->tracked && sim_broken(s, SIM_MAP_ANY_BASE)) {
		in.base = &found->generation.current;
		in.trusted = !keeper->worth.untrusted;
	}
	replica_judge(&in, &out);
	event.verdict = out.verdict;
	event.reason = (int)out.reason;
	if (out.verdict == JUDGE_REFUSE && sim_broken(s, SIM_ACCEPT_OLDER))
		event.verdict = JUDGE_HASHES;
	if (!keeper->tracked) {
		keeper->tracked = true;
		dirtytrack_begin(&keeper->worth);
		keeper->worth.untrusted = true;
		keeper->worth.base = out.verdict == JUDGE_REFUSE ? local.generation.current
								 : found->generation.current;
	}
	keeper->label = found->generation.current;
	keeper_event(s, n, k, &event);
}

/* The pool has grown since the replica was its copy: it follows. */
static void
keeper_opened(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_keeper *keeper = &app->keeper[k];
	struct generation chain = keeper->at_open ? app->found.generation : s->node[n].app.chain;
	enum gen_relation relation = gen_compare(&chain, &m->meta.generation);
	struct sim_msg grow = {.kind = SIM_GROW, .number = maps_blocks(app->size)};

	keeper->found = m->meta;
	if (m->meta.pool_size < app->size && !sim_broken(s, SIM_FOLLOW_NOT) &&
	    (relation == GEN_EQUAL || relation == GEN_AHEAD ||
	     gen_id_is_nil(&m->meta.generation.current)))
		keeper_call(s, n, k, PHASE_FOLLOW, &grow);
	else
		keeper_judge(s, n, k);
}

static void
keeper_followed(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	keeper_of(s, n, k)->found.pool_size = maps_pool_size((unsigned)m->number);
	keeper_judge(s, n, k);
}

static void
keeper_compared(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);

	for (unsigned b = 0; b < SIM_BLOCKS; b++) {
		if (m->content[b] != s->node[n].mem[b])
			keeper->dirty |= 1U << b;
	}
	/* Of a map on media it is only believed with the replica's next generation. */
	if (!s->maps)
		dirtytrack_rebase(&keeper->worth, &keeper->label);
	resync_round(s, n, k);
}

static void
keeper_applied(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg more = {.kind = SIM_JAPPLY};

	if (!m->last) {
		keeper_call(s, n, k, PHASE_JAPPLY, &more);
		return;
	}
	keeper->batch = 0;
	if (keeper->final)
		resync_finish(s, n, k);
	else
		resync_round(s, n, k);
}

static void
keeper_committed(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg m = {.kind = SIM_JAPPLY};

	keeper->label = keeper->committed;
	if (!s->maps)
		keeper->worth.base = keeper->committed;
	else if (!keeper->final)
		dirtytrack_rebase(&keeper->worth, &keeper->committed);
	if (!keeper->final)
		hold_release(s, n, k);
	keeper_call(s, n, k, PHASE_JAPPLY, &m);
}

static void
keeper_advanced(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);

	if (m->rc) {
		keeper_trouble(s, n, k, FSM_LOST, m->rc);
		return;
	}
	keeper->advance_rpc = 0;
	keeper->label = s->node[n].app.chain.current;
	if (keeper->told_whole)
		keeper->behind = 0;
}

static void
keeper_labelled(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);

	if (m->rc) {
		keeper_trouble(s, n, k, FSM_LOST, m->rc);
		return;
	}
	keeper->label_rpc = 0;
	if (keeper->told_whole)
		keeper->behind = 0;
	queued_label(s, n, k);
}

void
keeper_cut(struct sim *s, unsigned n, unsigned k)
{
	keeper_trouble(s, n, k, FSM_FAILED, REPL_E_BUSY);
}

void
keeper_lose(struct sim *s, unsigned n, unsigned k)
{
	keeper_trouble(s, n, k, FSM_LOST, REPL_E_TIMEOUT);
}

void
keeper_lose_all(struct sim *s, unsigned n, uint32_t replicas)
{
	struct sim_app *app = &s->node[n].app;

	app->losing = true;
	for (unsigned k = 0; k < s->nodes; k++)
		if (replicas >> k & 1)
			keeper_lose(s, n, k);
	app->losing = false;
	if (app->lost_some)
		app_advance(s, n);
}

/* The answer to the step that the script waits for. */
static void
keeper_answer(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	struct sim_keeper *keeper = keeper_of(s, n, k);

	switch (keeper->phase) {
	case PHASE_OPEN:
		keeper_opened(s, n, k, m);
		break;
	case PHASE_FOLLOW:
		keeper_followed(s, n, k, m);
		break;
	case PHASE_HASH:
		keeper_compared(s, n, k, m);
		break;
	case PHASE_JBEGIN:
	case PHASE_STAGE:
		if (keeper->todo)
			resync_stage(s, n, k, SIM_STAGE, PHASE_STAGE);
		else
			hold_begin(s, n, k);
		break;
	case PHASE_STAGE_HELD:
		if (keeper->todo)
			resync_stage(s, n, k, SIM_STAGE, PHASE_STAGE_HELD);
		else
			resync_commit(s, n, k);
		break;
	case PHASE_JCOMMIT:
		keeper_committed(s, n, k);
		break;
	case PHASE_JAPPLY:
		keeper_applied(s, n, k, m);
		break;
	case PHASE_PUSH:
		if (keeper->todo)
			resync_stage(s, n, k, SIM_PUSH, PHASE_PUSH);
		else
			hold_begin(s, n, k);
		break;
	case PHASE_MARK_INCONSISTENT: /* of EARLY_UP_TO_DATE, too: the hold tells */
		resync_stage(s, n, k, SIM_PUSH,
			     s->node[n].app.hold == (int)k ? PHASE_PUSH_HELD : PHASE_PUSH);
		break;
	case PHASE_PUSH_HELD:
		if (keeper->todo)
			resync_stage(s, n, k, SIM_PUSH, PHASE_PUSH_HELD);
		else
			keeper_mark(s, n, k, SIDECAR_UP_TO_DATE, PHASE_MARK_FINAL);
		break;
	case PHASE_LANES:
		keeper->ring.on = m->last;
		keeper->ring.epoch = m->epoch;
		resync_finish(s, n, k);
		break;
	case PHASE_MARK_FINAL:
		keeper->label = keeper->committed;
		resync_finish(s, n, k);
		break;
	default:
		break;
	}
}

static enum fsm_event_kind
trouble_kind(const struct sim_keeper *keeper, int rc)
{
	if (rc == REPL_E_REFUSED || rc == REPL_E_DIVERGED)
		return FSM_REFUSED;
	return keeper->installed ? FSM_LOST : FSM_FAILED;
}

void
keeper_take(struct sim *s, const struct sim_msg *m)
{
	unsigned n = m->to, k = m->from;
	struct sim_keeper *keeper = keeper_of(s, n, k);

	if (!s->node[n].up || !s->node[n].app.running || keeper->session != m->session)
		return;
	keeper->heard = s->now;
	if (m->kind == SIM_RESET) {
		keeper_trouble(s, n, k, keeper->installed ? FSM_LOST : FSM_FAILED, REPL_E_LOST);
	} else if (keeper->advance_rpc && m->rpc == keeper->advance_rpc) {
		keeper_advanced(s, n, k, m);
	} else if (keeper->label_rpc && m->rpc == keeper->label_rpc) {
		keeper_labelled(s, n, k, m);
	} else if (keeper->grow_rpc && m->rpc == keeper->grow_rpc) {
		grow_answered(s, n, k, m);
	} else if (m->rc && m->of == SIM_GROW && keeper->phase != PHASE_FOLLOW) {
		; /* room that it could not give back */
	} else if (m->rc) {
		keeper_trouble(s, n, k, trouble_kind(keeper, m->rc), m->rc);
	} else if (m->of == SIM_SHIP) {
		queued_acked(s, n, k, m->number);
	} else if (m->of == SIM_COMMIT) {
		keeper->outstanding[m->channel - 1]--;
	} else if (m->of == SIM_DEPOSIT) {
		keeper->outstanding[m->channel - 1] -= m->count;
	} else if (m->of == SIM_ROUND) {
		ring_acked(s, n, k, m->channel - 1);
	} else if (keeper->rpc && m->rpc == keeper->rpc) {
		keeper->rpc = 0;
		keeper_answer(s, n, k, m);
	}
	app_progress(s, n);
}

/* As hold_waited() has it: a call has waited for who has the hold, or is about to have it. */
static bool
hold_hurries(const struct sim *s, unsigned n, unsigned k)
{
	const struct sim_app *app = &s->node[n].app;
	uint64_t waited = app_waits(s, n);

	if (app->hold_wanted == (int)k)
		return waited >= SIM_OP_TIMEOUT / 8 * 7;
	return app->hold == (int)k && (waited >= SIM_OP_TIMEOUT / 8 * 7 ||
				       (waited >= SIM_OP_TIMEOUT / 2 &&
					s->now - app->keeper[k].held_since >= SIM_OP_TIMEOUT / 4));
}

/* It was not got by then, is held for too long, or calls can't wait for it any more. */
static bool
hold_is_over(const struct sim *s, unsigned n, unsigned k)
{
	const struct sim_app *app = &s->node[n].app;
	const struct sim_keeper *keeper = &app->keeper[k];

	if (hold_hurries(s, n, k))
		return true;
	if (keeper->phase == PHASE_HOLD)
		return s->now - keeper->hold_since > SIM_OP_TIMEOUT / 4 * 3;
	return app->hold == (int)k && s->now - keeper->held_since > SIM_OP_TIMEOUT;
}

void
keeper_tick(struct sim *s, unsigned n, unsigned k)
{
	static const struct fsm_event timer = {.kind = FSM_TIMER};
	struct sim_keeper *keeper = keeper_of(s, n, k);
	struct sim_msg ping = {.kind = SIM_PING};

	if (s->now >= keeper->timer && !s->node[n].app.opening)
		keeper_event(s, n, k, &timer);
	if (!keeper->session)
		return;
	if (!sim_broken(s, SIM_NO_DEADLINE) && s->now - keeper->heard > SIM_SILENCE) {
		keeper_trouble(s, n, k, keeper->installed ? FSM_LOST : FSM_FAILED, REPL_E_TIMEOUT);
		return;
	}
	if (keeper->phase != PHASE_OPEN && s->now >= keeper->ping_at) {
		keeper->ping_at = s->now + SIM_HEARTBEAT;
		keeper_send(s, n, k, &ping);
	}
	if (hold_is_over(s, n, k))
		keeper_trouble(s, n, k, FSM_FAILED, REPL_E_TIMEOUT);
	else if (keeper->phase == PHASE_HOLD)
		hold_try(s, n, k);
}
