/* SPDX-License-Identifier: BSD-3-Clause */
/* resync_world - a program and a target in memory, which a seed moves: for resync_play.h. */
#ifndef TESTS_RESYNC_WORLD_H
#define TESTS_RESYNC_WORLD_H

#define BLOCKS    96U /* at most */
#define VALUES    4U  /* that a block may have: few, so that they come back */
#define ENTRIES   4096U
#define ANSWERS   320U
#define STEPS_MAX 200000U

/* Some heartbeats, and what a slow target takes for one chunk. */
#define SILENCE_NS 130000000ULL

/* ---- the world ---- */

/* What each block may be in a copy of one moment: a bit a value. */
struct moment {
	uint8_t allowed[BLOCKS];
};

struct entry {
	uint64_t off, len;
	uint8_t value[RESYNC_CHUNK / BLOCK];
};

struct remote {
	bool lost;
	bool lost_told; /* what has cut it off; from then on that it is cut */
	uint8_t value[BLOCKS];
	bool hole[BLOCKS]; /* of a sparse pool */
	struct replica_info info;
	bool journal, committed;
	bool left; /* what is staged, by an earlier session, and not committed */
	bool telling;
	unsigned told;
	uint64_t ahead;      /* requests of it that may be under way */
	bool full;           /* it has said so, in this session */
	bool lacked[BLOCKS]; /* what was marked then */
	uint64_t room, used, applied;
	struct entry *entry;
	unsigned entries, apply_at;
	enum sidecar_state commit_state;
	uint64_t commit_position;
	bool commit_chain;
	struct generation commit_generation;
	struct range flight[ENTRIES]; /* pushed, not settled */
	unsigned flights;
	uint64_t heard_ns;   /* when it was last asked something */
	struct hash_key key; /* to hash by */
	struct {
		int64_t id;
		char text[BLOCKS * HASH128_SIZE * 2 + 1];
	} answer[ANSWERS];
	unsigned answer_head, answer_count;
	int64_t id;
};

static struct world {
	uint64_t seed, random;
	const char *wrong; /* what does not hold, the first */
	unsigned steps, cut_at;
	uint64_t stores, stores_max;
	/* The program's side. */
	int fd;
	uint8_t *mem;
	_Atomic uint64_t size;
	uint8_t value[BLOCKS]; /* what is in mem: to read a hole is to fill it */
	bool flushed[BLOCKS];  /* and not drained */
	uint8_t loose[BLOCKS]; /* what it has been since it was last flushed, that included */
	bool busy;             /* stores between the steps */
	uint64_t part;         /* not 0: of its generation up to this, which others have more of */
	bool held, cancel;
	bool refuse_journal;
	bool stay_full;  /* the journal is refused always */
	bool stage_full; /* one is taken, and nothing that is staged into it */
	unsigned slow;   /* nanoseconds a byte */
	struct {
		uint64_t trip_ns, total, longest_ns; /* of a journal of so many bytes */
		uint64_t most;                       /* that one call brings in; 0: what is asked */
		uint64_t more;                       /* that total has with each call */
		unsigned calls, cancel_at;
	} far;
	struct generation generation;
	/* dirty */
	unsigned shift;
	struct dirtymap *current, *batch;
	bool doubted; /* that it tells what a replica of its base lacks */
	struct gen_id compared_of;
	uint64_t compared;
	uint64_t skipped; /* bytes that were not compared again */
	uint64_t journal_max;
	uint64_t disk;   /* bytes that it has for a journal; 0: enough */
	uint64_t staged; /* the most that a journal has held */
	uint64_t kept;   /* bytes that were not staged again */
	uint64_t hashed; /* blocks of the replica */
	/* What the replica may be when it says that it is consistent. */
	struct moment base, at_hold;
	struct remote target;
} w;

static uint64_t
rnd(uint64_t below)
{
	w.random = w.random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w.random >> 33) % below;
}

static void
wrong(const char *what)
{
	if (!w.wrong)
		w.wrong = what;
}

static unsigned
blocks(void)
{
	return (unsigned)(w.size / BLOCK);
}

/* ---- the program ---- */

static void
store(unsigned b)
{
	unsigned value = (unsigned)rnd(VALUES);

	memset(w.mem + (size_t)b * BLOCK, (int)value, BLOCK);
	w.value[b] = (uint8_t)value;
	w.loose[b] |= (uint8_t)(1U << value);
}

static void
flush(unsigned b)
{
	w.flushed[b] = true;
	w.loose[b] = (uint8_t)(1U << w.value[b]);
}

/* The end of a drain: what was flushed is marked. What a drain says was flushed, as it is now. */
static void
drain(void)
{
	for (unsigned b = 0; b < blocks(); b++) {
		if (w.flushed[b])
			(void)dirtymap_set(w.current, (uint64_t)b * BLOCK, BLOCK);
		w.flushed[b] = false;
	}
}

