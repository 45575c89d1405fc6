/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All of the data of a pool is marked for a replica that was never written, and no hole; however
 * long a run of data is, its end is looked for once, and who waits is let breathe amid it.
 */
#include "unit.h"

#include "resync_impl.h"

#define GIB  (1ULL << 30)
#define SIZE (64 * GIB + 5)
#define HOLE (10 * GIB + 4096) /* a GiB from there on */

static unsigned looks, breaths;
static uint64_t upto, marked;

void __wrap_dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len);
/* The mark of what is behind the pool's end, should it grow, is no part of that. */
void
__wrap_dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len)
{
	(void)d;
	(void)replica;
	if (off >= SIZE)
		return;
	assert_true(len <= RESYNC_LOOK && off >= upto);
	assert_true(off + len <= HOLE || off >= HOLE + GIB);
	upto = off + len;
	marked += len;
}

struct range __wrap_extents_next(int fd, uint64_t off, uint64_t size);
struct range
__wrap_extents_next(int fd, uint64_t off, uint64_t size)
{
	(void)fd;
	assert_true(size == SIZE);
	looks++;
	if (off >= HOLE && off < HOLE + GIB)
		off = HOLE + GIB;
	if (off >= size)
		return (struct range){0};
	return (struct range){.off = off, .len = (off < HOLE ? HOLE : size) - off};
}

bool __wrap_dirty_take(struct dirty *d, unsigned replica, uint64_t off, uint64_t end, uint64_t most,
		       struct range *out, struct err *e);
bool
__wrap_dirty_take(struct dirty *d, unsigned replica, uint64_t off, uint64_t end, uint64_t most,
		  struct range *out, struct err *e)
{
	(void)d;
	(void)replica;
	(void)off;
	(void)end;
	(void)most;
	(void)out;
	(void)e;
	return false;
}

void __wrap_dirty_batch_end(struct dirty *d, unsigned replica, bool done);
void
__wrap_dirty_batch_end(struct dirty *d, unsigned replica, bool done)
{
	(void)d;
	(void)replica;
	assert_true(done);
}

int __wrap_resync_breathe(struct resync_run *r, struct err *e);
int
__wrap_resync_breathe(struct resync_run *r, struct err *e)
{
	(void)r;
	(void)e;
	breaths++;
	return 0;
}

uint64_t __wrap_resync_left(const struct resync_run *r);
uint64_t
__wrap_resync_left(const struct resync_run *r)
{
	(void)r;
	return 0;
}

static void
a_run_is_walked_once(void **state)
{
	static struct resync_progress progress;
	struct resync s = {.progress = &progress};
	struct resync_run r = {.s = &s, .size = SIZE};
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(resync_scan(&r, RESYNC_FULL, &e), 0);
	assert_true(marked == SIZE - GIB);
	assert_true(upto == SIZE);
	assert_true(breaths >= (SIZE - GIB) / RESYNC_LOOK);
	/* Two runs, and behind them none. */
	assert_true(looks <= 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_is_walked_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
