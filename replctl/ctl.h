/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctl - one run of the tool: what the user asked for, the target, and the
 * error that ends it with the next safe step.
 *
 * Commands (commands.h) fill err and return its code; main tells the user, as
 * text or as JSON, and makes it the exit status.
 */
#ifndef REPLCTL_CTL_H
#define REPLCTL_CTL_H

#include <json-c/json.h>

#include "config.h"
#include "remote.h"
#include "target.h"

#define CTL_NEXT_MAX 2048

/* Options of "plan"; all but the last choose rows. */
enum ctl_plan_option {
	CTL_PLAN_DOMAIN,
	CTL_PLAN_DDIO,
	CTL_PLAN_RQWRB,
	CTL_PLAN_OP,
	CTL_PLAN_UPDATE,
	CTL_PLAN_TRANSPORT,
	CTL_PLAN_COUNT
};

#define CTL_RUN_POOLS 32 /* as many as librepl-preload.so follows */
#define CTL_RUN_MAX   (CTL_RUN_POOLS * (1 + REPL_TARGETS_MAX))
#define CTL_RUN_SETS  64

/* Options of "run", in their order. */
struct ctl_run {
	struct {
		const char *text;
		bool pool; /* else a replica */
	} option[CTL_RUN_MAX];
	unsigned count, pool_count;
	const char *set[CTL_RUN_SETS]; /* KEY=VALUE */
	unsigned set_count;
};

struct ctl_options {
	struct ctl_run run;
	const char *plan[CTL_PLAN_COUNT];
	bool all, csv;
	const char *config, *identity, *known_hosts;
	const char *size, *from, *seconds, *count, *plot, *tail, *method, *until, *timeout, *seed,
		*discard;
	bool sparse, json, quick, force, dry_run, watch, help, version;
};

struct ctl {
	struct ctl_options options;
	struct repl_config *cfg;
	struct target target;
	char target_text[TARGET_TEXT_MAX]; /* "host/pool", as given */
	char host_text[TARGET_TEXT_MAX];   /* the same without the pool */
	const char *file;                  /* the local pool, as given; NULL: none is named */
	const char *maybe_file; /* taken for a target, where a file might be named as well */
	struct remote *remote;
	const _Atomic int *cancel; /* of struct remote_hooks, or NULL */
	bool degraded; /* answered, and what it tells is not well: that is the exit status */
	struct err err;
	char next[CTL_NEXT_MAX]; /* "" if nobody knows one */
	bool answered;           /* the JSON answer is out */
	bool connected;          /* the error is of the target's making, or of later */
};

/* What the target argument of a command names. */
enum ctl_naming {
	CTL_HOST,
	CTL_HOST_OR_FILE, /* a file would begin with '/' or '.' */
	CTL_POOL,
	CTL_EITHER
};

/* Read the configuration; the options win. */
int ctl_configure(struct ctl *c);

/* Check the argument; fills target and both texts. */
int ctl_target(struct ctl *c, const char *text, enum ctl_naming naming);

/* Connect to the target, the second one for a command that opens lanes. */
int ctl_connect(struct ctl *c);
int ctl_connect_lanes(struct ctl *c);

/* End the session; what lanes have used may go after it. Keeps the target's next step. */
void ctl_disconnect(struct ctl *c);

void ctl_fini(struct ctl *c);

/*
 * Note the next safe step, unless there is one already; its commands get the options that this call
 * reaches targets by (hint.h).
 */
void ctl_next(struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* That another replica may have more than this one, quoted; and what to do if none has. */
void ctl_next_newest(struct ctl *c, const char *replica, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* "COMMAND FILE", with the file as status knows it. */
void ctl_next_file(struct ctl *c, const char *command, const char *file);

/* What follows from the error alone. */
void ctl_next_by_error(struct ctl *c);

/* In a dry run: what the target would say of its pool, which writer has open. REPL_E_BUSY. */
int ctl_has_writer(struct ctl *c, const char *writer);

/*
 * pool.info of the target's pool as an object made clean for output; *size is
 * its size, 0 where the metadata are damaged.
 */
int ctl_pool_info(struct ctl *c, struct json_object **info, uint64_t *size);

/* Print the answer of a command (taken) with --json, else only free it. */
void ctl_answer(struct ctl *c, struct json_object *answer);

/* Tell the user what err says; returns the exit status. */
int ctl_finish(struct ctl *c);

#endif
