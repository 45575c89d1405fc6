/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolset - pool set files, as PMDK's poolset(5) has them. Pure.
 *
 *     PMEMPOOLSET
 *     OPTION SINGLEHDR
 *     1G name/of/part
 *     REPLICA
 *     1G other/name/of/part
 *
 * The first line is that word; lines that begin with '#' and empty ones count
 * for nothing. Whether a path is a file's, a directory's or a device's is not seen
 * here. A REPLICA that names another machine is an error that says so: a replica
 * has no remote replicas of its own.
 */
#ifndef COMMON_POOLSET_H
#define COMMON_POOLSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define POOLSET_SIGNATURE    "PMEMPOOLSET"
#define POOLSET_FILE_MAX     65535U /* bytes of a set file */
#define POOLSET_PATH_MAX     1023U
#define POOLSET_PARTS_MAX    64U        /* lines of all sections */
#define POOLSET_REPLICAS_MAX 8U         /* sections: the pool itself, and its local replicas */
#define POOLSET_PART_MIN     (2U << 20) /* bytes, as PMDK has it */
#define POOLSET_HEADER       4096U      /* bytes of a part that are PMDK's own */

enum poolset_headers {
	POOLSET_EACH,   /* each part begins with a header */
	POOLSET_SINGLE, /* the first one only: OPTION SINGLEHDR */
	POOLSET_NONE,   /* OPTION NOHDRS */
};

struct poolset_part {
	unsigned line;
	unsigned replica; /* its section: 0 is the pool itself */
	unsigned index;   /* in its section */
	uint64_t size;    /* of the file; of a directory: all files in it; 0: AUTO */
	char path[POOLSET_PATH_MAX + 1];
};

struct poolset {
	enum poolset_headers headers;
	unsigned replicas; /* sections; each has a part */
	unsigned count;
	struct poolset_part parts[POOLSET_PARTS_MAX];
};

/* Whether a file begins as a set file; len of its first bytes are at text. */
bool poolset_begins(const char *text, size_t len);

/*
 * The whole of a set file. REPL_E_INVAL, "line N: what is wrong"; *out is then
 * undefined. A set that is taken has at least one part in each section, each of at
 * least POOLSET_PART_MIN bytes or AUTO and with a path that is not "/"; the sizes
 * add up to less than 2^63. A '/' at the end of a path is not kept.
 */
int poolset_parse(const char *text, size_t len, struct poolset *out, struct err *e);

/* Where the pool's bytes begin in the part of that index: 0 or POOLSET_HEADER. */
uint64_t poolset_part_off(enum poolset_headers headers, unsigned index);

/* Bytes of a part of that size that count for the pool: whole pages, without its header. */
uint64_t poolset_part_len(enum poolset_headers headers, unsigned index, uint64_t size);

#endif
