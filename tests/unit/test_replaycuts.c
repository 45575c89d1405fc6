/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a dead writer has left beside its pool, a round log, a journal or a receive ring, is in the
 * pool when that has been opened, whatever befell those who tried before: the writer is killed, or
 * the power cut, behind any of its stores and syncs, and then the power is cut again behind any of
 * the replay's. Of what was not synced any part may be on the media.
 *
 * What was acknowledged is there, a frame or a journal as a whole or not at all, and what one that
 * has opened the pool to the end has found the next one finds, too.
 */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "deposits.h"
#include "log.h"
#include "pool_world.h"

#define PAGE     4096U
#define PAGES    16U
#define SIZE     (PAGES * PAGE)
#define SIDE_MAX (SIDECAR_SIZE + REGION_PAGE + 2 * ROUND_HALF_MIN)
#define OPS_MAX  400U
#define UPDATES  4U
#define A_PAGE   1U /* each update brings its number to both, and to a page of its own */
#define B_PAGE   9U
#define OWN_PAGE 2U
#define SHAPES   3U /* of what a cut leaves */

void __real_pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len);
void __wrap_pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len);
bool __real_pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len);
bool __wrap_pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len);
void __real_pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src);
void __wrap_pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src);
bool __wrap_pmem_map_groups(const struct pmem_map *m);
int __wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e);
int __real_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len,
			  struct err *e);
int __wrap_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len,
			  struct err *e);

static uint64_t seed;

/* ---- a machine: what is on its media, and what was done since ---- */

enum op_type { POOL_STORE, POOL_SYNC, SIDE_WRITE, SIDE_SYNC, SIDE_SIZE };

struct op {
	enum op_type type;
	uint64_t off, len; /* SIDE_SIZE: off is the size */
	uint8_t *data;
};

struct disk {
	uint8_t pool[SIZE], side[SIDE_MAX];
	uint64_t side_len;
};

static struct op ops[OPS_MAX];
static unsigned op_count;
static bool recording;
static bool groups; /* syncs are dear, as on a disk: a journal is brought in by larger pieces */
static pthread_mutex_t ops_lock = PTHREAD_MUTEX_INITIALIZER;

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
int fdatasync(int fd);
int fsync(int fd);
int ftruncate(int fd, off_t size);

static void
note(enum op_type type, const void *data, uint64_t off, uint64_t len)
{
	struct op *o;

	if (!recording)
		return;
	pthread_mutex_lock(&ops_lock);
	assert_true(op_count < OPS_MAX);
	o = &ops[op_count++];
	*o = (struct op){.type = type, .off = off, .len = len};
	if (data) {
		o->data = malloc(len);
		assert_non_null(o->data);
		memcpy(o->data, data, len);
	}
	pthread_mutex_unlock(&ops_lock);
}

/* Whether it is that file of the pool's. */
static bool
is_file(int fd, const char *name)
{
	char path[TEMPDIR_MAX + 32];
	struct stat a, b;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return recording && fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino;
}

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (is_file(fd, "p.repl"))
		note(SIDE_WRITE, buf, (uint64_t)off, len);
	return syscall(SYS_pwrite64, fd, buf, len, off);
}

int
fdatasync(int fd)
{
	if (is_file(fd, "p.repl"))
		note(SIDE_SYNC, NULL, 0, 0);
	if (is_file(fd, "p"))
		note(POOL_SYNC, NULL, 0, SIZE);
	return 0;
}

int
fsync(int fd)
{
	return fdatasync(fd);
}

int
ftruncate(int fd, off_t size)
{
	if (is_file(fd, "p.repl"))
		note(SIDE_SIZE, NULL, (uint64_t)size, 0);
	return (int)syscall(SYS_ftruncate, fd, size);
}

/* The other maps are of the sidecar, from its beginning on. */
static bool
of_pool(const struct pmem_map *m)
{
	return pmem_map_size(m) == SIZE;
}

void
__wrap_pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	note(of_pool(m) ? POOL_STORE : SIDE_WRITE, src, off, len);
	__real_pmem_map_copy(m, off, src, len);
}

