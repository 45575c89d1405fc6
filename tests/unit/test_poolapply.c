/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever ranges the messages of a journal bring, a pool ends as if they had been copied one after
 * the other; all of that was synced before the end is told; and of messages that are not those
 * that were committed nothing is called done.
 *
 * test_poolapply SEED [COUNT] repeats a run.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "poolapply.h"
#include "tempdir.h"
#include "wire.h"

#define PAGE     4096U
#define SIZE     (4U << 20)
#define MESSAGES 64U
#define MESSAGE  (128U << 10)
#define FRONT    (2U * PAGE) /* of the journal's file */
#define EPOCH    7U

static char dir[TEMPDIR_MAX];
static int journal, pool_fd;
static struct pmem_map *map;
static uint8_t *model, *msg;
static struct journal_commit is;
static uint64_t seed = 1, count = 40, random_state;
static struct err err;

/* What of the pool is synced, a flag a page; and whether syncs fail. */
static _Atomic uint8_t synced[SIZE / PAGE];
static _Atomic bool sync_fails;

int msync(void *addr, size_t len, int flags);

int
msync(void *addr, size_t len, int flags)
{
	size_t off = (size_t)((uint8_t *)addr - (uint8_t *)pmem_map_addr(map));

	if (sync_fails) {
		errno = EIO;
		return -1;
	}
	for (size_t at = off / PAGE; at < SIZE / PAGE && at * PAGE < off + len; at++)
		synced[at] = 1;
	return (int)syscall(SYS_msync, addr, len, flags);
}

static uint32_t
draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005U + 1442695040888963407U;
	return (uint32_t)(random_state >> 33) % below;
}

/* One more message: some ranges from *at on, or anywhere. */
static void
message_add(uint32_t *at, bool rising)
{
	uint32_t entries = 1 + draw(8);
	struct wire_commit c;
	uint8_t bytes[16384];
	size_t len;

	wire_commit_begin(&c, msg, MESSAGE, entries);
	for (uint32_t i = 0; i < entries; i++) {
		struct wire_entry en = {.op = WIRE_OP_COPY, .len = 1 + draw(sizeof(bytes))};

		if (*at >= SIZE - sizeof(bytes))
			*at = 0;
		en.off = rising ? *at + draw(PAGE) : draw(SIZE - sizeof(bytes));
		if (en.off + en.len > SIZE)
			en.off = SIZE - en.len;
		*at = (uint32_t)en.off + en.len;
		memset(bytes, (int)draw(256), en.len);
		wire_commit_add(&c, &en, bytes);
		memcpy(model + en.off, bytes, en.len);
		for (uint64_t p = en.off / PAGE; p * PAGE < en.off + en.len; p++)
			synced[p] = 0;
	}
	len = wire_stage_end(&c, is.count + 1, EPOCH);
	assert_int_equal(pwrite(journal, msg, len, (off_t)(FRONT + is.bytes)), len);
	is.chain = wire_stage_chain(is.chain, msg);
	is.bytes += len;
	is.count++;
}

/* As several lanes bring a pass: each message has its place, and they come in any order. */
static void
pass_mixed(void)
{
	uint32_t place[MESSAGES / 2], room = SIZE / (MESSAGES / 2);

	for (unsigned i = 0; i < MESSAGES / 2; i++)
		place[i] = i * room;
	for (unsigned i = 0; i < MESSAGES / 2; i++) {
		unsigned other = i + draw(MESSAGES / 2 - i);
		uint32_t at = place[other];

		place[other] = place[i];
		message_add(&at, true);
	}
}

/* Passes that rise, now and then a message that lies anywhere; or two that are mixed. */
static void
journal_new(void)
{
	uint32_t at = 0;

	memset(&is, 0, sizeof(is));
	is.epoch = EPOCH;
	for (unsigned i = 0; i < SIZE / PAGE; i++)
		synced[i] = 1;
	if (draw(2)) {
		pass_mixed();
		pass_mixed();
		return;
	}
	for (unsigned i = 0; i < MESSAGES; i++)
		message_add(&at, draw(6) != 0);
}

