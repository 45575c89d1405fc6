/* SPDX-License-Identifier: BSD-3-Clause */
#include "follow.h"

#include "pools.h"

#define MEM_NODRAIN 1U
#define MEM_NOFLUSH 32U
#define PAGE        4096U

static __thread unsigned inside __attribute__((tls_model("initial-exec")));

bool
follow_any(void)
{
	return inside == 0 && pools_any();
}

bool
follow_concerns(const void *addr, size_t len)
{
	return follow_any() && pools_concern(addr, len);
}

void
follow_enter(void)
{
	inside++;
}

void
follow_leave(void)
{
	inside--;
}

void
follow_flush(const void *addr, size_t len)
{
	if (follow_any())
		pools_flush(addr, len);
}

void
follow_sync(const void *addr, size_t len, bool pages)
{
	if (follow_any())
		pools_sync(addr, pages ? (len + PAGE - 1) & ~(size_t)(PAGE - 1) : len);
}

void
follow_drain(void)
{
	if (follow_any())
		pools_drain();
}

void
follow_copy(const void *addr, size_t len, unsigned flags)
{
	if ((flags & MEM_NOFLUSH) || !follow_any())
		return;
	pools_flush(addr, len);
	if (!(flags & MEM_NODRAIN))
		pools_drain();
}
