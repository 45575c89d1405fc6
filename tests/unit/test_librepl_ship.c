/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever the threads that drain, the queues' threads, losses and returns do, and in
 * whatever order: a queued replica has got one prefix of what was drained, a drain that
 * returned is on as many as it needed, and what a lost one lacks is marked.
 *
 * Lanes and the recording of losses are played here; by the seed a lane takes an
 * entry, or a part of it, answers or breaks. SHIP_SEED=N begins with another one.
 */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
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
#define THREADS  3U
#define DRAINS   150U
#define POOL     (16U << 10)
#define PAGE     4096U
#define SEEDS    8U
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
static pthread_rwlock_t hold = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic unsigned losses, failures;
static _Atomic bool faulted, fault_holds, page_goes;
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

/* As pending_settle(). */
static void
settle(uint64_t off, uint64_t len)
{
	for (unsigned i = 0; i < REPLICAS; i++) {
		if (!atomic_load(&r->replicas[i].lost))
			continue;
		/* A loss that another thread records comes first. */
		pthread_mutex_lock(&losing);
		pthread_mutex_unlock(&losing);
		__wrap_dirty_mark(r->dirty, i, off, len);
	}
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

struct drainer {
	pthread_t thread;
	uint64_t random;
	unsigned index;
	uint64_t enough, few;
};

/* Ranges overlap those of the other threads; words are stored whole. */
static void
drain(struct drainer *d, uint64_t value)
{
	uint64_t off = draw(&d->random, POOL / 8 - 400) * 8, len = (1 + draw(&d->random, 400)) * 8;
	const struct range second = {.off = draw(&d->random, POOL / 8) * 8, .len = 8};
	uint64_t begin_ns = clock_now_ns(), number;
	bool pair = draw(&d->random, 3) == 0;
	struct shipment *m = NULL;
	struct rangeset set;
	struct err e;
	int rc;

	for (uint64_t w = off; w < off + len; w += 8)
		__atomic_store_n((uint64_t *)(void *)(r->mem + w), value, __ATOMIC_RELAXED);
	rangeset_clear(&set);
	(void)rangeset_add(&set, off, len);
	if (pair)
		__atomic_store_n((uint64_t *)(void *)(r->mem + second.off), value,
				 __ATOMIC_RELAXED);
	err_clear(&e);
	rc = ship_post(r->ship, &set, pair ? LANE_ATOMIC8 : LANE_DRAIN, &second, NULL, begin_ns, &m,
		       &e);
	/* As lanes_await_shipped(), when what is queued has come to all. */
	if (rc)
		ship_finish(r->ship, clock_deadline(10000), 0);
	for (unsigned i = 0; rc && i < REPLICAS; i++)
		__wrap_repl_lose(r, i, rc, e.text, begin_ns);
	number = m ? m->number : UINT64_MAX;
	if (m && ship_await(r->ship, m, begin_ns, UINT64_MAX)) {
		d->enough++;
		if (holders(number) < NEEDED)
			failures++;
	} else {
		d->few++;
	}
	settle(off, len);
	if (pair)
		settle(second.off, second.len);
}

static void *
drainer_main(void *arg)
{
	struct drainer *d = arg;

	for (unsigned i = 0; i < DRAINS; i++) {
		pthread_rwlock_rdlock(&hold);
		drain(d, (uint64_t)d->index << 32 | i);
		pthread_rwlock_unlock(&hold);
	}
	return NULL;
}

/* What the lost one lacks is marked: copied, it is equal. With nobody draining. */
static void
bring_back(unsigned replica)
{
	struct fake *t = &targets[replica];

	assert_true(ship_leave(r->ship, replica, clock_deadline(10000)));
	for (size_t b = 0; b < POOL / 8; b++)
		if (t->dirty[b])
			memcpy(t->image + b * 8, r->mem + b * 8, 8);
	if (memcmp(t->image, r->mem, POOL) != 0)
		failures++;
	fake_connect(t);
	atomic_store(&r->replicas[replica].lost, 0);
	ship_install(r->ship, replica, (struct remote *)(void *)t);
}

static bool
all_done(const _Atomic unsigned *running)
{
	const struct timespec moment = {.tv_nsec = 500000};

	(void)nanosleep(&moment, NULL);
	return atomic_load(running) == 0;
}

struct crew {
	struct drainer d[THREADS];
	_Atomic unsigned running;
	pthread_t keeper;
};

static void *
keeper_main(void *arg)
{
	struct crew *c = arg;

	while (!all_done(&c->running)) {
		for (unsigned i = 0; i < REPLICAS; i++) {
			if (!atomic_load(&r->replicas[i].lost))
				continue;
			pthread_rwlock_wrlock(&hold);
			bring_back(i);
			pthread_rwlock_unlock(&hold);
		}
	}
	return NULL;
}

static void
play(uint64_t seed, unsigned breaks)
{
	struct crew c = {.running = 1};
	uint64_t enough = 0, few = 0;

	begin(seed, breaks);
	for (unsigned i = 0; i < THREADS; i++) {
		c.d[i] = (struct drainer){.random = seed * 1000 + i, .index = i};
		assert_int_equal(pthread_create(&c.d[i].thread, NULL, drainer_main, &c.d[i]), 0);
	}
	assert_int_equal(pthread_create(&c.keeper, NULL, keeper_main, &c), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		(void)pthread_join(c.d[i].thread, NULL);
		enough += c.d[i].enough;
		few += c.d[i].few;
	}
	atomic_store(&c.running, 0);
	(void)pthread_join(c.keeper, NULL);
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	ship_stop(r->ship);
	for (unsigned i = 0; i < REPLICAS; i++) {
		if (!atomic_load(&r->replicas[i].lost) &&
		    memcmp(targets[i].image, r->mem, POOL) != 0)
			fail_msg("seed %llu: replica %u is not equal at the end",
				 (unsigned long long)seed, i);
		if (atomic_load(&r->replicas[i].lost))
			bring_back(i);
	}
	if (failures)
		fail_msg("seed %llu: %u times not as it must be", (unsigned long long)seed,
			 atomic_load(&failures));
	assert_int_equal(enough + few, THREADS * DRAINS);
	if (!breaks)
		assert_int_equal(few + losses, 0);
	end();
}

/* Into a lost one nothing is copied before those that drains wait for are labelled. */
static void
laggard_settles(void **state)
{
	struct generation chain = {0};

	(void)state;
	begin(1, 0);
	assert_false(ship_settling(r->ship));
	atomic_store(&r->replicas[REPLICAS - 1].behind, 1);
	assert_false(ship_settling(r->ship));
	atomic_store(&r->replicas[0].behind, 1);
	assert_true(ship_settling(r->ship));
	/* That it has caught up is not recorded yet. */
	assert_false(ship_behind(r->ship, 0, &chain));
	assert_true(ship_settling(r->ship));
	ship_labelled(r->ship, 0);
	assert_false(ship_settling(r->ship));
	end();
}

static bool
drain_first(uint64_t len)
{
	static const struct range second = {0};
	uint64_t begin_ns = clock_now_ns();
	struct shipment *m = NULL;
	struct rangeset set;
	struct err e;

	err_clear(&e);
	rangeset_clear(&set);
	(void)rangeset_add(&set, 0, len);
	assert_int_equal(ship_post(r->ship, &set, LANE_DRAIN, &second, NULL, begin_ns, &m, &e), 0);
	return ship_await(r->ship, m, begin_ns, UINT64_MAX);
}

static void *
drain_once(void *arg)
{
	bool *enough = arg;

	*enough = drain_first(8);
	return NULL;
}

/* Who is lost while a generation is recorded has acknowledged in vain: it is of an older one. */
static void
await_beside_a_record(bool loss)
{
	bool enough = true;
	pthread_t thread;

	begin(2, 0);
	pthread_mutex_lock(&r->lock);
	if (loss) {
		atomic_store(&r->replicas[REPLICAS - 1].lost, REPL_E_LOST);
		ship_lost(r->ship, REPLICAS - 1);
	}
	atomic_store(&r->advancing, !loss);
	assert_int_equal(pthread_create(&thread, NULL, drain_once, &enough), 0);
	while (holders(1) < REPLICAS - 1)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	for (unsigned i = 0; i < REPLICAS; i++) {
		if (atomic_load(&r->replicas[i].lost))
			continue;
		atomic_store(&r->replicas[i].lost, REPL_E_LOST);
		ship_lost(r->ship, i);
	}
	atomic_store(&r->advancing, false);
	pthread_mutex_unlock(&r->lock);
	(void)pthread_join(thread, NULL);
	assert_false(enough);
	end();
}

static void
record_comes_before_the_count(void **state)
{
	(void)state;
	await_beside_a_record(true);
}

/* That of a file that can't be written, for example. */
static void
record_without_a_loss_comes_before_the_count(void **state)
{
	(void)state;
	await_beside_a_record(false);
}

/* Behind a range that ends amid one, as the first of a pair may. */
static void
slices_divide_no_word(void **state)
{
	static const struct range none = {0};
	uint64_t begin_ns = clock_now_ns();
	struct shipment *m = NULL;
	struct rangeset set;
	struct err e;

	(void)state;
	begin(6, 0);
	err_clear(&e);
	rangeset_clear(&set);
	(void)rangeset_add(&set, 0, 13);
	(void)rangeset_add(&set, 24, POOL / 2);
	assert_int_equal(ship_post(r->ship, &set, LANE_DRAIN, &none, NULL, begin_ns, &m, &e), 0);
	assert_true(ship_await(r->ship, m, begin_ns, UINT64_MAX));
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	assert_true(targets[0].number > 2);
	assert_int_equal(targets[0].amid, 0);
	end();
}

/* As the kernel asks the disk for a page, or whether one that was synced may be written to. */
static void
on_fault(int signal, siginfo_t *info, void *context)
{
	struct timespec end;

	(void)signal;
	(void)context;
	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 2;
	if ((uint8_t *)info->si_addr < r->mem || (uint8_t *)info->si_addr >= r->mem + PAGE)
		abort();
	if (pthread_mutex_timedlock(&r->ship->lock, &end))
		atomic_store(&fault_holds, true);
	else
		(void)pthread_mutex_unlock(&r->ship->lock);
	atomic_store(&faulted, true);
	if (mprotect(r->mem, PAGE, PROT_READ | PROT_WRITE))
		abort();
}

static void
store_word(void *word)
{
	__atomic_store_n((uint64_t *)word, 77, __ATOMIC_RELEASE);
}

/* What a call queues of the first page, with a store of its own to it or without. */
struct post {
	enum lane_kind kind;
	bool stores;
};

static const struct post posts[] = {
	{LANE_ATOMIC8, true}, {LANE_ATOMIC8, false}, {LANE_DRAIN, false}};

#define POSTS (sizeof(posts) / sizeof(posts[0]))

static void
post_once(const struct post *p, struct shipment **m)
{
	struct repl_behind behind = {.b = {.off = 64, .len = 8}, .store = store_word};
	struct rangeset ranges;
	struct err e;

	behind.arg = r->mem + behind.b.off;
	err_clear(&e);
	rangeset_clear(&ranges);
	if (p->kind == LANE_DRAIN)
		(void)rangeset_add(&ranges, 64, 2048);
	assert_int_equal(ship_post(r->ship, &ranges, p->kind, &behind.b, p->stores ? &behind : NULL,
				   clock_now_ns(), m, &e),
			 0);
}

static void
post_with_faults(const struct post *p, struct shipment **m)
{
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;

	faulted = fault_holds = false;
	assert_int_equal(sigaction(SIGSEGV, &fault, &before), 0);
	post_once(p, m);
	while (atomic_load(&page_goes))
		post_once(p, m);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* As what was queued before it. */
static void
post_arrives(struct shipment *m, const struct post *p)
{
	assert_true(faulted);
	assert_false(fault_holds);
	assert_true(ship_await(r->ship, m, clock_now_ns(), UINT64_MAX));
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	assert_int_equal(targets[0].image[64], p->stores ? 77 : 0);
	assert_int_equal(losses, 0);
}

/* Keepers ask the queue before they ping, and targets bear no silence. */
static void
a_post_waits_for_its_page_without_the_lock(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POSTS; i++) {
		struct shipment *m = NULL;

		begin(7, 0);
		assert_int_equal(mprotect(r->mem, PAGE, posts[i].stores ? PROT_READ : PROT_NONE),
				 0);
		post_with_faults(&posts[i], &m);
		post_arrives(m, &posts[i]);
		end();
	}
}

/* A page that was there may be gone when there is room. */
static void
a_post_looks_for_its_page_anew_when_it_has_waited(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POSTS; i++) {
		struct shipment *m = NULL;

		begin(13, 0);
		r->cfg->busy_poll_us = 0;
		for (unsigned t = 0; t < REPLICAS; t++)
			atomic_store(&targets[t].mute, true);
		atomic_store(&page_goes, true);
		calls = true;
		post_with_faults(&posts[i], &m);
		calls = false;
		post_arrives(m, &posts[i]);
		end();
	}
}

