/* SPDX-License-Identifier: BSD-3-Clause */
#include "bring.h"

#include "clock.h"
#include "dirty.h"
#include "lineage.h"

struct bring {
	struct repl *r;
	unsigned replica;
	struct generation chain;
	uint64_t deadline_ns;
};

static bool
bring_cancelled(void *arg)
{
	const struct bring *b = arg;

	return atomic_load(&b->r->cut) || clock_now_ns() >= b->deadline_ns;
}

static bool
bring_direct(void *arg, bool blank)
{
	struct bring *b = arg;

	if (blank)
		repl_direct_note(b->r, b->replica);
	if (blank || repl_direct_begin(b->r, b->replica, false))
		return true;
	/* The time is this replica's own. */
	b->deadline_ns = clock_deadline(b->r->cfg->resync_timeout_ms);
	return false;
}

/* What is recorded as the local pool's is what the replica is made equal to. */
static const struct generation *
bring_chain(void *arg)
{
	const struct bring *b = arg;

	return &b->chain;
}

/* A comparison marks what it finds: there is a map to mark in. */
static int
bring_track(struct repl *r, unsigned i, struct dirty *dirty, struct err *e)
{
	const struct gen_id *has = &remote_info(r->replicas[i].remote)->meta.generation.current;
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	if (dirty_track_found(dirty, i, has))
		rc = err_set(e, REPL_E_NOMEM, "no memory for a dirty map");
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
bring_resync(struct repl *r, unsigned replica, struct dirty *dirty, enum resync_what what,
	     const struct generation *chain, struct err *e)
{
	struct replica *p = &r->replicas[replica];
	struct bring b = {.r = r,
			  .replica = replica,
			  .chain = *chain,
			  .deadline_ns = clock_deadline(r->cfg->resync_timeout_ms)};
	struct resync_progress progress = {0};
	struct resync s = {
		.remote = p->remote,
		.mem = r->mem,
		.file = r->file,
		.dirty = dirty,
		.replica = replica,
		.host = {.arg = &b, .cancelled = bring_cancelled, .direct = bring_direct},
		.resume = true,
		.part = lineage_equal(&r->local.meta, &b.chain),
		.progress = &progress};
	int rc = bring_track(r, replica, dirty, e);

	if (!rc)
		rc = resync_run(&s, what, bring_chain, e);
	if (rc && resync_lacks_journal(e)) {
		err_clear(e);
		s.no_journal = true;
		rc = resync_run(&s, what, bring_chain, e);
	}
	repl_direct_end(r, replica);
	/* It may have heard of this generation: that must stay in our chain. */
	if (rc) {
		pthread_mutex_lock(&r->lock);
		p->told = chain->current;
		pthread_mutex_unlock(&r->lock);
	}
	if (rc == REPL_E_FAILED && !atomic_load(&r->cut))
		rc = err_set(e, REPL_E_TIMEOUT, "not brought up to date within %u ms",
			     r->cfg->resync_timeout_ms);
	return rc;
}
