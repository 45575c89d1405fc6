/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The space of a journal: kept a while for the next one, then given back, in pieces that hold
 * nobody up. Where it is memory, it and that of pools meet what others take of it meanwhile.
 */
#include "unit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clock.h"
#include "journal_world.h"
#include "poolposition.h"
#include "poolring.h"
#include "roundlog.h"

#define MIB (1ULL << 20)

int ftruncate(int fd, off_t size);
int fallocate(int fd, int mode, off_t off, off_t len);

/* Of a file system that is slow to give space back. */
static uint64_t truncation_ns, late_ns;
static unsigned truncations;
static uint64_t cut_most; /* by one call */

static void
cut_note(int fd, uint64_t from, uint64_t len)
{
	struct stat st;
	uint64_t most;

	assert_int_equal(fstat(fd, &st), 0);
	most = (uint64_t)st.st_size > from ? (uint64_t)st.st_size - from : 0;
	most = most < len ? most : len;
	cut_most = most > cut_most ? most : cut_most;
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (rc == 0 && id == CLOCK_MONOTONIC) {
		uint64_t ns = (uint64_t)ts->tv_nsec + late_ns;

		ts->tv_sec += (time_t)(ns / NS_PER_S);
		ts->tv_nsec = (long)(ns % NS_PER_S);
	}
	return rc;
}

int
ftruncate(int fd, off_t size)
{
	late_ns += truncation_ns;
	truncations++;
	cut_note(fd, (uint64_t)size, UINT64_MAX);
	return (int)syscall(SYS_ftruncate, fd, size);
}

/* Space that is memory, of which the control groups leave so much. */
static bool in_memory;
static uint64_t memory_room = UINT64_MAX;
static unsigned memory_others; /* who take as much of it as is taken here */
static bool memory_exceeded;

static void
memory_take(uint64_t len)
{
	uint64_t all = len * (1 + memory_others);

	memory_exceeded |= all > memory_room;
	memory_room -= all < memory_room ? all : memory_room;
}

static void
memory_end(void)
{
	in_memory = memory_exceeded = false;
	memory_room = UINT64_MAX;
	memory_others = 0;
}

int
fallocate(int fd, int mode, off_t off, off_t len)
{
	if (mode & FALLOC_FL_PUNCH_HOLE)
		cut_note(fd, (uint64_t)off, (uint64_t)len);
	else if (in_memory)
		memory_take((uint64_t)len);
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
uint64_t __wrap_memroom_bytes(void);

int
__wrap_fstatfs(int fd, struct statfs *fs)
{
	int rc = __real_fstatfs(fd, fs);

	if (in_memory)
		fs->f_type = TMPFS_MAGIC;
	return rc;
}

uint64_t
__wrap_memroom_bytes(void)
{
	return memory_room;
}

static int
setup(void **state)
{
	(void)state;
	memory_end();
	return world_new(0, SIZE);
}

/* The next one, if only smaller, is written over it: it costs much to have it anew. */
static void
test_its_space_is_kept_a_while(void **state)
{
	uint64_t size, now_ns = clock_now_ns();
	struct pool *p;

	(void)state;
	pool_old();
	p = writer();
	assert_true(pool_journal_tidy_at(p) <= now_ns);
	assert_false(pool_journal_tidy(p));
	assert_int_equal(pool_journal_tidy_at(p), UINT64_MAX);
	stage_all(p);
	assert_int_equal(pool_journal_tidy_at(p), UINT64_MAX);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	size = file_size("p.repl");
	assert_in_range(pool_journal_tidy_at(p), now_ns + NS_PER_S, now_ns + 60 * NS_PER_S);
	assert_int_equal(pool_journal_begin(p, PAGE, &err), 0);
	assert_int_equal(file_size("p.repl"), size);
	assert_int_equal(pool_journal_tidy_at(p), UINT64_MAX);
	stage_all(p);
	assert_int_equal(file_size("p.repl"), size);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(seen(), 1);
}

/* Not that of one that is open, and not by who has found the pool busy. */
static void
test_its_space_is_given_back(void **state)
{
	struct pool *p, *q = NULL;
	int fd;

	(void)state;
	pool_old();
	p = writer();
	stage_all(p);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_true(file_size("p.repl") > SIDECAR_SIZE);
	stage_all(p);
	assert_false(pool_journal_tidy(p));
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "second", &q, &err), REPL_E_BUSY);
	assert_true(file_size("p.repl") > SIDECAR_SIZE);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	apply_all(p, 1);
	while (pool_journal_tidy(p))
		;
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
	stage_all(p);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
	/* Of a writer that was killed. */
	fd = file_open("p.repl");
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	/* A copy that is in doubt may name it. */
	p = writer();
	assert_int_equal(pwrite(fd, "damage", 6, 4096 + 32), 6);
	(void)close(fd);
	assert_false(pool_journal_tidy(p));
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(file_size("p.repl"), 1 << 20);
	p = writer();
	while (pool_journal_tidy(p))
		;
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(seen(), 1);
}

