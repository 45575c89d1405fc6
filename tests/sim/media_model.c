/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From words to a program: which bytes each operation carries in which
 * packets, and what the responder's CPU does about each message.
 */
#include "media_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media_program.h"

static const char *const names[MM_STEP_COUNT] = {
	[MM_WRITE_A] = "write(a)",
	[MM_WRITE_B] = "write(b)",
	[MM_WRITEIMM_A] = "writeimm(a)",
	[MM_WRITEIMM_B] = "writeimm(b)",
	[MM_SEND_A] = "send(a)",
	[MM_SEND_AB] = "send(a,b)",
	[MM_SEND_REF_A] = "send(&a)",
	[MM_SEND_REF_B] = "send(&b)",
	[MM_FLUSH] = "flush",
	[MM_WRITE_ATOMIC_B] = "write-atomic(b)",
	[MM_COMP] = "comp",
	[MM_RSP_COPY_A] = "rsp-copy(a)",
	[MM_RSP_COPY_AB] = "rsp-copy(a,b)",
	[MM_RSP_FLUSH_A] = "rsp-flush(&a)",
	[MM_RSP_FLUSH_B] = "rsp-flush(&b)",
	[MM_RSP_FLUSH_AB] = "rsp-flush(a,b)",
	[MM_ACK] = "ack",
	[MM_SEND_B] = "send(b)",
	[MM_RSP_COPY_B] = "rsp-copy(b)",
	[MM_RSP_RETIRE] = "rsp-retire",
};

const char *
mm_step_name(enum mm_step s)
{
	return (unsigned)s < MM_STEP_COUNT ? names[s] : "unknown";
}

static int
step_by_name(const char *word, size_t len)
{
	for (int i = 0; i < MM_STEP_COUNT; i++) {
		if (strlen(names[i]) == len && memcmp(names[i], word, len) == 0)
			return i;
	}
	return -1;
}

bool
mm_plan_parse(struct mm_plan *plan, const char *words)
{
	plan->count = 0;
	while (*words) {
		size_t len = strcspn(words, " ");
		int s = step_by_name(words, len);

		if (s < 0 || plan->count == MM_STEPS_MAX)
			return false;
		plan->step[plan->count++] = (enum mm_step)s;
		words += len;
		words += strspn(words, " ");
	}
	return plan->count > 0;
}

void
mm_plan_format(const struct mm_plan *plan, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < plan->count && used < size; i++) {
		int n = snprintf(buf + used, size - used, "%s%s", i ? " " : "",
				 mm_step_name(plan->step[i]));

		used += n > 0 ? (size_t)n : 0;
	}
}

const char *
mm_fault_name(unsigned fault)
{
	if (fault & MM_LOST)
		return "reported durable but lost";
	if (fault & MM_ORDER)
		return "b without the whole of a";
	if (fault & MM_TORN)
		return "b torn";
	if (fault & MM_STUCK)
		return "never reported";
	return "nothing wrong";
}

/* A plan of the tests that the model can't hold is a mistake in the test. */
static void
must(bool holds, const struct mm_plan *plan, const char *what)
{
	char text[256];

	if (holds)
		return;
	mm_plan_format(plan, text, sizeof(text));
	(void)fprintf(stderr, "media model: %s in the plan \"%s\"\n", what, text);
	abort();
}

/* A packet on the wire with the places that it carries; none for a flush. */
static void
packet_add(struct program *p, struct operation *op, unsigned places, const struct mm_plan *plan)
{
	must(p->packet_count < PACKETS_MAX, plan, "too many packets");
	p->packet[p->packet_count++] = (uint8_t)places;
	op->packet_end = (uint8_t)p->packet_count;
	op->places |= (uint8_t)places;
}

static void
unit_add(struct operation *op, unsigned places)
{
	op->unit[op->unit_count++] = (uint8_t)places;
}

