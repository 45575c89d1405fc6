/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent logs: the public calls around logcore.
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
#include <unistd.h>

#include "clock.h"
#include "entry.h"
#include "forks.h"
#include "le.h"
#include "logcore.h"
#include "logscan.h"
#include "logturn.h"
#include "pending.h"
#include "repl_impl.h"
#include "repl_lanes.h"

#define LOG_BUSY_NAP_US  50U
#define LOG_RESEND_PIECE (16UL << 20)

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

/* ---- on the wire ---- */

enum step_kind { STEP_PERSIST, STEP_BEHIND, STEP_TRIM };

/* One call that makes something durable; offsets in the area. */
struct step {
	enum step_kind kind;
	struct logfmt_span span;
	struct range behind; /* of STEP_BEHIND: what is stored meanwhile, see struct repl_behind */
	void (*store)(void *arg);
	void *arg;
};

static int
step_flush(struct repl_log *log, unsigned lane, const struct logfmt_span *span)
{
	int rc = repl_flush(log->r, lane, log->off + span->off[0], span->len[0]);

	if (!rc && span->len[1])
		rc = repl_flush(log->r, lane, log->off + span->off[1], span->len[1]);
	return rc;
}

static int
step_behind(struct repl_log *log, unsigned lane, const struct step *s)
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
step_once(struct repl_log *log, unsigned lane, const struct step *s)
{
	const struct logfmt_span *span = &s->span;
	int rc;

	switch (s->kind) {
	case STEP_PERSIST:
		if (!span->len[1])
			return repl_persist(log->r, lane, log->off + span->off[0], span->len[0]);
		rc = step_flush(log, lane, span);
		return rc ? rc : repl_drain(log->r, lane);
	case STEP_BEHIND:
		return step_behind(log, lane, s);
	case STEP_TRIM:
		break;
	}
	return repl_trim(log->r, lane, span->len[0] ? log->off + span->off[0] : 0, span->len[0]);
}

/* A lane that another call is in for a moment is waited for: each step may be repeated. */
static int
step_run(struct repl_log *log, unsigned lane, const struct step *s)
{
	uint64_t deadline_ns = clock_deadline(log->r->cfg->op_timeout_ms);
	int rc;

	while ((rc = step_once(log, lane, s)) == REPL_E_BUSY && clock_now_ns() < deadline_ns)
		(void)usleep(LOG_BUSY_NAP_US);
	return rc;
}

/*
 * Trims that a log on this handle has begun are finished: where one is pending
 * nothing may be written.
 */
static int
log_settle(struct repl_log *log, unsigned lane)
{
	static const struct step settle = {.kind = STEP_TRIM};

	return step_run(log, lane, &settle);
}

static int
log_persist(struct repl_log *log, uint64_t off, uint64_t len)
{
	struct step s = {.kind = STEP_PERSIST, .span = {.off = {off, 0}, .len = {len, 0}}};

	return step_run(log, 0, &s);
}

/* What a log that failed has left here: its records, then its tail. */
static int
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

static int
trim_pages(struct repl_log *log, unsigned lane, const struct logfmt_span *span)
{
	int rc = 0;

	for (unsigned i = 0; i < 2 && !rc; i++) {
		struct step s = {.kind = STEP_TRIM};

		s.span.off[0] = span->off[i];
		s.span.len[0] = span->len[i];
		if (span->len[i])
			rc = step_run(log, lane, &s);
	}
	return rc;
}

/* Before anything is stored in these parts of the area. */
static unsigned
log_store(struct repl_log *log, const struct logfmt_span *span)
{
	const struct range in_pool[2] = {{.off = log->off + span->off[0], .len = span->len[0]},
					 {.off = log->off + span->off[1], .len = span->len[1]}};

	return pending_store(log->r, in_pool, 2);
}

static const struct logfmt_span log_headers = {.len = {LOGFMT_TAIL_OFF}};
static const struct logfmt_span log_tails = {.off = {LOGFMT_TAIL_OFF}, .len = {LOGFMT_TAIL_SIZE}};

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

