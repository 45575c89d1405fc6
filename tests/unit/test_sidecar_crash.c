/* SPDX-License-Identifier: BSD-3-Clause */
/* A kill or power cut at any point of a sidecar's update leaves the state before or after it. */
#include "unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sidecar.h"

/*
 * The disk: the file's content is the page cache, durable is what a sync has
 * put on media, and pending are the writes since then, of which a power cut
 * keeps any part.
 */
struct disk {
	int fd;
	int fail_at; /* the operation that fails, as if the writer was killed there */
	int op;
	bool partial; /* a failing write leaves a part of itself */
	bool killed;  /* nothing more comes of this update */
	bool device;  /* it is the device that fails, and the writer lives on */
	unsigned
		shape; /* what is on media then of what was to be synced; it is not written again */
	bool dirty[2];
	uint8_t durable[SIDECAR_SIZE];
	unsigned pending_count;
	struct {
		off_t off;
		uint8_t data[SIDECAR_SLOT_SIZE];
	} pending[4];
};

static struct disk disk;

/* Before the library's own: the updates under test end up here. */
ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
int fdatasync(int fd);

static void
note_write(const void *buf, size_t len, off_t off)
{
	unsigned n = disk.pending_count++;

	assert_true(n < 4 && len <= SIDECAR_SLOT_SIZE);
	disk.pending[n].off = off / SIDECAR_SLOT_SIZE * SIDECAR_SLOT_SIZE;
	assert_int_equal(off, disk.pending[n].off);
	disk.dirty[off / SIDECAR_SLOT_SIZE] = true;
	assert_int_equal(syscall(SYS_pwrite64, disk.fd, buf, len, off), len);
	assert_int_equal(syscall(SYS_pread64, disk.fd, disk.pending[n].data, SIDECAR_SLOT_SIZE,
				 disk.pending[n].off),
			 SIDECAR_SLOT_SIZE);
}

/* Parts of a write that a power cut may keep; the last ones keep an end instead of a start. */
static const unsigned tears[] = {0,   8,    16,   24,   32,   104,  240,  472, 480,
				 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096};

#define TEAR_COUNT (sizeof(tears) / sizeof(tears[0]))

/* shape < TEAR_COUNT: the start survives; then: the end; then: one sector of garbage. */
static void
tear(uint8_t *slot, const uint8_t *data, unsigned shape)
{
	unsigned at = tears[shape % TEAR_COUNT];

	if (shape < TEAR_COUNT) {
		memcpy(slot, data, at);
	} else if (shape < 2 * TEAR_COUNT) {
		memcpy(slot + at, data + at, SIDECAR_SLOT_SIZE - at);
	} else {
		memcpy(slot, data, SIDECAR_SLOT_SIZE);
		memset(slot + at / 512 % 8 * 512, 0x5a, 512);
	}
}

/* A device that fails leaves a part of it on media, and its pages clean. */
static void
write_back(bool fails)
{
	uint8_t cache[SIDECAR_SLOT_SIZE];

	for (unsigned i = 0; i < 2; i++) {
		uint8_t *slot = disk.durable + i * SIDECAR_SLOT_SIZE;

		if (!disk.dirty[i])
			continue;
		assert_int_equal(syscall(SYS_pread64, disk.fd, cache, SIDECAR_SLOT_SIZE,
					 (off_t)i * SIDECAR_SLOT_SIZE),
				 SIDECAR_SLOT_SIZE);
		if (fails)
			tear(slot, cache, disk.shape);
		else
			memcpy(slot, cache, SIDECAR_SLOT_SIZE);
		disk.dirty[i] = false;
	}
	disk.pending_count = 0;
}

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	assert_int_equal(fd, disk.fd);
	assert_int_equal(len, SIDECAR_SLOT_SIZE);
	if (disk.killed || disk.op++ == disk.fail_at) {
		if (disk.partial && !disk.killed)
			note_write(buf, 24, off);
		disk.killed = !disk.device;
		errno = EIO;
		return -1;
	}
	note_write(buf, len, off);
	return (ssize_t)len;
}

