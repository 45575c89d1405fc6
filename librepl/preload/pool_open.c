/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, closing and growing the replicas of a pool. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "err.h"
#include "filelock.h"
#include "loading.h"
#include "maps.h"
#include "missedmark.h"
#include "pools_impl.h"
#include "retry.h"

#define RETRY_NS     1000000000ULL
#define INHERIT_NS   5000000000ULL
#define PAUSE_NS     10000000L
#define CLOSE_TRIES  2
#define BLOCK_NS     60000000000ULL
#define LOADS_NS     5000000000ULL /* that others load for who tries again */
#define AGAIN_NS     200000000ULL  /* from one try to the next, at first */
#define AGAIN_NS_MAX 2000000000ULL
#define NS_A_SECOND  1000000000ULL
#define RETRY_SHARE  20U /* at most a part of this of the time is spent on trying again */
#define CONNECT_NS   10000000000ULL
#define REACHED      3U /* times connect-timeout: all targets have been asked by then */
#define CUTS_MAX     20U
#define PAGE         4096U

/* No status: pool_has_write() no more. */
#define LEFT 1

#define LOADING "a library is being loaded, whose constructor may wait"

static pthread_once_t open_once = PTHREAD_ONCE_INIT;

/* Looked up while there is memory, and by no signal handler. */
static struct policy {
	bool fail, block;
	uint64_t block_ns, connect_ns;
} policy = {.block_ns = BLOCK_NS, .connect_ns = CONNECT_NS};

struct settings {
	struct repl_config *cfg;
	struct pool *p;
	unsigned targets;
};

static atomic_bool told_setting;

static void
take_set_line(char *key, char *value, void *arg)
{
	struct settings *s = arg;
	bool target = strcmp(key, "target") == 0 || strcmp(key, "async-target") == 0;

	if (api.repl_config_set(s->cfg, key, value)) {
		if (!atomic_exchange(&told_setting, true))
			report("%s", api.repl_errormsg());
	} else if (target) {
		if (!s->p->targets[s->targets])
			s->p->targets[s->targets] = strdup(value);
		s->targets++;
	}
}

void
pool_failed(const struct pool *p, int rc, const char *what)
{
	if (rc == REPL_E_LOST)
		report_room();
	report("%s: %s: %s", p->path, what, api.repl_errormsg());
	if (rc == REPL_E_LOST)
		abort();
}

/*
 * The file's size is known then; *fd is as of view_open(). By its name, or where that can't be
 * looked up by what the program and its kin have made it. False: it is longer than that, or they
 * have told of another file, which has its name. It is to be looked at again.
 */
static bool
size_look(struct pool *p, int *fd)
{
	uint64_t end;

	*fd = view_open(p);
	if (*fd >= 0)
		return true;
	end = view_ended(p);
	if (end <= p->room && (end == 0 || view_has(p, end - 1, 1) == 1)) {
		p->file_size = (size_t)end;
		return true;
	}
	atomic_store(&p->longer, true);
	return false;
}

