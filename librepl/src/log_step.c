/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a log makes durable, by one call of the handle's each.
 */
#include <unistd.h>

#include "clock.h"
#include "pending.h"
#include "repl_lanes.h"
#include "repl_log_impl.h"

#define LOG_BUSY_NAP_US  50U
#define LOG_RESEND_PIECE (16UL << 20)

static int
step_flush(struct repl_log *log, unsigned lane, const struct logfmt_span *span)
{
	int rc = repl_flush(log->r, lane, log->off + span->off[0], span->len[0]);

	if (!rc && span->len[1])
		rc = repl_flush(log->r, lane, log->off + span->off[1], span->len[1]);
	return rc;
}

static int
step_behind(struct repl_log *log, unsigned lane, const struct log_step *s)
{
	const struct repl_behind behind = {
		.a = {{.off = log->off + s->span.off[0], .len = s->span.len[0]},
		      {.off = log->off + s->span.off[1], .len = s->span.len[1]}},
		.b = {.off = log->off + s->behind.off, .len = s->behind.len},
		.store = s->store,
		.arg = s->arg,
	};

	return repl_persist_behind(log->r, lane, &behind);
}

static int
step_once(struct repl_log *log, unsigned lane, const struct log_step *s)
{
	const struct logfmt_span *span = &s->span;
	int rc;

	switch (s->kind) {
	case LOG_STEP_PERSIST:
		if (!span->len[1])
			return repl_persist(log->r, lane, log->off + span->off[0], span->len[0]);
		rc = step_flush(log, lane, span);
		return rc ? rc : repl_drain(log->r, lane);
	case LOG_STEP_BEHIND:
		return step_behind(log, lane, s);
	case LOG_STEP_TRIM:
		break;
	}
	return repl_trim(log->r, lane, span->len[0] ? log->off + span->off[0] : 0, span->len[0]);
}

int
log_step_run(struct repl_log *log, unsigned lane, const struct log_step *s)
{
	struct calltime t = call_begin(log->r, clock_now_ns());
	struct err e;
	int rc;

	while ((rc = step_once(log, lane, s)) == REPL_E_BUSY &&
	       clock_now_ns() < call_end(log->r, &t))
		(void)usleep(LOG_BUSY_NAP_US);
	/* In a child that returns to its parent's call what of it is not begun is refused. */
	if (rc && log->r->abandoned) {
		err_clear(&e);
		(void)handle_abandoned(&e);
		rc = config_report(&e);
	}
	return rc;
}

int
log_trims_finish(struct repl_log *log, unsigned lane)
{
	static const struct log_step settle = {.kind = LOG_STEP_TRIM};

	return log_step_run(log, lane, &settle);
}

static int
log_persist(struct repl_log *log, uint64_t off, uint64_t len)
{
	struct log_step s = {.kind = LOG_STEP_PERSIST, .span = {.off = {off, 0}, .len = {len, 0}}};

	return log_step_run(log, 0, &s);
}

int
log_resend(struct repl_log *log)
{
	uint64_t size = log->core.h.area_size;
	int rc = 0;

	if (!atomic_load(&log->r->log_failed))
		return 0;
	for (uint64_t at = LOGFMT_RING_OFF; !rc && at < size; at += LOG_RESEND_PIECE)
		rc = log_persist(log, at,
				 size - at < LOG_RESEND_PIECE ? size - at : LOG_RESEND_PIECE);
	return rc ? rc : log_persist(log, LOGFMT_TAIL_OFF, LOGFMT_TAIL_SIZE);
}

int
log_trim_pages(struct repl_log *log, unsigned lane, const struct logfmt_span *span)
{
	int rc = 0;

	for (unsigned i = 0; i < 2 && !rc; i++) {
		struct log_step s = {.kind = LOG_STEP_TRIM};

		s.span.off[0] = span->off[i];
		s.span.len[0] = span->len[i];
		if (span->len[i])
			rc = log_step_run(log, lane, &s);
	}
	return rc;
}

int
log_store(struct repl_log *log, const struct logfmt_span *span, unsigned *turn, struct err *e)
{
	const struct range in_pool[2] = {{.off = log->off + span->off[0], .len = span->len[0]},
					 {.off = log->off + span->off[1], .len = span->len[1]}};
	int rc = pending_store(log->r, in_pool, 2, turn, e);

	/* The parent has gone on since it was called. */
	return log->r->abandoned ? handle_abandoned(e) : rc;
}

static const struct logfmt_span log_headers = {.len = {LOGFMT_TAIL_OFF}};

struct header_second {
	struct logcore *core;
	const struct logfmt_header *h;
};

static void
header_second_store(void *arg)
{
	const struct header_second *second = arg;

	logcore_header_second(second->core, second->h);
}

int
log_header_update(struct repl_log *log, unsigned lane, struct logfmt_header *h)
{
	struct header_second second = {.core = &log->core, .h = h};
	struct log_step s = {
		.kind = LOG_STEP_BEHIND,
		.store = header_second_store,
		.arg = &second,
	};
	struct logfmt_span both;
	unsigned turn;
	struct err e;
	int rc;

	err_clear(&e);
	if (log_store(log, &log_headers, &turn, &e))
		return config_report(&e);
	both = logcore_header_first(&log->core, h);
	s.span = (struct logfmt_span){.off = {both.off[0], 0}, .len = {both.len[0], 0}};
	s.behind = (struct range){.off = both.off[1], .len = both.len[1]};
	rc = log_step_run(log, lane, &s);
	if (!rc)
		pending_stored(log->r, turn);
	return rc;
}
