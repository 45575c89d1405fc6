/* SPDX-License-Identifier: BSD-3-Clause */
#include "lines.h"

bool
lines_take(struct lines *l, uint64_t now_ns)
{
	uint64_t was = atomic_load(&l->all_ns), all_ns;

	do {
		all_ns = (was > now_ns ? was : now_ns) + LINES_NS;
		if (all_ns - now_ns > LINES_AT_ONCE * LINES_NS)
			return false;
	} while (!atomic_compare_exchange_weak(&l->all_ns, &was, all_ns));
	return true;
}
