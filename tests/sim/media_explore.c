/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All states of a program, each visited once, and what a cut leaves of them.
 *
 * A state is 48 bits, so visited states are kept whole and none is taken for
 * another. The order of visits does not matter; the search is depth first.
 */
#include "media_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media_program.h"
#include "media_visited.h"

#define NEXT_MAX 40U

struct state {
	uint8_t rq;      /* steps of the requester that are over */
	uint8_t arrived; /* packets at the responder */
	uint8_t done;    /* a bit an operation: flushes and atomic writes that are executed */
	uint8_t cpu;     /* steps of the responder's CPU that are over */
	uint8_t level[PLACE_COUNT];
};

struct mm_explorer {
	struct visited visited;
	struct mm_stats stats;
};

/* Where one state can go. */
struct next {
	struct state s[NEXT_MAX];
	unsigned count;
};

static uint64_t
state_key(const struct state *s)
{
	uint64_t key = s->rq | ((uint64_t)s->arrived << 5) | ((uint64_t)s->done << 10) |
		       ((uint64_t)s->cpu << 18);

	for (unsigned i = 0; i < PLACE_COUNT; i++)
		key |= (uint64_t)s->level[i] << (24 + 3 * i);
	return key;
}

static struct state
state_of(uint64_t key)
{
	struct state s = {
		.rq = key & 31,
		.arrived = (key >> 5) & 31,
		.done = (key >> 10) & 255,
		.cpu = (key >> 18) & 63,
	};

	for (unsigned i = 0; i < PLACE_COUNT; i++)
		s.level[i] = (key >> (24 + 3 * i)) & 7;
	return s;
}

/* Whether all the places have come at least as far as that. */
static bool
reached(const struct state *s, unsigned places, unsigned level)
{
	for (unsigned i = 0; i < PLACE_COUNT; i++) {
		if ((places & BIT(i)) && s->level[i] < level)
			return false;
	}
	return true;
}

static void
raise_to(struct state *s, unsigned places, uint8_t level)
{
	for (unsigned i = 0; i < PLACE_COUNT; i++) {
		if ((places & BIT(i)) && s->level[i] < level)
			s->level[i] = level;
	}
}

static unsigned
places_at(const struct state *s, unsigned places, unsigned level)
{
	unsigned at = 0;

	for (unsigned i = 0; i < PLACE_COUNT; i++) {
		if ((places & BIT(i)) && s->level[i] == level)
			at |= BIT(i);
	}
	return at;
}

/* Places that lie in persistent memory: receive buffers may not. */
static unsigned
places_pm(const struct program *p)
{
	return p->machine.rqwrb_pm ? ~0U : ~PLACES_M;
}

static struct state *
next_add(struct next *n, const struct state *s)
{
	if (n->count == NEXT_MAX)
		abort();
	n->s[n->count] = *s;
	return &n->s[n->count++];
}

static unsigned
acks_sent(const struct program *p, const struct state *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->cpu; i++)
		n += p->cpu[i].kind == CPU_ACK;
	return n;
}

/* Posted: when the responder's NIC has it; iWARP: at once. Others: when executed. */
static bool
completed(const struct program *p, const struct state *s, unsigned op)
{
	const struct operation *o = &p->op[op];

	if (o->kind != POSTED)
		return s->done & BIT(op);
	if (p->machine.delivery)
		return reached(s, o->places, LEVEL_VISIBLE);
	return p->machine.iwarp || s->arrived >= o->packet_end;
}

static void
step_requester(const struct program *p, const struct state *s, struct next *n)
{
	const struct rq *r = &p->rq[s->rq];

	if (s->rq == p->rq_count || (r->kind == RQ_COMP && !completed(p, s, r->arg)) ||
	    (r->kind == RQ_ACK && acks_sent(p, s) < r->arg))
		return;
	next_add(n, s)->rq++;
}

