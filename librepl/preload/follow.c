/* SPDX-License-Identifier: BSD-3-Clause */
#include "follow.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

#include "pools.h"

#define MEM_NODRAIN 1U
#define MEM_NOFLUSH 32U
#define PAGE        4096U

#define LIBRARIES 8U /* this one, libpmem, libpmem2, and what stands in front of them */

static __thread unsigned inside __attribute__((tls_model("initial-exec")));

/* The code of a library that has real functions. */
static struct code {
	_Atomic uintptr_t begin, end; /* end 0: none yet */
} codes[LIBRARIES];

struct search {
	uintptr_t at, begin, end;
};

static int
code_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		s->begin = info->dlpi_addr + h->p_vaddr;
		s->end = s->begin + h->p_memsz;
		if (h->p_type == PT_LOAD && s->at >= s->begin && s->at < s->end)
			return 1;
	}
	return 0;
}

void
follow_real(const void *real)
{
	struct search s = {.at = (uintptr_t)real};
	uintptr_t begin;

	if (!dl_iterate_phdr(code_find, &s))
		return;
	for (unsigned i = 0; i < LIBRARIES; i++) {
		begin = 0;
		if (atomic_compare_exchange_strong(&codes[i].begin, &begin, s.begin))
			atomic_store(&codes[i].end, s.end);
		if (begin == 0 || begin == s.begin)
			return;
	}
}

bool
follow_inner(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	for (unsigned i = 0; inside > 0 && i < LIBRARIES; i++) {
		if (at >= atomic_load_explicit(&codes[i].begin, memory_order_relaxed) &&
		    at < atomic_load_explicit(&codes[i].end, memory_order_relaxed))
			return true;
	}
	return false;
}

bool
follow_any(void)
{
	return pools_any();
}

bool
follow_concerns(const void *addr, size_t len)
{
	if (!follow_any())
		return false;
	if (pools_concern(addr, len))
		return true;
	pools_missed(addr);
	return false;
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
follow_zeroed(const void *addr, size_t len)
{
	if (follow_any())
		pools_zeroed(addr, (len + PAGE - 1) & ~(size_t)(PAGE - 1));
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
