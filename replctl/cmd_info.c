/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl info TARGET/pool */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "control.h"
#include "out.h"

static const char *
class_meaning(const char *name)
{
	if (strcmp(name, "media") == 0)
		return "flushed to the persistence domain";
	if (strcmp(name, "page") == 0)
		return "synced to the device under the page cache";
	if (strcmp(name, "memory") == 0)
		return "survives the process, not the power";
	return "?";
}

static void
print_writer(struct json_object *info)
{
	bool open = false;

	(void)control_get_bool(info, "writer_open", &open, NULL);
	out_field("writer", "%s%s", out_member(info, "writer"), open ? " (has it open)" : "");
}

static void
print_generation(struct json_object *info)
{
	struct json_object *history = NULL;
	struct gen_id id;
	bool nil = gen_id_parse(out_member(info, "generation"), &id) && gen_id_is_nil(&id);
	bool cut_off =
		strcmp(out_member(info, "state"), sidecar_state_name(SIDECAR_INCONSISTENT)) == 0;

	out_field("generation", "%s",
		  !nil      ? out_member(info, "generation")
		  : cut_off ? "none: its first copy has not ended, or its file was cut or replaced"
			    : "none: never written");
	if (control_get_array(info, "history", GEN_HISTORY, &history, NULL))
		return;
	for (size_t i = 0; i < json_object_array_length(history); i++)
		out_field(i ? "" : "before", "%s",
			  json_object_get_string(json_object_array_get_idx(history, i)));
}

/* Of a pool set: the files that the pool lies in. */
static void
print_parts(struct json_object *info)
{
	struct json_object *list = NULL;
	char size[OUT_NUMBER_MAX];
	uint64_t left;

	if (!json_object_object_get_ex(info, "parts", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *part = json_object_array_get_idx(list, i);
		char where[32] = "";
		uint64_t replica;

		out_size(out_member_u64(part, "size"), size);
		replica = out_member_u64(part, "replica");
		if (replica)
			(void)snprintf(where, sizeof(where), ", local replica %u",
				       (unsigned)replica);
		out_field("part", "%s, %s%s", out_member(part, "name"), size, where);
	}
	left = out_member_u64(info, "parts_left");
	if (left)
		out_field("", "and %" PRIu64 " more", left);
	if (json_object_object_get_ex(info, "header_damage", NULL))
		out_field("part headers", "%s", out_member(info, "header_damage"));
}

/* The header that PMDK's tools would show, where it is a pool of PMDK's. */
static void
print_pmdk(struct json_object *info)
{
	struct json_object *p = NULL;
	char created[OUT_NUMBER_MAX];

	if (!json_object_object_get_ex(info, "pmdk", &p) ||
	    !json_object_is_type(p, json_type_object))
		return;
	out_time(out_member_u64(p, "created"), created);
	out_field("pmdk pool", "%s, version %" PRIu64 "%s%s", out_member(p, "type"),
		  out_member_u64(p, "major"), out_member(p, "layout")[0] ? ", layout " : "",
		  out_member(p, "layout"));
	out_field("features",
		  "incompat 0x%" PRIx64 " [%s], compat 0x%" PRIx64 ", ro_compat 0x%" PRIx64,
		  out_member_u64(p, "incompat"), out_member(p, "features"),
		  out_member_u64(p, "compat"), out_member_u64(p, "ro_compat"));
	out_field("pool set uuid", "%s", out_member(p, "set_uuid"));
	out_field("part uuid", "%s (previous %s, next %s)", out_member(p, "uuid"),
		  out_member(p, "prev_part"), out_member(p, "next_part"));
	out_field("replica uuids", "previous %s, next %s", out_member(p, "prev_replica"),
		  out_member(p, "next_replica"));
	out_field("pmdk created", "%s", created);
	out_field("last shutdown", "%s", out_member(p, "shutdown"));
	out_field("checksum", "%s", out_member(p, "checksum"));
}

static void
print_info(const struct ctl *c, struct json_object *info, uint64_t size)
{
	char human[OUT_NUMBER_MAX], created[OUT_NUMBER_MAX], updated[OUT_NUMBER_MAX];

	bool sparse = false, primary = false;

	out_size(size, human);
	if (control_has(info, "primary"))
		(void)control_get_bool(info, "primary", &primary, NULL);
	(void)control_get_bool(info, "sparse", &sparse, NULL);
	out_time(out_member_u64(info, "created"), created);
	out_time(out_member_u64(info, "updated"), updated);
	out_field("pool", "%s", c->target_text);
	out_field("size", "%s (%" PRIu64 " bytes)%s", human, size,
		  sparse ? ", sparse: space is taken as it is written" : "");
	out_field("role", "%s",
		  primary ? "primary: used in place, takes no replication" : "replica");
	out_field("state", "%s", out_member(info, "state"));
	out_field("class", "%s: %s", out_member(info, "class"),
		  class_meaning(out_member(info, "class")));
	out_field("filesystem", "%s", out_member(info, "filesystem"));
	/* A primary's is of the generation before. */
	if (control_has(info, "position") && !primary)
		out_field("position",
			  "%" PRIu64 ": of replicas of one generation the one with the "
			  "highest has the most",
			  out_member_u64(info, "position"));
	if (control_has(info, "ring"))
		out_field("receive ring", "%" PRIu64 " message%s not applied",
			  out_member_u64(info, "ring"), out_plural(out_member_u64(info, "ring")));
	print_writer(info);
	out_field("created", "%s", created);
	out_field("updated", "%s", updated);
	out_field("uuid", "%s", out_member(info, "uuid"));
	print_generation(info);
	out_field("metadata", "%s", out_member(info, "sidecar"));
	print_parts(info);
	print_pmdk(info);
}

int
cmd_info(struct ctl *c, char **args)
{
	struct json_object *info = NULL;
	uint64_t size;
	int rc = ctl_target(c, args[0], CTL_POOL);

	if (!rc)
		rc = ctl_connect(c);
	if (!rc)
		rc = ctl_pool_info(c, &info, &size);
	if (rc) {
		json_object_put(info);
		return rc;
	}
	if (!c->options.json)
		print_info(c, info, size);
	ctl_answer(c, info);
	return 0;
}
