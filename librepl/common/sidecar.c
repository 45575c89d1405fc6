/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "filewrite.h"
#include "le.h"

/* Offsets in a slot: docs/POOL-FORMAT.md. */
enum {
	AT_MAGIC = 0,
	AT_MAJOR = 8,
	AT_MINOR = 10,
	AT_SLOT_SIZE = 12,
	AT_CHECKSUM = 16,
	AT_SEQUENCE = 24,
	AT_POOL_UUID = 32,
	AT_POOL_SIZE = 48,
	AT_STATE = 56,
	AT_FLAGS = 60,
	AT_EPOCH = 64,
	AT_ZERO_68 = 68,
	AT_CREATED = 72,
	AT_UPDATED = 80,
	AT_POSITION = 88,
	AT_WRITER = 96,
	AT_GENERATION = 224,
	AT_HISTORY = 240,
	AT_DIRTY_OFF = 480,
	AT_DIRTY_LEN = 488,
	AT_RING_OFF = 496,
	AT_RING_LEN = 504,
	AT_JOURNAL_OFF = 512,
	AT_JOURNAL_LEN = 520,
	AT_LOG_OFF = 528,
	AT_LOG_LEN = 536,
	AT_ATTR = 544,
	AT_RECORD_OFF = 648,
	AT_RECORD_LEN = 656,
	AT_BACKING = 664,
	AT_LAYOUT = 680,
	AT_ORDER = 688,
	AT_BOOT = 696,
	AT_ZERO_712 = 712,
};

#define MAGIC            "REPLSIDE"
#define FLAG_WRITER_OPEN 1U
#define FLAG_SPARSE      2U
#define FLAG_PRIMARY     4U
#define FLAG_COMMITTED   8U
#define FLAG_OPENING     16U
#define FLAG_WAITED      32U
#define FLAG_SETTLED     64U
#define MINOR_RING       1     /* brought the receive ring and sparse pools */
#define MINOR_DIRTY      2     /* brought the dirty map and the position */
#define MINOR_ATTR       3     /* brought attributes of a pool set */
#define MINOR_OPENING    4     /* brought the first opening that has not ended */
#define MINOR_RECORD     5     /* brought the position record, and who is waited for */
#define MINOR_BACKING    6     /* brought what the pool lies in, and whether that is settled */
#define MINOR_LAYOUT     7     /* brought how a set has its bytes */
#define MINOR_ORDER      8     /* brought the order of its files */
#define MINOR_BOOT       9     /* brought since when its machine runs */
#define MINOR_TWO_ATTR   1     /* attributes, of later major versions */
#define MINOR_TWO_OPEN   2     /* the first opening, of later major versions */
#define MINOR_TWO_RECORD 3     /* both, of later major versions */
#define MINOR_TWO_BACK   4     /* both, of later major versions */
#define MINOR_TWO_LAYOUT 5     /* the bytes of a set, of later major versions */
#define MINOR_TWO_ORDER  6     /* the order of its files, of later major versions */
#define MINOR_TWO_BOOT   7     /* since when its machine runs, of later major versions */
#define POOL_PAGE        4096U /* of versions below 4 a size is a multiple of it */

/* What a copy on media is. */
enum copy_kind { COPY_WHOLE, COPY_DAMAGED, COPY_NEWER };

struct copies {
	enum copy_kind kind[2];
	struct sidecar s[2]; /* when whole */
	struct err why[2];   /* when not */
	uint8_t slot[2][SIDECAR_SLOT_SIZE];
};

const char *
sidecar_state_name(enum sidecar_state s)
{
	switch (s) {
	case SIDECAR_UP_TO_DATE:
		return "up-to-date";
	case SIDECAR_INCONSISTENT:
		return "inconsistent";
	case SIDECAR_OUTDATED:
		return "outdated";
	case SIDECAR_UNKNOWN:
		break;
	}
	return "unknown";
}

bool
sidecar_tells_nothing(const struct sidecar *s)
{
	return s->opening && gen_id_is_nil(&s->generation.current);
}

