/* SPDX-License-Identifier: BSD-3-Clause */
/* What the region of the sidecar tells after a close, a kill and a change of configuration. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dirty_impl.h"
#include "tempdir.h"

#define MIB (1ULL << 20)

static const struct gen_id gen_a = {{1}}, gen_b = {{2}};

#define POOL       (1024 * MIB)            /* three pages a replica with two of them */
#define BASES_SIZE ((2 + 2 * 1) * 4096ULL) /* a region that tells nothing else */

static char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8], sidecar[TEMPDIR_MAX + 16];
static struct repl_config config;
static uint64_t pool_size; /* that a handle is opened with */

/* A disk without room for another region, where it has some for what is written in place. */
static bool disk_full;

int
posix_fallocate(int fd, off_t off, off_t len)
{
	if (disk_full)
		return ENOSPC;
	return syscall(SYS_fallocate, fd, 0, off, len) ? errno : 0;
}

static int
setup(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	(void)snprintf(sidecar, sizeof(sidecar), "%s.repl", file);
	memset(&config, 0, sizeof(config));
	pool_size = POOL;
	disk_full = false;
	config.target_count = 2;
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++)
		(void)snprintf(config.targets[i].host, sizeof(config.targets[i].host), "h%u", i);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	tempdir_free(dir);
	return 0;
}

/* As opening and closing a handle have it, or without the end of either. */
static struct dirty *
handle_begin(struct local *l)
{
	struct dirty *d = NULL;
	bool crashed;

	local_init(l);
	assert_int_equal(local_open(l, file, pool_size, NULL), 0);
	if (!l->present) {
		assert_int_equal(local_new_id(&l->meta.pool_uuid, NULL), 0);
		l->meta.pool_size = pool_size;
		l->meta.generation.current = gen_a;
	}
	crashed = l->meta.writer_open;
	assert_int_equal(dirty_open(l, &config, pool_size, crashed, &d, NULL), 0);
	l->meta.state = SIDECAR_UP_TO_DATE;
	l->meta.writer_open = true;
	dirty_begin(d);
	assert_int_equal(local_store(l, NULL), 0);
	return d;
}

static struct dirty *
handle_open(struct local *l)
{
	struct dirty *d = handle_begin(l);

	assert_int_equal(dirty_start(d, NULL), 0);
	assert_true(dirty_media_ok(d, NULL));
	return d;
}

static void
handle_close(struct local *l, struct dirty *d)
{
	dirty_close(d);
	l->meta.writer_open = false;
	assert_int_equal(local_store(l, NULL), 0);
	local_fini(l);
}

/* The file stays as it is, as if the program had been killed. */
static void
handle_kill(struct local *l, struct dirty *d)
{
	dirty_thread_stop(d);
	d->begun = false;
	dirty_close(d);
	local_fini(l);
}

static uint64_t
sidecar_length(void)
{
	struct stat st;

	assert_int_equal(stat(sidecar, &st), 0);
	return (uint64_t)st.st_size;
}

static bool
has(struct dirty *d, unsigned replica, uint64_t off)
{
	struct range run;

	return d->track[replica].current &&
	       dirtymap_next(d->track[replica].current, off, 1, &run) && run.off == off;
}

static void
what_is_closed_comes_back(void **state)
{
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	dirty_mark(d, 1, 0, 1);
	dirty_mark(d, 1, POOL - 1, 1);
	assert_int_equal(dirty_track(d, 0, NULL), 0);
	handle_close(&l, d);
	assert_int_equal(sidecar_length(), SIDECAR_SIZE + (2 + 2 * 3) * 4096);
	for (unsigned i = 0; i < 3; i++) {
		d = handle_open(&l);
		assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_TRUSTED);
		assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
		assert_int_equal(dirty_bytes(d, 0), 0);
		assert_int_equal(dirty_bytes(d, 1), 2 * dirty_grain(d));
		assert_true(has(d, 1, 0) && has(d, 1, POOL - 1));
		/* Not there to be asked: what is known of it stays. */
		assert_int_equal(dirty_track(d, 1, NULL), 0);
		assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_TRUSTED);
		handle_close(&l, d);
	}
	d = handle_open(&l);
	dirty_doubt(d, 1);
	handle_close(&l, d);
	d = handle_open(&l);
	assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_UNTRUSTED);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
	dirty_untrack(d, 0);
	dirty_untrack(d, 1);
	handle_close(&l, d);
	/* Nothing is tracked: a sidecar of version 1.0 again. */
	assert_int_equal(sidecar_length(), SIDECAR_SIZE);
	d = handle_open(&l);
	assert_int_equal(l.meta.dirty_len, 0);
	assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_NONE);
	handle_close(&l, d);
	assert_int_equal(l.meta.dirty_len, 0);
	assert_int_equal(sidecar_length(), SIDECAR_SIZE);
}

