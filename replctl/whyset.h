/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * whyset - files of a pool set whose replicas librpmem.so.1 keeps: beside them it leaves nothing,
 * and its programs answer at no socket. What they have at hand is told by each replica's target.
 */
#ifndef REPLCTL_WHYSET_H
#define REPLCTL_WHYSET_H

#include <stdbool.h>
#include <stddef.h>

#define WHYSET_MAX 1024

struct whyset {
	char what[WHYSET_MAX]; /* it is */
	char next[WHYSET_MAX]; /* command */
};

/*
 * False: it is neither a set file with remote replicas nor one of several parts, or has a record
 * beside it.
 */
bool whyset_look(const char *file, struct whyset *out);

#endif