/* Look at the file's size; the view covers it. 0, or a status whose text has been taken by why. */
static int
view_ready(struct pool *p, char *why, size_t size)
{
	int fd, rc = 0;
	bool named;
	size_t has;

	(void)size_look(p, &fd);
	named = fd >= 0;

	if (fd >= 0 && (!p->view || p->room < p->file_size)) {
		view_unmap(p);
		rc = view_map(p, fd);
	}
	if (rc || !p->view)
		(void)snprintf(why, size, "mapping it: %s", strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	if (rc || !p->view)
		return REPL_E_IO;
	/* By its name librepl finds holes that have no space; it would end the program here. */
	has = named || p->file_size > p->room ? p->file_size : view_has(p, 0, p->file_size);
	if (p->file_size > p->room)
		(void)snprintf(why, size, "%zu of its %zu bytes can be looked at", p->room,
			       p->file_size);
	else if (has < p->file_size)
		(void)snprintf(why, size, "byte %zu of it can't be read, nor its name looked up",
			       has);
	else
		return 0;
	return REPL_E_INVAL;
}

static void
take_policy_line(char *key, char *value, void *arg)
{
	struct policy *p = arg;

	if (strcmp(key, "on-loss") == 0) {
		p->fail = strcmp(value, "fail") == 0;
		p->block = strcmp(value, "block") == 0;
	} else if (strcmp(key, "block-timeout") == 0) {
		p->block_ns = strtoull(value, NULL, 10) * 1000000;
	} else if (strcmp(key, "connect-timeout") == 0) {
		p->connect_ns = strtoull(value, NULL, 10) * 1000000;
	}
}

void
pool_policy_begin(void)
{
	take_lines(POOLS_SET, pools_set, take_policy_line, &policy);
}

/*
 * on-loss = fail or block: of the command line and its configuration, replctl tells it in any case.
 * That a program can't be followed from the beginning is no better than that its replica is lost.
 * But for a child of a fork, while its parent has the pool: its own replicas come when that lets
 * go.
 */
static bool
pool_must_end(const struct pool *p, int rc)
{
	return (policy.fail || policy.block) && !(rc == REPL_E_BUSY && p->forked);
}

static const char *
behind_next(const struct pool *p)
{
	if (atomic_load(&p->longer))
		return "let that path name the file, which it does not";
	if (atomic_load(&p->end) > p->size)
		return "make the file's size a multiple of 4096: a replica in the files of a pool "
		       "set, or at a target of an earlier version, has no other";
	return "see why it makes durable what its file has not";
}

void
pool_behind(struct pool *p, uint64_t from, uint64_t to)
{
	size_t size = p->size;

	if (atomic_exchange(&p->told_behind, size) == size)
		return;
	if (pool_must_end(p, REPL_E_INVAL))
		report_room();
	report("%s: bytes %llu to %llu lie behind its size of %zu: NOT REPLICATED; next: %s",
	       p->path, (unsigned long long)from, (unsigned long long)to, size, behind_next(p));
	if (pool_must_end(p, REPL_E_INVAL))
		abort();
}

/* 0, or a status whose text has been taken by why. */
static int
pool_open_replicas(struct pool *p, char *why, size_t size)
{
	struct settings settings = {.p = p, .targets = p->target_count};
	struct repl_config *cfg = NULL;
	struct repl *r = NULL;
	int rc = api.repl_config_new(&cfg);

	if (!rc && pools_config && *pools_config)
		rc = api.repl_config_load(cfg, pools_config);
	for (unsigned i = 0; !rc && i < p->target_count; i++)
		rc = api.repl_config_add_target(cfg, p->targets[i]);
	if (!rc) {
		settings.cfg = cfg;
		take_lines(POOLS_SET, pools_set, take_set_line, &settings);
		/* Programs change their files in ways that are not followed: no map knows of it. */
		rc = api.repl_config_set(cfg, "after-crash", "compare");
	}
	if (!rc)
		rc = api.repl_open_run(cfg, p->view, p->file_size, missed_renewed(p), &r);
	if (rc)
		(void)snprintf(why, size, "%s", api.repl_errormsg());
	api.repl_config_free(cfg);
	if (!pool_has_write()) {
		api.repl_abandon(r);
		return LEFT;
	}
	if (rc)
		return rc;
	p->r = r;
	missed_opened(p);
	return 0;
}

static void
pool_close_replicas(struct pool *p)
{
	struct repl *r = p->r;

	/* Of what was flushed some may not have been drained, or by threads that do so later. */
	pool_commit_last(p);
	if (!pool_has_write())
		return;
	/* It is opened once more. */
	if (atomic_exchange(&p->unread, false))
		(void)mark_set(p);
	lost_end(p);
	if (!pool_has_write())
		return;
	p->r = NULL;
	if (api.repl_close(r) && pool_has_write())
		report("%s: closing: %s", p->path, api.repl_errormsg());
}

/* Likewise. Of a file that is empty there is nothing to open yet, and no handle. */
static int
pool_open_try(struct pool *p, char *why, size_t size)
{
	int rc;

	if (!pool_has_write())
		return LEFT;
	rc = view_ready(p, why, size);
	if (rc || p->file_size == 0)
		return rc;
	rc = pool_open_replicas(p, why, size);
	if (!pool_has_write())
		return LEFT;
	if (!rc)
		api_opened();
	p->others = rc == REPL_E_BUSY;
	return rc;
}

/* Likewise. REPL_E_BUSY: who has it open will see the mark. */
static int
pool_open_or_mark(struct pool *p, char *why, size_t size)
{
	int rc = pool_open_try(p, why, size);

	while (rc == REPL_E_BUSY) {
		(void)mark_is_near(p);
		if (!mark_set(p))
			break;
		rc = pool_open_try(p, why, size);
	}
	return rc;
}

void
pool_missed(struct pool *p)
{
	if (p->others && p->state == POOL_OFF && !pool_elsewhere(p) && mark_set(p))
		p->try_now = true;
}

/*
 * Another program has made bytes durable meanwhile. One that has opened the pool sees to that, and
 * one that goes on will.
 */
static void
pool_close_again(struct pool *p)
{
	char why[ERR_TEXT_MAX];
	int rc;

	for (int i = 0; i < CLOSE_TRIES && pool_has_write() && mark_is_near(p) &&
			missedmark_take(mark_file(p));
	     i++) {
		rc = pool_open_or_mark(p, why, sizeof(why));
		if (!pool_has_write())
			return;
		if (!p->r) {
			if (rc && rc != REPL_E_BUSY)
				report("%s: what another program has made durable is NOT "
				       "REPLICATED: %s",
				       p->path, why);
			return;
		}
		missedmark_answered(mark_file(p));
		pool_close_replicas(p);
	}
}

/* Who had it open may have ended without a look at the mark. */
static void
pool_close_off(struct pool *p)
{
	unsigned number = (unsigned)(p - pools);

	if (!p->others || !kin_open(number, p->dev, p->ino))
		return;
	pool_close_again(p);
	if (pool_has_write())
		kin_failed(number);
}

void
pool_close_locked(struct pool *p)
{
	int was = p->state;

	p->state = POOL_CLOSED;
	if (was == POOL_OFF)
		pool_close_off(p);
	if (was != POOL_OPEN)
		return;
	/* It may set a mark. */
	(void)mark_is_near(p);
	pool_serve_last(p);
	pool_close_replicas(p);
	pool_close_again(p);
	if (pool_has_write())
		kin_closed((unsigned)(p - pools));
}

static const char *retry_load(unsigned number);
static bool pool_retry(unsigned number, const char *missing);

/*
 * How long to leave it at that after a try of that time. One that goes on longer than to reach its
 * targets compares and copies: what is there by now need not be copied once more, so that is no
 * measure at first, but more and more when it ends so each time. *cut: by this it is less.
 */
static uint64_t
retry_pause(struct pool *p, uint64_t took, bool *cut)
{
	uint64_t most = policy.connect_ns << p->cuts;

	*cut = took > policy.connect_ns * REACHED && took > most;
	if (*cut && p->cuts < CUTS_MAX)
		p->cuts++;
	took = (*cut ? most : took) * RETRY_SHARE;
	return took > RETRY_NS ? took : RETRY_NS;
}

static void
pool_open_failed(struct pool *p, int rc, const char *why, uint64_t begin, bool again)
{
	bool ends = pool_must_end(p, rc), cut;
	uint64_t pause;

	if (!again)
		p->cuts = 0;
	pause = retry_pause(p, now_ns() - begin, &cut);
	p->state = POOL_OFF;
	p->retry_ns = now_ns() + pause;
	if (ends)
		report_room();
	if (cut && !ends)
		report("%s: NOT REPLICATED, tried again in %llu s: %s", p->path,
		       (unsigned long long)(pause / NS_A_SECOND), why);
	else if (!again || ends)
		report("%s: NOT REPLICATED: %s", p->path, why);
	if (ends)
		abort();
	retry_begin((unsigned)(p - pools), retry_load, pool_retry);
}

static bool
may_pass(int rc)
{
	switch (rc) {
	case REPL_E_UNREACHABLE:
	case REPL_E_TIMEOUT:
	case REPL_E_LOST:
	case REPL_E_BUSY:
	case REPL_E_NOSPC:
	case REPL_E_LIMIT:
		return true;
	default:
		return false;
	}
}

/* Who had it open is dead: its lock and its session are not its any more, or in a moment. */
static int
pool_open_inherit(struct pool *p, char *why, size_t size)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t begin = now_ns();
	int rc = pool_open_try(p, why, size);

	while (rc == REPL_E_BUSY && kin_inherits((unsigned)(p - pools)) &&
	       now_ns() - begin < INHERIT_NS) {
		(void)nanosleep(&pause, NULL);
		rc = pool_open_try(p, why, size);
	}
	return rc == REPL_E_BUSY ? pool_open_or_mark(p, why, size) : rc;
}

