/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a resync does in cases that are made for it, of a journal that was left, a full disk, a fast
 * link and a target far away, each in a world of test_resync's.
 */
#include "resync_play.h"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

static bool over_fuse; /* is the pool's file, of which nothing was written back */

/* Instead of libc's. */
off_t
lseek(int fd, off_t off, int whence)
{
	if (over_fuse && whence == SEEK_DATA) {
		errno = ENXIO;
		return -1;
	}
	return syscall(SYS_lseek, fd, off, whence);
}

int
fstatfs(int fd, struct statfs *fs)
{
	int ret = (int)syscall(SYS_fstatfs, fd, fs);

	if (over_fuse)
		fs->f_type = FUSE_SUPER_MAGIC;
	return ret;
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
	unsigned times = 0;
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
		/* Another program writes, too, where it has failed. */
		if (run_to_end(&s, what) > 0)
			continue;
		/* Of the grain that is marked. */
		assert_true(progress.moved <= 1U << w.shift);
		times++;
	}
	as_tool = false;
	assert_true(times > 30);
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

/*
 * Nobody writes, a sparse replica has missed blocks 1 and 4 to 8, and its disk has no room, or some
 * for less, and what is missed is more than a journal may be.
 */
static void
full_world(const char *filesystem, bool large)
{
	struct remote *t = &w.target;
	enum resync_what what;

	world_begin(1, 0, &what);
	dirtymap_free(w.current);
	w.size = 32 * BLOCK;
	w.shift = 12;
	w.busy = false;
	w.slow = 0;
	w.stay_full = !large;
	w.journal_max = large ? 2 * BLOCK : UINT64_MAX;
	w.disk = large ? 4 * BLOCK : 0;
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
	for (unsigned n = 0; n < 2 * sizeof(cases) / sizeof(cases[0]); n++) {
		struct remote *t = &w.target;
		unsigned i = n / 2;
		struct err e;

		full_world(cases[i].filesystem, n % 2);
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

static bool given_up;

static bool
host_gives_up(void *arg, bool blank)
{
	(void)arg;
	(void)blank;
	given_up = true;
	return true;
}

/* An old copy, but a whole one. */
static void
tight_begin(uint64_t seed, unsigned shift)
{
	struct sidecar *meta = &w.target.info.meta;
	enum resync_what what;

	world_begin(seed, 0, &what);
	dirtymap_free(w.current);
	w.size = BLOCKS * BLOCK;
	w.shift = shift;
	w.refuse_journal = false;
	w.part = 0;
	assert_int_equal(dirtymap_new(w.size, w.shift, &w.current, NULL), 0);
	dirtymap_set_all(w.current);
	meta->pool_size = w.size;
	meta->sparse = false;
	meta->position = 0;
	meta->state = SIDECAR_OUTDATED;
	meta->generation = w.generation;
}

/*
 * All is marked, of each so many blocks one differs, and the program stores two more. The target's
 * journal, or its disk, takes so many bytes.
 */
static void
tight_run(uint64_t seed, unsigned shift, unsigned first, unsigned apart, uint64_t most)
{
	struct resync_progress progress = {0};
	struct resync s = {.remote = &w.target,
			   .mem = w.mem,
			   .progress = &progress,
			   .resume = seed % 2,
			   .host = {.hold = host_hold,
				    .release = host_release,
				    .cancelled = host_cancelled,
				    .size = host_size,
				    .direct = host_gives_up}};

	tight_begin(seed, shift);
	w.busy = true;
	w.stores_max = w.stores + 2;
	w.journal_max = seed % 4 < 2 ? most : UINT64_MAX;
	w.disk = seed % 4 < 2 ? 0 : most;
	for (unsigned b = 0; b < BLOCKS; b++)
		w.target.value[b] = w.value[b] ^ (b < first || b % apart == apart / 2);
	given_up = false;
	w.staged = 0;
	(void)run_to_end(&s, RESYNC_DELTA);
}

/* Room that is asked for and not needed is no reason to give up a copy that is whole. */
static void
a_journal_that_just_fits_is_used(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++) {
		tight_run(seed, 12, 0, 1, (BLOCKS + 2) * BLOCK);
		assert_false(given_up);
		/* Most of what is marked is equal. */
		tight_run(seed, 14, 0, 4, BLOCKS / 2 * BLOCK);
		assert_false(given_up);
		/* What differs is come upon first, and half of all would do. */
		tight_run(seed, 14, BLOCKS / 8, 8, (BLOCKS - 6) * BLOCK);
		assert_false(given_up);
	}
}

/* A disk belongs to others, too: it is not filled by what will not have its room there. */
static void
room_that_will_not_do_is_not_filled(void **state)
{
	const uint64_t most = BLOCKS / 3 * BLOCK;

	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++)
		for (unsigned shift = 12; shift < 15; shift += 2) {
			tight_run(seed, shift, 0, 1, most);
			assert_true(given_up);
			/* By samples nearly all of it differs. */
			assert_int_equal(w.staged, 0);
			tight_run(seed, shift, 0, 2, most);
			assert_true(given_up);
			assert_true(w.staged <= most * 3 / 4);
		}
}

#define HOT 8U /* blocks that the program marks again and again */

static bool
marks_hot(void *arg)
{
	if (!w.held)
		(void)dirtymap_set(w.current, 0, (uint64_t)HOT * BLOCK);
	return host_cancelled(arg);
}

