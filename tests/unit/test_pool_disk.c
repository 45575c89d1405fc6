/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk under the pool directory that fails is told as that, and nothing is taken for right. */
#include "unit.h"

#include <sys/syscall.h>

#include "pool_world.h"

#define SIZE (16U * 4096)

static const char *unread; /* the file that can't be read */

/* In place of libc's. */
ssize_t
pread(int fd, void *buf, size_t len, off_t off)
{
	struct stat st, is;

	if (unread && fstatat(pool_store_dirfd(store), unread, &st, 0) == 0 &&
	    fstat(fd, &is) == 0 && st.st_ino == is.st_ino) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, len, off);
}

static int
setup(void **state)
{
	(void)state;
	unread = NULL;
	return world_new(0, SIZE);
}

static void
sidecar_that_can_not_be_read_is_not_damaged(void **state)
{
	struct pool_info infos[2];
	struct pool *p = NULL;
	unsigned count;
	bool more;

	(void)state;
	unread = "p.repl";
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), REPL_E_IO);
	assert_non_null(strstr(err.text, strerror(EIO)));
	assert_null(strstr(err.text, "remove"));
	assert_int_equal(pool_info(store, "p", &info, &err), REPL_E_IO);
	assert_null(strstr(err.text, "remove"));
	assert_int_equal(pool_list(store, NULL, infos, 2, &count, &more, &err), 0);
	assert_int_equal(count, 1);
	assert_int_equal(infos[0].damage_code, REPL_E_IO);
	unread = NULL;
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_free)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(sidecar_that_can_not_be_read_is_not_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
