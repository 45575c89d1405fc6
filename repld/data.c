/* SPDX-License-Identifier: BSD-3-Clause */
#include "data_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "spin.h"

#define DATA_REFUSALS 100 /* logged; who knocks for ever does not fill the log */

/*
 * Where a flush is dear: a lane that was answered so lately is about to send again, and is waited
 * for so long. A flush takes about 100 us.
 */
#define DATA_LATELY_NS    (300 * NS_PER_MS / 1000)
#define DATA_GATHER_NS    (40 * NS_PER_MS / 1000)
#define DATA_GATHER_POLLS 16U /* some 15 us */

/* ---- connections ---- */

/* Compares all tokens in full, so that time says nothing about any of them. */
static unsigned
data_lane_by_token(struct data *d, const uint8_t token[WIRE_TOKEN_SIZE])
{
	unsigned found = d->params.lanes;

	for (unsigned i = 0; i < d->params.lanes; i++) {
		uint8_t diff = d->lanes[i].token_used ? 1 : 0;

		for (unsigned k = 0; k < WIRE_TOKEN_SIZE; k++)
			diff = (uint8_t)(diff | (d->lanes[i].token[k] ^ token[k]));
		if (diff == 0)
			found = i;
	}
	return found;
}

static void
data_on_request(struct data *d, const struct fab_event *ev)
{
	uint8_t token[WIRE_TOKEN_SIZE];
	unsigned lane = d->params.lanes;
	struct err e;

	err_clear(&e);
	/* The provider may pad the connect data: the hello is its beginning. */
	if (ev->len >= WIRE_HELLO_SIZE && wire_hello_decode(ev->data, WIRE_HELLO_SIZE, token) == 0)
		lane = data_lane_by_token(d, token);
	if (lane >= d->params.lanes) {
		fab_server_reject(d->server);
		if (atomic_fetch_add(&d->counters.rejected, 1) < DATA_REFUSALS)
			log_warning("data port: refused a connection without a valid token");
		return;
	}
	d->lanes[lane].token_used = true;
	if (fab_server_accept(d->server, lane, &e))
		log_error("lane %u: %s", lane, e.text);
}

static void
data_close_port(struct data *d, const char *why)
{
	if (!d->port_open)
		return;
	fab_server_close_port(d->server);
	d->port_open = false;
	log_debug("data port closed: %s", why);
}

/* ---- messages ---- */

void
data_send_ack(struct data *d, unsigned lane, struct wire_ack *ack, uint64_t taken_ns)
{
	uint8_t buf[WIRE_ACK_MAX];
	size_t len;

	ack->epoch = d->params.epoch;
	ack->service_ns = clock_now_ns() - taken_ns;
	len = wire_ack_encode(buf, ack);
	/* An answer that is lost would be waited for: the lane ends instead. */
	if (fab_server_reply(d->server, lane, buf, len))
		fab_server_drop(d->server, lane);
}

void
data_answer(struct data *d, unsigned lane, uint64_t seq, int status, uint64_t taken_ns)
{
	struct wire_ack ack = {.seq = seq, .status = status};

	data_send_ack(d, lane, &ack, taken_ns);
}

void
data_end_lane(struct data *d, unsigned lane, const uint64_t *seq, const struct err *e)
{
	log_error("lane %u: %s", lane, e->text);
	atomic_fetch_add(&d->counters.errors, 1);
	d->lanes[lane].broken = true;
	if (seq)
		data_answer(d, lane, *seq, e->code, clock_now_ns());
	fab_server_drop(d->server, lane);
}

static int
commit_check(const struct data *d, const struct commit *c, struct err *e)
{
	uint64_t due = d->lanes[c->lane].seq + 1;

	if (c->stage && !data_staging(d))
		return err_set(e, REPL_E_PROTOCOL, "STAGE without a journal");
	if (!c->stage && data_staging(d) && !c->view.only_reads)
		return err_set(e, REPL_E_PROTOCOL, "COMMIT while a journal is open");
	/* Reading needs regions, too. */
	if (!d->params.write && !c->view.only_reads)
		return err_set(e, REPL_E_REFUSED, "COMMIT to a pool opened for reading");
	if (c->view.epoch != d->params.epoch)
		return err_set(e, REPL_E_REFUSED, "COMMIT of epoch %" PRIu32 ", this is %" PRIu32,
			       c->view.epoch, d->params.epoch);
	if (c->view.seq != due)
		return err_set(e, REPL_E_PROTOCOL, "COMMIT %" PRIu64 " where %" PRIu64 " is due",
			       c->view.seq, due);
	return 0;
}

static int
commit_decode(struct data *d, const struct fab_event *ev, struct commit *c, struct err *e)
{
	size_t size = pmem_map_size(d->params.map);

	if (wire_stage_is(ev->data, ev->len))
		return data_take_stage(d, ev, c, e);
	c->put = d->params.put && wire_put_is(ev->data, ev->len);
	if (c->put)
		return wire_put_decode(ev->data, ev->len, size, &c->view, e);
	if (d->params.bare && wire_bare_is(ev->data, ev->len))
		return wire_bare_decode(ev->data, ev->len, size, &c->view, e);
	return wire_commit_decode(ev->data, ev->len, size, &c->view, e);
}

