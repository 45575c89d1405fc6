/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show - the state of a handle's replicas as people read it, from the objects of the
 * status socket. Lines are as wide as the terminal, but for words that are longer; where
 * there is none a field is one line.
 */
#ifndef REPLCTL_SHOW_H
#define REPLCTL_SHOW_H

#include <stdint.h>
#include <stdio.h>
#include <json-c/json.h>

/* "name      value", with what does not fit on lines of its own below the value. */
void show_field(FILE *f, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Of a replica whose last writer did not close: that another one may have more. Which of several
 * is the best is for people to say: they are not asked from here. position 0: none is known.
 */
void show_unknown(FILE *f, const char *target, const char *generation, uint64_t position);

/* A REPLICA in several lines. */
void show_replica(FILE *f, struct json_object *replica);

/* A REPLICA, or an event of one, in one line. */
void show_line(FILE *f, struct json_object *replica);

/* The answer to "status"; drains_per_s negative: not known. */
void show_status(FILE *f, struct json_object *status, double drains_per_s);

/* The member "replicas"; an empty array where there is none. Borrowed. */
struct json_object *show_replicas(struct json_object *status);

#endif
