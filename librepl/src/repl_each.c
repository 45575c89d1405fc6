/* SPDX-License-Identifier: BSD-3-Clause */
#include "repl_each.h"

#include <string.h>
#include <strings.h>

#include "clock.h"
#include "thread.h"

#define PING_EVERY_MS 1000U /* at least */

struct each;

struct each_one {
	struct each *all;
	unsigned replica;
	pthread_t thread;
	bool done; /* guarded by the lock */
};

struct each {
	struct repl *r;
	const struct each_step *step;
	const struct each_one *first; /* that the others wait for; NULL: none */
	struct each_one one[REPL_TARGETS_MAX];
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t moved; /* one is done */
	unsigned left;        /* not done yet */
	int rc;               /* the first failure */
	struct err *e;
	/* Not 0 when none is left: ends pings. */
	_Atomic int over;
};

static bool
same_server(const struct target *a, const struct target *b)
{
	return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

/* The one whose end leaves this one a place at its server; NULL: there is one. */
static const struct each_one *
each_before(const struct each *all, unsigned replica)
{
	const struct target *t = all->r->cfg->targets;
	unsigned same = 0;

	for (unsigned i = replica; all->step->per_host && i > 0; i--) {
		if (same_server(&t[i - 1], &t[replica]) && ++same == all->step->per_host)
			return &all->one[i - 1];
	}
	return NULL;
}

static int
order_compare(const struct target *a, const struct target *b)
{
	int way = strcasecmp(a->host, b->host);

	if (!way && a->port != b->port)
		way = a->port < b->port ? -1 : 1;
	return way ? way : strcmp(a->pool, b->pool);
}

static const struct each_one *
each_first(const struct each *all)
{
	const struct target *t = all->r->cfg->targets;
	const struct each_one *first = NULL;

	for (unsigned i = 0; i < all->r->replica_count; i++) {
		if (all->r->replicas[i].remote &&
		    (!first || order_compare(&t[i], &t[first->replica]) < 0))
			first = &all->one[i];
	}
	return first;
}

static void
each_done(struct each *all, struct each_one *one, int rc, const struct err *e)
{
	int calm = 0;

	pthread_mutex_lock(&all->lock);
	if (rc && !all->rc) {
		all->rc = rc;
		*all->e = *e;
		(void)atomic_compare_exchange_strong(&all->r->cut, &calm, REPL_E_LOST);
	}
	one->done = true;
	if (--all->left == 0)
		atomic_store(&all->over, REPL_E_LOST);
	(void)pthread_cond_broadcast(&all->moved);
	pthread_mutex_unlock(&all->lock);
}

static bool
all_are_done(const struct each *all, const struct each_one *one)
{
	(void)one;
	return all->left == 0;
}

static bool
has_turn(const struct each *all, const struct each_one *one)
{
	const struct each_one *before = each_before(all, one->replica);

	return (!before || before->done) && (!all->first || all->first == one || all->first->done);
}

static unsigned
ping_ms(const struct remote *remote)
{
	if (remote && remote_heartbeat_ms(remote) < PING_EVERY_MS)
		return remote_heartbeat_ms(remote);
	return PING_EVERY_MS;
}

/* Under the lock, which is let go of meanwhile. What is lost is noticed when it is used. */
static void
each_await(struct each *all, const struct each_one *one,
	   bool (*over)(const struct each *, const struct each_one *))
{
	unsigned timeout_ms = all->r->cfg->heartbeat_timeout_ms;

	while (!over(all, one)) {
		struct remote *remote = all->r->replicas[one->replica].remote;
		uint64_t at = clock_deadline(ping_ms(remote));
		struct timespec ts = {.tv_sec = (time_t)(at / NS_PER_S),
				      .tv_nsec = (long)(at % NS_PER_S)};

		while (!over(all, one) && clock_now_ns() < at)
			(void)pthread_cond_timedwait(&all->moved, &all->lock, &ts);
		if (over(all, one) || !remote)
			continue;
		pthread_mutex_unlock(&all->lock);
		(void)remote_ping(remote, json_object_new_object(), timeout_ms, &all->over, NULL);
		pthread_mutex_lock(&all->lock);
	}
}

static void *
each_main(void *arg)
{
	struct each_one *one = arg;
	struct each *all = one->all;
	struct err e;
	bool due;
	int rc = 0;

	err_clear(&e);
	pthread_mutex_lock(&all->lock);
	each_await(all, one, has_turn);
	due = !all->first || all->first == one || !all->rc;
	pthread_mutex_unlock(&all->lock);
	if (due)
		rc = all->step->run(all->r, one->replica, &e);
	each_done(all, one, rc, &e);
	pthread_mutex_lock(&all->lock);
	each_await(all, one, all_are_done);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

static int
each_init(struct each *all, struct err *e)
{
	pthread_condattr_t attr;
	int ret;

	if (pthread_mutex_init(&all->lock, NULL))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	ret = pthread_condattr_init(&attr);
	if (!ret) {
		(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		ret = pthread_cond_init(&all->moved, &attr);
		(void)pthread_condattr_destroy(&attr);
	}
	if (!ret)
		return 0;
	(void)pthread_mutex_destroy(&all->lock);
	return err_set(e, REPL_E_NOMEM, "out of memory");
}

/* Start all; those that can't be have failed. */
static void
each_start(struct each *all, bool *started)
{
	struct err e;

	for (unsigned i = 0; i < all->r->replica_count; i++) {
		struct each_one *one = &all->one[i];
		int ret = thread_start(&one->thread, each_main, one);

		started[i] = ret == 0;
		if (started[i])
			continue;
		err_clear(&e);
		each_done(all, one, err_thread(&e, ret, "the thread that opens a replica"), &e);
	}
}

int
repl_each(struct repl *r, const struct each_step *step, struct err *e)
{
	struct each all = {.r = r, .step = step, .left = r->replica_count, .e = e};
	bool started[REPL_TARGETS_MAX];
	int rc;

	if (r->replica_count == 1)
		return step->run(r, 0, e);
	rc = each_init(&all, e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < r->replica_count; i++)
		all.one[i] = (struct each_one){.all = &all, .replica = i};
	if (step->one_first)
		all.first = each_first(&all);
	each_start(&all, started);
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (started[i])
			(void)pthread_join(all.one[i].thread, NULL);
	}
	(void)pthread_cond_destroy(&all.moved);
	(void)pthread_mutex_destroy(&all.lock);
	return all.rc;
}
