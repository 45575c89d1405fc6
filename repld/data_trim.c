/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was trimmed becomes zero in idle moments, and for a share of the time while updates come,
 * piece by piece, so that no update waits for more than a piece.
 */
#include "data_impl.h"

#include <inttypes.h>

#include "clock.h"
#include "log.h"

#define TRIM_PIECE      (64U << 10) /* 10 us of a core */
#define TRIM_PIECE_SYNC (1U << 20)  /* where a flush is dear */
#define TRIM_PIECE_HOLE (64U << 20)
#define TRIM_PIECE_STOP (64U << 20) /* where nothing else is done meanwhile: looks at stop */
#define TRIM_PAUSE_NS   NS_PER_MS   /* between pieces while updates come, at least */
#define TRIM_PAUSE      4U          /* ... so many times what the last one took */
#define TRIM_MUCH       (64U << 20) /* from here on only what it took */
#define TRIM_END_NS     NS_PER_S

static size_t
trim_piece(const struct data *d)
{
	if (d->params.hole)
		return TRIM_PIECE_HOLE;
	return pmem_map_groups(d->params.map) ? TRIM_PIECE_SYNC : TRIM_PIECE;
}

static void
trim_zero_piece(struct data *d, uint64_t off, uint64_t len)
{
	if (!d->params.hole && !data_back_or_fail(d, off, len))
		return;
	if (!pmem_map_zero(d->params.map, off, len, d->params.hole)) {
		data_space_fail(d, off, len);
		return;
	}
	data_note_range(d, off, len);
	d->holes |= d->params.hole;
}

static bool
trim_given_up(const struct data *d)
{
	return atomic_load_explicit(&d->stop, memory_order_relaxed) || d->failed;
}

/*
 * Zero a part of a trim at once; its caller takes it out of the list. When the
 * lanes end the rest is given up: their end must not wait for terabytes.
 */
static void
trim_zero(struct data *d, uint64_t off, uint64_t len)
{
	while (len > 0 && !trim_given_up(d)) {
		uint64_t piece = len < TRIM_PIECE_STOP ? len : TRIM_PIECE_STOP;

		trim_zero_piece(d, off, piece);
		off += piece;
		len -= piece;
		if (len > 0)
			data_flush(d);
	}
}

static void
trim_remove(struct data *d, unsigned i)
{
	d->trims[i] = d->trims[--d->trim_count];
}

static uint64_t
range_end(const struct range *r)
{
	return r->off + r->len;
}

void
data_trim_add(struct data *d, uint64_t off, uint64_t len)
{
	struct range all = {.off = off, .len = len};

	for (unsigned i = d->trim_count; i-- > 0;) {
		const struct range *r = &d->trims[i];
		uint64_t end = range_end(&all);

		if (r->off > end || all.off > range_end(r))
			continue;
		if (range_end(r) > end)
			end = range_end(r);
		if (r->off < all.off)
			all.off = r->off;
		all.len = end - all.off;
		trim_remove(d, i);
		i = d->trim_count; /* the union may touch others */
	}
	if (d->trim_count == DATA_TRIMS_MAX) {
		trim_zero(d, d->trims[0].off, d->trims[0].len);
		trim_remove(d, 0);
	}
	d->trims[d->trim_count++] = all;
}

/* Cut [from, to) out of trim i. */
static void
trim_cut(struct data *d, unsigned i, uint64_t from, uint64_t to)
{
	struct range r = d->trims[i];
	struct range left = {.off = r.off, .len = from - r.off};
	struct range right = {.off = to, .len = range_end(&r) - to};

	if (left.len == 0 && right.len == 0) {
		trim_remove(d, i);
		return;
	}
	d->trims[i] = left.len ? left : right;
	if (left.len == 0 || right.len == 0)
		return;
	if (d->trim_count == DATA_TRIMS_MAX)
		trim_zero(d, right.off, right.len);
	else
		d->trims[d->trim_count++] = right;
}

