/* SPDX-License-Identifier: BSD-3-Clause */
/* What a configuration file says is taken whole or refused with file, line, key and reason. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conffile.h"

struct thing {
	char *text;
	char *path;
	unsigned number;
	unsigned size;
	int choice;
	unsigned call;
	unsigned list_count;
	char list[4][32];
};

static int
take_call(void *obj, const char *value, struct err *e)
{
	struct thing *t = obj;

	if (strcmp(value, "nomem") == 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	if (strcmp(value, "yes") != 0)
		return err_set(e, REPL_E_INVAL, "not yes");
	t->call++;
	return 0;
}

static int
take_list(void *obj, const char *value, struct err *e)
{
	struct thing *t = obj;

	if (t->list_count == 4)
		return err_set(e, REPL_E_LIMIT, "too many");
	(void)snprintf(t->list[t->list_count++], sizeof(t->list[0]), "%s", value);
	return 0;
}

static const char *const choices[] = {"red", "green", NULL};

static const struct conffile_key keys[] = {
	{"s", "text", CONFFILE_TEXT, offsetof(struct thing, text), 0, 0, NULL, NULL, NULL},
	{"s", "path", CONFFILE_TEXT, offsetof(struct thing, path), 0, 0, NULL,
	 conffile_check_absolute, NULL},
	{"s", "number", CONFFILE_UINT, offsetof(struct thing, number), 1, 64, NULL, NULL, NULL},
	{"s", "size", CONFFILE_SIZE, offsetof(struct thing, size), 4096, 1U << 20, NULL, NULL,
	 NULL},
	{"s", "choice", CONFFILE_CHOICE, offsetof(struct thing, choice), 0, 0, choices, NULL, NULL},
	{"s", "call", CONFFILE_CALL, 0, 0, 0, NULL, NULL, take_call},
	{"s", "list", CONFFILE_LIST, 0, 0, 0, NULL, NULL, take_list},
};

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static char dir[] = "/tmp/test_conffile.XXXXXX";
static char path[64];

static int
make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/f", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* Load len bytes as a file; t is fresh. */
static int
load_bytes(const void *data, size_t len, struct thing *t, struct err *e)
{
	FILE *f = fopen(path, "w");
	int rc;

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	memset(t, 0, sizeof(*t));
	err_clear(e);
	rc = conffile_load(path, keys, KEY_COUNT, t, e);
	assert_int_equal(unlink(path), 0);
	if (rc)
		assert_int_equal(e->code, rc);
	return rc;
}

static void
accept(const char *data, struct thing *t)
{
	struct err e;

	if (load_bytes(data, strlen(data), t, &e))
		fail_msg("refused: %s", e.text);
}

/* The text after "PATH" is exactly want. */
static void
refuse_len(const char *data, size_t len, const char *want)
{
	struct thing t;
	struct err e;

	assert_int_equal(load_bytes(data, len, &t, &e), REPL_E_CONFIG);
	assert_int_equal(strncmp(e.text, path, strlen(path)), 0);
	assert_string_equal(e.text + strlen(path), want);
	conffile_free(keys, KEY_COUNT, &t);
}

static void
refuse(const char *data, const char *want)
{
	refuse_len(data, strlen(data), want);
}

static void
every_type_is_read(void **state)
{
	struct thing t;

	(void)state;
	accept("[s]\ntext = a b\npath=/x\nnumber: 64\nsize = 64KiB\nchoice = green\n"
	       "call = yes\nlist = one\nlist = two\n",
	       &t);
	assert_string_equal(t.text, "a b");
	assert_string_equal(t.path, "/x");
	assert_int_equal(t.number, 64);
	assert_int_equal(t.size, 65536);
	assert_int_equal(t.choice, 1);
	assert_int_equal(t.call, 1);
	assert_int_equal(t.list_count, 2);
	assert_string_equal(t.list[1], "two");
	conffile_free(keys, KEY_COUNT, &t);
	assert_null(t.text);
	assert_null(t.path);
}

static void
comments_blanks_and_line_ends_are_no_matter(void **state)
{
	struct thing t;

	(void)state;
	accept("", &t);
	accept("\xef\xbb\xbf[s] ; section\r\n  ; note\n\t# note\n\n  text = a;b ; note\r\n"
	       "\t number = 2",
	       &t);
	assert_string_equal(t.text, "a;b");
	assert_int_equal(t.number, 2);
	conffile_free(keys, KEY_COUNT, &t);
	/* Indented lines are keys of their own, not more of the value above. */
	accept("[s]\nlist = one\n  list = two\n", &t);
	assert_int_equal(t.list_count, 2);
	assert_string_equal(t.list[1], "two");
}

