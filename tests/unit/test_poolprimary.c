/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may write to a pool is judged by the chains; a promotion fences whoever wrote before, a
 * refused writer changes nothing, and a demotion gives the pool back as it is.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "le.h"
#include "pool_chains.h"

#define SIZE (16U * 4096)

static unsigned pool_syncs; /* of files of the pool's size */
static bool loses;          /* the next of them tells of it */
static unsigned forgotten;  /* what is in memory of such files */

static bool
is_pool(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == SIZE;
}

/* In the C library's place. */
int
fsync(int fd)
{
	bool fails = is_pool(fd) && loses;

	if (is_pool(fd)) {
		pool_syncs++;
		loses = false;
	}
	errno = EIO;
	return fails ? -1 : (int)syscall(SYS_fsync, fd);
}

int
posix_fadvise(int fd, off_t off, off_t len, int advice)
{
	forgotten += advice == POSIX_FADV_DONTNEED && is_pool(fd);
	return (int)syscall(SYS_fadvise64, fd, off, len, advice);
}

static int map_sync_errno; /* of a device that fails; pages are clean then */

int
msync(void *addr, size_t len, int flags)
{
	int rc = (int)syscall(SYS_msync, addr, len, flags);

	errno = map_sync_errno ? map_sync_errno : errno;
	return map_sync_errno ? -1 : rc;
}

static bool full; /* a store would be a SIGBUS */

int
madvise(void *addr, size_t len, int advice)
{
	if (!full || advice != MADV_POPULATE_WRITE)
		return (int)syscall(SYS_madvise, addr, len, advice);
	errno = EFAULT;
	return -1;
}

static int
setup_at(int on_disk)
{
	loses = full = false;
	return world_new(on_disk, SIZE);
}

static int
setup(void **state)
{
	(void)state;
	return setup_at(0);
}

static int
setup_on_disk(void **state)
{
	(void)state;
	return setup_at(1);
}

static size_t
sidecar_bytes(uint8_t out[SIDECAR_SIZE])
{
	int fd = openat(pool_store_dirfd(store), "p.repl", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : pread(fd, out, SIDECAR_SIZE, 0);

	assert_true(n > 0);
	(void)close(fd);
	return (size_t)n;
}

/* Opens under a claim; what is refused must not have changed a byte of the sidecar. */
static int
try_open(const struct generation *g, bool force)
{
	const struct pool_claim claim = {.writer = "w", .chain = g, .force = force};
	uint8_t before[SIDECAR_SIZE] = {0}, after[SIDECAR_SIZE] = {0};
	struct pool *p = NULL;
	int rc;

	(void)sidecar_bytes(before);
	rc = pool_open_by(store, "p", &claim, &p, &err);
	if (rc) {
		(void)sidecar_bytes(after);
		assert_memory_equal(before, after, sizeof(before));
		return rc;
	}
	assert_int_equal(pool_close(p, true, &err), 0);
	return 0;
}

/* ---- judging ---- */

static void
every_relation_has_its_verdict(void **state)
{
	const struct {
		struct generation ours, pool;
		int rc;
	} rows[] = {
		{chain(1, 0, 0), chain(0, 0, 0), 0},               /* never written */
		{chain(2, 1, 0), chain(2, 1, 0), 0},               /* equal */
		{chain(3, 2, 1), chain(2, 1, 0), 0},               /* ahead */
		{chain(3, 2, 1), chain(1, 0, 0), 0},               /* ahead by two */
		{chain(2, 1, 0), chain(3, 2, 1), REPL_E_DIVERGED}, /* behind */
		{chain(3, 1, 0), chain(2, 1, 0), REPL_E_DIVERGED}, /* diverged */
		{chain(9, 8, 0), chain(2, 1, 0), REPL_E_DIVERGED}, /* unrelated */
		{chain(2, 3, 0), chain(3, 2, 0), REPL_E_DIVERGED}, /* each the other's: a lie */
		{chain(0, 0, 0), chain(2, 1, 0), REPL_E_DIVERGED}, /* nothing, said as a chain */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(SIDECAR_UP_TO_DATE, &rows[i].pool);
		if (try_open(&rows[i].ours, false) != rows[i].rc)
			fail_msg("row %zu: not %d: %s", i, rows[i].rc, err.text);
		put(SIDECAR_UP_TO_DATE, &rows[i].pool);
		assert_int_equal(try_open(&rows[i].ours, true), 0);
		assert_int_equal(try_open(NULL, false), 0);
	}
}

static void
a_primary_takes_no_writer_whatever_it_says(void **state)
{
	struct generation g = chain(2, 1, 0);

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_promote(store, "p", "root@b pid 7", false, &info, &err), 0);
	g = info.meta.generation;
	expect(try_open(&g, false), REPL_E_REFUSED, "by root@b pid 7; it is the primary now");
	expect(try_open(&g, true), REPL_E_REFUSED, "was promoted 20");
	expect(try_open(NULL, false), REPL_E_REFUSED, "takes no replication");
}

