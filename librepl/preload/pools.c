/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "maps.h"
#include "real.h"

#define POOLS_MAX    32 /* a bit each in a thread's mask */
#define LOOK_NS      500000000ULL
#define RETRY_NS     1000000000ULL
#define PAGE         4096U
#define REPORT_LINES 100

enum pool_state {
	POOL_CLOSED,
	POOL_OPEN,
	POOL_OFF, /* not replicated until it is mapped anew, or the retry time */
};

/* Lock order: a pool's lock, then its lanes'. */
struct pool {
	char *path;
	const char *targets[REPL_TARGETS_MAX];
	unsigned target_count;
	pthread_rwlock_t lock; /* guards what follows; held for reading in a call */
	enum pool_state state;
	struct repl *r;
	uint8_t *view; /* the whole file, what the replicas are made equal to */
	size_t size;
	unsigned lanes;
	uint64_t retry_ns;
	_Atomic uint64_t look_ns;   /* when to look at the replicas next */
	_Atomic uint32_t told_lost; /* a bit each: that is said once */
	pthread_mutex_t lane_locks[REPL_LANES_MAX];
};

static struct pool pools[POOLS_MAX];
static unsigned pool_count;
static atomic_uint reports, threads;
static atomic_bool ready;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;

static __thread uint32_t flushed __attribute__((tls_model("initial-exec"))); /* bit a pool */
static __thread unsigned thread_number __attribute__((tls_model("initial-exec")));

__attribute__((format(printf, 1, 2))) static void
report(const char *format, ...)
{
	char line[1024];
	va_list ap;
	int n, m;

	if (atomic_fetch_add(&reports, 1) >= REPORT_LINES)
		return;
	n = snprintf(line, sizeof(line), "librepl-preload[%d]: ", (int)getpid());
	va_start(ap, format);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n, format, ap);
	va_end(ap);
	if (m < 0)
		return;
	n += m;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	(void)!write(STDERR_FILENO, line, (size_t)n);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* ---- what the environment names ---- */

static struct pool *
pool_named(const char *path)
{
	struct pool *p;

	for (unsigned i = 0; i < pool_count; i++) {
		if (strcmp(pools[i].path, path) == 0)
			return &pools[i];
	}
	if (pool_count == POOLS_MAX) {
		report("%s: more than %d pools, this one is not replicated", path, POOLS_MAX);
		return NULL;
	}
	p = &pools[pool_count];
	p->path = strdup(path);
	if (!p->path) {
		report("%s: out of memory, not replicated", path);
		return NULL;
	}
	(void)pthread_rwlock_init(&p->lock, NULL);
	for (unsigned i = 0; i < REPL_LANES_MAX; i++)
		(void)pthread_mutex_init(&p->lane_locks[i], NULL);
	pool_count++;
	return p;
}

static void
take_pool_line(char *key, char *value, void *arg)
{
	struct pool *p = pool_named(key);

	(void)arg;
	if (p && p->target_count == REPL_TARGETS_MAX)
		report("%s: more than %d replicas, '%s' is left out", key, REPL_TARGETS_MAX, value);
	else if (p)
		p->targets[p->target_count++] = strdup(value);
}

static void
take_set_line(char *key, char *value, void *arg)
{
	struct repl_config *cfg = arg;

	if (api.repl_config_set(cfg, key, value))
		report("%s", api.repl_errormsg());
}

/* Call take() for each line "key<tab>value" of an environment variable. */
static void
take_lines(const char *name, void (*take)(char *, char *, void *), void *arg)
{
	const char *text = getenv(name);
	char *copy = text ? strdup(text) : NULL;
	char *save = NULL;

	if (!copy)
		return;
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *tab = strchr(line, '\t');

		if (!tab) {
			report("%s: '%s' is not a key, a tab and a value", name, line);
			continue;
		}
		*tab = '\0';
		take(line, tab + 1, arg);
	}
	free(copy);
}

/* ---- fork and exit ---- */

static void
fork_prepare(void)
{
	for (unsigned i = 0; i < pool_count; i++)
		(void)pthread_rwlock_wrlock(&pools[i].lock);
}

static void
fork_parent(void)
{
	for (unsigned i = 0; i < pool_count; i++)
		(void)pthread_rwlock_unlock(&pools[i].lock);
}

/* The handle stays the parent's. The child opens its own when the parent has let go. */
static void
fork_child(void)
{
	flushed = 0;
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		(void)pthread_rwlock_init(&p->lock, NULL);
		for (unsigned k = 0; k < REPL_LANES_MAX; k++)
			(void)pthread_mutex_init(&p->lane_locks[k], NULL);
		if (p->state == POOL_OPEN) {
			api.repl_abandon(p->r);
			(void)real_munmap(p->view, p->size);
		}
		p->r = NULL;
		p->state = POOL_CLOSED;
	}
}

