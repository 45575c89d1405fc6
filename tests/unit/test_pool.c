/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool is created, listed, opened and removed whole, or refused with the reason. */
#include "unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checksum.h"
#include "pool_world.h"

#define SIZE (16U * 4096)

static void
store_reopen(void)
{
	pool_store_free(store);
	store = NULL;
	assert_int_equal(pool_store_new(dir, &store, &err), 0);
}

static int
setup(void **state)
{
	(void)state;
	return world_new(0, 0);
}

static int
setup_on_disk(void **state)
{
	(void)state;
	return world_new(1, 0);
}

static int
top(void)
{
	return pool_store_dirfd(store);
}

static void
create(const char *name)
{
	if (pool_create(store, name, SIZE, NULL, false, &info, &err))
		fail_msg("create %s: %s", name, err.text);
}

static bool
present(const char *name)
{
	struct stat st;

	return fstatat(top(), name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
put_file(const char *name, off_t size)
{
	int fd = openat(top(), name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	(void)close(fd);
}

static void
put_byte(const char *name, off_t off)
{
	int fd = openat(top(), name, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, off), 1);
	(void)close(fd);
}

/* Overwrite one byte of each copy, or of one. */
static void
damage(const char *sidecar, bool first, bool second)
{
	int fd = openat(top(), sidecar, O_WRONLY);

	assert_true(fd >= 0);
	if (first)
		assert_int_equal(pwrite(fd, "\xee", 1, 30), 1);
	if (second)
		assert_int_equal(pwrite(fd, "\xee", 1, SIDECAR_SLOT_SIZE + 30), 1);
	(void)close(fd);
}

static void
expect(int rc, int code, const char *text)
{
	if (rc != code || !strstr(err.text, text))
		fail_msg("%d, '%s': not %d with '%s'", rc, err.text, code, text);
}

static void
created_pool_is_whole_and_private(void **state)
{
	struct gen_id uuid = {.b = {1, 2, 3}};
	struct stat st;

	(void)state;
	assert_int_equal(pool_create(store, "eu/orders.pool", SIZE, &uuid, false, &info, &err), 0);
	assert_string_equal(info.name, "eu/orders.pool");
	assert_true(gen_id_equal(&info.meta.pool_uuid, &uuid));
	assert_true(gen_id_is_nil(&info.meta.generation.current));
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
	assert_int_equal(info.meta.pool_size, SIZE);
	assert_false(info.meta.writer_open);
	assert_false(info.sidecar_damaged);
	assert_true(strlen(info.filesystem) > 0);
	assert_int_equal(fstatat(top(), "eu/orders.pool", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_size, SIZE);
	assert_true(st.st_blocks * 512 >= SIZE);
	assert_int_equal(fstatat(top(), "eu/orders.pool.repl", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(fstatat(top(), "eu", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	expect(pool_create(store, "eu/orders.pool", SIZE, NULL, false, &info, &err), REPL_E_EXISTS,
	       "already exists");
}

static void
random_uuids_differ(void **state)
{
	struct pool_info other;

	(void)state;
	create("a");
	assert_int_equal(pool_create(store, "b", SIZE, NULL, false, &other, &err), 0);
	assert_false(gen_id_equal(&info.meta.pool_uuid, &other.meta.pool_uuid));
	assert_int_equal(info.meta.pool_uuid.b[6] >> 4, 4);
}

static void
bad_sizes_are_refused_and_leave_nothing(void **state)
{
	static const uint64_t sizes[] = {0, 1ULL << 63, UINT64_MAX};
	char text[32];

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		(void)snprintf(text, sizeof(text), "size %llu", (unsigned long long)sizes[i]);
		expect(pool_create(store, "n/p", sizes[i], NULL, false, &info, &err), REPL_E_INVAL,
		       text);
	}
	expect(pool_create(store, "n/p", 1ULL << 62, NULL, false, &info, &err), REPL_E_NOSPC,
	       "4611686018427387904 bytes are wanted");
	assert_false(present("n"));
}

static void
names_that_lead_out_are_refused_everywhere(void **state)
{
	static const char *const names[] = {"../out",   "/etc/out", "",        "a/../../out",
					    ".repld/x", "link",     "dir/out", "fifo",
					    "sub",      "dangling"};
	struct pool *p = NULL;

	(void)state;
	assert_int_equal(symlinkat("/etc/passwd", top(), "link"), 0);
	assert_int_equal(symlinkat("/etc", top(), "dir"), 0);
	assert_int_equal(symlinkat("nowhere", top(), "dangling"), 0);
	assert_int_equal(mkfifoat(top(), "fifo", 0600), 0);
	assert_int_equal(mkdirat(top(), "sub", 0700), 0);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int want = i < 5 ? REPL_E_INVAL : REPL_E_REFUSED;

		assert_int_equal(pool_create(store, names[i], SIZE, NULL, false, &info, &err),
				 want);
		assert_int_equal(pool_info(store, names[i], &info, &err), want);
		assert_int_equal(pool_open(store, names[i], POOL_WRITE, "w", &p, &err), want);
		assert_int_equal(pool_remove(store, names[i], 0, NULL, &err), want);
		assert_null(p);
	}
	expect(pool_info(store, "fifo", &info, &err), REPL_E_REFUSED, "is a FIFO");
	expect(pool_info(store, "sub", &info, &err), REPL_E_REFUSED, "is a directory");
	expect(pool_info(store, "link", &info, &err), REPL_E_REFUSED, "is a symbolic link");
	expect(pool_info(store, "absent", &info, &err), REPL_E_NOT_FOUND, "not found");
	expect(pool_info(store, "no/where", &info, &err), REPL_E_NOT_FOUND, "not found");
}

/* As after a boot, when repld is up before the device is: listed. No other link passes for that. */
static void
device_that_is_away_is_no_refusal(void **state)
{
	struct pool_info infos[2];
	struct pool *p = NULL;
	unsigned count;
	bool more;

	(void)state;
	create("p");
	assert_int_equal(unlinkat(top(), "p", 0), 0);
	assert_int_equal(symlinkat("/dev/dax-not-there", top(), "p"), 0);
	assert_int_equal(symlinkat("/dev/dax-not-there", top(), "q"), 0);
	assert_int_equal(pool_list(store, NULL, infos, 2, &count, &more, &err), 0);
	assert_int_equal(count, 1);
	assert_string_equal(infos[0].name, "p");
	assert_int_equal(infos[0].damage_code, REPL_E_IO);
	assert_non_null(strstr(infos[0].damage, "is not there"));
	expect(pool_open(store, "p", POOL_WRITE, "w", &p, &err), REPL_E_IO, "is not there");
	expect(pool_info(store, "p", &info, &err), REPL_E_IO, "is not there");
	expect(pool_create(store, "p", SIZE, NULL, false, &info, &err), REPL_E_IO, "is not there");
	expect(pool_remove(store, "p", 0, NULL, &err), REPL_E_IO, "is not there");
	assert_true(present("p.repl"));
	assert_int_equal(unlinkat(top(), "p", 0), 0);
	assert_int_equal(symlinkat("/dev/null", top(), "p"), 0);
	expect(pool_info(store, "p", &info, &err), REPL_E_REFUSED, "is a symbolic link");
	assert_int_equal(unlinkat(top(), "p", 0), 0);
	assert_int_equal(symlinkat("/dev/null/p", top(), "p"), 0);
	expect(pool_info(store, "p", &info, &err), REPL_E_REFUSED, "is a symbolic link");
}

static void
sidecar_that_is_no_file_is_refused(void **state)
{
	(void)state;
	create("p");
	assert_int_equal(unlinkat(top(), "p.repl", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", top(), "p.repl"), 0);
	expect(pool_info(store, "p", &info, &err), REPL_E_REFUSED, "'p.repl' is a symbolic link");
	assert_int_equal(mkfifoat(top(), "q.repl", 0600), 0);
	expect(pool_create(store, "q", SIZE, NULL, false, &info, &err), REPL_E_REFUSED,
	       "is a FIFO");
}

static void
writer_is_recorded_and_fenced(void **state)
{
	struct pool *p, *reader;

	(void)state;
	create("p");
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "ann@one pid 7", &p, &err), 0);
	assert_int_equal(pool_get_info(p)->meta.epoch, 1);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_true(info.meta.writer_open);
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
	assert_string_equal(info.meta.writer, "ann@one pid 7");
	assert_int_equal(pool_open(store, "p", POOL_READ, "bob", &reader, &err), 0);
	expect(pool_mark(reader, SIDECAR_OUTDATED, NULL, 0, &err), REPL_E_REFUSED, "for reading");
	assert_int_equal(pool_close(reader, true, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_false(info.meta.writer_open);
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "bob", &p, &err), 0);
	assert_int_equal(pool_get_info(p)->meta.epoch, 2);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(pool_close(NULL, true, &err), 0);
}

static void
second_writer_learns_who_holds_the_pool(void **state)
{
	struct pool *p, *second = NULL;

	(void)state;
	create("p");
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "ann@one pid 7", &p, &err), 0);
	expect(pool_open(store, "p", POOL_WRITE, "bob", &second, &err), REPL_E_BUSY,
	       "ann@one pid 7");
	expect(pool_remove(store, "p", 0, NULL, &err), REPL_E_BUSY, "ann@one pid 7");
	assert_null(second);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "bob", &second, &err), 0);
	assert_int_equal(pool_close(second, true, &err), 0);
}

static void
stable_readers_keep_writers_out(void **state)
{
	struct pool *one, *two, *writer = NULL;

	(void)state;
	create("p");
	assert_int_equal(pool_open(store, "p", POOL_STABLE, "ann", &one, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_STABLE, "bob", &two, &err), 0);
	expect(pool_open(store, "p", POOL_WRITE, "eve", &writer, &err), REPL_E_BUSY, "in use");
	assert_int_equal(pool_close(one, true, &err), 0);
	expect(pool_open(store, "p", POOL_WRITE, "eve", &writer, &err), REPL_E_BUSY, "in use");
	assert_int_equal(pool_close(two, true, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "eve", &writer, &err), 0);
	expect(pool_open(store, "p", POOL_STABLE, "ann", &one, &err), REPL_E_BUSY, "eve");
	assert_int_equal(pool_close(writer, true, &err), 0);
}

/* A killed one stays on record; it is not who has the pool when another one reads it. */
static void
a_reader_is_not_told_of_as_the_dead_writer(void **state)
{
	struct pool *p, *reader;

	(void)state;
	create("p");
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "eve", &p, &err), 0);
	pool_free(p);
	assert_int_equal(pool_open(store, "p", POOL_STABLE, "ann", &reader, &err), 0);
	expect(pool_open(store, "p", POOL_WRITE, "eve", &p, &err), REPL_E_BUSY,
	       "in use by another session that reads it");
	expect(pool_remove(store, "p", 0, NULL, &err), REPL_E_BUSY, "session that reads it");
	assert_int_equal(pool_close(reader, true, &err), 0);
}

