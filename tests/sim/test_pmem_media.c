/* SPDX-License-Identifier: BSD-3-Clause */
/* Of what was stored a power cut leaves what the configuration says, and nothing else. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media_survival.h"
#include "pmem.h"

#define POOL_SIZE 32768U

struct media {
	char path[64];
	char image[80];
	char record[80];
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
	(void)snprintf(m->record, sizeof(m->record), "%s.dirty", m->path);
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
	(void)unlink(m->record);
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

/* ---- the cut ---- */

static void
media_machine(struct media *m, const char *domain, const char *ddio, bool evict)
{
	assert_int_equal(setenv("REPL_MEDIA_DOMAIN", domain, 1), 0);
	assert_int_equal(setenv("REPL_MEDIA_DDIO", ddio, 1), 0);
	media_map(m, "cache_line", evict ? "7" : NULL);
}

static void
media_power_cut(struct media *m, uint64_t keep)
{
	struct err e;

	pmem_map_free(m->map);
	m->map = NULL;
	assert_int_equal(setenv("REPL_MEDIA_GRANULARITY", "cache_line", 1), 0);
	if (media_cut(m->path, keep, &e) != REPL_OK)
		fail_msg("%s", e.text);
	assert_int_not_equal(access(m->image, F_OK), 0);
	assert_int_not_equal(access(m->record, F_OK), 0);
	(void)unsetenv("REPL_MEDIA_GRANULARITY");
	(void)unsetenv("REPL_MEDIA_DOMAIN");
	(void)unsetenv("REPL_MEDIA_DDIO");
}

/* The pool's byte: after a cut that of the media. */
static char
pool_byte(const struct media *m, off_t off)
{
	char c = '?';

	assert_int_equal(pread(m->fd, &c, 1, off), 1);
	return c;
}

/* As the NIC does it: past pmem.h. */
static void
nic_store(struct media *m, uint64_t off, char c)
{
	((volatile char *)pmem_map_addr(m->map))[off] = c;
}

static void
each_domain_keeps_its_own(void **state)
{
	static const struct {
		const char *domain, *ddio;
		char cpu, nic;
	} rows[] = {
		{"dmp", "on", 0, 0},      {"dmp", "off", 0, 'n'},  {"mhp", "on", 'c', 'n'},
		{"mhp", "off", 'c', 'n'}, {"wsp", "on", 'c', 'n'}, {"wsp", "off", 'c', 'n'},
	};
	struct media *m = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(ftruncate(m->fd, 0), 0);
		assert_int_equal(ftruncate(m->fd, POOL_SIZE), 0);
		media_machine(m, rows[i].domain, rows[i].ddio, false);
		pmem_map_copy(m->map, 100, "c", 1);
		nic_store(m, 1000, 'n');
		pmem_map_copy(m->map, 5000, "f", 1);
		nic_store(m, 5100, 'f');
		media_persist(m, 5000, 1);
		media_persist(m, 5100, 1);
		assert_int_equal(pool_byte(m, 100), 'c');
		media_power_cut(m, 0);
		assert_int_equal(pool_byte(m, 100), rows[i].cpu);
		assert_int_equal(pool_byte(m, 1000), rows[i].nic);
		assert_int_equal(pool_byte(m, 5000), 'f');
		assert_int_equal(pool_byte(m, 5100), 'f');
	}
}

/* Without DDIO: what the CPU had there goes back to what it was, the NIC's bytes stay. */
static void
nic_overwrites_what_is_dirty(void **state)
{
	struct media *m = *state;
	uint64_t word;

	media_machine(m, "dmp", "off", false);
	nic_store(m, 64, 'a');
	pmem_map_copy(m->map, 64, "bb", 2);
	nic_store(m, 65, 'n');
	pmem_map_copy(m->map, 200, "x", 1);
	media_persist(m, 200, 1);
	pmem_map_copy(m->map, 200, "y", 1);
	pmem_map_copy(m->map, 200, "z", 1);
	memset(&word, 'w', sizeof(word));
	pmem_map_store8(m->map, 4088, &word);
	pmem_map_copy(m->map, 4096 - 128 - 1, "123", 3); /* two lines, one flushed */
	media_persist(m, 4096 - 128, 1);
	media_power_cut(m, 0);
	assert_int_equal(pool_byte(m, 64), 'a');
	assert_int_equal(pool_byte(m, 65), 'n');
	assert_int_equal(pool_byte(m, 200), 'x');
	assert_int_equal(pool_byte(m, 4088), 0);
	assert_int_equal(pool_byte(m, 4096 - 128 - 1), 0);
	assert_int_equal(pool_byte(m, 4096 - 128), '2');
	assert_int_equal(pool_byte(m, 4096 - 128 + 1), '3');
}

