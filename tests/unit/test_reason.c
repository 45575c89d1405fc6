/* SPDX-License-Identifier: BSD-3-Clause */
/* Each reason has a name of its own, a meaning and a next step; what fails finds the right one; the
 * table of docs/RELIABILITY.md is this one. */
#include "unit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "reason.h"

static void
all_rows_are_whole(void **state)
{
	(void)state;
	for (int i = 0; i < REPL_REASON_COUNT; i++) {
		assert_true(reason_name(i)[0] != '\0');
		assert_true(strlen(reason_meaning(i)) > 5);
		assert_true(strlen(reason_next(i)) > 5);
		/* Also tells two rows of one name apart. */
		assert_int_equal(reason_by_name(reason_name(i)), i);
		for (const char *c = reason_name(i); *c; c++)
			assert_true(islower((unsigned char)*c) || *c == '-');
	}
	assert_string_equal(reason_name(-1), "failed");
	assert_string_equal(reason_name(REPL_REASON_COUNT), "failed");
	assert_int_equal(reason_by_name("no such"), REPL_REASON_FAILED);
}

/* With a comma behind it a command names another pool: sync would make that. */
static void
commands_end_at_their_words(void **state)
{
	static const char *const words[] = {"TARGET/POOL,", "TARGET,", "FILE,", "SIZE,"};

	(void)state;
	for (int i = 0; i < REPL_REASON_COUNT; i++)
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
			assert_null(strstr(reason_next(i), words[w]));
}

static enum repl_reason
of(int code, const char *text, enum reason_phase phase)
{
	struct err e;

	err_clear(&e);
	if (code)
		(void)err_set(&e, code, "%s", text);
	return reason_of_error(&e, phase);
}

static enum repl_reason
of_known(int code, enum repl_reason reason, enum reason_phase phase)
{
	struct err e;

	(void)err_set(&e, code, "x");
	assert_int_equal(err_because(&e, reason), code);
	(void)err_prefix(&e, "a");
	return reason_of_error(&e, phase);
}

static enum repl_reason
of_target(int code, enum reason_phase phase)
{
	struct err e;

	(void)err_set(&e, code, "x");
	e.by_target = true;
	return reason_of_error(&e, phase);
}

