/* SPDX-License-Identifier: BSD-3-Clause */
/* A method is allowed for a target exactly if no power cut of the model speaks against it. */
#include "unit.h"

#include <stdio.h>

#include "media_model.h"
#include "plan.h"

#define FATAL     (MM_LOST | MM_ORDER | MM_STUCK)
#define TRACE_MAX 8192

/* Who puts the bytes of an RMA write into memory, and what its completions say. */
enum nic {
	NIC_CPU,  /* the target's CPU, through its own mapping */
	NIC_SOFT, /* the target's kernel, through registered pages; completes as iWARP may */
	NIC_IB,
	NIC_IWARP,
	NIC_COUNT
};

/* All that a target can be. */
struct target {
	int domain, ddio, rqwrb, class;
	enum nic nic;
};

static const char *const shape_names[] = {"one range", "a pair", "an 8-byte store"};

#define DOMAINS 3
#define CLASSES 3
#define SHAPES  3
#define UNKNOWN (-1)

/* What a lane does, as far as the model has a place for it. */
static const char *const words[PLAN_METHOD_COUNT][SHAPES] = {
	[PLAN_MESSAGE] = {"send(a) rsp-copy(a) rsp-flush(&a) ack",
			  "send(a,b) rsp-copy(a,b) rsp-flush(a,b) ack",
			  "send(b) rsp-copy(b) rsp-flush(&b) ack"},
	[PLAN_GENERAL] = {"write(a) send(&a) rsp-flush(&a) ack",
			  "write(a) send(&a) rsp-flush(&a) ack write(b) send(&b) rsp-flush(&b) ack",
			  "write(b) send(&b) rsp-flush(&b) ack"},
	[PLAN_APPLIANCE] = {"write(a) flush comp", "write(a) flush comp write(b) flush comp",
			    "write(b) flush comp"},
	[PLAN_COMPLETION] = {"write(a) comp", "write(a) comp write(b) comp", "write(b) comp"},
	[PLAN_WRITE_IMM] = {"writeimm(a) rsp-flush(&a) ack",
			    "writeimm(a) rsp-flush(&a) ack writeimm(b) rsp-flush(&b) ack",
			    "writeimm(b) rsp-flush(&b) ack"},
	[PLAN_WRITE_IMM_READ] = {"writeimm(a) flush comp",
				 "writeimm(a) flush comp writeimm(b) flush comp",
				 "writeimm(b) flush comp"},
	[PLAN_NATIVE_FLUSH] = {"write(a) flush comp", "write(a) flush comp write(b) flush comp",
			       "write(b) flush comp"},
	/* The target applies what was deposited when it comes to it, and marks it. */
	[PLAN_DEPOSIT] = {"send(a) flush comp rsp-copy(a) rsp-flush(&a) rsp-retire",
			  "send(a,b) flush comp rsp-copy(a,b) rsp-flush(a,b) rsp-retire",
			  "send(b) flush comp rsp-copy(b) rsp-flush(&b) rsp-retire"},
	[PLAN_DEPOSIT_COMPLETION] = {"send(a) comp rsp-copy(a) rsp-flush(&a) rsp-retire",
				     "send(a,b) comp rsp-copy(a,b) rsp-flush(a,b) rsp-retire",
				     "send(b) comp rsp-copy(b) rsp-flush(&b) rsp-retire"},
};

#define BY_RMA                                                                                     \
	(PLAN_BIT(PLAN_GENERAL) | PLAN_BIT(PLAN_APPLIANCE) | PLAN_BIT(PLAN_COMPLETION) |           \
	 PLAN_BIT(PLAN_WRITE_IMM) | PLAN_BIT(PLAN_WRITE_IMM_READ) | PLAN_BIT(PLAN_NATIVE_FLUSH))

/*
 * Refused though the model finds nothing wrong. Checked in both directions: a
 * line that something speaks against, or that is allowed, fails the test.
 * docs/MEDIA-MODEL.md says the same.
 */
