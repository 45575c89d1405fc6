/* SPDX-License-Identifier: BSD-3-Clause */
#include "pushing.h"

#include "dirty.h"
#include "resync.h"

struct push_state {
	struct pushing *p;
	struct resync_progress progress;
	struct err err; /* of the chain */
};

static void
state_sum(struct push_state *st)
{
	st->p->sum = (struct transfer_progress){
		.total = st->p->size,
		.done = atomic_load(&st->progress.done),
		.moved = atomic_load(&st->progress.moved),
	};
}

static bool
push_cancelled(void *arg)
{
	struct push_state *st = arg;

	state_sum(st);
	return progress_tell(st->p->progress, &st->p->sum) != 0;
}

static const struct generation *
push_chain(void *arg)
{
	struct push_state *st = arg;

	return st->p->chain(st->p->arg,
			    atomic_load(&st->progress.moved) + atomic_load(&st->progress.kept),
			    &st->err);
}

/* A pool that was made and never written to reads as zeros. */
static bool
is_empty(const struct remote *remote)
{
	const struct sidecar *meta = &remote_info(remote)->meta;

	return gen_id_is_nil(&meta->generation.current) && meta->state == SIDECAR_UP_TO_DATE;
}

int
pushing_run(struct pushing *p, struct err *e)
{
	struct push_state st = {.p = p};
	struct resync s = {.remote = p->remote,
			   .mem = p->mem,
			   .file = p->file,
			   .untouched = true,
			   .resume = true,
			   .host = {.arg = &st, .cancelled = push_cancelled},
			   .progress = &st.progress};
	struct repl_config config = {.target_count = 1};
	struct gen_id none = {0};
	struct local local;
	int rc;

	/* What is left to do is kept in memory only: the next run compares anew. */
	local_init(&local);
	config.targets[0] = *remote_target(p->remote);
	rc = dirty_open(&local, &config, p->size, false, &s.dirty, e);
	if (rc)
		return rc;
	if (dirty_track(s.dirty, 0, &none))
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
	else
		rc = resync_run(&s, is_empty(p->remote) ? RESYNC_FULL : RESYNC_HASHES, push_chain,
				e);
	if (rc && st.err.code)
		rc = err_copy(e, &st.err);
	state_sum(&st);
	p->kept = atomic_load(&st.progress.kept);
	dirty_close(s.dirty);
	local_fini(&local);
	return rc;
}