/* The connection is reliable and in order. */
static void
step_wire(const struct program *p, const struct state *s, struct next *n)
{
	unsigned posted = 0;
	struct state *t;

	for (unsigned i = 0; i < s->rq; i++) {
		if (p->rq[i].kind == RQ_POST)
			posted = p->op[p->rq[i].arg].packet_end;
	}
	if (s->arrived >= posted)
		return;
	t = next_add(n, s);
	raise_to(t, p->packet[s->arrived], LEVEL_NIC);
	t->arrived++;
}

/* Visible before this operation may be: what is posted to the I/O controller before it. */
static bool
earlier_visible(const struct program *p, const struct state *s, unsigned op)
{
	if (p->machine.relaxed)
		return true;
	for (unsigned i = 0; i < op; i++) {
		const struct operation *o = &p->op[i];

		if (o->kind == POSTED && !reached(s, o->places, LEVEL_VISIBLE))
			return false;
		if (o->kind == ATOMIC && places_at(s, o->places, LEVEL_IO))
			return false;
	}
	return true;
}

/* Out of the NIC before this operation may be: earlier ones that are posted. */
static bool
earlier_posted(const struct program *p, const struct state *s, unsigned op)
{
	if (p->machine.relaxed)
		return true;
	for (unsigned i = 0; i < op; i++) {
		if (p->op[i].kind == POSTED && !reached(s, p->op[i].places, LEVEL_IO))
			return false;
	}
	return true;
}

/* A posted operation: NIC to I/O controller, its parts in any order. */
static void
step_nic_posted(const struct program *p, const struct state *s, unsigned op, struct next *n)
{
	const struct operation *o = &p->op[op];
	uint8_t to = p->machine.software ? LEVEL_VISIBLE : LEVEL_IO;

	if (!earlier_posted(p, s, op) || (p->machine.software && !earlier_visible(p, s, op)))
		return;
	for (unsigned i = 0; i < o->unit_count; i++) {
		if (places_at(s, o->unit[i], LEVEL_NIC) == o->unit[i])
			raise_to(next_add(n, s), o->unit[i], to);
	}
}

/* How far a read pushes what was written before it. */
static bool
flushed(const struct program *p, const struct state *s, const struct operation *o)
{
	unsigned pm = o->places & places_pm(p);

	if (!reached(s, o->places, LEVEL_VISIBLE))
		return false;
	return p->machine.ddio || p->machine.software || p->machine.class != MM_MEDIA ||
	       reached(s, pm, LEVEL_MEMORY);
}

/* A flush or atomic write: after all that came before, and some later ones pass it. */
static void
step_nic_ordered(const struct program *p, const struct state *s, unsigned op, struct next *n)
{
	const struct operation *o = &p->op[op];
	struct state *t;

	if ((s->done & BIT(op)) || s->arrived < o->packet_end)
		return;
	for (unsigned i = 0; i < op; i++) {
		const struct operation *e = &p->op[i];

		if (e->kind != POSTED && !(s->done & BIT(i)))
			return;
		if (o->kind == FLUSH ? !flushed(p, s, e) : !reached(s, e->places, LEVEL_IO))
			return;
	}
	t = next_add(n, s);
	t->done |= (uint8_t)BIT(op);
	raise_to(t, o->places, LEVEL_IO);
}

/* Visible in the order in which they were posted, the parts of one in any order. */
static void
step_io(const struct program *p, const struct state *s, unsigned op, struct next *n)
{
	const struct operation *o = &p->op[op];

	if (!earlier_visible(p, s, op))
		return;
	for (unsigned i = 0; i < o->unit_count; i++) {
		if (places_at(s, o->unit[i], LEVEL_IO) == o->unit[i])
			raise_to(next_add(n, s), o->unit[i], LEVEL_VISIBLE);
	}
}

/* An I/O controller that drains in order, without DDIO: may op's places go to memory? */
static bool
drain_allowed(const struct program *p, const struct state *s, unsigned line)
{
	if (!p->machine.in_order || p->machine.ddio || !(p->by_nic & line))
		return true;
	for (unsigned i = 0; i < p->op_count; i++) {
		if (p->op[i].places & line)
			return true;
		if (!reached(s, p->op[i].places & places_pm(p), LEVEL_MEMORY))
			return false;
	}
	return true;
}

