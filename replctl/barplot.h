/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * barplot - grouped bars with a line to compare them with, as SVG.
 *
 * Pure but for the stream that it writes to. Texts may be of any bytes: what
 * XML does not allow becomes '?'.
 */
#ifndef REPLCTL_BARPLOT_H
#define REPLCTL_BARPLOT_H

#include <stddef.h>
#include <stdio.h>

#define BARPLOT_SERIES_MAX 6
#define BARPLOT_NOTES_MAX  12

struct barplot {
	const char *title, *subtitle;
	const char *axis; /* what the bars are, with the unit */
	const char *const *groups;
	unsigned group_count;
	const char *const *series; /* one bar each in every group */
	unsigned series_count;     /* at most BARPLOT_SERIES_MAX */
	const double *values;      /* [group][series]; below zero: there is none */
	const double *marks;       /* the same, a tick across the bar; NULL: none */
	const char *mark_label;
	double line; /* below zero: there is none */
	const char *line_label;
	const char *notes[BARPLOT_NOTES_MAX]; /* lines below, to the first NULL */
};

/* The step between the axis' lines, 1, 2 or 5 times a power of ten: 4 to 10 of them for max > 0. */
double barplot_step(double max);

/* text as XML character data or attribute. Returns its length, as snprintf. */
size_t barplot_escape(const char *text, char *out, size_t size);

void barplot_write(const struct barplot *p, FILE *f);

#endif
