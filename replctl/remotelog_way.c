/* SPDX-License-Identifier: BSD-3-Clause */
/* The sessions of replctl bench remotelog. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "interrupt.h"
#include "control.h"
#include "remotelog.h"
#include "repl_impl.h"

#define PAGE         4096U
#define WORD         8U
#define CONTROL_SIZE PAGE /* of the pool that the measurement's own session opens */

static const struct {
	const char *name;
	bool absent[REMOTELOG_TAILS];
} library_logs[REMOTELOG_LOGS] = {
	{"log", {false, false}},
	{"log-counter", {[REMOTELOG_SINGLETON] = true}},
	{"log-register", {[REMOTELOG_SINGLETON] = true}},
};

static bool
is_log(const struct remotelog_way *w)
{
	return w->which >= PLAN_METHOD_COUNT;
}

const char *
remotelog_way_name(unsigned which)
{
	return which < PLAN_METHOD_COUNT ? plan_method_name((enum plan_method)which)
					 : library_logs[which - PLAN_METHOD_COUNT].name;
}

bool
remotelog_wanted(const struct remotelog *rl, const struct remotelog_way *w, enum remotelog_tail t)
{
	return rl->wanted_tails[t] && !w->tails[t].absent;
}

const char *
remotelog_tail_name(enum remotelog_tail t)
{
	static const char *const names[REMOTELOG_TAILS] = {
		[REMOTELOG_SINGLETON] = "singleton",
		[REMOTELOG_COMPOUND] = "compound",
	};

	return names[t];
}

/* ---- the measurement's own session ---- */

static int
control_pool(struct remotelog *rl)
{
	struct json_object *params;
	struct err *e = &rl->c->err;
	const char *name = NULL;
	int rc = scratch_init(&rl->scratch, e);

	if (!rc)
		rc = scratch_name(&rl->scratch, "", &name, e);
	if (rc)
		return rc;
	params = json_object_new_object();
	control_add(params, "name", json_object_new_string(name));
	control_add(params, "size", json_object_new_uint64(CONTROL_SIZE));
	/* Of a session that ends by whatever way nothing stays. */
	control_add(params, "provisional", json_object_new_boolean(true));
	rc = remote_call(rl->c->remote, "pool.create", params, NULL, e);
	return rc ? rc : remote_pool_open(rl->c->remote, name, REMOTE_WRITE, e);
}

int
remotelog_open(struct remotelog *rl)
{
	struct ctl *c = rl->c;
	int rc = config_set(c->cfg, "method", "auto", &c->err);

	if (!rc)
		rc = ctl_connect_lanes(c);
	if (!rc)
		rc = control_pool(rl);
	/* Only for what is granted: which method would be chosen follows from that. */
	if (!rc)
		rc = remote_lanes_open(c->remote, 1, &c->err);
	return rc ? rc : bench_raw_open(&rl->raw, c, BENCH_RAW_SECONDS_MAX);
}

/* ---- ways ---- */

static uint64_t
tail_size(const struct remotelog *rl, enum remotelog_tail t)
{
	return t == REMOTELOG_COMPOUND ? rl->size + WORD : rl->size;
}

static const enum plan_shape shapes[REMOTELOG_TAILS] = {
	[REMOTELOG_SINGLETON] = PLAN_SINGLETON,
	[REMOTELOG_COMPOUND] = PLAN_COMPOUND,
};

static void
judge(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t)
{
	const struct profile *p = remote_profile(rl->c->remote);
	struct remotelog_series *s = &w->tails[t];
	const char *reason;

	if (is_log(w)) {
		s->absent = library_logs[w->which - PLAN_METHOD_COUNT].absent[t];
		return;
	}
	if (!plan_allowed(p, (enum plan_method)w->which, shapes[t], &reason)) {
		s->why_not = reason;
		return;
	}
	s->chosen =
		plan_choose(p, shapes[t], tail_size(rl, t), &remote_lane(rl->c->remote, 0)->limits)
			.method == (enum plan_method)w->which;
}

