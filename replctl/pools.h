/* SPDX-License-Identifier: BSD-3-Clause */
/* pools - all pools of a target, fetched and shown. */
#ifndef REPLCTL_POOLS_H
#define REPLCTL_POOLS_H

#include "ctl.h"

/*
 * A new array of clean info objects, in the order of their names. Of more than there may be the
 * first are there, beside the error, to be shown in front of it; with another error *out stays.
 */
int pools_fetch(struct ctl *c, struct json_object **out);

/* As a table. */
void pools_print(struct json_object *pools);

#endif
