/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A growth that comes between the end of a resync and the replica's installation waits for the
 * installation and does not cut it short. A pause that comes between the connection and the resync
 * is not forgotten over that. While lanes are opened anew nothing is held that a loss waits for.
 * What is marked of a replica is believed as long as nobody else has opened it for writing.
 */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "dirty.h"
#include "hold.h"
#include "keeper.h"
#include "keeper_impl.h"
#include "remote_impl.h"
#include "siblings.h"

#define INSTALL_MS 500U /* until the target has opened other lanes */
#define POOL_SIZE  (1UL << 20)

/* ---- the target, and what is not looked at here ---- */

static _Atomic unsigned installing, installed;
static struct repl *paused_late; /* as soon as its replica is connected */
static _Atomic bool unanswered;  /* what a resync tells amid its rounds; then the next one waits */
static _Atomic bool held;
static struct repl *handle;
static _Atomic unsigned locked; /* lanes that were opened with something held */
static uint32_t opened_epoch;   /* of what is opened next, if it is not 0 */
static int opened_rc;
static _Atomic unsigned forsaken;

int __wrap_remote_new(const struct repl_config *c, const struct target *t,
		      const struct remote_hooks *hooks, struct remote **out, struct err *e);
int __wrap_repl_open_pool(struct repl *r, struct remote *remote, bool *made_now, struct err *e);
int __wrap_remote_lanes_open_bare(struct remote *r, unsigned count, struct err *e);
int __wrap_remote_lanes_reopen(struct remote *r, unsigned count, struct err *e);
int __wrap_resync_run(struct resync *s, enum resync_what what,
		      const struct generation *(*chain)(void *arg), struct err *e);
int __wrap_remote_ping(struct remote *r, struct json_object *params, unsigned timeout_ms,
		       const _Atomic int *cancel, struct err *e);
int __wrap_remote_beat(struct remote *r, struct err *e);
void __wrap_remote_detach(struct remote *r);
void __wrap_remote_free(struct remote *r, unsigned timeout_ms);
char *__wrap_repl_profile_text(struct remote *remote);
enum dirty_trust __wrap_dirty_found(const struct dirty *d, unsigned replica,
				    const struct gen_id *current);
int __wrap_dirty_track_found(struct dirty *d, unsigned replica, const struct gen_id *has);
void __wrap_dirty_untrack(struct dirty *d, unsigned replica);
bool __wrap_dirty_tracked(const struct dirty *d, unsigned replica);
void __wrap_dirty_forsake(struct dirty *d, unsigned replica);

int
__wrap_remote_new(const struct repl_config *c, const struct target *t,
		  const struct remote_hooks *hooks, struct remote **out, struct err *e)
{
	struct remote *r = calloc(1, sizeof(*r));

	(void)c;
	(void)t;
	(void)e;
	assert_non_null(r);
	r->cancel = hooks->cancel;
	r->heartbeat_ms = 500;
	r->info.meta.pool_size = POOL_SIZE;
	*out = r;
	return 0;
}

int
__wrap_repl_open_pool(struct repl *r, struct remote *remote, bool *made_now, struct err *e)
{
	(void)r;
	(void)made_now;
	remote->epoch = opened_epoch;
	return opened_rc ? err_set(e, opened_rc, "another size") : 0;
}

int
__wrap_remote_lanes_open_bare(struct remote *r, unsigned count, struct err *e)
{
	(void)r;
	(void)count;
	(void)e;
	if (paused_late)
		keeper_pause(paused_late, 0);
	return 0;
}

static void *
loss_main(void *arg)
{
	struct siblings *s = siblings_lock(handle);

	pthread_mutex_lock(&handle->lock);
	pthread_mutex_unlock(&handle->lock);
	siblings_unlock(s);
	atomic_store((_Atomic bool *)arg, true);
	return NULL;
}

/* Another thread records a loss meanwhile: where it can't it does so behind this. */
static void
loss_is_recorded(void)
{
	static _Atomic bool recorded;
	uint64_t end_ns = clock_deadline(INSTALL_MS);
	pthread_t thread;

	atomic_store(&recorded, false);
	(void)pthread_create(&thread, NULL, loss_main, &recorded);
	(void)pthread_detach(thread);
	while (!atomic_load(&recorded) && clock_now_ns() < end_ns)
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	if (!atomic_load(&recorded))
		atomic_fetch_add(&locked, 1);
}