static void
packet_of_a(struct program *p, struct operation *op, const struct mm_plan *plan)
{
	packet_add(p, op, BIT(PLACE_A0), plan);
	packet_add(p, op, BIT(PLACE_A1), plan);
	unit_add(op, BIT(PLACE_A0));
	unit_add(op, BIT(PLACE_A1));
}

/* b in one packet; its halves reach memory together only if somebody says so. */
static void
packet_of_b(struct program *p, struct operation *op, const struct mm_plan *plan, bool whole)
{
	packet_add(p, op, PLACES_B, plan);
	if (whole) {
		unit_add(op, PLACES_B);
	} else {
		unit_add(op, BIT(PLACE_B0));
		unit_add(op, BIT(PLACE_B1));
	}
}

/* A message of some lines in a receive buffer. */
static void
packet_of_message(struct program *p, struct operation *op, const struct mm_plan *plan,
		  unsigned lines)
{
	for (unsigned i = 0; i < lines; i++) {
		unsigned place = PLACE_M0 + p->message_lines;

		must(place < PLACE_MARK, plan, "too many messages");
		p->message_lines++;
		packet_add(p, op, BIT(place), plan);
		unit_add(op, BIT(place));
	}
	op->message = true;
}

static void
operation_fill(struct program *p, struct operation *op, enum mm_step s, const struct mm_plan *plan,
	       const struct mm_machine *m)
{
	op->kind = POSTED;
	switch (s) {
	case MM_WRITE_A:
	case MM_WRITEIMM_A:
		packet_of_a(p, op, plan);
		op->message = s == MM_WRITEIMM_A;
		break;
	case MM_WRITE_B:
	case MM_WRITEIMM_B:
		packet_of_b(p, op, plan, plan->b8 && m->whole8);
		op->message = s == MM_WRITEIMM_B;
		break;
	case MM_SEND_A:
	case MM_SEND_AB:
		packet_of_message(p, op, plan, s == MM_SEND_A ? 2 : 3);
		op->payload = s == MM_SEND_A ? PLACES_A : PLACES_A | PLACES_B;
		break;
	case MM_SEND_B:
		packet_of_message(p, op, plan, 1);
		op->payload = PLACES_B;
		break;
	case MM_SEND_REF_A:
	case MM_SEND_REF_B:
		packet_of_message(p, op, plan, 1);
		break;
	case MM_WRITE_ATOMIC_B:
		must(plan->b8, plan, "an atomic write of more than 8 bytes");
		op->kind = ATOMIC;
		packet_of_b(p, op, plan, true);
		break;
	case MM_FLUSH:
	default:
		op->kind = FLUSH;
		packet_add(p, op, 0, plan);
		break;
	}
}

static void
cpu_add(struct program *p, enum cpu_kind kind, unsigned arg, const struct mm_plan *plan)
{
	must(p->cpu_count < CPU_MAX, plan, "too much for the responder");
	p->cpu[p->cpu_count++] = (struct cpu){kind, (uint8_t)arg};
}

static void
cpu_store_a(struct program *p, const struct mm_plan *plan)
{
	cpu_add(p, CPU_STORE, BIT(PLACE_A0), plan);
	cpu_add(p, CPU_STORE, BIT(PLACE_A1), plan);
}

/* Eight bytes are one store of the CPU. */
static void
cpu_store_b(struct program *p, const struct mm_plan *plan)
{
	if (plan->b8) {
		cpu_add(p, CPU_STORE, PLACES_B, plan);
	} else {
		cpu_add(p, CPU_STORE, BIT(PLACE_B0), plan);
		cpu_add(p, CPU_STORE, BIT(PLACE_B1), plan);
	}
}

