/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a drain, a post and a reader of a queued replica wait for, what they don't hold
 * meanwhile, and who is lost over it.
 */
#include "ship_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
/* A page that is not there is played by the handler of its fault, which comes amid no call. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *
__tsan_default_options(void)
{
	return "report_signal_unsafe=0";
}
#endif

/* Who is lost while a generation is recorded has acknowledged in vain: it is of an older one. */
static void
await_beside_a_record(bool loss)
{
	bool enough = true;
	pthread_t thread;

	begin(2, 0);
	pthread_mutex_lock(&r->lock);
	if (loss) {
		atomic_store(&r->replicas[REPLICAS - 1].lost, REPL_E_LOST);
		ship_lost(r->ship, REPLICAS - 1);
	}
	atomic_store(&r->advancing, !loss);
	assert_int_equal(pthread_create(&thread, NULL, drain_once, &enough), 0);
	while (holders(1) < REPLICAS - 1)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	for (unsigned i = 0; i < REPLICAS; i++) {
		if (atomic_load(&r->replicas[i].lost))
			continue;
		atomic_store(&r->replicas[i].lost, REPL_E_LOST);
		ship_lost(r->ship, i);
	}
	atomic_store(&r->advancing, false);
	pthread_mutex_unlock(&r->lock);
	(void)pthread_join(thread, NULL);
	assert_false(enough);
	end();
}

static void
record_comes_before_the_count(void **state)
{
	(void)state;
	await_beside_a_record(true);
}

/* That of a file that can't be written, for example. */
static void
record_without_a_loss_comes_before_the_count(void **state)
{
	(void)state;
	await_beside_a_record(false);
}

/* All of its time but what a replica has at least is over. */
static void *
drain_late(void *arg)
{
	bool *enough = arg;

	*enough = drain_since(8, clock_now_ns() - r->cfg->op_timeout_ms * NS_PER_MS);
	return NULL;
}

