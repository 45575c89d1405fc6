/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whenever a resync is cut off, by either side's death, the replica is what the
 * pool was at some hold, or it says that it is inconsistent; it says up-to-date
 * of the current generation only if it has all that was drained; and however
 * often it is cut off, it ends with all of it. Whoever runs it is told what has cut it off.
 *
 * A program stores, flushes and drains between any two steps of a resync against
 * a target in memory. All comes from a seed: test_resync SEED [COUNT [STORES]]
 * repeats one, with no more than so many stores; a seed that fails is tried with
 * fewer and fewer.
 */
#include "resync_play.h"

static int other_fd;

static const char *
world_run(uint64_t seed, uint64_t stores_max)
{
	struct resync_progress progress = {0};
	char file[32];
	struct resync s;
	enum resync_what what;
	struct err e;
	int rc;

	world_begin(seed, stores_max, &what);
	/* Another file, all of it a hole, may have got the name that the mapped one had. */
	(void)snprintf(file, sizeof(file), "/proc/self/fd/%d", rnd(4) || as_tool ? w.fd : other_fd);
	s = (struct resync){.remote = &w.target,
			    .mem = w.mem,
			    .file = rnd(2) || as_tool ? file : NULL,
			    .progress = &progress,
			    .no_journal = rnd(8) == 0 && !as_tool,
			    .part = w.part,
			    .untouched = as_tool,
			    .resume = as_tool || rnd(2),
			    .host = {.hold = w.busy ? host_hold : NULL,
				     .release = host_release,
				     .cancelled = host_cancelled,
				     .size = host_size}};
	for (unsigned tries = 0; !w.wrong; tries++) {
		w.steps = 0;
		w.cut_at = tries < 6 && rnd(4) ? 1 + (unsigned)rnd(tries % 2 ? 40 : 400) : 0;
		/* Before it has begun with anything. */
		if (tries == 0 && rnd(8) == 0)
			w.cut_at = 1;
		if (!w.busy)
			moment_now(&w.at_hold);
		err_clear(&e);
		rc = resync_run(&s, what, host_chain, &e);
		w.kept += progress.kept;
		if (!rc)
			break;
		/* Not only that it is cut off. */
		if (e.code == REPL_E_LOST)
			wrong("what has cut it off is not told");
		failed_run(&s);
		/* Its map can be trusted now, and comparing again is no fault. */
		if (what == RESYNC_FULL && w.target.info.meta.state != SIDECAR_INCONSISTENT &&
		    gen_id_is_nil(&w.target.info.meta.generation.current))
			what = RESYNC_FULL;
		else
			what = rnd(2) && !as_tool ? RESYNC_DELTA : RESYNC_HASHES;
	}
	if (!w.wrong)
		judge_end();
	dirtymap_free(w.current);
	dirtymap_free(w.batch);
	return w.wrong;
}

static uint64_t first_seed = 1, seed_count = 3000, most_stores = 100000;

static void
cut_anywhere(void **state)
{
	uint64_t skipped = 0, kept = 0;

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
		const char *what = world_run(seed, most_stores), *less;
		uint64_t stores = w.stores;

		skipped += w.skipped;
		kept += w.busy ? w.kept : 0;
		if (!what)
			continue;
		/* The fewest stores that show it. */
		while (stores > 0 && (less = world_run(seed, stores - 1)))
			what = less, stores = w.stores < stores ? w.stores : stores - 1;
		fail_msg("%s: test_resync %llu 1 %llu", what, (unsigned long long)seed,
			 (unsigned long long)stores);
	}
	/* Comparisons that were cut off have gone on where they were. */
	(void)printf("%llu bytes were not compared again\n", (unsigned long long)skipped);
	(void)printf("%llu bytes were not staged again beside a program\n",
		     (unsigned long long)kept);
	assert_true((skipped > 0 && kept > 0) || seed_count < 100);
}

/* What was staged and not committed is gone on with, unless the file or the target has lost it. */
static void
what_was_staged_is_gone_on_with(void **state)
{
	uint64_t kept = 0;

	(void)state;
	as_tool = true;
	for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
		const char *what = world_run(seed, 0);

		kept += w.kept;
		if (what)
			fail_msg("%s: seed %llu of a tool", what, (unsigned long long)seed);
	}
	as_tool = false;
	(void)printf("%llu bytes were not staged again\n", (unsigned long long)kept);
	assert_true(kept > 0 || seed_count < 100);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(what_was_staged_is_gone_on_with),
	};
	int ret;

	if (argc > 1) {
		first_seed = strtoull(argv[1], NULL, 10);
		seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
		most_stores = argc > 3 ? strtoull(argv[3], NULL, 10) : most_stores;
	}
	(void)printf("seeds %llu to %llu\n", (unsigned long long)first_seed,
		     (unsigned long long)(first_seed + seed_count - 1));
	world_make();
	other_fd = memfd_create("other", MFD_CLOEXEC);
	assert_true(other_fd >= 0 && ftruncate(other_fd, BLOCKS * BLOCK) == 0);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(w.target.entry);
	return ret;
}