/* No thread of ours need be woken for a drain, and none answers for it. */
static void
drain_moves_its_lanes_itself(void **state)
{
	bool enough = false;

	(void)state;
	begin(3, 0);
	calls = true;
	for (unsigned i = 0; i < FEW; i++) {
		(void)drain_once(&enough);
		assert_true(enough);
	}
	calls = false;
	for (unsigned i = 0; i < NEEDED; i++)
		assert_true(targets[i].by_call > 0);
	/* Nobody waits for the asynchronous one. */
	assert_int_equal(targets[REPLICAS - 1].by_call, 0);
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	assert_int_equal(losses, 0);
	end();
}

/* What it gets goes at once when it has answered: two others are prompt. */
static void
laggard_costs_no_message_a_drain(void **state)
{
	struct fake *late;
	bool enough = false;

	(void)state;
	begin(4, 0);
	late = &targets[2];
	targets[0].slowness = targets[1].slowness = late->slowness = 1;
	atomic_store(&late->mute, true);
	calls = true;
	for (unsigned i = 0; i < FEW; i++) {
		(void)drain_once(&enough);
		assert_true(enough);
	}
	calls = false;
	/* The first went to all, and a thread that was slow may have made another one late. */
	assert_true(late->by_call < FEW / 2);
	atomic_store(&late->mute, false);
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	assert_int_equal(losses, 0);
	assert_true(atomic_load(&late->acked) >= FEW);
	end();
}

