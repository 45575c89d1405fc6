/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A journal comes into its pool all at once or not at all: after a power cut at any point, whatever
 * of the unsynced writes it keeps, the pool is as before with its state, or as staged with the
 * state and chain of the commit. A committed one that can't be believed leaves the pool
 * inconsistent.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "full_disk.h"
#include "journal_world.h"

#define FILE_MAX (64U * PAGE)
#define OPS_MAX  200U
#define SHAPES   12U

static uint64_t seed = 1;

/* ---- what is done to the sidecar, in front of the library's own ---- */

enum op_type { OP_WRITE, OP_SYNC, OP_SIZE, OP_POOL_SYNC };

struct op {
	enum op_type type;
	uint64_t off, len; /* OP_SIZE: off is the size */
	uint8_t *data;
};

static struct op ops[OPS_MAX];
static unsigned op_count;
static int recorded = -1; /* a descriptor of the sidecar's: all of them are */
static uint64_t unsynced; /* written by anybody since, and neither synced nor written back */

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
int fdatasync(int fd);
int fsync(int fd);
int ftruncate(int fd, off_t size);
int fallocate(int fd, int mode, off_t off, off_t len);
int msync(void *addr, size_t len, int flags);
int sync_file_range(int fd, off_t off, off_t len, unsigned flags);

/* A device that fails: the kernel tells each open file description that was there once. */
static struct stat failing;
static unsigned failures, told[256]; /* by descriptor */

static bool
is_file(int fd, const struct stat *file)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static bool
is_recorded(int fd)
{
	struct stat st;

	return recorded >= 0 && fstat(recorded, &st) == 0 && is_file(fd, &st);
}

static int
errors_told(int fd)
{
	assert_true(fd >= 0 && fd < 256);
	if (told[fd] == failures || !is_file(fd, &failing))
		return 0;
	told[fd] = failures;
	errno = EIO;
	return -1;
}

static void
note(enum op_type type, const void *data, uint64_t off, uint64_t len)
{
	struct op *o = &ops[op_count++];

	assert_true(op_count < OPS_MAX);
	*o = (struct op){.type = type, .off = off, .len = len};
	if (data) {
		o->data = malloc(len);
		assert_non_null(o->data);
		memcpy(o->data, data, len);
	}
}

static bool
is_pool(int fd)
{
	char link[64], name[256];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name));
	return n > 1 && memcmp(name + n - 2, "/p", 2) == 0;
}

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (disk_full && is_pool(fd)) {
		errno = ENOSPC;
		return -1;
	}
	if (is_recorded(fd))
		note(OP_WRITE, buf, (uint64_t)off, len);
	unsynced += len;
	return syscall(SYS_pwrite64, fd, buf, len, off);
}

int
fdatasync(int fd)
{
	if (is_recorded(fd))
		note(OP_SYNC, NULL, 0, 0);
	unsynced = 0;
	return errors_told(fd);
}

int
fsync(int fd)
{
	return fdatasync(fd);
}

int
ftruncate(int fd, off_t size)
{
	if (is_recorded(fd))
		note(OP_SIZE, NULL, (uint64_t)size, 0);
	return (int)syscall(SYS_ftruncate, fd, size);
}

