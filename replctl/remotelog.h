/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remotelog - what the parts of replctl bench remotelog share: the log after
 * the one of Kashyap et al., "Correct, Fast Remote Persistence", section 4:
 * small records appended to a remote log, by each method of remote persistence
 * and each way to find the log's end.
 *
 * A way is a session with one forced method, or with a log of the library's
 * own, on a pool of its own (remotelog_way.c). Its series, one a kind of tail, take turns with
 * those of the other ways and with a bare TCP ping-pong, slice by slice (remotelog_run.c), so that
 * what disturbs the machines disturbs all alike.
 */
#ifndef REPLCTL_REMOTELOG_H
#define REPLCTL_REMOTELOG_H

#include <stdio.h>

#include "bench_raw.h"
#include "ctl.h"
#include "hist.h"
#include "plan.h"
#include "scratch.h"

#define REMOTELOG_POOL_SIZE (4U << 20)
#define REMOTELOG_SLICE_MAX 4096U
#define REMOTELOG_SIZE_MAX  4096U
#define REMOTELOG_LOGS      3U /* ways of the library's own log */
#define REMOTELOG_WAYS      (PLAN_METHOD_COUNT + REMOTELOG_LOGS)

enum remotelog_tail {
	REMOTELOG_SINGLETON, /* one update an append: the checksum tells the end */
	REMOTELOG_COMPOUND,  /* two: the record, and then a pointer to the end */
	REMOTELOG_TAILS
};

struct remotelog_series {
	bool absent;         /* there is no such thing: neither measured nor told */
	const char *why_not; /* NULL: it runs */
	char detour[256];
	bool chosen;          /* the library's choice where no method is forced */
	uint64_t sequence;    /* of the record that was appended last */
	struct repl_log *log; /* NULL: the records are written here */
	uint64_t position;    /* in log, of the record that was appended last */
	struct hist hist;
};

struct remotelog_way {
	unsigned which; /* an enum plan_method, forced, or behind those a log of the library's */
	const char *name;
	struct repl *r;
	uint8_t *mem;
	char refusal[ERR_TEXT_MAX];
	struct remotelog_series tails[REMOTELOG_TAILS];
};

struct remotelog {
	struct ctl *c;
	uint64_t count; /* appends of each series */
	uint64_t size;  /* bytes of a record */
	bool wanted_ways[REMOTELOG_WAYS], wanted_tails[REMOTELOG_TAILS];

	FILE *plot; /* NULL: not wanted */
	struct scratch scratch;
	struct bench_raw raw;
	struct hist raw_hist;
	uint32_t samples[REMOTELOG_SLICE_MAX + 1];

	struct remotelog_way ways[REMOTELOG_WAYS];
	unsigned way_count;

	uint64_t done; /* appends of each series so far */
	bool interrupted;
};

const char *remotelog_tail_name(enum remotelog_tail t);

/* ---- remotelog_way.c ---- */

/* Of the which-th way: that of a method, or "log", "log-counter", "log-register". */
const char *remotelog_way_name(unsigned which);

/* Whether it is to be measured, or told why not. */
bool remotelog_wanted(const struct remotelog *rl, const struct remotelog_way *w,
		      enum remotelog_tail t);

/* The session that makes the measurement: profile, bare connection. */
int remotelog_open(struct remotelog *rl);

/* Each wanted method: its session, or the reason why it can't run there. */
int remotelog_open_ways(struct remotelog *rl);

/* Takes everything away, the pools too; keeps an error that is there. */
void remotelog_close(struct remotelog *rl);

/* ---- remotelog_append.c ---- */

/* Make the library's logs of an open way. */
int remotelog_logs_make(struct remotelog *rl, struct remotelog_way *w);
void remotelog_logs_close(struct remotelog_way *w);

/* One record more. */
int remotelog_append(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t);

/* What was appended last is on the target. */
int remotelog_check(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t);

/* ---- remotelog_run.c ---- */

/* All series in turns, until each has its count or the user interrupts. */
int remotelog_run(struct remotelog *rl);

/* ---- remotelog_report.c ---- */

/* As a table, or as JSON. */
void remotelog_report(struct remotelog *rl);

/* Open the file of the plot, to fail before anything is measured. What it holds stays so far. */
int remotelog_plot_open(struct remotelog *rl, const char *file);

/* The bars, in place of what the file holds. */
int remotelog_plot(struct remotelog *rl);

/* Closes; takes a file away that was made for nothing. */
void remotelog_plot_close(struct remotelog *rl, const char *file);

#endif