bool
__wrap_pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	note(of_pool(m) ? POOL_STORE : SIDE_WRITE, src, off, len);
	return __real_pmem_map_put(m, off, src, len);
}

void
__wrap_pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src)
{
	note(of_pool(m) ? POOL_STORE : SIDE_WRITE, src, off, 8);
	__real_pmem_map_store8(m, off, src);
}

int
__wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < count; i++)
		note(of_pool(m) ? POOL_SYNC : SIDE_SYNC, NULL, r[i].off, r[i].len);
	return 0;
}

bool
__wrap_pmem_map_groups(const struct pmem_map *m)
{
	(void)m;
	return groups;
}

int
__wrap_pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len, struct err *e)
{
	int rc;

	note(SIDE_WRITE, src, off, len);
	rc = __real_pmem_map_write(m, off, src, len, e);
	note(SIDE_SYNC, NULL, 0, 0);
	return rc;
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

static void
disk_get(struct disk *d)
{
	assert_int_equal(file_get("p", d->pool, SIZE), SIZE);
	d->side_len = file_get("p.repl", d->side, SIDE_MAX);
}

static void
disk_put(const struct disk *d)
{
	file_put("p", d->pool, SIZE);
	file_put("p.repl", d->side, d->side_len);
}

/* ---- a cut ---- */

/* All that was done below the bound, of this page. */
static void
page_at(uint8_t *page, unsigned n, unsigned bound)
{
	uint64_t at = (uint64_t)n * PAGE;

	for (unsigned i = 0; i < bound; i++) {
		const struct op *o = &ops[i];
		uint64_t from = o->off > at ? o->off : at;
		uint64_t end = o->off + o->len < at + PAGE ? o->off + o->len : at + PAGE;

		if (o->type == POOL_STORE && from < end)
			memcpy(page + (from - at), o->data + (from - o->off), end - from);
	}
}

/* Each page as it was synced last, or as it was at some later time. */
static void
pool_cut(struct disk *d, unsigned cut, unsigned shape)
{
	for (unsigned n = 0; n < PAGES; n++) {
		unsigned bound = 0;

		for (unsigned i = 0; i < cut; i++)
			if (ops[i].type == POOL_SYNC && ops[i].off < (uint64_t)(n + 1) * PAGE &&
			    ops[i].off + ops[i].len > (uint64_t)n * PAGE)
				bound = i;
		if (shape == 0)
			bound = cut;
		else if (shape > 1)
			bound += draw(cut - bound + 1);
		page_at(d->pool + (size_t)n * PAGE, n, bound);
	}
}

/* Of a write that was not synced all, nothing or a part; 8 bytes are one store. */
static void
side_write(struct disk *d, const struct op *o, bool whole)
{
	uint64_t skip = 0, keep = o->len;
	unsigned fate = whole ? 3 : draw(4);

	if (fate == 0)
		return;
	if (fate < 3 && o->len > 8) {
		skip = fate == 1 ? 0 : draw((uint32_t)o->len);
		keep = fate == 1 ? draw((uint32_t)o->len) : o->len - skip;
	}
	assert_true(o->off + o->len <= SIDE_MAX);
	memcpy(d->side + o->off + skip, o->data + skip, keep);
	if (o->off + o->len > d->side_len)
		d->side_len = o->off + o->len;
}

static void
side_cut(struct disk *d, unsigned cut, unsigned shape)
{
	unsigned synced = 0;

	for (unsigned i = 0; i < cut; i++)
		if (ops[i].type == SIDE_SYNC)
			synced = i;
	for (unsigned i = 0; i < cut; i++) {
		if (ops[i].type == SIDE_SIZE) {
			if (ops[i].off > d->side_len)
				memset(d->side + d->side_len, 0, ops[i].off - d->side_len);
			d->side_len = ops[i].off;
		}
		if (ops[i].type == SIDE_WRITE && (shape != 1 || i < synced))
			side_write(d, &ops[i], shape == 0 || i < synced);
	}
}

/* Shape 0: all that was done; 1: all that was synced; else that, and of the rest any part. */
static void
disk_cut(struct disk *d, unsigned cut, unsigned shape)
{
	pool_cut(d, cut, shape);
	side_cut(d, cut, shape);
}

/* ---- what a pool holds ---- */

static int
setup(void **state)
{
	const struct conf quiet = {.log_level = CONF_LEVEL_WARNING};

	(void)state;
	seed = 1;
	assert_int_equal(log_open(&quiet, &err), 0);
	return world_new(0, SIZE);
}

static int
teardown(void **state)
{
	recording = groups = false;
	ops_clear();
	return world_free(state);
}

/* The update's entries, and their bytes, 3 pages. */
static unsigned
update_entries(unsigned i, struct wire_entry entries[3], uint8_t *bytes)
{
	static const unsigned shared[] = {A_PAGE, B_PAGE};

	for (unsigned k = 0; k < 3; k++) {
		unsigned n = k < 2 ? shared[k] : OWN_PAGE + i - 1;

		entries[k] = (struct wire_entry){
			.off = (uint64_t)n * PAGE, .len = PAGE, .op = WIRE_OP_COPY};
		memset(bytes + (size_t)k * PAGE, (int)i, PAGE);
	}
	return 3;
}

/* The number of the last update that is there, all of it and all before it. */
static unsigned
updates_found(const char *what)
{
	static uint8_t is[SIZE], page[PAGE];
	unsigned last;

	assert_int_equal(file_get("p", is, SIZE), SIZE);
	last = is[A_PAGE * PAGE];
	assert_true(last <= UPDATES);
	for (unsigned n = 0; n < PAGES; n++) {
		unsigned want = 0;

		if (n == A_PAGE || n == B_PAGE)
			want = last;
		else if (n >= OWN_PAGE && n < OWN_PAGE + last)
			want = n - OWN_PAGE + 1;
		memset(page, (int)want, PAGE);
		if (memcmp(is + (size_t)n * PAGE, page, PAGE) != 0)
			fail_msg("%s: of page %u not every byte is %u", what, n, want);
	}
	return last;
}

/* ---- the search ---- */

struct made {
	struct disk before;
	unsigned acked_at[UPDATES + 1]; /* operations by then */
	unsigned begun_at[UPDATES + 1];
};

static struct made made;
static struct disk first; /* what the next one begins with */

/* The next writer, who ends then; what it did is noted from here on. */
static unsigned
next_opens(bool record, const char *what)
{
	struct pool *p = NULL;
	unsigned last;

	recording = record;
	if (pool_open(store, "p", POOL_WRITE, "next", &p, &err))
		fail_msg("%s: %s", what, err.text);
	recording = false;
	assert_int_equal(pool_get_info(p)->meta.log_len, 0);
	assert_int_equal(pool_get_info(p)->meta.journal_len, 0);
	assert_int_equal(pool_get_info(p)->meta.ring_len, 0);
	assert_int_not_equal(pool_get_info(p)->meta.state, SIDECAR_INCONSISTENT);
	assert_int_equal(pool_close(p, false, &err), 0);
	last = updates_found(what);
	return last;
}

static bool
same_disk(const struct disk *a, const struct disk *b)
{
	return memcmp(a->pool, b->pool, SIZE) == 0 && a->side_len == b->side_len &&
	       memcmp(a->side, b->side, a->side_len) == 0;
}

/* From what is there the next one begins; its power is cut behind each operation. */
static void
second_cuts(const struct disk *media, unsigned pending, unsigned cut, unsigned shape)
{
	static struct disk d, before;
	unsigned lowest = 0, highest = 0, found, last;
	bool tried = false;
	char what[128];

	for (unsigned i = 1; i <= UPDATES; i++) {
		lowest += made.acked_at[i] <= cut;
		highest += made.acked_at[i] <= cut || made.begun_at[i] < cut;
	}
	(void)snprintf(what, sizeof(what), "first %u/%u", cut, shape);
	found = next_opens(true, what);
	if (found < lowest || found > highest)
		fail_msg("%s: %u found, %u were acknowledged, %u begun", what, found, lowest,
			 highest);
	for (unsigned at = pending; at <= op_count; at++) {
		for (unsigned again = 0; again < SHAPES; again++) {
			d = *media;
			disk_cut(&d, at, again);
			/* Behind a sync, or of a cut that takes nothing: as before. */
			if (tried && at < op_count && same_disk(&d, &before))
				continue;
			tried = true;
			before = d;
			disk_put(&d);
			(void)snprintf(what, sizeof(what), "first %u/%u, then %u of %u/%u", cut,
				       shape, at - pending, op_count - pending, again);
			last = next_opens(false, what);
			if (last < lowest || last > highest || (at == op_count && last != found))
				fail_msg("%s: %u found, %u by the one before, %u were "
					 "acknowledged, %u begun",
					 what, last, found, lowest, highest);
		}
	}
}

/* Shape SHAPES: no cut, the writer is killed, and media have what they had. */
static void
search(void)
{
	static struct op writer[OPS_MAX];
	unsigned count = op_count, step = SANITIZED ? 5 : 3;

	/* At night. */
	if (getenv("EACH_CUT"))
		step = 1;

	memcpy(writer, ops, sizeof(ops));
	for (unsigned cut = 0; cut <= count; cut += step) {
		for (unsigned shape = 0; shape <= SHAPES; shape++) {
			bool killed = shape == SHAPES;

			memcpy(ops, writer, sizeof(ops));
			op_count = cut;
			first = made.before;
			disk_cut(&first, cut, killed ? 0 : shape);
			disk_put(&first);
			if (!killed)
				op_count = 0;
			second_cuts(killed ? &made.before : &first, op_count, cut, shape);
			for (unsigned i = killed ? cut : 0; i < op_count; i++)
				free(ops[i].data);
		}
	}
	memcpy(ops, writer, sizeof(ops));
	op_count = count;
}

/* ---- the round log ---- */

static void
log_update(struct pool *p, struct pmem_map *map, struct roundlog *l, unsigned i)
{
	static uint8_t buf[4 * PAGE], bytes[3 * PAGE];
	struct wire_entry entries[3];
	struct wire_commit_view v;
	const struct wire_commit_view *const messages[] = {&v};
	struct wire_commit c;
	size_t size;

	made.begun_at[i] = op_count;
	(void)update_entries(i, entries, bytes);
	wire_commit_begin(&c, buf, sizeof(buf), 3);
	for (unsigned k = 0; k < 3; k++)
		wire_commit_add(&c, &entries[k], bytes + (size_t)k * PAGE);
	size = wire_commit_end(&c, i, pool_get_info(p)->meta.epoch);
	assert_int_equal(wire_commit_decode(buf, size, SIZE, &v, &err), 0);
	assert_int_equal(roundlog_write(l, messages, 1, &err), 0);
	for (unsigned k = 0; k < 3; k++)
		pmem_map_copy(map, entries[k].off, bytes + (size_t)k * PAGE, PAGE);
	roundlog_stored(l, messages, 1);
	made.acked_at[i] = op_count;
}

static void
round_log(void **state)
{
	struct pmem_map *map = NULL;
	struct roundlog *l = NULL;
	struct pool *p = NULL;

	(void)state;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &p, &err), 0);
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	assert_int_equal(pool_log_make(p, map, &l, &err), 0);
	disk_get(&made.before);
	recording = true;
	for (unsigned i = 1; i <= UPDATES; i++) {
		log_update(p, map, l, i);
		if (i == 2)
			assert_int_equal(roundlog_settle(l, &err), 0);
	}
	recording = false;
	assert_int_not_equal(pool_log_end(p, l, true, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(p, false, &err), 0);
	search();
}

