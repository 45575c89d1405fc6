/* SPDX-License-Identifier: BSD-3-Clause */
/* After any cut a replay of the receive ring leaves what was reported, in the order of the reports.
 */
#include "unit.h"

#include <stdio.h>

#include "media_visited.h"
#include "ring.h"

/*
 * The target is DMP without DDIO, receive buffers in PM: what is visible may
 * reach the media at any time and in any order, and a read pushes it there. Each
 * deposit is a pair: a := i, then b := i, always at the same two places, so that
 * a wrong order over the lanes shows. What is left of the ring after a cut is
 * given to ring.c as bytes, and replayed by its rules. The same with caches that
 * are kept.
 */
#define LANES        2U
#define SLOTS        2U
#define DEPOSITS_MAX 7U
#define LINES        2U /* of a message */
#define LINE         64U
#define EPOCH        7U
#define POOL_SIZE    4096U
#define OFF_A        0U
#define OFF_B        64U
#define REGION_SIZE  (8192U + LANES * SLOTS * 4096U)

/* What the target's data thread may do wrong. */
enum mistake {
	RIGHT,
	MARKS_TOGETHER,  /* all marks of a round stored, then flushed */
	MARK_FIRST,      /* marked, then applied */
	ANSWER_FIRST,    /* answered, then marked: the slot is used again */
	NO_BARRIER,      /* a is not flushed before b is stored */
	NOT_FLUSHED,     /* marked when stored */
	REPORT_VISIBLE,  /* by the initiator: durable when visible, as with DDIO */
	REPORT_TOO_SOON, /* by the initiator: as if a completion were enough */
};

struct scenario {
	const char *name;
	unsigned count;
	unsigned lane[DEPOSITS_MAX];
	bool wait[DEPOSITS_MAX]; /* not posted before the one before it is reported */
};

struct state {
	uint8_t posted, reported;
	uint8_t visible, part; /* deposits in whole, lines of the next one as bits */
	uint8_t base;          /* deposits that the data thread is done with */
	uint8_t taken, step;   /* of its round: deposits, steps that are over */
	/* On the media: */
	uint8_t a, b;
	uint8_t mark[LANES];
	uint8_t slot[LANES][SLOTS][LINES]; /* of which deposit the line is, 0: none */
};

enum kind { STORE_A, STORE_B, STORE_MARK, FLUSH_DATA, FLUSH_MARKS, ANSWER };

/* A round of the data thread, and what it does to caches. */
struct round {
	unsigned count;
	struct {
		enum kind kind;
		unsigned i; /* deposit */
	} step[8 * DEPOSITS_MAX];
};

static const struct ring_geometry geometry = {
	.epoch = EPOCH, .lanes = LANES, .slots = SLOTS, .slot_size = RING_ALIGN};

static const struct scenario *scenario;
static enum mistake mistake;
static bool caches_kept; /* MHP; WSP too, where "visible" is to be read as "in the NIC" */
static struct visited visited;
static uint64_t states;

/* ---- states as keys ---- */

#define STATE_FIELDS(X)                                                                            \
	X(posted, 3)                                                                               \
	X(reported, 3)                                                                             \
	X(visible, 3)                                                                              \
	X(part, 2)                                                                                 \
	X(base, 3)                                                                                 \
	X(taken, 3)                                                                                \
	X(step, 6)                                                                                 \
	X(a, 3)                                                                                    \
	X(b, 3)                                                                                    \
	X(mark[0], 3)                                                                              \
	X(mark[1], 3)                                                                              \
	X(slot[0][0][0], 3)                                                                        \
	X(slot[0][0][1], 3)                                                                        \
	X(slot[0][1][0], 3)                                                                        \
	X(slot[0][1][1], 3)                                                                        \
	X(slot[1][0][0], 3)                                                                        \
	X(slot[1][0][1], 3)                                                                        \
	X(slot[1][1][0], 3)                                                                        \
	X(slot[1][1][1], 3)

static uint64_t
state_key(const struct state *s)
{
	uint64_t key = 0;

#define X(field, bits) key = (key << (bits)) | s->field;
	STATE_FIELDS(X)
#undef X
	return key;
}

