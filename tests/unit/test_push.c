/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy of a whole pool is told to the lane by and by: whoever makes it comes back between two
 * ranges, to be heard by the target and to be interrupted, however slow the link.
 */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "extents.h"
#include "reason.h"

#include "../../librepl/src/holes.h"

#include "../../librepl/src/fill.c"
#include "../../librepl/src/localmem.c"
#include "../../librepl/src/localread.c"
#include "../../librepl/src/push.c"

#define MIB  (1ULL << 20)
#define SIZE (256 * MIB)

static struct lane lane;
static bool rma;                        /* the pool is in its reach */
static unsigned room;                   /* for writes */
static uint64_t noted, most, next, sum; /* bytes: not yet begun, ...; where the next range begins */

struct lane *
remote_lane(struct remote *r, unsigned i)
{
	(void)r;
	assert_int_equal(i, 0);
	return &lane;
}

bool
holes_mapped_at(const void *addr, const struct stat *st)
{
	(void)addr;
	(void)st;
	return false;
}

static struct replica_info info;
static struct lane_terms terms;

const struct lane_terms *
remote_terms(const struct remote *r)
{
	(void)r;
	return &terms;
}

const struct replica_info *
remote_info(const struct remote *r)
{
	(void)r;
	return &info;
}

unsigned
remote_op_timeout_ms(const struct remote *r)
{
	(void)r;
	return 1000;
}

void
lane_bind(struct lane *l, const void *mem)
{
	(void)l;
	(void)mem;
}

bool
lane_done(const struct lane *l)
{
	return l->phase == LANE_IDLE;
}

bool
lane_posted(const struct lane *l)
{
	return l->phase != LANE_POST_FIRST;
}

bool
lane_has_room(const struct lane *l)
{
	(void)l;
	return room > 0;
}

void
lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len)
{
	assert_int_equal(kind, LANE_SETTLE);
	assert_int_equal(l->phase, LANE_IDLE);
	assert_int_equal(off + len, 0);
	l->phase = LANE_POST_FIRST;
}

static unsigned breaths, last; /* the last one ends the wait; 0: none does */

static int
take(void *arg, struct err *e)
{
	assert_ptr_equal(arg, &breaths);
	return ++breaths == last ? err_set(e, REPL_E_FAILED, "enough") : 0;
}

/* ---- PUTs ---- */

#define MSG_SIZE 65536U

static uint8_t pool[4 * MIB], replica[4 * MIB]; /* all of the former lies in the latter? */
static uint8_t message[MSG_SIZE];
static struct rangeset put; /* before the last flushes */
static bool was_flushed;
static unsigned put_count, flushes;
static uint64_t flushed; /* bytes */
static uint64_t far_ns;  /* that an answer takes */

uint8_t *
fab_lane_buf(struct fab_lane *l)
{
	(void)l;
	assert_in_range(lane.seq_sent - lane.seq_acked, 0, lane.depth - 1);
	return message;
}

static void
take_put(const struct wire_commit_view *v)
{
	const uint8_t *from = v->payload;

	put_count++;
	if (was_flushed)
		rangeset_clear(&put);
	was_flushed = false;
	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);

		memcpy(replica + en.off, from, en.len);
		from += en.len;
		assert_true(rangeset_add(&put, en.off, en.len) >= 0);
	}
}

/* What is made durable has been put before. */
static void
take_flush(const struct wire_commit_view *v)
{
	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);
		bool found = false;

		assert_int_equal(en.op, WIRE_OP_FLUSH);
		for (unsigned k = 0; k < put.count; k++)
			found |= put.r[k].off <= en.off &&
				 en.off + en.len <= put.r[k].off + put.r[k].len;
		assert_true(found);
		flushed += en.len;
	}
	flushes++;
	was_flushed = true;
}

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	struct wire_commit_view v;

	(void)l;
	if (wire_put_is(message, len)) {
		assert_int_equal(wire_put_decode(message, len, sizeof(pool), &v, e), 0);
		take_put(&v);
	} else {
		assert_int_equal(wire_commit_decode(message, len, sizeof(pool), &v, e), 0);
		take_flush(&v);
	}
	assert_int_equal(v.seq, lane.seq_sent + 1);
	return 0;
}

