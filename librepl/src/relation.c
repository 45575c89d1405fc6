/* SPDX-License-Identifier: BSD-3-Clause */
#include "relation.h"

enum relation_verdict
relation_judge(const struct sidecar *local, const struct sidecar *replica, const char **why)
{
	if (gen_id_is_nil(&replica->generation.current)) {
		*why = "the replica has never been written";
		return RELATION_COPY;
	}
	if (!local) {
		*why = "nothing is known of the local file's generation";
		return RELATION_COMPARE;
	}
	switch (gen_compare(&local->generation, &replica->generation)) {
	case GEN_EQUAL:
		*why = "same generation";
		return RELATION_COPY;
	case GEN_AHEAD:
		*why = "the replica is behind";
		return RELATION_COPY;
	case GEN_BEHIND:
		*why = "the replica is newer than the local file";
		return RELATION_COMPARE;
	case GEN_DIVERGED:
		*why = "local file and replica have diverged";
		return RELATION_COMPARE;
	default:
		*why = gen_id_equal(&local->pool_uuid, &replica->pool_uuid)
			       ? "local file and replica have no generation in common"
			       : "the replica is of another pool";
		return RELATION_COMPARE;
	}
}
