/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A method is correct if the taxonomy's row for the target and its operation
 * ends no more strictly than the method does. The endings form a chain: the
 * target's CPU, asked by a message behind the update, sees and flushes all that
 * a read would drain, and a read proves all that a completion does.
 *
 * What the taxonomy does not know is added here: pools that are no more than
 * memory or the page cache, software providers, iWARP's completions, that a
 * read takes the place of a flush where the fabric has none of its own, and that
 * no fabric has an atomic write.
 */
#include <stdio.h>
#include <string.h>

#include "plan_impl.h"

struct method {
	const char *name;
	enum taxonomy_op op;
	enum plan_finish finish;
};

static const struct method methods[PLAN_METHOD_COUNT] = {
	[PLAN_MESSAGE] = {"message", TAXONOMY_SEND, PLAN_FINISH_ACK},
	[PLAN_GENERAL] = {"general-purpose", TAXONOMY_WRITE, PLAN_FINISH_ACK},
	[PLAN_APPLIANCE] = {"appliance", TAXONOMY_WRITE, PLAN_FINISH_FLUSH},
	[PLAN_COMPLETION] = {"completion", TAXONOMY_WRITE, PLAN_FINISH_COMP},
	[PLAN_WRITE_IMM] = {"write-imm", TAXONOMY_WRITEIMM, PLAN_FINISH_ACK},
	[PLAN_WRITE_IMM_READ] = {"write-imm-read", TAXONOMY_WRITEIMM, PLAN_FINISH_FLUSH},
	[PLAN_DEPOSIT] = {"deposit", TAXONOMY_SEND, PLAN_FINISH_FLUSH},
	[PLAN_DEPOSIT_COMPLETION] = {"deposit-completion", TAXONOMY_SEND, PLAN_FINISH_COMP},
	[PLAN_NATIVE_FLUSH] = {"native-flush", TAXONOMY_WRITE, PLAN_FINISH_FLUSH},
};

/* ---- the target in the taxonomy's terms ---- */

static enum plan_path
plan_path_of(const struct profile *p)
{
	if (strncmp(p->provider_name, "verbs", strlen("verbs")) == 0)
		return PLAN_PATH_VERBS;
	if (!p->known[PROFILE_F_PROVIDER])
		return PLAN_PATH_UNKNOWN;
	if (profile_get(p, PROFILE_F_PROVIDER) != PROFILE_PROVIDER_SOFTWARE)
		return PLAN_PATH_VERBS;
	return PLAN_PATH_CPU;
}

void
plan_view_of(const struct profile *p, struct plan_view *v)
{
	enum profile_provider provider = (enum profile_provider)profile_get(p, PROFILE_F_PROVIDER);

	*v = (struct plan_view){
		.path = plan_path_of(p),
		.class = (enum profile_class)profile_get(p, PROFILE_F_CLASS),
		.key = {.domain = (enum profile_domain)profile_get(p, PROFILE_F_DOMAIN),
			.ddio = (enum profile_ddio)profile_get(p, PROFILE_F_DDIO),
			.rqwrb = (enum profile_rqwrb)profile_get(p, PROFILE_F_RQWRB)},
	};
	/* What is visible is as durable as memory gets. */
	if (v->class == PROFILE_CLASS_MEMORY)
		v->key.domain = PROFILE_MHP;
	/* iWARP completes when its own TCP has the data; a soft RNIC may be one. */
	if (v->key.domain == PROFILE_WSP && provider != PROFILE_PROVIDER_IB &&
	    v->path != PLAN_PATH_CPU) {
		v->key.domain = PROFILE_MHP;
		v->iwarp = true;
	}
	/* The target's CPU stores, so the data are in its caches, whatever DDIO is. */
	if (v->key.ddio == PROFILE_DDIO_OFF && provider == PROFILE_PROVIDER_SOFTWARE) {
		v->key.ddio = PROFILE_DDIO_ON;
		v->software = true;
	}
}

