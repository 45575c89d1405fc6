/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry tells of live sessions only, and holds their number to the limit. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "registry.h"
#include "tempdir.h"

#define MANY 200
#define FEW  32

static char dir[TEMPDIR_MAX];
static int pools;
static unsigned untold; /* of the last list */
static bool disk_full;  /* nothing gets space that it has not */

/* In the place of libc's. */
int
posix_fallocate(int fd, off_t off, off_t len)
{
	if (disk_full)
		return ENOSPC;
	return fallocate(fd, 0, off, len) == 0 ? 0 : errno;
}

ssize_t
write(int fd, const void *buf, size_t len)
{
	off_t at = disk_full ? lseek(fd, 0, SEEK_CUR) : -1;
	struct stat st;

	if (at >= 0 && fstat(fd, &st) == 0 && at + (off_t)len > st.st_blocks * 512) {
		errno = ENOSPC;
		return -1;
	}
	return (ssize_t)syscall(SYS_write, fd, buf, len);
}

static unsigned looks; /* how often it was asked whether something is locked */

int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	looks += cmd == F_OFD_GETLK;
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

static uint32_t chance; /* what comes next, the same at each run */

ssize_t
getrandom(void *buf, size_t len, unsigned flags)
{
	uint32_t *out = buf;

	(void)flags;
	for (size_t i = 0; i < len / sizeof(*out); i++)
		out[i] = (chance = chance * 1664525U + 1013904223U) >> 16;
	return (ssize_t)len;
}

static time_t wall;     /* what the wall clock says; 0: what it does */
static time_t passed_s; /* more than has */

time_t
time(time_t *out)
{
	struct timespec now = {.tv_sec = wall};

	if (!wall)
		(void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	if (rc == 0 && clock == CLOCK_MONOTONIC)
		t->tv_sec += passed_s;
	return rc;
}

static int
setup(void **state)
{
	(void)state;
	disk_full = false;
	wall = passed_s = 0;
	assert_int_equal(tempdir_new(dir, 0), 0);
	pools = open(dir, O_RDONLY | O_DIRECTORY);
	return pools < 0;
}

static int
teardown(void **state)
{
	(void)state;
	(void)close(pools);
	tempdir_free(dir);
	return 0;
}

static void
put_entry(struct registry *r, int n)
{
	struct json_object *o = json_object_new_object();
	char entry[REGISTRY_ENTRY_SIZE];
	struct err e;

	assert_int_equal(json_object_object_add(o, "n", json_object_new_int(n)), 0);
	assert_int_equal(registry_entry(o, entry, &e), 0);
	assert_int_equal(registry_update(r, entry, &e), 0);
	json_object_put(o);
}

/* The sum of the entries' n, and their count in thousands. */
static int
listed(void)
{
	struct json_object *list, *n;
	struct err e;
	int sum = 0;

	assert_int_equal(registry_list(pools, &list, &untold, &e), 0);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		assert_true(json_object_object_get_ex(json_object_array_get_idx(list, i), "n", &n));
		sum += 1000 + json_object_get_int(n);
	}
	json_object_put(list);
	return sum;
}

/* But the file of the slots, which stays. */
static unsigned
file_count(void)
{
	char command[TEMPDIR_MAX + 48];
	unsigned count = 0;
	FILE *f;

	(void)snprintf(command, sizeof(command), "ls -A %s/.repld | grep -vxc sessions", dir);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &count), 1);
	(void)pclose(f);
	return count;
}

static void
entries_come_change_and_go(void **state)
{
	struct registry *a = NULL, *b = NULL;
	struct err e;

	(void)state;
	assert_int_equal(listed(), 0);
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	assert_int_equal(listed(), 0);
	put_entry(a, 1);
	assert_int_equal(registry_join(pools, 4, &b, &e), 0);
	put_entry(b, 20);
	assert_int_equal(listed(), 2021);
	put_entry(a, 300);
	assert_int_equal(listed(), 2320);
	registry_leave(a);
	assert_int_equal(listed(), 1020);
	registry_leave(b);
	assert_int_equal(listed(), 0);
	assert_int_equal(file_count(), 0);
	registry_leave(NULL);
}

/* Also one that has no entry, and no space for one. */
static void
a_session_is_known_by_its_process(void **state)
{
	struct registry *a = NULL;
	struct err e;
	int pipes[2];
	pid_t pid;
	char c;

	(void)state;
	assert_false(registry_has_process(pools, getpid()));
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		disk_full = true;
		if (registry_join(pools, 4, &a, &e) || (syscall(SYS_write, pipes[1], "x", 1) != 1))
			_exit(1);
		(void)alarm(60);
		for (;;)
			(void)pause();
	}
	(void)close(pipes[1]);
	assert_int_equal(read(pipes[0], &c, 1), 1);
	(void)close(pipes[0]);
	assert_true(registry_has_process(pools, pid));
	assert_false(registry_has_process(pools, pid + 1) || registry_has_process(pools, pid - 1));
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	registry_leave(a);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(registry_has_process(pools, pid));
}

