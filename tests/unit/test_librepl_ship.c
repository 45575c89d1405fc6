/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever the threads that drain, the queues' threads, losses and returns do, and in
 * whatever order: a queued replica has got one prefix of what was drained, a drain that
 * returned is on as many as it needed, and what a lost one lacks is marked.
 *
 * SHIP_SEED=N begins with another seed.
 */
#include "ship_world.h"

#define THREADS 3U
#define DRAINS  150U
#define SEEDS   8U

static pthread_rwlock_t hold = PTHREAD_RWLOCK_INITIALIZER;

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
	rc = ship_post(r->ship, &set, pair ? LANE_ATOMIC8 : LANE_DRAIN, &second, NULL, begin_ns,
		       UINT64_MAX, &m, &e);
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
	assert_int_equal(
		ship_post(r->ship, &set, LANE_DRAIN, &none, NULL, begin_ns, UINT64_MAX, &m, &e), 0);
	assert_true(ship_await(r->ship, m, begin_ns, UINT64_MAX));
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	assert_true(targets[0].number > 2);
	assert_int_equal(targets[0].amid, 0);
	end();
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
		cmocka_unit_test(slices_divide_no_word),
		cmocka_unit_test(drain_moves_its_lanes_itself),
		cmocka_unit_test(laggard_costs_no_message_a_drain),
		cmocka_unit_test(late_answers_hold_nothing_back),
		cmocka_unit_test(what_is_being_sent_stays_whatever_the_target_answers),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(prefixes_with_losses),
		cmocka_unit_test(without_memory_all_are_lost_and_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
