/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of a pool that several processes write to: whatever is posted is taken, and no more than that
 * where there is room; who has waited finds it served, though who served it is killed at any
 * moment; nobody waits for one that is dead, or stopped.
 */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "../../librepl/preload/kin.c"
#include "../../librepl/preload/proc.c"

#define POOL    3U
#define DEV     7
#define INO     11
#define WRITERS 4U
#define CELLS   512U /* of a line each */
#define KILLS   12U
#define RANGES  500U

/* What is stored, and what is on the replica. */
struct file {
	_Atomic uint64_t local[CELLS], remote[CELLS];
	_Atomic unsigned done, rounds;
};

static struct file *file;
static bool (*lost)(void); /* what is taken is left, by one that ends */

static void
serve(unsigned pool)
{
	struct kin_range ranges[KIN_RANGES];
	uint64_t asked = kin_asked(pool);
	unsigned n = kin_take(pool, ranges);

	for (unsigned i = 0; i < n; i++) {
		uint64_t end =
			ranges[i].len == UINT64_MAX ? CELLS * LINE : ranges[i].off + ranges[i].len;

		for (uint64_t at = ranges[i].off / LINE; at < end / LINE && at < CELLS; at++)
			atomic_store(&file->remote[at], atomic_load(&file->local[at]));
	}
	if (!lost || !lost())
		kin_served(pool, asked);
}

static bool
take_over(void)
{
	if (!kin_open(POOL, DEV, INO))
		return false;
	for (unsigned i = 0; i < CELLS; i++)
		atomic_store(&file->remote[i], atomic_load(&file->local[i]));
	/* Others go on meanwhile. */
	(void)usleep(500);
	kin_opened(POOL, DEV, INO, serve);
	return true;
}

static uint64_t
clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void
settle(void)
{
	uint64_t asked = kin_ask(POOL);
	uint64_t since = clock_ns();
	enum kin_wait w;

	while ((w = kin_wait(POOL, asked, since)) != KIN_SERVED) {
		if (w == KIN_STUCK)
			_exit(2);
		if (w == KIN_NONE)
			(void)take_over();
	}
}

static void
begin(void)
{
	if (file)
		(void)munmap(file, sizeof(*file));
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	kin_begin();
	kin_forked();
}

static pid_t
forked(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		kin_forked();
	}
	return child;
}

/* Of one that opens and serves: here the next test's memory would be changed below its thread. */
static void
ends_well(bool (*run)(uint64_t), uint64_t asked)
{
	pid_t child = forked();
	int status;

	if (child == 0)
		_exit(run(asked) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- what is posted ---- */

static void
is_taken_as_it_is(void **state)
{
	struct kin_range got[KIN_RANGES];

	(void)state;
	begin();
	for (uint64_t i = 0; i < KIN_RANGES; i++)
		assert_true(kin_post(POOL, i * 1000 * LINE + 1, 1, 0));
	/* Those that touch take no other word. */
	assert_true(kin_post(POOL, LINE, LINE, 0));
	assert_true(kin_post(POOL, 10, 100, 0));
	assert_int_equal(kin_end(POOL), (KIN_RANGES - 1) * 1000 * LINE + LINE);
	kin_longer(POOL);
	assert_true(kin_end(POOL) == UINT64_MAX);
	assert_int_equal(kin_ask(POOL), 1);
	assert_int_equal(kin_asked(POOL), 1);
	assert_int_equal(kin_take(POOL, got), KIN_RANGES);
	assert_int_equal(got[0].off, 0);
	assert_int_equal(got[0].len, 2 * LINE);
	for (uint64_t i = 1; i < KIN_RANGES; i++) {
		assert_int_equal(got[i].off, i * 1000 * LINE);
		assert_int_equal(got[i].len, LINE);
	}
	assert_int_equal(kin_take(POOL, got), 0);
	assert_int_equal(kin_end(POOL), 0);
}

static bool
is_in(const struct kin_range *got, unsigned n, uint64_t off, uint64_t len)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t end = got[i].len == UINT64_MAX ? UINT64_MAX : got[i].off + got[i].len;

		if (off >= got[i].off && off < end) {
			if (end >= off + len)
				return true;
			len -= end - off;
			off = end;
			return is_in(got, n, off, len);
		}
	}
	return false;
}