static void
eviction_saves_some_of_the_dirty(void **state)
{
	struct media *m = *state;
	unsigned kept = 0;

	media_machine(m, "dmp", "off", true);
	for (unsigned i = 0; i < 256; i++)
		pmem_map_copy(m->map, i * 64U, "x", 1);
	media_power_cut(m, 0);
	for (unsigned i = 0; i < 256; i++)
		kept += pool_byte(m, (off_t)i * 64) == 'x';
	assert_in_range(kept, 256 / 8, 256 / 2);
}

/* What was recorded before a pool grew is taken back, and so is what came after. */
static void
record_grows(void **state)
{
	struct media_dirty *d = NULL;
	struct media *m = *state;
	uint8_t mem[2 * 4096] = {0};
	struct err e;

	assert_int_equal(media_dirty_open(m->record, 4096, &d, &e), REPL_OK);
	media_dirty_store(d, mem, 10, "x", 1);
	mem[10] = 'x';
	assert_int_equal(media_dirty_grow(d, sizeof(mem), &e), REPL_OK);
	media_dirty_store(d, mem, 8000, "y", 1);
	mem[8000] = 'y';
	media_dirty_free(d);
	assert_int_equal(media_dirty_open(m->record, sizeof(mem), &d, &e), REPL_OK);
	media_dirty_take_back(d, mem);
	media_dirty_free(d);
	assert_int_equal(mem[10], 0);
	assert_int_equal(mem[8000], 0);
}

/* The slots of a sidecar do not go by the mapping. */
static void
cut_keeps_the_beginning(void **state)
{
	static const char *const ddios[] = {"on", "off"};
	struct media *m = *state;

	for (size_t i = 0; i < 2; i++) {
		media_machine(m, "dmp", ddios[i], false);
		pmem_map_copy(m->map, 8191, "ab", 2);
		media_power_cut(m, 8192);
		assert_int_equal(pool_byte(m, 8191), 'a');
		assert_int_equal(pool_byte(m, 8192), 0);
	}
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
	assert_int_equal(setenv("REPL_MEDIA_DOMAIN", "adr", 1), 0);
	assert_int_equal(pmem_map_new(m->fd, m->path, POOL_SIZE, true, &map, &e), REPL_E_CONFIG);
	assert_non_null(strstr(e.text, "dmp, mhp, wsp"));
	(void)unsetenv("REPL_MEDIA_DOMAIN");
	assert_null(map);
}

static void
file_anew(struct media *m, const char *text)
{
	pmem_map_free(m->map);
	m->map = NULL;
	(void)close(m->fd);
	assert_int_equal(unlink(m->path), 0);
	m->fd = open(m->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(m->fd >= 0);
	assert_int_equal(ftruncate(m->fd, POOL_SIZE), 0);
	assert_int_equal(pwrite(m->fd, text, 3, 20000), 3);
}

static void
image_of_another_file_is_made_anew(void **state)
{
	struct media *m = *state;

	media_map(m, NULL, NULL);
	file_anew(m, "new");
	media_map(m, NULL, NULL);
	assert_int_equal(media_byte(m, 20000), 'n');
	file_anew(m, "cut");
	assert_int_equal(media_cut(m->path, 0, NULL), 0);
	assert_int_equal(pool_byte(m, 20000), 'c');
}

static void
image_gets_what_its_file_has_grown_by(void **state)
{
	struct media *m = *state;

	media_map(m, NULL, NULL);
	pmem_map_copy(m->map, 0, "x", 1);
	pmem_map_free(m->map);
	m->map = NULL;
	assert_int_equal(truncate(m->image, 4096), 0);
	media_map(m, NULL, NULL);
	assert_int_equal(media_byte(m, 20000), 'o');
	assert_int_equal(media_byte(m, 0), 0);
}

static void
sync_of_the_file_reaches_the_image(void **state)
{
	struct media *m = *state;

	media_map(m, NULL, NULL);
	pmem_map_copy(m->map, 5000, "x", 1);
	assert_int_equal(pwrite(m->fd, "y", 1, 9000), 1);
	assert_int_equal(media_byte(m, 5000), 0);
	media_synced(m->fd);
	assert_int_equal(media_byte(m, 5000), 'x');
	assert_int_equal(media_byte(m, 9000), 'y');
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
		MEDIA_TEST(image_of_another_file_is_made_anew),
		MEDIA_TEST(image_gets_what_its_file_has_grown_by),
		MEDIA_TEST(sync_of_the_file_reaches_the_image),
		MEDIA_TEST(eviction_writes_some_lines_early),
		MEDIA_TEST(each_domain_keeps_its_own),
		MEDIA_TEST(nic_overwrites_what_is_dirty),
		MEDIA_TEST(eviction_saves_some_of_the_dirty),
		MEDIA_TEST(record_grows),
		MEDIA_TEST(cut_keeps_the_beginning),
		MEDIA_TEST(bad_settings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
