/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The round log of a target, as repld/roundlog.c and repld/data_log.c keep it. Frames are of
 * roundfmt.c's own bytes, and what is replayed in which order it says. Modelled are the data
 * thread, the one that retires halves, and the lock between them: each write of a frame and each
 * sync of the pool is a step, at which the target may die, and a write that is under way is torn
 * by a power cut. Only the first blocks of a half are used, so that halves fill up.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "librepl.h"
#include "roundfmt.h"
#include "sim_impl.h"

#define HALF_FRAMES  3U
#define RESERVED     3U /* blocks for frames without messages */
#define HALF_BLOCKS  (HALF_FRAMES + RESERVED)
#define HALF         (HALF_BLOCKS * (uint64_t)ROUND_BLOCK)
#define REGION_SIZE  (REGION_PAGE + 2 * HALF_BLOCKS * ROUND_BLOCK)
#define REGION_AT    (SIDECAR_SIZE + (UINT64_C(2) << 30)) /* behind any dirty map */
#define SECTOR       512U
#define PENDING_MAX  64U
#define FRAME_MAX    12U /* messages, in a block */
#define PIECE_BLOCKS 2U  /* that are synced at a time */
#define IDLE_NS      (1000 * SIM_MS)

enum log_step {
	DATA_GATHER,
	DATA_WRITTEN,
	DATA_STORE,
	DATA_PERSIST,
	DATA_AGAIN,
	DATA_SYNC,
	RETIRE_PIECE,
	RETIRE_WRITTEN,
};

/* Of a COMMIT: what its answer needs, and what it brings. */
struct pending {
	enum sim_kind kind;
	unsigned channel;
	uint64_t rpc, number;
	bool logged, taken;
	unsigned count;
	uint8_t block[SIM_BATCH];
	uint32_t version[SIM_BATCH];
};

struct sim_log {
	uint8_t region[REGION_SIZE]; /* on media: a frame is durable when its write returns */
	uint8_t frame[ROUND_BLOCK];
	struct sim_redo redo; /* what a replay of the region brings, if it is known */
	bool known, damaged;
	/* of the session that has made it */
	struct round_header header;
	unsigned now, at; /* the half that takes frames, and the block */
	uint64_t seq, from, from_durable, storing;
	struct half {
		uint32_t blocks; /* stored, that its frames bring, and not synced in the pool */
		uint64_t last;
	} half[2];
	struct round_frame writing; /* its seq 0: none */
	bool retiring, closing;     /* closing: its frame is being written */
	uint32_t retired;           /* blocks that are to be synced for it */
	uint64_t frame_ns;
	bool busy;
	uint32_t stored; /* by another way, to be synced */
	uint32_t again;  /* of these those that the frame that is being written brings again */
	unsigned count;
	struct pending pending[PENDING_MAX];
};

bool
logs_new(struct sim *s, uint32_t nodes)
{
	s->log_nodes = nodes;
	s->logs = calloc(s->nodes, sizeof(*s->logs));
	return s->logs != NULL;
}

void
logs_free(struct sim *s)
{
	free(s->logs);
	s->logs = NULL;
}

bool
log_is_left(const struct sim *s, unsigned n)
{
	return s->logs && s->node[n].meta.log_len;
}

/* ---- frames ---- */

static void
frame_land(struct sim *s, struct sim_log *l)
{
	if (!l->writing.seq)
		return;
	memcpy(l->region + REGION_PAGE + (l->now * HALF_BLOCKS + l->at) * (size_t)ROUND_BLOCK,
	       l->frame, ROUND_BLOCK);
	l->known = false;
	l->seq = l->half[l->now].last = l->writing.seq;
	l->from_durable = l->writing.from;
	l->at++;
	/* What another way has brought is stored already. */
	l->half[l->now].blocks |= l->again;
	if (l->writing.count && !l->again)
		l->storing = l->seq;
	l->again = 0;
	l->writing.seq = 0;
	s->changed = true;
}