/* Killed however often, with after-crash = compare. */
static void
what_a_replica_has_is_known_after_crashes(void **state)
{
	struct gen_id base;
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	handle_kill(&l, d);
	d = handle_open(&l);
	/* All are there. */
	assert_int_equal(l.meta.dirty_len, 0);
	/* Lost meanwhile, and noted. */
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	assert_true(dirty_bases_due(d));
	dirty_note_bases(d);
	assert_false(dirty_bases_due(d));
	handle_kill(&l, d);
	for (unsigned i = 0; i < 3; i++) {
		d = handle_open(&l);
		assert_true(dirty_base(d, 1, &base));
		assert_true(gen_id_equal(&base, &gen_b));
		assert_int_equal(dirty_track(d, 1, NULL), 0);
		assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_UNTRUSTED);
		assert_false(dirty_base(d, 0, &base));
		assert_true(sidecar_length() <= SIDECAR_SIZE + 2 * BASES_SIZE);
		handle_kill(&l, d);
		/* Nor does an opening forget it that does not end. */
		d = handle_begin(&l);
		handle_kill(&l, d);
	}
	/* It is back. */
	d = handle_open(&l);
	dirty_untrack(d, 1);
	dirty_note_bases(d);
	handle_kill(&l, d);
	d = handle_open(&l);
	assert_false(dirty_base(d, 1, &base));
	handle_close(&l, d);
}

/* Likewise, of a disk that was full for a while: when it was lost, or at the opening. */
static void
what_a_replica_has_is_noted_when_there_is_room(void **state)
{
	struct gen_id base;
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	for (unsigned i = 0; i < 3; i++) {
		disk_full = true;
		dirty_note_bases(d);
		assert_int_equal(l.meta.dirty_len, 0);
		assert_true(dirty_bases_due(d));
		disk_full = false;
		dirty_note_bases(d);
		assert_false(dirty_bases_due(d));
		handle_kill(&l, d);
		disk_full = true;
		d = handle_open(&l);
		assert_true(dirty_base(d, 1, &base) && gen_id_equal(&base, &gen_b));
	}
	handle_kill(&l, d);
}

/* Killed, with after-crash = compare: what was found is only a comparison's beginning. */
static void
after_a_crash_all_is_compared(void **state)
{
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	handle_close(&l, d);
	d = handle_open(&l);
	assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_TRUSTED);
	handle_kill(&l, d);
	for (unsigned i = 0; i < 2; i++) {
		d = handle_open(&l);
		assert_int_not_equal(dirty_found(d, 1, &gen_b), DIRTY_TRUSTED);
		assert_int_equal(dirty_track(d, 1, &gen_b), 0);
		assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_UNTRUSTED);
		assert_int_equal(dirty_track(d, 0, NULL), 0);
		assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
		/* Also when it was closed in order in between: nothing was compared. */
		handle_close(&l, d);
	}
	d = handle_open(&l);
	dirty_rebase(d, 1, &gen_b);
	handle_close(&l, d);
	d = handle_open(&l);
	assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_TRUSTED);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
	handle_close(&l, d);
}

static void
after_a_crash_the_log_tells(void **state)
{
	struct local l;
	struct dirty *d;

	(void)state;
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	d = handle_open(&l);
	dirty_active(d, 100 * MIB, 1);
	handle_kill(&l, d);
	d = handle_open(&l);
	/* The extent, and no more; of the generation that all had. */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(dirty_found(d, i, &gen_a), DIRTY_TRUSTED);
		assert_int_equal(dirty_bytes(d, i), 4 * MIB);
		assert_true(has(d, i, 100 * MIB));
	}
	dirty_untrack(d, 0);
	assert_int_equal(dirty_track(d, 0, &gen_b), 0);
	dirty_round(d);
	handle_kill(&l, d);
	d = handle_open(&l);
	/* What the first map of it held is of another time. */
	assert_int_equal(dirty_bytes(d, 0), 0);
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_TRUSTED);
	assert_int_equal(dirty_bytes(d, 1), 4 * MIB);
	handle_close(&l, d);
	/* The one that is killed keeps no log: the next one can't rely on it. */
	config.after_crash = CONFIG_CRASH_COMPARE;
	d = handle_open(&l);
	handle_close(&l, d);
	d = handle_open(&l);
	handle_kill(&l, d);
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	d = handle_open(&l);
	assert_int_equal(dirty_track(d, 1, &gen_a), 0);
	assert_int_equal(dirty_found(d, 1, &gen_a), DIRTY_UNTRUSTED);
	handle_close(&l, d);
}

