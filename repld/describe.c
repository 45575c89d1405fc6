/* SPDX-License-Identifier: BSD-3-Clause */
#include "describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot.h"
#include "control.h"
#include "hex.h"
#include "text.h"

void
describe_add_u64(struct json_object *o, const char *name, uint64_t value)
{
	int64_t v = value > INT64_MAX ? INT64_MAX : (int64_t)value;

	control_add(o, name, json_object_new_int64(v));
}

void
describe_add_bool(struct json_object *o, const char *name, bool value)
{
	control_add(o, name, json_object_new_boolean(value));
}

void
describe_add_text(struct json_object *o, const char *name, const char *value)
{
	char *copy;

	if (!value)
		return;
	if (text_is_clean(value, strlen(value))) {
		control_add(o, name, json_object_new_string(value));
		return;
	}
	copy = strdup(value);
	if (copy)
		text_clean(copy);
	control_add(o, name, copy ? json_object_new_string(copy) : NULL);
	free(copy);
}

static void
add_id(struct json_object *o, const char *name, const struct gen_id *id)
{
	char text[GEN_TEXT_SIZE];

	gen_id_format(id, text);
	describe_add_text(o, name, text);
}

static void
add_history(struct json_object *o, const struct generation *g)
{
	struct json_object *list = json_object_new_array();
	char text[GEN_TEXT_SIZE];

	for (unsigned i = 0; i < GEN_HISTORY && !gen_id_is_nil(&g->history[i]); i++) {
		gen_id_format(&g->history[i], text);
		control_append(list, json_object_new_string(text));
	}
	control_add(o, "history", list);
}

static enum profile_class
class_by_filesystem(const char *filesystem)
{
	if (strcmp(filesystem, "tmpfs") == 0 || strcmp(filesystem, "ramfs") == 0)
		return PROFILE_CLASS_MEMORY;
	if (strcmp(filesystem, "devdax") == 0 || strstr(filesystem, "-dax"))
		return PROFILE_CLASS_MEDIA;
	return PROFILE_CLASS_PAGE;
}

static void
add_set(struct json_object *o, const struct pool_info *info)
{
	char hex[2 * PMDK_ATTR_SIZE + 1];

	if (!info->parts)
		return;
	describe_add_u64(o, "header", info->header);
	if (!info->header)
		return;
	if (info->header_damage[0]) {
		describe_add_text(o, "header_damage", info->header_damage);
		return;
	}
	hex_encode(info->attr, PMDK_ATTR_SIZE, hex);
	describe_add_text(o, "attr", hex);
}

struct json_object *
describe_pool(const struct pool_info *info, const struct profile *profile)
{
	const struct sidecar *m = &info->meta;
	struct json_object *o = json_object_new_object();
	int class = profile ? profile->value[PROFILE_F_CLASS]
			    : (int)class_by_filesystem(info->filesystem);

	describe_add_text(o, "name", info->name);
	describe_add_text(o, "filesystem", info->filesystem);
	if (info->damage[0]) {
		describe_add_text(o, "sidecar", info->damage);
		describe_add_text(o, "status", err_name(info->damage_code));
		return o;
	}
	describe_add_u64(o, "size", m->pool_size);
	describe_add_bool(o, "sparse", m->sparse);
	if (m->primary)
		describe_add_bool(o, "primary", true);
	add_id(o, "uuid", &m->pool_uuid);
	describe_add_text(o, "state", sidecar_state_name(m->state));
	add_id(o, "generation", &m->generation.current);
	add_history(o, &m->generation);
	describe_add_bool(o, "writer_open", m->writer_open);
	if (m->primary || info->power != BOOT_KEPT)
		describe_add_text(o, "power", boot_power_name(info->power));
	describe_add_text(o, "writer", m->writer);
	describe_add_u64(o, "created", m->created_s);
	describe_add_u64(o, "updated", m->updated_s);
	describe_add_text(o, "class", profile_value_name(PROFILE_F_CLASS, class));
	describe_add_text(o, "sidecar", info->sidecar_damaged ? "one copy damaged" : "ok");
	add_set(o, info);
	if (m->position)
		describe_add_u64(o, "position", m->position);
	if (m->waited)
		describe_add_bool(o, "waited", true);
	if (m->journal_len)
		describe_add_text(o, "journal", m->journal_committed ? "committed" : "open");
	if (m->ring_len)
		describe_add_u64(o, "ring", info->ring_messages);
	return o;
}

