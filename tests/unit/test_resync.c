/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whenever a resync is cut off, by either side's death, the replica is what the
 * pool was at some hold, or it says that it is inconsistent; it says up-to-date
 * of the current generation only if it has all that was drained; and however
 * often it is cut off, it ends with all of it.
 *
 * A program stores, flushes and drains between any two steps of a resync against
 * a target in memory. All comes from a seed: test_resync SEED [COUNT [STORES]]
 * repeats one, with no more than so many stores; a seed that fails is tried with
 * fewer and fewer.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "lineage.h"

/* Time is the model's. */
static uint64_t model_now_ns;
#define clock_now_ns()      (model_now_ns)
#define clock_deadline(ms)  (model_now_ns + (uint64_t)(ms)*1000000ULL)
#define nanosleep(ts, rest) (model_now_ns += (uint64_t)(ts)->tv_nsec, 0)

#define BLOCK 4096U

/* Pieces of a comparison are small enough for a pool of the model's. */
#include "../../librepl/src/hashwalk.h"
#include "../../librepl/src/holes.h"
#undef HASHWALK_BLOCKS
#define HASHWALK_BLOCKS 8U
#undef HOLES_SEGMENT
#define HOLES_SEGMENT (HASHWALK_BLOCKS * BLOCK)

#include "../../librepl/src/hashwalk.c"
#include "../../librepl/src/localmem.c"
#include "../../librepl/src/localread.c"
#include "../../librepl/src/holes.c"
#include "../../librepl/src/resync_throttle.c"
#include "../../librepl/src/resync_scan.c"
#include "../../librepl/src/resync_copy.c"
#include "../../librepl/src/resync_kept.c"
#include "../../librepl/src/resync_space.c"
#include "../../librepl/src/resync.c"

#include "resync_world.h"

unsigned
forks_count(void)
{
	return 0;
}

/* ---- dirty ---- */

void
dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len)
{
	(void)d;
	(void)replica;
	(void)dirtymap_set(w.current, off, len);
}

void
dirty_mark_all(struct dirty *d, unsigned replica)
{
	dirty_mark(d, replica, 0, UINT64_MAX);
}

struct dirtymap *
dirty_batch_begin(struct dirty *d, unsigned replica)
{
	(void)d;
	(void)replica;
	if (w.batch)
		wrong("two batches");
	w.batch = w.current;
	(void)dirtymap_new(w.size, w.shift, &w.current, NULL);
	return w.batch;
}

bool
dirty_take(struct dirty *d, unsigned replica, uint64_t from, uint64_t end, uint64_t max_len,
	   struct range *run, struct err *e)
{
	(void)d;
	(void)replica;
	(void)e;
	if (!w.batch)
		(void)dirtymap_new(w.size, w.shift, &w.batch, NULL);
	return dirtymap_take(w.current, w.batch, from, end, max_len, run);
}

void
dirty_rebase(struct dirty *d, unsigned replica, const struct gen_id *base)
{
	(void)d;
	(void)replica;
	if (!w.target.committed || !w.held ||
	    !gen_id_equal(base, &w.target.commit_generation.current))
		wrong("a map with a base that the replica does not have");
	w.compared = 0;
}

void
dirty_batch_end(struct dirty *d, unsigned replica, bool done)
{
	(void)d;
	(void)replica;
	if (w.batch && !done)
		dirtymap_merge(w.current, w.batch);
	dirtymap_free(w.batch);
	w.batch = NULL;
}

void
dirty_batch_compared(struct dirty *d, unsigned replica, const struct gen_id *of, uint64_t upto,
		     bool whole)
{
	struct range run;

	if (upto & ((1U << w.shift) - 1))
		wrong("compared a part of a block");
	for (uint64_t at = upto; !whole && dirtymap_next(w.batch, at, UINT64_MAX, &run);
	     at = run.off + run.len)
		(void)dirtymap_set(w.current, run.off, run.len);
	dirty_batch_end(d, replica, true);
	w.compared_of = *of;
	w.compared = upto;
}

uint64_t
dirty_compared(const struct dirty *d, unsigned replica, const struct gen_id *of)
{
	(void)d;
	(void)replica;
	if (gen_id_is_nil(of) || !gen_id_equal(of, &w.compared_of))
		return 0;
	w.skipped += w.compared;
	return w.compared;
}