const char *
sidecar_holds(const struct sidecar *s)
{
	if (s->ring_len)
		return "receive ring";
	if (s->journal_len && s->journal_committed)
		return "resync journal";
	return s->log_len ? "round log" : NULL;
}

static bool
is_printable(uint8_t c)
{
	return c >= 0x20 && c < 0x7f;
}

static void
encode_writer(const char writer[sizeof(((struct sidecar *)0)->writer)], uint8_t *out)
{
	size_t size = sizeof(((struct sidecar *)0)->writer);

	for (size_t i = 0; i + 1 < size && writer[i]; i++)
		out[i] = is_printable((uint8_t)writer[i]) ? (uint8_t)writer[i] : '?';
}

static uint64_t
slot_sum(const uint8_t *slot)
{
	uint8_t copy[SIDECAR_SLOT_SIZE];

	memcpy(copy, slot, sizeof(copy));
	memset(copy + AT_CHECKSUM, 0, 8);
	return sum64(copy, sizeof(copy));
}

/* What is here is a part of the generation, and who has more of it is no copy. */
static bool
is_part(const struct sidecar *s)
{
	return s->state == SIDECAR_UNKNOWN && s->position;
}

static unsigned
encode_major(const struct sidecar *s)
{
	if (s->pool_size % POOL_PAGE)
		return 4;
	if (s->log_len)
		return 3;
	return s->journal_len || s->primary || is_part(s) ? 2 : 1;
}

/*
 * The oldest version whose programs do no harm to a pool like this: those of
 * version 1 would serve one with a journal as it is, let a fenced writer in, and
 * take a part of a generation for all of it; those of version 2 would serve one
 * with a round log without what is in that; those of version 3 know whole pages only.
 */
static void
encode_version(const struct sidecar *s, uint8_t *slot)
{
	unsigned major = encode_major(s);
	bool attr = !all_zero(s->attr, sizeof(s->attr));
	unsigned minor = s->ring_len || s->sparse ? MINOR_RING : 0;

	if (s->dirty_len || s->position)
		minor = MINOR_DIRTY;
	if (attr)
		minor = MINOR_ATTR;
	if (major > 1)
		minor = attr ? MINOR_TWO_ATTR : 0;
	if (s->opening)
		minor = major > 1 ? MINOR_TWO_OPEN : MINOR_OPENING;
	if (s->position_len || s->waited)
		minor = major > 1 ? MINOR_TWO_RECORD : MINOR_RECORD;
	if (s->settled || !gen_id_is_nil(&s->backing))
		minor = major > 1 ? MINOR_TWO_BACK : MINOR_BACKING;
	if (s->layout)
		minor = major > 1 ? MINOR_TWO_LAYOUT : MINOR_LAYOUT;
	if (s->order)
		minor = major > 1 ? MINOR_TWO_ORDER : MINOR_ORDER;
	if (!gen_id_is_nil(&s->boot))
		minor = major > 1 ? MINOR_TWO_BOOT : MINOR_BOOT;
	put_le16(slot + AT_MAJOR, (uint16_t)major);
	put_le16(slot + AT_MINOR, (uint16_t)minor);
}

static uint32_t
encode_flags(const struct sidecar *s)
{
	return (s->writer_open ? FLAG_WRITER_OPEN : 0) | (s->sparse ? FLAG_SPARSE : 0) |
	       (s->primary ? FLAG_PRIMARY : 0) | (s->journal_committed ? FLAG_COMMITTED : 0) |
	       (s->opening ? FLAG_OPENING : 0) | (s->waited ? FLAG_WAITED : 0) |
	       (s->settled ? FLAG_SETTLED : 0);
}

