/* SPDX-License-Identifier: BSD-3-Clause */
/* Every status has a name, a text and an exit status, and names map back. */
#include "unit.h"

#include <errno.h>

#include "err.h"

static void
names_map_back(void **state)
{
	(void)state;
	for (int code = 0; code >= REPL_E_DIFFER; code--) {
		assert_int_equal(err_by_name(err_name(code)), code);
		assert_string_not_equal(repl_strstatus(code), "unknown status");
	}
	assert_string_equal(err_name(REPL_E_NOT_FOUND), "not-found");
	assert_string_equal(repl_strstatus(REPL_E_DIFFER - 1), "unknown status");
	assert_int_equal(err_exit_status(REPL_E_TIMEOUT), 9);
}

static void
prefix_keeps_cause_and_code(void **state)
{
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(err_errno(&e, REPL_E_IO, EIO, "%s", "read"), REPL_E_IO);
	assert_int_equal(err_prefix(&e, "pool %s", "p"), REPL_E_IO);
	assert_string_equal(e.text, "pool p: read: Input/output error");
	assert_int_equal(e.errnum, EIO);
	(void)err_errno(&e, REPL_E_LIMIT, EMFILE, "f");
	assert_string_equal(e.text, "f: Too many open files: raise the limit, RLIMIT_NOFILE");
	(void)err_because(&e, REPL_REASON_LOCAL);
	(void)err_set(&e, REPL_E_IO, "g");
	assert_int_equal(e.errnum, 0);
	assert_int_equal(e.reason, REPL_REASON_NONE);
}

static void
suffix_keeps_all_but_the_text(void **state)
{
	struct err e;

	(void)state;
	(void)err_errno(&e, REPL_E_REFUSED, EACCES, "f");
	(void)err_because(&e, REPL_REASON_PROMOTED);
	e.by_target = true;
	assert_int_equal(err_suffix(&e, "; next: %s", "n"), REPL_E_REFUSED);
	assert_string_equal(e.text, "f: Permission denied; next: n");
	assert_int_equal(e.reason, REPL_REASON_PROMOTED);
	assert_int_equal(e.errnum, EACCES);
	assert_true(e.by_target);
	for (int i = 0; i < ERR_TEXT_MAX; i++)
		(void)err_suffix(&e, "ab");
	assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
	assert_int_equal(err_suffix(NULL, "x"), REPL_E_FAILED);
}

static void
a_thread_names_the_limits(void **state)
{
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(err_thread(&e, EAGAIN, "a thread"), REPL_E_LIMIT);
	assert_non_null(strstr(e.text, "starting a thread: "));
	assert_non_null(strstr(e.text, "RLIMIT_DATA"));
	assert_non_null(strstr(e.text, "RLIMIT_NPROC"));
	assert_int_equal(err_thread(&e, EPERM, "a thread"), REPL_E_LIMIT);
	assert_string_equal(e.text, "starting a thread: Operation not permitted");
}

/* What the kernel says of a disk or of a file system that is damaged is no other failure. */
static void
a_damaged_file_system_is_an_io_error(void **state)
{
	static const int io[] = {EIO, EROFS, EUCLEAN, EBADMSG, ESTALE, EREMOTEIO};

	(void)state;
	for (size_t i = 0; i < sizeof(io) / sizeof(io[0]); i++)
		assert_int_equal(err_from_errno(io[i]), REPL_E_IO);
	assert_int_equal(err_from_errno(ENODATA), REPL_E_FAILED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_map_back),
		cmocka_unit_test(prefix_keeps_cause_and_code),
		cmocka_unit_test(suffix_keeps_all_but_the_text),
		cmocka_unit_test(a_thread_names_the_limits),
		cmocka_unit_test(a_damaged_file_system_is_an_io_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
