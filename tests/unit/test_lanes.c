/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call comes to its end whatever is noticed of a replica while it is in a lane, and what a
 * queued replica could not be given is not acknowledged as if it had it.
 */
#include "unit.h"

#include <stdlib.h>
#include <time.h>

#include "../../librepl/src/calltime.c"
#include "../../librepl/src/repl_commit.c"
#include "../../librepl/src/repl_lanes.c"

#define TURNS_MAX 1000U

static struct repl_config cfg;
static struct lane lane0;
static unsigned turns;
static int post_rc;
static bool settled_lost, others_busy;
static bool answers, answered; /* the target, if it is asked in time */
static unsigned disk_ms;       /* that the local one takes */
static unsigned turns;         /* a bit for each lane whose extents stay in the activity log */
static bool recording, waited; /* another call records a loss; this one waits for its lock */
static struct shipment posted;
static unsigned answer_ms; /* that each drain takes */
static unsigned post_ms;   /* that the first post takes */
static unsigned posts;
static unsigned begin_ms, step_ms; /* that the pool's disk takes, once */
static unsigned late_ms;           /* the same, behind the deadline */
static unsigned record_ms;         /* that the record of a loss takes */
static unsigned queued_from;       /* replicas that get their updates by a queue */
static struct repl *left_after; /* another thread has its lanes, but for the first, for one drain */

static void
pause_ms(unsigned ms)
{
	(void)nanosleep(
		&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000 * NS_PER_MS)},
		NULL);
}

/* ---- what is beside lanes ---- */

unsigned
forks_count(void)
{
	return 0;
}

bool
repl_reason_lock(struct repl *r)
{
	return pthread_mutex_lock(&r->reason_lock) == 0;
}

struct lane *
remote_lane(struct remote *r, unsigned index)
{
	(void)r;
	(void)index;
	return &lane0;
}

int
lane_flush_first(struct lane *l, uint64_t off, uint64_t len, uint64_t second)
{
	(void)l;
	(void)off;
	(void)len;
	(void)second;
	fail();
	return 0;
}

bool
lane_writes_early(const struct lane *l, uint64_t off, uint64_t len, uint64_t second)
{
	(void)l;
	(void)off;
	(void)len;
	(void)second;
	return false;
}

/* Full, since nothing moves on it; at that moment a keeper notices that the target is gone. */
int
lane_note(struct lane *l, uint64_t off, uint64_t len)
{
	struct repl *r = (struct repl *)(uintptr_t)l->mem;

	(void)off;
	(void)len;
	if (!others_busy)
		atomic_store(&r->replicas[0].lost, REPL_E_TIMEOUT);
	assert_true(++turns < TURNS_MAX);
	return -1;
}

int
lanes_claim(struct repl *r, unsigned lane, const struct range *more, unsigned count,
	    uint64_t *begin_ns, struct err *e)
{
	(void)r;
	(void)lane;
	(void)more;
	(void)count;
	(void)begin_ns;
	return others_busy ? err_set(e, REPL_E_BUSY, "others have it on their way") : 0;
}

void
lanes_yield(struct repl *r, unsigned lane)
{
	(void)r;
	(void)lane;
}

void
lanes_unclaim(struct repl *r, unsigned lane)
{
	(void)r;
	(void)lane;
}

bool
lanes_claim_now(struct repl *r, unsigned lane, const struct range *more, unsigned count)
{
	(void)r;
	(void)lane;
	(void)more;
	(void)count;
	return true;
}

/* Of the page that is to be sent. */
static void
disk_stalls(unsigned *ms)
{
	pause_ms(*ms);
	*ms = 0;
}

bool
lane_step(struct lane *l)
{
	(void)l;
	disk_stalls(&step_ms);
	return false;
}

bool
lane_run_for_now(struct lane *l, bool (*until)(const struct lane *), uint64_t deadline_ns)
{
	(void)l;
	(void)until;
	(void)deadline_ns;
	return answered = true;
}

bool
lanes_claim_early(struct repl *r, unsigned lane, size_t off, size_t len)
{
	(void)r;
	(void)lane;
	(void)off;
	(void)len;
	return true;
}

void
lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len)
{
	(void)l;
	(void)kind;
	(void)off;
	(void)len;
	disk_stalls(&begin_ms);
}

bool
lane_done(const struct lane *l)
{
	return l->status != 0 || answered;
}

