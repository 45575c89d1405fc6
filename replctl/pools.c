/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <stdio.h>
#include <string.h>

#include "control.h"
#include "generation.h"
#include "out.h"

#define PAGE_POOLS_MAX 4096
#define POOLS_MAX      131072U /* a page has one at least, and names rise: it ends */
#define POOL_PARTS_MAX 256U    /* all of them are kept; a good one has some 30 */

/* Members and elements at all depths: each takes memory, however short it is on the line. */
static unsigned
parts_of(struct json_object *o)
{
	unsigned count = 1;

	if (json_object_is_type(o, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(o); i++)
			count += parts_of(json_object_array_get_idx(o, i));
	} else if (json_object_is_type(o, json_type_object)) {
		json_object_object_foreach(o, name, value)
		{
			(void)name;
			count += parts_of(value);
		}
	}
	return count;
}

/* Put them behind pools. */
static int
take_page(struct json_object *page, struct json_object *pools, size_t *cost, struct err *e)
{
	for (size_t i = 0; i < json_object_array_length(page); i++) {
		struct json_object *pool = json_object_array_get_idx(page, i);

		if (json_object_array_length(pools) == POOLS_MAX)
			return err_set(e, REPL_E_LIMIT,
				       "the target has more than %u pools, or its list has no end",
				       POOLS_MAX);
		if (parts_of(pool) > POOL_PARTS_MAX)
			return err_set(e, REPL_E_PROTOCOL, "pool.list: a pool has %u members",
				       parts_of(pool));
		*cost += out_cost(pool);
		if (*cost > OUT_COST_MAX)
			return err_set(e, REPL_E_PROTOCOL,
				       "pool.list: %zu pools are told in so many words that they "
				       "take more than %u MiB here",
				       json_object_array_length(pools), OUT_COST_MAX >> 20);
		control_append(pools, out_clean_json(pool));
		if (!control_complete(pools))
			return err_set(e, REPL_E_NOMEM, "no memory for the list of pools");
	}
	return 0;
}

/* One answer of pool.list; *last is the name to go on after, NULL at the end. *cost grows. */
static int
fetch_page(struct ctl *c, const char *after, struct json_object *pools, size_t *cost,
	   const char **last)
{
	struct json_object *params = json_object_new_object(), *result = NULL, *page;
	bool more;
	int rc;

	if (after)
		control_add(params, "after", json_object_new_string(after));
	rc = remote_call(c->remote, "pool.list", params, &result, &c->err);
	if (!rc)
		rc = control_get_array(result, "pools", PAGE_POOLS_MAX, &page, &c->err);
	if (!rc)
		rc = control_get_bool(result, "more", &more, &c->err);
	rc = control_answer_bad(rc, "pool.list", &c->err);
	if (!rc)
		rc = take_page(page, pools, cost, &c->err);
	if (rc)
		goto out;
	*last = NULL;
	/* To end there would be to call a part of the list the whole. */
	if (more && json_object_array_length(page) == 0) {
		rc = err_set(&c->err, REPL_E_PROTOCOL,
			     "pool.list: a part of the list without a pool that says more follow");
		ctl_next(c, "install the newest repld on the target: an older one ends its list "
			    "where 64 files of pool sets are in a row");
		goto out;
	}
	if (more)
		*last = out_member(
			json_object_array_get_idx(pools, json_object_array_length(pools) - 1),
			"name");
	/* Names that don't rise would have us ask for ever. */
	if (*last && after && strcmp(*last, after) <= 0)
		rc = err_set(&c->err, REPL_E_PROTOCOL, "pool.list: names are not in order");
out:
	json_object_put(result);
	return rc;
}

int
pools_fetch(struct ctl *c, struct json_object **out)
{
	struct json_object *pools = json_object_new_array();
	const char *after = NULL;
	size_t cost = 0;
	int rc;

	if (!pools)
		return err_set(&c->err, REPL_E_NOMEM, "no memory for the list of pools");
	do {
		rc = fetch_page(c, after, pools, &cost, &after);
	} while (!rc && after);
	if (rc && (rc != REPL_E_LIMIT || c->err.by_target)) {
		json_object_put(pools);
		return rc;
	}
	/* No limit that anybody could raise. */
	if (rc)
		ctl_next(c, "look at what the target's pool directory holds");
	*out = pools;
	return rc;
}

/* Of one whose metadata can't be believed; only what is damaged may be called so. */
static const char *
state_unread(struct json_object *info)
{
	switch (err_by_name(out_member(info, "status"))) {
	case REPL_E_VERSION:
		return "newer";
	case REPL_E_CORRUPT:
		return "damaged";
	default:
		return "unreadable";
	}
}

/* "up-to-date" by its metadata, for want of anything that it could miss. */
static bool
is_unwritten(struct json_object *info)
{
	struct gen_id id;

	return gen_id_parse(out_member(info, "generation"), &id) && gen_id_is_nil(&id) &&
	       strcmp(out_member(info, "state"), "up-to-date") == 0;
}

static void
print_row(struct out_table *t, struct json_object *info)
{
	char size[OUT_NUMBER_MAX] = "-", updated[OUT_NUMBER_MAX] = "-";
	const char *sidecar = out_member(info, "sidecar"), *state = out_member(info, "state");
	struct json_object *open = NULL;
	bool writer = json_object_object_get_ex(info, "writer_open", &open) &&
		      json_object_get_boolean(open);
	bool primary =
		json_object_object_get_ex(info, "primary", &open) && json_object_get_boolean(open);

	if (control_has(info, "size")) {
		out_size(out_member_u64(info, "size"), size);
		out_time(out_member_u64(info, "updated"), updated);
	} else {
		state = state_unread(info); /* the cause is below */
	}
	out_table_row(t, (const char *[]){out_member(info, "name"), size, state,
					  out_member(info, "class"), updated});
	/* Below it: beside it a terminal of 80 columns has no room. */
	if (strcmp(sidecar, "ok") != 0)
		out_table_note(t, "%s", sidecar);
	else if (primary)
		out_table_note(t, "a primary");
	else if (writer)
		out_table_note(t, "open for writing by %s", out_member(info, "writer"));
	else if (is_unwritten(info))
		out_table_note(t, "never written: all of it is zero");
}

void
pools_print(struct json_object *pools)
{
	static const char *const heads[] = {"POOL", ">SIZE", "STATE", "CLASS", "UPDATED"};
	struct out_table t;

	if (json_object_array_length(pools) == 0) {
		(void)puts("no pools");
		return;
	}
	out_table_init(&t, heads, 5);
	for (size_t i = 0; i < json_object_array_length(pools); i++)
		print_row(&t, json_object_array_get_idx(pools, i));
	out_table_end(&t);
}