static void
a_primary_in_use_in_place_is_told_as_a_primary(void **state)
{
	struct generation g = chain(2, 1, 0);
	int fd;

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_promote(store, "p", "x", false, &info, &err), 0);
	/* As its own program has it: librepl locks the sidecar. */
	fd = openat(pool_store_dirfd(store), "p.repl", O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	expect(try_open(&g, false), REPL_E_REFUSED, "promoted");
	expect(pool_demote(store, "p", "x", &info, &err), REPL_E_BUSY, "its own program");
	/* Nothing to promote, and nobody to end. */
	assert_int_equal(pool_promote(store, "p", "x", true, &info, &err), 0);
	(void)close(fd);
	assert_int_equal(pool_demote(store, "p", "x", &info, &err), 0);
}

static void
move(const char *from, const char *to)
{
	int at = pool_store_dirfd(store);

	assert_int_equal(renameat(at, from, at, to), 0);
}

/* Who is told that there is no pool makes one, and its record took the primary's place. */
static void
a_primary_whose_file_is_elsewhere_is_not_made_anew(void **state)
{
	uint8_t before[SIDECAR_SIZE] = {0}, after[SIDECAR_SIZE] = {0};
	struct generation g = chain(2, 1, 0);
	struct pool_info listed;
	unsigned count;
	bool more;

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_promote(store, "p", "root@b", false, &info, &err), 0);
	g = info.meta.generation;
	(void)sidecar_bytes(before);
	move("p", "away");
	for (unsigned force = 0; force < 2; force++) {
		err_clear(&err);
		expect(try_open(&g, force), REPL_E_REFUSED, "its file is not there: put it back");
		assert_int_equal(err.reason, REPL_REASON_PROMOTED);
	}
	/* Likewise who only looks, be it for another who would. */
	for (int mode = -1; mode <= 1; mode++) {
		struct pool *p;

		err_clear(&err);
		expect(mode < 0 ? pool_info(store, "p", &info, &err)
				: pool_open(store, "p", mode ? POOL_STABLE : POOL_READ, "r", &p,
					    &err),
		       REPL_E_REFUSED, "its file is not there: put it back");
		assert_int_equal(err.reason, REPL_REASON_PROMOTED);
	}
	assert_int_equal(pool_list(store, NULL, &listed, 1, &count, &more, &err), 0);
	assert_true(count == 1 && !more);
	assert_string_equal(listed.name, "away");
	err_clear(&err);
	expect(pool_create(store, "p", SIZE, NULL, false, &info, &err), REPL_E_REFUSED,
	       "by root@b; it is the primary now");
	assert_int_equal(err.reason, REPL_REASON_PROMOTED);
	expect(pool_remove(store, "p", 0, NULL, &err), REPL_E_REFUSED, "primary");
	(void)sidecar_bytes(after);
	assert_memory_equal(before, after, sizeof(before));
	move("away", "p");
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_true(info.meta.primary);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_EQUAL);
	assert_int_equal(pool_remove(store, "p", POOL_REMOVE_PRIMARY, NULL, &err), 0);
	assert_int_equal(pool_create(store, "p", SIZE, NULL, false, &info, &err), 0);
}

static void
a_pool_in_use_whose_file_is_elsewhere_is_not_made_anew(void **state)
{
	struct generation g = chain(2, 1, 0);
	struct pool *p;

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	move("p", "away");
	expect(pool_create(store, "p", SIZE, NULL, false, &info, &err), REPL_E_BUSY,
	       "open for writing by w");
	move("away", "p");
	assert_int_equal(pool_close(p, true, &err), 0);
	/* A replica's that nobody has is made anew: its data are elsewhere, too. */
	move("p", "away");
	assert_int_equal(pool_create(store, "p", SIZE, NULL, false, &info, &err), 0);
}

/* ---- promote and demote ---- */

