/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data_impl - what the parts of the data thread share: data.c takes
 * connections and messages and answers, data_imm.c takes immediates,
 * data_apply.c does to the pool what a round of both asks for, data_log.c what
 * goes by the round log, data_deposit.c
 * takes and applies what comes by a receive ring, data_trim.c makes zero what
 * was trimmed, data_stage.c adds to the resync journal.
 */
#ifndef REPLD_DATA_IMPL_H
#define REPLD_DATA_IMPL_H

#include <pthread.h>

#include "data.h"
#include "deposits.h"
#include "regions.h"
#include "spin.h"

#define DATA_PENDING_MAX 256  /* COMMITs taken in one round */
#define DATA_EVENTS_MAX  1024 /* looked at for one round */
#define DATA_RANGES_MAX  4096 /* ranges gathered for one flush */
#define DATA_TRIMS_MAX   64   /* trims that are put off */

enum commit_state { COMMIT_TAKEN, COMMIT_APPLIED, COMMIT_ANSWERED };

/* How far an APPEND is: its bytes are placed; its tail word is stored. */
enum append_state { APPEND_NONE, APPEND_PLACED, APPEND_DONE };

/* A COMMIT, or an immediate that stands for one, that was taken and not yet answered. */
struct commit {
	const uint8_t *stage; /* a STAGE, whole; NULL: it is something else */
	size_t stage_len;
	bool put;                     /* a PUT: it is stored, and not flushed */
	struct wire_commit_view view; /* of an immediate: the sequence, and no entries */
	struct wire_imm imm;          /* len 0: this is a COMMIT */
	unsigned lane;
	unsigned slot;
	uint32_t next_entry;    /* first one not yet applied */
	const uint8_t *payload; /* of that entry */
	enum commit_state state;
	uint64_t taken_ns;
	int status; /* of an entry that could not be done; the lane goes on */
	enum append_state append;
	uint64_t word_off, place, tail; /* of an APPEND; tail: behind its bytes */
	bool has_key;                   /* it made memory reachable; the answer says where */
	struct regions_place at;
	bool logged;                    /* it is durable in the round log, before it is applied */
	struct wire_commit_view record; /* what of it is in the log */
};

struct data_lane {
	uint8_t token[WIRE_TOKEN_SIZE];
	bool token_used;
	bool broken;          /* broke the protocol: its messages are ignored */
	uint64_t seq;         /* of what was taken last: immediates carry none */
	uint64_t stamp;       /* likewise, of DEPOSITs */
	unsigned taken;       /* and not yet answered */
	uint64_t answered_ns; /* when it was answered last */
	bool waits;           /* stopped at a BARRIER in this round's phase */
	bool stores;          /* something other than an APPEND of it goes into this frame */
};

struct data {
	struct data_params params;
	struct fab_server *server;
	struct regions regions;
	struct data_lane *lanes;
	struct commit *pending;
	unsigned pending_count;
	struct deposits *deposits; /* with a receive ring */
	uint8_t *scratch;          /* with a round log: APPENDs as it takes them, ROUND_FRAME_MAX */
	struct range *ranges;
	size_t range_count;
	bool holes; /* some of them may have been made holes: what a log brings has its space */
	struct range trims[DATA_TRIMS_MAX]; /* disjoint, to become zero piece by piece */
	unsigned trim_count;
	uint64_t trimmed_ns;    /* when that was last gone on with */
	uint64_t trim_took_ns;  /* ... and how long it took */
	uint64_t position;      /* the highest POSITION that is durable */
	uint64_t position_next; /* ... that was met, its drain in front of it not yet flushed */
	unsigned joined, closed;
	bool rdma;          /* an RNIC reaches memory, and only what it has registered */
	_Atomic int failed; /* once a flush has failed nothing after it can be trusted */
	uint64_t key;
	uint64_t imm_unit; /* 0: immediates are not to be used */
	uint64_t port_deadline_ns;
	bool port_open;
	int stop_fd;
	_Atomic bool stop;
	pthread_t thread;
	bool thread_started;
	struct spin gather; /* of waits for lanes that are about to send again */
	struct data_counters counters;
};

/* Answer a message; a lane that can't be answered ends. */
void data_answer(struct data *d, unsigned lane, uint64_t seq, int status, uint64_t taken_ns);