static void
removed_pool_stays_for_its_reader(void **state)
{
	struct pool *reader;
	char byte = 1;

	(void)state;
	create("eu/west/p");
	create("eu/q");
	assert_int_equal(pool_open(store, "eu/west/p", POOL_READ, NULL, &reader, &err), 0);
	assert_int_equal(pool_remove(store, "eu/west/p", 0, NULL, &err), 0);
	assert_int_equal(pread(pool_fd(reader), &byte, 1, SIZE - 1), 1);
	assert_int_equal(byte, 0);
	assert_int_equal(pool_close(reader, true, &err), 0);
	assert_false(present("eu/west"));
	assert_true(present("eu/q"));
	expect(pool_remove(store, "eu/west/p", 0, NULL, &err), REPL_E_NOT_FOUND, "not found");
	assert_int_equal(pool_remove(store, "eu/q", 0, NULL, &err), 0);
	assert_false(present("eu"));
}

/* What state a pool has after its writer is gone. */
static enum sidecar_state
after_close(enum sidecar_state marked, bool clean)
{
	struct generation g = {.current = {.b = {9}}, .history = {{.b = {8}}}};
	struct pool *p;

	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(pool_mark(p, marked, &g, 0, &err), 0);
	assert_int_equal(pool_get_info(p)->meta.state, marked);
	assert_int_equal(pool_close(p, clean, &err), 0);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_false(info.meta.writer_open);
	assert_memory_equal(&info.meta.generation, &g, sizeof(g));
	return info.meta.state;
}

