/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replica that is lost never has the generation of those that go on, and
 * takes none of them with it.
 */
#include "unit.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../librepl/src/repl_loss.c"

#define REPLICAS 3U
#define MANY     6U

/* ---- targets that answer, refuse or hang until the deadline ---- */

enum manner { ANSWERS, IS_ASKED, TAKES_TIME, HANGS_AFTER, HANGS, TAKES_NOTHING };

#define ANSWER_NS    (50 * NS_PER_MS) /* what one takes that takes time */
#define PING_NS      (5 * NS_PER_MS)  /* until it has answered its keeper, who asks just then */
#define HEARTBEAT_MS 200U             /* that targets ask for */

struct remote {
	enum manner manner;
	struct generation generation; /* as recorded on the target */
	enum sidecar_state state;
	unsigned cuts;
	uint64_t behind; /* as noted of the replica while the target was told */
	uint64_t taken_ns, heard_ns, silent_ns; /* the answer; from us; for how long it was not */
};

static struct remote remotes[MANY];
static struct repl *handle;

static _Atomic uint64_t clock_ns = NS_PER_S; /* it goes on where something hangs only */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	uint64_t ns = atomic_load(&clock_ns);

	(void)id;
	*ts = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};
	return 0;
}

/* Who is asleep, too. */
int
nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	(void)atomic_fetch_add(&clock_ns, (uint64_t)pause->tv_nsec);
	return 0;
}

void
remote_cut(struct remote *r)
{
	r->cuts++;
}
static int store_rc;
static uint64_t store_ns; /* how long the local disk takes */
static struct repl_config config = {.op_timeout_ms = 1000, .heartbeat_interval_ms = 500};
static uint8_t next_id;
static uint32_t dropped; /* queues that went, and whose ranges no other map has got yet */

void
ship_lost(struct ship *s, unsigned replica)
{
	(void)s;
	dropped |= 1U << replica;
}

bool
ship_serves(const struct ship *s, unsigned replica)
{
	(void)s;
	(void)replica;
	return false;
}

/* What each has of the drains acknowledged, and how many there are; both 0: no queue. */
static uint64_t drains_had[MANY], drains;

/* What generations have ended with, oldest first. */
static struct ship_end {
	struct gen_id id;
	uint64_t last;
} ends[64];
static unsigned ended;

void
ship_ended(struct ship *s, const struct generation *chain)
{
	(void)s;
	ends[ended++] = (struct ship_end){.id = chain->history[0], .last = drains};
}

static bool
is_dropped(const struct generation *chain, const struct gen_id *id)
{
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (gen_id_equal(&chain->history[i], id))
			return false;
	return true;
}

bool
ship_behind(struct ship *s, unsigned replica, struct generation *chain)
{
	(void)s;
	for (unsigned i = 0; i < ended; i++) {
		if (drains_had[replica] >= ends[i].last || is_dropped(chain, &ends[i].id))
			continue;
		gen_forget_since(chain, &ends[i].id);
		atomic_store(&handle->replicas[replica].behind, ends[i].last);
		return true;
	}
	return false;
}

bool
ship_caught_up(struct ship *s, unsigned replica)
{
	uint64_t behind = atomic_load(&handle->replicas[replica].behind);

	(void)s;
	return behind && drains_had[replica] >= behind;
}

void
ship_labelled(struct ship *s, unsigned replica)
{
	(void)s;
	atomic_store(&handle->replicas[replica].behind, 0);
}

uint32_t
ship_awaited(struct ship *s, uint32_t lost, uint32_t live, uint32_t back)
{
	(void)s;
	return lost & ~live & ~back;
}

/* It is no handle of a pool set. */
bool
repl_set_gives_up(const struct repl *r)
{
	(void)r;
	return false;
}

struct siblings *
siblings_lock(struct repl *r)
{
	(void)r;
	return NULL;
}

void
siblings_unlock(struct siblings *s)
{
	(void)s;
}

void
siblings_advance(struct siblings *s, const struct repl *locked, uint64_t deadline_ns)
{
	(void)s;
	(void)locked;
	(void)deadline_ns;
}