static struct state
state_of(uint64_t key)
{
	struct state s;
	unsigned shift = 0;

#define X(field, bits) shift += (bits);
	STATE_FIELDS(X)
#undef X
#define X(field, bits)                                                                             \
	shift -= (bits);                                                                           \
	s.field = (uint8_t)((key >> shift) & ((1U << (bits)) - 1));
	STATE_FIELDS(X)
#undef X
	return s;
}

static void
state_go(const struct state *to, uint32_t from)
{
	visited_add(&visited, state_key(to), from);
}

/* ---- the scenario's deposits, from 1 ---- */

static unsigned
lane_of(unsigned i)
{
	return scenario->lane[i - 1];
}

/* The sequence of deposit i on its lane; of the lane's last one up to i, if it is another's. */
static uint8_t
seq_up_to(unsigned lane, unsigned i)
{
	uint8_t seq = 0;

	for (unsigned j = 1; j <= i; j++)
		seq = (uint8_t)(seq + (lane_of(j) == lane));
	return seq;
}

static unsigned
slot_of(unsigned i)
{
	return ring_slot_of(&geometry, seq_up_to(lane_of(i), i));
}

/* The deposit whose bytes a line of the ring has if the first n have arrived. */
static uint8_t
line_up_to(unsigned lane, unsigned slot, unsigned n)
{
	for (unsigned i = n; i > 0; i--) {
		if (lane_of(i) == lane && slot_of(i) == slot)
			return (uint8_t)i;
	}
	return 0;
}

/* ---- the data thread ---- */

static void
round_add(struct round *r, enum kind kind, unsigned i)
{
	r->step[r->count].kind = kind;
	r->step[r->count++].i = i;
}

static void
round_store(struct round *r, const struct state *s)
{
	for (unsigned i = s->base + 1U; i <= s->base + s->taken; i++) {
		round_add(r, STORE_A, i);
		if (mistake != NO_BARRIER)
			round_add(r, FLUSH_DATA, i);
		round_add(r, STORE_B, i);
	}
	if (mistake != NOT_FLUSHED)
		round_add(r, FLUSH_DATA, 0);
}

/* Those of one lane that follow one another share a store. */
static void
round_mark(struct round *r, const struct state *s)
{
	unsigned end = s->base + s->taken;

	for (unsigned i = s->base + 1U; i <= end; i++) {
		if (i < end && lane_of(i + 1) == lane_of(i))
			continue;
		round_add(r, STORE_MARK, i);
		if (mistake != MARKS_TOGETHER)
			round_add(r, FLUSH_MARKS, 0);
	}
	round_add(r, FLUSH_MARKS, 0);
}

static void
round_of(struct round *r, const struct state *s)
{
	r->count = 0;
	if (mistake == MARK_FIRST)
		round_mark(r, s);
	round_store(r, s);
	if (mistake == ANSWER_FIRST)
		round_add(r, ANSWER, 0);
	if (mistake != MARK_FIRST)
		round_mark(r, s);
	if (mistake != ANSWER_FIRST)
		round_add(r, ANSWER, 0);
}

/* What the caches of the target hold, and how many deposits are answered. */
struct now {
	uint8_t a, b, mark[LANES], answered;
};

static struct now
now_of(const struct state *s, const struct round *r)
{
	struct now n = {.a = s->base, .b = s->base, .answered = s->base};

	for (unsigned l = 0; l < LANES; l++)
		n.mark[l] = seq_up_to(l, s->base);
	for (unsigned k = 0; k < s->step; k++) {
		uint8_t i = (uint8_t)r->step[k].i;

		if (r->step[k].kind == STORE_A)
			n.a = i;
		else if (r->step[k].kind == STORE_B)
			n.b = i;
		else if (r->step[k].kind == STORE_MARK)
			n.mark[lane_of(i)] = seq_up_to(lane_of(i), i);
		else if (r->step[k].kind == ANSWER)
			n.answered = s->base + s->taken;
	}
	return n;
}

