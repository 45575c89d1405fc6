/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kill or a power cut at any point of the region's writing never loses a mark:
 * what was acknowledged without a replica is dirty for it afterwards, and so is
 * what was being sent to the others.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dirty_impl.h"
#include "tempdir.h"

#define MIB      (1ULL << 20)
#define POOL     (1024 * MIB)
#define GROWN    (20480 * MIB) /* extents of another size */
#define REPLICAS 2U
#define OPS_MAX  4000U
#define FILE_MAX (440U << 10)

/* What happened, in order: what media were given, and what the program was promised. */
enum op_kind { OP_WRITE, OP_SYNC, OP_SENT, OP_ACKED, OP_GONE };

struct op {
	enum op_kind kind;
	uint64_t off, len;
	unsigned replica; /* OP_ACKED, OP_GONE */
	uint8_t *data;    /* OP_WRITE */
};

static struct {
	int fd; /* whose calls are recorded; -1: none */
	unsigned count;
	struct op op[OPS_MAX];
	int fail;  /* so many writes from now on, the first one after which fails; -1: none */
	bool full; /* the disk */
} trace = {.fd = -1, .fail = -1};

static struct op *
trace_add(enum op_kind kind, unsigned replica, uint64_t off, uint64_t len)
{
	struct op *o = &trace.op[trace.count++];

	assert_true(trace.count < OPS_MAX);
	*o = (struct op){.kind = kind, .off = off, .len = len, .replica = replica};
	return o;
}

/* Before the library's own: the module's calls end up here. */
ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
int fdatasync(int fd);
int fallocate(int fd, int mode, off_t off, off_t len);

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (fd == trace.fd) {
		struct op *o;

		if (trace.fail == 0) {
			errno = ENOSPC;
			return -1;
		}
		if (trace.fail > 0)
			trace.fail--;
		o = trace_add(OP_WRITE, 0, (uint64_t)off, len);
		o->data = malloc(len);
		assert_non_null(o->data);
		memcpy(o->data, buf, len);
	}
	return syscall(SYS_pwrite64, fd, buf, len, off);
}

/* By another description of it, too. */
static bool
is_traced(int fd)
{
	struct stat st, its;

	return trace.fd >= 0 && fstat(fd, &st) == 0 && fstat(trace.fd, &its) == 0 &&
	       st.st_dev == its.st_dev && st.st_ino == its.st_ino;
}

int
fdatasync(int fd)
{
	if (is_traced(fd))
		(void)trace_add(OP_SYNC, 0, 0, 0);
	return 0;
}

