/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs of replctl bench remotelog: one written here, as plain as can be,
 * whose updates are what the methods are compared by, and the library's own.
 */
#include <string.h>

#include "clock.h"
#include "le.h"
#include "remotelog.h"
#include "remotelog_record.h"

#define AREA     (REMOTELOG_POOL_SIZE / REMOTELOG_TAILS) /* of the log of each kind of tail */
#define PAGE     4096U
#define LINE     64U
#define WORD     8U
#define CHECK_MS 5000U

/* As docs/LOG-FORMAT.md has it. */
#define LOG_HEAD    12288U /* before the records */
#define LOG_HEADER  24U    /* of a record */
#define LOG_TRIM_AT (AREA / 2)

/* ---- the library's log ---- */

static const enum repl_log_kind log_kinds[REMOTELOG_LOGS][REMOTELOG_TAILS] = {
	{[REMOTELOG_SINGLETON] = REPL_LOG_CHECKSUM, [REMOTELOG_COMPOUND] = REPL_LOG_POINTER},
	{[REMOTELOG_COMPOUND] = REPL_LOG_COUNTER},
	{[REMOTELOG_COMPOUND] = REPL_LOG_REGISTER},
};

static int
fail(struct remotelog *rl, const struct remotelog_way *w, enum remotelog_tail t, int rc)
{
	return err_set(&rl->c->err, rc, "%s, %s: %s", w->name, remotelog_tail_name(t),
		       repl_errormsg());
}

int
remotelog_logs_make(struct remotelog *rl, struct remotelog_way *w)
{
	for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++) {
		enum repl_log_kind kind = log_kinds[w->which - PLAN_METHOD_COUNT][t];
		int rc;

		if (!remotelog_wanted(rl, w, t))
			continue;
		rc = repl_log_create(w->r, (size_t)AREA * t, AREA, kind, &w->tails[t].log);
		if (rc)
			return fail(rl, w, t, rc);
	}
	return 0;
}

void
remotelog_logs_close(struct remotelog_way *w)
{
	for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++) {
		repl_log_close(w->tails[t].log);
		w->tails[t].log = NULL;
	}
}

/* What the library puts before the data is counted as the record's. */
static size_t
log_data_size(const struct remotelog *rl)
{
	return rl->size > LOG_HEADER + REMOTELOG_RECORD_MIN ? rl->size - LOG_HEADER
							    : REMOTELOG_RECORD_MIN;
}

static int
log_append(struct remotelog *rl, struct remotelog_series *s)
{
	uint8_t data[REMOTELOG_SIZE_MAX];
	uint64_t tail = repl_log_tail(s->log);

	/* Before it is full: the target makes room in its own time. */
	if (tail - repl_log_head(s->log) > LOG_TRIM_AT) {
		int rc = repl_log_trim(s->log, 0, tail);

		if (rc)
			return rc;
	}
	remotelog_record_make(data, log_data_size(rl), s->sequence);
	return repl_log_append(s->log, 0, data, log_data_size(rl), &s->position);
}

/* ---- the plain one ---- */

/* Records follow each other, on lines of their own, and begin anew at the end of the log. */
static size_t
record_off(const struct remotelog *rl, enum remotelog_tail t, uint64_t sequence)
{
	uint64_t stride = (rl->size + LINE - 1) / LINE * LINE;
	uint64_t slots = (AREA - PAGE) / stride;

	return (size_t)(AREA * t + PAGE + (sequence - 1) % slots * stride);
}

/* The page before the records has the pointer to their end: how many there were. */
static size_t
pointer_off(enum remotelog_tail t)
{
	return (size_t)AREA * t;
}

static int
plain_append(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t)
{
	uint64_t sequence = w->tails[t].sequence;
	size_t off = record_off(rl, t, sequence), pointer = pointer_off(t);

	remotelog_record_make(w->mem + off, rl->size, sequence);
	if (t == REMOTELOG_SINGLETON)
		return repl_persist(w->r, 0, off, rl->size);
	put_le64(w->mem + pointer, sequence);
	return repl_persist_pair(w->r, 0, off, rl->size, pointer, WORD);
}

/* ---- either ---- */

int
remotelog_append(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t)
{
	struct remotelog_series *s = &w->tails[t];
	int rc;

	s->sequence++;
	rc = s->log ? log_append(rl, s) : plain_append(rl, w, t);
	return rc ? fail(rl, w, t, rc) : 0;
}

/* The first line of a record is where the log's format puts it. */
static int
read_log(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t, bool *same)
{
	size_t off = AREA * t + LOG_HEAD + (size_t)(w->tails[t].position % (AREA - LOG_HEAD));
	uint8_t line[LINE];
	int rc = repl_read(w->r, 0, 0, line, off, LINE);

	*same = !rc && memcmp(line, w->mem + off, LINE) == 0;
	return rc ? fail(rl, w, t, rc) : 0;
}

static int
read_plain(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t, bool *same)
{
	uint8_t record[REMOTELOG_SIZE_MAX], pointer[WORD] = {0};
	uint64_t sequence = w->tails[t].sequence;
	int rc = repl_read(w->r, 0, 0, record, record_off(rl, t, sequence), rl->size);

	if (!rc && t == REMOTELOG_COMPOUND)
		rc = repl_read(w->r, 0, 0, pointer, pointer_off(t), WORD);
	*same = !rc && remotelog_record_check(record, rl->size, sequence) &&
		(t != REMOTELOG_COMPOUND || get_le64(pointer) == sequence);
	return rc ? fail(rl, w, t, rc) : 0;
}

/* A message may be durable in the target's receive ring a while before it is applied. */
int
remotelog_check(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t)
{
	uint64_t deadline = clock_deadline(CHECK_MS);
	bool same = false;
	int rc;

	for (;;) {
		rc = w->tails[t].log ? read_log(rl, w, t, &same) : read_plain(rl, w, t, &same);
		if (rc || same)
			return rc;
		if (clock_now_ns() > deadline)
			return err_set(&rl->c->err, REPL_E_DIFFER,
				       "%s, %s: record %llu is not on the target, or damaged",
				       w->name, remotelog_tail_name(t),
				       (unsigned long long)w->tails[t].sequence);
		(void)nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
}