static void
step_thread(const struct state *s, const struct round *r, const struct now *now, uint32_t at)
{
	struct state t = *s;

	if (s->taken == 0) {
		for (t.taken = 1; s->base + t.taken <= s->visible; t.taken++)
			state_go(&t, at);
		return;
	}
	if (s->step == r->count) {
		t.base = s->base + s->taken;
		t.taken = t.step = 0;
		state_go(&t, at);
		return;
	}
	if (!caches_kept && r->step[s->step].kind == FLUSH_DATA &&
	    (s->a != now->a || s->b != now->b))
		return;
	if (!caches_kept && r->step[s->step].kind == FLUSH_MARKS &&
	    memcmp(s->mark, now->mark, LANES) != 0)
		return;
	t.step++;
	state_go(&t, at);
}

/* ---- initiator, NIC, evictions ---- */

/* In the order of the posts; a lane's slot must be free. */
static void
step_post(const struct state *s, const struct now *now, uint32_t at)
{
	struct state t = *s;
	unsigned i = s->posted + 1U;

	if (s->posted == scenario->count || (scenario->wait[i - 1] && s->reported < s->posted))
		return;
	if (line_up_to(lane_of(i), slot_of(i), s->posted) > now->answered)
		return;
	t.posted++;
	state_go(&t, at);
}

/* A read behind the deposit: it and what came before it on its lane is on the media. */
static bool
read_done(const struct state *s, unsigned i)
{
	unsigned lane = lane_of(i);

	if (mistake == REPORT_TOO_SOON)
		return true;
	if (s->visible < i)
		return false;
	if (caches_kept || mistake == REPORT_VISIBLE)
		return true;
	for (unsigned at = 0; at < SLOTS * LINES; at++) {
		if (s->slot[lane][at / LINES][at % LINES] < line_up_to(lane, at / LINES, i))
			return false;
	}
	return true;
}

static void
step_report(const struct state *s, uint32_t at)
{
	struct state t = *s;

	if (s->reported == s->posted || !read_done(s, s->reported + 1U))
		return;
	t.reported++;
	state_go(&t, at);
}

static void
step_nic(const struct state *s, uint32_t at)
{
	for (unsigned line = 0; line < LINES && s->visible < s->posted; line++) {
		struct state t = *s;

		if (s->part & (1U << line))
			continue;
		t.part |= (uint8_t)(1U << line);
		if (t.part == (1U << LINES) - 1) {
			t.part = 0;
			t.visible++;
		}
		state_go(&t, at);
	}
}

static void
evict(const struct state *s, struct state *t, uint8_t *place, uint8_t value, uint32_t at)
{
	if (*place == value)
		return;
	*place = value;
	state_go(t, at);
	*t = *s;
}

/* The deposit whose bytes are in a line of the ring, for who looks through the caches. */
static uint8_t
line_now(const struct state *s, unsigned lane, unsigned slot, unsigned line)
{
	return line_up_to(lane, slot, s->visible + ((s->part >> line) & 1U));
}

static void
step_evict(const struct state *s, const struct now *now, uint32_t at)
{
	struct state t = *s;

	evict(s, &t, &t.a, now->a, at);
	evict(s, &t, &t.b, now->b, at);
	for (unsigned l = 0; l < LANES; l++)
		evict(s, &t, &t.mark[l], now->mark[l], at);
	for (unsigned i = 0; i < LANES * SLOTS * LINES; i++) {
		unsigned lane = i / (SLOTS * LINES), slot = i / LINES % SLOTS, line = i % LINES;

		evict(s, &t, &t.slot[lane][slot][line], line_now(s, lane, slot, line), at);
	}
}

/* A cut that keeps the caches: what they hold is what the media get. */
static struct state
state_kept(const struct state *s, const struct now *now)
{
	struct state t = *s;

	t.a = now->a;
	t.b = now->b;
	(void)memcpy(t.mark, now->mark, LANES);
	for (unsigned i = 0; i < LANES * SLOTS * LINES; i++) {
		unsigned lane = i / (SLOTS * LINES), slot = i / LINES % SLOTS, line = i % LINES;

		t.slot[lane][slot][line] = line_now(s, lane, slot, line);
	}
	return t;
}

