/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of a set file is made of all its parts or of none, opened as one range, and goes whole.
 */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pool_set_world.h"

static char lines_at[8];

/* Instead of libc's: whose syncs are counted. */
static int watched_fd = -1;
static unsigned syncs, watched_syncs;

int
fsync(int fd)
{
	syncs++;
	watched_syncs += fd == watched_fd;
	return (int)syscall(SYS_fsync, fd);
}

/* And of this name nothing goes. */
static const char *stuck;

int
unlinkat(int fd, const char *name, int flags)
{
	if (stuck && strcmp(name, stuck) == 0) {
		errno = EROFS;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, fd, name, flags);
}

/* What others do while one waits, as it does for a lock. */
static void (*others_do)(void);

int
nanosleep(const struct timespec *pause, struct timespec *left)
{
	void (*act)(void) = others_do;

	others_do = NULL;
	if (act)
		act();
	return (int)syscall(SYS_nanosleep, pause, left);
}

static void
refused(const char *lines, int code, const char *why)
{
	write_set("s", lines);
	assert_int_equal(create("s", MB), code);
	if (!strstr(err.text, why))
		fail_msg("'%s' in place of '%s'", err.text, why);
	assert_false(there("s.repl"));
	assert_false(there("p"));
	assert_false(there("d/000000.pmem"));
}

static void
test_made_opened_removed(void **state)
{
	char lines[256];
	struct pool *pool = NULL;
	struct pmem_map *map = NULL;
	uint8_t got[8], *data;
	struct stat st;
	int fd;

	(void)state;
	(void)snprintf(lines, sizeof(lines), "4M %s/a/p0\n2M a/p1\n", dir);
	write_set("s", lines);
	assert_int_equal(create("s", 6 * MB - 2 * 4096), 0);
	assert_true(info.meta.pool_size == 6 * MB - 2 * 4096);
	assert_int_equal(info.parts, 2);
	assert_int_equal(info.header, 4096);
	assert_memory_equal(info.attr, attr, sizeof(attr));
	assert_int_equal(stat(path_of("a/p1"), &st), 0);
	assert_true(st.st_size == 2 << 20 && (st.st_mode & 07777) == 0600);
	assert_int_equal(create("s", MB), REPL_E_EXISTS);

	/* One range over both, without the headers. */
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), 0);
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	assert_true(pmem_map_size(map) == 6 * MB - 2 * 4096);
	data = pmem_map_addr(map);
	memcpy(data + 4 * MB - 4096 - 4, "endbegin", 8);
	attr[90] = 0x55;
	/* No error of the lanes' flushes, which the kernel tells once, is taken from them. */
	watched_fd = pool->files.parts->part[0].fd;
	syncs = watched_syncs = 0;
	assert_int_equal(pool_set_attr(pool, attr, &err), 0);
	assert_true(syncs >= 2);
	assert_int_equal(watched_syncs, 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, true, &err), 0);
	fd = open(path_of("a/p1"), O_RDONLY);
	assert_int_equal(pread(fd, got, 5, 4096), 5);
	assert_memory_equal(got, "egin", 4);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_memory_equal(info.attr, attr, sizeof(attr));

	/* A part is no pool, and can't be removed by itself. */
	assert_int_equal(pool_remove(store, "a/p0", 0, NULL, &err), REPL_E_REFUSED);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_true(there("s") && !there("s.repl") && !there("a"));
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), REPL_E_NOT_FOUND);
	assert_int_equal(pool_remove(store, "s", POOL_REMOVE_SET, NULL, &err), 0);
	assert_false(there("s"));
}

static void
test_listed_without_its_parts(void **state)
{
	struct pool_info infos[4];
	unsigned count;
	bool more;

	(void)state;
	write_set("s", "2M p\n");
	assert_int_equal(pool_list(store, NULL, infos, 4, &count, &more, &err), 0);
	assert_int_equal(count, 0);
	assert_int_equal(create("s", MB), 0);
	assert_int_equal(pool_list(store, NULL, infos, 4, &count, &more, &err), 0);
	assert_int_equal(count, 1);
	assert_string_equal(infos[0].name, "s");
	assert_string_equal(infos[0].damage, "");
}