/* A drain of more than may be queued, of which one replica takes nothing. */
static void
laggard_is_lost_alone(bool degrade)
{
	begin(12, 0);
	r->cfg->op_timeout_ms = 2000;
	r->ship->policy.degrade = degrade;
	for (unsigned i = 0; i < REPLICAS; i++)
		targets[i].slowness = 1;
	atomic_store(&targets[2].mute, true);
	assert_true(drain_first(POOL / 4));
	records_long = true;
	assert_true(drain_first(POOL));
	records_long = false;
	assert_int_equal(losses, 1);
	assert_int_not_equal(atomic_load(&r->replicas[2].lost), 0);
	end();
}

/* The time for which it was waited is not all that the others have. */
static void
who_is_waited_for_is_lost_alone(void **state)
{
	(void)state;
	laggard_is_lost_alone(false);
}

/* Nor is that for which its loss is recorded. */
static void
who_is_degraded_is_lost_alone(void **state)
{
	(void)state;
	laggard_is_lost_alone(true);
}

/* A replica far away gets more than one large shipment in the time that an answer takes. */
static void
late_answers_hold_nothing_back(void **state)
{
	struct fake *far;
	bool enough = false;

	(void)state;
	begin(5, 0);
	far = &targets[2];
	targets[0].slowness = targets[1].slowness = far->slowness = 1;
	far->large = true;
	atomic_store(&far->mute, true);
	for (unsigned i = 0; i < DEPTH; i++) {
		(void)drain_once(&enough);
		assert_true(enough);
	}
	for (unsigned i = 0; i < 1000 && atomic_load(&far->number) < DEPTH; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_int_equal(far->number, DEPTH);
	atomic_store(&far->mute, false);
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	assert_int_equal(losses, 0);
	end();
}

/* A target that says it has what is only to be sent would be sent what lies there then. */
static void
what_is_being_sent_stays_whatever_the_target_answers(void **state)
{
	struct shipper *p;
	bool enough = false;

	(void)state;
	begin(11, 0);
	p = &r->ship->shipper[0];
	memset(r->mem, 'o', 8);
	for (unsigned last = 0; last < 2; last++) {
		targets[0].writes = !last;
		(void)drain_once(&enough);
		ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
		pthread_mutex_lock(&r->ship->lock);
		assert_null(r->ship->q.view[0].unacked);
		if (last) {
			assert_null(p->writes);
		} else {
			assert_non_null(p->writes);
			assert_ptr_equal(p->writes->data, targets[0].source);
			assert_memory_equal(p->writes->data, r->mem, 8);
		}
		targets[0].lane.rma_outstanding = 0;
		pthread_mutex_unlock(&r->ship->lock);
	}
	assert_int_equal(losses, 0);
	end();
}

/* A look might take an answer in, for a reader whose buffer is the program's again. */
static void
a_lane_that_was_given_up_is_not_looked_at(void **state)
{
	bool enough = false;

	(void)state;
	for (unsigned i = 0; i < FEW; i++) {
		begin(12, 0);
		r->cfg->busy_poll_us = 0;
		targets[1].slowness = targets[2].slowness = 20;
		looks_at_lost = 0;
		/* By a reader who has given it back, and has not lost the replica yet. */
		targets[0].lane.status = REPL_E_TIMEOUT;
		(void)drain_once(&enough);
		assert_true(enough);
		assert_int_equal(looks_at_lost, 0);
		end();
	}
}

/* ---- readers of a queued replica ---- */

static _Atomic bool reading;

static void *
reader_main(void *arg)
{
	unsigned replica = *(const unsigned *)arg;

	while (atomic_load(&reading)) {
		if (!ship_lane_borrow(r->ship, replica, clock_deadline(10000)))
			continue;
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		ship_lane_return(r->ship, replica);
	}
	return NULL;
}

static bool
has_come_to(const struct fake *t, uint64_t number)
{
	for (unsigned i = 0; i < 200 && atomic_load(&t->acked) < number; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return atomic_load(&t->acked) >= number;
}

/* Whether one comes back at once, or several have it by turns. */
static void
readers_starve_no_queue(void **state)
{
	unsigned read = REPLICAS - 1;
	pthread_t readers[2];
	bool enough = false;

	(void)state;
	for (unsigned count = 1; count <= 2; count++) {
		begin(8, 0);
		atomic_store(&reading, true);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(pthread_create(&readers[i], NULL, reader_main, &read), 0);
		for (unsigned i = 1; i <= FEW; i++) {
			(void)drain_once(&enough);
			assert_true(has_come_to(&targets[read], i));
		}
		atomic_store(&reading, false);
		for (unsigned i = 0; i < count; i++)
			(void)pthread_join(readers[i], NULL);
		assert_int_equal(losses, 0);
		end();
	}
}

static void *
borrow_main(void *arg)
{
	struct lane **l = arg;

	*l = ship_lane_borrow(r->ship, REPLICAS - 1, clock_deadline(10000));
	return NULL;
}

/* What is queued meanwhile gets all of its time when the lane is there for it again. */
static void
a_readers_time_is_not_the_targets(void **state)
{
	struct fake *t;
	struct lane *l = NULL;
	bool enough = false;
	pthread_t thread;

	(void)state;
	begin(9, 0);
	r->cfg->op_timeout_ms = 400;
	t = &targets[REPLICAS - 1];
	t->slowness = 30;
	atomic_store(&t->mute, true);
	(void)drain_once(&enough);
	while (atomic_load(&t->number) < 1)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(pthread_create(&thread, NULL, borrow_main, &l), 0);
	(void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	(void)drain_once(&enough);
	atomic_store(&t->mute, false);
	(void)pthread_join(thread, NULL);
	assert_non_null(l);
	(void)nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
	ship_lane_return(r->ship, REPLICAS - 1);
	assert_true(has_come_to(t, 2));
	assert_int_equal(losses, 0);
	end();
}

/* It has waited for those, and its replica is as well as before. */
static void
who_is_kept_off_by_readers_loses_no_replica(void **state)
{
	struct lane_slot slot = {0};
	char buf[8];

	(void)state;
	begin(10, 0);
	r->cfg->op_timeout_ms = 50;
	r->slots = &slot;
	r->lane_count = 1;
	r->size = POOL;
	assert_non_null(ship_lane_borrow(r->ship, 0, clock_deadline(10000)));
	assert_int_equal(repl_read(r, 0, 0, buf, 0, sizeof(buf)), REPL_E_BUSY);
	assert_int_equal(losses, 0);
	__wrap_repl_lose(r, 0, REPL_E_LOST, "", 0);
	ship_lane_return(r->ship, 0);
	assert_int_equal(repl_read(r, 0, 0, buf, 0, sizeof(buf)), REPL_E_LOST);
	end();
}

static uint64_t
first_seed(void)
{
	const char *text = getenv("SHIP_SEED");

	return text ? strtoull(text, NULL, 0) : 1;
}

static void
prefixes(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed(), n = 0; n < SEEDS; n++)
		play(seed + n, 0);
}

static void
prefixes_with_losses(void **state)
{
	unsigned any = 0;

	(void)state;
	for (uint64_t seed = first_seed(), n = 0; n < SEEDS; n++) {
		play(seed + n, 3);
		any += losses;
	}
	assert_true(any > 0);
}

/* Else a later drain would return, and nothing would tell what the replicas lack. */
static void
without_memory_all_are_lost_and_marked(void **state)
{
	(void)state;
	/* Also in the middle of a drain, of which a part is queued. */
	for (int left = 0; left < 6; left++) {
		struct drainer d = {.random = 7};

		begin(1, 0);
		atomic_store(&allocations_left, left);
		for (unsigned i = 0; i < 20 && !losses; i++)
			drain(&d, i + 1);
		atomic_store(&allocations_left, -1);
		assert_int_equal(losses, REPLICAS);
		assert_false(ship_enough(r->ship));
		assert_int_equal(d.few, 1);
		for (unsigned i = 0; i < REPLICAS; i++)
			bring_back(i);
		assert_int_equal(failures, 0);
		end();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(laggard_settles),
		cmocka_unit_test(record_comes_before_the_count),
		cmocka_unit_test(record_without_a_loss_comes_before_the_count),
		cmocka_unit_test(slices_divide_no_word),
		cmocka_unit_test(a_post_waits_for_its_page_without_the_lock),
		cmocka_unit_test(a_post_looks_for_its_page_anew_when_it_has_waited),
		cmocka_unit_test(drain_moves_its_lanes_itself),
		cmocka_unit_test(laggard_costs_no_message_a_drain),
		cmocka_unit_test(who_is_waited_for_is_lost_alone),
		cmocka_unit_test(who_is_degraded_is_lost_alone),
		cmocka_unit_test(late_answers_hold_nothing_back),
		cmocka_unit_test(what_is_being_sent_stays_whatever_the_target_answers),
		cmocka_unit_test(a_lane_that_was_given_up_is_not_looked_at),
		cmocka_unit_test(readers_starve_no_queue),
		cmocka_unit_test(a_readers_time_is_not_the_targets),
		cmocka_unit_test(who_is_kept_off_by_readers_loses_no_replica),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(prefixes_with_losses),
		cmocka_unit_test(without_memory_all_are_lost_and_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
