/* SPDX-License-Identifier: BSD-3-Clause */
/* One replica's pool at its opening, or when its keeper gets it back: found or made, ours to write
 * to, and of the range's size. */
#include "replica_open.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "claim.h"
#include "clock.h"
#include "control.h"
#include "poolname.h"
#include "replica_judge.h"
#include "repl_impl.h"
#include "text.h"
#include "transfer.h"

#define REPL_PAGE        4096U
#define REPL_CLAIM_TRIES 4U /* that others may take a new pool away, or remove it */

static int
replica_create(struct repl *r, struct remote *remote, const char *pool, unsigned flags,
	       struct err *e)
{
	struct json_object *params = json_object_new_object();
	char uuid[GEN_TEXT_SIZE];

	control_add(params, "name", json_object_new_string(pool));
	control_add(params, "size", json_object_new_int64((int64_t)r->size));
	gen_id_format(&r->local.meta.pool_uuid, uuid);
	control_add(params, "uuid", json_object_new_string(uuid));
	if (flags & REPL_OPEN_SPARSE)
		control_add(params, "sparse", json_object_new_boolean(true));
	/* Should nothing come of this opening, for whatever reason, it leaves nothing behind. */
	control_add(params, "provisional", json_object_new_boolean(true));
	control_add(params, "again", json_object_new_boolean(true));
	return remote_call(remote, "pool.create", params, NULL, e);
}

/* Whether it holds nothing but what is known to be here, too: else it may be the only copy. */
static bool
replica_spare(struct repl *r, const struct remote *remote)
{
	struct judge_input in = {.replica = &remote_info(remote)->meta};
	struct sidecar local;
	struct judgement j;

	pthread_mutex_lock(&r->lock);
	local = r->local.meta;
	/* A file of zeros is not what its record speaks of. */
	if (r->ready || (r->local.present && !r->blank))
		in.local = &local;
	pthread_mutex_unlock(&r->lock);
	replica_judge(&in, &j);
	return j.verdict != JUDGE_REFUSE;
}

/*
 * The range has grown since the replica was its copy: it follows. Not one that is going to be
 * refused, which is left as it is.
 */
static int
replica_follow(struct repl *r, struct remote *remote, size_t size, struct err *e)
{
	const struct sidecar *meta = &remote_info(remote)->meta;
	enum gen_relation relation;
	bool known;
	int rc;

	pthread_mutex_lock(&r->lock);
	known = r->local.present || r->ready;
	relation = gen_compare(&r->local.meta.generation, &meta->generation);
	pthread_mutex_unlock(&r->lock);
	if (!known || meta->pool_size >= size)
		return 0;
	if ((relation != GEN_EQUAL && relation != GEN_AHEAD) || !replica_spare(r, remote))
		return 0;
	rc = remote_pool_grow(remote, size, false, clock_deadline(remote_op_timeout_ms(remote)), e);
	/* Files of a set and a device have a bound as well, and take whole pages only: to the
	 * others it is as a full disk. */
	if (rc == REPL_E_INVAL && size % REPL_PAGE && r->replica_count > 1) {
		(void)err_because(e, REPL_REASON_SIZE);
		rc = REPL_E_REFUSED;
	}
	if (rc == REPL_E_REFUSED)
		rc = e->code = REPL_E_NOSPC;
	return rc;
}

bool
replica_elsewhere(const struct repl *r)
{
	return r->local.path && !r->file;
}

void
replica_take_by(const struct repl *r, const char *replica, char out[REPLICA_TAKE_MAX])
{
	char file[REPLICA_TAKE_MAX / 6];

	if (!replica_elsewhere(r) || !text_quote(r->cfg->pool_file, file, sizeof(file)))
		(void)snprintf(out, REPLICA_TAKE_MAX, "replctl restore --force %s FILE", replica);
	else if (poolname_is_device(r->cfg->pool_file))
		(void)snprintf(out, REPLICA_TAKE_MAX,
			       "mv %s %s.device; replctl restore %s %s; copy it to the device, "
			       "then mv -f %s.device %s, before the program starts",
			       file, file, replica, file, file, file);
	else
		(void)snprintf(out, REPLICA_TAKE_MAX,
			       "replctl restore %s %s; where that is not what is mapped, as of a "
			       "device, copy it there, and remove it, not %s, before the program "
			       "starts",
			       replica, file, r->local.path);
}

int
replica_differs_elsewhere(const struct repl *r, const struct remote *remote, struct err *e)
{
	char text[TARGET_TEXT_MAX], word[TARGET_TEXT_MAX * 4], take[REPLICA_TAKE_MAX];

	target_format(remote_target(remote), text, sizeof(text));
	(void)text_quote(text, word, sizeof(word));
	replica_take_by(r, word, take);
	return err_suffix(e,
			  "; nothing was changed. To take the replica's data: %s; to have it anew: "
			  "replctl remove %s",
			  take, word);
}

/* What the target says of a refusal, and what helps, in names of this side. */
static int
replica_refused(const struct remote *remote, struct err *e)
{
	char next[512];

	claim_next(remote, next, sizeof(next));
	if (!next[0])
		return e->code;
	return err_suffix(e, "; nothing was changed; next: %s", next);
}

/*
 * Open for writing under our chain. Refused for that, and of equal contents all the
 * same, it is opened as if it were ours; not once the program is at work, which would have to
 * stop for the comparison.
 */
