/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sidecar - the metadata file beside a pool: docs/POOL-FORMAT.md.
 *
 * NAME.repl holds two equal copies of one checksummed slot. An update writes
 * and syncs one copy, then the other, and never begins with the only newest
 * one: at every moment a whole copy holds the newest state, and one damaged
 * copy never brings back an older state. The same file stands beside the
 * replica on the target and beside the pool on the initiator.
 */
#ifndef COMMON_SIDECAR_H
#define COMMON_SIDECAR_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "generation.h"

#define SIDECAR_SUFFIX    ".repl"
#define RESTORING_SUFFIX  ".restoring" /* of a file that a restore writes to beside the pool's */
#define SIDECAR_VERSION   4            /* the highest major version that is understood */
#define SIDECAR_SLOT_SIZE 4096
#define SIDECAR_SIZE      (2 * SIDECAR_SLOT_SIZE)
#define SIDECAR_ATTR_SIZE 104

/* Where regions may lie: multiples of this, behind the copies. */
#define SIDECAR_REGION_ALIGN 4096

/* What the pool's data is worth; on-media values. */
enum sidecar_state {
	SIDECAR_UP_TO_DATE = 1,
	SIDECAR_INCONSISTENT = 2, /* a copy into it has begun and not ended */
	SIDECAR_OUTDATED = 3,     /* known to miss updates */
	SIDECAR_UNKNOWN = 4,      /* its writer went away without closing */
};

struct sidecar {
	uint64_t sequence; /* counts updates of this file */
	struct gen_id pool_uuid;
	uint64_t pool_size;
	struct generation generation;
	enum sidecar_state state;
	bool writer_open;   /* a writer attached and has not closed */
	uint64_t created_s; /* seconds since the epoch */
	uint64_t updated_s;
	char writer[128]; /* last writer, "user@host pid 123"; printable */
	uint32_t epoch;   /* counts writer sessions; the data path's fence */
	/*
	 * The receive ring's region in this file; length 0: there is none. It may
	 * hold updates that the pool lacks: who opens the pool replays it first.
	 */
	uint64_t ring_off, ring_len;
	bool sparse; /* space is taken as it is written, also by growing */
	/*
	 * The dirty map's region, on the initiator's side: what replicas have missed.
	 * Only its pages' own checksums speak for what is in it.
	 */
	uint64_t dirty_off, dirty_len;
	/*
	 * The resync journal's region, on the target's side. Committed: it holds what
	 * the pool may hold in part: who opens the pool applies it first.
	 */
	uint64_t journal_off, journal_len;
	bool journal_committed;
	bool opening; /* of a file: it is new, and the opening that made it has not ended */
	bool primary; /* promoted: this pool is no replica until it is demoted */
	/* What the initiator of a pool set wants kept, pmdk.h; all zero: it is in the headers. */
	uint8_t attr[SIDECAR_ATTR_SIZE];
	uint64_t position; /* the last drain that is known to be here, in its generation; 0: none */
	/*
	 * The round log's region, on the target's side. It may hold updates that the
	 * pool lacks: who opens the pool replays it first.
	 */
	uint64_t log_off, log_len;
	/*
	 * The writer that brought this generation waits for the pool with each drain: all that it
	 * acknowledged is here. False: it does not, or nobody knows.
	 */
	bool waited;
	/* The position record's region, on the target's side: it may tell a higher position. */
	uint64_t position_off, position_len;
	/*
	 * On the target's side, what the pool lay in when it was open last: the device, or the
	 * files of its local replicas. Nil: nobody knows.
	 */
	struct gen_id backing;
	/* The same of a pool set: how its bytes are spread over its files. 0: nobody knows. */
	uint64_t layout;
	/* The same: which files it names, and in which order. 0: nobody knows. */
	uint64_t order;
	/*
	 * Of a file: the run of its machine in which its writer opened it. Nil: nobody knows. In a
	 * later one a file that its writer did not close may lack what that has stored.
	 */
	struct gen_id boot;
	bool settled; /* of a device: nothing was stored since all of it was flushed */
};

const char *sidecar_state_name(enum sidecar_state s); /* "up-to-date", ... */

/* As if there were none: beside a file that may be the old one or the new one of a restore. */
bool sidecar_tells_nothing(const struct sidecar *s);

/* What of a dead writer's may hold updates that the pool lacks, as people call it, or NULL. */
const char *sidecar_holds(const struct sidecar *s);

/*
 * Pure: one slot of SIDECAR_SLOT_SIZE bytes. What is not printable in writer
 * becomes '?'. A slot that decodes has a known state, sizes, times and a
 * sequence below 2^63, and a terminated, printable writer; otherwise
 * REPL_E_CORRUPT, or REPL_E_VERSION if it is whole and of a newer version.
 */
void sidecar_encode(const struct sidecar *s, uint8_t slot[SIDECAR_SLOT_SIZE]);
int sidecar_decode(const uint8_t slot[SIDECAR_SLOT_SIZE], struct sidecar *s, struct err *e);

/*
 * Read from an open file: the newest whole copy. *repair is set if the other
 * one is damaged or older; the next sidecar_write() mends it. REPL_E_CORRUPT if
 * neither is whole, and e->errnum if one could not be read; REPL_E_VERSION if made by a newer
 * version.
 */
int sidecar_read(int fd, struct sidecar *s, bool *repair, struct err *e);

/*
 * Increments sequence, sets updated_s, writes and syncs first the copy that is
 * damaged or older (the first when both are equal), then the other. An empty
 * file becomes a sidecar. Callers exclude one another. On an error *s is as
 * before, and a reader finds the old or the new state.
 */
int sidecar_write(int fd, struct sidecar *s, struct err *e);

#endif
