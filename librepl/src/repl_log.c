/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent logs: the public calls around logcore that make and open one and append.
 *
 * Appends of several threads are grouped. One at a time leads (logturn): it makes
 * durable all that has been placed, by its own lane, while the others place theirs
 * and wait. So records become durable in their order, one group at a time, and a
 * group of many costs what one record does.
 *
 * Lock order: trim_lock, then lock. Neither is held across a call that waits
 * for a target, but for trim_lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "entry.h"
#include "forks.h"
#include "logcore.h"
#include "ownwait.h"
#include "pending.h"
#include "repl_lanes.h"
#include "repl_log_impl.h"

/* ---- making and opening ---- */

static struct repl_log *
log_new(struct repl *r, size_t off)
{
	struct repl_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->r = r;
	log->forks = r->forks;
	log->off = off;
	log->area = r->mem + off;
	(void)pthread_mutex_init(&log->trim_lock, NULL);
	(void)pthread_mutex_init(&log->lock, NULL);
	logturn_init(&log->turn, &r->abandoned);
	return log;
}

/* Under wake_lock: another one of the handle's that lies over these bytes. */
static const struct repl_log *
log_other(const struct repl_log *log, size_t size)
{
	const struct repl_log *other;

	for (other = log->r->logs; other; other = other->next)
		if (other != log && log->off < other->off + other->size &&
		    other->off < log->off + size)
			break;
	return other;
}

/*
 * It is one of the handle's from here on, with so many bytes; more may be joined later. Two that
 * lie over each other would overwrite what the other one has acknowledged: what the area holds is
 * looked at when it is joined, for until then it may change.
 */
static int
log_join(struct repl_log *log, size_t size, struct err *e)
{
	struct repl *r = log->r;
	const struct repl_log *other;

	pthread_mutex_lock(&r->wake_lock);
	other = log_other(log, size);
	if (other) {
		(void)err_set(e, REPL_E_BUSY,
			      "the log at %zu is open: close it with repl_log_close() before one "
			      "at %zu is opened or made",
			      other->off, log->off);
	} else {
		if (!log->size) {
			log->next = r->logs;
			r->logs = log;
		}
		log->size = size;
	}
	pthread_mutex_unlock(&r->wake_lock);
	return other ? e->code : 0;
}

static void
log_quit(struct repl_log *log)
{
	struct repl_log **at;

	pthread_mutex_lock(&log->r->wake_lock);
	for (at = &log->r->logs; *at != log; at = &(*at)->next)
		;
	*at = log->next;
	pthread_mutex_unlock(&log->r->wake_lock);
}

/* No lock: nobody else is in the handle any more. */
void
repl_logs_detach(struct repl *r)
{
	for (struct repl_log *log = r->logs; log; log = log->next)
		log->r = NULL;
	r->logs = NULL;
}

bool
log_is_parents(const struct repl_log *log)
{
	return log->forks != forks_count();
}

void
repl_log_close(struct repl_log *log)
{
	ENTRY_WHOLE();
	bool abandoned = log && log->r && log->r->abandoned;

	/* A child's copy is given up with the handle. */
	if (!log || (log->r && log_is_parents(log) && !abandoned))
		return;
	/* Of an abandoned handle nobody looks at its logs any more. */
	if (log->r && log->size && !abandoned)
		log_quit(log);
	(void)pthread_mutex_destroy(&log->lock);
	(void)pthread_mutex_destroy(&log->trim_lock);
	free(log);
}

bool
log_lock(struct repl_log *log)
{
	return log->r ? ownwait_lock(&log->lock, &log->r->abandoned)
		      : pthread_mutex_lock(&log->lock) == 0;
}

int
log_context(int rc, const char *what, size_t off)
{
	struct err e;

	err_clear(&e);
	(void)err_set(&e, rc, "%s the log at %zu: %s", what, off, repl_errormsg());
	return config_report(&e);
}