int
fdatasync(int fd)
{
	bool fails;

	assert_int_equal(fd, disk.fd);
	fails = disk.killed || disk.op++ == disk.fail_at;
	if (fails)
		disk.killed = !disk.device;
	if (!disk.killed)
		write_back(fails);
	errno = EIO;
	return fails ? -1 : 0;
}

static void
load(const uint8_t *image)
{
	assert_int_equal(syscall(SYS_pwrite64, disk.fd, image, SIDECAR_SIZE, (off_t)0),
			 SIDECAR_SIZE);
}

/* States are told apart by their epoch. */
enum { ANCIENT = 90, OLD = 100, FIRST = 101, SECOND = 102 };

static void
put_state(uint8_t *slot, uint32_t epoch, uint64_t sequence)
{
	struct sidecar s = {
		.sequence = sequence,
		.pool_size = 4096,
		.state = SIDECAR_UP_TO_DATE,
		.epoch = epoch,
	};

	/* Differ in the last bytes of the sector too, so that a tear inside it shows. */
	memset(s.generation.history[GEN_HISTORY - 1].b, (int)epoch, GEN_ID_SIZE);
	sidecar_encode(&s, slot);
}

static uint32_t
seen(void)
{
	struct sidecar s;
	struct err e;
	bool repair;

	assert_int_equal(sidecar_read(disk.fd, &s, &repair, &e), 0);
	assert_int_equal(s.generation.history[GEN_HISTORY - 1].b[0], s.epoch);
	return s.epoch;
}

static int
update(uint32_t epoch, int fail_at, bool partial)
{
	struct sidecar s;
	struct err e;
	bool repair;

	assert_int_equal(sidecar_read(disk.fd, &s, &repair, &e), 0);
	s.epoch = epoch;
	memset(s.generation.history[GEN_HISTORY - 1].b, (int)epoch, GEN_ID_SIZE);
	disk.op = 0;
	disk.killed = false;
	disk.fail_at = fail_at;
	disk.partial = partial;
	return sidecar_write(disk.fd, &s, &e);
}

#define SHAPES (3 * TEAR_COUNT)

/* Cut the power in every way: each outcome must be one of those that are given. */
static void
power_cut(uint32_t one, uint32_t two, uint32_t three)
{
	uint8_t cache[SIDECAR_SIZE], image[SIDECAR_SIZE];
	unsigned ways = 1;

	for (unsigned i = 0; i < disk.pending_count; i++)
		ways *= SHAPES;
	assert_int_equal(syscall(SYS_pread64, disk.fd, cache, SIDECAR_SIZE, (off_t)0),
			 SIDECAR_SIZE);
	for (unsigned way = 0; way < ways; way++) {
		unsigned rest = way;
		uint32_t got;

		memcpy(image, disk.durable, SIDECAR_SIZE);
		for (unsigned i = 0; i < disk.pending_count; i++, rest /= SHAPES)
			tear(image + disk.pending[i].off, disk.pending[i].data, rest % SHAPES);
		load(image);
		got = seen();
		assert_true(got == one || got == two || got == three);
	}
	load(cache);
}

/* How the file stands before: equal, or one copy zeros or of an older state. */
static void
start(unsigned how)
{
	memset(&disk.durable, 0, SIDECAR_SIZE);
	for (unsigned copy = 0; copy < 2; copy++) {
		uint8_t *slot = disk.durable + copy * SIDECAR_SLOT_SIZE;

		if (how == 1 + copy)
			continue;
		if (how == 3 + copy)
			put_state(slot, ANCIENT, 6);
		else
			put_state(slot, OLD, 7);
	}
	disk.pending_count = 0;
	disk.dirty[0] = disk.dirty[1] = disk.device = false;
	load(disk.durable);
	assert_int_equal(seen(), OLD);
}

#define START_COUNT 5
#define OP_COUNT    5 /* sync, write, sync, write, sync */

