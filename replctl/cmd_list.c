/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl list TARGET */
#include "commands.h"
#include "control.h"
#include "out.h"
#include "pools.h"

int
cmd_list(struct ctl *c, char **args)
{
	struct json_object *pools = NULL, *answer;
	int rc = ctl_target(c, args[0], CTL_HOST);

	if (!rc)
		rc = ctl_connect(c);
	if (!rc)
		rc = pools_fetch(c, &pools);
	if (pools && !c->options.json)
		pools_print(pools);
	if (rc) {
		json_object_put(pools);
		return rc;
	}
	answer = json_object_new_object();
	out_add_text(answer, "target", c->host_text);
	control_add(answer, "pools", pools);
	ctl_answer(c, answer);
	return 0;
}