/* ---- a journal ---- */

static void
journal_update(struct pool *p, unsigned i)
{
	static uint8_t buf[4 * PAGE], bytes[3 * PAGE];
	struct wire_entry entries[3];
	struct wire_commit c;
	size_t size;

	(void)update_entries(i, entries, bytes);
	wire_commit_begin(&c, buf, sizeof(buf), 3);
	for (unsigned k = 0; k < 3; k++)
		wire_commit_add(&c, &entries[k], bytes + (size_t)k * PAGE);
	size = wire_stage_end(&c, i, pool_get_info(p)->meta.epoch);
	assert_int_equal(pooljournal_append(pool_journal(p), buf, size, &err), 0);
}

/* All of it comes with its commit. */
static void
journal_at(bool at_once)
{
	static const struct generation chain = {.current = {{7, 7, 7}}};
	struct journal_progress done = {.total = 1};
	struct pmem_map *map = NULL;
	struct pool *p = NULL;

	groups = at_once;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &p, &err), 0);
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	disk_get(&made.before);
	recording = true;
	assert_int_equal(pool_journal_begin(p, (uint64_t)UPDATES * 4 * PAGE, &err), 0);
	for (unsigned i = 1; i <= UPDATES; i++)
		journal_update(p, i);
	for (unsigned i = 1; i <= UPDATES; i++)
		made.begun_at[i] = op_count;
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	for (unsigned i = 1; i <= UPDATES; i++)
		made.acked_at[i] = op_count;
	while (done.done < done.total)
		assert_int_equal(pool_journal_apply(p, map, 3 * PAGE, &done, &err), 0);
	recording = false;
	pmem_map_free(map);
	assert_int_equal(pool_close(p, false, &err), 0);
	search();
}

