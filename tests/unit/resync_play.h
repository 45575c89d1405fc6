/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A resync as it is, between the program and the target of resync_world.h, its map of what is dirty
 * and its host in memory, and time of our own; and the judges of what comes of it.
 */
#ifndef TESTS_RESYNC_PLAY_H
#define TESTS_RESYNC_PLAY_H

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

/* ... and so is what of its map is gone through at once. */
#include "../../librepl/src/resync_impl.h"
#undef RESYNC_LOOK
#define RESYNC_LOOK (16 * BLOCK)
#undef RESYNC_SPARE
#define RESYNC_SPARE (2 * BLOCK)

#include "../../librepl/src/hashkey.c"
#include "../../librepl/src/hashwalk.c"
#include "../../librepl/src/localmem.c"
#include "../../librepl/src/localread.c"
#include "../../librepl/src/holes.c"
#include "../../librepl/src/resync_throttle.c"
#include "../../librepl/src/resync_scan.c"
#include "../../librepl/src/resync_copy.c"
#include "../../librepl/src/resync_kept.c"
#include "../../librepl/src/resync_sample.c"
#include "../../librepl/src/resync_space.c"
#include "../../librepl/src/resync.c"

#include "resync_world.h"

unsigned
forks_count(void)
{
	return 0;
}

/* ---- dirty ---- */

/* Of a large pool much of the map takes its time, and what is compared or copied none. */
static void
map_look(uint64_t off, uint64_t len)
{
	uint64_t has = off < w.size ? w.size - off : 0;

	len = len < has ? len : has;
	/* Who has given up, or is lost, awaits nothing. */
	if (len > HOLES_SEGMENT && !w.target.lost && !w.cancel)
		bytes_move(&w.target, 2000000 * (len / BLOCK));
}

void
dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len)
{
	(void)d;
	(void)replica;
	(void)dirtymap_set(w.current, off, len);
	map_look(off, len);
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
	if (!dirtymap_take(w.current, w.batch, from, end, max_len, run))
		return false;
	if (end == UINT64_MAX)
		map_look(run->off, run->len);
	return true;
}

void
dirty_forsake(struct dirty *d, unsigned replica)
{
	(void)d;
	(void)replica;
	w.doubted = true;
	w.compared = 0;
}

void
dirty_rebase(struct dirty *d, unsigned replica, const struct gen_id *base)
{
	(void)d;
	(void)replica;
	w.doubted = false;
	if (!w.target.committed || !w.held ||
	    !gen_id_equal(base, &w.target.commit_generation.current))
		wrong("a map with a base that the replica does not have");
	w.compared = 0;
}

/* One of the map's generation may take its place again, of which they tell what that one lacks. */
static void
marks_go(void)
{
	const struct sidecar *meta = &w.target.info.meta;

	if (!w.doubted &&
	    (meta->state == SIDECAR_INCONSISTENT || gen_id_is_nil(&meta->generation.current)))
		wrong("marks of a map that is trusted go for a replica that is no prefix");
}

void
dirty_batch_end(struct dirty *d, unsigned replica, bool done)
{
	(void)d;
	(void)replica;
	if (w.batch && done)
		marks_go();
	if (w.batch && !done)
		dirtymap_merge(w.current, w.batch, 0, UINT64_MAX);
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
	if (remote_info(&w.target)->meta.state == SIDECAR_INCONSISTENT && !gen_id_is_nil(of))
		wrong("how far a copy was compared that is no prefix is kept for one that is");
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

/* Before all worlds. */
static void
world_make(void)
{
	w.fd = memfd_create("pool", MFD_CLOEXEC);
	assert_true(w.fd >= 0 && ftruncate(w.fd, BLOCKS * BLOCK) == 0);
	w.mem = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);
	w.target.entry = calloc(ENTRIES, sizeof(struct entry));
	assert_true(w.mem != MAP_FAILED && w.target.entry);
}

#endif