static int
hangs(uint64_t deadline_ns, struct err *e)
{
	/* Another thread may look meanwhile. */
	(void)usleep(2000);
	if (clock_now_ns() < deadline_ns)
		atomic_store(&clock_ns, deadline_ns);
	return err_set(e, REPL_E_TIMEOUT, "hangs");
}

int
remote_mark_post(struct remote *r, enum sidecar_state state, const struct generation *g,
		 uint64_t deadline_ns, struct remote_mark *m, struct err *e)
{
	*m = (struct remote_mark){.state = state};
	r->heard_ns = clock_now_ns();
	if (r->manner == TAKES_NOTHING)
		return hangs(deadline_ns, e);
	if (r->manner == IS_ASKED && clock_now_ns() + PING_NS > deadline_ns)
		return hangs(deadline_ns, e);
	r->state = state;
	r->behind = atomic_load(&handle->replicas[r - remotes].behind);
	if (r->manner != HANGS)
		r->generation = *g;
	return 0;
}

/* What has been answered can be taken by any deadline. */
int
remote_mark_take(struct remote *r, const struct remote_mark *m, uint64_t look_ns,
		 uint64_t deadline_ns, bool *there, struct err *e)
{
	bool late = r->manner == TAKES_TIME && clock_now_ns() + ANSWER_NS > deadline_ns;
	int rc = 0;

	(void)m;
	if (r->manner > IS_ASKED && (r->manner != TAKES_TIME || late))
		rc = hangs(look_ns < deadline_ns ? look_ns : deadline_ns, e);
	*there = !rc || clock_now_ns() >= deadline_ns;
	r->taken_ns = clock_now_ns();
	return rc;
}

unsigned
remote_heartbeat_ms(const struct remote *r)
{
	(void)r;
	return HEARTBEAT_MS;
}

int
remote_ping(struct remote *r, struct json_object *params, unsigned timeout_ms,
	    const _Atomic int *cancel, struct err *e)
{
	uint64_t now_ns = clock_now_ns();

	(void)timeout_ms;
	(void)e;
	json_object_put(params);
	assert_true(atomic_load(cancel) != 0);
	if (now_ns - r->heard_ns > r->silent_ns)
		r->silent_ns = now_ns - r->heard_ns;
	r->heard_ns = now_ns;
	return 0;
}

int
remote_pool_mark_by(struct remote *r, enum sidecar_state state, const struct generation *g,
		    uint64_t deadline_ns, struct err *e)
{
	struct remote_mark m;
	int rc = remote_mark_post(r, state, g, deadline_ns, &m, e);
	bool there;

	return rc ? rc : remote_mark_take(r, &m, deadline_ns, deadline_ns, &there, e);
}

/* What the map of each was begun with. */
static struct gen_id base[MANY];

int
dirty_track(struct dirty *d, unsigned replica, const struct gen_id *id)
{
	(void)d;
	base[replica] = *id;
	return 0;
}

/* With what it had in front of it. */
void
dirty_share(struct dirty *d, unsigned replica)
{
	(void)d;
	assert_true(dropped & 1U << replica);
	dropped &= ~(1U << replica);
}

void
pending_trims_mark(struct repl *r, unsigned replica)
{
	(void)r;
	(void)replica;
}

bool
dirty_bases_due(const struct dirty *d)
{
	(void)d;
	return false;
}

void
dirty_note_bases(struct dirty *d)
{
	(void)d;
}

bool
dirty_base(const struct dirty *d, unsigned replica, struct gen_id *id)
{
	(void)d;
	*id = base[replica];
	return !gen_id_is_nil(id);
}

/* The map's region can't be written; whether the record names it still. */
static bool untold, named;

bool
dirty_untold(const struct dirty *d)
{
	(void)d;
	return untold;
}

bool
dirty_disown(struct dirty *d)
{
	bool due = untold && named;

	(void)d;
	named = false;
	return due;
}

void
dirty_recorded(struct dirty *d)
{
	(void)d;
	untold &= named;
}

bool
dirty_media_ok(const struct dirty *d, const char **why)
{
	(void)d;
	*why = untold ? "read-only" : "";
	return !untold;
}

void
statusd_changed(struct statusd *s, unsigned replica)
{
	(void)s;
	(void)replica;
}

