/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * statusdoc - what a handle says of itself, as JSON and as text for Prometheus.
 *
 * A snapshot is taken by repl_stat() and by nothing else, so that a program, the
 * status socket and the metrics never tell different stories.
 */
#ifndef LIBREPL_STATUSDOC_H
#define LIBREPL_STATUSDOC_H

#include <stdbool.h>
#include <json-c/json.h>

#include "librepl.h"
#include "target.h"

struct statusdoc {
	const char *pool; /* the local file's path; "" if there is none */
	bool no_file;     /* what is mapped is none: pool is but its name */
	uint64_t size;
	unsigned lanes, replica_count;
	char metrics_error[1024]; /* why the metrics file was not written, "" */
	uint64_t begin_s;         /* when the handle was opened, seconds since the epoch */
	char replica[REPL_TARGETS_MAX][TARGET_TEXT_MAX];
	bool async[REPL_TARGETS_MAX]; /* no drain waits for it */
	struct repl_stat stat[REPL_TARGETS_MAX];
};

/* The answer to "status"; NULL: no memory. */
struct json_object *statusdoc_json(const struct statusdoc *d);

/* Of one replica: axes, reason and numbers. */
struct json_object *statusdoc_replica(const struct statusdoc *d, unsigned replica);

/* The text exposition format 0.0.4; a new string or NULL. */
char *statusdoc_metrics(const struct statusdoc *d, size_t *len);

/* What a keeper tells the target with its pings (docs/PROTOCOL.md, ping). */
struct json_object *statusdoc_report(const struct repl_stat *st);

#endif