static void
one_update_cut_anywhere(void **state)
{
	(void)state;
	for (unsigned how = 0; how < START_COUNT; how++) {
		for (int cut = 0; cut <= OP_COUNT; cut++) {
			int rc;

			start(how);
			rc = update(FIRST, cut, cut % 2 == 1);
			assert_int_equal(rc == 0, cut == OP_COUNT);
			power_cut(rc ? OLD : FIRST, FIRST, FIRST);
		}
	}
}

/* A writer is killed, the next one sees its page cache; then the power fails. */
static void
second_update_after_a_killed_one(void **state)
{
	(void)state;
	for (unsigned n = 0; n < START_COUNT * (OP_COUNT + 1) * (OP_COUNT + 1) * 2; n++) {
		unsigned how = n % START_COUNT;
		int cut1 = (int)(n / START_COUNT % (OP_COUNT + 1));
		int cut2 = (int)(n / START_COUNT / (OP_COUNT + 1) % (OP_COUNT + 1));
		bool partial = n / START_COUNT / (OP_COUNT + 1) / (OP_COUNT + 1);
		uint32_t found;
		int first_rc, rc;

		start(how);
		first_rc = update(FIRST, cut1, partial);
		found = seen();
		if (!first_rc)
			assert_int_equal(found, FIRST);
		rc = update(SECOND, cut2, partial);
		if (!rc)
			power_cut(SECOND, SECOND, SECOND);
		else if (cut2 > 0)
			power_cut(found, SECOND, SECOND);
		else
			power_cut(first_rc ? OLD : FIRST, FIRST, FIRST);
	}
}

/* What a failed sync was to write is clean in the page cache, and on media in part or not at all.
 */
static void
second_update_after_the_device_failed(void **state)
{
	static const unsigned shapes[] = {0, TEAR_COUNT / 2, TEAR_COUNT - 1, SHAPES - 4};

	(void)state;
	for (unsigned n = 0; n < START_COUNT * 2 * 4 * (OP_COUNT + 1); n++) {
		int sync = n / START_COUNT % 2 ? 2 : 4;
		int cut = (int)(n / START_COUNT / 2 / 4);
		int rc;

		start(n % START_COUNT);
		disk.device = true;
		disk.shape = shapes[n / START_COUNT / 2 % 4];
		assert_int_equal(update(FIRST, sync, false), REPL_E_IO);
		disk.device = false;
		rc = update(SECOND, cut, cut % 2 == 1);
		assert_int_equal(rc == 0, cut == OP_COUNT);
		if (rc)
			power_cut(OLD, FIRST, SECOND);
		else
			power_cut(SECOND, SECOND, SECOND);
	}
}

static void
a_finished_update_survives_the_loss_of_either_copy(void **state)
{
	(void)state;
	for (unsigned n = 0; n < START_COUNT * (OP_COUNT + 1) * 2; n++) {
		uint8_t image[SIDECAR_SIZE];
		unsigned copy = n % 2;

		start(n / 2 % START_COUNT);
		(void)update(FIRST, (int)(n / 2 / START_COUNT), false);
		assert_int_equal(update(SECOND, OP_COUNT, false), 0);
		memcpy(image, disk.durable, SIDECAR_SIZE);
		memset(image + copy * SIDECAR_SLOT_SIZE, 0x5a, SIDECAR_SLOT_SIZE);
		load(image);
		assert_int_equal(seen(), SECOND);
	}
}

static int
open_disk(void **state)
{
	(void)state;
	disk.fd = memfd_create("sidecar", MFD_CLOEXEC);
	return disk.fd < 0;
}

static int
close_disk(void **state)
{
	(void)state;
	return close(disk.fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_update_cut_anywhere),
		cmocka_unit_test(second_update_after_a_killed_one),
		cmocka_unit_test(second_update_after_the_device_failed),
		cmocka_unit_test(a_finished_update_survives_the_loss_of_either_copy),
	};

	return cmocka_run_group_tests(tests, open_disk, close_disk);
}