/* However many names in a row are no pools of their own, what comes behind them is listed. */
static void
test_listed_behind_many_files(void **state)
{
	struct pool_info infos[4];
	unsigned count;
	bool more;

	(void)state;
	attr[16] |= PMDK_SINGLEHDR;
	make_dir("d");
	write_set("s", "OPTION SINGLEHDR\n64M d\n");
	assert_int_equal(create("s", 4 * MB - 4096), 0);
	for (unsigned i = 1; i < 12; i++) {
		char name[32];
		int fd;

		(void)snprintf(name, sizeof(name), "d/%06u.pmem", i);
		fd = open(path_of(name), O_RDWR | O_CREAT | O_EXCL, 0600);
		assert_int_equal(ftruncate(fd, 4 << 20), 0);
		assert_int_equal(close(fd), 0);
	}
	for (char name[] = "w"; name[0] <= 'z'; name[0]++)
		assert_int_equal(pool_create(store, name, 4096, NULL, false, &info, &err), 0);
	assert_int_equal(pool_list(store, NULL, infos, 4, &count, &more, &err), 0);
	assert_int_equal(count, 4);
	assert_string_equal(infos[0].name, "s");
	assert_string_equal(infos[3].name, "y");
	assert_true(more);
	assert_int_equal(pool_list(store, "y", infos, 4, &count, &more, &err), 0);
	assert_int_equal(count, 1);
	assert_string_equal(infos[0].name, "z");
	assert_false(more);
	assert_int_equal(pool_list(store, NULL, infos, 1, &count, &more, &err), 0);
	assert_int_equal(count, 1);
	assert_true(more);
}

static void
test_refused(void **state)
{
	(void)state;
	refused("2M p\n2M ../q\n", REPL_E_INVAL, "line 3");
	refused("2M p\n2M /etc/q\n", REPL_E_REFUSED, "is not beneath the pool directory");
	refused("2M p\n2M .hidden\n", REPL_E_INVAL, "line 3");
	refused("2M p\n2M q.repl\n", REPL_E_INVAL, "line 3");
	refused("2M p\n2M p\n", REPL_E_INVAL, "is there already");
	refused("2M p\n2M s\n", REPL_E_INVAL, "is there already");
	refused("2M p\n1M q\n", REPL_E_INVAL, "line 3: a part of 1048576 bytes");
	refused("OPTION NOHDRS\n2M p\n", REPL_E_INVAL, "OPTION NOHDRS leaves no place");
	refused("OPTION SINGLEHDR\n2M p\n", REPL_E_INVAL, "OPTION SINGLEHDR stands in");
	write_set("s", "2M p\n");
	assert_int_equal(create("s", 2 * MB), REPL_E_INVAL);
	assert_non_null(strstr(err.text, "its parts hold"));
	/* A part that is there is nobody's to replace; a link leads nowhere. */
	write_set("q", "x");
	refused("2M p\n2M q\n", REPL_E_EXISTS, "there is a regular file");
	assert_int_equal(symlink("/etc", path_of("out")), 0);
	refused("2M p\n2M out/q\n", REPL_E_REFUSED, "symbolic link");
	refused("2M p\n999999999M r\n", REPL_E_NOSPC, "1048576001048576 bytes are wanted");
}

static void
zero_header(int fd)
{
	static const uint8_t zero[PMDK_HEADER_SIZE];

	assert_int_equal(pwrite(fd, zero, sizeof(zero), 0), sizeof(zero));
}

static void
test_damage_is_told(void **state)
{
	struct pool *pool = NULL;
	int fd;

	(void)state;
	write_set("s", "2M p\n2M q\n");
	assert_int_equal(create("s", 3 * MB), 0);
	fd = open(path_of("p"), O_RDWR);
	zero_header(fd);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_non_null(strstr(info.header_damage, "part 'p' is damaged"));
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_int_equal(create("s", 3 * MB), 0);
	fd = open(path_of("q"), O_RDWR);
	assert_int_equal(pwrite(fd, "x", 1, 30), 1);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_non_null(strstr(info.header_damage, "part 'q' is damaged"));
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "'q' has 4096 bytes, the set file says 2097152"));
	assert_int_equal(unlink(path_of("q")), 0);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "'q' is missing"));
	/* The set file is not the one any more. */
	write_set("s", "2M p\n");
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "is not the one"));
	assert_int_equal(pool_remove(store, "s", POOL_REMOVE_SET, NULL, &err), 0);
}