static int
replica_claim(struct repl *r, struct remote *remote, struct err *e)
{
	const struct transfer t = {.remote = remote,
				   .file = r->file,
				   .deadline_ns = clock_deadline(r->cfg->resync_timeout_ms)};
	const char *pool = remote_target(remote)->pool;
	struct generation chain;
	struct err why;
	bool ready;
	int rc;

	memset(&chain, 0, sizeof(chain));
	pthread_mutex_lock(&r->lock);
	ready = r->ready;
	if (ready)
		chain = r->generation;
	else if (r->local.present)
		chain = r->local.meta.generation;
	pthread_mutex_unlock(&r->lock);
	rc = remote_pool_open_as(remote, pool, &chain, false, e);
	if (rc == REPL_E_REFUSED || rc == REPL_E_BUSY)
		return replica_refused(remote, e);
	if (rc != REPL_E_DIVERGED)
		return rc;
	rc = replica_elsewhere(r) ? replica_differs_elsewhere(r, remote, e)
				  : replica_refused(remote, e);
	if (ready || (r->flags & REPL_OPEN_NO_COMPARE))
		return rc;
	err_clear(&why);
	rc = claim_equal(&t, pool, r->mem, r->size, &why);
	if (rc != REPL_E_DIFFER)
		*e = why;
	return e->code;
}

/* Of several that make it at a time one makes it, and who comes next may open it. */
static int
replica_claim_or_create(struct repl *r, struct remote *remote, bool *made_now, struct err *e)
{
	const char *pool = remote_target(remote)->pool;
	int made = 0, rc = replica_claim(r, remote, e);
	bool absent = rc == REPL_E_NOT_FOUND;
	struct err why;

	for (unsigned i = 0; rc == REPL_E_NOT_FOUND && i < REPL_CLAIM_TRIES; i++) {
		err_clear(&why);
		made = replica_create(r, remote, pool, r->flags, &why);
		if (made && made != REPL_E_EXISTS) {
			*e = why;
			return made;
		}
		err_clear(e);
		rc = replica_claim(r, remote, e);
	}
	/* By whom of them it is made does not matter: it holds nothing but zeros. */
	if (absent && !rc)
		*made_now = true;
	/* What is there is no pool. */
	if (rc == REPL_E_NOT_FOUND && made) {
		*e = why;
		rc = made;
	}
	return rc;
}

/* A short op-timeout is about the program's calls, none of which waits for this replica yet. */
unsigned
repl_connect_ms(const struct repl_config *c)
{
	return c->connect_timeout_ms > c->op_timeout_ms ? c->connect_timeout_ms : c->op_timeout_ms;
}

/* The file may have been made anew, larger, beside the record of a lost one. */
static int
replica_outgrown_by_zeros(const struct repl *r, const struct remote *remote, const char *word,
			  struct err *e)
{
	size_t size = atomic_load(&r->size);
	char take[REPLICA_TAKE_MAX];

	replica_take_by(r, word, take);
	return err_set(e, REPL_E_DIVERGED,
		       "the local file holds nothing but zeros, though by its record it was "
		       "written, and the replica has %" PRIu64 " bytes, the local range %zu; "
		       "nothing was changed. To take the replica's data: %s; where zeros are "
		       "what was written: replctl grow %s --size %zu",
		       remote_info(remote)->meta.pool_size, size, take, word, size);
}

/*
 * A larger one has grown by itself (replctl grow), or with a program that was killed over it. No
 * pool shrinks, so the range must follow, or a new one take its place.
 */
static int
replica_check_size(struct repl *r, const struct remote *remote, size_t size, struct err *e)
{
	uint64_t theirs = remote_info(remote)->meta.pool_size;
	char text[TARGET_TEXT_MAX], word[TARGET_TEXT_MAX * 4], next[sizeof(word) + 256];

	if (theirs == size)
		return 0;
	/* It was lost over that, and its file has the size that the others are to get. */
	if (repl_grows(r) || atomic_load(&r->size) != size) {
		(void)err_set(e, REPL_E_BUSY, "repl_grow() is under way");
		return err_because(e, REPL_REASON_RESYNCING);
	}
	target_format(remote_target(remote), text, sizeof(text));
	(void)text_quote(text, word, sizeof(word));
	if (theirs < size && r->blank && !replica_spare(r, remote))
		return replica_outgrown_by_zeros(r, remote, word, e);
	if (theirs < size)
		(void)snprintf(next, sizeof(next),
			       "replctl grow %s --size %zu, if it is the right one", word, size);
	else if (replica_spare(r, remote))
		(void)snprintf(next, sizeof(next),
			       "give the local file %" PRIu64 " bytes, too (truncate -s %" PRIu64
			       " FILE), and map all of it; or replctl remove %s, and the replica "
			       "is made anew",
			       theirs, theirs, word);
	else
		(void)snprintf(next, sizeof(next),
			       "to take the replica's data, which may be nowhere else: replctl "
			       "restore %s OTHER-FILE; if it is another pool's, give this one "
			       "another name there",
			       word);
	return err_set(e, REPL_E_INVAL,
		       "pool '%s' on the target has %" PRIu64
		       " bytes, the local range has %zu; they must be equal; nothing was changed; "
		       "next: %s",
		       remote_target(remote)->pool, theirs, size, next);
}

int
repl_open_pool(struct repl *r, struct remote *remote, bool *made_now, struct err *e)
{
	size_t size;
	int rc;

	if (r->set)
		return repl_set_open_pool(r, remote, e);
	rc = r->flags & REPL_OPEN_CREATE ? replica_claim_or_create(r, remote, made_now, e)
					 : replica_claim(r, remote, e);
	if (!rc)
		rc = remote_refuse_headers(remote, e);
	if (rc)
		return rc;
	/* One that has grown once more by then is left for the resync to see. */
	size = atomic_load(&r->size);
	rc = replica_follow(r, remote, size, e);
	return rc ? rc : replica_check_size(r, remote, size, e);
}
