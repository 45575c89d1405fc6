/* SPDX-License-Identifier: BSD-3-Clause */
/* ask - a running program's status socket: docs/PROTOCOL.md, The status socket. */
#ifndef REPLCTL_ASK_H
#define REPLCTL_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"

struct ctl;

struct ask {
	int fd;
	const struct ctl *ctl; /* by its options the next steps in answers are completed */
	int64_t id;
	struct line_buf in;
	uint64_t until_ns; /* how long an answer is waited for, at least a second; 0: 5 seconds */
};

/* An argument that names a local pool file, not a target: it begins with '/' or '.'. */
bool ask_is_file(const char *arg);

/* The file as a word of a shell that ask_is_file() knows; a new string or NULL. */
char *ask_word(const char *file);

/* The next step where a program that has the file open can't be asked, or does not answer. */
void ask_next(struct ctl *c, const char *file);

/* c stays. */
void ask_init(struct ask *a, const struct ctl *c);
void ask_fini(struct ask *a);

/*
 * Of the pool file, or of a socket itself. REPL_E_NOT_FOUND: no program has the pool open, or its
 * socket is neither beside the file nor where the configuration says.
 */
int ask_open(struct ask *a, const char *file, struct err *e);

/*
 * One request; *result is clean for output and a new reference, its replicas' next steps as
 * hint_complete() makes them. params is taken.
 */
int ask_call(struct ask *a, const char *method, struct json_object *params,
	     struct json_object **result, struct err *e);

/* The same with the result as it came: not for a terminal. */
int ask_raw(struct ask *a, const char *method, struct json_object *params,
	    struct json_object **result, struct err *e);

/*
 * The params of the next event, likewise, a new reference; NULL when none has come within
 * timeout_ms, or a signal has. REPL_E_LOST: the program has closed the pool.
 */
int ask_event(struct ask *a, unsigned timeout_ms, struct json_object **out, struct err *e);

#endif
