/* SPDX-License-Identifier: BSD-3-Clause */
/* A run from a seed, and the shortest list of events that fails as it did. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "librepl.h"
#include "sim_impl.h"

#define SETTLE_NS (120000 * SIM_MS)

const char *
sim_mutation_text(enum sim_mutation m)
{
	static const char *const texts[] = {
#define SIM_MUTATION_TEXT(name, text) [SIM_##name] = (text),
		SIM_MUTATION_TABLE(SIM_MUTATION_TEXT)
#undef SIM_MUTATION_TEXT
	};

	return (unsigned)m < SIM_MUTATION_COUNT ? texts[m] : "unknown";
}

/* Half of the runs are of the plain one. */
static void
sim_policy(struct sim *s, uint64_t random)
{
	static const enum ack_kind acks[] = {ACK_ALL, ACK_QUORUM, ACK_QUORUM, ACK_ANY};

	static const int losses[] = {REPL_ON_LOSS_DEGRADE, REPL_ON_LOSS_DEGRADE, REPL_ON_LOSS_FAIL,
				     REPL_ON_LOSS_BLOCK};

	s->on_loss = losses[random >> 40 & 3];
	if (random & 1)
		return;
	s->ack = acks[random >> 1 & 3];
	s->lag_degrade = random >> 3 & 1;
	/* Seldom all of them. */
	s->async = (uint32_t)(random >> 8 & random >> 16);
	if (s->ack == ACK_ALL)
		s->async |= 1U << (random >> 24) % s->nodes;
}

static unsigned
sim_with(uint64_t seed)
{
	/* What is rare without them must not become rarer still. */
	static const unsigned with[8] = {[3] = SIM_WITH_MAPS,
					 [4] = SIM_WITH_MAPS | SIM_WITH_GROW,
					 [5] = SIM_WITH_GROW,
					 [7] = SIM_WITH_MAPS | SIM_WITH_GROW};
	static const unsigned redo[4] = {[0] = SIM_WITH_RING, [1] = SIM_WITH_LOG};

	unsigned all = with[sim_mix(seed ^ 4) & 7] | redo[sim_mix(seed ^ 5) & 3];

	/* Those with rings or logs share them in their own way. */
	return all | (!(all & SIM_WITH_REDO) && sim_mix(seed ^ 8) & 1 ? SIM_WITH_SHARED : 0);
}

static void
sim_end(struct sim *s)
{
	for (unsigned n = 0; n < s->nodes; n++)
		if (s->node[n].app.running)
			queued_end(s, n);
	maps_free(s);
	rings_free(s);
	logs_free(s);
}

static void
sim_begin(struct sim *s, const struct sim_config *config)
{
	uint32_t redo; /* nodes that have a receive ring, or a round log */

	memset(s, 0, sizeof(*s));
	s->config = *config;
	s->nodes = 2 + (unsigned)(sim_mix(config->seed) % 3);
	s->target_checks = sim_mix(config->seed ^ 2) & 1;
	sim_policy(s, sim_mix(config->seed ^ 3));
	if (sim_with(config->seed) & SIM_WITH_MAPS && !maps_new(s))
		sim_fail(s, "no memory for the dirty maps");
	s->lazy = s->maps && sim_mix(config->seed ^ 9) & 1;
	s->shared = sim_with(config->seed) & SIM_WITH_SHARED;
	redo = (uint32_t)(sim_mix(config->seed ^ 6) | sim_mix(config->seed ^ 7));
	if (sim_with(config->seed) & SIM_WITH_RING && !rings_new(s, redo))
		sim_fail(s, "no memory for the receive rings");
	if (sim_with(config->seed) & SIM_WITH_LOG && !logs_new(s, redo))
		sim_fail(s, "no memory for the round logs");
	for (unsigned n = 0; n < s->nodes; n++) {
		struct sidecar meta = {.pool_size = maps_pool_size(SIM_BLOCKS_MIN),
				       .state = SIDECAR_UP_TO_DATE};

		s->node[n].up = true;
		s->node[n].file = SIM_BLOCKS_MIN;
		s->node[n].home = n == 0;
		meta.pool_uuid.b[0] = 1;
		(void)media_sidecar(s, n, &meta);
	}
	(void)app_start(s, 0);
}

static void
sim_tick(struct sim *s)
{
	for (unsigned n = 0; n < s->nodes; n++) {
		if (!s->node[n].up)
			continue;
		target_tick(s, n);
		app_tick(s, n);
	}
}

