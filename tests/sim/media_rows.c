/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What to leave out: each step alone; a flush also together with the wait for
 * it; an operation with its completion, a message with all that the responder
 * does about it. What only orders is weakened: the atomic write to a plain
 * one, the responder's copy and flush of a pair in five ways.
 */
#include "media_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
rows_name(const struct taxonomy_key *key, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s ddio-%s %s %s %s",
		       profile_value_name(PROFILE_F_DOMAIN, (int)key->domain),
		       profile_value_name(PROFILE_F_DDIO, (int)key->ddio),
		       profile_value_name(PROFILE_F_RQWRB, (int)key->rqwrb),
		       taxonomy_op_name(key->op), taxonomy_update_name(key->update));
}

struct mm_machine
rows_machine(const struct rows_case *c)
{
	const struct taxonomy_key *k = &c->row->key;

	return (struct mm_machine){
		.domain = k->domain == PROFILE_DMP   ? MM_DMP
			  : k->domain == PROFILE_MHP ? MM_MHP
						     : MM_WSP,
		.ddio = k->ddio == PROFILE_DDIO_ON,
		.rqwrb_pm = k->rqwrb == PROFILE_RQWRB_PM,
		.iwarp = c->transport == ROWS_IWARP,
		.in_order = c->in_order,
		.relaxed = c->relaxed,
	};
}

static void
plan_remove(struct mm_plan *plan, size_t i)
{
	(void)memmove(&plan->step[i], &plan->step[i + 1],
		      (plan->count - i - 1) * sizeof(plan->step[0]));
	plan->count--;
}

/* Without an atomic write: wait for the flush before it, then write. */
static void
plan_today(struct mm_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->step[i] != MM_WRITE_ATOMIC_B)
			continue;
		if (plan->count == MM_STEPS_MAX)
			abort();
		(void)memmove(&plan->step[i + 1], &plan->step[i],
			      (plan->count - i) * sizeof(plan->step[0]));
		plan->count++;
		plan->step[i++] = MM_COMP;
		plan->step[i] = MM_WRITE_B;
	}
}

struct mm_plan
rows_plan(const struct rows_case *c)
{
	bool pair = c->row->key.update == TAXONOMY_COMPOUND;
	struct mm_plan plan = {.update = pair ? MM_COMPOUND : MM_SINGLETON, .b8 = c->b8};
	struct taxonomy_key key = c->row->key;
	char words[256];

	if (c->transport == ROWS_IWARP && key.domain == PROFILE_WSP)
		key.domain = PROFILE_MHP;
	(void)taxonomy_format(taxonomy_find(&key)->steps, words, sizeof(words));
	if (!mm_plan_parse(&plan, words))
		abort(); /* a word that the model does not know */
	if (c->form == ROWS_TODAY || !c->b8)
		plan_today(&plan);
	return plan;
}

static bool
is_message(enum mm_step s)
{
	return s == MM_SEND_A || s == MM_SEND_AB || s == MM_SEND_REF_A || s == MM_SEND_REF_B ||
	       s == MM_WRITEIMM_A || s == MM_WRITEIMM_B;
}

static bool
is_answer(enum mm_step s)
{
	return s >= MM_RSP_COPY_A && s <= MM_ACK;
}

/* Without step i and what makes no sense without it. */
static void
plan_drop(struct mm_plan *plan, size_t i)
{
	enum mm_step s = plan->step[i];

	plan_remove(plan, i);
	if (is_message(s)) {
		while (i < plan->count && is_answer(plan->step[i]))
			plan_remove(plan, i);
	}
	if (s < MM_COMP && s != MM_FLUSH && i < plan->count && plan->step[i] == MM_COMP)
		plan_remove(plan, i);
}

static bool
plan_has(const struct mm_plan *plan, enum mm_step s)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->step[i] == s)
			return true;
	}
	return false;
}

static size_t
plan_index(const struct mm_plan *plan, enum mm_step s, size_t from)
{
	while (from < plan->count && plan->step[from] != s)
		from++;
	return from;
}

/* Counts a candidate that is there; true if it is the one that is asked for. */
static bool
take(bool there, unsigned *i)
{
	return there && (*i)-- == 0;
}

/* "second flush": which of several of a kind it is. */
static void
what_step(const struct mm_plan *plan, size_t i, const char *more, char what[ROWS_CUT_MAX])
{
	bool several = plan_index(plan, plan->step[i], plan_index(plan, plan->step[i], 0) + 1) <
		       plan->count;
	bool first = plan_index(plan, plan->step[i], 0) == i;

	(void)snprintf(what, ROWS_CUT_MAX, "without %s%s%s",
		       !several ? "" : (first ? "first " : "second "), mm_step_name(plan->step[i]),
		       more);
}

static const struct {
	enum mm_cpu cpu;
	bool flush; /* makes a difference only where there is one */
	const char *what;
} orders[] = {
	{MM_CPU_B_FIRST, false, "b copied before a"},
	{MM_CPU_COPY_THEN_FLUSH, true, "both copied, then both flushed"},
	{MM_CPU_FLUSH_ONLY_A, true, "only a flushed"},
	{MM_CPU_FLUSH_ONLY_B, true, "only b flushed"},
};

bool
rows_less(const struct mm_plan *plan, unsigned i, struct mm_plan *less, char what[ROWS_CUT_MAX])
{
	*less = *plan;
	if (i < plan->count) {
		plan_drop(less, i);
		what_step(plan, i, "", what);
		return true;
	}
	i -= (unsigned)plan->count;
	for (size_t f = 0; f + 1 < plan->count; f++) {
		if (take(plan->step[f] == MM_FLUSH && plan->step[f + 1] == MM_COMP, &i)) {
			plan_remove(less, f);
			plan_remove(less, f);
			what_step(plan, f, " and comp", what);
			return true;
		}
	}
	if (take(plan_has(plan, MM_WRITE_ATOMIC_B), &i)) {
		less->step[plan_index(plan, MM_WRITE_ATOMIC_B, 0)] = MM_WRITE_B;
		(void)snprintf(what, ROWS_CUT_MAX, "write(b) for write-atomic(b)");
		return true;
	}
	for (size_t o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) {
		if (take(plan_has(plan, orders[o].flush ? MM_RSP_FLUSH_AB : MM_RSP_COPY_AB), &i)) {
			less->cpu = orders[o].cpu;
			(void)snprintf(what, ROWS_CUT_MAX, "%s", orders[o].what);
			return true;
		}
	}
	return false;
}
