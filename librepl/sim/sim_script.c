/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to the nodes: writes, faults, and what operators do. */
#include <stdio.h>
#include <string.h>

#include "sim_impl.h"

#define SCRIPT_SPAN (24000 * SIM_MS)

static const struct event_row {
	const char *text;
	unsigned weight;
	unsigned needs; /* of what a run may have; 0: all have it */
} event_rows[EV_COUNT] = {
	[EV_WRITE] = {"the program on node %u writes", 60, 0},
	[EV_CUT] = {"the link between nodes %u and %u is cut", 5, 0},
	[EV_CUT_ALL] = {"node %u is cut off", 3, 0},
	[EV_HEAL] = {"all links are whole again", 6, 0},
	[EV_SLOW] = {"the network is slow for 2 s", 2, 0},
	[EV_SLOW_NODE] = {"the links of node %u are slow for 3 s", 6, 0},
	[EV_KILL_APP] = {"the program on node %u is killed", 2, 0},
	[EV_KILL_TARGET] = {"the session process on node %u is killed", 5, 0},
	[EV_POWER] = {"power cut of node %u", 4, 0},
	[EV_BOOT] = {"all machines that are off boot", 6, 0},
	[EV_START] = {"the program on node %u is started", 5, 0},
	[EV_CLOSE] = {"the program on node %u ends in order", 4, 0},
	[EV_PROMOTE] = {"promote node %u", 2, 0},
	[EV_PROMOTE_FORCE] = {"promote --force node %u", 2, 0},
	[EV_DEMOTE] = {"demote node %u", 2, 0},
	[EV_PAUSE] = {"pause, on node %u, of node %u", 2, 0},
	[EV_RESUME] = {"resume, on node %u, of node %u", 4, 0},
	[EV_RESOLVE_LOCAL] = {"resolve on node %u: discard local for node %u", 2, 0},
	[EV_RESOLVE_REPLICA] = {"resolve on node %u: discard the replica on node %u", 2, 0},
	[EV_RESTORE] = {"restore on node %u what node %u has", 4, 0},
	[EV_SYNC] = {"sync the file on node %u to node %u", 3, 0},
	[EV_SIDECAR_FAILS] = {"the next sidecar write of node %u fails", 3, 0},
	[EV_JOURNAL_FAILS] = {"the next journal write of node %u fails", 4, 0},
	[EV_RESTART] = {"the program on node %u is killed and started again", 8, SIM_WITH_MAPS},
	[EV_GROW] = {"the pool of the program on node %u grows", 8, SIM_WITH_GROW},
	[EV_DIES] = {"node %u dies, or its program, at one of its next writes", 6,
		     SIM_WITH_MAPS | SIM_WITH_GROW | SIM_WITH_REDO},
	[EV_DISK_FULL] = {"the disk of node %u is full for 6 s", 4,
			  SIM_WITH_MAPS | SIM_WITH_GROW | SIM_WITH_REDO},
	[EV_MAP_FAILS] = {"the next write of the dirty map of node %u fails", 2, SIM_WITH_MAPS},
	[EV_BESIDE_FAILS] = {"the program on node %u can write nothing beside its pool for 6 s", 4,
			     SIM_WITH_MAPS},
	[EV_DAMAGE_MAP] = {"a bit of the dirty map of node %u is flipped", 5, SIM_WITH_MAPS},
	[EV_POWER_FAILS] = {"the power of node %u fails for a moment", 12, SIM_WITH_REDO},
	[EV_BURST] = {"the program on node %u writes six times", 30, SIM_WITH_REDO},
};

const char *
sim_event_text(const struct sim_event *event, char *out, size_t size)
{
	int n = snprintf(out, size, "%7.3f s  ", (double)event->at_ns / 1e9);

	if (n > 0 && (size_t)n < size && event->kind < EV_COUNT) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(out + n, size - (size_t)n, event_rows[event->kind].text, event->node,
			       event->other);
#pragma GCC diagnostic pop
	}
	return out;
}

static unsigned
event_weight(unsigned kind, unsigned with)
{
	const struct event_row *row = &event_rows[kind];

	return !row->needs || row->needs & with ? row->weight : 0;
}

