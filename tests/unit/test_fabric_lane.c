/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane whose provider has no room for a while keeps what it is given: all of it goes out, in
 * order, when there is room again, and one that closes meanwhile says so. Of an RNIC, that is taken
 * from the pool what may be, when it is sent and not when it was posted, and never once it is cut.
 * What moves is told of all lanes of a session, where there is no /proc, too.
 */
#include "unit.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "clock.h"

#include "../../librepl/common/fabric_lane.c"
#include "../../librepl/common/fabric_source.c"

#define WAIT_MS 20000U
#define DEPTH   8U
#define SIZE    4096U
#define REGION  (1U << 20)
#define LANES   2U /* of a session, at most */

DIR *__wrap_opendir(const char *path);

/* As without /proc. */
DIR *
__wrap_opendir(const char *path)
{
	(void)path;
	return NULL;
}

/* Each message is answered by its first 8 bytes; one that begins with an x ends the lane. */
struct echo {
	struct fab_server *s;
	uint8_t *mem;
	unsigned lanes, accepted, joined;
	char order[DEPTH + 1]; /* first letters, in the order of arrival */
	uint8_t seen;          /* of mem, when the last message came */
	atomic_uint count;     /* last: with it the others may be looked at */
	atomic_uint waits;
};

static void
echo_message(struct echo *t, const struct fab_event *ev)
{
	unsigned count = atomic_load(&t->count);

	t->seen = t->mem[SIZE];
	if (count < DEPTH) {
		t->order[count] = (char)ev->data[0];
		atomic_store(&t->count, count + 1);
	}
	if (ev->data[0] == 'x') {
		fab_server_drop(t->s, ev->lane);
		return;
	}
	assert_int_equal(fab_server_reply(t->s, ev->lane, ev->data, 8), 0);
	fab_server_repost(t->s, ev->lane, ev->slot);
}

static void *
echo_main(void *arg)
{
	uint64_t deadline_ns = clock_deadline(WAIT_MS);
	struct echo *t = arg;
	struct fab_event ev = {0};

	while (ev.type != FAB_CLOSED && clock_now_ns() < deadline_ns) {
		fab_server_poll(t->s, &ev);
		if (ev.type == FAB_REQUEST)
			(void)fab_server_accept(t->s, t->accepted++, NULL);
		else if (ev.type == FAB_JOINED && ++t->joined == t->lanes)
			fab_server_close_port(t->s);
		else if (ev.type == FAB_RECV)
			echo_message(t, &ev);
		else if (ev.type == FAB_NONE) {
			atomic_fetch_add(&t->waits, 1);
			fab_server_wait(t->s, -1, deadline_ns);
		}
	}
	return NULL;
}

/* ---- a provider without room ---- */

static bool full;
static unsigned refusals;
static struct fi_ops_msg *real_msg;
static struct fi_ops_rma *real_rma;

static bool
no_room(void)
{
	refusals += full;
	return full;
}

static ssize_t
inject_or_not(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	return no_room() ? -FI_EAGAIN : real_msg->inject(ep, buf, len, to);
}

static ssize_t
send_or_not(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	return no_room() ? -FI_EAGAIN : real_msg->send(ep, buf, len, desc, to, context);
}

static ssize_t
write_or_not(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return no_room() ? -FI_EAGAIN : real_rma->writemsg(ep, msg, flags);
}

static ssize_t
read_or_not(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return no_room() ? -FI_EAGAIN : real_rma->readmsg(ep, msg, flags);
}

struct fixture {
	struct echo t;
	struct fab_lane *lane[LANES];
	struct fab_lane *l; /* the first of them */
	pthread_t thread;
	bool joined;
	struct fi_ops_msg msg;
	struct fi_ops_rma rma;
};

