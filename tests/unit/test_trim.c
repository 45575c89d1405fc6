/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trimmed range becomes zero in pieces, never a byte outside it, and never after something was
 * stored there since; as a message it has the bytes of docs/PROTOCOL.md.
 */
#include "unit.h"

#include "checksum.h"
#include "clock.h"
#include "data_impl.h"
#include "le.h"

#define PAGE       4096U
#define PAGES      256U
#define RANGES_MAX 256U

/* ---- a pool that remembers what was made durable ---- */

struct pmem_map {
	uint8_t mem[PAGES * PAGE];
	uint8_t durable[PAGES * PAGE];
	bool groups, full, holeless;
	int persist_rc;
};

static struct pmem_map pool;

/* What the trims of a thread are to it. */
void
data_note_range(struct data *d, uint64_t off, uint64_t len)
{
	assert_true(d->range_count < RANGES_MAX);
	d->ranges[d->range_count++] = (struct range){.off = off, .len = len};
}

void
data_flush(struct data *d)
{
	for (size_t i = 0; i < d->range_count && !pool.persist_rc; i++)
		memcpy(pool.durable + d->ranges[i].off, pool.mem + d->ranges[i].off,
		       d->ranges[i].len);
	if (!d->failed)
		d->failed = pool.persist_rc;
	d->range_count = 0;
}

bool
data_back(const struct data *d, uint64_t off, uint64_t len)
{
	(void)off;
	(void)len;
	return !d->params.map->full;
}

void
data_space_fail(struct data *d, uint64_t off, uint64_t len)
{
	(void)off;
	(void)len;
	d->failed = REPL_E_NOSPC;
}

bool
data_back_or_fail(struct data *d, uint64_t off, uint64_t len)
{
	bool backed = data_back(d, off, len);

	if (!backed)
		data_space_fail(d, off, len);
	return backed;
}

bool
pmem_map_groups(const struct pmem_map *m)
{
	return m->groups;
}

bool
pmem_map_zero(struct pmem_map *m, uint64_t off, size_t len, bool hole)
{
	/* The kernel makes holes of whole pages. */
	assert_true(!hole || (off % PAGE == 0 && len % PAGE == 0));
	assert_true(len > 0 && off <= sizeof(m->mem) && len <= sizeof(m->mem) - off);
	assert_true(hole || !m->full);
	if (hole && m->full && m->holeless)
		return false;
	memset(m->mem + off, 0, len);
	return true;
}

/* ---- */

static struct data *
fresh(void)
{
	static struct range ranges[RANGES_MAX];
	static struct data d;

	memset(&d, 0, sizeof(d));
	memset(&pool, 0, sizeof(pool));
	memset(pool.mem, 'x', sizeof(pool.mem));
	memset(pool.durable, 'x', sizeof(pool.durable));
	d.params.map = &pool;
	d.ranges = ranges;
	return &d;
}

static void
assert_pages(const uint8_t *mem, unsigned from, unsigned to, uint8_t byte)
{
	for (size_t i = (size_t)from * PAGE; i < (size_t)to * PAGE; i++)
		if (mem[i] != byte)
			fail_msg("byte %zu is %u, not %u", i, mem[i], byte);
}

static void
add(struct data *d, unsigned page, unsigned count)
{
	data_trim_add(d, (uint64_t)page * PAGE, (uint64_t)count * PAGE);
}

static void
pieces_until_done(void **state)
{
	struct data *d = fresh();
	unsigned pieces = 0;

	(void)state;
	assert_false(data_trim_step(d, true));
	add(d, 10, 100);
	assert_pages(pool.mem, 0, PAGES, 'x');
	while (data_trim_step(d, true))
		pieces++;
	assert_in_range(pieces, 2, 100);
	assert_pages(pool.durable, 0, 10, 'x');
	assert_pages(pool.durable, 10, 110, 0);
	assert_pages(pool.durable, 110, PAGES, 'x');
	assert_int_equal(d->trim_count, 0);
}