int
fallocate(int fd, int mode, off_t off, off_t len)
{
	if (!(mode & FALLOC_FL_PUNCH_HOLE) && is_recorded(fd))
		note(OP_SIZE, NULL, (uint64_t)(off + len), 0);
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int
msync(void *addr, size_t len, int flags)
{
	if (recorded >= 0)
		note(OP_POOL_SYNC, NULL, 0, 0);
	return (int)syscall(SYS_msync, addr, len, flags);
}

int
sync_file_range(int fd, off_t off, off_t len, unsigned flags)
{
	(void)fd;
	(void)off;
	/* Begun is not done. */
	if (flags & SYNC_FILE_RANGE_WAIT_AFTER)
		unsynced -= (uint64_t)len;
	return 0;
}

static void
ops_clear(void)
{
	for (unsigned i = 0; i < op_count; i++)
		free(ops[i].data);
	memset(ops, 0, sizeof(ops));
	op_count = 0;
}

static uint32_t
draw(uint32_t below)
{
	seed = seed * 6364136223846793005U + 1442695040888963407U;
	return (uint32_t)(seed >> 33) % below;
}

/* ---- pools ---- */

static int
setup(void **state)
{
	(void)state;
	return world_new(0, SIZE);
}

/* Where the pool has to be synced. */
static int
setup_disk(void **state)
{
	(void)state;
	return world_new(1, SIZE);
}

static int
teardown(void **state)
{
	recorded = -1;
	failures = 0;
	memset(told, 0, sizeof(told));
	ops_clear();
	return world_free(state);
}

/* ---- tests ---- */

/* Who commits holds a program up: most of it must be on media by then, however much it is. */
static void
test_little_is_left_to_sync(void **state)
{
	const uint64_t little = 33U << 20, much = 3 * little;
	struct pool *p = writer();
	uint8_t msg[3 * PAGE];
	size_t len = message(msg, 0, pool_get_info(p)->meta.epoch);

	(void)state;
	assert_int_equal(pool_journal_begin(p, much, &err), 0);
	for (uint64_t at = 0; at + len <= much; at += len) {
		assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
		assert_true(unsynced < little);
	}
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
}

/*
 * The device loses what is on its way to it. Told to an update of the sidecar that is not to be
 * the end of the matter: what is lost may be the journal's.
 */
static void
test_what_another_was_told_it_has_lost(void **state)
{
	struct pool *p = writer();
	int fd = file_open("p.repl");

	(void)state;
	pool_old();
	stage_all(p);
	assert_int_equal(fstat(fd, &failing), 0);
	(void)close(fd);
	failures++;
	assert_int_equal(pool_mark(p, SIDECAR_OUTDATED, NULL, 0, &err), REPL_E_IO);
	assert_int_equal(pool_mark(p, SIDECAR_OUTDATED, NULL, 0, &err), 0);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), REPL_E_IO);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	/* Nor is the next one written over what was lost: the file is cut first. */
	assert_int_equal(pool_journal_begin(p, PAGE, &err), 0);
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE + 3 * PAGE);
	assert_int_equal(pool_close(p, false, &err), 0);
}

/* It is ahead of what the pool was, and not of what the journal makes of it. */
static void
test_a_writer_is_judged_by_what_the_journal_brings(void **state)
{
	const struct generation before = {.current = {{5}}},
				mine = {.current = {{6}}, .history = {{{5}}}};
	const struct pool_claim claim = {.writer = "stranger", .chain = &mine};
	struct pool *p, *q = NULL;

	(void)state;
	pool_old();
	p = writer();
	assert_int_equal(pool_mark(p, SIDECAR_UP_TO_DATE, &before, 0, &err), 0);
	stage_all(p);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	/* Without any end that brings it in. */
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(pool_open_by(store, "p", &claim, &q, &err), REPL_E_DIVERGED);
	assert_null(q);
	assert_int_equal(seen(), 1);
}

/* It was outdated until the last round of its resync was committed, and nobody has opened it since.
 */