static void
hot_run(uint64_t seed)
{
	struct resync_progress progress = {0};
	struct resync s = {.remote = &w.target,
			   .mem = w.mem,
			   .progress = &progress,
			   .host = {.hold = host_hold,
				    .release = host_release,
				    .cancelled = marks_hot,
				    .size = host_size,
				    .direct = host_gives_up}};
	const unsigned missed = BLOCKS / 4;

	tight_begin(seed, 12);
	w.busy = false;
	/* What is hot is copied in 120 ms: a hold takes that long from the eighth pass on. */
	w.slow = 3600;
	for (unsigned b = 0; b < BLOCKS; b++) {
		bool differs = b < HOT || (b % 2 && b < HOT + 2 * (missed - HOT));

		w.target.value[b] = w.value[b] ^ differs;
		if (!differs)
			dirtymap_unset(w.current, (uint64_t)b * BLOCK, BLOCK);
	}
	w.journal_max = (missed + 3 * HOT) * BLOCK;
	given_up = false;
	(void)run_to_end(&s, RESYNC_DELTA);
	assert_false(given_up);
}

/* What is written again and again is staged by each pass, and is no more than it is. */
static void
passes_do_not_fill_a_journal(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++)
		hot_run(seed);
}

static struct resync_progress marked_progress;
static bool marked;
static uint64_t marked_rate; /* the highest */

/* Looks at a comparison are 2 s apart. When most is compared half of the pool is marked anew. */
static bool
marks_half(void *arg)
{
	uint64_t rate = atomic_load(&marked_progress.rate);

	(void)arg;
	if (rate > marked_rate)
		marked_rate = rate;
	if (!marked && atomic_load(&marked_progress.done) > w.size / 2) {
		dirty_mark(NULL, 0, 0, w.size / 2);
		marked = true;
	}
	if (atomic_load(&marked_progress.rounds) == 0)
		model_now_ns += 2 * NS_PER_S;
	return false;
}

/* What is marked anew amid a comparison takes from what is done: nothing was done then. */
static void
a_rate_is_none_that_was_not_seen(void **state)
{
	struct resync s = {.remote = &w.target,
			   .mem = w.mem,
			   .progress = &marked_progress,
			   .host = {.cancelled = marks_half, .size = host_size}};
	struct err e;

	(void)state;
	full_world("ext4", false);
	w.stay_full = false;
	w.refuse_journal = false;
	memcpy(w.target.value, w.value, sizeof(w.target.value));
	err_clear(&e);
	assert_int_equal(resync_run(&s, RESYNC_HASHES, host_chain, &e), 0);
	assert_null(w.wrong);
	assert_true(marked && marked_rate > 0);
	assert_true(marked_rate <= w.size);
	dirtymap_free(w.current);
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

/* The cause is that of the answers under way, which nobody wants any more, or of a later request.
 */
static void
what_cuts_it_off_behind_a_refusal_is_told(void **state)
{
	struct resync_progress progress = {0};
	struct resync s = resuming(&progress);
	unsigned times = 0;
	enum resync_what what;
	struct err e;

	(void)state;
	s.host.cancelled = NULL;
	for (uint64_t seed = 1; seed < 200; seed++)
		for (unsigned cut_at = 1; cut_at < 40; cut_at++) {
			world_begin(seed, 0, &what);
			w.busy = w.refuse_journal = false;
			w.stage_full = true;
			w.target.info.meta.state = SIDECAR_OUTDATED;
			w.cut_at = cut_at;
			err_clear(&e);
			if (resync_run(&s, RESYNC_HASHES, host_chain, &e) && w.target.lost)
				assert_int_equal(e.code, REPL_E_TIMEOUT);
			times += w.target.full && w.target.lost;
			dirtymap_free(w.current);
			assert_null(w.batch);
		}
	assert_true(times > 0);
}

/* The file is one hole for who serves it, and what the program has stored is in memory. */
static void
what_fuse_calls_a_hole_is_copied(void **state)
{
	struct resync_progress progress = {0};
	unsigned times[3] = {0};
	enum resync_what what;
	char file[32];

	(void)state;
	(void)snprintf(file, sizeof(file), "/proc/self/fd/%d", w.fd);
	over_fuse = true;
	for (uint64_t seed = 1; seed < 100; seed++) {
		struct resync s = {.remote = &w.target,
				   .mem = w.mem,
				   .file = file,
				   .progress = &progress,
				   .host = {.cancelled = host_cancelled, .size = host_size}};

		world_begin(seed, 0, &what);
		w.busy = false;
		s.part = w.part;
		(void)run_to_end(&s, what);
		times[what]++;
	}
	over_fuse = false;
	assert_true(times[RESYNC_FULL] > 0 && times[RESYNC_HASHES] > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_message_of_a_place_counts),
		cmocka_unit_test(what_is_of_no_use_is_not_staged_again),
		cmocka_unit_test(what_it_brings_is_not_compared_with_the_replica),
		cmocka_unit_test(what_nobody_takes_up_goes),
		cmocka_unit_test(full_disk_keeps_away_who_needs_space),
		cmocka_unit_test(large_chunks_where_it_is_fast),
		cmocka_unit_test(a_journal_that_just_fits_is_used),
		cmocka_unit_test(room_that_will_not_do_is_not_filled),
		cmocka_unit_test(passes_do_not_fill_a_journal),
		cmocka_unit_test(a_rate_is_none_that_was_not_seen),
		cmocka_unit_test(round_trips_are_no_work),
		cmocka_unit_test(journal_without_end_is_given_up),
		cmocka_unit_test(what_cuts_it_off_behind_a_refusal_is_told),
		cmocka_unit_test(what_fuse_calls_a_hole_is_copied),
	};
	int ret;

	world_make();
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(w.target.entry);
	return ret;
}