static void
unknown_names_are_refused(void **state)
{
	(void)state;
	refuse("[s]\nnumber = 1\nnumer = 1\n", ":3: key 'numer': unknown; the keys are: text, "
					       "path, number, size, choice, call, list");
	refuse("number = 1\n", ":1: key 'number': stands before the section [s]");
	refuse("[t]\n\nnumber = 1\n", ":1: section [t] is unknown, it should be [s]");
	refuse("[s]\nnumber = 1\n[t]\n", ":3: section [t] is unknown, it should be [s]");
	refuse("[]\n", ":1: section [] is unknown, it should be [s]");
	refuse("[ s]\n", ":1: section [ s] is unknown, it should be [s]");
	refuse("[s ; t]\n", ":1: section [s ; t] is unknown, it should be [s]");
}

static void
bad_values_are_refused(void **state)
{
	(void)state;
	refuse("[s]\nnumber = 65\n", ":2: key 'number': '65' is not a whole number from 1 to 64");
	refuse("[s]\nnumber = 0\n", ":2: key 'number': '0' is not a whole number from 1 to 64");
	refuse("[s]\nnumber = -1\n", ":2: key 'number': '-1' is not a whole number from 1 to 64");
	refuse("[s]\nnumber = 4x\n", ":2: key 'number': '4x' is not a whole number from 1 to 64");
	refuse("[s]\nnumber = 18446744073709551617\n",
	       ":2: key 'number': '18446744073709551617' is not a whole number from 1 to 64");
	refuse("[s]\nsize = 4095\n",
	       ":2: key 'size': '4095' is not a size from 4096 to 1048576 bytes, such as 65536 or "
	       "64K");
	refuse("[s]\nsize = 4G\n",
	       ":2: key 'size': '4G' is not a size from 4096 to 1048576 bytes, such as 65536 or "
	       "64K");
	refuse("[s]\nchoice = blue\n", ":2: key 'choice': 'blue' is none of red, green");
	refuse("[s]\npath = x\n",
	       ":2: key 'path': 'x' is not an absolute path, which begins with '/'");
	refuse("[s]\ncall = no\n", ":2: key 'call': not yes");
	refuse("[s]\nlist=1\nlist=2\nlist=3\nlist=4\nlist=5\n", ":6: key 'list': too many");
	refuse("[s]\ntext =\n", ":2: key 'text': has no value");
	refuse("[s]\ntext = ; only a comment\n", ":2: key 'text': has no value");
}

static void
a_scalar_given_twice_is_refused(void **state)
{
	(void)state;
	refuse("[s]\nnumber = 1\n\nnumber = 1\n", ":4: key 'number': given before in line 2");
	refuse("[s]\ncall = yes\n[s]\ncall = yes\n", ":4: key 'call': given before in line 2");
}

static void
lines_that_are_no_ini_are_refused(void **state)
{
	static const char why[] = ": neither 'key = value' nor [section] nor a comment";
	char want[128];

	(void)state;
	(void)snprintf(want, sizeof(want), ":2%s", why);
	refuse("[s]\nnumber\n", want);
	refuse("[s]\nnumber ; = 1\n", want);
	/* The first fault of the file is the one that is told. */
	refuse("[s]\nnumber\nnumber = 65\n", want);
	(void)snprintf(want, sizeof(want), ":1%s", why);
	refuse("[s\nnumber = 1\n", want);
	refuse("[s] number = 1\n", ":1: text after a [section]: give it a line of its own");
	refuse("[s];x\n", ":1: text after a [section]: give it a line of its own");
}

static void
nothing_follows_the_first_error(void **state)
{
	static const char data[] = "[s]\nnumber = 65\nlist = later\n";
	struct thing t;
	struct err e;

	(void)state;
	assert_int_equal(load_bytes(data, strlen(data), &t, &e), REPL_E_CONFIG);
	assert_int_equal(t.list_count, 0);
}

static void
binary_bytes_are_refused(void **state)
{
	static const char zero[] = "[s]\ntext = a\0b\n";
	static const char elf[] = "\x7f"
				  "ELF\x02\x01\x01";

	(void)state;
	refuse_len(zero, sizeof(zero) - 1, ":2: byte 0x00 is not text");
	refuse_len(elf, sizeof(elf), ":1: byte 0x7f is not text");
	refuse("[s]\ntext = \033[2J\n", ":2: byte 0x1b is not text");
}

static void
same_value(const char *front, const char *value, const char *behind)
{
	char data[3 * CONFFILE_TEXT_MAX];
	struct thing t;

	(void)snprintf(data, sizeof(data), "[s]\n%s%s%s\nnumber = 3\n", front, value, behind);
	accept(data, &t);
	assert_string_equal(t.text, value);
	assert_int_equal(t.number, 3);
	conffile_free(keys, KEY_COUNT, &t);
}

