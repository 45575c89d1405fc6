/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside a persistent log: what one is, with the calls that make and open it and append
 * (repl_log.c), reading and trimming (repl_log_trim.c), and what becomes durable by one call of the
 * handle's (log_step.c).
 */
#ifndef LIBREPL_REPL_LOG_IMPL_H
#define LIBREPL_REPL_LOG_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "logcore.h"
#include "logfmt.h"
#include "logturn.h"
#include "repl_impl.h"

struct repl_log {
	struct repl *r;        /* NULL: closed before the log was */
	unsigned forks;        /* as the handle's */
	struct repl_log *next; /* of the handle's */
	size_t off;            /* of the area in the pool */
	size_t size;           /* ... or 0: not one of the handle's yet */
	uint8_t *area;
	struct logfmt_header fixed; /* for what never changes of it */
	pthread_mutex_t trim_lock;  /* one trim at a time; guards the header's bytes */
	pthread_mutex_t lock;       /* guards what follows */
	struct logturn turn;
	struct logcore core;
	int failed; /* 0 or why the log takes nothing more */
	char why[256];
};

enum log_step_kind { LOG_STEP_PERSIST, LOG_STEP_BEHIND, LOG_STEP_TRIM };

/* One call that makes something durable; offsets in the area. */
struct log_step {
	enum log_step_kind kind;
	struct logfmt_span span;
	struct range behind; /* of LOG_STEP_BEHIND: see struct repl_behind */
	void (*store)(void *arg);
	void *arg;
};

/* A lane that another call is in for a moment is waited for: each step may be repeated. */
int log_step_run(struct repl_log *log, unsigned lane, const struct log_step *s);

/*
 * Trims that a log on this handle has begun are finished: where one is pending
 * nothing may be written.
 */
int log_trims_finish(struct repl_log *log, unsigned lane);

/* What a log that failed has left here: its records, then its tail. */
int log_resend(struct repl_log *log);

/* These parts of the area, which are zero here, become it on the replicas. */
int log_trim_pages(struct repl_log *log, unsigned lane, const struct logfmt_span *span);

/*
 * Before anything is stored in these parts of the area; the turn is pending_stored()'s. An error:
 * nothing is to be.
 */
int log_store(struct repl_log *log, const struct logfmt_span *span, unsigned *turn, struct err *e);

/* Both copies, one after the other. */
int log_header_update(struct repl_log *log, unsigned lane, struct logfmt_header *h);

/* In a child of the process whose it is: a lock may be held for ever. */
bool log_is_parents(const struct repl_log *log);

/* log.lock; false in a child that returns to its parent's call: see ownwait.h. */
bool log_lock(struct repl_log *log);

int log_lane_check(const struct repl_log *log, unsigned lane, struct err *e);

/* The calls below have the thread's text set already; this says what they were for. */
int log_context(int rc, const char *what, size_t off);

/* Under the lock: what is said of a log that has failed. */
int log_failed(const struct repl_log *log, struct err *e);

/* Under the lock: the log takes nothing more, for what the thread's text says. */
void log_fail(struct repl_log *log, int rc, const char *what, uint64_t position);

#endif
