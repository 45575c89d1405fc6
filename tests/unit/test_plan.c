/* SPDX-License-Identifier: BSD-3-Clause */
/* For every target that a profile can describe, the plan is correct and the cheapest correct one.
 */
#include "unit.h"

#include "plan.h"

static const char *const provider_names[] = {"tcp", "verbs", ""};

#define NAMES (sizeof(provider_names) / sizeof(provider_names[0]))
/* Without what is only right where completions say enough. */
#define FEW (PLAN_CAN_ALWAYS & ~PLAN_BIT(PLAN_COMPLETION))
#define ALL (PLAN_BIT(PLAN_METHOD_COUNT) - 1)

#define LIMITS(inline_, message_, rma_, can_)                                                      \
	{                                                                                          \
		.inline_max = inline_, .message_max = message_, .single_max = message_,            \
		.rma = rma_, .can = can_                                                           \
	}

/* What speaks for a method, by exclusion instead of by rows. */
struct oracle {
	bool apart;         /* pool memory is nothing that RMA reaches */
	bool media, memory; /* neither: page */
	bool caches_safe;   /* in the persistence domain */
	bool nic_safe;
	bool ddio_off, ring;
	bool rnic; /* known to be one */
	bool cpu;  /* known to store through the mapping */
	bool ib;
	bool flushes; /* the fabric, by itself */
};

static struct oracle
oracle_of(const struct profile *p)
{
	bool known = p->known[PROFILE_F_PROVIDER];
	bool domain = p->known[PROFILE_F_DOMAIN];
	bool class = p->known[PROFILE_F_CLASS];
	bool verbs = strncmp(p->provider_name, "verbs", 5) == 0;
	int provider = p->value[PROFILE_F_PROVIDER];

	return (struct oracle){
		.apart = p->known[PROFILE_F_RMA] && p->value[PROFILE_F_RMA] == PROFILE_RMA_NO,
		.media = class && p->value[PROFILE_F_CLASS] == PROFILE_CLASS_MEDIA,
		.memory = class && p->value[PROFILE_F_CLASS] == PROFILE_CLASS_MEMORY,
		.caches_safe = domain && p->value[PROFILE_F_DOMAIN] != PROFILE_DMP,
		.nic_safe = domain && p->value[PROFILE_F_DOMAIN] == PROFILE_WSP,
		.ddio_off =
			p->known[PROFILE_F_DDIO] && p->value[PROFILE_F_DDIO] == PROFILE_DDIO_OFF,
		.ring = p->known[PROFILE_F_RQWRB] && p->value[PROFILE_F_RQWRB] == PROFILE_RQWRB_PM,
		.rnic = known && provider != PROFILE_PROVIDER_SOFTWARE,
		.cpu = known && provider == PROFILE_PROVIDER_SOFTWARE && !verbs,
		.ib = known && provider == PROFILE_PROVIDER_IB,
		.flushes =
			p->known[PROFILE_F_FLUSH] && p->value[PROFILE_F_FLUSH] == PROFILE_FLUSH_YES,
	};
}

static bool
oracle_allowed(const struct oracle *o, enum plan_method m, enum plan_shape shape)
{
	bool drained = o->memory || (o->media && (o->caches_safe || (o->ddio_off && o->rnic)));
	bool completed = (o->cpu && drained) || (o->media && o->nic_safe && o->ib);

	if (m == PLAN_MESSAGE || o->apart)
		return m == PLAN_MESSAGE;
	if (m == PLAN_DEPOSIT)
		return o->ring && drained;
	if (m == PLAN_DEPOSIT_COMPLETION)
		return o->ring && completed;
	if (shape == PLAN_ATOMIC8)
		return false;
	if (m == PLAN_GENERAL || m == PLAN_WRITE_IMM)
		return o->media || o->memory || o->cpu;
	/* The provider's CPU flushes all it stored; an RNIC's flush goes no farther than a read. */
	if (m == PLAN_NATIVE_FLUSH)
		return o->flushes && (drained || (o->cpu && o->media));
	return m == PLAN_COMPLETION ? completed : drained;
}