static struct json_object *
describe_field(const struct profile *p, enum profile_field f)
{
	struct json_object *o = json_object_new_object();
	const char *value = profile_value_name(f, p->value[f]);

	describe_add_text(o, "value", value ? value : "unknown");
	describe_add_bool(o, "known", p->known[f]);
	describe_add_text(o, "source", p->source[f]);
	return o;
}

struct json_object *
describe_profile(const struct profile *p)
{
	struct json_object *o = json_object_new_object();

	for (int f = 0; f < PROFILE_F_COUNT; f++)
		control_add(o, profile_field_name((enum profile_field)f),
			    describe_field(p, (enum profile_field)f));
	describe_add_text(o, "provider", p->provider_name);
	describe_add_text(o, "filesystem", p->filesystem);
	return o;
}

struct json_object *
describe_stated(const struct conf *c)
{
	struct json_object *list = json_object_new_array();
	char text[128];

	for (int i = 0; i < PROFILE_F_COUNT; i++) {
		const struct conf_stated *stated = &c->stated[i];
		enum profile_field f = (enum profile_field)i;

		if (!stated->given)
			continue;
		(void)snprintf(text, sizeof(text), "%s = %s%s", profile_field_name(f),
			       profile_value_name(f, stated->value),
			       stated->trust ? " trust-me" : "");
		control_append(list, json_object_new_string(text));
	}
	return list;
}

struct json_object *
describe_overrides(const struct conf *c, const struct profile *p)
{
	struct json_object *list = json_object_new_array();
	char text[PROFILE_SOURCE_MAX + 64];

	for (int i = 0; i < PROFILE_F_COUNT; i++) {
		enum profile_field f = (enum profile_field)i;

		if (!c->stated[i].given)
			continue;
		(void)snprintf(text, sizeof(text), "%s = %s (%s)", profile_field_name(f),
			       profile_value_name(f, profile_get(p, f)), p->source[f]);
		control_append(list, json_object_new_string(text));
	}
	return list;
}

struct json_object *
describe_pmdk(const struct pmdk_header *h)
{
	static const char *const names[PMDK_UUID_COUNT] = {
		[PMDK_UUID_SET] = "set_uuid",
		[PMDK_UUID_PART] = "uuid",
		[PMDK_UUID_PREV_PART] = "prev_part",
		[PMDK_UUID_NEXT_PART] = "next_part",
		[PMDK_UUID_PREV_REPLICA] = "prev_replica",
		[PMDK_UUID_NEXT_REPLICA] = "next_replica",
	};
	struct json_object *o = json_object_new_object();
	char text[PMDK_UUID_TEXT], features[128];

	describe_add_text(o, "type", h->type);
	describe_add_text(o, "layout", h->layout);
	describe_add_u64(o, "major", h->major);
	describe_add_u64(o, "compat", h->compat);
	describe_add_u64(o, "incompat", h->incompat);
	describe_add_u64(o, "ro_compat", h->ro_compat);
	pmdk_incompat_format(h->incompat, features, sizeof(features));
	describe_add_text(o, "features", features);
	for (int i = 0; i < PMDK_UUID_COUNT; i++) {
		pmdk_uuid_format(h->uuid[i], text);
		describe_add_text(o, names[i], text);
	}
	describe_add_u64(o, "created", h->created_s);
	describe_add_text(o, "shutdown", pmdk_shutdown_name(h->shutdown));
	describe_add_text(o, "checksum", h->checksum_ok ? "ok" : "damaged");
	return o;
}

struct json_object *
describe_facts(const struct probe *p)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < p->fact_count && i < PROBE_FACTS_MAX; i++) {
		struct json_object *o = json_object_new_object();

		describe_add_text(o, "name", p->facts[i].name);
		describe_add_text(o, "value", p->facts[i].value);
		describe_add_text(o, "source", p->facts[i].source);
		control_append(list, o);
	}
	return list;
}
