/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sync has lost is written past the cache, or told where others may store; what is stored
 * meanwhile is no loss, and nothing is written over it. What the device does not take stays in
 * memory.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pagecache.h"

#define PAGE  4096U
#define PAGES 65536U
#define FAR   256U
#define FOLIO 16U /* pages that the cache has and drops as one */

#define STORED 99

/* ---- a disk behind another descriptor ---- */

static int memory = -1, direct = -1;
static uint8_t media[PAGES]; /* the first byte of each page */
static bool dirty[PAGES], hot[PAGES];
static bool stale[PAGES]; /* what the cache has of its block is wrong: a sync brings nothing */
static bool refused[PAGES];
static bool cached; /* direct is not, for now */
static unsigned syncs, written, bad_sync;
static unsigned store_sync; /* behind which a program stores to the fourth page */

static uint8_t
in_memory(unsigned page)
{
	uint8_t byte;

	assert_int_equal(syscall(SYS_pread64, memory, &byte, 1, (off_t)page * PAGE), 1);
	return byte;
}

static void
put(unsigned page, uint8_t byte)
{
	assert_int_equal(syscall(SYS_pwrite64, memory, &byte, 1, (off_t)page * PAGE), 1);
}

ssize_t
pread(int fd, void *buf, size_t len, off_t off)
{
	ssize_t n = syscall(SYS_pread64, fd, buf, len, off);

	for (size_t at = 0; fd == direct && n > 0 && at < (size_t)n; at += PAGE)
		((uint8_t *)buf)[at] = media[((size_t)off + at) / PAGE];
	return n;
}

int
fcntl(int fd, int op, ...)
{
	va_list args;

	assert_int_equal(fd, direct);
	assert_int_equal(op, F_SETFL);
	va_start(args, op);
	cached = !(va_arg(args, int) & O_DIRECT);
	va_end(args);
	return 0;
}

static void
sync_page(unsigned page)
{
	if (dirty[page] && !stale[page])
		media[page] = in_memory(page);
	dirty[page] = false;
}

/* It leaves the cache before the device is asked, and what is around it, too. */
static void
throw_out(unsigned page)
{
	for (unsigned i = page - page % FOLIO, end = i + FOLIO; i < end; i++) {
		sync_page(i);
		put(i, media[i]);
		stale[i] = false;
	}
}

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	unsigned page = (unsigned)(off / PAGE);

	assert_int_equal(fd, direct);
	assert_int_equal(len, PAGE);
	if (cached) {
		dirty[page] = true;
		return syscall(SYS_pwrite64, memory, buf, len, off);
	}
	throw_out(page);
	if (refused[page]) {
		errno = EIO;
		return -1;
	}
	media[page] = *(const uint8_t *)buf;
	written++;
	return syscall(SYS_pwrite64, memory, buf, len, off);
}

int
fdatasync(int fd)
{
	bool bad = ++syncs == bad_sync;

	assert_int_equal(fd, direct);
	for (unsigned i = 0; i < PAGES; i++) {
		if (!bad)
			sync_page(i);
		dirty[i] = hot[i];
		if (hot[i])
			put(i, (uint8_t)(media[i] + 1));
	}
	if (syncs == store_sync) {
		put(3, STORED);
		dirty[3] = true;
	}
	errno = EIO;
	return bad ? -1 : 0;
}

static bool hidden; /* the first page that is asked for */
static unsigned looks;

int
mincore(void *addr, size_t len, unsigned char *there)
{
	int rc = (int)syscall(SYS_mincore, addr, len, there);

	looks++;
	if (hidden)
		there[0] = 0;
	return rc;
}

static int
agree_as(enum pagecache_right right, unsigned pages, uint64_t *bytes)
{
	struct pagecache c = {
		.fd = memory, .direct = direct, .size = (uint64_t)pages * PAGE, .right = right};
	void *map = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ, MAP_SHARED, memory, 0);
	struct err e;
	int rc;

	assert_ptr_not_equal(map, MAP_FAILED);
	c.map = map;
	syncs = written = 0;
	*bytes = 0;
	err_clear(&e);
	rc = pagecache_agree(&c, bytes, &e);
	assert_false(cached);
	(void)munmap(map, (size_t)PAGES * PAGE);
	return rc;
}

static uint64_t
agree(enum pagecache_right right, unsigned pages)
{
	uint64_t bytes;

	assert_int_equal(agree_as(right, pages, &bytes), 0);
	return bytes;
}

static int
begin(void **state)
{
	(void)state;
	memory = memfd_create("pool", MFD_CLOEXEC);
	direct = dup(memory);
	assert_true(memory >= 0 && direct >= 0);
	assert_int_equal(ftruncate(memory, (off_t)PAGES * PAGE), 0);
	memset(media, 0, sizeof(media));
	memset(dirty, 0, sizeof(dirty));
	memset(hot, 0, sizeof(hot));
	memset(stale, 0, sizeof(stale));
	memset(refused, 0, sizeof(refused));
	cached = hidden = false;
	bad_sync = store_sync = 0;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	(void)close(memory);
	(void)close(direct);
	return 0;
}

