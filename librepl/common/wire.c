/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "checksum.h"
#include "le.h"
#include "words.h"

/* Offsets of the header's fields. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_TYPE = 5,
	AT_ENTRIES = 6,
	AT_SEQ = 8,
	AT_PAYLOAD = 16,
	AT_EPOCH = 20,
	AT_SUM = 24,
};

/* Offsets in an entry. */
enum { AT_OFF = 0, AT_LEN = 8, AT_OP = 12, AT_ZERO = 13 };

/* Offsets in an ACK. */
enum {
	AT_STATUS = 32,
	AT_ACK_ZERO = 36,
	AT_SERVICE = 40,
	AT_PLACE = 48,
	AT_ADDR = 48,
	AT_KEY = 56
};

struct header {
	enum wire_type type;
	uint32_t entry_count;
	uint64_t seq;
	uint32_t payload_len;
	uint32_t epoch;
};

/* Types whose payload the checksum leaves out. */
static bool
type_is_bare(uint8_t type)
{
	return type == WIRE_BARE || type == WIRE_PUT;
}

/* Of a bare one it has been checked that entries and payload make len. */
static uint64_t
message_sum(const uint8_t *msg, size_t len)
{
	size_t end = type_is_bare(msg[AT_TYPE]) ? len - get_le32(msg + AT_PAYLOAD) : len;
	uint64_t rest = sum64(msg + WIRE_HEADER_SIZE, end - WIRE_HEADER_SIZE);

	return sum64_seeded(msg, AT_SUM, rest);
}

/* All but the header must be in place: the checksum covers it. */
static void
header_seal(uint8_t *msg, size_t len, const struct header *h)
{
	put_le32(msg + AT_MAGIC, WIRE_MAGIC);
	msg[AT_VERSION] = WIRE_VERSION;
	msg[AT_TYPE] = (uint8_t)h->type;
	put_le16(msg + AT_ENTRIES, (uint16_t)h->entry_count);
	put_le64(msg + AT_SEQ, h->seq);
	put_le32(msg + AT_PAYLOAD, h->payload_len);
	put_le32(msg + AT_EPOCH, h->epoch);
	put_le64(msg + AT_SUM, message_sum(msg, len));
}

/* Everything that all messages have in common, with the length they announce. */
static int
header_open(const uint8_t *msg, size_t len, enum wire_type type, struct header *h, struct err *e)
{
	if (len < WIRE_HEADER_SIZE)
		return err_set(e, REPL_E_PROTOCOL, "message of %zu bytes is shorter than a header",
			       len);
	if (get_le32(msg + AT_MAGIC) != WIRE_MAGIC)
		return err_set(e, REPL_E_PROTOCOL, "message has magic 0x%08" PRIx32,
			       get_le32(msg + AT_MAGIC));
	if (msg[AT_VERSION] != WIRE_VERSION)
		return err_set(e, REPL_E_VERSION, "message has version %u, not %u", msg[AT_VERSION],
			       (unsigned)WIRE_VERSION);
	if (msg[AT_TYPE] != type)
		return err_set(e, REPL_E_PROTOCOL, "message has type %u, not %u", msg[AT_TYPE],
			       (unsigned)type);
	h->type = type;
	h->entry_count = get_le16(msg + AT_ENTRIES);
	h->seq = get_le64(msg + AT_SEQ);
	h->payload_len = get_le32(msg + AT_PAYLOAD);
	h->epoch = get_le32(msg + AT_EPOCH);
	if (h->entry_count > WIRE_ENTRIES_MAX)
		return err_set(e, REPL_E_PROTOCOL, "message has %" PRIu32 " entries, more than %u",
			       h->entry_count, (unsigned)WIRE_ENTRIES_MAX);
	if (len != wire_commit_size(h->entry_count, h->payload_len))
		return err_set(e, REPL_E_PROTOCOL,
			       "message has %zu bytes, its header announces %zu", len,
			       wire_commit_size(h->entry_count, h->payload_len));
	if (get_le64(msg + AT_SUM) != message_sum(msg, len))
		return err_set(e, REPL_E_PROTOCOL, "message %" PRIu64 " has a wrong checksum",
			       h->seq);
	return 0;
}