/* Nobody is told to remove it, and nobody can who does not know what it is. */
static void
test_of_a_newer_version_it_stays(void **state)
{
	(void)state;
	write_set("s", "2M p\n2M q\n");
	assert_int_equal(create("s", 3 * MB), 0);
	sidecar_made_newer("s.repl");
	assert_int_equal(create("s", 3 * MB), REPL_E_VERSION);
	assert_non_null(strstr(err.text, "format version 9"));
	assert_null(strstr(err.text, "remove"));
	for (unsigned flags = 0; flags <= (POOL_REMOVE_SET | POOL_REMOVE_FORCE); flags++) {
		err_clear(&err);
		assert_int_equal(pool_remove(store, "s", flags, NULL, &err), REPL_E_VERSION);
		assert_non_null(strstr(err.text, "a newer version made it"));
	}
	assert_true(there("s") && there("s.repl") && there("p") && there("q"));
}

/* What a kill between two renames leaves is no pool, and no obstacle. */
static void
test_half_made(void **state)
{
	struct sidecar meta;
	bool repair;
	int fd;

	(void)state;
	write_set("s", "2M p\n2M q\n");
	assert_int_equal(create("s", 3 * MB), 0);
	assert_int_equal(unlink(path_of("q")), 0);
	fd = open(path_of("s.repl"), O_RDWR);
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	meta.created_s = 0;
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), REPL_E_NOT_FOUND);
	assert_int_equal(create("s", 3 * MB), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
}

/* In place of libc's: parts whose space takes its time. */
static bool meanwhile;