/* Of what a later writer does, that keeps no log, the one that it finds says nothing. */
static void
a_log_is_its_own_writers(void **state)
{
	struct local l;
	struct dirty *d;

	(void)state;
	for (unsigned closed = 0; closed < 2; closed++) {
		config.after_crash = CONFIG_CRASH_DIRTY_MAP;
		d = handle_open(&l);
		dirty_active(d, 100 * MIB, 1);
		assert_int_equal(dirty_track(d, 1, &gen_b), 0);
		dirty_rebase(d, 1, &gen_b);
		dirty_round(d);
		if (closed)
			handle_close(&l, d);
		else
			handle_kill(&l, d);
		config.after_crash = CONFIG_CRASH_COMPARE;
		d = handle_open(&l);
		assert_int_equal(l.meta.dirty_len, BASES_SIZE);
		handle_kill(&l, d);
		config.after_crash = CONFIG_CRASH_DIRTY_MAP;
		d = handle_open(&l);
		assert_int_not_equal(dirty_found(d, 1, &gen_b), DIRTY_TRUSTED);
		assert_int_equal(dirty_track(d, 0, NULL), 0);
		assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
		dirty_rebase(d, 0, &gen_a);
		dirty_untrack(d, 1);
		handle_close(&l, d);
	}
	/* Nor does the one of a writer that has closed, whoever is killed next. */
	d = handle_open(&l);
	dirty_active(d, 100 * MIB, 1);
	handle_close(&l, d);
	l.meta.writer_open = true;
	local_init(&l);
	assert_int_equal(local_open(&l, file, POOL, NULL), 0);
	assert_int_equal(dirty_open(&l, &config, POOL, true, &d, NULL), 0);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
	dirty_close(d);
	local_fini(&l);
}

/* Grown by its program, which was cut off before that was recorded: the new part is dirty. */
static void
a_larger_pool_is_dirty_behind_the_old_end(void **state)
{
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	dirty_mark(d, 0, MIB, 1);
	handle_close(&l, d);
	local_init(&l);
	assert_int_equal(local_open(&l, file, POOL + 10 * MIB, NULL), 0);
	assert_int_equal(dirty_open(&l, &config, POOL + 10 * MIB, false, &d, NULL), 0);
	assert_int_equal(dirty_bytes(d, 0), dirty_grain(d) + 10 * MIB);
	assert_true(has(d, 0, POOL));
	handle_kill(&l, d);
}

/*
 * Or amid repl_grow(), by when the region is of the new size and the sidecar of the old one; and
 * killed once more while it is opened, when neither is of the old one: nothing is believed then.
 */
static void
a_growth_that_was_cut_off_is_dirty(void **state)
{
	struct local l;
	struct dirty *d;

	(void)state;
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	d = handle_open(&l);
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	dirty_mark(d, 1, MIB, 1);
	pool_size = POOL + 10 * MIB;
	assert_int_equal(dirty_grow(d, pool_size, NULL), 0);
	handle_kill(&l, d);
	local_init(&l);
	assert_int_equal(local_open(&l, file, pool_size, NULL), 0);
	assert_int_equal(dirty_open(&l, &config, pool_size, true, &d, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(dirty_found(d, i, i ? &gen_b : &gen_a), DIRTY_TRUSTED);
		assert_int_equal(dirty_bytes(d, i), i * dirty_grain(d) + 10 * MIB);
		assert_true(has(d, i, POOL) && has(d, i, pool_size - dirty_grain(d)));
	}
	handle_kill(&l, d);
	d = handle_begin(&l);
	handle_kill(&l, d);
	d = handle_begin(&l);
	for (unsigned i = 0; i < 2; i++)
		assert_int_not_equal(dirty_found(d, i, i ? &gen_b : &gen_a), DIRTY_TRUSTED);
	handle_kill(&l, d);
}

/* Beyond what the extents of its first size tell, with after-crash = compare. */
static void
what_a_replica_has_is_known_after_a_growth(void **state)
{
	struct gen_id base;
	struct local l;
	struct dirty *d;

	(void)state;
	pool_size = 8 * 1024 * MIB;
	d = handle_open(&l);
	assert_int_equal(dirty_track(d, 0, &gen_b), 0);
	dirty_note_bases(d);
	dirty_mark(d, 0, MIB, 1);
	pool_size = l.meta.pool_size = 20 * 1024 * MIB;
	assert_int_equal(dirty_grow(d, pool_size, NULL), 0);
	dirty_mark(d, 0, pool_size - 1, 1);
	handle_close(&l, d);
	d = handle_open(&l);
	assert_true(dirty_base(d, 0, &base));
	assert_true(gen_id_equal(&base, &gen_b));
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_TRUSTED);
	assert_true(has(d, 0, MIB) && has(d, 0, pool_size - dirty_grain(d)));
	assert_int_equal(dirty_bytes(d, 0), 2 * dirty_grain(d));
	handle_close(&l, d);
}