/* Space that is given back may be zeros at once. */
int
fallocate(int fd, int mode, off_t off, off_t len)
{
	if (fd == trace.fd) {
		struct op *o = trace_add(OP_WRITE, 0, (uint64_t)off, (uint64_t)len);

		assert_int_equal(mode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
		o->data = calloc(1, (size_t)len);
		assert_non_null(o->data);
	}
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int posix_fallocate(int fd, off_t off, off_t len);

int
posix_fallocate(int fd, off_t off, off_t len)
{
	if (trace.full)
		return ENOSPC;
	return syscall(SYS_fallocate, fd, 0, off, len) ? errno : 0;
}

/* Whoever is let go on by a broadcast is let go on by media that are told of a failure. */
static struct dirty *resumed;
static bool resumed_seen;

int pthread_cond_broadcast(pthread_cond_t *c);

int
pthread_cond_broadcast(pthread_cond_t *c)
{
	if (resumed && c == &resumed->activity.synced) {
		resumed_seen = true;
		assert_true(resumed->activity.armed ||
			    (atomic_load(&resumed->broken) && !dirty_untold(resumed)));
	}
	return 0;
}

static char dir[TEMPDIR_MAX], pool_file[128], crash_file[128];
static struct repl_config config;
static const struct gen_id gen_now = {{0x77}}, gen_base = {{0x66}};

/* A pool with a sidecar, whose writer is at work. */
static void
local_begin(struct local *l, uint64_t size)
{
	local_init(l);
	assert_int_equal(local_open(l, pool_file, size, NULL), 0);
	if (!l->present) {
		l->meta.pool_uuid.b[0] = 9;
		l->meta.pool_size = size;
		l->meta.generation.current = gen_now;
	}
	l->meta.state = SIDECAR_UP_TO_DATE;
	l->meta.writer_open = true;
	assert_int_equal(local_store(l, NULL), 0);
}

static struct dirty *
begin(struct local *l, uint64_t size, bool crashed)
{
	struct dirty *d = NULL;

	assert_int_equal(dirty_open(l, &config, size, crashed, &d, NULL), 0);
	assert_int_equal(dirty_start(d, NULL), 0);
	/* Its rounds are the test's to make. */
	dirty_thread_stop(d);
	return d;
}

static int
setup(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(pool_file, sizeof(pool_file), "%s/pool", dir);
	(void)snprintf(crash_file, sizeof(crash_file), "%s/crash", dir);
	memset(&config, 0, sizeof(config));
	config.target_count = REPLICAS;
	(void)snprintf(config.targets[0].host, sizeof(config.targets[0].host), "a");
	(void)snprintf(config.targets[1].host, sizeof(config.targets[1].host), "b");
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < trace.count; i++)
		free(trace.op[i].data);
	trace.count = 0;
	trace.fd = -1;
	trace.fail = -1;
	trace.full = false;
	tempdir_free(dir);
	return 0;
}

/* ---- the crash ---- */

static uint8_t image[FILE_MAX];

static void
image_write(const struct op *o, uint64_t len)
{
	assert_true(o->off + o->len <= FILE_MAX);
	memcpy(image + o->off, o->data, len);
}

enum { LOSE_ALL, LOSE_NONE, LOSE_ONE, KEEP_ONE, TEAR_ONE, MODES };

/*
 * The file after a cut behind the first count operations. Of the writes since
 * the last sync a part is there: mode, and which says of which one.
 */
static void
image_make(const uint8_t *start, unsigned count, unsigned mode, unsigned which)
{
	/* A sector, or what a bus brings over. */
	uint64_t tear = which % 2 ? 512 : 20 + 64 * (which % 8);
	unsigned synced = 0, n = 0;

	memcpy(image, start, FILE_MAX);
	for (unsigned i = 0; i < count; i++) {
		if (trace.op[i].kind == OP_SYNC)
			synced = i;
	}
	for (unsigned i = 0; i < count; i++) {
		const struct op *o = &trace.op[i];
		bool one;

		if (o->kind != OP_WRITE)
			continue;
		if (i < synced) {
			image_write(o, o->len);
			continue;
		}
		one = n++ == which;
		if (mode == LOSE_NONE || (mode == LOSE_ONE && !one) || (mode == KEEP_ONE && one))
			image_write(o, o->len);
		else if (mode == TEAR_ONE && one)
			image_write(o, tear < o->len ? tear : o->len);
	}
}

static unsigned
unsynced(unsigned count)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		if (trace.op[i].kind == OP_SYNC)
			n = 0;
		n += trace.op[i].kind == OP_WRITE;
	}
	return n;
}

static bool
is_dirty(struct dirty *d, unsigned replica, uint64_t off, uint64_t len)
{
	struct range run;

	return d->track[replica].current &&
	       dirtymap_next(d->track[replica].current, off, len, &run) && run.off == off &&
	       run.len == len;
}

/* Marked, or known not to be known: a torn page tells nothing. */
static bool
is_kept(struct dirty *d, unsigned replica, const struct op *o, bool torn)
{
	const struct track *t = &d->track[replica];

	return is_dirty(d, replica, o->off, o->len) ||
	       (torn && (t->worth.suspect || t->worth.untrusted));
}

/* Each promise of the first count operations that still stands. */
static void
promises_check(struct dirty *d, unsigned count, bool torn)
{
	for (unsigned i = 0; i < count; i++) {
		const struct op *o = &trace.op[i];
		bool stands = true;

		for (unsigned k = i + 1; k < count && stands; k++) {
			const struct op *later = &trace.op[k];

			if (o->kind == OP_ACKED && later->kind == OP_GONE)
				stands = later->replica != o->replica;
			if (o->kind == OP_SENT && later->kind == OP_GONE)
				stands = later->replica != REPLICAS || later->off != o->off;
		}
		if (o->kind == OP_ACKED && stands)
			assert_true(is_kept(d, o->replica, o, torn));
		for (unsigned r = 0; r < REPLICAS && o->kind == OP_SENT && stands; r++)
			assert_true(is_kept(d, r, o, torn));
	}
}