/* Of one that is huge not all before a closing, or an opening behind a kill, is answered. */
static void
test_its_space_holds_nobody_up(void **state)
{
	const uint64_t huge = 100ULL << 26;
	struct pool *p;
	int fd;

	(void)state;
	pool_old();
	fd = file_open("p.repl");
	p = writer();
	assert_int_equal(ftruncate(fd, (off_t)huge), 0);
	truncation_ns = NS_PER_S / 5;
	truncations = 0;
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_in_range(truncations, 1, 10);
	assert_true(file_size("p.repl") > SIDECAR_SIZE && file_size("p.repl") < huge);
	/* A dead writer's, which is dropped. */
	p = writer();
	stage_all(p);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(ftruncate(fd, (off_t)huge), 0);
	truncations = 0;
	p = writer();
	assert_in_range(truncations, 1, 10);
	assert_true(file_size("p.repl") > SIDECAR_SIZE && file_size("p.repl") < huge);
	assert_int_equal(pool_close(p, true, &err), 0);
	truncation_ns = 0;
	p = writer();
	while (pool_journal_tidy(p))
		;
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
	(void)close(fd);
}

/* A little is had of what is kept for processes, and not a little after the other. */
static void
test_little_by_little_is_much(void **state)
{
	static uint8_t filled[1 << 20];
	struct pool *p;
	int fd;

	(void)state;
	pool_old();
	fd = file_open("p.repl");
	p = writer();
	in_memory = true;
	memory_room = 0;
	assert_int_equal(pool_journal_begin(p, sizeof(filled) - 4 * PAGE, &err), 0);
	assert_int_equal(pwrite(fd, filled, sizeof(filled) - 4 * PAGE,
				(off_t)pool_get_info(p)->meta.journal_off + 2 * PAGE),
			 sizeof(filled) - 4 * PAGE);
	assert_int_equal(pool_journal_begin(p, sizeof(filled) + PAGE, &err), REPL_E_NOSPC);
	memory_room = 16 * PAGE;
	assert_int_equal(pool_journal_begin(p, sizeof(filled) + PAGE, &err), 0);
	memory_end();
	assert_int_equal(pool_close(p, true, &err), 0);
	(void)close(fd);
}

/* Two that have room each by itself, and not together: the kernel would end somebody. */
static void
test_others_take_memory_as_a_pool_is_made(void **state)
{
	struct pool *p;

	(void)state;
	in_memory = true;
	memory_others = 1;
	memory_room = 24 * MIB;
	assert_int_equal(pool_create(store, "q", 16 * MIB, NULL, false, &info, &err), REPL_E_NOSPC);
	assert_false(memory_exceeded);
	assert_int_equal(pool_info(store, "q", &info, &err), REPL_E_NOT_FOUND);
	/* And it is not refused for what it has itself. */
	memory_others = 0;
	memory_room = 16 * MIB;
	assert_int_equal(pool_create(store, "q", 16 * MIB, NULL, false, &info, &err), 0);
	assert_int_equal(pool_open(store, "q", POOL_WRITE, "writer", &p, &err), 0);
	memory_others = 1;
	memory_room = 24 * MIB;
	assert_int_equal(pool_grow_space(p, 32 * MIB, &err), REPL_E_NOSPC);
	assert_false(memory_exceeded);
	assert_int_equal(file_size("q"), 16 * MIB);
	memory_others = 0;
	memory_room = 16 * MIB;
	assert_int_equal(pool_grow_space(p, 32 * MIB, &err), 0);
	memory_end();
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* Messages until it is full or refused; kept: they have their memory from one before. */
static int
journal_fill(struct pool *p, bool kept)
{
	const uint64_t room = pool_get_info(p)->meta.journal_len - JOURNAL_DATA;
	uint8_t msg[3 * PAGE];
	size_t len = message(msg, 0, pool_get_info(p)->meta.epoch);
	int rc = 0;

	for (uint64_t bytes = len; !rc && bytes <= room; bytes += len) {
		rc = pooljournal_append(pool_journal(p), msg, len, &err);
		if (!rc && !kept)
			memory_take(len);
	}
	return rc;
}

/* What it was granted at its beginning is taken later, as others take theirs. */
static void
test_others_take_memory_as_a_journal_is_filled(void **state)
{
	const uint64_t bytes = 36 * MIB;
	struct pool *p;

	(void)state;
	pool_old();
	p = writer();
	in_memory = true;
	memory_others = 1;
	memory_room = bytes + MIB;
	assert_int_equal(pool_journal_begin(p, bytes, &err), 0);
	assert_int_equal(journal_fill(p, false), REPL_E_NOSPC);
	assert_false(memory_exceeded);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), REPL_E_NOSPC);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	while (pool_journal_tidy(p))
		;
	/* And it is not refused for what it has itself, or has from one before. */
	memory_others = 0;
	for (unsigned kept = 0; kept < 2; kept++) {
		memory_room = kept ? 4 * PAGE : bytes + MIB;
		assert_int_equal(pool_journal_begin(p, bytes, &err), 0);
		assert_int_equal(journal_fill(p, kept), 0);
		assert_false(memory_exceeded);
		assert_int_equal(pool_journal_drop(p, &err), 0);
	}
	memory_end();
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(seen(), 0);
}

