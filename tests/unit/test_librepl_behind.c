/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a log or an append stores behind something else is on no replica before that, and a tail in
 * one store, also where other lanes drain ranges in which both lie, or its own lane has flushed
 * one, or somebody else has on that while it was lent.
 *
 * Lanes and queues are those of the library; the target is played here. Behind each message it has
 * what a program would find there whose machine is lost at that moment.
 */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <librepl.h>

#include "clock.h"
#include "lane.h"
#include "logscan.h"
#include "profile.h"
#include "repl_lanes.h"
#include "ship.h"
#include "words.h"

#define POOL     (64UL << 10)
#define AREA     (32UL << 10) /* of the log, at the pool's start */
#define TAIL_OFF AREA         /* of appends */
#define DATA_OFF (AREA + LOGFMT_PAGE * 4)
#define MSG_SIZE 4096U
#define DEPTH    2U
#define LANES    2U
#define LOG_MAX  8
#define APPENDED 200U /* bytes */

#define RANGE_LANE 1U /* on which the other thread drains */

struct fab_lane {
	struct world *of;
	uint8_t buf[MSG_SIZE];
	uint8_t ack[DEPTH][WIRE_ACK_PLACE];
	size_t ack_len[DEPTH];
	unsigned acks_head;
	_Atomic unsigned acks_count;
	_Atomic bool mute; /* it gets what is sent and does not answer */
	char log[LOG_MAX];
};

struct world {
	struct fab_lane fab[LANES];
	struct lane lane[LANES];
	struct profile profile;
	pthread_mutex_t lock; /* guards what follows */
	uint8_t image[POOL] __attribute__((aligned(8)));
	bool looked_at; /* after each message */
	unsigned wrong; /* how often it was not as it must be */
};

static struct world *world; /* of the first replica */
static struct repl *r;
static bool drains_amid; /* whenever something is about to be queued */
static bool fails_amid;  /* who is asked to append, which has an early write on its way elsewhere */

#include "fab_lane_stubs.h"

/* ---- what is on the replica ---- */

static bool
log_is_whole(const uint8_t *area)
{
	struct logfmt_header h;
	struct logscan scan;
	unsigned other;

	return logfmt_header_read(area, 0, AREA, &h, &other, NULL) == 0 &&
	       logscan_run(area, &h, &scan, NULL) == 0;
}

static bool
appends_are_whole(const uint8_t *image)
{
	uint64_t tail;

	memcpy(&tail, image + TAIL_OFF, sizeof(tail));
	for (uint64_t at = DATA_OFF; at < tail; at++)
		if (image[at] != 'a')
			return false;
	return true;
}

/* What a copy brings of a tail is there already: half of it may arrive. */
static bool
copy_changes(const struct world *w, const struct wire_entry *en, const uint8_t *payload,
	     uint64_t off, uint64_t len)
{
	uint64_t from = off > en->off ? off : en->off;
	uint64_t to = off + len < en->off + en->len ? off + len : en->off + en->len;

	return en->op == WIRE_OP_COPY && from < to &&
	       memcmp(w->image + from, payload + (from - en->off), to - from) != 0;
}

/* Returns how much of the payload it has used. */
static size_t
world_store(struct world *w, const struct wire_entry *en, const uint8_t *payload)
{
	bool copies = en->op == WIRE_OP_COPY || en->op == WIRE_OP_ATOMIC8;

	if (w->looked_at)
		w->wrong += copy_changes(w, en, payload, LOGFMT_TAIL_OFF, LOGFMT_TAIL_SIZE) ||
			    copy_changes(w, en, payload, TAIL_OFF, WORDS_SIZE);
	if (copies)
		memcpy(w->image + en->off, payload, en->len);
	else if (en->op == WIRE_OP_TRIM)
		memset(w->image + en->off, 0, en->len);
	return copies ? en->len : 0;
}

/* Where its own tail word says; returns that place. */
static uint64_t
world_append(struct world *w, const struct wire_entry *en, const struct wire_commit_view *v)
{
	size_t len = v->payload_len - WIRE_LIMIT_SIZE;
	uint64_t place, tail;

	memcpy(&place, w->image + en->off, sizeof(place));
	memcpy(w->image + place, v->payload + WIRE_LIMIT_SIZE, len);
	tail = place + len;
	memcpy(w->image + en->off, &tail, sizeof(tail));
	return place;
}

