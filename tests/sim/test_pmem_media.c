/* SPDX-License-Identifier: BSD-3-Clause */
/* What was not flushed is absent from the media image, what was flushed is there. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmem.h"

#define POOL_SIZE 32768U

struct media {
	char path[64];
	char image[80];
	int fd;
	struct pmem_map *map;
};

static void
media_map(struct media *m, const char *granularity, const char *evict)
{
	struct err e;

	err_clear(&e);
	if (granularity)
		assert_int_equal(setenv("REPL_MEDIA_GRANULARITY", granularity, 1), 0);
	if (evict)
		assert_int_equal(setenv("REPL_MEDIA_EVICT", evict, 1), 0);
	if (pmem_map_new(m->fd, m->path, POOL_SIZE, true, &m->map, &e) != REPL_OK)
		fail_msg("%s", e.text);
	(void)unsetenv("REPL_MEDIA_GRANULARITY");
	(void)unsetenv("REPL_MEDIA_EVICT");
}

static int
setup(void **state)
{
	struct media *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	(void)strcpy(m->path, "/tmp/repl-media-XXXXXX");
	m->fd = mkstemp(m->path);
	assert_true(m->fd >= 0);
	(void)snprintf(m->image, sizeof(m->image), "%s.media", m->path);
	assert_int_equal(ftruncate(m->fd, POOL_SIZE), 0);
	assert_int_equal(pwrite(m->fd, "old", 3, 20000), 3);
	*state = m;
	return 0;
}

static int
teardown(void **state)
{
	struct media *m = *state;

	pmem_map_free(m->map);
	(void)close(m->fd);
	(void)unlink(m->path);
	(void)unlink(m->image);
	free(m);
	return 0;
}

static char
media_byte(const struct media *m, off_t off)
{
	char c = '?';
	int fd = open(m->image, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &c, 1, off), 1);
	(void)close(fd);
	return c;
}

static void
media_persist(struct media *m, uint64_t off, uint64_t len)
{
	struct range r = {off, len};
	struct err e;

	assert_int_equal(pmem_map_persist(m->map, &r, 1, &e), REPL_OK);
}

static void
image_begins_as_the_pool(void **state)
{
	struct media *m = *state;
	struct stat st;

	media_map(m, NULL, NULL);
	assert_int_equal(pmem_map_granularity(m->map), PROFILE_GRAN_PAGE);
	assert_int_equal(media_byte(m, 20000), 'o');
	assert_int_equal(stat(m->image, &st), 0);
	assert_int_equal(st.st_size, POOL_SIZE);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void
only_flushed_lines_reach_the_image(void **state)
{
	static const char *const names[] = {"cache_line", "byte"};
	struct media *m = *state;

	for (size_t i = 0; i < 2; i++) {
		char c = (char)('a' + i);

		media_map(m, names[i], NULL);
		pmem_map_copy(m->map, 63, (char[]){c, c, c}, 3); /* two lines */
		pmem_map_copy(m->map, 128, &c, 1);
		assert_int_not_equal(media_byte(m, 63), c);
		media_persist(m, 64, 1);
		assert_int_not_equal(media_byte(m, 63), c);
		assert_int_equal(media_byte(m, 64), c);
		assert_int_equal(media_byte(m, 65), c); /* same line */
		assert_int_not_equal(media_byte(m, 128), c);
		media_persist(m, 63, 66);
		assert_int_equal(media_byte(m, 63), c);
		assert_int_equal(media_byte(m, 128), c);
		pmem_map_free(m->map);
		m->map = NULL;
	}
}

static void
only_synced_pages_reach_the_image(void **state)
{
	struct media *m = *state;
	struct range r[] = {{0, 1}, {8192, 1}};
	uint64_t word;
	struct err e;

	memset(&word, 'w', sizeof(word));
	media_map(m, "page", NULL);
	pmem_map_store8(m->map, 4088, &word);
	pmem_map_store8(m->map, 4096, &word);
	pmem_map_store8(m->map, 8192, &word);
	assert_int_equal(media_byte(m, 4088), 0);
	assert_int_equal(pmem_map_persist(m->map, r, 2, &e), REPL_OK);
	assert_int_equal(media_byte(m, 4088), 'w');
	assert_int_equal(media_byte(m, 4096), 0); /* between the two: not asked for */
	assert_int_equal(media_byte(m, 8192), 'w');
}

/* A restart goes on with the image it finds. */
static void
image_outlives_the_mapping(void **state)
{
	struct media *m = *state;

	media_map(m, "cache_line", NULL);
	pmem_map_copy(m->map, 0, "unflushed", 9);
	pmem_map_free(m->map);
	media_map(m, "cache_line", NULL);
	assert_int_equal(*(char *)pmem_map_addr(m->map), 'u');
	assert_int_equal(media_byte(m, 0), 0);
}

/* The seed alone decides; some lines get there and some do not. */
static void
eviction_writes_some_lines_early(void **state)
{
	struct media *m = *state;
	unsigned early = 0;

	media_map(m, "cache_line", "7");
	for (unsigned i = 0; i < 256; i++)
		pmem_map_copy(m->map, i * 64U, "x", 1);
	for (unsigned i = 0; i < 256; i++)
		early += media_byte(m, (off_t)i * 64) == 'x';
	assert_in_range(early, 256 / 8, 256 / 2);
}

static void
bad_settings_are_refused(void **state)
{
	struct media *m = *state;
	struct pmem_map *map = NULL;
	struct err e;

	assert_int_equal(setenv("REPL_MEDIA_GRANULARITY", "sector", 1), 0);
	assert_int_equal(pmem_map_new(m->fd, m->path, POOL_SIZE, true, &map, &e), REPL_E_CONFIG);
	assert_non_null(strstr(e.text, "'sector'"));
	(void)unsetenv("REPL_MEDIA_GRANULARITY");
	media_map(m, NULL, NULL);
	assert_int_equal(truncate(m->image, 4096), 0);
	assert_int_equal(pmem_map_new(m->fd, m->path, POOL_SIZE, true, &map, &e), REPL_E_CORRUPT);
	assert_null(map);
}

#define MEDIA_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		MEDIA_TEST(image_begins_as_the_pool),
		MEDIA_TEST(only_flushed_lines_reach_the_image),
		MEDIA_TEST(only_synced_pages_reach_the_image),
		MEDIA_TEST(image_outlives_the_mapping),
		MEDIA_TEST(eviction_writes_some_lines_early),
		MEDIA_TEST(bad_settings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
