/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * logcore - an open log's places, groups and header, as values.
 *
 * No thread, lock or persistence inside: repl_log.c calls it under its lock and
 * makes durable what it is told to. So the model test can cut the power between
 * any two of these steps.
 */
#ifndef LIBREPL_LOGCORE_H
#define LIBREPL_LOGCORE_H

#include "logfmt.h"

struct logcore {
	uint8_t *area;
	struct logfmt_header h; /* as it is durable */
	unsigned other;         /* the copy of it that is written first */
	uint64_t base;          /* h.head rounded down, once the space below may be used */
	uint64_t next;          /* place of the next record */
	uint64_t durable;       /* the tail that was acknowledged */
	uint64_t settled;       /* no trim is pending on space that is used below this */
	unsigned turn;          /* of the tail words */
};

/* What makes a group of records durable, in this order. */
struct logcore_group {
	uint64_t from, to;
	bool settle;             /* trims must be finished first */
	uint64_t settled;        /* ... and are then, up to here */
	struct logfmt_span span; /* the records */
	uint64_t tail_off;       /* then the 8 bytes that logcore_group_tail() stores; 0: none */
	enum repl_log_kind kind; /* the header may be trimmed meanwhile */
};

/*
 * The bytes of a new log: from the second page to the end of the tail area they are cleared, and
 * then copy 1 of the header is made: when nothing can bring it to a replica any more before they
 * are durable there.
 */
void logcore_clear(uint8_t *area);
void logcore_format(uint8_t *area, uint64_t size, enum repl_log_kind kind, uint64_t salt);

/*
 * Open what lies at off of the pool; room as logfmt_header_read() has it. *c's
 * header is that of a new run: it is to be stored and made durable before the
 * first append.
 */
int logcore_open(struct logcore *c, uint8_t *area, uint64_t off, uint64_t room, struct err *e);

/*
 * Store a header with the next sequence in one copy, the first of the two that are returned, and
 * then in the other one: when nothing can bring that to a replica any more before the first is
 * durable there. Else both might be half stored.
 */
struct logfmt_span logcore_header_first(struct logcore *c, struct logfmt_header *h);
void logcore_header_second(struct logcore *c, const struct logfmt_header *h);

/*
 * REPL_E_NOSPC if records that take size bytes together do not fit now, REPL_E_INVAL if no trim
 * makes them fit: there are too many for the log, or it is empty.
 */
int logcore_room(const struct logcore *c, uint64_t size, struct err *e);

/* Store a record, for which there is room; returns its position. */
uint64_t logcore_place(struct logcore *c, const void *data, size_t len, uint64_t data_sum);

/* All that was placed and is not durable becomes a group; there must be something. */
void logcore_group_begin(struct logcore *c, struct logcore_group *g);

/*
 * Store the group's tail, once: when nothing can bring it to a replica any more before the records
 * are durable there.
 */
void logcore_group_tail(struct logcore *c, const struct logcore_group *g);

void logcore_group_end(struct logcore *c, const struct logcore_group *g);

#endif
