/* SPDX-License-Identifier: BSD-3-Clause */
/* media_program - a plan made ready for media_explore.c; nobody else includes it. */
#ifndef SIM_MEDIA_PROGRAM_H
#define SIM_MEDIA_PROGRAM_H

#include "media_model.h"

#define BIT(x) (1U << (x))

/* Where bytes go: the two lines of a, the halves of b, lines of receive buffers. */
enum place {
	PLACE_A0,
	PLACE_A1,
	PLACE_B0,
	PLACE_B1,
	PLACE_M0,
	PLACE_M1,
	PLACE_M2,
	PLACE_MARK, /* in PM: says that the message has been applied */
	PLACE_COUNT
};

#define PLACES_A (BIT(PLACE_A0) | BIT(PLACE_A1))
#define PLACES_B (BIT(PLACE_B0) | BIT(PLACE_B1))
#define PLACES_M (BIT(PLACE_M0) | BIT(PLACE_M1) | BIT(PLACE_M2))

/* How far the new value of a place has come. */
enum level {
	LEVEL_NONE,    /* at the requester, or on the wire */
	LEVEL_NIC,     /* in the NIC's buffers */
	LEVEL_IO,      /* posted to the I/O controller, not visible yet */
	LEVEL_VISIBLE, /* in a cache or in the I/O controller's coherent write buffer */
	LEVEL_MEMORY,  /* in the memory controller or on the media */
};

#define OPS_MAX     8U
#define PACKETS_MAX 16U
#define CPU_MAX     32U

enum operation_kind { POSTED, FLUSH, ATOMIC };

struct operation {
	enum operation_kind kind;
	uint8_t packet_end; /* arrived when so many packets have */
	uint8_t places;     /* all that it writes */
	uint8_t unit_count;
	uint8_t unit[4]; /* places that reach memory in one piece */
	bool message;    /* uses up a receive buffer: the responder's CPU hears of it */
	uint8_t payload; /* what recovery can restore from the message */
};

enum rq_kind { RQ_POST, RQ_COMP, RQ_ACK };

struct rq {
	enum rq_kind kind;
	uint8_t arg; /* operation, or number of answers */
	enum mm_step step;
};

enum cpu_kind { CPU_RECEIVE, CPU_STORE, CPU_FENCE, CPU_ACK };

struct cpu {
	enum cpu_kind kind;
	uint8_t arg; /* operation, or places */
};

struct program {
	struct mm_machine machine;
	enum mm_update update;
	bool b8;
	uint8_t by_nic; /* places that the NIC writes */
	unsigned rq_count, op_count, packet_count, cpu_count, message_lines;
	struct rq rq[MM_STEPS_MAX];
	struct operation op[OPS_MAX];
	uint8_t packet[PACKETS_MAX];
	struct cpu cpu[CPU_MAX];
};

void program_compile(struct program *p, const struct mm_machine *m, const struct mm_plan *plan);

#endif