/* Waits for the target, as all that has to do with it, until it is told to give up. */
int
__wrap_remote_lanes_reopen(struct remote *r, unsigned count, struct err *e)
{
	uint64_t end_ns = clock_deadline(INSTALL_MS);

	(void)count;
	atomic_fetch_add(&installing, 1);
	loss_is_recorded();
	while (clock_now_ns() < end_ns) {
		if (atomic_load(r->cancel))
			return err_set(e, atomic_load(r->cancel), "given up");
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	}
	atomic_fetch_add(&installed, 1);
	return 0;
}

int
__wrap_resync_run(struct resync *s, enum resync_what what,
		  const struct generation *(*chain)(void *arg), struct err *e)
{
	(void)what;
	while (atomic_load(&held))
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	if (s->host.cancelled(s->host.arg))
		return err_set(e, REPL_E_FAILED, "cut short");
	(void)chain(s->host.arg);
	if (atomic_exchange(&unanswered, false)) {
		atomic_store(&held, true);
		return err_set(e, REPL_E_LOST, "no answer");
	}
	return s->host.hold(s->host.arg, clock_deadline(1000), (struct breath){0}, e);
}

int
__wrap_remote_ping(struct remote *r, struct json_object *params, unsigned timeout_ms,
		   const _Atomic int *cancel, struct err *e)
{
	(void)r;
	(void)timeout_ms;
	(void)cancel;
	(void)e;
	json_object_put(params);
	return 0;
}

int
__wrap_remote_beat(struct remote *r, struct err *e)
{
	(void)r;
	(void)e;
	return 0;
}

void
__wrap_remote_detach(struct remote *r)
{
	r->cancel = NULL;
}

void
__wrap_remote_free(struct remote *r, unsigned timeout_ms)
{
	(void)timeout_ms;
	free(r);
}

char *
__wrap_repl_profile_text(struct remote *remote)
{
	(void)remote;
	return NULL;
}

enum dirty_trust
__wrap_dirty_found(const struct dirty *d, unsigned replica, const struct gen_id *current)
{
	(void)d;
	(void)replica;
	(void)current;
	return DIRTY_NONE;
}

int
__wrap_dirty_track_found(struct dirty *d, unsigned replica, const struct gen_id *has)
{
	(void)d;
	(void)replica;
	(void)has;
	return 0;
}

void
__wrap_dirty_untrack(struct dirty *d, unsigned replica)
{
	(void)d;
	(void)replica;
}

bool
__wrap_dirty_tracked(const struct dirty *d, unsigned replica)
{
	(void)d;
	(void)replica;
	return true;
}

void
__wrap_dirty_forsake(struct dirty *d, unsigned replica)
{
	(void)d;
	(void)replica;
	atomic_fetch_add(&forsaken, 1);
}

/* ---- a handle without lanes, whose replica is away ---- */

static struct repl *
handle_new(void)
{
	struct repl *r = calloc(1, sizeof(*r));
	pthread_condattr_t mono;

	assert_non_null(r);
	handle = r;
	assert_int_equal(repl_config_new(&r->cfg), 0);
	assert_int_equal(repl_config_add_target(r->cfg, "away/pool"), 0);
	r->replica_count = 1;
	r->size = POOL_SIZE;
	atomic_store(&r->replicas[0].lost, REPL_E_UNREACHABLE);
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_mutex_init(&r->grow_lock, NULL);
	(void)pthread_mutex_init(&r->reason_lock, NULL);
	(void)pthread_mutex_init(&r->wake_lock, NULL);
	(void)pthread_condattr_init(&mono);
	(void)pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&r->wake, &mono);
	(void)pthread_condattr_destroy(&mono);
	r->wake_made = true;
	return r;
}

static void
handle_free(struct repl *r)
{
	keepers_stop(r);
	free(r->replicas[0].remote);
	free(r->replicas[0].keeper);
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_mutex_destroy(&r->grow_lock);
	(void)pthread_mutex_destroy(&r->reason_lock);
	(void)pthread_mutex_destroy(&r->wake_lock);
	(void)pthread_cond_destroy(&r->wake);
	repl_config_free(r->cfg);
	free(r);
}

static void
growth_lets_an_installation_come_to_its_end(void **state)
{
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(keepers_start(r, &e), 0);
	while (atomic_load(&installing) == 0)
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	/* As repl_grow() begins. */
	if (repl_resync_suspend(r, &e))
		fail_msg("%s", e.text);
	assert_int_equal(atomic_load(&installing), 1);
	assert_int_equal(atomic_load(&installed), 1);
	assert_int_equal(atomic_load(&r->replicas[0].lost), 0);
	repl_resync_resume(r);
	handle_free(r);
}

