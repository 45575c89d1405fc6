/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync - bring a replica that misses updates up to date, beside the application.
 *
 * While it runs the application's writes do not go to this replica: they are
 * marked in its dirty map. Rounds copy what is dirty into the target's journal,
 * which is applied as a whole, so that the replica is at every moment a prefix
 * of the drained history. What the journal can't take is written directly, the
 * replica being marked inconsistent first. The last round happens under a hold,
 * in which nobody writes; its length is foreseen by what was measured before.
 *
 * Interrupted at any point, by either side's death too, the next run goes on
 * with what is left: the dirty map always describes at least what the replica
 * lacks.
 */
#ifndef LIBREPL_RESYNC_H
#define LIBREPL_RESYNC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "breath.h"
#include "err.h"
#include "generation.h"
#include "remote.h"

struct dirty;

enum resync_what {
	RESYNC_DELTA,  /* what the dirty map says */
	RESYNC_HASHES, /* what differs by hashes, in the whole pool */
	RESYNC_FULL,   /* all that is no hole: the replica has never been written */
};

/* Of the run under way, for other threads to read. */
struct resync_progress {
	_Atomic uint64_t total;  /* bytes to be dealt with; rises as the application writes */
	_Atomic uint64_t done;   /* of these: compared and equal, or copied */
	_Atomic uint64_t moved;  /* bytes sent to the target */
	_Atomic uint64_t kept;   /* an earlier session had sent them, and none committed */
	_Atomic uint64_t rate;   /* of done, bytes a second, over about a second */
	_Atomic uint64_t eta_ms; /* by that rate; 0: not known */
	_Atomic int rounds;      /* begun */
};

/* Nothing of an earlier run is left; total is 0 as long as it is not known. */
void resync_progress_begin(struct resync_progress *p, uint64_t total);

/* The handle, as its engine shows it to a resync. All are called by the thread of resync_run(). */
struct resync_host {
	void *arg;
	/* On success nobody writes and all that is pending has been marked dirty. All that waits
	 * breathes. NULL: nobody writes anyway; then release is not called either, and one round
	 * does it. */
	int (*hold)(void *arg, uint64_t deadline_ns, struct breath breath, struct err *e);
	void (*release)(void *arg);
	bool (*cancelled)(void *arg); /* stop or pause was asked for; NULL: never */
	uint64_t (*foreground_ns)(
		void *arg);          /* median drain of the last interval, 0: idle; or NULL */
	uint64_t (*size)(void *arg); /* of the pool now: it may grow */
	/* Whether the replica may be made inconsistent now; asked again until it is. blank: it is
	 * no prefix of anything, which is noted and waits for none. NULL: yes. */
	bool (*direct)(void *arg, bool blank);
};

struct resync {
	struct remote *remote; /* pool open for writing, lanes open without a receive ring, and
				* they are for this run alone */
	unsigned lane;         /* that is written directly by */
	const uint8_t *mem;    /* stays where it is as the pool grows */
	const char *file;      /* that is mapped as mem, so that its holes are known; or NULL */
	bool untouched; /* all of mem is a shared mapping of it that nobody has used so far */
	struct dirty *dirty;
	unsigned replica; /* tracked in dirty, and marked there by all drains */
	struct resync_host host;
	struct resync_progress *progress;
	uint64_t rate;   /* bytes a second; 0: by the foreground's latency */
	bool no_journal; /* write directly, e.g. to a target that knows no journal */
	/* Not with FULL: what an earlier session has staged and not committed is gone on with,
	 * where the remote keeps it. */
	bool resume;
	/* Not 0: the range is but a part of the generation of the chain, up to that position, as of
	 * a replica that lagged. The replica is called that, and not up-to-date. */
	uint64_t part;
	/*
	 * Out, of a run that failed: the target was asked to record the chain and its
	 * answer is not known. The replica may say up-to-date of a generation that goes
	 * on without it: the hold is STILL HELD, and the caller advances the generation
	 * of the others before it releases it.
	 */
	bool in_doubt;
};

/*
 * On success the hold is STILL HELD (where there is one), the replica equals the
 * range and is recorded as up-to-date with *chain(arg), which is asked for under
 * the hold; the caller installs it and releases. In between, as outdated, it gets the
 * chain of that moment as well, which is asked for under a hold. On failure there is no hold but as
 * in_doubt says, and the dirty map describes what is missing. REPL_E_FAILED: cancelled.
 *
 * With HASHES and FULL the whole map is marked first and cleared as it proves
 * equal: a run that was interrupted leaves a map that can be trusted. With HASHES the next run,
 * if the replica is still of the same generation and consistent, and the map was kept, goes
 * on where that one was.
 */
int resync_run(struct resync *s, enum resync_what what,
	       const struct generation *(*chain)(void *arg), struct err *e);

/* A run has failed since the target, of an earlier version, knows no journal: try with no_journal.
 */
bool resync_lacks_journal(const struct err *e);

#endif
