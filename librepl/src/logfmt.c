/* SPDX-License-Identifier: BSD-3-Clause */
#include "logfmt.h"

#include <inttypes.h>
#include <string.h>

#include "checksum.h"
#include "le.h"

#define LOGFMT_MAJOR 1U
#define LOGFMT_MINOR 0U

static const uint8_t magic[8] = {'R', 'E', 'P', 'L', 'P', 'L', 'O', 'G'};

/* Offsets of the header's fields. */
enum {
	AT_MAJOR = 8,
	AT_MINOR = 10,
	AT_SIZE = 12,
	AT_SUM = 16,
	AT_SEQUENCE = 24,
	AT_AREA = 32,
	AT_KIND = 40,
	AT_ALIGN = 44,
	AT_SALT = 48,
	AT_HEAD = 56,
	AT_RUN_START = 64,
	AT_RUN = 72,
	AT_ZERO = 76,
};

/* Offsets in a record. */
enum { AT_LEN = 0, AT_RECORD_RUN = 4, AT_POSITION = 8, AT_RECORD_SUM = 16 };

const char *
logfmt_kind_name(enum repl_log_kind kind)
{
	switch (kind) {
	case REPL_LOG_CHECKSUM:
		return "checksum";
	case REPL_LOG_POINTER:
		return "pointer";
	case REPL_LOG_COUNTER:
		return "counter";
	case REPL_LOG_REGISTER:
		return "register";
	}
	return NULL;
}

int
logfmt_area_check(uint64_t pool_size, uint64_t off, uint64_t size, struct err *e)
{
	if (off % LOGFMT_PAGE || size % LOGFMT_PAGE)
		return err_set(e, REPL_E_INVAL,
			       "a log of %" PRIu64 " bytes at %" PRIu64
			       ": both must be multiples of %u",
			       size, off, LOGFMT_PAGE);
	if (size < REPL_LOG_SIZE_MIN)
		return err_set(e, REPL_E_INVAL, "a log of %" PRIu64 " bytes: %u is the least", size,
			       REPL_LOG_SIZE_MIN);
	if (off > pool_size || size > pool_size - off)
		return err_set(e, REPL_E_INVAL,
			       "a log of %" PRIu64 " bytes at %" PRIu64
			       " is outside the pool of %" PRIu64 " bytes",
			       size, off, pool_size);
	return 0;
}

/* ---- header ---- */

static uint64_t
header_sum(const uint8_t *buf)
{
	uint8_t copy[LOGFMT_HEADER_SIZE];

	memcpy(copy, buf, sizeof(copy));
	put_le64(copy + AT_SUM, 0);
	return sum64(copy, sizeof(copy));
}

void
logfmt_header_encode(uint8_t *buf, const struct logfmt_header *h)
{
	uint8_t out[LOGFMT_HEADER_SIZE] = {0};

	memcpy(out, magic, sizeof(magic));
	put_le16(out + AT_MAJOR, LOGFMT_MAJOR);
	put_le16(out + AT_MINOR, LOGFMT_MINOR);
	put_le32(out + AT_SIZE, LOGFMT_HEADER_SIZE);
	put_le64(out + AT_SEQUENCE, h->sequence);
	put_le64(out + AT_AREA, h->area_size);
	put_le32(out + AT_KIND, (uint32_t)h->kind);
	put_le32(out + AT_ALIGN, LOGFMT_ALIGN);
	put_le64(out + AT_SALT, h->salt);
	put_le64(out + AT_HEAD, h->head);
	put_le64(out + AT_RUN_START, h->run_start);
	put_le32(out + AT_RUN, h->run);
	put_le64(out + AT_SUM, header_sum(out));
	memcpy(buf, out, sizeof(out));
}