void
lanes_run(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
	  uint64_t deadline_ns)
{
	(void)until;
	uint64_t now_ns = clock_now_ns(), end_ns = now_ns + answer_ms * NS_PER_MS;

	answered = answers && end_ns < deadline_ns;
	for (unsigned i = 0; i < count && !answered; i++)
		lanes[i]->status = REPL_E_TIMEOUT;
	/* Nobody is waited for behind the deadline. */
	if (end_ns < deadline_ns)
		pause_ms(answer_ms);
	else if (now_ns < deadline_ns && answer_ms)
		pause_ms((unsigned)((deadline_ns - now_ns) / NS_PER_MS));
	disk_stalls(&late_ms);
	for (unsigned i = 1; left_after && i < left_after->lane_count; i++)
		lane_leave(left_after, i);
	left_after = NULL;
}

void
repl_lose_all(struct repl *r, const struct repl_loss *losses, unsigned count, uint64_t deadline_ns)
{
	(void)deadline_ns;
	waited = recording;
	pause_ms(record_ms);
	for (unsigned i = 0; i < count; i++)
		atomic_store(&r->replicas[losses[i].replica].lost, losses[i].status);
}

void
repl_await_recorded(struct repl *r)
{
	(void)r;
}

int
repl_await_back(struct repl *r, struct err *e)
{
	(void)r;
	(void)e;
	return 0;
}

int
config_report(const struct err *e)
{
	return e->code;
}

void
hold_waited(struct repl *r, uint64_t waited_ns)
{
	(void)r;
	(void)waited_ns;
}

bool
pending_note(struct lane_slot *slot, uint64_t off, uint64_t len)
{
	return rangeset_add(&slot->pending, off, len) >= 0;
}

void
pending_trim(struct repl *r, uint64_t off, uint64_t len)
{
	(void)r;
	(void)off;
	(void)len;
}

void
pending_trims_end(struct repl *r, uint64_t number, uint64_t shipment)
{
	(void)r;
	(void)number;
	(void)shipment;
}

uint64_t
pending_trims_begin(struct repl *r)
{
	(void)r;
	return 0;
}

bool
pending_early(struct repl *r, unsigned lane, uint64_t off, uint64_t len)
{
	(void)r;
	(void)lane;
	(void)off;
	(void)len;
	return true;
}

int
pending_active(struct repl *r, unsigned lane, const struct range *also, unsigned count,
	       uint64_t *begin_ns, struct err *e)
{
	(void)r;
	(void)also;
	(void)count;
	(void)e;
	turns |= 1U << lane;
	if (disk_ms == 0)
		return 0;
	pause_ms(disk_ms);
	*begin_ns = clock_now_ns();
	return 0;
}

void
pending_settle(struct repl *r, unsigned lane, const struct range *also, unsigned count)
{
	(void)also;
	(void)count;
	settled_lost = atomic_load(&r->replicas[0].lost) != 0;
	turns &= ~(1U << lane);
	rangeset_clear(&r->slots[lane].pending);
}

void
pending_append_end(struct repl *r, unsigned lane, const struct range *also, unsigned count)
{
	(void)r;
	(void)also;
	(void)count;
	turns &= ~(1U << lane);
}

bool
ship_serves(const struct ship *s, unsigned replica)
{
	return s != NULL && replica >= queued_from;
}

int
ship_post(struct ship *s, const struct rangeset *first, enum lane_kind kind,
	  const struct range *second, const struct repl_behind *behind, uint64_t begin_ns,
	  uint64_t latest_ns, struct shipment **out, struct err *e)
{
	(void)s;
	(void)first;
	(void)kind;
	(void)second;
	(void)behind;
	(void)begin_ns;
	/* Who has to make room has some time for that. */
	assert_true(latest_ns > clock_now_ns());
	if (posts++ == 0)
		pause_ms(post_ms);
	*out = post_rc ? NULL : &posted;
	return post_rc ? err_set(e, post_rc, "no memory for what replicas are to get") : 0;
}

bool
ship_await(struct ship *s, struct shipment *m, uint64_t begin_ns, uint64_t latest_ns)
{
	(void)s;
	(void)m;
	(void)begin_ns;
	assert_false(waited);
	assert_true(latest_ns > clock_now_ns());
	return true;
}

bool
ship_enough(struct ship *s)
{
	(void)s;
	return true;
}

int
ship_few(struct ship *s, struct err *e)
{
	(void)s;
	return err_set(e, REPL_E_LOST, "too few");
}

/* ---- the tests ---- */

