/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * However many holes a file has, it is looked at no more than twice a segment for them, and who
 * waits is let breathe at each; a segment with any data is never passed over.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../librepl/src/holes.c"

#define PAGE     4096U
#define SEGMENTS 4U
#define SIZE     (SEGMENTS * (uint64_t)HOLES_SEGMENT)

static unsigned looks, told, ends_at; /* the breath that ends it; 0: none */
static unsigned quiet, quiet_most;    /* looks since a breath */

/* Instead of libc's. */
off_t
lseek(int fd, off_t off, int whence)
{
	looks++;
	quiet++;
	quiet_most = quiet > quiet_most ? quiet : quiet_most;
	return syscall(SYS_lseek, fd, off, whence);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_is_looked_at_once),
		cmocka_unit_test(what_has_data_is_found),
		cmocka_unit_test(who_waits_may_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