/* What is wrong with the fields of an intact copy; NULL if they keep the rules. */
static const char *
header_fault(const uint8_t *buf, uint64_t room, struct logfmt_header *h)
{
	uint32_t kind = get_le32(buf + AT_KIND);

	*h = (struct logfmt_header){
		.sequence = get_le64(buf + AT_SEQUENCE),
		.area_size = get_le64(buf + AT_AREA),
		.salt = get_le64(buf + AT_SALT),
		.head = get_le64(buf + AT_HEAD),
		.run_start = get_le64(buf + AT_RUN_START),
		.run = get_le32(buf + AT_RUN),
	};
	if (h->sequence == 0 || h->sequence > INT64_MAX)
		return "sequence";
	if (h->area_size % LOGFMT_PAGE || h->area_size < REPL_LOG_SIZE_MIN || h->area_size > room)
		return "size of the area";
	if (kind < REPL_LOG_CHECKSUM || kind > REPL_LOG_REGISTER)
		return "tail kind";
	h->kind = (enum repl_log_kind)kind;
	if (get_le32(buf + AT_ALIGN) != LOGFMT_ALIGN)
		return "alignment of records";
	if (h->salt == 0)
		return "salt";
	if (h->head % LOGFMT_ALIGN || h->head > INT64_MAX)
		return "head";
	if (h->run_start % LOGFMT_ALIGN || h->run_start > INT64_MAX)
		return "run start";
	if (h->run == 0)
		return "run";
	if (get_le16(buf + AT_MINOR) == LOGFMT_MINOR &&
	    !all_zero(buf + AT_ZERO, LOGFMT_HEADER_SIZE - AT_ZERO))
		return "reserved bytes";
	return NULL;
}

enum copy_state { COPY_ABSENT, COPY_TORN, COPY_DAMAGED, COPY_NEWER, COPY_WHOLE };

static enum copy_state
copy_read(const uint8_t *buf, uint64_t room, struct logfmt_header *h, const char **fault)
{
	if (memcmp(buf, magic, sizeof(magic)) != 0)
		return COPY_ABSENT;
	*fault = "checksum";
	if (get_le64(buf + AT_SUM) != header_sum(buf))
		return COPY_TORN;
	*fault = "size of the header";
	if (get_le32(buf + AT_SIZE) != LOGFMT_HEADER_SIZE)
		return COPY_DAMAGED;
	if (get_le16(buf + AT_MAJOR) > LOGFMT_MAJOR)
		return COPY_NEWER;
	*fault = "version";
	if (get_le16(buf + AT_MAJOR) < LOGFMT_MAJOR)
		return COPY_DAMAGED;
	*fault = header_fault(buf, room, h);
	return *fault ? COPY_DAMAGED : COPY_WHOLE;
}

int
logfmt_place_check(uint64_t off, uint64_t room, struct err *e)
{
	if (off % LOGFMT_PAGE == 0 && room >= REPL_LOG_SIZE_MIN)
		return 0;
	return err_set(e, REPL_E_INVAL,
		       "no log can be at %" PRIu64 ": not a multiple of %u, or less than %u "
		       "bytes to the end of the pool",
		       off, LOGFMT_PAGE, REPL_LOG_SIZE_MIN);
}