void
lane_fail(struct lane *l, int status, const char *why)
{
	(void)why;
	l->status = status;
}

static void
answer(const struct lane *l)
{
	(void)usleep((unsigned)(far_ns / 1000));
	if (l->seq_acked < l->seq_sent)
		lane.seq_acked++;
}

/* As little as until() asks for, with a breath before each step. */
int
lane_run_while_moving(struct lane *l, bool (*until)(const struct lane *), uint64_t stall_ns,
		      const struct breath *breath, struct err *e)
{
	int rc = 0;

	assert_int_equal(stall_ns, 1000 * NS_PER_MS);
	while (!until(l)) {
		rc = breath_take(breath, e);
		if (rc)
			break;
		if (l->seq_acked < l->seq_sent) {
			answer(l);
		} else if (room == 0) {
			room = 1;
		} else if (l->phase == LANE_POST_FIRST) {
			l->phase = LANE_AWAIT;
			l->todo.count = 0;
			noted = 0;
		} else {
			l->phase = LANE_IDLE;
		}
	}
	return rc;
}

int
lane_flush(struct lane *l, uint64_t off, uint64_t len)
{
	assert_true(off == next || next == UINT64_MAX);
	assert_int_equal(l->phase, LANE_IDLE);
	next = off + len;
	sum += len;
	if (rma && room > 0) {
		room--;
		return 0;
	}
	l->todo.count = 1;
	noted += len;
	most = noted > most ? noted : most;
	return 0;
}

static bool holes; /* that there is no space for */

bool
extents_fill(int fd)
{
	return fd >= 0 && holes;
}

int
holes_touch(const uint8_t *mem, uint64_t off, uint64_t len, struct err *e)
{
	assert_ptr_equal(mem, pool);
	assert_in_range(off + len, 1, sizeof(pool));
	return err_set(e, REPL_E_NOMEM, "full");
}

static const struct fill_source nowhere = {.fd = -1};

static void
some_begin(struct push *p, struct err *e)
{
	const struct breath breath = {.take = take, .arg = &breaths};

	err_clear(e);
	rma = false;
	room = 2;
	noted = next = sum = 0;
	breaths = last = 0;
	memset(&lane, 0, sizeof(lane));
	push_begin(p, NULL, 0, &nowhere, breath);
	assert_int_equal(push_range(p, 0, MIB, e), 0);
}

static void
push_all(bool by_rma)
{
	struct push p;
	struct err e;

	err_clear(&e);
	rma = by_rma;
	room = 2;
	noted = most = next = sum = 0;
	memset(&lane, 0, sizeof(lane));
	push_begin(&p, NULL, 0, &nowhere, (struct breath){0});
	assert_int_equal(push_range(&p, 0, SIZE / 2, &e), 0);
	for (uint64_t off = SIZE / 2; off < SIZE; off += MIB / 4)
		assert_int_equal(push_range(&p, off, MIB / 4, &e), 0);
	assert_int_equal(push_settle(&p, &e), 0);
	assert_int_equal(sum, SIZE);
	assert_int_equal(noted, 0);
}

static void
test_writes_go_as_there_is_room(void **state)
{
	(void)state;
	push_all(true);
	assert_int_equal(most, 0);
}

static void
test_messages_do_not_pile_up(void **state)
{
	(void)state;
	push_all(false);
	assert_in_range(most, MIB, 16 * MIB);
}

/* Twice, since a push goes on after it has settled. */
static void
test_whoever_waits_breathes(void **state)
{
	struct push p;
	struct err e;

	(void)state;
	some_begin(&p, &e);
	for (unsigned times = 1; times <= 2; times++) {
		assert_int_equal(push_settle(&p, &e), 0);
		assert_in_range(breaths, times, 4 * times);
		assert_int_equal(push_range(&p, next, MIB, &e), 0);
	}
}

