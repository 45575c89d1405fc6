/* SPDX-License-Identifier: BSD-3-Clause */
/* config - struct repl_config: the keys of repl.conf(5), parsed. */
#ifndef LIBREPL_CONFIG_H
#define LIBREPL_CONFIG_H

#include <stdbool.h>

#include "ackpolicy.h"
#include "err.h"
#include "librepl.h"
#include "target.h"

#define CONFIG_COMMAND_MAX 255 /* length of command */

/* What happens to a queued replica that lags by as much as it may. */
enum config_on_lag { CONFIG_ON_LAG_SLOW, CONFIG_ON_LAG_DEGRADE };

/* What tells what replicas lack after the program, or the machine, died. */
enum config_crash {
	CONFIG_CRASH_COMPARE,
	CONFIG_CRASH_DIRTY_MAP,
};

struct repl_config {
	struct target targets[REPL_TARGETS_MAX];
	bool async[REPL_TARGETS_MAX]; /* no drain waits for this target */
	unsigned target_count;
	char *identity;      /* private key file; NULL = as ssh would choose */
	char *known_hosts;   /* NULL = as ssh would choose */
	char *provider;      /* "auto", "tcp", "verbs" */
	char *command;       /* remote command when there is no subsystem: "repld session" */
	char *pool_file;     /* file behind the mapped range; NULL = found from the mapping */
	char *status_socket; /* "auto", "none" or a path; NULL = auto */
	char *metrics_file;  /* NULL = none */
	unsigned lanes;      /* wished, 1..64, 4 */
	unsigned connect_timeout_ms;    /* 10000: one target's SSH, hello, open, lanes */
	unsigned op_timeout_ms;         /* 5000: flush, drain, persist, read, requests */
	unsigned close_timeout_ms;      /* 5000 */
	unsigned resync_timeout_ms;     /* 3600000: filling or catching up in repl_open() */
	unsigned heartbeat_interval_ms; /* 500 */
	unsigned heartbeat_timeout_ms;  /* 1500: silence after which a replica is lost */
	unsigned reconnect_min_ms;      /* 200: between two attempts to get one back, ... */
	unsigned reconnect_max_ms;      /* 30000: ... doubled up to this */
	unsigned block_timeout_ms;      /* 60000: of a call, with on-loss = block */
	unsigned busy_poll_us;          /* 50: a wait polls for so long before it sleeps */
	uint64_t resync_rate;           /* bytes a second, 0 = auto */
	int on_loss;                    /* enum repl_on_loss */
	int after_crash;                /* enum config_crash */
	int ack;    /* enum ack_kind: how many of those that are not async a drain waits for */
	int on_lag; /* enum config_on_lag */
	unsigned async_lag_bytes; /* 64 MiB */
	unsigned async_lag_ms;    /* 5000 */
	int method;               /* 0 = auto, else 1 + enum plan_method */
};

/* As the public calls, with the error in e. Arguments are not NULL, but for path. */
int config_load(struct repl_config *c, const char *path, struct err *e);
int config_set(struct repl_config *c, const char *key, const char *value, struct err *e);
int config_add_target(struct repl_config *c, const char *target, struct err *e);
int config_add_async_target(struct repl_config *c, const char *target, struct err *e);

/* Call take() for each key that has a value, but for the targets, with one that config_set() takes.
 */
void config_each(const struct repl_config *c,
		 void (*take)(void *arg, const char *key, const char *value), void *arg);

int config_copy(const struct repl_config *c, struct repl_config **out, struct err *e);

/*
 * The same for a handle beside others, with that target in place of c's own. It has one replica and
 * waits for it: what c says of several is of none. A socket, a file with metrics and a pool
 * with its record are the others'.
 */
int config_copy_for(const struct repl_config *c, const char *target, struct repl_config **out,
		    struct err *e);

/*
 * Relative paths become absolute ones, by the working directory of now. What libssh expands, as
 * '~' and '%d', remains.
 */
int config_fix_paths(struct repl_config *c, struct err *e);

/* Whether drains go to this target by a queue (ship.h), not by the caller's own lane. */
bool config_queued(const struct repl_config *c, unsigned target);

/* How many of the targets that are not asynchronous must have a drain before it returns. */
unsigned config_needed(const struct repl_config *c);

/* Store e as the calling thread's repl_errormsg() and return its code. */
int config_report(const struct err *e);

/* The same for a fixed text. */
int config_report_set(int code, const char *text);

#endif
