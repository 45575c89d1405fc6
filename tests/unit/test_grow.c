/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the replicas have grown the range has: one that is lost later comes back with the size of
 * the range, or not at all. A loss fails the call by on-loss, and where a drain needs the replica.
 */
#include "unit.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "../../librepl/src/onloss.c"
#include "../../librepl/src/repl_grow.c"

#define REPLICAS 2U
#define SIZE     (4 * 4096)
#define LARGER   (8 * 4096)

/* ---- targets that have room or not, a dirty map, and a local sidecar ---- */

struct remote {
	uint64_t size, prepared;
	int refuses, refuses_growth; /* to make room, or only what is behind that */
	bool says_so;                /* the target itself */
};

static struct remote remotes[REPLICAS];
static uint32_t queued; /* replicas; of these as many are needed as drains need */
static unsigned needed;
static uint64_t map_size, stored_size;
static struct gen_id stored_boot;
static int store_rc, settle_rc;
static unsigned suspended; /* resyncs, so often */
static unsigned asked, woken;
static struct repl *handle;

int
remote_pool_grow(struct remote *r, uint64_t size, bool prepare, uint64_t deadline_ns, struct err *e)
{
	asked++;
	/* A loss may be recorded meanwhile, and has to know. */
	assert_true(atomic_load(&handle->replicas[r - remotes].grows_until_ns) == deadline_ns);
	assert_int_equal(pthread_mutex_trylock(&handle->lock), 0);
	pthread_mutex_unlock(&handle->lock);
	if (r->refuses && size > r->size) {
		(void)err_set(e, r->refuses, "no room");
		e->by_target = r->says_so;
		return r->refuses;
	}
	if (r->refuses_growth && !prepare)
		return err_set(e, r->refuses_growth, "gone");
	if (!prepare)
		r->size = size;
	r->prepared = prepare ? size : 0;
	return 0;
}

void
repl_wake(struct repl *r)
{
	(void)r;
	woken++;
}

/* As in repl_loss.c; false in a child, which has come back to it. */
bool
repl_reason_lock(struct repl *r)
{
	return !r->abandoned && pthread_mutex_lock(&r->reason_lock) == 0;
}

int
handle_abandoned(struct err *e)
{
	return err_set(e, REPL_E_LOST, "the parent's");
}

int
handle_check(const struct repl *r, struct err *e)
{
	(void)e;
	return r ? 0 : REPL_E_INVAL;
}

uint64_t
holes_length_at(const char *path, const void *addr, uint64_t size)
{
	(void)path;
	(void)addr;
	return size;
}

bool
mapped_has(const uint8_t *mem, size_t size, size_t at)
{
	return mem != NULL && at < size;
}

int
dirty_grow(struct dirty *d, uint64_t size, struct err *e)
{
	(void)d;
	(void)e;
	map_size = size;
	return 0;
}

void
dirty_grow_undo(struct dirty *d, uint64_t size)
{
	(void)d;
	map_size = size;
}

int
local_settle_size(const void *mem, uint64_t size, struct err *e)
{
	(void)mem;
	(void)size;
	return settle_rc ? err_set(e, settle_rc, "the file can't be synced") : 0;
}

int
local_store(struct local *l, struct err *e)
{
	if (store_rc)
		return err_set(e, store_rc, "the sidecar can't be written");
	stored_size = l->meta.pool_size;
	stored_boot = l->meta.boot;
	return 0;
}

void
repl_lose(struct repl *r, unsigned replica, int status, const char *why, uint64_t deadline_ns)
{
	(void)why;
	(void)deadline_ns;
	atomic_store(&r->replicas[replica].lost, status);
}

uint64_t
repl_loss_deadline(const struct repl *r)
{
	return clock_deadline(r->cfg->op_timeout_ms / 4);
}

bool
ship_serves(const struct ship *s, unsigned replica)
{
	(void)s;
	return queued >> replica & 1;
}

bool
ship_enough(struct ship *s)
{
	const struct repl *r = (void *)s;
	unsigned live = 0;

	for (unsigned i = 0; r && i < REPLICAS; i++)
		live += (queued >> i & 1) && !atomic_load(&r->replicas[i].lost);
	return live >= needed;
}

unsigned
config_needed(const struct repl_config *c)
{
	(void)c;
	return needed;
}

int
ship_few(struct ship *s, struct err *e)
{
	(void)s;
	return err_set(e, REPL_E_LOST, "too few");
}

