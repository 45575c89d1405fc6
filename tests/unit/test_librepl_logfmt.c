/* SPDX-License-Identifier: BSD-3-Clause */
/* A log's header and records have the bytes of docs/LOG-FORMAT.md, and damaged ones are refused. */
#include "unit.h"

#include "checksum.h"
#include "le.h"
#include "logscan.h"

#define AREA 32768U

/* Laid out by hand from docs/LOG-FORMAT.md; the rest of the header is zero. */
static const uint8_t golden_header[76] = {
	0x52, 0x45, 0x50, 0x4c, 0x50, 0x4c, 0x4f, 0x47, 0x01, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0xdc, 0x2f, 0xb9, 0x5b, 0x7e, 0x4c, 0xed, 0xa6, 0x08, 0x07,
	0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x03, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55,
	0x44, 0x33, 0x22, 0x11, 0x40, 0x23, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,
	0x67, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00};

/* "hello, log" at position 0x56780, run 7, salt 0x1122334455667788. */
static const uint8_t golden_record[64] = {
	0x0a, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x80, 0x67, 0x05, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x2f, 0x1a, 0xe3, 0x16, 0x65, 0x58, 0xd0, 0xc6, 0x68, 0x65,
	0x6c, 0x6c, 0x6f, 0x2c, 0x20, 0x6c, 0x6f, 0x67, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static uint8_t area[0x100000] __attribute__((aligned(8)));

static struct logfmt_header
sample(void)
{
	return (struct logfmt_header){
		.sequence = 0x0102030405060708,
		.area_size = 0x100000,
		.salt = 0x1122334455667788,
		.head = 0x12340,
		.run_start = 0x56780,
		.run = 7,
		.kind = REPL_LOG_COUNTER,
	};
}

static void
seal(uint8_t *buf)
{
	put_le64(buf + 16, 0);
	put_le64(buf + 16, sum64(buf, LOGFMT_HEADER_SIZE));
}

static int
read_header(struct logfmt_header *h, unsigned *other, struct err *e)
{
	err_clear(e);
	return logfmt_header_read(area, 8192, sizeof(area), h, other, e);
}

static void
test_header_golden(void **state)
{
	static const uint8_t zeros[LOGFMT_HEADER_SIZE];
	struct logfmt_header h = sample();
	uint8_t buf[LOGFMT_HEADER_SIZE];

	(void)state;
	logfmt_header_encode(buf, &h);
	assert_memory_equal(buf, golden_header, sizeof(golden_header));
	assert_memory_equal(buf + 76, zeros, LOGFMT_HEADER_SIZE - 76);
}

static void
test_record_golden(void **state)
{
	static const char data[] = "hello, log";
	struct logfmt_header h = sample();
	uint64_t sum = logfmt_data_sum(&h, data, 10);
	uint64_t at = LOGFMT_RING_OFF + 0x56780;
	struct logfmt_record rec;

	(void)state;
	memset(area, 0xee, sizeof(area));
	logfmt_record_store(area, &h, 0x56780, data, 10, sum);
	assert_memory_equal(area + at, golden_record, sizeof(golden_record));
	assert_int_equal(area[at - 1], 0xee);
	assert_int_equal(area[at + 64], 0xee);
	assert_true(logfmt_record_read(area, &h, 0x56780, &rec));
	assert_int_equal(rec.len, 10);
	assert_int_equal(rec.run, 7);
	assert_memory_equal(area + rec.data.off[0], data, 10);
	/* Another place, another log, another lap: not a record. */
	assert_false(logfmt_record_read(area, &h, 0x56780 + logfmt_capacity(h.area_size), &rec));
	h.salt++;
	assert_false(logfmt_record_read(area, &h, 0x56780, &rec));
	h.salt--;
	for (unsigned i = 0; i < LOGFMT_RECORD_HEAD + 10; i++) {
		area[at + i] ^= 0x10;
		assert_false(logfmt_record_read(area, &h, 0x56780, &rec));
		area[at + i] ^= 0x10;
	}
}

/* Over the end of the ring, at each place where it can be cut. */
static void
test_record_over_the_end(void **state)
{
	struct logfmt_header h = sample();
	uint8_t data[600], back[600];
	struct logfmt_record rec;

	(void)state;
	h.area_size = AREA;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 13);
	for (unsigned before = 64; before <= 640; before += 64) {
		uint64_t position = 3 * logfmt_capacity(AREA) - before;

		logfmt_record_store(area, &h, position, data, sizeof(data),
				    logfmt_data_sum(&h, data, sizeof(data)));
		assert_true(logfmt_record_read(area, &h, position, &rec));
		logfmt_copy_out(area, &rec.data, back, sizeof(back));
		assert_memory_equal(back, data, sizeof(data));
		area[LOGFMT_RING_OFF] ^= before < 624 ? 1 : 0;
		assert_true(logfmt_record_read(area, &h, position, &rec) == (before >= 624));
	}
}

