/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replicas on targets that answer, refuse or hang until the deadline, by a clock that goes on where
 * something hangs only; and repl_loss.c, which tells them what generation they are of.
 */
#ifndef UNIT_LOSS_WORLD_H
#define UNIT_LOSS_WORLD_H

#include "unit.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../librepl/src/calltime.c"
#include "../../librepl/src/ownwait.c"
#include "../../librepl/src/repl_loss.c"

#define REPLICAS 3U
#define MANY     6U

/* ---- targets that answer, refuse or hang until the deadline ---- */

enum manner { ANSWERS, GROWS, IS_ASKED, TAKES_TIME, HANGS_AFTER, HANGS, TAKES_NOTHING };

#define ANSWER_NS (50 * NS_PER_MS) /* what one takes that takes time */
#define PING_NS   (5 * NS_PER_MS)  /* until it has answered its keeper, who asks just then */

struct remote {
	enum manner manner;
	struct generation generation; /* as recorded on the target */
	enum sidecar_state state;
	unsigned cuts;
	uint64_t behind;   /* as noted of the replica while the target was told */
	uint64_t grown_ns; /* until then it answers nothing */
	uint64_t taken_ns; /* the answer */
};

static struct remote remotes[MANY];
static struct repl *handle;

static _Atomic uint64_t clock_ns = NS_PER_S; /* it goes on where something hangs only */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	uint64_t ns = atomic_load(&clock_ns);

	(void)id;
	*ts = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};
	return 0;
}

static void grown(void);

/* Who is asleep, too. */
int
nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	(void)atomic_fetch_add(&clock_ns, (uint64_t)pause->tv_nsec);
	grown();
	return 0;
}

void
remote_cut(struct remote *r)
{
	r->cuts++;
}
static int store_rc;
static uint64_t store_ns; /* how long the local disk takes */
static struct repl_config config = {.op_timeout_ms = 1000, .heartbeat_interval_ms = 500};
static uint8_t next_id;
static uint32_t dropped; /* queues that went, and whose ranges no other map has got yet */

void
ship_lost(struct ship *s, unsigned replica)
{
	(void)s;
	dropped |= 1U << replica;
}

bool
ship_serves(const struct ship *s, unsigned replica)
{
	(void)s;
	(void)replica;
	return false;
}

/* What each has of the drains acknowledged, and how many there are; both 0: no queue. */
static uint64_t drains_had[MANY], drains;

/* By then it has what was drained meanwhile. */
static void
grown(void)
{
	for (unsigned i = 0; handle && i < handle->replica_count; i++) {
		if (remotes[i].manner != GROWS || atomic_load(&clock_ns) < remotes[i].grown_ns)
			continue;
		drains_had[i] = drains;
		atomic_store(&handle->replicas[i].grows_until_ns, 0);
	}
}

/* What generations have ended with, oldest first. */
static struct ship_end {
	struct gen_id id;
	uint64_t last;
} ends[64];
static unsigned ended;

void
ship_ended(struct ship *s, const struct generation *chain)
{
	(void)s;
	ends[ended++] = (struct ship_end){.id = chain->history[0], .last = drains};
}

static bool
is_dropped(const struct generation *chain, const struct gen_id *id)
{
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (gen_id_equal(&chain->history[i], id))
			return false;
	return true;
}

bool
ship_behind(struct ship *s, unsigned replica, struct generation *chain)
{
	(void)s;
	for (unsigned i = 0; i < ended; i++) {
		if (drains_had[replica] >= ends[i].last || is_dropped(chain, &ends[i].id))
			continue;
		gen_forget_since(chain, &ends[i].id);
		atomic_store(&handle->replicas[replica].behind, ends[i].last);
		return true;
	}
	return false;
}

bool
ship_caught_up(struct ship *s, unsigned replica)
{
	uint64_t behind = atomic_load(&handle->replicas[replica].behind);

	(void)s;
	return behind && drains_had[replica] >= behind;
}

void
ship_labelled(struct ship *s, unsigned replica)
{
	(void)s;
	atomic_store(&handle->replicas[replica].behind, 0);
}

int
handle_abandoned(struct err *e)
{
	(void)e;
	return 0;
}

uint32_t
ship_awaited(struct ship *s, uint32_t lost, uint32_t live, uint32_t back)
{
	(void)s;
	return lost & ~live & ~back;
}

/* It is no handle of a pool set. */
bool
repl_set_gives_up(const struct repl *r)
{
	(void)r;
	return false;
}

struct siblings *
siblings_lock(struct repl *r)
{
	(void)r;
	return NULL;
}

void
siblings_unlock(struct siblings *s)
{
	(void)s;
}

void
siblings_advance(struct siblings *s, const struct repl *locked, uint64_t deadline_ns)
{
	(void)s;
	(void)locked;
	(void)deadline_ns;
}

static int
hangs(uint64_t deadline_ns, struct err *e)
{
	/* Another thread may look meanwhile. */
	(void)usleep(2000);
	if (clock_now_ns() < deadline_ns)
		atomic_store(&clock_ns, deadline_ns);
	return err_set(e, REPL_E_TIMEOUT, "hangs");
}