uint64_t
dirty_marked(const struct dirty *d, unsigned replica)
{
	(void)d;
	(void)replica;
	return dirtymap_bytes(w.current);
}

unsigned
dirty_grain(const struct dirty *d)
{
	(void)d;
	return 1U << w.shift;
}

#include "resync_target.h"

/* ---- the host ---- */

/* A drain may take long: whoever waits for it has to let the target hear. */
static int
host_hold(void *arg, uint64_t deadline_ns, struct breath breath, struct err *e)
{
	(void)arg;
	(void)deadline_ns;
	for (uint64_t i = rnd(4) ? 0 : rnd(20); i > 0; i--) {
		int rc = breath_take(&breath, e);

		if (rc)
			return rc;
		bytes_move(&w.target, BREATH_NS);
	}
	if (w.held)
		wrong("a hold within a hold");
	if (rnd(50) == 0)
		return err_set(e, REPL_E_TIMEOUT, "busy");
	drain();
	w.held = true;
	moment_now(&w.at_hold);
	return 0;
}

static void
host_release(void *arg)
{
	(void)arg;
	if (!w.held)
		wrong("released what is not held");
	w.held = false;
}

static bool
host_cancelled(void *arg)
{
	(void)arg;
	return w.cancel;
}

static uint64_t
host_size(void *arg)
{
	(void)arg;
	return w.size;
}

static const struct generation *
host_chain(void *arg)
{
	(void)arg;
	if (!w.held && w.busy)
		wrong("the chain is asked for without a hold");
	return &w.generation;
}

/* ---- a world, and its judges ---- */

static void
id_random(struct gen_id *id)
{
	for (unsigned i = 0; i < GEN_ID_SIZE; i++)
		id->b[i] = (uint8_t)(rnd(255) + 1);
}

static void
advance(void)
{
	struct gen_id id;

	id_random(&id);
	gen_advance(&w.generation, &id);
}

/* Of a tool: nobody writes while it runs, and each run compares all. */
static bool as_tool;

/* What it lacks of what was drained so far. */
static void
replica_begin(struct remote *t, uint64_t seed, enum resync_what what)
{
	static const enum sidecar_state states[] = {SIDECAR_UP_TO_DATE, SIDECAR_OUTDATED,
						    SIDECAR_UNKNOWN, SIDECAR_INCONSISTENT};

	t->info.meta.pool_size = w.size;
	t->info.meta.sparse = seed % 2;
	(void)snprintf(t->info.filesystem, sizeof(t->info.filesystem), "%s",
		       seed % 8 == 1 ? "btrfs" : "ext4");
	t->info.meta.state = states[rnd(as_tool ? 3 : 4)];
	/* As the pool's own record says that is opened: of its generation there is more elsewhere.
	 */
	w.part = !as_tool && !w.busy && what != RESYNC_FULL && seed % 5 == 0 ? 9 : 0;
	if (w.part && t->info.meta.state == SIDECAR_UP_TO_DATE)
		t->info.meta.state = SIDECAR_UNKNOWN;
	if (what == RESYNC_FULL)
		t->info.meta.state = rnd(2) ? SIDECAR_UP_TO_DATE : SIDECAR_INCONSISTENT;
	else
		t->info.meta.generation = w.generation;
	for (unsigned b = 0; b < blocks(); b++) {
		if (what == RESYNC_FULL && t->info.meta.state != SIDECAR_INCONSISTENT)
			continue;
		t->value[b] = w.value[b];
		/* Of one that a copy was begun into the map tells what is missing. */
		if (t->info.meta.state == SIDECAR_INCONSISTENT && rnd(4) == 0) {
			t->value[b] = (uint8_t)rnd(VALUES);
			(void)dirtymap_set(w.current, (uint64_t)b * BLOCK, BLOCK);
		}
		/* Of one that was compared nothing is known. */
		if (what == RESYNC_HASHES && rnd(3) == 0)
			t->value[b] = (uint8_t)rnd(VALUES);
	}
	holes_make(t);
}