/* Into the holes of a sparse pool goes what is staged no more, and finds the journal's space free.
 */
static void
test_what_goes_into_holes_finds_space_or_is_told(void **state)
{
	struct pool *p;
	uint64_t staged;

	(void)state;
	assert_int_equal(pool_create(store, "q", 16 * MIB, NULL, true, &info, &err), 0);
	assert_int_equal(pool_open(store, "q", POOL_WRITE, "writer", &p, &err), 0);
	in_memory = true;
	memory_room = 12 * MIB - 1;
	assert_int_equal(pool_journal_spare(p, 12 * MIB, &err), REPL_E_NOSPC);
	memory_room = 12 * MIB;
	assert_int_equal(pool_journal_spare(p, 12 * MIB, &err), 0);
	assert_int_equal(pool_journal_begin(p, 4 * MIB, &err), 0);
	assert_int_equal(journal_fill(p, false), 0);
	assert_false(pooljournal_is_told(pool_journal(p), &staged));
	assert_in_range(staged, 3 * MIB, 4 * MIB);
	memory_room = 12 * MIB - 2 * staged - 1;
	assert_int_equal(pool_journal_spare(p, 12 * MIB, &err), REPL_E_NOSPC);
	memory_room++;
	assert_int_equal(pool_journal_spare(p, 12 * MIB, &err), 0);
	assert_int_equal(pool_journal_spare(p, 2 * staged, &err), 0);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_int_equal(pool_journal_spare(p, 12 * MIB, &err), REPL_E_NOSPC);
	memory_room = 0;
	assert_int_equal(pool_close(p, true, &err), 0);
	/* Of another one it is there. */
	pool_old();
	p = writer();
	assert_int_equal(pool_journal_spare(p, 12 * MIB, &err), 0);
	memory_end();
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* Nor was it asked for since by who goes on with one. */
static void
test_others_have_taken_memory_as_a_journal_is_resumed(void **state)
{
	struct journal_kept kept[JOURNAL_KEPT_MIN];
	struct pmem_map *map = NULL;
	bool resumed, more = true;
	uint64_t bytes;
	struct pool *p;
	unsigned count;

	(void)state;
	pool_old();
	p = writer_resuming();
	assert_int_equal(pool_journal_begin(p, 4 * MIB, &err), 0);
	stage_some(p, 0, MESSAGES, 'n');
	assert_int_equal(pool_close(p, false, &err), 0);
	p = writer_resuming();
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	assert_int_equal(pool_journal_resume(p, 4 * MIB, &resumed, &err), 0);
	assert_true(resumed);
	while (more)
		assert_int_equal(pool_journal_kept(p, map, &kept_key, kept, JOURNAL_KEPT_MIN,
						   &count, &bytes, &more, &err),
				 0);
	in_memory = true;
	memory_room = 0;
	assert_int_equal(journal_fill(p, false), REPL_E_NOSPC);
	assert_false(memory_exceeded);
	memory_end();
	assert_int_equal(pool_journal_drop(p, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(seen(), 0);
}

static uint8_t
byte_at(int fd, uint64_t off)
{
	uint8_t byte = 1;

	(void)!pread(fd, &byte, 1, (off_t)off);
	return byte;
}

/* Of what was there nothing is where it comes to, which it has not written. */
static void
journal_over(struct pool *p, int fd, uint64_t piece)
{
	const struct sidecar *meta = &pool_get_info(p)->meta;
	const uint8_t old = 0xff;
	uint64_t off = SIDECAR_SIZE + meta->log_len + meta->position_len;
	uint64_t first = off + piece - 1, second = first + piece;
	uint8_t msg[3 * PAGE];
	size_t len = message(msg, 0, meta->epoch);

	assert_int_equal(pwrite(fd, &old, 1, (off_t)first), 1);
	assert_int_equal(pwrite(fd, &old, 1, (off_t)second), 1);
	assert_int_equal(pool_journal_begin(p, 2 * piece, &err), 0);
	assert_int_equal(meta->journal_off, off);
	assert_int_equal(byte_at(fd, first), 0);
	assert_int_equal(byte_at(fd, second), old);
	for (uint64_t bytes = 0; bytes < piece; bytes += len)
		assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
	assert_int_equal(byte_at(fd, second), 0);
	assert_int_equal(pool_journal_drop(p, &err), 0);
}

/* Nor before a region is there for what comes first, whose own bytes are none of that. */
static void
test_its_space_holds_no_region_up(void **state)
{
	const uint64_t huge = 100ULL << 26, piece = 1ULL << 26;
	const struct ring_geometry ring = {.lanes = 1, .slots = 2, .slot_size = PAGE};
	int fd;

	(void)state;
	pool_old();
	fd = file_open("p.repl");
	for (unsigned pass = 0; pass < 8; pass++) {
		struct pmem_map *map = NULL;
		struct roundlog *log = NULL;
		struct poolposition *record = NULL;
		struct poolring *deposits = NULL;
		struct pool *p = writer();

		assert_int_equal(pool_map(p, true, &map, &err), 0);
		assert_int_equal(ftruncate(fd, (off_t)huge), 0);
		cut_most = 0;
		if (pass / 2 == 0)
			assert_int_equal(pool_log_make(p, map, &log, &err), 0);
		else if (pass / 2 == 1)
			assert_int_equal(pool_record_make(p, &record, &err), 0);
		else if (pass / 2 == 2)
			assert_int_equal(pool_ring_make(p, &ring, &deposits, &err), 0);
		if (!deposits)
			journal_over(p, fd, piece);
		assert_int_equal(file_size("p.repl"), huge);
		assert_in_range(cut_most, 1, piece);
		/* In order, or behind the back of who opens it next. */
		if (pass % 2) {
			assert_int_equal(pool_log_end(p, log, false, &err), 0);
			assert_int_equal(pool_record_end(p, record, &err), 0);
			assert_int_equal(pool_ring_end(p, deposits, map, false, &err), 0);
		} else {
			(void)roundlog_end(log, true, NULL);
			poolposition_free(record);
			poolring_free(deposits);
		}
		assert_int_equal(pool_close(p, pass % 2, &err), 0);
		pmem_map_free(map);
		p = writer();
		while (pool_journal_tidy(p))
			;
		assert_int_equal(pool_close(p, true, &err), 0);
		assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
		assert_in_range(cut_most, 1, piece);
	}
	(void)close(fd);
}

/* Nor is one that goes on held up by what is behind what it has; or that begins anew given that. */
static void
test_its_space_holds_no_resuming_up(void **state)
{
	const uint64_t huge = 100ULL << 26, piece = 1ULL << 26;
	const uint8_t old = 0xff;
	struct journal_kept kept[JOURNAL_KEPT_MIN];
	struct pmem_map *map = NULL;
	bool resumed, more = true;
	uint64_t bytes, off;
	struct pool *p;
	unsigned count;
	int fd;

	(void)state;
	pool_old();
	p = writer_resuming();
	stage_all(p);
	assert_int_equal(pool_close(p, false, &err), 0);
	fd = file_open("p.repl");
	assert_int_equal(ftruncate(fd, (off_t)huge), 0);
	p = writer_resuming();
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	assert_int_equal(pool_journal_resume(p, PAGE, &resumed, &err), 0);
	assert_true(resumed);
	cut_most = 0;
	while (more)
		assert_int_equal(pool_journal_kept(p, map, &kept_key, kept, JOURNAL_KEPT_MIN,
						   &count, &bytes, &more, &err),
				 0);
	assert_in_range(cut_most, 1, piece);
	off = pool_get_info(p)->meta.journal_off + JOURNAL_DATA + 100;
	assert_int_equal(pwrite(fd, &old, 1, (off_t)off), 1);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_int_equal(pool_journal_begin(p, PAGE, &err), 0);
	assert_int_equal(byte_at(fd, off), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(p, false, &err), 0);
	(void)close(fd);
}

/* One that nobody goes on with: by one session after the other, as long as there is some. */
static void
test_its_space_comes_back_from_who_is_away(void **state)
{
	const uint64_t huge = 100ULL << 26;
	struct timespec when[2] = {{.tv_nsec = UTIME_OMIT},
				   {.tv_sec = time(NULL) - 8L * 24 * 3600}};
	struct pool_store *next;
	struct pool *p;
	int fd;

	(void)state;
	pool_old();
	p = writer_resuming();
	stage_all(p);
	assert_int_equal(pool_close(p, false, &err), 0);
	fd = file_open("p.repl");
	assert_int_equal(ftruncate(fd, (off_t)huge), 0);
	assert_int_equal(futimens(fd, when), 0);
	(void)close(fd);
	truncation_ns = NS_PER_S / 5;
	assert_int_equal(pool_store_new(dir, &next, &err), 0);
	pool_store_free(next);
	truncation_ns = 0;
	assert_in_range(file_size("p.repl"), SIDECAR_SIZE + 1, huge - 1);
	/* Where all fits into the time. */
	for (unsigned i = 0; i < 20 && file_size("p.repl") > SIDECAR_SIZE; i++) {
		assert_int_equal(pool_store_new(dir, &next, &err), 0);
		pool_store_free(next);
	}
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
}

/* However many they are: nobody makes or removes a pool meanwhile, and the session has not begun.
 */
static void
test_its_space_of_many_holds_no_session_up(void **state)
{
	const uint64_t huge = 4ULL << 26;
	struct timespec when[2] = {{.tv_nsec = UTIME_OMIT},
				   {.tv_sec = time(NULL) - 8L * 24 * 3600}};
	struct pool_store *next;
	char name[16];
	uint64_t left;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		int fd;

		(void)snprintf(name, sizeof(name), "p%u", i);
		assert_int_equal(pool_create(store, name, SIZE, NULL, false, &info, &err), 0);
		(void)snprintf(name, sizeof(name), "p%u.repl", i);
		fd = file_open(name);
		assert_int_equal(ftruncate(fd, (off_t)huge), 0);
		assert_int_equal(futimens(fd, when), 0);
		(void)close(fd);
	}
	truncation_ns = NS_PER_S / 10;
	do {
		const uint64_t before_ns = late_ns;

		assert_int_equal(pool_store_new(dir, &next, &err), 0);
		pool_store_free(next);
		assert_in_range(late_ns - before_ns, truncation_ns, 3 * truncation_ns);
		left = 0;
		for (unsigned i = 0; i < 8; i++) {
			(void)snprintf(name, sizeof(name), "p%u.repl", i);
			left += file_size(name) - SIDECAR_SIZE;
		}
	} while (left);
	truncation_ns = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_its_space_is_kept_a_while, setup, world_free),
		cmocka_unit_test_setup_teardown(test_its_space_is_given_back, setup, world_free),
		cmocka_unit_test_setup_teardown(test_its_space_holds_nobody_up, setup, world_free),
		cmocka_unit_test_setup_teardown(test_little_by_little_is_much, setup, world_free),
		cmocka_unit_test_setup_teardown(test_others_take_memory_as_a_pool_is_made, setup,
						world_free),
		cmocka_unit_test_setup_teardown(test_others_take_memory_as_a_journal_is_filled,
						setup, world_free),
		cmocka_unit_test_setup_teardown(test_what_goes_into_holes_finds_space_or_is_told,
						setup, world_free),
		cmocka_unit_test_setup_teardown(
			test_others_have_taken_memory_as_a_journal_is_resumed, setup, world_free),
		cmocka_unit_test_setup_teardown(test_its_space_holds_no_region_up, setup,
						world_free),
		cmocka_unit_test_setup_teardown(test_its_space_holds_no_resuming_up, setup,
						world_free),
		cmocka_unit_test_setup_teardown(test_its_space_comes_back_from_who_is_away, setup,
						world_free),
		cmocka_unit_test_setup_teardown(test_its_space_of_many_holds_no_session_up, setup,
						world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