static void
test_a_breath_ends_the_wait(void **state)
{
	struct push p;
	struct err e;

	(void)state;
	some_begin(&p, &e);
	last = 1;
	assert_int_equal(push_settle(&p, &e), REPL_E_FAILED);
	assert_string_equal(e.text, "enough");
}

/* The provider there does not say why a write has ended the lane. */
static void
test_a_disk_that_may_be_full_is_named(void **state)
{
	(void)state;
	for (unsigned sparse = 0; sparse < 2; sparse++) {
		struct push p;
		struct err e;

		info.meta.sparse = sparse;
		some_begin(&p, &e);
		info.meta.sparse = false;
		lane.status = REPL_E_LOST;
		(void)snprintf(lane.why, sizeof(lane.why), "closed by the target");
		assert_int_equal(push_range(&p, 0, MIB, &e), REPL_E_LOST);
		assert_non_null(strstr(e.text, "data lane: closed by the target"));
		assert_int_equal(strstr(e.text, "disk is full") != NULL, sparse);
	}
}

/* A pool that is in memory, or in a file that is mapped. */
static void
put_begin_at(struct push *p, const struct fill_source *from)
{
	memset(&lane, 0, sizeof(lane));
	memset(replica, 0, sizeof(replica));
	lane.depth = 4;
	lane.msg_size = MSG_SIZE;
	rangeset_clear(&put);
	put_count = flushes = 0;
	flushed = sum = next = far_ns = 0;
	terms.put = true;
	for (size_t i = 0; i < sizeof(pool); i++)
		pool[i] = (uint8_t)(i / 4096 * 7 + i % 251);
	push_begin(p, NULL, 0, from, (struct breath){0});
}

static void
test_puts_bring_all_and_are_flushed(void **state)
{
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	for (unsigned by_file = 0; by_file < 2; by_file++) {
		const struct fill_source from = {.mem = by_file ? NULL : pool,
						 .fd = by_file ? fileno(f) : -1};
		struct push p;
		struct err e;

		err_clear(&e);
		put_begin_at(&p, &from);
		assert_int_equal(pwrite(fileno(f), pool, sizeof(pool), 0), sizeof(pool));
		for (uint64_t off = 0; off < 2 * MIB; off += 5000)
			assert_int_equal(push_range(&p, off, 3000, &e), 0);
		assert_int_equal(push_post(&p, &e), 0);
		assert_in_range(flushes, 1, 420 / RANGESET_MAX + 3);
		assert_int_equal(push_range(&p, 2 * MIB, 2 * MIB, &e), 0);
		assert_int_equal(push_settle(&p, &e), 0);
		assert_int_equal(lane.seq_acked, lane.seq_sent);
		assert_true(was_flushed);
		assert_int_equal(flushed, 420 * 3000 + 2 * MIB);
		for (uint64_t off = 0; off < 2 * MIB; off += 5000)
			assert_memory_equal(replica + off, pool + off, 3000);
		assert_memory_equal(replica + 2 * MIB, pool + 2 * MIB, 2 * MIB);
	}
	terms.put = false;
	assert_int_equal(fclose(f), 0);
}

/* More scattered than one message can ask for: asked in between. */
static void
test_puts_of_many_pieces_are_flushed(void **state)
{
	const struct fill_source from = {.mem = pool, .fd = -1};
	struct push p;
	struct err e;

	(void)state;
	err_clear(&e);
	put_begin_at(&p, &from);
	for (uint64_t off = 0; off < sizeof(pool); off += 1024)
		assert_int_equal(push_range(&p, off, 512, &e), 0);
	assert_int_equal(push_settle(&p, &e), 0);
	assert_int_equal(flushed, sizeof(pool) / 2);
	terms.put = false;
}

/* As many pieces as can be remembered end with a message: the next one has nothing yet. */
static void
test_no_put_is_empty(void **state)
{
	const struct fill_source from = {.mem = pool, .fd = -1};
	struct push p;
	struct err e;

	(void)state;
	/* The number that fits into a message goes by their length. */
	for (uint64_t len = 1000; len < 9000; len += 1000) {
		err_clear(&e);
		put_begin_at(&p, &from);
		for (uint64_t off = 0; off + len < sizeof(pool); off += len + 1000)
			assert_int_equal(push_range(&p, off, len, &e), 0);
		assert_int_equal(push_settle(&p, &e), 0);
		for (uint64_t off = 0; off + len < sizeof(pool); off += len + 1000)
			assert_memory_equal(replica + off, pool + off, len);
	}
	terms.put = false;
}

