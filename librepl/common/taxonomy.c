/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read from the paper with these corrections, all of which its section 3 makes
 * in words: in the cell of Write, compound, DMP + DDIO the line "Rsp flush(&a)"
 * is missing before the first acknowledgment and the second is the
 * responder's; where Table 2 has "Rsp Send(a), Rq Receive(a)" it is the ack.
 * Under DMP the responder's copies are flushed in all cells: "as above" under
 * not-DDIO with the RQWRB in DRAM is copy and flush.
 */
#include "taxonomy.h"

#include <stdio.h>
#include <string.h>

#define RECIPE(name, ...) static const enum taxonomy_step name[] = {__VA_ARGS__, STEP_END}

/* Table 2: a. */
RECIPE(write_ask, STEP_WRITE_A, STEP_SEND_REF_A, STEP_RSP_FLUSH_A, STEP_ACK);
RECIPE(write_flush, STEP_WRITE_A, STEP_FLUSH, STEP_COMP);
RECIPE(write_comp, STEP_WRITE_A, STEP_COMP);
RECIPE(imm_ack, STEP_WRITEIMM_A, STEP_RSP_FLUSH_A, STEP_ACK);
RECIPE(imm_flush, STEP_WRITEIMM_A, STEP_FLUSH, STEP_COMP);
RECIPE(imm_comp, STEP_WRITEIMM_A, STEP_COMP);
RECIPE(send_copy_flush, STEP_SEND_A, STEP_RSP_COPY_A, STEP_RSP_FLUSH_A, STEP_ACK);
RECIPE(send_copy, STEP_SEND_A, STEP_RSP_COPY_A, STEP_ACK);
RECIPE(deposit_flush, STEP_SEND_A, STEP_FLUSH, STEP_COMP);
RECIPE(deposit_comp, STEP_SEND_A, STEP_COMP);

/* Table 3: a, then b. */
RECIPE(write_ask_twice, STEP_WRITE_A, STEP_SEND_REF_A, STEP_RSP_FLUSH_A, STEP_ACK, STEP_WRITE_B,
       STEP_SEND_REF_B, STEP_RSP_FLUSH_B, STEP_ACK);
RECIPE(write_flush_atomic, STEP_WRITE_A, STEP_FLUSH, STEP_WRITE_ATOMIC_B, STEP_FLUSH, STEP_COMP);
RECIPE(writes_flush, STEP_WRITE_A, STEP_WRITE_B, STEP_FLUSH, STEP_COMP);
RECIPE(writes_comp, STEP_WRITE_A, STEP_WRITE_B, STEP_COMP);
RECIPE(imm_ack_twice, STEP_WRITEIMM_A, STEP_RSP_FLUSH_A, STEP_ACK, STEP_WRITEIMM_B,
       STEP_RSP_FLUSH_B, STEP_ACK);
RECIPE(imm_flush_twice, STEP_WRITEIMM_A, STEP_FLUSH, STEP_COMP, STEP_WRITEIMM_B, STEP_FLUSH,
       STEP_COMP);
RECIPE(imms_flush, STEP_WRITEIMM_A, STEP_WRITEIMM_B, STEP_FLUSH, STEP_COMP);
RECIPE(imms_comp, STEP_WRITEIMM_A, STEP_WRITEIMM_B, STEP_COMP);
RECIPE(sends_copy_flush, STEP_SEND_AB, STEP_RSP_COPY_AB, STEP_RSP_FLUSH_AB, STEP_ACK);
RECIPE(sends_copy, STEP_SEND_AB, STEP_RSP_COPY_AB, STEP_ACK);
RECIPE(deposits_flush, STEP_SEND_AB, STEP_FLUSH, STEP_COMP);
RECIPE(deposits_comp, STEP_SEND_AB, STEP_COMP);

