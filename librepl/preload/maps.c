/* SPDX-License-Identifier: BSD-3-Clause */
#include "maps.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "real.h"

#define PAGE 4096U

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

/*
 * Under the lock and amid a change, as all that changes the table. What goes on where another
 * mapping ends becomes one with it, as in the kernel: a program may map its file in many small
 * steps.
 */
static int
add(uintptr_t at, size_t len, uint64_t off, unsigned pool)
{
	uintptr_t end = at + len;
	struct map *m;

	for (unsigned i = 0; i < GET(used); i++) {
		uintptr_t from = GET(table[i].at), to = GET(table[i].end);
		uint64_t begin = GET(table[i].off);

		if (from == to || GET(table[i].pool) != pool)
			continue;
		if (to == at && begin + (to - from) == off) {
			at = from;
			off = begin;
		} else if (from == end && off + (end - at) == begin) {
			end = to;
		} else {
			continue;
		}
		PUT(table[i].at, to);
	}
	m = entry_new();
	if (m)
		set(m, at, end, off, pool);
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

void
maps_unseen(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	PUT(sequence, GET(sequence) + GET(sequence) % 2);
}

static void
remove_range(uintptr_t at, uintptr_t end, struct maps_change *c)
{
	c->left = 0;
	for (unsigned i = 0; i < GET(used); i++) {
		struct map *m = &table[i];

		if (GET(m->at) == GET(m->end))
			continue;
		if (GET(m->at) < end && at < GET(m->end)) {
			c->gone |= 1U << GET(m->pool);
			if (cut(m, at > GET(m->at) ? at : GET(m->at),
				end < GET(m->end) ? end : GET(m->end)))
				c->full |= 1U << GET(m->pool);
		}
		if (GET(m->at) != GET(m->end))
			c->left |= 1U << GET(m->pool);
	}
}

/* What is there, in c. */
static void
add_told(uintptr_t at, size_t len, uint64_t off, unsigned pool, struct maps_change *c)
{
	if (add(at, len, off, pool))
		c->full |= 1U << pool;
	else
		c->left |= 1U << pool;
}

/* Nobody who reads sees the place without a mapping. */
static void
replace(uintptr_t at, size_t len, uint64_t off, unsigned pool, struct maps_change *c)
{
	change_begin();
	remove_range(at, at + len, c);
	add_told(at, len, off, pool, c);
	change_end();
}

struct maps_change
maps_put(void *addr, size_t len, uint64_t off, unsigned pool)
{
	struct maps_change c = {0};

	table_lock();
	replace((uintptr_t)addr, len, off, pool, &c);
	table_unlock();
	return c;
}

struct maps_change
maps_remove(void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr, end = at + len;
	struct maps_change c = {0};
	struct maps_piece any;

	/* Most of what a process unmaps is no pool. */
	if (GET(used) == 0 || !maps_find(at, end, &any))
		return c;
	table_lock();
	change_begin();
	remove_range(at, end, &c);
	change_end();
	table_unlock();
	return c;
}

struct maps_change
maps_unmap(void *addr, size_t len, int *rc)
{
	uintptr_t at = (uintptr_t)addr;
	struct maps_change c = {0};

	table_lock();
	*rc = real_munmap(addr, len);
	change_begin();
	if (*rc == 0)
		remove_range(at, at + len, &c);
	change_end();
	table_unlock();
	return c;
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

static struct maps_piece pieces[MAPS_MAX]; /* of what is moved; under the lock */

/* What is followed of [at, end), before a change. */
static unsigned
pieces_find(uintptr_t at, uintptr_t end)
{
	unsigned n = 0;

	while (n < MAPS_MAX && at < end && maps_find(at, end, &pieces[n]))
		at = pieces[n++].end;
	return n;
}

/*
 * Under the lock. Linux 6.17 moves several mappings at once that keep their length. Else it is one,
 * of which all is known by its first page. stays: it is where it was, too.
 */
static void
moved(uintptr_t from, size_t from_len, uintptr_t to, size_t len, bool stays, struct maps_change *c)
{
	unsigned n = pieces_find(from, from + (len == from_len ? len : 1));

	change_begin();
	if (to != from) {
		remove_range(to, to + len, c);
		if (!stays)
			remove_range(from, from + from_len, c);
	} else if (len < from_len) {
		remove_range(to + len, from + from_len, c);
	}
	for (unsigned i = 0; i < n; i++) {
		const struct maps_piece *p = &pieces[i];

		if (to == from && len > from_len)
			add_told(to + from_len, len - from_len, p->off + from_len, p->pool, c);
		else if (to == from)
			c->left |= 1U << p->pool;
		else
			add_told(to + (p->end - p->len - from), len == from_len ? p->len : len,
				 p->off, p->pool, c);
	}
	change_end();
}

static bool
is_gone(uintptr_t page)
{
	unsigned char in;

	return syscall(SYS_mincore, page, PAGE, &in) != 0 && errno == ENOMEM;
}

/* By a call that has failed: those in front of the mapping that could not be moved are. */
static void
moved_in_part(uintptr_t from, uintptr_t to, size_t len, struct maps_change *c)
{
	unsigned n = pieces_find(from, from + len);
	int why = errno;

	change_begin();
	for (unsigned i = 0; i < n; i++) {
		const struct maps_piece *p = &pieces[i];
		uintptr_t was = p->end - p->len;

		if (!is_gone(was))
			continue;
		remove_range(to + (was - from), to + (p->end - from), c);
		remove_range(was, p->end, c);
		add_told(to + (was - from), p->len, p->off, p->pool, c);
	}
	change_end();
	errno = why;
}

struct maps_change
maps_remap(void *old, size_t old_len, size_t len, int flags, void *wish, void **got)
{
	bool stays = flags & MREMAP_DONTUNMAP;
	struct maps_change c = {0};

	table_lock();
	*got = (void *)syscall(SYS_mremap, old, old_len, len, flags, wish);
	/* What stays mapped is still the file. */
	if (*got != MAP_FAILED)
		moved((uintptr_t)old, old_len, (uintptr_t)*got, len, stays, &c);
	else if ((flags & MREMAP_FIXED) && !stays && len == old_len)
		moved_in_part((uintptr_t)old, (uintptr_t)wish, len, &c);
	table_unlock();
	return c;
}

struct maps_change
maps_remap_pages(void *addr, size_t len, int prot, size_t page, int flags, int *rc)
{
	/* The kernel takes the odd ends off. */
	uintptr_t at = (uintptr_t)addr / PAGE * PAGE;
	size_t whole = len / PAGE * PAGE;
	struct maps_change c = {0};
	struct maps_piece piece;

	table_lock();
	*rc = (int)syscall(SYS_remap_file_pages, addr, len, prot, page, flags);
	if (*rc == 0 && maps_find(at, at + 1, &piece))
		replace(at, whole, (uint64_t)page * PAGE, piece.pool, &c);
	table_unlock();
	return c;
}