static void
world_begin(uint64_t seed, uint64_t stores_max, enum resync_what *what)
{
	struct remote *t = &w.target;
	struct entry *entry = t->entry;
	uint8_t *mem = w.mem;
	int fd = w.fd;

	memset(&w, 0, sizeof(w));
	w.seed = w.random = seed;
	w.mem = mem;
	w.fd = fd;
	t->entry = entry;
	t->heard_ns = model_now_ns;
	w.stores_max = stores_max;
	(void)rnd(2);
	w.busy = rnd(8) != 0 && !as_tool;
	w.refuse_journal = rnd(5) == 0;
	w.slow = (unsigned)(rnd(3) * rnd(3) * 50);
	w.shift = 12 + (unsigned)rnd(3);
	w.journal_max = seed % 3 ? UINT64_MAX : 1 + rnd(BLOCKS * BLOCK);
	w.size = BLOCK * (1 + rnd(BLOCKS));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(fd, BLOCKS * BLOCK), 0);
	for (unsigned b = 0; b < BLOCKS; b++)
		w.loose[b] = 1;
	assert_int_equal(dirtymap_new(w.size, w.shift, &w.current, NULL), 0);
	for (unsigned b = 0; b < blocks(); b++) {
		if (rnd(2)) {
			store(b);
			flush(b);
		}
	}
	advance();
	*what = as_tool ? RESYNC_HASHES : (enum resync_what)rnd(3);
	replica_begin(t, seed, *what);
	memset(w.flushed, 0, sizeof(w.flushed));
	for (unsigned b = 0; b < BLOCKS; b++)
		w.base.allowed[b] = (uint8_t)(1U << t->value[b]);
	/* It was lost here: from now on what is drained is marked. */
	if (!w.part)
		advance();
	if (w.busy)
		for (unsigned i = 0; i < 20; i++)
			program();
	else
		for (uint64_t n = rnd(40); n > 0; n--) {
			unsigned b = (unsigned)rnd(blocks());

			store(b);
			flush(b);
			drain();
		}
}

static void
judge_cut(void)
{
	const struct remote *t = &w.target;
	struct moment now;

	moment_now(&now);
	for (unsigned b = 0; b < blocks(); b++) {
		/* Flushed and not drained: the last drained value may be as good. */
		if (w.flushed[b])
			now.allowed[b] = 0xff;
	}
	if (t->info.meta.state != SIDECAR_INCONSISTENT && !is_moment(t, &w.base))
		wrong("a replica that is no prefix says that it is one");
	if (t->info.meta.state == SIDECAR_UP_TO_DATE &&
	    gen_id_equal(&t->info.meta.generation.current, &w.generation.current) &&
	    (w.part || !is_moment(t, &now) || t->info.meta.pool_size != w.size))
		wrong("a replica that lacks updates says that it is up to date");
	if (t->info.meta.position && !is_moment(t, &now))
		wrong("a replica that lacks updates tells their position");
}

static void
judge_end(void)
{
	const struct remote *t = &w.target;
	struct moment now;

	moment_now(&now);
	if (w.busy && !w.held)
		wrong("done without a hold");
	if (t->info.meta.state != (w.part ? SIDECAR_UNKNOWN : SIDECAR_UP_TO_DATE) ||
	    t->info.meta.position != w.part ||
	    !gen_id_equal(&t->info.meta.generation.current, &w.generation.current))
		wrong("done and not recorded");
	if (t->info.meta.pool_size != w.size || !is_moment(t, &now))
		wrong("done and not equal");
	if (w.batch || t->journal || t->left)
		wrong("done, and something is left over");
}

static void
failed_run(const struct resync *s)
{
	if (s->in_doubt && w.busy && !w.held)
		wrong("in doubt without a hold");
	if (!s->in_doubt && w.held)
		wrong("failed and held");
	if (s->in_doubt)
		advance();
	w.held = false;
	if (w.batch)
		wrong("failed, and the batch is not merged back");
	w.cancel = false;
	w.target.full = false;
	for (unsigned i = 0; i < 5; i++)
		program();
	/* Another program has the file for a while, and writes the first blocks again and again. */
	for (uint64_t n = as_tool && rnd(2) ? rnd(8) : 0; n > 0; n--) {
		unsigned b = (unsigned)rnd(rnd(2) && blocks() > 2 ? 2 : blocks());

		store(b);
		flush(b);
		drain();
	}
	target_recover(&w.target);
	judge_cut();
}

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

