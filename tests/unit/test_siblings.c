/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of the handles on replicas of one pool set all have one generation, but for those that were lost,
 * which are behind the others before anything is acknowledged without them.
 */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../librepl/src/ownwait.c"
#include "../../librepl/src/siblings.c"

#define HANDLES 3U

/* ---- handles whose targets answer or are lost when they are told ---- */

struct handle {
	struct repl repl;
	struct repl_set set;
	struct generation there; /* as recorded on the target */
	bool breaks;             /* takes what it is told, and is lost over it */
	uint64_t deadline_ns;    /* of what it was told last */
};

static struct handle handles[HANDLES];
static struct repl_config config = {.op_timeout_ms = 1000};
static uint8_t next_id;
static unsigned fork_count;
static int interrupt; /* the signal that comes while the list of all is looked at; 0: none */

unsigned
forks_count(void)
{
	if (interrupt)
		(void)raise(interrupt);
	return fork_count;
}

int
handle_abandoned(struct err *e)
{
	return err_set(e, REPL_E_LOST, "abandoned");
}

int
local_new_id(struct gen_id *id, struct err *e)
{
	(void)e;
	memset(id, ++next_id, sizeof(*id));
	return 0;
}

uint64_t
repl_loss_deadline(const struct repl *r)
{
	return clock_deadline(r->cfg->op_timeout_ms / 4);
}

unsigned
repl_bases_kept(const struct repl *r, struct gen_id *keep)
{
	keep[0] = ((const struct handle *)r)->there.current;
	return 1;
}

int
repl_tell(struct repl *r, const struct generation *chain, uint64_t deadline_ns, struct err *e)
{
	struct handle *h = (struct handle *)r;

	if (atomic_load(&r->replicas[0].lost))
		return err_set(e, REPL_E_LOST, "lost before");
	h->there = *chain;
	h->deadline_ns = deadline_ns;
	if (!h->breaks)
		return 0;
	atomic_store(&r->replicas[0].lost, REPL_E_TIMEOUT);
	return err_set(e, REPL_E_LOST, "lost over it");
}

/* uuid 0: of a set without headers. */
static struct repl *
opened(unsigned i, uint8_t uuid, const char *chain, enum sidecar_state state)
{
	struct handle *h = &handles[i];

	memset(h, 0, sizeof(*h));
	h->repl.cfg = &config;
	h->repl.set = &h->set;
	h->set.has_attr = uuid != 0;
	memset(h->set.attr, uuid, sizeof(h->set.attr));
	h->set.found.state = state;
	h->set.found.waited = true;
	for (size_t k = 0; k < strlen(chain); k++) {
		struct generation *g = &h->set.found.generation;

		(k == 0 ? &g->current : &g->history[k - 1])->b[0] = (uint8_t)chain[k];
	}
	h->there = h->set.found.generation;
	assert_int_equal(siblings_join(&h->repl, NULL), 0);
	return &h->repl;
}

static void
closed(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		siblings_leave(&handles[i].repl);
}

static int
begins(unsigned i)
{
	return siblings_record(&handles[i].repl, false, clock_deadline(1000), NULL);
}

/* As repl_lose() does. */
static void
loses(unsigned i, uint64_t deadline_ns)
{
	struct siblings *s = siblings_lock(&handles[i].repl);

	assert_non_null(s);
	atomic_store(&handles[i].repl.replicas[0].lost, REPL_E_LOST);
	siblings_advance(s, &handles[i].repl, deadline_ns);
	siblings_unlock(s);
}

/* As its keeper does, when it has got what it lacked. */
static void
comes_back(unsigned i)
{
	struct siblings *s = siblings_lock(&handles[i].repl);

	siblings_rejoin(s, &handles[i].repl);
	siblings_unlock(s);
	handles[i].there = handles[i].repl.generation;
	atomic_store(&handles[i].repl.replicas[0].lost, 0);
}

static enum gen_relation
relation(unsigned a, unsigned b)
{
	return gen_compare(&handles[a].there, &handles[b].there);
}

