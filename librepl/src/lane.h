/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane - one lane to one replica: what was flushed on it, and the execution of
 * plans over the fabric.
 *
 * A lane never waits. The caller (repl.c) begins a job on the lanes of all
 * replicas and steps them in turn until all are done, so that a drain costs
 * the slowest replica, not the sum. One thread at a time uses a lane; the
 * counters may be read by any.
 */
#ifndef LIBREPL_LANE_H
#define LIBREPL_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "breath.h"
#include "clock.h"
#include "fabric.h"
#include "plan.h"
#include "rangeset.h"
#include "regions.h"
#include "wire.h"

#define LANE_READ_MAX (1U << 20) /* one RMA operation */
#define LANE_LOOK_MS  100U       /* waits look at least this often */

struct lane_counters {
	_Atomic uint64_t messages, writes, reads, bytes;
	_Atomic uint64_t immediates; /* of the writes */
	_Atomic uint64_t uncopied;   /* of the bytes: fab_lane_source() */
	_Atomic uint64_t events;     /* signs of life */
};

/* What a job does after everything that was flushed before. */
enum lane_kind {
	LANE_DRAIN,   /* nothing */
	LANE_PAIR,    /* then the range, ordered behind a barrier */
	LANE_ATOMIC8, /* then 8 bytes in one store, ordered behind a barrier */
	LANE_TRIM,    /* then the range is to become zero; length 0: all such are finished */
	LANE_SETTLE,  /* nothing; what was complete on any lane is in the pool, for reads too */
	LANE_WRITTEN, /* the same; of what was flushed before only what was written at once goes */
};

enum lane_phase {
	LANE_IDLE,
	LANE_POST_WRITTEN, /* durability of what was written early is being asked for */
	LANE_POST_FIRST,   /* the rest of what was flushed is being posted */
	LANE_AWAIT_FIRST,  /* ... must be durable before the second may be posted */
	LANE_POST_SECOND,
	LANE_REGISTER, /* a region is being made ready for RMA */
	LANE_FETCH,    /* a range is being copied into the lane's window */
	LANE_APPEND,   /* an APPEND is being posted */
	LANE_AWAIT,    /* all is posted; answers are outstanding */
};

/* An APPEND: what is asked for, and what came of it. */
struct lane_append {
	uint64_t word_off, limit;
	const void *data;
	uint32_t len;
	uint64_t seq;   /* of its COMMIT; 0: none is under way */
	int status;     /* why the target could not, the lane being none the worse for it */
	uint64_t place; /* if status is 0 */
};

/* A read by way of the target's window: where the RNIC can't have the pool, or a whole one is read.
 */
struct lane_fetch {
	void *dst;
	uint64_t off;
	uint32_t len;
	uint64_t seq;               /* of its COMMIT; 0: none is under way */
	struct regions_place place; /* of the window, when that is acknowledged */
};

struct lane {
	struct fab_lane *fab; /* borrowed */
	const uint8_t *mem;   /* the application's range */
	const struct profile *profile;
	struct regions *regions; /* shared by the remote's lanes, or NULL */
	struct plan_limits limits;
	unsigned depth;
	size_t msg_size;
	uint32_t epoch;
	struct lane_counters counters;

	struct rangeset todo;    /* flushed, not yet posted */
	struct rangeset written; /* posted by RMA, its durability not yet asked for */
	unsigned written_by;     /* PLAN_BITs */

	enum lane_phase phase;
	enum lane_kind kind;
	struct range second;
	struct plan second_plan;
	unsigned posted_by; /* PLAN_BITs of what this job has posted */
	unsigned range_at;  /* index into the set being posted */
	uint64_t byte_at;   /* bytes of that range posted */
	uint64_t asked_at;  /* bytes of it whose durability was asked for */
	bool barrier_due;   /* a BARRIER goes before the second */
	bool read_due;      /* a read must follow the writes */
	uint64_t read_off;
	bool bare;               /* longer payloads need no checksum */
	bool ring;               /* DEPOSITs only: complete before they are acknowledged */
	bool delivered;          /* ... by their completions, else by a read behind them */
	bool deposit_due;        /* that read */
	bool settle_due;         /* a DEPOSIT whose ACK speaks for all lanes */
	_Atomic uint64_t *stamp; /* of the session: the last one given out */
	struct wire_commit commit;
	bool building;
	unsigned entries_due; /* of shipments, that a COMMIT is to have room for */

	uint64_t imm_unit;            /* what immediates count in */
	uint64_t seq_sent, seq_acked; /* COMMITs and answered immediates */
	size_t unanswered;            /* bytes of COMMITs since all were answered */
	uint64_t reg_seq; /* of the COMMIT that asks for reg_region, 0: none is under way */
	unsigned reg_region;
	struct lane_append append;
	bool stages; /* nothing but STAGEs goes */
	bool full;   /* ... for which the target has no room: the lane is none the worse for it */
	bool keyed;  /* the target tells where what is registered lies */
	bool window; /* the pool is out of RMA's reach: reads go by fetch */
	struct lane_fetch fetch;
	size_t rma_max; /* bytes of one RMA operation */
	unsigned rma_outstanding;
	uint64_t busy_poll_ns; /* how long waits poll before they sleep */
	uint8_t scratch[8];    /* reads go here */

	const _Atomic int *gone; /* borrowed, or NULL: see lane_watch() */
	int status;              /* 0, or why the lane is lost */
	char why[200];
};