/* By the measurements: a message, then by software the fewest messages, by RNICs no CPU. */
static enum plan_method
oracle_choose(const struct oracle *o, enum plan_shape shape, size_t size,
	      const struct plan_limits *lim)
{
	size_t small = lim->message_max < lim->inline_max ? lim->message_max : lim->inline_max;
	bool all = lim->can == ALL;

	if (shape == PLAN_COMPOUND)
		small = lim->inline_max;
	if (size <= small || !lim->rma || shape == PLAN_ATOMIC8)
		return PLAN_MESSAGE;
	if (all && oracle_allowed(o, PLAN_COMPLETION, shape))
		return PLAN_COMPLETION;
	if (all && oracle_allowed(o, PLAN_NATIVE_FLUSH, shape))
		return PLAN_NATIVE_FLUSH;
	if (all && !o->rnic && oracle_allowed(o, PLAN_WRITE_IMM, shape))
		return PLAN_WRITE_IMM;
	if (oracle_allowed(o, PLAN_APPLIANCE, shape))
		return PLAN_APPLIANCE;
	if (!oracle_allowed(o, PLAN_GENERAL, shape))
		return PLAN_MESSAGE;
	return all ? PLAN_WRITE_IMM : PLAN_GENERAL;
}

static void
check_choices(const struct profile *p, const struct oracle *o, enum plan_shape shape)
{
	static const struct plan_limits limits[] = {
		LIMITS(4000, 1000, true, FEW), LIMITS(4000, 1000, false, ALL),
		LIMITS(1000, 4000, true, FEW), LIMITS(0, 0, true, FEW),
		LIMITS(4000, 1000, true, ALL),
	};
	static const size_t sizes[] = {8, 1000, 1001, 4000, 4001, 1U << 30};

	for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			struct plan plan = plan_choose(p, shape, sizes[s], &limits[l]);
			size_t size = shape == PLAN_ATOMIC8 ? 8 : sizes[s];
			enum plan_method want = oracle_choose(o, shape, size, &limits[l]);

			if (plan.method != want)
				fail_msg("size %zu limits %zu: %s, not %s (%s)", size, l,
					 plan_method_name(plan.method), plan_method_name(want),
					 plan.reason);
			assert_true(strlen(plan.reason) > 10);
		}
	}
}

static void
check_profile(const struct profile *p)
{
	struct oracle o = oracle_of(p);

	for (int s = PLAN_SINGLETON; s <= PLAN_ATOMIC8; s++) {
		for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
			const char *reason = NULL;
			bool allowed =
				plan_allowed(p, (enum plan_method)m, (enum plan_shape)s, &reason);

			if (allowed !=
			    oracle_allowed(&o, (enum plan_method)m, (enum plan_shape)s)) {
				char text[2048];

				(void)profile_format(p, text, sizeof(text));
				fail_msg("shape %d %s: %d (%s)\n%s", s,
					 plan_method_name((enum plan_method)m), allowed, reason,
					 text);
			}
			assert_string_not_equal(reason, "no rule allows it");
		}
		check_choices(p, &o, (enum plan_shape)s);
	}
}

/* code counts through all values and all known flags. */
static void
profile_of(unsigned code, struct profile *p)
{
	static const int values[PROFILE_F_COUNT] = {3, 3, 3, 2, 2, 3, 2, 2};

	profile_init(p);
	for (int f = 0; f < PROFILE_F_COUNT; f++) {
		p->value[f] = (int)(code % (unsigned)values[f]);
		code /= (unsigned)values[f];
		p->known[f] = code % 2;
		code /= 2;
	}
	(void)strcpy(p->provider_name, provider_names[code % NAMES]);
}

static void
every_combination_agrees_with_the_oracle(void **state)
{
	unsigned count = 3 * 3 * 3 * 2 * 2 * 3 * 2 * 2 * 256 * (unsigned)NAMES;
	struct profile p;

	(void)state;
	for (unsigned code = 0; code < count; code++) {
		profile_of(code, &p);
		check_profile(&p);
	}
}