enum plan_finish
plan_row_finish(const struct taxonomy_row *row)
{
	const enum taxonomy_step *s = row->steps;
	enum taxonomy_step before = STEP_END;

	for (; s[1] != STEP_END; s++)
		before = *s;
	if (*s == STEP_ACK)
		return PLAN_FINISH_ACK;
	return before == STEP_FLUSH ? PLAN_FINISH_FLUSH : PLAN_FINISH_COMP;
}

enum plan_method
plan_method_of(enum taxonomy_op op, enum plan_finish finish)
{
	for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
		if (methods[m].op == op && methods[m].finish == finish)
			return (enum plan_method)m;
	}
	/* The completion of a write says the same with immediate data and without. */
	return PLAN_COMPLETION;
}

/* What the method ends with is worth where bytes go that way. */
static enum plan_finish
plan_worth(const struct plan_view *v, enum plan_method m)
{
	if (v->path != PLAN_PATH_CPU)
		return methods[m].finish;
	/* Stored and flushed by the target's CPU, as if it had been asked by a message. */
	if (m == PLAN_NATIVE_FLUSH)
		return PLAN_FINISH_ACK;
	/* Lanes ask for delivery: the target's CPU has stored what completes. */
	return methods[m].finish == PLAN_FINISH_COMP ? PLAN_FINISH_FLUSH : methods[m].finish;
}

/* ---- is a method correct? ---- */

static struct plan_verdict
plan_no(const char *reason, enum profile_field fact)
{
	return (struct plan_verdict){.allowed = false, .reason = reason, .fact = fact};
}

static struct plan_verdict
plan_yes(const char *reason)
{
	return (struct plan_verdict){.allowed = true, .reason = reason, .fact = PROFILE_F_COUNT};
}

/* The taxonomy has no page cache: only a sync by the target gets out of it. */
static struct plan_verdict
judge_page(const struct plan_view *v, const struct method *m)
{
	if (m->finish != PLAN_FINISH_ACK)
		return plan_no("the page cache must be synced by the target", PROFILE_F_CLASS);
	if (m->op == TAXONOMY_SEND)
		return plan_yes("the target's CPU copies and syncs, which is right everywhere");
	if (v->path == PLAN_PATH_VERBS)
		return plan_no("a sync does not see what an RNIC writes into the page cache",
			       PROFILE_F_CLASS);
	if (v->path == PLAN_PATH_UNKNOWN)
		return plan_no("the provider is not known, and a sync may not see what it writes "
			       "into the page cache",
			       PROFILE_F_PROVIDER);
	return plan_yes("the provider stores through the mapping and the target syncs the pages");
}

/* Why what ends like that is enough where it is. */
static const char *
right_reason(const struct plan_view *v, const struct method *m)
{
	bool memory = v->class == PROFILE_CLASS_MEMORY;

	if (m->finish == PLAN_FINISH_ACK)
		return m->op == TAXONOMY_SEND
			       ? "the target's CPU copies and flushes, which is right everywhere"
		       : m->op == TAXONOMY_WRITE ? "the target flushes what was written, which is "
						   "right in every domain"
						 : "the target flushes what the immediate data "
						   "name, which is right in "
						   "every domain";
	if (m == &methods[PLAN_NATIVE_FLUSH])
		return v->path == PLAN_PATH_CPU ? "the provider flushes what it has stored before "
						  "it completes the write"
						: "the fabric's own flush drains the NIC, and is "
						  "the one that the table asks for";
	if (m->finish == PLAN_FINISH_FLUSH) {
		if (m->op == TAXONOMY_SEND)
			return "the receive ring is as durable as the pool, and a read drains the "
			       "NIC into it";
		if (memory)
			return "the pool promises no more than memory, and a read proves the write "
			       "visible";
		if (v->key.domain != PROFILE_DMP)
			return "caches are in the persistence domain, and a read drains the NIC";
		return "DDIO is off: a read drains the NIC's writes to the memory controller";
	}
	if (memory)
		return "the pool promises no more than memory, and the provider completes what it "
		       "has stored";
	if (v->path == PLAN_PATH_CPU)
		return "caches are in the persistence domain, and the provider completes what it "
		       "has stored";
	return "the NIC's buffers are in the persistence domain";
}

