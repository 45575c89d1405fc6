/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Power cuts at random, of a page pool's round log: updates go by the log or by another way to the
 * same places, several slots of them, while halves are retired beside them. The cut comes in any
 * sync, of the pool or of the log, or between them, and in one of the replay, too. On the media is
 * what was synced; of what was not, any page of the pool is there or not, and any sector of the
 * write to the log.
 *
 * After the replay each byte is of the last update that was acknowledged or of a later one, and one
 * that went by the log is there as a whole or not at all. The position is that of the last one that
 * was acknowledged, or of the one under way.
 */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_world.h"

#define SIZE     (64U * 4096)
#define LOG_END  (SIDECAR_SIZE + REGION_PAGE + 2 * ROUND_HALF_MIN)
#define SLOTS    12U
#define SLOT_LEN 20000U /* pages are shared by two */
#define SECTOR   512U
#define SEEDS    200U
#define OPS      400U
#define SYNCS    120U /* the cut comes in one of so many */
#define MESSAGES 3U   /* of a frame */

int __real_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e);
int __wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e);
int __real_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len,
			  struct err *e);
int __wrap_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len,
			  struct err *e);

/* Shared with the process that the cut ends. */
struct slot {
	uint8_t begun, acked;
	bool logged; /* the one that was begun: by the log */
};

static struct slot *slots;
static struct reached {
	uint64_t begun, acked;
} * reached;
static struct pool *pool;
static struct pmem_map *map;
static struct roundlog *rlog;

static uint8_t pool_media[SIZE], log_media[LOG_END];
static pthread_mutex_t media_lock = PTHREAD_MUTEX_INITIALIZER; /* no sync returns after the cut */
static bool watching;
static unsigned syncs; /* and places between them, that are left before the cut */
static _Atomic uint64_t state;

/* splitmix64 */
static uint32_t
below(uint32_t n)
{
	uint64_t x = atomic_fetch_add(&state, 0x9e3779b97f4a7c15ULL) + 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (uint32_t)((x ^ x >> 31) >> 33) % n;
}

/* What was not synced: the kernel had written a page or not. */
static void
power_cut(void)
{
	for (size_t at = 0; at < SIZE; at += ROUND_BLOCK)
		if (below(3) == 0)
			file_read("p", at, pool_media + at, ROUND_BLOCK);
	file_put("p", pool_media, SIZE);
	file_change("p.repl", SIDECAR_SIZE, log_media + SIDECAR_SIZE, LOG_END - SIDECAR_SIZE);
	(void)raise(SIGKILL);
}

static bool
cut_is_due(void)
{
	return --syncs == 0;
}

int
__wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	if (!watching)
		return __real_pmem_map_persist(m, r, count, e);
	(void)usleep(below(300));
	pthread_mutex_lock(&media_lock);
	if (cut_is_due())
		power_cut();
	for (size_t i = 0; i < count; i++) {
		size_t from = r[i].off / ROUND_BLOCK * ROUND_BLOCK;
		size_t end = (r[i].off + r[i].len + ROUND_BLOCK - 1) / ROUND_BLOCK * ROUND_BLOCK;

		file_read("p", from, pool_media + from, end - from);
	}
	pthread_mutex_unlock(&media_lock);
	return 0;
}

int
__wrap_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len, struct err *e)
{
	if (!watching)
		return __real_pmem_map_write(m, off, src, len, e);
	pthread_mutex_lock(&media_lock);
	if (cut_is_due()) {
		for (size_t at = 0; at < len; at += SECTOR)
			if (below(2))
				memcpy(log_media + off + at, (const uint8_t *)src + at, SECTOR);
		power_cut();
	}
	memcpy(log_media + off, src, len);
	pthread_mutex_unlock(&media_lock);
	return 0;
}

