/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan - the cheapest method that is correct for a target.
 *
 * Pure. What is correct is derived from the rows of taxonomy.h and a few rules
 * on top of them (plan.c), each with its reason as text, so that a user can be
 * told why: docs/PERSISTENCE.md.
 *
 *   plan_judge()   is this method correct for this target?
 *   plan_choose()  which one for this many bytes, of those the session can do?
 *   plan_steps()   what happens, step by step, if it begins with this operation?
 */
#ifndef COMMON_PLAN_H
#define COMMON_PLAN_H

#include <stddef.h>

#include "err.h"
#include "profile.h"
#include "taxonomy.h"

enum plan_method {
	PLAN_MESSAGE = 0,            /* payload in the message; the target copies and flushes */
	PLAN_GENERAL = 1,            /* RMA write, then a message asks for the flush */
	PLAN_APPLIANCE = 2,          /* RMA write, then an RMA read on the same lane */
	PLAN_COMPLETION = 3,         /* RMA write, its completion at the target's end */
	PLAN_WRITE_IMM = 4,          /* RMA write with immediate data; the target flushes */
	PLAN_WRITE_IMM_READ = 5,     /* RMA write with immediate data, then an RMA read */
	PLAN_DEPOSIT = 6,            /* message into the receive ring, then an RMA read */
	PLAN_DEPOSIT_COMPLETION = 7, /* message into the receive ring, its completion */
	PLAN_NATIVE_FLUSH = 8,       /* RMA write that completes when the fabric has flushed it */
	PLAN_METHOD_COUNT
};

#define PLAN_BIT(method) (1U << (method)) /* sets of methods */

/* Those that every lane executes; the others need something of provider or session. */
#define PLAN_CAN_ALWAYS                                                                            \
	(PLAN_BIT(PLAN_MESSAGE) | PLAN_BIT(PLAN_GENERAL) | PLAN_BIT(PLAN_APPLIANCE) |              \
	 PLAN_BIT(PLAN_COMPLETION))

/* That which needs a fabric that promises to flush; the profile says whether the target's end does.
 */
#define PLAN_COMMITTED PLAN_BIT(PLAN_NATIVE_FLUSH)

/* Those that need writes with immediate data. */
#define PLAN_IMMEDIATE (PLAN_BIT(PLAN_WRITE_IMM) | PLAN_BIT(PLAN_WRITE_IMM_READ))

/* Those that need a receive ring, and are all that goes with one. */
#define PLAN_DEPOSITS (PLAN_BIT(PLAN_DEPOSIT) | PLAN_BIT(PLAN_DEPOSIT_COMPLETION))

enum plan_shape {
	PLAN_SINGLETON, /* one range or several without order */
	PLAN_COMPOUND,  /* a durable before b */
	PLAN_ATOMIC8,   /* 8 bytes, all or nothing */
};

/* What the session negotiated. */
struct plan_limits {
	size_t inline_max;  /* largest payload of one message */
	size_t message_max; /* up to here a message is cheaper than write + flush */
	size_t single_max;  /* ... and than a write that needs nothing behind it */
	size_t stream_min;  /* from here on a flush behind such a write costs nothing; 0: never */
	bool rma;           /* RMA may be used on this pool at all */
	unsigned can;       /* methods that provider and session can execute */
	unsigned force;     /* 0, or the one method to use for all that it can carry */
	bool ring;          /* the lanes carry DEPOSITs and nothing else */
};

struct plan {
	enum plan_method method;
	const char *reason; /* static text */
	bool waits;         /* PLAN_COMPOUND: b may begin only when a is known to be durable */
};

/* The method for size payload bytes of that shape. */
struct plan plan_choose(const struct profile *p, enum plan_shape shape, size_t size,
			const struct plan_limits *lim);

/* Whether a session can execute a method, correct or not. */
bool plan_can(const struct plan_limits *lim, enum plan_method m);

struct plan_verdict {
	bool allowed;
	const char *reason;             /* static text: why, or why not */
	enum profile_field fact;        /* what a refusal rests on; PROFILE_F_COUNT: on no fact */
	const struct taxonomy_row *row; /* the row that decides; NULL where none does */
};

/* Whether a method is correct at all for the profile and shape (ignoring sizes). */
struct plan_verdict plan_judge(const struct profile *p, enum plan_method m, enum plan_shape shape);

/* The same in short; *reason says why or why not. */
bool plan_allowed(const struct profile *p, enum plan_method m, enum plan_shape shape,
		  const char **reason);

/*
 * Whether a method may be asked for by name: REPL_E_REFUSED, with the fact that
 * speaks against it, the fact's source and the next step in e, if it is not
 * correct for the target or (lim given) the session can't execute it.
 */
int plan_check_method(const struct profile *p, enum plan_method m, const struct plan_limits *lim,
		      struct err *e);

const char *plan_method_name(enum plan_method m); /* "general-purpose"; "unknown" */
int plan_method_by_name(const char *name);        /* -1 if unknown */

/* ---- a method, step by step ---- */

#define PLAN_STEPS_MAX (TAXONOMY_STEPS_MAX + 1) /* an atomic write takes one more */
#define PLAN_NOTES_MAX 4

struct plan_sizes {
	size_t a, b; /* bytes; b only of a compound update */
};

struct plan_steps {
	const struct taxonomy_row *row; /* the paper's, after the rules */
	/* What runs up to STEP_END; STEP_FLUSH is an RMA read. */
	enum taxonomy_step steps[PLAN_STEPS_MAX + 1];
	enum plan_method method;           /* what carries it on a lane */
	unsigned note_count;               /* rules that made a difference */
	const char *notes[PLAN_NOTES_MAX]; /* static texts */
};

/*
 * What makes the update durable on that target if it begins with op, on the
 * fabrics of today. Where op can't be right there, a send takes its place and
 * a note says so.
 */
void plan_steps(const struct profile *p, enum taxonomy_op op, enum taxonomy_update update,
		const struct plan_sizes *sizes, struct plan_steps *out);

/* The word for a step as it runs today: that of taxonomy_step_word(), "read" for a flush. */
const char *plan_step_word(enum taxonomy_step step);
const char *plan_step_text(enum taxonomy_step step); /* a few words of meaning */

#endif