void
sidecar_encode(const struct sidecar *s, uint8_t slot[SIDECAR_SLOT_SIZE])
{
	memset(slot, 0, SIDECAR_SLOT_SIZE);
	memcpy(slot + AT_MAGIC, MAGIC, 8);
	encode_version(s, slot);
	put_le32(slot + AT_SLOT_SIZE, SIDECAR_SLOT_SIZE);
	put_le64(slot + AT_SEQUENCE, s->sequence);
	memcpy(slot + AT_POOL_UUID, s->pool_uuid.b, GEN_ID_SIZE);
	put_le64(slot + AT_POOL_SIZE, s->pool_size);
	put_le32(slot + AT_STATE, (uint32_t)s->state);
	put_le32(slot + AT_FLAGS, encode_flags(s));
	put_le32(slot + AT_EPOCH, s->epoch);
	put_le64(slot + AT_CREATED, s->created_s);
	put_le64(slot + AT_UPDATED, s->updated_s);
	encode_writer(s->writer, slot + AT_WRITER);
	memcpy(slot + AT_GENERATION, s->generation.current.b, GEN_ID_SIZE);
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		memcpy(slot + AT_HISTORY + i * GEN_ID_SIZE, s->generation.history[i].b,
		       GEN_ID_SIZE);
	put_le64(slot + AT_POSITION, s->position);
	put_le64(slot + AT_DIRTY_OFF, s->dirty_off);
	put_le64(slot + AT_DIRTY_LEN, s->dirty_len);
	put_le64(slot + AT_RING_OFF, s->ring_off);
	put_le64(slot + AT_RING_LEN, s->ring_len);
	put_le64(slot + AT_JOURNAL_OFF, s->journal_off);
	put_le64(slot + AT_JOURNAL_LEN, s->journal_len);
	put_le64(slot + AT_LOG_OFF, s->log_off);
	put_le64(slot + AT_LOG_LEN, s->log_len);
	memcpy(slot + AT_ATTR, s->attr, sizeof(s->attr));
	put_le64(slot + AT_RECORD_OFF, s->position_off);
	put_le64(slot + AT_RECORD_LEN, s->position_len);
	memcpy(slot + AT_BACKING, s->backing.b, GEN_ID_SIZE);
	put_le64(slot + AT_LAYOUT, s->layout);
	put_le64(slot + AT_ORDER, s->order);
	memcpy(slot + AT_BOOT, s->boot.b, GEN_ID_SIZE);
	put_le64(slot + AT_CHECKSUM, slot_sum(slot));
}

/* Magic, checksum and version stand where they are in every version. */
static int
check_envelope(const uint8_t *slot, struct err *e)
{
	unsigned major = get_le16(slot + AT_MAJOR);

	if (memcmp(slot + AT_MAGIC, MAGIC, 8) != 0)
		return err_set(e, REPL_E_CORRUPT, "no magic bytes '%s'", MAGIC);
	if (get_le64(slot + AT_CHECKSUM) != slot_sum(slot))
		return err_set(e, REPL_E_CORRUPT, "checksum does not match");
	if (major > SIDECAR_VERSION)
		return err_set(e, REPL_E_VERSION,
			       "format version %u, this program knows up to %d: a newer version "
			       "made it",
			       major, SIDECAR_VERSION);
	if (major == 0 || get_le32(slot + AT_SLOT_SIZE) != SIDECAR_SLOT_SIZE)
		return err_set(e, REPL_E_CORRUPT, "format version %u with slots of %u bytes", major,
			       get_le32(slot + AT_SLOT_SIZE));
	return 0;
}

/* Its minor version is that, or a later one: of major version 1, of the others. */
static bool
has_minor(const uint8_t *slot, unsigned one, unsigned two)
{
	return get_le16(slot + AT_MINOR) >= (get_le16(slot + AT_MAJOR) == 1 ? one : two);
}

static bool
has_attr(const uint8_t *slot)
{
	return has_minor(slot, MINOR_ATTR, MINOR_TWO_ATTR);
}

static bool
has_opening(const uint8_t *slot)
{
	return has_minor(slot, MINOR_OPENING, MINOR_TWO_OPEN);
}

static bool
has_record(const uint8_t *slot)
{
	return has_minor(slot, MINOR_RECORD, MINOR_TWO_RECORD);
}