static void
a_promotion_is_a_generation_of_its_own(void **state)
{
	struct generation g = chain(2, 1, 0), before;
	uint8_t bytes[SIDECAR_SIZE];

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_promote(store, "p", "root@b", false, &info, &err), 0);
	assert_true(info.meta.primary && !info.meta.writer_open);
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_AHEAD);
	assert_true(gen_id_equal(&info.meta.generation.history[0], &g.current));
	/* What a daemon that knows of no primaries refuses as too new. */
	(void)sidecar_bytes(bytes);
	assert_int_equal(get_le16(bytes + 8), 2);
	assert_int_equal(get_le16(bytes + SIDECAR_SLOT_SIZE + 8), 2);
	/* Again: nothing. */
	before = info.meta.generation;
	assert_int_equal(pool_promote(store, "p", "other", true, &info, &err), 0);
	assert_int_equal(gen_compare(&info.meta.generation, &before), GEN_EQUAL);
	assert_non_null(strstr(info.meta.writer, "by root@b"));
}

static void
a_demotion_keeps_all_but_the_flag(void **state)
{
	struct generation g = chain(2, 1, 0), promoted;
	uint8_t bytes[SIDECAR_SIZE];

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	promoted = info.meta.generation;
	assert_int_equal(pool_demote(store, "p", "op@c", &info, &err), 0);
	assert_false(info.meta.primary || info.meta.writer_open);
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
	/* Who has copied the primary before may lack what its program wrote since. */
	assert_int_equal(gen_compare(&info.meta.generation, &promoted), GEN_AHEAD);
	expect(try_open(&promoted, false), REPL_E_DIVERGED, "newer");
	promoted = info.meta.generation;
	assert_non_null(strstr(info.meta.writer, "demoted 20"));
	(void)sidecar_bytes(bytes);
	assert_int_equal(get_le16(bytes + 8), 1);
	/* The fenced one is still fenced, by its chain. */
	expect(try_open(&g, false), REPL_E_DIVERGED, "newer");
	assert_int_equal(try_open(&promoted, false), 0);
	assert_int_equal(pool_demote(store, "p", "op", &info, &err), 0);
	assert_null(strstr(info.meta.writer, "demoted"));
}

static void
what_misses_updates_is_promoted_by_force_only(void **state)
{
	const struct {
		enum sidecar_state mark;
		bool waits, part;
		const char *text; /* NULL: it may be promoted */
	} rows[] = {
		{SIDECAR_UP_TO_DATE, false, false, NULL},
		{SIDECAR_UNKNOWN, true, false, NULL},
		{SIDECAR_UNKNOWN, false, true, NULL}, /* who knows how much of it */
		{SIDECAR_OUTDATED, false, true, "miss updates"},
		{SIDECAR_INCONSISTENT, false, true, "begun and not ended"},
	};
	struct generation g = chain(2, 1, 0), nil = chain(0, 0, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_as(rows[i].mark, rows[i].waits, &g);
		if (rows[i].text)
			expect(pool_promote(store, "p", "b", false, &info, &err), REPL_E_REFUSED,
			       rows[i].text);
		err_clear(&err);
		assert_int_equal(pool_promote(store, "p", "b", rows[i].text, &info, &err), 0);
		assert_true(info.meta.primary);
		/* Its writer has what it lacks: neither is the other's descendant. */
		assert_int_equal(gen_compare(&g, &info.meta.generation),
				 rows[i].part ? GEN_DIVERGED : GEN_BEHIND);
		/* Of a copy that was cut off it is told for good. */
		assert_int_equal(info.meta.state, rows[i].mark == SIDECAR_INCONSISTENT
							  ? SIDECAR_INCONSISTENT
							  : SIDECAR_UP_TO_DATE);
		assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
		assert_int_equal(info.meta.state == SIDECAR_INCONSISTENT,
				 rows[i].mark == SIDECAR_INCONSISTENT);
	}
	put(SIDECAR_UP_TO_DATE, &nil);
	expect(pool_promote(store, "p", "b", false, &info, &err), REPL_E_REFUSED, "never");
	put(SIDECAR_INCONSISTENT, &nil);
	expect(pool_promote(store, "p", "b", false, &info, &err), REPL_E_REFUSED,
	       "inconsistent: its first copy has begun and not ended, or its file was cut or "
	       "replaced");
	expect(pool_promote(store, "none", "b", true, &info, &err), REPL_E_NOT_FOUND, "none");
	expect(pool_demote(store, "none", "b", &info, &err), REPL_E_NOT_FOUND, "none");
}

