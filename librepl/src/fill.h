/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fill - messages that are filled with ranges of a pool, one after the other, on a lane
 * that does nothing else: STAGEs (stage.c) and PUTs (push.c).
 */
#ifndef LIBREPL_FILL_H
#define LIBREPL_FILL_H

#include "err.h"
#include "lane.h"
#include "wire.h"

/* Where the bytes of ranges are. */
struct fill_source {
	const uint8_t *mem; /* the pool's first byte */
	const char *file;   /* that is mapped there; NULL: none is known */
	int fd;             /* that one, to be read in its place; -1: it is not */
};

struct fill {
	struct lane *lane; /* that the message which is being filled goes by */
	struct wire_commit message;
	bool building;
};

/* One of the above types: wire_stage_end(), wire_put_end(), or wire_commit_end(). */
typedef size_t fill_end_fn(struct wire_commit *c, uint64_t seq, uint32_t epoch);

/* For waiting: another message may be begun; all have been answered. */
bool fill_has_turn(const struct lane *l);
bool fill_is_quiet(const struct lane *l);

/*
 * Begin a message, for a range of len bytes and what follows, 0: of entries without bytes, on a
 * lane that has its turn.
 */
int fill_begin(struct fill *f, struct lane *l, uint64_t len, struct err *e);

/* How many bytes of a range go into it; 0: it is full and to be sent first. */
size_t fill_room(const struct fill *f, uint64_t off, uint64_t len);

/* Put that many in. */
int fill_add(struct fill *f, const struct fill_source *from, uint64_t off, size_t len,
	     struct err *e);

/* Send it; l->status tells how that went. */
void fill_send(struct fill *f, fill_end_fn *end);

#endif