/* What the next one finds after the cut. */
static struct dirty *
crash_open(struct local *l, uint64_t size)
{
	char path[160];
	struct dirty *d = NULL;
	int fd;

	(void)snprintf(path, sizeof(path), "%s.repl", crash_file);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, image, FILE_MAX), FILE_MAX);
	(void)close(fd);
	local_init(l);
	assert_int_equal(local_open(l, crash_file, size, NULL), 0);
	assert_true(l->meta.writer_open);
	assert_int_equal(dirty_open(l, &config, size, true, &d, NULL), 0);
	return d;
}

typedef void (*crash_check_fn)(struct dirty *d, unsigned count, bool torn);

static void
crash_everywhere(const uint8_t *start, unsigned from, uint64_t size, crash_check_fn check,
		 unsigned least)
{
	unsigned checks = 0;
	struct dirty *d;
	struct local l;

	for (unsigned count = from; count <= trace.count; count++) {
		unsigned n = unsynced(count);

		for (unsigned mode = 0; mode < MODES; mode++) {
			unsigned times = mode >= LOSE_ONE ? n : 1;

			for (unsigned which = 0; which < times && which < 16; which++, checks++) {
				image_make(start, count, mode, which);
				d = crash_open(&l, size);
				check(d, count, mode == TEAR_ONE);
				/* Whoever has opened it may be cut off as well, and nothing has
				 * changed. */
				dirty_close(d);
				local_fini(&l);
			}
		}
	}
	assert_true(checks > least);
}

static void
read_image(const struct local *l, uint8_t *to)
{
	memset(to, 0, FILE_MAX);
	assert_true(pread(l->fd, to, FILE_MAX, 0) > 0);
}

/* One drain: of it is sent, then what tracked replicas miss is marked, then it is acknowledged. */
static void
drain(struct dirty *d, uint64_t off, uint64_t len, unsigned rounds)
{
	dirty_active(d, off, len);
	(void)trace_add(OP_SENT, 0, off, len);
	while (rounds--)
		dirty_round(d);
	for (unsigned r = 0; r < REPLICAS; r++)
		dirty_mark(d, r, off, len);
	dirty_active(d, off, len);
	for (unsigned r = 0; r < REPLICAS; r++) {
		if (dirty_tracked(d, r))
			(void)trace_add(OP_ACKED, r, off, len);
	}
	(void)trace_add(OP_GONE, REPLICAS, off, len);
}

static void
rounds(struct dirty *d, unsigned n)
{
	while (n--)
		dirty_round(d);
}

static void
gone(struct dirty *d, unsigned replica)
{
	/* First it has everything, then the map goes. */
	(void)trace_add(OP_GONE, replica, 0, 0);
	dirty_untrack(d, replica);
}

static uint64_t
place(unsigned i)
{
	return (uint64_t)i * 37 % 250 * 4 * MIB + i * 8192ULL;
}