/* Replica 1 is a laggard by the record of the loss of 0: it counts when it is labelled. */
static void
begin_with_a_laggard(pthread_t *drain, bool *enough)
{
	begin(2, 0);
	r->cfg->op_timeout_ms = 8000;
	atomic_store(&r->replicas[1].behind, 1);
	__wrap_repl_lose(r, 0, REPL_E_LOST, "", 0);
	assert_int_equal(pthread_create(drain, NULL, drain_late, enough), 0);
	while (holders(1) < REPLICAS - 2)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Longer than a drain waits that has begun as drain_late() says. */
static void
outlast_drain(void)
{
	uint64_t end_ns = clock_deadline(r->cfg->op_timeout_ms / REPL_TELL_SHARE * 3 / 2);

	while (clock_now_ns() < end_ns)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void
end_with_a_laggard(pthread_t drain, const bool *enough)
{
	(void)pthread_join(drain, NULL);
	assert_true(*enough);
	assert_int_equal(losses, 1);
	end();
}

/* While it makes room it answers nothing else. */
static void
laggard_that_grows_is_waited_for(void **state)
{
	bool enough = false;
	pthread_t drain;

	(void)state;
	begin_with_a_laggard(&drain, &enough);
	atomic_store(&r->replicas[1].grows_until_ns, clock_deadline(r->cfg->op_timeout_ms));
	outlast_drain();
	ship_labelled(r->ship, 1);
	atomic_store(&r->replicas[1].grows_until_ns, 0);
	end_with_a_laggard(drain, &enough);
}

/* Before that it can't be labelled. */
static void
record_takes_no_time_of_a_laggards(void **state)
{
	bool enough = false;
	pthread_t drain;

	(void)state;
	begin_with_a_laggard(&drain, &enough);
	pthread_mutex_lock(&r->lock);
	outlast_drain();
	pthread_mutex_unlock(&r->lock);
	(void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	ship_labelled(r->ship, 1);
	end_with_a_laggard(drain, &enough);
}

static _Atomic bool faulted, fault_holds;

/* As the kernel asks the disk for a page, or whether one that was synced may be written to. */
static void
on_fault(int signal, siginfo_t *info, void *context)
{
	struct timespec end;

	(void)signal;
	(void)context;
	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 2;
	if ((uint8_t *)info->si_addr < r->mem || (uint8_t *)info->si_addr >= r->mem + PAGE)
		abort();
	if (pthread_mutex_timedlock(&r->ship->lock, &end))
		atomic_store(&fault_holds, true);
	else
		(void)pthread_mutex_unlock(&r->ship->lock);
	atomic_store(&faulted, true);
	if (mprotect(r->mem, PAGE, PROT_READ | PROT_WRITE))
		abort();
}

static void
store_word(void *word)
{
	__atomic_store_n((uint64_t *)word, 77, __ATOMIC_RELEASE);
}

/* What a call queues of the first page, with a store of its own to it or without. */
struct post {
	enum lane_kind kind;
	bool stores;
};

static const struct post posts[] = {
	{LANE_ATOMIC8, true}, {LANE_ATOMIC8, false}, {LANE_DRAIN, false}};

#define POSTS (sizeof(posts) / sizeof(posts[0]))

static void
post_once(const struct post *p, struct shipment **m)
{
	struct repl_behind behind = {.b = {.off = 64, .len = 8}, .store = store_word};
	struct rangeset ranges;
	struct err e;

	behind.arg = r->mem + behind.b.off;
	err_clear(&e);
	rangeset_clear(&ranges);
	if (p->kind == LANE_DRAIN)
		(void)rangeset_add(&ranges, 64, 2048);
	assert_int_equal(ship_post(r->ship, &ranges, p->kind, &behind.b, p->stores ? &behind : NULL,
				   clock_now_ns(), UINT64_MAX, m, &e),
			 0);
}

static void
post_with_faults(const struct post *p, struct shipment **m)
{
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;

	faulted = fault_holds = false;
	assert_int_equal(sigaction(SIGSEGV, &fault, &before), 0);
	post_once(p, m);
	while (atomic_load(&page_goes))
		post_once(p, m);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* As what was queued before it. */
static void
post_arrives(struct shipment *m, const struct post *p)
{
	assert_true(faulted);
	assert_false(fault_holds);
	assert_true(ship_await(r->ship, m, clock_now_ns(), UINT64_MAX));
	ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
	assert_int_equal(targets[0].image[64], p->stores ? 77 : 0);
	assert_int_equal(losses, 0);
}

/* Keepers ask the queue before they ping, and targets bear no silence. */
static void
a_post_waits_for_its_page_without_the_lock(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POSTS; i++) {
		struct shipment *m = NULL;

		begin(7, 0);
		assert_int_equal(mprotect(r->mem, PAGE, posts[i].stores ? PROT_READ : PROT_NONE),
				 0);
		post_with_faults(&posts[i], &m);
		post_arrives(m, &posts[i]);
		end();
	}
}

/* A page that was there may be gone when there is room. */
static void
a_post_looks_for_its_page_anew_when_it_has_waited(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POSTS; i++) {
		struct shipment *m = NULL;

		begin(13, 0);
		r->cfg->busy_poll_us = 0;
		for (unsigned t = 0; t < REPLICAS; t++)
			atomic_store(&targets[t].mute, true);
		atomic_store(&page_goes, true);
		calls = true;
		post_with_faults(&posts[i], &m);
		calls = false;
		post_arrives(m, &posts[i]);
		end();
	}
}

static unsigned stalls; /* that its disk is still to have */
static struct shipment *filled;

static bool
at_bound(void)
{
	bool at;

	pthread_mutex_lock(&r->ship->lock);
	at = r->ship->q.view[0].weight > r->ship->policy.lag_bytes;
	pthread_mutex_unlock(&r->ship->lock);
	return at;
}

/*
 * The disk takes longer than any target has, and another call's drains bring all targets to their
 * bound meanwhile. They move again when this call waits for them, and the page goes once more.
 */
static void
on_stall(int signal, siginfo_t *info, void *context)
{
	static const struct range none = {0};
	const uint64_t ns = r->cfg->op_timeout_ms * NS_PER_MS;
	struct rangeset set;
	struct err e;

	(void)signal;
	(void)context;
	if ((uint8_t *)info->si_addr < r->mem || (uint8_t *)info->si_addr >= r->mem + PAGE)
		abort();
	if (stalls > 0) {
		stalls--;
		(void)nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
						   .tv_nsec = (long)(ns % NS_PER_S)},
				NULL);
		for (unsigned i = 0; i < REPLICAS; i++)
			atomic_store(&targets[i].mute, true);
		atomic_store(&page_goes, true);
		rangeset_clear(&set);
		(void)rangeset_add(&set, PAGE, 1024);
		calls = false;
		while (!at_bound() && ship_post(r->ship, &set, LANE_DRAIN, &none, NULL,
						clock_now_ns(), UINT64_MAX, &filled, &e) == 0)
			;
		calls = true;
	}
	if (mprotect(r->mem, PAGE, PROT_READ | PROT_WRITE))
		abort();
}

