/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publisher - brings a session's entry to the registry by a thread of its own: the control thread
 * answers while the pool directory's disk stalls. The latest entry is what counts, older ones
 * may be left out.
 */
#ifndef REPLD_PUBLISHER_H
#define REPLD_PUBLISHER_H

#include <json-c/json.h>

#include "err.h"
#include "registry.h"

struct publisher;

/* r is borrowed until publisher_free(). Where no thread can be had who puts an entry writes it. */
int publisher_new(struct registry *r, struct publisher **out, struct err *e);

/* Waits for the entry that is being written; one that is not begun is left out. */
void publisher_free(struct publisher *p);

/* o is borrowed, and on its way. An error is of o itself, or of the last entry that was written. */
int publisher_put(struct publisher *p, struct json_object *o, struct err *e);

#endif