static void
marks_last_and_an_unclean_end_is_unknown_unless_worse(void **state)
{
	(void)state;
	create("p");
	for (int s = SIDECAR_UP_TO_DATE; s <= SIDECAR_UNKNOWN; s++) {
		enum sidecar_state marked = (enum sidecar_state)s;

		assert_int_equal(after_close(marked, true), marked);
		assert_int_equal(after_close(marked, false),
				 marked == SIDECAR_UP_TO_DATE ? SIDECAR_UNKNOWN : marked);
	}
}

/* Positions count within a generation; one that is recorded survives an end in disorder. */
static void
position_is_recorded_at_any_end_and_not_in_a_new_generation(void **state)
{
	struct generation g = {.current = {.b = {9}}};
	struct pool *p;

	(void)state;
	create("p");
	for (int clean = 0; clean < 2; clean++) {
		assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
		assert_int_equal(pool_mark(p, SIDECAR_UP_TO_DATE, &g, 0, &err), 0);
		assert_true(pool_get_info(p)->meta.position == 0);
		pool_position(p, 41 + (unsigned)clean);
		pool_position(p, 40);
		pool_position(p, 0);
		assert_int_equal(pool_mark(p, SIDECAR_UP_TO_DATE, NULL, 0, &err), 0);
		assert_int_equal(pool_close(p, clean, &err), 0);
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
		assert_true(info.meta.position == 41 + (unsigned)clean);
	}
}