static int
setup(void **unused)
{
	(void)unused;
	slots = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(slots != MAP_FAILED);
	reached = mmap(NULL, sizeof(*reached), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(reached != MAP_FAILED);
	return world_new(0, 0);
}

static int
teardown(void **unused)
{
	(void)munmap(slots, SLOTS * sizeof(*slots));
	(void)munmap(reached, sizeof(*reached));
	return world_free(unused);
}

/* ---- the process whose machine goes down ---- */

static uint8_t *
slot_mem(unsigned s)
{
	return (uint8_t *)pmem_map_addr(map) + (size_t)s * SLOT_LEN;
}

static void
slot_begin(unsigned s, bool logged)
{
	slots[s].logged = logged;
	slots[s].begun++;
}

static const struct wire_commit_view *
message(uint8_t *buf, unsigned s, uint64_t position, struct wire_commit_view *v)
{
	static uint8_t data[SLOT_LEN];
	struct wire_entry copy = {
		.off = (uint64_t)s * SLOT_LEN, .len = SLOT_LEN, .op = WIRE_OP_COPY};
	struct wire_entry tell = {.off = position, .op = WIRE_OP_POSITION};
	struct wire_commit c;
	size_t size;

	slot_begin(s, true);
	memset(data, slots[s].begun, SLOT_LEN);
	wire_commit_begin(&c, buf, wire_commit_size(2, SLOT_LEN), 2);
	wire_commit_add(&c, &copy, data);
	if (position)
		wire_commit_add(&c, &tell, NULL);
	size = wire_commit_end(&c, 1, pool_get_info(pool)->meta.epoch);
	assert_int_equal(wire_commit_decode(buf, size, SIZE, v, &err), 0);
	return v;
}

/* A frame of one to three slots that follow each other. */
static void
by_the_log(void)
{
	static uint8_t buf[MESSAGES][SLOT_LEN + 4096];
	const struct wire_commit_view *messages[MESSAGES];
	struct wire_commit_view v[MESSAGES];
	unsigned count = 1 + below(MESSAGES), first = below(SLOTS - count + 1);

	reached->begun++;
	for (unsigned i = 0; i < count; i++)
		messages[i] =
			message(buf[i], first + i, i + 1 == count ? reached->begun : 0, &v[i]);
	assert_int_equal(roundlog_write(rlog, messages, count, &err), 0);
	/* As another thread may. */
	if (below(8) == 0)
		assert_int_equal(roundlog_settle(rlog, &err), 0);
	for (unsigned i = 0; i < count; i++)
		memset(slot_mem(first + i), slots[first + i].begun, SLOT_LEN);
	roundlog_stored(rlog, messages, count);
	for (unsigned i = 0; i < count; i++)
		slots[first + i].acked = slots[first + i].begun;
	reached->acked = reached->begun;
}

/* One slot, or two that frames bring both, one or none of; often the same as the last time. */
static void
by_another_way(void)
{
	static unsigned last;
	unsigned count = 1 + below(2), any = below(SLOTS - count + 1);
	unsigned first = last < SLOTS - 1 && below(2) ? last : any;
	struct range r = {.off = (uint64_t)first * SLOT_LEN, .len = (uint64_t)count * SLOT_LEN};

	last = first;
	reached->begun++;
	for (unsigned s = first; s < first + count; s++) {
		slot_begin(s, false);
		memset(slot_mem(s), slots[s].begun, SLOT_LEN);
	}
	if (below(3) == 0)
		assert_int_equal(roundlog_persist(rlog, &r, 1, &err), 0);
	else
		assert_int_equal(roundlog_flush(rlog, &r, 1, &err), 0);
	for (unsigned s = first; s < first + count; s++)
		slots[s].acked = slots[s].begun;
	assert_int_equal(roundlog_position(rlog, reached->begun, &err), 0);
	reached->acked = reached->begun;
}

/* Halves are retired meanwhile, and no frame comes. */
static void
others_while_retired(void)
{
	(void)usleep(below(4000));
	for (unsigned n = 1 + below(6); n > 0; n--) {
		by_another_way();
		pthread_mutex_lock(&media_lock);
		if (cut_is_due())
			power_cut();
		pthread_mutex_unlock(&media_lock);
	}
}

static void
work(void)
{
	for (unsigned i = 0; i < OPS; i++) {
		switch (below(16)) {
		case 0:
			assert_int_equal(roundlog_settle(rlog, &err), 0);
			break;
		case 1:
			others_while_retired();
			break;
		case 2:
		case 3:
			by_another_way();
			break;
		default:
			by_the_log();
			break;
		}
	}
}

static void
writer_opens(void)
{
	char path[TEMPDIR_MAX + 32];
	int fd;

	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &pool, &err), 0);
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	assert_int_equal(pool_log_make(pool, map, &rlog, &err), 0);
	(void)snprintf(path, sizeof(path), "%s/p.repl", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, log_media, LOG_END, 0), LOG_END);
	(void)close(fd);
	memcpy(pool_media, pmem_map_addr(map), SIZE);
	watching = true;
	work();
}