static void
sim_until(struct sim *s, uint64_t end)
{
	while (!s->failed) {
		uint64_t tick = (s->now / SIM_TICK + 1) * SIM_TICK;
		uint64_t next = net_next(s);
		struct sim_msg m;

		if (next > tick)
			next = tick;
		if (next >= end)
			break;
		s->now = next;
		if (net_take(s, &m)) {
			if (m.kind == SIM_REPLY || m.kind == SIM_RESET)
				keeper_take(s, &m);
			else
				target_take(s, &m);
		} else if (s->now == tick) {
			sim_tick(s);
		}
		s->stats.steps++;
		if (s->changed)
			check_all(s);
		s->changed = false;
	}
	s->now = end;
}

/* All faults end, and what stands still is started or resumed. */
static void
sim_settle(struct sim *s)
{
	unsigned first = 0;
	bool any = false;

	script_do(s, &(struct sim_event){.kind = EV_HEAL});
	script_do(s, &(struct sim_event){.kind = EV_BOOT});
	s->slow_until = 0;
	s->settling = true;
	memset(s->node_slow_until, 0, sizeof(s->node_slow_until));
	for (unsigned n = 0; n < s->nodes; n++) {
		s->node[n].sidecar_fails = s->node[n].journal_fails = 0;
		s->node[n].map_fails = s->node[n].dies = 0;
		s->node[n].full_until = s->node[n].beside_fails_until = 0;
		any |= s->node[n].app.running;
		if (s->node[n].is_primary)
			first = n;
	}
	if (!any)
		(void)app_start(s, first);
	sim_until(s, s->now + SETTLE_NS);
	if (!s->failed)
		check_settled(s);
}

static bool
sim_play(struct sim *s, const struct sim_config *config, const struct sim_event *events,
	 size_t count)
{
	sim_begin(s, config);
	for (size_t i = 0; i < count && !s->failed; i++) {
		sim_until(s, events[i].at_ns);
		if (!s->failed)
			script_do(s, &events[i]);
		if (!s->failed)
			check_all(s);
	}
	if (!s->failed)
		sim_settle(s);
	sim_end(s);
	return s->failed;
}

/* ---- the shortest run ---- */

/* Fails as it did: the same invariant, by the first word of the reason. */
static bool
fails_alike(struct sim *s, const struct sim_config *config, const struct sim_event *events,
	    size_t count, const char *reason)
{
	size_t word = strcspn(reason, " ");

	return sim_play(s, config, events, count) && strncmp(s->reason, reason, word) == 0 &&
	       strcspn(s->reason, " ") == word;
}

/* Delta debugging: leave out ever smaller pieces for as long as it still fails. */
static void
sim_shorten(struct sim *s, const struct sim_config *config, struct sim_result *result)
{
	struct sim_event left[SIM_EVENTS_MAX];
	size_t piece = result->event_count / 2;

	while (piece) {
		bool less = false;

		for (size_t at = 0; at < result->event_count;) {
			size_t n =
				result->event_count - at < piece ? result->event_count - at : piece;

			memcpy(left, result->events, at * sizeof(left[0]));
			memcpy(left + at, result->events + at + n,
			       (result->event_count - at - n) * sizeof(left[0]));
			if (fails_alike(s, config, left, result->event_count - n, result->reason)) {
				result->event_count -= n;
				memcpy(result->events, left, result->event_count * sizeof(left[0]));
				memcpy(result->reason, s->reason, sizeof(s->reason));
				less = true;
			} else {
				at += n;
			}
		}
		if (!less)
			piece /= 2;
	}
}

void
sim_run(const struct sim_config *config, struct sim_result *result)
{
	struct sim *s = calloc(1, sizeof(*s));

	memset(result, 0, sizeof(*result));
	if (!s) {
		result->failed = true;
		(void)snprintf(result->reason, sizeof(result->reason), "out of memory");
		return;
	}
	result->event_count = script_make(config->seed, 2 + (unsigned)(sim_mix(config->seed) % 3),
					  sim_with(config->seed), result->events);
	result->failed = sim_play(s, config, result->events, result->event_count);
	result->stats = s->stats;
	if (result->failed) {
		memcpy(result->reason, s->reason, sizeof(s->reason));
		sim_shorten(s, config, result);
	}
	free(s);
}