/* ---- COMMIT ---- */

size_t
wire_commit_size(uint32_t entry_count, size_t payload_len)
{
	return WIRE_HEADER_SIZE + (size_t)entry_count * WIRE_ENTRY_SIZE + payload_len;
}

void
wire_commit_begin(struct wire_commit *c, uint8_t *buf, size_t size, uint32_t entry_room)
{
	assert(entry_room <= WIRE_ENTRIES_MAX);
	assert(size >= wire_commit_size(entry_room, 0));
	*c = (struct wire_commit){.buf = buf, .size = size, .entry_room = entry_room};
}

bool
wire_commit_fits(const struct wire_commit *c, size_t payload_len)
{
	size_t used = wire_commit_size(c->entry_room, c->payload_len);

	return c->entry_count < c->entry_room && payload_len <= c->size - used;
}

static size_t
payload_of_entry(uint8_t op, uint32_t len)
{
	if (op == WIRE_OP_APPEND)
		return WIRE_LIMIT_SIZE + (size_t)len;
	return op == WIRE_OP_COPY || op == WIRE_OP_ATOMIC8 ? len : 0;
}

static void
entry_put(struct wire_commit *c, const struct wire_entry *e)
{
	uint8_t *at = c->buf + wire_commit_size(c->entry_count, 0);

	put_le64(at + AT_OFF, e->off);
	put_le32(at + AT_LEN, e->len);
	put_le32(at + AT_OP, e->op); /* with the three zero bytes */
	c->entry_count++;
}

void *
wire_commit_next(const struct wire_commit *c)
{
	return c->buf + wire_commit_size(c->entry_room, c->payload_len);
}

static void
payload_put(struct wire_commit *c, const void *data, size_t len)
{
	if (data != wire_commit_next(c))
		words_load(wire_commit_next(c), data, len);
	c->payload_len += len;
}

void
wire_commit_add(struct wire_commit *c, const struct wire_entry *e, const void *data)
{
	size_t inline_len = payload_of_entry(e->op, e->len);

	assert(e->op != WIRE_OP_APPEND && wire_commit_fits(c, inline_len));
	entry_put(c, e);
	if (inline_len > 0)
		payload_put(c, data, inline_len);
}

void
wire_commit_add_append(struct wire_commit *c, const struct wire_entry *e, uint64_t limit,
		       const void *data)
{
	uint8_t word[WIRE_LIMIT_SIZE];

	assert(e->op == WIRE_OP_APPEND && wire_commit_fits(c, WIRE_LIMIT_SIZE + (size_t)e->len));
	entry_put(c, e);
	put_le64(word, limit);
	payload_put(c, word, sizeof(word));
	payload_put(c, data, e->len);
}

static size_t
commit_end(struct wire_commit *c, enum wire_type type, uint64_t seq, uint32_t epoch)
{
	size_t len = wire_commit_size(c->entry_count, c->payload_len);
	struct header h = {
		.type = type,
		.entry_count = c->entry_count,
		.seq = seq,
		.payload_len = (uint32_t)c->payload_len,
		.epoch = epoch,
	};

	if (c->entry_count < c->entry_room && c->payload_len > 0)
		memmove(c->buf + wire_commit_size(c->entry_count, 0),
			c->buf + wire_commit_size(c->entry_room, 0), c->payload_len);
	c->entry_room = c->entry_count;
	header_seal(c->buf, len, &h);
	return len;
}

size_t
wire_commit_end(struct wire_commit *c, uint64_t seq, uint32_t epoch)
{
	return commit_end(c, WIRE_COMMIT, seq, epoch);
}

size_t
wire_bare_end(struct wire_commit *c, uint64_t seq, uint32_t epoch)
{
	return commit_end(c, WIRE_BARE, seq, epoch);
}