/* Its power may be cut as well. */
static void
next_opens(void)
{
	char path[TEMPDIR_MAX + 32];
	int fd;

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, i ? "p" : "p.repl");
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_true(pread(fd, i ? pool_media : log_media, i ? SIZE : LOG_END, 0) > 0);
		(void)close(fd);
	}
	watching = true;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &pool, &err), 0);
}

/* True if its power was cut. */
static bool
goes_down(void (*process)(void), unsigned after)
{
	int status;
	pid_t pid;

	syncs = after;
	(void)below(2);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		process();
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, WIFSIGNALED(status) ? SIGKILL : W_EXITCODE(1, 0));
	return WIFSIGNALED(status);
}

/* ---- and what is left ---- */

static bool
byte_is(const struct slot *s, uint8_t c)
{
	return (uint8_t)(c - s->acked) <= (uint8_t)(s->begun - s->acked);
}

static void
slot_check(unsigned seed, unsigned n, const uint8_t *mem)
{
	const struct slot *s = &slots[n];
	uint32_t at = 0;

	while (at < SLOT_LEN && byte_is(s, mem[at]) && (!s->logged || mem[at] == mem[0]))
		at++;
	if (at < SLOT_LEN)
		fail_msg("seed %u: slot %u, byte %u is of update %u, the first of %u; %u is "
			 "acknowledged and %u begun, by %s",
			 seed, n, at, mem[at], mem[0], s->acked, s->begun,
			 s->logged ? "the log" : "another way");
}

static void
acknowledged_is_there(unsigned seed)
{
	struct pmem_map *is;
	uint64_t position;

	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &pool, &err), 0);
	assert_int_equal(pool_get_info(pool)->meta.position, info.meta.position);
	assert_int_equal(pool_get_info(pool)->meta.state, SIDECAR_UNKNOWN);
	position = pool_get_info(pool)->meta.position;
	if (position < reached->acked || position > reached->begun)
		fail_msg("seed %u: position %llu, %llu is acknowledged and %llu begun", seed,
			 (unsigned long long)position, (unsigned long long)reached->acked,
			 (unsigned long long)reached->begun);
	assert_int_equal(pool_map(pool, false, &is, &err), 0);
	for (unsigned n = 0; n < SLOTS; n++)
		slot_check(seed, n, (const uint8_t *)pmem_map_addr(is) + (size_t)n * SLOT_LEN);
	pmem_map_free(is);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

/* ROUND_CUTS: from this seed on. */
static void
cut_anywhere_loses_nothing(void **unused)
{
	const char *from = getenv("ROUND_CUTS");
	unsigned first = from ? (unsigned)strtoul(from, NULL, 0) : 1, cuts = 0, again = 0;

	(void)unused;
	for (unsigned seed = first; seed < first + SEEDS; seed++) {
		atomic_store(&state, (uint64_t)seed << 32);
		memset(slots, 0, SLOTS * sizeof(*slots));
		memset(reached, 0, sizeof(*reached));
		assert_int_equal(pool_create(store, "p", SIZE, NULL, false, &info, &err), 0);
		if (goes_down(writer_opens, 1 + below(SYNCS))) {
			cuts++;
			again += goes_down(next_opens, 1);
			acknowledged_is_there(seed);
		}
		assert_int_equal(pool_remove(store, "p", 0, NULL, &err), 0);
	}
	assert_true(cuts > SEEDS / 2 && again > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cut_anywhere_loses_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
