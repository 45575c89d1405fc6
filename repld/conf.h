/* SPDX-License-Identifier: BSD-3-Clause */
/* conf - repld.conf(5): the daemon's settings with their defaults. */
#ifndef REPLD_CONF_H
#define REPLD_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

enum conf_log { CONF_LOG_STDERR, CONF_LOG_SYSLOG, CONF_LOG_FILE };
enum conf_level { CONF_LEVEL_ERROR, CONF_LEVEL_WARNING, CONF_LEVEL_INFO, CONF_LEVEL_DEBUG };

/* The admin's word on a fact of the machine, in the place of what probe.c sees. */
struct conf_stated {
	bool given;
	bool trust; /* " trust-me" stands behind it: also against evidence */
	int value;  /* of the field's enum, see profile.h */
};

struct conf {
	char *path;            /* the file it came from, NULL if none */
	char *pool_dir;        /* pool-dir; required */
	char *listen;          /* listen, "address:port", [v6]:port; serve only */
	char *host_key;        /* host-key; serve only, made if absent */
	char *authorized_keys; /* authorized-keys; serve only */
	char *user;            /* user: who serve becomes when started by root */
	char *data_address;    /* data-address; NULL = where SSH came in */
	char *data_told;       /* data-told; NULL = the same */
	unsigned data_port_first, data_port_last; /* data-ports = FIRST-LAST; 0 = any */
	unsigned lanes_max;                       /* lanes-max, 1..64, 16 */
	unsigned sessions_max;                    /* sessions-max, 64 */
	unsigned busy_poll_us;                    /* busy-poll, microseconds, 50 */
	unsigned message_size_max;                /* message-size-max, bytes, 64 KiB */
	uint64_t journal_max;                     /* journal-max, bytes; 0 = auto */
	int log;                                  /* log = stderr | syslog | file:PATH */
	char *log_file;
	int log_level;                 /* log-level = error | warning | info | debug, info */
	unsigned heartbeat_ms;         /* heartbeat, 1000 */
	unsigned heartbeat_timeout_ms; /* heartbeat-timeout, 10000 */
	unsigned idle_timeout_ms;      /* idle-timeout, 300000 */
	/* persistence-domain, ddio, rqwrb, provider-class = probe | VALUE [trust-me] */
	struct conf_stated stated[PROFILE_F_COUNT];
};

/*
 * Defaults, then the file (path may be NULL: defaults only, and pool_dir NULL).
 * Whatever is wrong, also a pool-dir that is missing or no directory, is
 * REPL_E_CONFIG with file and key in the text, and c needs no conf_fini().
 */
int conf_read(const char *path, struct conf *c, struct err *e);

/* sessions-max alone; what is no mistake in the file, as a pool-dir that is away, does not matter.
 */
int conf_sessions_max(const char *path, unsigned *sessions_max, struct err *e);

/* How error texts name the file. */
const char *conf_file(const struct conf *c);

/* Frees what c holds; may be called again. */
void conf_fini(struct conf *c);

#endif