static void
no_mark_is_lost(void **state)
{
	static uint8_t start[FILE_MAX];
	struct dirtymap *batch;
	struct dirty *d;
	struct local l;

	(void)state;
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	assert_true(dirty_media_ok(d, NULL));
	read_image(&l, start);
	trace.fd = l.fd;
	for (unsigned i = 0; i < 4; i++)
		drain(d, place(i), 16384, i);
	assert_int_equal(dirty_track(d, 0, &gen_base), 0);
	for (unsigned i = 4; i < 12; i++)
		drain(d, place(i), 16384, i % 2);
	/* Long enough for all to be taken off. */
	rounds(d, 12);
	assert_true(dirty_bytes(d, 0) < POOL / 4);
	assert_int_equal(dirty_track(d, 1, &gen_base), 0);
	for (unsigned i = 8; i < 20; i++)
		drain(d, place(i), 16384, 1);
	batch = dirty_batch_begin(d, 0);
	assert_non_null(batch);
	drain(d, place(21), 16384, 1);
	dirty_batch_end(d, 0, false);
	rounds(d, 12);
	(void)dirty_batch_begin(d, 0);
	drain(d, place(22), 16384, 1);
	/* What the batch held is on the replica: only what came since stands. */
	(void)trace_add(OP_GONE, 0, 0, 0);
	(void)trace_add(OP_ACKED, 0, place(22), 16384);
	dirty_batch_end(d, 0, true);
	rounds(d, 12);
	gone(d, 1);
	rounds(d, 1);
	/* Begun anew in the same place: nothing of the old map counts. */
	assert_int_equal(dirty_track(d, 1, &gen_now), 0);
	drain(d, place(30), 16384, 3);
	rounds(d, 12);
	crash_everywhere(start, 0, POOL, promises_check, 200);
	trace.fd = -1;
	dirty_close(d);
	local_fini(&l);
}

static void
all_marked_or_doubted(struct dirty *d, unsigned count, bool torn)
{
	(void)count;
	(void)torn;
	if (dirty_found(d, 0, &gen_base) == DIRTY_TRUSTED)
		for (unsigned i = 0; i < 12; i++)
			assert_true(is_dirty(d, 0, place(i), 16384));
}

/* Of a map that is trusted on media no mark goes there before that. */
static void
doubts_are_on_media_before_marks_go(void **state)
{
	static uint8_t start[FILE_MAX];
	unsigned before;
	struct dirty *d;
	struct local l;

	(void)state;
	for (unsigned again = 0; again < 2; again++) {
		local_begin(&l, POOL);
		d = begin(&l, POOL, false);
		read_image(&l, start);
		trace.fd = l.fd;
		assert_int_equal(dirty_track(d, 0, &gen_base), 0);
		for (unsigned i = 0; i < 12; i++)
			dirty_mark(d, 0, place(i), 16384);
		dirty_round(d);
		before = trace.count;
		/* Another one is there in its place, or one that a copy goes into. */
		if (again)
			assert_int_equal(dirty_track_found(d, 0, &gen_now), 0);
		else
			dirty_doubt(d, 0);
		(void)dirty_batch_begin(d, 0);
		dirty_batch_end(d, 0, true);
		dirty_round(d);
		crash_everywhere(start, before, POOL, all_marked_or_doubted, 20);
		trace.fd = -1;
		dirty_close(d);
		local_fini(&l);
		(void)teardown(NULL);
		(void)setup(NULL);
	}
}

static void
growing_loses_no_mark(void **state)
{
	static uint8_t start[FILE_MAX];
	unsigned before;
	struct dirty *d;
	struct local l;

	(void)state;
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	read_image(&l, start);
	trace.fd = l.fd;
	assert_int_equal(dirty_track(d, 0, &gen_base), 0);
	for (unsigned i = 0; i < 4; i++)
		drain(d, place(i), 16384, 1);
	/* Under way while it grows: extents have another size at its end. */
	dirty_active(d, place(7), 16384);
	(void)trace_add(OP_SENT, 0, place(7), 16384);
	before = trace.count;
	l.meta.pool_size = GROWN;
	assert_int_equal(dirty_grow(d, GROWN, NULL), 0);
	dirty_active(d, place(8), 1);
	dirty_round(d);
	(void)trace_add(OP_GONE, REPLICAS, place(7), 16384);
	assert_true(dirty_media_ok(d, NULL) && trace.count > before);
	drain(d, place(5), 16384, 1);
	drain(d, GROWN - 16384, 16384, 1);
	rounds(d, 12);
	crash_everywhere(start, before - 5, GROWN, promises_check, 200);
	trace.fd = -1;
	dirty_close(d);
	local_fini(&l);
}

static void
base_check(struct dirty *d, unsigned count, bool torn)
{
	struct gen_id base;

	(void)count;
	(void)torn;
	assert_true(dirty_base(d, 0, &base));
	assert_true(gen_id_equal(&base, &gen_base));
	assert_false(dirty_base(d, 1, &base));
}