static void
is_taken_however_much(void **state)
{
	static struct kin_range posts[RANGES];
	struct kin_range got[KIN_RANGES];
	unsigned n;

	(void)state;
	begin();
	srandom(1);
	for (unsigned bits = 8; bits < 62; bits += 3) {
		for (unsigned i = 0; i < RANGES; i++) {
			uint64_t r = (uint64_t)random() << 31 ^ (uint64_t)random();

			posts[i].off = r & ((1ULL << bits) - 1);
			posts[i].len = 1 + ((uint64_t)random() & ((1ULL << (bits / 2)) - 1));
			(void)kin_post(POOL, posts[i].off, posts[i].len, KIN_ANY);
		}
		n = kin_take(POOL, got);
		for (unsigned i = 0; i < RANGES; i++)
			assert_true(is_in(got, n, posts[i].off, posts[i].len));
	}
	/* More than a word can say. */
	(void)kin_post(POOL, 5ULL << 40, 10ULL << 30, KIN_ANY);
	(void)kin_post(POOL, UINT64_MAX - 100, 101, KIN_ANY);
	n = kin_take(POOL, got);
	assert_true(is_in(got, n, 5ULL << 40, 10ULL << 30));
	assert_true(is_in(got, n, UINT64_MAX - 100, 100));
	assert_true(n < KIN_RANGES);
}

/* Wherever it begins. */
static void
all_to_the_end_is_one_word(void **state)
{
	const uint64_t begins[] = {0, LINE, 1ULL << 30, 1ULL << 50};
	struct kin_range got[KIN_RANGES];

	(void)state;
	begin();
	for (unsigned i = 0; i < 4; i++) {
		assert_true(kin_post(POOL, begins[i], UINT64_MAX - begins[i], 0));
		assert_true(kin_end(POOL) == UINT64_MAX);
		assert_int_equal(kin_take(POOL, got), 1);
		assert_true(got[0].off <= begins[i]);
		assert_true(got[0].len == UINT64_MAX);
	}
	/* What is far apart in one word is, too. */
	for (uint64_t i = 0; i <= KIN_RANGES; i++)
		assert_true(kin_post(POOL, 3 * i << 29, 4096, KIN_ANY));
	assert_int_equal(kin_take(POOL, got), KIN_RANGES);
	assert_int_equal(got[0].off, 0);
	assert_true(got[0].len == UINT64_MAX);
	assert_true(kin_range_end(&got[0], 130ULL << 30) == 130ULL << 30);
	assert_true(kin_range_end(&got[1], 130ULL << 30) == (3ULL << 29) + 4096);
}

/* No bytes that nobody has made durable go along, but for a few. */
static void
waits_where_much_would_go_along(void **state)
{
	struct kin_range got[KIN_RANGES];
	uint64_t len = 0;
	unsigned n;

	(void)state;
	begin();
	for (uint64_t i = 0; i < KIN_RANGES; i++)
		assert_true(kin_post(POOL, i * 1000 * LINE, LINE, 0));
	assert_false(kin_post(POOL, 500 * LINE, LINE, 0));
	assert_true(kin_post(POOL, (JOIN_MAX - 1) * LINE, LINE, 0));
	assert_true(kin_post(POOL, 4000 * LINE, 2000 * LINE, 0));
	n = kin_take(POOL, got);
	for (unsigned i = 0; i < n; i++)
		len += got[i].len;
	assert_true(len <= (KIN_RANGES + JOIN_MAX + 2000) * LINE);
	assert_true(kin_post(POOL, 500 * LINE, LINE, 0));
}