static const struct {
	unsigned methods; /* bits */
	int shape;
	int class, domain, provider; /* of a profile that knows them */
	const char *reason;
} conservative[] = {
	{BY_RMA, PLAN_ATOMIC8, PROFILE_CLASS_MEDIA, PROFILE_WSP, PROFILE_PROVIDER_IB,
	 "the NIC keeps whole packets: not relied on for the parts of a word"},
	{BY_RMA & ~PLAN_BIT(PLAN_COMPLETION), PLAN_ATOMIC8, PROFILE_CLASS_MEDIA, PROFILE_WSP,
	 PROFILE_PROVIDER_IWARP,
	 "the NIC keeps whole packets: not relied on for the parts of a word"},
};

#define TARGETS (DOMAINS * 2U * 2U * CLASSES * NIC_COUNT)

static struct target
target_at(unsigned at)
{
	return (struct target){
		.domain = (int)(at % DOMAINS),
		.ddio = (int)(at / DOMAINS % 2),
		.rqwrb = (int)(at / DOMAINS / 2 % 2),
		.class = (int)(at / DOMAINS / 4 % CLASSES),
		.nic = (enum nic)(at / DOMAINS / 4 / CLASSES),
	};
}

static struct mm_explorer *explorer;
static bool safe[DOMAINS][2][2][CLASSES][NIC_COUNT][PLAN_METHOD_COUNT][SHAPES];

static struct mm_machine
machine_of(const struct target *t)
{
	static const enum mm_class classes[] = {MM_MEDIA, MM_PAGE, MM_MEMORY};

	return (struct mm_machine){
		.domain = (enum mm_domain)t->domain,
		.class = classes[t->class],
		.ddio = t->ddio == PROFILE_DDIO_ON,
		.rqwrb_pm = t->rqwrb == PROFILE_RQWRB_PM,
		.software = t->nic == NIC_CPU || t->nic == NIC_SOFT,
		.delivery = t->nic == NIC_CPU,
		.iwarp = t->nic == NIC_IWARP || t->nic == NIC_SOFT,
		.kernel_blind = t->class == PROFILE_CLASS_PAGE && t->nic != NIC_CPU,
	};
}

/* Whether no cut loses anything, for each target, method and shape. */
static void
explore_all(void)
{
	static const enum mm_update updates[SHAPES] = {MM_SINGLETON, MM_COMPOUND, MM_ATOMIC8};

	for (unsigned i = 0; i < TARGETS * PLAN_METHOD_COUNT * SHAPES; i++) {
		unsigned shape = i % SHAPES, method = i / SHAPES % PLAN_METHOD_COUNT;
		struct target t = target_at(i / SHAPES / PLAN_METHOD_COUNT);
		struct mm_machine m = machine_of(&t);
		struct mm_plan plan = {.update = updates[shape], .b8 = shape == PLAN_ATOMIC8};
		unsigned fatal = shape == PLAN_ATOMIC8 ? FATAL | MM_TORN : FATAL;

		assert_true(mm_plan_parse(&plan, words[method][shape]));
		safe[t.domain][t.ddio][t.rqwrb][t.class][t.nic][method][shape] =
			!(mm_explore(explorer, &m, &plan, fatal, NULL, 0) & fatal);
	}
}

/* ---- a profile, of which not all need be known ---- */

/* Whether the target is one that a profile of these values and provider may be. */
static bool
may_be(const struct target *t, const int value[PROFILE_F_COUNT], bool verbs)
{
	int provider = t->nic == NIC_IB      ? PROFILE_PROVIDER_IB
		       : t->nic == NIC_IWARP ? PROFILE_PROVIDER_IWARP
					     : PROFILE_PROVIDER_SOFTWARE;

	if (verbs && t->nic == NIC_CPU)
		return false;
	if (!verbs && t->nic == NIC_SOFT && value[PROFILE_F_PROVIDER] != UNKNOWN)
		return false;
	return (value[PROFILE_F_DOMAIN] == UNKNOWN || value[PROFILE_F_DOMAIN] == t->domain) &&
	       (value[PROFILE_F_DDIO] == UNKNOWN || value[PROFILE_F_DDIO] == t->ddio) &&
	       (value[PROFILE_F_RQWRB] == UNKNOWN || value[PROFILE_F_RQWRB] == t->rqwrb) &&
	       (value[PROFILE_F_CLASS] == UNKNOWN || value[PROFILE_F_CLASS] == t->class) &&
	       (value[PROFILE_F_PROVIDER] == UNKNOWN || value[PROFILE_F_PROVIDER] == provider);
}