/* What the area holds; how large it is is said in its first page. */
static int
log_load(struct repl_log *log, struct err *e)
{
	uint64_t room = log->r->size - log->off;
	int rc = logfmt_place_check(log->off, room, e);

	if (!rc)
		rc = log_join(log, LOGFMT_PAGE, e);
	if (!rc)
		rc = logcore_open(&log->core, log->area, log->off, room, e);
	return rc ? rc : log_join(log, log->core.h.area_size, e);
}

int
repl_log_open(struct repl *r, size_t off, struct repl_log **out)
{
	ENTRY_WHOLE();
	struct repl_log *log;
	struct err e;
	int rc;

	if (!r || !out)
		return config_report_set(REPL_E_INVAL, "no handle or no place for the log");
	*out = NULL;
	err_clear(&e);
	if (handle_check(r, &e))
		return config_report(&e);
	if (off >= r->size) {
		(void)err_set(&e, REPL_E_INVAL, "a log at %zu is outside the pool of %zu bytes",
			      off, atomic_load(&r->size));
		return config_report(&e);
	}
	log = log_new(r, off);
	if (!log)
		return config_report_set(REPL_E_NOMEM, "out of memory");
	rc = log_load(log, &e);
	if (rc) {
		repl_log_close(log);
		return config_report(&e);
	}
	rc = log_trims_finish(log, 0);
	if (!rc)
		rc = log_resend(log);
	if (!rc) {
		rc = log_header_update(log, 0, &log->core.h);
		if (rc)
			atomic_store(&r->log_failed, true);
	}
	if (rc) {
		rc = log_context(rc, "opening", off);
		repl_log_close(log);
		return rc;
	}
	log->fixed = log->core.h;
	*out = log;
	return 0;
}

/* Whether a log may be made where something is already. */
static int
create_check(const struct repl_log *log, struct err *e)
{
	struct logfmt_header h;
	unsigned other;
	int rc = logfmt_header_read(log->area, log->off, log->r->size - log->off, &h, &other, NULL);

	if (rc == REPL_E_NOT_FOUND)
		return 0;
	return err_set(e, REPL_E_EXISTS,
		       "there is a%s log at %zu: open it, or zero its first 8192 bytes",
		       rc ? " damaged or newer" : "", log->off);
}

struct header_first {
	uint8_t *area;
	uint64_t size, salt;
	enum repl_log_kind kind;
};

static void
header_first_store(void *arg)
{
	const struct header_first *first = arg;

	logcore_format(first->area, first->size, first->kind, first->salt);
}

/* The header behind what it is to be believed with. */
static int
log_format(struct repl_log *log, uint64_t size, enum repl_log_kind kind, uint64_t salt)
{
	const struct logfmt_span formatted = {.len = {LOGFMT_RING_OFF}};
	struct header_first first = {.area = log->area, .size = size, .salt = salt, .kind = kind};
	struct log_step s = {
		.kind = LOG_STEP_BEHIND,
		.span = {.off = {LOGFMT_PAGE}, .len = {LOGFMT_RING_OFF - LOGFMT_PAGE}},
		.behind = {.len = LOGFMT_PAGE},
		.store = header_first_store,
		.arg = &first,
	};
	unsigned turn;
	struct err e;
	int rc;

	err_clear(&e);
	if (log_store(log, &formatted, &turn, &e))
		return config_report(&e);
	logcore_clear(log->area);
	rc = log_step_run(log, 0, &s);
	if (!rc)
		pending_stored(log->r, turn);
	return rc;
}

int
repl_log_create(struct repl *r, size_t off, size_t size, enum repl_log_kind kind,
		struct repl_log **out)
{
	ENTRY_WHOLE();
	struct repl_log *log;
	uint64_t salt = 0;
	struct err e;
	int rc;

