/* SPDX-License-Identifier: BSD-3-Clause */
/* A mapping shows the file's bytes, keeps what is stored, and reports what it cannot map or sync.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmem.h"

#define POOL_SIZE 65536U

static int
temp_file(char path[64], size_t size)
{
	int fd;

	(void)snprintf(path, 64, "%s", "/tmp/repl-pmem-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void
stores_reach_the_file(void **state)
{
	struct range r[] = {{40000, 8}, {100, 6}, {4096, 4096}};
	struct pmem_map *m;
	struct err e;
	uint64_t word = 0x1122334455667788U;
	char path[64];
	char have[8];
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_size(m), POOL_SIZE);
	pmem_map_copy(m, 100, "hello", 6);
	pmem_map_store8(m, 40000, &word);
	assert_int_equal(pmem_map_persist(m, r, 3, &e), REPL_OK);
	assert_int_equal(pmem_map_persist(m, NULL, 0, &e), REPL_OK);
	assert_memory_equal((char *)pmem_map_addr(m) + 100, "hello", 6);
	pmem_map_free(m);
	assert_int_equal(pread(fd, have, 6, 100), 6);
	assert_string_equal(have, "hello");
	assert_int_equal(pread(fd, have, 8, 40000), 8);
	assert_memory_equal(have, &word, 8);
	(void)close(fd);
	(void)unlink(path);
}

static void
read_only_descriptor_maps_for_reading_only(void **state)
{
	struct pmem_map *m = NULL;
	struct err e;
	char path[64];
	int fd = temp_file(path, POOL_SIZE);
	int ro = open(path, O_RDONLY | O_CLOEXEC);

	(void)state;
	err_clear(&e);
	assert_int_equal(pwrite(fd, "x", 1, 5000), 1);
	assert_int_equal(pmem_map_new(ro, path, POOL_SIZE, false, &m, &e), REPL_OK);
	assert_int_equal(((char *)pmem_map_addr(m))[5000], 'x');
	pmem_map_free(m);
	assert_int_not_equal(pmem_map_new(ro, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_null(m);
	assert_non_null(strstr(e.text, path));
	(void)close(ro);
	(void)close(fd);
	(void)unlink(path);
}

static void
size_beyond_the_file_is_refused(void **state)
{
	struct pmem_map *m = NULL;
	struct err e;
	char path[64];
	int fd = temp_file(path, 4096);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_E_IO);
	assert_null(m);
	assert_non_null(strstr(e.text, "libpmem2: "));
	(void)close(fd);
	(void)unlink(path);
}

/* Stands for a device that fails: the pages to sync are gone. */
static void
failed_sync_is_an_error_not_an_abort(void **state)
{
	struct range r = {4100, 8};
	struct pmem_map *m;
	struct err e;
	char path[64];
	void *hole;
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	if (pmem_map_granularity(m) != PROFILE_GRAN_PAGE)
		skip();
	hole = (char *)pmem_map_addr(m) + 4096;
	assert_int_equal(munmap(hole, 4096), 0);
	if (pmem_map_persist(m, &r, 1, &e) == REPL_OK) {
		print_message("/tmp is memory: nothing to sync\n");
	} else {
		assert_int_equal(e.code, REPL_E_IO);
		assert_non_null(strstr(e.text, path));
	}
	pmem_map_free(m);
	(void)close(fd);
	(void)unlink(path);
}

/* Opening takes time and memory for what is used, not for what is mapped. */
static void
huge_sparse_pool_opens_at_once(void **state)
{
	size_t size = (size_t)1 << 40;
	struct pmem_map *m;
	struct err e;
	char path[64];
	int fd = temp_file(path, 4096);

	(void)state;
	err_clear(&e);
	if (ftruncate(fd, (off_t)size) == 0) {
		assert_int_equal(pmem_map_new(fd, path, size, true, &m, &e), REPL_OK);
		pmem_map_copy(m, size - 5, "last", 5);
		pmem_map_free(m);
	}
	(void)close(fd);
	(void)unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stores_reach_the_file),
		cmocka_unit_test(read_only_descriptor_maps_for_reading_only),
		cmocka_unit_test(size_beyond_the_file_is_refused),
		cmocka_unit_test(failed_sync_is_an_error_not_an_abort),
		cmocka_unit_test(huge_sparse_pool_opens_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
