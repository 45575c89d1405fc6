/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setsource - whether one remote replica of a pool set may give what others lack.
 *
 * Pure. A program writes to all of a set's remote replicas or, with one lost, goes on with the
 * others, which get a generation that the lost one does not have (siblings.h). Each drain has
 * waited for all of them: of one generation, each has all that was acknowledged.
 */
#ifndef COMMON_SETSOURCE_H
#define COMMON_SETSOURCE_H

#include "sidecar.h"

enum setsource {
	SETSOURCE_WHOLE,    /* the other one has nothing that was acknowledged and is not here */
	SETSOURCE_BEHIND,   /* the other one was gone on with without it */
	SETSOURCE_DIVERGED, /* each was gone on with without the other */
	SETSOURCE_UNTOLD,   /* its writer did not close it, and nothing tells what the other has */
};

enum setsource setsource_judge(const struct sidecar *replica, const struct sidecar *other);

#endif