/* There is no room for all that is known at a close: then as much as after a kill. */
static void
what_a_replica_has_is_known_after_a_close_on_a_full_disk(void **state)
{
	struct gen_id base;
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	dirty_note_bases(d);
	/* Of this one nothing was noted. */
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	disk_full = true;
	handle_close(&l, d);
	assert_int_equal(sidecar_length(), SIDECAR_SIZE + BASES_SIZE);
	disk_full = false;
	for (unsigned i = 0; i < 2; i++) {
		d = handle_open(&l);
		assert_true(dirty_base(d, 1, &base) && gen_id_equal(&base, &gen_b));
		assert_true(dirty_base(d, 0, &base) && gen_id_equal(&base, &gen_a));
		assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_UNTRUSTED);
		assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
		handle_close(&l, d);
	}
	/* Where nothing was noted nothing is known. */
	d = handle_open(&l);
	dirty_untrack(d, 0);
	dirty_untrack(d, 1);
	handle_close(&l, d);
	d = handle_open(&l);
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	disk_full = true;
	handle_close(&l, d);
	assert_int_equal(sidecar_length(), SIDECAR_SIZE);
	disk_full = false;
	d = handle_open(&l);
	assert_false(dirty_base(d, 1, &base));
	handle_close(&l, d);
}

static _Atomic unsigned asked;

static void
ask(void *arg)
{
	(void)arg;
	(void)atomic_fetch_add(&asked, 1);
}

static bool
is_asked(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	for (unsigned i = 0; i < 3000 && !atomic_load(&asked); i++)
		(void)nanosleep(&pause, NULL);
	return atomic_load(&asked) > 0;
}

/* Nobody else records again what could not be. */
static void
what_is_to_be_recorded_is_asked_for_on_a_full_disk(void **state)
{
	struct dirty *d;
	struct local l;

	(void)state;
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	d = handle_begin(&l);
	atomic_store(&asked, 0);
	dirty_watch_record(d, ask, NULL);
	disk_full = true;
	assert_int_equal(dirty_start(d, NULL), 0);
	assert_false(dirty_media_ok(d, NULL));
	assert_true(is_asked());
	disk_full = false;
	handle_close(&l, d);
}

static void
file_flip(uint64_t off)
{
	FILE *f = fopen(sidecar, "r+");
	int c;

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)off, SEEK_SET), 0);
	c = fgetc(f);
	assert_int_equal(fseek(f, (long)off, SEEK_SET), 0);
	assert_true(fputc(c ^ 4, f) != EOF);
	assert_int_equal(fclose(f), 0);
}

/* One bit of any page: its blocks are dirty, or all is compared. Flipped back it counts again. */
static void
a_damaged_page_is_all_dirty(void **state)
{
	uint64_t off, page_bytes, len;
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	page_bytes = 32640ULL * dirty_grain(d);
	off = 0;
	handle_close(&l, d);
	for (unsigned page = 0; page < 8; page++) {
		local_init(&l);
		assert_int_equal(local_open(&l, file, POOL, NULL), 0);
		off = l.meta.dirty_off;
		len = l.meta.dirty_len;
		local_fini(&l);
		assert_int_equal(len, 8 * 4096);
		file_flip(off + page * 4096ULL + 300 * page);
		d = NULL;
		local_init(&l);
		assert_int_equal(local_open(&l, file, POOL, NULL), 0);
		assert_int_equal(dirty_open(&l, &config, POOL, false, &d, NULL), 0);
		if (page == 0) {
			assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_NONE);
			assert_int_equal(dirty_track(d, 0, &gen_a), 0);
			assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
		}
		for (unsigned r = 0; page >= 2 && r < 2; r++) {
			uint64_t from = (page - 2) % 3 * page_bytes;
			uint64_t all = POOL - from < page_bytes ? POOL - from : page_bytes;

			assert_int_equal(dirty_bytes(d, r), r == (page - 2) / 3 ? all : 0);
			assert_int_equal(dirty_found(d, r, r ? &gen_b : &gen_a), DIRTY_TRUSTED);
		}
		/* Not begun: the file stays as it is. */
		dirty_close(d);
		local_fini(&l);
		file_flip(off + page * 4096ULL + 300 * page);
	}
}