	if (!r || !out)
		return config_report_set(REPL_E_INVAL, "no handle or no place for the log");
	*out = NULL;
	err_clear(&e);
	rc = handle_check(r, &e);
	if (!rc && !logfmt_kind_name(kind))
		rc = err_set(&e, REPL_E_INVAL, "%d is no kind of log", (int)kind);
	if (!rc)
		rc = logfmt_area_check(r->size, off, size, &e);
	if (rc)
		return config_report(&e);
	if (getrandom(&salt, sizeof(salt), 0) != (ssize_t)sizeof(salt)) {
		(void)err_errno(&e, REPL_E_FAILED, errno, "getrandom");
		return config_report(&e);
	}
	log = log_new(r, off);
	if (!log)
		return config_report_set(REPL_E_NOMEM, "out of memory");
	if (log_join(log, size, &e) || create_check(log, &e)) {
		repl_log_close(log);
		return config_report(&e);
	}
	rc = log_trims_finish(log, 0);
	if (!rc)
		rc = log_format(log, size, kind, salt ? salt : 1);
	if (rc) {
		atomic_store(&r->log_failed, true);
		rc = log_context(rc, "making", off);
	}
	repl_log_close(log);
	return rc ? rc : repl_log_open(r, off, out);
}

/* ---- appending ---- */

int
log_failed(const struct repl_log *log, struct err *e)
{
	if (!log->failed)
		return 0;
	return err_set(e, log->failed, "the log at %zu takes no more: %s", log->off, log->why);
}

void
log_fail(struct repl_log *log, int rc, const char *what, uint64_t position)
{
	if (log->failed)
		return;
	atomic_store(&log->r->log_failed, true);
	log->failed = rc;
	(void)snprintf(log->why, sizeof(log->why),
		       "%s at %" PRIu64 " failed (%.160s); open it again", what, position,
		       repl_errormsg());
}

static const struct logfmt_span log_tails = {.off = {LOGFMT_TAIL_OFF}, .len = {LOGFMT_TAIL_SIZE}};

struct group_tail {
	struct logcore *core;
	const struct logcore_group *g;
};

static void
group_tail_store(void *arg)
{
	const struct group_tail *tail = arg;

	logcore_group_tail(tail->core, tail->g);
}

static int
group_persist(struct repl_log *log, unsigned lane, const struct logcore_group *g)
{
	struct group_tail tail = {.core = &log->core, .g = g};
	struct log_step s = {.kind = LOG_STEP_PERSIST, .span = g->span};
	unsigned turn;
	struct err e;
	int rc;

	err_clear(&e);
	if (g->tail_off == 0)
		return log_step_run(log, lane, &s);
	s.kind = LOG_STEP_BEHIND;
	s.behind = (struct range){.off = g->tail_off, .len = 8};
	s.store = group_tail_store;
	s.arg = &tail;
	if (log_store(log, &log_tails, &turn, &e))
		return config_report(&e);
	rc = log_step_run(log, lane, &s);
	if (!rc)
		pending_stored(log->r, turn);
	return rc;
}

/* Under the lock, which is let go: all that is placed becomes durable. */
static int
log_lead(struct repl_log *log, unsigned lane, struct err *e)
{
	struct logcore_group g;
	int rc = log_failed(log, e);

	if (!rc) {
		logcore_group_begin(&log->core, &g);
		(void)pthread_mutex_unlock(&log->lock);
		if (g.settle)
			rc = log_trims_finish(log, lane);
		if (!rc)
			rc = group_persist(log, lane, &g);
		if (!log_lock(log))
			return rc ? handle_abandoned(e) : 0;
		if (rc) {
			log_fail(log, rc, "an append", g.from);
			rc = log_failed(log, e);
		} else {
			logcore_group_end(&log->core, &g);
		}
	}
	logturn_end(&log->turn, &log->lock, log->core.durable, log->failed != 0);
	return rc;
}

/* Under the lock, which is let go: until all before end is durable, or never will be. */
static int
log_await(struct repl_log *log, unsigned lane, uint64_t end, struct err *e)
{
	enum logturn_role role = logturn_await(&log->turn, &log->lock, end);
	int rc = 0;

	if (role == LOGTURN_LEAD)
		return log_lead(log, lane, e);
	if (role == LOGTURN_FAILED) {
		if (!log_lock(log))
			return handle_abandoned(e);
		rc = log_failed(log, e);
		(void)pthread_mutex_unlock(&log->lock);
	}
	return rc;
}