static void
a_writer_finds_all_of_it_durable(void **state)
{
	struct generation g = chain(2, 1, 0);
	unsigned before;

	(void)state;
	put(SIDECAR_UNKNOWN, &g);
	before = pool_syncs;
	assert_int_equal(try_open(&g, false), 0);
	assert_true(pool_syncs > before);
}

/* What a program's own replicas have missed is none of the next writer's. */
static void
a_dirty_map_goes_with_the_primary(void **state)
{
	struct generation g = chain(2, 1, 0);
	struct sidecar meta;
	bool repair;
	int fd;

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	fd = openat(pool_store_dirfd(store), "p.repl", O_RDWR);
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	meta.dirty_off = SIDECAR_SIZE;
	meta.dirty_len = 4096;
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	assert_int_equal(ftruncate(fd, SIDECAR_SIZE + 4096), 0);
	assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	assert_true(meta.dirty_len == 0 && meta.dirty_off == 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), SIDECAR_SIZE);
	(void)close(fd);
}

/* ---- PMDK ---- */

#define AT_SDS 4024

static void
put_header(bool bound)
{
	struct pmdk_part part = {.created_s = 1};
	uint8_t attr[PMDK_ATTR_SIZE] = "PMEMOBJ", header[PMDK_HEADER_SIZE];
	int fd;

	attr[8] = 6;
	attr[16] = PMDK_CKSUM_2K | PMDK_SDS;
	pmdk_header_make(attr, &part, header);
	if (bound) {
		/* As test_pmdk binds it. */
		put_le64(header + AT_SDS, 1);
		header[AT_SDS + 16] = 1;
		put_le32(header + AT_SDS + 56, 2);
		put_le32(header + AT_SDS + 60, 16 + 12);
	}
	fd = openat(pool_store_dirfd(store), "p", O_WRONLY);
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
	(void)close(fd);
}

static enum pmdk_shutdown
shutdown_now(void)
{
	uint8_t head[PMDK_HEAD_SIZE];
	struct pmdk_header h;
	size_t len;

	assert_int_equal(pool_head(store, "p", head, sizeof(head), &len, &err), 0);
	assert_true(pmdk_parse(head, len, &h) && h.checksum_ok);
	return h.shutdown;
}

static void
a_foreign_shutdown_state_is_reset(void **state)
{
	struct generation g = chain(2, 1, 0);

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	put_header(true);
	assert_int_equal(shutdown_now(), PMDK_SHUTDOWN_BOUND);
	full = true;
	expect(pool_promote(store, "p", "b", false, &info, &err), REPL_E_NOSPC, "make room");
	assert_int_equal(shutdown_now(), PMDK_SHUTDOWN_BOUND);
	full = false;
	err_clear(&err);
	g = info.meta.generation;
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	assert_int_equal(shutdown_now(), PMDK_SHUTDOWN_CLEAN);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_AHEAD);
	/* What its own program has left there since is its own business. */
	put_header(true);
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	assert_int_equal(shutdown_now(), PMDK_SHUTDOWN_BOUND);
}

static bool
header_is_cached(void)
{
	int fd = openat(pool_store_dirfd(store), "p", O_RDONLY);
	void *mem = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char resident = 0;

	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(mincore(mem, 4096, &resident), 0);
	(void)munmap(mem, 4096);
	(void)close(fd);
	return resident & 1;
}

/* What a failed sync has lost must not be found there, reset and not on media, by the next try. */
static void
a_reset_that_was_lost_is_not_met_again(void **state)
{
	struct generation g = chain(2, 1, 0);

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	put_header(true);
	map_sync_errno = EIO;
	expect(pool_promote(store, "p", "b", false, &info, &err), REPL_E_IO, "sync");
	if (strcmp(info.filesystem, "ext4") == 0)
		assert_false(header_is_cached());
	map_sync_errno = 0;
	err_clear(&err);
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	assert_true(info.meta.primary);
}

/* ---- a laggard ---- */

/* The pool has so much of a generation: its queue's writer was killed. */
static void
put_part(const struct generation *g, uint64_t position)
{
	const struct pool_claim claim = {.writer = "w", .force = true};
	struct pool *p;

	assert_int_equal(pool_open_by(store, "p", &claim, &p, &err), 0);
	assert_int_equal(pool_mark(p, SIDECAR_UP_TO_DATE, g, 0, &err), 0);
	pool_position(p, position);
	assert_int_equal(pool_close(p, false, &err), 0);
}

