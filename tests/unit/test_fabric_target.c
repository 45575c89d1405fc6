/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target that sends an immediate, which belongs to no operation of the
 * initiator's, loses its lane and does no other harm. An answer that finds the
 * provider's queue full goes out when there is room.
 */
#include "unit.h"

#include <pthread.h>

#include "clock.h"

#include "../../librepl/common/fabric_server.c"

#define WAIT_MS 20000U

/* Lets a lane in, writes nothing to it with an immediate, and waits for its end. */
static void *
target_main(void *arg)
{
	struct fi_msg_rma nothing = {.data = 0x1234};
	uint64_t deadline_ns = clock_deadline(WAIT_MS);
	struct fab_server *s = arg;
	struct fab_event ev = {0};

	while (ev.type != FAB_CLOSED && clock_now_ns() < deadline_ns) {
		fab_server_poll(s, &ev);
		if (ev.type == FAB_REQUEST)
			(void)fab_server_accept(s, 0, NULL);
		else if (ev.type == FAB_JOINED)
			(void)fi_writemsg(s->lanes[0].ep, &nothing, FI_REMOTE_CQ_DATA);
		else if (ev.type == FAB_NONE)
			fab_server_wait(s, -1, deadline_ns);
	}
	return NULL;
}

static void
an_immediate_from_the_target_ends_the_lane(void **state)
{
	struct fab_params p = {
		.provider = "tcp", .host = "127.0.0.1", .depth = 8, .msg_size = 4096};
	static const uint8_t hello[WIRE_HELLO_SIZE] = {WIRE_VERSION};
	uint64_t deadline_ns = clock_deadline(WAIT_MS);
	struct fab_server *s = NULL;
	struct fab_lane *l = NULL;
	struct fab_event ev = {0};
	pthread_t thread;

	(void)state;
	assert_int_equal(fab_server_new(&p, 1, &s, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, target_main, s), 0);
	p.port = fab_server_port(s);
	assert_int_equal(fab_lane_connect(&p, hello, sizeof(hello), &l, NULL), 0);
	assert_int_equal(fab_lanes_connected(&l, 1, &p, deadline_ns, NULL), 0);
	while (ev.type == FAB_NONE && clock_now_ns() < deadline_ns) {
		fab_lane_poll(l, &ev);
		if (ev.type == FAB_NONE)
			fab_lanes_wait(&l, 1, -1, deadline_ns);
	}
	assert_int_equal(ev.type, FAB_CLOSED);
	assert_non_null(strstr(ev.text, "immediate"));
	fab_lane_free(l);
	(void)pthread_join(thread, NULL);
	fab_server_free(s);
}

/* ---- an answer without room ---- */

static struct fi_ops_msg *real_msg;
static unsigned refusals;

static ssize_t
inject_later(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	if (refusals == 0)
		return real_msg->inject(ep, buf, len, to);
	refusals--;
	return -FI_EAGAIN;
}

/* Two answers to the lane, the second to a provider that never has room. */
static void *
answers_main(void *arg)
{
	uint64_t deadline_ns = clock_deadline(WAIT_MS);
	struct fab_server *s = arg;
	struct fab_event ev = {0};
	struct fi_ops_msg msg;

	while (ev.type != FAB_JOINED && clock_now_ns() < deadline_ns) {
		fab_server_poll(s, &ev);
		if (ev.type == FAB_REQUEST)
			(void)fab_server_accept(s, 0, NULL);
	}
	real_msg = s->lanes[0].ep->msg;
	msg = *real_msg;
	msg.inject = inject_later;
	s->lanes[0].ep->msg = &msg;
	refusals = 5;
	assert_int_equal(fab_server_reply(s, 0, "answer", 6), 0);
	refusals = UINT32_MAX;
	assert_int_equal(fab_server_reply(s, 0, "answer", 6), REPL_E_LOST);
	s->lanes[0].ep->msg = real_msg;
	while (ev.type != FAB_CLOSED && clock_now_ns() < deadline_ns)
		fab_server_poll(s, &ev);
	return NULL;
}

static void
an_answer_waits_for_room(void **state)
{
	struct fab_params p = {
		.provider = "tcp", .host = "127.0.0.1", .depth = 8, .msg_size = 4096};
	static const uint8_t hello[WIRE_HELLO_SIZE] = {WIRE_VERSION};
	uint64_t deadline_ns = clock_deadline(WAIT_MS);
	struct fab_server *s = NULL;
	struct fab_lane *l = NULL;
	struct fab_event ev = {0};
	pthread_t thread;

	(void)state;
	assert_int_equal(fab_server_new(&p, 1, &s, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, answers_main, s), 0);
	p.port = fab_server_port(s);
	assert_int_equal(fab_lane_connect(&p, hello, sizeof(hello), &l, NULL), 0);
	assert_int_equal(fab_lanes_connected(&l, 1, &p, deadline_ns, NULL), 0);
	while (ev.type == FAB_NONE && clock_now_ns() < deadline_ns)
		fab_lane_poll(l, &ev);
	assert_int_equal(ev.type, FAB_RECV);
	assert_int_equal(ev.len, 6);
	fab_lane_free(l);
	(void)pthread_join(thread, NULL);
	fab_server_free(s);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_immediate_from_the_target_ends_the_lane),
		cmocka_unit_test(an_answer_waits_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
