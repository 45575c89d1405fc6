/* SPDX-License-Identifier: BSD-3-Clause */
/* sessions - all sessions of a target that have a pool open, fetched. */
#ifndef REPLCTL_SESSIONS_H
#define REPLCTL_SESSIONS_H

#include "ctl.h"

/* Of the whole target, beside its sessions. */
struct sessions_beside {
	struct json_object *overrides; /* a new array: what its configuration states */
	uint64_t untold;               /* sessions that could not say what they are */
};

/* A new array of clean objects. beside may be NULL; after a failure nothing is in it. */
int sessions_fetch(struct ctl *c, struct json_object **out, struct sessions_beside *beside);

/* The texts of o's member of that name: a new array, clean; an empty one where there are none. */
struct json_object *sessions_overrides(struct json_object *o);

#endif