/* Its chain would say that all of the generation is there, and a position only says so of a
 * primary. */
static void
a_promotion_that_ends_half_way_names_nothing_of_which_it_has_a_part(void **state)
{
	struct generation g = chain(2, 1, 0);

	(void)state;
	put_part(&g, 10);
	put_header(true);
	map_sync_errno = EIO;
	expect(pool_promote(store, "p", "b", false, &info, &err), REPL_E_IO, "sync");
	map_sync_errno = 0;
	err_clear(&err);
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_false(info.meta.primary);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_DIVERGED);
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_DIVERGED);
	assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);

	/* One that does not end so tells how much. */
	put_part(&g, 10);
	put_header(true);
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_AHEAD);
	assert_int_equal(info.meta.position, 10);
}

static void
a_demoted_laggard_names_nothing_of_which_it_has_a_part(void **state)
{
	struct generation g = chain(2, 1, 0), promoted;

	(void)state;
	put_part(&g, 10);
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	promoted = info.meta.generation;
	assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
	assert_int_equal(info.meta.position, 0);
	assert_int_equal(gen_compare(&info.meta.generation, &promoted), GEN_AHEAD);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_DIVERGED);
	expect(try_open(&g, false), REPL_E_DIVERGED, "diverged");
}

static struct sidecar
on_record(void)
{
	int fd = file_open("p.repl");
	struct sidecar meta;
	bool repair;

	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	(void)close(fd);
	return meta;
}

/* As it is said of a killed writer, of ours or of a program that used the pool where it lies. */
static void
put_left(const char *writer, bool primary)
{
	int fd = file_open("p.repl");
	struct sidecar meta = on_record();

	meta.writer_open = true;
	meta.primary = primary;
	memset(meta.writer, 0, sizeof(meta.writer));
	(void)snprintf(meta.writer, sizeof(meta.writer), "%s", writer);
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	(void)close(fd);
}

/* A primary that its program has not closed, of a run of the machine of which this is known. */
static void
put_primary(enum boot_power power)
{
	struct sidecar meta;
	int fd;

	put_left("", true);
	meta = on_record();
	if (power != BOOT_UNTOLD)
		boot_now(&meta.boot);
	if (power == BOOT_CUT)
		meta.boot.b[0] ^= 1;
	fd = file_open("p.repl");
	assert_int_equal(sidecar_write(fd, &meta, &err), 0);
	(void)close(fd);
}

/* What its program had acknowledged another pool has, of that one's generation. */
static void
demoted_after_a_power_cut_it_is_not_ahead(void **state)
{
	static const enum boot_power powers[] = {BOOT_KEPT, BOOT_UNTOLD, BOOT_CUT};
	struct generation g = chain(2, 1, 0);

	(void)state;
	for (unsigned i = 0; i < sizeof(powers) / sizeof(powers[0]); i++) {
		struct sidecar meta;

		put(SIDECAR_UP_TO_DATE, &g);
		put_primary(powers[i]);
		assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
		assert_int_equal(info.power, powers[i]);
		assert_int_equal(gen_compare(&info.meta.generation, &g),
				 powers[i] == BOOT_KEPT ? GEN_AHEAD : GEN_DIVERGED);
		meta = on_record();
		assert_false(meta.primary || meta.writer_open);
		assert_true(gen_id_is_nil(&meta.boot));
		/* Of one that is a replica nothing is told. */
		assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
		assert_int_equal(info.power, BOOT_KEPT);
	}
}

static void
open_for_demotion(const void *arg)
{
	const struct pool_claim claim = {.force = true, .primary = true};
	struct pool *p;

	(void)arg;
	assert_int_equal(pool_open_by(store, "p", &claim, &p, &err), 0);
}

/* Who is killed amid it has stored nothing, and what was known is known to the next one. */
static void
a_demotion_that_is_killed_changes_nothing_of_what_is_known(void **state)
{
	static const enum boot_power powers[] = {BOOT_KEPT, BOOT_UNTOLD, BOOT_CUT};
	struct generation g = chain(2, 1, 0);

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		enum boot_power power = i < 3 ? powers[i] : BOOT_KEPT;

		put(SIDECAR_UP_TO_DATE, &g);
		if (i < 3)
			put_primary(power);
		else
			assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
		killed_after(open_for_demotion, NULL);
		assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
		assert_int_equal(info.power, power);
		assert_int_equal(gen_compare(&info.meta.generation, &g),
				 power == BOOT_KEPT ? GEN_AHEAD : GEN_DIVERGED);
	}
}

