/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmem2 gives its functions out as pointers, one set for each kind of
 * mapping. A program gets ours instead. They bear no context, so there is a set
 * of ours for each set of libpmem2's that is met.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <libpmem2.h>

#include "follow.h"
#include "real.h"

#define EXPORT  __attribute__((visibility("default")))
#define LIBRARY "libpmem2.so.1"

/* libpmem2 has one set a granularity, of which there are three. */
#define KINDS_MAX 4

struct kind {
	pmem2_persist_fn persist;
	pmem2_flush_fn flush;
	pmem2_drain_fn drain;
	pmem2_memmove_fn memmove;
	pmem2_memcpy_fn memcpy;
	pmem2_memset_fn memset;
	uintptr_t pages; /* not 0: it flushes by msync(2). A word: sets are compared as they lie */
};

static struct kind real[KINDS_MAX]; /* written before it counts, and once */
static _Atomic unsigned kinds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who adds one */

/* ---- our sets ---- */

static void
range_flush(bool pages, const void *addr, size_t len)
{
	if (pages)
		follow_sync(addr, len, false);
	else
		follow_flush(addr, len);
}

static void
kind_persist(const struct kind *k, const void *addr, size_t len)
{
	if (!follow_concerns(addr, len)) {
		k->persist(addr, len);
		return;
	}
	follow_enter();
	k->persist(addr, len);
	follow_leave();
	range_flush(k->pages, addr, len);
	follow_drain();
}

static void
kind_flush(const struct kind *k, const void *addr, size_t len)
{
	if (!follow_concerns(addr, len)) {
		k->flush(addr, len);
		return;
	}
	follow_enter();
	k->flush(addr, len);
	follow_leave();
	range_flush(k->pages, addr, len);
}

static void
kind_drain(const struct kind *k)
{
	follow_enter();
	k->drain();
	follow_leave();
	follow_drain();
}

static void *
kind_move(pmem2_memmove_fn f, void *dst, const void *src, size_t len, unsigned flags)
{
	void *got;

	if (!follow_concerns(dst, len))
		return f(dst, src, len, flags);
	follow_enter();
	got = f(dst, src, len, flags);
	follow_leave();
	follow_copy(dst, len, flags);
	return got;
}

static void *
kind_set(pmem2_memset_fn f, void *dst, int c, size_t len, unsigned flags)
{
	void *got;

	if (!follow_concerns(dst, len))
		return f(dst, c, len, flags);
	follow_enter();
	got = f(dst, c, len, flags);
	follow_leave();
	follow_copy(dst, len, flags);
	return got;
}

#define SET(i)                                                                                     \
	static void persist_##i(const void *addr, size_t len)                                      \
	{                                                                                          \
		kind_persist(&real[i], addr, len);                                                 \
	}                                                                                          \
	static void flush_##i(const void *addr, size_t len)                                        \
	{                                                                                          \
		kind_flush(&real[i], addr, len);                                                   \
	}                                                                                          \
	static void drain_##i(void)                                                                \
	{                                                                                          \
		kind_drain(&real[i]);                                                              \
	}                                                                                          \
	static void *memmove_##i(void *dst, const void *src, size_t len, unsigned flags)           \
	{                                                                                          \
		return kind_move(real[i].memmove, dst, src, len, flags);                           \
	}                                                                                          \
	static void *memcpy_##i(void *dst, const void *src, size_t len, unsigned flags)            \
	{                                                                                          \
		return kind_move(real[i].memcpy, dst, src, len, flags);                            \
	}                                                                                          \
	static void *memset_##i(void *dst, int c, size_t len, unsigned flags)                      \
	{                                                                                          \
		return kind_set(real[i].memset, dst, c, len, flags);                               \
	}

SET(0)
SET(1)
SET(2)
SET(3)

#define NAMES(i)                                                                                   \
	{                                                                                          \
		persist_##i, flush_##i, drain_##i, memmove_##i, memcpy_##i, memset_##i, 0          \
	}

static const struct kind ours[KINDS_MAX] = {NAMES(0), NAMES(1), NAMES(2), NAMES(3)};

/* ---- the getters ---- */

#define REAL_TABLE(X)                                                                              \
	X(pmem2_get_persist_fn)                                                                    \
	X(pmem2_get_flush_fn)                                                                      \
	X(pmem2_get_drain_fn)                                                                      \
	X(pmem2_get_memmove_fn)                                                                    \
	X(pmem2_get_memcpy_fn)                                                                     \
	X(pmem2_get_memset_fn)                                                                     \
	X(pmem2_deep_flush)                                                                        \
	X(pmem2_map_get_store_granularity)

