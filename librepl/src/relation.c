/* SPDX-License-Identifier: BSD-3-Clause */
#include "relation.h"

#include "replica_judge.h"

enum relation_verdict
relation_judge(const struct sidecar *local, const struct sidecar *replica, const char **why)
{
	struct judge_input in = {.local = local, .replica = replica};
	struct judgement out;

	replica_judge(&in, &out);
	*why = out.why;
	return out.verdict == JUDGE_REFUSE ? RELATION_COMPARE : RELATION_COPY;
}
