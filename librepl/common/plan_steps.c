/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of the taxonomy as it runs on the fabrics of today. */
#include <string.h>

#include "plan_impl.h"

#define ATOMIC_MAX 8U /* bytes of a native atomic write */

static void
note(struct plan_steps *s, const char *text)
{
	if (s->note_count < PLAN_NOTES_MAX)
		s->notes[s->note_count++] = text;
}

/* The row that the rules lead to. */
static const struct taxonomy_row *
steps_row(const struct profile *p, struct plan_view *v, struct plan_steps *s)
{
	enum plan_finish finish = PLAN_FINISH_ACK;
	struct plan_verdict verdict;

	if (v->class == PROFILE_CLASS_PAGE) {
		/* The row in which the target's CPU does it all. */
		v->key.domain = PROFILE_DMP;
		v->key.ddio = PROFILE_DDIO_ON;
		note(s, "page cache: only the target's CPU can sync it, and its sync is the flush");
		verdict = plan_judge(p, plan_method_of(v->key.op, finish), PLAN_COMPOUND);
		if (!verdict.allowed) {
			v->key.op = TAXONOMY_SEND;
			note(s, verdict.reason);
		}
	} else if (v->class == PROFILE_CLASS_MEMORY) {
		note(s, "the pool is no more than memory: what is visible is durable");
	}
	if (v->iwarp)
		note(s, "iWARP completes too early: WSP behaves as MHP, and the flush is needed");
	if (v->software)
		note(s, "a software provider stores by the CPU: the same as DDIO turned on");
	return taxonomy_find(&v->key);
}

/* The atomic write becomes a wait for the flush before it and then a plain write. */
static void
steps_fill(const struct taxonomy_row *row, const struct plan_sizes *sizes, struct plan_steps *s)
{
	unsigned n = 0;

	for (const enum taxonomy_step *from = row->steps; *from != STEP_END; from++) {
		if (*from == STEP_WRITE_ATOMIC_B) {
			s->steps[n++] = STEP_COMP;
			s->steps[n++] = STEP_WRITE_B;
			note(s, sizes->b > ATOMIC_MAX
					? "b has more than 8 bytes, too many for an atomic write: "
					  "it waits for a's flush"
					: "no fabric has an atomic write: b waits for a's flush");
		} else {
			s->steps[n++] = *from;
		}
	}
	s->steps[n] = STEP_END;
}

void
plan_steps(const struct profile *p, enum taxonomy_op op, enum taxonomy_update update,
	   const struct plan_sizes *sizes, struct plan_steps *out)
{
	struct plan_view v;

	memset(out, 0, sizeof(*out));
	plan_view_of(p, &v);
	v.key.op = op;
	v.key.update = update;
	out->row = steps_row(p, &v, out);
	steps_fill(out->row, sizes, out);
	out->method = plan_method_of(v.key.op, plan_row_finish(out->row));
}

const char *
plan_step_word(enum taxonomy_step step)
{
	return step == STEP_FLUSH ? "read" : taxonomy_step_word(step);
}

const char *
plan_step_text(enum taxonomy_step step)
{
	return step == STEP_FLUSH
		       ? "RDMA read of a byte: pushes what came before out of the target's NIC"
		       : taxonomy_step_text(step);
}
