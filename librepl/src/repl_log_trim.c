/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading and trimming a persistent log.
 */
#include <inttypes.h>
#include <string.h>

#include "entry.h"
#include "ownwait.h"
#include "pending.h"
#include "repl_lanes.h"
#include "repl_log_impl.h"

struct log_bounds {
	struct logfmt_header h;
	uint64_t durable;
};

static struct log_bounds
log_bounds(struct repl_log *log)
{
	struct log_bounds b;

	bool locked = log_lock(log);

	b = (struct log_bounds){.h = log->core.h, .durable = log->core.durable};
	if (locked)
		(void)pthread_mutex_unlock(&log->lock);
	return b;
}

uint64_t
repl_log_head(struct repl_log *log)
{
	ENTRY_WHOLE();
	return log && !log_is_parents(log) ? log_bounds(log).h.head : 0;
}

uint64_t
repl_log_tail(struct repl_log *log)
{
	ENTRY_WHOLE();
	return log && !log_is_parents(log) ? log_bounds(log).durable : 0;
}

static int
position_check(const struct log_bounds *b, uint64_t position, struct err *e)
{
	if (position < b->h.head)
		return err_set(e, REPL_E_NOT_FOUND,
			       "what was at %" PRIu64 " is trimmed: the log begins at %" PRIu64,
			       position, b->h.head);
	if (position >= b->durable)
		return err_set(e, REPL_E_NOT_FOUND,
			       "there is nothing at %" PRIu64 ": the log ends at %" PRIu64,
			       position, b->durable);
	return 0;
}

/*
 * Why there is no whole record at a position of the log: none begins there, as those before it say,
 * whose data are not looked at, or it is damaged, or one before it is. A trim meanwhile makes zeros
 * of what was whole.
 */
static int
record_missing(struct repl_log *log, uint64_t position, struct err *e)
{
	bool aligned = position % LOGFMT_ALIGN == 0;
	struct log_bounds b;
	uint64_t at, n;

	do {
		b = log_bounds(log);
		if (position_check(&b, position, e))
			return e->code;
		at = b.h.head;
		while (aligned && at < position &&
		       (n = logfmt_record_claims(log->area, &b.h, at)) > 0)
			at += n;
	} while (log_bounds(log).h.head != b.h.head);
	if (!aligned || at > position)
		return err_set(e, REPL_E_INVAL, "no record begins at %" PRIu64, position);
	return err_set(e, REPL_E_CORRUPT,
		       "the record at %" PRIu64
		       " is damaged, though its append was acknowledged: get the pool from a "
		       "replica",
		       at);
}

int
repl_log_read(struct repl_log *log, uint64_t position, void *buf, size_t size, size_t *len,
	      uint64_t *next)
{
	ENTRY_WHOLE();
	struct logfmt_record rec = {0};
	struct log_bounds b;
	bool whole;
	struct err e;

	err_clear(&e);
	if (!log || !len || !next || (!buf && size))
		return config_report_set(REPL_E_INVAL,
					 "no log, or no place for the record or its length");
	if (!log->r)
		return config_report_set(REPL_E_INVAL, "the handle of the log is closed");
	if (handle_check(log->r, &e))
		return config_report(&e);
	b = log_bounds(log);
	if (position_check(&b, position, &e))
		return config_report(&e);
	whole = position % LOGFMT_ALIGN == 0 && logfmt_record_read(log->area, &b.h, position, &rec);
	if (whole && rec.len <= size)
		logfmt_copy_out(log->area, &rec.data, buf, rec.len);
	/* It may have been trimmed while it was read. */
	b = log_bounds(log);
	if (position_check(&b, position, &e))
		return config_report(&e);
	if (!whole) {
		(void)record_missing(log, position, &e);
		return config_report(&e);
	}
	*len = rec.len;
	/* Who reads on with the same variable is to get this one again, with more room. */
	if (rec.len > size) {
		(void)err_set(&e, REPL_E_LIMIT,
			      "the record has %" PRIu32 " bytes, there is room for %zu", rec.len,
			      size);
		return config_report(&e);
	}
	*next = position + logfmt_record_size(rec.len);
	return 0;
}

/* ---- trimming ---- */

static int
trim_check(struct repl_log *log, const struct log_bounds *b, uint64_t position, struct err *e)
{
	struct logfmt_record rec;

	if (position > b->durable)
		return err_set(e, REPL_E_INVAL, "a trim to %" PRIu64 ": the log ends at %" PRIu64,
			       position, b->durable);
	if (position < b->durable &&
	    (position % LOGFMT_ALIGN || !logfmt_record_read(log->area, &b->h, position, &rec)))
		return record_missing(log, position, e);
	return 0;
}

/* The space between the bases may be used again when it is zero here and will be there. */
static int
trim_space(struct repl_log *log, unsigned lane, const struct logfmt_header *h)
{
	uint64_t base = h->head - h->head % LOGFMT_PAGE;
	uint64_t from = log->core.base; /* changed by trims only */
	struct logfmt_span span;
	unsigned turn;
	struct err e;
	int rc;

	err_clear(&e);
	if (base == from)
		return 0;
	span = logfmt_span(h, from, base - from);
	if (log_store(log, &span, &turn, &e))
		return config_report(&e);
	memset(log->area + span.off[0], 0, span.len[0]);
	memset(log->area + span.off[1], 0, span.len[1]);
	rc = log_trim_pages(log, lane, &span);
	if (rc)
		return rc;
	pending_stored(log->r, turn);
	if (log_lock(log)) {
		log->core.base = base;
		(void)pthread_mutex_unlock(&log->lock);
	}
	return 0;
}

/* Under trim_lock. */
static int
trim_to(struct repl_log *log, unsigned lane, uint64_t position)
{
	struct logfmt_header h = log_bounds(log).h;
	int rc;

	h.head = position;
	rc = log_header_update(log, lane, &h);
	if (!rc && log_lock(log)) {
		log->core.h = h;
		(void)pthread_mutex_unlock(&log->lock);
	}
	if (!rc)
		rc = trim_space(log, lane, &h);
	if (!rc)
		return 0;
	if (log_lock(log)) {
		log_fail(log, rc, "a trim", position);
		(void)pthread_mutex_unlock(&log->lock);
	}
	return log_context(rc, "trimming", log->off);
}

int
repl_log_trim(struct repl_log *log, unsigned lane, uint64_t position)
{
	ENTRY_WHOLE();
	struct log_bounds b;
	struct err e;
	int rc;

	err_clear(&e);
	if (log_lane_check(log, lane, &e))
		return config_report(&e);
	if (!ownwait_lock(&log->trim_lock, &log->r->abandoned)) {
		(void)handle_abandoned(&e);
		return config_report(&e);
	}
	if (log_lock(log)) {
		rc = log_failed(log, &e);
		(void)pthread_mutex_unlock(&log->lock);
	} else {
		rc = handle_abandoned(&e);
	}
	b = log_bounds(log);
	if (!rc && position > b.h.head)
		rc = trim_check(log, &b, position, &e);
	if (rc)
		(void)config_report(&e);
	else if (position > b.h.head)
		rc = trim_to(log, lane, position);
	(void)pthread_mutex_unlock(&log->trim_lock);
	return rc;
}
