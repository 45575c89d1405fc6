/* SPDX-License-Identifier: BSD-3-Clause */
#include "barplot.h"

#include <string.h>

#include "text.h"

#define MARGIN_LEFT  78.0
#define MARGIN_RIGHT 24.0
#define TOP          96.0 /* title, subtitle, legend */
#define PLOT_HEIGHT  320.0
#define BAR_MIN      34.0
#define BAR_GAP      3.0
#define GROUP_MIN    136.0 /* the longest name of a method fits */
#define GROUP_GAP    28.0
#define WIDTH_MIN    640.0
#define NOTE_LINE    17.0
#define KEY          24.0
#define KEY_GAP      20.0
#define GLYPH        7.6 /* width of a character of 13 px, about */
#define TEXT_MAX     512
#define LINES_MAX    40 /* of the axis, whatever comes */

/* Told apart by the colour-blind, and in grey. */
static const char *const colours[BARPLOT_SERIES_MAX] = {"#0072b2", "#e69f00", "#009e73",
							"#cc79a7", "#56b4e9", "#999999"};

struct frame {
	const struct barplot *p;
	FILE *f;
	double width, height, group, bar, top_value, step;
};

double
barplot_step(double max)
{
	static const double factors[] = {1, 2, 5};
	double decade = 1;

	if (!(max > 0))
		return 1;
	while (decade * 10 <= max)
		decade *= 10;
	while (decade > max)
		decade /= 10;
	decade /= 10;
	/* max / decade is 10 to 100. */
	for (;; decade *= 10)
		for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
			if (max / (decade * factors[i]) <= 10)
				return decade * factors[i];
}

/* The length of the character at s if XML 1.0 allows it, else 0. */
static size_t
character_length(const char *s)
{
	size_t len = text_char_len(s, strlen(s));

	if (len == 1 && ((unsigned char)*s < 0x20 || *s == 0x7f))
		return 0;
	if (len == 3 && (memcmp(s, "\xef\xbf\xbe", 3) == 0 || memcmp(s, "\xef\xbf\xbf", 3) == 0))
		return 0;
	return len;
}

static const char *
entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

size_t
barplot_escape(const char *text, char *out, size_t size)
{
	size_t used = 0, full = 0;

	while (*text) {
		size_t len = character_length(text);
		const char *from = entity(*text);
		size_t add = from ? strlen(from) : len ? len : 1;

		if (!from)
			from = len ? text : "?";
		/* Never half of something. */
		if (full == used && full + add < size) {
			memcpy(out + used, from, add);
			used += add;
		}
		full += add;
		text += len ? len : 1;
	}
	if (size)
		out[used] = '\0';
	return full;
}

static void
text_at(const struct frame *r, double x, double y, const char *attributes, const char *text)
{
	char safe[TEXT_MAX];

	(void)barplot_escape(text ? text : "", safe, sizeof(safe));
	(void)fprintf(r->f, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes, safe);
}

static double
y_of(const struct frame *r, double value)
{
	return TOP + PLOT_HEIGHT * (1 - value / r->top_value);
}

static void
frame_scale(struct frame *r)
{
	const struct barplot *p = r->p;
	double max = p->line > 0 ? p->line : 0;

	for (unsigned i = 0; i < p->group_count * p->series_count; i++) {
		if (p->values[i] > max)
			max = p->values[i];
		if (p->values[i] >= 0 && p->marks && p->marks[i] > max)
			max = p->marks[i];
	}
	if (!(max > 0))
		max = 1;
	max *= 1.06; /* room for the number on the highest bar */
	r->step = barplot_step(max);
	r->top_value = r->step;
	for (unsigned i = 0; i < LINES_MAX && r->top_value < max; i++)
		r->top_value += r->step;
}

static unsigned
note_count(const struct barplot *p)
{
	unsigned n = 0;

	while (n < BARPLOT_NOTES_MAX && p->notes[n])
		n++;
	return n;
}

