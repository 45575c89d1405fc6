/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journalfmt - the first two pages of a resync journal: docs/POOL-FORMAT.md,
 * section 1.7. The STAGE messages behind them are wire.h's. Pure.
 */
#ifndef REPLD_JOURNALFMT_H
#define REPLD_JOURNALFMT_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "generation.h"
#include "regionpage.h"
#include "sidecar.h"

#define JOURNAL_PAGE REGION_PAGE
#define JOURNAL_DATA (2 * JOURNAL_PAGE) /* where the messages begin */

struct journal_header {
	uint32_t epoch; /* of the writer whose messages it takes */
	struct gen_id pool_uuid;
};

/* What is committed, and what the sidecar says once it is in the pool. */
struct journal_commit {
	uint32_t epoch;
	uint64_t count, bytes; /* of messages */
	uint64_t chain;        /* wire_stage_chain() over them, from 0 */
	enum sidecar_state state;
	bool has_generation;
	struct generation generation;
	uint64_t position; /* of that generation, of which it is a part; 0: none */
};

void journal_header_encode(const struct journal_header *h, uint8_t page[JOURNAL_PAGE]);
void journal_commit_encode(const struct journal_commit *c, uint8_t page[JOURNAL_PAGE]);

/* REPL_E_CORRUPT, or REPL_E_VERSION of a whole one that is newer. */
int journal_header_decode(const uint8_t page[JOURNAL_PAGE], struct journal_header *h,
			  struct err *e);
int journal_commit_decode(const uint8_t page[JOURNAL_PAGE], struct journal_commit *c,
			  struct err *e);

#endif