static int
way_config(struct remotelog *rl, const struct remotelog_way *w, struct repl_config **out)
{
	char target[TARGET_TEXT_MAX], suffix[64];
	struct err *e = &rl->c->err;
	const char *pool = NULL;
	int rc;

	(void)snprintf(suffix, sizeof(suffix), "-%s", w->name);
	rc = scratch_name(&rl->scratch, suffix, &pool, e);
	if (rc)
		return rc;
	if (snprintf(target, sizeof(target), "%s/%s", rl->c->host_text, pool) >=
	    (int)sizeof(target))
		return err_set(e, REPL_E_INVAL, "'%s' is too long", rl->c->host_text);
	/* The user's targets and pool are none of ours. */
	rc = config_copy_for(rl->c->cfg, target, out, e);
	if (rc)
		return rc;
	rc = config_set(*out, "lanes", "1", e);
	if (!rc)
		rc = config_set(*out, "on-loss", "fail", e);
	return rc ? rc : config_set(*out, "method", is_log(w) ? "auto" : w->name, e);
}

/* Without the pool's name, which nobody has chosen. */
static void
way_refused(const struct remotelog *rl, struct remotelog_way *w, const char *text)
{
	const char *name = strstr(text, rl->scratch.prefix),
		   *end = name ? strstr(name, ": ") : NULL;

	(void)snprintf(w->refusal, sizeof(w->refusal), "%s", end ? end + 2 : text);
}

static int
way_open(struct remotelog *rl, struct remotelog_way *w)
{
	struct err *e = &rl->c->err;
	struct repl_config *cfg = NULL;
	void *mem = mmap(NULL, REMOTELOG_POOL_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (mem == MAP_FAILED)
		return err_set(e, REPL_E_NOMEM, "out of memory for %s", w->name);
	w->mem = mem;
	rc = way_config(rl, w, &cfg);
	if (!rc) {
		rc = repl_open(cfg, mem, REMOTELOG_POOL_SIZE, REPL_OPEN_CREATE, &w->r);
		if (rc == REPL_E_REFUSED) {
			way_refused(rl, w, repl_errormsg());
			rc = 0;
		} else if (rc) {
			rc = err_set(e, rc, "%s: %s", w->name, repl_errormsg());
		}
	}
	repl_config_free(cfg);
	return rc;
}

/* A method that is right may still not be able to carry this one, and another is used. */
static void
judge_open(struct remotelog *rl, struct remotelog_way *w, enum remotelog_tail t)
{
	struct remote *remote = w->r->replicas[0].remote;
	struct plan plan = plan_choose(remote_profile(remote), shapes[t], tail_size(rl, t),
				       &remote_lane(remote, 0)->limits);
	struct remotelog_series *s = &w->tails[t];

	if (is_log(w) || s->why_not || plan.method == (enum plan_method)w->which)
		return;
	(void)snprintf(s->detour, sizeof(s->detour), "goes by %s: %s",
		       plan_method_name(plan.method), plan.reason);
	s->why_not = s->detour;
}

/* A method is tried unless it is known to be wrong for all that is wanted of it. */
static int
way_try(struct remotelog *rl, struct remotelog_way *w)
{
	bool any = false;
	int rc;

	for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++) {
		judge(rl, w, t);
		any |= remotelog_wanted(rl, w, t) && !w->tails[t].why_not;
	}
	rc = any ? way_open(rl, w) : 0;
	for (enum remotelog_tail t = 0; !rc && t < REMOTELOG_TAILS; t++) {
		if (w->r)
			judge_open(rl, w, t);
		else if (!w->tails[t].why_not)
			w->tails[t].why_not = w->refusal;
	}
	return !rc && w->r && is_log(w) ? remotelog_logs_make(rl, w) : rc;
}

int
remotelog_open_ways(struct remotelog *rl)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < REMOTELOG_WAYS && !interrupt_seen(); i++) {
		struct remotelog_way *w;

		if (!rl->wanted_ways[i])
			continue;
		w = &rl->ways[rl->way_count++];
		w->which = i;
		w->name = remotelog_way_name(i);
		rc = way_try(rl, w);
	}
	return rc;
}

void
remotelog_close(struct remotelog *rl)
{
	for (unsigned i = 0; i < rl->way_count; i++) {
		struct remotelog_way *w = &rl->ways[i];

		remotelog_logs_close(w);
		(void)repl_close(w->r);
		if (w->mem)
			(void)munmap(w->mem, REMOTELOG_POOL_SIZE);
		w->r = NULL;
		w->mem = NULL;
	}
	bench_raw_close(&rl->raw);
	scratch_clear(&rl->scratch, rl->c);
	ctl_disconnect(rl->c);
}
