/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What frames of a round log bring is in the pool when it is opened next, also if its process was
 * killed and pages were lost, and never comes over what was made durable later by another way.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "full_disk.h"
#include "le.h"
#include "pool_world.h"

#define SIZE  (64U * 4096)
#define EPOCH (pool_get_info(pool)->meta.epoch)

static struct pool *pool;
static struct pmem_map *map;
static struct roundlog *rlog;

/* While the next sync of a mapping is on its way another one fails, which is told the error. */
static _Atomic bool fails_elsewhere;
static _Atomic unsigned syncs;

int
msync(void *addr, size_t len, int flags)
{
	syncs++;
	if (atomic_exchange(&fails_elsewhere, false))
		roundlog_fail(rlog);
	return (int)syscall(SYS_msync, addr, len, flags);
}

/* Idle for a part of the time is idle. */
#define IDLE_PART 5U
#define IDLE_US   (1000000U / IDLE_PART)

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
	uint64_t now = clock_now_ns(),
		 end = (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec;
	struct timespec ts;

	if (end > now)
		end = now + (end - now) / IDLE_PART;
	ts = (struct timespec){.tv_sec = (time_t)(end / NS_PER_S),
			       .tv_nsec = (long)(end % NS_PER_S)};
	return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &ts);
}

static int
setup(void **state)
{
	(void)state;
	return world_new(0, SIZE);
}

static int
setup_on_disk(void **state)
{
	(void)state;
	return world_new(1, SIZE);
}

static void
writer_opens(void)
{
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &pool, &err), 0);
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	assert_int_equal(pool_log_make(pool, map, &rlog, &err), 0);
	assert_int_equal(pool_get_info(pool)->meta.log_len, round_size(ROUND_HALF_MIN));
}