static void
begin_lanes(struct fixture *f, unsigned lanes)
{
	struct fab_params p = {.provider = "tcp",
			       .host = "127.0.0.1",
			       .depth = DEPTH,
			       .msg_size = SIZE,
			       .key = 0x1122334455667788};
	static const uint8_t hello[WIRE_HELLO_SIZE] = {WIRE_VERSION};

	memset(f, 0, sizeof(*f));
	full = false;
	refusals = 0;
	f->t.mem = calloc(1, REGION);
	assert_non_null(f->t.mem);
	f->t.lanes = lanes;
	assert_int_equal(fab_server_new(&p, lanes, &f->t.s, NULL), 0);
	assert_int_equal(fab_server_register(f->t.s, 0, f->t.mem, REGION, true, NULL), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, echo_main, &f->t), 0);
	p.port = fab_server_port(f->t.s);
	for (p.lane = 0; p.lane < lanes; p.lane++)
		assert_int_equal(fab_lane_connect(&p, hello, sizeof(hello), &f->lane[p.lane], NULL),
				 0);
	assert_int_equal(fab_lanes_connected(f->lane, lanes, &p, clock_deadline(WAIT_MS), NULL), 0);
	f->l = f->lane[0];
	real_msg = f->l->ep->msg;
	real_rma = f->l->ep->rma;
	f->msg = *real_msg;
	f->msg.inject = inject_or_not;
	f->msg.send = send_or_not;
	f->rma = *real_rma;
	f->rma.writemsg = write_or_not;
	f->rma.readmsg = read_or_not;
	f->l->ep->msg = &f->msg;
	f->l->ep->rma = &f->rma;
}

static void
begin(struct fixture *f)
{
	begin_lanes(f, 1);
}

/* The target has seen the lane's end, behind all that it was sent. */
static void
await_end(struct fixture *f)
{
	if (!f->joined)
		(void)pthread_join(f->thread, NULL);
	f->joined = true;
}

static void
end(struct fixture *f)
{
	f->l->ep->msg = real_msg;
	f->l->ep->rma = real_rma;
	for (unsigned i = 0; i < LANES; i++)
		fab_lane_free(f->lane[i]);
	await_end(f);
	fab_server_free(f->t.s);
	free(f->t.mem);
}

/* Look until there is an event. */
static void
await(struct fab_lane *l, struct fab_event *ev)
{
	uint64_t deadline_ns = clock_deadline(WAIT_MS);

	for (;;) {
		fab_lane_poll(l, ev);
		if (ev->type != FAB_NONE || clock_now_ns() >= deadline_ns)
			return;
		fab_lanes_wait(&l, 1, -1, deadline_ns);
	}
}

/* A message of len bytes that begins with the letter. */
static void
say(struct fab_lane *l, char letter, size_t len)
{
	uint8_t *buf = fab_lane_buf(l);

	assert_non_null(buf);
	memset(buf, letter, len);
	assert_int_equal(fab_lane_send(l, len, NULL), 0);
}

static void
what_finds_no_room_goes_later_and_in_order(void **state)
{
	uint8_t src[64], dst[64] = {0};
	struct fixture f;
	struct fab_event ev;
	unsigned answers = 0, written = 0, read = 0;

	(void)state;
	begin(&f);
	memset(src, 'w', sizeof(src));
	full = true;
	say(f.l, 'a', 64);
	say(f.l, 'b', SIZE);
	assert_int_equal(fab_lane_write(f.l, src, sizeof(src), SIZE, NULL), 0);
	assert_int_equal(fab_lane_read(f.l, dst, sizeof(dst), SIZE, NULL), 0);
	say(f.l, 'c', 64);
	for (unsigned i = 0; i < 100; i++) {
		fab_lane_poll(f.l, &ev);
		assert_int_equal(ev.type, FAB_NONE);
	}
	/* What comes behind is not tried before the first is out. */
	assert_int_equal(refusals, 101);
	assert_int_equal(f.l->held_count, 5);
	full = false;
	while (answers < 3 || written < 1 || read < 1) {
		await(f.l, &ev);
		answers += ev.type == FAB_RECV;
		written += ev.type == FAB_WRITTEN;
		read += ev.type == FAB_READ;
		assert_true(ev.type == FAB_RECV || ev.type == FAB_WRITTEN || ev.type == FAB_READ);
		if (ev.type == FAB_RECV)
			fab_lane_repost(f.l, ev.slot);
	}
	assert_int_equal(atomic_load(&f.t.count), 3);
	assert_string_equal(f.t.order, "abc");
	assert_int_equal(f.t.seen, 'w');
	assert_memory_equal(dst, src, sizeof(dst));
	assert_int_equal(f.l->held_count, 0);
	assert_int_equal(fab_lane_rma_room(f.l), f.l->rma_count);
	end(&f);
}

