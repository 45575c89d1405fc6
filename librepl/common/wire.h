/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire - the data messages of docs/PROTOCOL.md, encoded and decoded.
 *
 * Pure: no I/O, no clock, no allocation. A message is one libfabric send:
 *
 *   header 32 bytes | entries, 16 bytes each | payload
 *
 * COMMIT goes to the target: entries are applied in order; COPY and ATOMIC8
 * take their bytes from the payload, back to back; FLUSH names bytes that an
 * RMA write has put there before; BARRIER makes all before it durable before
 * anything after it is stored; APPEND lets the target choose the place. One ACK
 * answers each COMMIT when all of it is durable. All integers are little-endian.
 *
 * DEPOSIT is a COMMIT for a receive ring (ring.h): its first entry is a STAMP,
 * by which the messages of all lanes are put in order, and it is good for being
 * applied again: no APPEND. Its ACK says that its place in the ring is free.
 *
 * BARE is a COMMIT whose checksum leaves its payload out, as an RMA write of the same bytes has
 * none: for targets that keep nothing of a message but what it stores.
 *
 * STAGE is a COMMIT of nothing but COPY entries that goes to the resync journal:
 * its ACK says that it is there. The journal holds the messages as they came.
 *
 * PUT is a BARE of nothing but COPY entries that does what an RMA write does: its ACK says that the
 * bytes are in the pool, and nothing of their durability, which a FLUSH behind it asks for.
 */
#ifndef COMMON_WIRE_H
#define COMMON_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define WIRE_MAGIC       0x314c5052U /* "RPL1" */
#define WIRE_VERSION     1
#define WIRE_HEADER_SIZE 32
#define WIRE_ENTRY_SIZE  16
#define WIRE_ACK_SIZE    (WIRE_HEADER_SIZE + 16)
#define WIRE_ACK_PLACE   (WIRE_ACK_SIZE + 8)  /* of an APPEND */
#define WIRE_ACK_MAX     (WIRE_ACK_SIZE + 16) /* of what makes memory reachable by an RNIC */
#define WIRE_LIMIT_SIZE  8                    /* in front of the bytes of an APPEND */
#define WIRE_ENTRIES_MAX 256
#define WIRE_TRIM_ALIGN  4096       /* of offset and length */
#define WIRE_FETCH_MAX   (1U << 20) /* bytes of one FETCH: the largest window of a lane */

/* Bounds of what is negotiated in lanes.open. */
#define WIRE_MSG_SIZE_MIN 4096U
#define WIRE_MSG_SIZE_MAX (1U << 20)
#define WIRE_DEPTH_MIN    2U
#define WIRE_DEPTH_MAX    64U

#define WIRE_TOKEN_SIZE 32
#define WIRE_HELLO_SIZE 36 /* connect data: version, 3 zero bytes, token */

enum wire_type {
	WIRE_COMMIT = 1,
	WIRE_ACK = 2,
	WIRE_DEPOSIT = 3,
	WIRE_STAGE = 4,
	WIRE_BARE = 5,
	WIRE_PUT = 6,
};

enum wire_op {
	WIRE_OP_FLUSH = 1,
	WIRE_OP_COPY = 2,
	WIRE_OP_ATOMIC8 = 3,
	WIRE_OP_BARRIER = 4,
	WIRE_OP_STAMP = 5,    /* off is the stamp; first in a DEPOSIT and nowhere else */
	WIRE_OP_TRIM = 6,     /* whole pages are to become zero, in the target's own time */
	WIRE_OP_APPEND = 7,   /* the only entry; see wire_commit_add_append() */
	WIRE_OP_REGISTER = 8, /* off: number of an RMA region; length 0 */
	WIRE_OP_POSITION = 9, /* off: number of the drain that ends here, not 0; length 0 */
	WIRE_OP_FETCH = 10,   /* the only entry: the range is to be copied into the lane's window */
};

struct wire_entry {
	uint64_t off;
	uint32_t len;
	uint8_t op; /* enum wire_op */
};

/* A COMMIT under construction in a caller's buffer. */
struct wire_commit {
	uint8_t *buf;
	size_t size;         /* of buf */
	uint32_t entry_room; /* entries reserved in front of the payload */
	uint32_t entry_count;
	size_t payload_len;
};