/*
 * Where the provider is the target's CPU its flush is that of the lines it has stored, as with a
 * message that asks for it, but not a sync of pages.
 */
static bool
safe_on(const struct target *t, int method, int shape)
{
	if (method == PLAN_NATIVE_FLUSH && t->nic == NIC_CPU && t->class != PROFILE_CLASS_PAGE)
		method = PLAN_WRITE_IMM;
	return safe[t->domain][t->ddio][t->rqwrb][t->class][t->nic][method][shape];
}

/* Whether the method is safe on all that the profile may be. */
static bool
safe_for(const int value[PROFILE_F_COUNT], bool verbs, int method, int shape)
{
	/* What asks for a flush that is not there is a write whose completion says nothing. */
	if (method == PLAN_NATIVE_FLUSH && value[PROFILE_F_FLUSH] != PROFILE_FLUSH_YES)
		return false;
	for (unsigned at = 0; at < TARGETS; at++) {
		struct target t = target_at(at);

		if (may_be(&t, value, verbs) && !safe_on(&t, method, shape))
			return false;
	}
	return true;
}

static void
profile_fill(struct profile *p, const int value[PROFILE_F_COUNT], bool verbs)
{
	profile_init(p);
	for (int f = 0; f < PROFILE_F_COUNT; f++) {
		if (value[f] != UNKNOWN)
			profile_set(p, (enum profile_field)f, value[f], "test");
	}
	(void)strcpy(p->provider_name, verbs ? "verbs" : "tcp");
}

static const char *
conservative_reason(const int value[PROFILE_F_COUNT], int method, int shape)
{
	if (method == PLAN_NATIVE_FLUSH && value[PROFILE_F_FLUSH] != PROFILE_FLUSH_YES)
		return NULL;
	for (size_t i = 0; i < sizeof(conservative) / sizeof(conservative[0]); i++) {
		if ((conservative[i].methods & PLAN_BIT(method)) &&
		    conservative[i].shape == shape &&
		    conservative[i].class == value[PROFILE_F_CLASS] &&
		    conservative[i].domain == value[PROFILE_F_DOMAIN] &&
		    conservative[i].provider == value[PROFILE_F_PROVIDER])
			return conservative[i].reason;
	}
	return NULL;
}

static void
judge(const int value[PROFILE_F_COUNT], bool verbs, int method, int shape)
{
	bool holds = safe_for(value, verbs, method, shape);
	const char *listed = conservative_reason(value, method, shape), *reason;
	struct profile p;
	char facts[1024];
	bool allowed;

	profile_fill(&p, value, verbs);
	allowed = plan_allowed(&p, (enum plan_method)method, (enum plan_shape)shape, &reason);
	if (listed ? !allowed && holds : allowed == holds)
		return;
	(void)profile_format(&p, facts, sizeof(facts));
	fail_msg("%s, %s, is %s (%s), the model %s, %s\n%s",
		 plan_method_name((enum plan_method)method), shape_names[shape],
		 allowed ? "allowed" : "refused", reason, holds ? "finds no loss" : "loses",
		 listed ? "and it is listed as conservative" : "and it is not listed", facts);
}

