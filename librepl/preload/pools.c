/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
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
#include "descriptors.h"
#include "lines.h"
#include "loading.h"
#include "maps.h"
#include "pools_impl.h"
#include "real.h"
#include "retry.h"
#include "stderrline.h"

#define FORK_WAIT_NS 10000000000ULL
#define FORK_HOLD_NS 1000000000ULL /* that it keeps one lock, and waits for another */
#define NS_A_SECOND  1000000000ULL
#define PAGE         4096U
#define LATE_MAX     16

struct pool pools[POOLS_MAX];
unsigned pool_count;
char *pools_set, *pools_config;
static struct lines reports;
static atomic_bool ready;

int
pool_of_file(int fd, struct stat *file)
{
	struct stat named;
	int had = -1;

	if (fstat(fd, file) || !S_ISREG(file->st_mode))
		return -1;
	for (unsigned i = 0; i < pool_count; i++) {
		const struct pool *p = &pools[i];

		if (stat(p->path, &named)) {
			if (p->view && p->dev == file->st_dev && p->ino == file->st_ino)
				had = (int)i;
		} else if (named.st_ino == file->st_ino && named.st_dev == file->st_dev) {
			return (int)i;
		}
	}
	return had;
}

bool
report(const char *format, ...)
{
	char line[1024];
	va_list ap;
	struct stat st;
	int n, m;

	/* In a daemon that number may be anything, a pool's too. */
	if (pool_of_file(STDERR_FILENO, &st) >= 0 || !lines_take(&reports, now_ns()))
		return false;
	n = snprintf(line, sizeof(line), "librepl-preload[%d]: ", (int)getpid());
	va_start(ap, format);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n, format, ap);
	va_end(ap);
	if (m < 0)
		return false;
	n += m;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	stderrline_put(line, (size_t)n);
	return true;
}

void
report_room(void)
{
	atomic_store(&reports.all_ns, 0);
}

uint64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* In a signal handler that has interrupted such work: the locks are this thread's own. */
static __thread volatile unsigned busy __attribute__((tls_model("initial-exec")));

/* What the handler has flushed, for when that work ends. */
struct late {
	struct pool *pool;
	uint64_t off;
	size_t len;
	enum look look;
};

static __thread struct late late[LATE_MAX] __attribute__((tls_model("initial-exec")));
static __thread volatile unsigned late_count __attribute__((tls_model("initial-exec")));

static void late_flush(void);
static void late_lost(const struct pool *p);

/*
 * A page that the kernel empties in a child. Of one that _Fork(3) or clone(2) made no handler
 * tells: it has the parent's handles, no thread that serves them, and locks as they were.
 */
static atomic_uchar *mark;
static atomic_bool stray;
static _Atomic pid_t self;
static __thread unsigned forking __attribute__((tls_model("initial-exec")));

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

static void
busy_end(void)
{
	/* Such a one has left what there is to its parent's thread, which waits for it. */
	bool leave = late_count > 0 && is_sharing();

	while (busy == 1 && !leave) {
		late_flush();
		busy = 0;
		/* From here on they are flushed at once. */
		if (late_count == 0)
			return;
		busy = 1;
	}
	busy--;
}

struct calm
calm_begin(void)
{
	struct calm c = {.saved_errno = errno};

	busy++;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
	return c;
}

void
calm_end(struct calm c)
{
	busy_end();
	(void)pthread_setcancelstate(c.cancel, NULL);
	errno = c.saved_errno;
}

bool
pools_busy(void)
{
	return busy > 0;
}

/* ---- what the environment names ---- */

static void
pool_locks_init(struct pool *p)
{
	pthread_rwlockattr_t a;

	/* Who opens, closes or forks gets its turn among threads that persist all the time. */
	(void)pthread_rwlockattr_init(&a);
	(void)pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&p->lock, &a);
	(void)pthread_rwlockattr_destroy(&a);
	for (unsigned i = 0; i < REPL_LANES_MAX; i++)
		(void)pthread_mutex_init(&p->lane_locks[i], NULL);
	(void)pthread_mutex_init(&p->serving, NULL);
}

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
	pool_locks_init(p);
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