/* As a tool goes on with a journal that may be there. */
static struct resync
resuming(struct resync_progress *progress)
{
	return (struct resync){.remote = &w.target,
			       .mem = w.mem,
			       .progress = progress,
			       .resume = true,
			       .host = {.cancelled = host_cancelled, .size = host_size}};
}

/* What the target has now it may have, until the run has come to its end; returns its failures. */
static unsigned
run_to_end(struct resync *s, enum resync_what what)
{
	unsigned failures = 0;
	struct err e;

	for (unsigned b = 0; b < BLOCKS; b++)
		w.base.allowed[b] = (uint8_t)(1U << w.target.value[b]);
	moment_now(&w.at_hold);
	err_clear(&e);
	for (; resync_run(s, what, host_chain, &e); failures++)
		failed_run(s);
	judge_end();
	assert_null(w.wrong);
	dirtymap_free(w.current);
	return failures;
}

/* Two messages of block 1, which the pool has and the journal may bring back to what it was. */
static void
the_last_message_of_a_place_counts(void **state)
{
	struct resync_progress progress = {0};
	unsigned times[2] = {0};
	struct resync s = resuming(&progress);
	enum resync_what what;
	char file[32];

	(void)state;
	as_tool = true;
	(void)snprintf(file, sizeof(file), "/proc/self/fd/%d", w.fd);
	s.file = file;
	s.untouched = true;
	for (uint64_t seed = 1; seed < 60; seed++) {
		bool right = seed % 2, again;

		world_begin(seed, 0, &what);
		w.refuse_journal = false;
		w.journal_max = UINT64_MAX;
		w.target.info.meta.state = SIDECAR_OUTDATED;
		for (unsigned b = 0; b < blocks(); b++)
			w.target.value[b] = w.value[b];
		/* So that there is something to be done. */
		w.target.value[0] ^= 1;
		for (unsigned i = 0; i < 2; i++)
			w.target.entry[i] = (struct entry){
				.off = blocks() > 1 ? BLOCK : 0,
				.len = BLOCK,
				.value = {w.value[blocks() > 1] ^ ((i == 1) ^ right)},
			};
		/* For the sake of this one it is wanted. */
		w.target.entry[2] = (struct entry){.len = BLOCK, .value = {w.value[0]}};
		w.target.entries = 3;
		w.target.left = true;
		again = run_to_end(&s, what) > 0;
		/* What is right there is not sent again. */
		if (again || progress.rounds > 1 || w.target.told < 3 || blocks() < 2)
			continue;
		assert_int_equal(progress.kept, right ? 2 * BLOCK : BLOCK);
		assert_int_equal(progress.moved, right ? 0 : BLOCK);
		times[right]++;
	}
	as_tool = false;
	assert_true(times[0] > 0 && times[1] > 0);
}

/* The replica lacks one block, and a journal would bring all of what the pool was before. */
static void
what_is_of_no_use_is_not_staged_again(void **state)
{
	struct resync_progress progress = {0};
	struct resync s = resuming(&progress);
	enum resync_what what;

	(void)state;
	as_tool = true;
	for (uint64_t seed = 1; seed < 60; seed++) {
		struct remote *t = &w.target;

		world_begin(seed, 0, &what);
		w.refuse_journal = false;
		w.journal_max = UINT64_MAX;
		t->info.meta.state = SIDECAR_OUTDATED;
		for (unsigned b = 0; b < blocks(); b++) {
			t->value[b] = w.value[b];
			t->entry[b] = (struct entry){
				.off = b * BLOCK, .len = BLOCK, .value = {w.value[b] ^ 1}};
		}
		t->value[0] ^= 1;
		t->entries = blocks();
		t->left = true;
		(void)run_to_end(&s, what);
		/* Of the grain that is marked. */
		assert_true(progress.moved <= 1U << w.shift);
	}
	as_tool = false;
}

/* Of a map of four blocks a bit, in which all is marked, the journal brings all but the last block.
 */
