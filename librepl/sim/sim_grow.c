/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool grows while its program writes: repl_grow.c's part, and poolgrow.c's at
 * the target. All replicas make room, which can be taken back; when all have it
 * they grow, and the program's own sidecar last. A file that is longer than its
 * sidecar says is of a growth that was not finished.
 */
#include <string.h>

#include "librepl.h"
#include "sim_impl.h"

/* ---- the target ---- */

void
grow_cut(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	unsigned blocks = maps_blocks(node->meta.pool_size);

	for (unsigned b = blocks; b < node->file; b++) {
		if (node->mem[b])
			sim_fail(s, "I2: what is cut off of node %u holds write %u of block %u", n,
				 node->mem[b], b);
		node->mem[b] = node->disk[b] = 0;
	}
	node->file = blocks;
}

int
grow_target(struct sim *s, const struct sim_msg *m)
{
	struct sim_node *node = &s->node[m->to];
	struct sidecar meta = node->meta;
	unsigned blocks = (unsigned)m->number;

	if (blocks < node->mapped)
		return REPL_E_INVAL;
	if (blocks == node->mapped) {
		grow_cut(s, m->to);
		return 0;
	}
	if (node->file < blocks && s->now < node->full_until)
		return REPL_E_NOSPC;
	if (node->file < blocks)
		node->file = blocks;
	if (script_dies(s, m->to))
		return REPL_E_LOST;
	if (m->last)
		return 0;
	meta.pool_size = maps_pool_size(blocks);
	if (!sim_broken(s, SIM_GROW_UNRECORDED) && !media_sidecar(s, m->to, &meta))
		return REPL_E_IO;
	node->mapped = blocks;
	return script_dies(s, m->to) ? REPL_E_LOST : 0;
}

/* ---- the initiator ---- */

static bool
keeper_resyncs(const struct sim_keeper *keeper)
{
	return keeper->session && keeper->phase >= PHASE_HASH && keeper->phase <= PHASE_MARK_FINAL;
}

static void
grow_send(struct sim *s, unsigned n, unsigned blocks, bool prepare)
{
	struct sim_app *app = &s->node[n].app;

	for (unsigned k = 0; k < s->nodes; k++) {
		struct sim_msg m = {.kind = SIM_GROW, .number = blocks, .last = prepare};

		app->keeper[k].grow_rpc = 0;
		if (!app->keeper[k].installed)
			continue;
		keeper_send(s, n, k, &m);
		app->keeper[k].grow_rpc = m.rpc;
	}
}

void
grow_begin(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sim_app *app = &node->app;
	unsigned blocks = maps_blocks(app->size),
		 to = node->file > blocks ? node->file : blocks + 4;

	if (!app->running || app->opening || app->closing || app->growing || to > SIM_BLOCKS)
		return;
	/* The file is the program's; there is room in it, or nothing has happened. */
	if (node->file < to && s->now < node->full_until)
		return;
	node->file = to;
	if (script_dies(s, n))
		return;
	for (unsigned k = 0; k < s->nodes && !sim_broken(s, SIM_GROW_BESIDE_RESYNC); k++)
		if (keeper_resyncs(&app->keeper[k]))
			keeper_cut(s, n, k);
	app->map_size = maps_pool_size(to);
	if (s->maps && !maps_grow(s, n))
		return;
	app->growing = to;
	app->grow_since = s->now;
	app->grow_granted = app->grow_refused = false;
	if (sim_broken(s, SIM_GROW_LOCAL_FIRST))
		app->size = app->map_size;
	grow_send(s, n, to, true);
}

void
grow_answered(struct sim *s, unsigned n, unsigned k, const struct sim_msg *m)
{
	struct sim_app *app = &s->node[n].app;

	app->keeper[k].grow_rpc = 0;
	if (m->rc && app->grow_granted)
		keeper_lose(s, n, k);
	app->grow_refused |= m->rc != 0;
}

static void
grow_record(struct sim *s, unsigned n)
{
	struct sim_node *node = &s->node[n];
	struct sidecar meta = node->meta;

	meta.pool_size = maps_pool_size(node->app.growing);
	node->app.growing = 0;
	/* If it can't be recorded the range stays as it was; the program may ask again. */
	if (!script_dies(s, n) && media_sidecar(s, n, &meta))
		node->app.size = meta.pool_size;
}

void
grow_progress(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	if (!app->growing)
		return;
	for (unsigned k = 0; k < s->nodes; k++)
		if (app->keeper[k].installed && app->keeper[k].grow_rpc)
			return;
	if (app->grow_granted) {
		grow_record(s, n);
	} else if (app->grow_refused) {
		grow_send(s, n, maps_blocks(app->size), true);
		app->growing = 0;
	} else {
		app->grow_granted = true;
		grow_send(s, n, app->growing, false);
		grow_progress(s, n);
	}
}

void
grow_tick(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;

	if (app->growing && s->now - app->grow_since > 2 * SIM_OP_TIMEOUT)
		sim_fail(s, "I5: a growth on node %u has not returned by its deadline", n);
	/* A program whose growth has failed tries again when all is well. */
	if (s->settling && !app->growing && s->node[n].file > maps_blocks(app->size))
		grow_begin(s, n);
}