static void
writer_closes(void)
{
	assert_int_equal(pool_log_end(pool, rlog, false, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

static struct wire_commit_view view; /* of the last frame's message */
static const struct wire_commit_view *const messages[] = {&view};

/* A frame of a COPY of len such letters; the pool does not get it. */
static int
frame(uint64_t off, uint32_t len, char letter)
{
	static uint8_t buf[ROUND_FRAME_MAX], data[ROUND_FRAME_MAX];
	struct wire_entry copy = {.off = off, .len = len, .op = WIRE_OP_COPY};
	struct wire_commit c;
	size_t size;

	memset(data, letter, len);
	wire_commit_begin(&c, buf, sizeof(buf), 1);
	wire_commit_add(&c, &copy, data);
	size = wire_commit_end(&c, 1, EPOCH);
	assert_int_equal(wire_commit_decode(buf, size, SIZE, &view, &err), 0);
	return roundlog_write(rlog, messages, 1, &err);
}

static void
frame_store(uint64_t off, uint32_t len, char letter)
{
	memset((uint8_t *)pmem_map_addr(map) + off, letter, len);
	roundlog_stored(rlog, messages, 1);
}

/* The same, and stored, as the data thread does. */
static void
update(uint64_t off, uint32_t len, char letter)
{
	assert_int_equal(frame(off, len, letter), 0);
	frame_store(off, len, letter);
}

typedef int persist_fn(struct roundlog *l, struct range *r, size_t count, struct err *e);

static persist_fn *persist_directly = roundlog_persist;

/* What came by another way: it is in the mapping. */
static void
direct(uint64_t off, uint32_t len, char letter)
{
	struct range r = {.off = off, .len = len};

	memset((uint8_t *)pmem_map_addr(map) + off, letter, len);
	assert_int_equal(persist_directly(rlog, &r, 1, &err), 0);
}

static void
write_some(const void *work)
{
	writer_opens();
	(*(void (*const *)(void))work)();
}

/* A process that does this and is killed. */
static void
killed(void (*work)(void))
{
	killed_after(write_some, &work);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_true(info.meta.log_len > 0);
}

/* The machine went down: pages that were not synced are as they were. */
static void
pages_are_lost(uint64_t off, uint64_t len)
{
	static char lost[SIZE];

	memset(lost, '-', len);
	file_change("p", off, lost, len);
}

static char
byte_at(uint64_t off)
{
	return (char)file_byte("p", off);
}

/* Who only looks is told the same before. */
static void
opened(enum pool_mode mode, enum sidecar_state want)
{
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_int_equal(info.meta.state, want);
	assert_int_equal(pool_open(store, "p", mode, "next", &pool, &err), 0);
	assert_int_equal(pool_get_info(pool)->meta.log_len, 0);
	assert_int_equal(pool_get_info(pool)->meta.state, want);
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
}

static void
some_updates(void)
{
	update(0, 100, 'a');
	update(50, 100, 'b');
	update(SIZE - 8, 8, 'c');
}

/* Where storing takes space and the disk is full: told, and brought in when there is room. */
static void
full_disk_keeps_the_log(void **state)
{
	(void)state;
	killed(some_updates);
	pages_are_lost(0, 4096);
	disk_full = true;
	for (enum pool_mode mode = POOL_READ; mode <= POOL_WRITE; mode++) {
		err_clear(&err);
		assert_int_equal(pool_open(store, "p", mode, "x", &pool, &err), REPL_E_NOSPC);
		assert_non_null(strstr(err.text, "make room"));
	}
	disk_full = false;
	err_clear(&err);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(49), 'a');
	assert_int_equal(byte_at(50), 'b');
	pages_are_lost(0, SIZE);
}

static void
any_way_of_opening_replays(void **state)
{
	static const enum pool_mode modes[] = {POOL_WRITE, POOL_STABLE, POOL_READ};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		killed(some_updates);
		pages_are_lost(0, 4096);
		pages_are_lost(SIZE - 4096, 4096);
		opened(modes[i], SIDECAR_UNKNOWN);
		assert_int_equal(byte_at(49), 'a');
		assert_int_equal(byte_at(50), 'b');
		assert_int_equal(byte_at(149), 'b');
		assert_int_equal(byte_at(150), '-');
		assert_int_equal(byte_at(SIZE - 1), 'c');
		pages_are_lost(0, SIZE);
	}
}

static void
log_is_gone_after_a_close_in_order(void **state)
{
	(void)state;
	writer_opens();
	some_updates();
	writer_closes();
	pages_are_lost(0, 4096);
	opened(POOL_WRITE, SIDECAR_UP_TO_DATE);
	assert_int_equal(byte_at(0), '-');
}

static void
then_directly(void)
{
	update(0, 100, 'a');
	update(8192, 8, 'x');
	direct(99, 1, 'D');
}

static void
what_was_synced_later_by_another_way_stays(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		persist_directly = i ? roundlog_flush : roundlog_persist;
		killed(then_directly);
		persist_directly = roundlog_persist;
		opened(POOL_WRITE, SIDECAR_UNKNOWN);
		assert_int_equal(byte_at(98), 'a');
		assert_int_equal(byte_at(99), 'D');
		assert_int_equal(byte_at(8192), 'x');
		pages_are_lost(0, SIZE);
	}
}

#define PIECES 250U /* of each of two messages, that lie in what is flushed: more than one has */
#define STEP   400U
#define WHOLE  (PIECES * STEP)

/* A frame of pieces of the pool, not in their order, the second with others in the same places. */
static void
update_pieces(unsigned from)
{
	static uint8_t buf[ROUND_BLOCK * 4];
	struct wire_commit c;
	size_t size;

	wire_commit_begin(&c, buf, sizeof(buf), PIECES);
	for (unsigned i = 0; i < PIECES; i++) {
		struct wire_entry copy = {.off = (uint64_t)(i * 7 % PIECES) * STEP + from,
					  .len = 1 + i % 20,
					  .op = WIRE_OP_COPY};

		wire_commit_add(&c, &copy, "aaaaaaaaaaaaaaaaaaaa");
	}
	size = wire_commit_end(&c, 1, EPOCH);
	assert_int_equal(wire_commit_decode(buf, size, SIZE, &view, &err), 0);
	assert_int_equal(roundlog_write(rlog, messages, 1, &err), 0);
	for (unsigned i = 0; i < PIECES; i++)
		memset((uint8_t *)pmem_map_addr(map) + (uint64_t)(i * 7 % PIECES) * STEP + from,
		       'a', 1 + i % 20);
	roundlog_stored(rlog, messages, 1);
}

