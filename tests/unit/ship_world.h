/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handle whose queue is as it is: its lanes, its map of what is dirty and the recording of
 * losses are played. By the seed a lane takes an entry, or a part of it, answers or breaks.
 */
#ifndef UNIT_SHIP_WORLD_H
#define UNIT_SHIP_WORLD_H

#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "clock.h"
#include "lane_ship.h"
#include "ship.h"
#include "ship_impl.h"

#define REPLICAS 4U /* the last is asynchronous */
#define NEEDED   2U /* of the other three */
#define POOL     (16U << 10)
#define PAGE     4096U
#define DEPTH    4U  /* of a lane */
#define FEW      20U /* small drains, for which there is room */

struct fake {
	struct lane lane; /* first: remote_lane() gives it */
	uint64_t random;
	uint8_t image[POOL];
	_Atomic uint64_t
		number;         /* of the last shipment that came whole; 0: none since it is back */
	uint64_t sent[DEPTH];   /* numbers by their seq */
	_Atomic uint64_t acked; /* the last number that was acknowledged */
	bool dirty[POOL / 8];   /* guarded by marks */
	unsigned slowness;
	unsigned breaks;          /* how often it may */
	bool large;               /* shipments would rather go by RMA */
	bool writes;              /* they do, and it answers before that is over */
	const uint8_t *source;    /* of the last one that did */
	_Atomic bool mute;        /* it does not answer */
	unsigned amid;            /* how many pieces began amid a word */
	_Atomic unsigned by_call; /* how often a call, and no thread of ours, put something on it */
};

static struct repl *r;
static struct fake *targets;
static pthread_mutex_t losing = PTHREAD_MUTEX_INITIALIZER, marks = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned losses, failures;
static _Atomic bool page_goes;
static _Atomic unsigned looks_at_lost;    /* by who sleeps */
static _Atomic int allocations_left = -1; /* below 0: without end */
static bool records_long; /* one that hangs is told of a loss: most of the time for that goes by */
static _Thread_local bool calls; /* this thread is a program's */

static uint64_t
draw(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % below;
}

/* ---- what is played ---- */

void __wrap_repl_lose(struct repl *repl, unsigned replica, int status, const char *why,
		      uint64_t deadline_ns);
void __wrap_repl_lose_all(struct repl *repl, const struct repl_loss *all, unsigned count,
			  uint64_t deadline_ns);
struct lane *__wrap_remote_lane(struct remote *remote, unsigned lane);
bool __wrap_lane_step(struct lane *l);
bool __wrap_lane_ship(struct lane *l, struct shipment *s, unsigned replica, struct ship_at *at);
bool __wrap_lane_ship_pays_to_wait(const struct lane *l, const struct shipment *s,
				   const struct ship_at *at);
void __wrap_lane_ship_send(struct lane *l);
void __wrap_fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd,
			   uint64_t deadline_ns);
uint64_t __wrap_fab_lane_moved(const struct fab_lane *fab);
void __wrap_dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len);
struct shipment *__real_shipment_new(unsigned pieces, size_t bytes);
struct shipment *__wrap_shipment_new(unsigned pieces, size_t bytes);

void
__wrap_repl_lose(struct repl *repl, unsigned replica, int status, const char *why,
		 uint64_t deadline_ns)
{
	(void)why;
	(void)deadline_ns;
	pthread_mutex_lock(&losing);
	if (!atomic_load(&repl->replicas[replica].lost)) {
		atomic_store(&repl->replicas[replica].lost, status);
		ship_lost(repl->ship, replica);
		losses++;
	}
	pthread_mutex_unlock(&losing);
}

void
__wrap_repl_lose_all(struct repl *repl, const struct repl_loss *all, unsigned count,
		     uint64_t deadline_ns)
{
	for (unsigned i = 0; i < count; i++)
		__wrap_repl_lose(repl, all[i].replica, all[i].status, all[i].why, deadline_ns);
	while (records_long && clock_now_ns() + NS_PER_MS < deadline_ns)
		(void)nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
}

struct lane *
__wrap_remote_lane(struct remote *remote, unsigned lane)
{
	assert_int_equal(lane, 0);
	return (struct lane *)(void *)remote;
}

bool
__wrap_lane_step(struct lane *l)
{
	struct fake *t = (struct fake *)(void *)l;

	if (l->status)
		return false;
	if (t->breaks && draw(&t->random, 400) == 0) {
		t->breaks--;
		l->status = REPL_E_LOST;
		return true;
	}
	if (l->seq_acked == l->seq_sent || atomic_load(&t->mute) || draw(&t->random, t->slowness))
		return false;
	l->seq_acked += 1 + draw(&t->random, l->seq_sent - l->seq_acked);
	atomic_store(&t->acked, t->sent[l->seq_acked % DEPTH]);
	return true;
}

static void
fake_store(struct fake *t, const struct shipment *s, const struct ship_piece *p, uint64_t from,
	   uint64_t to)
{
	memcpy(t->image + p->off + from, s->data + p->at + from, to - from);
}

