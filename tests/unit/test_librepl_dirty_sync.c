/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of what a sync has lost nobody believes that it is on media: the kernel tells each open file
 * description of it once, and the sidecar, the activity log and the maps are one file.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dirty_impl.h"
#include "tempdir.h"

#define POOL (1ULL << 30)
#define FDS  1024

static struct dirty *d;
static struct local l;
static char dir[TEMPDIR_MAX];

/* The device has failed so many times, and so often each description was told of it. */
static unsigned failures, told[FDS];

/* What another thread does when the page of the activity log is written and not synced. */
static void (*meanwhile)(void);

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
int fdatasync(int fd);

int
fdatasync(int fd)
{
	assert_true(fd >= 0 && fd < FDS);
	if (told[fd] == failures)
		return 0;
	told[fd] = failures;
	errno = EIO;
	return -1;
}

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	void (*now)(void) = meanwhile;
	ssize_t n = syscall(SYS_pwrite64, fd, buf, len, off);

	if (now && d->region.off &&
	    (uint64_t)off == d->region.off + DIRTYPAGE_ACTIVITY * DIRTYPAGE_SIZE) {
		meanwhile = NULL;
		failures++;
		now();
	}
	return n;
}

static void
the_record_is_stored(void)
{
	assert_int_not_equal(local_store(&l, NULL), 0);
}

static void
the_maps_are_written(void)
{
	static const struct gen_id base = {{0x66}};

	assert_int_equal(dirty_track(d, 0, &base), 0);
	dirty_mark(d, 0, 0, 1);
	dirty_round(d);
	assert_false(dirty_media_ok(d, NULL));
}

static void
begin(void)
{
	char pool_file[TEMPDIR_MAX + 8];
	struct repl_config config = {.target_count = 1, .after_crash = CONFIG_CRASH_DIRTY_MAP};

	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(pool_file, sizeof(pool_file), "%s/pool", dir);
	(void)snprintf(config.targets[0].host, sizeof(config.targets[0].host), "a");
	failures = 0;
	memset(told, 0, sizeof(told));
	local_init(&l);
	assert_int_equal(local_open(&l, pool_file, POOL, NULL), 0);
	l.meta.pool_uuid.b[0] = 9;
	l.meta.pool_size = POOL;
	l.meta.state = SIDECAR_UP_TO_DATE;
	l.meta.writer_open = true;
	assert_int_equal(local_store(&l, NULL), 0);
	assert_int_equal(dirty_open(&l, &config, POOL, false, &d, NULL), 0);
	assert_int_equal(dirty_start(d, NULL), 0);
	dirty_thread_stop(d);
	assert_true(dirty_media_ok(d, NULL));
}

static void
end(void)
{
	dirty_close(d);
	local_fini(&l);
	tempdir_free(dir);
}

/* A drain's page of the log is lost as another one syncs, who is told of it. */
static void
the_log_has_lost_its_page(void (*other)(void))
{
	begin();
	meanwhile = other;
	(void)dirty_active(d, POOL / 2, 1);
	assert_null(meanwhile);
	assert_false(dirty_media_ok(d, NULL));
	assert_false(extentlog_use(&d->activity.log, POOL / 2, 1));
	/* What is written anew can be told. */
	assert_false(dirty_untold(d));
	end();
}

static void
what_the_record_was_told_the_log_is_told(void **state)
{
	(void)state;
	the_log_has_lost_its_page(the_record_is_stored);
}

static void
what_the_maps_were_told_the_log_is_told(void **state)
{
	(void)state;
	the_log_has_lost_its_page(the_maps_are_written);
}

static void *
waits(void *arg)
{
	(void)arg;
	(void)dirty_active(d, 0, 1);
	return NULL;
}

static bool
is_wanted(void)
{
	bool is;

	pthread_mutex_lock(&d->activity.lock);
	is = d->activity.log.want[0] & 1;
	pthread_mutex_unlock(&d->activity.lock);
	return is;
}

static void
joined(pthread_t other)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	assert_int_equal(pthread_timedjoin_np(other, NULL, &until), 0);
}

/* As in the child of a fork: whoever was writing to the log is not there. */
static void
nobody_waits_who_has_abandoned_it(void **state)
{
	pthread_t other;

	(void)state;
	begin();
	d->activity.syncing = true;
	assert_int_equal(pthread_create(&other, NULL, waits, NULL), 0);
	/* From then on it waits. */
	while (!is_wanted())
		(void)usleep(1000);
	dirty_abandon(d);
	joined(other);
	/* Nor is it said of the parent's that something was lost. */
	assert_true(dirty_media_ok(d, NULL));
	end();
}

static void
a_handler_forks(void)
{
	/* Another thread of the parent's has it. */
	pthread_mutex_lock(&d->activity.lock);
	dirty_abandon(d);
}

/* Nor whoever wants something of the log, when the sync is over. */
static void
who_was_writing_comes_back(void **state)
{
	(void)state;
	begin();
	meanwhile = a_handler_forks;
	(void)alarm(20);
	(void)dirty_active(d, POOL / 2, 1);
	(void)alarm(0);
	assert_null(meanwhile);
	assert_true(dirty_media_ok(d, NULL));
	end();
}

static void
tracks(void)
{
	static const struct gen_id base = {{0x67}};

	(void)dirty_track(d, 0, &base);
}

static void
shares(void)
{
	dirty_share(d, 0);
}

static void
marks(void)
{
	dirty_mark_all(d, 0);
}

static void
looks(void)
{
	struct gen_id base;

	(void)dirty_base(d, 0, &base);
}

static void
doubts(void)
{
	dirty_doubt(d, 0);
}

static void
notes(void)
{
	d->bases = true;
	atomic_store(&d->header_changed, true);
	dirty_note_bases(d);
}

static void
records(void)
{
	dirty_recorded(d);
}

static void
disowns(void)
{
	(void)dirty_disown(d);
}

static void *
calls(void *arg)
{
	void (**call)(void) = arg;

	(*call)();
	return NULL;
}

/* Nor, in what a loss calls, for locks that another thread of its parent had at the fork. */
static void
nobody_waits_for_what_its_parent_has(void **state)
{
	void (*all[])(void) = {tracks, shares, marks, looks, doubts, notes, records, disowns};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		pthread_t other;

		begin();
		tracks();
		pthread_mutex_lock(&d->io_lock);
		pthread_mutex_lock(&d->header_lock);
		pthread_rwlock_wrlock(&d->maps_lock);
		assert_int_equal(pthread_create(&other, NULL, calls, &all[i]), 0);
		dirty_abandon(d);
		joined(other);
		pthread_rwlock_unlock(&d->maps_lock);
		pthread_mutex_unlock(&d->header_lock);
		pthread_mutex_unlock(&d->io_lock);
		end();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_record_was_told_the_log_is_told),
		cmocka_unit_test(what_the_maps_were_told_the_log_is_told),
		cmocka_unit_test(nobody_waits_who_has_abandoned_it),
		cmocka_unit_test(nobody_waits_for_what_its_parent_has),
		cmocka_unit_test(who_was_writing_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