/* With on-loss = block what may come about by itself. */
static bool
may_await(int rc)
{
	return rc && policy.block && may_pass(rc);
}

static int
pool_open_await(struct pool *p, char *why, size_t size)
{
	uint64_t begin = now_ns(), pause_ns = AGAIN_NS;
	int rc = pool_open_inherit(p, why, size);
	struct timespec pause;

	if (!may_await(rc) || !pool_must_end(p, rc))
		return rc;
	report("%s: NOT REPLICATED, waiting for that: %s", p->path, why);
	while (may_await(rc) && now_ns() - begin < policy.block_ns) {
		pause.tv_sec = (time_t)(pause_ns / NS_A_SECOND);
		pause.tv_nsec = (long)(pause_ns % NS_A_SECOND);
		(void)nanosleep(&pause, NULL);
		if (pause_ns < AGAIN_NS_MAX)
			pause_ns *= 2;
		rc = pool_open_try(p, why, size);
	}
	if (!rc)
		report("%s: is replicated now", p->path);
	return rc;
}

/*
 * Another thread loads a library. Where nothing may be durable without replicas the end of that is
 * waited for, with on-loss = fail, too: it speaks against no target.
 */
static bool
is_loading(struct pool *p)
{
	const struct timespec pause = {.tv_nsec = AGAIN_NS};
	uint64_t begin = now_ns();
	bool is = loading_now();

	if (!is || !pool_must_end(p, REPL_E_TIMEOUT))
		return is;
	if (!atomic_exchange(&p->told_loading, true))
		report("%s: NOT REPLICATED, waiting for that: " LOADING, p->path);
	while (is && now_ns() - begin < policy.block_ns) {
		(void)nanosleep(&pause, NULL);
		is = loading_now();
	}
	return is;
}