static void
flushed_in_between(void)
{
	struct range r[] = {{.off = 0, .len = STEP / 2},
			    {.off = STEP / 2, .len = WHOLE - STEP / 2},
			    {.off = WHOLE + 4096, .len = 1},
			    {.off = WHOLE + 8192, .len = 16}};

	update_pieces(10);
	update_pieces(15);
	update(WHOLE - 100, 200, 'b');
	update(WHOLE + 4096, 2, 'c');
	update(WHOLE + 8192, 13, 'g');
	memset(pmem_map_addr(map), 'D', WHOLE);
	memset((uint8_t *)pmem_map_addr(map) + WHOLE + 4096, 'E', 1);
	memset((uint8_t *)pmem_map_addr(map) + WHOLE + 8192, 'H', 16);
	assert_int_equal(roundlog_flush(rlog, r, 4, &err), 0);
	update(20, 1, 'f');
}

/* Of a frame nothing else is synced for it: the log has all of it, with what came last. */
static void
what_is_flushed_leaves_frames_as_they_are(void **state)
{
	static uint8_t bytes[WHOLE];

	(void)state;
	killed(flushed_in_between);
	pages_are_lost(WHOLE, 4096);
	pages_are_lost(WHOLE + 4096, 2);
	pages_are_lost(WHOLE + 8192, 16);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	file_read("p", 0, bytes, WHOLE);
	for (unsigned at = 0; at < WHOLE; at++)
		assert_int_equal(bytes[at], at == 20 ? 'f' : 'D');
	assert_int_equal(byte_at(WHOLE), 'b');
	assert_int_equal(byte_at(WHOLE + 99), 'b');
	assert_int_equal(byte_at(WHOLE + 100), '-');
	assert_int_equal(byte_at(WHOLE + 4096), 'E');
	assert_int_equal(byte_at(WHOLE + 4097), 'c');
	/* A word as a whole, of which a frame had a part. */
	for (unsigned at = 0; at < 16; at++)
		assert_int_equal(byte_at(WHOLE + 8192 + at), 'H');
}

/* The first half is full and synced; what comes behind it is in the second. */
static void
directly_behind_a_half(void)
{
	update(0, 100, 'a');
	for (unsigned i = 0; i < ROUND_HALF_MIN / ROUND_BLOCK; i++)
		update(4096, 8, 'x');
	(void)usleep(IDLE_US / 2);
	direct(99, 1, 'D');
}

static void
what_was_synced_behind_a_half_stays(void **state)
{
	(void)state;
	killed(directly_behind_a_half);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(98), 'a');
	assert_int_equal(byte_at(99), 'D');
	assert_int_equal(byte_at(4096), 'x');
}

static void
elsewhere_directly(void)
{
	update(0, 100, 'a');
	direct(100, 1, 'D');
}

static void
what_was_synced_elsewhere_settles_nothing(void **state)
{
	(void)state;
	killed(elsewhere_directly);
	pages_are_lost(0, 100);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'a');
	assert_int_equal(byte_at(100), 'D');
}

static void
settle_and_go_on(void)
{
	update(0, 100, 'a');
	assert_int_equal(roundlog_settle(rlog, &err), 0);
	assert_int_equal(roundlog_settle(rlog, &err), 0);
	memset((uint8_t *)pmem_map_addr(map), 'J', 100);
	update(200, 1, 'b');
}

static void
what_is_settled_is_not_replayed(void **state)
{
	(void)state;
	killed(settle_and_go_on);
	pages_are_lost(200, 1);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'J');
	assert_int_equal(byte_at(200), 'b');
}

/* Settled while a frame is not stored, and again when the half has no room but for that. */
static void
settle_before_what_is_stored(void)
{
	for (unsigned i = 0; i < 300; i++) {
		for (unsigned k = 0; k < 1 + i % 3; k++)
			update(4096, 1, 'u');
		assert_int_equal(frame(0, 100, 'a'), 0);
		assert_int_equal(roundlog_settle(rlog, &err), 0);
		assert_int_equal(roundlog_settle(rlog, &err), 0);
		frame_store(0, 100, 'a');
		assert_int_equal(roundlog_settle(rlog, &err), 0);
	}
	update(8192, 1, 'x');
	assert_int_equal(frame(100, 100, 'b'), 0);
	assert_int_equal(roundlog_settle(rlog, &err), 0);
	frame_store(100, 100, 'b');
}

