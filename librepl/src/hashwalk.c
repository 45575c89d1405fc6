/* SPDX-License-Identifier: BSD-3-Clause */
#include "hashwalk.h"

#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "clock.h"
#include "control.h"
#include "extents.h"
#include "hashkey.h"
#include "hex.h"
#include "localmem.h"
#include "localread.h"

#define PIECES      256U   /* asked for ahead */
#define SKIP_FACTOR 4U     /* by which a stretch that is not compared grows */
#define SKIP_PIECES 32U    /* the longest one, in whole pieces */
#define STRETCH     65536U /* bytes read at once, and hashed between two looks at the clock */
/* A request ends with the piece that goes beyond a full one. */
#define ANSWER_BLOCKS (2 * HASHWALK_BLOCKS)
#define ANSWER_DIGITS (ANSWER_BLOCKS * HASH128_SIZE * 2)

/* A piece whose hashes the target was asked for; those of one request stand together. */
struct asked {
	struct range piece;
	int64_t id; /* of the request */
	bool taken; /* its answer is here */
	uint8_t hash[HASHWALK_BLOCKS][HASH128_SIZE];
};

struct hashwalk_queue {
	struct hash_key key;
	struct asked ring[PIECES];
	unsigned head, count;
	unsigned blocks;   /* of all that are asked for */
	uint64_t next_off; /* where the next piece is looked for */
	bool ended;        /* there is none */
	uint64_t heard_ns; /* when the target was last asked something */
	uint64_t skip;     /* the stretch to call different unseen ... */
	uint64_t skip_left;
	struct extents holes;
	uint8_t *buf;   /* a stretch */
	uint64_t there; /* bytes of the oldest piece: behind them the local file ends */
	uint8_t local[HASHWALK_BLOCKS][HASH128_SIZE];
	bool differs[HASHWALK_BLOCKS];
};

static uint64_t
piece_max(const struct hashwalk *w)
{
	return (uint64_t)w->block * HASHWALK_BLOCKS;
}

static unsigned
block_count(const struct hashwalk *w, uint64_t len)
{
	return (unsigned)((len + w->block - 1) / w->block);
}

/* ---- the target's hashes ---- */

static struct asked *
asked_at(struct hashwalk_queue *q, unsigned i)
{
	return &q->ring[(q->head + i) % PIECES];
}

/* Put a piece behind those that were asked for: it is going to be. */
static void
queue_piece(struct hashwalk *w, const struct range *piece)
{
	struct hashwalk_queue *q = w->queue;
	struct asked *a = asked_at(q, q->count++);

	a->piece = *piece;
	a->taken = false;
	q->blocks += block_count(w, piece->len);
}

static struct json_object *
ranges_new(struct hashwalk *w, unsigned from)
{
	struct json_object *rows = json_object_new_array();

	for (unsigned i = from; i < w->queue->count; i++) {
		const struct range *piece = &asked_at(w->queue, i)->piece;
		unsigned blocks = block_count(w, piece->len);
		struct json_object *row = json_object_new_array();

		control_append(row, json_object_new_int64((int64_t)piece->off));
		control_append(row, json_object_new_int64(blocks));
		control_append(rows, row);
	}
	return rows;
}

/* One request for the pieces that were put in the queue from from on. */
static int
ask(struct hashwalk *w, unsigned from, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	struct json_object *params = json_object_new_object();
	const struct range *piece = &asked_at(q, from)->piece;
	int64_t id = 0;
	int rc;

	control_add(params, "block", json_object_new_int64(w->block));
	hashkey_add(&q->key, params);
	if (q->count - from > 1) {
		control_add(params, "ranges", ranges_new(w, from));
	} else {
		unsigned blocks = block_count(w, piece->len);

		control_add(params, "off", json_object_new_int64((int64_t)piece->off));
		control_add(params, "count", json_object_new_int64(blocks));
	}
	rc = remote_post(w->remote, "pool.hash", params, &id, e);
	/* What was not asked for has no answer. */
	for (unsigned i = from; i < q->count; i++) {
		asked_at(q, i)->id = id;
		asked_at(q, i)->taken = rc != 0;
	}
	q->heard_ns = clock_now_ns();
	return rc;
}

