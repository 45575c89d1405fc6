/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim - what a writer does whose chain the target has refused.
 *
 * Equal contents prove as much as a chain: nothing can be lost by writing to what equals
 * one's own. Where they differ an operator decides.
 */
#ifndef LIBREPL_CLAIM_H
#define LIBREPL_CLAIM_H

#include "transfer.h"

/*
 * Compare the pool with mem while nobody writes to it; if they are equal open it for writing,
 * without lanes. REPL_E_DIFFER if not: it is closed. t->remote has no pool open.
 */
int claim_equal(const struct transfer *t, const char *pool, const void *mem, uint64_t size,
		struct err *e);

/* The next step that the target gave with the last error, in this initiator's names; "" if none. */
void claim_next(const struct remote *r, char *out, size_t size);

#endif
