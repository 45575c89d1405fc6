/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * media_model - what a power cut leaves of a plan, in every interleaving.
 *
 * Pure. A plan in the words of the taxonomy (Kashyap et al., "Correct, Fast
 * Remote Persistence") is run by a requester against a responder made of NIC
 * buffers, I/O controller, caches, memory controller and CPU. All states that
 * any interleaving reaches are visited, and in each of them the power is cut.
 * What each level promises, and what is assumed of it, is in
 * docs/MEDIA-MODEL.md.
 *
 * Update a is two cache lines, update b one line of two halves. Each place is
 * written once, with its new value, so a place is known by the level that the
 * new value has reached.
 */
#ifndef SIM_MEDIA_MODEL_H
#define SIM_MEDIA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mm_domain { MM_DMP, MM_MHP, MM_WSP };

/* What durable means: see enum profile_class. */
enum mm_class { MM_MEDIA, MM_PAGE, MM_MEMORY };

/* What is promised. */
enum mm_update {
	MM_SINGLETON, /* a */
	MM_COMPOUND,  /* a, then b */
	MM_ATOMIC8,   /* b alone, of 8 bytes: all or nothing */
};

struct mm_machine {
	enum mm_domain domain;
	enum mm_class class;
	bool ddio;         /* the NIC's writes stay in the last-level cache */
	bool rqwrb_pm;     /* receive buffers in PM, replayed by recovery */
	bool iwarp;        /* a completion says only that the requester's transport has it */
	bool in_order;     /* the I/O controller drains to memory in order: not assumed */
	bool relaxed;      /* posted writes may pass each other on their way to memory */
	bool whole8;       /* the NIC writes an aligned 8-byte word in one piece */
	bool software;     /* the NIC is the responder's CPU: it stores through its cache */
	bool delivery;     /* a completion says that the bytes are where they belong */
	bool kernel_blind; /* a sync does not see what the NIC has written */
};

enum mm_step {
	MM_WRITE_A,
	MM_WRITE_B,
	MM_WRITEIMM_A,
	MM_WRITEIMM_B,
	MM_SEND_A,
	MM_SEND_AB,
	MM_SEND_REF_A, /* send(&a): a message that names a */
	MM_SEND_REF_B,
	MM_FLUSH, /* native, or the read that takes its place */
	MM_WRITE_ATOMIC_B,
	MM_COMP,
	MM_RSP_COPY_A,
	MM_RSP_COPY_AB,
	MM_RSP_FLUSH_A,
	MM_RSP_FLUSH_B,
	MM_RSP_FLUSH_AB,
	MM_ACK,
	/* What the taxonomy has no words for. */
	MM_SEND_B,
	MM_RSP_COPY_B,
	MM_RSP_RETIRE, /* the message is marked as applied, durably */
	MM_STEP_COUNT
};

/* How the responder does rsp-copy(a,b) rsp-flush(a,b). */
enum mm_cpu {
	MM_CPU_ORDERED,         /* copy a, flush a, copy b, flush b: what the rows mean */
	MM_CPU_COPY_THEN_FLUSH, /* copy both, then flush both */
	MM_CPU_B_FIRST,
	MM_CPU_FLUSH_ONLY_A,
	MM_CPU_FLUSH_ONLY_B,
};

#define MM_STEPS_MAX 16U

struct mm_plan {
	enum mm_step step[MM_STEPS_MAX];
	size_t count;
	enum mm_update update;
	bool b8; /* b is an aligned 8-byte word */
	enum mm_cpu cpu;
};

/* What can be wrong, as bits. */
#define MM_LOST  1U /* reported durable, and not there after the cut */
#define MM_ORDER 2U /* some of b without the whole of a */
#define MM_TORN  4U /* a part of an 8-byte b */
#define MM_STUCK 8U /* an interleaving ends without the report */

struct mm_stats {
	uint64_t plans;  /* explorations */
	uint64_t states; /* states visited, each with a power cut */
};

const char *mm_step_name(enum mm_step s); /* "write(a)" */

/* Words separated by spaces. False: a word is not known, or there are too many. */
bool mm_plan_parse(struct mm_plan *plan, const char *words);

/* As text, cut off at size. */
void mm_plan_format(const struct mm_plan *plan, char *buf, size_t size);

/* Of the worst of the bits: "reported durable but lost". */
const char *mm_fault_name(unsigned fault);

struct mm_explorer; /* memory that is used again from plan to plan */

struct mm_explorer *mm_explorer_new(void); /* NULL: no memory */
void mm_explorer_free(struct mm_explorer *x);

/*
 * Visit every state. Returns the faults found, and ends early once one of stop
 * is found: 0 of the bits of stop means that no interleaving has it. trace (may
 * be NULL) is given the steps that lead to the first fault of stop. A plan that
 * makes no sense (an answer to no message, more than fits) aborts.
 */
unsigned mm_explore(struct mm_explorer *x, const struct mm_machine *m, const struct mm_plan *plan,
		    unsigned stop, char *trace, size_t trace_size);

struct mm_stats mm_explorer_stats(const struct mm_explorer *x);

#endif
