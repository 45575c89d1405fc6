/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replica_fsm - what the keeper of a replica does next.
 *
 * Pure: time and randomness come in, an action goes out. The keeper does the
 * action and tells how it ended by the next event; what the operator asks for
 * (PAUSE, RESUME, STOP) it tells when it is back from the action, which it cuts
 * short. Every event is allowed in every state: what came too late does nothing,
 * but a connection that nobody wants any more is closed.
 *
 *   CONNECTING --CONNECTED--> RESYNCING --RESYNCED--> ESTABLISHED
 *       ^  |                      |                       |
 *    TIMER FAILED               LOST, FAILED        LOST, FAILED
 *       |  v                      v                       v
 *      BACKOFF <------------------+-----------------------+
 *
 * REFUSED leads to STANDALONE from everywhere, PAUSE to PAUSED, RESUME from both
 * back to CONNECTING, STOP to ENDED.
 */
#ifndef COMMON_REPLICA_FSM_H
#define COMMON_REPLICA_FSM_H

#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"
#include "replica_judge.h"

enum fsm_state {
	FSM_CONNECTING,  /* a session is being opened, then judged */
	FSM_BACKOFF,     /* waiting for the next try */
	FSM_RESYNCING,   /* connected, being made equal; writes do not go to it */
	FSM_ESTABLISHED, /* installed, or being so: writes go to it */
	FSM_PAUSED,      /* by the operator, until RESUME */
	FSM_STANDALONE,  /* refused: only the operator helps */
	FSM_ENDED,
};

enum fsm_event_kind {
	FSM_START,     /* the first one: connect */
	FSM_ADOPT,     /* the first one, of a replica that the opening has installed */
	FSM_CONNECTED, /* verdict: of replica_judge(); JUDGE_REFUSE counts as REFUSED */
	FSM_REFUSED,   /* by the judge or the target, for good; reason */
	FSM_FAILED,    /* the action did, status says how: connecting, resyncing or installing */
	FSM_RESYNCED,  /* equal and marked so, the hold is held: released whatever is answered */
	FSM_INSTALLED, /* what was to be: the waits begin anew when it is lost */
	FSM_LOST,      /* a connection that stood, status says how */
	FSM_TIMER,     /* what WAIT was for may have come; too early does no harm */
	FSM_PAUSE,
	FSM_RESUME,
	FSM_STOP,
};

struct fsm_event {
	enum fsm_event_kind kind;
	enum judge_verdict verdict; /* CONNECTED */
	int status;                 /* FAILED, LOST: enum repl_status */
	int reason;                 /* REFUSED: the caller's code, kept for who asks */
};

enum fsm_action_kind {
	FSM_DO_NOTHING, /* wait for what comes */
	FSM_DO_CONNECT, /* open a session and judge: CONNECTED, REFUSED or FAILED */
	FSM_DO_RESYNC,  /* by what: RESYNCED, LOST, REFUSED or FAILED */
	FSM_DO_INSTALL, /* under the hold that RESYNCED came with, which ends: INSTALLED, FAILED */
	FSM_DO_WAIT,    /* TIMER at until_ns */
	FSM_DO_END,     /* the thread returns */
};

struct fsm_action {
	enum fsm_action_kind kind;
	/*
	 * Before that: what is connected is closed; and where it was installed the loss is
	 * recorded (a generation, the dirty map) before anything more is acknowledged.
	 */
	bool disconnect;
	bool changed;            /* the state is another one: one line of log, one event */
	enum judge_verdict what; /* RESYNC: DELTA, HASHES, FULL; UP_TO_DATE: as DELTA */
	uint64_t until_ns;       /* WAIT */
};

struct replica_fsm {
	enum fsm_state state;
	struct backoff backoff;
	uint64_t until_ns;        /* BACKOFF: of the next try */
	uint64_t since_ns;        /* of the state */
	uint64_t reconnect_count; /* INSTALLED after it was once */
	int status;               /* that led to BACKOFF or STANDALONE; 0: none */
	int reason;               /* that led to STANDALONE */
	bool was_established;     /* ADOPT or INSTALLED has come */
};

/* In state BACKOFF with nothing to wait for: feed START or ADOPT. */
void fsm_init(struct replica_fsm *fsm, uint64_t reconnect_min_ns, uint64_t reconnect_max_ns,
	      uint64_t now_ns);

struct fsm_action fsm_step(struct replica_fsm *fsm, const struct fsm_event *event, uint64_t now_ns,
			   uint64_t random);

const char *fsm_state_name(enum fsm_state state); /* "connecting"; never NULL */
const char *fsm_event_name(enum fsm_event_kind kind);

#endif