/* ---- its lanes ---- */

static void
fab_lane_answer(struct fab_lane *l, const struct wire_ack *ack)
{
	unsigned at = (l->acks_head + l->acks_count) % DEPTH;

	l->ack_len[at] = wire_ack_encode(l->ack[at], ack);
	l->acks_count++;
}

uint8_t *
fab_lane_buf(struct fab_lane *l)
{
	return l->acks_count < DEPTH ? l->buf : NULL;
}

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	struct wire_ack ack = {.epoch = 1};
	struct world *w = l->of;
	struct wire_commit_view v;
	size_t used = 0;

	log_put(l, '(');
	assert_int_equal(wire_commit_decode(l->buf, len, POOL, &v, e), 0);
	if (fails_amid) {
		assert_true(claims_early(&r->claims, 0, POOL - LOGFMT_PAGE, 1));
		return err_set(e, REPL_E_LOST, "not here any more");
	}
	pthread_mutex_lock(&w->lock);
	for (uint32_t i = 0; i < v.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&v, i);

		ack.has_place = en.op == WIRE_OP_APPEND;
		if (ack.has_place)
			ack.place = world_append(w, &en, &v);
		else
			used += world_store(w, &en, v.payload + used);
		if (w->looked_at)
			w->wrong += !log_is_whole(w->image) || !appends_are_whole(w->image);
	}
	pthread_mutex_unlock(&w->lock);
	ack.seq = v.seq;
	fab_lane_answer(l, &ack);
	return 0;
}

int
fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e)
{
	return fab_lane_send(l, len, e);
}

/* By messages alone. */
static int
no_rma(struct err *e)
{
	return err_set(e, REPL_E_FAILED, "not here");
}

int
fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	(void)l;
	(void)src;
	(void)len;
	(void)off;
	return no_rma(e);
}

int
fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	return fab_lane_write(l, src, len, off, e);
}

int
fab_lane_write_committed(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			 struct err *e)
{
	return fab_lane_write(l, src, len, off, e);
}

int
fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
		   const struct fab_imm *imm, struct err *e)
{
	(void)imm;
	return fab_lane_write(l, src, len, off, e);
}

int
fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	return fab_lane_write(l, dst, len, off, e);
}

bool
fab_lane_turn(const struct fab_lane *l)
{
	return l->acks_count < DEPTH;
}

unsigned
fab_lane_rma_room(const struct fab_lane *l)
{
	(void)l;
	return 1;
}

void
fab_lane_poll(struct fab_lane *l, struct fab_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	if (l->acks_count == 0 || l->mute)
		return;
	ev->type = FAB_RECV;
	ev->data = l->ack[l->acks_head];
	ev->len = l->ack_len[l->acks_head];
	l->acks_head = (l->acks_head + 1) % DEPTH;
	l->acks_count--;
}

static void
nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

void
fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd, uint64_t deadline_ns)
{
	(void)lanes;
	(void)count;
	(void)wake_fd;
	(void)deadline_ns;
	nap();
}

struct lane *__wrap_remote_lane(struct remote *remote, unsigned lane);
struct shipment *__real_shipment_new(unsigned pieces, size_t bytes);
struct shipment *__wrap_shipment_new(unsigned pieces, size_t bytes);

struct lane *
__wrap_remote_lane(struct remote *remote, unsigned lane)
{
	return &((struct world *)(void *)remote)->lane[lane];
}

/* The moment before a drain is queued: another thread's drain of all has the time for it all. */
struct shipment *
__wrap_shipment_new(unsigned pieces, size_t bytes)
{
	if (drains_amid) {
		drains_amid = false;
		assert_int_equal(repl_persist(r, RANGE_LANE, 0, POOL), 0);
		drains_amid = true;
	}
	return __real_shipment_new(pieces, bytes);
}

/* ---- a handle ---- */

static struct world *
world_new(const uint8_t *mem)
{
	struct world *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	(void)pthread_mutex_init(&t->lock, NULL);
	profile_init(&t->profile);
	profile_set(&t->profile, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA, "test");
	for (unsigned i = 0; i < LANES; i++) {
		const struct lane_setup setup = {.fab = &t->fab[i],
						 .profile = &t->profile,
						 .depth = DEPTH,
						 .msg_size = MSG_SIZE,
						 .epoch = 1};

		t->fab[i].of = t;
		lane_init(&t->lane[i], &setup);
		lane_bind(&t->lane[i], mem);
	}
	return t;
}

