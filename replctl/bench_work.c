/* SPDX-License-Identifier: BSD-3-Clause */
/* What replctl bench measures: each kind of series, once. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "interrupt.h"
#include "spin.h"
#include "stall.h"

#define NEAR_STEP 256U  /* between ranges that share a page */
#define LANE_ROOM 4096U /* each lane's page, beside the others' */

#define WARM_UP       200U
#define WARM_UP_LARGE 16U /* of 64 KiB and more */
#define QUICK_OPS     16U /* between two looks for an interrupt */
#define STREAM_CHUNK  (256U << 10)
#define READ_WINDOW   8U

/* ---- one operation ---- */

/* Run a lane's job to its end. */
static int
lane_finish(struct lane *l, uint64_t deadline_ns, struct err *e)
{
	lanes_run(&l, 1, lane_done, deadline_ns);
	return l->status ? err_set(e, l->status, "data lane: %s", l->why) : 0;
}

static uint64_t
op_deadline(const struct bench *b, uint64_t now_ns)
{
	return now_ns + (uint64_t)remote_op_timeout_ms(b->c->remote) * NS_PER_MS;
}

/* Ranges follow each other through the pool, as those of a log do, on lines of their own. */
static uint64_t
range_next(uint64_t *at, uint64_t room, uint64_t len)
{
	uint64_t off = *at;

	if (off > room - len)
		off = 0;
	*at = off + (len + 63) / 64 * 64;
	return off;
}

static void
op_begin(struct bench *b, const struct bench_series *s, struct lane *l)
{
	uint64_t part =
		s->kind == BENCH_NEAR ? NEAR_STEP : b->pool_size / (s->count ? s->count : 1);
	uint64_t off = range_next(&b->at, s->kind == BENCH_PAIR ? part / 2 : part, s->size);

	switch (s->kind) {
	case BENCH_PAIR:
		(void)lane_flush(l, off, s->size);
		lane_begin(l, LANE_PAIR, off + part / 2, s->size);
		break;
	case BENCH_ATOMIC8:
		lane_begin(l, LANE_ATOMIC8, off, 8);
		break;
	default:
		for (unsigned i = 0; i < s->count; i++)
			(void)lane_flush(l, off + i * part, s->size);
		lane_begin(l, LANE_DRAIN, 0, 0);
		break;
	}
}

/* ---- latencies ---- */

static int
run_lane(struct bench *b, const struct bench_series *s, uint32_t *samples, uint32_t count)
{
	struct lane *l = remote_lane(b->c->remote, 0);
	uint64_t end, start = clock_now_ns();
	int rc = 0;

	for (uint32_t i = 0; !rc && i < count; i++) {
		op_begin(b, s, l);
		rc = lane_finish(l, op_deadline(b, start), &b->c->err);
		end = clock_now_ns();
		samples[i] = end - start < UINT32_MAX ? (uint32_t)(end - start) : UINT32_MAX;
		start = end;
	}
	return rc;
}

static int
interrupted(struct bench *b)
{
	return interrupt_seen() ? err_set(&b->c->err, REPL_E_FAILED, "interrupted") : 0;
}

/* One by one where each takes its time, so that an interrupt is soon seen. */
static int
run_samples(struct bench *b, const struct bench_series *s, uint32_t count)
{
	bool quick = s->estimate_ns && s->estimate_ns < NS_PER_MS;
	uint32_t most = quick ? QUICK_OPS : 1, part;
	int rc = 0;

	for (uint32_t at = 0; !rc && at < count; at += part) {
		part = count - at < most ? count - at : most;
		rc = interrupted(b);
		if (!rc && s->kind == BENCH_RAW_ECHO)
			rc = tcpraw_pingpong(b->raw.tcp, s->size, part, b->samples + at,
					     &b->c->err);
		else if (!rc)
			rc = run_lane(b, s, b->samples + at, part);
	}
	return rc;
}

/* Before anything is known: the first tells how many there may be. */
static int
warm_up(struct bench *b, struct bench_series *s, uint32_t *count)
{
	int rc = run_samples(b, s, 1);

	*count = bench_warm_count(s->size < 65536 ? WARM_UP : WARM_UP_LARGE, b->samples[0]);
	return rc ? rc : run_samples(b, s, *count);
}

static int
measure_latency(struct bench *b, struct bench_series *s, double out[BENCH_VALUES])
{
	uint32_t count = bench_slice_count(b->slice_ns, s->estimate_ns);
	int rc = s->estimate_ns ? run_samples(b, s, count) : warm_up(b, s, &count);

	if (rc)
		return rc;
	bench_sort(b->samples, count);
	out[BENCH_P50] = bench_quantile(b->samples, count, 500);
	out[BENCH_P99] = bench_quantile(b->samples, count, 990);
	out[BENCH_P999] = bench_quantile(b->samples, count, 999);
	s->estimate_ns = (uint64_t)out[BENCH_P50] + 1;
	return 0;
}