/*
 * Start a COMMIT in buf with room for entry_room entries, at most
 * WIRE_ENTRIES_MAX; the payload follows them. buf must be at least
 * wire_commit_size(entry_room, 0).
 */
void wire_commit_begin(struct wire_commit *c, uint8_t *buf, size_t size, uint32_t entry_room);

size_t wire_commit_size(uint32_t entry_count, size_t payload_len);

/* True if one more entry with payload_len inline bytes still fits. */
bool wire_commit_fits(const struct wire_commit *c, size_t payload_len);

/* Where the payload of the next entry goes: bytes that are there already need not be copied. */
void *wire_commit_next(const struct wire_commit *c);

/* Append an entry; data is for COPY and ATOMIC8 (len bytes), else NULL. It must fit. */
void wire_commit_add(struct wire_commit *c, const struct wire_entry *e, const void *data);

/*
 * Append an APPEND entry: off is that of the tail word, len the number of bytes
 * that go where it points, below limit. Room for WIRE_LIMIT_SIZE + len bytes of
 * payload must be there.
 */
void wire_commit_add_append(struct wire_commit *c, const struct wire_entry *e, uint64_t limit,
			    const void *data);

/*
 * Complete: moves the payload down onto the last entry if fewer entries than
 * reserved were added, fills the header. Returns the message's length.
 */
size_t wire_commit_end(struct wire_commit *c, uint64_t seq, uint32_t epoch);

/* The same as a BARE. */
size_t wire_bare_end(struct wire_commit *c, uint64_t seq, uint32_t epoch);

/* The same as a DEPOSIT; the first entry that was added is the STAMP. */
size_t wire_deposit_end(struct wire_commit *c, uint64_t seq, uint32_t epoch);

/* The same as a STAGE; only COPY entries, at least one, were added. */
size_t wire_stage_end(struct wire_commit *c, uint64_t seq, uint32_t epoch);

/* The same as a PUT. */
size_t wire_put_end(struct wire_commit *c, uint64_t seq, uint32_t epoch);

/* A received and checked COMMIT or DEPOSIT; pointers go into the received bytes. */
struct wire_commit_view {
	uint64_t seq;
	uint64_t stamp; /* of a DEPOSIT, not 0 */
	uint32_t epoch;
	uint32_t entry_count;
	const uint8_t *entries; /* entry_count * WIRE_ENTRY_SIZE */
	const uint8_t *payload;
	size_t payload_len;
	bool only_reads; /* every entry is a REGISTER or a FETCH: nothing is written */
};

/*
 * Check everything about a COMMIT: magic, version, type, lengths, checksum,
 * known ops, every range inside pool_size without wrapping, ATOMIC8 of length
 * 8 and alignment 8, BARRIER of zeros, TRIM of whole pages, APPEND alone with a tail word and a
 * limit inside pool_size, POSITION above 0 and below 2^63, payload used up exactly. Only then is *v
 * filled. REPL_E_VERSION for another version, REPL_E_PROTOCOL for all else; the error text names
 * the field.
 */
int wire_commit_decode(const uint8_t *msg, size_t len, uint64_t pool_size,
		       struct wire_commit_view *v, struct err *e);

/* The same for a BARE, whose payload may be damaged; whether a message begins like one. */
int wire_bare_decode(const uint8_t *msg, size_t len, uint64_t pool_size, struct wire_commit_view *v,
		     struct err *e);
bool wire_bare_is(const uint8_t *msg, size_t len);

/*
 * The same for a DEPOSIT: its first entry is a STAMP above 0. Refused is what
 * does not have the same effect when it is applied again.
 */
int wire_deposit_decode(const uint8_t *msg, size_t len, uint64_t pool_size,
			struct wire_commit_view *v, struct err *e);

/*
 * The length that a DEPOSIT at the beginning of size bytes has by its header; 0
 * if none begins there or it would not end there.
 */
size_t wire_deposit_len(const uint8_t *mem, size_t size);

/* The same for a STAGE: at least one entry, all of them COPY. */
int wire_stage_decode(const uint8_t *msg, size_t len, uint64_t pool_size,
		      struct wire_commit_view *v, struct err *e);

/* The same for a PUT, whose payload may be damaged; whether a message begins like one. */
int wire_put_decode(const uint8_t *msg, size_t len, uint64_t pool_size, struct wire_commit_view *v,
		    struct err *e);
bool wire_put_is(const uint8_t *msg, size_t len);