/* Whole pages are written there, but at a range's ends. */
static void
test_puts_are_cut_between_pages(void **state)
{
	const struct fill_source from = {.mem = pool, .fd = -1};
	struct push p;
	struct err e;

	(void)state;
	err_clear(&e);
	put_begin_at(&p, &from);
	assert_int_equal(push_range(&p, 4096, MIB, &e), 0);
	for (unsigned i = 0; i < put.count; i++)
		assert_int_equal((put.r[i].off + put.r[i].len) % 4096, 0);
	assert_int_equal(push_settle(&p, &e), 0);
	terms.put = false;
}

/* What is not put is read in memory, where looking at a hole takes space: asked for before. */
static void
test_holes_that_memory_has_no_space_for_are_told(void **state)
{
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	for (unsigned far = 0; far < 2; far++) {
		const struct fill_source from = {.mem = pool, .fd = fileno(f)};
		struct push p;
		struct err e;

		err_clear(&e);
		put_begin_at(&p, &from);
		assert_int_equal(pwrite(from.fd, pool, sizeof(pool), 0), sizeof(pool));
		holes = true;
		p.put = !far;
		assert_int_equal(push_range(&p, 0, MIB, &e), far ? REPL_E_NOMEM : 0);
		holes = false;
	}
	terms.put = false;
	assert_int_equal(fclose(f), 0);
}

/* Where answers take long more must be on its way; nothing is lost in the change. */
static void
test_far_away_it_goes_by_rma(void **state)
{
	const struct fill_source from = {.mem = pool, .fd = -1};
	struct push p;
	struct err e;

	(void)state;
	err_clear(&e);
	put_begin_at(&p, &from);
	far_ns = FAR_NS + 1000000;
	room = 1;
	rma = true;
	next = UINT64_MAX;
	assert_int_equal(push_range(&p, 0, 2 * MIB, &e), 0);
	assert_false(p.put);
	assert_int_equal(lane.seq_acked, lane.seq_sent);
	assert_true(was_flushed);
	assert_int_not_equal(flushed, 0);
	assert_int_equal(flushed + sum, 2 * MIB);
	terms.put = false;
}

static void
test_a_file_that_became_shorter_is_told(void **state)
{
	FILE *f = tmpfile();
	const struct fill_source from = {.mem = pool, .fd = f ? fileno(f) : -1};
	struct push p;
	struct err e;

	(void)state;
	assert_non_null(f);
	err_clear(&e);
	put_begin_at(&p, &from);
	assert_int_equal(ftruncate(fileno(f), 8192), 0);
	assert_int_equal(push_range(&p, 0, MIB, &e), REPL_E_IO);
	assert_non_null(strstr(e.text, "shorter"));
	/* And that it is no fault of the target. */
	assert_int_equal(reason_of_error(&e, REASON_RESYNC), REPL_REASON_LOCAL);
	terms.put = false;
	assert_int_equal(fclose(f), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whoever_waits_breathes),
		cmocka_unit_test(test_a_breath_ends_the_wait),
		cmocka_unit_test(test_writes_go_as_there_is_room),
		cmocka_unit_test(test_messages_do_not_pile_up),
		cmocka_unit_test(test_a_disk_that_may_be_full_is_named),
		cmocka_unit_test(test_puts_bring_all_and_are_flushed),
		cmocka_unit_test(test_puts_of_many_pieces_are_flushed),
		cmocka_unit_test(test_no_put_is_empty),
		cmocka_unit_test(test_holes_that_memory_has_no_space_for_are_told),
		cmocka_unit_test(test_puts_are_cut_between_pages),
		cmocka_unit_test(test_far_away_it_goes_by_rma),
		cmocka_unit_test(test_a_file_that_became_shorter_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