/* It is said of the generation: by who brings one, and not by who comes next. */
static void
who_waits_is_recorded_with_a_generation(void **state)
{
	const struct generation g = {.current = {.b = {9}}};
	const struct pool_claim claims[] = {{.writer = "w", .force = true, .waits = true},
					    {.writer = "w", .force = true}};
	struct pool *p;

	(void)state;
	create("p");
	for (int brings = 1; brings >= 0; brings--) {
		for (int waits = 0; waits < 2; waits++) {
			assert_int_equal(pool_open_by(store, "p", &claims[!waits], &p, &err), 0);
			assert_int_equal(
				pool_mark(p, SIDECAR_UP_TO_DATE, brings ? &g : NULL, 0, &err), 0);
			assert_int_equal(pool_close(p, false, &err), 0);
			assert_int_equal(pool_info(store, "p", &info, &err), 0);
			assert_true(info.meta.waited == (brings ? waits : true));
		}
	}
}

static void
killed_writer_is_not_taken_for_up_to_date(void **state)
{
	struct pool *p;
	int status;
	pid_t pid;

	(void)state;
	create("p");
	pid = fork();
	if (pid == 0) {
		(void)!pool_open(store, "p", POOL_WRITE, "victim", &p, NULL);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
	assert_false(info.meta.writer_open);
	assert_string_equal(info.meta.writer, "victim");
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &p, &err), 0);
	assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_UNKNOWN);
	assert_int_equal(pool_get_info(p)->meta.epoch, 2);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
}

/* It was made and not used; what has come in its place by another hand stays. */
static void
unused_pool_does_not_take_another_one_away(void **state)
{
	struct gen_id id;
	struct pool *p;

	(void)state;
	create("p");
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	create("seed");
	id = info.meta.pool_uuid;
	assert_int_equal(renameat(top(), "seed", top(), "p"), 0);
	assert_int_equal(renameat(top(), "seed.repl", top(), "p.repl"), 0);
	expect(pool_close_unused(p, true, &err), REPL_E_NOT_FOUND, "replaced");
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_true(gen_id_equal(&info.meta.pool_uuid, &id));
	assert_int_equal(pool_remove(store, "p", 0, NULL, &err), 0);
	create("p");
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(pool_close_unused(p, true, &err), 0);
	assert_false(present("p"));
	assert_false(present("p.repl"));
}

