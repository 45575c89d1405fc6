/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The power is cut in a sync of a frame, each in turn: of the pool and of the log there is what was
 * synced before, and of that frame the first page. What was acknowledged is there.
 */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_world.h"

#define SIZE      (64U * 4096)
#define LOG_END   (SIDECAR_SIZE + REGION_PAGE + 2 * ROUND_HALF_MIN)
#define LARGE     200000U /* a half has room for two of them */
#define UPDATES   9U
#define SCATTERED 60U /* pages */
#define NEVER     UINT32_MAX
#define SLOW_US   20000U /* a sync of the pool: the log is faster */

int __real_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e);
int __wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e);
int __real_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len,
			  struct err *e);
int __wrap_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len,
			  struct err *e);

static struct pool *pool;
static struct pmem_map *map;
static struct roundlog *rlog;

static uint8_t pool_media[SIZE], log_media[LOG_END];
static pthread_mutex_t media_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool watching, pool_fails;
static _Atomic unsigned pool_pages, pool_pages_max; /* synced, in all and at once */
static unsigned syncs, cut_at;                      /* of the log, while it is watched */
static char *acked; /* shared: letter of the last update that was acknowledged */

static void
power_cut(uint64_t off, const void *src, size_t len)
{
	(void)pthread_mutex_lock(&media_lock);
	memcpy(log_media + off, src, len == ROUND_BLOCK ? 100 : ROUND_BLOCK);
	file_put("p", pool_media, SIZE);
	file_change("p.repl", SIDECAR_SIZE, log_media + SIDECAR_SIZE, LOG_END - SIDECAR_SIZE);
	(void)raise(SIGKILL);
}

static void
pages_count(const struct range *r, size_t count)
{
	bool there[SIZE / ROUND_BLOCK] = {false};
	unsigned pages = 0;

	for (size_t i = 0; i < count; i++)
		there[r[i].off / ROUND_BLOCK] = true;
	for (size_t i = 0; i < SIZE / ROUND_BLOCK; i++)
		pages += there[i];
	if (pages > pool_pages_max)
		pool_pages_max = pages;
	pool_pages += pages;
}

int
__wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	if (!watching)
		return __real_pmem_map_persist(m, r, count, e);
	assert_ptr_equal(m, map);
	if (pool_fails) {
		pool_fails = false;
		return err_set(e, REPL_E_IO, "the device failed");
	}
	(void)usleep(SLOW_US);
	(void)pthread_mutex_lock(&media_lock);
	for (size_t i = 0; i < count; i++)
		file_read("p", r[i].off, pool_media + r[i].off, r[i].len);
	(void)pthread_mutex_unlock(&media_lock);
	pages_count(r, count);
	return 0;
}

int
__wrap_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len, struct err *e)
{
	if (!watching)
		return __real_pmem_map_write(m, off, src, len, e);
	if (syncs++ == cut_at)
		power_cut(off, src, len);
	memcpy(log_media + off, src, len);
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	watching = pool_fails = false;
	syncs = 0;
	pool_pages = 0;
	pool_pages_max = 0;
	cut_at = NEVER;
	return world_new(0, SIZE);
}

static int
teardown(void **state)
{
	watching = false;
	return world_free(state);
}

static void
writer_opens(void)
{
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &pool, &err), 0);
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	assert_int_equal(pool_log_make(pool, map, &rlog, &err), 0);
	assert_int_equal(file_get("p.repl", log_media, LOG_END), LOG_END);
	memcpy(pool_media, pmem_map_addr(map), SIZE);
	watching = true;
}