static void
cpu_copy_both(struct program *p, const struct mm_plan *plan, bool flush)
{
	if (plan->cpu == MM_CPU_B_FIRST) {
		cpu_store_b(p, plan);
		if (flush)
			cpu_add(p, CPU_FENCE, PLACES_B, plan);
		cpu_store_a(p, plan);
		if (flush)
			cpu_add(p, CPU_FENCE, PLACES_A, plan);
		return;
	}
	cpu_store_a(p, plan);
	if (flush && (plan->cpu == MM_CPU_ORDERED || plan->cpu == MM_CPU_FLUSH_ONLY_A))
		cpu_add(p, CPU_FENCE, PLACES_A, plan);
	cpu_store_b(p, plan);
	if (flush && plan->cpu == MM_CPU_COPY_THEN_FLUSH)
		cpu_add(p, CPU_FENCE, PLACES_A | PLACES_B, plan);
	else if (flush && plan->cpu != MM_CPU_FLUSH_ONLY_A)
		cpu_add(p, CPU_FENCE, PLACES_B, plan);
}

/* Returns the number of steps taken in. */
static size_t
cpu_fill(struct program *p, const struct mm_plan *plan, size_t i)
{
	bool flush = i + 1 < plan->count && plan->step[i + 1] == MM_RSP_FLUSH_AB;

	switch (plan->step[i]) {
	case MM_RSP_COPY_A:
		cpu_store_a(p, plan);
		return 1;
	case MM_RSP_COPY_B:
		cpu_store_b(p, plan);
		return 1;
	case MM_RSP_COPY_AB:
		cpu_copy_both(p, plan, flush);
		return flush ? 2 : 1;
	case MM_RSP_FLUSH_A:
		cpu_add(p, CPU_FENCE, PLACES_A, plan);
		return 1;
	case MM_RSP_FLUSH_B:
		cpu_add(p, CPU_FENCE, PLACES_B, plan);
		return 1;
	case MM_RSP_FLUSH_AB:
		cpu_add(p, CPU_FENCE, PLACES_A | PLACES_B, plan);
		return 1;
	case MM_RSP_RETIRE:
		cpu_add(p, CPU_STORE, BIT(PLACE_MARK), plan);
		cpu_add(p, CPU_FENCE, BIT(PLACE_MARK), plan);
		return 1;
	default:
		cpu_add(p, CPU_ACK, 0, plan);
		return 1;
	}
}

static bool
is_responders(enum mm_step s)
{
	return (s >= MM_RSP_COPY_A && s <= MM_ACK) || s == MM_RSP_COPY_B || s == MM_RSP_RETIRE;
}

/* What the responder does about the message that was posted last. */
static void
compile_responder(struct program *p, const struct mm_plan *plan, size_t i)
{
	unsigned op = p->op_count;

	while (op > 0 && !p->op[op - 1].message)
		op--;
	must(op > 0, plan, "an answer to no message");
	cpu_add(p, CPU_RECEIVE, op - 1, plan);
	while (i < plan->count && is_responders(plan->step[i]))
		i += cpu_fill(p, plan, i);
}

void
program_compile(struct program *p, const struct mm_machine *m, const struct mm_plan *plan)
{
	bool responding = false;
	unsigned acks = 0;

	(void)memset(p, 0, sizeof(*p));
	p->machine = *m;
	p->update = plan->update;
	p->b8 = plan->b8;
	for (size_t i = 0; i < plan->count; i++) {
		enum mm_step s = plan->step[i];

		if (is_responders(s)) {
			if (!responding)
				compile_responder(p, plan, i);
			responding = true;
			if (s == MM_ACK)
				p->rq[p->rq_count++] = (struct rq){RQ_ACK, (uint8_t)++acks, s};
			continue;
		}
		responding = false;
		if (s == MM_COMP) {
			must(p->op_count > 0, plan, "a completion of nothing");
			p->rq[p->rq_count++] = (struct rq){RQ_COMP, (uint8_t)(p->op_count - 1), s};
			continue;
		}
		must(p->op_count < OPS_MAX, plan, "too many operations");
		operation_fill(p, &p->op[p->op_count], s, plan, m);
		p->rq[p->rq_count++] = (struct rq){RQ_POST, (uint8_t)p->op_count, s};
		p->by_nic |= p->op[p->op_count].places;
		p->op_count++;
	}
}