static void
file_of_another_size_is_corrupt_and_names_both(void **state)
{
	struct pool *p = NULL;

	(void)state;
	create("p");
	for (int grown = 0; grown < 2; grown++) {
		put_file("p", grown ? SIZE + 4096 : SIZE - 1);
		if (grown)
			put_byte("p", SIZE + 4095);
		expect(pool_open(store, "p", POOL_WRITE, "w", &p, &err), REPL_E_CORRUPT, "65536");
		expect(pool_open(store, "p", POOL_READ, "w", &p, &err), REPL_E_CORRUPT, "65536");
		expect(pool_info(store, "p", &info, &err), REPL_E_CORRUPT,
		       grown ? "has 69632 bytes" : "has 65535 bytes");
	}
	put_file("p", SIZE);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_int_equal(info.meta.epoch, 0);
}

static void
one_damaged_copy_is_told_and_mended_by_the_next_writer(void **state)
{
	struct pool *p;

	(void)state;
	create("p");
	for (int copy = 0; copy < 2; copy++) {
		damage("p.repl", copy == 0, copy == 1);
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
		assert_true(info.sidecar_damaged);
		assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
		assert_int_equal(pool_close(p, true, &err), 0);
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
		assert_false(info.sidecar_damaged);
	}
}

static void
damaged_pools_are_listed_can_be_removed_and_are_never_replaced(void **state)
{
	const struct pool_seen none = {.uuid.b = {0}};
	struct pool_info infos[8];
	struct pool *p = NULL;
	unsigned count;
	bool more;

	(void)state;
	create("both");
	create("cut");
	create("good");
	create("lone");
	damage("both.repl", true, true);
	put_file("cut", 4096);
	assert_int_equal(unlinkat(top(), "lone.repl", 0), 0);
	put_file("orphan.repl", SIDECAR_SIZE);
	assert_int_equal(pool_list(store, NULL, infos, 8, &count, &more, &err), 0);
	assert_int_equal(count, 4);
	assert_non_null(strstr(infos[0].damage, "both copies are damaged"));
	assert_non_null(strstr(infos[1].damage, "has 4096 bytes"));
	assert_string_equal(infos[2].damage, "");
	assert_non_null(strstr(infos[3].damage, "sidecar 'lone.repl' is missing"));
	expect(pool_open(store, "both", POOL_WRITE, "w", &p, &err), REPL_E_CORRUPT, "copy it away");
	expect(pool_create(store, "both", SIZE, NULL, false, &info, &err), REPL_E_EXISTS, "exists");
	expect(pool_create(store, "lone", SIZE, NULL, false, &info, &err), REPL_E_EXISTS,
	       "no sidecar");
	expect(pool_info(store, "orphan", &info, &err), REPL_E_NOT_FOUND, "not found");
	expect(pool_remove(store, "orphan", 0, &none, &err), REPL_E_NOT_FOUND, "not found");
	expect(pool_remove(store, "good", 0, &none, &err), REPL_E_REFUSED, "not what it was");
	expect(pool_remove(store, "lone", 0, &none, &err), REPL_E_REFUSED, "not what it was");
	assert_true(present("orphan.repl") && present("good") && present("lone"));
	create("orphan");
	assert_int_equal(pool_remove(store, "both", 0, NULL, &err), 0);
	assert_int_equal(pool_remove(store, "cut", 0, NULL, &err), 0);
	assert_int_equal(pool_remove(store, "lone", 0, NULL, &err), 0);
	create("both");
	create("lone");
	assert_int_equal(pool_list(store, NULL, infos, 8, &count, &more, &err), 0);
	assert_int_equal(count, 4);
}

static void
pool_of_a_newer_version_is_not_removed(void **state)
{
	(void)state;
	create("p");
	sidecar_made_newer("p.repl");
	expect(pool_remove(store, "p", 0, NULL, &err), REPL_E_VERSION, "a newer version made it");
	assert_true(present("p") && present("p.repl"));
}