#define ROW(domain, ddio, rqwrb, op, update, steps)                                                \
	{                                                                                          \
		{PROFILE_##domain, PROFILE_DDIO_##ddio, PROFILE_RQWRB_##rqwrb, TAXONOMY_##op,      \
		 TAXONOMY_##update},                                                               \
			steps                                                                      \
	}

static const struct taxonomy_row rows[TAXONOMY_ROWS] = {
	/* DMP, DDIO on, RQWRB in DRAM */
	ROW(DMP, ON, DRAM, WRITE, SINGLETON, write_ask),
	ROW(DMP, ON, DRAM, WRITE, COMPOUND, write_ask_twice),
	ROW(DMP, ON, DRAM, WRITEIMM, SINGLETON, imm_ack),
	ROW(DMP, ON, DRAM, WRITEIMM, COMPOUND, imm_ack_twice),
	ROW(DMP, ON, DRAM, SEND, SINGLETON, send_copy_flush),
	ROW(DMP, ON, DRAM, SEND, COMPOUND, sends_copy_flush),
	/* DMP, DDIO on, RQWRB in PM */
	ROW(DMP, ON, PM, WRITE, SINGLETON, write_ask),
	ROW(DMP, ON, PM, WRITE, COMPOUND, write_ask_twice),
	ROW(DMP, ON, PM, WRITEIMM, SINGLETON, imm_ack),
	ROW(DMP, ON, PM, WRITEIMM, COMPOUND, imm_ack_twice),
	ROW(DMP, ON, PM, SEND, SINGLETON, send_copy_flush),
	ROW(DMP, ON, PM, SEND, COMPOUND, sends_copy_flush),
	/* DMP, DDIO off, RQWRB in DRAM */
	ROW(DMP, OFF, DRAM, WRITE, SINGLETON, write_flush),
	ROW(DMP, OFF, DRAM, WRITE, COMPOUND, write_flush_atomic),
	ROW(DMP, OFF, DRAM, WRITEIMM, SINGLETON, imm_flush),
	ROW(DMP, OFF, DRAM, WRITEIMM, COMPOUND, imm_flush_twice),
	ROW(DMP, OFF, DRAM, SEND, SINGLETON, send_copy_flush),
	ROW(DMP, OFF, DRAM, SEND, COMPOUND, sends_copy_flush),
	/* DMP, DDIO off, RQWRB in PM */
	ROW(DMP, OFF, PM, WRITE, SINGLETON, write_flush),
	ROW(DMP, OFF, PM, WRITE, COMPOUND, write_flush_atomic),
	ROW(DMP, OFF, PM, WRITEIMM, SINGLETON, imm_flush),
	ROW(DMP, OFF, PM, WRITEIMM, COMPOUND, imm_flush_twice),
	ROW(DMP, OFF, PM, SEND, SINGLETON, deposit_flush),
	ROW(DMP, OFF, PM, SEND, COMPOUND, deposits_flush),
	/* MHP, DDIO on, RQWRB in DRAM */
	ROW(MHP, ON, DRAM, WRITE, SINGLETON, write_flush),
	ROW(MHP, ON, DRAM, WRITE, COMPOUND, writes_flush),
	ROW(MHP, ON, DRAM, WRITEIMM, SINGLETON, imm_flush),
	ROW(MHP, ON, DRAM, WRITEIMM, COMPOUND, imms_flush),
	ROW(MHP, ON, DRAM, SEND, SINGLETON, send_copy),
	ROW(MHP, ON, DRAM, SEND, COMPOUND, sends_copy),
	/* MHP, DDIO on, RQWRB in PM */
	ROW(MHP, ON, PM, WRITE, SINGLETON, write_flush),
	ROW(MHP, ON, PM, WRITE, COMPOUND, writes_flush),
	ROW(MHP, ON, PM, WRITEIMM, SINGLETON, imm_flush),
	ROW(MHP, ON, PM, WRITEIMM, COMPOUND, imms_flush),
	ROW(MHP, ON, PM, SEND, SINGLETON, deposit_flush),
	ROW(MHP, ON, PM, SEND, COMPOUND, deposits_flush),
	/* MHP, DDIO off, RQWRB in DRAM */
	ROW(MHP, OFF, DRAM, WRITE, SINGLETON, write_flush),
	ROW(MHP, OFF, DRAM, WRITE, COMPOUND, writes_flush),
	ROW(MHP, OFF, DRAM, WRITEIMM, SINGLETON, imm_flush),
	ROW(MHP, OFF, DRAM, WRITEIMM, COMPOUND, imms_flush),
	ROW(MHP, OFF, DRAM, SEND, SINGLETON, send_copy),
	ROW(MHP, OFF, DRAM, SEND, COMPOUND, sends_copy),
	/* MHP, DDIO off, RQWRB in PM */
	ROW(MHP, OFF, PM, WRITE, SINGLETON, write_flush),
	ROW(MHP, OFF, PM, WRITE, COMPOUND, writes_flush),
	ROW(MHP, OFF, PM, WRITEIMM, SINGLETON, imm_flush),
	ROW(MHP, OFF, PM, WRITEIMM, COMPOUND, imms_flush),
	ROW(MHP, OFF, PM, SEND, SINGLETON, deposit_flush),
	ROW(MHP, OFF, PM, SEND, COMPOUND, deposits_flush),
	/* WSP, DDIO on, RQWRB in DRAM */
	ROW(WSP, ON, DRAM, WRITE, SINGLETON, write_comp),
	ROW(WSP, ON, DRAM, WRITE, COMPOUND, writes_comp),
	ROW(WSP, ON, DRAM, WRITEIMM, SINGLETON, imm_comp),
	ROW(WSP, ON, DRAM, WRITEIMM, COMPOUND, imms_comp),
	ROW(WSP, ON, DRAM, SEND, SINGLETON, send_copy),
	ROW(WSP, ON, DRAM, SEND, COMPOUND, sends_copy),
	/* WSP, DDIO on, RQWRB in PM */
	ROW(WSP, ON, PM, WRITE, SINGLETON, write_comp),
	ROW(WSP, ON, PM, WRITE, COMPOUND, writes_comp),
	ROW(WSP, ON, PM, WRITEIMM, SINGLETON, imm_comp),
	ROW(WSP, ON, PM, WRITEIMM, COMPOUND, imms_comp),
	ROW(WSP, ON, PM, SEND, SINGLETON, deposit_comp),
	ROW(WSP, ON, PM, SEND, COMPOUND, deposits_comp),
	/* WSP, DDIO off, RQWRB in DRAM */
	ROW(WSP, OFF, DRAM, WRITE, SINGLETON, write_comp),
	ROW(WSP, OFF, DRAM, WRITE, COMPOUND, writes_comp),
	ROW(WSP, OFF, DRAM, WRITEIMM, SINGLETON, imm_comp),
	ROW(WSP, OFF, DRAM, WRITEIMM, COMPOUND, imms_comp),
	ROW(WSP, OFF, DRAM, SEND, SINGLETON, send_copy),
	ROW(WSP, OFF, DRAM, SEND, COMPOUND, sends_copy),
	/* WSP, DDIO off, RQWRB in PM */
	ROW(WSP, OFF, PM, WRITE, SINGLETON, write_comp),
	ROW(WSP, OFF, PM, WRITE, COMPOUND, writes_comp),
	ROW(WSP, OFF, PM, WRITEIMM, SINGLETON, imm_comp),
	ROW(WSP, OFF, PM, WRITEIMM, COMPOUND, imms_comp),
	ROW(WSP, OFF, PM, SEND, SINGLETON, deposit_comp),
	ROW(WSP, OFF, PM, SEND, COMPOUND, deposits_comp),
};

static const char *const op_names[TAXONOMY_OP_COUNT] = {"write", "writeimm", "send"};
static const char *const update_names[TAXONOMY_UPDATE_COUNT] = {"singleton", "compound"};

const struct taxonomy_row *
taxonomy_row(unsigned i)
{
	return i < TAXONOMY_ROWS ? &rows[i] : NULL;
}

const struct taxonomy_row *
taxonomy_find(const struct taxonomy_key *key)
{
	for (unsigned i = 0; i < TAXONOMY_ROWS; i++) {
		const struct taxonomy_key *k = &rows[i].key;

		if (k->domain == key->domain && k->ddio == key->ddio && k->rqwrb == key->rqwrb &&
		    k->op == key->op && k->update == key->update)
			return &rows[i];
	}
	return NULL;
}

const char *
taxonomy_op_name(enum taxonomy_op op)
{
	return (unsigned)op < TAXONOMY_OP_COUNT ? op_names[op] : NULL;
}

const char *
taxonomy_update_name(enum taxonomy_update update)
{
	return (unsigned)update < TAXONOMY_UPDATE_COUNT ? update_names[update] : NULL;
}

static int
name_find(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	return -1;
}

int
taxonomy_op_by_name(const char *name)
{
	return name_find(op_names, TAXONOMY_OP_COUNT, name);
}

int
taxonomy_update_by_name(const char *name)
{
	return name_find(update_names, TAXONOMY_UPDATE_COUNT, name);
}

const char *
taxonomy_step_word(enum taxonomy_step step)
{
	static const char *const words[STEP_COUNT] = {
#define X(name, word, text) [STEP_##name] = word,
		TAXONOMY_STEPS(X)
#undef X
	};

	return (unsigned)step < STEP_COUNT ? words[step] : NULL;
}

const char *
taxonomy_step_text(enum taxonomy_step step)
{
	static const char *const texts[STEP_COUNT] = {
#define X(name, word, text) [STEP_##name] = text,
		TAXONOMY_STEPS(X)
#undef X
	};

	return (unsigned)step < STEP_COUNT ? texts[step] : NULL;
}

size_t
taxonomy_format(const enum taxonomy_step *steps, char *buf, size_t size)
{
	size_t used = 0;

	if (size)
		buf[0] = '\0';
	for (const enum taxonomy_step *s = steps; *s != STEP_END; s++) {
		int len = snprintf(used < size ? buf + used : NULL, used < size ? size - used : 0,
				   "%s%s", used ? " " : "", taxonomy_step_word(*s));

		if (len > 0)
			used += (size_t)len;
	}
	return used;
}
