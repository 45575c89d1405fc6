/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl plan: the taxonomy's rows, and what runs in their place. Needs no target. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "control.h"
#include "out.h"

#define STEPS_TEXT_MAX 128

/* What the user asks for: -1 where it is left open. */
struct plan_query {
	int domain, ddio, rqwrb, op, update;
	enum profile_provider transport;
};

/* A row as it is on that transport. */
struct plan_entry {
	const struct taxonomy_row *row; /* of the configuration asked for */
	struct plan_steps steps;
	char native[STEPS_TEXT_MAX], today[STEPS_TEXT_MAX];
};

/* ---- the query ---- */

static int
bad_value(struct ctl *c, const char *option, const char *value, const char *list)
{
	return err_set(&c->err, REPL_E_INVAL, "--%s '%s' is none of %s", option, value, list);
}

static int
profile_option(struct ctl *c, const char *option, enum profile_field f, const char *value,
	       const char *list, int *out)
{
	*out = value ? profile_value_by_name(f, value) : -1;
	return value && *out < 0 ? bad_value(c, option, value, list) : 0;
}

static int
query_read(struct ctl *c, struct plan_query *q)
{
	const char *const *text = c->options.plan;
	const char *op = text[CTL_PLAN_OP], *update = text[CTL_PLAN_UPDATE];
	const char *transport = text[CTL_PLAN_TRANSPORT];
	int rc = profile_option(c, "domain", PROFILE_F_DOMAIN, text[CTL_PLAN_DOMAIN],
				"dmp, mhp, wsp", &q->domain);

	if (!rc)
		rc = profile_option(c, "ddio", PROFILE_F_DDIO, text[CTL_PLAN_DDIO], "on, off",
				    &q->ddio);
	if (!rc)
		rc = profile_option(c, "rqwrb", PROFILE_F_RQWRB, text[CTL_PLAN_RQWRB], "dram, pm",
				    &q->rqwrb);
	if (rc)
		return rc;
	q->op = op ? taxonomy_op_by_name(op) : -1;
	if (op && q->op < 0)
		return bad_value(c, "op", op, "write, writeimm, send");
	q->update = update ? taxonomy_update_by_name(update) : -1;
	if (update && q->update < 0)
		return bad_value(c, "update", update, "singleton, compound");
	q->transport = PROFILE_PROVIDER_IB;
	if (transport && strcmp(transport, "iwarp") == 0)
		q->transport = PROFILE_PROVIDER_IWARP;
	else if (transport && strcmp(transport, "ib") != 0)
		return bad_value(c, "transport", transport, "ib, iwarp");
	return 0;
}

static int
query_check(struct ctl *c)
{
	const struct ctl_options *o = &c->options;

	for (int i = 0; o->all && i < CTL_PLAN_TRANSPORT; i++) {
		if (o->plan[i])
			return err_set(&c->err, REPL_E_INVAL,
				       "--all shows every row: leave out what chooses some");
	}
	if (o->csv && o->json)
		return err_set(&c->err, REPL_E_INVAL, "--csv and --json exclude each other");
	return 0;
}

static bool
matches(int asked, int value)
{
	return asked < 0 || asked == value;
}

static bool
query_matches(const struct plan_query *q, const struct taxonomy_key *key)
{
	return matches(q->domain, (int)key->domain) && matches(q->ddio, (int)key->ddio) &&
	       matches(q->rqwrb, (int)key->rqwrb) && matches(q->op, (int)key->op) &&
	       matches(q->update, (int)key->update);
}

/* ---- rows ---- */

static void
today_format(const enum taxonomy_step *steps, char out[STEPS_TEXT_MAX])
{
	size_t used = 0;

	for (; *steps != STEP_END && used < STEPS_TEXT_MAX; steps++) {
		int len = snprintf(out + used, STEPS_TEXT_MAX - used, "%s%s", used ? " " : "",
				   plan_step_word(*steps));

		if (len > 0)
			used += (size_t)len;
	}
}

/* A target of that configuration, its pool on the media. */
static void
entry_make(const struct taxonomy_row *row, const struct plan_query *q, struct plan_entry *out)
{
	static const char source[] = "replctl plan";
	static const struct plan_sizes sizes = {64, 8};
	struct profile p;

	profile_init(&p);
	profile_set(&p, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA, source);
	profile_set(&p, PROFILE_F_DOMAIN, (int)row->key.domain, source);
	profile_set(&p, PROFILE_F_DDIO, (int)row->key.ddio, source);
	profile_set(&p, PROFILE_F_RQWRB, (int)row->key.rqwrb, source);
	profile_set(&p, PROFILE_F_PROVIDER, (int)q->transport, source);
	(void)snprintf(p.provider_name, sizeof(p.provider_name), "verbs");
	out->row = row;
	plan_steps(&p, row->key.op, row->key.update, &sizes, &out->steps);
	(void)taxonomy_format(out->steps.row->steps, out->native, sizeof(out->native));
	today_format(out->steps.steps, out->today);
}

/* domain, ddio, rqwrb, op, update */
static void
entry_names(const struct plan_entry *e, const char *names[5])
{
	const struct taxonomy_key *key = &e->row->key;

	names[0] = profile_value_name(PROFILE_F_DOMAIN, (int)key->domain);
	names[1] = profile_value_name(PROFILE_F_DDIO, (int)key->ddio);
	names[2] = profile_value_name(PROFILE_F_RQWRB, (int)key->rqwrb);
	names[3] = taxonomy_op_name(key->op);
	names[4] = taxonomy_update_name(key->update);
}

/* ---- output ---- */