static struct repl *
handle_new(void)
{
	struct repl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	cfg.op_timeout_ms = 200;
	cfg.on_loss = REPL_ON_LOSS_DEGRADE;
	cfg.ack = ACK_ALL;
	r->cfg = &cfg;
	r->size = 1 << 20;
	r->replica_count = r->lane_count = 1;
	r->slots = calloc(1, sizeof(*r->slots));
	assert_non_null(r->slots);
	memset(&lane0, 0, sizeof(lane0));
	lane0.mem = (const uint8_t *)r;
	turns = 0;
	post_rc = 0;
	settled_lost = others_busy = answers = answered = false;
	recording = waited = false;
	disk_ms = answer_ms = post_ms = posts = record_ms = queued_from = 0;
	begin_ms = step_ms = late_ms = 0;
	return r;
}

static void
handle_free(struct repl *r)
{
	free(r->slots);
	free(r);
}

static void
flush_ends_when_its_replica_is_given_up(void **state)
{
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(lanes_flush(r, 0, 4096, 4096, 0, &e), 0);
	assert_int_equal(r->slots[0].pending.count, 1);
	handle_free(r);
}

/* Nothing is sent, and what was flushed before is for the next drain. */
static void
flush_ends_when_others_do_not(void **state)
{
	const struct range last = {.off = 8192UL * RANGESET_MAX, .len = 8};
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	others_busy = true;
	assert_int_equal(lanes_flush(r, 0, 0, 4096, 0, &e), REPL_E_BUSY);
	for (uint64_t i = 0; i < RANGESET_MAX; i++)
		(void)pending_note(&r->slots[0], i * 8192, 4096);
	assert_int_equal(lanes_flush(r, 0, last.off, last.len, 0, &e), REPL_E_BUSY);
	assert_int_equal(lanes_drain(r, 0, LANE_DRAIN, 0, 0, &e), REPL_E_BUSY);
	assert_int_equal(r->slots[0].pending.count, RANGESET_MAX);
	assert_int_equal(turns, 1);
	/* It is taken when the call is made again, and nothing beside it was taken for it. */
	assert_false(rangeset_meets(&r->slots[0].pending, &last));
	assert_int_equal(r->slots[0].pending.bytes, 4096UL * RANGESET_MAX);
	others_busy = false;
	assert_int_equal(lanes_flush(r, 0, last.off, last.len, 0, &e), 0);
	assert_true(rangeset_meets(&r->slots[0].pending, &last));
	handle_free(r);
}

/* All of the time of a drain goes by before its target is asked anything. */
static void
a_slow_disk_here_is_not_the_targets(void **state)
{
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	answers = true;
	disk_ms = cfg.op_timeout_ms;
	assert_int_equal(lanes_drain(r, 0, LANE_DRAIN, 0, 0, &e), 0);
	assert_int_equal(atomic_load(&r->replicas[0].lost), 0);
	handle_free(r);
}

/* Nor is that which the first page to be sent is waited for: there is more than an answer to come.
 */
static void
a_stall_of_the_pools_disk_is_not_the_targets(void **state)
{
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	answers = true;
	cfg.op_timeout_ms = begin_ms = 1000;
	answer_ms = 300;
	assert_int_equal(lanes_drain(r, 0, LANE_DRAIN, 0, 0, &e), 0);
	assert_int_equal(begin_ms, 0);
	assert_int_equal(atomic_load(&r->replicas[0].lost), 0);
	handle_free(r);
}

/* Recording the loss of another one has taken it all, as in an append. */
static void
who_is_asked_late_has_time_to_answer(void **state)
{
	struct repl *r = handle_new();
	uint64_t begin_ns;
	struct err e;

	(void)state;
	err_clear(&e);
	answers = true;
	cfg.op_timeout_ms = 10000;
	begin_ns = clock_now_ns() - cfg.op_timeout_ms * NS_PER_MS;
	assert_int_equal(lanes_finish_from(r, 0, lane_done, begin_ns, &e), 0);
	assert_int_equal(atomic_load(&r->replicas[0].lost), 0);
	handle_free(r);
}

/* What is queued goes to those that are well at once, whose time to answer is all of the call. */
static void
a_record_of_others_takes_no_time_of_the_queued(void **state)
{
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	r->ship = (struct ship *)(void *)r; /* there is one */
	r->cfg->ack = ACK_QUORUM;
	recording = true;
	assert_int_equal(lanes_drain(r, 0, LANE_DRAIN, 0, 0, &e), 0);
	handle_free(r);
}

/* The second drain has nothing to post: what the first could not must be in the map. */
static void
what_finds_no_memory_in_the_queue_is_marked(void **state)
{
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	r->ship = (struct ship *)(void *)r; /* there is one */
	post_rc = REPL_E_NOMEM;
	assert_int_equal(lanes_flush(r, 0, 4096, 4096, 0, &e), 0);
	assert_int_equal(lanes_drain(r, 0, LANE_DRAIN, 0, 0, &e), 0);
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_NOMEM);
	assert_true(settled_lost);
	assert_int_equal(r->slots[0].pending.count, 0);
	handle_free(r);
}