static void
what_it_brings_is_not_compared_with_the_replica(void **state)
{
	struct resync_progress progress = {0};
	struct resync s = resuming(&progress);
	struct remote *t = &w.target;
	unsigned times = 0;

	(void)state;
	for (uint64_t seed = 1; seed < 60; seed++) {
		enum resync_what what;
		struct err e;

		world_begin(seed, 0, &what);
		dirtymap_free(w.current);
		w.size = 32 * BLOCK;
		w.shift = 14;
		w.busy = false;
		w.refuse_journal = false;
		w.journal_max = UINT64_MAX;
		assert_int_equal(dirtymap_new(w.size, w.shift, &w.current, NULL), 0);
		dirtymap_set_all(w.current);
		t->info.meta.pool_size = w.size;
		t->info.meta.state = SIDECAR_OUTDATED;
		t->info.meta.generation = w.generation;
		w.part = 0;
		for (unsigned b = 0; b < blocks() - 1; b++)
			t->entry[b] = (struct entry){
				.off = b * BLOCK, .len = BLOCK, .value = {w.value[b]}};
		t->entries = blocks() - 1;
		t->left = true;
		moment_now(&w.at_hold);
		err_clear(&e);
		if (resync_run(&s, RESYNC_DELTA, host_chain, &e) == 0) {
			judge_end();
			assert_int_equal(progress.done, progress.total);
			if (progress.rounds == 1 && progress.kept) {
				assert_int_equal(progress.kept, w.size - BLOCK);
				assert_int_equal(w.hashed, 1);
				times++;
			}
		}
		assert_null(w.wrong);
		dirtymap_free(w.current);
	}
	assert_true(times > 0);
}

static bool noted; /* that it is not whole */

static bool
host_direct(void *arg, bool blank)
{
	(void)arg;
	noted = noted || blank;
	return true;
}

/*
 * It lacks nothing or is written directly, and a journal that is left for it goes. One that is not
 * whole is noted, for others to wait.
 */
static void
left_run(struct resync *s, enum sidecar_state state, bool lacks)
{
	struct remote *t = &w.target;
	enum resync_what what;

	world_begin(2, 0, &what);
	w.busy = false;
	memcpy(t->value, w.value, sizeof(t->value));
	t->value[0] ^= lacks;
	w.part = s->part;
	t->info.meta.generation = w.generation;
	t->info.meta.state = state;
	t->info.meta.position = s->part;
	t->entries = 0;
	t->left = t->info.journal_left = true;
	noted = false;
	s->host.direct = host_direct;
	(void)run_to_end(s, RESYNC_HASHES);
	assert_true(noted == (state == SIDECAR_INCONSISTENT));
}

static void
what_nobody_takes_up_goes(void **state)
{
	struct resync_progress progress = {0};
	struct resync s = resuming(&progress);

	(void)state;
	left_run(&s, SIDECAR_INCONSISTENT, true);
	left_run(&s, SIDECAR_INCONSISTENT, false);
	s.part = 7;
	left_run(&s, SIDECAR_UNKNOWN, false);
}

/* Nobody writes, a sparse replica has missed blocks 1 and 4 to 8, and its disk has no room. */
static void
full_world(const char *filesystem)
{
	struct remote *t = &w.target;
	enum resync_what what;

	world_begin(1, 0, &what);
	dirtymap_free(w.current);
	w.size = 32 * BLOCK;
	w.shift = 12;
	w.busy = false;
	w.slow = 0;
	w.stay_full = true;
	assert_int_equal(dirtymap_new(w.size, w.shift, &w.current, NULL), 0);
	t->info.meta.pool_size = w.size;
	t->info.meta.sparse = true;
	t->info.meta.state = SIDECAR_OUTDATED;
	t->info.meta.generation = w.generation;
	(void)snprintf(t->info.filesystem, sizeof(t->info.filesystem), "%s", filesystem);
	memset(t->hole, 0, sizeof(t->hole));
	memcpy(t->value, w.value, sizeof(t->value));
	for (unsigned b = 1; b <= 8; b = b == 1 ? 4 : b + 1) {
		t->value[b] = (uint8_t)((w.value[b] + 1) % VALUES);
		(void)dirtymap_set(w.current, (uint64_t)b * BLOCK, BLOCK);
	}
}