int
fallocate(int fd, int mode, off_t off, off_t len)
{
	bool again = meanwhile;

	meanwhile = false;
	if (again)
		assert_int_equal(create("s", 3 * MB), REPL_E_BUSY);
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

static unsigned
temporary_files(void)
{
	struct dirent *entry;
	unsigned count = 0;
	DIR *at = opendir(path_of("."));

	assert_non_null(at);
	while ((entry = readdir(at)))
		count += strncmp(entry->d_name, ".tmp-", 5) == 0;
	(void)closedir(at);
	return count;
}

static void
test_what_takes_long_is_made_once(void **state)
{
	(void)state;
	write_set("s", "2M p\n2M q\n");
	meanwhile = true;
	assert_int_equal(create("s", 3 * MB), 0);
	assert_false(meanwhile);
	assert_int_equal(temporary_files(), 0);
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
}

static void
test_for_a_copy_it_is_inconsistent(void **state)
{
	(void)state;
	write_set("s", "2M p\n2M q\n");
	assert_int_equal(pool_set_create(store, "s", 3 * MB, NULL, attr, true, &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_INCONSISTENT);
}

static void
grown(struct pool *pool, struct pmem_map *map, uint64_t size)
{
	assert_int_equal(pool_grow_space(pool, size, &err), 0);
	assert_int_equal(pool_map_extend(pool, map, size, &err), 0);
	assert_int_equal(pool_grow_record(pool, size, &err), 0);
	pmem_map_set_size(map, size);
}

/* The files that a pool needs are made, in turn, and taken back when their growth was not finished.
 */
static void
test_directories(void **state)
{
	struct pmem_map *map = NULL;
	struct pool *pool;
	struct stat st;
	int fd;

	(void)state;
	attr[16] |= PMDK_SINGLEHDR;
	make_dir("d");
	make_dir("e");
	write_set("s", "OPTION SINGLEHDR\n8M d/\n8M e\n");
	assert_int_equal(create("s", 16 * MB), REPL_E_INVAL);
	assert_non_null(strstr(err.text, "its parts hold 16773120 bytes"));
	assert_int_equal(create("s", 4 * MB - 4096), 0);
	assert_true(there("d/000000.pmem") && !there("e/000001.pmem"));
	assert_int_equal(stat(path_of("d/000000.pmem"), &st), 0);
	assert_true(st.st_size == 4 << 20);
	pool = open_write();
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	grown(pool, map, 6 * MB);
	assert_int_equal(stat(path_of("e/000001.pmem"), &st), 0);
	assert_true(st.st_size == 12 << 20);
	memcpy((char *)pmem_map_addr(map) + 4 * MB - 4096 - 4, "seam", 5);
	memcpy((char *)pmem_map_addr(map) + 4 * MB - 4096, "more", 5);
	grown(pool, map, 7 * MB);
	pmem_map_free(map);
	assert_int_equal(pool_grow_space(pool, 17 * MB, &err), REPL_E_REFUSED);
	assert_non_null(strstr(err.text, "are given 16777216 bytes"));
	assert_int_equal(pool_close(pool, true, &err), 0);
	fd = open(path_of("e/000001.pmem"), O_RDWR);
	assert_int_equal(pread(fd, lines_at, 4, 0), 4);
	assert_memory_equal(lines_at, "more", 4);

	/* The reservation may be raised; a growth that is not recorded is taken back. */
	write_set("s", "OPTION SINGLEHDR\n8M d\n10M e\n");
	pool = open_write();
	assert_int_equal(pool_grow_space(pool, 17 * MB, &err), 0);
	assert_true(there("d/000002.pmem"));
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_true(info.meta.pool_size == 7 * MB);
	pool = open_write();
	assert_false(there("d/000002.pmem"));
	/* Unless somebody has written there. */
	assert_int_equal(pwrite(fd, "x", 1, 4 << 20), 1);
	assert_int_equal(pool_grow_space(pool, 8 * MB, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "'e/000001.pmem' is not zero behind the pool's end"));
	assert_int_equal(pwrite(fd, "", 1, 4 << 20), 1);
	assert_int_equal(pool_grow_space(pool, 17 * MB, &err), 0);
	assert_int_equal(close(fd), 0);
	fd = open(path_of("d/000002.pmem"), O_RDWR);
	assert_int_equal(pwrite(fd, "x", 1, 4096), 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "'d/000002.pmem' is not zero"));
	assert_int_equal(pool_remove(store, "d/000002.pmem", 0, NULL, &err), REPL_E_REFUSED);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_true(there("d") && !there("d/000000.pmem") && !there("e/000001.pmem"));
}

static void
test_directories_refused(void **state)
{
	(void)state;
	make_dir("d");
	refused("4M d\n", REPL_E_INVAL,
		"'d' is a directory: a set of those needs OPTION SINGLEHDR");
	attr[16] |= PMDK_SINGLEHDR;
	refused("OPTION SINGLEHDR\n4M d\n4M p\n", REPL_E_INVAL, "line 4: 'p' is no directory");
	refused("OPTION SINGLEHDR\n4M d\n4M d\n", REPL_E_INVAL, "line 4: 'd' is there already");
	refused("OPTION SINGLEHDR\nAUTO d\n", REPL_E_INVAL, "line 3: AUTO is for device DAX");
	write_set("d/000007.pmem", "");
	assert_int_equal(truncate(path_of("d/000007.pmem"), 4 << 20), 0);
	refused("OPTION SINGLEHDR\n4M d\n", REPL_E_EXISTS, "hold 'd/000007.pmem'");
}

static void
read_part(const char *name, off_t off, char *buf, size_t len)
{
	int fd = open(path_of(name), O_RDONLY);

	assert_int_equal(pread(fd, buf, len, off), (ssize_t)len);
	assert_int_equal(close(fd), 0);
}

/* What is durable in the pool is so in its local replica, and what may not be is made so at the
 * next open. */
static void
test_local_replica(void **state)
{
	struct range r = {.off = 2 * MB - 4096 - 2, .len = 4};
	struct pmem_map *map = NULL;
	struct pool *pool;
	uint8_t want[PMDK_ATTR_SIZE];
	char got[4];
	int fd;

	(void)state;
	write_set("s", "4M p\nREPLICA\n2M a\n3M b\n");
	assert_int_equal(create("s", 4 * MB - 4096), 0);
	assert_int_equal(info.replicas, 1);
	assert_memory_equal(info.attr, attr, sizeof(attr));
	pool = open_write();
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	pmem_map_copy(map, r.off, "seam", 4);
	assert_int_equal(pmem_map_persist(map, &r, 1, &err), 0);
	read_part("b", 4096, got, 2);
	assert_memory_equal(got, "am", 2);
	/* Attributes are what they were given as, also those that headers here do not have. */
	memcpy(want, attr, sizeof(want));
	want[60] ^= 0xff;
	assert_int_equal(pool_set_attr(pool, want, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_memory_equal(info.attr, want, sizeof(want));

	/* Closed in order: what is there is believed. Else it is compared. */
	fd = open(path_of("b"), O_RDWR);
	assert_int_equal(pwrite(fd, "else", 4, 8192), 4);
	pool = open_write();
	read_part("b", 8192, got, 4);
	assert_memory_equal(got, "else", 4);
	assert_int_equal(pool_written(pool, &err), 0);
	assert_int_equal(pool_close(pool, false, &err), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
	pool = open_write();
	read_part("b", 8192, got, 4);
	assert_memory_equal(got, "\0\0\0", 4);
	/* An initiator that has not waited for that does not have the next one wait for it again.
	 */
	assert_int_equal(pool_close(pool, false, &err), 0);
	assert_int_equal(pwrite(fd, "else", 4, 8192), 4);
	pool = open_write();
	read_part("b", 8192, got, 4);
	assert_memory_equal(got, "else", 4);
	assert_int_equal(pwrite(fd, "\0\0\0", 4, 8192), 4);
	assert_int_equal(pool_close(pool, true, &err), 0);

	/* A damaged header of the replica is mended, another pool's is left alone, a lost file
	 * told. */
	assert_int_equal(pwrite(fd, "x", 1, 30), 1);
	assert_int_equal(pwrite(fd, "else", 4, 8192), 4);
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	read_part("b", 8192, got, 4);
	assert_memory_equal(got, "\0\0\0", 4);
	zero_header(fd);
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_memory_equal(info.attr, want, sizeof(want));
	assert_int_equal(close(fd), 0);
	move("b", "away");
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "local replica 1, which 'pmempool sync'"));
	/* Which keeps nobody from reading. */
	assert_int_equal(pool_open(store, "s", POOL_STABLE, "r", &pool, &err), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
	move("away", "b");
}

/* A set file that lost its REPLICA has the pool; one that got it later has none. */
static void
test_replica_comes_and_goes(void **state)
{
	uint8_t want[PMDK_ATTR_SIZE];
	struct pool *pool;

	(void)state;
	write_set("s", "4M p\nREPLICA\n2M a\n3M b\n");
	assert_int_equal(create("s", 4 * MB - 4096), 0);
	memcpy(want, attr, sizeof(want));
	want[60] ^= 0xff;
	pool = open_write();
	assert_int_equal(pool_set_attr(pool, want, &err), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
	write_set("s", "4M p\n");
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_memory_equal(info.attr, want, sizeof(want));
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_int_equal(create("s", 4 * MB - 4096), 0);
	write_set("s", "4M p\nREPLICA\n4M q\n");
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "had none when the pool was made"));
}

static void
equal(const char *a, const char *b)
{
	static uint8_t one[4 * MB], two[4 * MB];

	assert_int_equal(file_get(a, one, sizeof(one)), sizeof(one));
	assert_int_equal(file_get(b, two, sizeof(two)), sizeof(two));
	assert_memory_equal(one, two, sizeof(one));
}

static void
make_part(const char *name)
{
	int fd = open(path_of(name), O_RDWR | O_CREAT | O_EXCL, 0600);

	assert_int_equal(ftruncate(fd, 4 << 20), 0);
	assert_int_equal(close(fd), 0);
}

/* Without headers nothing in a file tells that it is no local replica yet. */
static void
test_local_replica_without_headers(void **state)
{
	static const char bare[] = "OPTION NOHDRS\n4M p\n",
			  both[] = "OPTION NOHDRS\n4M p\nREPLICA\n4M a\n";
	struct pool *pool = NULL;

	(void)state;
	write_set("s", bare);
	assert_int_equal(pool_set_create(store, "s", 4 * MB, NULL, NULL, false, &info, &err), 0);
	file_change("p", 3 * MB, "data", 4);
	write_set("s", both);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "local replica 1, which is filled from the pool when"));
	assert_null(strstr(err.text, "pmempool"));
	make_part("a");
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	equal("p", "a");
	/* One that was equal is believed, however the session ended in which nothing was written.
	 */
	file_change("a", 0, "else", 4);
	assert_int_equal(pool_close(open_write(), false, &err), 0);
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	assert_int_equal(file_byte("a", 0), 'e');
	/* Another one in its place is not, nor one that was away when the pool was written. */
	assert_int_equal(unlink(path_of("a")), 0);
	make_part("a");
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	equal("p", "a");
	write_set("s", bare);
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	file_change("p", MB, "more", 4);
	write_set("s", both);
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	equal("p", "a");
	/* That of a new set is equal from the beginning. */
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_int_equal(pool_set_create(store, "s", 4 * MB, NULL, NULL, false, &info, &err), 0);
	file_change("a", 0, "else", 4);
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	assert_int_equal(file_byte("a", 0), 'e');
}