static unsigned
pick_kind(uint64_t random, unsigned with)
{
	unsigned total = 0, kind = 0;

	for (unsigned i = 0; i < EV_COUNT; i++)
		total += event_weight(i, with);
	for (random %= total; random >= event_weight(kind, with); kind++)
		random -= event_weight(kind, with);
	return kind;
}

size_t
script_make(uint64_t seed, unsigned nodes, unsigned with, struct sim_event *events)
{
	size_t count = 24 + sim_mix(seed ^ 1) % (SIM_EVENTS_MAX - 24);
	uint64_t at = 100 * SIM_MS;

	for (size_t i = 0; i < count; i++) {
		uint64_t random = sim_mix(seed ^ sim_mix(1000 + i));
		struct sim_event *e = &events[i];

		/* In bursts: some things only meet when they come at about one time. */
		at += random & 1 ? random % (30 * SIM_MS) : random % (2 * SCRIPT_SPAN / count);
		e->at_ns = at;
		e->kind = (uint8_t)pick_kind(random >> 8 & 0xffff, with);
		e->node = (uint8_t)((random >> 24 & 0xff) % nodes);
		/* Most of what programs do is done by the first one. */
		if (e->kind == EV_WRITE || e->kind == EV_PAUSE || e->kind == EV_RESUME ||
		    (event_rows[e->kind].needs && e->kind != EV_POWER_FAILS))
			e->node = random >> 32 & 1 ? 0 : e->node;
		e->other = (uint8_t)((e->node + 1 + (random >> 34 & 0xff) % (nodes - 1)) % nodes);
		e->random = (uint32_t)sim_mix(random);
	}
	return count;
}

/* ---- faults ---- */

static void
script_power(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];

	if (!node->up)
		return;
	s->stats.power_cuts++;
	node->up = false;
	target_position(s, n);
	node->session = 0;
	net_forget(s, n);
	app_kill(s, n);
	/* Of what was not durable any part may have come to the media. */
	for (unsigned b = 0; b < node->file; b++) {
		if (sim_random(s) & 1)
			node->disk[b] = node->mem[b];
		else
			check_unsynced(s, n, b);
		node->mem[b] = node->disk[b];
	}
	if (!node->journal.committed && node->journal.count)
		node->journal.count = (unsigned)(sim_random(s) % (node->journal.count + 1));
	node->sidecar_fails = node->journal_fails = node->map_fails = 0;
	node->beside_fails_until = 0;
	node->dies = 0;
	if (s->maps)
		maps_power(s, n);
	if (s->rings)
		ring_power(s, n);
	if (s->logs)
		log_power(s, n);
	s->changed = true;
}

/* The process only: the next one finds its pages, and its open journal. */
static void
script_kill_target(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_msg reset = {.kind = SIM_RESET, .from = n};

	if (!node->up || !node->session)
		return;
	reset.to = node->session_from;
	reset.session = node->session;
	if (s->logs)
		log_killed(s, n);
	target_position(s, n);
	node->session = 0;
	net_forget(s, n);
	net_send(s, &reset);
}

bool
script_dies(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];

	if (!node->dies || --node->dies)
		return false;
	if (sim_random(s) & 1)
		script_power(s, n);
	else if (node->app.running)
		app_kill(s, n);
	else
		script_kill_target(s, n);
	return true;
}

static void
script_cut(struct sim *s, unsigned a, unsigned b, bool cut)
{
	s->cut[a][b] = s->cut[b][a] = cut && a != b;
}

/* ---- operators ---- */

static bool
nobody_writes(const struct sim *s, unsigned n)
{
	return s->node[n].up && !s->node[n].app.running && !s->node[n].session;
}

