/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim_impl - the state of a simulation, shared by its parts: sim_net.c (time and
 * messages), sim_target.c, sim_app.c (the application's calls, losses, holds),
 * sim_queued.c (queued replicas), sim_maps.c (dirty maps on media), sim_ring.c (receive rings),
 * sim_log.c (round logs), sim_bytes.c (messages on media), sim_grow.c, sim_keeper.c,
 * sim_script.c (what happens to it), sim_check.c, sim_run.c.
 */
#ifndef SIM_IMPL_H
#define SIM_IMPL_H

#include "ackpolicy.h"
#include "dirtytrack.h"
#include "generation.h"
#include "replica_fsm.h"
#include "lineage.h"
#include "replica_judge.h"
#include "sidecar.h"
#include "sim.h"
#include "wire.h"

#define SIM_NODES       4U
#define SIM_BLOCKS      16U /* of a pool that has grown; before that it has */
#define SIM_BLOCKS_MIN  12U
#define SIM_LANES       2U
#define SIM_MESSAGES    512U
#define SIM_OPS         2048U
#define SIM_PENDING     16U
#define SIM_JOURNAL     64U
#define SIM_BATCH       3U  /* blocks in a message */
#define SIM_BLOCK_BYTES 64U /* of a block, in a message on media */
#define SIM_GENERATIONS 1024U
#define SIM_NEVER       UINT64_MAX

#define SIM_MS              1000000ULL
#define SIM_TICK            (50 * SIM_MS)
#define SIM_HEARTBEAT       (500 * SIM_MS)
#define SIM_SILENCE         (1500 * SIM_MS) /* a dead link, to the initiator */
#define SIM_TARGET_PATIENCE (4000 * SIM_MS)
#define SIM_OP_TIMEOUT      (5000 * SIM_MS)

/* A write of one block; its number is its place, from 1, and grows with time. */
struct sim_op {
	unsigned node, block;
	uint32_t before;     /* the write of this block that it came over */
	uint64_t start, ack; /* SIM_NEVER: not acknowledged */
	uint32_t gen;        /* of the acknowledgement, as gen_number() */
	uint32_t posted;     /* bits of nodes that it was sent to before it was acknowledged */
	bool disowned;       /* somebody went on from a copy that has it beside its history */
	uint32_t queued;     /* nodes that it went to by a queue */
	uint64_t number;     /* its place there; 0: none, or that program is gone */
	uint32_t held;       /* nodes that its drain has waited for, if they were enough */
	uint32_t discarded;  /* nodes whose copy an operator had overwritten that had it */
	bool drained;        /* a drain of it was begun, with an activity log */
	bool forsaken;       /* an operator went on from a replica that lagged */
	bool unsynced;       /* its program's machine has lost it, which had not synced its file */
};

enum sim_kind {
	SIM_OPEN,
	SIM_COMMIT,
	SIM_DEPOSIT, /* a COMMIT to a replica that has a receive ring */
	SIM_SHIP,    /* of a queue: a BARRIER is behind it, and POSITION in front of that */
	SIM_PING,
	SIM_HASH,
	SIM_JBEGIN,
	SIM_STAGE,
	SIM_JCOMMIT,
	SIM_JAPPLY,
	SIM_MARK,
	SIM_PUSH,
	SIM_GROW,
	SIM_LANES_OPEN, /* they get a receive ring, if the target has one */
	SIM_CLOSE,
	SIM_FIN,      /* the initiator's end is closed */
	SIM_PERSIST,  /* the target's own: what a COMMIT stored becomes durable now */
	SIM_ROUND,    /* likewise: a step of applying DEPOSITs; a reply: one is applied */
	SIM_LOG_STEP, /* likewise, of one with a round log */
	SIM_REPLY,
	SIM_RESET, /* the target's end is not there */
};

struct sim_msg {
	uint64_t at, order, session, rpc;
	unsigned from, to;
	unsigned channel;       /* 0: control, else lane + 1 */
	enum sim_kind kind, of; /* of a reply: what it answers */
	int rc;
	bool last;       /* JAPPLY: all is applied; GROW: only make room */
	uint64_t number; /* SHIP; GROW: blocks; DEPOSIT: sequence; ROUND: the step */
	uint64_t stamp;
	uint32_t epoch;
	unsigned count;
	uint8_t block[SIM_BATCH];
	uint32_t version[SIM_BATCH];
	uint32_t content[SIM_BLOCKS];
	enum sidecar_state state;
	bool has_chain;
	struct generation chain;
	uint64_t position; /* JCOMMIT, MARK: of a part of the chain's generation */
	struct sidecar meta;
};

struct sim_journal {
	bool open, committed;
	unsigned count, applied;
	uint8_t block[SIM_JOURNAL];
	uint32_t version[SIM_JOURNAL];
	enum sidecar_state state;
	bool has_chain, waited;
	struct generation chain;
	uint64_t position;
};

enum sim_phase {
	PHASE_IDLE,
	PHASE_OPEN,
	PHASE_FOLLOW, /* it gets the size that the pool has by now */
	PHASE_HASH,
	PHASE_JBEGIN,
	PHASE_STAGE,
	PHASE_HOLD,
	PHASE_STAGE_HELD,
	PHASE_JCOMMIT,
	PHASE_JAPPLY,
	PHASE_MARK_INCONSISTENT,
	PHASE_PUSH,
	PHASE_PUSH_HELD,
	PHASE_LANES,
	PHASE_MARK_FINAL,
	PHASE_INSTALLED,
};

/* The lanes to a replica that has a receive ring. */
struct sim_ring_lanes {
	bool asked, on;
	uint32_t epoch;
	uint64_t stamp;
	struct sim_ring_lane {
		uint64_t sent, acked; /* an answer frees the slot */
		unsigned waiting;     /* blocks for which there was none, oldest first */
		uint8_t block[SIM_PENDING];
	} lane[SIM_LANES];
};

/* The keeper of one replica, on the initiator's node. */
struct sim_keeper {
	struct replica_fsm fsm;
	enum sim_phase phase;
	bool at_open; /* it was there when the program opened its pool, and has not been judged */
	uint64_t session, rpc, heard, ping_at, timer;
	uint64_t hold_since, held_since; /* wanted, had */
	bool installed;
	struct gen_id label; /* that the replica has, as far as is known */
	/* what it misses: bits of blocks */
	uint32_t dirty, batch, todo;
	bool tracked;
	struct dirtytrack worth;
	bool direct, marked, final;
	bool in_doubt; /* it was told that it is up-to-date, and may have heard it */
	unsigned rounds;
	struct gen_id committed; /* by the last JCOMMIT or MARK of the resync */
	uint64_t advance_rpc, label_rpc, grow_rpc;
	struct sidecar found; /* as it has told of itself */
	unsigned outstanding[SIM_LANES];
	struct sim_ring_lanes ring;
	/* of a queued one */
	uint64_t behind; /* labelled outdated, at least until it has this */
	bool told_whole; /* by the mark of an advance, or the last one since */
	unsigned in_flight;
};

struct sim_lane {
	bool draining;
	bool held; /* before that, until it is recorded that the activity log does not count */
	uint64_t since;
	uint32_t pending; /* blocks flushed since the last drain */
	uint32_t flying;  /* posted, and not all have answered */
	uint32_t claimed; /* to be posted when another lane's are through */
	uint64_t claimed_turn;
	unsigned count;
	uint32_t op[SIM_PENDING];
	uint32_t unposted;        /* of a drain: not in the queue yet */
	struct shipment *shipped; /* to be awaited */
	uint32_t holders;         /* of it, if they were enough */
	/* a call that has left the lane and waits, with on-loss = block, for who was lost */
	bool blocked;
	uint64_t blocked_since;
	uint32_t lost, back;
	unsigned queued; /* calls that wait to begin, oldest first */
	uint64_t queued_since;
	uint32_t call[8];
};

/* Of a program that opens its pool: no call is made, and nobody comes that was not there. */
enum sim_opening {
	OPENING_NOT,   /* it is open */
	OPENING_BRING, /* those that are there are made equal, in the generation that was found */
	OPENING_TELL,  /* they get the one that it goes on with */
};

struct sim_app {
	bool running, advancing, again;
	enum sim_opening opening;
	bool losing, lost_some; /* several at once: one generation for them */
	uint64_t size;          /* of the pool, as the program may write to it */
	uint64_t map_size;      /* that the dirty maps have */
	unsigned growing;       /* to so many blocks; 0: it isn't */
	bool grow_granted, grow_refused;
	uint64_t grow_since;
	struct generation chain;
	uint32_t believed;    /* replicas that the next opening would go by an old map of */
	struct sidecar found; /* its record, when it opened its pool */
	struct sim_lane lane[SIM_LANES];
	struct sim_keeper keeper[SIM_NODES];
	int hold_wanted, hold; /* a keeper, -1: nobody */
	uint64_t closing;      /* since when it waits for queues to empty; 0: it doesn't */
	struct ackpolicy policy;
	struct shipqueue q;
};

struct sim_node {
	bool up, home;
	uint32_t mem[SIM_BLOCKS], disk[SIM_BLOCKS];
	struct sidecar meta;
	uint8_t slot[SIDECAR_SLOT_SIZE];
	struct sim_journal journal;
	uint64_t session, session_heard; /* of the one writer; 0: none */
	unsigned session_from;
	uint64_t position, position_next; /* of the session: on media, stored */
	uint32_t unsynced;                /* blocks of the last shipment */
	unsigned file, mapped;            /* blocks: the file's, those of the session */
	unsigned sidecar_fails, journal_fails, map_fails;
	unsigned dies;               /* at the so-manieth write from now on; 0: it doesn't */
	uint64_t full_until;         /* its disk */
	uint64_t beside_fails_until; /* what is beside the pool can't be written by its program */
	/* dirty maps on media, by replica: with after-crash = compare */
	struct {
		bool tracked;
		uint32_t bits;
		struct gen_id base;
	} map[SIM_NODES];
	struct sim_app app;
	/* what is so, whatever the code believes */
	uint64_t fence;     /* sessions up to this one were ended by a promotion */
	uint64_t discarded; /* an operator has thrown away what sessions up to this one wrote */
	uint32_t away;      /* lost nodes when the direct copy into it began that has not ended */
	bool is_primary;
	bool unusable; /* the session has found it amid a copy */
};

/* What messages on media bring, in bits of blocks. */
struct sim_redo {
	uint32_t content[SIM_BLOCKS];
	uint32_t blocks;
	uint32_t torn; /* bytes of no write */
};

struct sim_maps;
struct sim_ring;
struct sim_log;

/* What a run has beside what all have. */
enum {
	SIM_WITH_MAPS = 1, /* after-crash = dirty-map */
	SIM_WITH_GROW = 2,
	SIM_WITH_RING = 4,    /* some of the targets have a receive ring; lanes share blocks */
	SIM_WITH_LOG = 8,     /* likewise, a round log */
	SIM_WITH_SHARED = 16, /* lanes share blocks, and use them at once */
	SIM_WITH_REDO = SIM_WITH_RING | SIM_WITH_LOG,
};

struct sim {
	struct sim_config config;
	uint64_t now, order, sessions, rpcs, ids, draws;
	unsigned nodes, ops;
	enum ack_kind ack;
	uint32_t async;
	bool lag_degrade;
	int on_loss;        /* enum repl_on_loss */
	bool target_checks; /* an older target leaves the judging to the initiator */
	uint64_t slow_until, node_slow_until[SIM_NODES];
	bool cut[SIM_NODES][SIM_NODES];
	uint64_t last_at[SIM_NODES][SIM_NODES][SIM_LANES + 1];
	struct sim_node node[SIM_NODES];
	struct sim_maps *maps;  /* with dirty-map, one a node */
	struct sim_ring *rings; /* likewise, with receive rings */
	uint32_t ring_nodes;    /* that have one */
	struct sim_log *logs;
	uint32_t log_nodes;
	bool shared; /* lanes write the same blocks at once */
	bool lazy;   /* with dirty-map: programs leave it to the library to sync their files */
	uint64_t turns;
	struct sim_op op[SIM_OPS + 1];
	bool forked[SIM_GENERATIONS]; /* somebody went on from a copy of this one */
	struct sim_msg msg[SIM_MESSAGES];
	unsigned msg_count;
	bool settling; /* all faults have ended */
	bool held;     /* something was by enough queued ones */
	bool told; /* a person has changed what a copy is, or a new generation could not be recorded
		    */
	bool changed, failed;
	char reason[SIM_TEXT_MAX];
	struct sim_stats stats;
};

enum sim_event_kind {
	EV_WRITE,
	EV_CUT,
	EV_CUT_ALL,
	EV_HEAL,
	EV_SLOW,
	EV_SLOW_NODE,
	EV_KILL_APP,
	EV_KILL_TARGET,
	EV_POWER,
	EV_BOOT,
	EV_START,
	EV_CLOSE,
	EV_PROMOTE,
	EV_PROMOTE_FORCE,
	EV_DEMOTE,
	EV_PAUSE,
	EV_RESUME,
	EV_RESOLVE_LOCAL,
	EV_RESOLVE_REPLICA,
	EV_RESTORE,
	EV_SYNC,
	EV_SIDECAR_FAILS,
	EV_JOURNAL_FAILS,
	EV_RESTART,
	EV_GROW,
	EV_DIES,
	EV_DISK_FULL,
	EV_MAP_FAILS,
	EV_BESIDE_FAILS,
	EV_DAMAGE_MAP,
	EV_POWER_FAILS,
	EV_BURST,
	EV_COUNT,
};

static inline bool
sim_broken(const struct sim *s, enum sim_mutation m)
{
	return s->config.mutation == m;
}

/* sim_net.c */
uint64_t sim_mix(uint64_t x);
uint64_t sim_random(struct sim *s);
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_new_id(struct sim *s, struct gen_id *id);
void net_send(struct sim *s, const struct sim_msg *m);
void net_self(struct sim *s, const struct sim_msg *m, uint64_t delay_ns);
uint64_t net_next(const struct sim *s); /* when the next message comes; SIM_NEVER */
bool net_take(struct sim *s, struct sim_msg *m);
void net_forget(struct sim *s, unsigned node); /* the machine is off: what it had sent to itself */

/* sim_target.c */
bool media_store(struct sim *s, unsigned n, unsigned block, uint32_t version, uint64_t session);
void media_flush(struct sim *s, unsigned n, uint32_t blocks);
bool media_sidecar(struct sim *s, unsigned n, const struct sidecar *meta);
void target_take(struct sim *s, const struct sim_msg *m);
void target_tick(struct sim *s, unsigned n);
void target_end(struct sim *s, unsigned n, bool clean);
void target_position(struct sim *s, unsigned n); /* on media with what was answered */
void target_recover(struct sim *s, unsigned n);
void target_sync(struct sim *s, unsigned n);
bool target_left(const struct sim *s, unsigned n); /* what could not be recovered, or it died */
void target_reply(struct sim *s, const struct sim_msg *m, int rc, struct sim_msg *reply);

/* sim_app.c */
bool app_start(struct sim *s, unsigned n);
void app_kill(struct sim *s, unsigned n);
void app_close(struct sim *s, unsigned n);
void app_write(struct sim *s, unsigned n, uint32_t random);
void app_tick(struct sim *s, unsigned n);
void app_lose(struct sim *s, unsigned n, unsigned k);
void app_advance(struct sim *s, unsigned n);  /* no acknowledgement before it is recorded */
void app_progress(struct sim *s, unsigned n); /* drains and the advance go on if they can */
bool app_quiet(const struct sim *s, unsigned n);
bool app_lanes_idle(const struct sim *s, unsigned n);
/* The longest of calls, for its lane. */
uint64_t app_waits(const struct sim *s, unsigned n);
uint32_t app_lost(const struct sim *s, unsigned n); /* nodes whose replica is not installed */

/* sim_queued.c */
void queued_begin(struct sim *s, unsigned n);
void queued_end(struct sim *s, unsigned n);
bool queued_serves(const struct sim *s, unsigned n, unsigned k);
bool queued_through(struct sim *s, unsigned n, unsigned l); /* this lane's drain may return */
void queued_acked(struct sim *s, unsigned n, unsigned k, uint64_t number);
void queued_lost(struct sim *s, unsigned n, unsigned k);
void queued_install(struct sim *s, unsigned n, unsigned k);
bool queued_settling(const struct sim *s, unsigned n); /* some have to catch up first */
bool queued_empty(const struct sim *s, unsigned n);
void queued_lose_late(struct sim *s, unsigned n); /* those that have not all */
void queued_tell(struct sim *s, unsigned n, unsigned k,
		 struct sim_msg *mark);                   /* a new generation */
void queued_label(struct sim *s, unsigned n, unsigned k); /* a laggard that is none any more */

/* sim_maps.c */
uint64_t maps_pool_size(unsigned blocks);
unsigned maps_blocks(uint64_t pool_size);
uint64_t maps_block_off(unsigned block);
bool maps_new(struct sim *s);
void maps_free(struct sim *s);
void maps_power(struct sim *s, unsigned n);
void maps_damage(struct sim *s, unsigned n, uint32_t random);

/* What the sidecar's region tells of all replicas; found is the generation of the local pool. */
void maps_load(struct sim *s, unsigned n, bool crashed, const struct gen_id *found);

/* These return whether the program lives; false of maps_begin(): it does not open. */
bool maps_begin(struct sim *s, unsigned n);
bool maps_grow(struct sim *s, unsigned n);
/* They are in the activity log; *on: nobody had to wait for it. */
bool maps_use(struct sim *s, unsigned n, uint32_t blocks, bool *on);
bool maps_finish(struct sim *s, unsigned n);

/* It does not count, and media can't say so; the next record is to name none: it was not before. */
bool maps_untold(const struct sim *s, unsigned n);
bool maps_disown(struct sim *s, unsigned n);
void maps_record(const struct sim *s, unsigned n, struct sidecar *meta); /* what it names */
void maps_recorded(struct sim *s, unsigned n);
void maps_tick(struct sim *s, unsigned n);

/* sim_bytes.c */
void bytes_add(struct wire_commit *c, unsigned block, uint32_t version);
uint32_t bytes_apply(const struct sim *s, const struct wire_commit_view *v, struct sim_redo *redo);

/* What a replay has come to; false: the process has died over it. */
bool bytes_bring(struct sim *s, unsigned n, const struct sim_redo *redo, bool flush);

/* sim_log.c */
bool logs_new(struct sim *s, uint32_t nodes);
void logs_free(struct sim *s);
void log_power(struct sim *s, unsigned n);
void log_killed(struct sim *s, unsigned n);
bool log_is_left(const struct sim *s, unsigned n);

/* False: it has died over it, or what it should take away is left. */
bool log_make(struct sim *s, unsigned n);
bool log_settle(struct sim *s, unsigned n, uint32_t blocks); /* if it brings any of them */
bool log_end(struct sim *s, unsigned n);
bool log_recover(struct sim *s, unsigned n);

bool log_takes(const struct sim *s, const struct sim_msg *m);
int log_commit(struct sim *s, const struct sim_msg *m);
void log_step(struct sim *s, const struct sim_msg *m);
void log_tick(struct sim *s, unsigned n);
bool log_content(const struct sim *s, unsigned n, struct sim_redo *redo); /* false: damaged */

/* sim_ring.c */
bool rings_new(struct sim *s, uint32_t nodes);
void rings_free(struct sim *s);
void ring_power(struct sim *s, unsigned n);
bool ring_is_left(const struct sim *s, unsigned n);
bool ring_recover(struct sim *s, unsigned n); /* replay, and take away; false: it is left */

void ring_content(const struct sim *s, unsigned n, bool durable, struct sim_redo *redo);
int ring_lanes(struct sim *s, const struct sim_msg *m, struct sim_msg *reply);
void ring_deposit(struct sim *s, const struct sim_msg *m);
void ring_persist(struct sim *s, const struct sim_msg *m);
void ring_round(struct sim *s, const struct sim_msg *m);
bool ring_wanted(const struct sim *s, unsigned n, unsigned k);
void ring_post(struct sim *s, unsigned n, unsigned k, unsigned l, unsigned block);
void ring_acked(struct sim *s, unsigned n, unsigned k, unsigned l); /* one is applied */

/* sim_grow.c */
void grow_begin(struct sim *s, unsigned n);
void grow_answered(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m);
void grow_progress(struct sim *s, unsigned n);
void grow_tick(struct sim *s, unsigned n);
int grow_target(struct sim *s, const struct sim_msg *m);
void grow_cut(struct sim *s, unsigned n); /* what was not finished */

/* sim_keeper.c */
void keeper_event(struct sim *s, unsigned n, unsigned k, const struct fsm_event *event);
void keeper_take(struct sim *s, const struct sim_msg *m);
void keeper_tick(struct sim *s, unsigned n, unsigned k);
void keeper_send(struct sim *s, unsigned n, unsigned k, struct sim_msg *m);
void keeper_cut(struct sim *s, unsigned n, unsigned k);  /* its resync ends */
void keeper_lose(struct sim *s, unsigned n, unsigned k); /* it does not answer in time */
void keeper_lose_all(struct sim *s, unsigned n, uint32_t replicas);

/* sim_script.c */
size_t script_make(uint64_t seed, unsigned nodes, unsigned with, struct sim_event *events);
bool script_dies(struct sim *s, unsigned n); /* at this write; the program, or its machine */
void script_do(struct sim *s, const struct sim_event *e);

/* sim_check.c */
void check_acknowledged(struct sim *s, unsigned n, struct sim_op *op, uint32_t version);
void check_all(struct sim *s);
void check_settled(struct sim *s);
uint32_t gen_number(const struct gen_id *id);
void check_disown(struct sim *s, unsigned n); /* who goes on from this copy takes it as it is */
void check_blocked(struct sim *s, unsigned n, const struct sim_op *op, uint32_t version,
		   uint32_t lost);
void check_discard(struct sim *s, unsigned from, unsigned to);
void check_overwritten(struct sim *s, unsigned n, unsigned block, uint32_t version);
/* A power cut takes back what this block has in memory: the program's own, while it is open. */
void check_unsynced(struct sim *s, unsigned n, unsigned block);
void check_forsake(struct sim *s, unsigned n); /* ... also one that lagged in its generation */

#endif
