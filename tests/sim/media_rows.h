/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * media_rows - the rows of the taxonomy as plans of the media model, whole and
 * with a step left out.
 */
#ifndef SIM_MEDIA_ROWS_H
#define SIM_MEDIA_ROWS_H

#include "media_model.h"
#include "taxonomy.h"

enum rows_transport { ROWS_IB, ROWS_IWARP };

/* Native: flush and atomic write are there. Today: a read, and a wait for it. */
enum rows_form { ROWS_NATIVE, ROWS_TODAY };

/* One way to run a row. */
struct rows_case {
	const struct taxonomy_row *row;
	enum rows_transport transport;
	enum rows_form form;
	bool b8;
	bool in_order; /* the I/O controller drains in order */
	bool relaxed;  /* posted writes may pass each other */
};

#define ROWS_NAME_MAX 96

/* "dmp ddio-off dram write compound". */
void rows_name(const struct taxonomy_key *key, char *buf, size_t size);

/* The responder of the row. */
struct mm_machine rows_machine(const struct rows_case *c);

/* Its plan, with the iWARP rule (WSP as MHP) applied. */
struct mm_plan rows_plan(const struct rows_case *c);

#define ROWS_CUT_MAX 64

/*
 * The i-th plan with less than that: a step left out together with what makes
 * no sense without it, or a step that orders something weakened. False: there
 * are no more. what says which it is.
 */
bool rows_less(const struct mm_plan *plan, unsigned i, struct mm_plan *less,
	       char what[ROWS_CUT_MAX]);

#endif
