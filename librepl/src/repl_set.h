/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_set - a handle on a pool set of the target's, for librpmem.so.1 alone. The
 * symbols have a version of their own, LIBREPL_PRIVATE_, the library's and a hash of this file and
 * repl_prepare.h, and no promise on them.
 *
 * They are not in librepl.h: each is a need of the old interface that the public one refuses on
 * purpose. Headers and attributes are PMDK's and mean nothing to other pools; a handle that opens
 * without judging or copying, so that it can be read first, gives up what repl_open() promises; and
 * a removal takes the set file too. A public call for any of them would be one more way to lose
 * data for everybody else. Both libraries come from one build and are installed together; a program
 * that has the older librepl.so, which is never unloaded, can't load a newer librpmem.so.1.
 *
 * The caller's range begins with the header of its own first part, if the set has
 * headers; the pool of the target begins behind it. Nothing is written beside
 * the caller's files. What the replica is worth is told by its state on the
 * target alone: up to date is one whose last writer has closed in order, and
 * nothing was lost on the way there. Any other is made equal to the caller's
 * range before the first write, and not before, so that it can be read first.
 */
#ifndef LIBREPL_REPL_SET_H
#define LIBREPL_REPL_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "librepl.h"
#include "pmdk.h"

/*
 * Make the pool of set file target's pool and open it. attr NULL: the set has
 * OPTION NOHDRS. fill: repl_set_fill() follows, and the target knows before the pool is there. Of
 * cfg all but its targets counts. After an error there is no pool, or the target is still making
 * it.
 */
REPL_API int repl_set_create(const struct repl_config *cfg, const char *target, void *addr,
			     size_t size, const uint8_t *attr, bool fill,
			     struct repl **out) REPL_MUST_CHECK;

/*
 * Open one that is there; size may be smaller than its own. *has_attr: attr was
 * found in its header. A damaged header is REPL_E_CORRUPT. keep: a program's, with all that it
 * writes in its range; a replica that is lost is taken up again by itself, as one that was made
 * without fill. It gets what it lacks, by a comparison where nobody knows what that is.
 */
REPL_API int repl_set_open(const struct repl_config *cfg, const char *target, void *addr,
			   size_t size, bool keep, uint8_t attr[PMDK_ATTR_SIZE], bool *has_attr,
			   struct repl **out) REPL_MUST_CHECK;

/* Whether the replica is lost at the moment. Any thread, no lock. */
REPL_API bool repl_set_is_away(const struct repl *r);

/* Bytes of the caller's range that are not the pool's: 0 or 4096. Offsets count behind them. */
REPL_API unsigned repl_set_header(const struct repl *r);

/* Replace the attributes. */
REPL_API int repl_set_attr(struct repl *r, const uint8_t attr[PMDK_ATTR_SIZE]) REPL_MUST_CHECK;

/*
 * Before the first write: see above. Cheap from the second time on. Any thread;
 * others wait until it is done. A replica that is lost over it counts as lost.
 */
REPL_API int repl_set_begin(struct repl *r) REPL_MUST_CHECK;

/*
 * Of one that was created, before anything is written to it: its caller fills it from another
 * replica, and what it holds is a copy that was not finished until repl_set_filled(), whoever dies
 * before that.
 */
REPL_API int repl_set_fill(struct repl *r) REPL_MUST_CHECK;
REPL_API int repl_set_filled(struct repl *r) REPL_MUST_CHECK;

/*
 * In place of that, before it is closed, where not all of it was filled: it is worth nothing, and
 * is removed. Where the target can't be asked to it stays a copy that was not finished.
 */
REPL_API void repl_set_unfilled(struct repl *r);

/* REPL_E_REFUSED if what the replica holds is a copy that was not finished. */
REPL_API int repl_set_readable(struct repl *r) REPL_MUST_CHECK;

/*
 * Whether what the replica holds may be copied to others of its set: as repl_set_readable(), and of
 * those that this process has open none has, or may have, what was acknowledged and is not here.
 * choosing: what is read is only looked at, and the first of the set that can be read is chosen;
 * then it is enough that one that was opened before is such a one.
 */
REPL_API int repl_set_source(struct repl *r, bool choosing) REPL_MUST_CHECK;

/*
 * Before a program that was opened after others of its set goes on: REPL_E_REFUSED if it and one of
 * them were gone on with without each other. The program's own data are those of one of them, and
 * the other would be overwritten.
 */
REPL_API int repl_set_agrees(struct repl *r) REPL_MUST_CHECK;

/*
 * Its last program had closed it when it was opened, and nobody has promoted it since: it lacks
 * nothing that this one knows of.
 */
REPL_API bool repl_set_closed(const struct repl *r);

/* It was called up to date then, and not by a program that has closed it. */
REPL_API bool repl_set_is_demoted(const struct repl *r);

/* What is mapped there of the caller's files is on media, whoever has written it. */
REPL_API int repl_set_settle(const void *mem, size_t size) REPL_MUST_CHECK;

/* Whether pmempool sync has just made a part of those that are mapped there: local_has_new(). */
REPL_API bool repl_set_has_new(const void *mem, size_t size);

/* No other one of its set was open in this process at any time. */
REPL_API bool repl_set_is_single(const struct repl *r);

/*
 * Remove the pool. with_set: its set file as well; force: as far as it is there; damaged: it was
 * found so, and what can be read by now, or lacks only a local replica, is REPL_E_REFUSED.
 */
REPL_API int repl_set_remove(const struct repl_config *cfg, const char *target, bool with_set,
			     bool force, bool damaged) REPL_MUST_CHECK;

#endif