/* The next opening is told of what was lost in memory, which is clean then. */
static void
what_only_memory_has_of_a_programs_pool_is_not_dropped(void **state)
{
	struct generation g = chain(2, 1, 0);
	struct pool *p;

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	for (unsigned ours = 0; ours < 2; ours++) {
		put_left(ours ? "w" : "", false);
		for (unsigned tells = 0; tells < 2; tells++) {
			loses = tells == 0;
			forgotten = 0;
			assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err),
					 tells == 0 ? REPL_E_IO : 0);
			assert_int_equal(forgotten > 0, ours);
			err_clear(&err);
		}
		assert_int_equal(pool_close(p, true, &err), 0);
	}
	/* Its program may be none of ours, and on no record. */
	assert_int_equal(pool_promote(store, "p", "b", false, &info, &err), 0);
	forgotten = 0;
	loses = true;
	expect(pool_demote(store, "p", "b", &info, &err), REPL_E_IO, "sync");
	err_clear(&err);
	assert_true(on_record().primary && on_record().writer_open);
	assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
	assert_int_equal(info.power, BOOT_CUT);
	assert_int_equal(forgotten, 0);
	/* What its killed program had acknowledged may be lost, though the machine runs on. */
	put(SIDECAR_UP_TO_DATE, &g);
	put_primary(BOOT_KEPT);
	loses = true;
	expect(pool_demote(store, "p", "b", &info, &err), REPL_E_IO, "sync");
	err_clear(&err);
	assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
	assert_int_equal(info.power, BOOT_CUT);
	assert_int_equal(gen_compare(&info.meta.generation, &g), GEN_DIVERGED);
	/* Nor by who reads, and brings in what was left. */
	for (unsigned primary = 0; primary < 2; primary++) {
		killed_after(write_some_with_record, NULL);
		put_left("w", primary);
		forgotten = 0;
		loses = true;
		assert_int_equal(pool_open(store, "p", POOL_READ, NULL, &p, &err), 0);
		assert_false(loses);
		assert_int_equal(pool_close(p, true, &err), 0);
		assert_int_equal(forgotten == 0, primary);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_relation_has_its_verdict, setup, world_free),
		cmocka_unit_test_setup_teardown(a_primary_takes_no_writer_whatever_it_says, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_primary_in_use_in_place_is_told_as_a_primary,
						setup, world_free),
		cmocka_unit_test_setup_teardown(a_primary_whose_file_is_elsewhere_is_not_made_anew,
						setup, world_free),
		cmocka_unit_test_setup_teardown(
			a_pool_in_use_whose_file_is_elsewhere_is_not_made_anew, setup, world_free),
		cmocka_unit_test_setup_teardown(a_promotion_is_a_generation_of_its_own, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_demotion_keeps_all_but_the_flag, setup,
						world_free),
		cmocka_unit_test_setup_teardown(what_misses_updates_is_promoted_by_force_only,
						setup, world_free),
		cmocka_unit_test_setup_teardown(a_writer_finds_all_of_it_durable, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_dirty_map_goes_with_the_primary, setup,
						world_free),
		cmocka_unit_test_setup_teardown(
			a_promotion_that_ends_half_way_names_nothing_of_which_it_has_a_part,
			setup_on_disk, world_free),
		cmocka_unit_test_setup_teardown(
			a_demoted_laggard_names_nothing_of_which_it_has_a_part, setup, world_free),
		cmocka_unit_test_setup_teardown(a_foreign_shutdown_state_is_reset, setup,
						world_free),
		cmocka_unit_test_setup_teardown(a_reset_that_was_lost_is_not_met_again,
						setup_on_disk, world_free),
		cmocka_unit_test_setup_teardown(demoted_after_a_power_cut_it_is_not_ahead, setup,
						world_free),
		cmocka_unit_test_setup_teardown(
			a_demotion_that_is_killed_changes_nothing_of_what_is_known, setup,
			world_free),
		cmocka_unit_test_setup_teardown(
			what_only_memory_has_of_a_programs_pool_is_not_dropped, setup, world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
