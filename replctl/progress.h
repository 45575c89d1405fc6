/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress - how far a transfer is, on standard error: a bar redrawn five
 * times a second on a terminal, else a line every two seconds.
 */
#ifndef REPLCTL_PROGRESS_H
#define REPLCTL_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transfer.h"

#define PROGRESS_LINE_MAX 256

struct progress {
	const char *verb; /* "sync" */
	bool terminal, quiet;
	uint64_t begin_ns, shown_ns;
	uint64_t shown_done; /* when shown last */
	double rate;         /* bytes a second, smoothed */
	size_t drawn;        /* length of the line that stands */
};

/* On a terminal: that is what is waited for. progress_end() takes it away, before anything is told.
 */
void progress_wait(struct progress *p, const char *target);

/* The bar stands at once on a terminal. quiet: nothing but that. */
void progress_begin(struct progress *p, const char *verb, uint64_t total, bool quiet);

/* For struct transfer: arg is a struct progress. Non-zero once the user interrupts. */
int progress_tell(void *arg, const struct transfer_progress *t);

/* Take the bar away; nanoseconds since the beginning. */
uint64_t progress_end(struct progress *p);

/*
 * Pure: one line of at most columns characters, with a bar if it fits and bar
 * is set. Returns its length.
 */
size_t progress_format(char out[PROGRESS_LINE_MAX], const char *verb,
		       const struct transfer_progress *t, double rate, bool bar, unsigned columns);

#endif
