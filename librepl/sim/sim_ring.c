/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive ring of a target, as repld/data_deposit.c and repld/poolring.c keep it, and
 * the initiator's part. The region is of ring.c's own bytes, DEPOSITs are encoded and decoded by
 * wire.c, and what is replayed in which order ring.c says. Modelled is the memory: a DEPOSIT is
 * visible when it comes and durable when it is reported; of what is not durable a power cut keeps
 * any lines, or parts of them. Rounds are taken step by step, and at each step the target may die.
 */
#include <stdlib.h>
#include <string.h>

#include "le.h"
#include "librepl.h"
#include "ring.h"
#include "sim_impl.h"

#define SLOTS       3U
#define DEPTH       (SLOTS - 1)
#define LINE        64U
#define SLOT_HEAD   64U /* what is zeroed of a slot */
#define REGION_SIZE (2 * RING_HEADER_SIZE + SIM_LANES * SLOTS * RING_ALIGN)
#define REGION_AT   (SIDECAR_SIZE + (UINT64_C(1) << 30)) /* behind any dirty map */
#define QUEUE_MAX   64U

enum round_step { ROUND_TAKE, ROUND_STORE, ROUND_FLUSH, ROUND_MARK, ROUND_ANSWER };

struct sim_ring {
	uint8_t now[REGION_SIZE], disk[REGION_SIZE];
	/* of the session that has made it */
	struct ring_geometry geometry;
	struct {
		uint64_t seq, stamp; /* of the last one that came */
	} lane[SIM_LANES];
	unsigned count; /* that have come and are not answered, in the order of their arrival */
	struct {
		unsigned lane;
		uint64_t seq;
	} pending[QUEUE_MAX];
	/* the round that is under way */
	bool busy;
	unsigned taken, marked;
	uint32_t stored; /* blocks, not flushed */
};

bool
rings_new(struct sim *s, uint32_t nodes)
{
	s->ring_nodes = nodes;
	s->rings = calloc(s->nodes, sizeof(*s->rings));
	return s->rings != NULL;
}

void
rings_free(struct sim *s)
{
	free(s->rings);
	s->rings = NULL;
}

bool
ring_is_left(const struct sim *s, unsigned n)
{
	return s->rings && s->node[n].meta.ring_len;
}

/* ---- bytes ---- */

static uint8_t *
slot_at(uint8_t *region, const struct ring_geometry *g, unsigned lane, uint64_t seq)
{
	return region + ring_slot_off(g, lane, ring_slot_of(g, seq));
}

static void
region_sync(struct sim_ring *r, uint64_t off, size_t len)
{
	memcpy(r->disk + off, r->now + off, len);
}

static void
message_encode(const struct sim_msg *m, uint8_t *slot)
{
	struct wire_entry stamp = {.op = WIRE_OP_STAMP, .off = m->stamp};
	struct wire_commit c;

	wire_commit_begin(&c, slot, RING_ALIGN, m->count + 1);
	wire_commit_add(&c, &stamp, NULL);
	for (unsigned i = 0; i < m->count; i++)
		bytes_add(&c, m->block[i], m->version[i]);
	(void)wire_deposit_end(&c, m->number, m->epoch);
}

/* ---- replay ---- */

/* A message of another epoch, or whose bytes do not match, becomes a whole one of this ring. */
static void
slot_seal(const struct sim *s, uint8_t *slot, const struct ring_geometry *g, uint64_t pool_size)
{
	size_t len = wire_deposit_len(slot, RING_ALIGN);
	unsigned entries = get_le16(slot + 6);
	struct wire_commit c = {.buf = slot,
				.size = RING_ALIGN,
				.entry_room = entries,
				.entry_count = entries,
				.payload_len = get_le32(slot + 16)};
	uint32_t epoch = sim_broken(s, SIM_RING_ANY_EPOCH) ? g->epoch : get_le32(slot + 20);
	struct wire_commit_view v;

	if (!len || !entries || slot[WIRE_HEADER_SIZE + 12] != WIRE_OP_STAMP)
		return;
	if (sim_broken(s, SIM_RING_TORN) || !wire_deposit_decode(slot, len, pool_size, &v, NULL))
		(void)wire_deposit_end(&c, get_le64(slot + 8), epoch);
}

