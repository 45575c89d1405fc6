/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sync has lost is written past the cache, or told where others may store; what is stored
 * meanwhile is no loss, and nothing is written over it.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pagecache.h"

#define PAGE  4096U
#define PAGES 65536U
#define FAR   256U /* pages that are read at once */

/* ---- a disk behind another descriptor ---- */

static int memory = -1, direct = -1;
static uint8_t media[PAGES]; /* the first byte of each page */
static bool dirty[PAGES], hot[PAGES];
static unsigned syncs, written;

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

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	assert_int_equal(fd, direct);
	assert_int_equal(len, PAGE);
	media[off / PAGE] = *(const uint8_t *)buf;
	written++;
	return syscall(SYS_pwrite64, memory, buf, len, off);
}

int
fdatasync(int fd)
{
	assert_int_equal(fd, direct);
	syncs++;
	for (unsigned i = 0; i < PAGES; i++) {
		if (dirty[i])
			media[i] = in_memory(i);
		dirty[i] = hot[i];
		if (hot[i])
			put(i, (uint8_t)(media[i] + 1));
	}
	return 0;
}

static uint64_t
agree(enum pagecache_right right, unsigned pages)
{
	struct pagecache c = {
		.fd = memory, .direct = direct, .size = (uint64_t)pages * PAGE, .right = right};
	void *map = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ, MAP_SHARED, memory, 0);
	uint64_t bytes = 0;
	struct err e;

	assert_ptr_not_equal(map, MAP_FAILED);
	c.map = map;
	syncs = written = 0;
	err_clear(&e);
	assert_int_equal(pagecache_agree(&c, &bytes, &e), 0);
	(void)munmap(map, (size_t)PAGES * PAGE);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_lost_is_written_or_told, begin, end),
		cmocka_unit_test_setup_teardown(what_is_stored_meanwhile_stays, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
