/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * describe - pools, profiles and facts as the JSON objects of
 * docs/PROTOCOL.md. Pure but for memory.
 */
#ifndef REPLD_DESCRIBE_H
#define REPLD_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "pmdk.h"
#include "pool.h"
#include "probe.h"

/*
 * Add a member as control_add() does. describe_add_text() adds none where value is NULL, and what
 * is not clean, as a file's bytes in a text of an error, as '?': else the whole message were none.
 */
void describe_add_u64(struct json_object *o, const char *name, uint64_t value);
void describe_add_bool(struct json_object *o, const char *name, bool value);
void describe_add_text(struct json_object *o, const char *name, const char *value);

/*
 * New objects; without memory NULL, or incomplete (control.h). profile is that of the open pool, or
 * NULL: the class is then told by the file system alone, "page" if that says nothing.
 */
struct json_object *describe_pool(const struct pool_info *info, const struct profile *profile);
struct json_object *describe_profile(const struct profile *p);
/* Texts: what the configuration states of the machine, "ddio = off trust-me". */
struct json_object *describe_stated(const struct conf *c);
/* Texts: what it states for this profile, "ddio = off (repld.conf: ddio, against ...)". */
struct json_object *describe_overrides(const struct conf *c, const struct profile *p);
struct json_object *describe_pmdk(const struct pmdk_header *h);
struct json_object *describe_facts(const struct probe *p);

#endif