/*
 * What an opening needs is loaded, or why it isn't. Before the pool's lock is taken: the linker may
 * be another thread's, whose library's constructor waits for the lock.
 */
static const char *
libraries_load(struct pool *p)
{
	/* Before there are any of ours. */
	bool alone = __libc_single_threaded;

	if (api_loaded())
		return NULL;
	return is_loading(p) ? LOADING : api_load(alone);
}

/* By this process alone of its kin. missing: what libraries_load() has said. */
static void
pool_open_alone(struct pool *p, const char *missing)
{
	bool again = p->retry_ns != 0;
	uint64_t begin = now_ns();
	char why[ERR_TEXT_MAX];
	int rc = REPL_E_CONFIG;

	if (!missing)
		rc = pool_open_await(p, why, sizeof(why));
	if (!pool_has_write())
		return;
	if (rc) {
		pool_open_failed(p, rc, missing ? missing : why, begin, again);
		return;
	}
	if (p->file_size == 0)
		return;
	p->forked = false;
	if (atomic_exchange(&p->told_loading, false) || again)
		report("%s: is replicated now", p->path);
	p->retry_ns = 0;
	p->size = p->file_size;
	p->refused_size = 0;
	p->lanes = api.repl_lanes(p->r);
	memset(p->undrained, 0, sizeof(p->undrained));
	memset(p->undrained_end, 0, sizeof(p->undrained_end));
	p->gone = false;
	p->given_up = false;
	lost_begin(p);
	atomic_store(&p->told_short, false);
	p->opener = gettid();
	p->state = POOL_OPEN;
	/* Before the handlers of the libraries that have come with it. */
	(void)pthread_once(&open_once, register_end_begins);
}