/* Not as it is when the system comes to copying it, which takes words apart. */
static void
what_is_written_is_as_it_was_then(void **state)
{
	uint8_t src[64], was[64];
	struct fixture f;
	struct fab_event ev;

	(void)state;
	begin(&f);
	memset(src, 'w', sizeof(src));
	memcpy(was, src, sizeof(was));
	full = true;
	assert_int_equal(fab_lane_write(f.l, src, sizeof(src), SIZE, NULL), 0);
	memset(src, 'x', sizeof(src));
	full = false;
	await(f.l, &ev);
	assert_int_equal(ev.type, FAB_WRITTEN);
	assert_memory_equal(f.t.mem + SIZE, was, sizeof(was));
	end(&f);
}

/* As much as a lane may have under way, for as long as it takes. */
static void
all_that_may_be_under_way_is_kept(void **state)
{
	static uint8_t src[LANE_RMA_MAX];
	struct fixture f;
	struct fab_event ev;
	unsigned events = 0, room;

	(void)state;
	begin(&f);
	full = true;
	room = fab_lane_rma_room(f.l);
	for (unsigned i = 0; i < room; i++)
		assert_int_equal(fab_lane_write(f.l, &src[i], 1, i, NULL), 0);
	assert_int_equal(fab_lane_rma_room(f.l), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		say(f.l, (char)('a' + i), 64);
	assert_null(fab_lane_buf(f.l));
	for (unsigned i = 0; i < 10; i++)
		fab_lanes_wait(&f.l, 1, -1, clock_deadline(1));
	full = false;
	while (events < room + DEPTH) {
		await(f.l, &ev);
		assert_true(ev.type == FAB_RECV || ev.type == FAB_WRITTEN);
		if (ev.type == FAB_RECV)
			fab_lane_repost(f.l, ev.slot);
		events++;
	}
	assert_int_equal(atomic_load(&f.t.count), DEPTH);
	assert_memory_equal(f.t.order, "abcdefgh", DEPTH);
	end(&f);
}

static void
a_lane_that_closes_meanwhile_says_so(void **state)
{
	struct fixture f;
	struct fab_event ev;

	(void)state;
	begin(&f);
	say(f.l, 'x', 64);
	full = true;
	say(f.l, 'b', 64);
	await(f.l, &ev);
	assert_int_equal(ev.type, FAB_CLOSED);
	assert_int_equal(fab_lane_send(f.l, 64, NULL), REPL_E_LOST);
	end(&f);
}

/*
 * A provider may leave the descriptor that a wait sleeps on readable once something has completed:
 * a target that hangs would cost a core for as long as it is waited for.
 */
static void
what_does_not_come_is_slept_for(void **state)
{
	static const uint8_t src[64];
	struct fixture f;
	struct fab_event ev;
	unsigned looks = 0;
	uint64_t until_ns;

	(void)state;
	begin(&f);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fab_lane_write(f.l, src, sizeof(src), 0, NULL), 0);
		await(f.l, &ev);
		assert_int_equal(ev.type, FAB_WRITTEN);
		until_ns = clock_deadline(100);
		for (looks = 0; clock_now_ns() < until_ns; looks++) {
			fab_lane_poll(f.l, &ev);
			assert_int_equal(ev.type, FAB_NONE);
			fab_lanes_wait(&f.l, 1, -1, until_ns);
		}
		assert_in_range(looks, 1, 1000);
	}
	end(&f);
}

/* A target that has nothing to do takes no core, and hears of what comes then. */
static void
a_target_that_sleeps_is_woken(void **state)
{
	const struct timespec quiet = {.tv_nsec = 300 * (long)NS_PER_MS};
	struct fixture f;
	struct fab_event ev;
	uint64_t begin_ns;

	(void)state;
	begin(&f);
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&f.t.waits, 0);
		(void)nanosleep(&quiet, NULL);
		assert_in_range(atomic_load(&f.t.waits), 0, 1000);
		begin_ns = clock_now_ns();
		say(f.l, 'a', 64);
		await(f.l, &ev);
		assert_int_equal(ev.type, FAB_RECV);
		assert_true(clock_now_ns() - begin_ns < WAIT_MS / 4 * NS_PER_MS);
		fab_lane_repost(f.l, ev.slot);
	}
	end(&f);
}

/* ---- immediates ---- */

/* Each of verbs' devices takes a receive for one, as it says, and some, those of iWARP, know none.
 */
