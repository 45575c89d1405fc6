/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Updates that a killed writer has left in a pool's receive ring are in the pool when it is opened
 * next, however; those of a living writer are left alone.
 */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lock.h"
#include "pool_world.h"

#define SIZE (16U * 4096)

static const struct ring_geometry geometry = {.lanes = 2, .slots = 3, .slot_size = 4096};

static int
setup(void **state)
{
	(void)state;
	return world_new(0, SIZE);
}

/* A COPY of 8 such letters to a cell, at the end of the pool so that a wrong size shows. */
static void
deposit(struct poolring *r, uint32_t lane, uint64_t seq, uint64_t stamp, char letter)
{
	const struct ring_geometry *g = poolring_geometry(r);
	uint8_t *slot = poolring_slots(r) + ring_slot_off(g, lane, ring_slot_of(g, seq)) -
			ring_slot_off(g, 0, 0);
	struct wire_entry first = {.off = stamp, .op = WIRE_OP_STAMP};
	struct wire_entry copy = {.off = SIZE - 8, .len = 8, .op = WIRE_OP_COPY};
	struct wire_commit c;
	char payload[8];

	memset(payload, letter, sizeof(payload));
	wire_commit_begin(&c, slot, g->slot_size, 2);
	wire_commit_add(&c, &first, NULL);
	wire_commit_add(&c, &copy, payload);
	(void)wire_deposit_end(&c, seq, g->epoch);
}

/* A writer with a ring that holds, in order, a to d; a is marked. */
static struct pool *
writer(struct poolring **ring)
{
	struct pool *p = NULL;

	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &p, &err), 0);
	assert_int_equal(pool_ring_make(p, &geometry, ring, &err), 0);
	assert_true(pool_get_info(p)->meta.ring_len == ring_size(&geometry));
	deposit(*ring, 0, 1, 1, 'a');
	deposit(*ring, 0, 2, 2, 'b');
	deposit(*ring, 1, 1, 3, 'c');
	deposit(*ring, 0, 3, 4, 'd');
	assert_int_equal(poolring_mark(*ring, 0, 1, &err), 0);
	return p;
}

static void
write_some(const void *arg)
{
	struct poolring *ring;

	(void)arg;
	(void)writer(&ring);
}

static void
killed_writer(void)
{
	killed_after(write_some, NULL);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_true(info.meta.ring_len > 0);
	assert_int_equal(info.ring_messages, 3);
}

static char
last_byte(void)
{
	return (char)file_byte("p", SIZE - 1);
}

static void
assert_no_ring(void)
{
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_true(info.meta.ring_len == 0 && info.meta.ring_off == 0);
	assert_false(info.sidecar_damaged);
}

static void
any_way_of_opening_replays(void **state)
{
	static const enum pool_mode modes[] = {POOL_WRITE, POOL_STABLE, POOL_READ};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct pool *p = NULL;
		uint32_t epoch;

		killed_writer();
		epoch = info.meta.epoch;
		assert_int_equal(pool_open(store, "p", modes[i], "next", &p, &err), 0);
		assert_int_equal(last_byte(), 'd');
		assert_no_ring();
		assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_UNKNOWN);
		assert_int_equal(pool_get_info(p)->meta.epoch, epoch + (modes[i] == POOL_WRITE));
		assert_int_equal(pool_close(p, true, &err), 0);
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
		assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
	}
}

/* Of 32 bits. What a writer leaves is taken in before the next one is counted. */
static void
the_count_of_writers_begins_anew(void **state)
{
	struct sidecar meta;
	bool repair;
	int fd;

	(void)state;
	fd = file_open("p.repl");
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	meta.epoch = UINT32_MAX - 2;
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	(void)close(fd);
	for (unsigned i = 0; i < 4; i++) {
		struct pool *p = NULL;

		killed_writer();
		assert_int_equal(info.meta.epoch, (uint32_t)(UINT32_MAX - 1 + 2 * i));
		assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &p, &err), 0);
		assert_int_equal(last_byte(), 'd');
		assert_no_ring();
		assert_int_equal(pool_close(p, true, &err), 0);
	}
}