static void
test_a_promotion_is_judged_by_it_too(void **state)
{
	static const enum sidecar_state brings[] = {SIDECAR_OUTDATED, SIDECAR_UP_TO_DATE};
	uint8_t have[SIZE], want[SIZE];

	(void)state;
	expected(want, true);
	for (unsigned i = 0; i < 2; i++) {
		struct pool *p;

		pool_old();
		p = writer();
		assert_int_equal(pool_mark(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
		stage_all(p);
		assert_int_equal(pool_journal_commit(p, brings[i], &chain, 0, &err), 0);
		assert_int_equal(pool_close(p, false, &err), 0);
		assert_int_equal(pool_promote(store, "p", "test", false, &info, &err),
				 i ? 0 : REPL_E_REFUSED);
		assert_int_equal(info.meta.primary, i);
		assert_int_equal(file_get("p", have, SIZE), SIZE);
		assert_memory_equal(have, want, SIZE);
	}
}

static void
test_comes_in_by_pieces(void **state)
{
	struct pool *p;
	uint8_t have[SIZE], want[SIZE];

	(void)state;
	pool_old();
	p = writer();
	stage_all(p);
	assert_true(pooljournal_is_open(pool_journal(p)));
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	assert_int_equal(pool_journal_drop(p, &err), REPL_E_PROTOCOL);
	assert_int_equal(pool_journal_begin(p, 1, &err), REPL_E_PROTOCOL);
	apply_all(p, 1);
	assert_false(pooljournal_is_open(pool_journal(p)));
	assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_OUTDATED);
	assert_int_equal(pool_get_info(p)->meta.journal_len, 0);
	(void)file_get("p", have, SIZE);
	expected(want, true);
	assert_memory_equal(have, want, SIZE);
	/* And again, in the same session. */
	stage_all(p);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(seen(), 1);
}

/* By the session that has committed it, and by the next one. */
static void
test_a_part_of_a_generation(void **state)
{
	const struct generation before = {.current = {{5}}};
	uint8_t want[SIZE], have[SIZE];

	(void)state;
	expected(want, true);
	for (unsigned dies = 0; dies < 2; dies++) {
		const struct sidecar *m;
		struct pool *p;

		pool_old();
		p = writer();
		assert_int_equal(pool_mark(p, SIDECAR_UP_TO_DATE, &before, 0, &err), 0);
		stage_all(p);
		assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 9, &err), 0);
		if (!dies)
			apply_all(p, 1);
		assert_int_equal(pool_close(p, false, &err), 0);
		p = writer();
		m = &pool_get_info(p)->meta;
		assert_int_equal(m->state, SIDECAR_UNKNOWN);
		assert_true(m->position == 9);
		assert_false(m->waited);
		assert_memory_equal(&m->generation, &chain, sizeof(chain));
		assert_int_equal(file_get("p", have, SIZE), SIZE);
		assert_memory_equal(have, want, SIZE);
		assert_int_equal(pool_close(p, false, &err), 0);
	}
}

/*
 * Drains wait for it, or did not before. Amid a resync it has all of what was before that, and who
 * brings the journal in says so; what is drained behind the last round may have waited for others
 * alone.
 */
static void
test_amid_a_resync_it_stays_waited_for(void **state)
{
	static const enum sidecar_state brings[] = {SIDECAR_OUTDATED, SIDECAR_UP_TO_DATE};
	const struct generation before = {.current = {{1, 2, 3}}};

	(void)state;
	for (unsigned n = 0; n < 8; n++) {
		bool found = n & 1, did = n & 2, last = n & 4;
		const struct pool_claim then = {.writer = "before", .waits = did},
					now = {.writer = "now", .waits = true};
		const struct sidecar *m;
		struct pool *p;

		pool_old();
		assert_int_equal(pool_open_by(store, "p", &then, &p, &err), 0);
		assert_int_equal(pool_mark(p, SIDECAR_UP_TO_DATE, &before, 0, &err), 0);
		assert_int_equal(pool_close(p, true, &err), 0);
		assert_int_equal(pool_open_by(store, "p", &now, &p, &err), 0);
		stage_all(p);
		assert_int_equal(pool_journal_commit(p, brings[last], &chain, 0, &err), 0);
		if (!found)
			apply_all(p, 1);
		assert_int_equal(pool_close(p, false, &err), 0);
		assert_int_equal(pool_open(store, "p", POOL_READ, "reader", &p, &err), 0);
		m = &pool_get_info(p)->meta;
		assert_int_equal(m->journal_len, 0);
		assert_memory_equal(&m->generation, &chain, sizeof(chain));
		assert_int_equal(m->state == SIDECAR_OUTDATED, !last);
		assert_int_equal(m->waited, !found || (did && !last));
		assert_int_equal(pool_close(p, true, &err), 0);
	}
}

