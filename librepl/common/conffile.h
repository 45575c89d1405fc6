/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conffile - configuration files by table: every key has one row with its type
 * and bounds. conffile.c is the only file in front of <ini.h> (inih).
 *
 * A file holds [sections], "key = value" lines and comments: a line that begins
 * with ';' or '#', and the rest of a line from a blank and ';' on. Nothing is cut,
 * skipped or guessed: what cannot be taken as it stands is an error.
 */
#ifndef COMMON_CONFFILE_H
#define COMMON_CONFFILE_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define CONFFILE_SIZE_MAX (1U << 20) /* of a file */
#define CONFFILE_KEYS_MAX 64U        /* rows of a table */
#define CONFFILE_TEXT_MAX 4095U      /* length of a value */

enum conffile_type {
	CONFFILE_TEXT,   /* char *, freed and replaced; not empty */
	CONFFILE_UINT,   /* unsigned, decimal, in [min, max] */
	CONFFILE_SIZE,   /* unsigned, bytes as parse_size() reads them, in [min, max] */
	CONFFILE_CHOICE, /* int, index into choices */
	CONFFILE_CALL,   /* take() stores it */
	CONFFILE_LIST,   /* take() stores it; the key may be given again */
};

struct conffile_key {
	const char *section; /* "" = before any section */
	const char *name;
	enum conffile_type type;
	size_t offset;              /* of the field in the object */
	unsigned min, max;          /* UINT, SIZE */
	const char *const *choices; /* CHOICE, NULL-terminated */
	/* TEXT: non-zero refuses the value, with why in e; may be NULL. */
	int (*check)(const char *value, struct err *e);
	/* CALL, LIST */
	int (*take)(void *obj, const char *value, struct err *e);
};

/*
 * Read a regular file. A key that is in no row or, except LIST, given twice, a
 * value out of its bounds, a line that is no INI: REPL_E_CONFIG,
 * "FILE:LINE: key 'NAME': why". The first error ends it; obj may then be partly
 * set. A file that cannot be read: REPL_E_CONFIG, "FILE: why".
 */
int conffile_load(const char *path, const struct conffile_key *keys, size_t count, void *obj,
		  struct err *e);

/*
 * Set one key by section and name, e.g. from an option: REPL_E_CONFIG and the
 * text as above less FILE:LINE. REPL_E_NOMEM is handed through.
 */
int conffile_set(const struct conffile_key *keys, size_t count, void *obj, const char *section,
		 const char *name, const char *value, struct err *e);

/* Free all TEXT fields and set them to NULL. */
void conffile_free(const struct conffile_key *keys, size_t count, void *obj);

/* A check for TEXT: the value is an absolute path. */
int conffile_check_absolute(const char *value, struct err *e);

/* "8": decimal digits only; -1 on anything else and above max. */
int parse_uint(const char *text, unsigned max, unsigned *out);

/* "64", "4K", "16MiB", "2G": bytes with 1024-based suffixes; -1 on anything else. */
int parse_size(const char *text, uint64_t *out);

#endif