static unsigned
bytes_count(const struct pending *p, uint32_t blocks)
{
	unsigned count = 0;

	for (unsigned b = 0; p->taken && b < p->count; b++)
		count += blocks >> p->block[b] & 1;
	return count;
}

/* Of the messages that are taken what is of these blocks; of none: empty. */
static void
frame_write(struct sim *s, struct sim_log *l, uint32_t blocks)
{
	struct round_frame f = {.seq = l->seq + 1, .from = l->from};
	size_t at = ROUND_HEAD_SIZE;

	if (l->at >= HALF_BLOCKS) {
		sim_fail(s, "I7: no block is left in a half of a round log");
		return;
	}
	memset(l->frame, 0, sizeof(l->frame));
	for (unsigned i = 0; i < l->count; i++) {
		const struct pending *p = &l->pending[i];
		unsigned count = bytes_count(p, blocks);
		struct wire_commit c;
		size_t len;

		if (!count)
			continue;
		wire_commit_begin(&c, l->frame + at, ROUND_BLOCK - at, count);
		for (unsigned b = 0; b < p->count; b++)
			if (blocks >> p->block[b] & 1)
				bytes_add(&c, p->block[b], p->version[b]);
		len = wire_commit_end(&c, p->rpc, l->header.epoch);
		f.chain = wire_stage_chain(f.chain, l->frame + at);
		f.count++;
		at += len;
	}
	f.bytes = (uint32_t)(at - ROUND_HEAD_SIZE);
	round_head_encode(&f, l->header.key, l->frame);
	l->writing = f;
	l->frame_ns = s->now;
}

/* What a power cut leaves of a write that was under way. */
void
log_power(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];
	uint8_t *to =
		l->region + REGION_PAGE + (l->now * HALF_BLOCKS + l->at) * (size_t)ROUND_BLOCK;

	for (size_t at = 0; l->writing.seq && at < ROUND_BLOCK; at += SECTOR)
		if (sim_random(s) & 1)
			memcpy(to + at, l->frame + at, SECTOR);
	l->writing.seq = l->again = 0;
	l->known = false;
}

/* The kernel has had the write, or not yet. */
void
log_killed(struct sim *s, unsigned n)
{
	if (s->logs[n].writing.seq && sim_random(s) & 1)
		frame_land(s, &s->logs[n]);
	s->logs[n].writing.seq = s->logs[n].again = 0;
}

/* ---- steps ---- */

static void
log_later(struct sim *s, unsigned n, enum log_step step, uint64_t ns_max)
{
	struct sim_msg m = {
		.kind = SIM_LOG_STEP, .from = n, .to = n, .session = s->node[n].session};

	m.number = step;
	net_self(s, &m, 20000 + sim_random(s) % ns_max);
}

static void
half_switch(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];

	/* As it was: what is written over must not count. */
	if (sim_broken(s, SIM_LOG_FORGOTTEN) && l->half[!l->now].last >= l->from_durable) {
		frame_write(s, l, 0);
		frame_land(s, l);
	}
	l->now = !l->now;
	l->at = 0;
	l->half[l->now].last = 0;
	l->retired = l->half[!l->now].blocks;
	if (sim_broken(s, SIM_LOG_EARLY_FROM))
		l->from = l->seq + 1;
	l->retiring = true;
	log_later(s, n, RETIRE_PIECE, 200 * SIM_MS);
}

static void
retire_end(struct sim_log *l)
{
	l->half[!l->now].blocks = 0;
	l->retiring = l->closing = false;
}

static void
retire_piece(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];
	uint32_t piece = 0;

	if (!l->retiring || l->closing)
		return;
	for (unsigned i = 0; i < PIECE_BLOCKS; i++)
		piece |= (l->retired & ~piece) & -(l->retired & ~piece);
	media_flush(s, n, piece);
	l->retired &= ~piece;
	if (l->retired || l->writing.seq) {
		log_later(s, n, RETIRE_PIECE, 100 * SIM_MS);
		return;
	}
	if (l->from <= l->half[!l->now].last)
		l->from = l->half[!l->now].last + 1;
	if (l->from_durable == l->from ||
	    (sim_broken(s, SIM_LOG_FORGOTTEN) && l->from != l->seq + 1)) {
		retire_end(l);
		return;
	}
	l->closing = true;
	frame_write(s, l, 0);
	log_later(s, n, RETIRE_WRITTEN, 4 * SIM_MS);
}

