/* SPDX-License-Identifier: BSD-3-Clause */
#include "repl_prepare.h"

#include "entry.h"
#include "fabric.h"

void
repl_prepare(void)
{
	ENTRY_WHOLE();

	/* In a thread of its own, as in an opening: the caller's may have little room. */
	fab_warm_free(fab_warm_new());
}