/*
 * What of a trimmed page a FLUSH does not name. No hole, which is of whole pages, and no space is
 * taken for it: where the pool has none it is zero.
 */
static void
trim_zero_beside(struct data *d, uint64_t from, uint64_t to)
{
	if (from >= to || trim_given_up(d) || !data_back(d, from, to - from))
		return;
	(void)pmem_map_zero(d->params.map, from, to - from, false);
	data_note_range(d, from, to - from);
}

void
data_trim_meet(struct data *d, uint64_t off, uint64_t len, bool stored)
{
	uint64_t page_from = off - off % WIRE_TRIM_ALIGN;
	uint64_t end = off + len;
	uint64_t page_to = end + (WIRE_TRIM_ALIGN - end % WIRE_TRIM_ALIGN) % WIRE_TRIM_ALIGN;

	for (unsigned i = d->trim_count; i-- > 0;) {
		const struct range *r = &d->trims[i];
		uint64_t from = r->off > page_from ? r->off : page_from;
		uint64_t to = range_end(r) < page_to ? range_end(r) : page_to;

		if (from >= to)
			continue;
		if (stored) {
			trim_zero_beside(d, from, off);
			trim_zero_beside(d, end, to);
		} else {
			trim_zero(d, from, to - from);
		}
		trim_cut(d, i, from, to);
	}
}

bool
data_trim_meets(const struct data *d, uint64_t off, uint64_t len)
{
	uint64_t from = off - off % WIRE_TRIM_ALIGN;
	uint64_t end = off + len;

	end += (WIRE_TRIM_ALIGN - end % WIRE_TRIM_ALIGN) % WIRE_TRIM_ALIGN;
	for (unsigned i = 0; i < d->trim_count; i++)
		if (d->trims[i].off < end && from < range_end(&d->trims[i]))
			return true;
	return false;
}

static bool
trim_is_much(const struct data *d)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < d->trim_count; i++)
		bytes += d->trims[i].len;
	return bytes >= TRIM_MUCH;
}

static uint64_t
trim_pause(const struct data *d)
{
	uint64_t ns = d->trim_took_ns * (trim_is_much(d) ? 1 : TRIM_PAUSE);

	return ns > TRIM_PAUSE_NS ? ns : TRIM_PAUSE_NS;
}

bool
data_trim_step(struct data *d, bool idle)
{
	uint64_t begin_ns, len;
	struct range *r;

	if (d->trim_count == 0)
		return false;
	begin_ns = clock_now_ns();
	if (!idle && begin_ns - d->trimmed_ns < trim_pause(d))
		return false;
	r = &d->trims[d->trim_count - 1];
	len = r->len < trim_piece(d) ? r->len : trim_piece(d);
	trim_zero_piece(d, r->off, len);
	data_flush(d);
	r->off += len;
	r->len -= len;
	if (r->len == 0 || d->failed)
		d->trim_count--;
	d->trimmed_ns = clock_now_ns();
	d->trim_took_ns = d->trimmed_ns - begin_ns;
	return true;
}

bool
data_trim_finish(struct data *d)
{
	while (d->trim_count > 0) {
		const struct range *r = &d->trims[--d->trim_count];

		trim_zero(d, r->off, r->len);
	}
	return !trim_given_up(d);
}

void
data_trim_take(struct data *d, struct commit *c, const struct wire_entry *en)
{
	if (en->len > 0)
		data_trim_add(d, en->off, en->len);
	else if (!data_trim_finish(d) && !c->status)
		c->status = REPL_E_LOST;
}

void
data_trim_end(struct data *d)
{
	uint64_t deadline_ns = clock_now_ns() + TRIM_END_NS;

	while (!d->failed && data_trim_step(d, true))
		if (clock_now_ns() >= deadline_ns)
			break;
	if (d->trim_count > 0)
		log_info("%u trims are not finished: what was trimmed is not all zero",
			 d->trim_count);
	d->trim_count = 0;
}