static void
count_store(void *arg)
{
	++*(unsigned *)arg;
}

/* The local pool has it, as one whose replicas are lost has. */
static void
what_finds_no_memory_in_the_queue_is_stored(void **state)
{
	struct repl *r = handle_new();
	unsigned stored = 0;
	const struct repl_behind behind = {
		.b = {.off = 8192, .len = 8}, .store = count_store, .arg = &stored};
	struct err e;

	(void)state;
	err_clear(&e);
	r->ship = (struct ship *)(void *)r;
	r->cfg->ack = ACK_ANY;
	post_rc = REPL_E_NOMEM;
	assert_int_equal(lanes_drain_behind(r, 0, &behind, &e), 0);
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_NOMEM);
	assert_int_equal(stored, 1);
	handle_free(r);
}

static struct repl *
handle_new_of_lanes(unsigned count)
{
	struct repl *r = handle_new();

	free(r->slots);
	r->lane_count = count;
	r->slots = calloc(count, sizeof(*r->slots));
	assert_non_null(r->slots);
	return r;
}

/* What is not drained by then is for the next one: else each lane would have all of the time anew.
 */
static void
commit_begins_with_no_lane_behind_its_time(void **state)
{
	struct repl *r = handle_new_of_lanes(4);

	(void)state;
	cfg.op_timeout_ms = answer_ms = record_ms = 500;
	for (unsigned i = 0; i < r->lane_count; i++)
		assert_true(pending_note(&r->slots[i], 4096UL * i, 8));
	for (unsigned i = 1; i < r->lane_count; i++)
		assert_true(lane_borrow(r, i, 0));
	left_after = r;
	assert_int_equal(repl_commit(r, 0), REPL_E_TIMEOUT);
	assert_int_equal(r->slots[0].pending.count, 0);
	assert_int_equal(r->slots[2].pending.count, 1);
	assert_int_equal(r->slots[3].pending.count, 1);
	assert_int_equal(repl_commit(r, 0), 0);
	assert_int_equal(r->slots[3].pending.count, 0);
	handle_free(r);
}

/* Else no extent would leave the activity log any more. */
static void
commit_that_is_late_has_no_turn_left(void **state)
{
	struct repl *r = handle_new_of_lanes(2);

	(void)state;
	cfg.op_timeout_ms = 500;
	disk_ms = 300;
	turns = 0;
	for (unsigned i = 0; i < r->lane_count; i++)
		assert_true(pending_note(&r->slots[i], 4096UL * i, 8));
	assert_true(lane_borrow(r, 1, 0));
	left_after = r;
	assert_int_equal(repl_commit(r, 0), REPL_E_TIMEOUT);
	assert_int_equal(r->slots[1].pending.count, 1);
	assert_int_equal(turns, 0);
	handle_free(r);
}

/* Of many lanes that are drained side by side, each of which is slow, and none too slow by itself.
 */
static void
commit_has_one_time_for_all_lanes(void **state)
{
	struct repl *r = handle_new_of_lanes(4);

	(void)state;
	answers = true;
	cfg.op_timeout_ms = 800;
	answer_ms = 500;
	assert_int_equal(repl_commit(r, 0), 0);
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_TIMEOUT);
	handle_free(r);
}

/*
 * What went by before they had it, as this machine's disk may take, is no time of theirs: neither
 * to answer, nor to make room for what stands on the lanes behind.
 */
static void
commit_gives_time_to_whom_it_has_sent_late(void **state)
{
	struct repl *r = handle_new_of_lanes(3);

	(void)state;
	r->ship = (struct ship *)(void *)r; /* there is one */
	r->cfg->ack = ACK_QUORUM;
	cfg.op_timeout_ms = 2000;
	post_ms = 1900;
	for (unsigned i = 0; i < r->lane_count; i++)
		assert_true(pending_note(&r->slots[i], 4096UL * i, 8));
	assert_int_equal(repl_commit(r, 0), 0);
	assert_int_equal(posts, 3);
	handle_free(r);
}

/* Of one that was waited for directly, before anything is posted for those that are not. */
static void
commit_gives_time_behind_a_slow_record(void **state)
{
	struct repl *r = handle_new_of_lanes(3);

	(void)state;
	r->ship = (struct ship *)(void *)r;
	r->replica_count = 2;
	queued_from = 1;
	cfg.op_timeout_ms = 2000;
	record_ms = 2100;
	for (unsigned i = 0; i < r->lane_count; i++)
		assert_true(pending_note(&r->slots[i], 4096UL * i, 8));
	assert_int_equal(repl_commit(r, 0), 0);
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_TIMEOUT);
	assert_int_equal(posts, 3);
	handle_free(r);
}