/* Why less than the row demands is not enough. */
static struct plan_verdict
judge_short(const struct plan_view *v, const struct method *m, enum plan_finish need)
{
	if (need == PLAN_FINISH_ACK) {
		if (m->op == TAXONOMY_SEND && v->key.rqwrb == PROFILE_RQWRB_DRAM)
			return plan_no("the target's receive buffers do not outlive a power cut",
				       PROFILE_F_RQWRB);
		if (v->software || v->path != PLAN_PATH_VERBS)
			return plan_no("a software provider leaves the data in CPU caches, which a "
				       "power cut empties",
				       PROFILE_F_DOMAIN);
		return plan_no("DDIO may leave the data in CPU caches, which a power cut empties",
			       PROFILE_F_DDIO);
	}
	if (v->iwarp)
		return plan_no("a completion of iWARP says only that the initiator's TCP has the "
			       "data",
			       PROFILE_F_PROVIDER);
	if (v->class == PROFILE_CLASS_MEMORY)
		return plan_no("a completion says that the NIC has the data, not that they are "
			       "visible",
			       PROFILE_F_PROVIDER);
	return plan_no("a completion says that the NIC has the data, and its buffers are not in "
		       "the persistence domain",
		       PROFILE_F_DOMAIN);
}

struct plan_verdict
plan_judge(const struct profile *p, enum plan_method method, enum plan_shape shape)
{
	const struct method *m = &methods[method];
	struct plan_verdict verdict;
	const struct taxonomy_row *row;
	struct plan_view v;

	plan_view_of(p, &v);
	/* No fabric has the atomic write. */
	if (shape == PLAN_ATOMIC8 && m->op != TAXONOMY_SEND)
		return plan_no("an RMA write may tear: the target's CPU must store the 8 bytes",
			       PROFILE_F_COUNT);
	/* Neither the pool nor a ring beside it. */
	if (method != PLAN_MESSAGE && profile_get(p, PROFILE_F_RMA) == PROFILE_RMA_NO)
		return plan_no("the RNIC can't have the pool's memory: only messages get there",
			       PROFILE_F_RMA);
	if (v.class == PROFILE_CLASS_PAGE)
		return judge_page(&v, m);
	if (method == PLAN_NATIVE_FLUSH && profile_get(p, PROFILE_F_FLUSH) != PROFILE_FLUSH_YES)
		return plan_no("the fabric has no flush of its own there: a read takes its place",
			       PROFILE_F_FLUSH);
	v.key.op = m->op;
	v.key.update = shape == PLAN_SINGLETON ? TAXONOMY_SINGLETON : TAXONOMY_COMPOUND;
	row = taxonomy_find(&v.key);
	if (plan_worth(&v, method) >= plan_row_finish(row))
		verdict = plan_yes(right_reason(&v, m));
	else
		verdict = judge_short(&v, m, plan_row_finish(row));
	verdict.row = row;
	return verdict;
}

bool
plan_allowed(const struct profile *p, enum plan_method m, enum plan_shape shape,
	     const char **reason)
{
	struct plan_verdict verdict = plan_judge(p, m, shape);

	*reason = verdict.reason;
	return verdict.allowed;
}

/* ---- the chooser ---- */

bool
plan_can(const struct plan_limits *lim, enum plan_method m)
{
	bool needs_rma = m != PLAN_MESSAGE && m != PLAN_DEPOSIT_COMPLETION;
	bool deposit = (PLAN_DEPOSITS & PLAN_BIT(m)) != 0;

	return (lim->can & PLAN_BIT(m)) && (lim->rma || !needs_rma) && deposit == lim->ring;
}

/*
 * Whether b stands behind a wait for a. Two messages are ordered by the target,
 * the writes of a row that pipelines them by the lane. A wait takes the place of
 * the atomic write, which no fabric has.
 */
static bool
plan_waits(enum plan_method m, const struct taxonomy_row *row)
{
	if (methods[m].op == TAXONOMY_SEND)
		return false;
	if (methods[m].finish == PLAN_FINISH_ACK || !row)
		return true;
	for (const enum taxonomy_step *s = row->steps; *s != STEP_END; s++) {
		if (*s == STEP_WRITE_B || *s == STEP_WRITEIMM_B)
			return false;
		if (*s == STEP_COMP || *s == STEP_ACK || *s == STEP_WRITE_ATOMIC_B)
			return true;
	}
	return true;
}

