/* SPDX-License-Identifier: BSD-3-Clause */
/* Each row of the taxonomy keeps what it reports, and none of its steps can go. */
#include "unit.h"

#include <stdio.h>

#include "media_rows.h"

#define TRACE_MAX 8192

static struct mm_explorer *explorer;
static enum profile_domain domain;

/* A row, or all rows that have these values. ANY: it does not matter. */
#define ANY (-1)

struct rows_match {
	int domain, ddio, rqwrb, op, update;
};

static bool
match_one(int want, int value)
{
	return want == ANY || want == value;
}

static bool
row_matches(const struct rows_match *m, const struct taxonomy_key *k)
{
	return match_one(m->domain, (int)k->domain) && match_one(m->ddio, (int)k->ddio) &&
	       match_one(m->rqwrb, (int)k->rqwrb) && match_one(m->op, (int)k->op) &&
	       match_one(m->update, (int)k->update);
}

#define PAIRS_OFF(op)                                                                              \
	{                                                                                          \
		PROFILE_DMP, PROFILE_DDIO_OFF, ANY, TAXONOMY_##op, TAXONOMY_COMPOUND               \
	}
#define LINE 0 /* b is a line */
#define WORD 1 /* b is 8 bytes */

#define DRAINS "visible in order, and this I/O controller drains in order"

/*
 * What the paper asks for and the model finds no use for. Each must be harmless
 * in the model, or the test fails; what is harmless and not listed fails it
 * too. With an I/O controller that may drain in any order, which the rows are
 * for, there is nothing. docs/MEDIA-MODEL.md has the same lines.
 */
static const struct {
	struct rows_match rows;
	int form; /* enum rows_form */
	int b8;
	bool in_order;
	const char *what;
	const char *reason;
} conservative[] = {
	{PAIRS_OFF(WRITE), ANY, ANY, true, "without first flush", DRAINS},
	{PAIRS_OFF(WRITE), ROWS_NATIVE, WORD, true, "write(b) for write-atomic(b)", DRAINS},
	{PAIRS_OFF(WRITE), ROWS_NATIVE, LINE, true, "without first comp", DRAINS},
	{PAIRS_OFF(WRITE), ROWS_NATIVE, LINE, true, "without first flush and comp", DRAINS},
	{PAIRS_OFF(WRITE), ROWS_TODAY, ANY, true, "without first comp", DRAINS},
	{PAIRS_OFF(WRITE), ROWS_TODAY, ANY, true, "without first flush and comp", DRAINS},
	{PAIRS_OFF(WRITEIMM), ANY, ANY, true, "without first flush", DRAINS},
	{PAIRS_OFF(WRITEIMM), ANY, ANY, true, "without first comp", DRAINS},
	{PAIRS_OFF(WRITEIMM), ANY, ANY, true, "without first flush and comp", DRAINS},
};

/*
 * Rows that may leave a part of an 8-byte b: it is written by a plain write,
 * for whose parts RDMA promises no order.
 */
static const struct {
	struct rows_match rows;
	int form;
} tearing[] = {
	{{PROFILE_DMP, PROFILE_DDIO_ON, ANY, TAXONOMY_WRITE, TAXONOMY_COMPOUND}, ANY},
	{{PROFILE_DMP, PROFILE_DDIO_OFF, ANY, TAXONOMY_WRITE, TAXONOMY_COMPOUND}, ROWS_TODAY},
	{{PROFILE_DMP, ANY, ANY, TAXONOMY_WRITEIMM, TAXONOMY_COMPOUND}, ANY},
	{{PROFILE_MHP, ANY, ANY, TAXONOMY_WRITE, TAXONOMY_COMPOUND}, ANY},
	{{PROFILE_MHP, ANY, ANY, TAXONOMY_WRITEIMM, TAXONOMY_COMPOUND}, ANY},
};