/* ---- what another hand has done to closed files ---- */

/* For a writer as well, until it is filled again. */
static void
of_no_generation(void)
{
	struct pool *pool;

	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_INCONSISTENT);
	assert_true(gen_id_is_nil(&info.meta.generation.current));
	pool = open_write();
	assert_int_equal(pool_get_info(pool)->meta.state, SIDECAR_INCONSISTENT);
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_INCONSISTENT);
	write_whole();
	whole();
}

static void
refused_while_cut(const char *name, off_t size, off_t again)
{
	struct pool *pool;

	cut(name, size);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_int_equal(pool_open(store, "s", POOL_READ, "r", &pool, &err), REPL_E_CORRUPT);
	cut(name, again);
}

/* All bytes behind such a file are others', whether or not what follows holds enough. */
static void
test_directories_cut_or_grown(void **state)
{
	struct pool *pool;

	(void)state;
	make_dir("d");
	make_dir("e");
	write_set("s", "OPTION NOHDRS\n8M d\n8M e\n");
	assert_int_equal(pool_set_create(store, "s", 4 * MB, NULL, NULL, false, &info, &err), 0);
	pool = open_write();
	assert_int_equal(pool_grow_space(pool, 6 * MB, &err), 0);
	assert_int_equal(pool_grow_record(pool, 6 * MB, &err), 0);
	/* As if it was killed. */
	pool_free(pool);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
	write_whole();
	whole();
	cut("d/000000.pmem", 3 * MB);
	of_no_generation();
	cut("d/000000.pmem", 3 * MB + MB / 2);
	of_no_generation();
	/* Behind the pool's end nothing is lost. */
	cut("e/000001.pmem", 8 * MB);
	whole();
	refused_while_cut("e/000001.pmem", 2 * MB, 8 * MB);
	of_no_generation();
	refused_while_cut("d/000000.pmem", 65536, 3 * MB + MB / 2);
	of_no_generation();
	/* One of a version before does not tell. */
	pool = open_write();
	pool->info.meta.layout = 0;
	assert_int_equal(sidecar_write(pool->files.sidecar_fd, &pool->info.meta, &err), 0);
	pool_free(pool);
	cut("d/000000.pmem", 4 * MB);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
	write_whole();
	cut("d/000000.pmem", 3 * MB);
	of_no_generation();
	/* Its own program has it. */
	assert_int_equal(pool_promote(store, "s", "b", false, &info, &err), 0);
	cut("d/000000.pmem", 4 * MB);
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
}

