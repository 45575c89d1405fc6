/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every sequence of events up to a depth, on two or three copies of a pool: what
 * generation and replica_judge say of each pair is compared with the writes that
 * each copy has. Nothing is lost on the way here: only who is newer is asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "replica_judge.h"
#include "sim.h"

#define COPIES_MAX   3U
#define VISITED_SIZE (1U << 22) /* a power of two, of hashes */
#define VISITED_FULL (VISITED_SIZE / 4 * 3)

struct copy {
	struct generation chain;
	struct generation whole; /* the same where nothing is ever dropped from a history */
	uint32_t has;            /* acknowledged writes, a bit each */
	bool runs;               /* its program does */
	bool home, primary;
	bool crashed;
};

struct chains {
	unsigned nodes, ids, writes;
	enum chains_rule rule;
	struct copy copy[COPIES_MAX];
	bool cut[COPIES_MAX][COPIES_MAX];
	bool installed[COPIES_MAX][COPIES_MAX]; /* [initiator][replica] */
};

enum chains_kind {
	CHAINS_WRITE,
	CHAINS_CUT,
	CHAINS_HEAL,
	CHAINS_CRASH,
	CHAINS_START,
	CHAINS_PROMOTE,
	CHAINS_DEMOTE,
	CHAINS_RECONNECT,
	CHAINS_RECONNECT_IN_DOUBT,
	CHAINS_DISCARD_LOCAL,
	CHAINS_DISCARD_REPLICA,
	CHAINS_KINDS,
};

struct explore {
	struct chains_result *result;
	uint64_t *visited;
	unsigned visited_count, depth;
	struct {
		uint8_t kind, a, b;
	} path[32];
};

static const char *const kind_names[CHAINS_KINDS] = {
	"write",
	"cut",
	"heal",
	"crash",
	"start",
	"promote",
	"demote",
	"reconnect",
	"reconnect-in-doubt",
	"discard-local",
	"discard-replica",
};

/* ---- the rules, as keeper and target have them ---- */

static struct gen_id
new_id(struct chains *c)
{
	struct gen_id id = {{0}};

	id.b[0] = (uint8_t)++c->ids;
	return id;
}

static bool
is_current(const struct chains *c, const struct gen_id *id)
{
	for (unsigned b = 0; b < c->nodes; b++)
		if (gen_id_equal(&c->copy[b].chain.current, id))
			return true;
	return false;
}

/* As the fullest history does: only what some copy has is kept. */
static void
thin(struct chains *c, unsigned a, const struct gen_id *was)
{
	struct generation *g = &c->copy[a].chain, all = *g;
	unsigned n = 0;

	memset(g->history, 0, sizeof(g->history));
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (!gen_id_is_nil(&all.history[i]) &&
		    (is_current(c, &all.history[i]) || gen_id_equal(&all.history[i], was)) &&
		    c->rule != CHAINS_FORGET_ALL)
			g->history[n++] = all.history[i];
}

static void
chain_take(struct chains *c, unsigned to, unsigned from)
{
	c->copy[to].chain = c->copy[from].chain;
	c->copy[to].whole = c->copy[from].whole;
}

static void
advance(struct chains *c, unsigned a)
{
	struct gen_id id = new_id(c), was = c->copy[a].chain.current;

	gen_advance(&c->copy[a].chain, &id);
	gen_advance(&c->copy[a].whole, &id);
	if (c->rule == CHAINS_FORGET || c->rule == CHAINS_FORGET_ALL)
		thin(c, a, &was);
	for (unsigned b = 0; b < c->nodes; b++)
		if (c->installed[a][b])
			chain_take(c, b, a);
}

static bool
is_replica(const struct chains *c, unsigned b)
{
	for (unsigned a = 0; a < c->nodes; a++)
		if (c->installed[a][b])
			return true;
	return false;
}

static bool
lose(struct chains *c, unsigned a, unsigned b)
{
	if (!c->installed[a][b])
		return false;
	c->installed[a][b] = false;
	if (c->rule != CHAINS_NO_ADVANCE)
		advance(c, a);
	return true;
}

static bool
crash(struct chains *c, unsigned a)
{
	if (!c->copy[a].runs)
		return false;
	c->copy[a].runs = false;
	c->copy[a].crashed = true;
	memset(c->installed[a], 0, sizeof(c->installed[a]));
	return true;
}