/* Whether it begins like a STAGE, of whatever length. */
bool wire_stage_is(const uint8_t *msg, size_t len);

/* The same of a COMMIT. */
size_t wire_commit_len(const uint8_t *mem, size_t size);

/* As wire_deposit_len() of a STAGE; size may be that of the header only: 0 if above max. */
size_t wire_stage_len(const uint8_t *mem, size_t size, size_t max);

/*
 * The entries of a STAGE of which size bytes are at hand, for wire_commit_entry(): nothing of
 * them is checked. False if it is none, or they are not all there.
 */
bool wire_stage_peek(const uint8_t *msg, size_t size, struct wire_commit_view *v);

/*
 * A value over the messages so far, in their order: each header holds the checksum
 * of its whole message.
 */
uint64_t wire_stage_chain(uint64_t chain, const uint8_t *msg);

/* Make a whole STAGE one of another epoch: only its header changes. */
void wire_stage_adopt(uint8_t *msg, size_t len, uint32_t epoch);

/* The first byte of the message that a view is of, which has this many. */
const uint8_t *wire_commit_message(const struct wire_commit_view *v, size_t *len);

/*
 * The sequence of a message that one of the above decoders
 * refused, for the ACK that says so. False if it does not even begin like one.
 */
bool wire_commit_seq(const uint8_t *msg, size_t len, uint64_t *seq);

/* Entry i of a checked COMMIT. */
struct wire_entry wire_commit_entry(const struct wire_commit_view *v, uint32_t i);

struct wire_ack {
	uint64_t seq;
	uint32_t epoch;
	int32_t status;      /* enum repl_status, or a negative value of a later version */
	uint64_t service_ns; /* from taking the message to answering it */
	bool has_place;      /* it answers an APPEND that was done */
	uint64_t place;      /* where the bytes went */
	/* It answers a REGISTER or a FETCH where the provider chooses keys and addresses. */
	bool has_key;
	uint64_t addr, key;
};

/* Writes WIRE_ACK_SIZE bytes, or more with a place or a key, never both; returns how many. */
size_t wire_ack_encode(uint8_t *buf, const struct wire_ack *a);

/* Checks as wire_commit_decode() does; a status above 0 is refused. */
int wire_ack_decode(const uint8_t *msg, size_t len, struct wire_ack *a, struct err *e);

/*
 * The immediate of an RMA write: which units of the pool the target is to make
 * durable, each of unit bytes. Bit 31: an ACK is wanted; bits 30 to 20: number
 * of units less one; bits 19 to 0: the first.
 */
#define WIRE_IMM_UNIT_MIN  64U
#define WIRE_IMM_UNITS_MAX 2048U        /* in one immediate */
#define WIRE_IMM_FIRST_MAX 0xfffffU     /* units of a pool, less one */
#define WIRE_IMM_UNIT_MAX  (1ULL << 43) /* for pools below 2^63 bytes */

struct wire_imm {
	uint64_t off, len; /* within the pool */
	bool answer;
};

/* Whether the initiator waits for an ACK: whoever does not gets none, whatever is named. */
bool wire_imm_answered(uint32_t bits);

/* The least power of two from WIRE_IMM_UNIT_MIN on that numbers all of the pool's units. */
uint64_t wire_imm_unit(uint64_t pool_size);

/* Whether unit may come from a peer: a power of two within bounds. */
bool wire_imm_unit_valid(uint64_t unit);

/* The longest range from off on that one immediate can name; 0 if none. */
uint64_t wire_imm_reach(uint64_t unit, uint64_t off);

/* All units that the range touches; len is 1 to wire_imm_reach(). */
uint32_t wire_imm_encode(uint64_t unit, const struct wire_imm *imm);

/*
 * The bytes named, cut at the end of the pool; REPL_E_PROTOCOL if a unit lies
 * outside of it.
 */
int wire_imm_decode(uint32_t bits, uint64_t unit, uint64_t pool_size, struct wire_imm *imm,
		    struct err *e);

/* Connect data: WIRE_HELLO_SIZE bytes. Decoding is 0, REPL_E_VERSION or REPL_E_PROTOCOL. */
void wire_hello_encode(uint8_t *buf, const uint8_t token[WIRE_TOKEN_SIZE]);
int wire_hello_decode(const uint8_t *buf, size_t len, uint8_t token[WIRE_TOKEN_SIZE]);

#endif
