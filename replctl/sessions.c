/* SPDX-License-Identifier: BSD-3-Clause */
#include "sessions.h"

#include <string.h>

#include "control.h"
#include "out.h"

#define PAGE_SESSIONS_MAX 4096
#define SESSIONS_MAX      10000U /* as of sessions-max */
#define OVERRIDES_MAX     64

struct json_object *
sessions_overrides(struct json_object *o)
{
	struct json_object *list = NULL;

	if (control_get_array(o, "overrides", OVERRIDES_MAX, &list, NULL))
		return json_object_new_array();
	return out_clean_json(list);
}

/* Put those that have a pool open behind sessions. */
static int
take_page(struct json_object *page, struct json_object *sessions, size_t *cost, struct err *e)
{
	for (size_t i = 0; i < json_object_array_length(page); i++) {
		struct json_object *o = json_object_array_get_idx(page, i);

		if (!control_has(o, "pool"))
			continue;
		*cost += out_cost(o);
		if (*cost > OUT_COST_MAX)
			return err_set(e, REPL_E_PROTOCOL,
				       "status: %zu sessions are told in so many words that they "
				       "take more than %u MiB here",
				       json_object_array_length(sessions), OUT_COST_MAX >> 20);
		if (json_object_array_length(sessions) == SESSIONS_MAX)
			return err_set(e, REPL_E_PROTOCOL,
				       "status: the target tells of more than %zu sessions, or "
				       "their list has no end",
				       json_object_array_length(sessions));
		control_append(sessions, out_clean_json(o));
		if (!control_complete(sessions))
			return err_set(e, REPL_E_NOMEM, "no memory for the list of sessions");
	}
	return 0;
}

/* One answer of status; *after is the session to go on after, NULL at the end. */
static int
fetch_page(struct ctl *c, struct json_object **after, struct json_object *sessions, size_t *cost,
	   struct sessions_beside *beside)
{
	struct json_object *params = json_object_new_object(), *result = NULL, *page, *last = NULL;
	bool more = false;
	int rc;

	if (*after)
		control_add(params, "after", json_object_get(*after));
	rc = remote_call(c->remote, "status", params, &result, &c->err);
	if (!rc)
		rc = control_get_array(result, "sessions", PAGE_SESSIONS_MAX, &page, &c->err);
	if (!rc && control_has(result, "sessions_more"))
		rc = control_get_bool(result, "sessions_more", &more, &c->err);
	rc = control_answer_bad(rc, "status", &c->err);
	if (!rc)
		rc = take_page(page, sessions, cost, &c->err);
	if (!rc && more && json_object_array_length(page) > 0)
		last = json_object_array_get_idx(page, json_object_array_length(page) - 1);
	/* Names that don't rise would have us ask for ever. */
	if (last && *after &&
	    strcmp(out_member(last, "session"), json_object_get_string(*after)) <= 0)
		rc = err_set(&c->err, REPL_E_PROTOCOL, "status: sessions are not in order");
	if (!rc && beside && !*after) {
		beside->overrides = sessions_overrides(result);
		beside->untold = out_member_u64(result, "sessions_untold");
		if (!control_complete(beside->overrides))
			rc = err_set(&c->err, REPL_E_NOMEM, "no memory for the list of sessions");
	}
	json_object_put(*after);
	*after = !rc && last ? json_object_new_string(out_member(last, "session")) : NULL;
	if (!rc && last && !*after)
		rc = err_set(&c->err, REPL_E_NOMEM, "no memory for the list of sessions");
	json_object_put(result);
	return rc;
}

int
sessions_fetch(struct ctl *c, struct json_object **out, struct sessions_beside *beside)
{
	struct json_object *sessions = json_object_new_array(), *after = NULL;
	unsigned pages = 0;
	size_t cost = 0;
	int rc;

	if (!sessions)
		return err_set(&c->err, REPL_E_NOMEM, "no memory for the list of sessions");
	do {
		rc = fetch_page(c, &after, sessions, &cost, beside);
		if (!rc && after && ++pages == SESSIONS_MAX)
			rc = err_set(&c->err, REPL_E_PROTOCOL,
				     "status: the list of sessions has no end");
	} while (!rc && after);
	json_object_put(after);
	if (rc) {
		json_object_put(sessions);
		if (beside)
			json_object_put(beside->overrides);
		if (beside)
			beside->overrides = NULL;
		return rc;
	}
	*out = sessions;
	return 0;
}