static void
what_is_lost_is_written_or_told(void **state)
{
	(void)state;
	put(3, 1);
	put(FAR + 5, 2);
	/* This one is only not written yet. */
	put(7, 3);
	dirty[7] = true;
	assert_int_equal(agree(PAGECACHE_EITHER, 1024), 2 * PAGE);
	assert_int_equal(written, 0);
	assert_int_equal(media[3] | media[FAR + 5], 0);
	assert_int_equal(media[7], 3);
	assert_int_equal(agree(PAGECACHE_MEMORY, 1024), 2 * PAGE);
	assert_int_equal(written, 2);
	assert_int_equal(media[3], 1);
	assert_int_equal(media[FAR + 5], 2);
	assert_int_equal(agree(PAGECACHE_MEMORY, 1024), 0);
	put(3, 9);
	assert_int_equal(agree(PAGECACHE_MEDIA, 1024), PAGE);
	assert_int_equal(in_memory(3), 1);
}

static void
what_is_stored_meanwhile_stays(void **state)
{
	(void)state;
	put(4, 1);
	dirty[4] = hot[4] = true;
	assert_int_equal(agree(PAGECACHE_MEMORY, 1024), 0);
	assert_int_equal(agree(PAGECACHE_EITHER, 1024), 0);
	assert_int_equal(written, 0);
	assert_int_equal(in_memory(4), 3);
	/* However much that is, it does not hold up the opening, but what was not seen may be lost.
	 */
	for (unsigned i = 0; i < PAGES; i += FAR) {
		put(i, 1);
		dirty[i] = hot[i] = true;
	}
	assert_true(agree(PAGECACHE_EITHER, PAGES) > 0);
	assert_int_equal(written, 0);
	assert_true(syncs > 0 && syncs <= 64);
}

/*
 * While what was lost is on its way to the device, which takes its time. It is not taken for agreed
 * either: the device may still not have the rest of the page.
 */
static void
what_is_stored_to_a_lost_page_stays(void **state)
{
	uint64_t bytes;

	(void)state;
	for (unsigned i = 2; i < 5; i++) {
		put(i, (uint8_t)i);
		stale[i] = true;
	}
	store_sync = 2;
	assert_int_equal(agree_as(PAGECACHE_MEMORY, 64, &bytes), REPL_E_FAILED);
	assert_int_equal(written, 0);
	assert_int_equal(in_memory(3), STORED);
	assert_int_equal(in_memory(2), 2);
	assert_int_equal(in_memory(4), 4);
	store_sync = 0;
	assert_int_equal(agree(PAGECACHE_MEMORY, 64), 3 * PAGE);
	assert_int_equal(media[3], STORED);
	assert_int_equal(media[2], 2);
	assert_int_equal(media[4], 4);
}

/* However often that is tried: nobody else has it. */
static void
what_the_device_does_not_take_stays_in_memory(void **state)
{
	uint64_t bytes;

	(void)state;
	for (unsigned i = 2; i < 5; i++) {
		put(i, (uint8_t)i);
		stale[i] = true;
	}
	for (unsigned tries = 0; tries < 3; tries++) {
		/* What is dirty already is synced, then what was lost, which is then written. */
		bad_sync = tries == 0 ? 2 : tries == 2 ? 1 : 0;
		refused[3] = tries == 1;
		assert_int_equal(agree_as(PAGECACHE_MEMORY, 64, &bytes), REPL_E_IO);
		for (unsigned i = 2; i < 5; i++)
			assert_int_equal(in_memory(i), i);
		assert_int_equal(written, tries == 1);
		assert_int_equal(media[3], 0);
	}
	bad_sync = 0;
	assert_int_equal(agree(PAGECACHE_MEMORY, 64), 2 * PAGE);
	for (unsigned i = 2; i < 5; i++)
		assert_int_equal(media[i], i);
}

/* Wherever what is cached begins. */
static void
what_is_thrown_out_with_a_page_is_not_missed(void **state)
{
	(void)state;
	hidden = true;
	for (unsigned i = 1; i < 1024; i++)
		put(i, 0);
	for (unsigned i = 1; i < 1024; i += FOLIO - 1) {
		put(i, 1);
		stale[i] = true;
	}
	for (unsigned i = FAR - 6; i < FAR + 8; i++) {
		put(i, 2);
		stale[i] = true;
	}
	assert_true(agree(PAGECACHE_MEMORY, 1024) > 14 * PAGE);
	for (unsigned i = 1; i < 1024; i++)
		assert_int_equal(media[i], i >= FAR - 6 && i < FAR + 8 ? 2 : i % (FOLIO - 1) == 1);
}

/* Of a large file that nobody has touched since it was opened. */
static void
where_nothing_is_cached_no_page_is_looked_at(void **state)
{
	uint64_t range[2] = {0, PAGE}, stat[5];

	(void)state;
	if (syscall(451, memory, range, stat, 0) && errno == ENOSYS)
		skip();
	/* The first one, by which it is seen whether the kernel tells, is read by then. */
	put(0, 0);
	put(PAGES / 2, 0);
	put(PAGES - 1, 1);
	looks = 0;
	assert_int_equal(agree(PAGECACHE_MEMORY, PAGES), PAGE);
	assert_int_equal(media[PAGES - 1], 1);
	assert_int_equal(looks, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(where_nothing_is_cached_no_page_is_looked_at, begin,
						end),
		cmocka_unit_test_setup_teardown(what_is_lost_is_written_or_told, begin, end),
		cmocka_unit_test_setup_teardown(what_is_stored_meanwhile_stays, begin, end),
		cmocka_unit_test_setup_teardown(what_is_stored_to_a_lost_page_stays, begin, end),
		cmocka_unit_test_setup_teardown(what_the_device_does_not_take_stays_in_memory,
						begin, end),
		cmocka_unit_test_setup_teardown(what_is_thrown_out_with_a_page_is_not_missed, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