void
take_lines(const char *name, const char *text, void (*take)(char *, char *, void *), void *arg)
{
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
	thread_forget();
	late_count = 0;
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		pool_locks_init(p);
		if (p->state == POOL_OPEN)
			api.repl_abandon(p->r);
		p->r = NULL;
		p->state = POOL_CLOSED;
		p->retry_ns = 0;
		p->forked = true;
		p->stored = false;
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

static void
unseen_begin(void)
{
	atomic_store(&stray, true);
	maps_unseen();
	descriptors_inherit();
	child_begin();
}

bool
pool_is_over(const struct pool *p)
{
	pid_t by = atomic_load(&p->over_by);

	return by && by != gettid();
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

static void
fork_prepare(void)
{
	/* libssh forks for a command of ssh's config. */
	bool amid = busy > 0 || thread_is_theirs();
	/* No longer than that, whatever is done to the time of day: the child is to run in any
	 * case. */
	uint64_t end_ns = now_ns() + FORK_WAIT_NS;
	struct timespec end = time_of(end_ns);

	(void)pools_any();
	forking++;
	/* A handler would wait for its own thread. */
	busy++;
	if (amid) {
		forks_amid++;
	} else {
		fork_api = api_fork_begin(&end);
		fork_lock_pools(end_ns);
	}
	maps_fork_begin();
}

static void
fork_parent(void)
{
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
	busy--;
	calm_end(calm_begin());
}

/* It opens handles of its own when the parent has let go. */
static void
fork_child(void)
{
	maps_fork_end();
	child_begin();
	fork_locked = 0;
	fork_api = false;
	forks_amid = 0;
	forking = 0;
	busy--;
}

static char *
own(const char *text)
{
	char *copy = text && *text ? strdup(text) : NULL;

	if (text && *text && !copy)
		report("out of memory for the configuration");
	return copy;
}

static void pools_end_last(void);

__attribute__((constructor)) static void
pools_init(void)
{
	if (getauxval(AT_SECURE))
		return;
	/* It has had no time yet to close its standard error. */
	stderrline_begin();
	take_lines(POOLS_ENV, getenv(POOLS_ENV), take_pool_line, NULL);
	pools_set = own(getenv(POOLS_SET));
	/* A replctl of before, in whose environment this program was started, hands over no keys
	 * of its file. */
	if (!pools_set || !strstr(pools_set, "resync-rate\t"))
		pools_config = own(getenv("REPL_CONFIG"));
	pool_policy_begin();
	if (pool_count > 0) {
		mark_new();
		api_begin();
		kin_begin();
		(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
		(void)atexit(pools_end_last);
		missed_begin();
	}
	atomic_store(&ready, true);
	pools_mapped_before();
}

bool
pools_any(void)
{
	/* Not before the constructor: it maps memory itself. */
	if (!atomic_load_explicit(&ready, memory_order_acquire) || pool_count == 0)
		return false;
	if (is_unseen())
		unseen_begin();
	return true;
}

static void
pools_close(void)
{
	for (unsigned i = 0; i < pool_count; i++) {
		pool_leave(&pools[i]);
		(void)pthread_rwlock_wrlock(&pools[i].lock);
		pool_close_locked(&pools[i]);
		(void)pthread_rwlock_unlock(&pools[i].lock);
	}
}

/* What this thread has opened since; who else has opened one goes on with it until the end. */
static void
pools_close_own(void)
{
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		if (pthread_rwlock_trywrlock(&p->lock))
			continue;
		if (p->state == POOL_OPEN && p->opener == gettid())
			pool_close_locked(p);
		(void)pthread_rwlock_unlock(&p->lock);
	}
}

static void
pools_close_calmly(void)
{
	struct calm calm = calm_begin();

	pools_close();
	calm_end(calm);
	/* What a signal handler has flushed meanwhile has opened its pool once more. */
	calm = calm_begin();
	pools_close_own();
	calm_end(calm);
}

/* False: nothing may be done at exit. */
static bool
may_end(void)
{
	(void)pools_any();
	/* The parent goes on with the handles. */
	if (is_sharing())
		return false;
	if (busy == 0)
		calm_end(calm_begin());
	return busy == 0;
}

/*
 * A program that ends without unmapping closes its pools all the same. Not as a
 * destructor: librepl was loaded later and would be gone. Who unmaps in a
 * handler of its own that runs after this one opens the pool once more.
 */
static void
pools_end(void)
{
	if (!may_end()) {
		for (unsigned i = 0; i < late_count && !is_sharing(); i++)
			late_lost(late[i].pool);
		return;
	}
	pools_close_calmly();
}

void
pools_end_openssl(void)
{
	if (may_end())
		pools_close_calmly();
}

/*
 * The last of all handlers, but for those of libraries that were there before this one. Behind it
 * the libraries that an opening needs take themselves apart, while other threads may go on: these
 * find the pools closed from here on.
 */
static void
pools_end_last(void)
{
	struct calm calm;

	if (!may_end())
		return;
	calm = calm_begin();
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		(void)pthread_rwlock_wrlock(&p->lock);
		if (p->state == POOL_OPEN)
			pool_close_locked(p);
		atomic_store(&p->over_by, gettid());
		(void)pthread_rwlock_unlock(&p->lock);
	}
	calm_end(calm);
}

/* Others may make more durable, and each opening compares the whole pool: none is closed yet. */
static void
pools_end_begins(void)
{
	struct calm calm;

	if (!may_end())
		return;
	calm = calm_begin();
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		pool_leave(p);
		(void)pthread_rwlock_wrlock(&p->lock);
		if (p->state == POOL_OPEN)
			pool_commit_last(p);
		(void)pthread_rwlock_unlock(&p->lock);
	}
	calm_end(calm);
}

