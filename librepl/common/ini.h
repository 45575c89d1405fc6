/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ini - configuration files by table: every key has one row with its type and
 * bounds. The only file in front of <ini.h> (inih) is ini.c.
 */
#ifndef COMMON_INI_H
#define COMMON_INI_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

enum ini_type {
	INI_TEXT,   /* char *, freed and replaced; the table frees it */
	INI_UINT,   /* unsigned, decimal, in [min, max] */
	INI_SIZE,   /* uint64_t, with suffix K M G T (1024) */
	INI_CHOICE, /* int, index into choices */
	INI_LIST,   /* calls add() for every occurrence of the key */
};

struct ini_key {
	const char *section; /* "" = before any section */
	const char *name;
	enum ini_type type;
	size_t offset;              /* of the field in the object */
	uint64_t min, max;          /* INI_UINT, INI_SIZE; INI_TEXT: max length */
	const char *const *choices; /* INI_CHOICE, NULL-terminated */
	int (*add)(void *obj, const char *value, struct err *e); /* INI_LIST */
};

/*
 * Read a file. A key that is in no row, a value out of its bounds, a line that
 * is no INI: REPL_E_CONFIG, "FILE:LINE: key 'NAME': why". The first error
 * ends it; obj may then be partly set.
 */
int ini_load(const char *path, const struct ini_key *keys, size_t count, void *obj,
	      struct err *e);

/* Set one key by section and name, e.g. from an option; text as above less FILE:LINE. */
int ini_set(const struct ini_key *keys, size_t count, void *obj, const char *section,
	     const char *name, const char *value, struct err *e);

/* Free all INI_TEXT fields and set them to NULL. */
void ini_free(const struct ini_key *keys, size_t count, void *obj);

/* "64", "4K", "16MiB", "2G": bytes with 1024-based suffixes; -1 on anything else. */
int parse_size(const char *text, uint64_t *out);

#endif
