/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * However many holes a file has, it is looked at no more than twice a segment for them, and who
 * waits is let breathe at each; a segment with any data is never passed over. Descriptors that a
 * lock of the program's keeps from being closed do not become more. Whether a range is blank is
 * looked for in what can be read: what can't is no zeros, and no signal.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../librepl/src/holes.c"
#include "../../librepl/src/localmem.c"

#define PAGE     4096U
#define SEGMENTS 4U
#define SIZE     (SEGMENTS * (uint64_t)HOLES_SEGMENT)
#define BLANK    (64 * PAGE)

static unsigned looks, told, ends_at; /* the breath that ends it; 0: none */
static unsigned quiet, quiet_most;    /* looks since a breath */
static unsigned forks;

/* Instead of libc's. */
off_t
lseek(int fd, off_t off, int whence)
{
	looks++;
	quiet++;
	quiet_most = quiet > quiet_most ? quiet : quiet_most;
	return syscall(SYS_lseek, fd, off, whence);
}

unsigned
forks_count(void)
{
	return forks;
}

/* The replica is one hole. */
int
remote_call(struct remote *r, const char *method, struct json_object *params,
	    struct json_object **result, struct err *e)
{
	(void)r;
	(void)e;
	assert_string_equal(method, "pool.extents");
	json_object_put(params);
	*result = json_object_new_object();
	control_add(*result, "extents", json_object_new_array());
	control_add(*result, "next", json_object_new_int64(INT64_MAX));
	return 0;
}

static int
tell(void *arg, struct err *e)
{
	(void)arg;
	quiet = 0;
	return ++told == ends_at ? err_set(e, REPL_E_LOST, "ended") : 0;
}

static int
find(struct holes *h, int fd)
{
	struct err e;

	err_clear(&e);
	*h = (struct holes){.tell = tell};
	looks = told = quiet = quiet_most = 0;
	return holes_find(h, NULL, fd, SIZE, &e);
}

static int
file_new(void)
{
	int fd = memfd_create("holes", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)SIZE), 0);
	return fd;
}

static void
page_put(int fd, uint64_t off)
{
	assert_int_equal(pwrite(fd, "x", 1, (off_t)off), 1);
}

static void
a_segment_is_looked_at_once(void **state)
{
	int fd = file_new();
	struct holes h;

	(void)state;
	for (uint64_t off = 0; off < SIZE; off += 2 * PAGE)
		page_put(fd, off);
	assert_int_equal(find(&h, fd), 0);
	assert_true(looks <= 2 * (SEGMENTS + 1));
	assert_true(told >= SEGMENTS);
	assert_true(quiet_most <= 4);
	for (uint64_t off = 0; off < SIZE; off += HOLES_SEGMENT)
		assert_int_equal(holes_next(&h, off), off);
	holes_fini(&h);
	(void)close(fd);
}

/* Its first page, one in the middle, its last, and what goes on in the next. */
static void
what_has_data_is_found(void **state)
{
	const uint64_t at[] = {0, HOLES_SEGMENT / 2, HOLES_SEGMENT - PAGE};

	(void)state;
	for (unsigned set = 0; set < 1U << SEGMENTS; set++) {
		for (unsigned i = 0; i < 3; i++) {
			int fd = file_new();
			struct holes h;

			for (unsigned s = 0; s < SEGMENTS; s++)
				if (set >> s & 1)
					page_put(fd, s * (uint64_t)HOLES_SEGMENT + at[i]);
			assert_int_equal(find(&h, fd), 0);
			for (unsigned s = 0; s < SEGMENTS; s++) {
				uint64_t off = s * (uint64_t)HOLES_SEGMENT;

				assert_int_equal(holes_next(&h, off) == off, set >> s & 1);
			}
			holes_fini(&h);
			(void)close(fd);
		}
	}
}

static void
who_waits_may_end_it(void **state)
{
	int fd = file_new();
	struct holes h;

	(void)state;
	for (unsigned s = 0; s < SEGMENTS; s++)
		page_put(fd, s * (uint64_t)HOLES_SEGMENT);
	ends_at = 2;
	assert_int_equal(find(&h, fd), REPL_E_LOST);
	assert_int_equal(told, 2);
	assert_true(looks <= 4 * 2);
	ends_at = 0;
	holes_fini(&h);
	(void)close(fd);
}