/* An opening with after-crash = compare, and a second one: at no point is a base on no media. */
static void
no_base_is_lost(void **state)
{
	static uint8_t start[FILE_MAX];
	struct dirty *d;
	struct local l;

	(void)state;
	config.after_crash = CONFIG_CRASH_COMPARE;
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	assert_int_equal(dirty_track(d, 0, &gen_base), 0);
	dirty_note_bases(d);
	for (unsigned i = 0; i < 2; i++) {
		/* Killed. */
		d->begun = false;
		dirty_close(d);
		local_fini(&l);
		local_init(&l);
		assert_int_equal(local_open(&l, pool_file, POOL, NULL), 0);
		if (i == 0)
			read_image(&l, start);
		trace.fd = l.fd;
		assert_int_equal(dirty_open(&l, &config, POOL, true, &d, NULL), 0);
		dirty_begin(d);
		assert_int_equal(local_store(&l, NULL), 0);
		assert_int_equal(dirty_start(d, NULL), 0);
		trace.fd = -1;
	}
	crash_everywhere(start, 0, POOL, base_check, 50);
	dirty_close(d);
	local_fini(&l);
}

/* An error of the region fails nobody; media are told, and after a crash nothing is trusted. */
static void
an_error_makes_media_untrusted(void **state)
{
	const char *why;
	struct dirty *d;
	struct local l;

	(void)state;
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	assert_int_equal(dirty_track(d, 0, &gen_base), 0);
	trace.fd = l.fd;
	trace.fail = 0;
	dirty_active(d, 0, 1);
	dirty_mark(d, 0, 0, 1);
	assert_false(dirty_media_ok(d, &why));
	assert_non_null(strstr(why, "No space left"));
	assert_int_equal(dirty_found(d, 0, &gen_base), DIRTY_TRUSTED);
	trace.fail = -1;
	dirty_round(d);
	trace.fd = -1;
	/* Killed here: what is on media is read by the next one. */
	local_fini(&l);
	local_begin(&l, POOL);
	{
		struct dirty *next = NULL;

		assert_int_equal(dirty_open(&l, &config, POOL, true, &next, NULL), 0);
		assert_int_equal(dirty_found(next, 0, &gen_base), DIRTY_NONE);
		assert_int_equal(dirty_track(next, 0, &gen_base), 0);
		assert_int_equal(dirty_found(next, 0, &gen_base), DIRTY_UNTRUSTED);
		dirty_close(next);
	}
	/* In order: the map that memory has is written once more, and counts. */
	d->local = &l;
	dirty_close(d);
	local_fini(&l);
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	assert_int_equal(dirty_found(d, 0, &gen_base), DIRTY_TRUSTED);
	assert_true(is_dirty(d, 0, 0, dirty_grain(d)));
	dirty_close(d);
	local_fini(&l);
}

/*
 * Nothing can be written any more: what is on media would be believed, and it is known until the
 * sidecar names it no more.
 */
static void
an_error_that_media_can_not_be_told_is_known(void **state)
{
	struct dirty *d, *next = NULL;
	struct local l, after;

	(void)state;
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	dirty_active(d, 0, 1);
	trace.fd = l.fd;
	trace.fail = 0;
	/* Nobody has to be told of what is on media. */
	dirty_active(d, 0, 1);
	assert_false(dirty_untold(d));
	dirty_active(d, POOL / 2, 1);
	assert_true(dirty_untold(d));
	dirty_round(d);
	assert_true(dirty_untold(d));
	assert_true(dirty_disown(d));
	assert_int_not_equal(local_store(&l, NULL), 0);
	assert_true(dirty_untold(d));
	assert_false(dirty_disown(d));
	trace.fd = trace.fail = -1;
	assert_int_equal(local_store(&l, NULL), 0);
	dirty_recorded(d);
	assert_false(dirty_untold(d));
	/* Killed. */
	(void)close(l.fd);
	l.fd = -1;
	local_begin(&after, POOL);
	assert_int_equal(dirty_open(&after, &config, POOL, true, &next, NULL), 0);
	assert_int_not_equal(dirty_found(next, 0, &gen_now), DIRTY_TRUSTED);
	dirty_close(next);
	local_fini(&after);
	dirty_close(d);
	local_fini(&l);
}