size_t
wire_deposit_end(struct wire_commit *c, uint64_t seq, uint32_t epoch)
{
	assert(c->entry_count > 0 && c->buf[WIRE_HEADER_SIZE + AT_OP] == WIRE_OP_STAMP);
	return commit_end(c, WIRE_DEPOSIT, seq, epoch);
}

size_t
wire_stage_end(struct wire_commit *c, uint64_t seq, uint32_t epoch)
{
	return commit_end(c, WIRE_STAGE, seq, epoch);
}

size_t
wire_put_end(struct wire_commit *c, uint64_t seq, uint32_t epoch)
{
	return commit_end(c, WIRE_PUT, seq, epoch);
}

static const char *
type_name(enum wire_type type)
{
	return type == WIRE_PUT ? "PUT" : "STAGE";
}

/* It has ranges of bytes and nothing else. */
static bool
type_only_copies(enum wire_type type)
{
	return type == WIRE_STAGE || type == WIRE_PUT;
}

static int
stamp_check(const uint8_t *at, uint32_t i, enum wire_type type, struct err *e)
{
	if (type != WIRE_DEPOSIT || i != 0)
		return err_set(e, REPL_E_PROTOCOL,
			       "entry %" PRIu32 ": a stamp is the first entry of a DEPOSIT", i);
	if (get_le64(at + AT_OFF) == 0 || get_le32(at + AT_LEN) != 0)
		return err_set(e, REPL_E_PROTOCOL, "stamp 0, or a stamp with a length");
	return 0;
}

static bool
op_is_known(uint8_t op)
{
	return op >= WIRE_OP_FLUSH && op <= WIRE_OP_FETCH;
}

static int
trim_check(uint64_t off, uint32_t len, uint32_t i, struct err *e)
{
	if (off % WIRE_TRIM_ALIGN || len % WIRE_TRIM_ALIGN || (len == 0 && off != 0))
		return err_set(e, REPL_E_PROTOCOL,
			       "entry %" PRIu32 ": trim of %" PRIu32 " bytes at offset %" PRIu64
			       ", not of whole pages",
			       i, len, off);
	return 0;
}

/* It is recorded in a sidecar, whose numbers are below 2^63. */
static int
position_check(uint64_t off, uint32_t len, uint32_t i, enum wire_type type, struct err *e)
{
	if (off == 0 || off > INT64_MAX || len != 0)
		return err_set(e, REPL_E_PROTOCOL,
			       "entry %" PRIu32 ": position %" PRIu64 " with length %" PRIu32, i,
			       off, len);
	if (type == WIRE_DEPOSIT)
		return err_set(e, REPL_E_PROTOCOL, "entry %" PRIu32 ": position in a DEPOSIT", i);
	return 0;
}