static void
errors_find_theirs(void **state)
{
	(void)state;
	assert_int_equal(of(REPL_E_UNREACHABLE, "", REASON_CONNECT), REPL_REASON_UNREACHABLE);
	assert_int_equal(of(REPL_E_TIMEOUT, "", REASON_CONNECT), REPL_REASON_TIMED_OUT);
	assert_int_equal(of(REPL_E_TIMEOUT, "", REASON_USE), REPL_REASON_NOT_ANSWERING);
	assert_int_equal(of(REPL_E_AUTH, "", REASON_CONNECT), REPL_REASON_LOGIN_REFUSED);
	assert_int_equal(of_known(REPL_E_AUTH, REPL_REASON_HOST_KEY, REASON_CONNECT),
			 REPL_REASON_HOST_KEY);
	assert_int_equal(of_known(REPL_E_TIMEOUT, REPL_REASON_LAG, REASON_USE), REPL_REASON_LAG);
	assert_int_equal(of(REPL_E_NOT_FOUND, "", REASON_OPEN), REPL_REASON_POOL_MISSING);
	assert_int_equal(of(REPL_E_NOT_FOUND, "", REASON_CONNECT), REPL_REASON_LOCAL);
	assert_int_equal(of(REPL_E_REFUSED, "no regular file", REASON_OPEN), REPL_REASON_REFUSED);
	assert_int_equal(of(REPL_E_DIVERGED, "x have diverged", REASON_OPEN), REPL_REASON_DIVERGED);
	assert_int_equal(of(REPL_E_NOSPC, "", REASON_RESYNC), REPL_REASON_TARGET_FULL);
	assert_int_equal(of(REPL_E_IO, "", REASON_USE), REPL_REASON_TARGET_IO);
	assert_int_equal(of(REPL_E_LOST, "", REASON_USE), REPL_REASON_CONNECTION_LOST);
	assert_int_equal(of(REPL_OK, "", REASON_USE), REPL_REASON_NONE);
	/* What the target says before a pool is open is no fault of this machine. */
	assert_int_equal(of(REPL_E_IO, "", REASON_CONNECT), REPL_REASON_LOCAL);
	assert_int_equal(of_target(REPL_E_IO, REASON_CONNECT), REPL_REASON_TARGET_IO);
	assert_int_equal(of_target(REPL_E_LIMIT, REASON_CONNECT), REPL_REASON_TARGET_LIMIT);
	assert_int_equal(of(REPL_E_LIMIT, "", REASON_OPEN), REPL_REASON_LOCAL);
	assert_int_equal(of_target(REPL_E_LIMIT, REASON_OPEN), REPL_REASON_TARGET_LIMIT);
	assert_int_equal(of(REPL_E_LIMIT, "", REASON_USE), REPL_REASON_TARGET_LIMIT);
	assert_int_equal(of_target(REPL_E_NOT_FOUND, REASON_CONNECT), REPL_REASON_CONFIG);
	assert_int_equal(of_target(REPL_E_LOST, REASON_USE), REPL_REASON_TARGET_IO);
	assert_int_equal(of_target(REPL_E_NOMEM, REASON_OPEN), REPL_REASON_TARGET_LIMIT);
	/* No status is taken for a replica that is well. */
	for (int code = -1; code >= REPL_E_DIFFER; code--)
		for (int phase = REASON_CONNECT; phase <= REASON_RESYNC; phase++)
			assert_int_not_equal(of(code, "x", (enum reason_phase)phase),
					     REPL_REASON_NONE);
}

/* As the target tells them that does not give a reason beside, and no other words. */
static const struct {
	int code;
	const char *text;
	enum repl_reason reason;
} told_in_words[] = {
	{REPL_E_REFUSED, "pool 'p' was promoted; it is the primary now and takes no replication",
	 REPL_REASON_PROMOTED},
	{REPL_E_DIVERGED, "the replica is newer than the data of who wants to write: it was",
	 REPL_REASON_BEHIND},
	{REPL_E_DIVERGED, "and x have no generation in common", REPL_REASON_UNRELATED},
};

static void
words_count_of_a_target_without_reasons(void **state)
{
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(told_in_words) / sizeof(told_in_words[0]); i++) {
		(void)err_set(&e, told_in_words[i].code, "%s", told_in_words[i].text);
		assert_int_not_equal(reason_of_error(&e, REASON_OPEN), told_in_words[i].reason);
		e.by_target = true;
		assert_int_equal(reason_of_error(&e, REASON_OPEN), told_in_words[i].reason);
		assert_int_not_equal(reason_of_error(&e, REASON_USE), told_in_words[i].reason);
		/* What it gives goes before what it says. */
		(void)err_because(&e, REPL_REASON_CONFIG);
		assert_int_equal(reason_of_error(&e, REASON_OPEN), REPL_REASON_CONFIG);
	}
}