/* Both copies, one after the other. */
static int
header_update(struct repl_log *log, unsigned lane, struct logfmt_header *h)
{
	unsigned turn = log_store(log, &log_headers);
	struct logfmt_span both = logcore_header_first(&log->core, h);
	struct header_second second = {.core = &log->core, .h = h};
	struct step s = {
		.kind = STEP_BEHIND,
		.span = {.off = {both.off[0], 0}, .len = {both.len[0], 0}},
		.behind = {.off = both.off[1], .len = both.len[1]},
		.store = header_second_store,
		.arg = &second,
	};
	int rc = step_run(log, lane, &s);

	if (!rc)
		pending_stored(log->r, turn);
	return rc;
}

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
	logturn_init(&log->turn);
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

/* No lock: nobody else is in the handle any more, or not in this process. */
void
repl_logs_detach(struct repl *r)
{
	for (struct repl_log *log = r->logs; log; log = log->next)
		log->r = NULL;
	r->logs = NULL;
}

/* In a child of the process whose it is: a lock may be held for ever. */
static bool
log_is_parents(const struct repl_log *log)
{
	return log->forks != forks_count();
}

void
repl_log_close(struct repl_log *log)
{
	ENTRY_WHOLE();
	/* A child's copy is given up with the handle. */
	if (!log || (log->r && log_is_parents(log)))
		return;
	if (log->r && log->size)
		log_quit(log);
	(void)pthread_mutex_destroy(&log->lock);
	(void)pthread_mutex_destroy(&log->trim_lock);
	free(log);
}