/* With parts of an entry on their way when there is no room for more, as over the wire. */
bool
__wrap_lane_ship(struct lane *l, struct shipment *s, unsigned replica, struct ship_at *at)
{
	struct fake *t = (struct fake *)(void *)l;

	t->by_call += calls;
	if (l->status || l->seq_sent - l->seq_acked >= DEPTH)
		return false;
	for (; at->piece < s->piece_count; at->piece++, at->done = 0) {
		const struct ship_piece *p = &s->pieces[at->piece];

		if (draw(&t->random, 5) == 0 && at->done < p->len / 2) {
			fake_store(t, s, p, at->done, p->len / 2);
			at->done = p->len / 2;
			return false;
		}
		fake_store(t, s, p, at->done, p->len);
		t->amid += p->off % 8 != 0;
	}
	/* Each once, none left out, in the order of the list. */
	if (t->number && s->number != t->number + 1)
		failures++;
	t->number = s->number;
	s->seq[replica] = ++l->seq_sent;
	t->sent[l->seq_sent % DEPTH] = s->number;
	*at = (struct ship_at){.writes = t->writes};
	if (t->writes) {
		l->rma_outstanding++;
		t->source = s->data;
	}
	return true;
}

bool
__wrap_lane_ship_pays_to_wait(const struct lane *l, const struct shipment *s,
			      const struct ship_at *at)
{
	(void)s;
	(void)at;
	return ((const struct fake *)(const void *)l)->large && !lane_ship_quiet(l);
}

void
__wrap_lane_ship_send(struct lane *l)
{
	(void)l;
}

/* Answers are all that moves. */
uint64_t
__wrap_fab_lane_moved(const struct fab_lane *fab)
{
	(void)fab;
	return 0;
}

void
__wrap_fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd, uint64_t deadline_ns)
{
	const struct timespec moment = {.tv_nsec = 20000};

	for (unsigned i = 0; i < count; i++)
		looks_at_lost += ((const struct fake *)(const void *)lanes[i])->lane.status != 0;
	(void)wake_fd;
	(void)deadline_ns;
	if (calls && atomic_exchange(&page_goes, false)) {
		(void)mprotect(r->mem, PAGE, PROT_NONE);
		for (unsigned i = 0; i < REPLICAS; i++)
			atomic_store(&targets[i].mute, false);
	}
	(void)nanosleep(&moment, NULL);
}

void
__wrap_dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len)
{
	(void)d;
	pthread_mutex_lock(&marks);
	memset(targets[replica].dirty + off / 8, true, (off + len + 7) / 8 - off / 8);
	pthread_mutex_unlock(&marks);
}

struct shipment *
__wrap_shipment_new(unsigned pieces, size_t bytes)
{
	if (atomic_load(&allocations_left) == 0)
		return NULL;
	if (atomic_load(&allocations_left) > 0)
		atomic_fetch_sub(&allocations_left, 1);
	return __real_shipment_new(pieces, bytes);
}

/* ---- a handle ---- */

static void
fake_connect(struct fake *t)
{
	memset(&t->lane, 0, sizeof(t->lane));
	t->lane.fab = (struct fab_lane *)(void *)t;
	t->number = 0;
	atomic_store(&t->acked, 0);
	memset(t->dirty, 0, sizeof(t->dirty));
}

static void
begin(uint64_t seed, unsigned breaks)
{
	struct err e;
	char name[32];

	err_clear(&e);
	r = calloc(1, sizeof(*r));
	targets = calloc(REPLICAS, sizeof(*targets));
	assert_non_null(r);
	assert_non_null(targets);
	r->mem = aligned_alloc(PAGE, POOL);
	assert_non_null(r->mem);
	memset(r->mem, 0, POOL);
	assert_int_equal(repl_config_new(&r->cfg), 0);
	for (unsigned i = 0; i < REPLICAS; i++) {
		(void)snprintf(name, sizeof(name), "u@h/p%u", i);
		assert_int_equal(i + 1 < REPLICAS ? config_add_target(r->cfg, name, &e)
						  : config_add_async_target(r->cfg, name, &e),
				 0);
		r->replicas[i].remote = (struct remote *)(void *)&targets[i];
		fake_connect(&targets[i]);
		targets[i].random = seed * 100 + i;
		targets[i].breaks = breaks;
		targets[i].slowness = 1 + 6 * i;
	}
	r->replica_count = REPLICAS;
	r->cfg->ack = ACK_QUORUM;
	r->cfg->async_lag_bytes = 8U << 10;
	/* Only looked at for being there. */
	r->dirty = (struct dirty *)(void *)targets;
	losses = failures = 0;
	assert_int_equal(ship_new(r, &r->ship, &e), 0);
}

static void
end(void)
{
	ship_free(r->ship);
	repl_config_free(r->cfg);
	free(r->mem);
	free(r);
	free(targets);
}

/* How many of those that count have acknowledged all up to that number. */
static unsigned
holders(uint64_t number)
{
	unsigned n = 0;

	for (unsigned i = 0; i + 1 < REPLICAS; i++)
		n += atomic_load(&targets[i].acked) >= number;
	return n;
}

static bool
drain_since(uint64_t len, uint64_t begin_ns)
{
	static const struct range second = {0};
	struct shipment *m = NULL;
	struct rangeset set;
	struct err e;

	err_clear(&e);
	rangeset_clear(&set);
	(void)rangeset_add(&set, 0, len);
	assert_int_equal(
		ship_post(r->ship, &set, LANE_DRAIN, &second, NULL, begin_ns, UINT64_MAX, &m, &e),
		0);
	return ship_await(r->ship, m, begin_ns, UINT64_MAX);
}

static bool
drain_first(uint64_t len)
{
	return drain_since(len, clock_now_ns());
}

static void *
drain_once(void *arg)
{
	bool *enough = arg;

	*enough = drain_first(8);
	return NULL;
}

#endif
