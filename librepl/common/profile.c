/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VALUES_MAX 3

struct field_row {
	const char *name;
	int safe;
	int value_count;
	const char *values[VALUES_MAX]; /* by the enum of the field */
};

static const struct field_row field_rows[PROFILE_F_COUNT] = {
	[PROFILE_F_GRANULARITY] = {"granularity",
				   PROFILE_GRAN_PAGE,
				   3,
				   {"byte", "cache-line", "page"}},
	[PROFILE_F_CLASS] = {"durability-class",
			     PROFILE_CLASS_PAGE,
			     3,
			     {"media", "page", "memory"}},
	[PROFILE_F_DOMAIN] = {"persistence-domain", PROFILE_DMP, 3, {"dmp", "mhp", "wsp"}},
	[PROFILE_F_DDIO] = {"ddio", PROFILE_DDIO_ON, 2, {"on", "off"}},
	[PROFILE_F_RQWRB] = {"rqwrb", PROFILE_RQWRB_DRAM, 2, {"dram", "pm"}},
	[PROFILE_F_PROVIDER] = {"provider-class",
				PROFILE_PROVIDER_SOFTWARE,
				3,
				{"software", "ib", "iwarp"}},
	/* The safe value is that of targets that don't tell: they know tcp only. */
	[PROFILE_F_RMA] = {"rma", PROFILE_RMA_YES, 2, {"yes", "no"}},
	[PROFILE_F_FLUSH] = {"native-flush", PROFILE_FLUSH_NO, 2, {"no", "yes"}},
};

void
profile_init(struct profile *p)
{
	memset(p, 0, sizeof(*p));
	for (int f = 0; f < PROFILE_F_COUNT; f++) {
		p->value[f] = field_rows[f].safe;
		(void)snprintf(p->source[f], sizeof(p->source[f]), "not probed");
	}
}

void
profile_set(struct profile *p, enum profile_field f, int value, const char *source)
{
	p->value[f] = value;
	p->known[f] = true;
	(void)snprintf(p->source[f], sizeof(p->source[f]), "%s", source);
}

int
profile_get(const struct profile *p, enum profile_field f)
{
	const struct field_row *row = &field_rows[f];

	if (!p->known[f] || p->value[f] < 0 || p->value[f] >= row->value_count)
		return row->safe;
	return p->value[f];
}

const char *
profile_field_name(enum profile_field f)
{
	return field_rows[f].name;
}

const char *
profile_value_name(enum profile_field f, int value)
{
	if (value < 0 || value >= field_rows[f].value_count)
		return NULL;
	return field_rows[f].values[value];
}

int
profile_field_by_name(const char *name)
{
	for (int f = 0; f < PROFILE_F_COUNT; f++) {
		if (strcmp(field_rows[f].name, name) == 0)
			return f;
	}
	return -1;
}

int
profile_value_by_name(enum profile_field f, const char *name)
{
	for (int v = 0; v < field_rows[f].value_count; v++) {
		if (strcmp(field_rows[f].values[v], name) == 0)
			return v;
	}
	return -1;
}

struct out {
	char *buf;
	size_t size;
	size_t used;
};

/* Goes on counting when the buffer is full. */
static void __attribute__((format(printf, 2, 3))) out_add(struct out *o, const char *fmt, ...)
{
	size_t room = o->used < o->size ? o->size - o->used : 0;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(room ? o->buf + o->used : NULL, room, fmt, ap);
	va_end(ap);
	if (len > 0)
		o->used += (size_t)len;
}

size_t
profile_format(const struct profile *p, char *buf, size_t size)
{
	struct out o = {buf, size, 0};

	out_add(&o, "provider = %s", p->provider_name[0] ? p->provider_name : "none");
	if (p->provider_why[0])
		out_add(&o, " (%s)", p->provider_why);
	out_add(&o, "\n");
	out_add(&o, "filesystem = %s\n", p->filesystem[0] ? p->filesystem : "unknown");
	for (int f = 0; f < PROFILE_F_COUNT; f++) {
		out_add(&o, "%s = %s (%s%s)\n", field_rows[f].name,
			field_rows[f].values[profile_get(p, (enum profile_field)f)],
			p->known[f] ? "" : "assumed: ", p->source[f]);
	}
	return o.used;
}