/* Nobody's holes are another one's, as long as there are words. */
static void
holes_are_of_what_was_posted_with_them(void **state)
{
	struct kin_range got[KIN_RANGES];
	uint64_t holes = 0;
	unsigned n;

	(void)state;
	begin();
	assert_true(kin_post(POOL, 0, 1ULL << 30, 0));
	assert_true(kin_post(POOL, 100 * LINE, LINE, KIN_HOLES));
	assert_true(kin_post(POOL, 101 * LINE, LINE, KIN_HOLES));
	assert_true(kin_post(POOL, 101 * LINE, LINE, 0));
	n = kin_take(POOL, got);
	assert_true(is_in(got, n, 0, 1ULL << 30));
	for (unsigned i = 0; i < n; i++)
		holes += got[i].holes ? got[i].len : 0;
	assert_int_equal(holes, 2 * LINE);
	/* To be one with them it waits, unless that is for ever. */
	for (uint64_t i = 0; i < KIN_RANGES; i++)
		assert_true(kin_post(POOL, 1000 * i * LINE, 999 * LINE, 0));
	assert_false(kin_post(POOL, 10 * LINE, LINE, KIN_HOLES));
	assert_true(kin_post(POOL, 10 * LINE, LINE, KIN_HOLES | KIN_ANY));
	n = kin_take(POOL, got);
	assert_int_equal(n, KIN_RANGES);
	assert_true(got[0].holes);
	assert_int_equal(got[0].len, 999 * LINE);
}

/* ---- several processes ---- */

static void
write_on(unsigned me)
{
	unsigned random_state = me + 1;

	while (atomic_load(&file->done) == 0) {
		uint64_t mine[4], at[4];

		for (unsigned k = 0; k < 4; k++) {
			at[k] = (unsigned)rand_r(&random_state) % CELLS;
			mine[k] = atomic_fetch_add(&file->local[at[k]], 1) + 1;
			(void)kin_post(POOL, at[k] * LINE, LINE, KIN_ANY);
		}
		settle();
		for (unsigned k = 0; k < 4; k++) {
			if (atomic_load(&file->remote[at[k]]) < mine[k])
				_exit(1);
		}
		atomic_fetch_add(&file->rounds, 1);
	}
	_exit(0);
}

static bool
dies(void)
{
	static unsigned served;

	if (++served == 40)
		(void)raise(SIGKILL);
	return served == 39;
}

/* It serves until it is killed, by itself in the middle, or by others. */
static pid_t
server_begin(bool by_itself)
{
	pid_t child = forked();

	if (child == 0) {
		lost = by_itself ? dies : NULL;
		while (!take_over())
			(void)usleep(100);
		for (;;)
			(void)pause();
	}
	return child;
}

static void
is_served_by_any(void **state)
{
	pid_t writers[WRITERS], server;
	int status;

	(void)state;
	begin();
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = forked();
		if (writers[i] == 0)
			write_on(i);
	}
	for (unsigned i = 0; i < KILLS; i++) {
		server = server_begin(i % 2);
		(void)usleep(20000);
		(void)kill(server, SIGKILL);
		assert_int_equal(waitpid(server, &status, 0), server);
	}
	atomic_store(&file->done, 1);
	for (unsigned i = 0; i < WRITERS; i++) {
		assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
		assert_int_equal(status, 0);
	}
	assert_true(atomic_load(&file->rounds) > 10 * WRITERS);
	print_message("%u rounds\n", atomic_load(&file->rounds));
}

static void
serve_never(unsigned pool)
{
	struct kin_range ranges[KIN_RANGES];

	(void)kin_take(pool, ranges);
	(void)pause();
}

static bool
serves_and_closes(uint64_t asked)
{
	uint64_t old = clock_ns() - 2 * STUCK_NS;

	if (!take_over() || kin_wait(POOL, asked, old) != KIN_SERVED || !kin_serves(POOL))
		return false;
	kin_closed(POOL);
	return !kin_serves(POOL) && kin_wait(POOL, kin_ask(POOL), old) == KIN_NONE;
}

static bool
opens(uint64_t asked)
{
	(void)asked;
	return take_over();
}

