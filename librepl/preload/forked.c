/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "descriptors.h"
#include "loading.h"
#include "maps.h"
#include "pools_impl.h"
#include "real.h"
#include "retry.h"

#define FORK_WAIT_NS 10000000000ULL
#define FORK_HOLD_NS 1000000000ULL /* that it keeps one lock, and waits for another */
#define NS_A_SECOND  1000000000ULL
#define PAGE         4096U
#define KEPT_MAX     4U
#define EXPORT       __attribute__((visibility("default")))

/*
 * A page that the kernel empties in a child. Of one that _Fork(3) or clone(2) made no handler
 * tells: it has the parent's handles, no thread that serves them, and locks as they were.
 */
static atomic_uchar *mark;
static atomic_bool stray;
static _Atomic unsigned forks;
static _Atomic pid_t self;
static __thread unsigned forking __attribute__((tls_model("initial-exec")));

/* When this thread has locked a pool for writing last. */
static __thread unsigned locked_forks __attribute__((tls_model("initial-exec")));

/* A bit each: whose locks this thread has taken for its fork. Others may fork at the same time. */
static __thread uint32_t fork_locked __attribute__((tls_model("initial-exec")));
static __thread bool fork_api __attribute__((tls_model("initial-exec"))); /* likewise */

/*
 * Forks that take no locks: of handlers that have interrupted work on a pool, or a fork, and of the
 * replicas' threads, for which who has the locks waits.
 */
static __thread unsigned forks_amid __attribute__((tls_model("initial-exec")));

bool
is_sharing(void)
{
	return atomic_load_explicit(&self, memory_order_relaxed) != getpid();
}

unsigned
pools_forks(void)
{
	return atomic_load_explicit(&forks, memory_order_relaxed);
}

bool
pool_unlock(struct pool *p, unsigned since)
{
	if (pools_forks() == since) {
		(void)pthread_rwlock_unlock(&p->lock);
		return true;
	}
	/* One that was waited for while it became new may be neither free nor its thread's. */
	if (p->state == POOL_CLOSED)
		pool_locks_init(p);
	return false;
}

void
pool_lock_write(struct pool *p)
{
	locked_forks = pools_forks();
	(void)pthread_rwlock_wrlock(&p->lock);
}

bool
pool_trylock_write(struct pool *p)
{
	locked_forks = pools_forks();
	return pthread_rwlock_trywrlock(&p->lock) == 0;
}

bool
pool_has_write(void)
{
	return pools_forks() == locked_forks;
}

bool
pool_unlock_write(struct pool *p)
{
	return pool_unlock(p, locked_forks);
}

static void
mark_new(void)
{
	void *page =
		real_mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && syscall(SYS_madvise, page, PAGE, MADV_WIPEONFORK) == 0) {
		mark = page;
		atomic_store(mark, 1);
	}
	atomic_store(&self, getpid());
}

/* The handles stay the parent's. */
static void
child_begin(void)
{
	(void)atomic_fetch_add(&forks, 1);
	thread_forget();
	late_forget();
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		pool_locks_init(p);
		/* Also of one that is being closed. */
		if (p->r)
			api.repl_abandon(p->r);
		p->r = NULL;
		p->state = POOL_CLOSED;
		p->retry_ns = 0;
		p->forked = true;
		p->stored = false;
		p->written_ino = 0;
		p->told_stray = false;
		p->told_loading = false;
		p->owing = false;
		p->stuck = 0;
	}
	api_forked();
	kin_forked();
	descriptors_forked();
	missed_forked();
	last_thread_forked();
	loading_forked();
	retry_forked();
	atomic_store(&self, getpid());
	if (mark)
		atomic_store(mark, 1);
}

static bool
is_unseen(void)
{
	return mark && forking == 0 && atomic_load_explicit(mark, memory_order_relaxed) == 0;
}

void
fork_look(void)
{
	if (!is_unseen())
		return;
	atomic_store(&stray, true);
	maps_unseen();
	descriptors_inherit();
	child_begin();
}

bool
pools_may_open(struct pool *p)
{
	if (pool_is_over(p)) {
		if (!atomic_exchange(&p->told_over, true)) {
			report("%s: made durable by a thread behind the end of the program: NOT "
			       "REPLICATED until the pool is opened next; next: join it before "
			       "exit(3)",
			       p->path);
			/* The replicas are called up to date by now. */
			(void)mark_set(p);
		}
		return false;
	}
	if (!atomic_load(&stray))
		return true;
	if (!atomic_exchange(&p->told_stray, true))
		report("%s: made durable by a child of _Fork(3) or clone(2): NOT REPLICATED until "
		       "the pool is opened next; next: use fork(2)",
		       p->path);
	return false;
}

static struct timespec
time_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_A_SECOND),
				 .tv_nsec = (long)(ns % NS_A_SECOND)};
}

/* What is free is taken at once, whatever the time. */
static bool
fork_lock(unsigned pool, uint64_t until_ns)
{
	struct timespec until = time_of(until_ns);

	if (!(fork_locked & 1U << pool) &&
	    pthread_rwlock_clockwrlock(&pools[pool].lock, CLOCK_MONOTONIC, &until) == 0)
		fork_locked |= 1U << pool;
	return fork_locked & 1U << pool;
}

static void
fork_unlock(void)
{
	for (unsigned i = 0; i < pool_count; i++) {
		if (fork_locked & 1U << i)
			(void)pthread_rwlock_unlock(&pools[i].lock);
	}
	fork_locked = 0;
}

/* Returns one that has not come free until then, or pool_count. */
static unsigned
fork_lock_all(uint64_t until_ns)
{
	unsigned i = 0;

	while (i < pool_count && fork_lock(i, until_ns))
		i++;
	return i;
}