/* ---- the cut ---- */

static void
message_make(unsigned i, uint8_t message[LINES * LINE])
{
	const uint8_t value[8] = {(uint8_t)i};
	uint8_t buf[LINES * LINE + LINE];
	struct wire_commit c;
	size_t len;

	wire_commit_begin(&c, buf, sizeof(buf), 4);
	wire_commit_add(&c, &(struct wire_entry){.off = i, .op = WIRE_OP_STAMP}, NULL);
	wire_commit_add(&c, &(struct wire_entry){OFF_A, 8, WIRE_OP_ATOMIC8}, value);
	wire_commit_add(&c, &(struct wire_entry){.op = WIRE_OP_BARRIER}, NULL);
	wire_commit_add(&c, &(struct wire_entry){OFF_B, 8, WIRE_OP_ATOMIC8}, value);
	len = wire_deposit_end(&c, seq_up_to(lane_of(i), i), EPOCH);
	assert_true(len > LINE && len <= LINES * LINE);
	(void)memset(message, 0, LINES * LINE);
	(void)memcpy(message, buf, len);
}

/* The deposit that is replayed last; 0: none is. */
static uint8_t
replay(const struct state *s)
{
	static uint8_t region[REGION_SIZE];
	static struct ring_replay r;
	uint8_t message[LINES * LINE];
	struct ring_message m;
	uint8_t last = 0;

	(void)memset(region, 0, sizeof(region));
	for (unsigned lane = 0; lane < LANES; lane++) {
		ring_mark_encode(s->mark[lane], region + ring_mark_off(lane));
		for (unsigned at = 0; at < SLOTS * LINES; at++) {
			unsigned slot = at / LINES, line = at % LINES;
			uint8_t i = s->slot[lane][slot][line];

			if (!i)
				continue;
			message_make(i, message);
			(void)memcpy(region + ring_slot_off(&geometry, lane, slot) + line * LINE,
				     message + line * LINE, LINE);
		}
	}
	ring_replay_begin(&r, region, &geometry, POOL_SIZE);
	while (ring_replay_next(&r, &m)) {
		assert_int_equal(m.view.payload_len, 16);
		last = m.view.payload[8];
	}
	return last;
}

/* The same, remembering what came of the same marks and slots before. */
static uint8_t
replay_known(const struct state *s)
{
	static struct {
		uint64_t key;
		const struct scenario *scenario;
		uint8_t last;
	} known[1U << 16];
	struct state ring = *s;
	uint64_t key;
	size_t i;

	ring.posted = ring.reported = ring.visible = ring.part = 0;
	ring.base = ring.taken = ring.step = ring.a = ring.b = 0;
	key = state_key(&ring);
	i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 48);
	if (known[i].key != key || known[i].scenario != scenario) {
		known[i].last = replay(s);
		known[i].key = key;
		known[i].scenario = scenario;
	}
	return known[i].last;
}

/* What can be wrong, as bits. */
#define REPORTED_LOST 1U
#define ANSWERED_LOST 2U
#define B_WITHOUT_A   4U
#define NOT_POSTED    8U
#define ENDLESS       16U

/* What the cut and a replay leave, against what was said. */
static unsigned
cut(const struct state *s, const struct now *now)
{
	struct state left = caches_kept ? state_kept(s, now) : *s;
	uint8_t last = replay_known(&left);
	uint8_t a = last ? last : left.a, b = last ? last : left.b;
	unsigned wrong = 0;

	if (a < s->reported || b < s->reported)
		wrong |= REPORTED_LOST;
	if (a < now->answered || b < now->answered)
		wrong |= ANSWERED_LOST;
	if (b > a)
		wrong |= B_WITHOUT_A;
	if (a > s->posted)
		wrong |= NOT_POSTED;
	return wrong;
}