static void
what_is_stored_after_a_settling_is_replayed(void **state)
{
	(void)state;
	killed(settle_before_what_is_stored);
	pages_are_lost(100, 100);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(99), 'a');
	assert_int_equal(byte_at(100), 'b');
	assert_int_equal(byte_at(8192), 'x');
}

static void
sit_between_a_frame_and_its_storing(void)
{
	update(8192, 1, 'x');
	assert_int_equal(frame(0, 100, 'a'), 0);
	(void)usleep(IDLE_US / 2 * 5);
	frame_store(0, 100, 'a');
	assert_int_equal(frame(4096, 1, 'b'), 0);
}

/* As when the machine stood still there: to be idle is something else. */
static void
frame_that_is_not_stored_is_not_retired(void **state)
{
	(void)state;
	killed(sit_between_a_frame_and_its_storing);
	pages_are_lost(0, 100);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'a');
	assert_int_equal(byte_at(4096), 'b');
}

/* Both halves are used again several times. */
static void
many_updates(void)
{
	for (unsigned i = 0; i < 2000; i++)
		update(i % 60 * 4096, 3000 + i % 3 * 500, (char)('A' + i % 26));
}

static void
halves_take_turns(void **state)
{
	(void)state;
	killed(many_updates);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	for (unsigned i = 1940; i < 2000; i++)
		assert_int_equal(byte_at(i % 60 * 4096), 'A' + i % 26);
	/* Large ones. */
	writer_opens();
	for (unsigned i = 0; i < 20; i++)
		update(0, ROUND_FRAME_MAX - 200, (char)('a' + i));
	writer_closes();
	assert_int_equal(byte_at(0), 't');
}

/* Until the other half begins with a frame, which says that the idle one does not count. */
static void
idle_is_retired(void)
{
	off_t other = (off_t)(SIDECAR_SIZE + REGION_PAGE + round_half_for(SIZE));
	int fd = file_open("p.repl");
	uint8_t head[ROUND_HEAD_SIZE], none[ROUND_HEAD_SIZE] = {0};

	do {
		(void)usleep(10000);
		assert_int_equal(pread(fd, head, sizeof(head), other), sizeof(head));
	} while (memcmp(head, none, sizeof(head)) == 0);
	(void)close(fd);
}

static void
one_update_and_some_time(void)
{
	update(0, 100, 'a');
	idle_is_retired();
	memset((uint8_t *)pmem_map_addr(map), 'x', 100);
	update(4096, 1, 'b');
	update(8192, 1, 'c');
}

/* Idle, the log is retired: the next frames say so. */
static void
idle_log_is_retired(void **state)
{
	(void)state;
	killed(one_update_and_some_time);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'x');
	assert_int_equal(byte_at(8192), 'c');
}

static void
flip(uint64_t off)
{
	const uint8_t c = file_byte("p.repl", off) ^ 4;

	file_change("p.repl", off, &c, 1);
}

static void
two_updates_and_some_time(void)
{
	update(0, 100, 'a');
	update(0, 100, 'b');
	idle_is_retired();
}

/* What it brings is durable in the pool by then, and so is that. */
static void
last_frame_of_an_idle_log_may_be_damaged(void **state)
{
	(void)state;
	killed(two_updates_and_some_time);
	flip(SIDECAR_SIZE + REGION_PAGE + ROUND_BLOCK + 60);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'b');
}

/* Three frames of a block each behind the header's. */
static void
damage_makes_the_pool_inconsistent(void **state)
{
	(void)state;
	killed(some_updates);
	pages_are_lost(0, 4096);
	flip(SIDECAR_SIZE + REGION_PAGE + ROUND_BLOCK + 60);
	opened(POOL_WRITE, SIDECAR_INCONSISTENT);
	assert_int_equal(byte_at(0), 'a');
	assert_int_equal(byte_at(99), 'a');
}

static void
torn_last_frame_is_dropped(void **state)
{
	(void)state;
	killed(some_updates);
	pages_are_lost(SIZE - 4096, 4096);
	flip(SIDECAR_SIZE + REGION_PAGE + 2 * ROUND_BLOCK + 60);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(SIZE - 1), '-');
	assert_int_equal(byte_at(50), 'b');
}