struct lane_setup {
	struct fab_lane *fab; /* borrowed */
	const struct profile *profile;
	struct regions *regions; /* borrowed; NULL: no region needs to be asked for */
	bool rma;
	bool keyed;        /* keys and addresses are the target's to tell (PROTOCOL.md, 2.3) */
	size_t rma_max;    /* bytes of one RMA operation; 0: LANE_READ_MAX */
	uint64_t imm_unit; /* 0: immediates are not to be used */
	bool bare;         /* BAREs may be sent */
	unsigned depth;
	size_t msg_size;
	uint32_t epoch;
	unsigned force;          /* as in struct plan_limits */
	uint64_t busy_poll_ns;   /* waits poll for so long before they sleep */
	_Atomic uint64_t *stamp; /* shared by the lanes of a session with a receive ring, or NULL */
};

void lane_init(struct lane *l, const struct lane_setup *s);

/* The memory that offsets of later calls refer to; the lane is idle. */
void lane_bind(struct lane *l, const void *mem);

/*
 * When *gone is not 0 any more it is the status that waiting on the lane ends with,
 * within LANE_LOOK_MS. NULL: nobody says so.
 */
void lane_watch(struct lane *l, const _Atomic int *gone);

/* What a lane of these terms can do, and the sizes that go by message. */
struct plan_limits lane_limits(bool rma, bool immediates, size_t msg_size);

/*
 * Note a range; large ones are written by RMA at once if there is room.
 * Returns how many noted ranges it was merged with, or -1 if the lane is full:
 * begin a drain and step until lane_posted(), then repeat.
 */
int lane_flush(struct lane *l, uint64_t off, uint64_t len);

/*
 * The same for a range that second more bytes are to follow as a pair: nothing
 * is written at once if both go in one message.
 */
int lane_flush_first(struct lane *l, uint64_t off, uint64_t len, uint64_t second);

/* Whether either of them would write at once; and to note a range without that, as lane_flush(). */
bool lane_writes_early(const struct lane *l, uint64_t off, uint64_t len, uint64_t second);
int lane_note(struct lane *l, uint64_t off, uint64_t len);

/*
 * A lane with a receive ring is done when its DEPOSITs are in the ring; what is
 * not acknowledged is not yet in the pool. Reads of the pool want LANE_SETTLE
 * or LANE_WRITTEN first, on a lane of any kind.
 *
 * Begin a job. off and len are for LANE_PAIR and LANE_ATOMIC8.
 */
void lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len);

/*
 * Begin an APPEND on an idle lane: what was flushed stays as it is. When
 * lane_done(), l->append has the result. len is at most lane_append_max().
 */
void lane_append(struct lane *l, uint64_t word_off, uint64_t limit, const void *data, uint32_t len);
size_t lane_append_max(const struct lane *l);

/* Not by DEPOSITs: applied again it would take another place. */
bool lane_can_append(const struct lane *l);

/* Do what can be done without waiting; true if something was done. */
bool lane_step(struct lane *l);

/* All of the job is on its way: its memory is still in use. */
bool lane_posted(const struct lane *l);

/*
 * Nothing is left to do but to take the answers: all has been handed to the
 * system, and nobody need look at the lane meanwhile for it to move.
 */
bool lane_only_answers(const struct lane *l);

/* Finished, in success or not (l->status). */
bool lane_done(const struct lane *l);

/* There is room for a read beside what was written early. */
bool lane_has_room(const struct lane *l);

/*
 * Begin to make off's region ready for RMA on an idle lane, if it is not; step
 * until lane_done().
 */
void lane_register(struct lane *l, uint64_t off);

/* How many of len bytes at off one RMA operation may move. */
uint64_t lane_rma_len(const struct lane *l, uint64_t off, uint64_t len);

/*
 * Read lane_rma_len() bytes into dst on an idle lane that lane_has_room(), from a
 * region that is ready or by the window; step until lane_done().
 */
int lane_read(struct lane *l, void *dst, uint64_t off, uint64_t len);

/* The same by the window, where the session has granted one of at least len bytes. */
int lane_fetch(struct lane *l, void *dst, uint64_t off, uint64_t len);

/*
 * What of the time in which lanes were stepped, and nothing was waited for, is no target's: if it
 * is long this machine has taken it, for a page of the pool whose disk stalls, or as the process
 * was stopped.
 */
static inline uint64_t
lane_held_ns(uint64_t since_ns, uint64_t until_ns)
{
	return until_ns > since_ns + LANE_LOOK_MS * NS_PER_MS ? until_ns - since_ns : 0;
}

/*
 * Step lanes, at most REPL_LANES_MAX, in turn until each fulfils until() or is lost, polling for a
 * bounded time and then sleeping. Lanes that have not come so far by the
 * deadline, behind which goes what this machine has held them up, are given up with REPL_E_TIMEOUT:
 * a late answer could be taken for that of a later request.
 */
void lanes_run(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
	       uint64_t deadline_ns);

/*
 * As lanes_run() for one lane that moves much, however long that takes: given up after stall_ns
 * without an event or a byte that has moved. Breathes meanwhile, and returns what ended that; the
 * lane is as it was then.
 */
int lane_run_while_moving(struct lane *lane, bool (*until)(const struct lane *), uint64_t stall_ns,
			  const struct breath *breath, struct err *e);

/*
 * The same for several lanes of one session, at most REPL_LANES_MAX, until one of them has come so
 * far: what moves on any of them counts, and given up are all.
 */
int lanes_run_while_moving(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
			   uint64_t stall_ns, const struct breath *breath, struct err *e);

/*
 * As lanes_run() for one lane that nobody gives up yet: true if it has come so far by the deadline,
 * or is lost. Whoever moves much can do something else now and then.
 */
bool lane_run_for_now(struct lane *lane, bool (*until)(const struct lane *), uint64_t deadline_ns);

/* Give the lane up with a reason, e.g. a deadline. */
void lane_fail(struct lane *l, int status, const char *why);

#endif