struct row {
	int class, domain, ddio, provider; /* -1: not known */
	const char *name;
	enum plan_shape shape;
	size_t size;
	enum plan_method method;
};

#define BIG (1U << 20)

static const struct row rows[] = {
	/* Table 2, Write. DMP + DDIO: write, send, flush, acknowledge. */
	{PROFILE_CLASS_MEDIA, PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_SINGLETON, BIG, PLAN_GENERAL},
	/* DMP, DDIO off: write, flush. */
	{PROFILE_CLASS_MEDIA, PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_SINGLETON, BIG, PLAN_APPLIANCE},
	{PROFILE_CLASS_MEDIA, PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IWARP, "verbs",
	 PLAN_SINGLETON, BIG, PLAN_APPLIANCE},
	/* MHP, and WSP by its iWARP rule: write, flush. */
	{PROFILE_CLASS_MEDIA, PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_SINGLETON, BIG, PLAN_APPLIANCE},
	{PROFILE_CLASS_MEDIA, PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IWARP, "verbs",
	 PLAN_SINGLETON, BIG, PLAN_APPLIANCE},
	/* A software provider writes into caches, whatever DDIO says. */
	{PROFILE_CLASS_MEDIA, PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_SOFTWARE, "tcp",
	 PLAN_SINGLETON, BIG, PLAN_GENERAL},
	{PROFILE_CLASS_MEDIA, PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_SOFTWARE, "tcp",
	 PLAN_SINGLETON, BIG, PLAN_APPLIANCE},
	/* Nothing known of domain and DDIO. */
	{PROFILE_CLASS_MEDIA, -1, -1, PROFILE_PROVIDER_IB, "verbs", PLAN_SINGLETON, BIG,
	 PLAN_GENERAL},
	/* Page cache: msync sees what tcp stored, not what an RNIC wrote. */
	{PROFILE_CLASS_PAGE, -1, -1, PROFILE_PROVIDER_SOFTWARE, "tcp", PLAN_SINGLETON, BIG,
	 PLAN_GENERAL},
	{PROFILE_CLASS_PAGE, PROFILE_WSP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_SINGLETON, BIG, PLAN_MESSAGE},
	{PROFILE_CLASS_PAGE, -1, -1, PROFILE_PROVIDER_SOFTWARE, "verbs;ofi_rxm", PLAN_SINGLETON,
	 BIG, PLAN_MESSAGE},
	/* Visible is all that memory promises. */
	{PROFILE_CLASS_MEMORY, -1, -1, PROFILE_PROVIDER_SOFTWARE, "tcp", PLAN_SINGLETON, BIG,
	 PLAN_APPLIANCE},
	/* Small, pair and atomic. */
	{PROFILE_CLASS_MEDIA, PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_SINGLETON, 64, PLAN_MESSAGE},
	{PROFILE_CLASS_MEDIA, PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_COMPOUND, 60000, PLAN_MESSAGE},
	{PROFILE_CLASS_MEDIA, PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_COMPOUND, BIG, PLAN_GENERAL},
	{PROFILE_CLASS_MEDIA, PROFILE_WSP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IB, "verbs",
	 PLAN_ATOMIC8, 8, PLAN_MESSAGE},
	/* A target that says nothing at all. */
	{-1, -1, -1, -1, "", PLAN_SINGLETON, BIG, PLAN_MESSAGE},
};

static void
set_if_known(struct profile *p, enum profile_field f, int value)
{
	if (value >= 0)
		profile_set(p, f, value, "row");
}

static void
hand_picked_rows(void **state)
{
	const struct plan_limits lim = LIMITS(65000, 8192, true, FEW);
	struct profile p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct plan plan;

		profile_init(&p);
		(void)strcpy(p.provider_name, r->name);
		set_if_known(&p, PROFILE_F_CLASS, r->class);
		set_if_known(&p, PROFILE_F_DOMAIN, r->domain);
		set_if_known(&p, PROFILE_F_DDIO, r->ddio);
		set_if_known(&p, PROFILE_F_PROVIDER, r->provider);
		plan = plan_choose(&p, r->shape, r->size, &lim);
		if (plan.method != r->method)
			fail_msg("row %zu: %s (%s)", i, plan_method_name(plan.method), plan.reason);
	}
}