/* A line is evicted from a cache, or leaves the I/O controller: at any time, in any order. */
static void
step_evict(const struct program *p, const struct state *s, struct next *n)
{
	static const uint8_t lines[] = {BIT(PLACE_A0), BIT(PLACE_A1), PLACES_B,       BIT(PLACE_M0),
					BIT(PLACE_M1), BIT(PLACE_M2), BIT(PLACE_MARK)};

	for (unsigned i = 0; i < sizeof(lines); i++) {
		unsigned dirty = places_at(s, lines[i] & places_pm(p), LEVEL_VISIBLE);

		if (dirty && drain_allowed(p, s, lines[i]))
			raise_to(next_add(n, s), dirty, LEVEL_MEMORY);
	}
}

/*
 * A flush is done when nothing dirty is left of its places: evictions do the
 * work. What is not visible yet is nothing that it could find.
 */
static bool
fence_passes(const struct program *p, const struct state *s, unsigned places)
{
	if (p->machine.kernel_blind)
		places &= ~(unsigned)p->by_nic;
	return places_at(s, places & places_pm(p), LEVEL_VISIBLE) == 0;
}

static void
step_cpu(const struct program *p, const struct state *s, struct next *n)
{
	const struct cpu *c = &p->cpu[s->cpu];
	struct state *t;

	if (s->cpu == p->cpu_count)
		return;
	if (c->kind == CPU_RECEIVE &&
	    (s->arrived < p->op[c->arg].packet_end ||
	     !reached(s, p->op[c->arg].places, LEVEL_VISIBLE) || !earlier_visible(p, s, c->arg)))
		return;
	if (c->kind == CPU_FENCE && !fence_passes(p, s, c->arg))
		return;
	t = next_add(n, s);
	t->cpu++;
	if (c->kind == CPU_STORE)
		raise_to(t, c->arg, LEVEL_VISIBLE);
}

static void
state_next(const struct program *p, const struct state *s, struct next *n)
{
	n->count = 0;
	step_requester(p, s, n);
	step_wire(p, s, n);
	for (unsigned i = 0; i < p->op_count; i++) {
		if (p->op[i].kind == POSTED)
			step_nic_posted(p, s, i, n);
		else
			step_nic_ordered(p, s, i, n);
		step_io(p, s, i, n);
	}
	step_evict(p, s, n);
	step_cpu(p, s, n);
}

/* The first level that the cut does not empty. */
static unsigned
level_survives(const struct mm_machine *m)
{
	if (m->class == MM_PAGE)
		return LEVEL_MEMORY;
	if (m->class == MM_MEMORY)
		return LEVEL_VISIBLE;
	if (m->domain == MM_DMP)
		return LEVEL_MEMORY;
	return m->domain == MM_WSP && !m->software ? LEVEL_NIC : LEVEL_VISIBLE;
}

/* What is wrong if the power goes now: what is left, then recovery, then the promises. */
static unsigned
state_cut(const struct program *p, const struct state *s)
{
	static const unsigned promised[] = {
		[MM_SINGLETON] = PLACES_A,
		[MM_COMPOUND] = PLACES_A | PLACES_B,
		[MM_ATOMIC8] = PLACES_B,
	};
	unsigned survives = level_survives(&p->machine), left = 0, faults = 0;

	for (unsigned i = 0; i < PLACE_COUNT; i++) {
		if (s->level[i] >= survives)
			left |= BIT(i) & places_pm(p);
	}
	for (unsigned i = 0; i < p->op_count; i++) {
		const struct operation *o = &p->op[i];

		if (o->payload && !(left & BIT(PLACE_MARK)) && (left & o->places) == o->places)
			left |= o->payload;
	}
	if (s->rq == p->rq_count && (left & promised[p->update]) != promised[p->update])
		faults |= MM_LOST;
	if (p->update == MM_COMPOUND && (left & PLACES_B) && (left & PLACES_A) != PLACES_A)
		faults |= MM_ORDER;
	if (p->b8 && (left & PLACES_B) && (left & PLACES_B) != PLACES_B)
		faults |= MM_TORN;
	return faults;
}

