/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl create TARGET/pool --size N | --from FILE */
#include <stdio.h>

#include "commands.h"
#include "conffile.h"
#include "control.h"
#include "out.h"

static int
create_zeros(struct ctl *c, const char *target)
{
	struct json_object *params, *result = NULL;
	char human[OUT_NUMBER_MAX];
	uint64_t size;
	int rc;

	if (parse_size(c->options.size, &size) || size == 0 || size > INT64_MAX)
		return err_set(&c->err, REPL_E_INVAL,
			       "--size '%s' is not a positive number of bytes, e.g. 65536, 64M, 2G",
			       c->options.size);
	rc = ctl_target(c, target, CTL_POOL);
	if (!rc)
		rc = ctl_connect(c);
	if (rc)
		return rc;
	params = json_object_new_object();
	control_add(params, "name", json_object_new_string(c->target.pool));
	control_add(params, "size", json_object_new_uint64(size));
	if (c->options.sparse)
		control_add(params, "sparse", json_object_new_boolean(true));
	rc = remote_call(c->remote, "pool.create", params, &result, &c->err);
	if (rc)
		return rc;
	out_size(size, human);
	if (!c->options.json)
		(void)printf("made the pool %s, %s of zeros\n", c->target_text, human);
	ctl_answer(c, out_clean_json(result));
	json_object_put(result);
	return 0;
}

int
cmd_create(struct ctl *c, char **args)
{
	if (!c->options.size == !c->options.from) {
		ctl_next(c, "replctl help create");
		return err_set(&c->err, REPL_E_INVAL,
			       "create takes one of --size N and --from FILE");
	}
	return c->options.from ? cmd_sync_new(c, c->options.from, args[0])
			       : create_zeros(c, args[0]);
}