/* No drain goes on unlogged beneath a header that says that there is a log. */
static void
a_region_that_can_not_grow_is_told_first(void **state)
{
	struct dirty *d;
	struct local l;

	(void)state;
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	trace.full = true;
	trace.fd = l.fd;
	resumed = d;
	l.meta.pool_size = GROWN;
	assert_int_equal(dirty_grow(d, GROWN, NULL), 0);
	resumed = NULL;
	trace.fd = -1;
	trace.full = false;
	assert_true(resumed_seen);
	assert_false(dirty_media_ok(d, NULL));
	dirty_close(d);
	local_fini(&l);
}

/*
 * A program that finds no room for a region leaves none that speaks of an earlier one's
 * crash: the next would take that for what is known of its own.
 */
static void
a_full_disk_leaves_no_old_region(void **state)
{
	struct dirty *run[3] = {NULL};
	struct local l;

	(void)state;
	local_begin(&l, POOL);
	run[0] = begin(&l, POOL, false);
	assert_int_equal(dirty_track(run[0], 0, &gen_base), 0);
	dirty_active(run[0], 0, 1);
	dirty_round(run[0]);
	/* Killed, and started again on a full disk: it writes, and is killed as well. */
	local_fini(&l);
	local_begin(&l, POOL);
	assert_int_equal(dirty_open(&l, &config, POOL, true, &run[1], NULL), 0);
	assert_int_equal(dirty_found(run[1], 0, &gen_base), DIRTY_TRUSTED);
	trace.full = true;
	assert_int_equal(dirty_start(run[1], NULL), 0);
	assert_false(dirty_media_ok(run[1], NULL));
	dirty_active(run[1], POOL / 2, 1);
	dirty_mark(run[1], 0, POOL / 2, 1);
	trace.full = false;
	local_fini(&l);
	/* Not by the map of the first one, which lacks what the second has written. */
	local_begin(&l, POOL);
	assert_int_equal(dirty_open(&l, &config, POOL, true, &run[2], NULL), 0);
	assert_int_not_equal(dirty_found(run[2], 0, &gen_base), DIRTY_TRUSTED);
	assert_int_not_equal(dirty_found(run[2], 1, &gen_now), DIRTY_TRUSTED);
	for (unsigned i = 0; i < 3; i++)
		dirty_close(run[i]);
	local_fini(&l);
}

/* Nor does one that closes, and can neither write what it knows nor say at once that it can't. */
static void
a_full_disk_at_closing_leaves_no_old_map(void **state)
{
	struct dirty *d;
	struct local l;

	(void)state;
	local_begin(&l, POOL);
	d = begin(&l, POOL, false);
	assert_int_equal(dirty_track(d, 0, &gen_base), 0);
	dirty_round(d);
	dirty_mark(d, 0, POOL / 2, 1);
	trace.full = true;
	trace.fd = l.fd;
	trace.fail = 0;
	dirty_close(d);
	trace.fd = trace.fail = -1;
	trace.full = false;
	l.meta.writer_open = false;
	assert_int_equal(local_store(&l, NULL), 0);
	local_fini(&l);
	local_begin(&l, POOL);
	d = NULL;
	assert_int_equal(dirty_open(&l, &config, POOL, false, &d, NULL), 0);
	assert_int_not_equal(dirty_found(d, 0, &gen_base), DIRTY_TRUSTED);
	dirty_close(d);
	local_fini(&l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_full_disk_leaves_no_old_region, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_at_closing_leaves_no_old_map, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_mark_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(doubts_are_on_media_before_marks_go, setup,
						teardown),
		cmocka_unit_test_setup_teardown(growing_loses_no_mark, setup, teardown),
		cmocka_unit_test_setup_teardown(no_base_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(an_error_makes_media_untrusted, setup, teardown),
		cmocka_unit_test_setup_teardown(an_error_that_media_can_not_be_told_is_known, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_region_that_can_not_grow_is_told_first, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
