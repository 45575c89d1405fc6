/* SPDX-License-Identifier: BSD-3-Clause */
#include "setsource.h"

enum setsource
setsource_judge(const struct sidecar *replica, const struct sidecar *other)
{
	switch (gen_compare(&replica->generation, &other->generation)) {
	case GEN_EQUAL:
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
	return replica->state == SIDECAR_UP_TO_DATE ? SETSOURCE_WHOLE : SETSOURCE_UNTOLD;
}
