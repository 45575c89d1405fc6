/* SPDX-License-Identifier: BSD-3-Clause */
/* What is called a hole reads as zeros. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "extents.h"

#define SIZE (1U << 20)

static unsigned ends;  /* of data that were looked for */
static long magic;     /* of the file system where it is played; 0: it is the real one */
static bool sees_none; /* of the data, since they are in memory alone */

/* Instead of libc's. */
off_t
lseek(int fd, off_t off, int whence)
{
	ends += whence == SEEK_HOLE;
	if (sees_none && whence == SEEK_DATA) {
		errno = ENXIO;
		return -1;
	}
	return sees_none ? off : syscall(SYS_lseek, fd, off, whence);
}

int
fstatfs(int fd, struct statfs *fs)
{
	int ret = (int)syscall(SYS_fstatfs, fd, fs);

	if (magic)
		fs->f_type = magic;
	return ret;
}

static int
temp_file(void)
{
	char path[] = "/tmp/repl-extents-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	(void)unlink(path);
	/* Whatever it is. */
	magic = EXT4_SUPER_MAGIC;
	assert_int_equal(ftruncate(fd, SIZE), 0);
	return fd;
}

static void
runs_of_data_are_found(void **state)
{
	int fd = temp_file();
	struct range r;

	(void)state;
	assert_int_equal(extents_next(fd, 0, SIZE).len, 0);
	assert_int_equal(pwrite(fd, "x", 1, 300000), 1);
	r = extents_next(fd, 0, SIZE);
	assert_true(r.off <= 300000 && r.off + r.len > 300000 && r.len < SIZE);
	assert_int_equal(extents_next(fd, r.off + r.len, SIZE).len, 0);
	assert_int_equal(extents_next(fd, SIZE, SIZE).len, 0);
	assert_int_equal(extents_next(fd, 0, 100000).len, 0);
	/* Of no file all is data. */
	r = extents_next(-1, 4096, SIZE);
	assert_true(r.off == 4096 && r.len == SIZE - 4096);
	(void)close(fd);
}

static void
holes_are_zeros(void **state)
{
	static const uint8_t key[HASH_KEY_SIZE] = "a key";
	uint8_t *buf = malloc(SIZE), zero[HASH128_SIZE], hash[HASH128_SIZE];
	unsigned holes = 0;
	struct hash_key k;
	struct extents x;
	int fd = temp_file();

	(void)state;
	hash_key_set(&k, key);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(pwrite(fd, "data", 4, (unsigned)rand() % (SIZE - 4)), 4);
	assert_int_equal(pread(fd, buf, SIZE, 0), SIZE);
	extents_init(&x, fd, SIZE);
	extents_hash_zeros(&x, &k, 8192, zero);
	for (uint64_t off = 0; off < SIZE; off += 4096) {
		hash128_keyed(&k, buf + off, 4096, hash);
		if (extents_hole(&x, off, 4096)) {
			extents_hash_zeros(&x, &k, 4096, zero);
			assert_memory_equal(hash, zero, sizeof(hash));
			holes++;
		}
	}
	assert_true(holes > 0);
	/* Backwards as well. */
	for (uint64_t off = SIZE; off > 0; off -= 4096) {
		hash128_keyed(&k, buf + off - 4096, 4096, hash);
		if (extents_hole(&x, off - 4096, 4096))
			assert_memory_equal(hash, zero, sizeof(hash));
	}
	extents_init(&x, -1, SIZE);
	assert_false(extents_hole(&x, 0, 4096));
	free(buf);
	(void)close(fd);
}

/* A request for the hash of a block took as long as the pool was large: the kernel walked it. */
static void
asking_for_a_range_walks_no_data(void **state)
{
	int fd = temp_file();
	struct extents x;

	(void)state;
	for (unsigned off = 0; off < SIZE; off += 4096)
		assert_int_equal(pwrite(fd, "x", 1, off), 1);
	extents_init(&x, fd, SIZE);
	ends = 0;
	for (unsigned off = 0; off < SIZE; off += 65536)
		assert_false(extents_hole(&x, off, 65536));
	assert_int_equal(ends, 0);
	(void)close(fd);
}

/*
 * Over FUSE the holes are those of who serves the file, and what a program has stored into one is
 * not with him yet: no hole of such a file is believed, nor of one of which that is not known.
 */
static void
only_who_has_the_pages_is_asked_for_holes(void **state)
{
	static const struct {
		long magic;
		bool asked;
	} cases[] = {{TMPFS_MAGIC, true},       {EXT4_SUPER_MAGIC, true},
		     {XFS_SUPER_MAGIC, true},   {BTRFS_SUPER_MAGIC, true},
		     {F2FS_SUPER_MAGIC, true},  {NFS_SUPER_MAGIC, true},
		     {FUSE_SUPER_MAGIC, false}, {OVERLAYFS_SUPER_MAGIC, false},
		     {V9FS_MAGIC, false},       {0x1234, false}};
	int fd = temp_file();

	(void)state;
	sees_none = true;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct extents x;
		struct range r;

		magic = cases[i].magic;
		r = extents_next(fd, 4096, SIZE);
		assert_int_equal(r.len, cases[i].asked ? 0 : SIZE - 4096);
		assert_int_equal(r.off, cases[i].asked ? 0 : 4096);
		extents_init(&x, fd, SIZE);
		assert_int_equal(extents_hole(&x, 0, 4096), cases[i].asked);
	}
	sees_none = false;
	(void)close(fd);
}

/* What has no page can't be touched, and what has one can; who asks does not die of it. */
static void
holes_of_memory_are_known(void **state)
{
	int fd = memfd_create("extents", MFD_CLOEXEC);
	uint8_t *p;

	(void)state;
	magic = 0;
	assert_true(fd >= 0 && ftruncate(fd, SIZE) == 0);
	assert_true(extents_fill(fd));
	assert_false(extents_fill(-1));
	assert_int_equal(fallocate(fd, 0, 0, SIZE), 0);
	assert_false(extents_fill(fd));
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_true(extents_touch(p + 100, SIZE - 100));
	/* Behind the end of a file it is as where there is no space. */
	assert_int_equal(ftruncate(fd, SIZE / 2), 0);
	assert_true(extents_touch(p + 100, SIZE / 2 - 100));
	if (madvise(p + SIZE / 2, 4096, MADV_POPULATE_READ) == 0 || errno == EFAULT)
		assert_false(extents_touch(p + 100, SIZE / 2));
	(void)munmap(p, SIZE);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_of_data_are_found),
		cmocka_unit_test(holes_are_zeros),
		cmocka_unit_test(asking_for_a_range_walks_no_data),
		cmocka_unit_test(only_who_has_the_pages_is_asked_for_holes),
		cmocka_unit_test(holes_of_memory_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