/* False: another process of the kin opens it, or has. */
static bool
pool_open_locked(struct pool *p, const char *missing)
{
	unsigned number = (unsigned)(p - pools);

	/* Before that: who is asked to wait for it would wait for what its parent does. */
	if (!pool_has_write())
		return true;
	if (!kin_open(number, p->dev, p->ino))
		return false;
	p->try_now = false;
	pool_open_alone(p, missing);
	if (!pool_has_write())
		return true;
	if (p->state == POOL_OPEN)
		kin_opened(number, p->dev, p->ino, pool_serve);
	else
		kin_failed(number);
	return true;
}

bool
pool_due(struct pool *p)
{
	int state = atomic_load_explicit(&p->state, memory_order_relaxed);

	if (state != POOL_OFF)
		return state == POOL_CLOSED;
	return p->try_now || now_ns() >= p->retry_ns;
}

/* By the thread of retry.h, as the next one. */
static const char *
retry_load(unsigned number)
{
	struct calm calm = calm_begin();
	const char *missing = libraries_load(&pools[number]);

	calm_end(calm);
	return missing;
}

static bool
pool_retry(unsigned number, const char *missing)
{
	struct pool *p = &pools[number];
	struct calm calm = calm_begin();
	bool here = true;

	pool_lock_write(p);
	/* Closed meanwhile, as by main()'s return, it is opened once more for who waits. */
	if (pool_due(p) && (p->state == POOL_OFF || maps_has(number)) && !pool_is_over(p))
		here = pool_open_locked(p, missing);
	(void)pool_unlock_write(p);
	calm_end(calm);
	return here;
}

/* Whoever may go on without replicas has them when the thread has loaded what it needs. */
static enum retry_asked
pool_ask(struct pool *p, bool *here)
{
	bool ends = pool_must_end(p, REPL_E_TIMEOUT);
	enum retry_asked asked;

	if (p->state != POOL_OFF || atomic_load(&p->over_by))
		return RETRY_NOBODY;
	asked = retry_ask((unsigned)(p - pools), ends ? policy.block_ns : LOADS_NS, here);
	return asked == RETRY_LOADS && !ends ? RETRY_TRIED : asked;
}

static bool
open_if_due(struct pool *p, bool mapped)
{
	const char *missing;
	bool here = true;
	enum retry_asked asked = pool_ask(p, &here);

	if (asked == RETRY_TRIED || !pools_may_open(p))
		return here;
	missing = asked == RETRY_LOADS ? LOADING : libraries_load(p);
	pool_lock_write(p);
	if (pool_due(p) && (!mapped || maps_has((unsigned)(p - pools))) && !pool_is_over(p))
		here = pool_open_locked(p, missing);
	(void)pool_unlock_write(p);
	/* What came while the lock was waited for is told all the same. */
	(void)pools_may_open(p);
	return here;
}

bool
pool_ready(struct pool *p)
{
	return open_if_due(p, false);
}

void
pool_ready_mapped(struct pool *p)
{
	(void)open_if_due(p, true);
}

/* The new part may have been written by other ways than those that are followed. */
static int
grow_fill(struct pool *p, int fd, size_t from, size_t to)
{
	int rc = 0;

	for (size_t at = view_data(fd, from, to); !rc && at < to; at = view_data(fd, at, to)) {
		size_t len = view_data_end(fd, at, to) - at;

		if (len > LANE_BYTES)
			len = LANE_BYTES;
		/* Without the file's holes it is all data. */
		rc = view_has(p, at, len) == len ? api.repl_flush(p->r, 0, at, len) : REPL_E_IO;
		if (!rc)
			rc = api.repl_drain(p->r, 0);
		at += len;
	}
	return rc;
}

static bool
is_zero(const uint8_t *at, size_t len)
{
	return len == 0 || (at[0] == 0 && memcmp(at, at + 1, len - 1) == 0);
}