/* Rows that need posted writes to be visible in order: not so with relaxed ordering. */
static const struct rows_match ordering[] = {
	{PROFILE_DMP, PROFILE_DDIO_ON, ANY, TAXONOMY_WRITE, ANY},
	{PROFILE_MHP, ANY, ANY, TAXONOMY_WRITE, TAXONOMY_COMPOUND},
	{PROFILE_MHP, ANY, ANY, TAXONOMY_WRITEIMM, TAXONOMY_COMPOUND},
};

static bool
may_tear(const struct rows_case *c)
{
	for (size_t i = 0; i < sizeof(tearing) / sizeof(tearing[0]); i++) {
		if (c->b8 && row_matches(&tearing[i].rows, &c->row->key) &&
		    match_one(tearing[i].form, (int)c->form))
			return true;
	}
	return false;
}

static int
conservative_find(const struct rows_case *c, const char *what)
{
	for (size_t i = 0; i < sizeof(conservative) / sizeof(conservative[0]); i++) {
		if (row_matches(&conservative[i].rows, &c->row->key) &&
		    match_one(conservative[i].form, (int)c->form) &&
		    match_one(conservative[i].b8, c->b8) &&
		    conservative[i].in_order == c->in_order &&
		    strcmp(conservative[i].what, what) == 0)
			return (int)i;
	}
	return -1;
}

/* The cases of the domain that is tested, in turn. False: no more. */
static bool
case_next(struct rows_case *c, unsigned *i)
{
	for (; *i < TAXONOMY_ROWS * 16; (*i)++) {
		*c = (struct rows_case){
			.row = taxonomy_row(*i / 16),
			.transport = (*i & 1) ? ROWS_IWARP : ROWS_IB,
			.form = (*i & 2) ? ROWS_TODAY : ROWS_NATIVE,
			.b8 = *i & 4,
			.in_order = *i & 8,
		};
		/* The size of b says nothing where there is none. */
		if (c->row->key.domain == domain &&
		    (c->b8 || c->row->key.update == TAXONOMY_COMPOUND)) {
			(*i)++;
			return true;
		}
	}
	return false;
}

static void
case_name(const struct rows_case *c, char *buf, size_t size)
{
	char row[ROWS_NAME_MAX];

	rows_name(&c->row->key, row, sizeof(row));
	(void)snprintf(buf, size, "%s, %s, %s, b of %s%s", row,
		       c->transport == ROWS_IWARP ? "iwarp" : "ib",
		       c->form == ROWS_TODAY ? "today" : "native", c->b8 ? "8 bytes" : "a line",
		       c->in_order ? ", draining in order" : "");
}

static void
fail_with(const char *name, const struct mm_plan *plan, const char *what, const char *trace)
{
	char words[256];

	mm_plan_format(plan, words, sizeof(words));
	fail_msg("%s: \"%s\": %s\n%s", name, words, what, trace);
}

/* What is reported is there, b never without a, and no interleaving waits for ever. */
static void
rows_hold(void **state)
{
	struct rows_case c;
	char name[160], trace[TRACE_MAX];
	unsigned i = 0;

	(void)state;
	while (case_next(&c, &i)) {
		struct mm_machine m = rows_machine(&c);
		struct mm_plan plan = rows_plan(&c);
		unsigned faults = mm_explore(explorer, &m, &plan, MM_LOST | MM_ORDER | MM_STUCK,
					     trace, sizeof(trace));

		case_name(&c, name, sizeof(name));
		if (faults & ~MM_TORN)
			fail_with(name, &plan, mm_fault_name(faults & ~MM_TORN), trace);
		if (may_tear(&c) != !!(faults & MM_TORN))
			fail_with(name, &plan,
				  faults & MM_TORN ? "b may tear: list it in tearing"
						   : "b does not tear: take it off tearing",
				  "");
	}
}