static bool
settle_is_due(const struct sim_log *l)
{
	return l->half[l->now].blocks || l->retiring || l->from_durable != l->from;
}

/* The pool's part of settling; a frame says so then. */
static void
half_sync(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];

	media_flush(s, n, l->half[l->now].blocks);
	l->half[l->now].blocks = 0;
	l->from = l->storing && !sim_broken(s, SIM_LOG_STORING) ? l->storing : l->seq + 1;
}

/* All of it at once, by another thread, which waits for what is under way. */
bool
log_settle(struct sim *s, unsigned n, uint32_t blocks)
{
	struct sim_log *l = &s->logs[n];

	if (!log_is_left(s, n) ||
	    !((l->half[0].blocks | l->half[1].blocks) & blocks || blocks == UINT32_MAX))
		return true;
	frame_land(s, l);
	if (l->retiring) {
		media_flush(s, n, l->retired);
		l->retired = 0;
		if (l->from <= l->half[!l->now].last)
			l->from = l->half[!l->now].last + 1;
		if (l->from_durable != l->from) {
			frame_write(s, l, 0);
			frame_land(s, l);
		}
		retire_end(l);
	}
	if (!settle_is_due(l))
		return true;
	half_sync(s, n);
	if (script_dies(s, n))
		return false;
	if (l->from_durable != l->from) {
		frame_write(s, l, 0);
		frame_land(s, l);
	}
	return !script_dies(s, n);
}

/* ---- the data thread ---- */

static void
data_begin(struct sim *s, unsigned n)
{
	if (s->logs[n].busy || !s->logs[n].count)
		return;
	s->logs[n].busy = true;
	log_later(s, n, DATA_GATHER, 4 * SIM_MS);
}

int
log_commit(struct sim *s, const struct sim_msg *m)
{
	struct sim_log *l = &s->logs[m->to];
	struct pending *p = &l->pending[l->count];

	if (s->node[m->to].journal.open || l->count == PENDING_MAX)
		return REPL_E_PROTOCOL;
	*p = (struct pending){.kind = m->kind,
			      .channel = m->channel,
			      .rpc = m->rpc,
			      .number = m->number,
			      .count = m->count};
	/* Too large for a frame, or written by RDMA. */
	p->logged = sim_random(s) % 4 != 0;
	memcpy(p->block, m->block, sizeof(p->block));
	memcpy(p->version, m->version, sizeof(p->version));
	l->count++;
	data_begin(s, m->to);
	return 0;
}

bool
log_takes(const struct sim *s, const struct sim_msg *m)
{
	return log_is_left(s, m->to) && s->node[m->to].session == m->session;
}

/* Of each lane what comes first, as far as it goes by the log, or else one; returns how many. */
static unsigned
data_take(struct sim_log *l, bool logged)
{
	uint32_t waits = 0;
	unsigned taken = 0;

	for (unsigned i = 0; i < l->count; i++) {
		struct pending *p = &l->pending[i];
		uint32_t lane = 1U << p->channel;

		p->taken = !(waits & lane) && p->logged == logged && taken < FRAME_MAX;
		if (!p->taken || !logged)
			waits |= lane;
		taken += p->taken;
	}
	return taken;
}

static uint32_t
data_store(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];
	uint32_t blocks = 0;

	for (unsigned i = 0; i < l->count; i++) {
		const struct pending *p = &l->pending[i];

		for (unsigned b = 0; p->taken && b < p->count; b++) {
			(void)media_store(s, n, p->block[b], p->version[b], s->node[n].session);
			blocks |= 1U << p->block[b];
		}
	}
	return blocks;
}

