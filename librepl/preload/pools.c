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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "lines.h"
#include "maps.h"
#include "pools_impl.h"
#include "stderrline.h"

#define TEXT_BYTES 16384U
/* A pipe that has any room takes it: more may have to wait for the reader. */
#define LINE_BYTES 4096U

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

/*
 * Room for the longest text: it may have a path three times. Not on the stack, of which a signal
 * handler or a small thread has little, nor behind a lock, which it may interrupt: whoever finds
 * none free does with the little that it has.
 */
static struct {
	atomic_bool taken;
	char text[TEXT_BYTES];
} rooms[2];

static char *
room_take(unsigned *at)
{
	for (*at = 0; *at < sizeof(rooms) / sizeof(rooms[0]); (*at)++)
		if (!atomic_exchange(&rooms[*at].taken, true))
			return rooms[*at].text;
	return NULL;
}

/* Its end says what is to be done, its beginning of which process and file it is. */
static size_t
line_cut(char *line, size_t len)
{
	static const char gap[] = " [...] ";
	const size_t head = LINE_BYTES / 4, tail = LINE_BYTES - head - strlen(gap);

	if (len <= LINE_BYTES)
		return len;
	memcpy(line + head, gap, strlen(gap));
	memmove(line + head + strlen(gap), line + len - tail, tail);
	return LINE_BYTES;
}

__attribute__((format(printf, 3, 0))) static void
line_put(char *line, size_t size, const char *format, va_list ap)
{
	int n = snprintf(line, size, "librepl-preload[%d]: ", (int)getpid());
	int m = vsnprintf(line + n, size - (size_t)n, format, ap);
	size_t len = (size_t)n + (m > 0 ? (size_t)m : 0);

	len = len < size - 1 ? len : size - 2;
	line[len++] = '\n';
	stderrline_put(line, line_cut(line, len));
}

bool
report(const char *format, ...)
{
	char little[1024], *line;
	va_list ap;
	struct stat st;
	unsigned at;

	/* In a daemon that number may be anything, a pool's too. */
	if (pool_of_file(STDERR_FILENO, &st) >= 0 || !lines_take(&reports, now_ns()))
		return false;
	line = room_take(&at);
	va_start(ap, format);
	line_put(line ? line : little, line ? TEXT_BYTES : sizeof(little), format, ap);
	va_end(ap);
	if (line)
		atomic_store(&rooms[at].taken, false);
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

/* ---- what the environment names ---- */

void
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

static char *
own(const char *text)
{
	char *copy = text && *text ? strdup(text) : NULL;

	if (text && *text && !copy)
		report("out of memory for the configuration");
	return copy;
}

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
		fork_begin();
		api_begin();
		kin_begin();
		ending_begin();
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
	fork_look();
	return true;
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

/* The handle may have connections that the parent has opened since: they are none of the child's.
 */
static void
sharing_flush(uintptr_t at, uintptr_t end, enum look look)
{
	int saved_errno = errno;
	struct maps_piece piece;

	for (; at < end && maps_find(at, end, &piece); at = piece.end) {
		struct pool *p = &pools[piece.pool];

		if (!pools_busy() && kin_serves(piece.pool)) {
			thread_post(p, piece.off, piece.len, look);
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
	amid = pools_busy();
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

	if (!thread_flushed() || pools_busy())
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
	unsigned forks = pools_forks();
	int rc = -1;

	if (!p->view && !has_file(p, file) && is_of_kin(p, file->st_dev, file->st_ino))
		rc = amid ? pthread_rwlock_trywrlock(&p->lock) : pthread_rwlock_wrlock(&p->lock);
	if (rc == 0) {
		if (!p->view && !has_file(p, file)) {
			pool_set_file(p, file, 0);
			mark_name(p, -1);
		}
		(void)pool_unlock(p, forks);
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
	unsigned forks = pools_forks();
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
		(void)pool_unlock(p, forks);
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
	bool amid = pools_busy() || is_sharing();
	struct calm calm = calm_begin();

	for (unsigned i = 0; i < pool_count; i++)
		pool_changed(&pools[i], file, from, to, amid);
	if (!amid && thread_flushed())
		thread_drain();
	calm_end(calm);
}

/* A bit for each whose file it is, and that is locked from then on. */
static uint32_t
pools_hold(const struct stat *file, uint64_t to, unsigned forks)
{
	uint32_t held = 0;

	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		if (pool_is_file(p, file, false) && !pool_elsewhere(p))
			held |= 1U << i;
		else if (has_file(p, file))
			pool_settle_all(p);
		else if (is_given(p, file))
			pool_given_all(p);
	}
	for (unsigned i = 0; i < pool_count; i++) {
		if (held & 1U << i)
			pool_commit_hold(&pools[i], to, forks);
	}
	return held;
}

int
pools_shrink(const struct stat *file, uint64_t to, int (*call)(const void *), const void *arg)
{
	unsigned forks = pools_forks();
	struct calm calm;
	uint32_t held;
	int rc;

	if (pools_busy() || is_sharing())
		return call(arg);
	calm = calm_begin();
	held = pools_hold(file, to, forks);
	if (!held) {
		calm_end(calm);
		return call(arg);
	}
	rc = call(arg);
	if (rc < 0)
		calm.saved_errno = errno;
	for (unsigned i = 0; i < pool_count; i++) {
		if (held & 1U << i)
			(void)pool_unlock(&pools[i], forks);
	}
	calm_end(calm);
	return rc;
}

void
pools_resized(const struct stat *file)
{
	bool amid = pools_busy() || is_sharing();
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
