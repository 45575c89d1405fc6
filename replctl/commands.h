/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commands - what main's table dispatches to, one file each.
 *
 * args are the command's arguments, as many as the table allows, and a NULL
 * behind them. Returns 0 or the code of c->err.
 */
#ifndef REPLCTL_COMMANDS_H
#define REPLCTL_COMMANDS_H

#include <sys/stat.h>

#include "ctl.h"

int cmd_bench(struct ctl *c, char **args);
int cmd_create(struct ctl *c, char **args);
int cmd_demote(struct ctl *c, char **args);
int cmd_grow(struct ctl *c, char **args);
int cmd_info(struct ctl *c, char **args);
int cmd_list(struct ctl *c, char **args);
int cmd_newest(struct ctl *c, char **args);
int cmd_plan(struct ctl *c, char **args);
int cmd_probe(struct ctl *c, char **args);
int cmd_promote(struct ctl *c, char **args);
int cmd_remotelog(struct ctl *c, char **args);
int cmd_remove(struct ctl *c, char **args);
int cmd_resolve(struct ctl *c, char **args);
int cmd_restore(struct ctl *c, char **args);
int cmd_run(struct ctl *c, char **args);
int cmd_selftest(struct ctl *c, char **args);
int cmd_status(struct ctl *c, char **args);
int cmd_sync(struct ctl *c, char **args);
int cmd_verify(struct ctl *c, char **args);
int cmd_events(struct ctl *c, char **args);
int cmd_metrics(struct ctl *c, char **args);
int cmd_pause(struct ctl *c, char **args);
int cmd_resume(struct ctl *c, char **args);
int cmd_wait(struct ctl *c, char **args);
int cmd_why(struct ctl *c, char **args);

/* status and events of a local pool. */
int cmd_status_file(struct ctl *c, const char *file);
int cmd_events_file(struct ctl *c, const char *file);

/* sync to a pool that must not be there yet. */
int cmd_sync_new(struct ctl *c, const char *file, const char *target);

/* What an operator has seen before deciding; REPL_E_REFUSED if it is not so any more. */
struct resolved {
	struct sidecar replica;
	struct sidecar local; /* the record of the file */
	struct stat file;
	uint64_t moved;            /* out: bytes */
	struct generation outcome; /* out: of the file; nil where it has no record */
};

/* The others are what is found now, local NULL: no record. r NULL: nothing was seen before. */
int resolved_check(struct ctl *c, const struct resolved *r, const struct sidecar *replica,
		   const struct sidecar *local, const struct stat *file);

/* That it is not so any more. */
int resolved_changed(struct ctl *c);

/* Replace the file by the replica, or the replica by the file, whatever the chains say. */
int cmd_restore_resolved(struct ctl *c, const char *file, struct resolved *r);
int cmd_sync_resolved(struct ctl *c, const char *file, struct resolved *r);

#endif
