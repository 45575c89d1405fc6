/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handle on a pool set has one replica, which each drain waits for, whatever the configuration
 * says of several of a pool's.
 */
#include "unit.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "repl_impl.h"
#include "repl_set.h"

#define TARGET "host/objects.set"
#define SIZE   4096U

int __wrap_repl_open_with(struct repl_config *cfg, struct repl_set *set, void *addr, size_t size,
			  unsigned flags, struct repl **out, struct err *e);

static uint8_t *mem;             /* the program's range */
static struct repl_config *with; /* what it was opened with */
static bool by_own;              /* and that was a mapping of its own, of the same pages */

int
__wrap_repl_open_with(struct repl_config *cfg, struct repl_set *set, void *addr, size_t size,
		      unsigned flags, struct repl **out, struct err *e)
{
	(void)size;
	(void)flags;
	(void)out;
	with = cfg;
	mem[0]++;
	by_own = addr != mem && *(uint8_t *)addr == mem[0];
	twin_unmap(&set->twin);
	free(set);
	return err_set(e, REPL_E_UNREACHABLE, "nobody is there");
}

/* The configuration of a set's handle, of one that has that key. */
static struct repl_config *
made_in(int flags, const char *key, const char *value, bool fill)
{
	struct repl_config *cfg;
	struct repl *r;

	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(repl_config_new(&cfg), 0);
	assert_int_equal(repl_config_set(cfg, key, value), 0);
	assert_int_equal(repl_set_create(cfg, TARGET, mem, SIZE, NULL, fill, &r),
			 REPL_E_UNREACHABLE);
	repl_config_free(cfg);
	assert_int_equal(munmap(mem, SIZE), 0);
	assert_int_equal(with->target_count, 1);
	assert_string_equal(with->targets[0].pool, "objects.set");
	return with;
}

static struct repl_config *
made(const char *key, const char *value, bool fill)
{
	return made_in(MAP_SHARED, key, value, fill);
}

static struct repl_config *
opened(const char *key, const char *value)
{
	return made(key, value, false);
}

/* Lanes without a queue have claims only where all replicas are waited for. */
static void
no_drain_goes_by_a_queue(void **state)
{
	static const char *const lines[][2] = {
		{"ack", "all"},
		{"ack", "quorum"},
		{"ack", "any"},
		{"async-target", "other/objects.pool"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct repl_config *cfg = opened(lines[i][0], lines[i][1]);

		assert_int_equal(cfg->ack, ACK_ALL);
		assert_false(config_queued(cfg, 0));
		repl_config_free(cfg);
	}
}

/* It does not come back: that would be in vain until block-timeout. A program's does. */
static void
nobody_waits_for_one_that_is_filled(void **state)
{
	static const int filled[] = {
		[REPL_ON_LOSS_DEGRADE] = REPL_ON_LOSS_DEGRADE,
		[REPL_ON_LOSS_FAIL] = REPL_ON_LOSS_FAIL,
		[REPL_ON_LOSS_BLOCK] = REPL_ON_LOSS_FAIL,
	};
	static const char *const names[] = {
		[REPL_ON_LOSS_DEGRADE] = "degrade",
		[REPL_ON_LOSS_FAIL] = "fail",
		[REPL_ON_LOSS_BLOCK] = "block",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(filled) / sizeof(filled[0]); i++) {
		struct repl_config *cfg = made("on-loss", names[i], true);

		assert_int_equal(cfg->on_loss, filled[i]);
		repl_config_free(cfg);
		assert_false(by_own);
		cfg = opened("on-loss", names[i]);
		assert_int_equal(cfg->on_loss, i);
		assert_true(by_own);
		repl_config_free(cfg);
	}
}

/* What can't be mapped once more may be unmapped when it is to be read: it does not come back. */
static void
nobody_waits_for_one_of_memory_that_is_not_shared(void **state)
{
	struct repl_config *cfg = made_in(MAP_PRIVATE, "on-loss", "block", false);

	(void)state;
	assert_int_equal(cfg->on_loss, REPL_ON_LOSS_FAIL);
	assert_false(by_own);
	repl_config_free(cfg);
}

/* A set has a handle for each of its remote replicas. */
static void
nothing_that_one_handle_has_is_named(void **state)
{
	struct repl_config *cfg = opened("status-socket", "/tmp/socket");

	(void)state;
	assert_null(cfg->status_socket);
	repl_config_free(cfg);
	cfg = opened("metrics-file", "/tmp/metrics");
	assert_null(cfg->metrics_file);
	repl_config_free(cfg);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_drain_goes_by_a_queue),
		cmocka_unit_test(nobody_waits_for_one_that_is_filled),
		cmocka_unit_test(nobody_waits_for_one_of_memory_that_is_not_shared),
		cmocka_unit_test(nothing_that_one_handle_has_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