static int
entry_check(const uint8_t *at, uint32_t i, enum wire_type type, uint64_t pool_size, struct err *e)
{
	uint64_t off = get_le64(at + AT_OFF);
	uint32_t len = get_le32(at + AT_LEN);
	uint8_t op = at[AT_OP];

	if (at[AT_ZERO] | at[AT_ZERO + 1] | at[AT_ZERO + 2])
		return err_set(e, REPL_E_PROTOCOL, "entry %" PRIu32 ": reserved bytes not zero", i);
	if (!op_is_known(op))
		return err_set(e, REPL_E_PROTOCOL, "entry %" PRIu32 ": unknown operation %u", i,
			       op);
	if (type_only_copies(type) && op != WIRE_OP_COPY)
		return err_set(e, REPL_E_PROTOCOL, "entry %" PRIu32 ": operation %u in a %s", i, op,
			       type_name(type));
	if (op == WIRE_OP_STAMP)
		return stamp_check(at, i, type, e);
	if (op == WIRE_OP_BARRIER) {
		if (off != 0 || len != 0)
			return err_set(e, REPL_E_PROTOCOL,
				       "entry %" PRIu32 ": barrier with a range", i);
		return 0;
	}
	if (op == WIRE_OP_REGISTER)
		return len == 0 ? 0
				: err_set(e, REPL_E_PROTOCOL,
					  "entry %" PRIu32 ": registration with a length", i);
	if (op == WIRE_OP_POSITION)
		return position_check(off, len, i, type, e);
	if (op == WIRE_OP_TRIM) {
		int ret = trim_check(off, len, i, e);

		if (ret)
			return ret;
	} else if (len == 0) {
		return err_set(e, REPL_E_PROTOCOL, "entry %" PRIu32 ": length 0", i);
	}
	if (op == WIRE_OP_FETCH && len > WIRE_FETCH_MAX)
		return err_set(e, REPL_E_PROTOCOL,
			       "entry %" PRIu32 ": fetch of %" PRIu32 " bytes, at most %u", i, len,
			       (unsigned)WIRE_FETCH_MAX);
	/* The range of an APPEND is its tail word. */
	if (op == WIRE_OP_APPEND)
		len = 8;
	if (off > pool_size || len > pool_size - off)
		return err_set(e, REPL_E_PROTOCOL,
			       "entry %" PRIu32 ": offset %" PRIu64 " length %" PRIu32
			       " leaves the pool of %" PRIu64 " bytes",
			       i, off, len, pool_size);
	if ((op == WIRE_OP_ATOMIC8 || op == WIRE_OP_APPEND) && (len != 8 || off % 8 != 0))
		return err_set(e, REPL_E_PROTOCOL,
			       "entry %" PRIu32 ": atomic store of %" PRIu32
			       " bytes at offset %" PRIu64 ", not 8 at a multiple of 8",
			       i, len, off);
	return 0;
}

/* 256 lengths of 32 bits do not wrap a 64-bit sum. */
static int
entries_check(struct wire_commit_view *v, enum wire_type type, uint64_t pool_size, struct err *e)
{
	bool appends = false, fetches = false;
	uint64_t used = 0;

	v->only_reads = v->entry_count > 0;
	for (uint32_t i = 0; i < v->entry_count; i++) {
		const uint8_t *at = v->entries + (size_t)i * WIRE_ENTRY_SIZE;
		int ret = entry_check(at, i, type, pool_size, e);

		if (ret)
			return ret;
		used += payload_of_entry(at[AT_OP], get_le32(at + AT_LEN));
		appends |= at[AT_OP] == WIRE_OP_APPEND;
		v->only_reads &= at[AT_OP] == WIRE_OP_REGISTER || at[AT_OP] == WIRE_OP_FETCH;
		fetches |= at[AT_OP] == WIRE_OP_FETCH;
	}
	/* Applied again it would take another place. */
	if ((appends || fetches) && type == WIRE_DEPOSIT)
		return err_set(e, REPL_E_PROTOCOL, "%s in a DEPOSIT", appends ? "append" : "fetch");
	if ((appends || fetches) && v->entry_count != 1)
		return err_set(e, REPL_E_PROTOCOL, "%s is one of %" PRIu32 " entries, not alone",
			       appends ? "append" : "fetch", v->entry_count);
	if (used != v->payload_len)
		return err_set(e, REPL_E_PROTOCOL,
			       "entries take %" PRIu64 " bytes of a payload of %zu", used,
			       v->payload_len);
	if (appends && get_le64(v->payload) > pool_size)
		return err_set(e, REPL_E_PROTOCOL,
			       "append below a limit of %" PRIu64 " in a pool of %" PRIu64 " bytes",
			       get_le64(v->payload), pool_size);
	return 0;
}

static int
commit_open(const uint8_t *msg, size_t len, enum wire_type type, uint64_t pool_size,
	    struct wire_commit_view *v, struct err *e)
{
	struct wire_commit_view view;
	struct header h = {0};
	int ret;