/* Whatever inih holds of a line: lengths around its buffer's, and the longest. */
static void
long_lines_are_never_cut(void **state)
{
	char value[CONFFILE_TEXT_MAX + 1], behind[CONFFILE_TEXT_MAX];

	(void)state;
	for (size_t len = 3; len <= CONFFILE_TEXT_MAX; len += len < 600 || len > 4090 ? 1 : 97) {
		for (size_t i = 0; i < len; i++)
			value[i] = (char)('a' + (int)(i % 26));
		for (size_t i = 3; i + 1 < len; i += 7)
			memcpy(value + i, i % 2 ? " " : ";", 1);
		value[len] = '\0';
		(void)snprintf(behind, sizeof(behind), " ;%*s = b", (int)(len / 2), "");
		same_value("text =", value, "");
		same_value("  text\t=\t", value, " \t");
		same_value("text:", value, "\t;= c ; d");
		value[0] = ';';
		same_value("text=", value, behind);
	}
}

static void
what_is_wrong_in_a_long_line_is_told(void **state)
{
	char data[3 * CONFFILE_TEXT_MAX];
	struct thing t;

	(void)state;
	(void)snprintf(data, sizeof(data), "; %0500d\n[s] ; %0500d = 1\nnumber = 3 ; %0500d\n", 7,
		       7, 7);
	accept(data, &t);
	assert_int_equal(t.number, 3);
	(void)snprintf(data, sizeof(data), "[s]\ntext = %0*d\n", (int)CONFFILE_TEXT_MAX + 1, 7);
	refuse(data, ":2: key 'text': value is longer than 4095 bytes");
	(void)snprintf(data, sizeof(data), "[s]\ntext = %0*d\n", 2 * (int)CONFFILE_TEXT_MAX, 7);
	refuse(data, ":2: key 'text': value is longer than 4095 bytes");
	(void)snprintf(data, sizeof(data), "[s]\ntext = ; %0500d\n", 7);
	refuse(data, ":2: key 'text': has no value");
	(void)snprintf(data, sizeof(data), "[s]\ntext %*s= a\nnumber = 3\n", 500, "");
	refuse(data, ":2: neither 'key = value' nor [section] nor a comment");
	(void)snprintf(data, sizeof(data), "[s]\n%0500d\ntext = a\n", 7);
	refuse(data, ":2: neither 'key = value' nor [section] nor a comment");
	(void)snprintf(data, sizeof(data), "[%0500d]\ntext = a\n", 7);
	refuse(data, ":1: section [0000000000000000000000000000000000000000000000000000000000000000"
		     "0000000000000000...] is unknown, it should be [s]");
	(void)snprintf(data, sizeof(data), "[s]\ntext = %0500d\ntext = a\n", 7);
	refuse(data, ":3: key 'text': given before in line 2");
	(void)snprintf(data, sizeof(data), "[s]\ntext ;a = %0500d\n", 7);
	refuse(data, ":2: neither 'key = value' nor [section] nor a comment");
	(void)snprintf(data, sizeof(data), "[s]\ntext = %0500d\001\n", 7);
	refuse(data, ":2: byte 0x01 is not text");
}

static void
long_values_are_shown_in_part(void **state)
{
	char data[256], want[256];

	(void)state;
	(void)snprintf(data, sizeof(data), "[s]\nnumber = %0150d\n", 65);
	(void)snprintf(want, sizeof(want),
		       ":2: key 'number': '%080d...' is not a whole number from 1 to 64", 0);
	refuse(data, want);
}

static void
files_that_are_no_files_are_refused(void **state)
{
	struct rlimit files, none;
	char want[256];
	struct thing t = {0};
	struct err e;

	(void)state;
	assert_int_equal(conffile_load(path, keys, KEY_COUNT, &t, &e), REPL_E_CONFIG);
	(void)snprintf(want, sizeof(want), "%s: No such file or directory", path);
	assert_string_equal(e.text, want);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){0, files.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	/* Nothing that could be corrected in the file. */
	assert_int_equal(conffile_load(dir, keys, KEY_COUNT, &t, &e), REPL_E_LIMIT);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_non_null(strstr(e.text, "RLIMIT_NOFILE"));
	assert_int_equal(conffile_load(dir, keys, KEY_COUNT, &t, &e), REPL_E_CONFIG);
	(void)snprintf(want, sizeof(want), "%s: is a directory", dir);
	assert_string_equal(e.text, want);

	assert_int_equal(mkfifo(path, 0600), 0);
	(void)alarm(5); /* a FIFO that is waited for ends the test */
	assert_int_equal(conffile_load(path, keys, KEY_COUNT, &t, &e), REPL_E_CONFIG);
	(void)alarm(0);
	(void)snprintf(want, sizeof(want), "%s: is not a regular file", path);
	assert_string_equal(e.text, want);
	assert_int_equal(unlink(path), 0);

	assert_int_equal(conffile_load("/dev/zero", keys, KEY_COUNT, &t, &e), REPL_E_CONFIG);
	assert_string_equal(e.text, "/dev/zero: is not a regular file");
}

