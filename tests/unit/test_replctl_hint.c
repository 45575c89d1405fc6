/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A next step can be typed as it stands: what reaches a target has the options that this call was
 * given for that, as words of a shell, and all of them or none.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "hint.h"

static const struct ctl_options given = {.identity = "my key", .known_hosts = "kh"};

#define OPTIONS "--identity 'my key' --known-hosts kh "

static void
expect(const char *text, const char *due)
{
	char out[CTL_NEXT_MAX];

	(void)snprintf(out, sizeof(out), "%s", text);
	hint_complete(out, sizeof(out), &given);
	assert_string_equal(out, due);
}

static void
test_commands(void **state)
{
	(void)state;
	expect("replctl info T/p", "replctl " OPTIONS "info T/p");
	expect("wait, then replctl sync -n ./f T/p (goes on); or replctl bench --quick T",
	       "wait, then replctl " OPTIONS "sync -n ./f T/p (goes on); or replctl " OPTIONS
	       "bench --quick T");
	expect("replctl status --watch T shows it", "replctl " OPTIONS "status --watch T shows it");
	expect("the target's log (replctl why T/p)",
	       "the target's log (replctl " OPTIONS "why T/p)");
}

/* A program by its file: the configuration alone may say where that answers. */
static void
test_of_a_program(void **state)
{
	static const struct ctl_options by_config = {.config = "a.conf", .identity = "key"};
	char out[CTL_NEXT_MAX] =
		"replctl resume FILE T/p; replctl why ./f (or replctl why T/p); replctl help wait";

	(void)state;
	hint_complete(out, sizeof(out), &by_config);
	assert_string_equal(out, "replctl --config a.conf resume FILE T/p; replctl --config a.conf "
				 "why ./f (or replctl --config a.conf --identity key why T/p); "
				 "replctl help wait");
}

static void
test_without_target(void **state)
{
	static const char *const texts[] = {
		"replctl help sync",
		"replctl selftest --seed 3",
		"replctl wait ./f --timeout 60",
		"replctl resume FILE T/p",
		"replctl status './a b'; replctl why /f",
		"replctl status FILE; a faster link",
		"replctl why FILE",
		"not replctl itself",
		"myreplctl info T/p",
		"replctl informs",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect(texts[i], texts[i]);
}

/* The name of a file or pool is no command. */
static void
test_names(void **state)
{
	(void)state;
	expect("replctl verify 'a replctl info b' T/p",
	       "replctl " OPTIONS "verify 'a replctl info b' T/p");
	expect("rm 'it'\\''s replctl info b'.repl; replctl info T/'x y'; replctl list T",
	       "rm 'it'\\''s replctl info b'.repl; replctl " OPTIONS
	       "info T/'x y'; replctl " OPTIONS "list T");
}

static void
test_all_or_none(void **state)
{
	static const char text[] = "replctl info T/p, then replctl list T";
	char out[CTL_NEXT_MAX], path[CTL_NEXT_MAX];
	struct ctl_options o = {.identity = path, .config = "c"};
	unsigned with = 0;

	(void)state;
	for (size_t len = 1; len < sizeof(path); len++) {
		memset(path, 'k', len);
		path[len] = '\0';
		(void)snprintf(out, sizeof(out), "%s", text);
		hint_complete(out, sizeof(out), &o);
		if (strcmp(out, text) != 0) {
			assert_int_equal(strlen(out), strlen(text) + 2 * (strlen("--config c "
										 "--identity  ") +
									  len));
			with++;
		}
	}
	assert_int_equal(with,
			 (CTL_NEXT_MAX - 1 - strlen(text)) / 2 - strlen("--config c --identity  "));
	for (size_t size = sizeof(text); size < sizeof(text) + 30; size++) {
		(void)snprintf(out, sizeof(out), "%s", text);
		path[1] = '\0';
		hint_complete(out, size, &o);
		assert_true(strlen(out) < size);
	}
	expect(text, "replctl " OPTIONS "info T/p, then replctl " OPTIONS "list T");
}

static void
test_none_given(void **state)
{
	static const struct ctl_options none = {.json = true};
	char out[] = "replctl info T/p";

	(void)state;
	hint_complete(out, sizeof(out), &none);
	assert_string_equal(out, "replctl info T/p");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),       cmocka_unit_test(test_of_a_program),
		cmocka_unit_test(test_without_target), cmocka_unit_test(test_names),
		cmocka_unit_test(test_all_or_none),    cmocka_unit_test(test_none_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