static void
data_answer(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	const struct sim_log *l = &s->logs[n];

	for (unsigned i = 0; i < l->count; i++) {
		const struct pending *p = &l->pending[i];
		struct sim_msg asked = {.kind = p->kind,
					.from = node->session_from,
					.to = n,
					.session = node->session,
					.channel = p->channel,
					.rpc = p->rpc},
			       reply = {0};

		asked.number = p->number;
		if (!p->taken)
			continue;
		if (p->kind == SIM_SHIP && p->number > node->position)
			node->position = p->number;
		target_reply(s, &asked, 0, &reply);
	}
}

static void
data_done(struct sim_log *l)
{
	unsigned left = 0;

	for (unsigned i = 0; i < l->count; i++)
		if (!l->pending[i].taken)
			l->pending[left++] = l->pending[i];
	l->count = left;
}

static void
data_untake(struct sim_log *l)
{
	for (unsigned i = 0; i < l->count; i++)
		l->pending[i].taken = false;
}

/* False: it waits, for the lock or for the half. */
static bool
frame_room(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];

	if (l->at >= HALF_FRAMES && !l->writing.seq &&
	    (!l->retiring || sim_broken(s, SIM_LOG_OVERWRITTEN)))
		half_switch(s, n);
	return l->at < HALF_FRAMES && !l->writing.seq;
}

/* A frame, if anything goes by one; else what goes another way. */
static void
data_gather(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];

	l->busy = l->count > 0;
	if (!l->busy)
		return;
	if (!data_take(l, true)) {
		(void)data_take(l, false);
		l->stored = data_store(s, n);
		log_later(s, n, DATA_PERSIST, 2 * SIM_MS);
		return;
	}
	if (!frame_room(s, n)) {
		data_untake(l);
		log_later(s, n, DATA_GATHER, 4 * SIM_MS);
		return;
	}
	frame_write(s, l, UINT32_MAX);
	if (sim_broken(s, SIM_LOG_UNSYNCED))
		data_answer(s, n);
	log_later(s, n, DATA_WRITTEN, 4 * SIM_MS);
}

static void
data_stored(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];

	l->half[l->now].blocks |= data_store(s, n);
	l->storing = 0;
	if (!sim_broken(s, SIM_LOG_UNSYNCED))
		data_answer(s, n);
	data_done(l);
	log_later(s, n, DATA_GATHER, SIM_MS);
}

/* It came another way: what frames bring of it one more brings, and that is as good as a sync. */
static void
data_persist(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];
	uint32_t again = (l->half[0].blocks | l->half[1].blocks) & l->stored;

	if (sim_broken(s, SIM_LOG_UNSETTLED) || !again) {
		log_later(s, n, DATA_SYNC, 4 * SIM_MS);
		return;
	}
	if (!frame_room(s, n)) {
		log_later(s, n, DATA_PERSIST, 4 * SIM_MS);
		return;
	}
	frame_write(s, l, again);
	l->again = again;
	l->stored &= ~again;
	log_later(s, n, DATA_AGAIN, 4 * SIM_MS);
}

static void
data_synced(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];

	media_flush(s, n, l->stored);
	l->stored = 0;
	data_answer(s, n);
	data_done(l);
	log_later(s, n, DATA_GATHER, SIM_MS);
}

void
log_step(struct sim *s, const struct sim_msg *m)
{
	struct sim_log *l = &s->logs[m->to];

	if (script_dies(s, m->to))
		return;
	switch ((enum log_step)m->number) {
	case DATA_GATHER:
		data_gather(s, m->to);
		break;
	case DATA_WRITTEN:
		frame_land(s, l);
		/* A verification, in between. */
		if (sim_random(s) % 8 == 0 && !log_settle(s, m->to, (1U << SIM_BLOCKS) - 1))
			return;
		log_later(s, m->to, DATA_STORE, SIM_MS);
		break;
	case DATA_STORE:
		data_stored(s, m->to);
		break;
	case DATA_PERSIST:
		data_persist(s, m->to);
		break;
	case DATA_AGAIN:
		frame_land(s, l);
		log_later(s, m->to, DATA_SYNC, 4 * SIM_MS);
		break;
	case DATA_SYNC:
		data_synced(s, m->to);
		break;
	case RETIRE_PIECE:
		retire_piece(s, m->to);
		break;
	case RETIRE_WRITTEN:
		if (!l->closing)
			break;
		frame_land(s, l);
		retire_end(l);
		break;
	}
}