static struct world *
world_of(unsigned replica)
{
	return (struct world *)(void *)r->replicas[replica].remote;
}

static void
begin_with(enum ack_kind ack, unsigned replicas, bool async)
{
	struct err e;

	err_clear(&e);
	r = calloc(1, sizeof(*r));
	assert_non_null(r);
	r->mem = calloc(1, POOL);
	assert_non_null(r->mem);
	assert_int_equal(repl_config_new(&r->cfg), 0);
	for (unsigned i = 0; i < replicas; i++) {
		r->replicas[i].remote = (struct remote *)(void *)world_new(r->mem);
		assert_int_equal(config_add_target(r->cfg, i ? "u@h/q" : "u@h/p", &e), 0);
		r->cfg->async[i] = async;
	}
	world = world_of(0);
	r->cfg->ack = (int)ack;
	r->size = POOL;
	r->replica_count = replicas;
	r->lane_count = LANES;
	r->slots = calloc(LANES, sizeof(*r->slots));
	assert_non_null(r->slots);
	assert_int_equal(turns_init(&r->appends, &r->abandoned), 0);
	/* As repl_open() has it. */
	if (ack == ACK_ALL) {
		assert_int_equal(claims_init(&r->claims, LANES, &r->abandoned), 0);
		r->claims_made = true;
	}
	if (ack != ACK_ALL || async)
		assert_int_equal(ship_new(r, &r->ship, &e), 0);
}

static void
begin(enum ack_kind ack)
{
	begin_with(ack, 1, false);
}

static void
end(void)
{
	if (r->ship) {
		ship_finish(r->ship, clock_deadline(10000), clock_deadline(10000));
		ship_stop(r->ship);
		ship_free(r->ship);
	}
	if (r->claims_made)
		claims_fini(&r->claims);
	turns_fini(&r->appends);
	for (unsigned i = 0; i < r->replica_count; i++) {
		assert_int_equal(r->replicas[i].lost, 0);
		assert_int_equal(world_of(i)->wrong, 0);
		assert_memory_equal(world_of(i)->image, r->mem, POOL);
		free(world_of(i));
	}
	repl_config_free(r->cfg);
	free(r->slots);
	free(r->mem);
	free(r);
}

/* One with a record, so that there is something to lose. */
static struct repl_log *
log_new(enum repl_log_kind kind)
{
	struct repl_log *log;

	assert_int_equal(repl_log_create(r, 0, AREA, kind, &log), 0);
	assert_int_equal(repl_log_append(log, 0, "first", 5, NULL), 0);
	return log;
}

static void
appends_begin(void)
{
	uint64_t tail = DATA_OFF;

	memcpy(r->mem + TAIL_OFF, &tail, sizeof(tail));
	assert_int_equal(repl_persist(r, 0, TAIL_OFF, sizeof(tail)), 0);
}

static void
append_once(void)
{
	uint8_t data[APPENDED];
	size_t off;

	memset(data, 'a', sizeof(data));
	assert_int_equal(repl_append(r, 0, TAIL_OFF, POOL, data, sizeof(data), &off), 0);
}

/* ---- lanes: the other drain has begun, and its messages wait for answers ---- */

static void *
range_main(void *arg)
{
	*(int *)arg = repl_persist(r, RANGE_LANE, 0, POOL);
	return NULL;
}

enum what { AN_APPEND, A_TRIM, AN_APPEND_BY_WORD };

struct user {
	pthread_t thread;
	struct repl_log *log;
	enum what what;
	int rc;
};

static void *
user_main(void *arg)
{
	struct user *u = arg;

	switch (u->what) {
	case AN_APPEND:
		u->rc = repl_log_append(u->log, 0, "second", 6, NULL);
		break;
	case A_TRIM:
		u->rc = repl_log_trim(u->log, 0, repl_log_tail(u->log));
		break;
	case AN_APPEND_BY_WORD:
		append_once();
		break;
	}
	return NULL;
}