static bool
has_backing(const uint8_t *slot)
{
	return has_minor(slot, MINOR_BACKING, MINOR_TWO_BACK);
}

static bool
has_layout(const uint8_t *slot)
{
	return has_minor(slot, MINOR_LAYOUT, MINOR_TWO_LAYOUT);
}

static bool
has_order(const uint8_t *slot)
{
	return has_minor(slot, MINOR_ORDER, MINOR_TWO_ORDER);
}

static bool
has_boot(const uint8_t *slot)
{
	return has_minor(slot, MINOR_BOOT, MINOR_TWO_BOOT);
}

/* Where what the slot's version does not know begins. */
static size_t
reserved_at(const uint8_t *slot)
{
	if (has_boot(slot))
		return AT_ZERO_712;
	if (has_order(slot))
		return AT_BOOT;
	if (has_layout(slot))
		return AT_ORDER;
	if (has_backing(slot))
		return AT_LAYOUT;
	if (has_record(slot))
		return AT_BACKING;
	return has_attr(slot) ? AT_RECORD_OFF : AT_ATTR;
}

/* What the slot's version does not know is zero; a newer minor one may use it. */
static int
check_reserved(const uint8_t *slot, struct err *e)
{
	unsigned major = get_le16(slot + AT_MAJOR), minor = get_le16(slot + AT_MINOR);
	uint32_t known = FLAG_WRITER_OPEN | FLAG_SPARSE | FLAG_PRIMARY | FLAG_COMMITTED;
	size_t zero;

	if (major == 1)
		known = FLAG_WRITER_OPEN | (minor >= MINOR_RING ? FLAG_SPARSE : 0);
	if (has_opening(slot))
		known |= FLAG_OPENING;
	if (has_record(slot))
		known |= FLAG_WAITED;
	if (has_backing(slot))
		known |= FLAG_SETTLED;
	if (major == 1 && minor < MINOR_DIRTY &&
	    !all_zero(slot + AT_DIRTY_OFF, AT_RING_OFF - AT_DIRTY_OFF))
		return err_set(e, REPL_E_CORRUPT, "version 1.%u with a dirty map", minor);
	if (major == 1 && minor < MINOR_RING &&
	    !all_zero(slot + AT_RING_OFF, AT_JOURNAL_OFF - AT_RING_OFF))
		return err_set(e, REPL_E_CORRUPT, "version 1.0 with a receive ring");
	if (major == 1 && (!all_zero(slot + AT_JOURNAL_OFF, AT_LOG_OFF - AT_JOURNAL_OFF) ||
			   (get_le32(slot + AT_FLAGS) & (FLAG_PRIMARY | FLAG_COMMITTED))))
		return err_set(e, REPL_E_CORRUPT, "version 1 with a journal or a primary");
	if (major < 3 && !all_zero(slot + AT_LOG_OFF, AT_ATTR - AT_LOG_OFF) &&
	    minor <= (major == 2 ? MINOR_TWO_BOOT : MINOR_BOOT))
		return err_set(e, REPL_E_CORRUPT, "version %u with a round log", major);
	if (has_minor(slot, MINOR_BOOT + 1, MINOR_TWO_BOOT + 1))
		return 0;
	zero = reserved_at(slot);
	if ((get_le32(slot + AT_FLAGS) & ~known) || !all_zero(slot + AT_ZERO_68, 4) ||
	    (major == 1 && minor < MINOR_DIRTY && !all_zero(slot + AT_POSITION, 8)) ||
	    !all_zero(slot + zero, SIDECAR_SLOT_SIZE - zero))
		return err_set(e, REPL_E_CORRUPT, "reserved bytes are not zero");
	return 0;
}

static int
decode_writer(const uint8_t *in, char *writer, size_t size, struct err *e)
{
	size_t len = strnlen((const char *)in, size);

	if (len == size || !all_zero(in + len, size - len))
		return err_set(e, REPL_E_CORRUPT, "writer's text does not end in zeros");
	for (size_t i = 0; i < len; i++)
		if (!is_printable(in[i]))
			return err_set(e, REPL_E_CORRUPT, "writer's text holds byte 0x%02x", in[i]);
	memcpy(writer, in, size);
	return 0;
}