static void
data_on_message(struct data *d, const struct fab_event *ev)
{
	struct commit *c = &d->pending[d->pending_count];
	struct data_lane *l = &d->lanes[ev->lane];
	uint64_t seq;
	struct err e;
	int rc;

	if (l->broken)
		return;
	if (d->params.ring) {
		data_on_deposit(d, ev);
		return;
	}
	err_clear(&e);
	memset(c, 0, sizeof(*c));
	c->taken_ns = clock_now_ns();
	c->lane = ev->lane;
	c->slot = ev->slot;
	rc = commit_decode(d, ev, c, &e);
	if (!rc)
		rc = commit_check(d, c, &e);
	if (rc) {
		bool known = wire_commit_seq(ev->data, ev->len, &seq);

		data_end_lane(d, ev->lane, known ? &seq : NULL, &e);
		return;
	}
	l->seq = c->view.seq;
	l->taken++;
	c->payload = c->view.payload;
	d->pending_count++;
}

static void
data_on_event(struct data *d, const struct fab_event *ev)
{
	switch (ev->type) {
	case FAB_REQUEST:
		data_on_request(d, ev);
		break;
	case FAB_JOINED:
		atomic_fetch_add(&d->counters.lanes_joined, 1);
		if (++d->joined == d->params.lanes)
			data_close_port(d, "all lanes are connected");
		break;
	case FAB_RECV:
		data_on_message(d, ev);
		break;
	case FAB_IMM:
		data_on_immediate(d, ev);
		break;
	case FAB_CLOSED:
		d->closed++;
		log_debug("lane %u closed: %s", ev->lane, ev->text);
		break;
	default:
		break;
	}
}

/* ---- thread ---- */

/* Whether lanes that are not waiting for an answer should be waited for. */
static bool
data_awaits(const struct data *d)
{
	uint64_t now = clock_now_ns();

	if (d->pending_count == 0 || d->pending_count == DATA_PENDING_MAX ||
	    now - d->pending[0].taken_ns >= DATA_GATHER_NS)
		return false;
	for (unsigned i = 0; i < d->params.lanes; i++) {
		const struct data_lane *l = &d->lanes[i];

		if (l->taken == 0 && !l->broken && l->answered_ns > 0 &&
		    now - l->answered_ns < DATA_LATELY_NS)
			return true;
	}
	return false;
}

/* Those that are awaited may need the core: it is given away now and then, each time if they do. */
static void
gather_pass(struct spin *s)
{
	if (s->shared == 0 && ++s->polls % DATA_GATHER_POLLS != 0)
		return;
	s->shared -= s->shared > 0;
	spin_give_away(s);
}

static bool
needs_no_flush(const struct commit *c)
{
	return c->stage || c->put;
}

/*
 * Take what has arrived; false if there was nothing. Where a flush is dear,
 * look until nothing more comes; else answer what is at hand first, since each
 * look costs a system call. Strangers' requests and immediates that want no
 * answer may come without end.
 */
static bool
data_gather(struct data *d)
{
	bool groups = pmem_map_groups(d->params.map);
	struct fab_event ev;
	bool any = false;

	for (unsigned i = 0; i < DATA_EVENTS_MAX && d->pending_count < DATA_PENDING_MAX;) {
		fab_server_poll(d->server, &ev);
		if (ev.type == FAB_NONE && groups && data_awaits(d)) {
			gather_pass(&d->gather);
			continue;
		}
		if (ev.type == FAB_NONE)
			break;
		i++;
		any = true;
		data_on_event(d, &ev);
		if (!groups && !fab_server_more(d->server))
			break;
		/* It needs no flush: answered at once it lets the initiator build the next. */
		if (d->pending_count > 0 && needs_no_flush(&d->pending[d->pending_count - 1]))
			break;
	}
	return any;
}

static void *
data_main(void *arg)
{
	struct data *d = arg;
	struct spin spin = {0};

	while (!atomic_load_explicit(&d->stop, memory_order_relaxed)) {
		if (d->port_open && clock_now_ns() >= d->port_deadline_ns)
			data_close_port(d, "not all lanes were connected in time");
		if (data_gather(d)) {
			data_apply(d);
			/* More may be there each time. */
			(void)data_trim_step(d, false);
			spin_reset(&spin);
			continue;
		}
		if (data_trim_step(d, false))
			continue;
		if (spin_again_for(&spin, d->params.busy_poll_ns))
			continue;
		if (data_trim_step(d, true))
			continue;
		fab_server_wait(d->server, d->stop_fd,
				d->port_open ? d->port_deadline_ns : clock_deadline(60000));
		spin_reset(&spin);
	}
	data_trim_end(d);
	return NULL;
}

/* ---- construction ---- */

static int
data_random(struct data *d, struct err *e)
{
	for (unsigned i = 0; i < d->params.lanes; i++) {
		if (getrandom(d->lanes[i].token, WIRE_TOKEN_SIZE, 0) != WIRE_TOKEN_SIZE)
			return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	}
	if (getrandom(&d->key, sizeof(d->key), 0) != (ssize_t)sizeof(d->key))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	return 0;
}

