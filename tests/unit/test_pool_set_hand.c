/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an administrator does with the set file and the directories of a pool costs it nothing:
 * neither its bytes nor what is known of them.
 */
#include "unit.h"

#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "pool_set_world.h"
#include "wire.h"

/* ---- instead of libc's ---- */

static bool set_files_fail, sidecars_fail;

ssize_t
pread(int fd, void *buf, size_t len, off_t off)
{
	if ((set_files_fail && len == sizeof(POOLSET_SIGNATURE)) ||
	    (sidecars_fail && len == SIDECAR_SLOT_SIZE)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, len, off);
}

static uint64_t free_mb;
static unsigned allocations;

int
fstatvfs(int fd, struct statvfs *vfs)
{
	(void)fd;
	memset(vfs, 0, sizeof(*vfs));
	vfs->f_frsize = MB;
	vfs->f_blocks = vfs->f_bavail = free_mb;
	return 0;
}

int
fallocate(int fd, int mode, off_t off, off_t len)
{
	allocations++;
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

/* ---- what all do ---- */

static int
setup(void **state)
{
	set_files_fail = sidecars_fail = false;
	free_mb = 1024;
	allocations = 0;
	return set_world_new(state);
}

static int
create_bare(const char *lines, uint64_t size)
{
	write_set("s", lines);
	err_clear(&err);
	return pool_set_create(store, "s", size, NULL, NULL, false, &info, &err);
}

static void
not_opened(int code, const char *why)
{
	struct pool *pool = NULL;

	for (int mode = POOL_READ; mode <= POOL_WRITE; mode++) {
		err_clear(&err);
		assert_int_equal(pool_open(store, "s", (enum pool_mode)mode, "w", &pool, &err),
				 code);
		if (!strstr(err.text, why))
			fail_msg("'%s' in place of '%s'", err.text, why);
	}
	err_clear(&err);
	assert_int_equal(pool_info(store, "s", &info, &err), code);
}

static void
not_removed(const char *name, const char *why)
{
	err_clear(&err);
	assert_int_equal(pool_remove(store, name, 0, NULL, &err), REPL_E_REFUSED);
	if (!strstr(err.text, why))
		fail_msg("'%s' in place of '%s'", err.text, why);
	assert_true(there("s.repl") && there("p") && there("q"));
}

/* ---- directories ---- */

/* What a creation of that name has left when it was killed, and the session that clears it away. */
static void
killed_making(const char *name)
{
	char temp[POOL_TEMP_MAX], at[64];

	pool_temp_name(temp, name, "");
	(void)snprintf(at, sizeof(at), "%.*s/%s", 1, name, temp);
	assert_int_equal(close(open(path_of(at), O_RDWR | O_CREAT | O_EXCL, 0600)), 0);
	pool_store_free(store);
	assert_int_equal(pool_store_new(dir, &store, &err), 0);
	assert_false(there(at));
}

static void
test_a_named_directory_stays(void **state)
{
	static const char lines[] = "OPTION NOHDRS\n8M d\n8M e\n";

	(void)state;
	make_dir("d");
	make_dir("e");
	assert_int_equal(create_bare(lines, 4 * MB), 0);
	killed_making("e/000001.pmem");
	assert_true(there("e"));
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	/* With the largest number that there is. */
	killed_making("d/000000.pmem");
	killed_making("e/001023.pmem");
	assert_true(there("d") && there("e"));
	/* One that was made for a pool goes with what was left of that. */
	killed_making("d/p");
	assert_true(!there("d") && there("e"));
}

/* ---- the set file ---- */

/* An editor, or a power cut behind one, has left it empty, or it can't be read for a moment. */
static void
test_set_file_damaged(void **state)
{
	static const char lines[] = "OPTION NOHDRS\n2M p\n2M q\n";

	(void)state;
	assert_int_equal(create_bare(lines, 4 * MB), 0);
	write_whole();
	cut("s", 0);
	not_opened(REPL_E_CORRUPT, "its set file does not begin with PMEMPOOLSET");
	not_removed("s", "its set file does not begin with PMEMPOOLSET");
	not_removed("q", "of pool set 's'");
	assert_int_equal(pool_create(store, "s", 4096, NULL, false, &info, &err), REPL_E_EXISTS);
	write_set("s", lines);
	whole();
	set_files_fail = true;
	not_opened(REPL_E_IO, "'s'");
	not_removed("q", "of pool set 's'");
	set_files_fail = false;
	whole();
	/* Half of it. */
	write_set("s", "OPTION NOHDRS\n2M p\nx\n");
	not_opened(REPL_E_CORRUPT, "line 4");
	not_removed("q", "of pool set 's'");
	/* Nor does it go with another set that names it. */
	write_set("t", "OPTION NOHDRS\n2M q\n");
	assert_int_equal(pool_remove(store, "t", POOL_REMOVE_SET | POOL_REMOVE_FORCE, NULL, &err),
			 REPL_E_REFUSED);
	assert_true(there("t") && there("q"));
	write_set("s", lines);
	whole();
}

static void
test_set_file_moved_away(void **state)
{
	static const char lines[] = "OPTION NOHDRS\n2M p\n2M q\n";
	struct sidecar meta;
	bool repair;
	int fd;

	(void)state;
	assert_int_equal(create_bare(lines, 4 * MB), 0);
	write_whole();
	move("s", "s.edited");
	not_opened(REPL_E_CORRUPT, "its set file is missing");
	not_removed("s", "its set file is missing");
	assert_int_equal(unlink(path_of("s.edited")), 0);
	not_removed("q", "of pool set 's'");
	assert_int_equal(pool_create(store, "s", 4096, NULL, false, &info, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "its set file is missing"));
	write_set("s", lines);
	whole();
	/* What a creation has left that was killed is no pool. */
	fd = file_open("s.repl");
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	meta.created_s = 0;
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path_of("s")), 0);
	assert_int_equal(pool_remove(store, "q", 0, NULL, &err), 0);
	assert_int_equal(pool_create(store, "s", 4096, NULL, false, &info, &err), 0);
}

