/* SPDX-License-Identifier: BSD-3-Clause */
/* Queued replicas: ship.c's part, over the real shipqueue and ackpolicy. */
#include <string.h>

#include "sim_impl.h"
#include "wire.h"

#define WINDOW   3U /* shipments on their way */
#define ROOM     6U /* empty ones: what a replica may lag by */
#define LAG_NS   (1200 * SIM_MS)
#define PATIENCE (SIM_OP_TIMEOUT - SIM_OP_TIMEOUT / 4)

#define BIT(k) (UINT32_C(1) << (k))

void
queued_begin(struct sim *s, unsigned n)
{
	struct ackpolicy *p = &s->node[n].app.policy;
	uint32_t others = (BIT(s->nodes) - 1) & ~BIT(n);

	memset(&s->node[n].app.q, 0, sizeof(s->node[n].app.q));
	for (uint32_t i = 1; i <= s->ops; i++)
		if (s->op[i].node == n)
			s->op[i].number = 0;
	*p = (struct ackpolicy){.served = s->ack == ACK_ALL ? others & s->async : others,
				.degrade = s->lag_degrade,
				.lag_bytes = ROOM * SHIPMENT_OVERHEAD,
				.lag_ns = LAG_NS};
	if (s->ack == ACK_ALL)
		return;
	p->sync = others & ~s->async;
	p->needed = ack_needed(s->ack, (unsigned)__builtin_popcount(p->sync));
	if (sim_broken(s, SIM_QUEUE_FEW) && p->needed)
		p->needed--;
}

void
queued_end(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	for (unsigned l = 0; l < SIM_LANES; l++) {
		if (app->lane[l].shipped)
			shipqueue_unref(&app->q, app->lane[l].shipped);
		app->lane[l].shipped = NULL;
	}
	for (unsigned k = 0; k < s->nodes; k++)
		shipqueue_close(&app->q, k, NULL, NULL);
}

bool
queued_serves(const struct sim *s, unsigned n, unsigned k)
{
	return s->node[n].app.policy.served & BIT(k);
}

static uint32_t
queued_live(const struct sim *s, unsigned n)
{
	uint32_t live = 0;

	for (unsigned k = 0; k < s->nodes; k++)
		live |= s->node[n].app.q.view[k].open ? BIT(k) : 0;
	return live;
}

static uint32_t
queued_laggards(const struct sim *s, unsigned n)
{
	uint32_t bits = 0;

	for (unsigned k = 0; k < s->nodes && !sim_broken(s, SIM_QUEUE_COUNT_LAGGARD); k++)
		bits |= s->node[n].app.keeper[k].behind ? BIT(k) : 0;
	return bits;
}

static void
queued_send(struct sim *s, unsigned n, unsigned k)
{
	struct sim_app *app = &s->node[n].app;
	const struct shipview *v = &app->q.view[k];

	while (v->open && v->unsent && app->keeper[k].in_flight < WINDOW) {
		const struct shipment *m = v->unsent;
		struct sim_msg msg = {.kind = SIM_SHIP, .channel = 1, .number = m->number};

		for (unsigned i = 0; i < m->piece_count; i++) {
			msg.block[i] = (uint8_t)m->pieces[i].off;
			memcpy(&msg.version[i], m->data + m->pieces[i].at, sizeof(uint32_t));
		}
		msg.count = m->piece_count;
		shipqueue_sent(&app->q, k);
		app->keeper[k].in_flight++;
		keeper_send(s, n, k, &msg);
	}
}

static void
queued_append(struct sim *s, unsigned n, struct shipment *m)
{
	shipqueue_append(&s->node[n].app.q, m, s->now + 1);
	for (unsigned k = 0; k < s->nodes; k++)
		queued_send(s, n, k);
}

/* ---- a drain ---- */

static bool
queued_room(struct sim *s, unsigned n, uint64_t since)
{
	struct sim_app *app = &s->node[n].app;
	bool over = s->now - since >= PATIENCE;
	uint32_t late;

	for (;;) {
		switch (ack_room(&app->policy, &app->q, queued_live(s, n), s->now, over, &late)) {
		case ACK_ROOM_THERE:
			return true;
		case ACK_ROOM_LOSE:
			keeper_lose_all(s, n, late);
			break;
		default:
			return false;
		}
	}
}

/* Slices of a drain, as large as a message; false: there is no room yet. */
static bool
queued_post(struct sim *s, unsigned n, unsigned l)
{
	struct sim_node *node = &s->node[n];
	struct sim_app *app = &node->app;
	struct sim_lane *lane = &app->lane[l];

	while (lane->unposted) {
		struct shipment *m;

		if (!queued_room(s, n, lane->since))
			return false;
		m = shipment_new(SIM_BATCH, SIM_BATCH * sizeof(uint32_t));
		for (unsigned b = 0; m && b < SIM_BLOCKS && m->piece_count < SIM_BATCH; b++) {
			if (!(lane->unposted >> b & 1))
				continue;
			lane->unposted &= ~BIT(b);
			shipment_add(m, WIRE_OP_COPY, b, sizeof(uint32_t), &node->mem[b]);
			/* shipment_add() takes the length of the bytes for that of the range. */
			m->pieces[m->piece_count - 1].len = 1;
			s->op[node->mem[b]].posted |= app->policy.served;
		}
		if (!m)
			return false;
		queued_append(s, n, m);
		for (unsigned i = 0; i < m->piece_count; i++)
			s->op[node->mem[m->pieces[i].off]].number = m->number;
		if (lane->shipped)
			shipqueue_unref(&app->q, lane->shipped);
		lane->shipped = m;
	}
	return true;
}