/* allowed == no loss, for each profile, with facts unknown as well. */
static void
allowed_is_safe(void **state)
{
	static const int counts[PROFILE_F_COUNT] = {
		[PROFILE_F_GRANULARITY] = 0, [PROFILE_F_CLASS] = 3, [PROFILE_F_DOMAIN] = 3,
		[PROFILE_F_DDIO] = 2,        [PROFILE_F_RQWRB] = 2, [PROFILE_F_PROVIDER] = 3,
		[PROFILE_F_FLUSH] = 2,
	};
	int value[PROFILE_F_COUNT];
	unsigned profiles = 2;

	(void)state;
	for (int f = 0; f < PROFILE_F_COUNT; f++)
		profiles *= (unsigned)counts[f] + 1;
	for (unsigned at = 0; at < profiles; at++) {
		unsigned i = at / 2;

		for (int f = 0; f < PROFILE_F_COUNT; f++) {
			value[f] = (int)(i % ((unsigned)counts[f] + 1)) - 1;
			i /= (unsigned)counts[f] + 1;
		}
		for (int m = 0; m < PLAN_METHOD_COUNT * SHAPES; m++)
			judge(value, at % 2, m / SHAPES, m % SHAPES);
	}
}

/* Of a target about which all is known. */
static void
profile_of(struct profile *p, const struct target *t)
{
	const int value[PROFILE_F_COUNT] = {
		[PROFILE_F_CLASS] = t->class,
		[PROFILE_F_DOMAIN] = t->domain,
		[PROFILE_F_DDIO] = t->ddio,
		[PROFILE_F_RQWRB] = t->rqwrb,
		[PROFILE_F_PROVIDER] = t->nic == NIC_IB      ? PROFILE_PROVIDER_IB
				       : t->nic == NIC_IWARP ? PROFILE_PROVIDER_IWARP
							     : PROFILE_PROVIDER_SOFTWARE,
	};

	profile_fill(p, value, t->nic != NIC_CPU);
}

/* ---- what plan_steps() says will run ---- */

static void
steps_hold(const struct target *t, enum taxonomy_op op, enum taxonomy_update update, bool b8)
{
	const struct plan_sizes sizes = {.a = 100, .b = b8 ? 8 : 64};
	struct mm_plan plan = {
		.update = update == TAXONOMY_COMPOUND ? MM_COMPOUND : MM_SINGLETON,
		.b8 = b8,
	};
	struct mm_machine m = machine_of(t);
	struct plan_steps steps;
	struct profile p;
	char text[256], facts[1024], trace[TRACE_MAX];
	unsigned faults;

	profile_of(&p, t);
	plan_steps(&p, op, update, &sizes, &steps);
	(void)taxonomy_format(steps.steps, text, sizeof(text));
	assert_true(mm_plan_parse(&plan, text));
	faults = mm_explore(explorer, &m, &plan, FATAL, trace, sizeof(trace)) & FATAL;
	if (!faults)
		return;
	(void)profile_format(&p, facts, sizeof(facts));
	fail_msg("\"%s\": %s\n%s\n%s", text, mm_fault_name(faults), facts, trace);
}

/* For each target, operation and update the steps that are to run keep what they report. */
static void
steps_are_safe(void **state)
{
	(void)state;
	for (unsigned at = 0; at < TARGETS; at++) {
		struct target t = target_at(at);

		for (int op = 0; op < TAXONOMY_OP_COUNT; op++) {
			steps_hold(&t, (enum taxonomy_op)op, TAXONOMY_SINGLETON, true);
			steps_hold(&t, (enum taxonomy_op)op, TAXONOMY_COMPOUND, true);
			steps_hold(&t, (enum taxonomy_op)op, TAXONOMY_COMPOUND, false);
		}
	}
}

/* ---- pairs of which a and b go by different methods ---- */

/* Receive buffers of lanes without a ring are not replayed, wherever they are. */
static struct mm_machine
machine_without_ring(const struct target *t)
{
	struct mm_machine m = machine_of(t);

	m.rqwrb_pm = false;
	return m;
}

static bool
allowed_for(const struct target *t, enum plan_method m, enum plan_shape shape)
{
	const char *reason;
	struct profile p;

	profile_of(&p, t);
	return plan_allowed(&p, m, shape, &reason);
}