static struct pool *writer;

static void
writer_grows(void)
{
	assert_int_equal(pool_grow_space(writer, 6 * MB, &err), 0);
	assert_int_equal(pool_grow_record(writer, 6 * MB, &err), 0);
	assert_int_equal(pool_close(writer, true, &err), 0);
	writer = NULL;
}

/* Which files are in the directories is known to who has the lock. */
static void
test_directories_grow_while_the_next_one_waits(void **state)
{
	(void)state;
	make_dir("d");
	make_dir("e");
	make_dir("r");
	write_set("s", "OPTION NOHDRS\n8M d\n8M e\nREPLICA\n16M r\n");
	assert_int_equal(pool_set_create(store, "s", 4 * MB, NULL, NULL, false, &info, &err), 0);
	writer = open_write();
	others_do = writer_grows;
	write_whole();
	assert_null(writer);
	whole();
	assert_true(info.meta.pool_size == 6 * MB);
}

/* A set file that has been changed is not a file that was cut. */
static void
test_files_cut(void **state)
{
	static const char lines[] = "OPTION NOHDRS\n2M p\n4M q\n";
	struct pool *pool;

	(void)state;
	write_set("s", lines);
	assert_int_equal(pool_set_create(store, "s", 5 * MB, NULL, NULL, false, &info, &err), 0);
	write_whole();
	write_set("s", "OPTION NOHDRS\n3M p\n4M q\n");
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	write_set("s", lines);
	whole();
	refused_while_cut("q", 3 * MB, 4 * MB);
	whole();
	refused_while_cut("q", 3 * MB - 4096, 4 * MB);
	of_no_generation();
	refused_while_cut("p", MB, 2 * MB);
	of_no_generation();
	/* Both at once. */
	write_set("s", "OPTION NOHDRS\n3M p\n4M q\n");
	cut("p", 3 * MB);
	of_no_generation();
}