/* May be taken, and is right. */
static bool
plan_fit(const struct profile *p, enum plan_method m, enum plan_shape shape,
	 const struct plan_limits *lim, struct plan *out)
{
	struct plan_verdict verdict;

	if (!plan_can(lim, m))
		return false;
	verdict = plan_judge(p, m, shape);
	*out = (struct plan){m, verdict.reason, plan_waits(m, verdict.row)};
	return verdict.allowed;
}

/* A pair pays for each round trip twice unless it is one message. */
static bool
plan_fits_message(enum plan_shape shape, size_t size, const struct plan_limits *lim)
{
	if (size > lim->inline_max)
		return false;
	return shape == PLAN_COMPOUND || size <= lim->message_max;
}

/*
 * What fills a socket's buffers leaves them sooner when a message follows it, by more than the
 * target takes to answer that. Measured on tcp only.
 */
static bool
choose_stream(const struct profile *p, enum plan_shape shape, size_t size,
	      const struct plan_limits *lim, struct plan *out)
{
	struct plan single;

	return lim->stream_min != 0 && size >= lim->stream_min && shape == PLAN_SINGLETON &&
	       profile_get(p, PROFILE_F_PROVIDER) == PROFILE_PROVIDER_SOFTWARE &&
	       plan_fit(p, PLAN_COMPLETION, shape, lim, &single) &&
	       plan_fit(p, PLAN_GENERAL, shape, lim, out);
}

/* One RMA operation and nothing behind it, for what is too large to be copied cheaply. */
static bool
choose_single(const struct profile *p, enum plan_shape shape, size_t size,
	      const struct plan_limits *lim, struct plan *out)
{
	bool software = profile_get(p, PROFILE_F_PROVIDER) == PROFILE_PROVIDER_SOFTWARE;

	if (shape != PLAN_SINGLETON || size <= lim->single_max)
		return false;
	return plan_fit(p, PLAN_COMPLETION, shape, lim, out) ||
	       plan_fit(p, PLAN_NATIVE_FLUSH, shape, lim, out) ||
	       (software && profile_get(p, PROFILE_F_CLASS) != PROFILE_CLASS_PAGE &&
		plan_fit(p, PLAN_WRITE_IMM, shape, lim, out));
}

/* Only DEPOSITs may go: on what comes else a replay could not rely. */
static struct plan
choose_deposit(const struct profile *p, enum plan_shape shape, const struct plan_limits *lim)
{
	struct plan plan;

	if (!(lim->force & PLAN_BIT(PLAN_DEPOSIT)) &&
	    plan_fit(p, PLAN_DEPOSIT_COMPLETION, shape, lim, &plan))
		return plan;
	return (struct plan){PLAN_DEPOSIT, "the session's lanes end in the receive ring", false};
}

/*
 * By what the target's end costs, cheapest first. A software provider pays for
 * each message on a lane, an RNIC for waking the target's CPU. Deposits have a
 * session of their own.
 */
static const enum plan_method by_cost_software[] = {PLAN_COMPLETION,     PLAN_NATIVE_FLUSH,
						    PLAN_WRITE_IMM,      PLAN_APPLIANCE,
						    PLAN_WRITE_IMM_READ, PLAN_GENERAL};
static const enum plan_method by_cost_rnic[] = {PLAN_COMPLETION, PLAN_NATIVE_FLUSH,
						PLAN_APPLIANCE,  PLAN_WRITE_IMM_READ,
						PLAN_WRITE_IMM,  PLAN_GENERAL};

#define BY_COST_COUNT (sizeof(by_cost_rnic) / sizeof(by_cost_rnic[0]))

