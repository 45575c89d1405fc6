/* SPDX-License-Identifier: BSD-3-Clause */
#include "scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "control.h"
#include "hex.h"

int
scratch_init(struct scratch *s, struct err *e)
{
	uint8_t salt[8];
	char hex[2 * sizeof(salt) + 1];

	if (getrandom(salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	hex_encode(salt, sizeof(salt), hex);
	(void)snprintf(s->prefix, sizeof(s->prefix), "bench-%s", hex);
	return 0;
}

int
scratch_name(struct scratch *s, const char *suffix, const char **name, struct err *e)
{
	if (s->count == SCRATCH_MAX)
		return err_set(e, REPL_E_LIMIT, "more than %d temporary pools", SCRATCH_MAX);
	if (asprintf(&s->names[s->count], "%s%s", s->prefix, suffix) < 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	*name = s->names[s->count++];
	return 0;
}

static void
forget_last(struct scratch *s)
{
	free(s->names[--s->count]);
	s->names[s->count] = NULL;
}

static int
remove_all(struct scratch *s, struct ctl *c)
{
	while (s->count) {
		struct json_object *params = json_object_new_object();
		int rc;

		control_add(params, "name", json_object_new_string(s->names[s->count - 1]));
		rc = remote_call(c->remote, "pool.remove", params, NULL, &c->err);
		if (rc && rc != REPL_E_NOT_FOUND)
			return rc;
		err_clear(&c->err);
		forget_last(s);
	}
	return 0;
}

static int
remove_again(struct scratch *s, struct ctl *c)
{
	int rc;

	ctl_disconnect(c);
	err_clear(&c->err);
	rc = ctl_connect(c);
	return rc ? rc : remove_all(s, c);
}

void
scratch_clear(struct scratch *s, struct ctl *c)
{
	struct err first = c->err;

	if (!c->remote || !s->count)
		return;
	if (first.code && remote_next_step(c->remote)[0])
		ctl_next(c, "%s", remote_next_step(c->remote));
	/* Not what the target says of the cleaning. */
	if (first.code)
		ctl_next_by_error(c);
	err_clear(&c->err);
	/* The end of a session lets go of its pool as well. */
	if ((remote_pool_close(c->remote, &c->err) || remove_all(s, c)) && remove_again(s, c)) {
		const char *name = s->names[s->count - 1];

		if (!first.code)
			(void)err_prefix(&c->err, "the temporary pool '%s' stays", name);
		c->next[0] = '\0';
		if (s->count > 1)
			ctl_next(c,
				 "replctl list %s, then replctl remove --force each of its %u "
				 "pools %s*",
				 c->host_text, s->count, s->prefix);
		else
			ctl_next(c, "replctl remove --force %s/%s", c->host_text, name);
	} else {
		err_clear(&c->err);
	}
	while (s->count)
		forget_last(s);
	if (first.code)
		c->err = first;
}