static const uint8_t *
region_believed(const struct sim *s, const struct sim_ring *r, const uint8_t *region,
		uint64_t pool_size, uint8_t copy[REGION_SIZE])
{
	if (!sim_broken(s, SIM_RING_ANY_EPOCH) && !sim_broken(s, SIM_RING_TORN))
		return region;
	memcpy(copy, region, REGION_SIZE);
	for (unsigned l = 0; l < SIM_LANES; l++)
		for (uint64_t seq = 1; seq <= SLOTS; seq++)
			slot_seal(s, slot_at(copy, &r->geometry, l, seq), &r->geometry, pool_size);
	return copy;
}

static void
region_replay(const struct sim *s, unsigned n, bool durable, struct sim_redo *redo)
{
	const struct sim_ring *r = &s->rings[n];
	uint64_t pool_size = s->node[n].meta.pool_size;
	bool by_lane = sim_broken(s, SIM_RING_ORDER);
	struct ring_replay replay;
	uint8_t copy[REGION_SIZE];
	const uint8_t *region = region_believed(s, r, durable ? r->disk : r->now, pool_size, copy);

	for (unsigned l = 0; l < (by_lane ? SIM_LANES : 1); l++) {
		struct ring_message m;

		ring_replay_begin(&replay, region, &r->geometry, pool_size);
		while (ring_replay_next(&replay, &m))
			if (!by_lane || m.lane == l)
				(void)bytes_apply(s, &m.view, redo);
	}
}

void
ring_content(const struct sim *s, unsigned n, bool durable, struct sim_redo *redo)
{
	if (ring_is_left(s, n) && !sim_broken(s, SIM_RING_DROPPED))
		region_replay(s, n, durable, redo);
}

static bool
ring_drop(struct sim *s, unsigned n)
{
	struct sidecar meta = s->node[n].meta;

	meta.ring_off = meta.ring_len = 0;
	return sim_broken(s, SIM_RING_KEPT) || media_sidecar(s, n, &meta);
}

bool
ring_recover(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_redo redo = {0};
	struct ring_geometry g;

	if (!ring_is_left(s, n))
		return true;
	if (ring_header_decode(s->rings[n].now, node->meta.ring_len, &g, NULL) ||
	    memcmp(&g, &s->rings[n].geometry, sizeof(g)) != 0 || g.epoch > node->meta.epoch) {
		sim_fail(s, "I7: node %u: a receive ring that was made cannot be read", n);
		return false;
	}
	s->rings[n].count = 0;
	s->rings[n].busy = false;
	ring_content(s, n, false, &redo);
	return bytes_bring(s, n, &redo, !sim_broken(s, SIM_RING_UNFLUSHED)) && ring_drop(s, n);
}

/* Of a line that is not durable: nothing, all, or any of its words. */
void
ring_power(struct sim *s, unsigned n)
{
	struct sim_ring *r = &s->rings[n];

	for (size_t at = 0; at < REGION_SIZE; at += LINE) {
		uint64_t random, kept;

		if (memcmp(r->now + at, r->disk + at, LINE) == 0)
			continue;
		random = sim_random(s);
		kept = random % 3 == 0 ? 0 : random % 3 == 1 ? UINT64_MAX : random >> 8;
		for (unsigned w = 0; w < LINE / 8; w++)
			if (kept >> w & 1)
				memcpy(r->disk + at + (size_t)8 * w, r->now + at + (size_t)8 * w,
				       8);
		memcpy(r->now + at, r->disk + at, LINE);
	}
}

/* ---- the target ---- */

/* Its name comes last: what has one is in order. */
static void
region_format(const struct sim *s, struct sim_ring *r)
{
	memset(r->now + RING_HEADER_SIZE, 0, RING_LANES_MAX * RING_MARK_SIZE);
	for (unsigned l = 0; l < SIM_LANES; l++)
		for (uint64_t seq = 1; seq <= SLOTS && !sim_broken(s, SIM_RING_ANY_EPOCH); seq++)
			memset(slot_at(r->now, &r->geometry, l, seq), 0, SLOT_HEAD);
	ring_header_encode(&r->geometry, r->now);
	region_sync(r, 0, REGION_SIZE);
}

int
ring_lanes(struct sim *s, const struct sim_msg *m, struct sim_msg *reply)
{
	struct sim_node *node = &s->node[m->to];
	struct sim_ring *r = &s->rings[m->to];
	struct sidecar meta = node->meta;

	if (!(s->ring_nodes >> m->to & 1))
		return 0;
	if (s->now < node->full_until)
		return REPL_E_NOSPC;
	if (node->journal.open || (meta.ring_len && !sim_broken(s, SIM_RING_KEPT)))
		return REPL_E_IO;
	r->geometry = (struct ring_geometry){
		.epoch = meta.epoch, .lanes = SIM_LANES, .slots = SLOTS, .slot_size = RING_ALIGN};
	region_format(s, r);
	memset(r->lane, 0, sizeof(r->lane));
	r->count = 0;
	r->busy = false;
	meta.ring_off = REGION_AT;
	meta.ring_len = ring_size(&r->geometry);
	if (script_dies(s, m->to))
		return REPL_E_LOST;
	if (!media_sidecar(s, m->to, &meta))
		return REPL_E_IO;
	reply->last = true;
	reply->epoch = meta.epoch;
	return script_dies(s, m->to) ? REPL_E_LOST : 0;
}