/* ---- a method asked for by name ---- */

static struct profile
media_profile(enum profile_domain domain, enum profile_ddio ddio, enum profile_provider provider)
{
	struct profile p;

	profile_init(&p);
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA, "test");
	profile_set(&p, PROFILE_F_DOMAIN, (int)domain, "region0/persistence_domain");
	profile_set(&p, PROFILE_F_DDIO, (int)ddio, "PCI");
	profile_set(&p, PROFILE_F_RQWRB, PROFILE_RQWRB_PM, "test");
	profile_set(&p, PROFILE_F_PROVIDER, (int)provider, "sysfs");
	(void)strcpy(p.provider_name, provider == PROFILE_PROVIDER_SOFTWARE ? "tcp" : "verbs");
	return p;
}

static void
a_forced_method_is_taken_for_all_that_it_can_carry(void **state)
{
	struct profile p = media_profile(PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB);
	struct plan_limits lim = LIMITS(65000, 8192, true, ALL);

	(void)state;
	profile_set(&p, PROFILE_F_FLUSH, PROFILE_FLUSH_YES, "test");
	for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
		if (PLAN_BIT(m) & PLAN_DEPOSITS)
			continue;
		lim.force = PLAN_BIT(m);
		assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 8, &lim).method, m);
		assert_int_equal(plan_choose(&p, PLAN_SINGLETON, BIG, &lim).method, m);
		assert_int_equal(plan_choose(&p, PLAN_COMPOUND, 64, &lim).method, m);
		assert_int_equal(plan_choose(&p, PLAN_ATOMIC8, 8, &lim).method, PLAN_MESSAGE);
	}
	/* What is measured against each other is each method at every size, not the cheapest. */
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_PAGE, "test");
	lim.force = PLAN_BIT(PLAN_GENERAL);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 64, &lim).method, PLAN_MESSAGE);
	/* Not correct, or not to be had: one of the two that always are, by size. */
	p = media_profile(PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB);
	lim.force = PLAN_BIT(PLAN_COMPLETION);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, BIG, &lim).method, PLAN_GENERAL);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 8, &lim).method, PLAN_MESSAGE);
	lim.force = PLAN_BIT(PLAN_WRITE_IMM);
	lim.can = PLAN_CAN_ALWAYS;
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, BIG, &lim).method, PLAN_GENERAL);
}

static void
lanes_with_a_ring_carry_deposits_only(void **state)
{
	struct profile p = media_profile(PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB);
	struct plan_limits lim = LIMITS(65000, 8192, true, ALL);

	(void)state;
	assert_false(plan_can(&lim, PLAN_DEPOSIT));
	lim.ring = true;
	for (int s = PLAN_SINGLETON; s <= PLAN_ATOMIC8; s++) {
		assert_int_equal(plan_choose(&p, (enum plan_shape)s, 8, &lim).method,
				 PLAN_DEPOSIT_COMPLETION);
		assert_int_equal(plan_choose(&p, (enum plan_shape)s, BIG, &lim).method,
				 PLAN_DEPOSIT_COMPLETION);
	}
	lim.force = PLAN_BIT(PLAN_DEPOSIT);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 8, &lim).method, PLAN_DEPOSIT);
	lim.force = 0;
	p = media_profile(PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 8, &lim).method, PLAN_DEPOSIT);
	for (int m = 0; m < PLAN_DEPOSIT; m++)
		assert_false(plan_can(&lim, (enum plan_method)m));
}

