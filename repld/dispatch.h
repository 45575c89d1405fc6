/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dispatch - one line of the control channel in, its answer out.
 *
 * The table in dispatch.c is the policy: which method may run in which phase
 * of a session. Handlers see only requests that it allows.
 */
#ifndef REPLD_DISPATCH_H
#define REPLD_DISPATCH_H

#include <json-c/json.h>

#include "err.h"
#include "state.h"

/* A handler's answer: result, or err with the next safe step. */
struct reply {
	struct json_object *result; /* of a method that tells something; NULL: no memory */
	struct err err;
	char next[512]; /* "": by the table of dispatch.c */
};

/* Set next: text with "TARGET/POOL" become that pool's name as a word of a shell; NULL: none. */
void dispatch_next(struct reply *r, const char *text, const char *name);

/* params is never NULL. Returns 0 or the code in r->err. */
typedef int dispatch_handler(struct state *s, struct json_object *params, struct reply *r);

/*
 * Serve one line. *answer is a new object, or NULL when nothing is to be
 * said. Returns REPL_OK, REPL_E_PROTOCOL when the line breaks the framing: the session
 * ends after the answer, whose text is in e; or REPL_E_NOMEM: it ends without one.
 */
int dispatch_line(struct state *s, const char *line, size_t len, struct json_object **answer,
		  struct err *e);

/* May the method run in this phase: 0, CONTROL_NO_METHOD, or REPL_E_PROTOCOL with e filled. Pure.
 */
int dispatch_check(const char *method, unsigned phase, struct err *e);

#endif