static void
script_promote(struct sim *s, unsigned n, bool force)
{
	struct sim_node *node = &s->node[n];
	struct sidecar meta;
	struct gen_id id;

	if (!node->up || node->app.running || node->meta.primary || (node->session && !force))
		return;
	if (node->session)
		script_kill_target(s, n);
	grow_cut(s, n);
	target_recover(s, n);
	target_sync(s, n);
	meta = node->meta;
	if (target_left(s, n) || meta.writer_open || gen_id_is_nil(&meta.generation.current) ||
	    meta.state == SIDECAR_INCONSISTENT || (meta.state == SIDECAR_OUTDATED && !force))
		return;
	check_forsake(s, n);
	sim_new_id(s, &id);
	if (meta.state == SIDECAR_OUTDATED && sim_broken(s, SIM_PROMOTE_OUTDATED))
		meta.state = SIDECAR_UP_TO_DATE;
	if (sim_broken(s, SIM_PROMOTE_TOLD))
		meta.position = 0, meta.waited = true;
	lineage_promote(&meta, &id);
	if (!sim_broken(s, SIM_KEEP_MAP))
		meta.dirty_off = meta.dirty_len = 0;
	meta.epoch++;
	s->told = true;
	if (!media_sidecar(s, n, &meta))
		return;
	/* That its last writer crashed is forgotten now: its maps must not outlive that. */
	if (!sim_broken(s, SIM_KEEP_MAP))
		memset(node->map, 0, sizeof(node->map));
	check_disown(s, n);
	node->is_primary = true;
	node->fence = s->sessions;
	s->stats.promotions++;
}

static void
script_demote(struct sim *s, unsigned n)
{
	struct sidecar meta = s->node[n].meta;
	struct gen_id id;

	if (!nobody_writes(s, n) || !meta.primary)
		return;
	/* As whoever opens it does: what its program has left in memory counts from now on. */
	target_sync(s, n);
	sim_new_id(s, &id);
	lineage_demote(&meta, false, &id);
	s->told = true;
	if (media_sidecar(s, n, &meta))
		s->node[n].is_primary = false;
}

/* All of both is recovered, nobody uses them, and they reach each other. */
static bool
may_copy(struct sim *s, unsigned from, unsigned to)
{
	if (!nobody_writes(s, from) || !nobody_writes(s, to) || s->cut[from][to])
		return false;
	grow_cut(s, from);
	grow_cut(s, to);
	target_recover(s, from);
	target_recover(s, to);
	return !target_left(s, from) && !target_left(s, to) && !s->node[from].meta.writer_open &&
	       !gen_id_is_nil(&s->node[from].meta.generation.current) &&
	       s->node[from].meta.state != SIDECAR_INCONSISTENT;
}

/* A file with what another one has, or none whose record tells anything. */
static bool
copy_begin(struct sim *s, unsigned from, unsigned to)
{
	struct sim_node *node = &s->node[to];
	struct sidecar meta = node->meta;

	s->told = true;
	meta.state = SIDECAR_INCONSISTENT;
	meta.dirty_off = meta.dirty_len = 0;
	meta.pool_size = s->node[from].meta.pool_size;
	if (!media_sidecar(s, to, &meta))
		return false;
	node->file = s->node[from].file;
	memset(node->map, 0, sizeof(node->map));
	memcpy(node->mem, s->node[from].mem, sizeof(node->mem));
	target_sync(s, to);
	return true;
}

/* What node to has is gone; by force also from what is outdated. */
static bool
restore(struct sim *s, unsigned from, unsigned to)
{
	struct sidecar meta, replica;
	struct gen_id fresh;

	if (s->node[to].meta.primary || !may_copy(s, from, to))
		return false;
	check_discard(s, from, to);
	check_forsake(s, from);
	check_disown(s, from);
	s->node[to].discarded = s->sessions;
	if (!copy_begin(s, from, to))
		return false;
	sim_new_id(s, &fresh);
	meta = replica = s->node[from].meta;
	if (sim_broken(s, SIM_RESTORE_TOLD))
		replica.state = SIDECAR_UP_TO_DATE;
	lineage_restore(&meta, &replica, sim_random(s) & 1, &fresh);
	meta.primary = meta.writer_open = meta.waited = false;
	meta.dirty_off = meta.dirty_len = 0;
	if (!media_sidecar(s, to, &meta))
		return false;
	/* Of a part it has what it does not name. */
	check_disown(s, to);
	s->node[to].home = true;
	return true;
}

static bool
contents_equal(const struct sim *s, unsigned a, unsigned b)
{
	return s->node[a].file == s->node[b].file &&
	       memcmp(s->node[a].mem, s->node[b].mem, sizeof(s->node[a].mem)) == 0;
}