/* Beside updates now and then, and more seldom where a piece holds them up for long. */
static void
a_busy_thread_goes_on_slowly(void **state)
{
	struct data *d = fresh();

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		pool.groups = i > 0;
		memset(pool.durable, 'x', sizeof(pool.durable));
		add(d, 0, 250);
		d->trimmed_ns = clock_now_ns();
		d->trim_took_ns = 1000 * NS_PER_S;
		assert_false(data_trim_step(d, false));
		d->trimmed_ns -= 10000 * NS_PER_S;
		assert_true(data_trim_step(d, false));
		assert_in_range(d->trim_took_ns, 1, 1000 * NS_PER_S - 1);
		while (d->trim_count > 0)
			(void)data_trim_step(d, false);
		assert_pages(pool.durable, 0, 250, 0);
		assert_pages(pool.durable, 250, PAGES, 'x');
	}
}

/* Else it would all be left to be done at once, with updates waiting for the end of it. */
static void
what_has_become_much_is_gone_on_with_sooner(void **state)
{
	struct data *d = fresh();

	(void)state;
	pool.groups = true;
	for (unsigned i = 0; i < 2; i++) {
		d->trim_count = 0;
		if (i > 0)
			d->trims[d->trim_count++] =
				(struct range){.off = UINT64_C(1) << 32, .len = UINT64_C(1) << 30};
		add(d, 0, 1);
		d->trim_took_ns = 1000 * NS_PER_S;
		d->trimmed_ns = clock_now_ns() - 2000 * NS_PER_S;
		assert_int_equal(data_trim_step(d, false), i > 0);
	}
}

static void
what_touches_is_one_trim(void **state)
{
	struct data *d = fresh();

	(void)state;
	add(d, 10, 5);
	add(d, 20, 5);
	add(d, 40, 5);
	assert_int_equal(d->trim_count, 3);
	add(d, 15, 5);
	assert_int_equal(d->trim_count, 2);
	add(d, 8, 40);
	assert_int_equal(d->trim_count, 1);
	data_trim_finish(d);
	assert_pages(pool.mem, 0, 8, 'x');
	assert_pages(pool.mem, 8, 48, 0);
	assert_pages(pool.mem, 48, PAGES, 'x');
}

static void
a_store_meets_a_finished_part(void **state)
{
	struct data *d = fresh();

	(void)state;
	add(d, 10, 10);
	data_trim_meet(d, 12 * PAGE + 4000, 200, false);
	assert_pages(pool.mem, 10, 12, 'x');
	assert_pages(pool.mem, 12, 14, 0);
	assert_pages(pool.mem, 14, 20, 'x');
	memset(pool.mem + 12 * PAGE + 4000, 's', 200);
	data_trim_finish(d);
	assert_pages(pool.mem, 10, 12, 0);
	assert_pages(pool.mem, 14, 20, 0);
	for (size_t i = 12 * PAGE; i < 14 * PAGE; i++)
		assert_int_equal(pool.mem[i],
				 i >= 12 * PAGE + 4000 && i < 12 * PAGE + 4200 ? 's' : 0);
}

/* At each place relative to the trim. */
static void
stores_all_around(void **state)
{
	(void)state;
	for (unsigned from = 0; from < 8; from++)
		for (unsigned to = from + 1; to <= 8; to++) {
			struct data *d = fresh();

			add(d, 3, 3);
			data_trim_meet(d, from * PAGE, (to - from) * PAGE, false);
			memset(pool.mem + from * PAGE, 's', (size_t)(to - from) * PAGE);
			data_trim_finish(d);
			for (unsigned p = 0; p < 8; p++) {
				bool stored = p >= from && p < to;
				uint8_t trimmed = p >= 3 && p < 6 ? 0 : 'x';

				assert_pages(pool.mem, p, p + 1, stored ? 's' : trimmed);
			}
		}
}

static void
assert_flushed(unsigned page, unsigned from, unsigned to)
{
	const uint8_t *at = pool.mem + (size_t)page * PAGE;

	for (unsigned i = 0; i < PAGE; i++)
		if (at[i] != (i >= from && i < to ? 'r' : 0))
			fail_msg("byte %u is %u", i, at[i]);
}

/* Zeroing it would destroy it; what lies beside it in its pages is not written by anybody else. */
static void
what_was_written_by_rma_stays(void **state)
{
	struct data *d = fresh();

	(void)state;
	d->params.hole = true;
	add(d, 10, 10);
	memset(pool.mem + 15 * PAGE + 64, 'r', 64);
	memset(pool.mem + 16 * PAGE + 64, 'r', PAGE);
	data_trim_meet(d, 15 * PAGE + 64, 64, true);
	data_trim_meet(d, 16 * PAGE + 64, PAGE, true);
	data_flush(d);
	assert_pages(pool.durable, 18, PAGES, 'x');
	data_trim_finish(d);
	data_flush(d);
	assert_pages(pool.mem, 10, 15, 0);
	assert_flushed(15, 64, 128);
	assert_flushed(16, 64, PAGE);
	assert_flushed(17, 0, 64);
	assert_pages(pool.mem, 18, 20, 0);
	assert_memory_equal(pool.durable + 17 * PAGE + 64, pool.mem + 17 * PAGE + 64, PAGE - 64);
}

