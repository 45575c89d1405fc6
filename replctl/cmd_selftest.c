/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl selftest - lose machines in memory, by a seed, and see that nothing else is lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "control.h"
#include "interrupt.h"
#include "out.h"
#include "sim.h"

#define SECONDS_DEFAULT 10
#define SECONDS_MAX     604800
#define TELL_NS         (NS_PER_S / 5)

struct selftest {
	struct ctl *c;
	uint64_t seed, runs; /* the first one, how many */
	unsigned seconds;    /* 0: one run */
	bool terminal;
	struct sim_stats sum;
	struct chains_result chains[2]; /* of two copies, of three */
	struct sim_result run;          /* the last one */
};

static int
read_number(struct ctl *c, const char *option, const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return err_set(&c->err, REPL_E_INVAL, "%s '%s' is not a number", option, text);
	*out = strtoull(text, &end, 0);
	if (*end || *out > max)
		return err_set(&c->err, REPL_E_INVAL, "%s '%s' is not a number of at most %" PRIu64,
			       option, text, max);
	return 0;
}

static int
selftest_read(struct selftest *t)
{
	const struct ctl_options *o = &t->c->options;
	uint64_t seconds = o->seed ? 0 : SECONDS_DEFAULT;
	int rc = 0;

	if (o->seconds)
		rc = read_number(t->c, "--seconds", o->seconds, SECONDS_MAX, &seconds);
	t->seconds = (unsigned)seconds;
	if (!rc && o->seed)
		return read_number(t->c, "--seed", o->seed, UINT64_MAX - UINT32_MAX, &t->seed);
	if (!rc && getrandom(&t->seed, 4, 0) != 4)
		return err_set(&t->c->err, REPL_E_FAILED, "no random seed: name one by --seed N");
	return rc;
}

static void
sum_add(struct sim_stats *sum, const struct sim_stats *s)
{
	sum->steps += s->steps;
	sum->writes += s->writes;
	sum->acks += s->acks;
	sum->losses += s->losses;
	sum->resyncs += s->resyncs;
	sum->refused += s->refused;
	sum->power_cuts += s->power_cuts;
	sum->promotions += s->promotions;
}

static void
tell(const struct selftest *t, uint64_t *next)
{
	if (!t->terminal || clock_now_ns() < *next)
		return;
	*next = clock_now_ns() + TELL_NS;
	(void)fprintf(stderr, "\rselftest: %" PRIu64 " runs, %" PRIu64 " losses survived", t->runs,
		      t->sum.losses);
}

static bool
selftest_chains(struct selftest *t)
{
	chains_explore(2, 8, CHAINS_AS_BUILT, &t->chains[0]);
	chains_explore(3, 6, CHAINS_FORGET, &t->chains[1]);
	return !t->chains[0].failed && !t->chains[1].failed;
}

/* True: every run went well. */
static bool
selftest_runs(struct selftest *t)
{
	uint64_t end = clock_deadline(t->seconds * 1000), next = 0;

	do {
		struct sim_config config = {.seed = t->seed + t->runs};

		sim_run(&config, &t->run);
		t->runs++;
		sum_add(&t->sum, &t->run.stats);
		tell(t, &next);
	} while (!t->run.failed && clock_now_ns() < end && !interrupt_seen());
	if (t->terminal)
		(void)fputs("\r\033[K", stderr);
	return !t->run.failed;
}

/* ---- report ---- */

static void
print_failure(const struct selftest *t)
{
	char text[SIM_TEXT_MAX];

	(void)printf("%s\n\nThe shortest run that fails so, of seed %" PRIu64 ":\n", t->run.reason,
		     t->seed + t->runs - 1);
	for (size_t i = 0; i < t->run.event_count; i++)
		(void)printf("  %s\n", sim_event_text(&t->run.events[i], text, sizeof(text)));
}

static void
print_sum(const struct selftest *t)
{
	(void)printf("seed %" PRIu64 ": %" PRIu64 " runs, %" PRIu64 " steps\n", t->seed, t->runs,
		     t->sum.steps);
	out_field("acknowledged", "%" PRIu64 " writes of %" PRIu64, t->sum.acks, t->sum.writes);
	out_field("lost replicas", "%" PRIu64, t->sum.losses);
	out_field("resyncs", "%" PRIu64 ", %" PRIu64 " refused", t->sum.resyncs, t->sum.refused);
	out_field("power cuts", "%" PRIu64, t->sum.power_cuts);
	out_field("promotions", "%" PRIu64, t->sum.promotions);
	for (unsigned i = 0; i < 2; i++)
		out_field(i ? "of 3 copies" : "of 2 copies",
			  "%" PRIu64 " sequences of events, %" PRIu64 " states, %" PRIu64
			  " relations judged",
			  t->chains[i].sequences, t->chains[i].states, t->chains[i].relations);
}

static struct json_object *
chains_json(const struct chains_result *r, unsigned copies)
{
	struct json_object *o = json_object_new_object();

	out_add_u64(o, "copies", copies);
	out_add_u64(o, "sequences", r->sequences);
	out_add_u64(o, "states", r->states);
	out_add_u64(o, "relations", r->relations);
	return o;
}

static void
selftest_answer(struct selftest *t, bool ok, const char *reason)
{
	struct json_object *o = json_object_new_object(), *events = json_object_new_array();
	struct json_object *chains = json_object_new_array();
	char text[SIM_TEXT_MAX];

	out_add_u64(o, "seed", t->seed);
	out_add_u64(o, "runs", t->runs);
	out_add_bool(o, "ok", ok);
	out_add_u64(o, "steps", t->sum.steps);
	out_add_u64(o, "writes", t->sum.writes);
	out_add_u64(o, "acknowledged", t->sum.acks);
	out_add_u64(o, "losses", t->sum.losses);
	out_add_u64(o, "resyncs", t->sum.resyncs);
	out_add_u64(o, "refused", t->sum.refused);
	out_add_u64(o, "power_cuts", t->sum.power_cuts);
	out_add_u64(o, "promotions", t->sum.promotions);
	for (unsigned i = 0; i < 2; i++)
		control_append(chains, chains_json(&t->chains[i], i + 2));
	control_add(o, "generations", chains);
	for (size_t i = 0; t->run.failed && i < t->run.event_count; i++)
		control_append(events, json_object_new_string(sim_event_text(&t->run.events[i],
									     text, sizeof(text))));
	if (t->run.failed)
		out_add_u64(o, "failed_seed", t->seed + t->runs - 1);
	if (!ok)
		out_add_text(o, "reason", reason);
	control_add(o, "events", events);
	ctl_answer(t->c, o);
}

int
cmd_selftest(struct ctl *c, char **args)
{
	static struct selftest t; /* a run's result is large */
	const char *reason = "";
	bool ok;
	int rc;

	(void)args;
	t.c = c;
	t.terminal = isatty(STDERR_FILENO) == 1;
	rc = selftest_read(&t);
	if (rc)
		return rc;
	interrupt_catch();
	ok = selftest_chains(&t);
	if (!ok)
		reason = t.chains[t.chains[0].failed ? 0 : 1].reason;
	else if (!(ok = selftest_runs(&t)))
		reason = t.run.reason;
	if (!c->options.json && ok)
		print_sum(&t);
	else if (!c->options.json && t.run.failed)
		print_failure(&t);
	selftest_answer(&t, ok, reason);
	if (ok)
		return 0;
	if (t.run.failed)
		ctl_next(c, "replctl selftest --seed %" PRIu64, t.seed + t.runs - 1);
	return err_set(&c->err, REPL_E_FAILED, "a rule does not hold: %s", reason);
}