static void
test_header_copies(void **state)
{
	struct logfmt_header h = sample(), got;
	unsigned other;
	struct err e;

	(void)state;
	memset(area, 0, sizeof(area));
	assert_int_equal(read_header(&got, &other, &e), REPL_E_NOT_FOUND);
	assert_non_null(strstr(e.text, "repl_log_create"));
	h.sequence = 5;
	logfmt_header_encode(area, &h);
	assert_int_equal(read_header(&got, &other, &e), 0);
	assert_int_equal(other, 1);
	logfmt_header_encode(area + 4096, &h);
	assert_int_equal(read_header(&got, &other, &e), 0);
	assert_int_equal(other, 0);
	h.sequence = 6;
	h.head += 64;
	logfmt_header_encode(area + 4096, &h);
	assert_int_equal(read_header(&got, &other, &e), 0);
	assert_int_equal(other, 0);
	assert_memory_equal(&got, &h, sizeof(h));
	/* Any byte of the newer one damaged: the other one. Of both: damaged. */
	for (unsigned i = 0; i < LOGFMT_HEADER_SIZE; i++) {
		area[4096 + i] ^= 0x40;
		assert_int_equal(read_header(&got, &other, &e), 0);
		assert_int_equal(got.sequence, 5);
		assert_int_equal(other, 1);
		area[20] ^= 1;
		assert_int_equal(read_header(&got, &other, &e), REPL_E_CORRUPT);
		area[20] ^= 1;
		area[4096 + i] ^= 0x40;
	}
}

/*
 * A creation that was cut amid copy 1: as copy 2 is zero there never was a log. Over zeros, and
 * over what lay there before.
 */
static void
test_header_creation_cut(void **state)
{
	static const uint8_t before[] = {0, 0xee};
	struct logfmt_header h = sample(), got;
	uint8_t whole[LOGFMT_HEADER_SIZE];
	unsigned other;
	struct err e;

	(void)state;
	logfmt_header_encode(whole, &h);
	for (unsigned i = 0; i < sizeof(before); i++) {
		/* Of the fields: behind them are zeros, which are there in both. */
		for (unsigned done = 8; done < 72; done += 8) {
			memset(area, before[i], LOGFMT_PAGE);
			memset(area + LOGFMT_PAGE, 0, LOGFMT_PAGE);
			memcpy(area, whole, done);
			assert_int_equal(read_header(&got, &other, &e), REPL_E_NOT_FOUND);
			assert_non_null(strstr(e.text, "cut off: create it again"));
			/* One that was opened has copy 2: it was there. */
			for (unsigned k = 0; k < LOGFMT_HEADER_SIZE; k++) {
				area[LOGFMT_PAGE + k] = 1;
				assert_int_equal(read_header(&got, &other, &e), REPL_E_CORRUPT);
				area[LOGFMT_PAGE + k] = 0;
			}
		}
		/* Line by line, in any order. */
		for (unsigned lines = 1; lines < 15; lines += 2) {
			memset(area, before[i], LOGFMT_PAGE);
			for (unsigned k = 0; k < 4; k++)
				if (lines & 1U << k)
					memcpy(area + 64 * k, whole + 64 * k, 64);
			assert_int_equal(read_header(&got, &other, &e),
					 before[i] || !(lines & 2) ? REPL_E_NOT_FOUND : 0);
		}
	}
}

/* Field by field, with a good checksum: a hostile header says nothing that could harm. */
static void
test_header_hostile(void **state)
{
	static const struct {
		unsigned off, len;
		uint64_t value;
	} bad[] = {
		{12, 4, 512},
		{24, 8, 0},
		{24, 8, UINT64_MAX},
		{32, 8, 0},
		{32, 8, 12288},
		{32, 8, 16385},
		{32, 8, sizeof(area) + 4096},
		{32, 8, UINT64_MAX - 4095},
		{40, 4, 0},
		{40, 4, 5},
		{44, 4, 0},
		{44, 4, 32},
		{48, 8, 0},
		{56, 8, 32},
		{56, 8, 1ULL << 63},
		{64, 8, 1},
		{64, 8, UINT64_MAX - 63},
		{72, 4, 0},
		{76, 1, 1},
		{255, 1, 1},
		{8, 2, 0},
	};
	struct logfmt_header h = sample(), got;
	unsigned other;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(area, 0, 8192);
		logfmt_header_encode(area, &h);
		for (unsigned k = 0; k < bad[i].len; k++)
			area[bad[i].off + k] = (uint8_t)(bad[i].value >> 8 * k);
		seal(area);
		assert_int_equal(read_header(&got, &other, &e), REPL_E_CORRUPT);
		assert_non_null(strstr(e.text, "8192"));
	}
}