__attribute__((constructor)) static void
pools_init(void)
{
	if (getauxval(AT_SECURE))
		return;
	take_lines(POOLS_ENV, take_pool_line, NULL);
	if (pool_count > 0)
		(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
	atomic_store(&ready, true);
}

bool
pools_any(void)
{
	/* Not before the constructor: it maps memory itself. */
	return atomic_load_explicit(&ready, memory_order_acquire) && pool_count > 0;
}

/* ---- opening and closing ---- */

static void
pool_close_locked(struct pool *p)
{
	if (p->state == POOL_OPEN) {
		if (api.repl_close(p->r))
			report("%s: closing: %s", p->path, api.repl_errormsg());
		(void)real_munmap(p->view, p->size);
		p->r = NULL;
	}
	p->state = POOL_CLOSED;
}

/* The program's own wish is to stop when a replica is lost. */
static void
pool_failed(const struct pool *p, int rc, const char *what)
{
	report("%s: %s: %s", p->path, what, api.repl_errormsg());
	if (rc == REPL_E_LOST)
		abort();
}

static int
view_map(struct pool *p, int fd)
{
	struct stat st;
	void *addr;

	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size % PAGE) {
		report("%s: its size of %lld bytes is not a multiple of %u: not replicated",
		       p->path, (long long)st.st_size, PAGE);
		return -1;
	}
	addr = real_mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (addr == MAP_FAILED) {
		report("%s: mapping it: %s: not replicated", p->path, strerror(errno));
		return -1;
	}
	p->view = addr;
	p->size = (size_t)st.st_size;
	return 0;
}

/* 0, or a status whose text has been taken by why. */
static int
pool_open_replicas(struct pool *p, char *why, size_t size)
{
	struct repl_config *cfg = NULL;
	int rc = api.repl_config_new(&cfg);

	if (!rc)
		rc = api.repl_config_load(cfg, NULL);
	for (unsigned i = 0; !rc && i < p->target_count; i++)
		rc = api.repl_config_add_target(cfg, p->targets[i]);
	if (!rc) {
		take_lines(POOLS_SET, take_set_line, cfg);
		rc = api.repl_open(cfg, p->view, p->size, REPL_OPEN_CREATE, &p->r);
	}
	if (rc)
		(void)snprintf(why, size, "%s", api.repl_errormsg());
	api.repl_config_free(cfg);
	return rc;
}

static void
pool_open_locked(struct pool *p, int fd)
{
	bool again = p->retry_ns != 0;
	char why[512];
	const char *missing;

	p->state = POOL_OFF;
	p->retry_ns = UINT64_MAX;
	missing = api_load();
	if (missing) {
		report("%s: NOT REPLICATED: %s", p->path, missing);
		return;
	}
	if (view_map(p, fd))
		return;
	if (pool_open_replicas(p, why, sizeof(why))) {
		(void)real_munmap(p->view, p->size);
		p->retry_ns = now_ns() + RETRY_NS;
		if (!again)
			report("%s: NOT REPLICATED: %s", p->path, why);
		return;
	}
	if (again)
		report("%s: is replicated now", p->path);
	p->retry_ns = 0;
	p->lanes = api.repl_lanes(p->r);
	atomic_store(&p->look_ns, 0);
	atomic_store(&p->told_lost, 0);
	p->state = POOL_OPEN;
}

/* Open the pool if that is due. The file is the one that is mapped, whatever its path names now. */
static void
pool_ready(struct pool *p, int fd)
{
	(void)pthread_rwlock_wrlock(&p->lock);
	if (p->state == POOL_CLOSED || (p->state == POOL_OFF && now_ns() >= p->retry_ns))
		pool_open_locked(p, fd);
	(void)pthread_rwlock_unlock(&p->lock);
}

/* ---- mappings ---- */

static int
pool_of_file(int fd)
{
	struct stat file, named;

	if (fstat(fd, &file) || !S_ISREG(file.st_mode))
		return -1;
	for (unsigned i = 0; i < pool_count; i++) {
		if (stat(pools[i].path, &named) == 0 && named.st_ino == file.st_ino &&
		    named.st_dev == file.st_dev)
			return (int)i;
	}
	return -1;
}

/*
 * A program that ends without unmapping closes its pools all the same. Not as a
 * destructor: librepl was loaded later and would be gone. Who unmaps in a
 * handler of its own that runs after this one opens the pool once more.
 */
static void
pools_end(void)
{
	for (unsigned i = 0; i < pool_count; i++) {
		(void)pthread_rwlock_wrlock(&pools[i].lock);
		pool_close_locked(&pools[i]);
		(void)pthread_rwlock_unlock(&pools[i].lock);
	}
}

static void
register_end(void)
{
	(void)atexit(pools_end);
}

void
pools_mapped(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	int saved = errno, pool = -1;

	/* What was there before is gone, whatever comes. */
	if (flags & MAP_FIXED)
		pools_unmapped(addr, len);
	if (fd >= 0 && (prot & PROT_WRITE) && (flags & MAP_TYPE) != MAP_PRIVATE)
		pool = pool_of_file(fd);
	if (pool >= 0) {
		(void)pthread_once(&end_once, register_end);
		if (maps_add(addr, len, (uint64_t)off, (unsigned)pool, fd))
			report("%s: too many mappings, not replicated", pools[pool].path);
	}
	errno = saved;
}

