/* SPDX-License-Identifier: BSD-3-Clause */
/* What a writer is told the hash of is durable: it does not copy what is equal. */
#include "unit.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control.h"
#include "handlers.h"

#define POOL_SIZE 12288U

struct pmem_map {
	uint8_t mem[POOL_SIZE];
	struct range durable;
	unsigned persists;
	int persist_rc;
};

void *
pmem_map_addr(const struct pmem_map *m)
{
	return (void *)(uintptr_t)m->mem;
}

/* The tests are told both ways. */
static bool by_file;
static unsigned gets;

bool
pmem_map_by_file(const struct pmem_map *m)
{
	(void)m;
	return by_file;
}

void
pmem_map_get(const struct pmem_map *m, uint64_t off, void *dst, size_t len)
{
	gets++;
	memcpy(dst, m->mem + off, len);
}

size_t
pmem_map_size(const struct pmem_map *m)
{
	(void)m;
	return POOL_SIZE;
}

int
state_persist(struct state *s, struct range *r, size_t count, struct err *e)
{
	assert_int_equal(count, 1);
	s->map->durable = r[0];
	s->map->persists++;
	if (!s->map->persist_rc)
		return 0;
	s->flush_failed = true;
	return err_set(e, s->map->persist_rc, "the device failed");
}

int
state_log_settle(struct state *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}

void
state_flush_lost(struct state *s)
{
	s->flush_failed = true;
}

static struct pool_info info;
static unsigned asked;     /* for the file whose holes are known */
static int holes_fd = -1;  /* that file; -1: all is data */
static unsigned syncs;     /* of whatever */
static unsigned its_syncs; /* by that very descriptor */

int
fsync(int fd)
{
	syncs++;
	its_syncs += fd == holes_fd;
	return (int)syscall(SYS_fsync, fd);
}

int
fdatasync(int fd)
{
	return fsync(fd);
}

const struct pool_info *
pool_get_info(const struct pool *p)
{
	(void)p;
	return &info;
}

int
pool_extents_fd(const struct pool *p)
{
	(void)p;
	asked++;
	return holes_fd;
}

static int
hash(struct state *s, int off, int count)
{
	struct json_object *params = json_object_new_object();
	struct reply r;
	int rc;

	memset(&r, 0, sizeof(r));
	json_object_object_add(params, "off", json_object_new_int(off));
	json_object_object_add(params, "block", json_object_new_int(8192));
	json_object_object_add(params, "count", json_object_new_int(count));
	rc = handle_pool_hash(s, params, &r);
	assert_true((rc == 0) == (r.result != NULL));
	json_object_put(r.result);
	json_object_put(params);
	return rc;
}

static void
writer_gets_hashes_of_durable_bytes(void **state)
{
	struct pmem_map map = {.persists = 0};
	struct state s = {.map = &map, .write = true};

	(void)state;
	assert_int_equal(hash(&s, 4096, 1), 0);
	assert_int_equal(map.durable.off, 4096);
	assert_int_equal(map.durable.len, 8192);
	assert_int_equal(hash(&s, 0, 2), 0);
	assert_int_equal(map.durable.off, 0);
	assert_int_equal(map.durable.len, POOL_SIZE);
}

static void
reader_flushes_nothing(void **state)
{
	struct pmem_map map = {.persists = 0};
	struct state s = {.map = &map, .write = false};

	(void)state;
	assert_int_equal(hash(&s, 0, 1), 0);
	assert_int_equal(map.persists, 0);
}

/* By the file as by the mapping; what is a hole is not read. */
static void
hashes_are_the_same_by_the_file(void **state)
{
	struct pmem_map map = {.mem = "bytes of the pool"};
	struct state s = {.map = &map};
	char *text[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct json_object *params =
			json_tokener_parse("{\"block\":8192,\"off\":0,\"count\":2}");
		struct json_object *hashes;
		struct reply r;

		by_file = i;
		gets = 0;
		memset(&r, 0, sizeof(r));
		assert_int_equal(handle_pool_hash(&s, params, &r), 0);
		assert_true(json_object_object_get_ex(r.result, "hashes", &hashes));
		text[i] = strdup(json_object_get_string(hashes));
		assert_int_equal(gets, 2 * i);
		json_object_put(r.result);
		json_object_put(params);
	}
	by_file = false;
	assert_string_equal(text[0], text[1]);
	free(text[0]);
	free(text[1]);
}

/* Two ranges of a block each. */
static void
hash_pieces(struct state *s)
{
	struct json_object *params =
		json_tokener_parse("{\"block\":4096,\"ranges\":[[0,1],[8192,1]]}");
	struct reply r;

	memset(&r, 0, sizeof(r));
	assert_int_equal(handle_pool_hash(s, params, &r), 0);
	json_object_put(r.result);
	json_object_put(params);
}

/* Reading a hole of a sparse pool on tmpfs takes memory; of another one it has been taken. */
static void
holes_among_pieces_matter_to_a_sparse_pool(void **state)
{
	struct pmem_map map = {.persists = 0};
	struct state s = {.map = &map, .write = false};

	(void)state;
	asked = 0;
	info.meta.sparse = true;
	hash_pieces(&s);
	assert_int_equal(asked, 1);
	info.meta.sparse = false;
	hash_pieces(&s);
	assert_int_equal(asked, 1);
	assert_int_equal(hash(&s, 0, 1), 0);
	assert_int_equal(asked, 2);
}

static void
failed_flush_is_no_hash_and_never_up_to_date(void **state)
{
	struct pmem_map map = {.persist_rc = REPL_E_IO};
	struct state s = {.map = &map, .write = true};

	(void)state;
	assert_int_equal(hash(&s, 0, 1), REPL_E_IO);
	assert_true(s.flush_failed);
}

/* The kernel tells each open file description an error once, and the lanes' flushes have this one.
 */
static void
extents_take_no_error_of_a_flush_from_it(void **state)
{
	struct pmem_map map = {.persists = 0};
	struct state s = {.map = &map, .write = true};
	struct json_object *params = json_tokener_parse("{\"off\":0,\"grain\":4096}");
	struct reply r;

	(void)state;
	memset(&r, 0, sizeof(r));
	holes_fd = memfd_create("pool", MFD_CLOEXEC);
	assert_true(holes_fd >= 0);
	assert_int_equal(handle_pool_extents(&s, params, &r), 0);
	assert_int_equal(syncs, 1);
	assert_int_equal(its_syncs, 0);
	assert_int_equal(close(holes_fd), 0);
	holes_fd = -1;
	json_object_put(r.result);
	json_object_put(params);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writer_gets_hashes_of_durable_bytes),
		cmocka_unit_test(reader_flushes_nothing),
		cmocka_unit_test(hashes_are_the_same_by_the_file),
		cmocka_unit_test(holes_among_pieces_matter_to_a_sparse_pool),
		cmocka_unit_test(failed_flush_is_no_hash_and_never_up_to_date),
		cmocka_unit_test(extents_take_no_error_of_a_flush_from_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