void
log_tick(struct sim *s, unsigned n)
{
	struct sim_log *l = &s->logs[n];

	if (log_is_left(s, n) && s->node[n].session && l->half[l->now].blocks && !l->retiring &&
	    !l->storing && !l->writing.seq && s->now - l->frame_ns > IDLE_NS)
		half_switch(s, n);
}

/* ---- making and ending ---- */

bool
log_make(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_log *l;
	struct sidecar meta = node->meta;

	if (!s->logs || !(s->log_nodes >> n & 1) || s->now < node->full_until)
		return true;
	l = &s->logs[n];
	/* Of an older log all is there still: the key tells. */
	memset(&l->known, 0, sizeof(*l) - offsetof(struct sim_log, known));
	l->header = (struct round_header){.epoch = meta.epoch,
					  .pool_uuid = meta.pool_uuid,
					  .key = sim_broken(s, SIM_LOG_ANY_KEY) ? 1 : sim_random(s),
					  .half = ROUND_HALF_MIN};
	round_header_encode(&l->header, l->region);
	l->header.half = HALF;
	l->from = l->from_durable = 1;
	meta.log_off = REGION_AT;
	meta.log_len = round_size(ROUND_HALF_MIN);
	if (script_dies(s, n))
		return false;
	/* Or it does without. */
	(void)media_sidecar(s, n, &meta);
	return !script_dies(s, n);
}

static bool
log_drop(struct sim *s, unsigned n)
{
	struct sidecar meta = s->node[n].meta;

	meta.log_off = meta.log_len = 0;
	return media_sidecar(s, n, &meta);
}

bool
log_end(struct sim *s, unsigned n)
{
	struct sim_log *l = s->logs ? &s->logs[n] : NULL;

	if (!log_is_left(s, n))
		return true;
	/* What its threads had begun they end. */
	frame_land(s, l);
	if (l->storing)
		l->half[l->now].blocks |= data_store(s, n);
	media_flush(s, n, l->retired | l->half[l->now].blocks);
	return !script_dies(s, n) && log_drop(s, n);
}

/* What a replay brings; false: frames are missing that count. */
bool
log_content(const struct sim *s, unsigned n, struct sim_redo *redo)
{
	uint64_t pool_size = s->node[n].meta.pool_size;
	struct round_replay replay;
	struct wire_commit_view v;
	struct sim_log *l = s->logs ? &s->logs[n] : NULL;

	if (!log_is_left(s, n) || sim_broken(s, SIM_LOG_DROPPED))
		return true;
	if (!l->known) {
		memset(&l->redo, 0, sizeof(l->redo));
		round_replay_begin(&replay, l->region, &l->header, pool_size);
		while (round_replay_next(&replay, &v))
			(void)bytes_apply(s, &v, &l->redo);
		l->damaged = replay.damaged;
		l->known = true;
	}
	*redo = l->redo;
	return !l->damaged;
}

bool
log_recover(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_redo redo = {0};
	struct round_header h;

	if (!log_is_left(s, n))
		return true;
	if (round_header_decode(s->logs[n].region, node->meta.log_len, &h, NULL) ||
	    h.epoch > node->meta.epoch || h.key != s->logs[n].header.key)
		sim_fail(s, "I7: node %u: a round log that was made cannot be read", n);
	if (!log_content(s, n, &redo))
		sim_fail(s, "I3: node %u: frames of its round log are missing", n);
	return bytes_bring(s, n, &redo, true) && log_drop(s, n);
}