/* If the NIC writes eight bytes in one piece, no row tears an 8-byte b. */
static void
whole_words_never_tear(void **state)
{
	struct rows_case c;
	char name[160], trace[TRACE_MAX];
	unsigned i = 0;

	(void)state;
	while (case_next(&c, &i)) {
		struct mm_machine m = rows_machine(&c);
		struct mm_plan plan = rows_plan(&c);
		unsigned faults;

		m.whole8 = true;
		faults = mm_explore(explorer, &m, &plan, ~0U, trace, sizeof(trace));
		case_name(&c, name, sizeof(name));
		if (faults)
			fail_with(name, &plan, mm_fault_name(faults), trace);
	}
}

/* With relaxed ordering, exactly the rows listed in ordering lose something. */
static void
order_of_posted_writes(void **state)
{
	struct rows_case c;
	char name[160];
	unsigned i = 0;

	(void)state;
	while (case_next(&c, &i)) {
		struct mm_machine m;
		struct mm_plan plan = rows_plan(&c);
		bool listed = false, loses;

		c.relaxed = true;
		m = rows_machine(&c);
		loses = mm_explore(explorer, &m, &plan, MM_LOST | MM_ORDER, NULL, 0) &
			(MM_LOST | MM_ORDER);
		for (size_t o = 0; o < sizeof(ordering) / sizeof(ordering[0]); o++)
			listed |= row_matches(&ordering[o], &c.row->key);
		case_name(&c, name, sizeof(name));
		if (loses != listed)
			fail_with(name, &plan,
				  listed ? "no loss with relaxed ordering: take it off ordering"
					 : "loses with relaxed ordering: list it in ordering",
				  "");
	}
}

/* Whether what is right in configuration x must be right in y: y keeps no less. */
static bool
keeps_no_less(const struct taxonomy_key *x, const struct taxonomy_key *y)
{
	return x->domain <= y->domain &&
	       (x->ddio == PROFILE_DDIO_ON || y->ddio == PROFILE_DDIO_OFF ||
		y->domain != PROFILE_DMP) &&
	       (x->rqwrb == PROFILE_RQWRB_DRAM || y->rqwrb == PROFILE_RQWRB_PM);
}

/* The plan of another configuration, of the same operation and update, run here. */
static void
foreign_plan(const struct rows_case *here, const struct rows_case *there)
{
	struct mm_machine m = rows_machine(here);
	struct mm_plan own = rows_plan(here), plan = rows_plan(there);
	bool loses =
		mm_explore(explorer, &m, &plan, MM_LOST | MM_ORDER, NULL, 0) & (MM_LOST | MM_ORDER);
	char name[160], text[256];

	case_name(there, name, sizeof(name));
	(void)snprintf(text, sizeof(text), "%s, with the plan of %s", loses ? "loses" : "is safe",
		       name);
	case_name(here, name, sizeof(name));
	if (loses && keeps_no_less(&there->row->key, &here->row->key) &&
	    (there->transport == ROWS_IWARP || here->transport == ROWS_IB))
		fail_with(name, &plan, text, "");
	if (!loses && plan.count < own.count)
		fail_with(name, &plan, text, "");
}

/* A shorter plan of another configuration loses; one for a configuration that keeps less does not.
 */
static void
foreign_plans(void **state)
{
	struct rows_case here, there;
	unsigned i = 0;

	(void)state;
	while (case_next(&here, &i)) {
		if (here.in_order)
			continue;
		for (unsigned j = 0; j < TAXONOMY_ROWS * 2; j++) {
			there = here;
			there.row = taxonomy_row(j / 2);
			there.transport = j & 1 ? ROWS_IWARP : ROWS_IB;
			if (there.row->key.op == here.row->key.op &&
			    there.row->key.update == here.row->key.update)
				foreign_plan(&here, &there);
		}
	}
}

