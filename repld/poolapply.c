/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolapply.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

#define BATCH_BYTES (16U << 20) /* copied before the next messages are looked at */
#define BATCH_MAX   1024U       /* messages */
#define ALONE       (1U << 20)  /* bytes for which no thread is started */
#define FLUSH       (64U << 20) /* of the pool at once: each sync costs a while of its own */
#define RANGES_MAX  16384U      /* that are remembered for it: so many pages are as much */
#define SCAN        (WIRE_HEADER_SIZE + WIRE_ENTRIES_MAX * WIRE_ENTRY_SIZE)

/* A message, by its header and entries; not yet checked against its checksum. */
struct piece {
	uint64_t at; /* of the messages' bytes */
	size_t len;
	uint64_t number;
	uint64_t from, end; /* of the pool: all that it brings lies there */
	unsigned range;     /* of struct poolapply, the first of its ... */
	unsigned ranges;
	uint8_t header[WIRE_HEADER_SIZE];
};

struct helper {
	struct poolapply *a;
	pthread_t thread;
	bool started;
};

struct poolapply {
	int fd;
	uint64_t off;
	struct journal_commit is;
	struct journal_commit done; /* count, bytes, chain */
	struct pmem_map *map;       /* of this call */

	/* A batch: its messages lie apart, so that their order does not matter. */
	struct piece piece[BATCH_MAX];
	unsigned count;
	uint64_t bytes; /* of messages */
	unsigned ranges;
	uint64_t from, end; /* of the ranges */
	_Atomic unsigned next;
	struct helper copying;
	uint8_t *buf[2];

	/*
	 * Where syncs are dear: what was copied and is not durable, and what is being made so. Each
	 * range, since a local replica gets all of them. Those of a batch are put behind.
	 */
	struct range *copied, *flushed; /* RANGES_MAX */
	unsigned copied_count, flushed_count;
	uint64_t unflushed;
	struct helper flushing;

	pthread_mutex_t lock; /* guards err */
	_Atomic int failed;   /* err.code */
	struct err err;
};

int
poolapply_new(int fd, uint64_t off, const struct journal_commit *is, struct poolapply **out,
	      struct err *e)
{
	struct poolapply *a = calloc(1, sizeof(*a));

	*out = NULL;
	if (!a)
		return err_set(e, REPL_E_NOMEM, "no memory to apply a journal");
	(void)pthread_mutex_init(&a->lock, NULL);
	a->fd = fd;
	a->off = off;
	a->is = *is;
	a->copying.a = a->flushing.a = a;
	for (unsigned i = 0; i < 2; i++)
		a->buf[i] = malloc(WIRE_MSG_SIZE_MAX);
	a->copied = calloc(RANGES_MAX, sizeof(*a->copied));
	a->flushed = calloc(RANGES_MAX, sizeof(*a->flushed));
	if (!a->buf[0] || !a->buf[1] || !a->copied || !a->flushed) {
		poolapply_free(a);
		return err_set(e, REPL_E_NOMEM, "no memory to apply a journal");
	}
	*out = a;
	return 0;
}

void
poolapply_free(struct poolapply *a)
{
	if (!a)
		return;
	(void)pthread_mutex_destroy(&a->lock);
	free(a->buf[0]);
	free(a->buf[1]);
	free(a->copied);
	free(a->flushed);
	free(a);
}

uint64_t
poolapply_done(const struct poolapply *a)
{
	return a->done.bytes;
}

