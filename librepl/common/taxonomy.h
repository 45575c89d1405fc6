/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * taxonomy - the 72 methods of remote persistence, as data.
 *
 * Pure. Tables 2 and 3 of Kashyap et al., "Correct, Fast Remote Persistence":
 * for each configuration of the target, each operation and one update (a) or
 * an ordered pair (a, then b), the steps after which the initiator may take
 * the update to be durable. The paper's "as above" is written out here, and
 * where its tables and its text disagree the text decides (taxonomy.c says
 * where). What today's fabrics lack and what the paper leaves out is plan.h's.
 */
#ifndef COMMON_TAXONOMY_H
#define COMMON_TAXONOMY_H

#include <stddef.h>

#include "profile.h"

enum taxonomy_op { TAXONOMY_WRITE, TAXONOMY_WRITEIMM, TAXONOMY_SEND, TAXONOMY_OP_COUNT };
enum taxonomy_update { TAXONOMY_SINGLETON, TAXONOMY_COMPOUND, TAXONOMY_UPDATE_COUNT };

/* X(name, word, what it means) */
#define TAXONOMY_STEPS(X)                                                                          \
	X(WRITE_A, "write(a)", "RDMA write of a to its place")                                     \
	X(WRITE_B, "write(b)", "RDMA write of b to its place")                                     \
	X(WRITEIMM_A, "writeimm(a)", "RDMA write of a with immediate data that name its place")    \
	X(WRITEIMM_B, "writeimm(b)", "RDMA write of b with immediate data that name its place")    \
	X(SEND_A, "send(a)", "message with the bytes of a and their place")                        \
	X(SEND_REF_A, "send(&a)", "message that names the place of a")                             \
	X(SEND_REF_B, "send(&b)", "message that names the place of b")                             \
	X(SEND_AB, "send(a,b)", "one message with the bytes and places of a and b")                \
	X(FLUSH, "flush", "RDMA flush: what came before leaves the target's NIC")                  \
	X(COMP, "comp", "wait for the completion of the step before")                              \
	X(WRITE_ATOMIC_B, "write-atomic(b)",                                                       \
	  "non-posted write of at most 8 bytes, ordered behind the flush")                         \
	X(RSP_FLUSH_A, "rsp-flush(&a)", "the target's CPU flushes the lines of a")                 \
	X(RSP_FLUSH_B, "rsp-flush(&b)", "the target's CPU flushes the lines of b")                 \
	X(RSP_COPY_A, "rsp-copy(a)", "the target's CPU copies a to its place")                     \
	X(RSP_COPY_AB, "rsp-copy(a,b)", "the target's CPU copies a, then b, to their places")      \
	X(RSP_FLUSH_AB, "rsp-flush(a,b)",                                                          \
	  "the target's CPU flushes the copies: a's before it stores b")                           \
	X(ACK, "ack", "the target answers and the initiator receives it")

enum taxonomy_step {
	STEP_END = 0, /* ends each list of steps */
#define X(name, word, text) STEP_##name,
	TAXONOMY_STEPS(X)
#undef X
		STEP_COUNT
};

#define TAXONOMY_STEPS_MAX 8 /* of one row, without STEP_END */

struct taxonomy_key {
	enum profile_domain domain;
	enum profile_ddio ddio;
	enum profile_rqwrb rqwrb;
	enum taxonomy_op op;
	enum taxonomy_update update;
};

struct taxonomy_row {
	struct taxonomy_key key;
	const enum taxonomy_step *steps; /* up to STEP_END */
};

#define TAXONOMY_ROWS 72

/*
 * Row i, below TAXONOMY_ROWS, ordered by domain (dmp, mhp, wsp), ddio (on,
 * off), rqwrb (dram, pm), op (write, writeimm, send), update (singleton,
 * compound).
 */
const struct taxonomy_row *taxonomy_row(unsigned i);

/* NULL if a member of the key is none of its enum. */
const struct taxonomy_row *taxonomy_find(const struct taxonomy_key *key);

const char *taxonomy_op_name(enum taxonomy_op op);             /* "write"; NULL if unknown */
const char *taxonomy_update_name(enum taxonomy_update update); /* "singleton"; NULL if unknown */
const char *taxonomy_step_word(enum taxonomy_step step);       /* "write(a)"; NULL if unknown */
const char *taxonomy_step_text(enum taxonomy_step step);       /* a few words of meaning */

/* -1 if unknown. */
int taxonomy_op_by_name(const char *name);
int taxonomy_update_by_name(const char *name);

/* The words of the steps, separated by spaces. Returns the length needed, as snprintf. */
size_t taxonomy_format(const enum taxonomy_step *steps, char *buf, size_t size);

#endif