static void
not_replaced(const char *why)
{
	assert_int_equal(pool_create(store, "s", 4096, NULL, false, &info, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, why));
	not_opened(REPL_E_CORRUPT, why);
	not_removed("s", why);
	not_removed("q", "of pool set 's'");
}

/* The sidecar that nobody can make out may be the only one to say whose the parts are. */
static void
test_set_file_moved_away_from_what_is_not_known(void **state)
{
	static const char lines[] = "OPTION NOHDRS\n2M p\n2M q\n";

	(void)state;
	assert_int_equal(create_bare(lines, 4 * MB), 0);
	write_whole();
	assert_int_equal(unlink(path_of("s")), 0);
	sidecars_fail = true;
	not_replaced("its sidecar can't be read");
	sidecars_fail = false;
	write_set("s", lines);
	whole();
	sidecar_made_newer("s.repl");
	not_opened(REPL_E_VERSION, "a newer version made it");
	assert_int_equal(unlink(path_of("s")), 0);
	not_replaced("a newer version made its sidecar");
	write_set("s", lines);
	not_opened(REPL_E_VERSION, "a newer version made it");
	/* A pool in one file is what it was, and one that says nothing is nobody's. */
	assert_int_equal(pool_create(store, "f", MB, NULL, false, &info, &err), 0);
	sidecar_made_newer("f.repl");
	assert_int_equal(pool_info(store, "f", &info, &err), REPL_E_VERSION);
	cut("f.repl", 0);
	assert_int_equal(unlink(path_of("f")), 0);
	assert_int_equal(pool_create(store, "f", MB, NULL, false, &info, &err), 0);
}