static void
pair_holds(const struct target *t, const char *text)
{
	struct mm_machine m = machine_without_ring(t);
	struct mm_plan plan = {.update = MM_COMPOUND, .b8 = true};
	char facts[1024], trace[TRACE_MAX];
	struct profile p;
	unsigned faults;

	assert_true(mm_plan_parse(&plan, text));
	faults = mm_explore(explorer, &m, &plan, FATAL, trace, sizeof(trace)) & FATAL;
	if (!faults)
		return;
	profile_of(&p, t);
	(void)profile_format(&p, facts, sizeof(facts));
	fail_msg("\"%s\": %s\n%s\n%s", text, mm_fault_name(faults), facts, trace);
}

/* The first is waited for, and then the second begun. */
static void
waiting_pairs_are_safe(void **state)
{
	char text[256];

	(void)state;
	for (unsigned at = 0; at < TARGETS; at++) {
		struct target t = target_at(at);

		for (int first = 0; first < PLAN_DEPOSIT; first++) {
			for (int second = 0; second < PLAN_DEPOSIT; second++) {
				if (!allowed_for(&t, (enum plan_method)first, PLAN_SINGLETON) ||
				    !allowed_for(&t, (enum plan_method)second, PLAN_COMPOUND))
					continue;
				(void)snprintf(text, sizeof(text), "%s %s",
					       words[first][PLAN_SINGLETON],
					       words[second][PLAN_ATOMIC8]);
				pair_holds(&t, text);
			}
		}
	}
}

/*
 * The second is a message behind a BARRIER, in the COMMIT that asks for the
 * first or in the one after: the target's CPU keeps the order.
 */
static void
barriers_are_safe(void **state)
{
	static const struct {
		enum plan_method first;
		const char *words;
	} barriers[] = {
		{PLAN_GENERAL, "write(a) send(b) rsp-flush(&a) rsp-copy(b) rsp-flush(&b) ack"},
		{PLAN_WRITE_IMM, "writeimm(a) rsp-flush(&a) send(b) rsp-copy(b) rsp-flush(&b) ack"},
	};

	(void)state;
	for (unsigned at = 0; at < TARGETS; at++) {
		struct target t = target_at(at);

		for (size_t i = 0; i < sizeof(barriers) / sizeof(barriers[0]); i++) {
			if (allowed_for(&t, barriers[i].first, PLAN_SINGLETON))
				pair_holds(&t, barriers[i].words);
		}
	}
}

/*
 * Where plan_choose() says that b need not wait for a, writes behind one another
 * are enough; where it says that it must, they are not.
 */
static void
pairs_wait_where_they_must(void **state)
{
	static const struct {
		enum plan_method method;
		const char *words;
	} behind[] = {
		{PLAN_APPLIANCE, "write(a) write(b) flush comp"},
		{PLAN_COMPLETION, "write(a) write(b) comp"},
		{PLAN_WRITE_IMM_READ, "writeimm(a) writeimm(b) flush comp"},
	};
	unsigned pipelined = 0, waiting = 0;

	(void)state;
	for (unsigned at = 0; at < TARGETS * 3; at++) {
		struct target t = target_at(at / 3);
		enum plan_method method = behind[at % 3].method;
		const struct plan_limits lim = {
			.inline_max = 64, .rma = true, .can = ~0U, .force = PLAN_BIT(method)};
		struct mm_machine m = machine_without_ring(&t);
		struct mm_plan words_behind = {.update = MM_COMPOUND};
		struct profile p;
		struct plan plan;

		profile_of(&p, &t);
		plan = plan_choose(&p, PLAN_COMPOUND, 4096, &lim);
		if (plan.method != method)
			continue;
		if (!plan.waits) {
			pair_holds(&t, behind[at % 3].words);
			pipelined++;
			continue;
		}
		waiting++;
		assert_true(mm_plan_parse(&words_behind, behind[at % 3].words));
		if (!(mm_explore(explorer, &m, &words_behind, FATAL, NULL, 0) & FATAL))
			fail_msg("%s waits between a and b for nothing, domain %d, ddio %d, nic %d",
				 plan_method_name(method), t.domain, t.ddio, (int)t.nic);
	}
	assert_true(pipelined > 0 && waiting > 0);
}

