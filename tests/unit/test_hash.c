/* SPDX-License-Identifier: BSD-3-Clause */
/* What a writer is told the hash of is durable: it does not copy what is equal. */
#include "unit.h"

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

/* No file: all is data. */
int
pool_extents_fd(const struct pool *p)
{
	(void)p;
	return -1;
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

static void
failed_flush_is_no_hash_and_never_up_to_date(void **state)
{
	struct pmem_map map = {.persist_rc = REPL_E_IO};
	struct state s = {.map = &map, .write = true};

	(void)state;
	assert_int_equal(hash(&s, 0, 1), REPL_E_IO);
	assert_true(s.flush_failed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writer_gets_hashes_of_durable_bytes),
		cmocka_unit_test(reader_flushes_nothing),
		cmocka_unit_test(failed_flush_is_no_hash_and_never_up_to_date),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
