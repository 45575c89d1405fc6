/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * After a power cut at any point a log holds exactly what was acknowledged and at most each
 * writer's append under way, whole or not at all, in order; and a drain or an order that is
 * missing shows.
 *
 * The medium takes 8-byte words: of what one stage of a job persists any of them
 * may be there when the power goes, all of them when the next stage begins or
 * the job is acknowledged. Pages under trim become zero at any time until trims are settled.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "logcore.h"
#include "logscan.h"

#define AREA_SIZE   (LOGFMT_RING_OFF + 3 * LOGFMT_PAGE)
#define WRITERS_MAX 3U
#define RECORDS_MAX 4096U
#define STAGE_MAX   2U
#define DATA_MAX    1400U
#define TRIMS_MAX   64U
#define WORD        8U
#define JOBS        24U /* of which each is cut */
#define CUTS        16U /* so many ways a stage */
#define LIVES       4U  /* and then so many cuts at random */

/* A step left out, to see that this test would notice. */
enum fault { NO_FAULT, FAULT_DRAIN, FAULT_ORDER, FAULT_SETTLE, FAULT_RUN };

/* How many words of the stage that is cut are there. */
enum subset { SUBSET_PREFIX, SUBSET_ONE_MISSING, SUBSET_ONE_THERE, SUBSET_RANDOM, SUBSETS };

struct record {
	uint64_t position;
	uint32_t len;
	uint32_t seed;
	unsigned writer;
};

struct sim {
	uint8_t area[AREA_SIZE] __attribute__((aligned(8)));  /* the initiator's range */
	uint8_t media[AREA_SIZE] __attribute__((aligned(8))); /* what the replica's media hold */
	struct logcore c;
	enum repl_log_kind kind;
	enum fault fault;
	unsigned writers;
	uint64_t random;
	uint64_t job, cut_job; /* counted; the one that is cut */
	unsigned cut_stage;
	enum subset subset;
	unsigned subset_n;
	bool cut; /* the power is off */
	struct record records[RECORDS_MAX];
	unsigned first, acked, placed; /* indices into records: kept from, acknowledged, all */
	unsigned group_end;            /* records up to here are in the group under way */
	uint64_t head_old, head_new;   /* the head is one of them */
	struct logfmt_span trims[TRIMS_MAX];
	unsigned trim_count;
	bool said; /* print what is wrong */
};

static uint32_t
rnd(struct sim *s, uint32_t below)
{
	s->random = s->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(s->random >> 33) % below;
}

/* ---- the medium ---- */

static void
persist_word(struct sim *s, uint64_t off)
{
	memcpy(s->media + off, s->area + off, WORD);
}

static bool
word_survives(struct sim *s, unsigned i)
{
	switch (s->subset) {
	case SUBSET_PREFIX:
		return i < s->subset_n;
	case SUBSET_ONE_MISSING:
		return i != s->subset_n;
	case SUBSET_ONE_THERE:
		return i == s->subset_n;
	default:
		return rnd(s, 2) != 0;
	}
}

static void
persist_span(struct sim *s, const struct logfmt_span *span, bool all, unsigned *i)
{
	for (unsigned piece = 0; piece < 2; piece++)
		for (uint64_t at = 0; at < span->len[piece]; at += WORD)
			if (word_survives(s, (*i)++) || all)
				persist_word(s, span->off[piece] + at);
}

/* Trimming goes on whenever it likes. */
static void
trims_go_on(struct sim *s, bool finish)
{
	for (unsigned t = 0; t < s->trim_count; t++)
		for (unsigned piece = 0; piece < 2; piece++)
			for (uint64_t at = 0; at < s->trims[t].len[piece]; at += WORD)
				if (finish || rnd(s, 20) == 0)
					memset(s->media + s->trims[t].off[piece] + at, 0, WORD);
	if (finish)
		s->trim_count = 0;
}

/* Persist stages one after the other; false if the power went. */
static bool
run_job(struct sim *s, const struct logfmt_span *stages, unsigned count)
{
	bool cut_here = s->job++ == s->cut_job;
	bool unordered = s->fault == FAULT_ORDER && count == 2 && stages[1].len[0] == WORD;

	trims_go_on(s, false);
	for (unsigned k = 0; k < count; k++) {
		bool cut = cut_here && k == s->cut_stage;
		unsigned i = 0;

		if (unordered && cut_here)
			cut = true;
		else if (s->fault == FAULT_DRAIN && !cut_here)
			continue;
		persist_span(s, &stages[k], !cut, &i);
		if (cut && !(unordered && k + 1 < count)) {
			s->cut = true;
			return false;
		}
	}
	return true;
}