static void
test_header_newer(void **state)
{
	struct logfmt_header h = sample(), got;
	unsigned other;
	struct err e;

	(void)state;
	memset(area, 0, 8192);
	logfmt_header_encode(area, &h);
	logfmt_header_encode(area + 4096, &h);
	put_le16(area + 4096 + 8, 2);
	assert_int_equal(read_header(&got, &other, &e), 0); /* not intact: no such version */
	seal(area + 4096);
	assert_int_equal(read_header(&got, &other, &e), REPL_E_VERSION);
	assert_non_null(strstr(e.text, "version 2, this is 1"));
	assert_non_null(strstr(e.text, "update librepl"));
	/* A newer minor version may fill what is reserved here. */
	put_le16(area + 4096 + 8, 1);
	put_le16(area + 4096 + 10, 3);
	area[4096 + 100] = 9;
	seal(area + 4096);
	assert_int_equal(read_header(&got, &other, &e), 0);
}

static void
test_tail_words(void **state)
{
	(void)state;
	for (unsigned k = REPL_LOG_POINTER; k <= REPL_LOG_REGISTER; k++) {
		enum repl_log_kind kind = (enum repl_log_kind)k;
		uint64_t before = 1;
		unsigned turn;

		memset(area, 0, AREA);
		turn = logfmt_tail_turn(area, kind);
		assert_int_equal(logfmt_tail_read(area, kind), 0);
		for (uint64_t tail = 64; tail < 64 * 64; tail += 64) {
			uint64_t off = logfmt_tail_next(kind, turn);

			logfmt_tail_store(area, kind, &turn, tail);
			assert_int_equal(off % 256, 0);
			assert_in_range(off, 8192, 8192 + 9 * 256);
			/* In turn: no line twice in a row. */
			assert_true((off == before) == (kind == REPL_LOG_POINTER && tail > 64));
			assert_int_equal(logfmt_tail_read(area, kind), tail);
			before = off;
			if (tail % 640 == 0)
				turn = logfmt_tail_turn(area, kind); /* opened again */
		}
	}
}

/* Where the tail is said to be, a record must end; and no further than the ring goes. */
static void
test_scan_tails(void **state)
{
	struct logfmt_header h = sample();
	unsigned turn = 0;
	struct logscan scan;
	struct err e;

	(void)state;
	h.area_size = AREA;
	h.head = h.run_start = 0;
	h.kind = REPL_LOG_POINTER;
	memset(area, 0, AREA);
	logfmt_record_store(area, &h, 0, "abc", 3, logfmt_data_sum(&h, "abc", 3));
	logfmt_record_store(area, &h, 64, "def", 3, logfmt_data_sum(&h, "def", 3));
	for (uint64_t tail = 0; tail < 512; tail += 32) {
		err_clear(&e);
		logfmt_tail_store(area, h.kind, &turn, tail);
		if (tail % 64 == 0 && tail <= 128) {
			assert_int_equal(logscan_run(area, &h, &scan, &e), 0);
			assert_int_equal(scan.tail, tail);
			assert_int_equal(scan.records, tail / 64);
		} else {
			assert_int_equal(logscan_run(area, &h, &scan, &e), REPL_E_CORRUPT);
		}
	}
	logfmt_tail_store(area, h.kind, &turn, logfmt_capacity(AREA) + 64);
	assert_int_equal(logscan_run(area, &h, &scan, &e), REPL_E_CORRUPT);
	h.kind = REPL_LOG_CHECKSUM;
	assert_int_equal(logscan_run(area, &h, &scan, &e), 0);
	assert_int_equal(scan.tail, 128);
	/* An open has found 192: what is missing below is damage, not the end. */
	h.run_start = 192;
	h.run = 8;
	err_clear(&e);
	assert_int_equal(logscan_run(area, &h, &scan, &e), REPL_E_CORRUPT);
	assert_non_null(strstr(e.text, "128"));
}

static void
test_area_check(void **state)
{
	(void)state;
	assert_int_equal(logfmt_area_check(65536, 4096, 16384, NULL), 0);
	assert_int_equal(logfmt_area_check(65536, 4096, 61440, NULL), 0);
	assert_int_equal(logfmt_area_check(65536, 4096, 65536, NULL), REPL_E_INVAL);
	assert_int_equal(logfmt_area_check(65536, 4096, 12288, NULL), REPL_E_INVAL);
	assert_int_equal(logfmt_area_check(65536, 512, 16384, NULL), REPL_E_INVAL);
	assert_int_equal(logfmt_area_check(65536, 0, 16385, NULL), REPL_E_INVAL);
	assert_int_equal(logfmt_area_check(65536, 69632, 16384, NULL), REPL_E_INVAL);
	assert_int_equal(logfmt_area_check(65536, 8192, UINT64_MAX - 4095, NULL), REPL_E_INVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_golden),
		cmocka_unit_test(test_record_golden),
		cmocka_unit_test(test_record_over_the_end),
		cmocka_unit_test(test_header_copies),
		cmocka_unit_test(test_header_hostile),
		cmocka_unit_test(test_header_newer),
		cmocka_unit_test(test_tail_words),
		cmocka_unit_test(test_scan_tails),
		cmocka_unit_test(test_area_check),
		cmocka_unit_test(test_header_creation_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