/* A file of the pool directory's that is no pool's can be removed beside sets in order. */
static void
test_others_are_removed(void **state)
{
	(void)state;
	assert_int_equal(create_bare("OPTION NOHDRS\n2M p\n2M q\n", 4 * MB), 0);
	write_set("x", "");
	cut("x", 0);
	assert_int_equal(pool_remove(store, "x", 0, NULL, &err), 0);
}

/* ---- the order of its lines ---- */

static void
order_unknown(void)
{
	struct pool *pool = open_write();

	pool->info.meta.order = 0;
	assert_int_equal(sidecar_write(pool->files.sidecar_fd, &pool->info.meta, &err), 0);
	pool_free(pool);
}

/* The sizes are the same, and every byte would be another one. */
static void
test_lines_in_another_order(void **state)
{
	static const char lines[] = "OPTION NOHDRS\n2M p\n2M q\n",
			  moved[] = "OPTION NOHDRS\n2M q\n2M p\n";

	(void)state;
	assert_int_equal(create_bare(lines, 4 * MB), 0);
	file_change("p", 0, "first", 5);
	write_whole();
	write_set("s", moved);
	not_opened(REPL_E_CORRUPT, "the lines of its set file are in another order");
	write_set("s", lines);
	whole();
	/* Files that lie elsewhere, and have come there, are the same pool. */
	make_dir("a");
	move("p", "a/p");
	write_set("s", "OPTION NOHDRS\n2M a/p\n2M q\n");
	whole();
	write_set("s", "OPTION NOHDRS\n2M q\n2M a/p\n");
	not_opened(REPL_E_CORRUPT, "the lines of its set file are in another order");
	/* A version before has not told: the lines are believed. */
	write_set("s", "OPTION NOHDRS\n2M a/p\n2M q\n");
	order_unknown();
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	write_whole();
	whole();
}

/* The pool and its copy are not the same where its writer was killed. */
static void
test_sections_in_another_order(void **state)
{
	static const char lines[] = "OPTION NOHDRS\n4M p\nREPLICA\n4M q\n";

	(void)state;
	assert_int_equal(create_bare(lines, 4 * MB), 0);
	write_whole();
	write_set("s", "OPTION NOHDRS\n4M q\nREPLICA\n4M p\n");
	not_opened(REPL_E_CORRUPT, "the lines of its set file are in another order");
	write_set("s", "OPTION NOHDRS\n4M p\n");
	whole();
	write_set("s", lines);
	whole();
}

/* In linked headers each part says which one it is: also to a sidecar that does not. */
static void
test_headers_in_another_order(void **state)
{
	static const char lines[] = "2M p\n2M q\nREPLICA\n4M r\n",
			  moved[] = "2M q\n2M p\nREPLICA\n4M r\n",
			  copies[] = "4M r\nREPLICA\n2M p\n2M q\n",
			  moved_copies[] = "4M r\nREPLICA\n2M q\n2M p\n";
	uint8_t before[8192], after[8192];
	struct pool *pool = NULL;

	(void)state;
	write_set("s", lines);
	assert_int_equal(create("s", 4 * MB - 8192), 0);
	file_change("p", 4096, "first", 5);
	write_whole();
	order_unknown();
	write_set("s", moved);
	assert_int_equal(file_get("p", before, sizeof(before)), sizeof(before));
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_non_null(strstr(info.header_damage, "by its header part 'q' is number 2"));
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	assert_non_null(strstr(err.text, "is number 2 of its section"));
	assert_int_equal(pool_open(store, "s", POOL_STABLE, "r", &pool, &err), REPL_E_CORRUPT);
	assert_int_equal(file_get("p", after, sizeof(after)), sizeof(after));
	assert_memory_equal(before, after, sizeof(before));
	write_set("s", lines);
	write_whole();
	whole();
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	write_set("s", copies);
	assert_int_equal(create("s", 4 * MB - 8192), 0);
	order_unknown();
	write_set("s", moved_copies);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), REPL_E_CORRUPT);
	write_set("s", copies);
	write_whole();
	whole();
}

/* ---- space ---- */

