/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * logscan - recovery of a log: which records its bytes hold, after a cut at any
 * moment (docs/LOG-FORMAT.md, 5).
 *
 * Pure, and linear in the bytes between head and tail.
 */
#ifndef LIBREPL_LOGSCAN_H
#define LIBREPL_LOGSCAN_H

#include "logfmt.h"

struct logscan {
	uint64_t tail;
	uint64_t records; /* from head to tail */
};

/* The highest position that the tail may have: space counts from whole pages. */
static inline uint64_t
logscan_tail_max(const struct logfmt_header *h, uint64_t head)
{
	return head - head % LOGFMT_PAGE + logfmt_capacity(h->area_size);
}

/*
 * Find the tail. REPL_E_CORRUPT if what must be there is not; the text names
 * the position.
 */
int logscan_run(const uint8_t *area, const struct logfmt_header *h, struct logscan *out,
		struct err *e);

#endif
