/* SPDX-License-Identifier: BSD-3-Clause */
/* What is not known of a target, or makes no sense, counts as the value that is safe. */
#include "unit.h"

#include "profile.h"

static const int safe[PROFILE_F_COUNT] = {
	[PROFILE_F_GRANULARITY] = PROFILE_GRAN_PAGE,
	[PROFILE_F_CLASS] = PROFILE_CLASS_PAGE,
	[PROFILE_F_DOMAIN] = PROFILE_DMP,
	[PROFILE_F_DDIO] = PROFILE_DDIO_ON,
	[PROFILE_F_RQWRB] = PROFILE_RQWRB_DRAM,
	[PROFILE_F_PROVIDER] = PROFILE_PROVIDER_SOFTWARE,
	[PROFILE_F_FLUSH] = PROFILE_FLUSH_NO,
};

static void
unknown_and_wild_values_are_safe(void **state)
{
	static const int wild[] = {-1, 3, 99, INT32_MIN, INT32_MAX};
	struct profile p;

	(void)state;
	profile_init(&p);
	for (int i = 0; i < PROFILE_F_COUNT; i++) {
		enum profile_field f = (enum profile_field)i;

		assert_false(p.known[f]);
		assert_int_equal(p.value[f], safe[f]);
		assert_string_equal(p.source[f], "not probed");
		p.value[f] = 1; /* as a peer may send it, with known false */
		assert_int_equal(profile_get(&p, f), safe[f]);
		for (size_t w = 0; w < sizeof(wild) / sizeof(wild[0]); w++) {
			profile_set(&p, f, wild[w], "a peer");
			assert_int_equal(profile_get(&p, f), safe[f]);
		}
		profile_set(&p, f, 1, "evidence");
		assert_int_equal(profile_get(&p, f), 1);
	}
}

static void
names_map_back(void **state)
{
	(void)state;
	for (int i = 0; i < PROFILE_F_COUNT; i++) {
		enum profile_field f = (enum profile_field)i;
		const char *name;

		assert_int_equal(profile_field_by_name(profile_field_name(f)), f);
		for (int v = 0; (name = profile_value_name(f, v)); v++)
			assert_int_equal(profile_value_by_name(f, name), v);
		assert_null(profile_value_name(f, -1));
		assert_null(profile_value_name(f, 3));
		assert_int_equal(profile_value_by_name(f, ""), -1);
	}
	assert_int_equal(profile_field_by_name("colour"), -1);
	assert_string_equal(profile_value_name(PROFILE_F_GRANULARITY, PROFILE_GRAN_CACHE_LINE),
			    "cache-line");
	assert_string_equal(profile_value_name(PROFILE_F_CLASS, PROFILE_CLASS_MEMORY), "memory");
	assert_string_equal(profile_value_name(PROFILE_F_DOMAIN, PROFILE_WSP), "wsp");
	assert_string_equal(profile_value_name(PROFILE_F_DDIO, PROFILE_DDIO_OFF), "off");
	assert_null(profile_value_name(PROFILE_F_DDIO, 2));
}

static void
text_names_source_and_assumption(void **state)
{
	struct profile p;
	char text[2048];
	char cut[20];
	size_t len;

	(void)state;
	profile_init(&p);
	(void)strcpy(p.provider_name, "tcp");
	profile_set(&p, PROFILE_F_DDIO, PROFILE_DDIO_OFF, "repld.conf: ddio");
	len = profile_format(&p, text, sizeof(text));
	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "provider = tcp\n"));
	assert_non_null(strstr(text, "filesystem = unknown\n"));
	assert_non_null(strstr(text, "\nddio = off (repld.conf: ddio)\n"));
	assert_non_null(strstr(text, "\npersistence-domain = dmp (assumed: not probed)\n"));
	assert_int_equal(profile_format(&p, cut, sizeof(cut)), len);
	assert_memory_equal(cut, text, sizeof(cut) - 1);
	assert_int_equal(cut[sizeof(cut) - 1], '\0');
	assert_int_equal(profile_format(&p, NULL, 0), len);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_and_wild_values_are_safe),
		cmocka_unit_test(names_map_back),
		cmocka_unit_test(text_names_source_and_assumption),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