static void
a_wrong_method_is_refused_with_the_fact_and_its_source(void **state)
{
	struct profile p = media_profile(PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB);
	struct plan_limits lim = LIMITS(65000, 8192, true, FEW);
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(plan_check_method(&p, PLAN_APPLIANCE, NULL, &e), REPL_E_REFUSED);
	assert_string_equal(e.text,
			    "method 'appliance' is not correct for this target: DDIO may leave the "
			    "data in CPU caches, which a power cut empties (ddio = on, PCI); set "
			    "method to auto or one of message, general-purpose, write-imm");
	err_clear(&e);
	assert_int_equal(plan_check_method(&p, PLAN_WRITE_IMM, &lim, &e), REPL_E_REFUSED);
	assert_string_equal(e.text, "method 'write-imm' is not available on this provider, "
				    "'verbs'; set method to auto or one of message, "
				    "general-purpose");
	assert_int_equal(plan_check_method(&p, PLAN_WRITE_IMM, NULL, &e), 0);
	assert_int_equal(plan_check_method(&p, PLAN_GENERAL, &lim, &e), 0);
	/* What is only assumed says so. */
	profile_init(&p);
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA, "test");
	assert_int_equal(plan_check_method(&p, PLAN_COMPLETION, NULL, &e), REPL_E_REFUSED);
	assert_non_null(strstr(e.text, "(persistence-domain = dmp, assumed: not probed)"));
}

/* What the probe has found decides between a read and the fabric's own flush, once both are right.
 */
static const struct flush_row {
	enum profile_domain domain;
	enum profile_ddio ddio;
	enum profile_provider provider;
	int flush; /* -1: not known */
	bool lane; /* the lane promises it */
	enum plan_method method;
} flush_rows[] = {
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IB, -1, true, PLAN_APPLIANCE},
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IB, PROFILE_FLUSH_NO, true,
	 PLAN_APPLIANCE},
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IB, PROFILE_FLUSH_YES, false,
	 PLAN_APPLIANCE},
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_PROVIDER_IB, PROFILE_FLUSH_YES, true,
	 PLAN_NATIVE_FLUSH},
	{PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IWARP, PROFILE_FLUSH_YES, true,
	 PLAN_NATIVE_FLUSH},
	/* DDIO: a flush that drains the NIC leaves the data in caches, as a read does. */
	{PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB, PROFILE_FLUSH_YES, true,
	 PLAN_WRITE_IMM},
	/* A write that completes late enough needs no flush. */
	{PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB, PROFILE_FLUSH_YES, true,
	 PLAN_COMPLETION},
	{PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_SOFTWARE, PROFILE_FLUSH_YES, true,
	 PLAN_COMPLETION},
	/* tcp: no read gets data out of the caches, the provider's CPU does. */
	{PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_SOFTWARE, -1, true, PLAN_WRITE_IMM},
	{PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_PROVIDER_SOFTWARE, PROFILE_FLUSH_YES, true,
	 PLAN_NATIVE_FLUSH},
};

static void
the_fabrics_own_flush_is_preferred_to_a_read_where_it_is_probed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(flush_rows) / sizeof(flush_rows[0]); i++) {
		const struct flush_row *r = &flush_rows[i];
		struct profile p = media_profile(r->domain, r->ddio, r->provider);
		struct plan_limits lim = LIMITS(65000, 16384, true, ALL);
		struct plan plan;

		set_if_known(&p, PROFILE_F_FLUSH, r->flush);
		if (!r->lane)
			lim.can &= ~PLAN_COMMITTED;
		plan = plan_choose(&p, PLAN_SINGLETON, BIG, &lim);
		if (plan.method != r->method)
			fail_msg("row %zu: %s (%s)", i, plan_method_name(plan.method), plan.reason);
		profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_PAGE, "test");
		assert_false(plan_judge(&p, PLAN_NATIVE_FLUSH, PLAN_SINGLETON).allowed);
	}
}

static void
a_flush_that_is_not_there_is_refused_with_what_the_probe_says(void **state)
{
	struct profile p = media_profile(PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB);
	struct plan_limits lim = LIMITS(65000, 16384, true, PLAN_CAN_ALWAYS);
	struct err e;

	(void)state;
	err_clear(&e);
	profile_set(&p, PROFILE_F_FLUSH, PROFILE_FLUSH_NO, "rxe0: no");
	assert_int_equal(plan_check_method(&p, PLAN_NATIVE_FLUSH, &lim, &e), REPL_E_REFUSED);
	assert_non_null(strstr(e.text, "(native-flush = no, rxe0: no)"));
	profile_set(&p, PROFILE_F_FLUSH, PROFILE_FLUSH_YES, "test");
	assert_int_equal(plan_check_method(&p, PLAN_NATIVE_FLUSH, &lim, &e), REPL_E_REFUSED);
	assert_non_null(strstr(e.text, "is not available on this provider"));
	lim.can |= PLAN_COMMITTED;
	assert_int_equal(plan_check_method(&p, PLAN_NATIVE_FLUSH, &lim, &e), 0);
}