/* What can't be had for all is not taken for some. */
static void
test_space_is_asked_for_together(void **state)
{
	(void)state;
	free_mb = 3;
	assert_int_equal(create_bare("OPTION NOHDRS\n2M p\n2M q\n", 4 * MB), REPL_E_NOSPC);
	assert_non_null(strstr(err.text, "4194304 bytes are wanted and 3145728 are free"));
	assert_int_equal(allocations, 0);
	assert_true(!there("s.repl") && !there("p") && !there("q"));
	free_mb = 4;
	assert_int_equal(create_bare("OPTION NOHDRS\n2M p\n2M q\n", 4 * MB), 0);
}

/* ---- the disks that its parts are on ---- */

static uint8_t kept[16 * MB];
static size_t kept_len;

/* What is in the files of the pool and of another one now is to be in them all the time. */
static size_t
take_all(uint8_t *buf, size_t room)
{
	static const char *const names[] = {"s.repl", "a", "b", "o.repl", "o.p", "o.b"};
	size_t len = 0;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (there(names[i])) {
			len += file_get(names[i], buf + len, room - len);
			assert_true(len < room);
		}
	return len;
}

static void
keep(void)
{
	kept_len = take_all(kept, sizeof(kept));
}

static void
is_kept(void)
{
	static uint8_t now[sizeof(kept)];

	assert_int_equal(take_all(now, sizeof(now)), kept_len);
	assert_memory_equal(now, kept, kept_len);
}

static void
refused_to(enum pool_mode mode, int code, const char *why)
{
	struct pool *pool = NULL;

	err_clear(&err);
	assert_int_equal(pool_open(store, "s", mode, "w", &pool, &err), code);
	if (!strstr(err.text, why))
		fail_msg("'%s' in place of '%s'", err.text, why);
}

static void
not_promoted(int code, const char *why)
{
	for (int force = 0; force < 2; force++) {
		err_clear(&err);
		assert_int_equal(pool_promote(store, "s", "b", force, &info, &err), code);
		if (!strstr(err.text, why))
			fail_msg("'%s' in place of '%s'", err.text, why);
	}
}

#define JOURNAL_AT 12288U

/* Who is killed leaves a page of 'j' to be brought in. */
static void
killed_behind_a_commit(struct pool *pool)
{
	struct wire_entry entry = {.off = JOURNAL_AT, .len = 4096, .op = WIRE_OP_COPY};
	uint8_t msg[8192], page[4096];
	struct wire_commit c;
	size_t len;

	memset(page, 'j', sizeof(page));
	wire_commit_begin(&c, msg, sizeof(msg), 1);
	wire_commit_add(&c, &entry, page);
	len = wire_stage_end(&c, 1, pool_get_info(pool)->meta.epoch);
	assert_int_equal(pool_written(pool, &err), 0);
	assert_int_equal(pool_journal_begin(pool, sizeof(msg), &err), 0);
	assert_int_equal(pooljournal_append(pool_journal(pool), msg, len, &err), 0);
	assert_int_equal(pool_journal_commit(pool, SIDECAR_UP_TO_DATE, &written, 0, &err), 0);
	pool_free(pool);
}

/*
 * Two sets of one size, "s" and "o", with local replicas. The program that had "s" has not closed:
 * who opens it next brings in what it has left, and makes the local replica, which has "mine" where
 * a hand has put "else", equal to the pool.
 */
static void
two_sets(void)
{
	write_set("o", "4M o.p\nREPLICA\n2M o.a\n3M o.b\n");
	assert_int_equal(create("o", 4 * MB - 4096), 0);
	file_change("o.p", 65536, "other", 5);
	attr[PMDK_ATTR_SET_UUID] ^= 0xff;
	write_set("s", "4M p\nREPLICA\n2M a\n3M b\n");
	assert_int_equal(create("s", 4 * MB - 4096), 0);
	write_whole();
	killed_behind_a_commit(open_write());
	file_change("p", 2 * MB + 4096, "mine", 4);
	file_change("b", 8192, "else", 4);
}

