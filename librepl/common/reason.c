/* SPDX-License-Identifier: BSD-3-Clause */
#include "reason.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

static const struct reason_row {
	const char *name, *meaning, *next;
} rows[] = {
#define ROW(code, name_, meaning_, next_)                                                          \
	[REPL_REASON_##code] = {.name = (name_), .meaning = (meaning_), .next = (next_)},
	REASON_TABLE(ROW)
#undef ROW
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

#define COUNT_ONE(code, name_, meaning_, next_) +1
_Static_assert(ROW_COUNT == 0 REASON_TABLE(COUNT_ONE), "each code has a row, and none has two");
_Static_assert(ROW_COUNT == REPL_REASON_COUNT, "all codes are in the table");
#undef COUNT_ONE

static const struct reason_row *
row_of(int reason)
{
	return &rows[reason < 0 || (size_t)reason >= ROW_COUNT ? REPL_REASON_FAILED : reason];
}

const char *
reason_name(int reason)
{
	return row_of(reason)->name;
}

const char *
reason_meaning(int reason)
{
	return row_of(reason)->meaning;
}

const char *
reason_next(int reason)
{
	return row_of(reason)->next;
}

enum repl_reason
reason_by_name(const char *name)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (strcmp(rows[i].name, name) == 0)
			return (enum repl_reason)i;
	return REPL_REASON_FAILED;
}

/* Of a target and of what it holds; not of this side, of the way between, or what a status tells.
 */
static const enum repl_reason peer_rows[] = {
	REPL_REASON_VERSION,      REPL_REASON_TARGET_IO,    REPL_REASON_TARGET_FULL,
	REPL_REASON_TARGET_LIMIT, REPL_REASON_POOL_MISSING, REPL_REASON_OTHER_WRITER,
	REPL_REASON_BEING_READ,   REPL_REASON_PROMOTED,     REPL_REASON_BEHIND,
	REPL_REASON_DIVERGED,     REPL_REASON_UNRELATED,    REPL_REASON_SIZE,
	REPL_REASON_DAMAGED,      REPL_REASON_INCONSISTENT, REPL_REASON_OUTDATED,
	REPL_REASON_WRITER_GONE,  REPL_REASON_CONFIG,
};

enum repl_reason
reason_by_peer(const char *name)
{
	for (size_t i = 0; i < sizeof(peer_rows) / sizeof(peer_rows[0]); i++)
		if (strcmp(rows[peer_rows[i]].name, name) == 0)
			return peer_rows[i];
	return REPL_REASON_NONE;
}

/* ---- axes ---- */

#define AXIS_VALUES 4

static const struct {
	const char *key, *names[AXIS_VALUES];
} axes[REASON_AXIS_COUNT] = {
	[REASON_CONNECTION] = {"connection",
			       {[REPL_CONN_CONNECTED] = "connected",
				[REPL_CONN_CONNECTING] = "connecting",
				[REPL_CONN_STANDALONE] = "standalone"}},
	[REASON_REPLICATION] = {"replication",
				{[REPL_REPL_ESTABLISHED] = "established",
				 [REPL_REPL_RESYNCING] = "resyncing",
				 [REPL_REPL_DEGRADED] = "degraded"}},
	/* As sidecar_state_name() has them. */
	[REASON_DATA] = {"data",
			 {[REPL_DATA_UP_TO_DATE] = "up-to-date",
			  [REPL_DATA_INCONSISTENT] = "inconsistent",
			  [REPL_DATA_OUTDATED] = "outdated",
			  [REPL_DATA_UNKNOWN] = "unknown"}},
};

const char *
reason_axis_key(enum reason_axis axis)
{
	return axes[axis].key;
}

const char *
reason_axis_name(enum reason_axis axis, int value)
{
	return value < 0 || value >= AXIS_VALUES ? NULL : axes[axis].names[value];
}

int
reason_axis_value(enum reason_axis axis, const char *name)
{
	for (int i = 0; i < AXIS_VALUES; i++)
		if (axes[axis].names[i] && strcmp(axes[axis].names[i], name) == 0)
			return i;
	return -1;
}

/* ---- from what is known elsewhere ---- */

/* What means the same in all phases. */
static const struct {
	int status;
	enum repl_reason reason;
} by_status[] = {
	{REPL_OK, REPL_REASON_NONE},
	{REPL_E_INVAL, REPL_REASON_SIZE},
	{REPL_E_NOMEM, REPL_REASON_LOCAL},
	{REPL_E_NOT_FOUND, REPL_REASON_POOL_MISSING},
	{REPL_E_EXISTS, REPL_REASON_REFUSED},
	{REPL_E_BUSY, REPL_REASON_OTHER_WRITER},
	{REPL_E_REFUSED, REPL_REASON_REFUSED},
	{REPL_E_DEGRADED, REPL_REASON_OUTDATED},
	{REPL_E_DIVERGED, REPL_REASON_DIVERGED},
	{REPL_E_UNREACHABLE, REPL_REASON_UNREACHABLE},
	{REPL_E_AUTH, REPL_REASON_LOGIN_REFUSED},
	{REPL_E_CONFIG, REPL_REASON_CONFIG},
	{REPL_E_PROTOCOL, REPL_REASON_PROTOCOL},
	{REPL_E_VERSION, REPL_REASON_VERSION},
	{REPL_E_LIMIT, REPL_REASON_TARGET_LIMIT},
	{REPL_E_NOSPC, REPL_REASON_TARGET_FULL},
	{REPL_E_CORRUPT, REPL_REASON_DAMAGED},
	{REPL_E_IO, REPL_REASON_TARGET_IO},
	{REPL_E_LOST, REPL_REASON_CONNECTION_LOST},
	{REPL_E_DIFFER, REPL_REASON_OUTDATED},
};

/*
 * What an earlier repld, which gives no reason beside the status, says in its pool_judge(). Its
 * words are as they were: those of today's may change.
 */
static const struct {
	int status;
	const char *words;
	enum repl_reason reason;
} by_words[] = {
	{REPL_E_REFUSED, "it is the primary now", REPL_REASON_PROMOTED},
	{REPL_E_DIVERGED, "newer than the data of who wants to write", REPL_REASON_BEHIND},
	{REPL_E_DIVERGED, "have no generation in common", REPL_REASON_UNRELATED},
};

static enum repl_reason
reason_of_words(const struct err *e)
{
	for (size_t i = 0; i < sizeof(by_words) / sizeof(by_words[0]); i++)
		if (by_words[i].status == e->code && strstr(e->text, by_words[i].words))
			return by_words[i].reason;
	return REPL_REASON_NONE;
}

enum repl_reason
reason_of_error(const struct err *e, enum reason_phase phase)
{
	bool open = phase == REASON_USE || phase == REASON_RESYNC;

	if (e->reason != REPL_REASON_NONE)
		return e->reason;
	if (phase == REASON_OPEN && e->by_target && reason_of_words(e) != REPL_REASON_NONE)
		return reason_of_words(e);
	switch (e->code) {
	case REPL_E_TIMEOUT:
		return open ? REPL_REASON_NOT_ANSWERING : REPL_REASON_TIMED_OUT;
	case REPL_E_INVAL:
		if (phase != REASON_OPEN)
			return REPL_REASON_FAILED;
		break;
	case REPL_E_NOMEM:
		if (e->by_target)
			return REPL_REASON_TARGET_LIMIT;
		break;
	case REPL_E_LOST:
		/* The words of a session that ends by SIGBUS. */
		if (e->by_target)
			return REPL_REASON_TARGET_IO;
		break;
	case REPL_E_NOT_FOUND:
		/* Of a key file of ours, or of the target's pool directory. */
		if (phase == REASON_CONNECT)
			return e->by_target ? REPL_REASON_CONFIG : REPL_REASON_LOCAL;
		break;
	case REPL_E_LIMIT:
		/* While it is in use the target's, too, comes by its lanes. */
		if (!open && !e->by_target)
			return REPL_REASON_LOCAL;
		break;
	case REPL_E_IO:
		if (phase == REASON_CONNECT && !e->by_target)
			return REPL_REASON_LOCAL;
		break;
	default:
		break;
	}
	for (size_t i = 0; i < sizeof(by_status) / sizeof(by_status[0]); i++)
		if (by_status[i].status == e->code)
			return by_status[i].reason;
	return REPL_REASON_FAILED;
}

enum repl_reason
reason_of_judge(enum judge_reason reason)
{
	switch (reason) {
	case JUDGE_PROMOTED:
		return REPL_REASON_PROMOTED;
	case JUDGE_NEWER:
		return REPL_REASON_BEHIND;
	case JUDGE_DIVERGED:
		return REPL_REASON_DIVERGED;
	case JUDGE_NO_COMMON:
	case JUDGE_OTHER_POOL:
		return REPL_REASON_UNRELATED;
	default:
		return REPL_REASON_NONE;
	}
}

enum repl_reason
reason_of_sidecar(const struct sidecar *s)
{
	if (s->primary)
		return REPL_REASON_PROMOTED;
	switch (s->state) {
	case SIDECAR_INCONSISTENT:
		return REPL_REASON_INCONSISTENT;
	case SIDECAR_OUTDATED:
		return REPL_REASON_OUTDATED;
	case SIDECAR_UNKNOWN:
		return REPL_REASON_WRITER_GONE;
	default:
		return s->writer_open ? REPL_REASON_WRITER_GONE : REPL_REASON_NONE;
	}
}

/* ---- the next step, with names ---- */

/* The placeholder that text begins with: its length and what it becomes. */
static size_t
placeholder(const char *text, const struct reason_names *names, const char **value)
{
	static const char *const words[] = {"TARGET/POOL", "TARGET", "FILE", "SIZE"};
	const char *const values[] = {names->replica, names->target, names->file, names->size};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);

		if (strncmp(text, words[i], len) == 0) {
			*value = values[i] && values[i][0] ? values[i] : words[i];
			return len;
		}
	}
	return 0;
}

void
reason_next_for(int reason, const struct reason_names *names, char *out, size_t size)
{
	const char *text = reason_next(reason), *value = "";
	size_t at = 0;

	while (*text && at + 1 < size) {
		size_t len = placeholder(text, names, &value);

		if (len) {
			if (!text_quote(value, out + at, size - at))
				break;
			at += strlen(out + at);
			text += len;
		} else {
			out[at++] = *text++;
		}
	}
	if (size)
		out[at] = '\0';
}