int
logfmt_header_read(const uint8_t *area, uint64_t off, uint64_t room, struct logfmt_header *h,
		   unsigned *other, struct err *e)
{
	struct logfmt_header both[LOGFMT_COPIES];
	enum copy_state state[LOGFMT_COPIES];
	const char *fault = NULL;
	unsigned believed;

	if (logfmt_place_check(off, room, e))
		return REPL_E_INVAL;
	for (unsigned i = 0; i < LOGFMT_COPIES; i++) {
		const uint8_t *buf = area + logfmt_copy_off(i);

		state[i] = copy_read(buf, room, &both[i], &fault);
		if (state[i] == COPY_NEWER)
			return err_set(e, REPL_E_VERSION,
				       "the log at %" PRIu64 " is of version %u, this is %u: "
				       "update librepl",
				       off, get_le16(buf + AT_MAJOR), LOGFMT_MAJOR);
	}
	if (state[0] == COPY_ABSENT && state[1] == COPY_ABSENT)
		return err_set(e, REPL_E_NOT_FOUND,
			       "there is no log at %" PRIu64 ": create it with repl_log_create()",
			       off);
	/* A creation has cleared copy 2 before; an open, before the first append, has made it. */
	if (state[0] == COPY_TORN && all_zero(area + logfmt_copy_off(1), LOGFMT_HEADER_SIZE))
		return err_set(e, REPL_E_NOT_FOUND,
			       "there is no log at %" PRIu64 ", its creation was cut off: create "
			       "it again with repl_log_create()",
			       off);
	if (state[0] != COPY_WHOLE && state[1] != COPY_WHOLE)
		return err_set(e, REPL_E_CORRUPT,
			       "both headers of the log at %" PRIu64 " are damaged (%s): "
			       "get the pool from a replica",
			       off, fault ? fault : "magic");
	believed = state[0] == COPY_WHOLE ? 0 : 1;
	if (state[0] == COPY_WHOLE && state[1] == COPY_WHOLE && both[1].sequence > both[0].sequence)
		believed = 1;
	*h = both[believed];
	*other = 1 - believed;
	if (state[0] == state[1] && both[0].sequence == both[1].sequence)
		*other = 0;
	return 0;
}

/* ---- records ---- */

struct logfmt_span
logfmt_span(const struct logfmt_header *h, uint64_t position, uint64_t len)
{
	uint64_t capacity = logfmt_capacity(h->area_size);
	uint64_t at = position % capacity;
	struct logfmt_span s = {.off = {LOGFMT_RING_OFF + at, LOGFMT_RING_OFF}, .len = {len, 0}};

	if (len > capacity - at) {
		s.len[0] = capacity - at;
		s.len[1] = len - s.len[0];
	}
	return s;
}

uint64_t
logfmt_data_sum(const struct logfmt_header *h, const void *data, size_t len)
{
	return sum64_seeded(data, len, h->salt);
}

static void
copy_in(uint8_t *area, const struct logfmt_span *span, const void *src, size_t len)
{
	size_t first = len < span->len[0] ? len : (size_t)span->len[0];

	memcpy(area + span->off[0], src, first);
	if (len > first)
		memcpy(area + span->off[1], (const uint8_t *)src + first, len - first);
}

void
logfmt_copy_out(const uint8_t *area, const struct logfmt_span *span, void *dst, size_t len)
{
	size_t first = len < span->len[0] ? len : (size_t)span->len[0];

	memcpy(dst, area + span->off[0], first);
	if (len > first)
		memcpy((uint8_t *)dst + first, area + span->off[1], len - first);
}

void
logfmt_record_store(uint8_t *area, const struct logfmt_header *h, uint64_t position,
		    const void *data, size_t len, uint64_t data_sum)
{
	static const uint8_t zeros[LOGFMT_ALIGN];
	size_t used = LOGFMT_RECORD_HEAD + len;
	size_t pad = (size_t)logfmt_record_size(len) - used;
	struct logfmt_span span;
	uint8_t head[LOGFMT_RECORD_HEAD];

	put_le32(head + AT_LEN, (uint32_t)len);
	put_le32(head + AT_RECORD_RUN, h->run);
	put_le64(head + AT_POSITION, position);
	put_le64(head + AT_RECORD_SUM, sum64_seeded(head, AT_RECORD_SUM, data_sum));
	span = logfmt_span(h, position, LOGFMT_RECORD_HEAD);
	copy_in(area, &span, head, sizeof(head));
	span = logfmt_span(h, position + LOGFMT_RECORD_HEAD, len);
	copy_in(area, &span, data, len);
	span = logfmt_span(h, position + used, pad);
	copy_in(area, &span, zeros, pad);
}

/* Never runs over the end: it is aligned. */
static const uint8_t *
record_head(const uint8_t *area, const struct logfmt_header *h, uint64_t position)
{
	struct logfmt_span span = logfmt_span(h, position, LOGFMT_RECORD_HEAD);

	return area + span.off[0];
}