static int
data_start_thread(struct data *d, struct err *e)
{
	sigset_t all, old;
	int ret;

	(void)sigfillset(&all);
	/* A fault in a mapping must reach the handler, so it stays unblocked. */
	(void)sigdelset(&all, SIGBUS);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&d->thread, NULL, data_main, d);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return err_thread(e, ret, "the data thread");
	d->thread_started = true;
	return 0;
}

/*
 * An RNIC goes on with the pages that it has registered, and what is given back gets
 * others: what it wrote after that would be in no pool.
 */
static bool
data_may_give_back(const struct data_params *p)
{
	return p->hole && !(p->rma && strcmp(p->provider, "verbs") == 0);
}

int
data_new(const struct data_params *p, struct data **out, struct err *e)
{
	struct fab_params fp = {.provider = p->provider,
				.host = p->address,
				.port = p->port_first,
				.port_last = p->port_last,
				.depth = p->depth,
				.msg_size = p->msg_size,
				.window = p->window};
	struct data *d = calloc(1, sizeof(*d));
	int rc;

	*out = NULL;
	if (!d)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	d->params = *p;
	d->params.hole = data_may_give_back(p);
	d->rdma = strcmp(p->provider, "verbs") == 0;
	d->params.provider = d->params.address = NULL; /* the caller's */
	d->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->lanes = calloc(p->lanes, sizeof(*d->lanes));
	d->pending = calloc(DATA_PENDING_MAX, sizeof(*d->pending));
	d->ranges = calloc(DATA_RANGES_MAX, sizeof(*d->ranges));
	if (d->stop_fd < 0 || !d->lanes || !d->pending || !d->ranges) {
		rc = err_set(e, REPL_E_NOMEM, "no memory or descriptors for the data lanes");
		goto out;
	}
	if (p->ring) {
		d->deposits = malloc(sizeof(*d->deposits));
		if (!d->deposits) {
			rc = err_set(e, REPL_E_NOMEM, "no memory for the receive ring");
			goto out;
		}
		deposits_init(d->deposits, p->map);
		d->deposits->back = d->params.sparse;
	}
	if (p->log) {
		d->scratch = malloc(ROUND_FRAME_MAX);
		if (!d->scratch) {
			rc = err_set(e, REPL_E_NOMEM, "no memory for a round log's appends");
			goto out;
		}
	}
	rc = data_random(d, e);
	if (rc)
		goto out;
	fp.key = d->key;
	if (p->ring) {
		fp.recv_mem = poolring_slots(p->ring);
		fp.recv_stride = poolring_geometry(p->ring)->slot_size;
	}
	rc = regions_init(&d->regions, regions_unit(pmem_map_size(p->map)), pmem_map_size(p->map),
			  e);
	if (rc)
		goto out;
	rc = fab_server_new(&fp, p->lanes, &d->server, e);
	/* Its regions are registered one by one: better a text now than a lane that ends. */
	if (!rc && p->rma)
		rc = fab_server_can_pin(d->server, pmem_map_size(p->map), e);
	if (rc)
		goto out;
	if (fab_server_immediates(d->server) && !p->ring && p->rma)
		d->imm_unit = wire_imm_unit(pmem_map_size(p->map));
	d->port_open = true;
	d->port_deadline_ns = clock_deadline(p->join_ms);
	rc = data_start_thread(d, e);
	if (rc)
		goto out;
	*out = d;
	d = NULL;
out:
	data_free(d);
	return rc;
}

void
data_stop(struct data *d)
{
	uint64_t one = 1;

	if (!d || !d->thread_started)
		return;
	atomic_store(&d->stop, true);
	(void)!write(d->stop_fd, &one, sizeof(one));
	(void)pthread_join(d->thread, NULL);
	d->thread_started = false;
}

void
data_free(struct data *d)
{
	if (!d)
		return;
	data_stop(d);
	fab_server_free(d->server);
	regions_fini(&d->regions);
	if (d->stop_fd >= 0)
		(void)close(d->stop_fd);
	free(d->scratch);
	free(d->deposits);
	free(d->ranges);
	free(d->pending);
	free(d->lanes);
	free(d);
}

uint16_t
data_port(const struct data *d)
{
	return fab_server_port(d->server);
}

uint64_t
data_key(const struct data *d)
{
	return d->key;
}

uint64_t
data_imm_unit(const struct data *d)
{
	return d->imm_unit;
}

const uint8_t *
data_token(const struct data *d, unsigned lane)
{
	return d->lanes[lane].token;
}

int
data_failed(const struct data *d)
{
	return atomic_load(&d->failed);
}

uint64_t
data_position(const struct data *d)
{
	return d->position;
}

void
data_fail(struct data *d, int status)
{
	int none = 0;

	(void)atomic_compare_exchange_strong(&d->failed, &none, status);
}

const struct data_counters *
data_get_counters(const struct data *d)
{
	return &d->counters;
}
