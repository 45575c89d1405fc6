/* SPDX-License-Identifier: BSD-3-Clause */
/* What a target tells of a pool and of itself, taken apart: bytes of a peer, hostile as they may
 * be. */
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "hex.h"
#include "remote.h"

static int
state_by_name(const char *name)
{
	for (int s = SIDECAR_UP_TO_DATE; s <= SIDECAR_UNKNOWN; s++) {
		if (strcmp(sidecar_state_name((enum sidecar_state)s), name) == 0)
			return s;
	}
	return -1;
}

static int
history_parse(struct json_object *o, struct generation *g, struct err *e)
{
	struct json_object *a = NULL;
	int rc = control_get_array(o, "history", GEN_HISTORY, &a, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < json_object_array_length(a); i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(a, i));

		if (!text || !gen_id_parse(text, &g->history[i]))
			return err_set(e, REPL_E_PROTOCOL, "member 'history' is no list of UUIDs");
	}
	return 0;
}

/* What a pool set has beyond the rest; nothing of it is there for other pools. */
static int
set_parse(struct json_object *o, struct replica_info *info, struct err *e)
{
	const char *text;
	uint64_t header;
	int rc;

	if (!control_has(o, "header"))
		return 0;
	if (control_get_u64(o, "header", 0, PMDK_HEADER_SIZE, &header, e) ||
	    (header && header != PMDK_HEADER_SIZE))
		return err_set(e, REPL_E_PROTOCOL, "member 'header' is neither 0 nor %d",
			       PMDK_HEADER_SIZE);
	info->header = (unsigned)header;
	if (control_has(o, "attr")) {
		if (control_get_text(o, "attr", 2 * PMDK_ATTR_SIZE, &text, e) ||
		    !hex_decode(text, strlen(text), info->attr, PMDK_ATTR_SIZE))
			return err_set(e, REPL_E_PROTOCOL, "member 'attr' is not %d bytes in hex",
				       PMDK_ATTR_SIZE);
		info->has_attr = true;
	}
	if (control_has(o, "header_damage")) {
		rc = control_get_text(o, "header_damage", sizeof(info->header_damage) - 1, &text,
				      e);
		if (rc)
			return rc;
		(void)snprintf(info->header_damage, sizeof(info->header_damage), "%s", text);
	}
	return 0;
}

