/* SPDX-License-Identifier: BSD-3-Clause */
/* A plot has a bar for each value at its height, and no text breaks its XML. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barplot.h"

static void
check_escape(const char *text, const char *due)
{
	char out[64];

	assert_int_equal(barplot_escape(text, out, sizeof(out)), strlen(due));
	assert_string_equal(out, due);
}

static void
text_is_made_xml(void **state)
{
	(void)state;
	check_escape("", "");
	check_escape("a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;");
	check_escape("\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80",
		     "\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80");
	check_escape("\x01\x1b[2J\n\x7f", "??[2J??");
	check_escape("\xff\xc0\xaf\xed\xa0\x80", "??????");
	check_escape("\xef\xbf\xbe\xef\xbf\xbf", "??????");
	check_escape("cut \xe2\x82", "cut ??");
}

static void
what_does_not_fit_is_left_out_whole(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(barplot_escape("abc&def", out, sizeof(out)), 11);
	assert_string_equal(out, "abc");
	assert_int_equal(barplot_escape("abcdefg", out, sizeof(out)), 7);
	assert_string_equal(out, "abcdefg");
	assert_int_equal(barplot_escape("ab\xe2\x82\xac", out, 5), 5);
	assert_string_equal(out, "ab");
	assert_int_equal(barplot_escape("ab", NULL, 0), 2);
}

static void
steps_are_round(void **state)
{
	static const struct {
		double max, step;
	} rows[] = {{1, 0.1}, {1.1, 0.2}, {9, 1},      {10, 1},       {11, 2},     {23, 5},
		    {51, 10}, {99, 10},   {1234, 200}, {1e6, 100000}, {0.07, 0.01}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double off = barplot_step(rows[i].max) / rows[i].step;

		assert_true(off > 0.999999 && off < 1.000001);
	}
	assert_true(barplot_step(0) > 0);
	assert_true(barplot_step(-3) > 0);
}

static char *
plot(const struct barplot *p)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	barplot_write(p, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static unsigned
occurrences(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void
each_value_has_its_bar(void **state)
{
	static const char *const groups[] = {"one", "<two>"}, *const series[] = {"a", "b&c"};
	static const double values[] = {10, 20, -1, 40};
	struct barplot p = {.title = "t",
			    .subtitle = "s",
			    .axis = "us",
			    .groups = groups,
			    .group_count = 2,
			    .series = series,
			    .series_count = 2,
			    .values = values,
			    .line = 5,
			    .line_label = "raw",
			    .notes = {"a note"}};
	char *text = plot(&p);

	(void)state;
	/* The ground, two of the legend, three bars. */
	assert_int_equal(occurrences(text, "<rect"), 6);
	assert_int_equal(occurrences(text, "&lt;two&gt;"), 1);
	assert_int_equal(occurrences(text, ">b&amp;c<"), 1);
	assert_int_equal(occurrences(text, ">none<"), 1);
	assert_int_equal(occurrences(text, ">40.0<"), 1);
	/* The axis ends at 45: a bar of 40 has 40/45 of 320, one of 10 a quarter of that. */
	assert_int_equal(occurrences(text, "height=\"284.4\""), 1);
	assert_int_equal(occurrences(text, "height=\"142.2\""), 1);
	assert_int_equal(occurrences(text, "height=\"71.1\""), 1);
	/* The line, once in the plot and once in the legend. */
	assert_int_equal(occurrences(text, "stroke-dasharray"), 2);
	assert_int_equal(occurrences(text, "a note"), 1);
	free(text);
}

static void
nothing_can_be_plotted(void **state)
{
	struct barplot p = {.title = "t", .subtitle = "", .axis = "", .line = -1};
	char *text = plot(&p);

	(void)state;
	assert_int_equal(occurrences(text, "</svg>"), 1);
	assert_int_equal(occurrences(text, "stroke-dasharray"), 0);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_made_xml),
		cmocka_unit_test(what_does_not_fit_is_left_out_whole),
		cmocka_unit_test(steps_are_round),
		cmocka_unit_test(each_value_has_its_bar),
		cmocka_unit_test(nothing_can_be_plotted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