static bool
has(unsigned i, char letter)
{
	for (unsigned k = 0; k < GEN_HISTORY; k++)
		if (handles[i].there.history[k].b[0] == (uint8_t)letter)
			return true;
	return false;
}

/* ---- what holds ---- */

static void
all_that_begin_have_one_generation(void **state)
{
	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UNKNOWN);
	(void)opened(1, 1, "ba", SIDECAR_UP_TO_DATE);
	(void)opened(2, 1, "", SIDECAR_UP_TO_DATE);
	for (unsigned i = 0; i < HANDLES; i++)
		assert_int_equal(begins(i), 0);
	assert_int_equal(relation(0, 1), GEN_EQUAL);
	assert_int_equal(relation(0, 2), GEN_EQUAL);
	/* On top of the newest, whoever begins first. */
	assert_true(has(0, 'b'));
	closed(HANDLES);
}

static void
lost_one_is_behind(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HANDLES; i++)
		(void)opened(i, 1, "a", SIDECAR_UP_TO_DATE);
	assert_int_equal(begins(0) | begins(1), 0);
	loses(0, clock_deadline(1000));
	assert_int_equal(relation(0, 1), GEN_BEHIND);
	/* Also one that begins after that. */
	assert_int_equal(begins(2), 0);
	assert_int_equal(relation(1, 2), GEN_EQUAL);
	loses(1, clock_deadline(1000));
	assert_int_equal(relation(1, 2), GEN_BEHIND);
	assert_int_equal(relation(0, 1), GEN_BEHIND);
	closed(HANDLES);
}

static void
one_lost_over_it_is_behind_too(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HANDLES; i++) {
		(void)opened(i, 1, "a", SIDECAR_UP_TO_DATE);
		assert_int_equal(begins(i), 0);
	}
	handles[1].breaks = true;
	loses(2, clock_deadline(1000));
	assert_int_equal(relation(2, 1), GEN_BEHIND);
	assert_int_equal(relation(1, 0), GEN_BEHIND);
	closed(HANDLES);
}

static void
one_lost_as_it_begins_is_behind(void **state)
{
	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	(void)opened(1, 1, "a", SIDECAR_UP_TO_DATE);
	assert_int_equal(begins(0), 0);
	handles[1].breaks = true;
	assert_int_equal(begins(1), REPL_E_LOST);
	assert_int_equal(relation(1, 0), GEN_BEHIND);
	closed(2);
}

static void
each_has_a_share_of_the_time(void **state)
{
	uint64_t end_ns = clock_deadline(60000);

	(void)state;
	for (unsigned i = 0; i < HANDLES; i++) {
		(void)opened(i, 1, "a", SIDECAR_UP_TO_DATE);
		assert_int_equal(begins(i), 0);
	}
	loses(1, end_ns);
	/* The list begins with the last one. */
	assert_true(handles[2].deadline_ns < end_ns - 20 * NS_PER_S);
	assert_true(handles[0].deadline_ns > end_ns - NS_PER_S && handles[0].deadline_ns <= end_ns);
	closed(HANDLES);
}

/* One hangs as it is told first, or a call comes late: no fault of those that are well. */
static void
who_is_well_has_time_behind_one_that_hangs(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		(void)opened(i, 1, "a", SIDECAR_UP_TO_DATE);
		handles[1].breaks = i == 1;
		if (i == 0)
			assert_int_equal(begins(i), 0);
	}
	assert_int_equal(siblings_record(&handles[1].repl, false, clock_now_ns(), NULL),
			 REPL_E_LOST);
	assert_true(handles[0].deadline_ns > clock_deadline(50));
	closed(2);
}

/* For a call of another one may wait for it when that has a quarter of its time left. */
static void
who_begins_beside_others_has_a_quarter(void **state)
{
	uint64_t end_ns = clock_deadline(60000);

	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	(void)opened(1, 1, "a", SIDECAR_UP_TO_DATE);
	assert_int_equal(siblings_record(&handles[0].repl, false, end_ns, NULL), 0);
	assert_true(handles[0].deadline_ns == end_ns);
	handles[1].breaks = true;
	assert_int_equal(siblings_record(&handles[1].repl, false, end_ns, NULL), REPL_E_LOST);
	assert_true(handles[1].deadline_ns <= clock_deadline(config.op_timeout_ms / 4));
	assert_true(handles[0].deadline_ns <= clock_deadline(config.op_timeout_ms / 4));
	closed(2);
}