static int
full_run(struct err *e)
{
	struct resync_progress progress = {0};
	struct resync s = {.remote = &w.target,
			   .mem = w.mem,
			   .progress = &progress,
			   .host = {.cancelled = host_cancelled, .size = host_size}};

	err_clear(e);
	return resync_run(&s, RESYNC_DELTA, host_chain, e);
}

/*
 * A sparse replica on a disk that stays full: who needs no space comes back, and who does, or may,
 * stays the copy that it is.
 */
static void
full_disk_keeps_away_who_needs_space(void **state)
{
	static const struct {
		const char *filesystem;
		unsigned hole; /* block; 1 and 4 to 8 are missed */
		int rc;
	} cases[] = {{"ext4", BLOCKS, 0},
		     {"ext4-dax", 9, 0},
		     {"xfs", 0, 0},
		     {"tmpfs", 3, 0},
		     {"tmpfs", 1, REPL_E_NOSPC},
		     {"ext4", 4, REPL_E_NOSPC},
		     {"ext4", 8, REPL_E_NOSPC},
		     {"btrfs", BLOCKS, REPL_E_NOSPC},
		     {"zfs", 9, REPL_E_NOSPC},
		     {"0x1234", 9, REPL_E_NOSPC}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct remote *t = &w.target;
		struct err e;

		full_world(cases[i].filesystem);
		if (cases[i].hole < BLOCKS)
			t->hole[cases[i].hole] = true;
		assert_int_equal(full_run(&e), cases[i].rc);
		assert_null(w.wrong);
		assert_int_equal(t->info.meta.state,
				 cases[i].rc ? SIDECAR_OUTDATED : SIDECAR_UP_TO_DATE);
		if (cases[i].rc)
			assert_non_null(strstr(e.text, "full"));
		/* Nothing that it lacks is forgotten. */
		assert_int_equal(dirtymap_bytes(w.current), cases[i].rc ? 6 * BLOCK : 0);
		for (unsigned b = 0; !cases[i].rc && b < blocks(); b++)
			assert_int_equal(t->value[b], w.value[b]);
		dirtymap_free(w.current);
		assert_null(w.batch);
	}
}

/* Large chunks are for a copy that nobody writes beside, over a link that has proved fast. */
static void
large_chunks_where_it_is_fast(void **state)
{
	struct resync s = {0};
	struct resync_run r = {.s = &s, .direct = true, .began_ns = model_now_ns};

	(void)state;
	/* Nothing is known while all may be on its way. */
	assert_int_equal(chunk_max(&r), RESYNC_CHUNK);
	r.staged = FAST_FROM;
	assert_int_equal(chunk_max(&r), RESYNC_TAKE);
	model_now_ns += FAST_FROM / RESYNC_TAKE * FAST_NS;
	assert_int_equal(chunk_max(&r), RESYNC_TAKE);
	model_now_ns += FAST_NS;
	assert_int_equal(chunk_max(&r), RESYNC_CHUNK);
	r.staged += 1 << 20;
	assert_int_equal(chunk_max(&r), RESYNC_TAKE);
	s.host.hold = host_hold;
	assert_int_equal(chunk_max(&r), RESYNC_CHUNK);
	s.host.hold = NULL;
	r.direct = false;
	assert_int_equal(chunk_max(&r), RESYNC_CHUNK);
}

static void
far_run(unsigned trip_ms, unsigned slow)
{
	struct resync_progress progress = {0};
	struct resync s = {.remote = &w.target, .mem = w.mem, .progress = &progress};
	struct rounds o = {.run = {.s = &s, .heard_ns = model_now_ns}};
	enum resync_what what;
	struct err e;

	world_begin(1, 0, &what);
	rounds_begin(&o, &s, what);
	w.slow = slow;
	w.far.trip_ns = trip_ms * NS_PER_MS;
	w.far.total = o.run.reserved = 1ULL << 30;
	w.target.applied = 0;
	err_clear(&e);
	assert_int_equal(journal_apply(&o, &e), 0);
	assert_null(w.wrong);
	dirtymap_free(w.current);
}

/*
 * A journal is applied by as many calls as the work that each does asks for, however long the way:
 * its round trips are no work. No call's work takes long, so that cancelling is soon seen.
 */