static void
a_huge_file_is_refused(void **state)
{
	char *data = malloc(CONFFILE_SIZE_MAX + 1);
	struct thing t;
	struct err e;

	(void)state;
	assert_non_null(data);
	memset(data, '\n', CONFFILE_SIZE_MAX + 1);
	refuse_len(data, CONFFILE_SIZE_MAX + 1, ": is larger than 1048576 bytes");
	assert_int_equal(load_bytes(data, CONFFILE_SIZE_MAX, &t, &e), 0);
	free(data);
}

static void
a_key_is_set_by_name(void **state)
{
	struct thing t = {0};
	char big[CONFFILE_TEXT_MAX + 2];
	struct err e;

	(void)state;
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "text", "a", &e), 0);
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "text", "b", &e), 0);
	assert_string_equal(t.text, "b");
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "number", "x", &e), REPL_E_CONFIG);
	assert_string_equal(e.text, "key 'number': 'x' is not a whole number from 1 to 64");
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "text", "a\nb", &e), REPL_E_CONFIG);
	assert_string_equal(e.text, "key 'text': value has the control character 0x0a");
	assert_string_equal(t.text, "b");
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "text", big, &e), REPL_E_CONFIG);
	assert_string_equal(e.text, "key 'text': value is longer than 4095 bytes");
	big[CONFFILE_TEXT_MAX] = '\0';
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "text", big, &e), 0);
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "a\nb", "1", &e), REPL_E_CONFIG);
	assert_int_equal(strncmp(e.text, "key 'a?b': unknown; ", 20), 0);
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "call", "no", &e), REPL_E_CONFIG);
	assert_int_equal(e.code, REPL_E_CONFIG);
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "call", "nomem", &e), REPL_E_NOMEM);
	assert_int_equal(conffile_set(keys, KEY_COUNT, &t, "s", "number", "x", NULL),
			 REPL_E_CONFIG);
	conffile_free(keys, KEY_COUNT, &t);
	conffile_free(keys, KEY_COUNT, &t);
}

static void
sizes_are_read_exactly(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{"0", 0},
		{"64", 64},
		{"4K", 4096},
		{"4k", 4096},
		{"16MiB", 16U << 20},
		{"2G", 2ULL << 30},
		{"3T", 3ULL << 40},
		{"18446744073709551615", UINT64_MAX},
		{"16777215T", 16777215ULL << 40},
	};
	static const char *const bad[] = {
		"",   " 1",    "1 ",   "-1", "+1",   "K",   "1KB",       "1Ki",
		"1B", "1KiBx", "0x10", "1P", "1.5G", "1k1", "16777216T", "18446744073709551616",
	};
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(parse_size(good[i].text, &v), 0);
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse_size(bad[i], &v), -1);
}

static void
numbers_are_read_exactly(void **state)
{
	unsigned v;

	(void)state;
	assert_int_equal(parse_uint("4294967295", UINT_MAX, &v), 0);
	assert_int_equal(v, UINT_MAX);
	assert_int_equal(parse_uint("4294967296", UINT_MAX, &v), -1);
	assert_int_equal(parse_uint("", UINT_MAX, &v), -1);
	assert_int_equal(parse_uint(" 1", UINT_MAX, &v), -1);
	assert_int_equal(parse_uint("8", 7, &v), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_read),
		cmocka_unit_test(comments_blanks_and_line_ends_are_no_matter),
		cmocka_unit_test(unknown_names_are_refused),
		cmocka_unit_test(bad_values_are_refused),
		cmocka_unit_test(a_scalar_given_twice_is_refused),
		cmocka_unit_test(lines_that_are_no_ini_are_refused),
		cmocka_unit_test(nothing_follows_the_first_error),
		cmocka_unit_test(binary_bytes_are_refused),
		cmocka_unit_test(long_lines_are_never_cut),
		cmocka_unit_test(what_is_wrong_in_a_long_line_is_told),
		cmocka_unit_test(long_values_are_shown_in_part),
		cmocka_unit_test(files_that_are_no_files_are_refused),
		cmocka_unit_test(a_huge_file_is_refused),
		cmocka_unit_test(a_key_is_set_by_name),
		cmocka_unit_test(sizes_are_read_exactly),
		cmocka_unit_test(numbers_are_read_exactly),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