	ret = header_open(msg, len, type, &h, e);
	if (ret)
		return ret;
	view.seq = h.seq;
	view.stamp = 0;
	view.epoch = h.epoch;
	view.entry_count = h.entry_count;
	view.entries = msg + WIRE_HEADER_SIZE;
	view.payload = msg + wire_commit_size(h.entry_count, 0);
	view.payload_len = h.payload_len;
	ret = entries_check(&view, type, pool_size, e);
	if (ret)
		return ret;
	if (type_only_copies(type) && view.entry_count == 0)
		return err_set(e, REPL_E_PROTOCOL, "%s %" PRIu64 " of nothing", type_name(type),
			       view.seq);
	if (type == WIRE_DEPOSIT) {
		if (view.entry_count == 0 || view.entries[AT_OP] != WIRE_OP_STAMP)
			return err_set(e, REPL_E_PROTOCOL, "DEPOSIT %" PRIu64 " has no stamp",
				       view.seq);
		view.stamp = get_le64(view.entries + AT_OFF);
	}
	*v = view;
	return 0;
}

int
wire_commit_decode(const uint8_t *msg, size_t len, uint64_t pool_size, struct wire_commit_view *v,
		   struct err *e)
{
	return commit_open(msg, len, WIRE_COMMIT, pool_size, v, e);
}

int
wire_bare_decode(const uint8_t *msg, size_t len, uint64_t pool_size, struct wire_commit_view *v,
		 struct err *e)
{
	return commit_open(msg, len, WIRE_BARE, pool_size, v, e);
}

int
wire_deposit_decode(const uint8_t *msg, size_t len, uint64_t pool_size, struct wire_commit_view *v,
		    struct err *e)
{
	return commit_open(msg, len, WIRE_DEPOSIT, pool_size, v, e);
}

int
wire_stage_decode(const uint8_t *msg, size_t len, uint64_t pool_size, struct wire_commit_view *v,
		  struct err *e)
{
	return commit_open(msg, len, WIRE_STAGE, pool_size, v, e);
}

int
wire_put_decode(const uint8_t *msg, size_t len, uint64_t pool_size, struct wire_commit_view *v,
		struct err *e)
{
	return commit_open(msg, len, WIRE_PUT, pool_size, v, e);
}

static bool
message_is(const uint8_t *msg, size_t len, enum wire_type type)
{
	return len >= WIRE_HEADER_SIZE && get_le32(msg + AT_MAGIC) == WIRE_MAGIC &&
	       msg[AT_VERSION] == WIRE_VERSION && msg[AT_TYPE] == type;
}

bool
wire_bare_is(const uint8_t *msg, size_t len)
{
	return message_is(msg, len, WIRE_BARE);
}

bool
wire_put_is(const uint8_t *msg, size_t len)
{
	return message_is(msg, len, WIRE_PUT);
}

bool
wire_stage_is(const uint8_t *msg, size_t len)
{
	return message_is(msg, len, WIRE_STAGE);
}

size_t
wire_stage_len(const uint8_t *mem, size_t size, size_t max)
{
	size_t len;

	if (!wire_stage_is(mem, size))
		return 0;
	len = wire_commit_size(get_le16(mem + AT_ENTRIES), get_le32(mem + AT_PAYLOAD));
	return len <= max ? len : 0;
}

bool
wire_stage_peek(const uint8_t *msg, size_t size, struct wire_commit_view *v)
{
	if (!wire_stage_is(msg, size))
		return false;
	*v = (struct wire_commit_view){.entry_count = get_le16(msg + AT_ENTRIES),
				       .entries = msg + WIRE_HEADER_SIZE};
	return v->entry_count <= WIRE_ENTRIES_MAX && wire_commit_size(v->entry_count, 0) <= size;
}

uint64_t
wire_stage_chain(uint64_t chain, const uint8_t *msg)
{
	return sum64_seeded(msg, WIRE_HEADER_SIZE, chain);
}

void
wire_stage_adopt(uint8_t *msg, size_t len, uint32_t epoch)
{
	put_le32(msg + AT_EPOCH, epoch);
	put_le64(msg + AT_SUM, message_sum(msg, len));
}

static size_t
message_len(const uint8_t *mem, size_t size, enum wire_type type)
{
	size_t len;

	if (!message_is(mem, size, type))
		return 0;
	len = wire_commit_size(get_le16(mem + AT_ENTRIES), get_le32(mem + AT_PAYLOAD));
	return len <= size ? len : 0;
}

