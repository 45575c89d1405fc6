/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what is marked has its space in a sparse pool already, so that a full disk is none in its
 * way. */
#include "resync_impl.h"

#include <string.h>

#include "clock.h"
#include "holes.h"

struct cover {
	const struct dirtymap *marked;
	uint64_t at; /* what is marked before it has space */
	bool hole;   /* something has none */
};

/* Nothing else is told of up to the end of these data. */
static void
cover_data(void *arg, struct range data)
{
	struct cover *c = arg;
	uint64_t end = data.off + data.len;
	struct range run;

	while (!c->hole && c->at < end && dirtymap_next_below(c->marked, c->at, end, &run)) {
		c->hole = run.off < data.off;
		c->at = run.off + run.len;
	}
}

static bool
cover_left(const struct cover *c, struct range *run)
{
	return !c->hole && dirtymap_next(c->marked, c->at, RESYNC_FINE, run);
}

static int
cover_ask(struct resync_run *r, struct cover *c, struct err *e)
{
	struct holes_asked asked = {.remote = r->s->remote,
				    .size = r->size,
				    .grain = RESYNC_FINE,
				    .data = cover_data,
				    .arg = c};
	struct range run;
	int rc = 0;

	while (!rc && cover_left(c, &run)) {
		uint64_t off = run.off - run.off % RESYNC_FINE;

		/* By what the pool has grown since: of that nothing is there yet. */
		c->hole = run.off >= r->size;
		if (c->hole)
			break;
		rc = resync_breathe(r, e);
		if (!rc)
			rc = holes_ask(&asked, &off, e);
		r->heard_ns = clock_now_ns();
		if (!rc && cover_left(c, &run))
			c->hole = run.off < off;
	}
	return rc;
}

/*
 * File systems that write where the data are. Others take space for each write, or can't tell what
 * is a hole. (A file of XFS that shares its blocks with a copy needs space as well, until it has
 * its own.)
 */
static bool
writes_in_place(const char *filesystem)
{
	static const char *const names[] = {"tmpfs", "ext4", "ext4-dax", "xfs", "xfs-dax"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(filesystem, names[i]) == 0)
			return true;
	return false;
}

int
resync_has_space(struct resync_run *r, bool *has, struct err *e)
{
	const struct resync *s = r->s;
	struct cover c = {0};
	int rc;

	*has = false;
	if (!writes_in_place(remote_info(s->remote)->filesystem))
		return 0;
	c.marked = dirty_batch_begin(s->dirty, s->replica);
	if (!c.marked)
		return 0;
	rc = cover_ask(r, &c, e);
	dirty_batch_end(s->dirty, s->replica, false);
	*has = !rc && !c.hole;
	return rc;
}
