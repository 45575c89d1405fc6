/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * logfmt - the bytes of a log as docs/LOG-FORMAT.md has them: header, records,
 * tail words.
 *
 * Pure: nothing but memory. What is read may be damaged or hostile, so
 * whatever is decoded has been checked. "area" is the log's part of the pool.
 */
#ifndef LIBREPL_LOGFMT_H
#define LIBREPL_LOGFMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define LOGFMT_HEADER_SIZE 256U
#define LOGFMT_PAGE        4096U
#define LOGFMT_TAIL_OFF    8192U
#define LOGFMT_TAIL_BLOCK  256U
#define LOGFMT_TAIL_BLOCKS 10U
#define LOGFMT_TAIL_SIZE   (LOGFMT_TAIL_BLOCK * LOGFMT_TAIL_BLOCKS)
#define LOGFMT_RING_OFF    12288U
#define LOGFMT_ALIGN       64U
#define LOGFMT_RECORD_HEAD 24U
#define LOGFMT_COPIES      2U
#define LOGFMT_RUN_MAX     UINT32_MAX

struct logfmt_header {
	uint64_t sequence;
	uint64_t area_size;
	uint64_t salt;
	uint64_t head;
	uint64_t run_start;
	uint32_t run;
	enum repl_log_kind kind;
};

/* Two pieces of the ring: a record, or a group of them, may run over its end. */
struct logfmt_span {
	uint64_t off[2]; /* in the area */
	uint64_t len[2]; /* the second is 0 if there is one piece */
};

/* Where copy (0 or 1) of the header lies. */
static inline uint64_t
logfmt_copy_off(unsigned copy)
{
	return (uint64_t)copy * LOGFMT_PAGE;
}

static inline uint64_t
logfmt_capacity(uint64_t area_size)
{
	return area_size - LOGFMT_RING_OFF;
}

/* What a record of len bytes takes up. */
static inline uint64_t
logfmt_record_size(uint64_t len)
{
	return (LOGFMT_RECORD_HEAD + len + LOGFMT_ALIGN - 1) / LOGFMT_ALIGN * LOGFMT_ALIGN;
}

/* Whether an area of a pool can hold a log; REPL_E_INVAL. */
int logfmt_area_check(uint64_t pool_size, uint64_t off, uint64_t size, struct err *e);

/* Whether a log can be at off of a pool, of which room bytes follow; REPL_E_INVAL. */
int logfmt_place_check(uint64_t off, uint64_t room, struct err *e);

/* Writes LOGFMT_HEADER_SIZE bytes. */
void logfmt_header_encode(uint8_t *buf, const struct logfmt_header *h);

/*
 * The header of the area at off of a pool, of which room bytes follow from off
 * on: the copy to believe. *other gets the copy that an update writes first.
 * REPL_E_NOT_FOUND: no log, or its creation was cut off; REPL_E_VERSION: of a newer version;
 * REPL_E_CORRUPT.
 */
int logfmt_header_read(const uint8_t *area, uint64_t off, uint64_t room, struct logfmt_header *h,
		       unsigned *other, struct err *e);

/* The bytes of the ring from position on. */
struct logfmt_span logfmt_span(const struct logfmt_header *h, uint64_t position, uint64_t len);

/* The part of a record's checksum that does not depend on its place. */
uint64_t logfmt_data_sum(const struct logfmt_header *h, const void *data, size_t len);

/* Store a record of the header's run at its place, padding with it. */
void logfmt_record_store(uint8_t *area, const struct logfmt_header *h, uint64_t position,
			 const void *data, size_t len, uint64_t data_sum);

struct logfmt_record {
	uint32_t len;
	uint32_t run;
	struct logfmt_span data;
};

/* Bytes of what says that it is a record there, with no look at its data; 0: nothing does. */
uint64_t logfmt_record_claims(const uint8_t *area, const struct logfmt_header *h,
			      uint64_t position);

/* True if there is a whole record at position, whatever its run; then *rec is filled. */
bool logfmt_record_read(const uint8_t *area, const struct logfmt_header *h, uint64_t position,
			struct logfmt_record *rec);

/* Copy len bytes of the ring out. */
void logfmt_copy_out(const uint8_t *area, const struct logfmt_span *span, void *dst, size_t len);

/* ---- the tail area ---- */

/* Offset in the area of tail word i. */
static inline uint64_t
logfmt_tail_off(unsigned i)
{
	return LOGFMT_TAIL_OFF + (uint64_t)i * LOGFMT_TAIL_BLOCK;
}

/* What the tail area says, by the kind's rule; 0 for REPL_LOG_CHECKSUM. */
uint64_t logfmt_tail_read(const uint8_t *area, enum repl_log_kind kind);

/*
 * Store a new tail in the 8 bytes that logfmt_tail_next() gives the offset in the area of; 0: the
 * kind has none. turn is the word to write next, kept by the caller from one to the next.
 */
uint64_t logfmt_tail_next(enum repl_log_kind kind, unsigned turn);
void logfmt_tail_store(uint8_t *area, enum repl_log_kind kind, unsigned *turn, uint64_t tail);

/* The turn after what is in the tail area. */
unsigned logfmt_tail_turn(const uint8_t *area, enum repl_log_kind kind);

/* "checksum", "pointer", "counter", "register"; NULL for another value. */
const char *logfmt_kind_name(enum repl_log_kind kind);

#endif