static void
immediates_are_had_where_they_have_bytes(void **state)
{
	static const struct {
		uint64_t mode;
		size_t size;
		enum ofi_imm imm;
	} rows[] = {{FI_RX_CQ_DATA, 4, OFI_IMM_RECV},
		    {FI_RX_CQ_DATA, 0, OFI_IMM_NONE},
		    {0, 8, OFI_IMM_WIDE},
		    {0, 4, OFI_IMM_NONE},
		    {0, 0, OFI_IMM_NONE}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fi_domain_attr domain = {.cq_data_size = rows[i].size};
		struct fi_info info = {.mode = rows[i].mode, .domain_attr = &domain};

		assert_int_equal(ofi_imm_of(&info), rows[i].imm);
	}
}

/* ---- cut ---- */

static void *
cut_main(void *arg)
{
	fab_lane_cut(arg);
	return NULL;
}

/* By another thread, amid a step of the one that uses it. */
static void
cut(struct fab_lane *l)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, cut_main, l), 0);
	(void)pthread_join(thread, NULL);
}

/* Neither what was waiting for room, nor what is posted by who has looked before. */
static void
a_lane_that_is_cut_sends_nothing_more(void **state)
{
	static const uint8_t src[2 * FAB_BOUNCE_SIZE] = {'w'};
	struct fixture f;
	struct fab_event ev;

	(void)state;
	for (unsigned held = 0; held < 2; held++) {
		begin(&f);
		say(f.l, 'a', 64);
		await(f.l, &ev);
		assert_int_equal(ev.type, FAB_RECV);
		fab_lane_repost(f.l, ev.slot);
		full = held;
		if (held)
			say(f.l, 'b', SIZE);
		cut(f.l);
		full = false;
		/* Whether that is seen at once is the provider's affair. */
		(void)fab_lane_write(f.l, src, 64, 0, NULL);
		(void)fab_lane_write_covered(f.l, src, sizeof(src), 0, NULL);
		if (!held)
			(void)fab_lane_send(f.l, 64, NULL);
		do
			await(f.l, &ev);
		while (ev.type == FAB_WRITTEN);
		assert_int_equal(ev.type, FAB_CLOSED);
		await_end(&f);
		assert_int_equal(atomic_load(&f.t.count), 1);
		assert_int_equal(f.t.mem[0], 0);
		end(&f);
	}
}

/* Its number may be another file's by now, in a program that closes what is not its own. */
static void
a_cut_ends_no_connection_of_the_programs(void **state)
{
	struct fixture f;
	int own, pair[2];
	char c = 0;

	(void)state;
	begin(&f);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	own = f.l->socket.fd;
	f.l->socket.fd = pair[0];
	cut(f.l);
	assert_int_equal(write(pair[0], "x", 1), 1);
	assert_int_equal(read(pair[1], &c, 1), 1);
	f.l->socket.fd = own;
	(void)close(pair[0]);
	(void)close(pair[1]);
	end(&f);
}

/* Whichever of them is asked. */
static void
what_a_lane_moves_is_told_by_all(void **state)
{
	struct fixture f;
	struct fab_event ev;

	(void)state;
	begin_lanes(&f, LANES);
	for (unsigned i = 0; i < LANES; i++) {
		uint64_t moved[LANES];

		for (unsigned k = 0; k < LANES; k++)
			moved[k] = fab_lane_moved(f.lane[k]);
		say(f.lane[i], 'a', 64);
		await(f.lane[i], &ev);
		assert_int_equal(ev.type, FAB_RECV);
		for (unsigned k = 0; k < LANES; k++)
			assert_true(fab_lane_moved(f.lane[k]) > moved[k]);
	}
	end(&f);
}

/* ---- as with an RNIC ---- */

struct rnic {
	struct fixture f;
	struct regions regions;
	uint8_t *pool, *bounce;
	_Atomic uint64_t uncopied;
};