static void
list_pages_in_name_order_and_hides_the_rest(void **state)
{
	static const char *const names[] = {"a", "a.b", "a/1", "a/2/x", "b", "c", "zz"};
	struct pool_info infos[8];
	char after[TARGET_POOL_MAX + 1];
	unsigned count;
	bool more;

	(void)state;
	/* "a" can't be a pool and a directory. */
	for (unsigned i = 7; i-- > 1;)
		create(names[i]);
	assert_int_equal(mkdirat(top(), ".repld", 0700), 0);
	put_file(".repld/1.json", 2);
	put_file(".hidden", 4096);
	put_file("bell\a", 4096);
	assert_int_equal(mkfifoat(top(), "fifo", 0600), 0);
	assert_int_equal(symlinkat("b", top(), "link"), 0);
	for (unsigned max = 1; max <= 8; max++) {
		unsigned seen = 1;

		after[0] = '\0';
		do {
			assert_int_equal(pool_list(store, after[0] ? after : NULL, infos, max,
						   &count, &more, &err),
					 0);
			for (unsigned i = 0; i < count; i++)
				assert_string_equal(infos[i].name, names[seen++]);
			if (count)
				(void)snprintf(after, sizeof(after), "%s", infos[count - 1].name);
			assert_int_equal(more, seen < 7);
		} while (more);
		assert_int_equal(seen, 7);
	}
}

static void
store_needs_its_directory(void **state)
{
	struct pool_store *s = NULL;

	(void)state;
	expect(pool_store_new("/nonexistent/pools", &s, &err), REPL_E_NOT_FOUND,
	       "/nonexistent/pools");
	assert_null(s);
}

/* In a mount namespace of its own, so that nothing stays behind. */
static void
mount_small(const char *type, const char *options)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", dir, type, 0, options) != 0) {
		print_message("skipped: %s can't be mounted here\n", type);
		skip();
	}
	store_reopen();
}

static void
full_disk_is_told_before_and_leaves_nothing(void **state)
{
	(void)state;
	mount_small("tmpfs", "size=1M");
	expect(pool_create(store, "n/p", 4U << 20, NULL, false, &info, &err), REPL_E_NOSPC,
	       "4194304 bytes are wanted");
	assert_non_null(strstr(err.text, "are free"));
	assert_false(present("n"));
	create("p");
	/* The size fits, its sidecar does not: the disk is full on the way. */
	expect(pool_create(store, "q", (1U << 20) - SIZE - SIDECAR_SIZE, NULL, false, &info, &err),
	       REPL_E_NOSPC, "");
	assert_false(present("q"));
	assert_false(present("q.repl"));
	pool_store_free(store);
	store = NULL;
	assert_int_equal(umount(dir), 0);
}

static void
space_is_written_where_it_can_not_be_reserved(void **state)
{
	struct stat st;

	(void)state;
	mount_small("ramfs", NULL);
	create("p");
	assert_int_equal(fstatat(top(), "p", &st, 0), 0);
	assert_int_equal(st.st_size, SIZE);
	assert_string_equal(info.filesystem, "ramfs");
	pool_store_free(store);
	store = NULL;
	assert_int_equal(umount(dir), 0);
}

static void
limit_on_file_size_is_named(void **state)
{
	struct rlimit old, low;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	expect(pool_create(store, "p", SIZE, NULL, false, &info, &err), REPL_E_LIMIT,
	       "is 4096 bytes, the pool needs 65536");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	create("p");
}

