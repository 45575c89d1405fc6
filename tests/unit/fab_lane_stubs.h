/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of fabric.h's lanes what is the same for each test that plays the target of a lane. They replace
 * the whole module, so what a test never calls is here, too. To be included behind its own struct
 * fab_lane.
 */
#ifndef UNIT_FAB_LANE_STUBS_H
#define UNIT_FAB_LANE_STUBS_H

static void
log_put(struct fab_lane *l, char c)
{
	size_t len = strlen(l->log);

	if (len + 1 < sizeof(l->log))
		l->log[len] = c;
}

bool
fab_lane_commits(const struct fab_lane *l)
{
	(void)l;
	return false;
}

int
fab_lane_read_window(struct fab_lane *l, void *dst, size_t len, const struct regions_place *at,
		     struct err *e)
{
	(void)at;
	return fab_lane_read(l, dst, len, 0, e);
}

size_t
fab_lane_rma_max(const struct fab_lane *l)
{
	(void)l;
	return FAB_RMA_MAX;
}

bool
fab_lane_more(const struct fab_lane *l)
{
	(void)l;
	return false;
}

void
fab_lane_repost(struct fab_lane *l, unsigned slot)
{
	(void)l;
	(void)slot;
}

void
fab_lane_source(struct fab_lane *l, const void *mem, _Atomic uint64_t *uncopied)
{
	(void)l;
	(void)mem;
	(void)uncopied;
}

void
fab_lane_source_info(const struct fab_lane *l, struct fab_source_info *out)
{
	(void)l;
	*out = (struct fab_source_info){0};
}

/* Each look at the bytes finds so many more. */
static uint64_t moved_by, moved_so_far;

uint64_t
fab_lane_moved(const struct fab_lane *l)
{
	(void)l;
	moved_so_far += moved_by;
	return moved_so_far;
}

void
fab_lane_cut(struct fab_lane *l)
{
	(void)l;
}

void
fab_lane_abandon(struct fab_lane *l)
{
	(void)l;
}

int
fab_lane_connect(const struct fab_params *p, const uint8_t *hello, size_t hello_len,
		 struct fab_lane **out, struct err *e)
{
	(void)p;
	(void)hello;
	(void)hello_len;
	(void)out;
	return err_set(e, REPL_E_FAILED, "not here");
}

int
fab_lanes_connected(struct fab_lane **lanes, unsigned count, const struct fab_params *p,
		    uint64_t deadline_ns, struct err *e)
{
	(void)lanes;
	(void)count;
	(void)p;
	(void)deadline_ns;
	return err_set(e, REPL_E_FAILED, "not here");
}

void
fab_lane_free(struct fab_lane *l)
{
	(void)l;
}

#endif