static int
update_at(uint64_t off, uint32_t len, char letter)
{
	static uint8_t buf[ROUND_FRAME_MAX], data[ROUND_FRAME_MAX];
	struct wire_entry copy = {.off = off, .len = len, .op = WIRE_OP_COPY};
	const struct wire_commit_view *messages[1];
	struct wire_commit_view v;
	struct wire_commit c;
	size_t size;
	int rc;

	memset(data, letter, len);
	wire_commit_begin(&c, buf, sizeof(buf), 1);
	wire_commit_add(&c, &copy, data);
	size = wire_commit_end(&c, 1, pool_get_info(pool)->meta.epoch);
	assert_int_equal(wire_commit_decode(buf, size, SIZE, &v, &err), 0);
	messages[0] = &v;
	rc = roundlog_write(rlog, messages, 1, &err);
	if (rc)
		return rc;
	memset((uint8_t *)pmem_map_addr(map) + off, letter, len);
	roundlog_stored(rlog, messages, 1);
	return 0;
}

static int
update(uint32_t len, char letter)
{
	return update_at(0, len, letter);
}

static void
updates(void)
{
	writer_opens();
	for (unsigned i = 0; i < UPDATES; i++) {
		char letter = (char)('a' + i);

		assert_int_equal(update(LARGE, letter), 0);
		*acked = letter;
	}
}

/* False if there was none to cut any more. */
static bool
cut_one(unsigned at)
{
	pid_t pid;
	int status;

	*acked = 0;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		cut_at = at;
		updates();
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, WIFSIGNALED(status) ? SIGKILL : W_EXITCODE(1, 0));
	return WIFSIGNALED(status);
}

static void
acknowledged_is_there(void)
{
	struct pmem_map *is;
	const char *mem;

	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &pool, &err), 0);
	assert_int_equal(pool_get_info(pool)->meta.state, SIDECAR_UNKNOWN);
	assert_int_equal(pool_map(pool, false, &is, &err), 0);
	mem = pmem_map_addr(is);
	for (unsigned i = 0; i < LARGE && *acked; i++)
		assert_int_equal(mem[i], *acked);
	pmem_map_free(is);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

static void
cut_in_any_sync_loses_nothing(void **state)
{
	unsigned at = 0;

	(void)state;
	acked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(acked != MAP_FAILED);
	while (cut_one(at)) {
		acknowledged_is_there();
		at++;
	}
	/* More than the updates: halves were used again, and that was said before. */
	assert_true(at > UPDATES);
	(void)munmap(acked, 4096);
}

/* While the device is busy with many pages, frames wait. */
static void
log_is_retired_piece_by_piece(void **state)
{
	(void)state;
	writer_opens();
	for (unsigned i = 0; i < SCATTERED; i++)
		assert_int_equal(update_at(i * 7 % SCATTERED * ROUND_BLOCK, 100, 'a'), 0);
	for (unsigned i = 0; i < 1000 && pool_pages < SCATTERED; i++)
		(void)usleep(10000);
	assert_int_equal(pool_pages, SCATTERED);
	assert_true(pool_pages_max <= SCATTERED / 2);
	for (unsigned i = 0; i < SCATTERED; i++)
		assert_int_equal(pool_media[i * ROUND_BLOCK], 'a');
	watching = false;
	assert_int_equal(pool_log_end(pool, rlog, false, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

/* The kernel tells it once, to whoever syncs next: the log must not believe the sync after that. */
static void
no_frame_comes_behind_a_sync_that_failed(void **state)
{
	struct range r = {.off = 8192, .len = 1};

	(void)state;
	writer_opens();
	assert_int_equal(update(100, 'a'), 0);
	pool_fails = true;
	assert_int_equal(roundlog_persist(rlog, &r, 1, &err), REPL_E_IO);
	assert_int_equal(roundlog_settle(rlog, &err), REPL_E_IO);
	assert_int_equal(update(100, 'b'), REPL_E_IO);
	assert_int_equal(pool_log_end(pool, rlog, false, &err), REPL_E_IO);
	watching = false;
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, false, &err), 0);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_true(info.meta.log_len > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(cut_in_any_sync_loses_nothing),
		T(log_is_retired_piece_by_piece),
		T(no_frame_comes_behind_a_sync_that_failed),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