static int
check_region(const char *name, uint64_t off, uint64_t len, struct err *e)
{
	if (off == 0 && len == 0)
		return 0;
	if (len == 0 || len > INT64_MAX || off > INT64_MAX || off < SIDECAR_SIZE ||
	    off + len > INT64_MAX || off % SIDECAR_REGION_ALIGN || len % SIDECAR_REGION_ALIGN)
		return err_set(e, REPL_E_CORRUPT,
			       "%s of %llu bytes at %llu is no region of this file", name,
			       (unsigned long long)len, (unsigned long long)off);
	return 0;
}

struct region {
	const char *name;
	uint64_t off, len;
};

static bool
regions_overlap(const struct region *a, const struct region *b)
{
	return a->len && b->len && a->off < b->off + b->len && b->off < a->off + a->len;
}

static int
check_regions(const struct sidecar *s, struct err *e)
{
	const struct region regions[] = {
		{"receive ring", s->ring_off, s->ring_len},
		{"dirty map", s->dirty_off, s->dirty_len},
		{"journal", s->journal_off, s->journal_len},
		{"round log", s->log_off, s->log_len},
		{"position record", s->position_off, s->position_len},
	};

	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		int rc = check_region(regions[i].name, regions[i].off, regions[i].len, e);

		if (rc)
			return rc;
		for (size_t k = 0; k < i; k++)
			if (regions_overlap(&regions[i], &regions[k]))
				return err_set(e, REPL_E_CORRUPT, "regions overlap");
	}
	if (s->journal_committed && s->journal_len == 0)
		return err_set(e, REPL_E_CORRUPT, "a journal is committed, but there is none");
	return 0;
}

static int
check_values(const struct sidecar *s, struct err *e)
{
	if (s->sequence == 0 || s->sequence > INT64_MAX)
		return err_set(e, REPL_E_CORRUPT, "sequence %llu is out of bounds",
			       (unsigned long long)s->sequence);
	if (s->pool_size == 0 || s->pool_size > INT64_MAX)
		return err_set(e, REPL_E_CORRUPT, "pool size %llu is out of bounds",
			       (unsigned long long)s->pool_size);
	if (s->position > INT64_MAX)
		return err_set(e, REPL_E_CORRUPT, "position is out of bounds");
	if (s->created_s > INT64_MAX || s->updated_s > INT64_MAX)
		return err_set(e, REPL_E_CORRUPT, "point in time is out of bounds");
	return check_regions(s, e);
}