static struct plan
choose_large(const struct profile *p, enum plan_shape shape, unsigned among,
	     const struct plan_limits *lim)
{
	bool software = profile_get(p, PROFILE_F_PROVIDER) == PROFILE_PROVIDER_SOFTWARE;
	const enum plan_method *by_cost = software ? by_cost_software : by_cost_rnic;
	struct plan plan = {PLAN_MESSAGE, "no other method may be chosen", false};

	for (size_t i = 0; i < BY_COST_COUNT; i++) {
		if ((among & PLAN_BIT(by_cost[i])) && plan_fit(p, by_cost[i], shape, lim, &plan))
			return plan;
	}
	/* The reason is that against the last one tried. */
	return (struct plan){PLAN_MESSAGE, plan.reason, false};
}

struct plan
plan_choose(const struct profile *p, enum plan_shape shape, size_t size,
	    const struct plan_limits *lim)
{
	unsigned among = ~0U;
	struct plan plan;

	if (lim->ring)
		return choose_deposit(p, shape, lim);
	if (shape == PLAN_ATOMIC8)
		return (struct plan){PLAN_MESSAGE,
				     "8 bytes, all or nothing: stored by the target's CPU", false};
	if (lim->force) {
		for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
			if ((lim->force & PLAN_BIT(m)) &&
			    plan_fit(p, (enum plan_method)m, shape, lim, &plan))
				return plan;
		}
		/* What it can't carry. */
		among = PLAN_BIT(PLAN_GENERAL);
	}
	if (!lim->force && (choose_stream(p, shape, size, lim, &plan) ||
			    choose_single(p, shape, size, lim, &plan)))
		return plan;
	if (plan_fits_message(shape, size, lim))
		return (struct plan){PLAN_MESSAGE, "small: one message each way is the least",
				     false};
	if (!lim->rma)
		return (struct plan){PLAN_MESSAGE, "RMA is not to be had on this pool", false};
	return choose_large(p, shape, among, lim);
}

/* ---- a method by name ---- */

/* "message, general-purpose" */
static void
list_right(const struct profile *p, const struct plan_limits *lim, char *buf, size_t size)
{
	const char *reason;
	size_t used = 0;

	buf[0] = '\0';
	for (int m = 0; m < PLAN_METHOD_COUNT && used < size; m++) {
		int len;

		if (!plan_allowed(p, (enum plan_method)m, PLAN_COMPOUND, &reason) ||
		    (lim && !plan_can(lim, (enum plan_method)m)))
			continue;
		len = snprintf(buf + used, size - used, "%s%s", used ? ", " : "", methods[m].name);
		if (len > 0)
			used += (size_t)len;
	}
}

int
plan_check_method(const struct profile *p, enum plan_method m, const struct plan_limits *lim,
		  struct err *e)
{
	struct plan_verdict verdict = plan_judge(p, m, PLAN_COMPOUND);
	enum profile_field f = verdict.fact;
	char right[256], fact[PROFILE_SOURCE_MAX + 96] = "";

	list_right(p, verdict.allowed ? lim : NULL, right, sizeof(right));
	if (!verdict.allowed) {
		if (f < PROFILE_F_COUNT)
			(void)snprintf(fact, sizeof(fact), " (%s = %s, %s%s)",
				       profile_field_name(f),
				       profile_value_name(f, profile_get(p, f)),
				       p->known[f] ? "" : "assumed: ", p->source[f]);
		return err_set(e, REPL_E_REFUSED,
			       "method '%s' is not correct for this target: %s%s; set method to "
			       "auto or one of %s",
			       methods[m].name, verdict.reason, fact, right);
	}
	if (lim && !plan_can(lim, m))
		return err_set(e, REPL_E_REFUSED,
			       "method '%s' is not available on this provider, '%s'%s; set method "
			       "to auto or one of %s",
			       methods[m].name, p->provider_name,
			       (PLAN_DEPOSITS & PLAN_BIT(m)) && !lim->ring
				       ? ", or the target has granted no receive ring"
				       : "",
			       right);
	return 0;
}

const char *
plan_method_name(enum plan_method m)
{
	return (unsigned)m < PLAN_METHOD_COUNT ? methods[m].name : "unknown";
}

int
plan_method_by_name(const char *name)
{
	for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
		if (strcmp(methods[m].name, name) == 0)
			return m;
	}
	return -1;
}
