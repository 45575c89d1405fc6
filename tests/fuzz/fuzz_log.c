/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What opens as a log, whatever bytes are there, has its places inside of its area, and opens again
 * with all that it had and what was appended since.
 */
#include <string.h>

#include "checksum.h"
#include "fuzz.h"
#include "le.h"
#include "logcore.h"
#include "logscan.h"

#define ROOM       (32U << 10) /* from the log's place to the end of the pool */
#define POOL_OFF   4096U
#define AT_SUM     16U
#define HEADS      (2 * LOGFMT_HEADER_SIZE)
#define WORDS      (8 * LOGFMT_TAIL_BLOCKS)
#define RECORD_MAX 64U
#define SEED_SIZE  (HEADS + WORDS + 1024) /* most of what is changed is to matter */

/* Headers, tail words and ring, one behind the other. */
static void
spread(uint8_t *area, const uint8_t *data, size_t size)
{
	uint8_t in[FUZZ_INPUT_MAX] = {0};

	memcpy(in, data, size < sizeof(in) ? size : sizeof(in));
	memset(area, 0, ROOM);
	for (unsigned i = 0; i < LOGFMT_COPIES; i++)
		memcpy(area + logfmt_copy_off(i), in + (size_t)i * LOGFMT_HEADER_SIZE,
		       LOGFMT_HEADER_SIZE);
	for (unsigned i = 0; i < LOGFMT_TAIL_BLOCKS; i++)
		memcpy(area + logfmt_tail_off(i), in + HEADS + 8 * (size_t)i, 8);
	memcpy(area + LOGFMT_RING_OFF, in + HEADS + WORDS, sizeof(in) - HEADS - WORDS);
}

/* A header, and records from the head on, that are damaged in no checksum. */
static void
mend(uint8_t *area)
{
	struct logfmt_header h;
	unsigned other;

	for (unsigned i = 0; i < LOGFMT_COPIES; i++) {
		uint8_t *buf = area + logfmt_copy_off(i);

		put_le64(buf + AT_SUM, 0);
		put_le64(buf + AT_SUM, sum64(buf, LOGFMT_HEADER_SIZE));
	}
	if (logfmt_header_read(area, POOL_OFF, ROOM, &h, &other, NULL))
		return;
	for (uint64_t at = h.head; at <= logscan_tail_max(&h, h.head);) {
		uint8_t data[RECORD_MAX];
		struct logfmt_span span = logfmt_span(&h, at, LOGFMT_RECORD_HEAD);
		uint32_t len = get_le32(area + span.off[0]), run = h.run;

		if (len == 0 || len > sizeof(data) ||
		    logfmt_record_size(len) > logfmt_capacity(h.area_size))
			return;
		if (at < h.run_start)
			h.run = run - 1;
		span = logfmt_span(&h, at + LOGFMT_RECORD_HEAD, len);
		logfmt_copy_out(area, &span, data, len);
		logfmt_record_store(area, &h, at, data, len, logfmt_data_sum(&h, data, len));
		h.run = run;
		at += logfmt_record_size(len);
	}
}

static void
check_places(const struct logcore *c)
{
	FUZZ_CHECK(c->h.area_size <= ROOM && c->h.area_size % LOGFMT_PAGE == 0);
	FUZZ_CHECK(c->h.head <= c->next && c->next == c->durable);
	FUZZ_CHECK(c->base <= c->h.head && c->next - c->base <= logfmt_capacity(c->h.area_size));
	FUZZ_CHECK(c->next % LOGFMT_ALIGN == 0 && c->turn < LOGFMT_TAIL_BLOCKS);
}

static void
append(struct logcore *c, size_t len)
{
	static const uint8_t data[RECORD_MAX] = {1, 2, 3};
	struct logcore_group g;

	if (logcore_room(c, logfmt_record_size(len), NULL))
		return;
	(void)logcore_place(c, data, len, logfmt_data_sum(&c->h, data, len));
	logcore_group_begin(c, &g);
	FUZZ_CHECK(g.span.off[0] + g.span.len[0] <= c->h.area_size);
	FUZZ_CHECK(g.span.off[1] + g.span.len[1] <= c->h.area_size);
	FUZZ_CHECK(g.tail_off + 8 <= LOGFMT_RING_OFF);
	if (g.tail_off)
		logcore_group_tail(c, &g);
	logcore_group_end(c, &g);
}

static void
use(uint8_t *area)
{
	struct logcore c, again;
	struct logfmt_span both;

	if (logcore_open(&c, area, POOL_OFF, ROOM, NULL))
		return;
	check_places(&c);
	both = logcore_header_first(&c, &c.h);
	logcore_header_second(&c, &c.h);
	FUZZ_CHECK(both.off[0] != both.off[1]);
	FUZZ_CHECK(both.off[0] <= LOGFMT_PAGE && both.off[1] <= LOGFMT_PAGE);
	for (size_t len = 1; len <= RECORD_MAX; len *= 4)
		append(&c, len);
	/* Behind the last run there is none. */
	if (c.h.run == LOGFMT_RUN_MAX)
		return;
	FUZZ_CHECK(logcore_open(&again, area, POOL_OFF, ROOM, NULL) == 0);
	check_places(&again);
	FUZZ_CHECK(again.durable == c.durable && again.h.head == c.h.head);
	FUZZ_CHECK(again.h.run == c.h.run + 1 && again.h.salt == c.h.salt);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of its own, so that a sanitizer sees its ends. */
	uint8_t *area = malloc(ROOM);

	if (!area)
		return 0;
	spread(area, data, size);
	use(area);
	spread(area, data, size);
	mend(area);
	use(area);
	free(area);
	return 0;
}

/* A log of each kind, some laps on, with a few records; the even ones opened once more. */
size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	static uint8_t area[ROOM] __attribute__((aligned(8)));
	struct logcore c;

	if (i >= 8)
		return 0;
	logcore_clear(area);
	logcore_format(area, REPL_LOG_SIZE_MIN + (i % 2 ? LOGFMT_PAGE : 0),
		       (enum repl_log_kind)(1 + i / 2), 77);
	FUZZ_CHECK(logcore_open(&c, area, POOL_OFF, ROOM, NULL) == 0);
	c.h.head = c.h.run_start = c.next = c.durable = c.base = 5 * LOGFMT_PAGE;
	(void)logcore_header_first(&c, &c.h);
	logcore_header_second(&c, &c.h);
	for (size_t len = 1; len <= RECORD_MAX; len *= 2)
		append(&c, len);
	if (i % 2 == 0) {
		FUZZ_CHECK(logcore_open(&c, area, POOL_OFF, ROOM, NULL) == 0);
		(void)logcore_header_first(&c, &c.h);
		logcore_header_second(&c, &c.h);
		append(&c, RECORD_MAX);
	}
	memset(buf, 0, FUZZ_INPUT_MAX);
	for (unsigned n = 0; n < LOGFMT_COPIES; n++)
		memcpy(buf + (size_t)n * LOGFMT_HEADER_SIZE, area + logfmt_copy_off(n),
		       LOGFMT_HEADER_SIZE);
	for (unsigned n = 0; n < LOGFMT_TAIL_BLOCKS; n++)
		memcpy(buf + HEADS + 8 * (size_t)n, area + logfmt_tail_off(n), 8);
	memcpy(buf + HEADS + WORDS, area + LOGFMT_RING_OFF, FUZZ_INPUT_MAX - HEADS - WORDS);
	return SEED_SIZE;
}