static int
apply(uint64_t max)
{
	struct poolapply *a = NULL;
	int rc = 0;

	err_clear(&err);
	assert_int_equal(poolapply_new(journal, FRONT, &is, &a, &err), 0);
	while (!rc && poolapply_done(a) < is.bytes) {
		uint64_t before = poolapply_done(a);

		rc = poolapply_run(a, map, max, &err);
		assert_true(rc || poolapply_done(a) > before);
	}
	/* What has failed stays so. */
	if (rc)
		assert_int_equal(poolapply_run(a, map, max, &err), rc);
	poolapply_free(a);
	return rc;
}

static int
setup_at(bool on_disk)
{
	assert_int_equal(tempdir_new(dir, on_disk), 0);
	journal = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	pool_fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	assert_true(journal >= 0 && pool_fd >= 0);
	assert_int_equal(ftruncate(pool_fd, SIZE), 0);
	assert_int_equal(pmem_map_new(pool_fd, "pool", SIZE, true, &map, &err), 0);
	model = calloc(1, SIZE);
	msg = malloc(MESSAGE);
	assert_true(model && msg);
	random_state = seed;
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	return setup_at(false);
}

static int
setup_disk(void **state)
{
	(void)state;
	return setup_at(true);
}

static int
teardown(void **state)
{
	(void)state;
	sync_fails = false;
	pmem_map_free(map);
	(void)close(journal);
	(void)close(pool_fd);
	free(model);
	free(msg);
	tempdir_free(dir);
	return 0;
}

static void
test_as_one_after_the_other(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < count; i++) {
		journal_new();
		assert_int_equal(apply(draw(2) ? UINT64_MAX : 1 + draw(2U << 20)), 0);
		assert_memory_equal(pmem_map_addr(map), model, SIZE);
		for (unsigned p = 0; pmem_map_groups(map) && p < SIZE / PAGE; p++)
			assert_int_equal(synced[p], 1);
	}
}

/* A flipped bit anywhere, a message too few, an order that is another one, an older epoch. */
static void
test_what_was_not_committed(void **state)
{
	uint8_t byte;
	off_t at;

	(void)state;
	for (uint64_t i = 0; i < count; i++) {
		journal_new();
		at = (off_t)(FRONT + draw((uint32_t)is.bytes));
		assert_int_equal(pread(journal, &byte, 1, at), 1);
		byte ^= (uint8_t)(1U << draw(8));
		assert_int_equal(pwrite(journal, &byte, 1, at), 1);
		assert_int_equal(apply(1 + draw(4U << 20)), REPL_E_CORRUPT);
	}
	journal_new();
	is.count++;
	assert_int_equal(apply(UINT64_MAX), REPL_E_CORRUPT);
	journal_new();
	is.bytes -= 1;
	assert_int_equal(apply(UINT64_MAX), REPL_E_CORRUPT);
	journal_new();
	is.bytes += 32;
	assert_int_equal(apply(UINT64_MAX), REPL_E_CORRUPT);
	journal_new();
	is.chain++;
	assert_int_equal(apply(UINT64_MAX), REPL_E_CORRUPT);
	journal_new();
	is.epoch++;
	assert_int_equal(apply(UINT64_MAX), REPL_E_CORRUPT);
}

static void
message_put(uint64_t off, uint8_t byte, struct wire_commit *c)
{
	struct wire_entry en = {.op = WIRE_OP_COPY, .off = off, .len = PAGE};
	uint8_t bytes[PAGE];

	memset(bytes, byte, PAGE);
	wire_commit_add(c, &en, bytes);
}