static struct logfmt_span
one_span(uint64_t off, uint64_t len)
{
	return (struct logfmt_span){.off = {off}, .len = {len}};
}

/* ---- the log's user ---- */

static uint8_t
record_byte(const struct record *r, uint32_t i)
{
	return (uint8_t)(r->seed * 31 + i * 7 + i / 256 + 1);
}

static bool
writer_waits(const struct sim *s, unsigned writer)
{
	for (unsigned i = s->acked; i < s->placed; i++)
		if (s->records[i].writer == writer)
			return true;
	return false;
}

/* Each idle writer begins an append, or not. */
static void
writers_place(struct sim *s)
{
	uint8_t data[DATA_MAX];

	for (unsigned w = 0; w < s->writers; w++) {
		struct record r = {.writer = w};

		if (writer_waits(s, w) || rnd(s, 3) == 0 || s->placed == RECORDS_MAX)
			continue;
		r.len = 1 + rnd(s, rnd(s, 4) ? 150 : DATA_MAX);
		r.seed = rnd(s, UINT32_MAX);
		if (logcore_room(&s->c, logfmt_record_size(r.len), NULL))
			continue;
		for (uint32_t i = 0; i < r.len; i++)
			data[i] = record_byte(&r, i);
		r.position =
			logcore_place(&s->c, data, r.len, logfmt_data_sum(&s->c.h, data, r.len));
		s->records[s->placed++] = r;
	}
}

static bool
settle(struct sim *s)
{
	if (s->job++ == s->cut_job) {
		s->cut = true;
		return false;
	}
	if (s->fault != FAULT_SETTLE)
		trims_go_on(s, true);
	return true;
}

static bool
group_run(struct sim *s)
{
	struct logfmt_span stages[STAGE_MAX];
	struct logcore_group g;
	unsigned count = 1;

	logcore_group_begin(&s->c, &g);
	s->group_end = s->placed;
	writers_place(s); /* others come meanwhile: not theirs */
	if (g.settle && !settle(s))
		return false;
	stages[0] = g.span;
	if (g.tail_off) {
		stages[count++] = one_span(g.tail_off, WORD);
		logcore_group_tail(&s->c, &g);
	}
	if (!run_job(s, stages, count))
		return false;
	logcore_group_end(&s->c, &g);
	s->acked = s->group_end;
	return true;
}

static bool
header_run(struct sim *s, struct logfmt_header *h)
{
	struct logfmt_span both = logcore_header_first(&s->c, h);
	struct logfmt_span stages[STAGE_MAX] = {one_span(both.off[0], both.len[0]),
						one_span(both.off[1], both.len[1])};

	logcore_header_second(&s->c, h);
	return run_job(s, stages, 2);
}

static bool
trim_run(struct sim *s)
{
	struct logfmt_header h = s->c.h;
	unsigned to = s->first + rnd(s, s->acked - s->first + 1);
	uint64_t base;

	h.head = to == s->acked ? s->c.durable : s->records[to].position;
	s->head_new = h.head;
	if (!header_run(s, &h))
		return false;
	s->c.h = h;
	s->head_old = h.head;
	s->first = to;
	base = h.head - h.head % LOGFMT_PAGE;
	if (base > s->c.base && s->trim_count < TRIMS_MAX) {
		struct logfmt_span span = logfmt_span(&h, s->c.base, base - s->c.base);

		memset(s->area + span.off[0], 0, span.len[0]);
		memset(s->area + span.off[1], 0, span.len[1]);
		s->trims[s->trim_count++] = span;
		s->c.base = base;
	}
	return true;
}

/* Up to steps appends and trims, to the cut. */
static void
use(struct sim *s, unsigned steps)
{
	for (unsigned i = 0; i < steps && !s->cut; i++) {
		writers_place(s);
		if (rnd(s, 6) == 0)
			(void)trim_run(s);
		else if (s->placed > s->acked)
			(void)group_run(s);
	}
}

/* ---- after the cut ---- */

static bool
wrong(const struct sim *s, const char *what, uint64_t n)
{
	if (s->said)
		print_error("kind %d, %u writers, job %llu stage %u: %s (%llu)\n", s->kind,
			    s->writers, (unsigned long long)s->cut_job, s->cut_stage, what,
			    (unsigned long long)n);
	return false;
}

static bool
record_there(const struct sim *s, const struct record *r, uint64_t *next)
{
	struct logfmt_record found;
	uint8_t data[DATA_MAX];

	if (!logfmt_record_read(s->area, &s->c.h, r->position, &found) || found.len != r->len)
		return wrong(s, "a record is lost", r->position);
	logfmt_copy_out(s->area, &found.data, data, found.len);
	for (uint32_t i = 0; i < r->len; i++)
		if (data[i] != record_byte(r, i))
			return wrong(s, "a record is torn", r->position);
	*next = r->position + logfmt_record_size(r->len);
	return true;
}