/* Of the i-th piece, which is the first of its request, and of the others in that. */
static int
answer_take(struct hashwalk *w, unsigned i, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	int64_t id = asked_at(q, i)->id;
	struct json_object *result = NULL;
	const char *text;
	size_t bytes = 0;
	unsigned end;
	int rc;

	if (asked_at(q, i)->taken)
		return 0;
	for (end = i; end < q->count && asked_at(q, end)->id == id; end++) {
		asked_at(q, end)->taken = true;
		bytes += (size_t)block_count(w, asked_at(q, end)->piece.len) * HASH128_SIZE;
	}
	rc = remote_take(w->remote, "pool.hash", id, &result, e);
	if (!rc)
		rc = control_answer_bad(control_get_text(result, "hashes", ANSWER_DIGITS, &text, e),
					"pool.hash", e);
	if (!rc && strlen(text) != bytes * 2)
		rc = err_set(e, REPL_E_PROTOCOL, "pool.hash: bad answer");
	for (; !rc && i < end; i++) {
		struct asked *a = asked_at(q, i);

		bytes = (size_t)block_count(w, a->piece.len) * HASH128_SIZE;
		if (!hex_decode(text, bytes * 2, a->hash[0], bytes))
			rc = err_set(e, REPL_E_PROTOCOL, "pool.hash: bad answer");
		text += bytes * 2;
	}
	json_object_put(result);
	return rc;
}

/* An answer that nobody took would be in the way of the next request. */
static int
answers_settle(struct hashwalk *w, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	int rc = 0;

	for (unsigned i = 0; i < q->count; i++) {
		int one = answer_take(w, i, rc ? NULL : e);

		rc = rc ? rc : one;
	}
	return rc;
}

int
hashwalk_keep_alive(struct hashwalk *w, bool settle, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	uint64_t beat_ns = (uint64_t)remote_heartbeat_ms(w->remote) * NS_PER_MS;
	bool due = clock_now_ns() - q->heard_ns >= beat_ns;
	int rc = 0;

	if (due || settle)
		rc = answers_settle(w, e);
	if (!due || rc)
		return rc;
	q->heard_ns = clock_now_ns();
	return remote_beat(w->remote, e);
}

/* ---- the local side ---- */

void
hashwalk_local(struct hashwalk *w, const uint8_t *mem, int fd)
{
	w->mem = mem;
	w->fd = -1;
	w->holes_fd = fd;
	if (extents_cached(fd))
		hashwalk_file(w, fd);
}

void
hashwalk_file(struct hashwalk *w, int fd)
{
	w->mem = NULL;
	w->fd = w->holes_fd = fd;
}

static uint64_t
stretch_max(const struct hashwalk *w)
{
	return w->block < STRETCH ? STRETCH / w->block * w->block : w->block;
}

/* *got of len, in the buffer. */
static int
stretch_read(struct hashwalk *w, uint64_t off, uint64_t len, size_t *got, struct err *e)
{
	const struct localmem m = {.mem = w->mem, .file = w->file};
	uint8_t *buf = w->queue->buf;
	int rc = w->mem ? localmem_read(&m, buf, len, off, got, e)
			: localread(w->fd, buf, len, off, got, e);

	return !rc && *got < len && !w->shrinks ? localread_short(e) : rc;
}

/* Whole blocks but for the last one, from the hash on; *got of len is there. */
static int
hash_stretch(struct hashwalk *w, uint64_t off, uint64_t len, uint8_t (*hash)[HASH128_SIZE],
	     size_t *got, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	bool hole = extents_hole(&q->holes, off, len);
	const uint8_t *from = q->buf;
	int rc = 0;

	*got = len;
	/* Memory that can't go is hashed where it is. */
	if (w->mem && !w->file)
		from = w->mem + off;
	else if (!hole)
		rc = stretch_read(w, off, len, got, e);
	for (uint64_t at = 0; !rc && at < *got; at += w->block, hash++) {
		uint64_t n = *got - at < w->block ? *got - at : w->block;

		if (hole)
			extents_hash_zeros(&q->holes, &q->key, n, *hash);
		else
			hash128_keyed(&q->key, from + at, n, *hash);
	}
	return rc;
}

/* The disk may take its time for a piece. */
static int
hash_local(struct hashwalk *w, const struct range *piece, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	uint64_t most = stretch_max(w), n;
	size_t got;
	int rc = 0;

	q->there = 0;
	while (!rc && q->there < piece->len) {
		n = piece->len - q->there < most ? piece->len - q->there : most;
		rc = hash_stretch(w, piece->off + q->there, n, &q->local[q->there / w->block], &got,
				  e);
		if (rc)
			break;
		q->there += got;
		/* What is behind that has been lost as well. */
		if (got < n)
			break;
		rc = hashwalk_keep_alive(w, false, e);
	}
	return rc;
}

/* ---- the walk ---- */

/* All differ: believe it for a while, for longer each time. */
static void
skip_set(struct hashwalk *w, bool all, uint64_t len)
{
	struct hashwalk_queue *q = w->queue;
	uint64_t most = piece_max(w) * SKIP_PIECES;

	if (w->exact || !all)
		q->skip = 0;
	else
		q->skip = (q->skip ? q->skip : len) * SKIP_FACTOR;
	if (q->skip > most)
		q->skip = most;
	q->skip_left = q->skip;
}