/* All that is wrong in any interleaving, up to the first of stop. */
static unsigned
explore(const struct scenario *sc, enum mistake m, unsigned stop)
{
	const struct state first = {0};
	unsigned wrong = ENDLESS;
	uint32_t at;

	scenario = sc;
	mistake = m;
	visited_clear(&visited);
	state_go(&first, VISITED_NONE);
	while (!(wrong & stop) && (at = visited_next(&visited)) != VISITED_NONE) {
		struct state s = state_of(visited.visit[at].key);
		struct round r;
		struct now now;

		round_of(&r, &s);
		now = now_of(&s, &r);
		wrong |= cut(&s, &now);
		if (s.base == sc->count && s.reported == sc->count)
			wrong &= ~ENDLESS;
		step_post(&s, &now, at);
		step_report(&s, at);
		step_nic(&s, at);
		if (!caches_kept)
			step_evict(&s, &now, at);
		step_thread(&s, &r, &now, at);
	}
	states += visited.count;
	return wrong;
}

/* ---- tests ---- */

/* On another lane than the one before only after its report: else they have no order. */
static const struct scenario scenarios[] = {
	{"one lane, each waits", 4, {0, 0, 0, 0}, {0, 1, 1, 1}},
	{"one lane, none waits", 4, {0, 0, 0, 0}, {0}},
	{"two lanes in turn", 4, {0, 1, 0, 1}, {0, 1, 1, 1}},
	{"two on a lane, then the other", 4, {0, 0, 1, 1}, {0, 0, 1, 0}},
	{"there and back", 4, {0, 1, 1, 0}, {0, 1, 0, 1}},
	{"one between", 5, {0, 0, 1, 0, 0}, {0, 0, 1, 1, 0}},
	{"each slot three times, each waits", 6, {0, 0, 0, 0, 0, 0}, {0, 1, 1, 1, 1, 1}},
	{"each slot three times, none waits", 6, {0, 0, 0, 0, 0, 0}, {0}},
	{"two lanes in turn, slots used again", 7, {0, 1, 0, 1, 0, 1, 0}, {0, 1, 1, 1, 1, 1, 1}},
	{"pairs in turn, slots used again", 7, {0, 0, 1, 1, 0, 0, 1}, {0, 0, 1, 0, 1, 0, 1}},
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static void
nothing_is_lost(void **state)
{
	(void)state;
	for (size_t i = 0; i < SCENARIOS * 2; i++) {
		unsigned wrong;

		caches_kept = i % 2;
		wrong = explore(&scenarios[i / 2], RIGHT, 0);
		if (wrong)
			fail_msg("%s: %#x", scenarios[i / 2].name, wrong);
	}
}

/* In some scenario. */
static bool
mistake_shows(enum mistake m, unsigned wrong)
{
	for (size_t i = 0; i < SCENARIOS; i++) {
		if (explore(&scenarios[i], m, wrong) & wrong)
			return true;
	}
	return false;
}

/* So the order of the steps is needed; flushes are not where caches are kept. */
static void
each_mistake_shows(void **state)
{
	static const struct {
		enum mistake mistake;
		const char *name;
		unsigned wrong;
		bool always; /* with caches that are kept, too */
	} mistakes[] = {
		{MARKS_TOGETHER, "marks flushed together", REPORTED_LOST, false},
		{MARK_FIRST, "marked before it is applied", REPORTED_LOST, true},
		{ANSWER_FIRST, "answered before it is marked", REPORTED_LOST, true},
		{NO_BARRIER, "no flush between a and b", B_WITHOUT_A, false},
		{NOT_FLUSHED, "marked before it is flushed", REPORTED_LOST, false},
		{REPORT_VISIBLE, "reported when visible", REPORTED_LOST, false},
		{REPORT_TOO_SOON, "reported when posted", REPORTED_LOST, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]) * 2; i++) {
		size_t m = i / 2;
		bool want;

		caches_kept = i % 2;
		want = mistakes[m].always || !caches_kept;
		if (mistake_shows(mistakes[m].mistake, mistakes[m].wrong) != want)
			fail_msg("%s, caches %s: %s", mistakes[m].name,
				 caches_kept ? "kept" : "lost",
				 want ? "nothing is wrong" : "something is lost");
	}
}

static int
teardown(void **state)
{
	(void)state;
	printf("explored %llu states with a power cut and a replay in each\n",
	       (unsigned long long)states);
	visited_fini(&visited);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(each_mistake_shows),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
