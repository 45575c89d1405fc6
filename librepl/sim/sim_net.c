/* SPDX-License-Identifier: BSD-3-Clause */
/* Time, randomness and messages: in order in a channel, in any order between channels. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim_impl.h"

/* The finalizer of splitmix64, https://prng.di.unimi.it/splitmix64.c */
uint64_t
sim_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

uint64_t
sim_random(struct sim *s)
{
	return sim_mix(s->config.seed ^ sim_mix(++s->draws));
}

void
sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (s->failed)
		return;
	s->failed = true;
	va_start(ap, fmt);
	n = vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof(s->reason))
		(void)snprintf(s->reason + n, sizeof(s->reason) - (size_t)n, ", at %.3f s",
			       (double)s->now / 1e9);
}

void
sim_new_id(struct sim *s, struct gen_id *id)
{
	memset(id, 0, sizeof(*id));
	if (++s->ids == SIM_GENERATIONS)
		sim_fail(s, "the simulation has room for %u generations", SIM_GENERATIONS);
	memcpy(id->b, &s->ids, sizeof(s->ids));
}

static void
net_queue(struct sim *s, const struct sim_msg *m, uint64_t at)
{
	struct sim_msg *slot;

	if (s->msg_count == SIM_MESSAGES)
		return; /* as lost: the silence is noticed */
	slot = &s->msg[s->msg_count++];
	*slot = *m;
	slot->at = at;
	slot->order = ++s->order;
}

void
net_send(struct sim *s, const struct sim_msg *m)
{
	uint64_t delay = 200000 + sim_random(s) % (8 * SIM_MS);
	uint64_t *last = &s->last_at[m->from][m->to][m->channel];

	if (s->now < s->slow_until || s->now < s->node_slow_until[m->from] ||
	    s->now < s->node_slow_until[m->to])
		delay += sim_random(s) % (900 * SIM_MS);
	*last = s->now + delay > *last ? s->now + delay : *last + 1;
	net_queue(s, m, *last);
}

void
net_self(struct sim *s, const struct sim_msg *m, uint64_t delay_ns)
{
	net_queue(s, m, s->now + delay_ns);
}

/* What a node has sent to itself. */
static bool
net_is_own(const struct sim_msg *m)
{
	return m->kind == SIM_PERSIST || m->kind == SIM_ROUND || m->kind == SIM_LOG_STEP;
}

static bool
net_held(const struct sim *s, const struct sim_msg *m)
{
	return !net_is_own(m) && s->cut[m->from][m->to];
}

static int
net_first(const struct sim *s)
{
	int first = -1;

	for (unsigned i = 0; i < s->msg_count; i++) {
		const struct sim_msg *m = &s->msg[i], *f = first < 0 ? NULL : &s->msg[first];

		if (!net_held(s, m) &&
		    (!f || m->at < f->at || (m->at == f->at && m->order < f->order)))
			first = (int)i;
	}
	return first;
}

uint64_t
net_next(const struct sim *s)
{
	int i = net_first(s);

	/* What a cut has held up comes when it is healed, late but in order. */
	return i < 0 ? SIM_NEVER : s->msg[i].at < s->now ? s->now : s->msg[i].at;
}

bool
net_take(struct sim *s, struct sim_msg *m)
{
	int i = net_first(s);

	if (i < 0 || s->msg[i].at > s->now)
		return false;
	*m = s->msg[i];
	s->msg[i] = s->msg[--s->msg_count];
	return true;
}

void
net_forget(struct sim *s, unsigned node)
{
	for (unsigned i = 0; i < s->msg_count;) {
		if (net_is_own(&s->msg[i]) && s->msg[i].to == node)
			s->msg[i] = s->msg[--s->msg_count];
		else
			i++;
	}
}