static void
journal(void **state)
{
	(void)state;
	journal_at(false);
}

static void
journal_on_a_disk(void **state)
{
	(void)state;
	journal_at(true);
}

/* ---- a receive ring ---- */

static const struct ring_geometry geometry = {.lanes = 2, .slots = 5, .slot_size = 4 * PAGE};

/* By lanes in turn. */
static void
ring_fill(struct poolring *r, unsigned i, struct wire_commit_view *v)
{
	const struct ring_geometry *g = poolring_geometry(r);
	uint32_t lane = i % 2, slot = ring_slot_of(g, (i + 1) / 2);
	uint8_t *at = poolring_slots(r) + ring_slot_off(g, lane, slot) - ring_slot_off(g, 0, 0);
	struct wire_entry stamp = {.off = i, .op = WIRE_OP_STAMP};
	struct wire_entry barrier = {.op = WIRE_OP_BARRIER};
	static uint8_t bytes[3 * PAGE];
	struct wire_entry entries[3];
	struct wire_commit c;
	size_t size;

	(void)update_entries(i, entries, bytes);
	wire_commit_begin(&c, at, g->slot_size, 6);
	wire_commit_add(&c, &stamp, NULL);
	for (unsigned k = 0; k < 3; k++) {
		if (k > 0)
			wire_commit_add(&c, &barrier, NULL);
		wire_commit_add(&c, &entries[k], bytes + (size_t)k * PAGE);
	}
	size = wire_deposit_end(&c, (i + 1) / 2, g->epoch);
	assert_int_equal(wire_deposit_decode(at, size, SIZE, v, &err), 0);
}

/* All have arrived, and so are durable, before the first one is applied; marked are three. */
static void
ring(void **state)
{
	struct wire_commit_view v[UPDATES + 1];
	static struct deposits d;
	struct pmem_map *map = NULL;
	struct poolring *r = NULL;
	struct pool *p = NULL;

	(void)state;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &p, &err), 0);
	assert_int_equal(pool_map(p, true, &map, &err), 0);
	assert_int_equal(pool_ring_make(p, &geometry, &r, &err), 0);
	memset(&made, 0, sizeof(made));
	for (unsigned i = 1; i <= UPDATES; i++)
		ring_fill(r, i, &v[i]);
	disk_get(&made.before);
	recording = true;
	deposits_init(&d, map);
	for (unsigned i = 1; i <= UPDATES; i++) {
		assert_int_equal(deposits_apply(&d, &v[i], &err), 0);
		assert_int_equal(deposits_flush(&d, &err), 0);
		if (i <= 3)
			assert_int_equal(poolring_mark(r, i % 2, (i + 1) / 2, &err), 0);
	}
	recording = false;
	assert_int_not_equal(pool_ring_end(p, r, map, true, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(p, false, &err), 0);
	search();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(round_log),
		T(journal),
		T(journal_on_a_disk),
		T(ring),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
