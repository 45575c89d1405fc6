/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolset - pool set files, as PMDK's poolset(5) has them. Pure.
 *
 *     PMEMPOOLSET
 *     OPTION SINGLEHDR
 *     1G name/of/part
 *
 * The first line is that word; lines that begin with '#' and empty ones count
 * for nothing. What a target does not put together is an error that says so:
 * directories of parts, REPLICA sections, devices.
 */
#ifndef COMMON_POOLSET_H
#define COMMON_POOLSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define POOLSET_SIGNATURE "PMEMPOOLSET"
#define POOLSET_FILE_MAX  65535U /* bytes of a set file */
#define POOLSET_PATH_MAX  1023U
#define POOLSET_PARTS_MAX 64U
#define POOLSET_PART_MIN  (2U << 20) /* bytes, as PMDK has it */
#define POOLSET_HEADER    4096U      /* bytes of a part that are PMDK's own */

enum poolset_headers {
	POOLSET_EACH,   /* each part begins with a header */
	POOLSET_SINGLE, /* the first one only: OPTION SINGLEHDR */
	POOLSET_NONE,   /* OPTION NOHDRS */
};

struct poolset_part {
	unsigned line;
	uint64_t size; /* of the file */
	char path[POOLSET_PATH_MAX + 1];
};

struct poolset {
	enum poolset_headers headers;
	unsigned count;
	struct poolset_part parts[POOLSET_PARTS_MAX];
};

/* Whether a file begins as a set file; len of its first bytes are at text. */
bool poolset_begins(const char *text, size_t len);

/*
 * The whole of a set file. REPL_E_INVAL, "line N: what is wrong"; *out is then
 * undefined. A set that is taken has at least one part, each of at least
 * POOLSET_PART_MIN bytes and with a path; the sizes add up to less than 2^63.
 */
int poolset_parse(const char *text, size_t len, struct poolset *out, struct err *e);

/* Bytes of part i that are not its header and count for the pool: whole pages. */
uint64_t poolset_part_len(const struct poolset *s, unsigned i);

/* Where they begin in the part: 0 or POOLSET_HEADER. */
uint64_t poolset_part_off(const struct poolset *s, unsigned i);

/* All parts' bytes: the size of the pool that they hold. */
uint64_t poolset_size(const struct poolset *s);

#endif