/* What was recovered is right; it becomes what is acknowledged. */
static bool
check(struct sim *s)
{
	uint64_t position = s->c.h.head;
	unsigned i = s->first;

	if (position != s->head_old && position != s->head_new)
		return wrong(s, "the head is neither old nor new", position);
	while (i < s->acked && s->records[i].position < position)
		i++;
	s->first = i;
	while (i < s->placed && position < s->c.durable) {
		if (s->records[i].position != position)
			return wrong(s, "a record is not in its place", position);
		if (!record_there(s, &s->records[i], &position))
			return false;
		i++;
	}
	if (position != s->c.durable)
		return wrong(s, "there is more than was appended", s->c.durable);
	if (i < s->acked)
		return wrong(s, "an acknowledged record is lost", s->records[i].position);
	if (i > s->group_end)
		return wrong(s, "a record is there that was not under way", position);
	if (s->kind != REPL_LOG_CHECKSUM && i != s->acked && i != s->group_end)
		return wrong(s, "a part of a group is there", position);
	s->acked = s->placed = s->group_end = i;
	return true;
}

/* The machine is up again, with what its media hold, and that is restored. */
static bool
recover(struct sim *s)
{
	struct err e;

	err_clear(&e);
	trims_go_on(s, false);
	s->trim_count = 0;
	memcpy(s->area, s->media, AREA_SIZE);
	s->cut = false;
	s->cut_job = UINT64_MAX;
	if (logcore_open(&s->c, s->area, 0, AREA_SIZE, &e))
		return wrong(s, e.text, 0);
	if (!check(s))
		return false;
	s->head_old = s->head_new = s->c.h.head;
	return true;
}

static bool
new_run(struct sim *s)
{
	struct logfmt_header h = s->c.h;

	if (s->fault == FAULT_RUN) {
		s->c.h.run--; /* as if there were no runs */
		s->c.h.run_start = 0;
		return true;
	}
	return header_run(s, &h) ? (s->c.h = h, true) : false;
}

static void
sim_init(struct sim *s, enum repl_log_kind kind, unsigned writers, uint64_t seed, enum fault fault)
{
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->writers = writers;
	s->random = seed;
	s->cut_job = UINT64_MAX;
	s->fault = fault;
	s->said = fault == NO_FAULT;
	for (unsigned i = 0; i < AREA_SIZE; i++)
		s->area[i] = (uint8_t)rnd(s, 256);
	logcore_clear(s->area);
	logcore_format(s->area, AREA_SIZE, kind, 0x1234567 + seed);
	memcpy(s->media, s->area, AREA_SIZE);
	assert_int_equal(logcore_open(&s->c, s->area, 0, AREA_SIZE, NULL), 0);
	assert_true(new_run(s));
	memcpy(s->media, s->area, AREA_SIZE);
}

/* One cut, then several in a row at random, each after some use of what was recovered. */
static bool
cuts_survived(struct sim *s, uint64_t seed)
{
	for (unsigned life = 0; life < LIVES; life++) {
		if (!recover(s))
			return false;
		s->random ^= seed * 0x9e3779b97f4a7c15ULL;
		s->cut_job = s->job + rnd(s, 12);
		s->cut_stage = rnd(s, 2);
		s->subset = (enum subset)rnd(s, SUBSETS);
		s->subset_n = rnd(s, 60);
		if (new_run(s))
			use(s, 12);
		s->cut = true;
	}
	return recover(s);
}

/* Runs of one script, cut in one stage of one job after another, until one goes wrong. */
static unsigned
explore(enum repl_log_kind kind, unsigned writers, uint64_t seed, enum fault fault)
{
	struct sim *s = malloc(sizeof(*s));
	unsigned losses = 0;

	assert_non_null(s);
	for (uint64_t job = 0; job < JOBS; job++)
		for (unsigned stage = 0; stage < STAGE_MAX; stage++)
			for (unsigned n = 0; n < CUTS; n++) {
				sim_init(s, kind, writers, seed, fault);
				s->cut_job = s->job + job;
				s->cut_stage = stage;
				s->subset = (enum subset)(n % SUBSETS);
				s->subset_n = n / SUBSETS * (1 + (unsigned)job % 4);
				use(s, 40);
				s->cut = true;
				losses += !cuts_survived(s, seed + n);
				if (losses > 0)
					goto out;
			}
out:
	free(s);
	return losses;
}