static void
filled_one_is_as_whole_as_its_source(void **state)
{
	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	(void)opened(1, 1, "", SIDECAR_UP_TO_DATE);
	assert_int_equal(siblings_record(&handles[1].repl, true, clock_deadline(1000), NULL), 0);
	assert_int_equal(relation(0, 1), GEN_EQUAL);
	closed(2);
	/* Who was promoted may lack what the local part had. */
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	handles[0].set.found.waited = false;
	(void)opened(1, 1, "", SIDECAR_UP_TO_DATE);
	assert_int_equal(siblings_record(&handles[1].repl, true, clock_deadline(1000), NULL), 0);
	assert_int_equal(relation(0, 1), GEN_BEHIND);
	closed(2);
	/* What a killed program has left may, too. */
	(void)opened(0, 1, "a", SIDECAR_UNKNOWN);
	(void)opened(1, 1, "", SIDECAR_UP_TO_DATE);
	(void)opened(2, 1, "", SIDECAR_UP_TO_DATE);
	for (unsigned i = 1; i < HANDLES; i++)
		assert_int_equal(
			siblings_record(&handles[i].repl, true, clock_deadline(1000), NULL), 0);
	assert_int_equal(relation(0, 1), GEN_BEHIND);
	assert_int_equal(relation(1, 2), GEN_EQUAL);
	closed(HANDLES);
}

static void
others_are_not_told(void **state)
{
	const struct repl *other;

	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UNKNOWN);
	(void)opened(1, 2, "ba", SIDECAR_UNKNOWN);
	(void)opened(2, 0, "ca", SIDECAR_UNKNOWN);
	for (unsigned i = 0; i < HANDLES; i++) {
		assert_int_equal(siblings_judge(&handles[i].repl, &other), SETSOURCE_WHOLE);
		assert_int_equal(begins(i), 0);
	}
	assert_int_equal(relation(0, 1), GEN_DIVERGED);
	closed(HANDLES);
	/* What the parent of a fork has open is not this process's. */
	(void)opened(0, 1, "a", SIDECAR_UNKNOWN);
	fork_count++;
	(void)opened(1, 1, "ba", SIDECAR_UNKNOWN);
	assert_int_equal(siblings_judge(&handles[0].repl, &other), SETSOURCE_WHOLE);
	closed(2);
}

static void
other_one_is_named(void **state)
{
	const struct repl *other = NULL;

	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UNKNOWN);
	(void)opened(1, 1, "a", SIDECAR_UNKNOWN);
	(void)opened(2, 1, "ba", SIDECAR_UNKNOWN);
	assert_int_equal(siblings_judge(&handles[0].repl, &other), SETSOURCE_BEHIND);
	assert_ptr_equal(other, &handles[2].repl);
	assert_int_equal(siblings_judge(&handles[2].repl, &other), SETSOURCE_WHOLE);
	assert_false(siblings_earlier_whole(&handles[1].repl));
	closed(HANDLES);
	(void)opened(0, 1, "ba", SIDECAR_UNKNOWN);
	(void)opened(1, 1, "a", SIDECAR_UNKNOWN);
	assert_true(siblings_earlier_whole(&handles[1].repl));
	assert_false(siblings_earlier_whole(&handles[0].repl));
	closed(2);
}

