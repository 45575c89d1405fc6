/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * provider - which libfabric provider carries a session's lanes, and what that
 * makes of the pool's profile.
 */
#ifndef REPLD_PROVIDER_H
#define REPLD_PROVIDER_H

#include <json-c/json.h>

#include "conf.h"
#include "pmem.h"
#include "probe.h"

/*
 * The first of the wishes in the member "providers" of params that can be used at
 * the numeric address; REPL_E_REFUSED says why each can't.
 */
int provider_choose(struct json_object *params, const char *address, const char **provider,
		    struct err *e);

/*
 * probe_run() for a provider of provider_choose() and a pool, mapped for writing
 * or for reading, or NULL; copied: it has local replicas. With an RNIC it is tried whether
 * that can be registered.
 */
int provider_probe(const struct conf *c, int fd, struct pmem_map *map, bool write, bool copied,
		   const char *provider, const char *address, struct probe *out, struct err *e);

#endif