static double
text_width(const char *text)
{
	return text ? (double)strlen(text) * GLYPH : 0;
}

static double
key_width(const char *label)
{
	return KEY + text_width(label) + KEY_GAP;
}

static double
legend_width(const struct barplot *p)
{
	double width = 0;

	for (unsigned s = 0; s < p->series_count; s++)
		width += key_width(p->series[s]);
	if (p->marks)
		width += key_width(p->mark_label);
	return p->line >= 0 ? width + key_width(p->line_label) : width;
}

static void
widen(double *width, double least)
{
	if (*width < least)
		*width = least;
}

/* Wide enough for the bars and for the longest of the texts. */
static void
frame_measure(struct frame *r)
{
	const struct barplot *p = r->p;
	double least = WIDTH_MIN;

	r->bar = BAR_MIN;
	r->group = p->series_count * BAR_MIN + GROUP_GAP;
	if (r->group < GROUP_MIN) {
		r->group = GROUP_MIN;
		r->bar = (GROUP_MIN - GROUP_GAP) / (p->series_count ? p->series_count : 1);
		if (r->bar > 48)
			r->bar = 48;
	}
	widen(&least, MARGIN_LEFT + text_width(p->subtitle));
	widen(&least, MARGIN_LEFT + legend_width(p));
	for (unsigned i = 0; i < note_count(p); i++)
		widen(&least, MARGIN_RIGHT + text_width(p->notes[i]));
	r->width = MARGIN_LEFT + MARGIN_RIGHT + r->group * p->group_count;
	widen(&r->width, least + MARGIN_RIGHT);
	if (p->group_count)
		r->group = (r->width - MARGIN_LEFT - MARGIN_RIGHT) / p->group_count;
	r->height = TOP + PLOT_HEIGHT + 52 + NOTE_LINE * note_count(p);
}

static void
draw_axis(const struct frame *r)
{
	double middle = TOP + PLOT_HEIGHT / 2;
	char number[32], turned[96];

	for (unsigned i = 0; i <= LINES_MAX && r->step * i <= r->top_value * 1.0001; i++) {
		double y = y_of(r, r->step * i);

		(void)fprintf(r->f,
			      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
			      "stroke=\"%s\"/>\n",
			      MARGIN_LEFT, y, r->width - MARGIN_RIGHT, y,
			      i ? "#dddddd" : "#000000");
		(void)snprintf(number, sizeof(number), "%.6g", r->step * i);
		text_at(r, MARGIN_LEFT - 8, y + 4.5, "text-anchor=\"end\"", number);
	}
	(void)snprintf(turned, sizeof(turned),
		       "text-anchor=\"middle\" transform=\"rotate(-90 20 %.1f)\"", middle);
	text_at(r, 20, middle, turned, r->p->axis);
}

static double
bar_left(const struct frame *r, unsigned group, unsigned series)
{
	return MARGIN_LEFT + r->group * group + (r->group - r->bar * r->p->series_count) / 2 +
	       r->bar * series;
}

static void
draw_bar(const struct frame *r, unsigned group, unsigned series)
{
	const struct barplot *p = r->p;
	unsigned i = group * p->series_count + series;
	double y = y_of(r, p->values[i]);
	double left = bar_left(r, group, series), right = left + r->bar - BAR_GAP;

	if (p->values[i] < 0)
		return;
	(void)fprintf(r->f,
		      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		      "fill=\"%s\"/>\n",
		      left, y, right - left, TOP + PLOT_HEIGHT - y, colours[series]);
	if (p->marks)
		(void)fprintf(r->f,
			      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
			      "stroke=\"#000000\" stroke-width=\"2\"/>\n",
			      left, y_of(r, p->marks[i]), right, y_of(r, p->marks[i]));
}