size_t
wire_deposit_len(const uint8_t *mem, size_t size)
{
	return message_len(mem, size, WIRE_DEPOSIT);
}

size_t
wire_commit_len(const uint8_t *mem, size_t size)
{
	return message_len(mem, size, WIRE_COMMIT);
}

const uint8_t *
wire_commit_message(const struct wire_commit_view *v, size_t *len)
{
	*len = wire_commit_size(v->entry_count, v->payload_len);
	return v->entries - WIRE_HEADER_SIZE;
}

bool
wire_commit_seq(const uint8_t *msg, size_t len, uint64_t *seq)
{
	if (len < WIRE_HEADER_SIZE || get_le32(msg + AT_MAGIC) != WIRE_MAGIC ||
	    msg[AT_VERSION] != WIRE_VERSION ||
	    (msg[AT_TYPE] != WIRE_COMMIT && msg[AT_TYPE] != WIRE_DEPOSIT &&
	     msg[AT_TYPE] != WIRE_STAGE && !type_is_bare(msg[AT_TYPE])))
		return false;
	*seq = get_le64(msg + AT_SEQ);
	return true;
}

struct wire_entry
wire_commit_entry(const struct wire_commit_view *v, uint32_t i)
{
	const uint8_t *at = v->entries + (size_t)i * WIRE_ENTRY_SIZE;

	return (struct wire_entry){
		.off = get_le64(at + AT_OFF),
		.len = get_le32(at + AT_LEN),
		.op = at[AT_OP],
	};
}

/* ---- ACK ---- */

size_t
wire_ack_encode(uint8_t *buf, const struct wire_ack *a)
{
	size_t len = a->has_key ? WIRE_ACK_MAX : a->has_place ? WIRE_ACK_PLACE : WIRE_ACK_SIZE;
	struct header h = {
		.type = WIRE_ACK,
		.seq = a->seq,
		.payload_len = (uint32_t)(len - WIRE_HEADER_SIZE),
		.epoch = a->epoch,
	};

	put_le32(buf + AT_STATUS, (uint32_t)a->status);
	put_le32(buf + AT_ACK_ZERO, 0);
	put_le64(buf + AT_SERVICE, a->service_ns);
	if (a->has_place)
		put_le64(buf + AT_PLACE, a->place);
	if (a->has_key) {
		put_le64(buf + AT_ADDR, a->addr);
		put_le64(buf + AT_KEY, a->key);
	}
	header_seal(buf, len, &h);
	return len;
}

int
wire_ack_decode(const uint8_t *msg, size_t len, struct wire_ack *a, struct err *e)
{
	struct header h = {0};
	int32_t status;
	int ret;

	if (len != WIRE_ACK_SIZE && len != WIRE_ACK_PLACE && len != WIRE_ACK_MAX)
		return err_set(e, REPL_E_PROTOCOL, "acknowledgement of %zu bytes, not %u, %u or %u",
			       len, (unsigned)WIRE_ACK_SIZE, (unsigned)WIRE_ACK_PLACE,
			       (unsigned)WIRE_ACK_MAX);
	ret = header_open(msg, len, WIRE_ACK, &h, e);
	if (ret)
		return ret;
	if (h.entry_count != 0)
		return err_set(e, REPL_E_PROTOCOL, "acknowledgement with %" PRIu32 " entries",
			       h.entry_count);
	if (get_le32(msg + AT_ACK_ZERO) != 0)
		return err_set(e, REPL_E_PROTOCOL, "acknowledgement: reserved bytes not zero");
	status = (int32_t)get_le32(msg + AT_STATUS);
	if (status > 0 || (status && len != WIRE_ACK_SIZE))
		return err_set(e, REPL_E_PROTOCOL, "acknowledgement with status %" PRId32 "%s",
			       status, status > 0 ? "" : " and a place");
	a->seq = h.seq;
	a->epoch = h.epoch;
	a->status = status;
	a->service_ns = get_le64(msg + AT_SERVICE);
	a->has_place = len == WIRE_ACK_PLACE;
	a->place = a->has_place ? get_le64(msg + AT_PLACE) : 0;
	a->has_key = len == WIRE_ACK_MAX;
	a->addr = a->has_key ? get_le64(msg + AT_ADDR) : 0;
	a->key = a->has_key ? get_le64(msg + AT_KEY) : 0;
	return 0;
}

