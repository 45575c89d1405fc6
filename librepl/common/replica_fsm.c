/* SPDX-License-Identifier: BSD-3-Clause */
#include "replica_fsm.h"

#include "librepl.h"

void
fsm_init(struct replica_fsm *fsm, uint64_t reconnect_min_ns, uint64_t reconnect_max_ns,
	 uint64_t now_ns)
{
	*fsm = (struct replica_fsm){
		.state = FSM_BACKOFF, .until_ns = UINT64_MAX, .since_ns = now_ns};
	backoff_init(&fsm->backoff, reconnect_min_ns, reconnect_max_ns);
}

/* ---- entering a state, with what is to be done there ---- */

static struct fsm_action
enter(struct replica_fsm *fsm, enum fsm_state state, enum fsm_action_kind kind, uint64_t now_ns)
{
	struct fsm_action action = {.kind = kind, .changed = fsm->state != state};

	if (action.changed)
		fsm->since_ns = now_ns;
	fsm->state = state;
	return action;
}

/* Where a connection may stand it is closed: every way out of it leads through here. */
static struct fsm_action
leave(struct replica_fsm *fsm, enum fsm_state state, enum fsm_action_kind kind, uint64_t now_ns)
{
	struct fsm_action action = enter(fsm, state, kind, now_ns);

	action.disconnect = true;
	return action;
}

static struct fsm_action
stay(const struct replica_fsm *fsm)
{
	struct fsm_action action = {.kind = FSM_DO_NOTHING};

	if (fsm->state == FSM_BACKOFF && fsm->until_ns != UINT64_MAX) {
		action.kind = FSM_DO_WAIT;
		action.until_ns = fsm->until_ns;
	} else if (fsm->state == FSM_ENDED) {
		action.kind = FSM_DO_END;
	}
	return action;
}

static struct fsm_action
go_connect(struct replica_fsm *fsm, uint64_t now_ns)
{
	fsm->until_ns = UINT64_MAX;
	return enter(fsm, FSM_CONNECTING, FSM_DO_CONNECT, now_ns);
}

static struct fsm_action
go_standalone(struct replica_fsm *fsm, const struct fsm_event *event, uint64_t now_ns)
{
	fsm->status = event->status;
	fsm->reason = event->reason;
	return leave(fsm, FSM_STANDALONE, FSM_DO_NOTHING, now_ns);
}

/* What a person has to mend at the target is tried seldom from the first time on. */
static bool
status_is_lasting(int status)
{
	return status == REPL_E_AUTH || status == REPL_E_VERSION || status == REPL_E_CONFIG ||
	       status == REPL_E_NOT_FOUND || status == REPL_E_INVAL || status == REPL_E_CORRUPT;
}

static struct fsm_action
go_back_off(struct replica_fsm *fsm, int status, uint64_t now_ns, uint64_t random)
{
	struct fsm_action action;
	uint64_t wait;

	/* The two sides' data contradict: trying again changes nothing. */
	if (status == REPL_E_DIVERGED) {
		struct fsm_event refused = {.kind = FSM_REFUSED, .status = status};

		return go_standalone(fsm, &refused, now_ns);
	}
	if (status_is_lasting(status))
		backoff_exhaust(&fsm->backoff);
	wait = backoff_next(&fsm->backoff, random);
	fsm->status = status;
	fsm->until_ns = wait > UINT64_MAX - 1 - now_ns ? UINT64_MAX - 1 : now_ns + wait;
	action = leave(fsm, FSM_BACKOFF, FSM_DO_WAIT, now_ns);
	action.until_ns = fsm->until_ns;
	return action;
}

static struct fsm_action
go_establish(struct replica_fsm *fsm, enum fsm_action_kind kind, uint64_t now_ns)
{
	fsm->status = fsm->reason = 0;
	return enter(fsm, FSM_ESTABLISHED, kind, now_ns);
}

/* Only now: one that fails at the last step, again and again, is tried more and more seldom. */
static void
count_installed(struct replica_fsm *fsm)
{
	fsm->reconnect_count += fsm->was_established;
	fsm->was_established = true;
	backoff_reset(&fsm->backoff);
}

/* ---- events ---- */

static struct fsm_action
on_connected(struct replica_fsm *fsm, const struct fsm_event *event, uint64_t now_ns)
{
	struct fsm_action action;

	if (fsm->state != FSM_CONNECTING) {
		action = stay(fsm);
		/* Too late: where one stands already the other must not be taken for it. */
		action.disconnect = fsm->state != FSM_RESYNCING && fsm->state != FSM_ESTABLISHED;
		return action;
	}
	if (event->verdict == JUDGE_REFUSE)
		return go_standalone(fsm, event, now_ns);
	action = enter(fsm, FSM_RESYNCING, FSM_DO_RESYNC, now_ns);
	action.what = event->verdict;
	return action;
}