/* The lane's pool is registered, which tcp allows for, too. */
static void
rnic_begin(struct rnic *n)
{
	struct regions_place place = {.key = 0x1122334455667788};
	struct fab_source *s;

	begin(&n->f);
	s = &n->f.l->source;
	n->pool = calloc(1, REGION);
	n->bounce = calloc(LANE_RMA_MAX, FAB_BOUNCE_SIZE);
	assert_true(n->pool && n->bounce);
	assert_int_equal(regions_init(&n->regions, REGIONS_UNIT, REGION, NULL), 0);
	assert_int_equal(regions_tell(&n->regions, 0, &place, NULL), 0);
	atomic_store(&n->uncopied, 0);
	n->f.l->rdma = true;
	n->f.l->bounce = n->bounce;
	n->f.l->regions = s->pool = &n->regions;
	s->domain = n->f.l->domain;
	s->mem = n->pool;
	s->uncopied = &n->uncopied;
	assert_int_equal(pieces_new(s, NULL), 0);
	assert_int_equal(ofi_mem_register(s->domain, n->pool, REGION, FI_WRITE, &s->mr[0], NULL),
			 0);
}

static void
rnic_end(struct rnic *n)
{
	end(&n->f);
	regions_fini(&n->regions);
	free(n->pool);
	free(n->bounce);
}

static void
what_may_be_is_taken_from_the_pool(void **state)
{
	struct fab_event ev;
	struct rnic n;

	(void)state;
	rnic_begin(&n);
	memset(n.pool, 'o', REGION);
	full = true;
	assert_int_equal(fab_lane_write(n.f.l, n.pool, FAB_BOUNCE_SIZE, 0, NULL), 0);
	/* What is short, and what is no part of the pool, is as it was when it was posted. */
	assert_int_equal(fab_lane_write(n.f.l, n.pool + 65536, 64, 65536, NULL), 0);
	assert_int_equal(fab_lane_write(n.f.l, n.pool, 8192, 2 * 65536, NULL), 0);
	assert_int_equal(atomic_load(&n.uncopied), FAB_BOUNCE_SIZE);
	memset(n.pool, 'n', REGION);
	full = false;
	for (unsigned written = 0; written < 3; written++) {
		await(n.f.l, &ev);
		assert_int_equal(ev.type, FAB_WRITTEN);
	}
	/* Of tcp that says that they are sent; a message behind them is answered when they are
	 * there. */
	say(n.f.l, 'a', 64);
	await(n.f.l, &ev);
	assert_int_equal(ev.type, FAB_RECV);
	assert_int_equal(n.f.t.mem[0], 'n');
	assert_int_equal(n.f.t.mem[FAB_BOUNCE_SIZE - 1], 'n');
	assert_int_equal(n.f.t.mem[65536], 'o');
	assert_int_equal(n.f.t.mem[65536 + 63], 'o');
	assert_int_equal(n.f.t.mem[65536 + 64], 0);
	assert_int_equal(n.f.t.mem[2 * 65536], 'o');
	rnic_end(&n);
}

static void
nothing_is_sent_from_the_pool_of_a_lane_that_is_cut(void **state)
{
	struct fab_event ev = {0};
	struct rnic n;

	(void)state;
	rnic_begin(&n);
	memset(n.pool, 'o', REGION);
	full = true;
	assert_int_equal(fab_lane_write(n.f.l, n.pool, FAB_BOUNCE_SIZE, 0, NULL), 0);
	fab_lane_cut(n.f.l);
	memset(n.pool, 'n', REGION);
	full = false;
	while (ev.type != FAB_CLOSED) {
		await(n.f.l, &ev);
		assert_true(ev.type == FAB_CLOSED || ev.type == FAB_WRITTEN);
	}
	assert_int_equal(fab_lane_write(n.f.l, n.pool, FAB_BOUNCE_SIZE, 0, NULL), REPL_E_LOST);
	rnic_end(&n);
	assert_int_equal(atomic_load(&n.uncopied), FAB_BOUNCE_SIZE);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_finds_no_room_goes_later_and_in_order),
		cmocka_unit_test(what_is_written_is_as_it_was_then),
		cmocka_unit_test(all_that_may_be_under_way_is_kept),
		cmocka_unit_test(a_lane_that_closes_meanwhile_says_so),
		cmocka_unit_test(what_does_not_come_is_slept_for),
		cmocka_unit_test(a_target_that_sleeps_is_woken),
		cmocka_unit_test(immediates_are_had_where_they_have_bytes),
		cmocka_unit_test(a_lane_that_is_cut_sends_nothing_more),
		cmocka_unit_test(a_cut_ends_no_connection_of_the_programs),
		cmocka_unit_test(what_a_lane_moves_is_told_by_all),
		cmocka_unit_test(what_may_be_is_taken_from_the_pool),
		cmocka_unit_test(nothing_is_sent_from_the_pool_of_a_lane_that_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