/* One line a step: what has changed. */
static size_t
trace_step(const struct program *p, const struct state *from, const struct state *to, char *buf,
	   size_t size)
{
	static const char *const place[PLACE_COUNT] = {"a0", "a1", "b0", "b1",
						       "m0", "m1", "m2", "mark"};
	static const char *const level[] = {"", "in the NIC", "in the I/O controller", "visible",
					    "in memory"};
	static const char *const cpu[] = {"receives", "stores", "has flushed", "answers"};
	size_t used = 0;

#define TRACE(...)                                                                                 \
	do {                                                                                       \
		int n_ = snprintf(buf + used, size - used, __VA_ARGS__);                           \
		used += n_ > 0 && (size_t)n_ < size - used ? (size_t)n_ : 0;                       \
	} while (0)

	if (to->rq != from->rq)
		TRACE("  requester: %s\n", mm_step_name(p->rq[from->rq].step));
	if (to->cpu != from->cpu)
		TRACE("  responder's CPU %s\n", cpu[p->cpu[from->cpu].kind]);
	if (to->done != from->done)
		TRACE("  NIC: executes a flush or atomic write\n");
	for (unsigned i = 0; i < PLACE_COUNT; i++) {
		if (to->level[i] != from->level[i])
			TRACE("    %s %s\n", place[i], level[to->level[i]]);
	}
#undef TRACE
	return used;
}

static void
trace_write(const struct mm_explorer *x, const struct program *p, uint32_t last, char *buf,
	    size_t size)
{
	uint32_t path[256];
	size_t len = 0, used = 0;

	buf[0] = '\0';
	for (uint32_t v = last; v != VISITED_NONE && len < 256; v = x->visited.visit[v].parent)
		path[len++] = v;
	for (size_t i = len; i > 1; i--) {
		struct state from = state_of(x->visited.visit[path[i - 1]].key);
		struct state to = state_of(x->visited.visit[path[i - 2]].key);

		used += trace_step(p, &from, &to, buf + used, size - used);
	}
	(void)snprintf(buf + used, size - used, "  power is cut\n");
}

unsigned
mm_explore(struct mm_explorer *x, const struct mm_machine *m, const struct mm_plan *plan,
	   unsigned stop, char *trace, size_t trace_size)
{
	struct program p;
	struct next next;
	struct state first = {0};
	unsigned faults = 0;
	uint32_t at;

	program_compile(&p, m, plan);
	visited_clear(&x->visited);
	visited_add(&x->visited, state_key(&first), VISITED_NONE);
	while (!(faults & stop) && (at = visited_next(&x->visited)) != VISITED_NONE) {
		struct state s = state_of(x->visited.visit[at].key);
		unsigned found = state_cut(&p, &s);

		state_next(&p, &s, &next);
		if (next.count == 0 && s.rq < p.rq_count)
			found |= MM_STUCK;
		if (trace && (found & stop))
			trace_write(x, &p, at, trace, trace_size);
		faults |= found;
		for (unsigned i = 0; i < next.count; i++)
			visited_add(&x->visited, state_key(&next.s[i]), at);
	}
	x->stats.plans++;
	x->stats.states += x->visited.count;
	return faults;
}

struct mm_explorer *
mm_explorer_new(void)
{
	return calloc(1, sizeof(struct mm_explorer));
}

void
mm_explorer_free(struct mm_explorer *x)
{
	if (!x)
		return;
	visited_fini(&x->visited);
	free(x);
}

struct mm_stats
mm_explorer_stats(const struct mm_explorer *x)
{
	return x->stats;
}