static bool
start(struct chains *c, unsigned a)
{
	struct copy *copy = &c->copy[a];

	if (copy->runs || is_replica(c, a) || !(copy->home || copy->primary))
		return false;
	copy->runs = true;
	copy->crashed = false;
	advance(c, a);
	return true;
}

static bool
promote(struct chains *c, unsigned b)
{
	struct copy *copy = &c->copy[b];
	unsigned writer = COPIES_MAX;

	if (copy->runs || copy->primary || gen_id_is_nil(&copy->chain.current))
		return false;
	for (unsigned a = 0; a < c->nodes; a++)
		if (c->installed[a][b])
			writer = a;
	/* The writer's session is ended; it sees that as a loss, at once or later. */
	if (writer < COPIES_MAX)
		c->installed[writer][b] = false;
	copy->primary = true;
	advance(c, b);
	if (writer < COPIES_MAX)
		advance(c, writer);
	return true;
}

static bool
reconnect(struct chains *c, unsigned a, unsigned b, bool in_doubt)
{
	struct sidecar local = {.generation = c->copy[a].chain},
		       replica = {.generation = c->copy[b].chain, .primary = c->copy[b].primary};
	struct judge_input in = {.local = &local, .replica = &replica};
	struct judgement out;

	if (!c->copy[a].runs || c->copy[b].runs || c->cut[a][b] || is_replica(c, b))
		return false;
	replica_judge(&in, &out);
	if (out.verdict == JUDGE_REFUSE)
		return false;
	chain_take(c, b, a);
	c->copy[b].has = c->copy[a].has;
	c->installed[a][b] = !in_doubt;
	if (in_doubt)
		advance(c, a);
	return true;
}

static bool
resolve(struct chains *c, unsigned a, unsigned b, bool discard_local)
{
	unsigned from = discard_local ? b : a, to = discard_local ? a : b;
	enum gen_relation relation = gen_compare(&c->copy[a].chain, &c->copy[b].chain);

	if (c->copy[a].runs || c->copy[b].runs || c->cut[a][b] || is_replica(c, a) ||
	    is_replica(c, b) || c->copy[to].primary || relation == GEN_EQUAL ||
	    relation == GEN_AHEAD)
		return false;
	chain_take(c, to, from);
	c->copy[to].has = c->copy[from].has;
	return true;
}

static bool
write_one(struct chains *c, unsigned a)
{
	if (!c->copy[a].runs)
		return false;
	c->copy[a].has |= 1U << c->writes;
	for (unsigned b = 0; b < c->nodes; b++)
		if (c->installed[a][b])
			c->copy[b].has |= 1U << c->writes;
	c->writes++;
	return true;
}

/* False: it changes nothing here. */
static bool
chains_do(struct chains *c, enum chains_kind kind, unsigned a, unsigned b)
{
	switch (kind) {
	case CHAINS_WRITE:
		return write_one(c, a);
	case CHAINS_CUT:
	case CHAINS_HEAL:
		if (c->cut[a][b] == (kind == CHAINS_CUT))
			return false;
		c->cut[a][b] = c->cut[b][a] = kind == CHAINS_CUT;
		if (kind == CHAINS_CUT) {
			(void)lose(c, a, b);
			(void)lose(c, b, a);
		}
		return true;
	case CHAINS_CRASH:
		return crash(c, a);
	case CHAINS_START:
		return start(c, a);
	case CHAINS_PROMOTE:
		return promote(c, a);
	case CHAINS_DEMOTE:
		if (!c->copy[a].primary || c->copy[a].runs)
			return false;
		c->copy[a].primary = false;
		return true;
	case CHAINS_RECONNECT:
	case CHAINS_RECONNECT_IN_DOUBT:
		return reconnect(c, a, b, kind == CHAINS_RECONNECT_IN_DOUBT);
	default:
		return resolve(c, a, b, kind == CHAINS_DISCARD_LOCAL);
	}
}

/* ---- against what was written ---- */

static bool
relation_is_right(enum gen_relation relation, uint32_t ours, uint32_t theirs)
{
	if (relation == GEN_EQUAL)
		return ours == theirs;
	if (relation == GEN_AHEAD)
		return (theirs & ~ours) == 0;
	if (relation == GEN_BEHIND)
		return (ours & ~theirs) == 0;
	return true; /* then nothing is overwritten: that is safe whatever they have */
}