int
local_store(struct local *l, struct err *e)
{
	(void)l;
	(void)atomic_fetch_add(&clock_ns, store_ns);
	return store_rc ? err_set(e, store_rc, "no space") : 0;
}

int
local_new_id(struct gen_id *id, struct err *e)
{
	(void)e;
	memset(id, ++next_id, sizeof(*id));
	return 0;
}

static struct repl *
set_new(void)
{
	struct repl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	handle = r;
	memset(remotes, 0, sizeof(remotes));
	memset(base, 0, sizeof(base));
	ended = 0;
	r->dirty = (void *)r; /* there is one */
	r->cfg = &config;
	store_rc = 0;
	store_ns = 0;
	untold = false;
	named = true;
	r->replica_count = REPLICAS;
	for (unsigned i = 0; i < REPLICAS; i++)
		r->replicas[i].remote = &remotes[i];
	assert_int_equal(pthread_mutex_init(&r->lock, NULL), 0);
	assert_int_equal(pthread_mutex_init(&r->reason_lock, NULL), 0);
	assert_int_equal(pthread_mutex_init(&r->wake_lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&r->wake, NULL), 0);
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	r->ready = true;
	return r;
}

static void
set_free(struct repl *r)
{
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_mutex_destroy(&r->reason_lock);
	(void)pthread_mutex_destroy(&r->wake_lock);
	(void)pthread_cond_destroy(&r->wake);
	free(r);
}

static bool
current(const struct repl *r, unsigned i)
{
	return gen_id_equal(&remotes[i].generation.current, &r->generation.current);
}

static void
lost_replica_is_behind(void **state)
{
	struct repl *r = set_new();

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_false(current(r, 0));
	assert_true(current(r, 1) && current(r, 2));
	/* Nothing that is stored from now on may reach it; the others go on. */
	assert_int_equal(remotes[0].cuts, 1);
	assert_int_equal(remotes[1].cuts + remotes[2].cuts, 0);
	assert_int_equal(gen_compare(&r->generation, &remotes[0].generation), GEN_AHEAD);
	assert_true(gen_id_equal(&base[0], &remotes[0].generation.current));
	assert_true(gen_id_is_nil(&base[1]));
	set_free(r);
}

static void
hanging_takes_no_other_with_it(enum manner manner)
{
	struct repl *r = set_new();

	remotes[1].manner = manner;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(900));
	assert_int_equal(atomic_load(&r->replicas[1].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 2));
	set_free(r);
}

static void
one_that_does_not_answer_takes_no_other_with_it(void **state)
{
	(void)state;
	hanging_takes_no_other_with_it(HANGS);
}

/* Its keeper's request comes first, also behind one that takes nothing. */
static void
one_that_takes_no_request_leaves_time_to_one_that_is_asked(void **state)
{
	struct repl *r = set_new();

	(void)state;
	remotes[0].manner = TAKES_NOTHING;
	remotes[1].manner = IS_ASKED;
	repl_lose(r, 2, REPL_E_LOST, "gone", clock_deadline(900));
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_true(current(r, 1));
	set_free(r);
}

/* However many that are: half of the time is left for its answer. */
static void
several_that_take_no_request_leave_time_for_an_answer(void **state)
{
	struct repl *r = set_new();

	(void)state;
	r->replica_count = MANY;
	for (unsigned i = REPLICAS; i < MANY; i++)
		r->replicas[i].remote = &remotes[i];
	for (unsigned i = 0; i < MANY - 2; i++)
		remotes[i].manner = TAKES_NOTHING;
	remotes[MANY - 2].manner = TAKES_TIME;
	repl_lose(r, MANY - 1, REPL_E_LOST, "gone", clock_deadline(800));
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[MANY - 2].lost), 0);
	assert_true(current(r, MANY - 2));
	set_free(r);
}

static void
one_that_takes_no_request_takes_no_other_with_it(void **state)
{
	(void)state;
	hanging_takes_no_other_with_it(TAKES_NOTHING);
}

