/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relation - may local data be copied over a replica? Pure.
 */
#ifndef LIBREPL_RELATION_H
#define LIBREPL_RELATION_H

#include <stdbool.h>

#include "err.h"
#include "sidecar.h"

enum relation_verdict {
	RELATION_COPY,    /* the replica is new, equal or behind: bring it up */
	RELATION_COMPARE, /* not proven: allowed only if the contents are equal */
};

/*
 * local NULL: nothing is known of the local data. Never allows a copy over a
 * replica that is ahead, diverged or a stranger. *why names the relation, static text.
 */
enum relation_verdict relation_judge(const struct sidecar *local, const struct sidecar *replica,
				     const char **why);

#endif