static void
ring_step(struct sim *s, unsigned n, enum round_step step, uint64_t delay)
{
	struct sim_msg m = {.kind = SIM_ROUND, .from = n, .to = n, .session = s->node[n].session};

	m.number = step;
	net_self(s, &m, delay);
}

/* Mostly at once; sometimes the thread is not on a processor for a while. */
static void
ring_begin(struct sim *s, unsigned n)
{
	uint64_t random = sim_random(s);

	if (s->rings[n].busy || !s->rings[n].count)
		return;
	s->rings[n].busy = true;
	ring_step(s, n, ROUND_TAKE, 20000 + random / 4 % (random % 4 ? 4 * SIM_MS : 500 * SIM_MS));
}

static void
ring_ack(struct sim *s, unsigned n, unsigned lane)
{
	struct sim_msg asked = {.kind = SIM_ROUND,
				.from = s->node[n].session_from,
				.to = n,
				.session = s->node[n].session,
				.channel = lane + 1},
		       reply = {0};

	target_reply(s, &asked, 0, &reply);
}

/* As deposit_check() of the target, but for the slot, which is the NIC's choice. */
static int
deposit_check(const struct sim *s, const struct sim_msg *m)
{
	const struct sim_ring *r = &s->rings[m->to];
	unsigned lane = m->channel - 1;

	return ring_is_left(s, m->to) && m->epoch == r->geometry.epoch &&
			       m->number == r->lane[lane].seq + 1 &&
			       m->stamp > r->lane[lane].stamp && r->count < QUEUE_MAX
		       ? 0
		       : REPL_E_PROTOCOL;
}

void
ring_deposit(struct sim *s, const struct sim_msg *m)
{
	struct sim_ring *r = &s->rings[m->to];
	struct sim_msg later = *m, reply = {.count = m->count};
	unsigned lane = m->channel - 1;
	int rc = deposit_check(s, m);

	if (rc || sim_broken(s, SIM_ACK_EARLY)) {
		target_reply(s, m, rc, &reply);
		if (rc)
			return;
	}
	message_encode(m, slot_at(r->now, &r->geometry, lane, m->number));
	s->changed = true;
	r->lane[lane].seq = m->number;
	r->lane[lane].stamp = m->stamp;
	r->pending[r->count].lane = lane;
	r->pending[r->count++].seq = m->number;
	if (sim_broken(s, SIM_RING_REUSED))
		ring_ack(s, m->to, lane);
	later.kind = SIM_PERSIST;
	later.of = m->kind;
	net_self(s, &later, 50000 + sim_random(s) % (4 * SIM_MS));
	ring_begin(s, m->to);
}

/* A read of the initiator's has come behind it, and behind all before it on the lane. */
void
ring_persist(struct sim *s, const struct sim_msg *m)
{
	struct sim_ring *r = &s->rings[m->to];
	struct sim_msg asked = *m, reply = {.count = m->count};

	region_sync(r, ring_slot_off(&r->geometry, m->channel - 1, 0), (size_t)SLOTS * RING_ALIGN);
	s->changed = true;
	asked.kind = m->of;
	if (!sim_broken(s, SIM_ACK_EARLY))
		target_reply(s, &asked, 0, &reply);
}

static void
round_store(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];
	struct sim_ring *r = &s->rings[m->to];

	for (unsigned i = 0; i < r->taken; i++) {
		const uint8_t *slot =
			slot_at(r->now, &r->geometry, r->pending[i].lane, r->pending[i].seq);
		struct sim_redo redo = {0};
		struct wire_commit_view v;

		if (wire_deposit_decode(slot, wire_deposit_len(slot, RING_ALIGN),
					maps_pool_size(node->mapped), &v, NULL)) {
			sim_fail(s, "I7: node %u: a deposit that has come cannot be read", m->to);
			return;
		}
		r->stored |= bytes_apply(s, &v, &redo);
		for (unsigned b = 0; b < SIM_BLOCKS; b++)
			if (redo.blocks >> b & 1)
				(void)media_store(s, m->to, b, redo.content[b], m->session);
	}
}