static void
round_trips_are_no_work(void **state)
{
	uint64_t far_ns, near_ns;

	(void)state;
	/* A gigabyte of 0.5 ns a byte. */
	near_ns = model_now_ns;
	far_run(0, 5);
	near_ns = model_now_ns - near_ns;
	assert_true(w.far.longest_ns <= 2 * APPLY_NS);
	far_ns = model_now_ns;
	far_run(100, 5);
	far_ns = model_now_ns - far_ns;
	assert_true(w.far.longest_ns <= 250 * NS_PER_MS);
	assert_true(far_ns <= 3 * near_ns + NS_PER_S / 2);
	/* A slow disk at the end of a way that is longer than a request may take. */
	far_run(600, 1000);
	assert_true(w.far.longest_ns <= 2 * NS_PER_S);
}

/* hold: 0 none, 1 of nobody, 2 of the program. */
static int
endless_run(unsigned hold, uint64_t total, uint64_t more, unsigned cancel_at, struct err *e)
{
	struct resync_progress progress = {0};
	struct resync s = {.remote = &w.target,
			   .mem = w.mem,
			   .progress = &progress,
			   .host = {.hold = hold == 2 ? host_hold : NULL,
				    .release = host_release,
				    .cancelled = host_cancelled}};
	struct rounds o = {.run = {.s = &s, .heard_ns = model_now_ns}};
	enum resync_what what;
	int rc;

	world_begin(1, 0, &what);
	rounds_begin(&o, &s, what);
	o.run.held = hold > 0;
	o.run.reserved = 1 << 20;
	w.far.total = total;
	w.far.more = more;
	w.far.most = 1;
	w.far.cancel_at = cancel_at;
	w.target.applied = 0;
	err_clear(e);
	rc = journal_apply(&o, e);
	dirtymap_free(w.current);
	return rc;
}

/*
 * A target whose journal does not come to its end is given up when that is asked for, under a hold,
 * too; one that has more than was staged, or more and more, at once.
 */
static void
journal_without_end_is_given_up(void **state)
{
	struct err e;

	(void)state;
	for (unsigned hold = 0; hold < 3; hold++) {
		assert_int_equal(endless_run(hold, 1 << 20, 0, 10, &e), REPL_E_FAILED);
		assert_non_null(strstr(e.text, "interrupted"));
		assert_int_equal(w.far.calls, 10);
		assert_int_equal(endless_run(hold, (1 << 20) + 1, 0, 10, &e), REPL_E_PROTOCOL);
		assert_int_equal(w.far.calls, 1);
		assert_int_equal(endless_run(hold, 1 << 10, 1, 10, &e), REPL_E_PROTOCOL);
		assert_int_equal(w.far.calls, 2);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(what_was_staged_is_gone_on_with),
		cmocka_unit_test(the_last_message_of_a_place_counts),
		cmocka_unit_test(what_is_of_no_use_is_not_staged_again),
		cmocka_unit_test(what_it_brings_is_not_compared_with_the_replica),
		cmocka_unit_test(what_nobody_takes_up_goes),
		cmocka_unit_test(full_disk_keeps_away_who_needs_space),
		cmocka_unit_test(large_chunks_where_it_is_fast),
		cmocka_unit_test(round_trips_are_no_work),
		cmocka_unit_test(journal_without_end_is_given_up),
	};
	int ret;

	if (argc > 1) {
		first_seed = strtoull(argv[1], NULL, 10);
		seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
		most_stores = argc > 3 ? strtoull(argv[3], NULL, 10) : most_stores;
	}
	(void)printf("seeds %llu to %llu\n", (unsigned long long)first_seed,
		     (unsigned long long)(first_seed + seed_count - 1));
	w.fd = memfd_create("pool", MFD_CLOEXEC);
	assert_true(w.fd >= 0 && ftruncate(w.fd, BLOCKS * BLOCK) == 0);
	w.mem = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);
	other_fd = memfd_create("other", MFD_CLOEXEC);
	assert_true(other_fd >= 0 && ftruncate(other_fd, BLOCKS * BLOCK) == 0);
	w.target.entry = calloc(ENTRIES, sizeof(struct entry));
	assert_true(w.mem != MAP_FAILED && w.target.entry);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(w.target.entry);
	return ret;
}