int
replica_info_parse(struct json_object *o, struct replica_info *info, struct err *e)
{
	const char *name, *uuid, *state, *generation, *cls, *fs, *writer, *sidecar, *journal,
		*power;
	int rc;

	memset(info, 0, sizeof(*info));
	rc = control_get_text(o, "name", TARGET_POOL_MAX, &name, e);
	if (!rc)
		rc = control_get_u64(o, "size", 1, INT64_MAX, &info->meta.pool_size, e);
	if (!rc)
		rc = control_get_text(o, "uuid", GEN_TEXT_SIZE, &uuid, e);
	if (!rc)
		rc = control_get_text(o, "state", 32, &state, e);
	if (!rc)
		rc = control_get_text(o, "generation", GEN_TEXT_SIZE, &generation, e);
	if (!rc)
		rc = control_get_text(o, "class", 16, &cls, e);
	if (!rc)
		rc = control_get_text(o, "filesystem", sizeof(info->filesystem) - 1, &fs, e);
	if (!rc)
		rc = control_get_text(o, "writer", sizeof(info->meta.writer) - 1, &writer, e);
	if (!rc)
		rc = control_get_text(o, "sidecar", 64, &sidecar, e);
	if (!rc)
		rc = control_get_bool(o, "writer_open", &info->meta.writer_open, e);
	if (!rc)
		rc = control_get_u64(o, "created", 0, INT64_MAX, &info->meta.created_s, e);
	if (!rc)
		rc = control_get_u64(o, "updated", 0, INT64_MAX, &info->meta.updated_s, e);
	if (!rc)
		rc = history_parse(o, &info->meta.generation, e);
	if (!rc)
		rc = set_parse(o, info, e);
	/* It is no argument of ours that is wrong. */
	if (rc)
		(void)err_prefix(e, "answer of the target");
	if (rc && e)
		e->code = REPL_E_PROTOCOL;
	if (rc)
		return REPL_E_PROTOCOL;
	(void)snprintf(info->name, sizeof(info->name), "%s", name);
	(void)snprintf(info->filesystem, sizeof(info->filesystem), "%s", fs);
	(void)snprintf(info->meta.writer, sizeof(info->meta.writer), "%s", writer);
	info->durability = profile_value_by_name(PROFILE_F_CLASS, cls);
	if (control_has(o, "sparse"))
		(void)control_get_bool(o, "sparse", &info->meta.sparse, NULL);
	if (control_has(o, "position"))
		(void)control_get_u64(o, "position", 0, INT64_MAX, &info->meta.position, NULL);
	if (control_has(o, "waited"))
		(void)control_get_bool(o, "waited", &info->meta.waited, NULL);
	if (control_has(o, "primary"))
		(void)control_get_bool(o, "primary", &info->meta.primary, NULL);
	info->journal_left = false;
	if (control_has(o, "journal") && !control_get_text(o, "journal", 32, &journal, NULL)) {
		info->meta.journal_committed = strcmp(journal, "committed") == 0;
		info->journal_left = !info->meta.journal_committed;
	}
	info->sidecar_damaged = strcmp(sidecar, "ok") != 0;
	info->meta.state = (enum sidecar_state)state_by_name(state);
	/* Of one that its program did not close earlier versions of targets do not tell. */
	if (info->meta.primary && info->meta.state == SIDECAR_UNKNOWN)
		info->power = BOOT_UNTOLD;
	if (control_has(o, "power") && !control_get_text(o, "power", 32, &power, NULL))
		info->power = boot_power_by_name(power);
	if (info->durability < 0 || (int)info->meta.state < 0 ||
	    !gen_id_parse(uuid, &info->meta.pool_uuid) ||
	    !gen_id_parse(generation, &info->meta.generation.current))
		return err_set(e, REPL_E_PROTOCOL, "answer of the target: bad pool info");
	return 0;
}

/* One field of a profile; unknown words stay at the safe default. */
static void
profile_parse_field(struct json_object *o, enum profile_field f, struct profile *p)
{
	struct json_object *field = NULL;
	const char *value = NULL, *source = NULL;
	bool known = false;
	int v;

	if (!json_object_object_get_ex(o, profile_field_name(f), &field))
		return;
	if (control_get_text(field, "value", 64, &value, NULL) ||
	    control_get_text(field, "source", PROFILE_SOURCE_MAX - 1, &source, NULL) ||
	    control_get_bool(field, "known", &known, NULL))
		return;
	v = profile_value_by_name(f, value);
	if (v < 0)
		return;
	if (known)
		profile_set(p, f, v, source);
	else
		(void)snprintf(p->source[f], sizeof(p->source[f]), "%s", source);
	/* The class is always told, also where it rests on a default. */
	if (f == PROFILE_F_CLASS || f == PROFILE_F_GRANULARITY)
		p->value[f] = v;
}

void
replica_profile_parse(struct json_object *o, struct profile *p)
{
	const char *text;

	profile_init(p);
	for (int f = 0; f < PROFILE_F_COUNT; f++)
		profile_parse_field(o, (enum profile_field)f, p);
	if (control_get_text(o, "provider", sizeof(p->provider_name) - 1, &text, NULL) == 0)
		(void)snprintf(p->provider_name, sizeof(p->provider_name), "%s", text);
	if (control_get_text(o, "filesystem", sizeof(p->filesystem) - 1, &text, NULL) == 0)
		(void)snprintf(p->filesystem, sizeof(p->filesystem), "%s", text);
}