/*
 * One mark is durable before the next is stored, in the order of arrival over all lanes; of those
 * of a lane that follow one another the last one's will do. False: all are.
 */
static bool
round_mark(struct sim *s, unsigned n)
{
	struct sim_ring *r = &s->rings[n];
	bool back = sim_broken(s, SIM_RING_MARKS_ORDER);

	region_sync(r, RING_HEADER_SIZE, RING_LANES_MAX * RING_MARK_SIZE);
	s->changed = true;
	while (r->marked < r->taken) {
		unsigned i = back ? r->taken - 1 - r->marked : r->marked, lane = r->pending[i].lane;

		r->marked++;
		if (!back && i + 1 < r->taken && r->pending[i + 1].lane == lane)
			continue;
		if (ring_mark(r->now, lane) >= r->pending[i].seq)
			continue;
		ring_mark_encode(r->pending[i].seq, r->now + ring_mark_off(lane));
		return true;
	}
	return false;
}

static void
round_answer(struct sim *s, unsigned n)
{
	struct sim_ring *r = &s->rings[n];

	for (unsigned i = 0; i < r->taken && !sim_broken(s, SIM_RING_REUSED); i++)
		ring_ack(s, n, r->pending[i].lane);
	r->count -= r->taken;
	memmove(r->pending, r->pending + r->taken, r->count * sizeof(r->pending[0]));
	r->busy = false;
	ring_begin(s, n);
}

void
ring_round(struct sim *s, const struct sim_msg *m)
{
	struct sim_ring *r = &s->rings[m->to];
	enum round_step step = (enum round_step)m->number;
	bool mark_first = sim_broken(s, SIM_RING_MARK_FIRST);

	switch (step) {
	case ROUND_TAKE:
		r->taken = r->count;
		r->marked = 0;
		step = mark_first ? ROUND_MARK : ROUND_STORE;
		break;
	case ROUND_STORE:
		round_store(s, m);
		step = ROUND_FLUSH;
		break;
	case ROUND_FLUSH:
		media_flush(s, m->to, r->stored);
		r->stored = 0;
		step = mark_first ? ROUND_ANSWER : ROUND_MARK;
		break;
	case ROUND_MARK:
		if (!round_mark(s, m->to))
			step = mark_first ? ROUND_STORE : ROUND_ANSWER;
		break;
	case ROUND_ANSWER:
		round_answer(s, m->to);
		return;
	}
	if (!script_dies(s, m->to))
		ring_step(s, m->to, step, 10000 + sim_random(s) % (2 * SIM_MS));
}

/* ---- the initiator ---- */

bool
ring_wanted(const struct sim *s, unsigned n, unsigned k)
{
	return s->rings && !queued_serves(s, n, k);
}

static void
lane_send(struct sim *s, unsigned n, unsigned k, unsigned l)
{
	struct sim_ring_lanes *ring = &s->node[n].app.keeper[k].ring;
	struct sim_ring_lane *lane = &ring->lane[l];

	while (lane->waiting && lane->sent - lane->acked < DEPTH) {
		struct sim_msg m = {.kind = SIM_DEPOSIT, .channel = l + 1, .epoch = ring->epoch};

		m.stamp = ++ring->stamp;
		m.number = ++lane->sent;
		for (; m.count < SIM_BATCH && m.count < lane->waiting; m.count++) {
			m.block[m.count] = lane->block[m.count];
			m.version[m.count] = s->node[n].mem[lane->block[m.count]];
			s->op[m.version[m.count]].posted |= 1U << k;
		}
		lane->waiting -= m.count;
		memmove(lane->block, lane->block + m.count, lane->waiting);
		keeper_send(s, n, k, &m);
	}
}

void
ring_post(struct sim *s, unsigned n, unsigned k, unsigned l, unsigned block)
{
	struct sim_keeper *keeper = &s->node[n].app.keeper[k];
	struct sim_ring_lane *lane = &keeper->ring.lane[l];

	if (lane->waiting == SIM_PENDING) {
		sim_fail(s, "I5: node %u: more waits for slots of node %u than a lane may flush", n,
			 k);
		return;
	}
	keeper->outstanding[l]++;
	lane->block[lane->waiting++] = (uint8_t)block;
	lane_send(s, n, k, l);
}

void
ring_acked(struct sim *s, unsigned n, unsigned k, unsigned l)
{
	s->node[n].app.keeper[k].ring.lane[l].acked++;
	lane_send(s, n, k, l);
}