/* Plans in the wrong place, with what comes of it. */
static const struct {
	const char *words;
	struct mm_machine machine;
	unsigned faults; /* exactly these, an 8-byte b */
} misplaced[] = {
	/* What is right without DDIO, with DDIO. */
	{"write(a) flush comp", {MM_DMP, .ddio = true}, MM_LOST},
	{"writeimm(a) flush comp", {MM_DMP, .ddio = true}, MM_LOST},
	{"send(a) flush comp", {MM_DMP, .ddio = true, .rqwrb_pm = true}, MM_LOST},
	{"send(a,b) flush comp", {MM_DMP, .ddio = true, .rqwrb_pm = true}, MM_LOST},
	{"write(a) flush write-atomic(b) flush comp", {MM_DMP, .ddio = true}, MM_LOST | MM_ORDER},
	{"write(a) flush comp write(b) flush comp",
	 {MM_DMP, .ddio = true, .whole8 = true},
	 MM_LOST | MM_ORDER},
	/* MHP's under DMP. */
	{"send(a) rsp-copy(a) ack", {MM_DMP, .ddio = true}, MM_LOST},
	{"send(a,b) rsp-copy(a,b) ack", {MM_DMP, .ddio = false}, MM_LOST | MM_ORDER},
	{"write(a) write(b) flush comp", {MM_DMP, .whole8 = true}, MM_ORDER},
	/* WSP's under MHP, and under iWARP. */
	{"write(a) comp", {MM_MHP, .ddio = true}, MM_LOST},
	{"writeimm(a) comp", {MM_MHP, .ddio = false}, MM_LOST},
	{"send(a) comp", {MM_MHP, .rqwrb_pm = true}, MM_LOST},
	{"write(a) comp", {MM_WSP, .iwarp = true}, MM_LOST},
	{"write(a) write(b) comp", {MM_WSP, .iwarp = true}, MM_LOST},
	{"send(a) comp", {MM_WSP, .iwarp = true, .rqwrb_pm = true}, MM_LOST},
	/* What needs receive buffers in PM, with those in DRAM. */
	{"send(a) flush comp", {MM_DMP, .ddio = false}, MM_LOST},
	{"send(a) flush comp", {MM_MHP, .ddio = true}, MM_LOST},
	{"send(a) comp", {MM_WSP, .ddio = true}, MM_LOST},
	/* An answer is not a flush, and a completion is neither. */
	{"send(a) rsp-copy(a) comp", {MM_WSP, .ddio = true}, MM_LOST},
	{"write(a) send(&a) ack", {MM_DMP, .ddio = true}, MM_LOST},
	{"write(a) send(&a) rsp-flush(&a) comp", {MM_DMP, .ddio = true}, MM_LOST},
};

static void
misplaced_plans(void **state)
{
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(misplaced) / sizeof(misplaced[0]); i++) {
		bool pair = strstr(misplaced[i].words, "b)") != NULL;
		struct mm_plan plan = {.update = pair ? MM_COMPOUND : MM_SINGLETON, .b8 = true};
		unsigned faults;

		if ((int)misplaced[i].machine.domain != (int)domain)
			continue;
		assert_true(mm_plan_parse(&plan, misplaced[i].words));
		faults = mm_explore(explorer, &misplaced[i].machine, &plan, 0, NULL, 0);
		(void)snprintf(text, sizeof(text), "line %zu has %u, wanted %u", i, faults,
			       misplaced[i].faults);
		if (faults != misplaced[i].faults)
			fail_with("misplaced", &plan, text, "");
	}
}

static void
name_or_any(char *buf, size_t size, const char *name)
{
	size_t used = strlen(buf);

	(void)snprintf(buf + used, size - used, "%s%s", used > 2 ? " " : "", name ? name : "*");
}