/* ---- several lanes ---- */

struct worker {
	struct bench *b;
	struct lane *lane;
	unsigned size;
	uint64_t base, at, room;
	uint64_t done;
	_Atomic bool *go, *stop;
	pthread_t thread;
	struct err err;
};

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	int rc = 0;

	while (!atomic_load_explicit(w->go, memory_order_acquire))
		(void)sched_yield();
	while (!rc && !atomic_load_explicit(w->stop, memory_order_relaxed)) {
		(void)lane_flush(w->lane, w->base + range_next(&w->at, w->room, w->size), w->size);
		lane_begin(w->lane, LANE_DRAIN, 0, 0);
		rc = lane_finish(w->lane, op_deadline(w->b, clock_now_ns()), &w->err);
		w->done++;
	}
	return NULL;
}

static void
sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static int
measure_lanes(struct bench *b, const struct bench_series *s, double *rate)
{
	struct worker w[BENCH_LANES_MAX];
	_Atomic bool go = false, stop = false;
	uint64_t begin, done = 0;
	unsigned started = 0;
	int ret = 0;

	memset(w, 0, sizeof(w));
	for (; started < s->count && !ret; started += !ret) {
		w[started] = (struct worker){.b = b,
					     .lane = remote_lane(b->c->remote, started),
					     .size = s->size,
					     .base = LANE_ROOM * started,
					     .room = LANE_ROOM,
					     .go = &go,
					     .stop = &stop};
		ret = pthread_create(&w[started].thread, NULL, worker_main, &w[started]);
	}
	begin = clock_now_ns();
	atomic_store_explicit(&stop, ret != 0, memory_order_relaxed);
	atomic_store_explicit(&go, true, memory_order_release);
	if (!ret)
		sleep_ns(b->slice_ns);
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < started; i++) {
		(void)pthread_join(w[i].thread, NULL);
		done += w[i].done;
		if (w[i].err.code)
			b->c->err = w[i].err;
	}
	*rate = (double)done * (double)NS_PER_S / (double)(clock_now_ns() - begin);
	if (ret)
		return err_thread(&b->c->err, ret, "threads");
	return b->c->err.code;
}

/* ---- streams ---- */

static int
bulk_breathe(void *arg, struct err *e)
{
	(void)e;
	return interrupted(arg);
}

static int
bulk_write(struct bench *b)
{
	struct lane *l = remote_lane(b->c->remote, 0);
	const struct breath breath = {.take = bulk_breathe, .arg = b};
	uint64_t stall_ns = (uint64_t)remote_op_timeout_ms(b->c->remote) * NS_PER_MS;
	int rc;

	(void)lane_flush(l, 0, b->pool_size);
	lane_begin(l, LANE_SETTLE, 0, 0);
	rc = lane_run_while_moving(l, lane_done, stall_ns, &breath, &b->c->err);
	return rc || !l->status ? rc : err_set(&b->c->err, l->status, "data lane: %s", l->why);
}

/* Wait for one read; those of a lane complete in their order. */
static int
read_await(struct bench *b, struct fab_lane *fab)
{
	uint64_t stall_ns = (uint64_t)remote_op_timeout_ms(b->c->remote) * NS_PER_MS;
	struct stall stall = stall_begin(stall_ns, clock_now_ns());
	struct err *e = &b->c->err;
	struct spin spin = {0};
	struct fab_event ev;

	for (;;) {
		fab_lane_poll(fab, &ev);
		if (ev.type == FAB_READ)
			return 0;
		if (ev.type == FAB_CLOSED)
			return err_set(e, REPL_E_LOST, "data lane: %s", ev.text);
		if (ev.type != FAB_NONE || spin_again(&spin))
			continue;
		if (stall_over(&stall, fab, clock_now_ns()))
			return err_set(e, REPL_E_TIMEOUT, "the target did not send data");
		if (interrupted(b))
			return e->code;
		fab_lanes_wait(&fab, 1, -1, clock_now_ns() + BREATH_NS);
	}
}

static int
bulk_read(struct bench *b)
{
	struct lane *lane = remote_lane(b->c->remote, 0);
	struct fab_lane *fab = lane->fab;
	struct err *e = &b->c->err;
	uint64_t most = lane->rma_max;
	unsigned flying = 0;
	int rc;

	if (lane->window)
		return remote_read(b->c->remote, 0, b->back, 0, b->pool_size,
				   op_deadline(b, clock_now_ns()), e);
	/* Nothing else is to come by the lane. */
	lane_begin(remote_lane(b->c->remote, 0), LANE_SETTLE, 0, 0);
	rc = lane_finish(remote_lane(b->c->remote, 0), op_deadline(b, clock_now_ns()), e);
	for (uint64_t off = 0; !rc && off < b->pool_size; off += most) {
		uint64_t left = b->pool_size - off;

		if (flying == READ_WINDOW) {
			rc = read_await(b, fab);
			flying--;
		}
		if (!rc)
			rc = fab_lane_read(fab, b->back + off, left < most ? left : most, off, e);
		flying++;
	}
	for (; !rc && flying > 0; flying--)
		rc = read_await(b, fab);
	return rc;
}

