/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A journal that is not committed is kept for who says that it goes on with it, and for nobody
 * else. Who does has what it wants in the pool in the end, whatever it is that was left.
 */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "full_disk.h"
#include "journal_world.h"

#define FILE_MAX (128U * PAGE)
#define DAY_S    (24L * 3600)

static uint64_t seed = 1;

/* ---- where the file was written to and is not on media, in front of libc's ---- */

#define WRITES_MAX 65536U

static uint64_t writes[WRITES_MAX]; /* offsets */
static unsigned write_count;
static bool writes_noted;

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
int fdatasync(int fd);
int fsync(int fd);
int sync_file_range(int fd, off_t off, off_t len, unsigned flags);

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	assert_true(write_count < WRITES_MAX);
	if (writes_noted)
		writes[write_count++] = (uint64_t)off;
	return syscall(SYS_pwrite64, fd, buf, len, off);
}

int
fdatasync(int fd)
{
	(void)fd;
	write_count = 0;
	return 0;
}

int
fsync(int fd)
{
	return fdatasync(fd);
}

int
sync_file_range(int fd, off_t off, off_t len, unsigned flags)
{
	unsigned left = 0;

	(void)fd;
	/* Begun is not done. */
	if (!(flags & SYNC_FILE_RANGE_WAIT_AFTER))
		return 0;
	for (unsigned i = 0; i < write_count; i++)
		if (writes[i] < (uint64_t)off || writes[i] - (uint64_t)off >= (uint64_t)len)
			writes[left++] = writes[i];
	write_count = left;
	return 0;
}

/* The last byte that was written to is that far behind the first one that is not on media. */
static uint64_t
writes_span(void)
{
	uint64_t from = UINT64_MAX, to = 0;

	for (unsigned i = 0; i < write_count; i++) {
		from = writes[i] < from ? writes[i] : from;
		to = writes[i] > to ? writes[i] : to;
	}
	return write_count ? to - from : 0;
}

static uint32_t
draw(uint32_t below)
{
	seed = seed * 6364136223846793005U + 1442695040888963407U;
	return (uint32_t)(seed >> 33) % below;
}

static int
setup(void **state)
{
	(void)state;
	return world_new(0, SIZE);
}

/* Some messages are staged, and the session ends. */
static void
leave(unsigned messages, char letter)
{
	struct pool *p = writer_resuming();

	stage_some(p, 0, messages, letter);
	assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
}

static bool
is_left(void)
{
	struct sidecar meta;
	bool repair;
	int fd = file_open("p.repl");

	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	assert_false(meta.journal_committed || meta.writer_open);
	(void)close(fd);
	return meta.journal_len > 0;
}

static void
has_old(void)
{
	uint8_t have[SIZE], want[SIZE];

	expected(want, false);
	assert_int_equal(file_get("p", have, SIZE), SIZE);
	assert_memory_equal(have, want, SIZE);
}

/* Behind whatever was left: the pool is as it is wanted; pages that need not be staged. */
static unsigned
finish(void)
{
	uint8_t have[SIZE], want[SIZE];
	struct pool *p = writer_resuming();
	unsigned spared;

	expected(want, true);
	spared = go_on(p, want);
	apply_all(p, 1);
	assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_OUTDATED);
	assert_int_equal(pool_get_info(p)->meta.journal_len, 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(file_get("p", have, SIZE), SIZE);
	assert_memory_equal(have, want, SIZE);
	assert_false(is_left());
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
	return spared;
}