/* ---- immediates ---- */

#define IMM_ANSWER      (1U << 31)
#define IMM_COUNT_SHIFT 20

uint64_t
wire_imm_unit(uint64_t pool_size)
{
	uint64_t unit = WIRE_IMM_UNIT_MIN;

	while (unit < WIRE_IMM_UNIT_MAX && unit * (WIRE_IMM_FIRST_MAX + 1ULL) < pool_size)
		unit *= 2;
	return unit;
}

bool
wire_imm_unit_valid(uint64_t unit)
{
	return unit >= WIRE_IMM_UNIT_MIN && unit <= WIRE_IMM_UNIT_MAX && (unit & (unit - 1)) == 0;
}

bool
wire_imm_answered(uint32_t bits)
{
	return (bits & IMM_ANSWER) != 0;
}

uint64_t
wire_imm_reach(uint64_t unit, uint64_t off)
{
	uint64_t first = off / unit;
	uint64_t left = WIRE_IMM_FIRST_MAX + 1ULL - first;

	if (first > WIRE_IMM_FIRST_MAX)
		return 0;
	return (left < WIRE_IMM_UNITS_MAX ? left : WIRE_IMM_UNITS_MAX) * unit - off % unit;
}

uint32_t
wire_imm_encode(uint64_t unit, const struct wire_imm *imm)
{
	uint64_t first = imm->off / unit;
	uint64_t last = (imm->off + imm->len - 1) / unit;

	assert(imm->len > 0 && imm->len <= wire_imm_reach(unit, imm->off));
	return (imm->answer ? IMM_ANSWER : 0) | (uint32_t)(last - first) << IMM_COUNT_SHIFT |
	       (uint32_t)first;
}

int
wire_imm_decode(uint32_t bits, uint64_t unit, uint64_t pool_size, struct wire_imm *imm,
		struct err *e)
{
	uint64_t first = bits & WIRE_IMM_FIRST_MAX;
	uint64_t last = first + (bits >> IMM_COUNT_SHIFT & (WIRE_IMM_UNITS_MAX - 1));
	uint64_t end = (last + 1) * unit; /* below 2^20 + 2^11 units of at most 2^43 bytes */

	if (last * unit >= pool_size)
		return err_set(e, REPL_E_PROTOCOL,
			       "immediate 0x%08" PRIx32 ": units %" PRIu64 " to %" PRIu64
			       " of %" PRIu64 " bytes leave the pool of %" PRIu64 " bytes",
			       bits, first, last, unit, pool_size);
	imm->off = first * unit;
	imm->len = (end < pool_size ? end : pool_size) - imm->off;
	imm->answer = wire_imm_answered(bits);
	return 0;
}

/* ---- connect data ---- */

void
wire_hello_encode(uint8_t *buf, const uint8_t token[WIRE_TOKEN_SIZE])
{
	put_le32(buf, WIRE_VERSION); /* with the three zero bytes */
	memcpy(buf + 4, token, WIRE_TOKEN_SIZE);
}

int
wire_hello_decode(const uint8_t *buf, size_t len, uint8_t token[WIRE_TOKEN_SIZE])
{
	if (len != WIRE_HELLO_SIZE)
		return REPL_E_PROTOCOL;
	if (buf[0] != WIRE_VERSION)
		return REPL_E_VERSION;
	if (buf[1] | buf[2] | buf[3])
		return REPL_E_PROTOCOL;
	memcpy(token, buf + 4, WIRE_TOKEN_SIZE);
	return 0;
}