void
pools_remapped(void *old, size_t old_len, void *addr, size_t len)
{
	struct maps_piece piece;
	int saved = errno;

	if (maps_find((uintptr_t)old, (uintptr_t)old + 1, &piece)) {
		/* The new one first: a pool that keeps a mapping is not closed. */
		if (addr != old)
			(void)maps_add(addr, len, piece.off, piece.pool, piece.fd);
		else if (len > old_len)
			(void)maps_add((uint8_t *)addr + old_len, len - old_len,
				       piece.off + old_len, piece.pool, piece.fd);
		if (addr != old)
			pools_unmapped(old, old_len);
		else if (len < old_len)
			pools_unmapped((uint8_t *)addr + len, old_len - len);
	}
	errno = saved;
}

void
pools_unmapped(void *addr, size_t len)
{
	int saved = errno;
	uint32_t left, gone = maps_remove(addr, len, &left);

	for (unsigned i = 0; i < pool_count; i++) {
		if (!(gone & ~left & 1U << i))
			continue;
		(void)pthread_rwlock_wrlock(&pools[i].lock);
		pool_close_locked(&pools[i]);
		pools[i].retry_ns = 0;
		(void)pthread_rwlock_unlock(&pools[i].lock);
	}
	errno = saved;
}

/* ---- persistence ---- */

static unsigned
lane_of_thread(const struct pool *p)
{
	if (thread_number == 0)
		thread_number = 1 + atomic_fetch_add(&threads, 1);
	return (thread_number - 1) % p->lanes;
}

static void
pool_flush(struct pool *p, uint64_t off, size_t len)
{
	unsigned lane;
	int rc = 0;

	(void)pthread_rwlock_rdlock(&p->lock);
	if (p->state == POOL_OPEN) {
		lane = lane_of_thread(p);
		if (off < p->size && len <= p->size - off) {
			(void)pthread_mutex_lock(&p->lane_locks[lane]);
			rc = api.repl_flush(p->r, lane, off, len);
			(void)pthread_mutex_unlock(&p->lane_locks[lane]);
		} else {
			report("%s: bytes %llu to %llu lie behind the size of %zu that it was "
			       "opened with: NOT REPLICATED",
			       p->path, (unsigned long long)off, (unsigned long long)off + len,
			       p->size);
		}
		flushed |= 1U << (p - pools);
	}
	(void)pthread_rwlock_unlock(&p->lock);
	if (rc)
		pool_failed(p, rc, "flush");
}

static bool
pool_due(const struct pool *p)
{
	/* A look without the lock: what is missed is seen at the next flush. */
	return p->state != POOL_OPEN;
}

void
pools_flush(const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr, end = at + len;
	struct maps_piece piece;
	int saved = errno;

	while (at < end && maps_find(at, end, &piece)) {
		struct pool *p = &pools[piece.pool];

		if (pool_due(p))
			pool_ready(p, piece.fd);
		pool_flush(p, piece.off, piece.len);
		at = piece.end;
	}
	errno = saved;
}

/* Degraded operation is silent by itself: whoever runs the program is told, once a replica. */
static void
pool_look(struct pool *p)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	uint64_t now = now_ns(), due = atomic_load(&p->look_ns);

	if (now < due || !atomic_compare_exchange_strong(&p->look_ns, &due, now + LOOK_NS))
		return;
	for (unsigned i = 0; i < api.repl_replicas(p->r); i++) {
		if ((atomic_load(&p->told_lost) & 1U << i) || api.repl_stat(p->r, i, &st) ||
		    st.replication != REPL_REPL_DEGRADED)
			continue;
		atomic_fetch_or(&p->told_lost, 1U << i);
		report("%s: REPLICA %s LOST: %s", p->path, p->targets[i], st.reason);
	}
}

static void
pool_drain(struct pool *p)
{
	unsigned lane;
	int rc = 0;

	(void)pthread_rwlock_rdlock(&p->lock);
	if (p->state == POOL_OPEN) {
		lane = lane_of_thread(p);
		(void)pthread_mutex_lock(&p->lane_locks[lane]);
		rc = api.repl_drain(p->r, lane);
		(void)pthread_mutex_unlock(&p->lane_locks[lane]);
		if (!rc)
			pool_look(p);
	}
	(void)pthread_rwlock_unlock(&p->lock);
	if (rc)
		pool_failed(p, rc, "drain");
}

void
pools_drain(void)
{
	uint32_t todo = flushed;
	int saved;

	if (todo == 0)
		return;
	saved = errno;
	flushed = 0;
	for (unsigned i = 0; i < pool_count; i++) {
		if (todo & 1U << i)
			pool_drain(&pools[i]);
	}
	errno = saved;
}