/* What does not fit is refused, and all behind it: it may have to lie over that. */
static void
test_overfull(void **state)
{
	uint8_t msg[3 * PAGE];
	struct pool *p;
	size_t len;

	(void)state;
	pool_old();
	p = writer();
	len = message(msg, 0, pool_get_info(p)->meta.epoch);
	assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), REPL_E_PROTOCOL);
	assert_int_equal(pool_journal_begin(p, len, &err), 0);
	assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
	assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), REPL_E_NOSPC);
	assert_int_equal(pool_journal_begin(p, 4 * len, &err), 0);
	assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), REPL_E_NOSPC);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), REPL_E_NOSPC);
	assert_int_equal(pool_journal_drop(p, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(seen(), 0);
}

/* The writer is gone after its commit, having applied a part. */
static void
leave_committed(unsigned pieces)
{
	struct journal_progress done;
	struct pmem_map *map = NULL;
	uint8_t image[FILE_MAX];
	struct pool *p;
	size_t len;

	pool_old();
	p = writer();
	stage_all(p);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	for (unsigned i = 0; i < pieces; i++)
		assert_int_equal(pool_journal_apply(p, map, 1, &done, &err), 0);
	pmem_map_free(map);
	/* Its close changes the file: put it back. */
	len = file_get("p.repl", image, sizeof(image));
	assert_int_equal(pool_close(p, false, &err), 0);
	file_put("p.repl", image, len);
}

static void
test_redone_for_a_reader(void **state)
{
	uint8_t have[SIZE], want[SIZE];
	struct pool *p = NULL;

	(void)state;
	leave_committed(0);
	assert_int_equal(pool_open(store, "p", POOL_READ, "reader", &p, &err), 0);
	assert_int_equal(pool_get_info(p)->meta.journal_len, 0);
	(void)file_get("p", have, SIZE);
	expected(want, true);
	assert_memory_equal(have, want, SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(seen(), 1);
}

/* Where storing takes space and the disk is full: told, and brought in when there is room. */
static void
test_full_disk(void **state)
{
	uint8_t have[SIZE], want[SIZE];
	struct pool *p = NULL;

	(void)state;
	leave_committed(0);
	disk_full = true;
	for (enum pool_mode mode = POOL_READ; mode <= POOL_WRITE; mode++) {
		err_clear(&err);
		assert_int_equal(pool_open(store, "p", mode, "x", &p, &err), REPL_E_NOSPC);
		assert_non_null(strstr(err.text, "make room"));
	}
	disk_full = false;
	err_clear(&err);
	assert_int_equal(pool_open(store, "p", POOL_READ, "x", &p, &err), 0);
	(void)file_get("p", have, SIZE);
	expected(want, true);
	assert_memory_equal(have, want, SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* A bit of the journal flips: then it is all there or the pool says that it is not. */
static void
test_flipped_bits(void **state)
{
	uint8_t image[FILE_MAX], have[SIZE], want[SIZE];
	unsigned inconsistent = 0;
	size_t len;

	(void)state;
	leave_committed(0);
	len = file_get("p.repl", image, sizeof(image));
	expected(want, true);
	for (unsigned i = 0; i < 300; i++) {
		size_t at = SIDECAR_SIZE + draw((uint32_t)(len - SIDECAR_SIZE));
		struct pool *p;

		image[at] ^= (uint8_t)(1U << draw(8));
		file_put("p.repl", image, len);
		p = writer();
		assert_int_equal(pool_get_info(p)->meta.journal_len, 0);
		if (pool_get_info(p)->meta.state == SIDECAR_INCONSISTENT) {
			inconsistent++;
		} else {
			assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_OUTDATED);
			(void)file_get("p", have, SIZE);
			assert_memory_equal(have, want, SIZE);
		}
		assert_int_equal(pool_close(p, true, &err), 0);
		/* The one bit only. */
		leave_committed(0);
		assert_int_equal(file_get("p.repl", image, sizeof(image)), len);
	}
	assert_true(inconsistent > 150);
}

/* A message that is whole and of another moment in the place of one: the chain tells. */
static void
test_message_exchanged(void **state)
{
	uint8_t image[FILE_MAX], msg[3 * PAGE];
	struct pool *p;
	size_t len, one;

	(void)state;
	leave_committed(0);
	len = file_get("p.repl", image, sizeof(image));
	p = writer();
	one = message(msg, 1, pool_get_info(p)->meta.epoch - 1);
	assert_int_equal(pool_close(p, true, &err), 0);
	pool_old();
	memcpy(image + SIDECAR_SIZE + JOURNAL_DATA, msg, one);
	file_put("p.repl", image, len);
	p = writer();
	assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_INCONSISTENT);
	assert_int_equal(pool_close(p, true, &err), 0);
}

static void
test_file_cut(void **state)
{
	uint8_t image[FILE_MAX];
	struct pool *p;
	size_t len;

	(void)state;
	leave_committed(2);
	len = file_get("p.repl", image, sizeof(image));
	file_put("p.repl", image, len - 3 * PAGE);
	p = writer();
	assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_INCONSISTENT);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* ---- power cuts ---- */

struct disk {
	uint8_t file[FILE_MAX];
	size_t len;
};

static void
disk_op(struct disk *d, const struct op *o, uint64_t skip, uint64_t keep)
{
	if (o->type == OP_SIZE) {
		if (o->off > d->len)
			memset(d->file + d->len, 0, o->off - d->len);
		d->len = o->off;
	} else if (o->type == OP_WRITE) {
		assert_true(o->off + o->len <= FILE_MAX);
		memcpy(d->file + o->off + skip, o->data + skip, keep);
		if (o->off + o->len > d->len)
			d->len = o->off + o->len;
	}
}

/*
 * The disk after a cut behind `cut` operations: what was synced, and of the rest any part: a
 * write whole, not at all, or a part of it. Sizes are kept in their order.
 */
static void
disk_cut(struct disk *d, unsigned cut, unsigned shape)
{
	unsigned synced = 0;

	for (unsigned i = 0; i < cut; i++)
		if (ops[i].type == OP_SYNC)
			synced = i;
	for (unsigned i = 0; i < cut; i++) {
		uint64_t skip = 0, keep = ops[i].len;

		if (ops[i].type == OP_WRITE && i > synced && shape > 0) {
			unsigned fate = shape == 1 ? 0 : draw(4);

			if (fate == 0)
				continue;
			if (fate == 1)
				keep = draw((uint32_t)ops[i].len);
			if (fate == 2) {
				skip = draw((uint32_t)ops[i].len);
				keep -= skip;
			}
		}
		disk_op(d, &ops[i], skip, keep);
	}
}

/* The pool: as before until the apply begins, then any mix of pages until they are synced. */
static void
pool_cut(unsigned cut, unsigned begun)
{
	uint8_t image[SIZE], want[SIZE];
	bool synced = false;

	for (unsigned i = begun; i < cut; i++)
		synced |= ops[i].type == OP_POOL_SYNC;
	expected(image, false);
	expected(want, true);
	for (unsigned n = 0; n < PAGES && cut >= begun; n++)
		if (synced || draw(2))
			memcpy(image + (size_t)n * PAGE, want + (size_t)n * PAGE, PAGE);
	file_put("p", image, SIZE);
}

/* That of the open pool. */
static int
sidecar_descriptor(void)
{
	char link[64], path[512], want[TEMPDIR_MAX + 32];

	(void)snprintf(want, sizeof(want), "%s/p.repl", dir);
	for (int fd = 3; fd < 64; fd++) {
		ssize_t n;

		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, path, sizeof(path) - 1);
		if (n > 0) {
			path[n] = 0;
			if (strcmp(path, want) == 0)
				return fd;
		}
	}
	fail_msg("the sidecar is not open");
	return -1;
}

/* Each cut of what was recorded, from begun on of a journal that is committed. */
static void
cut_all(const struct disk *before, unsigned begun)
{
	unsigned news = 0, olds = 0, olds_begun = 0;
	static struct disk d;

	for (unsigned cut = 0; cut <= op_count; cut++) {
		for (unsigned shape = 0; shape < SHAPES; shape++) {
			d = *before;
			disk_cut(&d, cut, shape);
			pool_cut(cut, begun);
			file_put("p.repl", d.file, d.len);
			if (seen())
				news++;
			else
				olds++;
			/* Committed is committed. */
			assert_true(cut < begun || olds == olds_begun);
			if (cut < begun)
				olds_begun = olds;
		}
	}
	assert_true(news > 0 && olds > 0);
}

static void
test_power_cuts(void **state)
{
	static struct disk before;
	unsigned begun;
	struct pool *p;

	(void)state;
	pool_old();
	p = writer();
	before.len = file_get("p.repl", before.file, FILE_MAX);
	recorded = sidecar_descriptor();
	stage_all(p);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	begun = op_count;
	apply_all(p, UINT64_MAX);
	recorded = -1;
	assert_int_equal(pool_close(p, true, &err), 0);
	cut_all(&before, begun);
}

/* From the session on that leaves it; what that one has not synced counts as well. */
static unsigned
record_resumed(struct disk *before)
{
	uint8_t want[SIZE];
	struct pool *p;
	unsigned begun;
	int fd;

	pool_old();
	expected(want, true);
	p = writer_resuming();
	before->len = file_get("p.repl", before->file, FILE_MAX);
	fd = file_open("p.repl");
	recorded = fd;
	stage_some(p, 0, 4, 'n');
	assert_int_equal(pool_journal_end(p, NULL, false, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	p = writer_resuming();
	assert_int_equal(go_on(p, want), 8);
	begun = op_count;
	apply_all(p, UINT64_MAX);
	recorded = -1;
	(void)close(fd);
	assert_int_equal(pool_close(p, true, &err), 0);
	return begun;
}

static void
test_power_cuts_of_a_resumed_one(void **state)
{
	static struct disk before;
	unsigned begun;

	(void)state;
	begun = record_resumed(&before);
	cut_all(&before, begun);
}

/* Wherever it is cut, who goes on with what is left then has all of it in the end. */
static void
test_power_cuts_are_gone_on_behind(void **state)
{
	static struct disk before, d;
	uint8_t want[SIZE], have[SIZE];
	unsigned begun, spared = 0;

	(void)state;
	begun = record_resumed(&before);
	expected(want, true);
	for (unsigned cut = 0; cut < begun; cut++) {
		for (unsigned shape = 0; shape < SHAPES; shape++) {
			struct pool *p;

			d = before;
			disk_cut(&d, cut, shape);
			pool_cut(cut, begun);
			file_put("p.repl", d.file, d.len);
			p = writer_resuming();
			if (pool_get_info(p)->meta.state != SIDECAR_OUTDATED) {
				spared += go_on(p, want);
				apply_all(p, UINT64_MAX);
			}
			assert_int_equal(pool_close(p, true, &err), 0);
			assert_int_equal(file_get("p", have, SIZE), SIZE);
			assert_memory_equal(have, want, SIZE);
		}
	}
	assert_true(spared > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_little_is_left_to_sync, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_another_was_told_it_has_lost, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_writer_is_judged_by_what_the_journal_brings,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_promotion_is_judged_by_it_too, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_comes_in_by_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_part_of_a_generation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_amid_a_resync_it_stays_waited_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_overfull, setup, teardown),
		cmocka_unit_test_setup_teardown(test_redone_for_a_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flipped_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_message_exchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_power_cuts, setup_disk, teardown),
		cmocka_unit_test_setup_teardown(test_power_cuts_of_a_resumed_one, setup_disk,
						teardown),
		cmocka_unit_test_setup_teardown(test_power_cuts_are_gone_on_behind, setup_disk,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