void
register_end(void)
{
	(void)atexit(pools_end);
}

void
register_end_begins(void)
{
	(void)atexit(pools_end_begins);
}

/* ---- persistence ---- */

/* Its first piece. What lies in no pool may have become one's, if that is not looked at yet. */
static bool
range_find(uintptr_t at, uintptr_t end, struct maps_piece *piece)
{
	return maps_find(at, end, piece) || (pools_look_due() && maps_find(at, end, piece));
}

bool
pools_concern(const void *addr, size_t len)
{
	struct maps_piece any;

	return thread_flushed() || range_find((uintptr_t)addr, (uintptr_t)addr + len, &any);
}

static void
signals_block(sigset_t *before)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, before);
}

static void
late_lost(const struct pool *p)
{
	report("%s: flushed by a signal handler amid another flush: NOT REPLICATED", p->path);
}

/* Another handler may interrupt this one. What touches what is there becomes one with it. */
static void
late_add(struct pool *p, uint64_t off, size_t len, enum look look)
{
	uint64_t end = off + len;
	struct late *l = late;
	sigset_t before;

	signals_block(&before);
	while (l < late + late_count &&
	       (l->pool != p || l->look != look || end < l->off || off > l->off + l->len))
		l++;
	if (l < late + late_count) {
		off = off < l->off ? off : l->off;
		end = end > l->off + l->len ? end : l->off + l->len;
	} else if (l < late + LATE_MAX) {
		late_count++;
	} else {
		late_lost(p);
		l = NULL;
	}
	if (l)
		*l = (struct late){.pool = p, .off = off, .len = (size_t)(end - off), .look = look};
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The handle may have connections that the parent has opened since: they are none of the child's.
 */
static void
sharing_flush(uintptr_t at, uintptr_t end, enum look look)
{
	int saved_errno = errno;
	struct maps_piece piece;

	for (; at < end && maps_find(at, end, &piece); at = piece.end) {
		struct pool *p = &pools[piece.pool];

		if (busy == 0 && kin_serves(piece.pool)) {
			thread_post(p, piece.off, piece.len);
			continue;
		}
		late_add(p, piece.off, piece.len, look);
		if (!atomic_exchange(&p->told_sharing, true))
			report("%s: made durable by a child that shares its parent's memory, as of "
			       "vfork(2): on the replicas when the thread that made it makes bytes "
			       "durable",
			       p->path);
	}
	errno = saved_errno;
}

static void
range_flush(const void *addr, size_t len, enum look look)
{
	uintptr_t at = (uintptr_t)addr, end = at + len;
	struct maps_piece piece;
	struct calm calm;
	bool amid;

	if (!range_find(at, end, &piece)) {
		pools_missed(addr);
		return;
	}
	if (is_sharing()) {
		sharing_flush(at, end, look);
		return;
	}
	amid = busy > 0;
	calm = calm_begin();
	do {
		if (amid)
			late_add(&pools[piece.pool], piece.off, piece.len, look);
		else
			piece_flush(&pools[piece.pool], piece.off, piece.len, look);
		at = piece.end;
	} while (at < end && maps_find(at, end, &piece));
	calm_end(calm);
}

void
pools_flush(const void *addr, size_t len)
{
	range_flush(addr, len, LOOK_NOT);
}

void
pools_sync(const void *addr, size_t len)
{
	range_flush(addr, len, LOOK_SYNC);
}

void
pools_zeroed(const void *addr, size_t len)
{
	range_flush(addr, len, LOOK_CHANGED);
}

void
pools_drain(void)
{
	struct calm calm;

	if (!thread_flushed() || busy > 0)
		return;
	calm = calm_begin();
	if (is_sharing())
		thread_settle();
	else
		thread_drain();
	calm_end(calm);
}

/* The replicas are another process's, or are about to be, and compared with the file by now. */
static bool
is_of_kin(const struct pool *p, dev_t dev, ino_t ino)
{
	unsigned number = (unsigned)(p - pools);

	return kin_opens(number, dev, ino) || kin_has(number, dev, ino);
}

static bool
has_file(const struct pool *p, const struct stat *file)
{
	return p->dev == file->st_dev && p->ino == file->st_ino;
}

/*
 * It is the pool's. Who was there before that was mapped, and has not mapped it, changes it by a
 * descriptor: it is the file then that another process of the kin has open, whichever one was
 * mapped here before.
 */
static bool
pool_is_file(struct pool *p, const struct stat *file, bool amid)
{
	int rc = -1;

	if (!p->view && !has_file(p, file) && is_of_kin(p, file->st_dev, file->st_ino))
		rc = amid ? pthread_rwlock_trywrlock(&p->lock) : pthread_rwlock_wrlock(&p->lock);
	if (rc == 0) {
		if (!p->view && !has_file(p, file)) {
			p->dev = file->st_dev;
			p->ino = file->st_ino;
			p->born_ns = 0;
		}
		(void)pthread_rwlock_unlock(&p->lock);
	}
	return has_file(p, file);
}

/* Another process of the kin has it for the pool, while the one before is mapped here. */
static bool
is_given(const struct pool *p, const struct stat *file)
{
	return !has_file(p, file) && is_of_kin(p, file->st_dev, file->st_ino);
}

/* What is behind the replicas' size comes when that grows. */
static void
pool_changed(struct pool *p, const struct stat *file, uint64_t from, uint64_t to, bool amid)
{
	bool is;

	/* Of another file nobody waits: librepl's threads have some, and may be waited for. */
	if (!pool_is_file(p, file, amid)) {
		if (is_given(p, file) && from < to)
			pool_give(p, from, (size_t)(to - from));
		return;
	}
	if (!amid)
		(void)pthread_rwlock_rdlock(&p->lock);
	is = p->state == POOL_OPEN;
	if (is && to > p->size)
		to = p->size;
	if (!is && to == UINT64_MAX)
		to = (uint64_t)file->st_size;
	if (!amid)
		(void)pthread_rwlock_unlock(&p->lock);
	if (!is)
		pool_missed(p);
	if (!(is || is_of_kin(p, p->dev, p->ino)) || from >= to)
		return;
	if (amid)
		late_add(p, from, (size_t)(to - from), LOOK_CHANGED);
	else
		piece_flush(p, from, (size_t)(to - from), LOOK_CHANGED);
}

/* A pool that is not open gets all that its file has when it is. */
void
pools_changed(const struct stat *file, uint64_t from, uint64_t to)
{
	bool amid = busy > 0 || is_sharing();
	struct calm calm = calm_begin();

	for (unsigned i = 0; i < pool_count; i++)
		pool_changed(&pools[i], file, from, to, amid);
	if (!amid && thread_flushed())
		thread_drain();
	calm_end(calm);
}

void
pools_shrink(const struct stat *file, uint64_t to)
{
	struct calm calm;

	if (busy > 0 || is_sharing())
		return;
	calm = calm_begin();
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		if (!pool_is_file(p, file, false)) {
			if (is_given(p, file))
				pool_given_all(p);
			continue;
		}
		if (pool_elsewhere(p))
			pool_settle_all(p);
		else
			pool_commit(p, to);
	}
	calm_end(calm);
}

