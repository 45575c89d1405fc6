/* SPDX-License-Identifier: BSD-3-Clause */
#include "claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int
claim_compare(const struct transfer *t, const void *mem, uint64_t size, struct err *e)
{
	uint64_t theirs = remote_info(t->remote)->meta.pool_size;
	struct transfer_progress sum;
	int rc = remote_refuse_headers(t->remote, e);

	if (rc)
		return rc;
	if (theirs != size)
		return err_set(e, REPL_E_DIFFER, "the replica has %" PRIu64 " bytes, not %" PRIu64,
			       theirs, size);
	rc = remote_lanes_open(t->remote, 1, e);
	return rc ? rc : transfer_compare(t, mem, size, NULL, &sum, e);
}

int
claim_equal(const struct transfer *t, const char *pool, const void *mem, uint64_t size,
	    struct err *e)
{
	struct generation seen;
	int rc = remote_pool_open(t->remote, pool, REMOTE_STABLE, e);

	if (rc)
		return rc;
	seen = remote_info(t->remote)->meta.generation;
	rc = claim_compare(t, mem, size, e);
	if (rc) {
		(void)remote_pool_close(t->remote, NULL);
		return rc;
	}
	rc = remote_pool_close(t->remote, e);
	if (!rc)
		rc = remote_pool_open_as(t->remote, pool, NULL, true, e);
	if (!rc && gen_compare(&seen, &remote_info(t->remote)->meta.generation) != GEN_EQUAL)
		rc = err_set(e, REPL_E_DIVERGED, "pool '%s' was written by another meanwhile",
			     pool);
	return rc;
}

/* The word where it stands for the target, not in the name of a pool. */
static const char *
find_target(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	while (at && at > text && at[-1] != ' ' && at[-1] != '\'')
		at = strstr(at + 1, word);
	return at;
}

void
claim_next(const struct remote *r, char *out, size_t size)
{
	static const char word[] = "TARGET";
	const char *text = remote_next_step(r), *at;
	struct target host = *remote_target(r);
	char name[TARGET_TEXT_MAX];
	size_t used = 0;

	host.pool[0] = '\0';
	target_format(&host, name, sizeof(name));
	out[0] = '\0';
	while (*text && used < size) {
		at = find_target(text, word);
		(void)snprintf(out + used, size - used, "%.*s%s",
			       (int)(at ? at - text : (long)strlen(text)), text, at ? name : "");
		used += strlen(out + used);
		text = at ? at + sizeof(word) - 1 : "";
	}
}