static void
nobody_waits_for_who_does_not_serve(void **state)
{
	uint64_t old = clock_ns() - 2 * STUCK_NS;
	uint64_t asked;
	pid_t child;
	int status;

	(void)state;
	begin();
	assert_int_equal(kin_wait(POOL, kin_ask(POOL), old), KIN_NONE);
	child = forked();
	if (child == 0) {
		assert_true(kin_open(POOL, DEV, INO));
		kin_opened(POOL, DEV, INO, serve_never);
		for (;;)
			(void)pause();
	}
	while (!kin_has(POOL, DEV, INO))
		(void)usleep(1000);
	assert_false(kin_has(POOL, DEV, INO + 1));
	assert_false(kin_open(POOL, DEV, INO));
	asked = kin_ask(POOL);
	assert_int_equal(kin_wait(POOL, asked, clock_ns()), KIN_WAITS);
	assert_int_equal(kin_wait(POOL, asked, old), KIN_WAITS);
	(void)kill(child, SIGSTOP);
	assert_int_equal(kin_wait(POOL, asked, clock_ns()), KIN_WAITS);
	assert_int_equal(kin_wait(POOL, asked, old), KIN_STUCK);
	assert_true(kin_may_serve(POOL, asked));
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(kin_wait(POOL, asked, old), KIN_NONE);
	assert_false(kin_may_serve(POOL, asked));
	ends_well(serves_and_closes, asked);
}

static void
nothing(int signal)
{
	(void)signal;
}

/* Of a wait that one cuts short, too, it is seen that nobody serves. */
static void
signals_make_nobody_wait(void **state)
{
	const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
	enum kin_wait w = KIN_WAITS;
	uint64_t since;
	uint64_t asked;
	pid_t child;
	int status;

	(void)state;
	begin();
	child = server_begin(false);
	while (!kin_has(POOL, DEV, INO))
		(void)usleep(1000);
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	(void)signal(SIGALRM, nothing);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	asked = kin_ask(POOL);
	since = clock_ns();
	while (w == KIN_WAITS && clock_ns() - since < 1000000000ULL)
		w = kin_wait(POOL, asked, since);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(w, KIN_NONE);
}