int
poolapply_read(int fd, uint8_t *p, size_t len, uint64_t off, struct err *e)
{
	while (len > 0) {
		ssize_t n = pread(fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(
				e, REPL_E_IO, errno,
				"journal: read, at %llu of the sidecar; it is kept: open "
				"the pool again when the device can be read, or remove the "
				"pool and sync it again from its primary",
				(unsigned long long)off);
		if (n == 0)
			return err_set(e, REPL_E_CORRUPT, "journal: the file ends before it does");
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* ---- threads ---- */

static void
apply_fail(struct poolapply *a, const struct err *e)
{
	pthread_mutex_lock(&a->lock);
	if (!a->err.code)
		a->err = *e;
	atomic_store(&a->failed, a->err.code);
	pthread_mutex_unlock(&a->lock);
}

/* No helper is no error: the caller does it all. */
static void
helper_start(struct helper *h, void *(*run)(void *))
{
	sigset_t all, old;

	(void)sigfillset(&all);
	/* A fault in a mapping must reach the handler, so it stays unblocked. */
	(void)sigdelset(&all, SIGBUS);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	h->started = pthread_create(&h->thread, NULL, run, h->a) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void
helper_join(struct helper *h)
{
	if (h->started)
		(void)pthread_join(h->thread, NULL);
	h->started = false;
}

/* ---- durability ---- */

/* A local replica may be out of space. */
static int
persist_some(struct poolapply *a, struct range *r, size_t count, struct err *e)
{
	int rc = pmem_map_persist(a->map, r, count, e);

	if (rc == REPL_E_NOSPC)
		return err_prefix(e, "journal");
	return rc ? err_set(e, REPL_E_IO, "journal: what it brings in could not be made durable")
		  : 0;
}

static void *
flush_main(void *arg)
{
	struct poolapply *a = arg;
	struct err e;

	err_clear(&e);
	if (persist_some(a, a->flushed, a->flushed_count, &e))
		apply_fail(a, &e);
	return NULL;
}

/* What was copied so far; the flush before has come to its end. */
static void
flush_begin(struct poolapply *a)
{
	struct range *flushed = a->flushed;

	helper_join(&a->flushing);
	if (a->copied_count == 0)
		return;
	a->flushed = a->copied;
	a->flushed_count = a->copied_count;
	a->copied = flushed;
	a->copied_count = 0;
	a->unflushed = 0;
	helper_start(&a->flushing, flush_main);
	if (!a->flushing.started)
		(void)flush_main(a);
}

static void
flush_note(struct poolapply *a)
{
	if (!pmem_map_groups(a->map))
		return;
	a->copied_count += a->ranges;
	a->unflushed += a->bytes;
	/* The next message must find room. */
	if (a->unflushed >= FLUSH || a->copied_count > RANGES_MAX - WIRE_ENTRIES_MAX)
		flush_begin(a);
}

/* ---- copying ---- */

static int
piece_read(const struct poolapply *a, const struct piece *p, uint8_t *buf,
	   struct wire_commit_view *v, struct err *e)
{
	int rc = poolapply_read(a->fd, buf, p->len, a->off + p->at, e);

	if (rc)
		return rc;
	/* The header that the chain is made of. */
	if (memcmp(buf, p->header, sizeof(p->header)) != 0 ||
	    wire_stage_decode(buf, p->len, pmem_map_size(a->map), v, e))
		return err_set(e, REPL_E_CORRUPT, "journal: message %" PRIu64 " is damaged",
			       p->number);
	if (v->epoch != a->is.epoch)
		return err_set(e, REPL_E_CORRUPT, "journal: message %" PRIu64 " is of epoch %u",
			       p->number, v->epoch);
	return 0;
}

static int
piece_copy(struct poolapply *a, const struct piece *p, uint8_t *buf, struct err *e)
{
	struct range *ranges = &a->copied[p->range];
	struct wire_commit_view v;
	const uint8_t *from;
	int rc = piece_read(a, p, buf, &v, e);

	if (rc)
		return rc;
	from = v.payload;
	for (uint32_t i = 0; i < v.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&v, i);

		/* Another thread may be copying what lies beyond. */
		if (en.off < p->from || en.off + en.len > p->end)
			return err_set(e, REPL_E_CORRUPT, "journal: message %" PRIu64 " changes",
				       p->number);
		/* Asked for space a pool says no; touched it would end us, at each opening anew. */
		if (!pmem_map_put(a->map, en.off, from, en.len))
			return err_set(e, REPL_E_NOSPC,
				       "journal: no space is left for %u bytes at %" PRIu64
				       " of the pool: make room, then open it again",
				       en.len, en.off);
		ranges[i] = (struct range){.off = en.off, .len = en.len};
		from += en.len;
	}
	return pmem_map_groups(a->map) ? 0 : persist_some(a, ranges, v.entry_count, e);
}

static void
copy_some(struct poolapply *a, uint8_t *buf)
{
	struct err e;

	err_clear(&e);
	while (!atomic_load(&a->failed)) {
		unsigned i = atomic_fetch_add(&a->next, 1);

		if (i >= a->count)
			return;
		if (piece_copy(a, &a->piece[i], buf, &e))
			apply_fail(a, &e);
	}
}

static void *
copy_main(void *arg)
{
	struct poolapply *a = arg;

	copy_some(a, a->buf[1]);
	return NULL;
}

/* ---- batches ---- */

static int
bad_message(const struct poolapply *a, const char *how, struct err *e)
{
	return err_set(e, REPL_E_CORRUPT, "journal: message %" PRIu64 " %s", a->done.count + 1,
		       how);
}

/* Of the next message what its header and entries say. */
static int
piece_find(const struct poolapply *a, struct piece *p, struct err *e)
{
	uint64_t left = a->is.bytes - a->done.bytes;
	size_t have = left < SCAN ? (size_t)left : SCAN;
	struct wire_commit_view v;
	uint8_t buf[SCAN];
	int rc;

	if (left < WIRE_HEADER_SIZE)
		return bad_message(a, "does not end", e);
	rc = poolapply_read(a->fd, buf, have, a->off + a->done.bytes, e);
	if (rc)
		return rc;
	*p = (struct piece){.at = a->done.bytes, .number = a->done.count + 1, .from = UINT64_MAX};
	p->len = wire_stage_len(buf, have, WIRE_MSG_SIZE_MAX);
	if (p->len == 0 || p->len > left)
		return bad_message(a, "is none", e);
	memcpy(p->header, buf, sizeof(p->header));
	if (!wire_stage_peek(buf, have, &v))
		return bad_message(a, "is none", e);
	p->ranges = v.entry_count;
	for (uint32_t i = 0; i < v.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&v, i);
		uint64_t end;

		if (__builtin_add_overflow(en.off, (uint64_t)en.len, &end))
			return bad_message(a, "is damaged", e);
		p->from = en.off < p->from ? en.off : p->from;
		p->end = end > p->end ? end : p->end;
	}
	return 0;
}

/* From all of the batch. In a pass of one lane ranges rise, those of several come in any order. */
static bool
piece_is_apart(const struct poolapply *a, const struct piece *p)
{
	unsigned i = p->from < a->end ? a->count : 0;

	for (; i > 0; i--)
		if (p->from < a->piece[i - 1].end && a->piece[i - 1].from < p->end)
			return false;
	return true;
}

/* The next messages, about max bytes, that lie apart; at least one. */
static int
batch_gather(struct poolapply *a, uint64_t max, struct err *e)
{
	a->count = a->ranges = 0;
	a->bytes = a->end = 0;
	a->from = UINT64_MAX;
	max = max < BATCH_BYTES ? max : BATCH_BYTES;
	while (a->done.bytes < a->is.bytes && a->count < BATCH_MAX && a->bytes < max) {
		struct piece *p = &a->piece[a->count];
		int rc = piece_find(a, p, e);

		if (rc)
			return rc;
		if (!piece_is_apart(a, p) || a->copied_count + a->ranges + p->ranges > RANGES_MAX)
			break;
		p->range = a->copied_count + a->ranges;
		a->ranges += p->ranges;
		a->count++;
		a->bytes += p->len;
		a->from = p->from < a->from ? p->from : a->from;
		a->end = p->end > a->end ? p->end : a->end;
		a->done.chain = wire_stage_chain(a->done.chain, p->header);
		a->done.bytes += p->len;
		a->done.count++;
	}
	return 0;
}

static void
batch_copy(struct poolapply *a)
{
	atomic_store(&a->next, 0);
	if (a->count > 1 && a->bytes > ALONE)
		helper_start(&a->copying, copy_main);
	copy_some(a, a->buf[0]);
	helper_join(&a->copying);
	/* Ranges of what was not believed may be anything. */
	if (!atomic_load(&a->failed))
		flush_note(a);
}

static int
apply_check(const struct poolapply *a, struct err *e)
{
	if (a->done.count == a->is.count && a->done.chain == a->is.chain)
		return 0;
	return err_set(e, REPL_E_CORRUPT,
		       "journal: %" PRIu64 " messages, and they are not the %" PRIu64
		       " that were committed",
		       a->done.count, a->is.count);
}

int
poolapply_run(struct poolapply *a, struct pmem_map *map, uint64_t max, struct err *e)
{
	uint64_t begin = a->done.bytes;
	int rc = 0;

	a->map = map;
	while (!rc && !atomic_load(&a->failed) && a->done.bytes < a->is.bytes &&
	       a->done.bytes - begin < max) {
		rc = batch_gather(a, max - (a->done.bytes - begin), e);
		if (!rc)
			batch_copy(a);
	}
	if (!rc && !atomic_load(&a->failed) && a->done.bytes == a->is.bytes)
		flush_begin(a);
	helper_join(&a->flushing);
	if (!rc && a->failed)
		rc = err_copy(e, &a->err);
	return rc || a->done.bytes < a->is.bytes ? rc : apply_check(a, e);
}