/* docs/MEDIA-MODEL.md has a line for each row of conservative, and no other. */
static void
document_agrees(void **state)
{
	static char doc[65536];
	char line[256];
	size_t len, lines = 0;
	FILE *f = fopen(REPL_SOURCE_DIR "/docs/MEDIA-MODEL.md", "r");

	(void)state;
	assert_non_null(f);
	len = fread(doc, 1, sizeof(doc) - 1, f);
	(void)fclose(f);
	doc[len] = '\0';
	for (size_t i = 0; i < sizeof(conservative) / sizeof(conservative[0]); i++) {
		const struct rows_match *r = &conservative[i].rows;

		(void)snprintf(line, sizeof(line), "| ");
		name_or_any(line, sizeof(line), profile_value_name(PROFILE_F_DOMAIN, r->domain));
		name_or_any(line, sizeof(line), r->ddio ? "ddio-off" : "ddio-on");
		name_or_any(line, sizeof(line), profile_value_name(PROFILE_F_RQWRB, r->rqwrb));
		name_or_any(line, sizeof(line), taxonomy_op_name((enum taxonomy_op)r->op));
		name_or_any(line, sizeof(line),
			    taxonomy_update_name((enum taxonomy_update)r->update));
		len = strlen(line);
		(void)snprintf(line + len, sizeof(line) - len, " | %s | %s | %s | %s |\n",
			       conservative[i].form == ANY          ? "both"
			       : conservative[i].form == ROWS_TODAY ? "today"
								    : "native",
			       conservative[i].b8 == ANY    ? "any"
			       : conservative[i].b8 == WORD ? "8 bytes"
							    : "a line",
			       conservative[i].what, conservative[i].reason);
		if (!strstr(doc, line))
			fail_msg("docs/MEDIA-MODEL.md lacks: %s", line);
	}
	for (const char *at = doc; (at = strstr(at, "\n| dmp ddio-")) != NULL; at++)
		lines++;
	assert_int_equal(lines, sizeof(conservative) / sizeof(conservative[0]));
}

/* Each step left out loses data or order in some interleaving, or is listed. */
static void
steps_are_needed(void **state)
{
	struct rows_case c;
	char name[160], text[400], what[ROWS_CUT_MAX];
	unsigned i = 0;

	(void)state;
	while (case_next(&c, &i)) {
		struct mm_machine m = rows_machine(&c);
		struct mm_plan plan = rows_plan(&c), less;

		case_name(&c, name, sizeof(name));
		for (unsigned l = 0; rows_less(&plan, l, &less, what); l++) {
			bool loses = mm_explore(explorer, &m, &less, MM_LOST | MM_ORDER, NULL, 0) &
				     (MM_LOST | MM_ORDER);
			bool listed = conservative_find(&c, what) >= 0;

			if (loses != listed)
				continue;
			(void)snprintf(text, sizeof(text), "%s: %s", what,
				       listed ? "is needed: take it off conservative"
					      : "is harmless: list it in conservative");
			fail_with(name, &less, text, "");
		}
	}
}

static int
setup(void **state)
{
	(void)state;
	explorer = mm_explorer_new();
	return explorer ? 0 : -1;
}

static int
teardown(void **state)
{
	struct mm_stats s = mm_explorer_stats(explorer);

	(void)state;
	printf("explored %llu plans, %llu states with a power cut in each\n",
	       (unsigned long long)s.plans, (unsigned long long)s.states);
	mm_explorer_free(explorer);
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_hold),
		cmocka_unit_test(whole_words_never_tear),
		cmocka_unit_test(steps_are_needed),
		cmocka_unit_test(foreign_plans),
		cmocka_unit_test(order_of_posted_writes),
		cmocka_unit_test(misplaced_plans),
		cmocka_unit_test(document_agrees),
	};
	int d = argc > 1 ? profile_value_by_name(PROFILE_F_DOMAIN, argv[1]) : -1;

	if (d < 0) {
		(void)fprintf(stderr, "usage: test_media_model dmp|mhp|wsp\n");
		return 2;
	}
	domain = (enum profile_domain)d;
	return cmocka_run_group_tests_name(argv[1], tests, setup, teardown);
}
