/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

static int
stage_none(struct err *e)
{
	return err_set(e, REPL_E_REFUSED, "no journal: it is not there yet");
}

int
remote_journal_begin(struct remote *r, uint64_t bytes, struct err *e)
{
	(void)r;
	(void)bytes;
	return stage_none(e);
}

int
remote_journal_commit(struct remote *r, enum sidecar_state state, const struct generation *g,
		      struct err *e)
{
	(void)r;
	(void)state;
	(void)g;
	return stage_none(e);
}

int
remote_journal_apply(struct remote *r, uint64_t max, uint64_t *done, uint64_t *total, struct err *e)
{
	(void)r;
	(void)max;
	*done = *total = 0;
	return stage_none(e);
}

int
remote_journal_drop(struct remote *r, struct err *e)
{
	(void)r;
	return stage_none(e);
}

int
stage_begin(struct remote *r, unsigned lane, const void *mem, struct stage **out, struct err *e)
{
	(void)r;
	(void)lane;
	(void)mem;
	*out = NULL;
	return stage_none(e);
}

int
stage_range(struct stage *s, uint64_t off, uint64_t len, struct err *e)
{
	(void)s;
	(void)off;
	(void)len;
	return stage_none(e);
}

int
stage_settle(struct stage *s, struct err *e)
{
	(void)s;
	return stage_none(e);
}

void
stage_end(struct stage *s)
{
	(void)s;
}
