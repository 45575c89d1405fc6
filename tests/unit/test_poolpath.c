/* SPDX-License-Identifier: BSD-3-Clause */
/* No name leads out of the pool directory or over a link, with openat2(2) and by hand alike. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "poolpath.h"
#include "tempdir.h"

static char dir[TEMPDIR_MAX];
static int dirfd_top;

typedef int opener(int dirfd, const char *path, int flags, mode_t mode);

static opener *const openers[] = {path_open, path_open_by_hand};

static void
touch(const char *name)
{
	int fd = openat(dirfd_top, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

/* pools/ is the top; beside it lies what must not be reached. */
static int
setup(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir("pools", 0700), 0);
	assert_int_equal(mkdir("outside", 0700), 0);
	assert_int_equal(close(open("outside/secret", O_CREAT | O_WRONLY, 0600)), 0);
	dirfd_top = open("pools", O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(dirfd_top, "eu", 0700), 0);
	assert_int_equal(mkdirat(dirfd_top, "eu/west", 0700), 0);
	touch("plain");
	touch("eu/west/pool");
	assert_int_equal(symlinkat("../outside/secret", dirfd_top, "out"), 0);
	assert_int_equal(symlinkat("../outside", dirfd_top, "outdir"), 0);
	assert_int_equal(symlinkat("eu", dirfd_top, "indir"), 0);
	assert_int_equal(symlinkat("plain", dirfd_top, "in"), 0);
	assert_int_equal(symlinkat("nowhere", dirfd_top, "dangling"), 0);
	assert_int_equal(mkfifoat(dirfd_top, "fifo", 0600), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	(void)close(dirfd_top);
	assert_int_equal(chdir("/"), 0);
	tempdir_free(dir);
	return 0;
}

struct row {
	const char *path;
	int flags;
	int errnum; /* 0: opens */
};

static const struct row rows[] = {
	{"plain", O_RDONLY, 0},
	{"eu/west/pool", O_RDWR, 0},
	{"eu/west", O_RDONLY | O_DIRECTORY, 0},
	{".", O_RDONLY | O_DIRECTORY, 0},
	{"fifo", O_RDONLY, 0}, /* at once: nobody writes to it */
	{"absent", O_RDONLY, ENOENT},
	{"eu/absent/pool", O_RDONLY, ENOENT},
	{"", O_RDONLY, ENOENT},
	{"plain/pool", O_RDONLY, ENOTDIR},
	{"plain", O_RDONLY | O_DIRECTORY, ENOTDIR},
	{"../outside/secret", O_RDONLY, EXDEV},
	{"eu/../../outside/secret", O_RDONLY, EXDEV},
	{"..", O_RDONLY, EXDEV},
	{"/etc/passwd", O_RDONLY, EXDEV},
	{"/", O_RDONLY, EXDEV},
	{"out", O_RDONLY, ELOOP},
	{"out", O_RDWR | O_CREAT, ELOOP},
	{"outdir/secret", O_RDONLY, ELOOP},
	{"outdir", O_RDONLY | O_DIRECTORY, ELOOP},
	{"indir/west/pool", O_RDONLY, ELOOP},
	{"in", O_RDONLY, ELOOP},
	{"dangling", O_RDONLY, ELOOP},
	{"dangling", O_RDWR | O_CREAT, ELOOP},
};

static void
both_ways_of_opening_agree(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 2; way++) {
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			int fd = openers[way](dirfd_top, rows[i].path, rows[i].flags, 0600);

			if ((fd >= 0) != !rows[i].errnum || (fd < 0 && errno != rows[i].errnum))
				fail_msg("way %u, '%s': %s", way, rows[i].path,
					 fd >= 0 ? "opened" : strerror(errno));
			if (fd >= 0) {
				assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
				(void)close(fd);
			}
		}
	}
}

static void
opening_leaks_no_descriptor(void **state)
{
	int before = dup(dirfd_top), after;

	(void)state;
	(void)close(before);
	for (unsigned way = 0; way < 2; way++)
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			(void)close(openers[way](dirfd_top, rows[i].path, rows[i].flags, 0600));
	after = dup(dirfd_top);
	(void)close(after);
	assert_int_equal(after, before);
}

static void
refused(const char *name, bool make, int code, const char *text)
{
	struct pool_place p;
	struct err e;

	err_clear(&e);
	assert_int_equal(pool_place_open(dirfd_top, name, make, &p, &e), code);
	assert_int_equal(p.dir, -1);
	if (!strstr(e.text, text))
		fail_msg("'%s' lacks '%s'", e.text, text);
}

static void
places_are_refused_with_the_reason(void **state)
{
	(void)state;
	refused("", true, REPL_E_INVAL, "");
	refused("../outside/secret", true, REPL_E_INVAL, "");
	refused("/etc/passwd", true, REPL_E_INVAL, "");
	refused(".repld/x", true, REPL_E_INVAL, "");
	refused("outdir/pool", true, REPL_E_REFUSED, "'outdir' is a symbolic link");
	refused("indir/pool", false, REPL_E_REFUSED, "symbolic link");
	refused("plain/pool", true, REPL_E_REFUSED, "'plain' is not a directory");
	refused("absent/pool", false, REPL_E_NOT_FOUND, "not found");
}

static void
made_directories_are_private_and_go_when_empty(void **state)
{
	struct pool_place p;
	struct stat st;

	(void)state;
	assert_int_equal(pool_place_open(dirfd_top, "eu/n1/n2/pool", true, &p, NULL), 0);
	assert_string_equal(p.leaf, "pool");
	assert_string_equal(p.sidecar, "pool.repl");
	pool_place_close(&p);
	assert_int_equal(fstatat(dirfd_top, "eu/n1/n2", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	pool_place_prune(dirfd_top, "eu/n1/n2/pool");
	assert_int_equal(fstatat(dirfd_top, "eu/n1", &st, 0), -1);
	assert_int_equal(fstatat(dirfd_top, "eu/west", &st, 0), 0);
}

static int
count_visit(void *ctx, int at, const char *leaf, const char *name)
{
	struct stat a, b;

	assert_int_equal(fstatat(at, leaf, &a, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(fstatat(dirfd_top, name, &b, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(a.st_ino == b.st_ino);
	(*(unsigned *)ctx)++;
	return 0;
}

struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);

static bool types_are_unknown;

/* As of a file system that has no types in its directories. */
struct dirent *
__wrap_readdir(DIR *d)
{
	struct dirent *entry = __real_readdir(d);

	if (entry && types_are_unknown)
		entry->d_type = DT_UNKNOWN;
	return entry;
}

static void
walk_sees_regular_files_beneath_only(void **state)
{
	unsigned count = 0;

	(void)state;
	assert_int_equal(mkdirat(dirfd_top, ".repld", 0700), 0);
	touch(".repld/1.json");
	assert_int_equal(pool_walk(dirfd_top, count_visit, &count, NULL), 0);
	assert_int_equal(count, 2); /* plain and eu/west/pool */
	types_are_unknown = true;
	assert_int_equal(pool_walk(dirfd_top, count_visit, &count, NULL), 0);
	types_are_unknown = false;
	assert_int_equal(count, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_of_opening_agree),
		cmocka_unit_test(opening_leaks_no_descriptor),
		cmocka_unit_test(places_are_refused_with_the_reason),
		cmocka_unit_test(made_directories_are_private_and_go_when_empty),
		cmocka_unit_test(walk_sees_regular_files_beneath_only),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