static void
one_that_can_be_read_is_named_first(void **state)
{
	const struct repl *other = NULL;

	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UNKNOWN);
	(void)opened(1, 1, "ba", SIDECAR_UNKNOWN);
	(void)opened(2, 1, "ba", SIDECAR_INCONSISTENT);
	atomic_store(&handles[2].set.unfinished, true);
	assert_int_equal(siblings_judge(&handles[0].repl, &other), SETSOURCE_BEHIND);
	assert_ptr_equal(other, &handles[1].repl);
	assert_true(siblings_readable(&handles[2].repl));
	atomic_store(&handles[1].set.unfinished, true);
	assert_int_equal(siblings_judge(&handles[0].repl, &other), SETSOURCE_BEHIND);
	assert_true(siblings_readable(&handles[2].repl));
	assert_false(siblings_readable(&handles[0].repl));
	closed(HANDLES);
	/* What can't be read is nobody's source. */
	(void)opened(0, 1, "ba", SIDECAR_INCONSISTENT);
	atomic_store(&handles[0].set.unfinished, true);
	(void)opened(1, 1, "a", SIDECAR_UNKNOWN);
	assert_false(siblings_earlier_whole(&handles[1].repl));
	closed(2);
}

static void
one_that_comes_back_is_of_their_generation(void **state)
{
	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	(void)opened(1, 1, "a", SIDECAR_UP_TO_DATE);
	assert_int_equal(begins(0), 0);
	assert_int_equal(begins(1), 0);
	loses(0, clock_deadline(1000));
	assert_int_equal(relation(0, 1), GEN_BEHIND);
	comes_back(0);
	assert_int_equal(relation(0, 1), GEN_EQUAL);
	loses(1, clock_deadline(1000));
	assert_int_equal(relation(0, 1), GEN_AHEAD);
	closed(2);
}

static void
who_is_away_for_long_is_known_when_it_comes_back(void **state)
{
	struct generation before;

	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	(void)opened(1, 1, "a", SIDECAR_UP_TO_DATE);
	assert_int_equal(begins(0), 0);
	assert_int_equal(begins(1), 0);
	loses(0, clock_deadline(1000));
	before = handles[0].there;
	for (unsigned k = 0; k < 2 * GEN_HISTORY; k++) {
		loses(1, clock_deadline(1000));
		comes_back(1);
	}
	comes_back(0);
	assert_int_equal(gen_compare(&handles[0].there, &before), GEN_AHEAD);
	closed(2);
}

/* The one that is not copied into stays whole. */
static void
one_at_a_time_is_copied_into_directly(void **state)
{
	struct repl *a = opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	struct repl *b = opened(1, 1, "a", SIDECAR_UP_TO_DATE);
	struct repl *c = opened(2, 1, "a", SIDECAR_UP_TO_DATE);

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(begins(i), 0);
		loses(i, clock_deadline(1000));
	}
	assert_true(siblings_direct_begin(a, true));
	assert_true(siblings_direct_begin(a, true));
	assert_false(siblings_direct_begin(b, true));
	siblings_direct_end(b);
	assert_false(siblings_direct_begin(b, false));
	/* Beside one that is whole. */
	comes_back(2);
	assert_true(siblings_direct_begin(b, true));
	assert_false(siblings_direct_begin(c, false));
	siblings_direct_end(a);
	siblings_direct_end(b);
	assert_true(siblings_direct_begin(c, false));
	/* One that is not whole waits for none, and is waited for. */
	siblings_direct_note(a);
	siblings_direct_end(c);
	assert_false(siblings_direct_begin(c, false));
	siblings_direct_end(a);
	assert_true(siblings_direct_begin(c, false));
	siblings_direct_end(c);
	closed(3);
}

/* Whoever has them is not there. */
static void
a_child_that_comes_back_waits_for_none(void **state)
{
	struct siblings *s;

	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	s = siblings_lock(&handles[0].repl);
	assert_non_null(s);
	atomic_store(&handles[0].repl.abandoned, true);
	assert_null(siblings_lock(&handles[0].repl));
	atomic_store(&handles[0].repl.abandoned, false);
	siblings_unlock(s);
	closed(1);
}

/* As in the child of a fork: what another thread has locked stays so. */
static void
is_abandoned(unsigned i)
{
	atomic_store(&handles[i].repl.replicas[0].lost, REPL_E_LOST);
	atomic_store(&handles[i].repl.abandoned, true);
}

