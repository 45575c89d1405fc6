/* SPDX-License-Identifier: BSD-3-Clause */
/* For every target that a profile can describe, the plan is correct and the cheapest correct one.
 */
#include "unit.h"

#include "plan.h"

static const char *const provider_names[] = {"tcp", "verbs", ""};

#define NAMES (sizeof(provider_names) / sizeof(provider_names[0]))

/* The rules told once more, by exclusion instead of by rows. */
static bool
oracle_allowed(const struct profile *p, enum plan_method m, enum plan_shape shape)
{
	bool media = p->known[PROFILE_F_CLASS] && p->value[PROFILE_F_CLASS] == PROFILE_CLASS_MEDIA;
	bool memory =
		p->known[PROFILE_F_CLASS] && p->value[PROFILE_F_CLASS] == PROFILE_CLASS_MEMORY;
	bool caches_safe = p->known[PROFILE_F_DOMAIN] && p->value[PROFILE_F_DOMAIN] != PROFILE_DMP;
	bool ddio_off = p->known[PROFILE_F_DDIO] && p->value[PROFILE_F_DDIO] == PROFILE_DDIO_OFF;
	bool known = p->known[PROFILE_F_PROVIDER];
	bool rnic = known && p->value[PROFILE_F_PROVIDER] != PROFILE_PROVIDER_SOFTWARE;
	bool cpu = known && !rnic && strncmp(p->provider_name, "verbs", 5) != 0;

	if (m == PLAN_MESSAGE)
		return true;
	if (m > PLAN_APPLIANCE)
		return false;
	if (shape == PLAN_ATOMIC8)
		return false;
	if (m == PLAN_GENERAL)
		return media || memory || cpu;
	return memory || (media && (caches_safe || (ddio_off && rnic)));
}

/* The cheapest by the measurements: a message, then no target CPU, then the target's flush. */
static enum plan_method
oracle_choose(const struct profile *p, enum plan_shape shape, size_t size,
	      const struct plan_limits *lim)
{
	size_t small = lim->message_max < lim->inline_max ? lim->message_max : lim->inline_max;

	if (shape == PLAN_COMPOUND)
		small = lim->inline_max;
	if (size <= small || !lim->rma)
		return PLAN_MESSAGE;
	if (oracle_allowed(p, PLAN_APPLIANCE, shape))
		return PLAN_APPLIANCE;
	return oracle_allowed(p, PLAN_GENERAL, shape) ? PLAN_GENERAL : PLAN_MESSAGE;
}

static void
check_choices(const struct profile *p, enum plan_shape shape)
{
	static const struct plan_limits limits[] = {{4000, 1000, true, 0, PLAN_CAN_ALWAYS},
						    {4000, 1000, false, 0, PLAN_CAN_ALWAYS},
						    {1000, 4000, true, 0, PLAN_CAN_ALWAYS},
						    {0, 0, true, 0, PLAN_CAN_ALWAYS}};
	static const size_t sizes[] = {8, 1000, 1001, 4000, 4001, 1U << 30};

	for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			struct plan plan = plan_choose(p, shape, sizes[s], &limits[l]);
			size_t size = shape == PLAN_ATOMIC8 ? 8 : sizes[s];
			enum plan_method want = oracle_choose(p, shape, size, &limits[l]);

			if (shape == PLAN_ATOMIC8)
				want = PLAN_MESSAGE;
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
	for (int s = PLAN_SINGLETON; s <= PLAN_ATOMIC8; s++) {
		for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
			const char *reason = NULL;
			bool allowed =
				plan_allowed(p, (enum plan_method)m, (enum plan_shape)s, &reason);

			if (allowed != oracle_allowed(p, (enum plan_method)m, (enum plan_shape)s)) {
				char text[2048];

				(void)profile_format(p, text, sizeof(text));
				fail_msg("shape %d %s: %d (%s)\n%s", s,
					 plan_method_name((enum plan_method)m), allowed, reason,
					 text);
			}
			assert_string_not_equal(reason, "no rule allows it");
		}
		check_choices(p, (enum plan_shape)s);
	}
}

/* code counts through all values and all known flags. */
static void
profile_of(unsigned code, struct profile *p)
{
	static const int values[PROFILE_F_COUNT] = {3, 3, 3, 2, 2, 3};

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
	unsigned count = 3 * 3 * 3 * 2 * 2 * 3 * 64 * (unsigned)NAMES;
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
	const struct plan_limits lim = {65000, 8192, true, 0, PLAN_CAN_ALWAYS};
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

/* What is measured against each other is each method at every size, not the cheapest. */
static void
forbidden_methods_are_passed_over(void **state)
{
	struct plan_limits lim = {65000, 8192, true, 0, PLAN_CAN_ALWAYS};
	struct profile p;

	(void)state;
	profile_init(&p);
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_MEMORY, "test");
	lim.forbid = 1U << PLAN_MESSAGE;
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 64, &lim).method, PLAN_APPLIANCE);
	lim.forbid |= 1U << PLAN_APPLIANCE;
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 64, &lim).method, PLAN_GENERAL);
	lim.forbid = 1U << PLAN_APPLIANCE | 1U << PLAN_GENERAL;
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 1U << 20, &lim).method, PLAN_MESSAGE);
	/* What is correct comes first. */
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_PAGE, "test");
	lim.forbid = 1U << PLAN_MESSAGE | 1U << PLAN_GENERAL;
	assert_int_equal(plan_choose(&p, PLAN_SINGLETON, 64, &lim).method, PLAN_MESSAGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_agrees_with_the_oracle),
		cmocka_unit_test(hand_picked_rows),
		cmocka_unit_test(forbidden_methods_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