/* With gaps in the histories ancestors are known all the same; others may look like strangers. */
static bool
relation_is_whole(enum gen_relation relation, const struct copy *a, const struct copy *b)
{
	enum gen_relation whole = gen_compare(&a->whole, &b->whole);

	return relation == whole || (whole == GEN_DIVERGED && relation == GEN_UNRELATED);
}

static void
path_text(const struct explore *x, char *out, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < x->depth && at < size; i++) {
		int n = snprintf(out + at, size - at, "%s%s %u %u", i ? ", " : "",
				 kind_names[x->path[i].kind], x->path[i].a, x->path[i].b);

		at += n > 0 ? (size_t)n : 0;
	}
}

static void
chains_check(struct explore *x, const struct chains *c)
{
	for (unsigned a = 0; a < c->nodes; a++) {
		for (unsigned b = 0; b < c->nodes; b++) {
			enum gen_relation relation;
			char path[SIM_TEXT_MAX - 128] = "";

			if (a == b)
				continue;
			relation = gen_compare(&c->copy[a].chain, &c->copy[b].chain);
			x->result->relations++;
			x->result->by_relation[relation]++;
			if (relation_is_right(relation, c->copy[a].has, c->copy[b].has) &&
			    relation_is_whole(relation, &c->copy[a], &c->copy[b]))
				continue;
			path_text(x, path, sizeof(path));
			x->result->failed = true;
			(void)snprintf(
				x->result->reason, sizeof(x->result->reason),
				"node %u is called %s of node %u, with writes %#x and %#x: %s", a,
				gen_relation_name(relation), b, c->copy[a].has, c->copy[b].has,
				path);
			return;
		}
	}
}

/* True the first time; when the table is full everything is new, which costs time only. */
static bool
visit(struct explore *x, const struct chains *c, unsigned left)
{
	uint64_t hash = sum64_seeded(c, sizeof(*c), left) | 1;
	size_t at = hash & (VISITED_SIZE - 1);

	while (x->visited[at] && x->visited[at] != hash)
		at = (at + 1) & (VISITED_SIZE - 1);
	if (x->visited[at])
		return false;
	if (x->visited_count < VISITED_FULL) {
		x->visited[at] = hash;
		x->visited_count++;
	}
	x->result->states++;
	return true;
}

static bool
kind_is_of_two(enum chains_kind kind)
{
	return kind == CHAINS_CUT || kind == CHAINS_HEAL || kind >= CHAINS_RECONNECT;
}

static void
chains_from(struct explore *x, const struct chains *c, unsigned left)
{
	for (unsigned i = 0; left && i < CHAINS_KINDS * c->nodes * c->nodes; i++) {
		unsigned kind = i / (c->nodes * c->nodes), a = i / c->nodes % c->nodes,
			 b = i % c->nodes;
		struct chains next;

		/* One node: named twice. A link: once. */
		if (kind_is_of_two((enum chains_kind)kind)
			    ? a == b || (kind <= CHAINS_HEAL && a > b)
			    : a != b)
			continue;
		memcpy(&next, c, sizeof(next));
		if (!chains_do(&next, (enum chains_kind)kind, a, b))
			continue;
		x->path[x->depth].kind = (uint8_t)kind;
		x->path[x->depth].a = (uint8_t)a;
		x->path[x->depth].b = (uint8_t)b;
		x->depth++;
		x->result->sequences++;
		chains_check(x, &next);
		if (!x->result->failed && visit(x, &next, left - 1))
			chains_from(x, &next, left - 1);
		if (x->result->failed)
			return;
		x->depth--;
	}
}

void
chains_explore(unsigned nodes, unsigned depth, enum chains_rule rule, struct chains_result *result)
{
	struct explore x = {.result = result};
	struct chains c;

	memset(result, 0, sizeof(*result));
	memset(&c, 0, sizeof(c)); /* also what lies between the members: states are hashed */
	x.visited = calloc(VISITED_SIZE, sizeof(*x.visited));
	if (!x.visited || nodes < 2 || nodes > COPIES_MAX || depth > 12) {
		result->failed = true;
		(void)snprintf(result->reason, sizeof(result->reason),
			       "out of memory, or not 2 or 3 nodes and up to 12 events");
		free(x.visited);
		return;
	}
	c.nodes = nodes;
	c.rule = rule;
	c.copy[0].home = c.copy[0].runs = true;
	for (unsigned b = 1; b < nodes; b++)
		c.installed[0][b] = true;
	advance(&c, 0);
	chains_from(&x, &c, depth);
	free(x.visited);
}
