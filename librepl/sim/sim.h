/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim - losing machines, in memory: a set of nodes with an application, its
 * keepers and the targets, driven by a seed, and what must hold after each step.
 *
 * What decides is the real code: replica_fsm, backoff, replica_judge, generation,
 * shipqueue, ackpolicy, sidecar's slots, of dirty maps dirtytrack, dirtyload, dirtypage and
 * extentlog, of receive rings and round logs ring, wire and roundfmt. What it works on is
 * modelled: a block holds the number of the write that it got last, in memory and on media; the
 * network delays, cuts and reorders; a power cut keeps what was durable and any part of the rest.
 * The same configuration gives the same run. docs/RELIABILITY.md says what is checked.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EVENTS_MAX 96
#define SIM_TEXT_MAX   512

/* Rules that are broken on purpose: each of them must be found out. */
#define SIM_MUTATION_TABLE(X)                                                                      \
	X(NONE, "none")                                                                            \
	X(NO_ADVANCE, "no new generation when a replica is lost")                                  \
	X(NO_ADVANCE_IN_DOUBT, "none when a resync fails after its last word was sent")            \
	X(ACK_UNRECORDED, "acknowledge before the new generation is recorded")                     \
	X(APPLY_UNCOMMITTED, "recovery applies a journal without its commit record")               \
	X(DROP_COMMITTED, "recovery drops a committed journal")                                    \
	X(CLEAR_EARLY, "clear dirty bits before the journal's commit")                             \
	X(INSTALL_NO_HOLD, "install a replica without a hold")                                     \
	X(EARLY_UP_TO_DATE, "mark up-to-date before the last byte")                                \
	X(NO_INCONSISTENT, "copy directly without marking inconsistent first")                     \
	X(ACCEPT_OLDER, "let an older or diverged generation write")                               \
	X(NO_FENCE, "the target heeds a session that was ended")                                   \
	X(ACK_EARLY, "acknowledge what is not durable yet")                                        \
	X(NO_MARK, "do not note what a lost replica misses")                                       \
	X(TRUST_AFTER_CRASH, "believe the dirty map on media after a crash")                       \
	X(STALE_LABEL, "install with a generation that was left meanwhile")                        \
	X(OUTDATED_OLD_LABEL, "keep the old generation in the middle of a resync")                 \
	X(PROMOTE_OUTDATED, "promote an outdated replica as a descendant of what it misses")       \
	X(PROMOTE_TOLD, "promote a laggard as if it had all of its generation")                    \
	X(RESTORE_TOLD, "restore what lags as if it had all of its generation")                    \
	X(SYNC_TOLD, "make a replica whole, by a sync, that has a part of its generation")         \
	X(PART_OVER_MORE, "go on from a part of a generation over who has more of it")             \
	X(OPEN_IN_PIECES, "bring a replica what it lacks at opening by several commits")           \
	X(KEEP_MAP, "keep a former primary's dirty map while another writes")                      \
	X(NO_SYNC_AT_OPEN, "believe at opening that what is read is durable")                      \
	X(NO_DEADLINE, "wait for a lost replica without end")                                      \
	X(QUEUE_FEW, "acknowledge what one replica less than needed has")                          \
	X(QUEUE_COUNT_LAGGARD, "count a laggard before it is labelled up to date")                 \
	X(QUEUE_NO_BARRIER, "apply what is queued without a barrier behind each drain")            \
	X(QUEUE_NO_MARK, "forget what was queued for a replica that is lost")                      \
	X(LAGGARD_UP_TO_DATE, "tell a laggard the new generation as if it had all of the old one") \
	X(LAGGARD_NAMES, "leave in a laggard's chain what it lacks some of")                       \
	X(LAGGARD_UNTOLD,                                                                          \
	  "leave a laggard one that has what it lacked, and lacks what came since")                \
	X(BLOCK_FIRST, "end the wait of on-loss = block with the first replica that is back")      \
	X(POSITION_KEPT, "keep the position that was recorded in another generation")              \
	X(QUEUE_WAITED, "record of a queued replica that each drain waits for it")                 \
	X(NO_ACTIVITY, "keep no activity log, and believe the dirty map after a crash")            \
	X(ACTIVE_UNSYNCED, "send before the activity log is synced")                               \
	X(RETIRE_BUSY, "take an extent off while a drain in it is under way")                      \
	X(RETIRE_UNSYNCED, "take an extent off before the pool's file is synced there")            \
	X(CLOSE_UNSYNCED, "close before the pool's file is synced")                                \
	X(REGION_KEPT, "leave a region named that could not be made anew")                         \
	X(LOG_UNTOLD, "go on when neither the activity log nor the record can be written")         \
	X(MAP_ANY_BASE, "believe a dirty map for a replica of another generation")                 \
	X(DAMAGED_CLEAN, "take a damaged page of a dirty map for an empty one")                    \
	X(NO_CLAIMS, "send a byte that another lane has on its way, an older one")                 \
	X(GROW_LOCAL_FIRST, "write into a new part before the replicas have it")                   \
	X(GROW_UNRECORDED, "say that a pool has grown before its sidecar does")                    \
	X(GROW_BESIDE_RESYNC, "let a pool grow beside a resync")                                   \
	X(FOLLOW_NOT, "resync a replica of the old size without its new part")                     \
	X(RING_DROPPED, "take a receive ring away without replaying it")                           \
	X(RING_UNFLUSHED, "take it away before what was replayed is durable")                      \
	X(RING_KEPT, "leave a receive ring named that was replayed")                               \
	X(RING_ORDER, "replay one lane of a receive ring behind the other")                        \
	X(RING_MARK_FIRST, "mark a deposit before it is durable in the pool")                      \
	X(RING_MARKS_ORDER, "mark a later deposit before an earlier one of another lane")          \
	X(RING_REUSED, "use a slot again before what was in it is applied")                        \
	X(RING_ANY_EPOCH, "leave an older ring's deposits in the slots, and believe them")         \
	X(RING_TORN, "believe a deposit that is torn")                                             \
	X(LOG_DROPPED, "take a round log away without replaying it")                               \
	X(LOG_UNSYNCED, "answer before the frame is durable")                                      \
	X(LOG_UNSETTLED, "make durable what came another way, over frames that count")             \
	X(LOG_FORGOTTEN, "forget what a half brings before its frames stop counting")              \
	X(LOG_EARLY_FROM, "let frames stop counting before the pool has what they bring")          \
	X(LOG_STORING, "let a frame stop counting that is not stored yet")                         \
	X(LOG_OVERWRITTEN, "write over a half of which frames count")                              \
	X(LOG_ANY_KEY, "give a round log the key of the one before")