/* A damaged log counts after a crash only, and then all is compared. */
static void
a_damaged_log_is_not_believed(void **state)
{
	struct dirty *d;
	struct local l;

	(void)state;
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	d = handle_open(&l);
	dirty_active(d, 0, 1);
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	dirty_round(d);
	file_flip(l.meta.dirty_off + 4096 + 16);
	handle_kill(&l, d);
	d = handle_open(&l);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
	assert_int_equal(dirty_found(d, 1, &gen_a), DIRTY_NONE);
	handle_close(&l, d);
}

/* Targets have come, gone and changed places; blocks have another size. */
static void
maps_follow_their_targets(void **state)
{
	struct local l;
	struct dirty *d = handle_open(&l);
	struct target first = config.targets[0];

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	dirty_mark(d, 0, 5 * MIB, MIB);
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	handle_close(&l, d);
	config.targets[0] = config.targets[9];
	config.targets[4] = first;
	config.target_count = 5;
	d = handle_open(&l);
	assert_int_equal(dirty_grain(d), 8 * 8192);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_NONE);
	assert_int_equal(dirty_found(d, 4, &gen_a), DIRTY_TRUSTED);
	assert_int_equal(dirty_bytes(d, 4), MIB);
	assert_true(has(d, 4, 5 * MIB));
	assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_TRUSTED);
	handle_close(&l, d);
}

/* Killed, and configured by another name of its machine: its own map says more than the log does.
 */
static void
a_new_name_is_in_no_log(void **state)
{
	struct local l;
	struct dirty *d;

	(void)state;
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	d = handle_open(&l);
	/* It has got the generation of now, and has missed something since. */
	assert_int_equal(dirty_track(d, 1, &gen_a), 0);
	dirty_mark(d, 1, 500 * MIB, 1);
	dirty_round(d);
	dirty_active(d, 100 * MIB, 1);
	handle_kill(&l, d);
	config.targets[1] = config.targets[9];
	d = handle_open(&l);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
	assert_int_equal(dirty_found(d, 1, &gen_a), DIRTY_NONE);
	assert_int_equal(dirty_track(d, 1, &gen_a), 0);
	dirty_doubt(d, 1);
	handle_kill(&l, d);
}

/* What is compared of a replica need not be again, as long as its generation is the same. */
static void
a_comparison_goes_on_where_it_was(void **state)
{
	struct local l;
	struct dirty *d = handle_open(&l);

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	assert_int_equal(dirty_compared(d, 0, &gen_a), 0);
	for (unsigned whole = 0; whole < 2; whole++) {
		dirty_mark_all(d, 0);
		assert_non_null(dirty_batch_begin(d, 0));
		dirty_mark(d, 0, MIB, 1);
		dirty_batch_compared(d, 0, &gen_b, 64 * MIB, whole);
		assert_true(has(d, 0, MIB) && !has(d, 0, 2 * MIB));
		assert_int_equal(has(d, 0, 64 * MIB), !whole);
		assert_int_equal(has(d, 0, POOL - 1), !whole);
		assert_int_equal(dirty_compared(d, 0, &gen_b), 64 * MIB);
		assert_int_equal(dirty_compared(d, 0, &gen_a), 0);
	}
	/* What the map says has nothing to do with it. */
	dirty_doubt(d, 0);
	assert_int_equal(dirty_compared(d, 0, &gen_b), 64 * MIB);
	dirty_rebase(d, 0, &gen_a);
	assert_int_equal(dirty_compared(d, 0, &gen_b), 0);
	/* What has been written directly may have another copy of that generation in its place. */
	assert_non_null(dirty_batch_begin(d, 0));
	dirty_batch_compared(d, 0, &gen_b, 64 * MIB, true);
	dirty_forsake(d, 0);
	assert_int_equal(dirty_compared(d, 0, &gen_b), 0);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
	dirty_mark_all(d, 0);
	assert_non_null(dirty_batch_begin(d, 0));
	dirty_batch_compared(d, 0, &gen_b, 64 * MIB, false);
	assert_int_equal(dirty_track(d, 0, &gen_b), 0);
	assert_int_equal(dirty_compared(d, 0, &gen_b), 64 * MIB);
	dirty_untrack(d, 0);
	assert_int_equal(dirty_compared(d, 0, &gen_b), 0);
	assert_int_equal(dirty_track(d, 0, &gen_b), 0);
	assert_int_equal(dirty_compared(d, 0, &gen_b), 0);
	handle_close(&l, d);
}