static void
leftovers_go_unless_somebody_is_at_it(void **state)
{
	int fd;

	(void)state;
	create("eu/p");
	put_file("eu/.tmp-0123456789abcdef", 4096);
	put_file("eu/.tmp-0123456789abcdef.repl", 4096);
	put_file("eu/.tmp-fedcba9876543210", 4096);
	assert_int_equal(mkdirat(top(), "us", 0700), 0);
	put_file("us/.tmp-0123456789abcdef", 4096);
	fd = openat(top(), "eu/.tmp-fedcba9876543210", O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	store_reopen();
	assert_false(present("eu/.tmp-0123456789abcdef"));
	assert_false(present("eu/.tmp-0123456789abcdef.repl"));
	assert_true(present("eu/.tmp-fedcba9876543210"));
	assert_false(present("us"));
	(void)close(fd);
	store_reopen();
	assert_false(present("eu/.tmp-fedcba9876543210"));
	assert_int_equal(pool_info(store, "eu/p", &info, &err), 0);
}

/* In place of libc's: a pool whose space takes its time. */
static const char *meanwhile;
static int no_space_errno;

int
fallocate(int fd, int mode, off_t off, off_t len)
{
	const char *name = meanwhile;

	meanwhile = NULL;
	if (no_space_errno) {
		errno = no_space_errno;
		return -1;
	}
	if (name) {
		struct pool_info other;
		struct err why;

		err_clear(&why);
		assert_int_equal(pool_create(store, name, 4096, NULL, false, &other, &why),
				 strcmp(name, "p") == 0 ? REPL_E_BUSY : 0);
	}
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

static void
what_takes_long_is_made_once(void **state)
{
	char temp[64], sidecar[80];

	(void)state;
	meanwhile = "p";
	create("p");
	assert_null(meanwhile);
	meanwhile = "q";
	create("r");
	assert_int_equal(pool_info(store, "q", &info, &err), 0);
	/* What a kill has left keeps nobody from it. */
	assert_int_equal(pool_remove(store, "p", 0, NULL, &err), 0);
	(void)snprintf(temp, sizeof(temp), ".tmp-%016" PRIx64, sum64("p", 1));
	(void)snprintf(sidecar, sizeof(sidecar), "%s.repl", temp);
	put_file(temp, 4096);
	put_file(sidecar, 4096);
	create("p");
	assert_false(present(temp));
	assert_false(present(sidecar));
}

/* What is free on the disk is not what it lacks then. */
static void
what_keeps_space_from_it_is_told(void **state)
{
	(void)state;
	no_space_errno = EDQUOT;
	expect(pool_create(store, "p", SIZE, NULL, false, &info, &err), REPL_E_NOSPC,
	       "quota of the user that repld runs as");
	no_space_errno = EFBIG;
	expect(pool_create(store, "p", SIZE, NULL, false, &info, &err), REPL_E_LIMIT,
	       "the file system takes no file of 65536 bytes");
	no_space_errno = 0;
	create("p");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, world_free)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(created_pool_is_whole_and_private),
		cmocka_unit_test_setup_teardown(created_pool_is_whole_and_private, setup_on_disk,
						world_free),
		T(random_uuids_differ),
		T(bad_sizes_are_refused_and_leave_nothing),
		T(names_that_lead_out_are_refused_everywhere),
		T(device_that_is_away_is_no_refusal),
		T(sidecar_that_is_no_file_is_refused),
		T(writer_is_recorded_and_fenced),
		T(second_writer_learns_who_holds_the_pool),
		T(stable_readers_keep_writers_out),
		T(a_reader_is_not_told_of_as_the_dead_writer),
		T(removed_pool_stays_for_its_reader),
		T(marks_last_and_an_unclean_end_is_unknown_unless_worse),
		T(position_is_recorded_at_any_end_and_not_in_a_new_generation),
		T(who_waits_is_recorded_with_a_generation),
		T(killed_writer_is_not_taken_for_up_to_date),
		T(unused_pool_does_not_take_another_one_away),
		T(file_of_another_size_is_corrupt_and_names_both),
		T(one_damaged_copy_is_told_and_mended_by_the_next_writer),
		T(damaged_pools_are_listed_can_be_removed_and_are_never_replaced),
		T(pool_of_a_newer_version_is_not_removed),
		T(list_pages_in_name_order_and_hides_the_rest),
		T(store_needs_its_directory),
		T(full_disk_is_told_before_and_leaves_nothing),
		T(space_is_written_where_it_can_not_be_reserved),
		T(limit_on_file_size_is_named),
		T(leftovers_go_unless_somebody_is_at_it),
		T(what_takes_long_is_made_once),
		T(what_keeps_space_from_it_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
