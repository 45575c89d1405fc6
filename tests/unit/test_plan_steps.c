/* SPDX-License-Identifier: BSD-3-Clause */
/* Each row runs on today's fabrics by a method that is correct there, and by no step less. */
#include "unit.h"

#include <stdio.h>

#include "plan.h"

static struct profile
profile_of_row(const struct taxonomy_row *row, enum profile_provider provider)
{
	struct profile p;

	profile_init(&p);
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA, "test");
	profile_set(&p, PROFILE_F_DOMAIN, (int)row->key.domain, "test");
	profile_set(&p, PROFILE_F_DDIO, (int)row->key.ddio, "test");
	profile_set(&p, PROFILE_F_RQWRB, (int)row->key.rqwrb, "test");
	profile_set(&p, PROFILE_F_PROVIDER, (int)provider, "test");
	(void)strcpy(p.provider_name, provider == PROFILE_PROVIDER_SOFTWARE ? "tcp" : "verbs");
	return p;
}

static void
today(const struct plan_steps *s, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned i = 0; s->steps[i] != STEP_END; i++) {
		int len = snprintf(buf + used, size - used, "%s%s", used ? " " : "",
				   plan_step_word(s->steps[i]));

		assert_true(len > 0 && (size_t)len < size - used);
		used += (size_t)len;
	}
}

static const struct plan_sizes sizes = {64, 8};

static void
every_row_runs_as_it_stands_but_for_the_atomic_write(void **state)
{
	char steps[256];

	(void)state;
	for (unsigned i = 0; i < TAXONOMY_ROWS; i++) {
		const struct taxonomy_row *row = taxonomy_row(i);
		struct profile p = profile_of_row(row, PROFILE_PROVIDER_IB);
		struct plan_verdict verdict;
		struct plan_steps s;

		plan_steps(&p, row->key.op, row->key.update, &sizes, &s);
		assert_ptr_equal(s.row, row);
		today(&s, steps, sizeof(steps));
		assert_null(strstr(steps, "flush "));
		assert_null(strstr(steps, "atomic"));
		if (row->key.domain == PROFILE_DMP && row->key.ddio == PROFILE_DDIO_OFF &&
		    row->key.op == TAXONOMY_WRITE && row->key.update == TAXONOMY_COMPOUND) {
			assert_string_equal(steps, "write(a) read comp write(b) read comp");
			assert_int_equal(s.note_count, 1);
		} else {
			for (unsigned n = 0; n == 0 || row->steps[n - 1] != STEP_END; n++)
				assert_int_equal(s.steps[n], row->steps[n]);
			assert_int_equal(s.note_count, 0);
		}
		/* What carries it is right there. */
		verdict = plan_judge(&p, s.method,
				     row->key.update == TAXONOMY_COMPOUND ? PLAN_COMPOUND
									  : PLAN_SINGLETON);
		assert_true(verdict.allowed);
	}
}

struct expected {
	enum profile_domain domain;
	enum profile_ddio ddio;
	enum profile_rqwrb rqwrb;
	enum profile_provider provider;
	enum taxonomy_op op;
	enum taxonomy_update update;
	const char *steps;
	enum plan_method method;
};