bool
queued_through(struct sim *s, unsigned n, unsigned l)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_lane *lane = &app->lane[l];
	uint32_t live, left;
	bool enough;

	if (!app->policy.served)
		return true;
	if (!queued_post(s, n, l))
		return false;
	if (!lane->shipped)
		return true;
	live = queued_live(s, n);
	left = ack_left(&app->policy, lane->shipped, live, queued_laggards(s, n), &enough);
	if (left && s->now - lane->since < PATIENCE)
		return false;
	if (enough)
		lane->holders = ack_holders(&app->policy, lane->shipped, queued_live(s, n),
					    queued_laggards(s, n));
	shipqueue_through(&app->q, lane->shipped->number);
	shipqueue_unref(&app->q, lane->shipped);
	lane->shipped = NULL;
	if (left)
		keeper_lose_all(s, n, left);
	return true;
}

/* ---- one replica ---- */

void
queued_acked(struct sim *s, unsigned n, unsigned k, uint64_t number)
{
	struct sim_app *app = &s->node[n].app;
	const struct shipview *v = &app->q.view[k];

	while (v->open && v->unacked && v->unacked != v->unsent && v->unacked->number <= number) {
		shipqueue_acked(&app->q, k);
		app->keeper[k].in_flight--;
	}
	queued_send(s, n, k);
	queued_label(s, n, k);
}

struct dropping {
	const struct sim *s;
	struct sim_keeper *keeper;
};

static void
mark_dropped(void *arg, uint64_t off, uint64_t len)
{
	const struct dropping *d = arg;

	(void)len;
	if (!sim_broken(d->s, SIM_QUEUE_NO_MARK))
		d->keeper->dirty |= BIT(off);
}

void
queued_lost(struct sim *s, unsigned n, unsigned k)
{
	struct sim_keeper *keeper = &s->node[n].app.keeper[k];
	struct dropping d = {.s = s, .keeper = keeper};

	if (!queued_serves(s, n, k))
		return;
	shipqueue_close(&s->node[n].app.q, k, mark_dropped, &d);
	keeper->behind = keeper->label_rpc = 0;
}

void
queued_install(struct sim *s, unsigned n, unsigned k)
{
	struct sim_app *app = &s->node[n].app;
	struct shipment *empty;

	if (!queued_serves(s, n, k))
		return;
	app->keeper[k].in_flight = 0;
	app->keeper[k].behind = app->keeper[k].label_rpc = 0;
	shipqueue_open(&app->q, k);
	empty = shipment_new(0, 0);
	if (!empty)
		return;
	queued_append(s, n, empty);
	shipqueue_unref(&app->q, empty);
}

bool
queued_settling(const struct sim *s, unsigned n)
{
	const struct ackpolicy *p = &s->node[n].app.policy;

	for (unsigned k = 0; k < s->nodes; k++)
		if (p->sync & BIT(k) && s->node[n].app.keeper[k].behind)
			return true;
	return false;
}

bool
queued_empty(const struct sim *s, unsigned n)
{
	for (unsigned k = 0; k < s->nodes; k++)
		if (s->node[n].app.q.view[k].unacked)
			return false;
	return true;
}

void
queued_lose_late(struct sim *s, unsigned n)
{
	uint32_t late = 0;

	for (unsigned k = 0; k < s->nodes; k++)
		late |= s->node[n].app.q.view[k].unacked ? BIT(k) : 0;
	keeper_lose_all(s, n, late);
}

/* ---- labels ---- */

void
queued_tell(struct sim *s, unsigned n, unsigned k, struct sim_msg *mark)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_keeper *keeper = &app->keeper[k];
	struct generation named = mark->chain;
	uint64_t behind;

	keeper->label_rpc = 0;
	keeper->told_whole = true;
	if (!queued_serves(s, n, k))
		return;
	behind = shipqueue_behind(&app->q, k, &named);
	keeper->told_whole = !behind;
	/* One that has caught up is labelled so first. */
	if (behind)
		keeper->behind = behind;
	if (!behind || sim_broken(s, SIM_LAGGARD_UP_TO_DATE))
		return;
	mark->state = SIDECAR_OUTDATED;
	if (!sim_broken(s, SIM_LAGGARD_NAMES))
		mark->chain = named;
}

void
queued_label(struct sim *s, unsigned n, unsigned k)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_keeper *keeper = &app->keeper[k];
	struct sim_msg m = {.kind = SIM_MARK, .state = SIDECAR_UP_TO_DATE, .has_chain = true};
	uint64_t until = sim_broken(s, SIM_LAGGARD_UNTOLD) ? app->q.through : keeper->behind;

	if (!keeper->installed || !keeper->behind || keeper->label_rpc || app->advancing ||
	    !shipqueue_has(&app->q, k, until))
		return;
	m.chain = app->chain;
	queued_tell(s, n, k, &m);
	keeper_send(s, n, k, &m);
	keeper->label_rpc = m.rpc;
}
