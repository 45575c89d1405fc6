/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_grow: first every replica makes room, which can be taken back; when all
 * have it they grow, and the local sidecar last.
 */
#include "boot.h"
#include "clock.h"
#include "dirty.h"
#include "entry.h"
#include "holes.h"
#include "mapped.h"
#include "onloss.h"
#include "repl_impl.h"
#include "repl_lanes.h"

static int
grow_check_file(const struct repl *r, size_t size, struct err *e)
{
	uint64_t has = holes_length_at(r->file, r->mem, size);

	if (has >= size)
		return 0;
	return err_set(e, REPL_E_INVAL,
		       "the local file has %llu bytes: make it %zu bytes long first, then grow",
		       (unsigned long long)has, size);
}

/* Of the new part the first and the last byte are looked at. */
static int
grow_check(struct repl *r, size_t size, struct err *e)
{
	size_t now;

	if (handle_check(r, e))
		return e->code;
	now = atomic_load(&r->size);
	if (size > INT64_MAX || (uintptr_t)r->mem > UINTPTR_MAX - size)
		return err_set(e, REPL_E_INVAL, "size %zu is not within the address space", size);
	if (size < now)
		return err_set(e, REPL_E_INVAL, "the range has %zu bytes and can't have only %zu",
			       now, size);
	if (size > now && (!mapped_has(r->mem, size, now) || !mapped_has(r->mem, size, size - 1)))
		return err_set(e, REPL_E_INVAL,
			       "the new part is not mapped behind the range: map %zu bytes at %p",
			       size - now, (void *)(r->mem + now));
	if (size > now && grow_check_file(r, size, e))
		return e->code;
	return size > now ? onloss_check(r, e) : 0;
}

static bool
grow_has(const struct repl *r, unsigned i)
{
	return atomic_load(&r->replicas[i].lost) == 0 && r->replicas[i].remote;
}

/*
 * A target whose pool is not found any more has ended the session with that. One that says that
 * something took too long there has answered.
 */
static bool
grow_is_loss(const struct err *why)
{
	int status = why->code;

	return status == REPL_E_LOST || (status == REPL_E_TIMEOUT && !why->by_target) ||
	       status == REPL_E_UNREACHABLE || status == REPL_E_PROTOCOL ||
	       status == REPL_E_NOT_FOUND;
}

/*
 * What a loss or a label has to tell it comes behind that, and is not begun meanwhile: nor is this
 * amid a loss that is being told.
 */
static int
grow_ask(struct repl *r, unsigned i, size_t size, bool prepare, struct err *e)
{
	struct replica *p = &r->replicas[i];
	uint64_t deadline_ns;
	int rc;

	pthread_mutex_lock(&r->lock);
	deadline_ns = clock_deadline(r->cfg->op_timeout_ms);
	atomic_store(&p->grows_until_ns, deadline_ns);
	pthread_mutex_unlock(&r->lock);
	rc = remote_pool_grow(p->remote, size, prepare, deadline_ns, e);
	atomic_store(&p->grows_until_ns, 0);
	/* Its keeper, if there is a label to be told. */
	repl_wake(r);
	return rc;
}

static void
grow_lose(struct repl *r, unsigned i, const struct err *why)
{
	repl_lose(r, i, why->code, why->text, repl_loss_deadline(r));
}

static int
grow_prepare(struct repl *r, size_t size, struct err *e)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct err why;

		err_clear(&why);
		if (!grow_has(r, i) || !grow_ask(r, i, size, true, &why))
			continue;
		if (!grow_is_loss(&why))
			return err_set(e, why.code, "replica %u: %s", i, why.text);
		grow_lose(r, i, &why);
	}
	return onloss_check(r, e);
}

static void
grow_give_up(struct repl *r)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (grow_has(r, i))
			(void)grow_ask(r, i, atomic_load(&r->size), true, NULL);
	}
}

/* All have the room: who does not grow now is of no use any more. */
static int
grow_replicas(struct repl *r, size_t size, struct err *e)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct err why;

		err_clear(&why);
		if (grow_has(r, i) && grow_ask(r, i, size, false, &why))
			grow_lose(r, i, &why);
	}
	return onloss_check(r, e);
}

/*
 * The replicas have grown, and there is no way back: a sidecar that can't be written is told
 * the size with what is stored next, or at the next opening.
 */
static void
grow_local(struct repl *r, size_t size)
{
	pthread_mutex_lock(&r->lock);
	r->local.meta.pool_size = size;
	(void)local_store(&r->local, NULL);
	pthread_mutex_unlock(&r->lock);
}

static int
grow_dirty(struct repl *r, size_t size, struct err *e)
{
	int rc;

	if (!r->dirty)
		return 0;
	pthread_mutex_lock(&r->lock);
	rc = dirty_grow(r->dirty, size, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static void
grow_dirty_undo(struct repl *r)
{
	if (!r->dirty)
		return;
	pthread_mutex_lock(&r->lock);
	dirty_grow_undo(r->dirty, atomic_load(&r->size));
	pthread_mutex_unlock(&r->lock);
}

/* The kernel tells an error once, and what was lost is clean then: the record says so from now on.
 */
static int
grow_settle(struct repl *r, size_t size, struct err *e)
{
	int rc = r->local.path ? local_settle_size(r->mem, size, e) : 0;

	if (rc) {
		pthread_mutex_lock(&r->lock);
		r->local.lost = true;
		boot_none(&r->local.meta.boot);
		(void)local_store(&r->local, NULL);
		pthread_mutex_unlock(&r->lock);
	}
	return rc;
}

static int
grow_run(struct repl *r, size_t size, struct err *e)
{
	int rc = grow_settle(r, size, e);

	if (!rc)
		rc = grow_dirty(r, size, e);
	if (rc)
		return rc;
	rc = grow_prepare(r, size, e);
	if (rc) {
		grow_give_up(r);
		return rc;
	}
	rc = grow_replicas(r, size, e);
	grow_local(r, size);
	atomic_store_explicit(&r->size, size, memory_order_release);
	return rc;
}

int
repl_grow(struct repl *r, size_t new_size)
{
	ENTRY_WHOLE();
	struct err e;
	int rc;

	err_clear(&e);
	/* What has nothing to do interrupts nobody who brings a replica back. */
	rc = grow_check(r, new_size, &e);
	if (rc)
		return config_report(&e);
	if (new_size == atomic_load(&r->size))
		return 0;
	/* Before the lock, for which a resync may wait. */
	rc = repl_resync_suspend(r, &e);
	if (rc)
		return config_report(&e);
	pthread_mutex_lock(&r->grow_lock);
	rc = grow_check(r, new_size, &e);
	if (!rc && new_size > atomic_load(&r->size))
		rc = grow_run(r, new_size, &e);
	/* Before resyncs go on. */
	if (rc && new_size > atomic_load(&r->size))
		grow_dirty_undo(r);
	pthread_mutex_unlock(&r->grow_lock);
	repl_resync_resume(r);
	return rc ? config_report(&e) : 0;
}