/* Before and amid the wait for room. */
static void
a_stall_of_the_pools_disk_is_no_time_of_the_targets(void **state)
{
	struct sigaction stall = {.sa_sigaction = on_stall, .sa_flags = SA_SIGINFO}, before;

	(void)state;
	assert_int_equal(sigaction(SIGSEGV, &stall, &before), 0);
	for (unsigned i = 0; i < POSTS; i++) {
		struct shipment *m = NULL;

		begin(14, 0);
		r->cfg->op_timeout_ms = 1000;
		r->cfg->busy_poll_us = 0;
		r->ship->policy.degrade = false;
		stalls = 2;
		filled = NULL;
		assert_int_equal(mprotect(r->mem, PAGE, PROT_NONE), 0);
		calls = true;
		post_once(&posts[i], &m);
		calls = false;
		assert_int_equal(losses, 0);
		assert_int_equal(stalls, 0);
		assert_true(ship_await(r->ship, m, clock_now_ns(), UINT64_MAX));
		assert_true(ship_await(r->ship, filled, clock_now_ns(), UINT64_MAX));
		ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
		assert_int_equal(losses, 0);
		end();
	}
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* A drain of more than may be queued, of which one replica takes nothing. */
static void
laggard_is_lost_alone(bool degrade)
{
	begin(12, 0);
	r->cfg->op_timeout_ms = 2000;
	r->ship->policy.degrade = degrade;
	for (unsigned i = 0; i < REPLICAS; i++)
		targets[i].slowness = 1;
	atomic_store(&targets[2].mute, true);
	assert_true(drain_first(POOL / 4));
	records_long = true;
	assert_true(drain_first(POOL));
	records_long = false;
	assert_int_equal(losses, 1);
	assert_int_not_equal(atomic_load(&r->replicas[2].lost), 0);
	end();
}

/* The time for which it was waited is not all that the others have. */
static void
who_is_waited_for_is_lost_alone(void **state)
{
	(void)state;
	laggard_is_lost_alone(false);
}

/* Nor is that for which its loss is recorded. */
static void
who_is_degraded_is_lost_alone(void **state)
{
	(void)state;
	laggard_is_lost_alone(true);
}

/* What went by before it had to make room says nothing of a replica. */
static void
who_is_asked_for_room_late_is_not_lost(void **state)
{
	const struct range none = {0};
	struct shipment *m[2] = {NULL};
	struct rangeset set;
	uint64_t begin_ns;
	struct err e;

	(void)state;
	err_clear(&e);
	begin(12, 0);
	r->cfg->op_timeout_ms = 8000;
	r->ship->policy.degrade = false;
	for (unsigned i = 0; i < REPLICAS; i++)
		targets[i].slowness = 20;
	rangeset_clear(&set);
	(void)rangeset_add(&set, 0, POOL);
	begin_ns = clock_now_ns() - r->cfg->op_timeout_ms * NS_PER_MS / 5 * 4;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ship_post(r->ship, &set, LANE_DRAIN, &none, NULL, begin_ns,
					   UINT64_MAX, &m[i], &e),
				 0);
	for (unsigned i = 0; i < 2; i++)
		assert_true(ship_await(r->ship, m[i], begin_ns, UINT64_MAX));
	assert_int_equal(losses, 0);
	end();
}

/* A look might take an answer in, for a reader whose buffer is the program's again. */
static void
a_lane_that_was_given_up_is_not_looked_at(void **state)
{
	bool enough = false;

	(void)state;
	for (unsigned i = 0; i < FEW; i++) {
		begin(12, 0);
		r->cfg->busy_poll_us = 0;
		targets[1].slowness = targets[2].slowness = 20;
		looks_at_lost = 0;
		/* By a reader who has given it back, and has not lost the replica yet. */
		targets[0].lane.status = REPL_E_TIMEOUT;
		(void)drain_once(&enough);
		assert_true(enough);
		assert_int_equal(looks_at_lost, 0);
		end();
	}
}

/* ---- readers of a queued replica ---- */

static _Atomic bool reading;

static void *
reader_main(void *arg)
{
	unsigned replica = *(const unsigned *)arg;

	while (atomic_load(&reading)) {
		if (!ship_lane_borrow(r->ship, replica, clock_deadline(10000)))
			continue;
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		ship_lane_return(r->ship, replica);
	}
	return NULL;
}