static void
log_without_its_header_or_end_makes_the_pool_inconsistent(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int fd;

		killed(some_updates);
		fd = file_open("p.repl");
		if (i == 0)
			flip(SIDECAR_SIZE + 30);
		else
			assert_int_equal(ftruncate(fd, SIDECAR_SIZE + 100000), 0);
		(void)close(fd);
		opened(POOL_WRITE, SIDECAR_INCONSISTENT);
	}
}

/* Its header is of that version, its region of that length. */
static void
made_by_version(uint16_t version, uint64_t len)
{
	int fd = file_open("p.repl");
	uint8_t page[REGION_PAGE];
	struct sidecar meta;
	bool repair;

	assert_int_equal(pread(fd, page, sizeof(page), SIDECAR_SIZE), sizeof(page));
	put_le16(page + 8, version);
	region_page_seal(page);
	assert_int_equal(pwrite(fd, page, sizeof(page), SIDECAR_SIZE), sizeof(page));
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	meta.log_len = len;
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	assert_int_equal(ftruncate(fd, (off_t)(SIDECAR_SIZE + len)), 0);
	(void)close(fd);
}

/* However long that one has it: what it brings is not known here, and nothing is given up for it.
 */
static void
log_of_a_newer_version_stays(void **state)
{
	const uint64_t lens[] = {round_size(ROUND_HALF_MAX) + REGION_PAGE, REGION_PAGE};
	uint8_t *was;
	uint64_t size;

	(void)state;
	killed(some_updates);
	pages_are_lost(0, 4096);
	size = file_size("p.repl");
	was = malloc(size);
	assert_non_null(was);
	assert_int_equal(file_get("p.repl", was, size), size);
	for (unsigned i = 0; i < 2; i++) {
		made_by_version(2, lens[i]);
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
		assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
		for (enum pool_mode mode = POOL_READ; mode <= POOL_WRITE; mode++) {
			err_clear(&err);
			assert_int_equal(pool_open(store, "p", mode, "x", &pool, &err),
					 REPL_E_VERSION);
			assert_non_null(strstr(err.text, "a newer version made it"));
		}
		assert_int_equal(file_size("p.repl"), SIDECAR_SIZE + lens[i]);
		file_put("p.repl", was, size);
	}
	free(was);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'a');
	/* Of this one such a length is damage. */
	for (unsigned i = 0; i < 2; i++) {
		killed(some_updates);
		made_by_version(1, lens[i]);
		opened(POOL_WRITE, SIDECAR_INCONSISTENT);
	}
}

/* The device may have it another time, so nothing is given up for it. */
static void
log_that_cannot_be_read_stays(void **state)
{
	char path[TEMPDIR_MAX + 32];
	struct roundlog_replayed done;
	int fd;

	(void)state;
	killed(some_updates);
	pages_are_lost(0, 4096);
	(void)snprintf(path, sizeof(path), "%s/p.repl", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(roundlog_replay(fd, &info.meta, NULL, &done, &err), REPL_E_IO);
	(void)close(fd);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'a');
}

static void
failed_log_stays(void **state)
{
	(void)state;
	writer_opens();
	update(0, 100, 'a');
	assert_int_equal(pool_log_end(pool, rlog, true, &err), REPL_E_IO);
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, false, &err), 0);
	pages_are_lost(0, 100);
	opened(POOL_READ, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'a');
}

static void
fail_elsewhere_while_it_retires(void)
{
	update(0, 100, 'a');
	/* On a disk it is synced when the log has been idle for long enough. */
	atomic_store(&fails_elsewhere, pmem_map_groups(map));
	while (atomic_load(&fails_elsewhere))
		(void)usleep(10000);
	(void)usleep(100000);
}

static void
frames_count_on_when_a_sync_fails_elsewhere(void **state)
{
	(void)state;
	killed(fail_elsewhere_while_it_retires);
	pages_are_lost(0, 100);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_int_equal(byte_at(0), 'a');
}

#define BARRIERS 1000U

