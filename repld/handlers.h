/* SPDX-License-Identifier: BSD-3-Clause */
/* handlers - the methods of docs/PROTOCOL.md, one file a group. */
#ifndef REPLD_HANDLERS_H
#define REPLD_HANDLERS_H

#include "checksum.h"
#include "dispatch.h"

/* Most pools in one answer; the rest is had by "after". */
#define HANDLERS_LIST_MAX 256

/* handlers_info.c */
dispatch_handler handle_hello, handle_ping, handle_bye, handle_probe, handle_status;

/* handlers_pool.c */
dispatch_handler handle_pool_create, handle_pool_list, handle_pool_info, handle_pool_remove;
dispatch_handler handle_pool_open, handle_pool_mark, handle_pool_grow, handle_pool_attr;
dispatch_handler handle_pool_close, handle_pool_promote, handle_pool_demote;

/* handlers_hash.c, handlers_extents.c; ranges of one pool.hash */
#define HANDLERS_HASH_RANGES 256
dispatch_handler handle_pool_hash, handle_pool_extents;

/* The member "key": what the initiator has drawn to hash by. Without it none is given. */
int handlers_get_hash_key(struct json_object *params, struct hash_key *k, struct err *e);

/* handlers_journal.c */
dispatch_handler handle_journal_begin, handle_journal_commit, handle_journal_apply;
dispatch_handler handle_journal_drop, handle_journal_kept;

/* The largest journal that the open pool may have; 0: none. */
uint64_t handlers_journal_max(const struct state *s);

/* handlers_lanes.c */
dispatch_handler handle_lanes_open, handle_lanes_close;

/* handlers_bench.c */
dispatch_handler handle_bench_open, handle_bench_close;

/* The numeric address that data ports listen on: as configured, or where SSH came in. */
#define HANDLERS_ADDRESS_MAX 64
void handlers_data_address(const struct conf *c, char out[HANDLERS_ADDRESS_MAX]);

/* What initiators are told of it. */
const char *handlers_told_address(const struct conf *c, const char *address);

/*
 * A page of pools after a name (NULL: the first) into members "pools" and
 * "more" of result.
 */
int handlers_add_pools(struct state *s, const char *after, struct json_object *result,
		       struct err *e);

/* The required member "state"; "generation" and "history", the chain as a whole, if *given. */
int handlers_get_state(struct json_object *params, enum sidecar_state *state, struct err *e);
/* Of a part of the generation, whose state is outdated; else 0. */
int handlers_get_position(struct json_object *params, enum sidecar_state state, bool has_chain,
			  uint64_t *position, struct err *e);
int handlers_get_chain(struct json_object *params, struct generation *g, bool *given,
		       struct err *e);

/* The required member "name", checked to be a pool name. */
int handlers_get_name(struct json_object *params, const char **name, struct err *e);

#endif
