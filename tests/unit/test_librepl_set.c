/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handle on a pool set has one replica, which each drain waits for, whatever the configuration
 * says of several of a pool's.
 */
#include "unit.h"

#include <stdlib.h>

#include "repl_impl.h"
#include "repl_set.h"

#define TARGET "host/objects.set"
#define SIZE   4096U

int __wrap_repl_open_with(struct repl_config *cfg, struct repl_set *set, void *addr, size_t size,
			  unsigned flags, struct repl **out, struct err *e);

static struct repl_config *with; /* what it was opened with */

int
__wrap_repl_open_with(struct repl_config *cfg, struct repl_set *set, void *addr, size_t size,
		      unsigned flags, struct repl **out, struct err *e)
{
	(void)addr;
	(void)size;
	(void)flags;
	(void)out;
	with = cfg;
	free(set);
	return err_set(e, REPL_E_UNREACHABLE, "nobody is there");
}

/* The configuration of a set's handle, of one that has that key. */
static struct repl_config *
opened(const char *key, const char *value)
{
	static _Alignas(SIZE) uint8_t mem[SIZE];
	struct repl_config *cfg;
	struct repl *r;

	assert_int_equal(repl_config_new(&cfg), 0);
	assert_int_equal(repl_config_set(cfg, key, value), 0);
	assert_int_equal(repl_set_create(cfg, TARGET, mem, SIZE, NULL, false, &r),
			 REPL_E_UNREACHABLE);
	repl_config_free(cfg);
	assert_int_equal(with->target_count, 1);
	assert_string_equal(with->targets[0].pool, "objects.set");
	return with;
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

/* Which would be in vain until block-timeout. */
static void
nobody_waits_for_what_does_not_come_back(void **state)
{
	static const int means[] = {
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
	for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++) {
		struct repl_config *cfg = opened("on-loss", names[i]);

		assert_int_equal(cfg->on_loss, means[i]);
		repl_config_free(cfg);
	}
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
		cmocka_unit_test(nobody_waits_for_what_does_not_come_back),
		cmocka_unit_test(nothing_that_one_handle_has_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