static void
pause_is_not_forgotten_over_a_resync(void **state)
{
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	atomic_store(&installing, 0);
	paused_late = r;
	assert_int_equal(keepers_start(r, &e), 0);
	while (atomic_load(&r->replicas[0].connection) != REPL_CONN_STANDALONE)
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(atomic_load(&installing), 0);
	/* And it goes on from there. */
	paused_late = NULL;
	keeper_resume(r, 0);
	while (atomic_load(&r->replicas[0].lost))
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	handle_free(r);
}

/* The keeper's next try, as the target counts: what has come of what was marked until then. */
static unsigned
forsaken_by(struct repl *r, uint32_t epoch, int rc)
{
	struct keeper k = {.r = r, .p = &r->replicas[0]};
	unsigned before = atomic_load(&forsaken);
	struct err e;

	err_clear(&e);
	opened_epoch = epoch;
	opened_rc = rc;
	assert_int_equal(keeper_connect(&k, &e).kind, rc ? FSM_FAILED : FSM_CONNECTED);
	free(k.joining);
	opened_epoch = 0;
	opened_rc = 0;
	return atomic_load(&forsaken) - before;
}

/*
 * Another one may have made it equal to an older file of the same generation, and have been ended
 * before it said so; or an earlier copy was put in its place.
 */
static void
marks_are_forsaken_where_others_may_have_written(void **state)
{
	struct repl *r = handle_new();

	(void)state;
	/* Of what was before it was first opened here nothing is known. */
	assert_int_equal(forsaken_by(r, 5, 0), 0);
	assert_int_equal(forsaken_by(r, 6, 0), 0);
	assert_int_equal(forsaken_by(r, 8, 0), 1);
	assert_int_equal(forsaken_by(r, 9, 0), 0);
	assert_int_equal(forsaken_by(r, 9, 0), 1);
	assert_int_equal(forsaken_by(r, 3, 0), 1);
	/* One's own that come to nothing are no others'; what is not opened counts for nothing. */
	assert_int_equal(forsaken_by(r, 4, REPL_E_BUSY), 0);
	assert_int_equal(forsaken_by(r, 5, 0), 0);
	assert_int_equal(forsaken_by(r, 0, REPL_E_UNREACHABLE), 0);
	assert_int_equal(forsaken_by(r, 6, 0), 0);
	assert_int_equal(forsaken_by(r, 8, REPL_E_BUSY), 1);
	assert_int_equal(forsaken_by(r, 9, 0), 0);
	handle_free(r);
}

/* What it may have heard of amid a resync is known of it until it is back. */
static void
what_a_resync_has_told_is_kept(void **state)
{
	struct repl *r = handle_new();
	struct gen_id keep[REPL_BASES_MAX], told = {{7}};
	bool kept = false;
	struct err e;

	(void)state;
	err_clear(&e);
	r->generation.current = told;
	atomic_store(&unanswered, true);
	assert_int_equal(keepers_start(r, &e), 0);
	while (!atomic_load(&held))
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	pthread_mutex_lock(&r->lock);
	for (unsigned n = repl_bases_kept(r, keep); n-- > 0;)
		kept |= gen_id_equal(&keep[n], &told);
	pthread_mutex_unlock(&r->lock);
	atomic_store(&held, false);
	assert_true(kept);
	while (atomic_load(&r->replicas[0].lost))
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	assert_true(gen_id_equal(&r->replicas[0].has, &told));
	assert_true(gen_id_is_nil(&r->replicas[0].told));
	handle_free(r);
}

/* Of a set its siblings, too, who have lost a replica, go on meanwhile. */
static void
lanes_are_opened_with_nothing_held(void **state)
{
	struct repl *r = handle_new();
	struct keeper k = {.r = r, .p = &r->replicas[0]};
	const struct hold_wait wait = {.deadline_ns = clock_deadline(1000), .flag = &k.cancel};
	struct err e;

	(void)state;
	err_clear(&e);
	r->set = calloc(1, sizeof(*r->set));
	assert_non_null(r->set);
	assert_int_equal(siblings_join(r, &e), 0);
	k.joining = calloc(1, sizeof(*k.joining));
	assert_non_null(k.joining);
	k.joining->cancel = &k.cancel;
	assert_true(repl_resync_begin(r));
	assert_int_equal(hold_take(r, 0, &wait, &e), 0);
	assert_int_equal(keeper_install(&k, &e).kind, FSM_INSTALLED);
	assert_int_equal(atomic_load(&locked), 0);
	siblings_leave(r);
	free(r->set);
	r->set = NULL;
	handle_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_lets_an_installation_come_to_its_end),
		cmocka_unit_test(pause_is_not_forgotten_over_a_resync),
		cmocka_unit_test(marks_are_forsaken_where_others_may_have_written),
		cmocka_unit_test(what_a_resync_has_told_is_kept),
		cmocka_unit_test(lanes_are_opened_with_nothing_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