static int
record_check(const struct repl_log *log, const void *data, size_t len, struct err *e)
{
	uint64_t capacity = logfmt_capacity(log->fixed.area_size);

	if (!data)
		return err_set(e, REPL_E_INVAL, "no data for a record of %zu bytes: it is NULL",
			       len);
	if (len == 0 || len > REPL_LOG_RECORD_MAX)
		return err_set(e, REPL_E_INVAL, "a record of %zu bytes: 1 to %u will do", len,
			       REPL_LOG_RECORD_MAX);
	if (logfmt_record_size(len) > capacity)
		return err_set(e, REPL_E_INVAL,
			       "a record of %zu bytes does not fit a log for %" PRIu64, len,
			       capacity);
	return 0;
}

/* All records are placed in a row, or none. */
static int
records_append(struct repl_log *log, unsigned lane, const struct iovec *iov, const uint64_t *sums,
	       size_t count, uint64_t *position, struct err *e)
{
	uint64_t size = 0, first;
	struct logfmt_span span;
	unsigned turn;
	int rc;

	for (size_t i = 0; i < count; i++)
		size += logfmt_record_size(iov[i].iov_len);
	if (!log_lock(log))
		return handle_abandoned(e);
	first = log->core.next;
	span = logfmt_span(&log->core.h, first, size);
	rc = log_failed(log, e);
	if (!rc)
		rc = logcore_room(&log->core, size, e);
	if (!rc)
		rc = log_store(log, &span, &turn, e);
	if (!rc) {
		for (size_t i = 0; i < count; i++)
			(void)logcore_place(&log->core, iov[i].iov_base, iov[i].iov_len, sums[i]);
		if (position)
			*position = first;
		rc = log_await(log, lane, first + size, e);
		if (!rc)
			pending_stored(log->r, turn);
		return rc;
	}
	(void)pthread_mutex_unlock(&log->lock);
	return rc;
}

int
log_lane_check(const struct repl_log *log, unsigned lane, struct err *e)
{
	if (!log)
		return err_set(e, REPL_E_INVAL, "no log: it is NULL");
	if (!log->r)
		return err_set(e, REPL_E_INVAL, "the handle of the log at %zu is closed", log->off);
	if (handle_check(log->r, e))
		return e->code;
	if (lane >= log->r->lane_count)
		return err_set(e, REPL_E_INVAL, "lane %u of %u", lane, log->r->lane_count);
	return 0;
}

int
repl_log_append(struct repl_log *log, unsigned lane, const void *data, size_t len,
		uint64_t *position)
{
	ENTRY_WHOLE();
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	uint64_t sum;
	struct err e;
	int rc;

	err_clear(&e);
	rc = log_lane_check(log, lane, &e);
	if (!rc)
		rc = record_check(log, data, len, &e);
	if (rc)
		return config_report(&e);
	sum = logfmt_data_sum(&log->fixed, data, len);
	rc = records_append(log, lane, &iov, &sum, 1, position, &e);
	return rc ? config_report(&e) : 0;
}

int
repl_log_append_batch(struct repl_log *log, unsigned lane, const struct iovec *iov, size_t count,
		      uint64_t *first)
{
	ENTRY_WHOLE();
	uint64_t sums[REPL_LOG_BATCH_MAX];
	struct err e;
	int rc;

	err_clear(&e);
	rc = log_lane_check(log, lane, &e);
	if (!rc && (!iov || count == 0 || count > REPL_LOG_BATCH_MAX))
		rc = err_set(&e, REPL_E_INVAL, "a batch of %zu records: 1 to %u will do", count,
			     REPL_LOG_BATCH_MAX);
	for (size_t i = 0; i < count && !rc; i++)
		rc = record_check(log, iov[i].iov_base, iov[i].iov_len, &e);
	if (rc)
		return config_report(&e);
	for (size_t i = 0; i < count; i++)
		sums[i] = logfmt_data_sum(&log->fixed, iov[i].iov_base, iov[i].iov_len);
	rc = records_append(log, lane, iov, sums, count, first, &e);
	return rc ? config_report(&e) : 0;
}
