/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing a replica set, and leaving one to its parent. */
#include <stdio.h>
#include <stdlib.h>

#include "alive.h"
#include "boot.h"
#include "clock.h"
#include "dirty.h"
#include "entry.h"
#include "keeper.h"
#include "ownwait.h"
#include "pending.h"
#include "repl_impl.h"
#include "repl_lanes.h"
#include "ship.h"
#include "siblings.h"
#include "statusd.h"

static void
replica_free(struct replica *p, uint64_t end_ns)
{
	bool live = !atomic_load(&p->lost);

	remote_free(p->remote, live ? (unsigned)clock_left_ms(end_ns) : 0);
	free(p->keeper);
	while (p->profiles) {
		struct profile_note *note = p->profiles;

		p->profiles = note->next;
		free(note->text);
		free(note);
	}
}

/* All are told first: one that hangs must not keep those behind it from an end in order. */
static void
replicas_leave(struct repl *r, uint64_t end_ns)
{
	uint64_t deadline_ns = clock_deadline((unsigned)clock_left_ms(end_ns) / 2);

	for (unsigned i = 0; i < r->replica_count; i++) {
		struct replica *p = &r->replicas[i];

		if (p->remote && atomic_load(&p->lost) == 0)
			remote_leave(p->remote, deadline_ns);
	}
}

void
repl_free(struct repl *r, uint64_t end_ns)
{
	if (!r)
		return;
	keepers_stop(r);
	siblings_leave(r);
	ship_stop(r->ship);
	statusd_stop(r->statusd);
	if (r->dirty)
		dirty_watch_lag(r->dirty, NULL, NULL);
	replicas_leave(r, end_ns);
	for (unsigned i = 0; i < r->replica_count; i++)
		replica_free(&r->replicas[i], end_ns);
	ship_free(r->ship);
	dirty_close(r->dirty);
	local_fini(&r->local);
	if (r->wake_made)
		(void)pthread_cond_destroy(&r->wake);
	if (r->appends_made)
		turns_fini(&r->appends);
	if (r->claims_made)
		claims_fini(&r->claims);
	if (r->trims_made)
		pending_trims_fini(&r->trims);
	if (r->wake_lock_made)
		(void)pthread_mutex_destroy(&r->wake_lock);
	if (r->reason_lock_made)
		(void)pthread_mutex_destroy(&r->reason_lock);
	if (r->grow_lock_made)
		(void)pthread_mutex_destroy(&r->grow_lock);
	if (r->lock_made)
		(void)pthread_mutex_destroy(&r->lock);
	free(r->slots);
	free(r->file);
	repl_config_free(r->cfg);
	if (r->set)
		twin_unmap(&r->set->twin);
	free(r->set);
	free(r);
}

/*
 * With dirty-map what a replica lacks that is well is noted too, so that the next opening need not
 * compare: what was flushed and not drained, and trims that it may not have ended. Of a log that
 * has failed nobody knows.
 */
static void
maps_complete(struct repl *r)
{
	bool failed = atomic_load(&r->log_failed);

	if (r->set || r->cfg->after_crash != CONFIG_CRASH_DIRTY_MAP)
		return;
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct replica *p = &r->replicas[i];

		if (failed && dirty_tracked(r->dirty, i))
			dirty_doubt(r->dirty, i);
		if (failed)
			continue;
		if (atomic_load(&p->lost) || dirty_track(r->dirty, i, &p->has))
			continue;
		for (unsigned lane = 0; lane < r->lane_count; lane++)
			pending_mark(r, lane, i);
		pending_trims_mark(r, i);
	}
}

/* What replicas lack, and that nobody writes any more. */
static int
record_close(struct repl *r, struct err *e)
{
	dirty_close(r->dirty);
	r->dirty = NULL;
	if (!r->local.path)
		return 0;
	/* Whoever opens it next would believe what memory has, and a later sync. */
	r->local.meta.writer_open = r->local.lost;
	if (r->local.lost)
		boot_none(&r->local.meta.boot);
	return local_store(&r->local, e);
}

/*
 * Nobody of the targets may take more than the first seven eighths. What has taken longer was this
 * machine's own, as where a resync has read from a disk that stalls.
 */
static uint64_t
leave_end(struct repl *r)
{
	uint64_t end_ns = closing_end(r, 8),
		 least_ns = clock_deadline(r->cfg->close_timeout_ms / 8);

	return end_ns > least_ns ? end_ns : least_ns;
}

int
repl_close(struct repl *r)
{
	ENTRY_WHOLE();
	uint64_t label_ns;
	struct alive alive;
	struct err e;
	int rc;

	if (!r)
		return 0;
	err_clear(&e);
	if (handle_check(r, &e)) {
		repl_abandon(r);
		return config_report(&e);
	}
	/* While keepers tell the targets that we are there, however much there is to sync. */
	dirty_settle(r->dirty);
	r->closing = call_begin(r, clock_now_ns());
	/*
	 * The last quarter is for telling the others of one that has not got all, and its last
	 * half for an end in order of those that are well, whatever hangs.
	 */
	atomic_store(&r->until_ns, closing_end(r, 6));
	ship_finish(r->ship, closing_end(r, 6), closing_end(r, 7));
	alive_begin(&alive, r);
	keepers_stop(r);
	/* The loss of a sibling uses what is freed from here on. */
	siblings_leave(r);
	label_ns = closing_end(r, 7);
	for (unsigned i = 0; i < r->replica_count; i++)
		repl_label(r, i, label_ns, label_ns);
	ship_stop(r->ship);
	/* It looks at the dirty maps, for whoever asks. */
	statusd_stop(r->statusd);
	r->statusd = NULL;
	maps_complete(r);
	repl_logs_detach(r);
	/* What was flushed and not drained the lost ones lack. */
	for (unsigned i = 0; i < r->lane_count; i++)
		pending_settle(r, i, NULL, 0);
	/* What this machine's disk takes is not taken from the targets' time. */
	diskclock_begin(&r->local.disk);
	rc = record_close(r, &e);
	diskclock_end(&r->local.disk);
	alive_end(&alive);
	repl_free(r, leave_end(r));
	return rc ? config_report(&e) : 0;
}

void
repl_abandon(struct repl *r)
{
	ENTRY_WHOLE();
	if (!r || r->abandoned)
		return;
	r->abandoned = true;
	dirty_abandon(r->dirty);
	/* Who waits to be woken takes it behind that. */
	if (r->wake_lock_made)
		ownwait_lock_anew(&r->wake_lock);
	/*
	 * No lock: whoever held one is not in this process. Who has interrupted a call of this
	 * thread's, and returns to it, goes on with no lane.
	 */
	for (unsigned i = 0; i < r->replica_count; i++) {
		(void)snprintf(r->replicas[i].reason, sizeof(r->replicas[i].reason),
			       "its connection is of the process that has forked this one");
		atomic_store(&r->replicas[i].lost, REPL_E_LOST);
		if (r->replicas[i].remote)
			remote_abandon(r->replicas[i].remote);
	}
	keepers_abandon(r);
	ship_abandon(r->ship);
	if (r->claims_made)
		claims_abandon(&r->claims);
	statusd_abandon(r->statusd);
	local_abandon(&r->local);
}