static void
test_every_cut(void **state)
{
	static const enum repl_log_kind kinds[] = {REPL_LOG_CHECKSUM, REPL_LOG_POINTER,
						   REPL_LOG_COUNTER, REPL_LOG_REGISTER};

	(void)state;
	for (unsigned k = 0; k < 4; k++)
		for (unsigned w = 1; w <= WRITERS_MAX; w++)
			assert_int_equal(explore(kinds[k], w, 17 * w + k, NO_FAULT), 0);
}

static void
test_a_dropped_drain_shows(void **state)
{
	(void)state;
	for (unsigned k = REPL_LOG_CHECKSUM; k <= REPL_LOG_REGISTER; k++)
		assert_int_not_equal(explore((enum repl_log_kind)k, 2, 5, FAULT_DRAIN), 0);
}

static void
test_a_dropped_order_shows(void **state)
{
	(void)state;
	for (unsigned k = REPL_LOG_POINTER; k <= REPL_LOG_REGISTER; k++)
		assert_int_not_equal(explore((enum repl_log_kind)k, 2, 5, FAULT_ORDER), 0);
}

static void
test_unfinished_trims_show(void **state)
{
	(void)state;
	for (unsigned k = REPL_LOG_CHECKSUM; k <= REPL_LOG_REGISTER; k++)
		assert_int_not_equal(explore((enum repl_log_kind)k, 2, 5, FAULT_SETTLE), 0);
}

static void
test_records_of_an_older_run_show(void **state)
{
	(void)state;
	assert_int_not_equal(explore(REPL_LOG_CHECKSUM, 3, 5, FAULT_RUN), 0);
}

/* Space counts from whole pages: who trims until there is room must be told that there never is. */
static void
what_trimming_does_not_help_is_refused(void **state)
{
	struct logfmt_header h;
	struct sim *s = calloc(1, sizeof(*s));
	uint64_t capacity = logfmt_capacity(AREA_SIZE);

	(void)state;
	assert_non_null(s);
	logcore_format(s->area, AREA_SIZE, REPL_LOG_CHECKSUM, 5);
	assert_int_equal(logcore_open(&s->c, s->area, 0, AREA_SIZE, NULL), 0);
	assert_int_equal(logcore_room(&s->c, capacity, NULL), 0);
	assert_int_equal(logcore_room(&s->c, capacity + LOGFMT_ALIGN, NULL), REPL_E_INVAL);
	(void)logcore_place(&s->c, "x", 1, logfmt_data_sum(&s->c.h, "x", 1));
	assert_int_equal(logcore_room(&s->c, capacity, NULL), REPL_E_NOSPC);
	s->c.durable = s->c.next;
	h = s->c.h;
	h.head = s->c.next;
	s->c.h = h;
	assert_int_equal(logcore_room(&s->c, capacity - LOGFMT_ALIGN, NULL), 0);
	assert_int_equal(logcore_room(&s->c, capacity, NULL), REPL_E_INVAL);
	free(s);
}

/* Of so large an area an empty log has room, wherever it stands in a page; of a page less it has
 * not. */
static void
what_does_not_fit_names_a_log_that_has_room(void **state)
{
	const uint64_t lengths[] = {64, 128, 192, 4096, 4160, 12288};
	uint64_t area, worst = LOGFMT_PAGE - LOGFMT_ALIGN;

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct logcore c;
		const char *at;
		struct err e;

		err_clear(&e);
		c = (struct logcore){.h.area_size = REPL_LOG_SIZE_MIN};
		c.next = c.h.head = worst;
		if (lengths[i] == LOGFMT_ALIGN) {
			assert_int_equal(logcore_room(&c, lengths[i], &e), 0);
			continue;
		}
		assert_int_equal(logcore_room(&c, lengths[i], &e), REPL_E_INVAL);
		at = strstr(e.text, "make one of ");
		assert_non_null(at);
		area = strtoull(at + strlen("make one of "), NULL, 10);
		c.h.area_size = area;
		assert_int_equal(logcore_room(&c, lengths[i], NULL), 0);
		c.h.area_size = area - LOGFMT_PAGE;
		assert_int_equal(logcore_room(&c, lengths[i], NULL), REPL_E_INVAL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_a_dropped_drain_shows),
		cmocka_unit_test(test_a_dropped_order_shows),
		cmocka_unit_test(test_unfinished_trims_show),
		cmocka_unit_test(what_trimming_does_not_help_is_refused),
		cmocka_unit_test(what_does_not_fit_names_a_log_that_has_room),
		cmocka_unit_test(test_records_of_an_older_run_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