/* The same with the rest of the ACK filled in: seq, status, place. */
void data_send_ack(struct data *d, unsigned lane, struct wire_ack *ack, uint64_t taken_ns);

/* The lane broke the protocol: log it, answer seq if it is not NULL, and end it. */
void data_end_lane(struct data *d, unsigned lane, const uint64_t *seq, const struct err *e);

/* An RMA write with an immediate has arrived: what it names is flushed in this round. */
void data_on_immediate(struct data *d, const struct fab_event *ev);

/* With a receive ring: a message has arrived; apply what has been taken, mark, answer. */
void data_on_deposit(struct data *d, const struct fab_event *ev);
void data_apply_deposits(struct data *d);

/* A STAGE has arrived: check it; then add it to the journal, where c->status says how that went. */
int data_take_stage(struct data *d, const struct fab_event *ev, struct commit *c, struct err *e);
void data_stage_apply(struct data *d, struct commit *c);

/* Only STAGEs may be sent now: what they bring must not come over, or under, anything else. */
bool data_staging(const struct data *d);

/*
 * Where storing may take space: let what is about to be stored in a range find it; false if there
 * is none. Stored all the same it would end the process.
 */
bool data_back(const struct data *d, uint64_t off, uint64_t len);

/* There was none: no update is accepted any more. */
void data_space_fail(struct data *d, uint64_t off, uint64_t len);

/* The same in front of a store; after a false no update is accepted. */
bool data_back_or_fail(struct data *d, uint64_t off, uint64_t len);

/* A range that the next flush is to make durable. */
void data_note_range(struct data *d, uint64_t off, uint64_t len);

/* Choose the place of an APPEND; false if it can't be done, with c->status. */
bool data_append_choose(struct data *d, struct commit *c, const struct wire_entry *en);

/* Store one whose place is chosen, and that is durable in the round log. */
void data_append_store(struct data *d, struct commit *c, const struct wire_entry *en);

/* One step of an APPEND; true if the next one must wait for a flush. */
bool data_append(struct data *d, struct commit *c, const struct wire_entry *en);

/* Make a region of the pool ready for RMA; 0 or a status. c learns its place, if it has one. */
int data_register(struct data *d, struct commit *c, const struct wire_entry *en);

/* Copy a range into the lane's window, where the initiator reads it; 0 or a status. */
int data_fetch(struct data *d, struct commit *c, const struct wire_entry *en);

/* Gather a range for the next data_flush(), which makes all of them durable. */
void data_note_range(struct data *d, uint64_t off, uint64_t len);
void data_flush(struct data *d);

/*
 * Apply c's entries up to its end or a BARRIER; true if it stopped at one, be
 * that the last entry: a BARRIER holds the lane's next COMMIT back as well.
 */
bool data_commit_apply(struct data *d, struct commit *c);

/* All of c is durable, or c->status or d->failed says why not: answer it. */
void data_commit_finish(struct data *d, struct commit *c);

/*
 * Of the pending COMMITs make durable in the round log, apply and answer those that it can take,
 * of each lane up to the first that it can't. The others are as they were.
 */
void data_log_round(struct data *d);

/* A TRIM: note it, or finish all; then c->status says whether that was given up. */
void data_trim_take(struct data *d, struct commit *c, const struct wire_entry *en);

/* Whether something is to be trimmed in the pages of a range. */
bool data_trim_meets(const struct data *d, uint64_t off, uint64_t len);

/* Put a trim off; if too many are, one of them is done at once. */
void data_trim_add(struct data *d, uint64_t off, uint64_t len);

/*
 * A range is about to be stored to (stored false), or was by RMA: finish what is
 * to be trimmed in its pages, but for what RMA has brought.
 */
void data_trim_meet(struct data *d, uint64_t off, uint64_t len, bool stored);

/* Do one piece, durably, if it is time for it: idle says that nothing else is to be done. */
bool data_trim_step(struct data *d, bool idle);

/* All that was put off is done; durable with the next flush. False if the lanes ended first. */
bool data_trim_finish(struct data *d);

/* The lanes end: finish, but give the rest up when it takes long. */
void data_trim_end(struct data *d);

/* Do what the pending COMMITs ask for, make it durable, answer them. */
void data_apply(struct data *d);

#endif