/* The named page beside them has been written, so they are not: they are in a hole. */
static void
a_hole_in_a_flushed_page_needs_no_space(void **state)
{
	struct data *d = fresh();

	(void)state;
	pool.full = true;
	add(d, 10, 10);
	data_trim_meet(d, 15 * PAGE, 64, true);
	assert_pages(pool.mem, 15, 16, 'x');
	assert_int_equal(d->range_count, 0);
}

/* Where blocks are shared, what is stored takes space, and to touch it without is a SIGBUS. */
static void
full_disk_ends_a_trim(void **state)
{
	struct data *d = fresh();

	(void)state;
	pool.full = true;
	add(d, 10, 10);
	(void)data_trim_step(d, true);
	assert_int_equal(d->failed, REPL_E_NOSPC);
	assert_int_equal(d->range_count, 0);
	/* To be made holes takes none. */
	d = fresh();
	pool.full = d->params.hole = true;
	add(d, 10, 10);
	data_trim_finish(d);
	assert_int_equal(d->failed, 0);
	assert_pages(pool.mem, 10, 20, 0);
	/* Where they can't be, after all. */
	d = fresh();
	pool.full = pool.holeless = d->params.hole = true;
	add(d, 10, 10);
	(void)data_trim_step(d, true);
	assert_int_equal(d->failed, REPL_E_NOSPC);
	assert_int_equal(d->range_count, 0);
}

/* Up to the trim, and no further. */
static void
a_flush_zeroes_nothing_beside_a_trim(void **state)
{
	struct data *d = fresh();

	(void)state;
	add(d, 10, 2);
	data_trim_meet(d, 9 * PAGE + 64, 3 * PAGE, true);
	data_trim_finish(d);
	assert_pages(pool.mem, 0, PAGES, 'x');
}

static void
too_many_are_done_at_once(void **state)
{
	struct data *d = fresh();

	(void)state;
	for (unsigned i = 0; i < DATA_TRIMS_MAX; i++)
		add(d, 3 * i, 2);
	assert_int_equal(d->trim_count, DATA_TRIMS_MAX);
	assert_pages(pool.mem, 0, PAGES, 'x');
	add(d, 3 * DATA_TRIMS_MAX, 3);
	assert_int_equal(d->trim_count, DATA_TRIMS_MAX);
	/* One cut in two has no place for its second half. */
	data_trim_meet(d, (3 * DATA_TRIMS_MAX + 1) * PAGE, 8, false);
	assert_int_equal(d->trim_count, DATA_TRIMS_MAX);
	assert_pages(pool.mem, 3 * DATA_TRIMS_MAX + 1, 3 * DATA_TRIMS_MAX + 3, 0);
	data_trim_finish(d);
	for (unsigned i = 0; i < DATA_TRIMS_MAX; i++) {
		assert_pages(pool.mem, 3 * i, 3 * i + 2, 0);
		assert_pages(pool.mem, 3 * i + 2, 3 * i + 3, 'x');
	}
}

static void
the_end_finishes(void **state)
{
	struct data *d = fresh();

	(void)state;
	add(d, 0, 128);
	add(d, 200, 8);
	data_trim_end(d);
	assert_pages(pool.durable, 0, 128, 0);
	assert_pages(pool.durable, 200, 208, 0);
	assert_int_equal(d->trim_count, 0);
}

/* Who has trimmed terabytes and gone must not keep the pool. */
static void
lanes_that_end_wait_for_no_trim(void **state)
{
	struct data *d = fresh();

	(void)state;
	add(d, 0, 128);
	d->stop = true;
	assert_false(data_trim_finish(d));
	assert_pages(pool.mem, 0, PAGES, 'x');
	d->stop = false;
	add(d, 0, 128);
	assert_true(data_trim_finish(d));
	assert_pages(pool.mem, 0, 128, 0);
}