static void
lock(int fd, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET};

	assert_int_equal(fcntl(fd, F_SETLK, &l), 0);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void
file_end(int fd, bool forked)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	holes_end(st.st_dev, st.st_ino, forked);
}

/* A program that locks its file while it is looked at keeps its lock, and gets one descriptor. */
static void
what_is_not_closed_is_used_again(void **state)
{
	char path[] = "/tmp/test_holes.XXXXXX", other_path[] = "/tmp/test_holes.XXXXXX";
	int mine = mkstemp(path), other = mkstemp(other_path), fd = -1, first = -1;
	void *mem, *other_mem;

	(void)state;
	assert_true(mine >= 0 && other >= 0);
	assert_int_equal(ftruncate(mine, PAGE) | ftruncate(other, PAGE), 0);
	mem = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, mine, 0);
	other_mem = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, other, 0);
	assert_true(mem != MAP_FAILED && other_mem != MAP_FAILED);
	for (unsigned i = 0; i < 2 * UNCLOSED_MAX; i++) {
		fd = holes_open(path, mem);
		assert_true(fd >= 0);
		first = i == 0 ? fd : first;
		assert_int_equal(fd, first);
		if (i % 3 == 0)
			lock(mine, F_WRLCK);
		holes_close(fd);
		assert_true(is_open(fd));
		if (i % 3 == 1)
			lock(mine, F_UNLCK);
	}
	/* Nobody else's, and closed at the end, when it may be. */
	fd = holes_open(other_path, other_mem);
	assert_true(fd >= 0 && fd != first);
	holes_close(fd);
	file_end(other, false);
	assert_false(is_open(fd));
	lock(mine, F_WRLCK);
	file_end(mine, false);
	assert_true(is_open(first));
	assert_int_equal(holes_open(path, mem), first);
	/* In a child the number may be of a file of the program's, but where it gives up its
	 * parent's. */
	holes_close(first);
	forks++;
	assert_int_equal(holes_open(path, mem), -1);
	lock(mine, F_UNLCK);
	fd = holes_open(path, mem);
	assert_true(fd >= 0 && fd != first);
	holes_close(fd);
	file_end(mine, false);
	assert_false(is_open(fd));
	assert_true(is_open(first));
	file_end(mine, true);
	assert_false(is_open(first));
	assert_int_equal(munmap(mem, PAGE) | munmap(other_mem, PAGE), 0);
	assert_int_equal(close(mine) | close(other), 0);
	assert_int_equal(unlink(path) | unlink(other_path), 0);
}

/* One that knows its file, as where a lock keeps it from being looked at, and one without. */
static void
expect_blank(bool is, const char *path, const uint8_t *mem)
{
	assert_int_equal(holes_blank(path, mem, BLANK), is);
	assert_int_equal(holes_blank(NULL, mem, BLANK), is);
}

static void
what_cant_be_read_is_not_blank(void **state)
{
	char path[] = "/tmp/test_holes.XXXXXX";
	int fd = mkstemp(path);
	uint8_t *mem;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BLANK), 0);
	mem = mmap(NULL, BLANK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	expect_blank(true, path, mem);
	for (unsigned i = 0; i < 3; i++) {
		const size_t at = (size_t[]){0, BLANK / 2 + 1, BLANK - 1}[i];
		uint8_t *page = mem + at / PAGE * PAGE;

		mem[at] = 1;
		expect_blank(false, path, mem);
		mem[at] = 0;
		expect_blank(true, path, mem);
		assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
		expect_blank(false, path, mem);
		assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	}
	file_end(fd, false);
	lock(fd, F_WRLCK);
	expect_blank(true, path, mem);
	/* Behind the end of the file a page is there and raises SIGBUS. */
	assert_int_equal(ftruncate(fd, BLANK - PAGE), 0);
	expect_blank(false, path, mem);
	assert_int_equal(munmap(mem, BLANK) | close(fd) | unlink(path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_is_looked_at_once),
		cmocka_unit_test(what_has_data_is_found),
		cmocka_unit_test(who_waits_may_end_it),
		cmocka_unit_test(what_is_not_closed_is_used_again),
		cmocka_unit_test(what_cant_be_read_is_not_blank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