/* The pool's, for a page of what is sent first, or of what follows. */
static void
commit_takes_a_stall_of_the_disk_from_nobody(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct repl *r = handle_new_of_lanes(2);

		answers = true;
		cfg.op_timeout_ms = 1000;
		answer_ms = 300;
		*(i == 0 ? &begin_ms : &step_ms) = cfg.op_timeout_ms;
		assert_int_equal(repl_commit(r, 0), 0);
		assert_int_equal(begin_ms + step_ms, 0);
		assert_int_equal(atomic_load(&r->replicas[0].lost), 0);
		handle_free(r);
	}
}

/* ... who are asked behind it, neither. */
static void
commit_takes_a_late_stall_from_nobody(void **state)
{
	struct repl *r = handle_new_of_lanes(2);

	(void)state;
	r->ship = (struct ship *)(void *)r;
	r->replica_count = 2;
	queued_from = 1;
	answers = true;
	cfg.op_timeout_ms = 400;
	late_ms = 2 * cfg.op_timeout_ms;
	assert_int_equal(repl_commit(r, 0), 0);
	assert_int_equal(posts, 2);
	assert_int_equal(atomic_load(&r->replicas[0].lost), 0);
	handle_free(r);
}

/* Another thread records a loss from within the lane. */
static void *
other_records(void *arg)
{
	struct repl *r = arg;

	(void)nanosleep(&(struct timespec){.tv_nsec = (long)(100 * NS_PER_MS)}, NULL);
	lane_leave(r, 0);
	diskclock_end(&r->local.disk);
	return NULL;
}

static pthread_t
lane_in_record(struct repl *r)
{
	pthread_t other;

	assert_true(lane_borrow(r, 0, 0));
	diskclock_begin(&r->local.disk);
	assert_int_equal(pthread_create(&other, NULL, other_records, r), 0);
	return other;
}

static void
lane_is_waited_for_as_long_as_a_record_takes(void **state)
{
	struct repl *r = handle_new();
	struct calltime t;
	pthread_t other;
	struct err e;

	(void)state;
	err_clear(&e);
	cfg.op_timeout_ms = 20;
	other = lane_in_record(r);
	assert_int_equal(lane_enter(r, 0, &e), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	lane_leave(r, 0);
	other = lane_in_record(r);
	t = call_begin(r, clock_now_ns());
	assert_true(lane_borrow_call(r, 0, &t));
	assert_int_equal(pthread_join(other, NULL), 0);
	handle_free(r);
}

/* Whoever has borrowed it is not there to give it back. */
static void
a_child_that_comes_back_waits_for_no_lane(void **state)
{
	struct repl *r = handle_new();
	int lent;

	(void)state;
	assert_true(lane_try(&r->slots[0], LANE_ENTERED));
	lent = lane_lend(r, 0);
	assert_true(lane_borrow(r, 0, 0));
	lane_want(r, 0, true);
	r->abandoned = true;
	lane_again(r, 0, lent);
	handle_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flush_ends_when_its_replica_is_given_up),
		cmocka_unit_test(flush_ends_when_others_do_not),
		cmocka_unit_test(a_slow_disk_here_is_not_the_targets),
		cmocka_unit_test(a_stall_of_the_pools_disk_is_not_the_targets),
		cmocka_unit_test(who_is_asked_late_has_time_to_answer),
		cmocka_unit_test(a_record_of_others_takes_no_time_of_the_queued),
		cmocka_unit_test(what_finds_no_memory_in_the_queue_is_marked),
		cmocka_unit_test(what_finds_no_memory_in_the_queue_is_stored),
		cmocka_unit_test(commit_begins_with_no_lane_behind_its_time),
		cmocka_unit_test(commit_that_is_late_has_no_turn_left),
		cmocka_unit_test(commit_has_one_time_for_all_lanes),
		cmocka_unit_test(commit_gives_time_to_whom_it_has_sent_late),
		cmocka_unit_test(lane_is_waited_for_as_long_as_a_record_takes),
		cmocka_unit_test(a_child_that_comes_back_waits_for_no_lane),
		cmocka_unit_test(commit_gives_time_behind_a_slow_record),
		cmocka_unit_test(commit_takes_a_stall_of_the_disk_from_nobody),
		cmocka_unit_test(commit_takes_a_late_stall_from_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