static void
a_failed_device_ends_it(void **state)
{
	struct data *d = fresh();

	(void)state;
	pool.persist_rc = REPL_E_IO;
	add(d, 0, 128);
	assert_true(data_trim_step(d, true));
	assert_int_equal(d->failed, REPL_E_IO);
	data_trim_end(d);
	assert_int_equal(d->trim_count, 0);
}

/* ---- the message ---- */

static const uint8_t golden[] = {
	/* header */
	0x52,
	0x50,
	0x4c,
	0x31,
	0x01,
	0x01,
	0x02,
	0x00,
	0x08,
	0x07,
	0x06,
	0x05,
	0x04,
	0x03,
	0x02,
	0x01,
	0x00,
	0x00,
	0x00,
	0x00,
	0x09,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	/* TRIM of 0x3000 bytes at 0x12345000 */
	0x00,
	0x50,
	0x34,
	0x12,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x30,
	0x00,
	0x00,
	0x06,
	0x00,
	0x00,
	0x00,
	/* all are finished */
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x00,
	0x06,
	0x00,
	0x00,
	0x00,
};

static void
seal(uint8_t *msg)
{
	put_le64(msg + 24, sum64_seeded(msg, 24, sum64(msg + 32, sizeof(golden) - 32)));
}

static void
has_golden_bytes(void **state)
{
	static const struct wire_entry entries[] = {
		{.off = 0x12345000, .len = 0x3000, .op = WIRE_OP_TRIM},
		{.op = WIRE_OP_TRIM},
	};
	struct wire_commit_view v;
	struct wire_commit c;
	uint8_t buf[256], want[sizeof(golden)];

	(void)state;
	wire_commit_begin(&c, buf, sizeof(buf), 4);
	wire_commit_add(&c, &entries[0], NULL);
	wire_commit_add(&c, &entries[1], NULL);
	assert_int_equal(wire_commit_end(&c, 0x0102030405060708, 9), sizeof(golden));
	memcpy(want, golden, sizeof(want));
	seal(want);
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(wire_commit_decode(want, sizeof(want), 0x12348000, &v, NULL), 0);
}

static void
sealed_lies_are_refused(void **state)
{
	static const struct {
		unsigned at, len;
		uint64_t value;
		const char *text;
	} lies[] = {
		{32, 8, 0x12345001, "whole pages"},
		{32, 8, 0x12345800, "whole pages"},
		{40, 4, 0x3001, "whole pages"},
		{40, 4, 0, "whole pages"},
		{32, 8, 0x12346000, "leaves"},
		{40, 4, 0xfffff000, "leaves"},
		{32, 8, UINT64_MAX - 4095, "leaves"},
		{48, 8, 4096, "whole pages"},
		{45, 1, 1, "reserved"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct wire_commit_view v = {.seq = 1};
		uint8_t msg[sizeof(golden)];
		struct err e;

		memcpy(msg, golden, sizeof(msg));
		for (unsigned k = 0; k < lies[i].len; k++)
			msg[lies[i].at + k] = (uint8_t)(lies[i].value >> 8 * k);
		seal(msg);
		if (wire_commit_decode(msg, sizeof(msg), 0x12348000, &v, &e) != REPL_E_PROTOCOL ||
		    !strstr(e.text, lies[i].text) || v.seq != 1)
			fail_msg("lie %zu: '%s'", i, e.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_until_done),
		cmocka_unit_test(a_busy_thread_goes_on_slowly),
		cmocka_unit_test(what_has_become_much_is_gone_on_with_sooner),
		cmocka_unit_test(what_touches_is_one_trim),
		cmocka_unit_test(a_store_meets_a_finished_part),
		cmocka_unit_test(stores_all_around),
		cmocka_unit_test(what_was_written_by_rma_stays),
		cmocka_unit_test(a_hole_in_a_flushed_page_needs_no_space),
		cmocka_unit_test(full_disk_ends_a_trim),
		cmocka_unit_test(a_flush_zeroes_nothing_beside_a_trim),
		cmocka_unit_test(too_many_are_done_at_once),
		cmocka_unit_test(the_end_finishes),
		cmocka_unit_test(lanes_that_end_wait_for_no_trim),
		cmocka_unit_test(a_failed_device_ends_it),
		cmocka_unit_test(has_golden_bytes),
		cmocka_unit_test(sealed_lies_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