/* One that is made of directories is shorter, or the pool is: they are compared. */
static void
test_local_replica_cut(void **state)
{
	struct pool *pool;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		make_dir((const char *[]){"d", "e", "r"}[i]);
	write_set("s", "OPTION NOHDRS\n8M d\n8M e\nREPLICA\n16M r\n");
	assert_int_equal(pool_set_create(store, "s", 4 * MB, NULL, NULL, false, &info, &err), 0);
	pool = open_write();
	assert_int_equal(pool_grow_space(pool, 6 * MB, &err), 0);
	assert_int_equal(pool_grow_record(pool, 6 * MB, &err), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
	file_change("e/000001.pmem", MB, "seam", 4);
	file_change("r/000001.pmem", MB, "seam", 4);
	write_whole();
	cut("r/000000.pmem", 3 * MB);
	whole();
	assert_int_equal(file_byte("r/000001.pmem", 2 * MB), 's');
	assert_int_equal(file_byte("r/000001.pmem", MB), 0);
	cut("d/000000.pmem", 3 * MB);
	of_no_generation();
	assert_int_equal(file_byte("r/000001.pmem", 2 * MB), 0);
	assert_int_equal(file_byte("r/000001.pmem", MB), 's');
}

static void
is_promoted(void)
{
	struct pool *pool = NULL;

	err_clear(&err);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_REFUSED);
	assert_int_equal(err.reason, REPL_REASON_PROMOTED);
	for (unsigned flags = 0; flags <= (POOL_REMOVE_SET | POOL_REMOVE_FORCE); flags++) {
		err_clear(&err);
		assert_int_equal(pool_remove(store, "s", flags, NULL, &err), REPL_E_REFUSED);
		assert_int_equal(err.reason, REPL_REASON_PROMOTED);
	}
	assert_true(there("s") && there("s.repl"));
}

/* Whatever it lacks: who is told that it is damaged makes it anew. */
static void
test_a_primary_is_not_made_anew(void **state)
{
	struct sidecar meta;
	struct pool *pool;
	bool repair;
	int fd;

	(void)state;
	write_set("s", "OPTION NOHDRS\n2M p\n2M q\nREPLICA\n4M r\n");
	assert_int_equal(pool_set_create(store, "s", 3 * MB, NULL, NULL, false, &info, &err), 0);
	write_whole();
	assert_int_equal(pool_promote(store, "s", "b", false, &info, &err), 0);
	is_promoted();
	move("r", "away");
	is_promoted();
	assert_true(there("p") && there("q"));
	move("away", "r");
	cut("q", MB);
	is_promoted();
	move("p", "away");
	is_promoted();
	assert_true(there("q") && there("r"));
	move("s", "away.set");
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_REFUSED);
	assert_int_equal(err.reason, REPL_REASON_PROMOTED);
	move("away.set", "s");
	/* The rest of one whose removal was cut off is nobody's. */
	fd = open(path_of("s.repl"), O_RDWR);
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	meta.created_s = 0;
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_false(there("q") || there("r") || there("s.repl"));
}

/* The first part to go is the last one of the last section. */
static void
test_a_removal_that_removes_nothing_leaves_the_pool(void **state)
{
	(void)state;
	write_set("s", "OPTION NOHDRS\n2M p\n2M q\nREPLICA\n4M r\n");
	assert_int_equal(pool_set_create(store, "s", 3 * MB, NULL, NULL, false, &info, &err), 0);
	write_whole();
	assert_int_equal(pool_promote(store, "s", "b", false, &info, &err), 0);
	stuck = "r";
	assert_int_not_equal(pool_remove(store, "s", POOL_REMOVE_PRIMARY, NULL, &err), 0);
	is_promoted();
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_true(info.meta.primary);
	assert_int_equal(pool_set_create(store, "s", 3 * MB, NULL, NULL, false, &info, &err),
			 REPL_E_EXISTS);
	assert_true(there("p") && there("q") && there("r"));
	/* What has lost a part is the rest of a removal. */
	stuck = "p";
	assert_int_not_equal(pool_remove(store, "s", POOL_REMOVE_PRIMARY, NULL, &err), 0);
	stuck = NULL;
	assert_true(there("p") && !there("q") && !there("r"));
	assert_int_equal(pool_info(store, "s", &info, &err), REPL_E_NOT_FOUND);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_false(there("p") || there("s.repl"));
}

