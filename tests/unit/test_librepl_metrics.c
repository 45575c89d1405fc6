/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics are well-formed text exposition format: each family has HELP and TYPE once and its
 * samples in a row, labels are escaped, the histogram is cumulative. */
#include "unit.h"

#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statusdoc.h"
#include "tempdir.h"

static struct statusdoc doc;

static char *
metrics_of(const char *pool)
{
	size_t len;
	char *text;

	memset(&doc, 0, sizeof(doc));
	doc.pool = pool;
	doc.size = 4096;
	doc.replica_count = 2;
	(void)strcpy(doc.replica[0], "u@h/p");
	(void)strcpy(doc.replica[1], "[::1]:22/q");
	doc.stat[0].flush_count = 7;
	doc.stat[0].latency_ns[0] = 1;
	doc.stat[0].latency_ns[10] = 3;
	doc.stat[0].latency_ns[REPL_HIST_BUCKETS - 1] = 2;
	doc.stat[0].latency_sum_ns = 1500000000;
	doc.stat[1].replication = REPL_REPL_RESYNCING;
	doc.stat[1].reason_code = REPL_REASON_RESYNCING;
	doc.stat[1].lag_ms = 1500;
	text = statusdoc_metrics(&doc, &len);
	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	return text;
}

static size_t
name_len(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz_");

	assert_true(n > 5 && strncmp(s, "repl_", 5) == 0);
	return n;
}

/* {name="value",...} from s; returns what is behind it. */
static const char *
skip_labels(const char *s)
{
	assert_int_equal(*s, '{');
	do {
		s++;
		assert_true(islower((unsigned char)*s));
		s += strspn(s, "abcdefghijklmnopqrstuvwxyz");
		assert_memory_equal(s, "=\"", 2);
		for (s += 2; *s != '"'; s++) {
			assert_true(*s != '\0' && *s != '\n');
			if (*s == '\\') {
				s++;
				assert_true(*s == '\\' || *s == '"' || *s == 'n');
			}
		}
		s++;
	} while (*s == ',');
	assert_int_equal(*s, '}');
	return s + 1;
}

static bool
of_family(const char *sample, size_t len, const char *family, const char *type)
{
	size_t n = strlen(family);

	if (len < n || strncmp(sample, family, n) != 0)
		return false;
	if (len == n)
		return strcmp(type, "histogram") != 0;
	return strcmp(type, "histogram") == 0 && (strncmp(sample + n, "_bucket", len - n) == 0 ||
						  strncmp(sample + n, "_sum", len - n) == 0 ||
						  strncmp(sample + n, "_count", len - n) == 0);
}

static unsigned
parse(char *text)
{
	char seen[8192] = " ", family[128] = "", type[32] = "", word[160];
	unsigned samples = 0;

	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *end;
		char *number_end;

		if (strncmp(line, "# HELP ", 7) == 0) {
			assert_int_equal(sscanf(line + 7, "%127s", family), 1);
			(void)snprintf(word, sizeof(word), " %s ", family);
			assert_null(strstr(seen, word)); /* once, and in a row */
			(void)strcat(seen, word + 1);
			assert_true(strlen(line) > 7 + strlen(family) + 5);
			type[0] = '\0';
			continue;
		}
		if (strncmp(line, "# TYPE ", 7) == 0) {
			assert_int_equal(sscanf(line + 7, "%127s %31s", word, type), 2);
			assert_string_equal(word, family);
			assert_true(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0 ||
				    strcmp(type, "histogram") == 0);
			end = family + strlen(family) - strlen("_total");
			assert_int_equal(strcmp(type, "counter") == 0, strcmp(end, "_total") == 0);
			continue;
		}
		assert_true(of_family(line, name_len(line), family, type));
		end = skip_labels(line + name_len(line));
		assert_int_equal(*end, ' ');
		(void)strtod(end + 1, &number_end);
		assert_true(number_end > end + 1 && *number_end == '\0');
		samples++;
	}
	return samples;
}

static void
is_well_formed(void **state)
{
	char *text = metrics_of("/p/a.pool");

	(void)state;
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_true(parse(text) > 80);
	free(text);
}

static void
odd_labels_are_escaped(void **state)
{
	char *text = metrics_of("/p/\"a\\b\n\x80\033[2J");

	(void)state;
	assert_non_null(strstr(text, "pool=\"/p/\\\"a\\\\b???[2J\""));
	assert_true(parse(text) > 80);
	free(text);
}

static void
values_are_right(void **state)
{
	char *text = metrics_of("/p");

	(void)state;
	assert_non_null(strstr(text, "repl_flushes_total{pool=\"/p\"} 7\n"));
	assert_non_null(strstr(text, "_bucket{pool=\"/p\",le=\"2e-09\"} 1\n"));
	assert_non_null(strstr(text, "_bucket{pool=\"/p\",le=\"1.024e-06\"} 1\n"));
	assert_non_null(strstr(text, "_bucket{pool=\"/p\",le=\"2.048e-06\"} 4\n"));
	assert_non_null(strstr(text, "_bucket{pool=\"/p\",le=\"+Inf\"} 6\n"));
	assert_non_null(strstr(text, "_seconds_sum{pool=\"/p\"} 1.500000000\n"));
	assert_non_null(strstr(text, "_seconds_count{pool=\"/p\"} 6\n"));
	assert_non_null(strstr(text, "repl_replica_lag_seconds{pool=\"/p\",replica=\"[::1]:22/q\"} "
				     "1.500\n"));
	assert_non_null(strstr(text, "replica=\"[::1]:22/q\",state=\"resyncing\"} 1\n"));
	assert_non_null(strstr(text, "replica=\"u@h/p\",state=\"resyncing\"} 0\n"));
	assert_non_null(strstr(text, "replica=\"[::1]:22/q\",reason=\"resyncing\"} 1\n"));
	free(text);
}

/* In "dir" there is a locale "comma", in which a half is 0,5. */
static int
comma_new(char dir[TEMPDIR_MAX])
{
	char command[512];

	if (tempdir_new(dir, 0))
		return -1;
	(void)snprintf(command, sizeof(command),
		       "localedef -c -i de_DE -f UTF-8 %s/comma >%s/log 2>&1", dir, dir);
	return system(command);
}

static void
a_comma_of_the_program_is_not_ours(void **state)
{
	char dir[TEMPDIR_MAX] = "", half[8];

	(void)state;
	if (comma_new(dir) || setenv("LOCPATH", dir, 1) || !setlocale(LC_ALL, "comma")) {
		tempdir_free(dir);
		skip(); /* no localedef, or no sources of locales */
	}
	(void)snprintf(half, sizeof(half), "%.1f", 0.5);
	assert_string_equal(half, "0,5");
	values_are_right(NULL);
	(void)snprintf(half, sizeof(half), "%.1f", 0.5);
	assert_string_equal(half, "0,5");
	(void)setlocale(LC_ALL, "C");
	tempdir_free(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_well_formed),
		cmocka_unit_test(odd_labels_are_escaped),
		cmocka_unit_test(values_are_right),
		cmocka_unit_test(a_comma_of_the_program_is_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