/* Without force: what is not proven to be older is overwritten by what equals it only. */
static bool
sync_judge(struct sim *s, unsigned from, unsigned to, struct sidecar *file,
	   const struct gen_id fresh[2])
{
	const struct sidecar *replica = &s->node[to].meta;
	struct judge_input in = {.local = file, .replica = replica};
	bool part = replica->state == SIDECAR_OUTDATED || replica->state == SIDECAR_INCONSISTENT;
	bool equal = contents_equal(s, from, to);
	struct judgement out;

	replica_judge(&in, &out);
	if (out.verdict == JUDGE_REFUSE && (!equal || replica->primary))
		return false;
	if (out.verdict == JUDGE_REFUSE && !part) {
		lineage_copy(file, replica, &fresh[0]);
		file->dirty_off = file->dirty_len = 0;
		if (!sim_broken(s, SIM_SYNC_TOLD))
			lineage_forget_part(file, &fresh[0]);
	} else {
		if (sim_broken(s, SIM_SYNC_TOLD))
			file->position = 0;
		lineage_sync(file, !equal || part, &fresh[0], &fresh[1]);
	}
	return true;
}

/* The file of node from, under that record, and the replica of node to become equal. */
static void
sync_copy(struct sim *s, unsigned from, unsigned to, const struct sidecar *file)
{
	struct sidecar meta = *file;

	target_sync(s, from);
	/* That its program was killed is on record still: its maps are not to be believed. */
	meta.writer_open = meta.state != SIDECAR_UP_TO_DATE;
	meta.state = SIDECAR_UP_TO_DATE;
	s->told = true;
	if (!media_sidecar(s, from, &meta))
		return;
	check_disown(s, from);
	if (!copy_begin(s, from, to))
		return;
	meta = s->node[to].meta;
	meta.state = SIDECAR_UP_TO_DATE;
	meta.generation = s->node[from].meta.generation;
	meta.position = 0;
	meta.waited = false;
	(void)media_sidecar(s, to, &meta);
}

static void
script_sync(struct sim *s, unsigned from, unsigned to)
{
	struct sidecar file;
	struct gen_id fresh[2];

	if (!s->node[from].home || !may_copy(s, from, to) || s->node[from].file < s->node[to].file)
		return;
	file = s->node[from].meta;
	if (file.state == SIDECAR_OUTDATED)
		return;
	sim_new_id(s, &fresh[0]);
	sim_new_id(s, &fresh[1]);
	if (!sync_judge(s, from, to, &file, fresh))
		return;
	s->node[to].unusable = s->node[to].meta.state == SIDECAR_INCONSISTENT;
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		check_overwritten(s, to, b, s->node[from].mem[b]);
	sync_copy(s, from, to, &file);
}

/* Then the file may be copied back to where it came from, and its program may be started. */
static void
script_restore(struct sim *s, unsigned from, unsigned to)
{
	uint64_t random = sim_random(s);

	if (!restore(s, from, to))
		return;
	if (random & 1)
		script_sync(s, to, from);
	if (random & 2)
		(void)app_start(s, to);
}

/* One becomes a copy of the other; only where neither is behind by mere loss of time. */
static void
script_resolve(struct sim *s, unsigned local, unsigned replica, bool discard_local)
{
	enum gen_relation relation;
	struct sidecar file;
	struct gen_id fresh[2];

	if (!may_copy(s, discard_local ? replica : local, discard_local ? local : replica))
		return;
	relation = judge_relation(&s->node[local].meta, &s->node[replica].meta);
	if (relation == GEN_EQUAL || relation == GEN_AHEAD)
		return;
	if (discard_local) {
		(void)restore(s, replica, local);
		return;
	}
	/* A pool does not shrink. */
	if (s->node[replica].meta.primary || s->node[local].file < s->node[replica].file ||
	    s->node[local].meta.state == SIDECAR_OUTDATED)
		return;
	check_discard(s, local, replica);
	check_forsake(s, local);
	check_disown(s, local);
	s->node[replica].discarded = s->sessions;
	sim_new_id(s, &fresh[0]);
	sim_new_id(s, &fresh[1]);
	file = s->node[local].meta;
	lineage_sync(&file, true, &fresh[0], &fresh[1]);
	sync_copy(s, local, replica, &file);
}