int
sidecar_decode(const uint8_t slot[SIDECAR_SLOT_SIZE], struct sidecar *s, struct err *e)
{
	struct sidecar got = {0};
	uint32_t state = get_le32(slot + AT_STATE);
	int rc;

	rc = check_envelope(slot, e);
	if (!rc)
		rc = check_reserved(slot, e);
	if (!rc)
		rc = decode_writer(slot + AT_WRITER, got.writer, sizeof(got.writer), e);
	if (rc)
		return rc;
	if (state < SIDECAR_UP_TO_DATE || state > SIDECAR_UNKNOWN)
		return err_set(e, REPL_E_CORRUPT, "state %u is not known", state);
	got.state = (enum sidecar_state)state;
	got.sequence = get_le64(slot + AT_SEQUENCE);
	memcpy(got.pool_uuid.b, slot + AT_POOL_UUID, GEN_ID_SIZE);
	got.pool_size = get_le64(slot + AT_POOL_SIZE);
	got.writer_open = get_le32(slot + AT_FLAGS) & FLAG_WRITER_OPEN;
	got.sparse = get_le32(slot + AT_FLAGS) & FLAG_SPARSE;
	got.epoch = get_le32(slot + AT_EPOCH);
	got.created_s = get_le64(slot + AT_CREATED);
	got.updated_s = get_le64(slot + AT_UPDATED);
	got.primary = get_le32(slot + AT_FLAGS) & FLAG_PRIMARY;
	got.opening = has_opening(slot) && (get_le32(slot + AT_FLAGS) & FLAG_OPENING);
	got.waited = has_record(slot) && (get_le32(slot + AT_FLAGS) & FLAG_WAITED);
	got.position = get_le64(slot + AT_POSITION);
	got.dirty_off = get_le64(slot + AT_DIRTY_OFF);
	got.dirty_len = get_le64(slot + AT_DIRTY_LEN);
	got.ring_off = get_le64(slot + AT_RING_OFF);
	got.ring_len = get_le64(slot + AT_RING_LEN);
	got.journal_off = get_le64(slot + AT_JOURNAL_OFF);
	got.journal_len = get_le64(slot + AT_JOURNAL_LEN);
	got.journal_committed = get_le32(slot + AT_FLAGS) & FLAG_COMMITTED;
	/* Of a minor version that is not known they may mean anything. */
	if (get_le16(slot + AT_MAJOR) >= 3) {
		got.log_off = get_le64(slot + AT_LOG_OFF);
		got.log_len = get_le64(slot + AT_LOG_LEN);
	}
	if (has_attr(slot))
		memcpy(got.attr, slot + AT_ATTR, sizeof(got.attr));
	if (has_record(slot)) {
		got.position_off = get_le64(slot + AT_RECORD_OFF);
		got.position_len = get_le64(slot + AT_RECORD_LEN);
	}
	got.settled = has_backing(slot) && (get_le32(slot + AT_FLAGS) & FLAG_SETTLED);
	if (has_backing(slot))
		memcpy(got.backing.b, slot + AT_BACKING, GEN_ID_SIZE);
	if (has_layout(slot))
		got.layout = get_le64(slot + AT_LAYOUT);
	if (has_order(slot))
		got.order = get_le64(slot + AT_ORDER);
	if (has_boot(slot))
		memcpy(got.boot.b, slot + AT_BOOT, GEN_ID_SIZE);
	memcpy(got.generation.current.b, slot + AT_GENERATION, GEN_ID_SIZE);
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		memcpy(got.generation.history[i].b, slot + AT_HISTORY + i * GEN_ID_SIZE,
		       GEN_ID_SIZE);
	rc = check_values(&got, e);
	if (!rc && get_le16(slot + AT_MAJOR) < 4 && got.pool_size % POOL_PAGE)
		rc = err_set(e, REPL_E_CORRUPT,
			     "version %u with a pool of %llu bytes, no multiple of %u",
			     get_le16(slot + AT_MAJOR), (unsigned long long)got.pool_size,
			     POOL_PAGE);
	if (rc)
		return rc;
	*s = got;
	return 0;
}

