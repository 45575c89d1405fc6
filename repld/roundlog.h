/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roundlog - the round log of a page pool that a writer has open: docs/POOL-FORMAT.md,
 * section 1.8. The data thread writes frames, a thread of its own syncs what they
 * bring in the pool, half by half, so that no update waits for that unless the disk
 * can't keep up.
 *
 * Making maps memory: see pmem.h. All but making and ending may be called by any thread.
 */
#ifndef REPLD_ROUNDLOG_H
#define REPLD_ROUNDLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "pmem.h"
#include "roundfmt.h"
#include "sidecar.h"

#define ROUNDLOG_RANGES_MAX 4096U /* of a half; of one frame half of it */

struct roundlog;

/*
 * Make a log in the sidecar, an open file that has none; meta is what the sidecar
 * says and will say. pool is what frames are for. On an error the sidecar is as it was.
 */
int roundlog_make(int sidecar_fd, const char *path, struct sidecar *meta, struct pmem_map *pool,
		  struct roundlog **out, struct err *e);

/*
 * Make count messages durable as one frame, of which round_takes() is true; with head and ranges
 * they fit in one. What they bring is to be stored in the pool after that. An error is
 * that of a sync, here or of an earlier frame's ranges: no update may be taken any more.
 */
int roundlog_write(struct roundlog *l, const struct wire_commit_view *const *messages,
		   unsigned count, struct err *e);

/* What the last frame's messages bring is stored in the pool: to be called before the next one. */
void roundlog_stored(struct roundlog *l, const struct wire_commit_view *const *messages,
		     unsigned count);

/*
 * Make known on media how far the pool has come, unless a frame told that or more; all that comes
 * before it is durable. Between a frame and the call that says that it is stored it may not be
 * called.
 */
int roundlog_position(struct roundlog *l, uint64_t position, struct err *e);

/*
 * Make ranges of the pool durable that came by another way; first what frames bring, if they
 * bring any of it, so that no replay brings back what is older. r is changed as
 * by pmem_map_persist().
 */
int roundlog_persist(struct roundlog *l, struct range *r, size_t count, struct err *e);

/*
 * The same, without waiting for the other ranges that frames bring: of r what they bring is first
 * written to the log anew, as it is in the pool. For who writes the frames, when the last one is
 * stored; all of r must have its space in the pool, as what a frame brings.
 */
int roundlog_flush(struct roundlog *l, struct range *r, size_t count, struct err *e);

/* A sync of the pool has failed elsewhere: all frames that still count go on to. */
void roundlog_fail(struct roundlog *l);

/* All that frames bring is durable in the pool, and none of them is replayed. */
int roundlog_settle(struct roundlog *l, struct err *e);

/*
 * No frame comes any more: with sync all that they bring becomes durable in the pool. Frees l,
 * which may be NULL; the log stays on media.
 */
int roundlog_end(struct roundlog *l, bool sync, struct err *e);

/* What a dead writer has left, named by meta. */
struct roundlog_replayed {
	uint64_t messages; /* but for those that tell a position only */
	uint64_t position; /* the highest that is told; 0: none is */
	bool damaged;      /* updates are missing that may have been acknowledged */
};

/*
 * Bring into the pool what is there, durably; without one (NULL) it is only told what is there.
 * REPL_E_CORRUPT: the log can't be believed at all;
 * REPL_E_IO: the device did not give it, and may another time. Nothing is taken away.
 */
int roundlog_replay(int sidecar_fd, const struct sidecar *meta, struct pmem_map *pool,
		    struct roundlog_replayed *done, struct err *e);

/* Take the log away, and record the rest of *as: of a pool that holds what was in it. */
int roundlog_drop(int sidecar_fd, struct sidecar *meta, const struct sidecar *as, struct err *e);

#endif