static const struct expected expected[] = {
	/* The method is told from how the row begins and ends. */
	{PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IB, TAXONOMY_WRITE,
	 TAXONOMY_SINGLETON, "write(a) send(&a) rsp-flush(&a) ack", PLAN_GENERAL},
	{PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_RQWRB_PM, PROFILE_PROVIDER_IB, TAXONOMY_WRITEIMM,
	 TAXONOMY_SINGLETON, "writeimm(a) rsp-flush(&a) ack", PLAN_WRITE_IMM},
	{PROFILE_DMP, PROFILE_DDIO_ON, PROFILE_RQWRB_PM, PROFILE_PROVIDER_IB, TAXONOMY_SEND,
	 TAXONOMY_COMPOUND, "send(a,b) rsp-copy(a,b) rsp-flush(a,b) ack", PLAN_MESSAGE},
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IB, TAXONOMY_WRITE,
	 TAXONOMY_SINGLETON, "write(a) read comp", PLAN_APPLIANCE},
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IB, TAXONOMY_WRITEIMM,
	 TAXONOMY_COMPOUND, "writeimm(a) read comp writeimm(b) read comp", PLAN_WRITE_IMM_READ},
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_RQWRB_PM, PROFILE_PROVIDER_IWARP, TAXONOMY_SEND,
	 TAXONOMY_SINGLETON, "send(a) read comp", PLAN_DEPOSIT},
	{PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_RQWRB_PM, PROFILE_PROVIDER_IB, TAXONOMY_SEND,
	 TAXONOMY_COMPOUND, "send(a,b) comp", PLAN_DEPOSIT_COMPLETION},
	{PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IB, TAXONOMY_WRITE,
	 TAXONOMY_COMPOUND, "write(a) write(b) comp", PLAN_COMPLETION},
	{PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IB, TAXONOMY_WRITEIMM,
	 TAXONOMY_SINGLETON, "writeimm(a) comp", PLAN_COMPLETION},
	/* iWARP: WSP behaves as MHP. */
	{PROFILE_WSP, PROFILE_DDIO_ON, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IWARP, TAXONOMY_WRITE,
	 TAXONOMY_SINGLETON, "write(a) read comp", PLAN_APPLIANCE},
	{PROFILE_WSP, PROFILE_DDIO_OFF, PROFILE_RQWRB_PM, PROFILE_PROVIDER_IWARP, TAXONOMY_SEND,
	 TAXONOMY_COMPOUND, "send(a,b) read comp", PLAN_DEPOSIT},
	{PROFILE_WSP, PROFILE_DDIO_OFF, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IWARP,
	 TAXONOMY_WRITEIMM, TAXONOMY_COMPOUND, "writeimm(a) writeimm(b) read comp",
	 PLAN_WRITE_IMM_READ},
	/* ... which has nothing to say under DMP. */
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_IWARP, TAXONOMY_WRITE,
	 TAXONOMY_SINGLETON, "write(a) read comp", PLAN_APPLIANCE},
	/* A software provider writes by the CPU, DDIO or not. */
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_RQWRB_DRAM, PROFILE_PROVIDER_SOFTWARE,
	 TAXONOMY_WRITE, TAXONOMY_SINGLETON, "write(a) send(&a) rsp-flush(&a) ack", PLAN_GENERAL},
	{PROFILE_DMP, PROFILE_DDIO_OFF, PROFILE_RQWRB_PM, PROFILE_PROVIDER_SOFTWARE, TAXONOMY_SEND,
	 TAXONOMY_SINGLETON, "send(a) rsp-copy(a) rsp-flush(&a) ack", PLAN_MESSAGE},
};

static void
the_rules_change_what_they_must(void **state)
{
	char steps[256];

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct expected *x = &expected[i];
		struct taxonomy_row row = {.key = {x->domain, x->ddio, x->rqwrb, x->op, x->update}};
		struct profile p = profile_of_row(&row, x->provider);
		struct plan_steps s;

		plan_steps(&p, x->op, x->update, &sizes, &s);
		today(&s, steps, sizeof(steps));
		if (strcmp(steps, x->steps) != 0 || s.method != x->method)
			fail_msg("%zu: %s by %s", i, steps, plan_method_name(s.method));
	}
}

static void
b_of_more_than_8_bytes_waits_for_that_reason(void **state)
{
	const struct taxonomy_row *row = taxonomy_row(13);
	struct profile p = profile_of_row(row, PROFILE_PROVIDER_IB);
	const struct plan_sizes large = {64, 9};
	struct plan_steps s;

	(void)state;
	plan_steps(&p, row->key.op, row->key.update, &large, &s);
	assert_non_null(strstr(s.notes[0], "more than 8 bytes"));
	plan_steps(&p, row->key.op, row->key.update, &sizes, &s);
	assert_non_null(strstr(s.notes[0], "no fabric has an atomic write"));
}

static void
a_page_pool_is_always_synced_by_the_target(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TAXONOMY_ROWS; i++) {
		const struct taxonomy_row *row = taxonomy_row(i);

		for (int provider = 0; provider < 3; provider++) {
			struct profile p = profile_of_row(row, (enum profile_provider)provider);
			struct plan_steps s;
			unsigned n = 0;

			profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_PAGE, "test");
			plan_steps(&p, row->key.op, row->key.update, &sizes, &s);
			while (s.steps[n + 1] != STEP_END)
				n++;
			assert_int_equal(s.steps[n], STEP_ACK);
			assert_true(plan_judge(&p, s.method, PLAN_COMPOUND).allowed);
			assert_true(s.note_count > 0);
			/* Behind the kernel's back a sync sees nothing. */
			if (provider != PROFILE_PROVIDER_SOFTWARE)
				assert_int_equal(s.method, PLAN_MESSAGE);
		}
	}
}

static void
memory_is_durable_when_visible(void **state)
{
	const struct taxonomy_row *row = taxonomy_row(0);
	struct profile p = profile_of_row(row, PROFILE_PROVIDER_SOFTWARE);
	struct plan_steps s;

	(void)state;
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_MEMORY, "test");
	plan_steps(&p, TAXONOMY_WRITE, TAXONOMY_SINGLETON, &sizes, &s);
	assert_int_equal(s.method, PLAN_APPLIANCE);
	assert_int_equal(s.row->key.domain, PROFILE_MHP);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_runs_as_it_stands_but_for_the_atomic_write),
		cmocka_unit_test(the_rules_change_what_they_must),
		cmocka_unit_test(b_of_more_than_8_bytes_waits_for_that_reason),
		cmocka_unit_test(a_page_pool_is_always_synced_by_the_target),
		cmocka_unit_test(memory_is_durable_when_visible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