static void
what_was_staged_is_not_staged_again(void **state)
{
	(void)state;
	pool_old();
	leave(2, 'n');
	has_old();
	assert_true(is_left());
	assert_int_equal(finish(), 4);
	/* By several that are cut off, each behind the one before. */
	pool_old();
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct pool *p = writer_resuming();
		struct pmem_map *map = NULL;
		struct journal_kept kept[JOURNAL_KEPT_MIN];
		bool resumed, more = true;
		unsigned count, all = 0;
		uint64_t bytes;

		assert_int_equal(pool_map(p, true, &map, &err), 0);
		assert_int_equal(pool_journal_resume(p, 8 * PAGE, &resumed, &err), 0);
		assert_int_equal(resumed, i > 0);
		while (resumed && more) {
			assert_int_equal(pool_journal_kept(p, map, &kept_key, kept,
							   JOURNAL_KEPT_MIN, &count, &bytes, &more,
							   &err),
					 0);
			all += count;
		}
		assert_int_equal(all, 2 * i);
		pmem_map_free(map);
		stage_some(p, i, i + 1, 'n');
		assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
		assert_int_equal(pool_close(p, i % 2, &err), 0);
	}
	has_old();
	assert_int_equal(finish(), 2 * MESSAGES);
}

/* The process is killed: nothing was done at its end. */
static void
behind_a_kill_too(void **state)
{
	uint8_t image[FILE_MAX];
	struct pool *p;
	size_t len;

	(void)state;
	pool_old();
	p = writer_resuming();
	stage_some(p, 0, 3, 'n');
	len = file_get("p.repl", image, sizeof(image));
	assert_int_equal(pool_close(p, false, &err), 0);
	file_put("p.repl", image, len);
	assert_int_equal(finish(), 6);
}

/* Of another file, or of this one before it was written to. */
static void
what_is_not_wanted_is_staged_anew(void **state)
{
	(void)state;
	pool_old();
	leave(4, 'x');
	assert_int_equal(finish(), 0);
}

/*
 * What lies in the region is damaged, cut off, and of several journals one over the other: nothing
 * of it comes into the pool that is not wanted.
 */
static void
whatever_is_left_the_pool_ends_as_wanted(void **state)
{
	static uint8_t image[FILE_MAX];
	unsigned spared = 0;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct pool *p;
		size_t len;

		pool_old();
		leave(1 + draw(MESSAGES), 'x');
		p = writer_resuming();
		assert_int_equal(pool_journal_drop(p, &err), 0);
		stage_some(p, draw(3), 3 + draw(MESSAGES - 2), draw(4) ? 'n' : 'x');
		assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
		assert_int_equal(pool_close(p, draw(2), &err), 0);
		len = file_get("p.repl", image, sizeof(image));
		for (unsigned n = draw(4); n > 0; n--) {
			size_t at = SIDECAR_SIZE + draw((uint32_t)(len - SIDECAR_SIZE));

			image[at] ^= (uint8_t)(1U << draw(8));
		}
		if (draw(4) == 0)
			len = SIDECAR_SIZE + draw((uint32_t)(len - SIDECAR_SIZE));
		file_put("p.repl", image, len);
		spared += finish();
	}
	assert_in_range(spared, 300, 300U * 2 * MESSAGES);
}

/*
 * Each message is written to as it is told of. Who commits holds a program up: most of that must be
 * on media by then, however many they are.
 */