/* Killed once more when all was applied and the ring still there: the same bytes. */
static void
what_was_replayed_may_be_replayed_again(void **state)
{
	struct poolring *ring;
	uint64_t count;
	struct pool *p;

	(void)state;
	killed_writer();
	for (unsigned i = 0; i < 2; i++) {
		int fd = file_open("p"), sidecar = file_open("p.repl");
		struct pmem_map *map;

		assert_int_equal(poolring_open(sidecar, "p.repl", &info.meta, &ring, &err), 0);
		assert_int_equal(pmem_map_new(fd, "p", SIZE, true, &map, &err), 0);
		assert_int_equal(poolring_replay(ring, map, &count, &err), 0);
		assert_int_equal(count, 3);
		poolring_free(ring);
		pmem_map_free(map);
		(void)close(fd);
		(void)close(sidecar);
		assert_int_equal(last_byte(), 'd');
	}
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &p, &err), 0);
	assert_int_equal(last_byte(), 'd');
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_no_ring();
}

static void
a_reader_beside_the_writer_leaves_it_alone(void **state)
{
	struct poolring *ring;
	struct pool *w = writer(&ring), *p = NULL;

	(void)state;
	assert_int_equal(pool_open(store, "p", POOL_READ, "reader", &p, &err), 0);
	assert_int_equal(last_byte(), 0);
	assert_true(pool_get_info(p)->meta.ring_len > 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_STABLE, "reader", &p, &err), REPL_E_BUSY);
	assert_int_equal(pool_remove(store, "p", 0, NULL, &err), REPL_E_BUSY);
	poolring_free(ring);
	assert_int_equal(pool_close(w, true, &err), 0);
}

static void *
look_ends(void *arg)
{
	const int *fd = arg;

	(void)usleep(20 * 1000);
	lock_look_end(*fd);
	lock_drop(*fd);
	return NULL;
}

/*
 * As a list does, at the very moment. Longer than a reader waits, that is told; what is in the file
 * is never taken for the pool.
 */
static void
who_only_looks_is_no_living_writer(void **state)
{
	struct pool *p = NULL;
	int fd, rc = REPL_E_BUSY;

	(void)state;
	killed_writer();
	fd = file_open("p.repl");
	assert_true(lock_look(fd) && lock_take_shared(fd, 0));
	assert_int_equal(pool_open(store, "p", POOL_READ, "reader", &p, &err), REPL_E_BUSY);
	assert_non_null(strstr(err.text, "pool 'p': what its last writer has left"));
	/* Whose end takes long on a machine that has much to do. */
	for (int i = 0; i < 20 && rc == REPL_E_BUSY; i++) {
		pthread_t looker;

		assert_true(lock_look(fd) && lock_take_shared(fd, 0));
		assert_int_equal(pthread_create(&looker, NULL, look_ends, &fd), 0);
		rc = pool_open(store, "p", POOL_READ, "reader", &p, &err);
		assert_int_equal(pthread_join(looker, NULL), 0);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(last_byte(), 'd');
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_no_ring();
	(void)close(fd);
}

/* Who reads while another reader is in the middle of that. */
static void (*amid)(void);

int fdatasync(int fd);

int
fdatasync(int fd)
{
	void (*do_it)(void) = amid;

	amid = NULL;
	if (do_it)
		do_it();
	return (int)syscall(SYS_fdatasync, fd);
}

static void
read_by_others(void)
{
	static const enum pool_mode modes[] = {POOL_READ, POOL_WRITE};
	struct pool *p = NULL;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pool_open(store, "p", modes[i], "second", &p, &err), REPL_E_BUSY);
		assert_non_null(strstr(err.text, "brings in what its last writer has left"));
	}
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_false(info.meta.writer_open);
	assert_int_equal(last_byte(), 0);
}

static void
a_second_reader_is_told_of_the_first(void **state)
{
	struct pool *p = NULL;

	(void)state;
	killed_writer();
	amid = read_by_others;
	assert_int_equal(pool_open(store, "p", POOL_READ, "first", &p, &err), 0);
	assert_null(amid);
	assert_int_equal(last_byte(), 'd');
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_no_ring();
}

