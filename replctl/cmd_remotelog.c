/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl bench remotelog TARGET - what an append to a remote log costs by each
 * method of remote persistence that is correct there.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "conffile.h"
#include "interrupt.h"
#include "remotelog.h"
#include "remotelog_record.h"

#define COUNT_DEFAULT 10000000U
#define COUNT_MAX     4000000000U
#define SIZE_DEFAULT  64U

static int
take_method(struct remotelog *rl, const char *name, struct err *e)
{
	char names[256] = "";
	size_t used = 0;

	for (unsigned i = 0; i < REMOTELOG_WAYS; i++) {
		rl->wanted_ways[i] = !name || strcmp(name, remotelog_way_name(i)) == 0;
		if (name && rl->wanted_ways[i])
			return 0;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 remotelog_way_name(i));
		if (used >= sizeof(names))
			used = sizeof(names) - 1;
	}
	return name ? err_set(e, REPL_E_INVAL, "--method '%s' is none of %s", name, names) : 0;
}

static int
take_tail(struct remotelog *rl, const char *name, struct err *e)
{
	bool any = false;

	for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++) {
		rl->wanted_tails[t] = !name || strcmp(name, remotelog_tail_name(t)) == 0;
		any |= rl->wanted_tails[t];
	}
	return any ? 0
		   : err_set(e, REPL_E_INVAL, "--tail '%s' is neither singleton nor compound",
			     name);
}

static int
parse_options(struct remotelog *rl)
{
	const struct ctl_options *o = &rl->c->options;
	struct err *e = &rl->c->err;
	unsigned count = COUNT_DEFAULT;
	int rc;

	rl->size = SIZE_DEFAULT;
	if (o->count && (parse_uint(o->count, COUNT_MAX, &count) || count == 0))
		return err_set(e, REPL_E_INVAL, "--count '%s' is not 1 to %u", o->count, COUNT_MAX);
	if (o->size && (parse_size(o->size, &rl->size) || rl->size < REMOTELOG_RECORD_MIN ||
			rl->size > REMOTELOG_SIZE_MAX))
		return err_set(e, REPL_E_INVAL, "--size '%s' is not a record of %u to %u bytes",
			       o->size, REMOTELOG_RECORD_MIN, REMOTELOG_SIZE_MAX);
	rl->count = count;
	rc = take_method(rl, o->method, e);
	return rc ? rc : take_tail(rl, o->tail, e);
}

static int
measure(struct remotelog *rl)
{
	struct err *e = &rl->c->err;
	int rc = remotelog_open(rl);

	if (!rc)
		rc = remotelog_open_ways(rl);
	if (!rc)
		rc = remotelog_run(rl);
	/* What has been measured is told, the interrupt comes after it. */
	if (!rc && rl->done)
		remotelog_report(rl);
	if (!rc && rl->done && rl->plot)
		rc = remotelog_plot(rl);
	if (!rc && rl->interrupted)
		rc = err_set(e, REPL_E_FAILED, "interrupted after %llu of %llu appends",
			     (unsigned long long)rl->done, (unsigned long long)rl->count);
	return rc;
}

int
cmd_remotelog(struct ctl *c, char **args)
{
	static struct remotelog remotelog; /* its histograms are too large for a stack */
	struct remotelog *rl = &remotelog;
	int rc;

	rl->c = c;
	rc = parse_options(rl);
	if (!rc)
		rc = ctl_target(c, args[0], CTL_HOST);
	if (!rc && c->options.plot)
		rc = remotelog_plot_open(rl, c->options.plot);
	if (rc)
		return rc;
	interrupt_catch();
	(void)measure(rl);
	remotelog_close(rl);
	remotelog_plot_close(rl, c->options.plot);
	return c->err.code;
}
