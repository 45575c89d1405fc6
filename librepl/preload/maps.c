/* SPDX-License-Identifier: BSD-3-Clause */
#include "maps.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "real.h"

/* Fields are atomic for the readers' sake: they may read while one is changed. */
struct map {
	_Atomic uintptr_t at, end; /* at == end: free */
	_Atomic uint64_t off;
	_Atomic unsigned pool;
};

static struct map table[MAPS_MAX];
static atomic_uint used;     /* entries from here on have never been used */
static atomic_uint sequence; /* odd while a change is under way */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define GET(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define PUT(field, v) atomic_store_explicit(&(field), (v), memory_order_relaxed)

static void
change_begin(void)
{
	PUT(sequence, GET(sequence) + 1);
	atomic_thread_fence(memory_order_release);
}

static void
change_end(void)
{
	atomic_store_explicit(&sequence, GET(sequence) + 1, memory_order_release);
}

static void
set(struct map *m, uintptr_t at, uintptr_t end, uint64_t off, unsigned pool)
{
	PUT(m->off, off);
	PUT(m->pool, pool);
	PUT(m->end, end);
	PUT(m->at, at);
}

static sigset_t mask_before; /* of who has the lock */

/* A handler amid a change would wait for the end of it, be it only to look something up. */
static void
table_lock(void)
{
	sigset_t all, mine;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mine);
	(void)pthread_mutex_lock(&lock);
	mask_before = mine;
}

static void
table_unlock(void)
{
	sigset_t mine = mask_before;

	(void)pthread_mutex_unlock(&lock);
	(void)pthread_sigmask(SIG_SETMASK, &mine, NULL);
}

/* A free entry, or NULL. */
static struct map *
entry_new(void)
{
	unsigned n = GET(used);

	for (unsigned i = 0; i < n; i++) {
		if (GET(table[i].at) == GET(table[i].end))
			return &table[i];
	}
	if (n == MAPS_MAX)
		return NULL;
	PUT(used, n + 1);
	return &table[n];
}

int
maps_add(void *addr, size_t len, uint64_t off, unsigned pool)
{
	uintptr_t at = (uintptr_t)addr;
	struct map *m;

	table_lock();
	change_begin();
	m = entry_new();
	if (m)
		set(m, at, at + len, off, pool);
	change_end();
	table_unlock();
	return m ? 0 : -1;
}

/* Take [at, end) out of one mapping; what is left behind it, if anything, gets an entry. */
static int
cut(struct map *m, uintptr_t at, uintptr_t end)
{
	uintptr_t from = GET(m->at), to = GET(m->end);
	struct map *tail = NULL;

	if (end < to && at > from) {
		tail = entry_new();
		if (tail)
			set(tail, end, to, GET(m->off) + (end - from), GET(m->pool));
	}
	if (at > from) {
		PUT(m->end, at);
		return end < to && !tail ? -1 : 0;
	}
	if (end < to)
		PUT(m->off, GET(m->off) + (end - from));
	PUT(m->at, end < to ? end : to);
	return 0;
}

bool
maps_forget(unsigned pool)
{
	bool any = false;

	table_lock();
	change_begin();
	for (unsigned i = 0; i < GET(used); i++) {
		if (GET(table[i].at) == GET(table[i].end) || GET(table[i].pool) != pool)
			continue;
		PUT(table[i].at, GET(table[i].end));
		any = true;
	}
	change_end();
	table_unlock();
	return any;
}

bool
maps_has(unsigned pool)
{
	for (unsigned i = 0; i < GET(used); i++) {
		if (GET(table[i].pool) == pool && GET(table[i].at) != GET(table[i].end))
			return true;
	}
	return false;
}

void
maps_fork_begin(void)
{
	table_lock();
}

void
maps_fork_end(void)
{
	table_unlock();
}

/* Under the lock. */
static uint32_t
remove_range(uintptr_t at, uintptr_t end, uint32_t *left, uint32_t *cut_off)
{
	uint32_t hit = 0;

	change_begin();
	for (unsigned i = 0; i < GET(used); i++) {
		struct map *m = &table[i];

		if (GET(m->at) == GET(m->end))
			continue;
		if (GET(m->at) < end && at < GET(m->end)) {
			hit |= 1U << GET(m->pool);
			if (cut(m, at > GET(m->at) ? at : GET(m->at),
				end < GET(m->end) ? end : GET(m->end)))
				*cut_off |= 1U << GET(m->pool);
		}
		if (GET(m->at) != GET(m->end))
			*left |= 1U << GET(m->pool);
	}
	change_end();
	return hit;
}

uint32_t
maps_remove(void *addr, size_t len, uint32_t *left, uint32_t *cut_off)
{
	uintptr_t at = (uintptr_t)addr, end = at + len;
	struct maps_piece any;
	uint32_t hit;

	*left = *cut_off = 0;
	/* Most of what a process unmaps is no pool. */
	if (GET(used) == 0 || !maps_find(at, end, &any))
		return 0;
	table_lock();
	hit = remove_range(at, end, left, cut_off);
	table_unlock();
	return hit;
}

uint32_t
maps_unmap(void *addr, size_t len, int *rc, uint32_t *left, uint32_t *cut_off)
{
	uintptr_t at = (uintptr_t)addr;
	uint32_t hit = 0;

	*left = *cut_off = 0;
	table_lock();
	*rc = real_munmap(addr, len);
	if (*rc == 0)
		hit = remove_range(at, at + len, left, cut_off);
	table_unlock();
	return hit;
}

/* One look at the table; it may be in the middle of a change. */
static bool
look(uintptr_t at, uintptr_t end, struct maps_piece *piece)
{
	unsigned n = GET(used);
	uintptr_t first = end;

	for (unsigned i = 0; i < n; i++) {
		uintptr_t from = GET(table[i].at), to = GET(table[i].end), begin;

		if (from == to || from >= end || to <= at)
			continue;
		begin = from > at ? from : at;
		if (begin >= first)
			continue;
		first = begin;
		piece->end = to < end ? to : end;
		piece->len = piece->end - begin;
		piece->off = GET(table[i].off) + (begin - from);
		piece->pool = GET(table[i].pool);
	}
	return first < end;
}

bool
maps_find(uintptr_t at, uintptr_t end, struct maps_piece *piece)
{
	unsigned before;
	bool found;

	do {
		before = atomic_load_explicit(&sequence, memory_order_acquire);
		found = look(at, end, piece);
		atomic_thread_fence(memory_order_acquire);
	} while ((before & 1) || GET(sequence) != before);
	return found;
}