uint64_t
logfmt_record_claims(const uint8_t *area, const struct logfmt_header *h, uint64_t position)
{
	const uint8_t *head = record_head(area, h, position);
	uint32_t len = get_le32(head + AT_LEN);

	if (get_le64(head + AT_POSITION) != position || len == 0 || len > REPL_LOG_RECORD_MAX ||
	    logfmt_record_size(len) > logfmt_capacity(h->area_size))
		return 0;
	return logfmt_record_size(len);
}

bool
logfmt_record_read(const uint8_t *area, const struct logfmt_header *h, uint64_t position,
		   struct logfmt_record *rec)
{
	const uint8_t *head = record_head(area, h, position);
	uint32_t len = get_le32(head + AT_LEN);
	uint64_t sum;

	if (logfmt_record_claims(area, h, position) == 0)
		return false;
	rec->len = len;
	rec->run = get_le32(head + AT_RECORD_RUN);
	rec->data = logfmt_span(h, position + LOGFMT_RECORD_HEAD, len);
	if (rec->data.len[1] == 0)
		sum = sum64_seeded(area + rec->data.off[0], len, h->salt);
	else
		sum = sum64_split(area + rec->data.off[0], (size_t)rec->data.len[0],
				  area + rec->data.off[1], (size_t)rec->data.len[1], h->salt);
	return get_le64(head + AT_RECORD_SUM) == sum64_seeded(head, AT_RECORD_SUM, sum);
}

/* ---- tail words ---- */

static uint64_t
tail_word(const uint8_t *area, unsigned i)
{
	return get_le64(area + logfmt_tail_off(i));
}

static uint64_t
tail_xor(const uint8_t *area)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < LOGFMT_TAIL_BLOCKS; i++)
		all ^= tail_word(area, i);
	return all;
}

static unsigned
tail_greatest(const uint8_t *area)
{
	unsigned at = 0;

	for (unsigned i = 1; i < LOGFMT_TAIL_BLOCKS; i++)
		if (tail_word(area, i) > tail_word(area, at))
			at = i;
	return at;
}

uint64_t
logfmt_tail_read(const uint8_t *area, enum repl_log_kind kind)
{
	switch (kind) {
	case REPL_LOG_CHECKSUM:
		break;
	case REPL_LOG_POINTER:
		return tail_word(area, 0);
	case REPL_LOG_COUNTER:
		return tail_word(area, tail_greatest(area));
	case REPL_LOG_REGISTER:
		return tail_xor(area);
	}
	return 0;
}

unsigned
logfmt_tail_turn(const uint8_t *area, enum repl_log_kind kind)
{
	/* Not over the greatest: one that is torn would leave an older tail. */
	if (kind == REPL_LOG_COUNTER)
		return (tail_greatest(area) + 1) % LOGFMT_TAIL_BLOCKS;
	return 0;
}

/* Which of the words. */
static unsigned
tail_at(enum repl_log_kind kind, unsigned turn)
{
	return kind == REPL_LOG_POINTER ? 0 : turn;
}

uint64_t
logfmt_tail_next(enum repl_log_kind kind, unsigned turn)
{
	return kind == REPL_LOG_CHECKSUM ? 0 : logfmt_tail_off(tail_at(kind, turn));
}

void
logfmt_tail_store(uint8_t *area, enum repl_log_kind kind, unsigned *turn, uint64_t tail)
{
	unsigned at = tail_at(kind, *turn);
	uint64_t value = tail;

	if (kind == REPL_LOG_REGISTER)
		value = tail_xor(area) ^ tail_word(area, at) ^ tail;
	value = htole64(value);
	__atomic_store_n((uint64_t *)(void *)(area + logfmt_tail_off(at)), value, __ATOMIC_RELEASE);
	*turn = (at + 1) % LOGFMT_TAIL_BLOCKS;
}