/* Fill differs[] for the oldest piece whose hashes were asked for. */
static int
compare(struct hashwalk *w, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	struct asked *a = asked_at(q, 0);
	unsigned blocks = block_count(w, a->piece.len), count = 0;
	int rc = hash_local(w, &a->piece, e);

	if (!rc)
		rc = answer_take(w, 0, e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < blocks; i++) {
		q->differs[i] = (uint64_t)i * w->block < q->there &&
				memcmp(q->local[i], a->hash[i], HASH128_SIZE) != 0;
		count += q->differs[i];
	}
	skip_set(w, count == blocks, a->piece.len);
	return 0;
}

static int
tell(struct hashwalk *w, const struct range *piece, struct err *e)
{
	unsigned blocks = block_count(w, piece->len), i = 0, from;
	uint64_t off, end;
	int rc = 0;

	while (!rc && i < blocks) {
		if (!w->queue->differs[i]) {
			i++;
			continue;
		}
		for (from = i; i < blocks && w->queue->differs[i]; i++)
			;
		off = (uint64_t)from * w->block;
		end = (uint64_t)i * w->block < piece->len ? (uint64_t)i * w->block : piece->len;
		rc = w->differ(w->arg, piece->off + off, end - off, e);
	}
	return !rc && w->passed ? w->passed(w->arg, piece, e) : rc;
}

static bool
next_piece(struct hashwalk *w, struct range *piece)
{
	struct hashwalk_queue *q = w->queue;

	if (!q->ended)
		q->ended = q->next_off >= w->size ||
			   !w->next(w->arg, q->next_off, piece_max(w), piece);
	if (!q->ended)
		q->next_off = piece->off + piece->len;
	return !q->ended;
}

/* Ask ahead: one large piece, or many small ones, as many in a request as the target takes. */
static int
ask_ahead(struct hashwalk *w, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	uint64_t most = remote_hash_ranges(w->remote);
	struct range piece;
	unsigned from = q->count;
	int rc = 0;

	/* Small ones in bursts: each question by itself would wake everybody on the way. */
	if (q->count > PIECES / 2 || q->blocks > HASHWALK_BLOCKS / 2)
		return 0;
	while (!rc && !q->skip_left && q->count < PIECES && q->blocks < HASHWALK_BLOCKS &&
	       next_piece(w, &piece)) {
		queue_piece(w, &piece);
		if (q->count - from < most)
			continue;
		rc = ask(w, from, e);
		from = q->count;
	}
	return rc || from == q->count ? rc : ask(w, from, e);
}

/* The oldest piece that was asked for. Ahead is asked before it is told: both sides work. */
static int
step_asked(struct hashwalk *w, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	struct range piece = asked_at(q, 0)->piece;
	int rc = compare(w, e);

	if (rc)
		return rc;
	q->head = (q->head + 1) % PIECES;
	q->count--;
	q->blocks -= block_count(w, piece.len);
	rc = ask_ahead(w, e);
	return rc ? rc : tell(w, &piece, e);
}

static int
step_skipped(struct hashwalk *w, const struct range *piece, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	int rc;

	q->skip_left -= piece->len < q->skip_left ? piece->len : q->skip_left;
	memset(q->differs, 1, sizeof(q->differs));
	rc = tell(w, piece, e);
	return rc ? rc : hashwalk_keep_alive(w, false, e);
}

static int
walk(struct hashwalk *w, struct err *e)
{
	struct hashwalk_queue *q = w->queue;
	struct range piece;
	int rc = 0;

	while (!rc) {
		rc = ask_ahead(w, e);
		if (!rc && q->count)
			rc = step_asked(w, e);
		else if (!rc && q->skip_left && next_piece(w, &piece))
			rc = step_skipped(w, &piece, e);
		else
			break;
	}
	return rc;
}

/* The walk has ended, by an error where anything is under way. */
static void
answers_leave(struct hashwalk *w)
{
	struct hashwalk_queue *q = w->queue;

	for (unsigned i = 0; i < q->count; i++) {
		bool before = remote_is_broken(w->remote);
		struct err why;

		err_clear(&why);
		if (answer_take(w, i, &why) && !before && remote_is_broken(w->remote))
			(void)err_copy(&w->cut, &why);
	}
}

int
hashwalk_run(struct hashwalk *w, struct err *e)
{
	int rc;

	err_clear(&w->cut);
	w->queue = calloc(1, sizeof(*w->queue));
	if (w->queue)
		w->queue->buf = malloc(stretch_max(w));
	if (!w->queue || !w->queue->buf) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	w->queue->heard_ns = clock_now_ns();
	extents_init(&w->queue->holes, w->holes_fd, w->size);
	rc = hashkey_draw(&w->queue->key, w->remote, e);
	if (!rc)
		rc = walk(w, e);
	answers_leave(w);
out:
	if (w->queue)
		free(w->queue->buf);
	free(w->queue);
	w->queue = NULL;
	return rc;
}