/* Above all that a bar may have at its top, and legible over a line. */
static void
draw_number(const struct frame *r, unsigned group, unsigned series)
{
	const struct barplot *p = r->p;
	unsigned i = group * p->series_count + series;
	double value = p->values[i], top = value;
	double middle = bar_left(r, group, series) + (r->bar - BAR_GAP) / 2;
	char number[32];

	if (value < 0) {
		text_at(r, middle, TOP + PLOT_HEIGHT - 5,
			"text-anchor=\"middle\" font-size=\"12\" fill=\"#777777\"", "none");
		return;
	}
	if (p->marks && p->marks[i] > value)
		top = p->marks[i];
	(void)snprintf(number, sizeof(number), value < 100 ? "%.1f" : "%.0f", value);
	text_at(r, middle, y_of(r, top) - 5,
		"text-anchor=\"middle\" font-size=\"12\" stroke=\"#ffffff\" stroke-width=\"4\" "
		"paint-order=\"stroke\"",
		number);
}

static void
draw_each(const struct frame *r, void (*draw)(const struct frame *, unsigned, unsigned))
{
	for (unsigned g = 0; g < r->p->group_count; g++)
		for (unsigned s = 0; s < r->p->series_count; s++)
			draw(r, g, s);
}

static void
draw_names(const struct frame *r)
{
	for (unsigned g = 0; g < r->p->group_count; g++)
		text_at(r, MARGIN_LEFT + r->group * (g + 0.5), TOP + PLOT_HEIGHT + 20,
			"text-anchor=\"middle\"", r->p->groups[g]);
}

static void
draw_line(const struct frame *r)
{
	double y = y_of(r, r->p->line);

	if (r->p->line < 0)
		return;
	(void)fprintf(r->f,
		      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#d00000\" "
		      "stroke-width=\"2\" stroke-dasharray=\"7 4\"/>\n",
		      MARGIN_LEFT, y, r->width - MARGIN_RIGHT, y);
}

static void
draw_legend(const struct frame *r)
{
	const struct barplot *p = r->p;
	double x = MARGIN_LEFT;

	for (unsigned s = 0; s < p->series_count; s++) {
		(void)fprintf(r->f,
			      "<rect x=\"%.1f\" y=\"67\" width=\"16\" height=\"12\" "
			      "fill=\"%s\"/>\n",
			      x, colours[s]);
		text_at(r, x + KEY, 78, "", p->series[s]);
		x += key_width(p->series[s]);
	}
	if (p->marks) {
		(void)fprintf(r->f,
			      "<line x1=\"%.1f\" y1=\"73\" x2=\"%.1f\" y2=\"73\" "
			      "stroke=\"#000000\" stroke-width=\"2\"/>\n",
			      x, x + 16);
		text_at(r, x + KEY, 78, "", p->mark_label);
		x += key_width(p->mark_label);
	}
	if (p->line >= 0) {
		(void)fprintf(r->f,
			      "<line x1=\"%.1f\" y1=\"73\" x2=\"%.1f\" y2=\"73\" "
			      "stroke=\"#d00000\" stroke-width=\"2\" stroke-dasharray=\"7 4\"/>\n",
			      x, x + 18);
		text_at(r, x + KEY, 78, "", p->line_label);
	}
}

void
barplot_write(const struct barplot *p, FILE *f)
{
	struct frame r = {.p = p, .f = f};

	frame_scale(&r);
	frame_measure(&r);
	(void)fprintf(f,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\" "
		      "font-size=\"13\">\n"
		      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		      r.width, r.height, r.width, r.height);
	text_at(&r, MARGIN_LEFT, 30, "font-size=\"18\" font-weight=\"bold\"", p->title);
	text_at(&r, MARGIN_LEFT, 52, "fill=\"#444444\"", p->subtitle);
	draw_legend(&r);
	draw_axis(&r);
	draw_each(&r, draw_bar);
	draw_names(&r);
	draw_line(&r);
	draw_each(&r, draw_number);
	for (unsigned i = 0; i < note_count(p); i++)
		text_at(&r, MARGIN_RIGHT, TOP + PLOT_HEIGHT + 48 + NOTE_LINE * i,
			"fill=\"#444444\"", p->notes[i]);
	(void)fputs("</svg>\n", f);
}