static void
wait_for_claims(void)
{
	bool waiting = false;

	while (!waiting) {
		nap();
		pthread_mutex_lock(&r->claims.lock);
		waiting = r->claims.waiting > 0;
		pthread_mutex_unlock(&r->claims.lock);
	}
}

/* What is stored while the other drain is under way is on its own way, too. */
static void
use_amid_a_drain(struct user *u)
{
	pthread_t range;
	int rc = 0;

	world->looked_at = true;
	world->fab[RANGE_LANE].mute = true;
	assert_int_equal(pthread_create(&range, NULL, range_main, &rc), 0);
	while (world->fab[RANGE_LANE].acks_count < DEPTH)
		nap();
	assert_int_equal(pthread_create(&u->thread, NULL, user_main, u), 0);
	wait_for_claims();
	/* The copy that is to be the second is still the old one. */
	if (u->what == A_TRIM)
		assert_memory_not_equal(r->mem + logfmt_copy_off(0), r->mem + logfmt_copy_off(1),
					LOGFMT_HEADER_SIZE);
	world->fab[RANGE_LANE].mute = false;
	(void)pthread_join(range, NULL);
	(void)pthread_join(u->thread, NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(u->rc, 0);
	assert_int_equal(world->wrong, 0);
}

static void
a_tail_is_behind_its_records(void **state)
{
	(void)state;
	for (unsigned k = REPL_LOG_CHECKSUM; k <= REPL_LOG_REGISTER; k++) {
		struct user u = {.what = AN_APPEND};

		begin(ACK_ALL);
		u.log = log_new((enum repl_log_kind)k);
		use_amid_a_drain(&u);
		repl_log_close(u.log);
		end();
	}
}

static void
the_second_header_is_behind_the_first(void **state)
{
	struct user u = {.what = A_TRIM};

	(void)state;
	begin(ACK_ALL);
	u.log = log_new(REPL_LOG_POINTER);
	use_amid_a_drain(&u);
	repl_log_close(u.log);
	end();
}

/* ---- the lane's own: it has flushed all, and not drained it ---- */

static void
look_once_it_is_there(struct world *w)
{
	while (!w->looked_at) {
		pthread_mutex_lock(&w->lock);
		w->looked_at = memcmp(w->image, r->mem, POOL) == 0;
		pthread_mutex_unlock(&w->lock);
		if (!w->looked_at)
			nap();
	}
}

static void
all_is_flushed(void)
{
	for (unsigned i = 0; i < r->replica_count; i++)
		look_once_it_is_there(world_of(i));
	assert_int_equal(repl_flush(r, 0, 0, POOL), 0);
}

static void
a_log_is_whole_behind_a_flush(bool async)
{
	for (unsigned k = REPL_LOG_CHECKSUM; k <= REPL_LOG_REGISTER; k++) {
		struct repl_log *log;

		begin_with(ACK_ALL, 1, async);
		log = log_new((enum repl_log_kind)k);
		all_is_flushed();
		assert_int_equal(repl_log_append(log, 0, "second", 6, NULL), 0);
		all_is_flushed();
		assert_int_equal(repl_log_trim(log, 0, repl_log_tail(log)), 0);
		repl_log_close(log);
		end();
	}
}

static void
a_tail_is_behind_its_records_in_a_flush(void **state)
{
	(void)state;
	a_log_is_whole_behind_a_flush(false);
}

static void
a_queued_tail_is_behind_its_records_in_a_flush(void **state)
{
	(void)state;
	a_log_is_whole_behind_a_flush(true);
}

/* The first replica chooses the place, the other one gets it from here. */
static void
a_tail_word_is_behind_its_bytes_in_a_flush(void **state)
{
	(void)state;
	begin_with(ACK_ALL, 2, false);
	repl_log_close(log_new(REPL_LOG_CHECKSUM));
	appends_begin();
	append_once();
	all_is_flushed();
	append_once();
	assert_int_equal(repl_drain(r, 0), 0);
	end();
}

/* ---- the lane's own, by another thread: it was lent while its user waited for a claim ---- */

/* RANGE_LANE has written all before its drain, and whoever did so is in it. */
static void
use_a_lane_that_is_lent(struct user *u)
{
	struct err e;

	for (unsigned i = 0; i < r->replica_count; i++)
		look_once_it_is_there(world_of(i));
	err_clear(&e);
	assert_int_equal(lane_enter(r, RANGE_LANE, &e), 0);
	assert_true(claims_early(&r->claims, RANGE_LANE, 0, POOL));
	assert_int_equal(pthread_create(&u->thread, NULL, user_main, u), 0);
	/* The user wants that lane, and has left his own. */
	while (atomic_load(&r->slots[RANGE_LANE].wanted) == 0)
		nap();
	assert_int_equal(repl_flush(r, 0, 0, POOL), 0);
	claims_drop(&r->claims, RANGE_LANE);
	lane_leave(r, RANGE_LANE);
	(void)pthread_join(u->thread, NULL);
	assert_int_equal(u->rc, 0);
	assert_int_equal(repl_drain(r, 0), 0);
}

static void
a_tail_is_behind_its_records_on_a_lane_that_was_lent(void **state)
{
	(void)state;
	for (unsigned k = REPL_LOG_CHECKSUM; k <= REPL_LOG_REGISTER; k++) {
		struct user u = {.what = AN_APPEND};

		begin(ACK_ALL);
		u.log = log_new((enum repl_log_kind)k);
		use_a_lane_that_is_lent(&u);
		repl_log_close(u.log);
		end();
	}
}

static void
a_tail_word_is_behind_its_bytes_on_a_lane_that_was_lent(void **state)
{
	struct user u = {.what = AN_APPEND_BY_WORD};

	(void)state;
	begin_with(ACK_ALL, 2, false);
	repl_log_close(log_new(REPL_LOG_CHECKSUM));
	appends_begin();
	append_once();
	use_a_lane_that_is_lent(&u);
	end();
}

/* The lane of the one that is left: whoever would write the same has to make an end of it. */
static void
an_early_write_on_a_lane_that_was_lent_stays_one(void **state)
{
	uint8_t data[APPENDED] = {0};
	size_t off;

	(void)state;
	begin_with(ACK_ALL, 2, false);
	repl_log_close(log_new(REPL_LOG_CHECKSUM));
	appends_begin();
	r->cfg->on_loss = REPL_ON_LOSS_FAIL;
	fails_amid = true;
	assert_int_equal(repl_append(r, 0, TAIL_OFF, POOL, data, sizeof(data), &off), REPL_E_LOST);
	fails_amid = false;
	assert_int_not_equal(r->replicas[0].lost, 0);
	assert_true(claims_has_early(&r->claims, 0));
	r->replicas[0].lost = 0;
	end();
}

/* ---- queues: another drain is queued whole at each moment in front of one ---- */

static void
a_tail_is_queued_behind_its_records(void **state)
{
	(void)state;
	for (unsigned k = REPL_LOG_CHECKSUM; k <= REPL_LOG_REGISTER; k++) {
		struct repl_log *log;

		begin(ACK_ANY);
		log = log_new((enum repl_log_kind)k);
		world->looked_at = drains_amid = true;
		assert_int_equal(repl_log_append(log, 0, "second", 6, NULL), 0);
		assert_int_equal(repl_log_trim(log, 0, repl_log_tail(log)), 0);
		drains_amid = false;
		assert_int_equal(world->wrong, 0);
		repl_log_close(log);
		end();
	}
}

static void
a_tail_word_is_queued_behind_its_bytes(void **state)
{
	(void)state;
	begin(ACK_ANY);
	repl_log_close(log_new(REPL_LOG_CHECKSUM));
	appends_begin();
	append_once();
	world->looked_at = drains_amid = true;
	append_once();
	drains_amid = false;
	assert_int_equal(world->wrong, 0);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_is_behind_its_records),
		cmocka_unit_test(the_second_header_is_behind_the_first),
		cmocka_unit_test(a_tail_is_behind_its_records_in_a_flush),
		cmocka_unit_test(a_queued_tail_is_behind_its_records_in_a_flush),
		cmocka_unit_test(a_tail_word_is_behind_its_bytes_in_a_flush),
		cmocka_unit_test(a_tail_is_behind_its_records_on_a_lane_that_was_lent),
		cmocka_unit_test(a_tail_word_is_behind_its_bytes_on_a_lane_that_was_lent),
		cmocka_unit_test(an_early_write_on_a_lane_that_was_lent_stays_one),
		cmocka_unit_test(a_tail_is_queued_behind_its_records),
		cmocka_unit_test(a_tail_word_is_queued_behind_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