static void
script_keeper(struct sim *s, const struct sim_event *e, enum fsm_event_kind kind)
{
	struct fsm_event event = {.kind = kind};

	if (s->node[e->node].app.running && !s->node[e->node].app.opening && e->node != e->other)
		keeper_event(s, e->node, e->other, &event);
	app_progress(s, e->node);
}

static void
script_operator(struct sim *s, const struct sim_event *e)
{
	switch (e->kind) {
	case EV_GROW:
		grow_begin(s, e->node);
		app_progress(s, e->node);
		break;
	case EV_RESTART:
		app_kill(s, e->node);
		(void)app_start(s, e->node);
		break;
	case EV_START:
		(void)app_start(s, e->node);
		break;
	case EV_CLOSE:
		app_close(s, e->node);
		break;
	case EV_PROMOTE:
	case EV_PROMOTE_FORCE:
		script_promote(s, e->node, e->kind == EV_PROMOTE_FORCE);
		break;
	case EV_DEMOTE:
		script_demote(s, e->node);
		break;
	case EV_PAUSE:
	case EV_RESUME:
		script_keeper(s, e, e->kind == EV_PAUSE ? FSM_PAUSE : FSM_RESUME);
		break;
	case EV_RESTORE:
		script_restore(s, e->other, e->node);
		break;
	case EV_SYNC:
		script_sync(s, e->node, e->other);
		break;
	case EV_RESOLVE_LOCAL:
	case EV_RESOLVE_REPLICA:
		script_resolve(s, e->node, e->other, e->kind == EV_RESOLVE_LOCAL);
		break;
	default:
		break;
	}
}

void
script_do(struct sim *s, const struct sim_event *e)
{
	switch (e->kind) {
	case EV_WRITE:
		app_write(s, e->node, e->random);
		break;
	case EV_BURST:
		for (unsigned i = 0; i < 6; i++)
			app_write(s, e->node, (uint32_t)sim_mix(e->random + i));
		break;
	case EV_CUT:
		script_cut(s, e->node, e->other, true);
		break;
	case EV_CUT_ALL:
	case EV_HEAL:
		for (unsigned a = 0; a < s->nodes; a++)
			for (unsigned b = 0; b < s->nodes; b++)
				if (e->kind == EV_HEAL || a == e->node)
					script_cut(s, a, b, e->kind == EV_CUT_ALL);
		break;
	case EV_SLOW:
		s->slow_until = s->now + 2000 * SIM_MS;
		break;
	case EV_SLOW_NODE:
		s->node_slow_until[e->node] = s->now + 3000 * SIM_MS;
		break;
	case EV_KILL_APP:
		app_kill(s, e->node);
		break;
	case EV_KILL_TARGET:
		script_kill_target(s, e->node);
		break;
	case EV_POWER:
		script_power(s, e->node);
		break;
	case EV_POWER_FAILS:
		if (s->node[e->node].up) {
			script_power(s, e->node);
			s->node[e->node].up = true;
		}
		break;
	case EV_BOOT:
		for (unsigned n = 0; n < s->nodes; n++)
			s->node[n].up = true;
		break;
	case EV_SIDECAR_FAILS:
		s->node[e->node].sidecar_fails = 1;
		break;
	case EV_JOURNAL_FAILS:
		s->node[e->node].journal_fails = 1;
		break;
	case EV_DIES:
		s->node[e->node].dies = 1 + e->random % 24;
		break;
	case EV_DISK_FULL:
		s->node[e->node].full_until = s->now + 6000 * SIM_MS;
		break;
	case EV_MAP_FAILS:
		s->node[e->node].map_fails = 1;
		break;
	case EV_BESIDE_FAILS:
		s->node[e->node].beside_fails_until = s->now + 6000 * SIM_MS;
		break;
	case EV_DAMAGE_MAP:
		if (s->maps)
			maps_damage(s, e->node, e->random);
		break;
	default:
		script_operator(s, e);
	}
}