/* However many hang: all are given up at once, and there is time for those that are well. */
static void
all_that_hang_are_given_up_by_one_deadline(void **state)
{
	struct repl *r = set_new();
	uint64_t begin_ns = clock_now_ns();

	(void)state;
	remotes[0].manner = remotes[1].manner = HANGS;
	assert_int_equal(repl_advance(r, begin_ns + 1000 * NS_PER_MS, NULL), 0);
	assert_int_not_equal(atomic_load(&r->replicas[0].lost), 0);
	assert_int_not_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 2));
	assert_true(clock_now_ns() <= begin_ns + 750 * NS_PER_MS);
	set_free(r);
}

/* Its target may bear silence for less long than another one is awaited. */
static void
who_has_answered_is_not_left_in_silence(void **state)
{
	struct repl *r = set_new();
	uint64_t begin_ns = clock_now_ns();

	(void)state;
	/* Before there are keepers, we ping. */
	r->ready = false;
	remotes[0].manner = HANGS;
	assert_int_equal(repl_advance(r, begin_ns + 4000 * NS_PER_MS, NULL), 0);
	assert_true(clock_now_ns() >= begin_ns + 3000 * NS_PER_MS);
	for (unsigned i = 1; i < REPLICAS; i++) {
		assert_int_equal(atomic_load(&r->replicas[i].lost), 0);
		assert_in_range(remotes[i].silent_ns, 1, 2 * HEARTBEAT_MS * NS_PER_MS);
		assert_true(clock_now_ns() - remotes[i].heard_ns < 2 * HEARTBEAT_MS * NS_PER_MS);
	}
	set_free(r);
}

/* ... and when there are, they can. */
static void
answers_are_taken_as_they_come(void **state)
{
	struct repl *r = set_new();
	struct remote_mark marks[REPLICAS] = {{.state = SIDECAR_UP_TO_DATE}};
	uint64_t begin_ns = clock_now_ns();

	(void)state;
	remotes[0].manner = HANGS;
	assert_true(advance_take(r, 7, marks, begin_ns + 1000 * NS_PER_MS));
	assert_true(remotes[0].taken_ns >= begin_ns + 1000 * NS_PER_MS);
	assert_true(remotes[1].taken_ns <= begin_ns + 100 * NS_PER_MS);
	assert_true(remotes[2].taken_ns <= begin_ns + 100 * NS_PER_MS);
	set_free(r);
}

/* This machine's disk takes longer than the call may: the targets have nothing to do with that. */
static void
a_slow_disk_here_takes_no_replica_with_it(void **state)
{
	struct repl *r = set_new();

	(void)state;
	store_ns = 300 * NS_PER_MS;
	remotes[1].manner = remotes[2].manner = TAKES_TIME;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(200));
	assert_int_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 1) && current(r, 2));
	set_free(r);
}

/*
 * Two that are lost by the same call: 1 has more than 0, and less than was drained. Told of 0's
 * loss it would be outdated, in a generation that is none after 0's, and 0 look better.
 */
static void
who_is_lost_with_another_is_told_nothing(void **state)
{
	static const struct repl_loss both[] = {{0, REPL_E_TIMEOUT, "gone", REPL_REASON_NONE},
						{1, REPL_E_TIMEOUT, "gone", REPL_REASON_NONE}};
	struct repl *r = set_new();
	struct generation before;

	(void)state;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	before = r->generation;
	drains = 7;
	drains_had[0] = 5;
	drains_had[1] = 6;
	drains_had[2] = 7;
	repl_lose_all(r, both, 2, clock_deadline(1000));
	assert_int_equal(dropped, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(atomic_load(&r->replicas[i].lost), REPL_E_TIMEOUT);
		assert_int_equal(remotes[i].state, SIDECAR_UP_TO_DATE);
		assert_true(gen_id_equal(&remotes[i].generation.current, &before.current));
		assert_true(gen_id_equal(&base[i], &before.current));
	}
	/* One generation for both. */
	assert_true(current(r, 2));
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &before.current));
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/*
 * Replica 2 lags when 0 is lost: what 0 may have and 2 has not is no reason to
 * call 2 newer. It is up to date when it has come so far.
 */
