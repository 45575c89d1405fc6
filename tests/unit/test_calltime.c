/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call that waits for others has op-timeout for that, without what the local disk takes
 * meanwhile, and so has a step of a log.
 */
#include "unit.h"

#include <stdlib.h>
#include <time.h>

#include "../../librepl/src/calltime.c"
#include "../../librepl/src/log_step.c"

#define TIMEOUT_MS 20U
#define TRIES      20U

static _Atomic uint64_t clock_ns = NS_PER_S;

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	uint64_t ns = atomic_load(&clock_ns);

	(void)id;
	*ts = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};
	return 0;
}

static void
pass(unsigned ms)
{
	(void)atomic_fetch_add(&clock_ns, ms * NS_PER_MS);
}

/* ---- what is beside steps ---- */

static unsigned tries, disk_tries; /* of a step; during how many the disk is waited for */

/* Another call has the lane, for all of op-timeout. */
int
repl_persist(struct repl *r, unsigned lane, size_t off, size_t len)
{
	(void)lane;
	(void)off;
	(void)len;
	if (++tries == TRIES)
		return 0;
	pass(TIMEOUT_MS);
	if (tries == disk_tries)
		diskclock_end(&r->local.disk);
	return REPL_E_BUSY;
}

int
repl_flush(struct repl *r, unsigned lane, size_t off, size_t len)
{
	(void)r;
	(void)lane;
	(void)off;
	(void)len;
	fail();
	return 0;
}

int
repl_drain(struct repl *r, unsigned lane)
{
	return repl_flush(r, lane, 0, 0);
}

int
repl_trim(struct repl *r, unsigned lane, size_t off, size_t len)
{
	return repl_flush(r, lane, off, len);
}

int
repl_persist_behind(struct repl *r, unsigned lane, const struct repl_behind *behind)
{
	return repl_flush(r, lane, behind->b.off, behind->b.len);
}

int
pending_store(struct repl *r, const struct range *range, unsigned count, unsigned *turn,
	      struct err *e)
{
	(void)range;
	(void)turn;
	(void)e;
	return repl_flush(r, count, 0, 0);
}

void
pending_stored(struct repl *r, unsigned turn)
{
	(void)r;
	(void)turn;
	fail();
}

int
config_report(const struct err *e)
{
	return e->code;
}

int
handle_abandoned(struct err *e)
{
	return err_set(e, REPL_E_LOST, "abandoned");
}

struct logfmt_span
logcore_header_first(struct logcore *c, struct logfmt_header *h)
{
	(void)c;
	(void)h;
	fail();
	return (struct logfmt_span){0};
}

void
logcore_header_second(struct logcore *c, const struct logfmt_header *h)
{
	(void)c;
	(void)h;
	fail();
}

/* ---- the tests ---- */

static void
the_disk_counts_once_and_for_nobody(void **state)
{
	struct diskclock c = {0};
	struct calltime t;

	(void)state;
	diskclock_begin(&c);
	pass(7);
	t = calltime_begin(&c, clock_now_ns());
	assert_true(calltime_end(&c, &t, TIMEOUT_MS) == t.begin_ns + TIMEOUT_MS * NS_PER_MS);
	pass(100);
	diskclock_begin(&c);
	assert_true(calltime_end(&c, &t, TIMEOUT_MS) == clock_deadline(TIMEOUT_MS));
	diskclock_end(&c);
	pass(100);
	diskclock_end(&c);
	assert_true(calltime_end(&c, &t, TIMEOUT_MS) == clock_deadline(TIMEOUT_MS));
	pass(TIMEOUT_MS);
	assert_true(calltime_end(&c, &t, TIMEOUT_MS) == clock_now_ns());
	diskclock_begin(&c);
	assert_true(calltime_end(&c, &t, TIMEOUT_MS) > clock_now_ns());
	diskclock_end(&c);
	assert_true(calltime_end(&c, &t, TIMEOUT_MS) == clock_now_ns());
}

/* A handle, and a log on it. */
static int
step(unsigned with_disk)
{
	struct repl_config cfg = {.op_timeout_ms = TIMEOUT_MS};
	struct repl *r = calloc(1, sizeof(*r));
	struct repl_log *log = calloc(1, sizeof(*log));
	int rc;

	assert_non_null(r);
	assert_non_null(log);
	r->cfg = &cfg;
	log->r = r;
	tries = 0;
	disk_tries = with_disk;
	if (with_disk)
		diskclock_begin(&r->local.disk);
	rc = log_persist(log, 0, 8);
	free(log);
	free(r);
	return rc;
}

static void
a_step_is_tried_again_as_long_as_the_disk_is_waited_for(void **state)
{
	(void)state;
	assert_int_equal(step(0), REPL_E_BUSY);
	assert_int_equal(tries, 1);
	assert_int_equal(step(TRIES - 1), 0);
	assert_int_equal(step(TRIES / 2), REPL_E_BUSY);
	assert_in_range(tries, TRIES / 2 + 1, TRIES / 2 + 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_disk_counts_once_and_for_nobody),
		cmocka_unit_test(a_step_is_tried_again_as_long_as_the_disk_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