static int
bulk(struct bench *b, enum bench_kind kind, uint64_t *ns)
{
	uint64_t begin = clock_now_ns();
	int rc;

	switch (kind) {
	case BENCH_RAW_OUT:
		return tcpraw_stream_out(b->raw.tcp, b->pool_size, STREAM_CHUNK, ns, &b->c->err);
	case BENCH_RAW_IN:
		return tcpraw_stream_in(b->raw.tcp, b->pool_size, STREAM_CHUNK, ns, &b->c->err);
	case BENCH_WRITE:
		rc = bulk_write(b);
		break;
	default:
		rc = bulk_read(b);
		break;
	}
	*ns = clock_now_ns() - begin;
	return rc;
}

/* The whole pool, as often as the slice allows. */
static int
measure_bulk(struct bench *b, struct bench_series *s, double *rate)
{
	uint64_t sum = 0, bytes = 0, ns = 0;
	int rc;

	do {
		rc = bulk(b, s->kind, &ns);
		sum += ns;
		bytes += b->pool_size;
	} while (!rc && sum + ns <= b->slice_ns);
	s->estimate_ns = sum;
	*rate = sum ? (double)bytes * (double)NS_PER_S / (double)sum : 0;
	return rc;
}

/* ---- a series ---- */

enum plan_method
bench_method(const struct bench *b, const struct bench_series *s)
{
	struct plan_limits lim = b->limits;

	if (s->method != BENCH_CHOSEN)
		lim.force = PLAN_BIT(s->method);
	return plan_choose(remote_profile(b->c->remote), PLAN_SINGLETON, s->size, &lim).method;
}

bool
bench_is_chosen(const struct bench *b, const struct bench_series *s)
{
	struct bench_series free_choice = *s;

	free_choice.method = BENCH_CHOSEN;
	return s->method == bench_method(b, &free_choice);
}

/* The chosen one is measured as it is for who leaves the choice to the library. */
static void
set_method(struct bench *b, const struct bench_series *s)
{
	bool chosen = s->method == BENCH_CHOSEN || bench_is_chosen(b, s);

	for (unsigned i = 0; i < b->lanes; i++)
		remote_lane(b->c->remote, i)->limits.force =
			chosen ? b->limits.force : PLAN_BIT(s->method);
}

/* Bare TCP has a deadline, and before the first time nobody knows what a series takes. */
static int
raw_renew(struct bench *b, const struct bench_series *s)
{
	uint64_t work_ns = s->estimate_ns;

	if (s->kind != BENCH_RAW_ECHO && s->kind != BENCH_RAW_OUT && s->kind != BENCH_RAW_IN)
		return 0;
	if (s->kind == BENCH_RAW_ECHO)
		work_ns *= bench_slice_count(b->slice_ns, s->estimate_ns);
	if (!s->estimate_ns)
		work_ns = BENCH_RAW_SECONDS_MAX * NS_PER_S;
	return bench_raw_renew(&b->raw, b->c, bench_seconds_for(work_ns));
}

/* The next step is to see what is left there. */
static int
timed_out(struct bench *b)
{
	const struct err why = b->c->err;

	return err_set(&b->c->err, why.code,
		       "%s; where the way is slow or long a smaller --size helps, or a longer "
		       "op-timeout in repl.conf",
		       why.text);
}

int
bench_measure(struct bench *b, struct bench_series *s, bool keep)
{
	double now[BENCH_VALUES] = {0};
	int rc = interrupted(b);

	if (!rc)
		rc = raw_renew(b, s);
	if (rc)
		return rc;
	set_method(b, s);
	if (s->kind < BENCH_LANES)
		rc = measure_latency(b, s, now);
	else if (s->kind == BENCH_LANES)
		rc = measure_lanes(b, s, &now[BENCH_RATE]);
	else
		rc = measure_bulk(b, s, &now[BENCH_RATE]);
	if (rc == REPL_E_TIMEOUT)
		return timed_out(b);
	if (rc || !keep || s->rounds == BENCH_ROUNDS_MAX)
		return rc;
	for (unsigned v = 0; v < BENCH_VALUES; v++)
		s->values[v][s->rounds] = now[v];
	s->rounds++;
	return 0;
}

double
bench_value(const struct bench_series *s, enum bench_value v)
{
	return bench_median(s->values[v], s->rounds);
}