static void
nobody_waits_for_who_is_stopped_as_it_opens(void **state)
{
	uint64_t old = clock_ns() - 2 * STUCK_NS;
	uint64_t asked;
	pid_t child;
	int status;

	(void)state;
	begin();
	child = forked();
	if (child == 0) {
		assert_true(kin_open(POOL, DEV, INO));
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_false(kin_open(POOL, DEV, INO));
	asked = kin_ask(POOL);
	assert_int_equal(kin_wait(POOL, asked, clock_ns()), KIN_NONE);
	assert_int_equal(kin_wait(POOL, asked, old), KIN_STUCK);
	assert_true(kin_may_serve(POOL, asked));
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(kin_wait(POOL, asked, old), KIN_NONE);
	assert_false(kin_may_serve(POOL, asked));
	ends_well(opens, asked);
}

/* However many live on. */
static void
who_closes_gives_its_place_back(void **state)
{
	pid_t children[MEMBERS + 1];
	uint64_t place;
	int status;

	(void)state;
	begin();
	for (unsigned i = 0; i < MEMBERS + 1; i++) {
		children[i] = forked();
		if (children[i] == 0) {
			assert_true(take_over());
			place = self_of(POOL);
			kin_closed(POOL);
			while (is_alive(place))
				(void)usleep(100);
			(void)raise(SIGSTOP);
			_exit(0);
		}
		assert_int_equal(waitpid(children[i], &status, WUNTRACED), children[i]);
	}
	assert_true(take_over());
	assert_true(kin_serves(POOL));
	assert_true(take_over());
	place = self_of(POOL);
	kin_closed(POOL);
	while (is_alive(place))
		(void)usleep(100);
	for (unsigned i = 0; i < MEMBERS + 1; i++) {
		(void)kill(children[i], SIGKILL);
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
	}
}

/* By a thread of each time. */
static void
is_served_each_time_that_it_is_open(void **state)
{
	pid_t child;
	int status;

	(void)state;
	begin();
	child = forked();
	if (child == 0)
		write_on(0);
	for (unsigned i = 0; i < 300; i++) {
		unsigned rounds = atomic_load(&file->rounds);

		if (take_over())
			assert_true(kin_serves(POOL));
		while (i % 3 && kin_serves(POOL) && atomic_load(&file->rounds) == rounds)
			(void)usleep(50);
		kin_closed(POOL);
	}
	atomic_store(&file->done, 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* One that was stopped meanwhile, as by a debugger, asks as of long ago: others have since. */
static bool
is_served_after(uint64_t asked)
{
	bool well = take_over() && kin_wait(POOL, asked, clock_ns()) == KIN_SERVED;

	for (unsigned bits = 31; bits < 64; bits++) {
		atomic_store(&kin->pools[POOL].asked, UINT64_C(1) << bits);
		atomic_store(&kin->pools[POOL].served, UINT64_C(1) << bits);
		well = well && kin_wait(POOL, asked, clock_ns()) == KIN_SERVED &&
		       !kin_may_serve(POOL, asked);
	}
	return well;
}

static void
who_was_away_for_long_is_served(void **state)
{
	(void)state;
	begin();
	ends_well(is_served_after, kin_ask(POOL));
}

static bool
serves_at(uint64_t count)
{
	atomic_store(&kin->pools[POOL].asked, count);
	atomic_store(&kin->pools[POOL].served, count);
	atomic_store(&kin->pools[POOL].bell, UINT32_MAX - 1);
	atomic_store(&kin->members[0].life, UINT32_MAX);
	if (!take_over() || !kin_serves(POOL))
		return false;
	for (unsigned i = 0; i < 5; i++)
		settle();
	return kin_serves(POOL);
}

static void
counts_go_on_beyond_32_bits(void **state)
{
	(void)state;
	begin();
	ends_well(serves_at, UINT32_MAX - 1);
}

static void
serve_slowly(unsigned pool)
{
	uint64_t asked = kin_asked(pool);

	atomic_fetch_add(&file->rounds, 1);
	while (pool == POOL && atomic_load(&file->done) == 0)
		(void)usleep(1000);
	kin_served(pool, asked);
}

static bool
is_served_soon(unsigned pool, uint64_t asked)
{
	uint64_t since = clock_ns();
	enum kin_wait w = KIN_WAITS;

	while (w == KIN_WAITS && clock_ns() - since < 10000000000ULL)
		w = kin_wait(pool, asked, since);
	return w == KIN_SERVED;
}

static bool
serves_both(uint64_t asked)
{
	uint64_t other;
	bool soon;

	for (unsigned pool = POOL; pool < POOL + 2; pool++) {
		if (!kin_open(pool, DEV, INO + pool))
			return false;
		kin_opened(pool, DEV, INO + pool, serve_slowly);
	}
	asked = kin_ask(POOL);
	while (atomic_load(&file->rounds) == 0)
		(void)usleep(1000);
	other = kin_ask(POOL + 1);
	soon = is_served_soon(POOL + 1, other);
	atomic_store(&file->done, 1);
	return soon && is_served_soon(POOL, asked);
}

/* As it does where a target of it does not answer. */
static void
a_pool_that_takes_its_time_holds_up_no_other(void **state)
{
	(void)state;
	begin();
	ends_well(serves_both, 0);
}

/* Nothing is posted there, and nobody told that it was served. */
static void
knows_whether_it_is(void **state)
{
	(void)state;
	kin = NULL;
	assert_false(kin_is());
	begin();
	assert_true(kin_is());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_taken_as_it_is),
		cmocka_unit_test(is_taken_however_much),
		cmocka_unit_test(all_to_the_end_is_one_word),
		cmocka_unit_test(waits_where_much_would_go_along),
		cmocka_unit_test(holes_are_of_what_was_posted_with_them),
		cmocka_unit_test(is_served_by_any),
		cmocka_unit_test(nobody_waits_for_who_does_not_serve),
		cmocka_unit_test(signals_make_nobody_wait),
		cmocka_unit_test(nobody_waits_for_who_is_stopped_as_it_opens),
		cmocka_unit_test(who_closes_gives_its_place_back),
		cmocka_unit_test(is_served_each_time_that_it_is_open),
		cmocka_unit_test(who_was_away_for_long_is_served),
		cmocka_unit_test(counts_go_on_beyond_32_bits),
		cmocka_unit_test(a_pool_that_takes_its_time_holds_up_no_other),
		cmocka_unit_test(knows_whether_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