/* All is brought in and compared that was to be. */
static void
compared(void)
{
	assert_int_equal(file_byte("p", 4096 + JOURNAL_AT), 0);
	char got[4];

	assert_int_equal(pool_close(open_write(), true, &err), 0);
	file_read("b", 8192, got, sizeof(got));
	assert_memory_equal(got, "mine", sizeof(got));
	assert_int_equal(file_byte("p", 4096 + JOURNAL_AT), 'j');
	assert_int_equal(file_byte("a", 4096 + JOURNAL_AT), 'j');
}

static void
exchange(const char *a, const char *b)
{
	move(a, "away");
	move(b, a);
	move("away", b);
}

/* What a mistake has put in the place of a part may be the only copy of another pool's. */
static void
test_another_disk_is_not_removed(void **state)
{
	static const char *const parts[][2] = {{"p", "o.p"}, {"b", "o.b"}};

	(void)state;
	two_sets();
	keep();
	for (unsigned i = 0; i < 2; i++) {
		exchange(parts[i][0], parts[i][1]);
		for (unsigned flags = 0; flags <= POOL_REMOVE_FORCE; flags += POOL_REMOVE_FORCE) {
			err_clear(&err);
			assert_int_equal(pool_remove(store, "s", flags, NULL, &err),
					 REPL_E_REFUSED);
			assert_non_null(
				strstr(err.text, "' belongs to another pool: is the right"));
		}
		assert_int_equal(pool_remove(store, "o", POOL_REMOVE_FORCE, NULL, &err),
				 REPL_E_REFUSED);
		assert_int_equal(pool_info(store, "s", &info, &err), 0);
		assert_int_equal(strstr(info.header_damage, "is the right disk mounted?") != NULL,
				 i == 0);
		exchange(parts[i][0], parts[i][1]);
		is_kept();
	}
	compared();
	/* That one is away by now is no hindrance, nor is one that can't be told. */
	move("p", "away");
	file_change("b", 30, "x", 1);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_true(!there("a") && !there("b") && there("o.p") && there("away"));
}

/* Nothing is brought into it, and local replicas are not made equal to what lies there. */
static void
test_another_disk(void **state)
{
	static const char why[] = "'p' belongs to another pool: is the right disk mounted?";

	(void)state;
	two_sets();
	keep();
	move("p", "away");
	move("o.p", "p");
	for (int mode = POOL_READ; mode <= POOL_WRITE; mode++)
		refused_to((enum pool_mode)mode, REPL_E_REFUSED, why);
	not_promoted(REPL_E_REFUSED, why);
	/* Whatever its size. */
	cut("p", MB);
	refused_to(POOL_WRITE, REPL_E_REFUSED, why);
	cut("p", 4 * MB);
	move("p", "o.p");
	move("away", "p");
	is_kept();
	move("b", "away");
	move("o.b", "b");
	refused_to(POOL_WRITE, REPL_E_REFUSED, "'b' belongs to another pool");
	move("b", "o.b");
	move("away", "b");
	is_kept();
	compared();
}

static void
empty_disk(void)
{
	static const uint8_t zeros[4 * MB];

	move("p", "away");
	assert_int_equal(close(open(path_of("p"), O_RDWR | O_CREAT | O_EXCL, 0600)), 0);
	file_put("p", zeros, sizeof(zeros));
}