static pthread_t beside;

static void *
read_second(void *arg)
{
	struct pool *p = NULL;
	struct err e;
	int rc = REPL_E_BUSY;

	(void)arg;
	err_clear(&e);
	/* What the first one does takes long on a machine that has much to do. */
	for (int i = 0; i < 10 && rc == REPL_E_BUSY; i++)
		rc = pool_open(store, "p", POOL_READ, "second", &p, &e);
	assert_int_equal(rc, 0);
	assert_int_equal(last_byte(), 'd');
	assert_int_equal(pool_close(p, true, &e), 0);
	return NULL;
}

static void
begin_second(void)
{
	assert_int_equal(pthread_create(&beside, NULL, read_second, NULL), 0);
}

static void
a_second_reader_waits_for_the_first(void **state)
{
	struct pool *p = NULL;

	(void)state;
	killed_writer();
	amid = begin_second;
	assert_int_equal(pool_open(store, "p", POOL_READ, "first", &p, &err), 0);
	assert_int_equal(pthread_join(beside, NULL), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_no_ring();
}

static struct pmem_map *
mapped(struct pool *p)
{
	struct pmem_map *map;

	assert_int_equal(pmem_map_new(pool_fd(p), pool_path(p), SIZE, true, &map, &err), 0);
	return map;
}

static void
the_end_of_the_lanes_takes_it_in(void **state)
{
	struct poolring *ring;
	struct pool *p = writer(&ring);
	struct pmem_map *map = mapped(p);

	(void)state;
	assert_int_equal(pool_ring_end(p, ring, map, false, &err), 0);
	assert_int_equal(last_byte(), 'd');
	assert_no_ring();
	/* The next lanes of the same session. */
	assert_int_equal(pool_ring_make(p, &geometry, &ring, &err), 0);
	assert_int_equal(pool_ring_end(p, ring, map, false, &err), 0);
	assert_int_equal(last_byte(), 'd');
	pmem_map_free(map);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_no_ring();
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
}

/* A flush has failed: what is in the ring is all there is of it. */
static void
after_a_failure_it_stays(void **state)
{
	struct poolring *ring, *second;
	struct pool *p = writer(&ring);
	struct pmem_map *map = mapped(p);

	(void)state;
	assert_int_equal(pool_ring_end(p, ring, map, true, &err), REPL_E_IO);
	assert_int_equal(pool_ring_make(p, &geometry, &second, &err), REPL_E_REFUSED);
	assert_int_equal(pool_mark(p, SIDECAR_OUTDATED, NULL, 0, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(last_byte(), 0);
	assert_int_equal(pool_open(store, "p", POOL_READ, "next", &p, &err), 0);
	assert_int_equal(last_byte(), 'd');
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_no_ring();
	assert_int_equal(info.meta.state, SIDECAR_OUTDATED);
}

static void
a_ring_that_cannot_be_believed_is_told(void **state)
{
	struct pool *p = NULL;
	int fd;

	(void)state;
	killed_writer();
	fd = file_open("p.repl");
	assert_int_equal(pwrite(fd, "X", 1, SIDECAR_SIZE), 1);
	for (int mode = POOL_READ; mode <= POOL_WRITE; mode++) {
		assert_int_equal(pool_open(store, "p", (enum pool_mode)mode, "next", &p, &err),
				 REPL_E_CORRUPT);
		assert_non_null(strstr(err.text, "pool 'p'"));
		assert_non_null(strstr(err.text, "receive ring"));
		assert_non_null(strstr(err.text, "make the replica anew"));
	}
	/* Whole again, but shorter than the sidecar says. */
	assert_int_equal(pwrite(fd, "R", 1, SIDECAR_SIZE), 1);
	assert_int_equal(ftruncate(fd, SIDECAR_SIZE + 8192), 0);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &p, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "ends before"));
	(void)close(fd);
	/* It can be removed. */
	assert_int_equal(pool_remove(store, "p", 0, NULL, &err), 0);
}

/* A ring of a later writer than the sidecar knows is none that belongs to it. */
static void
a_ring_of_the_future_is_refused(void **state)
{
	struct ring_geometry later = geometry;
	uint8_t header[RING_HEADER_SIZE];
	struct pool *p = NULL;

	(void)state;
	killed_writer();
	later.epoch = info.meta.epoch + 1;
	ring_header_encode(&later, header);
	file_change("p.repl", SIDECAR_SIZE, header, sizeof(header));
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &p, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "epoch"));
}