void
pools_resized(const struct stat *file)
{
	bool amid = busy > 0 || is_sharing();
	struct calm calm = calm_begin();

	for (unsigned i = 0; i < pool_count; i++) {
		if (!pool_is_file(&pools[i], file, amid)) {
			if (is_given(&pools[i], file)) {
				kin_resized(i, (uint64_t)file->st_size);
				kin_longer(i);
			}
			continue;
		}
		view_ends_at(&pools[i], (uint64_t)file->st_size);
		atomic_store(&pools[i].longer, true);
		if (is_of_kin(&pools[i], pools[i].dev, pools[i].ino))
			kin_longer(i);
	}
	calm_end(calm);
}

/* Drained, too: the handler has counted on that. */
static void
late_flush(void)
{
	struct late now[LATE_MAX];
	unsigned count;
	sigset_t before;

	if (late_count == 0)
		return;
	signals_block(&before);
	count = late_count;
	memcpy(now, late, sizeof(now));
	late_count = 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (unsigned i = 0; i < count; i++) {
		/* Not mapped any more; one that was not open yet is opened. */
		if (now[i].pool->state == POOL_CLOSED && !now[i].pool->view)
			late_lost(now[i].pool);
		else
			piece_flush(now[i].pool, now[i].off, now[i].len, now[i].look);
	}
	thread_drain();
}