static struct fsm_action
on_adopt(struct replica_fsm *fsm, uint64_t now_ns)
{
	if (fsm->state != FSM_BACKOFF)
		return stay(fsm);
	count_installed(fsm);
	return go_establish(fsm, FSM_DO_NOTHING, now_ns);
}

static struct fsm_action
on_installed(struct replica_fsm *fsm)
{
	if (fsm->state == FSM_ESTABLISHED)
		count_installed(fsm);
	return stay(fsm);
}

static struct fsm_action
on_trouble(struct replica_fsm *fsm, const struct fsm_event *event, uint64_t now_ns, uint64_t random)
{
	bool connected = fsm->state == FSM_RESYNCING || fsm->state == FSM_ESTABLISHED;

	if (!connected && fsm->state != FSM_CONNECTING)
		return stay(fsm);
	if (event->kind == FSM_REFUSED)
		return go_standalone(fsm, event, now_ns);
	return go_back_off(fsm, event->status, now_ns, random);
}

static struct fsm_action
on_operator(struct replica_fsm *fsm, const struct fsm_event *event, uint64_t now_ns)
{
	if (event->kind == FSM_STOP) {
		fsm->until_ns = UINT64_MAX;
		return leave(fsm, FSM_ENDED, FSM_DO_END, now_ns);
	}
	if (event->kind == FSM_PAUSE) {
		fsm->until_ns = UINT64_MAX;
		return leave(fsm, FSM_PAUSED, FSM_DO_NOTHING, now_ns);
	}
	if (fsm->state != FSM_PAUSED && fsm->state != FSM_STANDALONE && fsm->state != FSM_BACKOFF)
		return stay(fsm);
	backoff_reset(&fsm->backoff);
	fsm->status = fsm->reason = 0;
	return go_connect(fsm, now_ns);
}

struct fsm_action
fsm_step(struct replica_fsm *fsm, const struct fsm_event *event, uint64_t now_ns, uint64_t random)
{
	if (fsm->state == FSM_ENDED)
		return stay(fsm);
	switch (event->kind) {
	case FSM_START:
		return fsm->state == FSM_BACKOFF ? go_connect(fsm, now_ns) : stay(fsm);
	case FSM_ADOPT:
		return on_adopt(fsm, now_ns);
	case FSM_CONNECTED:
		return on_connected(fsm, event, now_ns);
	case FSM_RESYNCED:
		return fsm->state == FSM_RESYNCING ? go_establish(fsm, FSM_DO_INSTALL, now_ns)
						   : stay(fsm);
	case FSM_INSTALLED:
		return on_installed(fsm);
	case FSM_TIMER:
		return fsm->state == FSM_BACKOFF && now_ns >= fsm->until_ns
			       ? go_connect(fsm, now_ns)
			       : stay(fsm);
	case FSM_REFUSED:
	case FSM_FAILED:
	case FSM_LOST:
		return on_trouble(fsm, event, now_ns, random);
	case FSM_PAUSE:
	case FSM_RESUME:
	case FSM_STOP:
		return on_operator(fsm, event, now_ns);
	}
	return stay(fsm);
}

const char *
fsm_state_name(enum fsm_state state)
{
	static const char *const names[] = {
		[FSM_CONNECTING] = "connecting", [FSM_BACKOFF] = "waiting to connect",
		[FSM_RESYNCING] = "resyncing",   [FSM_ESTABLISHED] = "established",
		[FSM_PAUSED] = "paused",         [FSM_STANDALONE] = "standalone",
		[FSM_ENDED] = "ended",
	};

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

const char *
fsm_event_name(enum fsm_event_kind kind)
{
	static const char *const names[] = {
		[FSM_START] = "start",         [FSM_ADOPT] = "adopt",
		[FSM_CONNECTED] = "connected", [FSM_INSTALLED] = "installed",
		[FSM_REFUSED] = "refused",     [FSM_FAILED] = "failed",
		[FSM_RESYNCED] = "resynced",   [FSM_LOST] = "lost",
		[FSM_TIMER] = "timer",         [FSM_PAUSE] = "pause",
		[FSM_RESUME] = "resume",       [FSM_STOP] = "stop",
	};

	return (unsigned)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}