/* What is taken into a batch is on media until its end, and goes then. */
static void
a_batch_is_on_media_until_it_is_done(void **state)
{
	struct dirtymap *batch;
	struct dirty *d;
	struct local l;

	(void)state;
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	d = handle_open(&l);
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	dirty_mark(d, 0, 0, 1);
	dirty_round(d);
	batch = dirty_batch_begin(d, 0);
	assert_non_null(batch);
	dirty_mark(d, 0, 64 * MIB, 1);
	dirty_round(d);
	handle_kill(&l, d);
	d = handle_open(&l);
	assert_true(has(d, 0, 0) && has(d, 0, 64 * MIB));
	batch = dirty_batch_begin(d, 0);
	assert_non_null(batch);
	dirty_batch_end(d, 0, true);
	dirty_mark(d, 0, 8 * MIB, 1);
	dirty_round(d);
	handle_kill(&l, d);
	d = handle_open(&l);
	assert_true(has(d, 0, 8 * MIB) && !has(d, 0, 0) && !has(d, 0, 64 * MIB));
	handle_close(&l, d);
}

/* ---- threads ---- */

#define THREADS 3U

static _Atomic bool threads_stop;

static void *
writer_main(void *arg)
{
	struct dirty *d = arg;
	uint64_t x = (uint64_t)(uintptr_t)&x | 1;

	while (!atomic_load(&threads_stop)) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		dirty_active(d, (x >> 20) % POOL, 4096);
		dirty_mark(d, 0, (x >> 20) % POOL, 4096);
		dirty_active(d, (x >> 20) % POOL, 4096);
	}
	return NULL;
}

/* All that goes on beside writers: rounds, batches, growth, a replica that comes and goes. */
static void
threads_go_on_beside_each_other(void **state)
{
	pthread_t t[THREADS];
	struct local l;
	struct dirty *d;

	(void)state;
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	config.op_timeout_ms = 1;
	d = handle_open(&l);
	d->activity.log.idle_rounds = 1;
	atomic_store(&threads_stop, false);
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, writer_main, d), 0);
	for (unsigned i = 0; i < 400; i++) {
		dirty_round(d);
		if (dirty_batch_begin(d, 0))
			dirty_batch_end(d, 0, i % 2);
		if (i % 100 == 99) {
			l.meta.pool_size += 8 * POOL;
			assert_int_equal(dirty_grow(d, l.meta.pool_size, NULL), 0);
		}
		if (i % 4 == 3) {
			dirty_untrack(d, 0);
			assert_int_equal(dirty_track(d, 0, &gen_b), 0);
		}
	}
	atomic_store(&threads_stop, true);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_true(dirty_media_ok(d, NULL));
	handle_close(&l, d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(threads_go_on_beside_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_closed_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_replica_has_is_noted_when_there_is_room,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_replica_has_is_known_after_crashes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_growth_that_was_cut_off_is_dirty, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_replica_has_is_known_after_a_growth, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			what_a_replica_has_is_known_after_a_close_on_a_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_to_be_recorded_is_asked_for_on_a_full_disk,
						setup, teardown),
		cmocka_unit_test_setup_teardown(after_a_crash_all_is_compared, setup, teardown),
		cmocka_unit_test_setup_teardown(a_log_is_its_own_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(a_comparison_goes_on_where_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(after_a_crash_the_log_tells, setup, teardown),
		cmocka_unit_test_setup_teardown(a_larger_pool_is_dirty_behind_the_old_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_damaged_page_is_all_dirty, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_log_is_not_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(maps_follow_their_targets, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_name_is_in_no_log, setup, teardown),
		cmocka_unit_test_setup_teardown(a_batch_is_on_media_until_it_is_done, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