/* A barrier holds nothing back that the target's CPU has no part in. */
static void
barriers_do_not_wait_for_reads(void **state)
{
	struct mm_machine m = {.domain = MM_DMP};
	struct mm_plan plan = {.update = MM_COMPOUND, .b8 = true};

	(void)state;
	assert_true(mm_plan_parse(&plan, "write(a) flush send(b) rsp-copy(b) rsp-flush(&b) ack"));
	assert_true(mm_explore(explorer, &m, &plan, MM_ORDER, NULL, 0) & MM_ORDER);
}

/* ---- what the target does about deposits, after they are reported ---- */

static const struct {
	const char *words;
	enum mm_cpu cpu;
	enum mm_domain domain;
	unsigned faults;
} deposits[] = {
	/* The mark says that the copy is durable. */
	{"send(a) flush comp rsp-copy(a) rsp-flush(&a) rsp-retire", MM_CPU_ORDERED, MM_DMP, 0},
	{"send(a) flush comp rsp-copy(a) rsp-retire", MM_CPU_ORDERED, MM_DMP, MM_LOST},
	{"send(a) flush comp rsp-copy(a) rsp-retire", MM_CPU_ORDERED, MM_MHP, 0},
	{"send(a) flush comp rsp-retire rsp-copy(a) rsp-flush(&a)", MM_CPU_ORDERED, MM_DMP,
	 MM_LOST},
	{"send(a) flush comp rsp-retire rsp-copy(a)", MM_CPU_ORDERED, MM_MHP, MM_LOST},
	/*
	 * A pair is applied in order though a replay would complete it: the CPU
	 * sees the message before it is durable.
	 */
	{"send(a,b) flush comp rsp-copy(a,b) rsp-flush(a,b) rsp-retire", MM_CPU_ORDERED, MM_DMP, 0},
	{"send(a,b) flush comp rsp-copy(a,b) rsp-flush(a,b) rsp-retire", MM_CPU_COPY_THEN_FLUSH,
	 MM_DMP, MM_ORDER},
	{"send(a,b) flush comp rsp-copy(a,b) rsp-flush(a,b) rsp-retire", MM_CPU_B_FIRST, MM_DMP,
	 MM_ORDER},
	{"send(a,b) flush comp rsp-copy(a,b) rsp-flush(a,b) rsp-retire", MM_CPU_B_FIRST, MM_MHP, 0},
};

/* Deposits are applied in order, flushed and only then marked. */
static void
deposits_are_applied_first(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(deposits) / sizeof(deposits[0]); i++) {
		const struct mm_machine m = {.domain = deposits[i].domain, .rqwrb_pm = true};
		struct mm_plan plan = {
			.update = strstr(deposits[i].words, "b)") ? MM_COMPOUND : MM_SINGLETON,
			.b8 = true,
			.cpu = deposits[i].cpu,
		};
		unsigned faults;

		assert_true(mm_plan_parse(&plan, deposits[i].words));
		faults = mm_explore(explorer, &m, &plan, 0, NULL, 0);
		if (faults != deposits[i].faults)
			fail_msg("line %zu, \"%s\": %u, wanted %u", i, deposits[i].words, faults,
				 deposits[i].faults);
	}
}

static int
setup(void **state)
{
	(void)state;
	explorer = mm_explorer_new();
	if (!explorer)
		return -1;
	explore_all();
	return 0;
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
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allowed_is_safe),
		cmocka_unit_test(steps_are_safe),
		cmocka_unit_test(waiting_pairs_are_safe),
		cmocka_unit_test(barriers_are_safe),
		cmocka_unit_test(pairs_wait_where_they_must),
		cmocka_unit_test(barriers_do_not_wait_for_reads),
		cmocka_unit_test(deposits_are_applied_first),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