bool
pool_any_written(int fd, size_t size)
{
	uint8_t buf[PAGE];
	ssize_t n = PAGE;
	bool any = false;

	for (size_t at = view_data(fd, 0, size); !any && n > 0 && at < size;
	     at = view_data(fd, at, size)) {
		n = pread(fd, buf, sizeof(buf), (off_t)at);
		any = n > 0 && !is_zero(buf, (size_t)n);
		at += n > 0 ? (size_t)n : 0;
	}
	return any;
}

/* False also where it can't be looked at. */
static bool
file_is_whole(struct pool *p)
{
	int fd = view_open(p), data;
	bool is = false;

	if (fd >= 0) {
		data = filelock_seen(fd) ? -1 : view_again(fd);
		is = data >= 0 && pool_any_written(data, p->file_size);
		filelock_close(data);
	}
	if (fd >= 0)
		(void)close(fd);
	return is;
}

void
pool_renewed(struct pool *p)
{
	const char *missing;
	struct calm calm;

	if (is_sharing() || !pools_may_open(p))
		return;
	calm = calm_begin();
	missing = libraries_load(p);
	pool_lock_write(p);
	if (pool_due(p) && maps_has((unsigned)(p - pools)) && !pool_is_over(p) && file_is_whole(p))
		(void)pool_open_locked(p, missing);
	(void)pool_unlock_write(p);
	if (p->state == POOL_OPEN || pool_elsewhere(p))
		missed_flushed(p);
	calm_end(calm);
}

void
pool_anew(struct pool *p)
{
	pool_lock_write(p);
	if (atomic_exchange(&p->unread, false) && p->state == POOL_OPEN) {
		pool_close_locked(p);
		(void)pool_open_locked(p, NULL);
	}
	(void)pool_unlock_write(p);
}

/* By what the file has from before on. 0, or it has to be opened anew. */
static int
grow_replicas(struct pool *p, int fd, size_t before)
{
	int data = fd < 0 || filelock_seen(fd) ? -1 : view_again(fd), rc = -1;
	size_t len = p->file_size - before;

	/* As in view_ready(). */
	if (p->file_size <= p->room && (fd >= 0 || view_has(p, before, len) == len))
		rc = api.repl_grow(p->r, p->file_size);
	if (!rc && pool_has_write())
		rc = grow_fill(p, data, before, p->file_size);
	filelock_close(data);
	return rc;
}

bool
pool_rest_is_written(const struct pool *p)
{
	size_t end = p->size, len = (PAGE - end % PAGE) % PAGE;

	return end + len <= p->room && view_has(p, end, len) == len && !is_zero(p->view + end, len);
}

/*
 * The file has become longer: so do the replicas, else the pool is opened anew. But where one takes
 * whole pages only, what was there before is replicated as it was.
 */
bool
pool_grow(struct pool *p, uint64_t end)
{
	bool all = false;
	uint64_t now;
	size_t before;
	int fd = -1;

	pool_lock_write(p);
	/* By an exchange: whose word it takes, that one's growth is seen below. */
	(void)atomic_exchange(&p->longer, false);
	before = p->size;
	if (p->state == POOL_OPEN && end > before && size_look(p, &fd) &&
	    p->file_size != p->refused_size) {
		int rc = p->file_size <= before ? 0 : grow_replicas(p, fd, before);

		if (!pool_has_write()) {
			/* Its parent sees to that. */
		} else if (p->file_size <= before) {
			/* Of a file that has grown within its last page only its name tells. */
			all = fd >= 0 || !pool_rest_is_written(p);
			if (!all)
				atomic_store(&p->longer, true);
		} else if (rc == 0) {
			p->size = p->file_size;
			all = true;
		} else if (rc != REPL_E_INVAL || p->file_size % PAGE == 0) {
			pool_close_locked(p);
			(void)pool_open_locked(p, NULL);
			all = p->file_size <= p->size;
		} else if (view_ends(p, &now) && now != p->file_size) {
			/* It was cut meanwhile, which is refused as well. */
			all = now <= before;
			if (!all)
				atomic_store(&p->longer, true);
		} else {
			/* To ask again would keep replicas away that are on their way back. */
			p->refused_size = p->file_size;
		}
	}
	if (fd >= 0)
		(void)close(fd);
	(void)pool_unlock_write(p);
	return all;
}