/* Copies cost: from some size on one write is less than a message, two trips never are. */
static void
one_rma_operation_is_cheaper_than_a_message_sooner_than_two(void **state)
{
	struct profile p = media_profile(PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_SOFTWARE);
	struct plan_limits lim = LIMITS(65000, 16384, true, ALL);

	(void)state;
	lim.single_max = 2048;
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 2048, &lim).method, PLAN_MESSAGE);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 2049, &lim).method, PLAN_COMPLETION);
	assert_int_equal(plan_choose(&p, PLAN_COMPOUND, 16384, &lim).method, PLAN_MESSAGE);
	assert_int_equal(plan_choose(&p, PLAN_ATOMIC8, 8, &lim).method, PLAN_MESSAGE);
	lim.can &= ~PLAN_BIT(PLAN_COMPLETION);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 2049, &lim).method, PLAN_WRITE_IMM);
	lim.can &= ~PLAN_BIT(PLAN_WRITE_IMM);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 16384, &lim).method, PLAN_MESSAGE);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 16385, &lim).method, PLAN_APPLIANCE);
	/* A sync dwarfs what a copy costs. */
	lim.can = ALL;
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_PAGE, "test");
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 2049, &lim).method, PLAN_MESSAGE);
}

/* What streams goes faster with a message behind it; where that is a choice, and over a socket. */
static void
what_fills_the_socket_is_flushed_by_a_message(void **state)
{
	struct profile p = media_profile(PROFILE_MHP, PROFILE_DDIO_ON, PROFILE_PROVIDER_SOFTWARE);
	struct plan_limits lim = LIMITS(65000, 16384, true, ALL);

	(void)state;
	lim.stream_min = 1U << 18;
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, (1U << 18) - 1, &lim).method,
			 PLAN_COMPLETION);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 1U << 18, &lim).method, PLAN_GENERAL);
	assert_int_equal(plan_choose(&p, PLAN_COMPOUND, 1U << 18, &lim).method, PLAN_COMPLETION);
	lim.force = PLAN_BIT(PLAN_COMPLETION);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 1U << 18, &lim).method, PLAN_COMPLETION);
	lim.force = 0;
	lim.can &= ~PLAN_BIT(PLAN_COMPLETION);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 1U << 18, &lim).method, PLAN_WRITE_IMM);
	lim.can = ALL;
	p = media_profile(PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_PROVIDER_IB);
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 1U << 18, &lim).method, PLAN_COMPLETION);
}

static void
names_go_both_ways(void **state)
{
	(void)state;
	for (int m = 0; m < PLAN_METHOD_COUNT; m++)
		assert_int_equal(plan_method_by_name(plan_method_name((enum plan_method)m)), m);
	assert_int_equal(plan_method_by_name("auto"), -1);
	assert_string_equal(plan_method_name(PLAN_METHOD_COUNT), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_agrees_with_the_oracle),
		cmocka_unit_test(hand_picked_rows),
		cmocka_unit_test(a_forced_method_is_taken_for_all_that_it_can_carry),
		cmocka_unit_test(lanes_with_a_ring_carry_deposits_only),
		cmocka_unit_test(a_wrong_method_is_refused_with_the_fact_and_its_source),
		cmocka_unit_test(the_fabrics_own_flush_is_preferred_to_a_read_where_it_is_probed),
		cmocka_unit_test(a_flush_that_is_not_there_is_refused_with_what_the_probe_says),
		cmocka_unit_test(one_rma_operation_is_cheaper_than_a_message_sooner_than_two),
		cmocka_unit_test(what_fills_the_socket_is_flushed_by_a_message),
		cmocka_unit_test(names_go_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
