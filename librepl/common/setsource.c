/* SPDX-License-Identifier: BSD-3-Clause */
#include "setsource.h"

bool
setsource_is_whole(const struct sidecar *replica)
{
	return replica->state == SIDECAR_UP_TO_DATE &&
	       (replica->waited || gen_id_is_nil(&replica->generation.current));
}

enum setsource
setsource_judge(const struct sidecar *replica, const struct sidecar *other)
{
	switch (gen_compare(&replica->generation, &other->generation)) {
	case GEN_EQUAL:
		/* A resync had not come to its end: what was drained behind its last round is
		 * missing. */
		if (replica->state != SIDECAR_OUTDATED)
			return SETSOURCE_WHOLE;
		return other->state == SIDECAR_OUTDATED ? SETSOURCE_UNTOLD : SETSOURCE_BEHIND;
	case GEN_AHEAD:
		return SETSOURCE_WHOLE;
	case GEN_BEHIND:
		return SETSOURCE_BEHIND;
	case GEN_DIVERGED:
		return SETSOURCE_DIVERGED;
	case GEN_UNRELATED:
		break;
	}
	/* Of writers that did not tell the others of a loss, or of one that was added to the set.
	 */
	return setsource_is_whole(replica) ? SETSOURCE_WHOLE : SETSOURCE_UNTOLD;
}