static void
a_child_that_comes_back_amid_a_loss_tells_nobody(void **state)
{
	struct siblings *s;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		(void)opened(i, 1, "a", SIDECAR_UP_TO_DATE);
		assert_int_equal(begins(i), 0);
		assert_int_equal(pthread_mutex_init(&handles[i].repl.lock, NULL), 0);
	}
	s = siblings_lock(&handles[0].repl);
	assert_int_equal(pthread_mutex_lock(&handles[1].repl.lock), 0);
	is_abandoned(0);
	is_abandoned(1);
	siblings_advance(s, &handles[0].repl, clock_deadline(1000));
	/* It was found to be told of it, and then abandoned. */
	(void)deadline_share(&handles[1].repl, clock_deadline(1000));
	assert_int_equal(pthread_mutex_unlock(&handles[1].repl.lock), 0);
	for (unsigned i = 0; i < 2; i++)
		atomic_store(&handles[i].repl.abandoned, false);
	siblings_unlock(s);
	closed(2);
}

/* Nor does it know what they have in common. */
static void
a_child_that_comes_back_amid_an_opening_or_a_write_has_none(void **state)
{
	const struct repl *other = NULL;
	struct generation chain;

	(void)state;
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	(void)opened(1, 1, "ba", SIDECAR_UP_TO_DATE);
	is_abandoned(0);
	assert_int_equal(begins(0), REPL_E_LOST);
	assert_int_equal(siblings_generation(&handles[0].repl, &chain, NULL), REPL_E_LOST);
	assert_int_equal(siblings_judge(&handles[0].repl, &other), SETSOURCE_WHOLE);
	assert_false(siblings_earlier_whole(&handles[0].repl));
	assert_false(siblings_readable(&handles[0].repl));
	siblings_direct_note(&handles[0].repl);
	assert_false(gen_id_is_nil(&handles[1].there.current));
	atomic_store(&handles[0].repl.abandoned, false);
	closed(2);
}

static volatile sig_atomic_t child_status = -1;

static void
on_signal(int sig)
{
	int status = -1;
	pid_t pid = fork();

	(void)sig;
	if (pid == 0)
		_exit(0);
	if (pid > 0 && waitpid(pid, &status, 0) == pid)
		child_status = status;
}

/* Its fork waits for no lock that its thread has. */
static void
a_handler_may_fork_amid_an_opening_or_a_close(void **state)
{
	const struct sigaction act = {.sa_handler = on_signal};

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	(void)opened(0, 1, "a", SIDECAR_UP_TO_DATE);
	interrupt = SIGUSR1;
	(void)opened(1, 1, "a", SIDECAR_UP_TO_DATE);
	interrupt = 0;
	assert_int_equal(child_status, 0);
	closed(2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_begin_have_one_generation),
		cmocka_unit_test(lost_one_is_behind),
		cmocka_unit_test(one_lost_over_it_is_behind_too),
		cmocka_unit_test(one_lost_as_it_begins_is_behind),
		cmocka_unit_test(each_has_a_share_of_the_time),
		cmocka_unit_test(who_is_well_has_time_behind_one_that_hangs),
		cmocka_unit_test(who_begins_beside_others_has_a_quarter),
		cmocka_unit_test(filled_one_is_as_whole_as_its_source),
		cmocka_unit_test(others_are_not_told),
		cmocka_unit_test(other_one_is_named),
		cmocka_unit_test(one_that_can_be_read_is_named_first),
		cmocka_unit_test(one_that_comes_back_is_of_their_generation),
		cmocka_unit_test(who_is_away_for_long_is_known_when_it_comes_back),
		cmocka_unit_test(one_at_a_time_is_copied_into_directly),
		cmocka_unit_test(a_child_that_comes_back_waits_for_none),
		cmocka_unit_test(a_child_that_comes_back_amid_a_loss_tells_nobody),
		cmocka_unit_test(a_child_that_comes_back_amid_an_opening_or_a_write_has_none),
		cmocka_unit_test(a_handler_may_fork_amid_an_opening_or_a_close),
	};

	/* Where one waits for ever. */
	(void)alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