/* Or damage: a local replica may be all that is left. */
static void
test_an_empty_disk(void **state)
{
	static const char why[] = "of part 'p' is damaged, and local replicas are not made equal";
	struct pool *pool = NULL;

	(void)state;
	two_sets();
	keep();
	empty_disk();
	refused_to(POOL_WRITE, REPL_E_CORRUPT, why);
	refused_to(POOL_STABLE, REPL_E_CORRUPT, why);
	not_promoted(REPL_E_CORRUPT, why);
	is_kept();
	move("away", "p");
	compared();
	/* Where nothing has to be brought in it can be read as it is. */
	empty_disk();
	assert_int_equal(pool_open(store, "s", POOL_STABLE, "r", &pool, &err), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

/* A change of attributes that was cut off: the pool's own header counts. */
static void
test_new_attributes_of_a_local_replica(void **state)
{
	uint8_t before[PMDK_HEADER_SIZE], after[PMDK_HEADER_SIZE], sidecar[SIDECAR_SIZE];
	uint8_t newer[PMDK_ATTR_SIZE];
	struct pool *pool;

	(void)state;
	write_set("s", "4M p\nREPLICA\n4M a\n");
	assert_int_equal(create("s", 4 * MB - 4096), 0);
	write_whole();
	file_read("p", 0, before, sizeof(before));
	file_read("s.repl", 0, sidecar, sizeof(sidecar));
	pool = open_write();
	memcpy(newer, attr, sizeof(newer));
	newer[16] ^= PMDK_SDS;
	assert_int_equal(pool_set_attr(pool, newer, &err), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
	file_read("p", 0, after, sizeof(after));
	assert_memory_not_equal(before, after, sizeof(before));
	file_change("p", 0, before, sizeof(before));
	file_change("s.repl", 0, sidecar, sizeof(sidecar));
	file_change("a", 8192, "else", 4);
	assert_int_equal(pool_close(open_write(), true, &err), 0);
	file_read("a", 0, after, sizeof(after));
	assert_memory_equal(after, before, 40);
	assert_int_equal(file_byte("a", 8192), 0);
	whole();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_free)

/* As what 'pmempool sync' on the target has made anew: of the same pool, and linked otherwise. */
static void
header_relink(const char *name, uint8_t byte)
{
	uint8_t header[PMDK_HEADER_SIZE], found[PMDK_ATTR_SIZE];
	struct pmdk_part part = {.created_s = 1};
	int fd = open(path_of(name), O_RDWR);

	assert_int_equal(pread(fd, header, sizeof(header), 0), sizeof(header));
	assert_true(pmdk_header_attr(header, found));
	memset(part.uuid, byte, sizeof(part.uuid));
	pmdk_header_make(found, &part, header);
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
	assert_int_equal(close(fd), 0);
}

/* Also where the header beside it is written anew. */
static void
test_damage_is_not_mended_along(void **state)
{
	static const uint8_t zero[PMDK_HEADER_SIZE];
	uint8_t header[PMDK_HEADER_SIZE];
	struct pool *pool;
	int fd;

	(void)state;
	write_set("s", "2M p\n2M q\n");
	assert_int_equal(create("s", 3 * MB), 0);
	write_whole();
	/* From then on its headers are linked. */
	assert_int_equal(pool_promote(store, "s", "b", false, &info, &err), 0);
	assert_int_equal(pool_demote(store, "s", "b", &info, &err), 0);
	header_relink("p", 7);
	fd = open(path_of("q"), O_RDWR);
	assert_int_equal(pwrite(fd, zero, sizeof(zero), 0), sizeof(zero));
	pool = open_write();
	assert_non_null(strstr(pool->info.header_damage, "part 'q' is damaged"));
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(pread(fd, header, sizeof(header), 0), sizeof(header));
	assert_int_equal(header[0], 0);
	assert_int_equal(close(fd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_named_directory_stays),
		TEST(test_set_file_damaged),
		TEST(test_set_file_moved_away),
		TEST(test_set_file_moved_away_from_what_is_not_known),
		TEST(test_others_are_removed),
		TEST(test_lines_in_another_order),
		TEST(test_sections_in_another_order),
		TEST(test_headers_in_another_order),
		TEST(test_space_is_asked_for_together),
		TEST(test_another_disk),
		TEST(test_another_disk_is_not_removed),
		TEST(test_an_empty_disk),
		TEST(test_damage_is_not_mended_along),
		TEST(test_new_attributes_of_a_local_replica),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
