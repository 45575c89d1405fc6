/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl probe TARGET[/pool] */
#include <stdio.h>

#include "commands.h"
#include "control.h"
#include "out.h"

#define PROBE_MSG_SIZE  131072U /* what the library asks for */
#define PROBE_FACTS_MAX 256

static const uint64_t probe_sizes[] = {8, 64, 4096, 65536, 1048576};

#define PROBE_SIZES (sizeof(probe_sizes) / sizeof(probe_sizes[0]))

static const struct {
	enum plan_shape shape;
	const char *name;
} probe_shapes[] = {
	{PLAN_SINGLETON, "ranges"},
	{PLAN_COMPOUND, "ordered pair"},
	{PLAN_ATOMIC8, "atomic 8"},
};

/* An array of the methods that the library would use, and why. */
static struct json_object *
probe_methods(const struct profile *p)
{
	struct plan_limits lim = lane_limits(true, true, PROBE_MSG_SIZE);
	struct json_object *list = json_object_new_array();

	lim.can |= PLAN_COMMITTED;
	for (size_t s = 0; s < sizeof(probe_shapes) / sizeof(probe_shapes[0]); s++) {
		bool atomic = probe_shapes[s].shape == PLAN_ATOMIC8;

		for (size_t i = 0; i < (atomic ? 1 : PROBE_SIZES); i++) {
			struct plan plan =
				plan_choose(p, probe_shapes[s].shape, probe_sizes[i], &lim);
			struct json_object *o = json_object_new_object();

			out_add_text(o, "operation", probe_shapes[s].name);
			out_add_u64(o, "size", probe_sizes[i]);
			out_add_text(o, "method", plan_method_name(plan.method));
			out_add_text(o, "reason", plan.reason);
			control_append(list, o);
		}
	}
	return list;
}

/* An array of all methods: which are correct there, and why or why not. */
static struct json_object *
probe_correct(const struct profile *p)
{
	struct json_object *list = json_object_new_array();

	for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
		struct plan_verdict v = plan_judge(p, (enum plan_method)m, PLAN_COMPOUND);
		struct json_object *o = json_object_new_object();

		out_add_text(o, "method", plan_method_name((enum plan_method)m));
		out_add_bool(o, "correct", v.allowed);
		out_add_text(o, "reason", v.reason);
		control_append(list, o);
	}
	return list;
}

static void
print_correct(struct json_object *methods)
{
	static const char *const heads[] = {"METHOD", "CORRECT", "WHY"};
	struct out_table t;

	out_table_init(&t, heads, 3);
	for (size_t i = 0; i < json_object_array_length(methods); i++) {
		struct json_object *o = json_object_array_get_idx(methods, i);
		bool correct = false;

		(void)control_get_bool(o, "correct", &correct, NULL);
		out_table_row(&t, (const char *[]){out_member(o, "method"), correct ? "yes" : "no",
						   out_member(o, "reason")});
	}
	(void)putchar('\n');
	out_table_end(&t);
}

static void
print_profile(const struct profile *p)
{
	static const char *const heads[] = {"PROPERTY", "VALUE", "KNOWN FROM"};
	char source[PROFILE_SOURCE_MAX + 16];
	struct out_table t;

	out_table_init(&t, heads, 3);
	out_table_row(&t, (const char *[]){"provider", p->provider_name, "-"});
	out_table_row(&t, (const char *[]){"filesystem", p->filesystem, "-"});
	for (int i = 0; i < PROFILE_F_COUNT; i++) {
		enum profile_field f = (enum profile_field)i;
		const char *value = profile_value_name(f, p->value[f]);

		(void)snprintf(source, sizeof(source), "%s%s",
			       p->known[f] ? "" : "assumed: ", p->source[f]);
		out_table_row(&t,
			      (const char *[]){profile_field_name(f), value ? value : "?", source});
	}
	out_table_end(&t);
}

static void
print_facts(struct json_object *facts)
{
	static const char *const heads[] = {"FACT", "VALUE", "SOURCE"};
	struct out_table t;

	out_table_init(&t, heads, 3);
	for (size_t i = 0; i < json_object_array_length(facts); i++) {
		struct json_object *o = json_object_array_get_idx(facts, i);

		out_table_row(&t, (const char *[]){out_member(o, "name"), out_member(o, "value"),
						   out_member(o, "source")});
	}
	(void)putchar('\n');
	out_table_end(&t);
}

static void
print_methods(struct json_object *methods)
{
	static const char *const heads[] = {"OPERATION", ">SIZE", "METHOD", "WHY"};
	char size[OUT_NUMBER_MAX];
	struct out_table t;

	out_table_init(&t, heads, 4);
	for (size_t i = 0; i < json_object_array_length(methods); i++) {
		struct json_object *o = json_object_array_get_idx(methods, i);

		out_size(out_member_u64(o, "size"), size);
		out_table_row(&t,
			      (const char *[]){out_member(o, "operation"), size,
					       out_member(o, "method"), out_member(o, "reason")});
	}
	(void)putchar('\n');
	out_table_end(&t);
}

static void
probe_report(struct ctl *c, struct json_object *found)
{
	struct json_object *facts = NULL, *methods, *correct;
	struct profile profile;

	replica_profile_parse(found, &profile);
	methods = probe_methods(&profile);
	correct = probe_correct(&profile);
	if (!c->options.json) {
		print_profile(&profile);
		if (control_get_array(found, "facts", PROBE_FACTS_MAX, &facts, NULL) == 0)
			print_facts(facts);
		print_correct(correct);
		print_methods(methods);
	}
	control_add(found, "correct", correct);
	control_add(found, "methods", methods);
	out_add_text(found, "target", c->target_text);
	ctl_answer(c, json_object_get(found));
}

int
cmd_probe(struct ctl *c, char **args)
{
	struct json_object *params = NULL, *result = NULL, *found;
	int rc = ctl_target(c, args[0], CTL_EITHER);

	if (!rc)
		rc = ctl_connect(c);
	if (rc)
		return rc;
	params = json_object_new_object();
	remote_params_add_providers(params, c->remote);
	if (c->target.pool[0])
		control_add(params, "name", json_object_new_string(c->target.pool));
	rc = remote_call(c->remote, "probe", params, &result, &c->err);
	if (rc)
		return rc;
	found = out_clean_json(result);
	json_object_put(result);
	probe_report(c, found);
	json_object_put(found);
	return 0;
}
