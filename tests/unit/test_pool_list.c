/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long list takes a walk through the directory each 8192 names, not one each page; none is left
 * out or told twice, and what comes and goes in between is as it should be. Where pools are slow to
 * look at, pages are short.
 */
#include "unit.h"

#include <time.h>

#include "pool_world.h"

#define PAGE 64U
#define MANY 20000U

int __real_pool_walk(int dirfd, pool_visit *visit, void *ctx, struct err *e);
int __wrap_pool_walk(int dirfd, pool_visit *visit, void *ctx, struct err *e);

int __real_pool_info(struct pool_store *s, const char *name, struct pool_info *out, struct err *e);
int __wrap_pool_info(struct pool_store *s, const char *name, struct pool_info *out, struct err *e);

static unsigned walks;
static bool is_slow;

int
__wrap_pool_walk(int dirfd, pool_visit *visit, void *ctx, struct err *e)
{
	walks++;
	return __real_pool_walk(dirfd, visit, ctx, e);
}

int
__wrap_pool_info(struct pool_store *s, const char *name, struct pool_info *out, struct err *e)
{
	const struct timespec slow = {.tv_nsec = 600000000};

	if (is_slow)
		(void)nanosleep(&slow, NULL);
	return __real_pool_info(s, name, out, e);
}

static int
setup(void **state)
{
	(void)state;
	return world_new(0, 0);
}

/* A file without a sidecar: it is in the list, as damaged. */
static void
touch(const char *name)
{
	int fd = openat(pool_store_dirfd(store), name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	(void)close(fd);
}

/* In an order that is not that of the names: 7919 has no factor in common with MANY. */
static void
touch_many(void)
{
	char name[16];

	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "p%06u", i * 7919U % MANY);
		touch(name);
	}
}

static bool
next_page(char after[TARGET_POOL_MAX + 1], struct pool_info *infos, unsigned *count)
{
	bool more;

	assert_int_equal(pool_list(store, after[0] ? after : NULL, infos, PAGE, count, &more, &err),
			 0);
	if (*count)
		(void)snprintf(after, TARGET_POOL_MAX + 1, "%s", infos[*count - 1].name);
	return more;
}

static void
long_list_takes_few_walks(void **state)
{
	static struct pool_info infos[PAGE];
	char after[TARGET_POOL_MAX + 1] = "", name[16];
	unsigned seen = 0, count;
	bool more;

	(void)state;
	touch_many();
	walks = 0;
	do {
		more = next_page(after, infos, &count);
		for (unsigned i = 0; i < count; i++) {
			(void)snprintf(name, sizeof(name), "p%06u", seen++);
			assert_string_equal(infos[i].name, name);
		}
		assert_int_equal(more, seen < MANY);
	} while (more);
	assert_int_equal(seen, MANY);
	/* Three for names, three for the parts of sets that damaged ones might be. */
	assert_true(walks <= 6);
}

static void
list_is_as_old_as_its_first_page(void **state)
{
	static struct pool_info infos[PAGE];
	char after[TARGET_POOL_MAX + 1] = "";
	unsigned count;

	(void)state;
	for (unsigned i = 0; i < PAGE; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "a%u", i);
		touch(name);
	}
	touch("x");
	touch("z");
	assert_true(next_page(after, infos, &count));
	/* Another session's. What is gone is not told of. */
	touch("y");
	assert_int_equal(unlinkat(pool_store_dirfd(store), "x", 0), 0);
	assert_false(next_page(after, infos, &count));
	assert_int_equal(count, 1);
	assert_string_equal(infos[0].name, "z");
	after[0] = '\0';
	assert_true(next_page(after, infos, &count));
	/* This session's own. */
	assert_int_equal(pool_create(store, "y1", 4096, NULL, false, &info, &err), 0);
	assert_false(next_page(after, infos, &count));
	assert_int_equal(count, 3);
	assert_string_equal(infos[0].name, "y");
	assert_string_equal(infos[1].name, "y1");
	/* One that has come to its end is begun anew. */
	touch("zz");
	assert_false(next_page(after, infos, &count));
	assert_int_equal(count, 1);
	/* Nor does a page that lies before those that are known. */
	touch("a");
	(void)snprintf(after, sizeof(after), "b");
	assert_false(next_page(after, infos, &count));
	(void)snprintf(after, sizeof(after), "Z");
	assert_true(next_page(after, infos, &count));
	assert_string_equal(infos[0].name, "a");
}

static void
page_ends_when_it_has_taken_long(void **state)
{
	static struct pool_info infos[PAGE];
	char after[TARGET_POOL_MAX + 1] = "";
	unsigned count;

	(void)state;
	touch("a");
	touch("b");
	is_slow = true;
	assert_true(next_page(after, infos, &count));
	assert_int_equal(count, 1);
	assert_false(next_page(after, infos, &count));
	assert_int_equal(count, 1);
	is_slow = false;
	assert_string_equal(after, "b");
}

/* Nor removed as one. */
static void
what_belongs_to_another_pool_is_none(void **state)
{
	static struct pool_info infos[PAGE];
	char after[TARGET_POOL_MAX + 1] = "";
	unsigned count;

	(void)state;
	assert_int_equal(pool_create(store, "d/a", 4096, NULL, false, &info, &err), 0);
	assert_int_equal(pool_create(store, "d/b.running", 4096, NULL, false, &info, &err), 0);
	touch("d/a.running");
	touch("d/a.repl-missed");
	touch("d/c.running");
	touch("d/.running");
	assert_false(next_page(after, infos, &count));
	assert_int_equal(count, 3);
	assert_string_equal(infos[0].name, "d/a");
	assert_string_equal(infos[1].name, "d/b.running");
	assert_string_equal(infos[2].name, "d/c.running");
	for (unsigned flags = 0; flags <= POOL_REMOVE_FORCE; flags++) {
		assert_int_equal(pool_remove(store, "d/a.running", flags, NULL, &err),
				 REPL_E_REFUSED);
		assert_non_null(strstr(err.text, "belongs to pool 'd/a'"));
		err_clear(&err);
	}
	assert_int_equal(pool_remove(store, "d/a", 0, NULL, &err), 0);
	assert_int_equal(pool_remove(store, "d/a.running", 0, NULL, &err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(long_list_takes_few_walks, setup, world_free),
		cmocka_unit_test_setup_teardown(list_is_as_old_as_its_first_page, setup,
						world_free),
		cmocka_unit_test_setup_teardown(page_ends_when_it_has_taken_long, setup,
						world_free),
		cmocka_unit_test_setup_teardown(what_belongs_to_another_pool_is_none, setup,
						world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