static void
limit_counts_live_sessions(void **state)
{
	struct registry *a = NULL, *b = NULL, *c = NULL;
	struct err e;

	(void)state;
	assert_int_equal(registry_join(pools, 2, &a, &e), 0);
	assert_int_equal(registry_join(pools, 2, &b, &e), 0);
	assert_int_equal(registry_join(pools, 2, &c, &e), REPL_E_LIMIT);
	assert_null(c);
	assert_non_null(strstr(e.text, "sessions-max is 2"));
	registry_leave(a);
	assert_int_equal(registry_join(pools, 2, &c, &e), 0);
	registry_leave(b);
	registry_leave(c);
}

/* A child joins and is killed. */
static void
kill_a_session(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct registry *r = NULL;

		if (registry_join(pools, 64, &r, NULL) == 0)
			put_entry(r, 7);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void
dead_sessions_are_removed(void **state)
{
	struct registry *a = NULL;
	struct err e;

	(void)state;
	kill_a_session();
	assert_int_equal(file_count(), 2);
	assert_int_equal(registry_join(pools, 1, &a, &e), 0);
	put_entry(a, 5);
	assert_int_equal(file_count(), 2);
	kill_a_session();
	assert_int_equal(listed(), 1005);
	assert_int_equal(file_count(), 2);
	registry_leave(a);
	/* Where nobody is left it needs no list. */
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	kill_a_session();
	registry_leave(a);
	assert_int_equal(file_count(), 2);
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	registry_leave(a);
	assert_int_equal(file_count(), 0);
}

static void
overwrite(const char *suffix, const char *text, size_t len)
{
	char command[2 * TEMPDIR_MAX], path[2 * TEMPDIR_MAX];
	FILE *f;

	(void)snprintf(command, sizeof(command), "ls %s/.repld/*%s", dir, suffix);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%127s", path), 1);
	(void)pclose(f);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	(void)fclose(f);
}

/* What is no entry is passed over, however it looks. */
static void
garbage_is_no_entry(void **state)
{
	static char big[100000];
	static const char *const texts[] = {"", "{", "[1]", "{\"n\":", "null", "\xff\xfe"};
	static const char *const strange[] = {".repld/01.json", ".repld/-1.json", ".repld/x.json",
					      ".repld/99999.json", ".repld/7.jsonx"};
	struct registry *a = NULL;
	struct err e;

	(void)state;
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	put_entry(a, 1);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		overwrite(".json", texts[i], strlen(texts[i]));
		assert_int_equal(listed(), 0);
	}
	memset(big, '[', sizeof(big));
	overwrite(".json", big, sizeof(big));
	assert_int_equal(listed(), 0);
	put_entry(a, 2);
	assert_int_equal(mkdirat(pools, ".repld/1.json", 0700), 0);
	assert_int_equal(mkfifoat(pools, ".repld/2.json", 0600), 0);
	assert_int_equal(symlinkat("/etc/passwd", pools, ".repld/3.json"), 0);
	for (unsigned i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		assert_int_equal(symlinkat("/etc/passwd", pools, strange[i]), 0);
	assert_int_equal(listed(), 1002);
	assert_int_equal(file_count(), 3 + sizeof(strange) / sizeof(strange[0]));
	registry_leave(a);
}

static void
too_large_an_entry_is_refused(void **state)
{
	static char big[20000];
	char entry[REGISTRY_ENTRY_SIZE];
	struct json_object *o;
	struct err e;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	o = json_object_new_string(big);
	assert_int_equal(registry_entry(o, entry, &e), REPL_E_INVAL);
	json_object_put(o);
}

/* A session keeps telling of itself, and one that can't is counted, though not at once. */
static void
a_full_disk_hides_no_session(void **state)
{
	struct registry *a = NULL, *b = NULL;
	struct json_object *o = json_object_new_object();
	char entry[REGISTRY_ENTRY_SIZE];
	struct err e;
	int slots;

	(void)state;
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	disk_full = true;
	for (int n = 1; n <= 4; n++) {
		put_entry(a, n);
		assert_int_equal(listed(), 1000 + n);
	}
	assert_int_equal(untold, 0);
	assert_int_equal(registry_join(pools, 4, &b, &e), 0);
	assert_int_equal(json_object_object_add(o, "n", json_object_new_int(9)), 0);
	assert_int_equal(registry_entry(o, entry, &e), 0);
	err_clear(&e);
	assert_int_equal(registry_update(b, entry, &e), REPL_E_NOSPC);
	assert_int_equal(listed(), 1004);
	assert_int_equal(untold, 0);
	slots = openat(pools, ".repld/sessions", O_RDWR);
	assert_int_equal(pwrite(slots, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 0), 16);
	(void)close(slots);
	assert_int_equal(listed(), 1004);
	assert_int_equal(untold, 1);
	disk_full = false;
	assert_int_equal(registry_update(b, entry, &e), 0);
	assert_int_equal(listed(), 2013);
	assert_int_equal(untold, 0);
	json_object_put(o);
	registry_leave(a);
	registry_leave(b);
	assert_int_equal(file_count(), 0);
}

/* One that has told nothing is counted when its time is over, whatever the wall clock says. */
static void
a_clock_that_steps_hides_no_session(void **state)
{
	struct registry *a = NULL;
	struct err e;

	(void)state;
	wall = 4102444800;
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	assert_int_equal(listed(), 0);
	assert_int_equal(untold, 0);
	wall = 1;
	assert_int_equal(listed(), 0);
	assert_int_equal(untold, 0);
	passed_s = 10;
	assert_int_equal(listed(), 0);
	assert_int_equal(untold, 1);
	registry_leave(a);
}

/* Who has the lock waits for the disk: no other writer is in the way. */
static void
a_disk_that_stalls_is_no_other_writer(void **state)
{
	struct registry *a = NULL, *b = NULL;
	struct err e;
	int fd;

	(void)state;
	assert_int_equal(registry_join(pools, 4, &a, &e), 0);
	fd = openat(pools, ".repld", O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	err_clear(&e);
	assert_int_equal(registry_join(pools, 4, &b, &e), REPL_E_TIMEOUT);
	assert_int_equal(e.reason, REPL_REASON_TARGET_IO);
	assert_null(b);
	(void)close(fd);
	assert_int_equal(registry_join(pools, 4, &b, &e), 0);
	registry_leave(a);
	registry_leave(b);
}

/*
 * Each look walks all locks there are, under the directory's lock: among many sessions one joins
 * with few of them, and is listed with one a session. The limit stays exact, a lowered one too.
 */
static void
many_sessions_are_joined_by_few_looks(void **state)
{
	struct registry *r[MANY], *more = NULL;
	struct err e;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		looks = 0;
		assert_int_equal(registry_join(pools, MANY, &r[i], &e), 0);
		assert_true(looks <= FEW);
		put_entry(r[i], 1);
	}
	looks = 0;
	assert_int_equal(listed(), MANY * 1001);
	assert_true(looks <= MANY + FEW);
	looks = 0;
	assert_int_equal(registry_join(pools, MANY, &more, &e), REPL_E_LIMIT);
	assert_true(looks <= MANY + FEW);
	registry_leave(r[5]);
	registry_leave(r[MANY - 2]);
	assert_int_equal(registry_join(pools, MANY - 2, &more, &e), REPL_E_LIMIT);
	assert_non_null(strstr(e.text, "198 sessions are open and sessions-max is 198"));
	assert_int_equal(registry_join(pools, 9, &more, &e), REPL_E_LIMIT);
	assert_non_null(strstr(e.text, "198 sessions are open and sessions-max is 9"));
	assert_int_equal(registry_join(pools, MANY - 1, &r[5], &e), 0);
	assert_int_equal(registry_join(pools, MANY, &r[MANY - 2], &e), 0);
	assert_int_equal(registry_join(pools, MANY, &more, &e), REPL_E_LIMIT);
	put_entry(r[5], 1);
	put_entry(r[MANY - 2], 1);
	assert_int_equal(listed(), MANY * 1001);
	for (unsigned i = 0; i < MANY; i++)
		registry_leave(r[i]);
	assert_int_equal(file_count(), 0);
}

/* ... also when the last slot is a session's that stays, and others have gone. */
static void
slots_that_are_free_are_found_by_few_looks(void **state)
{
	struct registry *r[MANY], *more = NULL;
	struct err e;

	(void)state;
	chance = 1;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(registry_join(pools, MANY, &r[i], &e), 0);
	for (unsigned i = 0; i < MANY; i += 2)
		registry_leave(r[i]);
	for (unsigned i = 0; i < MANY; i += 2) {
		looks = 0;
		assert_int_equal(registry_join(pools, MANY, &r[i], &e), 0);
		assert_true(looks <= (i < MANY / 2 ? FEW : MANY + FEW));
		put_entry(r[i], 1);
	}
	assert_int_equal(listed(), MANY / 2 * 1001);
	assert_int_equal(registry_join(pools, MANY, &more, &e), REPL_E_LIMIT);
	for (unsigned i = 0; i < MANY; i++)
		registry_leave(r[i]);
	assert_int_equal(file_count(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(entries_come_change_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(a_session_is_known_by_its_process, setup, teardown),
		cmocka_unit_test_setup_teardown(limit_counts_live_sessions, setup, teardown),
		cmocka_unit_test_setup_teardown(dead_sessions_are_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(many_sessions_are_joined_by_few_looks, setup,
						teardown),
		cmocka_unit_test_setup_teardown(slots_that_are_free_are_found_by_few_looks, setup,
						teardown),
		cmocka_unit_test_setup_teardown(garbage_is_no_entry, setup, teardown),
		cmocka_unit_test_setup_teardown(too_large_an_entry_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_hides_no_session, setup, teardown),
		cmocka_unit_test_setup_teardown(a_clock_that_steps_hides_no_session, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_disk_that_stalls_is_no_other_writer, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