static void
pool_grow(void)
{
	w.size += BLOCK * (1 + rnd(6));
	if (w.size > BLOCKS * BLOCK)
		w.size = BLOCKS * BLOCK;
	(void)dirtymap_grow(w.current, w.size, NULL);
}

static void
program(void)
{
	if (!w.busy || w.held)
		return;
	for (uint64_t n = rnd(4); n > 0 && w.stores < w.stores_max; n--) {
		unsigned b = (unsigned)rnd(blocks());

		w.stores++;
		store(b);
		if (rnd(4))
			flush(b);
		if (rnd(3) == 0)
			drain();
		if (rnd(100) == 0)
			pool_grow();
	}
}

/* What a copy of this moment may be. */
static void
moment_now(struct moment *m)
{
	for (unsigned b = 0; b < BLOCKS; b++)
		m->allowed[b] = w.loose[b];
}

static bool
is_moment(const struct remote *t, const struct moment *m)
{
	for (unsigned b = 0; b < t->info.meta.pool_size / BLOCK; b++) {
		if (!(m->allowed[b] >> t->value[b] & 1))
			return false;
	}
	return true;
}

/* A step of the resync: the program goes on beside it, time passes, the line may be cut. */
static bool
step(struct remote *t)
{
	model_now_ns += 1000;
	program();
	if (++w.steps == w.cut_at || w.steps > STEPS_MAX) {
		if (w.steps > STEPS_MAX)
			wrong("it does not end");
		t->lost = true;
	}
	if (rnd(2000) == 0)
		w.cancel = true;
	return !t->lost;
}

/* Who moves bytes must not forget the control channel over it. */
static void
bytes_move(struct remote *t, uint64_t ns)
{
	model_now_ns += ns;
	if (model_now_ns - t->heard_ns > SILENCE_NS)
		wrong("the target has heard nothing for long");
}

/* Whoever hears of it first hears why. */
static int
lost(struct err *e)
{
	bool told = w.target.lost_told;

	w.target.lost_told = true;
	return told ? err_set(e, REPL_E_LOST, "broken") : err_set(e, REPL_E_TIMEOUT, "cut");
}

/* The request that was cut off may have come through or not. */
static bool
comes_through(struct remote *t)
{
	bool before = !t->lost;

	t->heard_ns = model_now_ns;
	return step(t) || (before && rnd(2));
}

/* ---- its disk ---- */

static void
row_add(struct json_object *rows, uint64_t off, uint64_t len)
{
	struct json_object *row = json_object_new_array();

	json_object_array_add(row, json_object_new_int64((int64_t)off));
	json_object_array_add(row, json_object_new_int64((int64_t)len));
	json_object_array_add(rows, row);
}

static bool
grain_is_hole(const struct remote *r, uint64_t off, uint64_t end)
{
	for (; off < end; off += BLOCK)
		if (!r->hole[off / BLOCK])
			return false;
	return true;
}

/* A few rows an answer. */
static struct json_object *
extents_answer(const struct remote *r, struct json_object *params)
{
	struct json_object *result = json_object_new_object(), *rows = json_object_new_array();
	uint64_t off = 0, grain = BLOCK, size = r->info.meta.pool_size, n;

	(void)control_get_u64(params, "off", 0, INT64_MAX, &off, NULL);
	(void)control_get_u64(params, "grain", 0, INT64_MAX, &grain, NULL);
	if (off >= size || off % grain)
		wrong("extents from outside of the pool");
	for (; off < size && json_object_array_length(rows) < 2; off += n) {
		n = size - off < grain ? size - off : grain;
		if (!grain_is_hole(r, off, off + n))
			row_add(rows, off, n);
	}
	json_object_object_add(result, "extents", rows);
	json_object_object_add(result, "next", json_object_new_int64((int64_t)off));
	return result;
}

/* What was marked when the disk was full, and is a hole. */
static bool
lacks_space(const struct remote *r)
{
	bool lacks = r->info.meta.sparse && strcmp(r->info.filesystem, "btrfs") == 0;

	for (unsigned b = 0; !lacks && b < BLOCKS; b++)
		lacks = r->lacked[b] && r->hole[b];
	return lacks;
}

static void
lacked_note(struct remote *r)
{
	const struct dirtymap *const maps[] = {w.current, w.batch};
	struct range run;

	memset(r->lacked, 0, sizeof(r->lacked));
	for (unsigned i = 0; i < 2; i++)
		for (uint64_t at = 0; maps[i] && dirtymap_next(maps[i], at, BLOCK, &run);
		     at = run.off + run.len)
			r->lacked[run.off / BLOCK] = true;
}

/* Of some blocks nothing was ever written. */
static void
holes_make(struct remote *t)
{
	for (unsigned b = 0; t->info.meta.sparse && b < BLOCKS; b++)
		t->hole[b] = b >= blocks() || (t->value[b] == 0 && rnd(4));
}

static bool
finds_space(const struct remote *t, const struct range *range)
{
	for (uint64_t at = range->off; t->full && at < range->off + range->len; at += BLOCK)
		if (t->hole[at / BLOCK])
			return false;
	return true;
}

#endif