static bool
has_come_to(const struct fake *t, uint64_t number)
{
	for (unsigned i = 0; i < 200 && atomic_load(&t->acked) < number; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return atomic_load(&t->acked) >= number;
}

/* Whether one comes back at once, or several have it by turns. */
static void
readers_starve_no_queue(void **state)
{
	unsigned read = REPLICAS - 1;
	pthread_t readers[2];
	bool enough = false;

	(void)state;
	for (unsigned count = 1; count <= 2; count++) {
		begin(8, 0);
		atomic_store(&reading, true);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(pthread_create(&readers[i], NULL, reader_main, &read), 0);
		for (unsigned i = 1; i <= FEW; i++) {
			(void)drain_once(&enough);
			assert_true(has_come_to(&targets[read], i));
		}
		atomic_store(&reading, false);
		for (unsigned i = 0; i < count; i++)
			(void)pthread_join(readers[i], NULL);
		assert_int_equal(losses, 0);
		end();
	}
}

static void *
borrow_main(void *arg)
{
	struct lane **l = arg;

	*l = ship_lane_borrow(r->ship, REPLICAS - 1, clock_deadline(10000));
	return NULL;
}

/* What is queued meanwhile gets all of its time when the lane is there for it again. */
static void
a_readers_time_is_not_the_targets(void **state)
{
	struct fake *t;
	struct lane *l = NULL;
	bool enough = false;
	pthread_t thread;

	(void)state;
	begin(9, 0);
	r->cfg->op_timeout_ms = 400;
	t = &targets[REPLICAS - 1];
	t->slowness = 30;
	atomic_store(&t->mute, true);
	(void)drain_once(&enough);
	while (atomic_load(&t->number) < 1)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(pthread_create(&thread, NULL, borrow_main, &l), 0);
	(void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	(void)drain_once(&enough);
	atomic_store(&t->mute, false);
	(void)pthread_join(thread, NULL);
	assert_non_null(l);
	(void)nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
	ship_lane_return(r->ship, REPLICAS - 1);
	assert_true(has_come_to(t, 2));
	assert_int_equal(losses, 0);
	end();
}

/* It has waited for those, and its replica is as well as before. */
static void
who_is_kept_off_by_readers_loses_no_replica(void **state)
{
	struct lane_slot slot = {0};
	char buf[8];

	(void)state;
	begin(10, 0);
	r->cfg->op_timeout_ms = 50;
	r->slots = &slot;
	r->lane_count = 1;
	r->size = POOL;
	assert_non_null(ship_lane_borrow(r->ship, 0, clock_deadline(10000)));
	assert_int_equal(repl_read(r, 0, 0, buf, 0, sizeof(buf)), REPL_E_BUSY);
	assert_int_equal(losses, 0);
	__wrap_repl_lose(r, 0, REPL_E_LOST, "", 0);
	ship_lane_return(r->ship, 0);
	assert_int_equal(repl_read(r, 0, 0, buf, 0, sizeof(buf)), REPL_E_LOST);
	end();
}

/* ---- a child that comes back to a call ---- */

#define CHILD_S 20U

enum waits { FOR_ROOM, FOR_ROOM_BESIDE, FOR_ANSWERS, FOR_ITS_LANE };

static volatile sig_atomic_t is_child;
static _Atomic pid_t forked;
static int other_file; /* has the queue's numbers in the child */

/* As repl_abandon(); and the handler opens a file, which gets the numbers that are free. */
static void
on_fork(int number)
{
	int fds[1 + REPLICAS], n = 0;
	pid_t pid = fork();

	(void)number;
	if (pid == 0) {
		is_child = 1;
		(void)alarm(CHILD_S);
		fds[n++] = r->ship->driver_fd;
		for (unsigned i = 0; i < REPLICAS; i++)
			fds[n++] = r->ship->shipper[i].timer_fd;
		r->abandoned = true;
		for (unsigned i = 0; i < REPLICAS; i++)
			atomic_store(&r->replicas[i].lost, REPL_E_LOST);
		ship_abandon(r->ship);
		while (n > 0)
			(void)dup2(other_file, fds[--n]);
	}
	atomic_store(&forked, pid);
}

static void *
wait_once(void *arg)
{
	const enum waits *what = arg;
	bool enough = true;

	if (*what == FOR_ITS_LANE)
		enough = ship_lane_borrow(r->ship, 0, clock_deadline(600000)) != NULL;
	else
		enough = drain_first(*what == FOR_ANSWERS ? 8 : POOL);
	if (is_child) {
		r->ship->driver_sleeps = true;
		ship_queued(r->ship);
		shipper_hurry(&r->ship->shipper[0]);
		_exit(enough || lseek(other_file, 0, SEEK_END) != 0);
	}
	if (*what == FOR_ITS_LANE && enough)
		ship_lane_return(r->ship, 0);
	return enough ? r : NULL;
}

/* What it has waited for so far, and how: 1 or 2 of them, of which one drives. */
static bool
waits_for(enum waits what)
{
	bool is = false;

	pthread_mutex_lock(&r->ship->lock);
	if (what == FOR_ITS_LANE)
		is = r->ship->shipper[0].wanted;
	else
		is = r->ship->driven && r->ship->q.last >= (what == FOR_ANSWERS ? 2 : 3);
	pthread_mutex_unlock(&r->ship->lock);
	return is;
}

/* Of a call that waits, while another thread has the queue's lock or not. */
static void
child_returns(pthread_t thread, bool locked)
{
	int status = 0;

	atomic_store(&forked, 0);
	if (locked)
		pthread_mutex_lock(&r->ship->lock);
	assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
	while (atomic_load(&forked) == 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	if (locked)
		pthread_mutex_unlock(&r->ship->lock);
	assert_true(atomic_load(&forked) > 0);
	assert_int_equal(waitpid(atomic_load(&forked), &status, 0), atomic_load(&forked));
	assert_int_equal(status, 0);
}

static void
child_returns_from(enum waits what)
{
	enum waits beside = FOR_ROOM;
	pthread_t thread, other;
	void *got = NULL;
	bool enough = true;

	begin(15, 0);
	r->cfg->op_timeout_ms = 600000;
	r->cfg->busy_poll_us = 0;
	r->ship->policy.degrade = false;
	atomic_store(&targets[0].mute, true);
	(void)drain_once(&enough);
	for (unsigned i = 0; i < REPLICAS; i++)
		atomic_store(&targets[i].mute, true);
	if (what == FOR_ROOM_BESIDE)
		assert_int_equal(pthread_create(&other, NULL, wait_once, &beside), 0);
	while (what == FOR_ROOM_BESIDE && !waits_for(FOR_ROOM))
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(pthread_create(&thread, NULL, wait_once, &what), 0);
	while (!waits_for(what))
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	for (unsigned i = 0; i < FEW; i++)
		child_returns(thread, i % 2);
	for (unsigned i = 0; i < REPLICAS; i++)
		atomic_store(&targets[i].mute, false);
	(void)pthread_join(thread, &got);
	assert_non_null(got);
	if (what == FOR_ROOM_BESIDE)
		(void)pthread_join(other, &got);
	assert_non_null(got);
	assert_int_equal(losses, 0);
	end();
}

/* It waits for nothing that its parent's targets and threads do, and writes to no file of its own.
 */
static void
a_child_that_comes_back_waits_for_nobody(void **state)
{
	struct sigaction forks = {.sa_handler = on_fork}, before;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip();
#endif
	other_file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	assert_true(other_file >= 0);
	assert_int_equal(sigaction(SIGUSR1, &forks, &before), 0);
	for (enum waits what = FOR_ROOM; what <= FOR_ITS_LANE; what++)
		child_returns_from(what);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	(void)close(other_file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_comes_before_the_count),
		cmocka_unit_test(record_without_a_loss_comes_before_the_count),
		cmocka_unit_test(laggard_that_grows_is_waited_for),
		cmocka_unit_test(record_takes_no_time_of_a_laggards),
		cmocka_unit_test(a_post_waits_for_its_page_without_the_lock),
		cmocka_unit_test(a_post_looks_for_its_page_anew_when_it_has_waited),
		cmocka_unit_test(a_stall_of_the_pools_disk_is_no_time_of_the_targets),
		cmocka_unit_test(who_is_waited_for_is_lost_alone),
		cmocka_unit_test(who_is_degraded_is_lost_alone),
		cmocka_unit_test(who_is_asked_for_room_late_is_not_lost),
		cmocka_unit_test(a_lane_that_was_given_up_is_not_looked_at),
		cmocka_unit_test(readers_starve_no_queue),
		cmocka_unit_test(a_readers_time_is_not_the_targets),
		cmocka_unit_test(who_is_kept_off_by_readers_loses_no_replica),
		cmocka_unit_test(a_child_that_comes_back_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