/* A local replica gets what the messages bring, not all that lies between. */
static void
test_a_copy_is_left_alone_between(void **state)
{
	uint64_t last = SIZE - PAGE, between = SIZE / 2;
	struct pmem_map *copy;
	struct wire_commit c;
	uint8_t *at;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(pmem_map_new(fd, "copy", SIZE, true, &copy, &err), 0);
	assert_int_equal(pmem_map_add_copy(map, copy, &err), 0);
	at = pmem_map_addr(copy);
	at[between] = 1;
	memset(&is, 0, sizeof(is));
	is.epoch = EPOCH;
	is.count = 1;
	wire_commit_begin(&c, msg, MESSAGE, 2);
	message_put(0, 2, &c);
	message_put(last, 3, &c);
	is.bytes = wire_stage_end(&c, 1, EPOCH);
	is.chain = wire_stage_chain(0, msg);
	assert_int_equal(pwrite(journal, msg, is.bytes, FRONT), is.bytes);
	assert_int_equal(apply(UINT64_MAX), 0);
	assert_memory_equal(at, pmem_map_addr(map), PAGE);
	assert_memory_equal(at + last, (uint8_t *)pmem_map_addr(map) + last, PAGE);
	assert_int_equal(at[0], 2);
	assert_int_equal(at[last], 3);
	assert_int_equal(at[between], 1);
	(void)close(fd);
}

/* As many ranges as can be, more of them than are remembered. */
static void
test_many_ranges(void **state)
{
	uint64_t off = 0;
	struct wire_commit c;

	(void)state;
	memset(&is, 0, sizeof(is));
	is.epoch = EPOCH;
	memset(synced, 0, sizeof(synced));
	for (uint8_t byte = 1; off < SIZE; byte = (uint8_t)(byte % 255 + 1)) {
		size_t len;

		wire_commit_begin(&c, msg, MESSAGE, WIRE_ENTRIES_MAX);
		for (unsigned i = 0; i < WIRE_ENTRIES_MAX; i++, off += 64) {
			struct wire_entry en = {.op = WIRE_OP_COPY, .off = off, .len = 64};

			memset(model + off, byte, 64);
			wire_commit_add(&c, &en, model + off);
		}
		len = wire_stage_end(&c, is.count + 1, EPOCH);
		assert_int_equal(pwrite(journal, msg, len, (off_t)(FRONT + is.bytes)), len);
		is.chain = wire_stage_chain(is.chain, msg);
		is.bytes += len;
		is.count++;
	}
	assert_int_equal(apply(UINT64_MAX), 0);
	assert_memory_equal(pmem_map_addr(map), model, SIZE);
	for (unsigned p = 0; pmem_map_groups(map) && p < SIZE / PAGE; p++)
		assert_int_equal(synced[p], 1);
}

static void
test_a_sync_fails(void **state)
{
	(void)state;
	if (!pmem_map_groups(map))
		skip();
	journal_new();
	sync_fails = true;
	assert_int_equal(apply(UINT64_MAX), REPL_E_IO);
}

/* Only the entries that are at hand. */
static void
test_peek(void **state)
{
	struct wire_commit_view v;
	uint32_t at = 0;
	size_t whole;

	(void)state;
	memset(&is, 0, sizeof(is));
	message_add(&at, true);
	assert_true(wire_stage_peek(msg, (size_t)is.bytes, &v));
	whole = WIRE_HEADER_SIZE + (size_t)v.entry_count * WIRE_ENTRY_SIZE;
	assert_true(wire_stage_peek(msg, whole, &v));
	assert_false(wire_stage_peek(msg, whole - 1, &v));
	assert_false(wire_stage_peek(msg, WIRE_HEADER_SIZE - 1, &v));
	msg[0] ^= 1;
	assert_false(wire_stage_peek(msg, whole, &v));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_as_one_after_the_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_as_one_after_the_other, setup_disk, teardown),
		cmocka_unit_test_setup_teardown(test_what_was_not_committed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_copy_is_left_alone_between, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_copy_is_left_alone_between, setup_disk,
						teardown),
		cmocka_unit_test_setup_teardown(test_many_ranges, setup_disk, teardown),
		cmocka_unit_test_setup_teardown(test_a_sync_fails, setup_disk, teardown),
		cmocka_unit_test_setup_teardown(test_peek, setup, teardown),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		count = strtoull(argv[2], NULL, 10);
	(void)printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