int
remote_mark_post(struct remote *r, enum sidecar_state state, const struct generation *g,
		 uint64_t deadline_ns, struct remote_mark *m, struct err *e)
{
	*m = (struct remote_mark){.state = state};
	if (r->manner == TAKES_NOTHING)
		return hangs(deadline_ns, e);
	if (r->manner == GROWS && clock_now_ns() < r->grown_ns) {
		if (r->grown_ns > deadline_ns)
			return hangs(deadline_ns, e);
		atomic_store(&clock_ns, r->grown_ns);
	}
	if (r->manner == IS_ASKED && clock_now_ns() + PING_NS > deadline_ns)
		return hangs(deadline_ns, e);
	r->state = state;
	r->behind = atomic_load(&handle->replicas[r - remotes].behind);
	if (r->manner != HANGS)
		r->generation = *g;
	return 0;
}

/* What has been answered can be taken by any deadline. */
int
remote_mark_take(struct remote *r, const struct remote_mark *m, uint64_t look_ns,
		 uint64_t deadline_ns, bool *there, struct err *e)
{
	bool late = r->manner == TAKES_TIME && clock_now_ns() + ANSWER_NS > deadline_ns;
	int rc = 0;

	(void)m;
	if (r->manner > IS_ASKED && (r->manner != TAKES_TIME || late))
		rc = hangs(look_ns < deadline_ns ? look_ns : deadline_ns, e);
	*there = !rc || clock_now_ns() >= deadline_ns;
	r->taken_ns = clock_now_ns();
	return rc;
}

int
remote_pool_mark_by(struct remote *r, enum sidecar_state state, const struct generation *g,
		    uint64_t deadline_ns, struct err *e)
{
	struct remote_mark m;
	int rc = remote_mark_post(r, state, g, deadline_ns, &m, e);
	bool there;

	return rc ? rc : remote_mark_take(r, &m, deadline_ns, deadline_ns, &there, e);
}

/* What the map of each was begun with. */
static struct gen_id base[MANY];

int
dirty_track(struct dirty *d, unsigned replica, const struct gen_id *id)
{
	(void)d;
	base[replica] = *id;
	return 0;
}

/* With what it had in front of it. */
void
dirty_share(struct dirty *d, unsigned replica)
{
	(void)d;
	assert_true(dropped & 1U << replica);
	dropped &= ~(1U << replica);
}

void
pending_trims_mark(struct repl *r, unsigned replica)
{
	(void)r;
	(void)replica;
}

bool
dirty_bases_due(const struct dirty *d)
{
	(void)d;
	return false;
}

void
dirty_note_bases(struct dirty *d)
{
	(void)d;
}

bool
dirty_base(const struct dirty *d, unsigned replica, struct gen_id *id)
{
	(void)d;
	*id = base[replica];
	return !gen_id_is_nil(id);
}

/* The map's region can't be written; whether the record names it still. */
static bool untold, named;

bool
dirty_untold(const struct dirty *d)
{
	(void)d;
	return untold;
}

bool
dirty_disown(struct dirty *d)
{
	bool due = untold && named;

	(void)d;
	named = false;
	return due;
}

void
dirty_recorded(struct dirty *d)
{
	(void)d;
	untold &= named;
}

bool
dirty_media_ok(const struct dirty *d, const char **why)
{
	(void)d;
	*why = untold ? "read-only" : "";
	return !untold;
}

void
statusd_changed(struct statusd *s, unsigned replica)
{
	(void)s;
	(void)replica;
}

int
local_store(struct local *l, struct err *e)
{
	(void)l;
	(void)atomic_fetch_add(&clock_ns, store_ns);
	return store_rc ? err_set(e, store_rc, "no space") : 0;
}

int
local_new_id(struct gen_id *id, struct err *e)
{
	(void)e;
	memset(id, ++next_id, sizeof(*id));
	return 0;
}

static struct repl *
set_new(void)
{
	struct repl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	handle = r;
	memset(remotes, 0, sizeof(remotes));
	memset(base, 0, sizeof(base));
	ended = 0;
	r->dirty = (void *)r; /* there is one */
	r->cfg = &config;
	store_rc = 0;
	store_ns = 0;
	untold = false;
	named = true;
	r->replica_count = REPLICAS;
	for (unsigned i = 0; i < REPLICAS; i++)
		r->replicas[i].remote = &remotes[i];
	assert_int_equal(pthread_mutex_init(&r->lock, NULL), 0);
	assert_int_equal(pthread_mutex_init(&r->reason_lock, NULL), 0);
	assert_int_equal(pthread_mutex_init(&r->wake_lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&r->wake, NULL), 0);
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	r->ready = true;
	return r;
}

static void
set_free(struct repl *r)
{
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_mutex_destroy(&r->reason_lock);
	(void)pthread_mutex_destroy(&r->wake_lock);
	(void)pthread_cond_destroy(&r->wake);
	free(r);
}

static bool
current(const struct repl *r, unsigned i)
{
	return gen_id_equal(&remotes[i].generation.current, &r->generation.current);
}

#endif
