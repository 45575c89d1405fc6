/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setsource - whether one remote replica of a pool set may give what others lack.
 *
 * Pure. A program writes to all of a set's remote replicas or, with one lost, goes on with the
 * others, which get a generation that the lost one does not have (siblings.h). Each drain has
 * waited for all of them: of one generation, each has all that was acknowledged, but for one that
 * is outdated: that was being brought back, and lacks what came since.
 */
#ifndef COMMON_SETSOURCE_H
#define COMMON_SETSOURCE_H

#include <stdbool.h>

#include "sidecar.h"

enum setsource {
	SETSOURCE_WHOLE,    /* the other one has nothing that was acknowledged and is not here */
	SETSOURCE_BEHIND,   /* the other one was gone on with without it */
	SETSOURCE_DIVERGED, /* each was gone on with without the other */
	SETSOURCE_UNTOLD,   /* it is not known to be whole, and nothing tells what the other has */
};

/*
 * Up to date, and called so by the program that wrote to it, or never written to. Who was lost,
 * promoted and demoted is called so as well, and lacks what others have; waited is what tells,
 * which no demotion leaves.
 */
bool setsource_is_whole(const struct sidecar *replica);

enum setsource setsource_judge(const struct sidecar *replica, const struct sidecar *other);

#endif