enum sim_mutation {
#define SIM_MUTATION_ENUM(name, text) SIM_##name,
	SIM_MUTATION_TABLE(SIM_MUTATION_ENUM)
#undef SIM_MUTATION_ENUM
		SIM_MUTATION_COUNT
};

const char *sim_mutation_text(enum sim_mutation m);

struct sim_config {
	uint64_t seed;
	enum sim_mutation mutation;
};

/* One thing that is done to the nodes, at its time. */
struct sim_event {
	uint64_t at_ns;
	uint8_t kind;
	uint8_t node, other;
	uint32_t random;
};

struct sim_stats {
	uint64_t steps, writes, acks, losses, resyncs, refused, power_cuts, promotions;
	uint64_t replayed; /* receive rings and round logs that brought something */
};

struct sim_result {
	bool failed;
	char reason[SIM_TEXT_MAX]; /* which invariant, where, when */
	size_t event_count;        /* of the run, or of the shortest one that fails */
	struct sim_event events[SIM_EVENTS_MAX];
	struct sim_stats stats; /* of the run itself, not of the shortening */
};

/* Run a seed; a run that fails is shortened to as few events as fail for the same invariant. */
void sim_run(const struct sim_config *config, struct sim_result *result);

/* "12.345 s  power cut of node 1"; returns out. */
const char *sim_event_text(const struct sim_event *event, char *out, size_t size);

/*
 * The rules of generations, exhaustively: every sequence of up to depth events on
 * nodes copies (2 or 3), against what was really written, and against chains without gaps.
 */
struct chains_result {
	bool failed;
	char reason[SIM_TEXT_MAX];
	uint64_t sequences, states, relations; /* tried, told apart, compared */
	uint64_t by_relation[5];               /* by enum gen_relation */
};

enum chains_rule {
	CHAINS_AS_BUILT,
	CHAINS_FORGET,     /* a history keeps only what some copy has, as one that is full may */
	CHAINS_NO_ADVANCE, /* broken on purpose: a loss makes no generation */
	CHAINS_FORGET_ALL, /* broken on purpose: nothing is kept */
};

void chains_explore(unsigned nodes, unsigned depth, enum chains_rule rule,
		    struct chains_result *result);

#endif