static void
test_a_disk_that_takes_nothing_keeps_no_pool(void **state)
{
	struct rlimit was, none;

	(void)state;
	write_set("s", "OPTION NOHDRS\n2M p\n2M q\n");
	assert_int_equal(pool_set_create(store, "s", 3 * MB, NULL, NULL, false, &info, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_false(there("p") || there("q") || there("s.repl"));
}

static void
kept(unsigned flags, int code, const char *why, const char *part)
{
	err_clear(&err);
	assert_int_equal(pool_remove(store, "s", flags, NULL, &err), code);
	if (!strstr(err.text, why))
		fail_msg("'%s' in place of '%s'", err.text, why);
	assert_true(there(part));
	assert_true(there("s"));
}

/* A set file that names what is another pool's, or in use, takes nothing of that with it. */
static void
test_others_parts_are_kept(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(pool_create(store, "v", 2 * MB, NULL, false, &info, &err), 0);
	write_set("s", "2M v\n");
	kept(POOL_REMOVE_SET | POOL_REMOVE_FORCE, REPL_E_REFUSED, "'v' is a pool of its own", "v");
	write_set("s", "2M p\n2M q\n");
	assert_int_equal(create("s", 3 * MB), 0);
	move("s", "other");
	move("s.repl", "other.repl");
	write_set("s", "2M n\nREPLICA\n2M q\n");
	kept(POOL_REMOVE_SET | POOL_REMOVE_FORCE, REPL_E_REFUSED,
	     "'q' is a part of pool set 'other'", "q");
	/* Also where it has a pool of its own, and its lines were changed. */
	write_set("s", "2M n\n");
	assert_int_equal(create("s", MB), 0);
	write_set("s", "2M n\nREPLICA\n2M q\n");
	kept(0, REPL_E_REFUSED, "'q' is a part of pool set 'other'", "q");
	assert_true(there("n") && there("s.repl"));
	write_set("s", "2M n\n");
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	/* A program that has a part open holds its lock. */
	assert_int_equal(pool_remove(store, "other", POOL_REMOVE_SET, NULL, &err), 0);
	write_set("p", "");
	assert_int_equal(truncate(path_of("p"), 2 << 20), 0);
	write_set("s", "2M n\n2M p\n");
	fd = open(path_of("p"), O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	kept(POOL_REMOVE_FORCE, REPL_E_BUSY, "a program on the target's machine", "p");
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_remove(store, "s", POOL_REMOVE_FORCE | POOL_REMOVE_SET, NULL, &err),
			 0);
	assert_false(there("p"));
}

/* A pool that an initiator has filled with the text of a set file stays a pool. */
static void
test_content_is_no_set(void **state)
{
	struct pool_info infos[8];
	char text[4096];
	unsigned count;
	bool is, more;
	int fd;

	(void)state;
	assert_int_equal(pool_create(store, "x", 4096, NULL, false, &info, &err), 0);
	fd = open(path_of("x"), O_RDWR);
	memset(text, '\n', sizeof(text));
	memcpy(text, "PMEMPOOLSET\n2M victim", 21);
	assert_int_equal(pwrite(fd, text, sizeof(text), 0), sizeof(text));
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_set_is(store, "x", &is, &err), 0);
	assert_false(is);
	assert_int_equal(pool_info(store, "x", &info, &err), 0);
	assert_int_equal(info.parts, 0);
	/* What it names is a part of nothing. */
	assert_int_equal(pool_create(store, "victim", 4096, NULL, false, &info, &err), 0);
	fd = open(path_of("victim.repl"), O_RDWR | O_TRUNC);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pool_list(store, NULL, infos, 8, &count, &more, &err), 0);
	assert_int_equal(count, 2);
	assert_string_equal(infos[0].name, "victim");
	assert_int_equal(unlink(path_of("victim")), 0);
	assert_int_equal(unlink(path_of("victim.repl")), 0);
	write_set("s", "2M victim\n");
	assert_int_equal(create("s", 2 * MB - 4096), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_world_new, world_free)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_made_opened_removed),
		TEST(test_listed_without_its_parts),
		TEST(test_listed_behind_many_files),
		TEST(test_refused),
		TEST(test_damage_is_told),
		TEST(test_of_a_newer_version_it_stays),
		TEST(test_half_made),
		TEST(test_what_takes_long_is_made_once),
		TEST(test_for_a_copy_it_is_inconsistent),
		TEST(test_directories),
		TEST(test_directories_refused),
		TEST(test_local_replica),
		TEST(test_replica_comes_and_goes),
		TEST(test_local_replica_without_headers),
		TEST(test_directories_cut_or_grown),
		TEST(test_directories_grow_while_the_next_one_waits),
		TEST(test_files_cut),
		TEST(test_local_replica_cut),
		TEST(test_a_primary_is_not_made_anew),
		TEST(test_a_removal_that_removes_nothing_leaves_the_pool),
		TEST(test_a_disk_that_takes_nothing_keeps_no_pool),
		TEST(test_others_parts_are_kept),
		TEST(test_content_is_no_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