static struct {
#define REAL_MEMBER(name) void *name;
	REAL_TABLE(REAL_MEMBER)
#undef REAL_MEMBER
} next;

__attribute__((constructor)) static void
next_init(void)
{
#define REAL_FIND(name) real_early(&next.name, #name);
	REAL_TABLE(REAL_FIND)
#undef REAL_FIND
}

#define REAL(name) ((__typeof__(&name))(uintptr_t)real_once(&next.name, LIBRARY, #name))

/* A handler that has interrupted its own thread amid that would wait for itself. */
static void
kinds_lock(sigset_t *before)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, before);
	(void)pthread_mutex_lock(&lock);
}

static void
kinds_unlock(const sigset_t *before)
{
	(void)pthread_mutex_unlock(&lock);
	(void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* What another thread was adding there counts for nobody. */
static void
kinds_forked(void)
{
	(void)pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void
kinds_init(void)
{
	(void)pthread_atfork(NULL, NULL, kinds_forked);
}

static bool
by_pages(struct pmem2_map *map)
{
	return REAL(pmem2_map_get_store_granularity)(map) == PMEM2_GRANULARITY_PAGE;
}

static void
kind_read(struct pmem2_map *map, struct kind *k)
{
	k->persist = REAL(pmem2_get_persist_fn)(map);
	k->flush = REAL(pmem2_get_flush_fn)(map);
	k->drain = REAL(pmem2_get_drain_fn)(map);
	k->memmove = REAL(pmem2_get_memmove_fn)(map);
	k->memcpy = REAL(pmem2_get_memcpy_fn)(map);
	k->memset = REAL(pmem2_get_memset_fn)(map);
	k->pages = by_pages(map);
}

/* Its number, or KINDS_MAX. */
static unsigned
kind_find(const struct kind *k)
{
	unsigned n = atomic_load_explicit(&kinds, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		if (memcmp(&real[i], k, sizeof(*k)) == 0)
			return i;
	}
	return KINDS_MAX;
}

static unsigned
kind_add(const struct kind *k)
{
	sigset_t before;
	unsigned i, n;

	kinds_lock(&before);
	i = kind_find(k);
	n = atomic_load(&kinds);
	if (i == KINDS_MAX && n < KINDS_MAX) {
		i = n;
		real[i] = *k;
		atomic_store_explicit(&kinds, n + 1, memory_order_release);
	}
	kinds_unlock(&before);
	return i;
}

/* Our set for the mapping; libpmem2's own where nothing is replicated. */
static struct kind
kind_of(struct pmem2_map *map)
{
	struct kind k;
	unsigned i;

	kind_read(map, &k);
	if (!follow_any())
		return k;
	i = kind_find(&k);
	if (i == KINDS_MAX)
		i = kind_add(&k);
	return i < KINDS_MAX ? ours[i] : k;
}

EXPORT pmem2_persist_fn
pmem2_get_persist_fn(struct pmem2_map *map)
{
	return kind_of(map).persist;
}

EXPORT pmem2_flush_fn
pmem2_get_flush_fn(struct pmem2_map *map)
{
	return kind_of(map).flush;
}

EXPORT pmem2_drain_fn
pmem2_get_drain_fn(struct pmem2_map *map)
{
	return kind_of(map).drain;
}

EXPORT pmem2_memmove_fn
pmem2_get_memmove_fn(struct pmem2_map *map)
{
	return kind_of(map).memmove;
}

EXPORT pmem2_memcpy_fn
pmem2_get_memcpy_fn(struct pmem2_map *map)
{
	return kind_of(map).memcpy;
}

EXPORT pmem2_memset_fn
pmem2_get_memset_fn(struct pmem2_map *map)
{
	return kind_of(map).memset;
}

/* Durable when it returns, unlike pmem_deep_flush(): libpmem2 has no deep drain. */
EXPORT int
pmem2_deep_flush(struct pmem2_map *map, void *addr, size_t len)
{
	int rc;

	follow_enter();
	rc = REAL(pmem2_deep_flush)(map, addr, len);
	follow_leave();
	if (rc == 0) {
		range_flush(by_pages(map), addr, len);
		follow_drain();
	}
	return rc;
}

/*
 * Of a mapping whose stores are durable by themselves a program need tell nobody, and would not.
 * Of any one: it may become a pool's later.
 */
EXPORT enum pmem2_granularity
pmem2_map_get_store_granularity(struct pmem2_map *map)
{
	enum pmem2_granularity is = REAL(pmem2_map_get_store_granularity)(map);

	return is == PMEM2_GRANULARITY_BYTE && follow_any() ? PMEM2_GRANULARITY_CACHE_LINE : is;
}