int
repl_resync_suspend(struct repl *r, struct err *e)
{
	(void)r;
	(void)e;
	suspended++;
	return 0;
}

void
repl_resync_resume(struct repl *r)
{
	(void)r;
}

int
config_report(const struct err *e)
{
	return e->code;
}

static struct repl_config cfg;

static struct repl *
range_new(void)
{
	struct repl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	handle = r;
	cfg.op_timeout_ms = 1000;
	cfg.on_loss = REPL_ON_LOSS_DEGRADE;
	queued = needed = suspended = 0;
	r->cfg = &cfg;
	r->ship = (void *)r;
	r->dirty = (void *)r; /* there is one */
	r->mem = mmap(NULL, LARGER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(r->mem != MAP_FAILED);
	r->size = r->local.meta.pool_size = map_size = stored_size = SIZE;
	store_rc = 0;
	r->replica_count = REPLICAS;
	for (unsigned i = 0; i < REPLICAS; i++) {
		remotes[i] = (struct remote){.size = SIZE};
		r->replicas[i].remote = &remotes[i];
	}
	assert_int_equal(pthread_mutex_init(&r->lock, NULL), 0);
	assert_int_equal(pthread_mutex_init(&r->grow_lock, NULL), 0);
	return r;
}

static void
range_free(struct repl *r)
{
	for (unsigned i = 0; i < REPLICAS; i++)
		assert_true(atomic_load(&r->replicas[i].grows_until_ns) == 0);
	/* Keepers, who may have a label for it that waits for that. */
	assert_int_equal(woken, asked);
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_mutex_destroy(&r->grow_lock);
	(void)munmap(r->mem, LARGER);
	free(r);
}

/* A sidecar of less than the file's size is one that was cut off: the next opening takes it. */
static void
growth_holds_without_the_local_sidecar(void **state)
{
	struct repl *r = range_new();

	(void)state;
	store_rc = REPL_E_IO;
	assert_int_equal(repl_grow(r, LARGER), 0);
	for (unsigned i = 0; i < REPLICAS; i++)
		assert_int_equal(remotes[i].size, atomic_load(&r->size));
	assert_int_equal(map_size, atomic_load(&r->size));
	/* Whatever is recorded next has the size. */
	store_rc = 0;
	assert_int_equal(local_store(&r->local, NULL), 0);
	assert_int_equal(stored_size, LARGER);
	range_free(r);
}

static void
growth_that_is_refused_leaves_all_as_it_was(void **state)
{
	struct repl *r = range_new();

	(void)state;
	remotes[1].refuses = REPL_E_NOSPC;
	assert_int_equal(repl_grow(r, LARGER), REPL_E_NOSPC);
	for (unsigned i = 0; i < REPLICAS; i++)
		assert_int_equal(remotes[i].size, SIZE);
	assert_int_equal(remotes[0].prepared, SIZE);
	assert_int_equal(atomic_load(&r->size), SIZE);
	assert_int_equal(map_size, SIZE);
	assert_int_equal(stored_size, SIZE);
	range_free(r);
}

/* Else a power cut may leave a file that is shorter than its record says. */
static void
a_length_that_is_not_on_media_is_recorded_nowhere(void **state)
{
	struct repl *r = range_new();
	char path[] = "local.repl";
	struct gen_id none;

	(void)state;
	r->local.path = path;
	settle_rc = REPL_E_IO;
	assert_int_equal(repl_grow(r, LARGER), REPL_E_IO);
	settle_rc = 0;
	/* The kernel tells an error once: the record has it. */
	assert_true(r->local.lost);
	/* Also if it is killed before it closes the pool. */
	boot_none(&none);
	assert_true(gen_id_equal(&stored_boot, &none));
	for (unsigned i = 0; i < REPLICAS; i++)
		assert_int_equal(remotes[i].size, SIZE);
	assert_int_equal(atomic_load(&r->size), SIZE);
	assert_int_equal(map_size, SIZE);
	assert_int_equal(stored_size, SIZE);
	range_free(r);
}

/* Nor is a resync cut short for it, by which the replica may come back. */
static void
one_that_is_lost_fails_the_call_where_the_policy_says_so(void **state)
{
	struct repl *r = range_new();

	(void)state;
	cfg.on_loss = REPL_ON_LOSS_FAIL;
	atomic_store(&r->replicas[1].lost, REPL_E_TIMEOUT);
	assert_int_equal(repl_grow(r, LARGER), REPL_E_LOST);
	assert_int_equal(suspended, 0);
	assert_int_equal(remotes[0].size, SIZE);
	assert_int_equal(remotes[0].prepared, 0);
	assert_int_equal(atomic_load(&r->size), SIZE);
	assert_int_equal(repl_grow(r, SIZE), 0);
	cfg.on_loss = REPL_ON_LOSS_DEGRADE;
	assert_int_equal(repl_grow(r, LARGER), 0);
	assert_int_equal(remotes[0].size, LARGER);
	range_free(r);
}

static void
a_loss_on_the_way_fails_the_call_where_the_policy_says_so(void **state)
{
	struct repl *r = range_new();

	(void)state;
	cfg.on_loss = REPL_ON_LOSS_FAIL;
	remotes[1].refuses = REPL_E_TIMEOUT;
	assert_int_equal(repl_grow(r, LARGER), REPL_E_LOST);
	assert_int_equal(remotes[0].size, SIZE);
	assert_int_equal(remotes[0].prepared, SIZE);
	assert_int_equal(atomic_load(&r->size), SIZE);
	range_free(r);

	/* Too late for a way back. */
	r = range_new();
	cfg.on_loss = REPL_ON_LOSS_FAIL;
	remotes[1].refuses_growth = REPL_E_TIMEOUT;
	assert_int_equal(repl_grow(r, LARGER), REPL_E_LOST);
	assert_int_equal(remotes[0].size, LARGER);
	assert_int_equal(atomic_load(&r->size), LARGER);
	range_free(r);
}

/* A disk that stalls there is no loss: the target has answered. */
static void
target_for_which_it_takes_too_long_is_not_lost(void **state)
{
	struct repl *r = range_new();

	(void)state;
	remotes[1].refuses = REPL_E_TIMEOUT;
	remotes[1].says_so = true;
	assert_int_equal(repl_grow(r, LARGER), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_int_equal(remotes[0].size, SIZE);
	assert_int_equal(atomic_load(&r->size), SIZE);
	range_free(r);
}

/* Of one that is damaged the program is told. */
static void
growth_goes_on_without_a_pool_that_is_gone(void **state)
{
	struct repl *r = range_new();

	(void)state;
	remotes[1].refuses = REPL_E_CORRUPT;
	assert_int_equal(repl_grow(r, LARGER), REPL_E_CORRUPT);
	assert_int_equal(atomic_load(&r->size), SIZE);
	remotes[1].refuses = REPL_E_NOT_FOUND;
	assert_int_equal(repl_grow(r, LARGER), 0);
	assert_int_equal(atomic_load(&r->replicas[1].lost), REPL_E_NOT_FOUND);
	assert_int_equal(remotes[0].size, LARGER);
	range_free(r);
}

/* An asynchronous one, or one of more than a quorum. */
static void
the_loss_of_one_that_no_drain_needs_fails_no_call(void **state)
{
	(void)state;
	for (int both = 0; both < 2; both++) {
		for (int late = 0; late < 3; late++) {
			struct repl *r = range_new();

			cfg.on_loss = REPL_ON_LOSS_FAIL;
			queued = both ? 3 : 2;
			needed = both ? 1 : 0;
			remotes[1].refuses = late == 1 ? REPL_E_LOST : 0;
			remotes[1].refuses_growth = late == 2 ? REPL_E_LOST : 0;
			atomic_store(&r->replicas[1].lost, late == 0 ? REPL_E_LOST : 0);
			assert_int_equal(repl_grow(r, LARGER), 0);
			assert_int_equal(remotes[0].size, LARGER);
			assert_int_equal(atomic_load(&r->size), LARGER);
			range_free(r);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_holds_without_the_local_sidecar),
		cmocka_unit_test(growth_that_is_refused_leaves_all_as_it_was),
		cmocka_unit_test(a_length_that_is_not_on_media_is_recorded_nowhere),
		cmocka_unit_test(one_that_is_lost_fails_the_call_where_the_policy_says_so),
		cmocka_unit_test(a_loss_on_the_way_fails_the_call_where_the_policy_says_so),
		cmocka_unit_test(target_for_which_it_takes_too_long_is_not_lost),
		cmocka_unit_test(growth_goes_on_without_a_pool_that_is_gone),
		cmocka_unit_test(the_loss_of_one_that_no_drain_needs_fails_no_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