static int
read_slot(int fd, unsigned copy, uint8_t *slot, struct err *e)
{
	size_t done = 0;

	while (done < SIDECAR_SLOT_SIZE) {
		ssize_t n = pread(fd, slot + done, SIDECAR_SLOT_SIZE - done,
				  (off_t)(copy * SIDECAR_SLOT_SIZE + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, REPL_E_IO, errno, "read");
		if (n == 0)
			return err_set(e, REPL_E_CORRUPT, "file ends after %zu of its bytes", done);
		done += (size_t)n;
	}
	return 0;
}

/* A copy that can't be read for a bad sector is as damaged as one with a wrong checksum. */
static void
load_copies(int fd, struct copies *c)
{
	for (unsigned i = 0; i < 2; i++) {
		int rc = read_slot(fd, i, c->slot[i], &c->why[i]);

		if (!rc)
			rc = sidecar_decode(c->slot[i], &c->s[i], &c->why[i]);
		if (!rc)
			c->kind[i] = COPY_WHOLE;
		else
			c->kind[i] = rc == REPL_E_VERSION ? COPY_NEWER : COPY_DAMAGED;
	}
}

static int
refuse_newer(const struct copies *c, struct err *e)
{
	for (unsigned i = 0; i < 2; i++)
		if (c->kind[i] == COPY_NEWER)
			return err_set(e, REPL_E_VERSION, "sidecar: %s", c->why[i].text);
	return 0;
}

/* The copy to believe: the newest whole one, -1 if there is none. */
static int
newest(const struct copies *c)
{
	bool one = c->kind[0] == COPY_WHOLE, two = c->kind[1] == COPY_WHOLE;

	if (one && two)
		return c->s[1].sequence > c->s[0].sequence;
	if (one)
		return 0;
	return two ? 1 : -1;
}

static bool
copies_differ(const struct copies *c)
{
	return c->kind[0] != COPY_WHOLE || c->kind[1] != COPY_WHOLE ||
	       memcmp(c->slot[0], c->slot[1], SIDECAR_SLOT_SIZE) != 0;
}

int
sidecar_read(int fd, struct sidecar *s, bool *repair, struct err *e)
{
	struct copies c;
	int best, rc;

	load_copies(fd, &c);
	rc = refuse_newer(&c, e);
	if (rc)
		return rc;
	best = newest(&c);
	if (best < 0) {
		rc = err_set(e, REPL_E_CORRUPT,
			     "sidecar: both copies are damaged (first: %s; second: %s)",
			     c.why[0].text, c.why[1].text);
		if (e)
			e->errnum = c.why[0].errnum ? c.why[0].errnum : c.why[1].errnum;
		return rc;
	}
	*s = c.s[best];
	*repair = copies_differ(&c);
	return 0;
}

static int
write_slot(int fd, unsigned copy, const uint8_t *slot, struct err *e)
{
	if (filewrite_all(fd, slot, SIDECAR_SLOT_SIZE, (off_t)(copy * SIDECAR_SLOT_SIZE)))
		return err_errno(e, err_from_errno(errno), errno, "sidecar: write copy %u",
				 copy + 1);
	return 0;
}

static int
sync_file(int fd, struct err *e)
{
	if (fdatasync(fd) != 0)
		return err_errno(e, REPL_E_IO, errno, "sidecar: sync");
	return 0;
}

/*
 * What a sync has failed to write reads like what is on media: the next update would rely upon
 * this copy while it writes the other one, which is the only one. So it is damaged from now on.
 */
static int
write_copy(int fd, unsigned copy, bool other, const uint8_t *slot, struct err *e)
{
	static const uint8_t none[SIDECAR_SLOT_SIZE];
	int rc = write_slot(fd, copy, slot, e);

	if (!rc)
		rc = sync_file(fd, e);
	if (rc && other)
		(void)write_slot(fd, copy, none, NULL);
	return rc;
}

int
sidecar_write(int fd, struct sidecar *s, struct err *e)
{
	struct sidecar next = *s;
	struct copies c;
	uint8_t slot[SIDECAR_SLOT_SIZE];
	unsigned first;
	int best, rc;

	load_copies(fd, &c);
	rc = refuse_newer(&c, e);
	if (rc)
		return rc;
	best = newest(&c);
	if (best >= 0 && c.s[best].sequence > next.sequence)
		next.sequence = c.s[best].sequence;
	if (next.sequence >= INT64_MAX)
		return err_set(e, REPL_E_LIMIT, "sidecar: sequence is used up");
	next.sequence++;
	next.updated_s = (uint64_t)time(NULL);
	/* The newest whole copy is not touched before the other one is as new. */
	first = best == 0 && copies_differ(&c);
	sidecar_encode(&next, slot);
	/* Nothing is written that could not be read again. */
	rc = sidecar_decode(slot, &next, e);
	if (rc)
		return rc;
	/* What a killed writer left in the page cache is read above: make it true on media. */
	rc = sync_file(fd, e);
	if (!rc)
		rc = write_copy(fd, first, best >= 0, slot, e);
	if (!rc)
		rc = write_copy(fd, !first, true, slot, e);
	if (!rc)
		*s = next;
	return rc;
}