static void
laggard_is_not_newer_than_a_lost_one(void **state)
{
	struct repl *r = set_new();
	struct generation whole, lost;

	(void)state;
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 5;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	whole = r->generation;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	drains = drains_had[0] = drains_had[1] = 7;
	lost = r->generation;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_true(current(r, 1) && current(r, 2));
	assert_int_equal(remotes[1].state, SIDECAR_UP_TO_DATE);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	/* Of the generation before it lacks something, of the one before that nothing. */
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &whole.current));
	assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_EQUAL);
	assert_int_not_equal(gen_compare(&remotes[2].generation, &remotes[0].generation),
			     GEN_AHEAD);
	/* Another loss before it has caught up: it lacks some of two generations. */
	drains = 9;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &whole.current));
	/* What was acknowledged since is of the generation that it has now. */
	drains = 11;
	repl_label(r, 2, clock_deadline(1000), clock_deadline(1000));
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &whole.current));
	/* It has all that the first one that was lost can have, and says so before it has the rest.
	 */
	drains_had[2] = 7;
	repl_label(r, 2, clock_deadline(1000), clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	assert_true(current(r, 2));
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &lost.current));
	assert_int_equal(gen_compare(&remotes[2].generation, &remotes[0].generation), GEN_AHEAD);
	drains_had[2] = 9;
	repl_label(r, 2, clock_deadline(1000), clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_UP_TO_DATE);
	assert_true(current(r, 2));
	assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_EQUAL);
	assert_memory_equal(&remotes[2].generation, &r->generation, sizeof(r->generation));
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/*
 * It has caught up when another one is lost, and its target says outdated until it is told the
 * new generation: for as long nothing may be copied into the lost one, which looks better.
 */
static void
laggard_is_one_until_its_target_has_recorded(void **state)
{
	struct repl *r = set_new();

	(void)state;
	drains = 7;
	drains_had[0] = drains_had[1] = 7;
	drains_had[2] = 5;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	drains_had[2] = 7;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_UP_TO_DATE);
	assert_int_equal(remotes[2].behind, 7);
	assert_int_equal(atomic_load(&r->replicas[2].behind), 0);
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* However many are lost while it lags, what it had before that it names. */
static void
laggard_keeps_what_it_had_all_of(void **state)
{
	struct repl *r = set_new();

	(void)state;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	drains = drains_had[0] = 7;
	drains_had[2] = 5;
	for (unsigned i = 0; i < 2 * GEN_HISTORY; i++)
		assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	assert_int_equal(gen_compare(&remotes[2].generation, &remotes[1].generation), GEN_AHEAD);
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* It has caught up, and does not answer when it is to be labelled: no fault of the others. */
static void
laggard_that_hangs_takes_no_other_with_it(void **state)
{
	struct repl *r = set_new();

	(void)state;
	drains = 7;
	drains_had[0] = drains_had[1] = 7;
	drains_had[2] = 5;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	drains_had[2] = 7;
	remotes[2].manner = HANGS_AFTER;
	repl_label(r, 2, clock_deadline(900), clock_deadline(900));
	assert_int_equal(atomic_load(&r->replicas[2].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_true(current(r, 1));
	assert_false(current(r, 2));
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* Its keeper pings, and whatever is recorded meanwhile may take long on a disk that stalls. */
static void
laggard_is_labelled_later_beside_a_record_that_takes_long(void **state)
{
	struct repl *r = set_new();
	uint64_t begin_ns;

	(void)state;
	drains = 7;
	drains_had[0] = drains_had[1] = 7;
	drains_had[2] = 5;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	drains_had[2] = 7;
	begin_ns = clock_now_ns();
	pthread_mutex_lock(&r->lock);
	repl_label(r, 2, clock_deadline(100), clock_deadline(900));
	pthread_mutex_unlock(&r->lock);
	assert_in_range(clock_now_ns() - begin_ns, 100 * NS_PER_MS, 200 * NS_PER_MS);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	repl_label(r, 2, clock_deadline(100), clock_deadline(900));
	assert_int_equal(remotes[2].state, SIDECAR_UP_TO_DATE);
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* It has recorded the generation, only its answer did not come. */
static void
replica_lost_in_recording_is_behind(void **state)
{
	struct repl *r = set_new();

	(void)state;
	remotes[1].manner = HANGS_AFTER;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(900));
	assert_int_not_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_false(current(r, 1));
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 2));
	set_free(r);
}

/* With nobody left to go on with the program does: what it writes they lack. */
static void
last_replicas_lost_in_recording_are_behind(void **state)
{
	struct repl *r = set_new();

	(void)state;
	remotes[1].manner = remotes[2].manner = HANGS_AFTER;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(900));
	for (unsigned i = 0; i < REPLICAS; i++) {
		assert_int_not_equal(atomic_load(&r->replicas[i].lost), 0);
		assert_int_equal(gen_compare(&r->generation, &remotes[i].generation), GEN_AHEAD);
	}
	set_free(r);
}

static void
full_local_disk_leaves_replicas_apart(void **state)
{
	struct repl *r = set_new();

	(void)state;
	store_rc = REPL_E_NOSPC;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_false(gen_id_equal(&remotes[0].generation.current, &remotes[1].generation.current));
	assert_true(current(r, 1) && current(r, 2));
	set_free(r);
}

/* One that comes and goes must not push another's generation out of the history. */
static void
flapping_replica_makes_no_stranger_of_an_absent_one(void **state)
{
	struct repl *r = set_new();

	(void)state;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	/* Which of the two it has is not known: neither may be forgotten. */
	remotes[2].manner = HANGS_AFTER;
	assert_int_equal(repl_advance(r, clock_deadline(100), NULL), 0);
	for (unsigned i = 0; i < 40; i++) {
		repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
		assert_int_equal(gen_compare(&r->generation, &remotes[1].generation), GEN_AHEAD);
		assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_AHEAD);
		assert_int_equal(gen_compare(&r->generation, &remotes[0].generation), GEN_AHEAD);
		atomic_store(&r->replicas[0].lost, 0);
		remotes[0].generation = r->generation;
		r->replicas[0].has = r->generation.current;
	}
	set_free(r);
}

