/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the maps back, and what else is to be recorded, behind the program, once a second. */
#include "dirty_impl.h"

#include <errno.h>

#include "clock.h"
#include "thread.h"

#define ROUND_MS 1000U

/* What has changed, synced. */
static int
maps_flush(struct dirty *d, struct err *e)
{
	bool header = atomic_exchange(&d->header_changed, false), any;
	int rc = region_write_maps(d, &any, e);

	if (!rc && header)
		rc = region_write_header(d, e);
	else if (!rc && any)
		rc = region_sync(d, e);
	return rc;
}

void
dirty_watch_lag(struct dirty *d, uint64_t (*lag_ms)(void *arg), void *arg)
{
	pthread_mutex_lock(&d->io_lock);
	d->lag_ms = lag_ms;
	d->lag_arg = arg;
	pthread_mutex_unlock(&d->io_lock);
}

void
dirty_watch_record(struct dirty *d, void (*again)(void *arg), void *arg)
{
	d->record_again = again;
	d->record_arg = arg;
}

/* What is on its way to a replica is in no map: no extent goes as long as some of it may be in it.
 */
static bool
queues_are_young(const struct dirty *d)
{
	return !d->lag_ms || d->lag_ms(d->lag_arg) < DIRTY_LAG_MS;
}

/*
 * A turn ends when all stores of the one before are drained. So the oldest one is of this turn or
 * of the last, each of which has lasted for DIRTY_STORE_ROUNDS at most.
 */
static bool
stores_are_young(struct dirty *d)
{
	unsigned turn = atomic_load(&d->store_turn);

	if (atomic_load(&d->stores[(turn + 1) % 2]) == 0) {
		atomic_store(&d->store_turn, turn + 1);
		d->store_rounds = 0;
	} else {
		d->store_rounds++;
	}
	return d->store_rounds < DIRTY_STORE_ROUNDS;
}

/*
 * What the file has comes first, and takes its time: not under io_lock, which a loss takes. Where
 * it has lost something they stay, on media; likewise where they are of another size by then.
 */
static void
round_retire(struct dirty *d, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	uint32_t shift = atomic_load(&d->activity.log.shift);
	uint64_t size = d->pool_size;
	bool settled;

	pthread_mutex_unlock(&d->io_lock);
	settled = settle_pool(d, size);
	pthread_mutex_lock(&d->io_lock);
	if (settled && d->region.off && shift == atomic_load(&d->activity.log.shift))
		activity_retire_end(d, idle);
}

void
dirty_round(struct dirty *d)
{
	uint64_t idle[DIRTYPAGE_EXTENT_WORDS];
	bool any, young;
	struct err e;

	err_clear(&e);
	pthread_mutex_lock(&d->io_lock);
	if (atomic_load(&d->broken)) {
		if (d->region.off && dirty_untold(d))
			(void)region_write_header(d, NULL);
	} else if (d->region.off) {
		young = stores_are_young(d);
		any = young && !atomic_load(&d->pool_lost) && queues_are_young(d) &&
		      activity_retire_begin(d, idle);
		if (maps_flush(d, &e))
			region_fail(d, &e);
		else if (any)
			round_retire(d, idle);
	}
	pthread_mutex_unlock(&d->io_lock);
}

static bool
thread_sleep(struct dirty *d)
{
	uint64_t at = clock_deadline(ROUND_MS);
	struct timespec ts = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
	bool stop;

	pthread_mutex_lock(&d->stop_lock);
	while (!d->stop && pthread_cond_timedwait(&d->wake, &d->stop_lock, &ts) != ETIMEDOUT)
		;
	stop = d->stop;
	pthread_mutex_unlock(&d->stop_lock);
	return !stop;
}

static void *
thread_main(void *arg)
{
	struct dirty *d = arg;

	while (thread_sleep(d)) {
		if (d->keep)
			dirty_round(d);
		if (d->record_again)
			d->record_again(d->record_arg);
	}
	return NULL;
}

int
dirty_thread_start(struct dirty *d, struct err *e)
{
	int ret;

	ret = thread_start(&d->thread, thread_main, d);
	if (ret)
		return err_thread(e, ret, "the thread of the dirty map");
	d->started = true;
	return 0;
}

void
dirty_thread_stop(struct dirty *d)
{
	if (!d->started)
		return;
	pthread_mutex_lock(&d->stop_lock);
	d->stop = true;
	(void)pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->stop_lock);
	(void)pthread_join(d->thread, NULL);
	d->started = false;
}
