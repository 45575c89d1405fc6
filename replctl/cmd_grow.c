/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl grow TARGET/pool --size N */
#include <inttypes.h>
#include <stdio.h>

#include "clock.h"
#include "commands.h"
#include "conffile.h"
#include "control.h"
#include "out.h"

/* As its writer, who leaves the state as it was. */
static int
grow_open_pool(struct ctl *c, uint64_t size)
{
	const struct replica_info *info = remote_info(c->remote);
	enum sidecar_state state = info->meta.state;
	uint64_t deadline_ns = clock_deadline(remote_op_timeout_ms(c->remote));
	int rc;

	if (size < info->meta.pool_size)
		return err_set(&c->err, REPL_E_INVAL,
			       "%s has %" PRIu64 " bytes already, and a pool does not shrink",
			       c->target_text, info->meta.pool_size);
	rc = remote_pool_grow(c->remote, size, false, deadline_ns, &c->err);
	if (!rc && remote_info(c->remote)->meta.state != state)
		rc = err_set(&c->err, REPL_E_FAILED, "%s was %s and is %s now", c->target_text,
			     sidecar_state_name(state),
			     sidecar_state_name(remote_info(c->remote)->meta.state));
	return rc;
}

int
cmd_grow(struct ctl *c, char **args)
{
	struct json_object *answer;
	char human[OUT_NUMBER_MAX];
	uint64_t size = 0;
	int rc;

	if (!c->options.size)
		return err_set(&c->err, REPL_E_INVAL, "grow takes --size N: how large it is to be");
	if (parse_size(c->options.size, &size) || size == 0 || size > INT64_MAX)
		return err_set(&c->err, REPL_E_INVAL,
			       "--size '%s' is not a positive number of bytes, e.g. 65536, 64M, 2G",
			       c->options.size);
	rc = ctl_target(c, args[0], CTL_POOL);
	if (!rc)
		rc = ctl_connect(c);
	if (!rc)
		rc = remote_pool_open(c->remote, c->target.pool, REMOTE_WRITE, &c->err);
	if (!rc)
		rc = grow_open_pool(c, size);
	if (!rc)
		rc = remote_pool_close(c->remote, &c->err);
	if (rc)
		return rc;
	out_size(size, human);
	if (!c->options.json)
		(void)printf("the pool %s has %s\n", c->target_text, human);
	answer = json_object_new_object();
	control_add(answer, "name", json_object_new_string(c->target.pool));
	control_add(answer, "size", json_object_new_uint64(size));
	ctl_answer(c, answer);
	return 0;
}