static void
peers_give_reasons_of_their_own_side(void **state)
{
	static const enum repl_reason of_this_side[] = {
		REPL_REASON_NONE,          REPL_REASON_CONNECTING,      REPL_REASON_UNREACHABLE,
		REPL_REASON_LOGIN_REFUSED, REPL_REASON_HOST_KEY,        REPL_REASON_TIMED_OUT,
		REPL_REASON_DATA_PORT,     REPL_REASON_CONNECTION_LOST, REPL_REASON_NOT_ANSWERING,
		REPL_REASON_PROTOCOL,      REPL_REASON_REFUSED,         REPL_REASON_PAUSED,
		REPL_REASON_LAG,           REPL_REASON_RESYNCING,       REPL_REASON_LOCAL,
		REPL_REASON_FAILED,
	};
	const size_t count = sizeof(of_this_side) / sizeof(of_this_side[0]);

	(void)state;
	for (int i = 0; i < REPL_REASON_COUNT; i++) {
		enum repl_reason want = (enum repl_reason)i;

		for (size_t k = 0; k < count; k++)
			if (of_this_side[k] == (enum repl_reason)i)
				want = REPL_REASON_NONE;
		if (reason_by_peer(reason_name(i)) != want)
			fail_msg("%s", reason_name(i));
		assert_true(strlen(reason_name(i)) <= REASON_NAME_MAX);
	}
	assert_int_equal(reason_by_peer("a-later-one"), REPL_REASON_NONE);
	assert_int_equal(reason_by_peer(""), REPL_REASON_NONE);
}

static void
judge_and_sidecar(void **state)
{
	struct sidecar s = {.state = SIDECAR_UP_TO_DATE};

	(void)state;
	assert_int_equal(reason_of_judge(JUDGE_NEWER), REPL_REASON_BEHIND);
	assert_int_equal(reason_of_judge(JUDGE_OTHER_POOL), REPL_REASON_UNRELATED);
	assert_int_equal(reason_of_judge(JUDGE_SAME), REPL_REASON_NONE);
	assert_int_equal(reason_of_sidecar(&s), REPL_REASON_NONE);
	s.state = SIDECAR_UNKNOWN;
	assert_int_equal(reason_of_sidecar(&s), REPL_REASON_WRITER_GONE);
	s.state = SIDECAR_INCONSISTENT;
	assert_int_equal(reason_of_sidecar(&s), REPL_REASON_INCONSISTENT);
	s.primary = true;
	assert_int_equal(reason_of_sidecar(&s), REPL_REASON_PROMOTED);
}

static void
names_take_their_places(void **state)
{
	struct reason_names names = {.file = "/p/a", .target = "h", .replica = "h/a"};
	char out[256], small[8];

	(void)state;
	reason_next_for(REPL_REASON_BEHIND, &names, out, sizeof(out));
	assert_string_equal(out, "when the program that has /p/a open has ended, to take the "
				 "replica's data: replctl restore --force h/a /p/a");
	names.replica = "h/it's a";
	reason_next_for(REPL_REASON_BEHIND, &names, out, sizeof(out));
	assert_string_equal(out, "when the program that has /p/a open has ended, to take the "
				 "replica's data: replctl restore --force 'h/it'\\''s a' /p/a");
	names.replica = "h/a";
	names.file = NULL;
	reason_next_for(REPL_REASON_PAUSED, &names, out, sizeof(out));
	assert_string_equal(out, "replctl resume FILE h/a");
	reason_next_for(REPL_REASON_PAUSED, &names, small, sizeof(small));
	assert_string_equal(small, "replctl");
}

static void
document_has_the_table(void **state)
{
	FILE *f = fopen(REPL_SOURCE_DIR "/docs/RELIABILITY.md", "r");
	static char text[1 << 18], row[2048];
	size_t len;

	(void)state;
	assert_non_null(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[len] = '\0';
	for (int i = 0; i < REPL_REASON_COUNT; i++) {
		(void)snprintf(row, sizeof(row), "| `%s` | %s | %s |\n", reason_name(i),
			       reason_meaning(i), reason_next(i));
		if (!strstr(text, row))
			print_message("docs/RELIABILITY.md lacks: %s", row);
		assert_non_null(strstr(text, row));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_rows_are_whole),
		cmocka_unit_test(commands_end_at_their_words),
		cmocka_unit_test(errors_find_theirs),
		cmocka_unit_test(words_count_of_a_target_without_reasons),
		cmocka_unit_test(peers_give_reasons_of_their_own_side),
		cmocka_unit_test(judge_and_sidecar),
		cmocka_unit_test(names_take_their_places),
		cmocka_unit_test(document_has_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