/* A frame with as many messages, each of which ends with a BARRIER. */
static void
many_barriers(void)
{
	static struct wire_commit_view views[BARRIERS];
	static const struct wire_commit_view *all[BARRIERS];
	static uint8_t buf[BARRIERS][128];

	for (unsigned i = 0; i < BARRIERS; i++) {
		struct wire_entry copy = {
			.off = (uint64_t)i * 8 % SIZE, .len = 8, .op = WIRE_OP_COPY};
		struct wire_entry tell = {.off = i + 1, .op = WIRE_OP_POSITION};
		struct wire_entry barrier = {.op = WIRE_OP_BARRIER};
		struct wire_commit c;
		size_t size;

		wire_commit_begin(&c, buf[i], sizeof(buf[i]), 3);
		wire_commit_add(&c, &copy, "barriers");
		wire_commit_add(&c, &tell, NULL);
		wire_commit_add(&c, &barrier, NULL);
		size = wire_commit_end(&c, i + 1, EPOCH);
		assert_int_equal(wire_commit_decode(buf[i], size, SIZE, &views[i], &err), 0);
		all[i] = &views[i];
	}
	assert_int_equal(roundlog_write(rlog, all, BARRIERS, &err), 0);
}

/* Cut meanwhile, all of it is done again: of what is in between nobody relies on any. */
static void
replay_does_not_sync_at_each_barrier(void **state)
{
	(void)state;
	killed(many_barriers);
	atomic_store(&syncs, 0);
	opened(POOL_WRITE, SIDECAR_UNKNOWN);
	assert_true(syncs <= 3);
	for (unsigned i = 0; i < BARRIERS; i++)
		assert_int_equal(byte_at(i * 8), 'b');
}

/* As of a set whose parts lie on a disk of their own, and the set file with its sidecar does not.
 */
static void
log_in_memory_is_none_of_a_pool_on_disk(void **state)
{
	char elsewhere[TEMPDIR_MAX];
	struct roundlog *log = NULL;
	struct pool_store *other;
	struct pool *q = NULL;
	int own;

	(void)state;
	assert_int_equal(tempdir_new(elsewhere, 0), 0);
	assert_int_equal(pool_store_new(elsewhere, &other, &err), 0);
	assert_int_equal(pool_create(other, "q", SIZE, NULL, false, &info, &err), 0);
	assert_int_equal(pool_open(other, "q", POOL_WRITE, "w", &q, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &pool, &err), 0);
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	own = pool->files.sidecar_fd;
	pool->files.sidecar_fd = q->files.sidecar_fd;
	if (pmem_map_groups(map) && strcmp(pool_get_info(q)->filesystem, "tmpfs") == 0) {
		assert_int_equal(pool_log_make(pool, map, &log, &err), REPL_E_REFUSED);
		assert_null(log);
		assert_int_equal(pool_get_info(pool)->meta.log_len, 0);
	}
	pool->files.sidecar_fd = own;
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(pool_close(q, true, &err), 0);
	pool_store_free(other);
	tempdir_free(elsewhere);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_free)
		T(full_disk_keeps_the_log),
		T(any_way_of_opening_replays),
		T(log_is_gone_after_a_close_in_order),
		T(what_was_synced_later_by_another_way_stays),
		T(what_is_flushed_leaves_frames_as_they_are),
		T(what_was_synced_behind_a_half_stays),
		T(what_was_synced_elsewhere_settles_nothing),
		T(what_is_settled_is_not_replayed),
		T(what_is_stored_after_a_settling_is_replayed),
		T(frame_that_is_not_stored_is_not_retired),
		T(halves_take_turns),
		T(idle_log_is_retired),
		T(last_frame_of_an_idle_log_may_be_damaged),
		T(damage_makes_the_pool_inconsistent),
		T(torn_last_frame_is_dropped),
		T(log_without_its_header_or_end_makes_the_pool_inconsistent),
		T(log_of_a_newer_version_stays),
		T(log_that_cannot_be_read_stays),
		T(failed_log_stays),
		cmocka_unit_test_setup_teardown(frames_count_on_when_a_sync_fails_elsewhere,
						setup_on_disk, world_free),
		cmocka_unit_test_setup_teardown(replay_does_not_sync_at_each_barrier, setup_on_disk,
						world_free),
		cmocka_unit_test_setup_teardown(log_in_memory_is_none_of_a_pool_on_disk,
						setup_on_disk, world_free),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