/*
 * One that is being opened may be so for long: meanwhile the others are not held, whose threads
 * would wait for it, too. It goes on without those that it can't have.
 */
static void
fork_lock_pools(uint64_t end_ns)
{
	unsigned at = fork_lock_all(0);

	while (at < pool_count && now_ns() < end_ns) {
		fork_unlock();
		(void)fork_lock(at, end_ns);
		at = fork_lock_all(now_ns() + FORK_HOLD_NS < end_ns ? now_ns() + FORK_HOLD_NS
								    : end_ns);
	}
	for (; at < pool_count; at++)
		(void)fork_lock(at, 0);
}

/*
 * What the allocator has registered behind ours, as from a constructor. Its locks are needed under
 * ours, as by an opening that a fork waits for: so they are taken behind them, and given back
 * before.
 */
enum { KEPT_NONE, KEPT_BEGUN, KEPT };

static struct {
	atomic_uint state;
	void (*prepare)(void);
	void (*parent)(void);
	void (*child)(void);
} kept[KEPT_MAX];

/* A bit each: what this thread's fork has prepared. */
static __thread uint32_t fork_kept __attribute__((tls_model("initial-exec")));

static bool
kept_add(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		unsigned none = KEPT_NONE;

		if (!atomic_compare_exchange_strong(&kept[i].state, &none, KEPT_BEGUN))
			continue;
		kept[i].prepare = prepare;
		kept[i].parent = parent;
		kept[i].child = child;
		atomic_store(&kept[i].state, KEPT);
		return true;
	}
	return false;
}

static void
kept_prepare(void)
{
	uint32_t bits = 0;

	for (unsigned i = KEPT_MAX; i-- > 0;) {
		if (atomic_load(&kept[i].state) != KEPT)
			continue;
		bits |= 1U << i;
		if (kept[i].prepare)
			kept[i].prepare();
	}
	fork_kept = bits;
}

static void
kept_end(bool child)
{
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		void (*end)(void) = child ? kept[i].child : kept[i].parent;

		if (fork_kept & 1U << i && end)
			end();
	}
}

static void
pools_prepare(void)
{
	/* libssh forks for a command of ssh's config. */
	bool amid = pools_busy() || thread_is_theirs();
	/* No longer than that, whatever is done to the time of day: the child is to run in any
	 * case. */
	uint64_t end_ns = now_ns() + FORK_WAIT_NS;
	struct timespec end = time_of(end_ns);

	if (!pools_any())
		return;
	forking++;
	/* A handler would wait for its own thread. */
	calm_hold();
	if (amid) {
		forks_amid++;
	} else {
		fork_api = api_fork_begin(&end);
		fork_lock_pools(end_ns);
	}
	maps_fork_begin();
}

static void
fork_prepare(void)
{
	pools_prepare();
	kept_prepare();
}

static void
fork_parent(void)
{
	kept_end(false);
	if (forking == 0)
		return;
	maps_fork_end();
	forking--;
	if (forks_amid > 0) {
		forks_amid--;
	} else {
		fork_unlock();
		if (fork_api)
			api_fork_end();
		fork_api = false;
	}
	calm_let_go();
	calm_end(calm_begin());
}

/* It opens handles of its own when the parent has let go. */
static void
fork_child(void)
{
	kept_end(true);
	if (forking == 0)
		return;
	maps_fork_end();
	child_begin();
	fork_locked = 0;
	fork_api = false;
	forks_amid = 0;
	forking = 0;
	calm_let_go();
}

static atomic_bool registered;

static void
fork_register(void)
{
	if (!atomic_exchange(&registered, true))
		(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* Where the allocator's functions are. */
static struct {
	atomic_bool known;
	uintptr_t begin, end;
	bool shared; /* a library, and not the program, which registers more than that */
} allocator;

static void
allocator_look(void)
{
	struct dl_find_object object;

	if (atomic_load(&allocator.known))
		return;
	if (_dl_find_object(dlsym(RTLD_DEFAULT, "malloc"), &object) == 0) {
		allocator.begin = (uintptr_t)object.dlfo_map_start;
		allocator.end = (uintptr_t)object.dlfo_map_end;
		allocator.shared = object.dlfo_link_map->l_name[0] != '\0';
	}
	atomic_store(&allocator.known, true);
}

/* of: an address in who registers, NULL: in the program. Who calls us may be who has called that.
 */
static bool
is_allocator(const void *of)
{
	return of ? (uintptr_t)of >= allocator.begin && (uintptr_t)of < allocator.end
		  : !allocator.shared;
}

/*
 * What pthread_atfork(3) calls. Last before a fork comes what is registered first: so ours comes
 * before that of any library's constructor, whose lock a thread may hold that makes bytes durable.
 * But the allocator's locks, which are needed under ours, are taken behind them: ours waits for its
 * own to be registered, or keeps them. From our own constructor on the linker is asked nothing: it
 * may be another thread's, whose library's constructor waits for this one.
 */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *of);

EXPORT int
__register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *of)
{
	static __typeof__(&__register_atfork) _Atomic known;
	__typeof__(&__register_atfork) real = atomic_load(&known);

	if (!real) {
		real = (__typeof__(real))(uintptr_t)dlsym(RTLD_NEXT, "__register_atfork");
		atomic_store(&known, real);
	}
	allocator_look();
	if (!is_allocator(of))
		fork_register();
	else if (atomic_load(&registered) && allocator.shared && kept_add(prepare, parent, child))
		return 0;
	return real(prepare, parent, child, of);
}

void
fork_begin(void)
{
	mark_new();
	allocator_look();
	fork_register();
}