/* The calls below have the thread's text set already; this says what they were for. */
static int
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
	rc = log_settle(log, 0);
	if (!rc)
		rc = log_resend(log);
	if (!rc) {
		rc = header_update(log, 0, &log->core.h);
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

/* Whether a log may be made where something is already; the second header of one
 * whose creation was cut is still zero. */
static int
create_check(const struct repl_log *log, struct err *e)
{
	struct logfmt_header h;
	unsigned other;
	int rc = logfmt_header_read(log->area, log->off, log->r->size - log->off, &h, &other, NULL);

	if (rc == REPL_E_NOT_FOUND)
		return 0;
	if (rc == REPL_E_CORRUPT && get_le64(log->area + logfmt_copy_off(1)) == 0)
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
	unsigned turn = log_store(log, &(struct logfmt_span){.len = {LOGFMT_RING_OFF}});
	struct header_first first = {.area = log->area, .size = size, .salt = salt, .kind = kind};
	struct step s = {
		.kind = STEP_BEHIND,
		.span = {.off = {LOGFMT_PAGE}, .len = {LOGFMT_RING_OFF - LOGFMT_PAGE}},
		.behind = {.len = LOGFMT_PAGE},
		.store = header_first_store,
		.arg = &first,
	};
	int rc;

	logcore_clear(log->area);
	rc = step_run(log, 0, &s);
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
	rc = log_settle(log, 0);
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

/* Under the lock: what is said of a log that has failed. */
static int
log_failed(const struct repl_log *log, struct err *e)
{
	if (!log->failed)
		return 0;
	return err_set(e, log->failed, "the log at %zu takes no more: %s", log->off, log->why);
}

/* Under the lock. */
static void
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
	struct step s = {.kind = STEP_PERSIST, .span = g->span};
	unsigned turn;
	int rc;

	if (g->tail_off == 0)
		return step_run(log, lane, &s);
	s.kind = STEP_BEHIND;
	s.behind = (struct range){.off = g->tail_off, .len = 8};
	s.store = group_tail_store;
	s.arg = &tail;
	turn = log_store(log, &log_tails);
	rc = step_run(log, lane, &s);
	if (!rc)
		pending_stored(log->r, turn);
	return rc;
}

/* Under the lock, which is let go meanwhile: all that is placed becomes durable. */
static int
log_group(struct repl_log *log, unsigned lane)
{
	struct logcore_group g;
	int rc = 0;

	logcore_group_begin(&log->core, &g);
	(void)pthread_mutex_unlock(&log->lock);
	if (g.settle)
		rc = log_settle(log, lane);
	if (!rc)
		rc = group_persist(log, lane, &g);
	(void)pthread_mutex_lock(&log->lock);
	if (rc)
		log_fail(log, rc, "an append", g.from);
	else
		logcore_group_end(&log->core, &g);
	return rc;
}

/* Under the lock, which is let go: until all before end is durable, or never will be. */
static int
log_await(struct repl_log *log, unsigned lane, uint64_t end, struct err *e)
{
	enum logturn_role role = logturn_await(&log->turn, &log->lock, end);
	int rc = 0;

	if (role == LOGTURN_LEAD) {
		rc = log_failed(log, e);
		if (!rc && log_group(log, lane))
			rc = log_failed(log, e);
		logturn_end(&log->turn, &log->lock, log->core.durable, log->failed != 0);
	} else if (role == LOGTURN_FAILED) {
		(void)pthread_mutex_lock(&log->lock);
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
	uint64_t size = 0;
	int rc;

	for (size_t i = 0; i < count; i++)
		size += logfmt_record_size(iov[i].iov_len);
	(void)pthread_mutex_lock(&log->lock);
	rc = log_failed(log, e);
	if (!rc)
		rc = logcore_room(&log->core, size, e);
	if (!rc) {
		uint64_t first = log->core.next;
		struct logfmt_span span = logfmt_span(&log->core.h, first, size);
		unsigned turn = log_store(log, &span);

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

static int
lane_check(const struct repl_log *log, unsigned lane, struct err *e)
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
	rc = lane_check(log, lane, &e);
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
	rc = lane_check(log, lane, &e);
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

/* ---- reading ---- */

struct log_bounds {
	struct logfmt_header h;
	uint64_t durable;
};

static struct log_bounds
log_bounds(struct repl_log *log)
{
	struct log_bounds b;

	(void)pthread_mutex_lock(&log->lock);
	b = (struct log_bounds){.h = log->core.h, .durable = log->core.durable};
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
	*next = position + logfmt_record_size(rec.len);
	if (rec.len <= size)
		return 0;
	(void)err_set(&e, REPL_E_LIMIT, "the record has %" PRIu32 " bytes, there is room for %zu",
		      rec.len, size);
	return config_report(&e);
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
	int rc;

	if (base == from)
		return 0;
	span = logfmt_span(h, from, base - from);
	turn = log_store(log, &span);
	memset(log->area + span.off[0], 0, span.len[0]);
	memset(log->area + span.off[1], 0, span.len[1]);
	rc = trim_pages(log, lane, &span);
	if (rc)
		return rc;
	pending_stored(log->r, turn);
	(void)pthread_mutex_lock(&log->lock);
	log->core.base = base;
	(void)pthread_mutex_unlock(&log->lock);
	return 0;
}

/* Under trim_lock. */
static int
trim_to(struct repl_log *log, unsigned lane, uint64_t position)
{
	struct logfmt_header h = log_bounds(log).h;
	int rc;

	h.head = position;
	rc = header_update(log, lane, &h);
	if (!rc) {
		(void)pthread_mutex_lock(&log->lock);
		log->core.h = h;
		(void)pthread_mutex_unlock(&log->lock);
		rc = trim_space(log, lane, &h);
	}
	if (!rc)
		return 0;
	(void)pthread_mutex_lock(&log->lock);
	log_fail(log, rc, "a trim", position);
	(void)pthread_mutex_unlock(&log->lock);
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
	if (lane_check(log, lane, &e))
		return config_report(&e);
	(void)pthread_mutex_lock(&log->trim_lock);
	(void)pthread_mutex_lock(&log->lock);
	rc = log_failed(log, &e);
	(void)pthread_mutex_unlock(&log->lock);
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