static void
little_of_it_is_left_to_sync(void **state)
{
	const uint64_t little = 33U << 20, much = 3 * little;
	struct journal_kept kept[4 * JOURNAL_KEPT_MIN];
	struct pmem_map *map = NULL;
	struct pool *p;
	uint8_t msg[3 * PAGE];
	uint64_t bytes = 0;
	unsigned count;
	bool resumed, more = true;
	size_t len;

	(void)state;
	pool_old();
	p = writer_resuming();
	len = message(msg, 0, pool_get_info(p)->meta.epoch);
	assert_int_equal(pool_journal_begin(p, much, &err), 0);
	for (uint64_t at = 0; at + len <= much; at += len)
		assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
	assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	p = writer_resuming();
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	assert_int_equal(pool_journal_resume(p, PAGE, &resumed, &err), 0);
	assert_true(resumed);
	write_count = 0;
	writes_noted = true;
	while (more) {
		assert_int_equal(pool_journal_kept(p, map, &kept_key, kept, 4 * JOURNAL_KEPT_MIN,
						   &count, &bytes, &more, &err),
				 0);
		assert_true(writes_span() < little);
	}
	assert_true(bytes > much - len && write_count > 0);
	/* What is added has no more before it than what was added to it before. */
	assert_int_equal(pool_journal_begin(p, bytes + much, &err), 0);
	for (uint64_t at = 0; at + len <= much; at += len) {
		assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
		assert_true(writes_span() < little);
	}
	writes_noted = false;
	write_count = 0;
	pmem_map_free(map);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* Messages are told and taken in one order: none comes in between, nor is a part committed. */
static void
nothing_is_added_before_all_is_told(void **state)
{
	struct journal_kept kept[JOURNAL_KEPT_MIN];
	uint8_t msg[3 * PAGE];
	struct pmem_map *map = NULL;
	struct pool *p;
	unsigned count;
	uint64_t bytes;
	bool resumed, more;
	size_t len;

	(void)state;
	pool_old();
	leave(2, 'n');
	p = writer_resuming();
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	len = message(msg, 2, pool_get_info(p)->meta.epoch);
	assert_int_equal(pool_journal_kept(p, map, &kept_key, kept, JOURNAL_KEPT_MIN, &count,
					   &bytes, &more, &err),
			 REPL_E_PROTOCOL);
	assert_int_equal(pool_journal_resume(p, PAGE, &resumed, &err), 0);
	assert_true(resumed);
	assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), REPL_E_PROTOCOL);
	assert_int_equal(pool_journal_begin(p, SIZE, &err), REPL_E_PROTOCOL);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err),
			 REPL_E_PROTOCOL);
	/* It stays as it is when that session goes, too. */
	assert_int_equal(pool_journal_end(p, map, false, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(finish(), 4);
}

/* Space that a message had got may be gone by a power cut. */
static void
of_a_sparse_pool_without_space_it_is_of_no_use(void **state)
{
	struct journal_kept kept[JOURNAL_KEPT_MIN];
	struct pmem_map *map = NULL;
	struct sidecar meta;
	bool repair, resumed, more;
	struct pool *p;
	unsigned count;
	uint64_t bytes;
	int fd;

	(void)state;
	pool_old();
	leave(2, 'n');
	fd = file_open("p.repl");
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	meta.sparse = true;
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	(void)close(fd);
	p = writer_resuming();
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	assert_int_equal(pool_journal_resume(p, PAGE, &resumed, &err), 0);
	assert_true(resumed);
	disk_full = true;
	assert_int_equal(pool_journal_kept(p, map, &kept_key, kept, JOURNAL_KEPT_MIN, &count,
					   &bytes, &more, &err),
			 REPL_E_NOSPC);
	disk_full = false;
	assert_int_equal(pool_journal_drop(p, &err), 0);
	pmem_map_free(map);
	stage_some(p, 0, 1, 'n');
	assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(finish(), 2);
}

static void
nobody_else_keeps_it(void **state)
{
	const struct generation g = {.current = {{5}}};
	struct pool_info promoted;
	struct pool *p = NULL;

	(void)state;
	pool_old();
	/* Who reads lets it be. */
	leave(2, 'n');
	for (enum pool_mode mode = POOL_READ; mode <= POOL_STABLE; mode++) {
		assert_int_equal(pool_open(store, "p", mode, "reader", &p, &err), 0);
		assert_int_equal(pool_close(p, true, &err), 0);
		assert_true(is_left());
	}
	/* Who writes and does not say so drops it, and leaves none. */
	p = writer();
	assert_int_equal(pool_get_info(p)->meta.journal_len, 0);
	stage_some(p, 0, 2, 'n');
	assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_false(is_left());
	/* A journal that is begun anew. */
	leave(2, 'n');
	p = writer_resuming();
	stage_some(p, 0, 0, 'n');
	assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_false(is_left());
	/* A record of what the pool is. */
	leave(2, 'n');
	p = writer_resuming();
	assert_int_equal(pool_mark(p, SIDECAR_UP_TO_DATE, &g, 0, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_false(is_left());
	/* One to which something could not be added. */
	p = writer_resuming();
	stage_some(p, 0, 2, 'n');
	pooljournal_fail(pool_journal(p), REPL_E_NOSPC);
	assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_false(is_left());
	/* A promotion. */
	leave(2, 'n');
	assert_int_equal(pool_promote(store, "p", "test", true, &promoted, &err), 0);
	assert_false(is_left());
	has_old();
}

/* Its space is given back though nobody opens the pool. */
static void
not_kept_for_ever(void **state)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	struct pool_store *other;
	struct pool *p;
	int fd;

	(void)state;
	pool_old();
	leave(2, 'n');
	fd = file_open("p.repl");
	times[1].tv_sec = time(NULL) - 6 * DAY_S;
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(pool_store_new(dir, &other, &err), 0);
	pool_store_free(other);
	assert_true(is_left());
	/* Of a session that is there it is not. */
	p = writer_resuming();
	times[1].tv_sec = time(NULL) - 8 * DAY_S;
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(pool_store_new(dir, &other, &err), 0);
	pool_store_free(other);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_true(is_left());
	assert_int_equal(futimens(fd, times), 0);
	(void)close(fd);
	assert_int_equal(pool_store_new(dir, &other, &err), 0);
	pool_store_free(other);
	assert_false(is_left());
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
	has_old();
}

int __real_fstatat(int at, const char *name, struct stat *st, int flags);
int __wrap_fstatat(int at, const char *name, struct stat *st, int flags);

static unsigned looks;
static bool looks_are_slow;

int
__wrap_fstatat(int at, const char *name, struct stat *st, int flags)
{
	const struct timespec slow = {.tv_nsec = 1000000};

	looks++;
	if (looks_are_slow)
		(void)nanosleep(&slow, NULL);
	return __real_fstatat(at, name, st, flags);
}

#define OTHERS 3000U

/* No session that begins looks at all of them, nor for long, and yet each has its turn. */
static void
among_many_pools_it_is_found_in_time(void **state)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 8 * DAY_S}};
	struct pool_store *other;
	char name[32];
	unsigned tries = 0;

	(void)state;
	pool_old();
	leave(2, 'n');
	assert_int_equal(utimensat(pool_store_dirfd(store), "p.repl", times, 0), 0);
	for (unsigned i = 0; i < 2 * OTHERS; i++) {
		int fd;

		(void)snprintf(name, sizeof(name), "q%u%s", i / 2, i % 2 ? SIDECAR_SUFFIX : "");
		fd = openat(pool_store_dirfd(store), name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		assert_true(fd >= 0);
		(void)close(fd);
	}
	do {
		looks = 0;
		assert_int_equal(pool_store_new(dir, &other, &err), 0);
		pool_store_free(other);
		assert_true(looks < OTHERS / 2);
	} while (is_left() && ++tries < 1000);
	assert_false(is_left());
	/* Each takes a thousandth of a second, all of them a fifth of one. */
	looks = 0;
	looks_are_slow = true;
	assert_int_equal(pool_store_new(dir, &other, &err), 0);
	looks_are_slow = false;
	pool_store_free(other);
	assert_true(looks > 0 && looks <= 210);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_staged_is_not_staged_again, setup,
						world_free),
		cmocka_unit_test_setup_teardown(behind_a_kill_too, setup, world_free),
		cmocka_unit_test_setup_teardown(what_is_not_wanted_is_staged_anew, setup,
						world_free),
		cmocka_unit_test_setup_teardown(whatever_is_left_the_pool_ends_as_wanted, setup,
						world_free),
		cmocka_unit_test_setup_teardown(little_of_it_is_left_to_sync, setup, world_free),
		cmocka_unit_test_setup_teardown(nothing_is_added_before_all_is_told, setup,
						world_free),
		cmocka_unit_test_setup_teardown(of_a_sparse_pool_without_space_it_is_of_no_use,
						setup, world_free),
		cmocka_unit_test_setup_teardown(nobody_else_keeps_it, setup, world_free),
		cmocka_unit_test_setup_teardown(not_kept_for_ever, setup, world_free),
		cmocka_unit_test_setup_teardown(among_many_pools_it_is_found_in_time, setup,
						world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