/* The program begins again: of one that is away it knows what is on media, by the map. */
static void
begun_again(struct repl *r)
{
	for (unsigned i = 0; i < REPLICAS; i++) {
		struct replica *p = &r->replicas[i];

		p->has = p->told = (struct gen_id){0};
		if (!atomic_load(&p->lost))
			p->has = r->generation.current;
	}
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
}

/*
 * Another one is lost while it is told so, and its answer does not come; or the program has died
 * before that was asked for, and took it for one that has what it has.
 */
static void
many_openings_make_no_stranger_of_one_that_was_told(bool told)
{
	struct repl *r = set_new();

	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	if (told)
		remotes[2].manner = HANGS_AFTER;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(atomic_load(&r->replicas[2].lost) != 0, told);
	if (!told) {
		atomic_store(&r->replicas[2].lost, REPL_E_LOST);
		assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
		base[2] = r->generation.current;
	}
	for (unsigned i = 0; i < 2 * GEN_HISTORY; i++) {
		begun_again(r);
		assert_int_equal(gen_compare(&r->generation, &remotes[1].generation), GEN_AHEAD);
		assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_AHEAD);
	}
	set_free(r);
}

static void
one_that_was_told_and_has_not_answered_is_no_stranger(void **state)
{
	(void)state;
	many_openings_make_no_stranger_of_one_that_was_told(true);
}

static void
one_that_was_to_be_told_is_no_stranger(void **state)
{
	(void)state;
	many_openings_make_no_stranger_of_one_that_was_told(false);
}

/* Neither of the map on media, nor of the record that names it, can be told that it does not count.
 */
static struct repl *
set_untold(struct generation *recorded)
{
	struct repl *r = set_new();

	*recorded = r->generation;
	untold = true;
	store_rc = REPL_E_IO;
	return r;
}

static void
what_is_in_no_log_is_newer_than_the_record(void **state)
{
	struct generation recorded, told;
	struct repl *r = set_untold(&recorded);

	(void)state;
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	for (unsigned i = 0; i < REPLICAS; i++)
		assert_int_equal(gen_compare(&remotes[i].generation, &recorded), GEN_AHEAD);
	/* Once is enough, and who is lost after it is newer as well. */
	told = r->generation;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	assert_int_equal(gen_compare(&remotes[0].generation, &recorded), GEN_AHEAD);
	assert_true(gen_id_equal(&remotes[0].generation.current, &told.current));
	set_free(r);
}