static void
without_room_the_pool_stays_as_it_was(void **state)
{
	struct rlimit was, small;
	struct poolring *ring;
	struct pool *p = NULL;

	(void)state;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &p, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	small = was;
	small.rlim_cur = SIDECAR_SIZE + 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(pool_ring_make(p, &geometry, &ring, &err), REPL_E_LIMIT);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_null(ring);
	assert_true(pool_get_info(p)->meta.ring_len == 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_no_ring();
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
}

/* Who only asks is not ended when the file that it looks at is cut. */
static void
looking_at_a_ring_that_is_taken_away_harms_nobody(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		struct pmem_map *map = NULL;
		struct poolring *ring;
		struct pool *p = writer(&ring);
		int rc = pool_map(p, true, &map, &err);

		for (int i = 0; i < 300 && !rc; i++) {
			rc = pool_ring_end(p, ring, map, false, &err);
			if (!rc)
				rc = pool_ring_make(p, &geometry, &ring, &err);
			deposit(ring, 0, 1, 1, 'a');
		}
		_exit(rc != 0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		(void)pool_info(store, "p", &info, &err);
	assert_int_equal(status, 0);
}

/* As of a set whose parts lie on a device of their own, and the set file with its sidecar does not.
 */
static void
a_ring_is_not_kept_where_the_pool_is_not(void **state)
{
	char elsewhere[TEMPDIR_MAX];
	struct pool_store *other;
	struct poolring *ring = NULL;
	struct pool *p = NULL, *q = NULL;
	struct stat one, two;
	int own;

	(void)state;
	assert_int_equal(tempdir_new(elsewhere, 1), 0);
	assert_int_equal(pool_store_new(elsewhere, &other, &err), 0);
	assert_int_equal(pool_create(other, "q", SIZE, NULL, false, &info, &err), 0);
	assert_int_equal(pool_open(other, "q", POOL_WRITE, "w", &q, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(fstat(p->files.fd, &one) | fstat(q->files.fd, &two), 0);
	own = p->files.fd;
	p->files.fd = q->files.fd;
	if (one.st_dev != two.st_dev) {
		assert_int_equal(pool_ring_make(p, &geometry, &ring, &err), REPL_E_REFUSED);
		assert_null(ring);
		assert_non_null(strstr(err.text, "'p'"));
		assert_int_equal(pool_get_info(p)->meta.ring_len, 0);
	}
	p->files.fd = own;
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(pool_close(q, true, &err), 0);
	pool_store_free(other);
	tempdir_free(elsewhere);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_count_of_writers_begins_anew, setup,
						world_free),
		cmocka_unit_test_setup_teardown(any_way_of_opening_replays, setup, world_free),
		cmocka_unit_test_setup_teardown(what_was_replayed_may_be_replayed_again, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_reader_beside_the_writer_leaves_it_alone, setup,
						world_free),
		cmocka_unit_test_setup_teardown(who_only_looks_is_no_living_writer, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_second_reader_is_told_of_the_first, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_second_reader_waits_for_the_first, setup,
						world_free),
		cmocka_unit_test_setup_teardown(the_end_of_the_lanes_takes_it_in, setup,
						world_free),
		cmocka_unit_test_setup_teardown(after_a_failure_it_stays, setup, world_free),
		cmocka_unit_test_setup_teardown(a_ring_that_cannot_be_believed_is_told, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_ring_of_the_future_is_refused, setup, world_free),
		cmocka_unit_test_setup_teardown(looking_at_a_ring_that_is_taken_away_harms_nobody,
						setup, world_free),
		cmocka_unit_test_setup_teardown(a_ring_is_not_kept_where_the_pool_is_not, setup,
						world_free),
		cmocka_unit_test_setup_teardown(without_room_the_pool_stays_as_it_was, setup,
						world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