static const char *const key_names[5] = {"domain", "ddio", "rqwrb", "op", "update"};

static struct json_object *
steps_json(const enum taxonomy_step *steps, const char *(*word)(enum taxonomy_step))
{
	struct json_object *list = json_object_new_array();

	for (; *steps != STEP_END; steps++)
		control_append(list, json_object_new_string(word(*steps)));
	return list;
}

static struct json_object *
entry_json(const struct plan_entry *e, enum profile_provider transport)
{
	struct json_object *o = json_object_new_object(), *notes = json_object_new_array();
	const char *names[5];

	entry_names(e, names);
	for (int i = 0; i < 5; i++)
		out_add_text(o, key_names[i], names[i]);
	out_add_text(o, "transport", profile_value_name(PROFILE_F_PROVIDER, (int)transport));
	control_add(o, "steps", steps_json(e->steps.row->steps, taxonomy_step_word));
	control_add(o, "today", steps_json(e->steps.steps, plan_step_word));
	for (unsigned i = 0; i < e->steps.note_count; i++)
		control_append(notes, json_object_new_string(e->steps.notes[i]));
	control_add(o, "notes", notes);
	out_add_text(o, "method", plan_method_name(e->steps.method));
	return o;
}

/* RFC 4180, but for the line's end: one line feed, as all text here. */
static void
print_csv(const struct plan_entry *e)
{
	const char *quote = strchr(e->native, ',') ? "\"" : "";
	const char *names[5];

	entry_names(e, names);
	(void)printf("%s,%s,%s,%s,%s,%s%s%s\n", names[0], names[1], names[2], names[3], names[4],
		     quote, e->native, quote);
}

static void
print_table(const struct plan_entry *entries, unsigned count)
{
	static const char *const heads[] = {"DOMAIN", "DDIO",   "RQWRB", "OP",
					    "UPDATE", "METHOD", "STEPS"};
	struct out_table t;

	out_table_init(&t, heads, 7);
	for (unsigned i = 0; i < count; i++) {
		const char *cells[7];

		entry_names(&entries[i], cells);
		cells[5] = plan_method_name(entries[i].steps.method);
		cells[6] = entries[i].native;
		out_table_row(&t, cells);
	}
	out_table_end(&t);
}

static void
print_steps(const char *title, const enum taxonomy_step *steps,
	    const char *(*word)(enum taxonomy_step), const char *(*text)(enum taxonomy_step))
{
	(void)printf("\n%s\n", title);
	for (; *steps != STEP_END; steps++)
		(void)printf("  %-16s %s\n", word(*steps), text(*steps));
}

static void
print_entry(const struct plan_entry *e, enum profile_provider transport)
{
	static const char *const domains[] = {
		[PROFILE_DMP] = "memory and its controller survive a power cut; caches are lost",
		[PROFILE_MHP] = "caches survive a power cut; the NIC's buffers are lost",
		[PROFILE_WSP] = "all survives a power cut, the NIC's buffers too",
	};
	const struct taxonomy_key *key = &e->row->key;
	const struct plan_steps *s = &e->steps;
	bool off = key->ddio == PROFILE_DDIO_OFF, pm = key->rqwrb == PROFILE_RQWRB_PM;
	const char *names[5];

	entry_names(e, names);
	out_field("domain", "%s: %s", names[0], domains[key->domain]);
	out_field("ddio", "%s: the NIC writes to %s", names[1], off ? "memory" : "the CPU's cache");
	out_field("rqwrb", "%s: receive buffers are in %s", names[2],
		  pm ? "persistent memory" : "ordinary memory");
	out_field("operation", "%s", names[3]);
	out_field("update", "%s: %s", names[4],
		  key->update == TAXONOMY_SINGLETON ? "a" : "a, then b");
	out_field("transport", "%s", transport == PROFILE_PROVIDER_IB ? "ib (or RoCE)" : "iwarp");
	print_steps("steps", s->row->steps, taxonomy_step_word, taxonomy_step_text);
	if (strcmp(e->native, e->today) != 0)
		print_steps("on today's fabrics, which have no flush and no atomic write", s->steps,
			    plan_step_word, plan_step_text);
	(void)putchar('\n');
	for (unsigned i = 0; i < s->note_count; i++)
		out_field(i ? "" : "note", "%s", s->notes[i]);
	out_field("method", "%s", plan_method_name(s->method));
}

int
cmd_plan(struct ctl *c, char **args)
{
	struct json_object *answer = json_object_new_object(), *list = json_object_new_array();
	static struct plan_entry entries[TAXONOMY_ROWS];
	struct plan_query q;
	unsigned count = 0;
	int rc = query_check(c);

	(void)args;
	if (!rc)
		rc = query_read(c, &q);
	if (rc) {
		json_object_put(list);
		json_object_put(answer);
		return rc;
	}
	for (unsigned i = 0; i < TAXONOMY_ROWS; i++) {
		if (query_matches(&q, &taxonomy_row(i)->key))
			entry_make(taxonomy_row(i), &q, &entries[count++]);
	}
	if (c->options.csv)
		(void)puts("domain,ddio,rqwrb,op,update,steps");
	for (unsigned i = 0; i < count; i++) {
		control_append(list, entry_json(&entries[i], q.transport));
		if (c->options.csv)
			print_csv(&entries[i]);
	}
	control_add(answer, "rows", list);
	if (!c->options.csv && !c->options.json && count == 1)
		print_entry(&entries[0], q.transport);
	else if (!c->options.csv && !c->options.json)
		print_table(entries, count);
	ctl_answer(c, answer);
	return 0;
}