static void
what_is_in_no_log_is_refused_while_one_is_away(void **state)
{
	struct generation recorded;
	struct repl *r = set_untold(&recorded);
	struct err e;

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	/* It may have been told, or not. */
	remotes[1].manner = HANGS;
	err_clear(&e);
	assert_int_equal(repl_record_doubt(r, &e), REPL_E_IO);
	assert_non_null(strstr(e.text, "read-only"));
	assert_int_not_equal(atomic_load(&r->replicas[1].lost), 0);
	atomic_store(&r->replicas[0].lost, 0);
	assert_int_equal(repl_record_doubt(r, NULL), REPL_E_IO);
	atomic_store(&r->replicas[1].lost, 0);
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	set_free(r);
}

static void
what_is_in_no_log_goes_on_once_it_is_recorded(void **state)
{
	struct generation recorded;
	struct repl *r = set_untold(&recorded);

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(repl_record_doubt(r, NULL), REPL_E_IO);
	store_rc = 0;
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	assert_false(untold || atomic_load(&r->unrecorded));
	assert_true(current(r, 1) && current(r, 2));
	set_free(r);
}

static void *
lose_first(void *arg)
{
	repl_lose(arg, 0, REPL_E_LOST, "gone", clock_deadline(900));
	return NULL;
}

/* What another thread drains meanwhile is acknowledged only when the rest can be told apart. */
static void
acknowledgement_waits_for_the_record(void **state)
{
	struct repl *r = set_new();
	pthread_t thread;

	(void)state;
	remotes[1].manner = HANGS;
	assert_int_equal(pthread_create(&thread, NULL, lose_first, r), 0);
	while (atomic_load(&r->replicas[0].lost) == 0)
		(void)sched_yield();
	repl_await_recorded(r);
	assert_true(current(r, 2));
	assert_false(current(r, 0));
	(void)pthread_join(thread, NULL);
	set_free(r);
}

static void
advance_without_a_replica_is_an_error(void **state)
{
	struct repl *r = set_new();

	(void)state;
	for (unsigned i = 0; i < REPLICAS; i++)
		remotes[i].manner = HANGS;
	assert_int_equal(repl_advance(r, clock_deadline(60), NULL), REPL_E_LOST);
	set_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_replica_is_behind),
		cmocka_unit_test(flapping_replica_makes_no_stranger_of_an_absent_one),
		cmocka_unit_test(one_that_was_told_and_has_not_answered_is_no_stranger),
		cmocka_unit_test(one_that_was_to_be_told_is_no_stranger),
		cmocka_unit_test(one_that_does_not_answer_takes_no_other_with_it),
		cmocka_unit_test(one_that_takes_no_request_takes_no_other_with_it),
		cmocka_unit_test(one_that_takes_no_request_leaves_time_to_one_that_is_asked),
		cmocka_unit_test(several_that_take_no_request_leave_time_for_an_answer),
		cmocka_unit_test(all_that_hang_are_given_up_by_one_deadline),
		cmocka_unit_test(who_has_answered_is_not_left_in_silence),
		cmocka_unit_test(answers_are_taken_as_they_come),
		cmocka_unit_test(a_slow_disk_here_takes_no_replica_with_it),
		cmocka_unit_test(who_is_lost_with_another_is_told_nothing),
		cmocka_unit_test(laggard_is_not_newer_than_a_lost_one),
		cmocka_unit_test(laggard_is_one_until_its_target_has_recorded),
		cmocka_unit_test(laggard_keeps_what_it_had_all_of),
		cmocka_unit_test(laggard_that_hangs_takes_no_other_with_it),
		cmocka_unit_test(laggard_is_labelled_later_beside_a_record_that_takes_long),
		cmocka_unit_test(replica_lost_in_recording_is_behind),
		cmocka_unit_test(last_replicas_lost_in_recording_are_behind),
		cmocka_unit_test(full_local_disk_leaves_replicas_apart),
		cmocka_unit_test(what_is_in_no_log_is_newer_than_the_record),
		cmocka_unit_test(what_is_in_no_log_is_refused_while_one_is_away),
		cmocka_unit_test(what_is_in_no_log_goes_on_once_it_is_recorded),
		cmocka_unit_test(acknowledgement_waits_for_the_record),
		cmocka_unit_test(advance_without_a_replica_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
