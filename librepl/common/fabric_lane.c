/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator's half of fabric: one connected endpoint.
 *
 * Each lane has a fabric, domain and queues of its own: the tcp provider's
 * progress is a domain's, so lanes of different threads would otherwise meet
 * at one lock and do each other's work.
 */
#include "fabric_ofi.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fabric_source.h"
#include "regions.h"
#include "target.h"
#include "wire.h"
#include "words.h"

#define LANE_RMA_MAX  32
#define LANE_RMA_RDMA 16 /* with an RNIC, whose operations each have a bounce buffer */
#define LANE_BATCH    8
#define LANE_RX_EVERY 8 /* looks for RMA alone between those for messages */

/*
 * The longest sleep with operations outstanding. The tcp provider reads ahead:
 * what it holds in its own buffer no longer wakes the descriptor.
 */
#define LANE_NAP_MS 2

/*
 * At whether connecting was cancelled; and connecting takes several steps, each of them taken by a
 * look: one wake-up that the provider does not give must not cost all of the time.
 */
#define LANE_CONNECT_LOOK_MS 100
#define FAB_CONNECT_MAX      64U /* that a sleep looks at */

/*
 * Connect data that all providers carry: with an RNIC 56 bytes are the connection manager's, less a
 * header of libfabric's.
 */
#define LANE_HELLO_MAX 48
_Static_assert(WIRE_HELLO_SIZE <= LANE_HELLO_MAX, "a lane's token gets to the target");
_Static_assert(REPL_TARGETS_MAX <= REPL_LANES_MAX, "one lane of each replica can be waited for");

#define PORT_HELP                                                                                  \
	"let it through the firewalls, or set data-address, data-told or data-ports in the "       \
	"target's repld.conf"
#define FAB_HOST_MAX  64                              /* of an address */
#define LANE_SPARE_TX 16                              /* done, and not yet seen to be */
#define LANE_HELD_MAX (WIRE_DEPTH_MAX + LANE_RMA_MAX) /* messages and RMA that may be under way */
#define LANE_EQ_EVERY 256 /* looks between those at the event queue, with an RNIC */

/* A message or RMA as it is given to the provider. */
struct lane_post {
	enum ofi_kind kind;
	struct ofi_op *op; /* NULL: no completion is asked for */
	void *desc;        /* of the memory of iov */
	struct iovec iov;
	struct fi_rma_iov rma;
	uint64_t data, flags;
};

struct fab_lane {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct ofi_queues queues;
	struct fid_ep *ep;
	size_t msg_size;
	size_t inject_size;
	unsigned depth;
	uint64_t key;
	const struct regions *regions; /* or NULL */
	enum ofi_imm imm;
	unsigned number; /* of the lane, on the server */
	char host[FAB_HOST_MAX];
	uint16_t port;
	bool connected;
	bool rdma;    /* an RNIC: it reaches mem and nothing else here */
	bool commits; /* the provider promises FI_COMMIT_COMPLETE */
	uint8_t *mem;
	size_t mem_len;
	struct fid_mr *mr; /* of mem, or NULL */
	void *desc;
	struct fab_source source;
	uint8_t *send_mem; /* depth * msg_size */
	uint8_t *recv_mem; /* (depth + 1) * FAB_REPLY_MAX */
	uint8_t *bounce;   /* rma_count * FAB_BOUNCE_SIZE */
	struct ofi_op *recv_op;
	struct ofi_op rma_op[LANE_RMA_MAX];
	struct lane_dst {
		void *dst; /* of a read through a bounce buffer */
		size_t len;
	} rma_dst[LANE_RMA_MAX];
	unsigned rma_count;      /* operations at once */
	uint64_t sent, answered; /* messages; their buffers are used in turn */
	unsigned rma_free[LANE_RMA_MAX];
	unsigned rma_free_count;
	struct fi_cq_data_entry batch[LANE_BATCH];
	unsigned batch_at, batch_len;
	unsigned looks, eq_looks;
	struct lane_post held[LANE_HELD_MAX]; /* a ring: the provider's queue was full */
	unsigned held_at, held_count;
	int spare; /* a receive slot to post when there is time, or -1 */
	bool closed;
	char why[128];
};

static int
lane_post_recv(struct fab_lane *l, unsigned slot)
{
	struct ofi_op *op = &l->recv_op[slot];

	op->kind = OFI_RECV;
	op->slot = slot;
	return (int)fi_recv(l->ep, l->recv_mem + (size_t)slot * FAB_REPLY_MAX, FAB_REPLY_MAX,
			    l->desc, 0, op);
}

static int
lane_alloc(struct fab_lane *l)
{
	size_t send_len = l->depth * l->msg_size, recv_len = (l->depth + 1UL) * FAB_REPLY_MAX;

	l->rma_count = l->rdma ? LANE_RMA_RDMA : LANE_RMA_MAX;
	l->mem_len = send_len + recv_len + l->rma_count * FAB_BOUNCE_SIZE;
	l->mem = ofi_mem_new(l->mem_len);
	l->recv_op = calloc(l->depth + 1UL, sizeof(*l->recv_op));
	l->spare = (int)l->depth;
	if (!l->mem || !l->recv_op)
		return -1;
	l->send_mem = l->mem;
	l->recv_mem = l->mem + send_len;
	l->bounce = l->recv_mem + recv_len;
	for (unsigned i = 0; i < l->rma_count; i++)
		l->rma_free[l->rma_free_count++] = l->rma_count - 1 - i;
	return 0;
}

/* Sizes of the queues as the lane uses them: a provider's defaults may be smaller. */
static void
lane_size_queues(const struct fab_lane *l, struct fi_info *info)
{
	if (!l->rdma)
		return;
	info->tx_attr->size = l->depth + l->rma_count + LANE_SPARE_TX;
	info->rx_attr->size = l->depth + 1UL;
}

static int
lane_register_mem(struct fab_lane *l, struct err *e)
{
	int rc;

	if (!l->rdma)
		return 0;
	rc = ofi_mem_register(l->domain, l->mem, l->mem_len, FI_SEND | FI_RECV | FI_READ | FI_WRITE,
			      &l->mr, e);
	if (rc)
		return rc;
	l->desc = fi_mr_desc(l->mr);
	l->source.domain = l->domain;
	l->source.lane_mem = l->mem;
	l->source.lane_mr = l->mr;
	l->source.pool = l->regions;
	return 0;
}

static int
lane_open_objects(struct fab_lane *l, struct fi_info *info, struct err *e)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	int ret;

	ret = fi_fabric(info->fabric_attr, &l->fabric, NULL);
	if (ret)
		return ofi_err(e, REPL_E_FAILED, ret, "fi_fabric");
	ret = fi_eq_open(l->fabric, &eq_attr, &l->eq, NULL);
	if (ret)
		return ofi_err(e, err_from_errno(-ret), ret, "fi_eq_open");
	ret = fi_domain(l->fabric, info, &l->domain, NULL);
	if (ret)
		return ofi_err(e, err_from_errno(-ret), ret, "fi_domain");
	ret = ofi_queues_open(info, l->domain, l->depth + 8UL,
			      l->depth + l->rma_count + LANE_SPARE_TX, &l->queues, e);
	if (!ret)
		ret = lane_register_mem(l, e);
	if (ret)
		return ret;
	lane_size_queues(l, info);
	ret = fi_endpoint(l->domain, info, &l->ep, NULL);
	if (ret)
		return ofi_err(e, err_from_errno(-ret), ret, "fi_endpoint");
	ret = fi_ep_bind(l->ep, &l->eq->fid, 0);
	if (!ret)
		ret = ofi_queues_bind(l->ep, &l->queues);
	if (!ret)
		ret = fi_enable(l->ep);
	for (unsigned i = 0; !ret && i < l->depth; i++)
		ret = lane_post_recv(l, i);
	return ret ? ofi_err(e, err_from_errno(-ret), ret, "endpoint set-up") : 0;
}

/* It is known by SSH that the target is there. */
static int
port_told(struct err *e)
{
	return err_because(e, REPL_REASON_DATA_PORT);
}

static int
port_unreached(const struct fab_params *p, const char *why, struct err *e)
{
	char address[TARGET_ADDRESS_MAX];

	(void)err_set(e, REPL_E_UNREACHABLE, "data port %s: %s; " PORT_HELP,
		      target_address(p->host, p->port, address), why);
	return port_told(e);
}

/* And nothing of this machine's own. */
static bool
is_network(int errnum)
{
	return errnum == ECONNREFUSED || errnum == EHOSTUNREACH || errnum == ENETUNREACH ||
	       errnum == ETIMEDOUT || errnum == EACCES || errnum == EPERM;
}

int
fab_lane_connect(const struct fab_params *p, const uint8_t *hello, size_t hello_len,
		 struct fab_lane **out, struct err *e)
{
	struct fi_info *info = NULL;
	struct fab_lane *l = NULL;
	int rc;

	*out = NULL;
	rc = ofi_info_new(p->provider, p->host, p->port, 0, &info, e);
	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	l->depth = p->depth;
	l->msg_size = p->msg_size;
	l->key = p->key;
	l->imm = ofi_imm_of(info);
	l->number = p->lane;
	(void)snprintf(l->host, sizeof(l->host), "%s", p->host);
	l->port = p->port;
	l->regions = p->regions;
	l->rdma = ofi_is_rdma(info);
	l->commits = (info->caps & FI_RMA_PMEM) != 0;
	/* iWARP goes on with what it has begun. */
	l->source.stops = info->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_RC;
	l->inject_size = info->tx_attr->inject_size;
	if (lane_alloc(l)) {
		rc = err_set(e, REPL_E_NOMEM,
			     "no memory for %u buffers of %zu bytes (RLIMIT_DATA, RLIMIT_AS)",
			     p->depth, p->msg_size);
		goto out;
	}
	rc = lane_open_objects(l, info, e);
	if (rc)
		goto out;
	rc = fi_connect(l->ep, info->dest_addr, hello, hello_len);
	if (rc) {
		rc = is_network(-rc) ? port_unreached(p, fi_strerror(-rc), e)
				     : ofi_err(e, REPL_E_UNREACHABLE, rc, "fi_connect");
		goto out;
	}
	*out = l;
	l = NULL;
out:
	fab_lane_free(l);
	fi_freeinfo(info);
	return rc;
}

/* The answer to fi_connect(), if it is there. */
static int
lane_look_connected(struct fab_lane *l, const struct fab_params *p, struct err *e)
{
	struct fi_eq_err_entry fault = {0};
	struct fi_eq_cm_entry entry;
	char address[TARGET_ADDRESS_MAX];
	uint32_t event;
	ssize_t n = fi_eq_read(l->eq, &event, &entry, sizeof(entry), 0);

	if (n == -FI_EAGAIN)
		return 0;
	if (n >= 0) {
		l->connected = event == FI_CONNECTED;
		if (l->connected)
			return 0;
		(void)err_set(e, REPL_E_UNREACHABLE, "data port %s closed the lane",
			      target_address(p->host, p->port, address));
		return port_told(e);
	}
	if (n != -FI_EAVAIL)
		return ofi_err(e, REPL_E_UNREACHABLE, n, "fi_eq_read");
	(void)fi_eq_readerr(l->eq, &fault, 0);
	if (fault.err != FI_ECONNREFUSED)
		return port_unreached(p, fi_strerror(fault.err), e);
	(void)err_set(e, REPL_E_UNREACHABLE,
		      "data port %s refused the lane (a firewall, another machine's address, or it "
		      "has closed again); " PORT_HELP,
		      target_address(p->host, p->port, address));
	return port_told(e);
}

/* A look at each moves it on; *left gets those that have no answer yet. */
static int
lanes_look_connected(struct fab_lane **lanes, unsigned count, const struct fab_params *p,
		     unsigned *left, struct err *e)
{
	int rc;

	*left = 0;
	for (unsigned i = 0; i < count; i++) {
		if (lanes[i]->connected)
			continue;
		rc = lane_look_connected(lanes[i], p, e);
		if (rc)
			return err_prefix(e, "lane %u", lanes[i]->number);
		*left += !lanes[i]->connected;
	}
	return 0;
}

/* Until one of them has something to tell, which none has right now, or for ms at most. */
static void
lanes_sleep_connecting(struct fab_lane **lanes, unsigned count, int ms)
{
	struct pollfd pfd[FAB_CONNECT_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		struct fid *fids[1] = {&lanes[i]->eq->fid};

		if (lanes[i]->connected || n == FAB_CONNECT_MAX)
			continue;
		if (fi_trywait(lanes[i]->fabric, fids, 1) != 0)
			return;
		pfd[n++] = (struct pollfd){.fd = ofi_wait_fd(fids[0]), .events = POLLIN};
	}
	(void)poll(pfd, n, ms);
}

int
fab_lanes_connected(struct fab_lane **lanes, unsigned count, const struct fab_params *p,
		    uint64_t deadline_ns, struct err *e)
{
	char address[TARGET_ADDRESS_MAX];
	unsigned left = count;
	int ms, rc;

	for (;;) {
		rc = lanes_look_connected(lanes, count, p, &left, e);
		if (rc || left == 0)
			return rc;
		if (clock_now_ns() >= deadline_ns) {
			(void)err_set(e, REPL_E_TIMEOUT,
				      "data port %s did not answer for %u of %u lanes; " PORT_HELP,
				      target_address(p->host, p->port, address), left, count);
			return port_told(e);
		}
		if (p->cancel && atomic_load(p->cancel))
			return err_set(e, REPL_E_LOST, "data port %s: given up connecting",
				       target_address(p->host, p->port, address));
		ms = clock_left_ms(deadline_ns);
		lanes_sleep_connecting(lanes, count,
				       ms < LANE_CONNECT_LOOK_MS ? ms : LANE_CONNECT_LOOK_MS);
	}
}

void
fab_lane_free(struct fab_lane *l)
{
	if (!l)
		return;
	ofi_close(l->ep ? &l->ep->fid : NULL);
	source_fini(&l->source);
	ofi_close(l->mr ? &l->mr->fid : NULL);
	ofi_queues_close(&l->queues);
	ofi_close(l->domain ? &l->domain->fid : NULL);
	ofi_close(l->eq ? &l->eq->fid : NULL);
	ofi_close(l->fabric ? &l->fabric->fid : NULL);
	ofi_mem_free(l->mem, l->mem_len);
	free(l->recv_op);
	free(l);
}

void
fab_lane_source(struct fab_lane *l, const void *mem, _Atomic uint64_t *uncopied)
{
	source_begin(&l->source, mem, uncopied);
}

/*
 * The queue pair is in its error state when the call returns: what was posted is not sent any
 * more, however often it would have been tried again.
 */
void
fab_lane_cut(struct fab_lane *l)
{
	if (source_cut(&l->source))
		(void)fi_shutdown(l->ep, 0);
}

void
fab_lane_source_info(const struct fab_lane *l, struct fab_source_info *out)
{
	source_info(&l->source, out);
}

uint64_t
fab_lane_moved(const struct fab_lane *l)
{
	return l->rdma ? 0 : fab_moved(l->host, l->port);
}

bool
fab_lane_turn(const struct fab_lane *l)
{
	return l->sent - l->answered < l->depth;
}

uint8_t *
fab_lane_buf(struct fab_lane *l)
{
	if (!fab_lane_turn(l))
		return NULL;
	return l->send_mem + l->sent % l->depth * l->msg_size;
}

static int
lane_lost(struct fab_lane *l, struct err *e)
{
	return err_set(e, REPL_E_LOST, "data lane lost: %s", l->why[0] ? l->why : "closed");
}

/* Posting found the connection gone: remember it for the next poll. */
static int
lane_post_failed(struct fab_lane *l, ssize_t ret, struct err *e)
{
	l->closed = true;
	(void)snprintf(l->why, sizeof(l->why), "%s", fi_strerror((int)-ret));
	return lane_lost(l, e);
}

static void
lane_post_spare(struct fab_lane *l)
{
	int ret = l->spare < 0 ? 0 : lane_post_recv(l, (unsigned)l->spare);

	l->spare = -1;
	if (ret)
		(void)lane_post_failed(l, ret, NULL);
}

static ssize_t
lane_post_try(struct fab_lane *l, const struct lane_post *p)
{
	void *desc = p->desc;
	struct fi_msg msg = {.msg_iov = &p->iov, .desc = &desc, .iov_count = 1, .context = p->op};
	struct fi_msg_rma rma = {.msg_iov = &p->iov,
				 .desc = &desc,
				 .iov_count = 1,
				 .rma_iov = &p->rma,
				 .rma_iov_count = 1,
				 .data = p->data,
				 .context = p->op};

	switch (p->kind) {
	case OFI_WRITE:
		return fi_writemsg(l->ep, &rma, p->flags);
	case OFI_READ:
		return fi_readmsg(l->ep, &rma, p->flags);
	default:
		break;
	}
	if (p->op)
		return fi_sendmsg(l->ep, &msg, p->flags);
	if (p->iov.iov_len <= l->inject_size)
		return fi_inject(l->ep, p->iov.iov_base, p->iov.iov_len, 0);
	return fi_send(l->ep, p->iov.iov_base, p->iov.iov_len, desc, 0, NULL);
}

/*
 * Give it to the provider. While the provider's queue is full it is held, and what comes
 * after it too, in order; fab_lane_poll() tries again. There is always room: a message
 * has a turn and RMA an operation.
 */
static int
lane_post(struct fab_lane *l, const struct lane_post *p, struct err *e)
{
	ssize_t ret = l->held_count > 0 ? -FI_EAGAIN : lane_post_try(l, p);

	if (ret == -FI_EAGAIN && l->held_count < LANE_HELD_MAX) {
		l->held[(l->held_at + l->held_count++) % LANE_HELD_MAX] = *p;
		return 0;
	}
	return ret ? lane_post_failed(l, ret, e) : 0;
}

static void
lane_post_held(struct fab_lane *l)
{
	while (l->held_count > 0 && !l->closed) {
		ssize_t ret = lane_post_try(l, &l->held[l->held_at]);

		if (ret == -FI_EAGAIN)
			return;
		if (ret)
			(void)lane_post_failed(l, ret, NULL);
		l->held_at = (l->held_at + 1) % LANE_HELD_MAX;
		l->held_count--;
	}
}

/* One message is sent: the turn is taken. */
static int
lane_send(struct fab_lane *l, struct ofi_op *op, size_t len, struct err *e)
{
	struct lane_post p = {
		.kind = OFI_SEND,
		.op = op,
		.desc = l->desc,
		.iov = {.iov_base = l->send_mem + l->sent % l->depth * l->msg_size, .iov_len = len},
		.flags = op ? FI_COMPLETION | FI_DELIVERY_COMPLETE : 0};
	int rc = lane_post(l, &p, e);

	if (rc)
		return rc;
	l->sent++;
	lane_post_spare(l);
	return l->closed ? lane_lost(l, e) : 0;
}

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	/* No completion is asked for: the answer says that the buffer is free. */
	return l->closed ? lane_lost(l, e) : lane_send(l, NULL, len, e);
}

/* Takes an operation slot for RMA; the caller has seen room. */
static struct ofi_op *
lane_rma_op(struct fab_lane *l, enum ofi_kind kind)
{
	unsigned slot = l->rma_free[--l->rma_free_count];
	struct ofi_op *op = &l->rma_op[slot];

	op->kind = kind;
	op->slot = slot;
	return op;
}

int
fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e)
{
	if (l->closed)
		return lane_lost(l, e);
	if (l->rma_free_count == 0)
		return err_set(e, REPL_E_BUSY, "too many operations outstanding");
	return lane_send(l, lane_rma_op(l, OFI_SEND), len, e);
}

unsigned
fab_lane_rma_room(const struct fab_lane *l)
{
	return l->rma_free_count;
}

/*
 * Each region has a key of its own and is addressed from its beginning; with an
 * RNIC by the place that the target has told.
 */
static int
lane_rma_at(const struct fab_lane *l, uint64_t off, size_t len, struct fi_rma_iov *rma,
	    struct err *e)
{
	unsigned i = l->regions ? regions_find(l->regions, off) : 0;
	struct regions_place place;

	if (l->regions && (len == 0 || regions_reach(l->regions, off, len) < len))
		return err_set(e, REPL_E_INVAL, "RMA of %zu bytes at %llu is in no region", len,
			       (unsigned long long)off);
	*rma = (struct fi_rma_iov){.addr = off, .len = len, .key = l->key + i};
	if (l->regions)
		rma->addr -= regions_get(l->regions, i).off;
	if (!l->rdma)
		return 0;
	if (!l->regions || !regions_place(l->regions, i, &place))
		return err_set(e, REPL_E_INVAL, "RMA at %llu: the target has told no place for it",
			       (unsigned long long)off);
	rma->addr += place.addr;
	rma->key = place.key;
	return 0;
}

static int
lane_rma_room(struct fab_lane *l, size_t len, struct err *e)
{
	if (l->closed)
		return lane_lost(l, e);
	if (l->rma_free_count == 0)
		return err_set(e, REPL_E_BUSY, "too many RMA operations outstanding");
	if (len > fab_lane_rma_max(l))
		return err_set(e, REPL_E_INVAL, "RMA of %zu bytes, at most %zu go at once", len,
			       fab_lane_rma_max(l));
	return 0;
}

size_t
fab_lane_rma_max(const struct fab_lane *l)
{
	return l->rdma ? FAB_BOUNCE_SIZE : FAB_RMA_MAX;
}

static uint8_t *
lane_bounce(struct fab_lane *l, const struct ofi_op *op)
{
	return l->bounce + (size_t)op->slot * FAB_BOUNCE_SIZE;
}

/* What tcp sends from where it lies its system copies as it sees fit: words.h. */
static bool
lane_write_copied(struct fab_lane *l, const void *src, size_t len, uint64_t off, void **desc)
{
	return l->rdma ? !source_take(&l->source, src, len, off, desc) : len <= FAB_BOUNCE_SIZE;
}

/* Post a write; flags say when it is complete and whether data goes with it. */
static int
lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, uint64_t data,
	   uint64_t flags, struct err *e)
{
	struct lane_post p = {
		.kind = OFI_WRITE, .desc = l->desc, .data = data, .flags = FI_COMPLETION | flags};
	int rc = lane_rma_room(l, len, e);

	if (!rc)
		rc = lane_rma_at(l, off, len, &p.rma, e);
	if (rc)
		return rc;
	p.op = lane_rma_op(l, OFI_WRITE);
	p.iov = (struct iovec){.iov_base = (void *)(uintptr_t)src, .iov_len = len};
	if (lane_write_copied(l, src, len, off, &p.desc)) {
		p.iov.iov_base = lane_bounce(l, p.op);
		words_load(p.iov.iov_base, src, len);
	}
	return lane_post(l, &p, e);
}

int
fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	/*
	 * Without a completion level tcp reports success for a wrong key or a
	 * range out of bounds, and before the target's memory has the bytes. An
	 * RNIC has no such level: verbs would ignore it.
	 */
	return lane_write(l, src, len, off, 0, l->rdma ? 0 : FI_DELIVERY_COMPLETE, e);
}

int
fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	/* Delivery costs tcp a message of the target's; what stands behind this says more. */
	return lane_write(l, src, len, off, 0, 0, e);
}

int
fab_lane_write_committed(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			 struct err *e)
{
	if (!l->commits)
		return err_set(e, REPL_E_INVAL, "the provider promises no flush");
	return lane_write(l, src, len, off, 0, FI_COMMIT_COMPLETE, e);
}

bool
fab_lane_commits(const struct fab_lane *l)
{
	return l->commits;
}

int
fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
		   const struct fab_imm *imm, struct err *e)
{
	uint64_t data = imm->bits;
	int rc;

	if (l->imm == OFI_IMM_NONE)
		return err_set(e, REPL_E_INVAL, "the provider knows no write with an immediate");
	if (imm->answered && !fab_lane_turn(l))
		return err_set(e, REPL_E_BUSY, "too many messages unanswered");
	if (l->imm == OFI_IMM_WIDE)
		data |= (uint64_t)l->number << OFI_IMM_LANE_SHIFT;
	rc = lane_write(l, src, len, off, data, FI_REMOTE_CQ_DATA, e);
	if (rc == 0 && imm->answered) {
		l->sent++; /* the buffer of this turn stays unused */
		lane_post_spare(l);
	}
	return rc;
}

/* Post a read of what rma says. */
static int
lane_read_at(struct fab_lane *l, void *dst, const struct fi_rma_iov *rma, struct err *e)
{
	struct ofi_op *op = lane_rma_op(l, OFI_READ);
	struct lane_post p = {
		.kind = OFI_READ,
		.op = op,
		.desc = l->desc,
		.iov = {.iov_base = l->rdma ? lane_bounce(l, op) : dst, .iov_len = rma->len},
		.rma = *rma,
		.flags = FI_COMPLETION};

	l->rma_dst[op->slot] = (struct lane_dst){.dst = dst, .len = rma->len};
	return lane_post(l, &p, e);
}

int
fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	struct fi_rma_iov rma;
	int rc = lane_rma_room(l, len, e);

	if (!rc)
		rc = lane_rma_at(l, off, len, &rma, e);
	return rc ? rc : lane_read_at(l, dst, &rma, e);
}

int
fab_lane_read_window(struct fab_lane *l, void *dst, size_t len, const struct regions_place *at,
		     struct err *e)
{
	struct fi_rma_iov rma = {.addr = at->addr, .len = len, .key = at->key};
	int rc = lane_rma_room(l, len, e);

	return rc ? rc : lane_read_at(l, dst, &rma, e);
}

static void
lane_read_fault(struct fab_lane *l, struct fid_cq *cq)
{
	struct fi_cq_err_entry fault = {0};

	l->closed = true;
	if (fi_cq_readerr(cq, &fault, 0) <= 0 || l->why[0] != '\0')
		return;
	/* Posted receives are cancelled when the other end goes: that is no news for people. */
	(void)snprintf(l->why, sizeof(l->why), "%s",
		       fault.err == FI_ECANCELED ? "closed by the target"
						 : ofi_fault_text(cq, &fault));
}

/* With an RNIC that a peer has gone is told by the event queue alone. */
static void
lane_read_eq(struct fab_lane *l)
{
	struct fi_eq_err_entry fault = {0};
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;
	ssize_t n = fi_eq_read(l->eq, &event, &entry, sizeof(entry), 0);

	if (n == -FI_EAGAIN || (n >= 0 && event != FI_SHUTDOWN))
		return;
	if (n == -FI_EAVAIL)
		(void)fi_eq_readerr(l->eq, &fault, 0);
	l->closed = true;
	if (l->why[0] == '\0')
		(void)snprintf(l->why, sizeof(l->why), "%s",
			       n >= 0 ? "closed by the target"
				      : fi_strerror(fault.err ? fault.err : (int)-n));
}

/* Read completions from a queue into the batch. */
static bool
lane_fill_batch(struct fab_lane *l, struct fid_cq *cq)
{
	ssize_t n = fi_cq_read(cq, l->batch, LANE_BATCH);

	l->batch_at = 0;
	l->batch_len = n > 0 ? (unsigned)n : 0;
	if (n < 0 && n != -FI_EAGAIN)
		lane_read_fault(l, cq);
	return n > 0;
}

static void
lane_event(struct fab_lane *l, const struct fi_cq_data_entry *c, struct fab_event *ev)
{
	struct ofi_op *op = c->op_context;

	/* An RMA write of the target's, even of nothing: it belongs to no operation of ours. */
	if (!op || (c->flags & FI_REMOTE_WRITE)) {
		l->closed = true;
		(void)snprintf(l->why, sizeof(l->why), "the target sent an immediate");
		return;
	}
	switch (op->kind) {
	case OFI_RECV:
		if (l->answered < l->sent)
			l->answered++;
		ev->type = FAB_RECV;
		ev->slot = op->slot;
		ev->data = l->recv_mem + (size_t)op->slot * FAB_REPLY_MAX;
		ev->len = c->len;
		break;
	case OFI_WRITE:
	case OFI_READ:
		if (op->kind == OFI_READ && l->rdma)
			memcpy(l->rma_dst[op->slot].dst, lane_bounce(l, op),
			       l->rma_dst[op->slot].len);
		l->rma_free[l->rma_free_count++] = op->slot;
		ev->type = op->kind == OFI_WRITE ? FAB_WRITTEN : FAB_READ;
		break;
	case OFI_SEND:
		l->rma_free[l->rma_free_count++] = op->slot;
		ev->type = FAB_SENT;
		break;
	}
}

/* RMA completes there, and what is done there makes room for what is held. */
static bool
lane_tx_awaited(const struct fab_lane *l)
{
	return l->rma_free_count < l->rma_count || l->held_count > 0;
}

/* With an RNIC first where something is awaited; elsewhere nothing can be seen but that it is gone.
 */
static void
lane_look(struct fab_lane *l)
{
	bool rma = lane_tx_awaited(l);
	bool messages = l->sent != l->answered;

	if (l->rdma && ++l->eq_looks % LANE_EQ_EVERY == 0)
		lane_read_eq(l);
	if (!l->rdma) {
		(void)lane_fill_batch(l, l->queues.rx);
	} else if (rma && !messages) {
		if (!lane_fill_batch(l, l->queues.tx) && ++l->looks % LANE_RX_EVERY == 0)
			(void)lane_fill_batch(l, l->queues.rx);
	} else if (!lane_fill_batch(l, l->queues.rx) && rma) {
		(void)lane_fill_batch(l, l->queues.tx);
	}
}

void
fab_lane_poll(struct fab_lane *l, struct fab_event *ev)
{
	ev->type = FAB_NONE;
	if (l->batch_at == l->batch_len && !l->closed)
		lane_look(l);
	if (l->held_count > 0)
		lane_post_held(l);
	if (l->batch_at < l->batch_len) {
		lane_event(l, &l->batch[l->batch_at++], ev);
	} else if (l->closed) {
		ev->type = FAB_CLOSED;
		(void)snprintf(ev->text, sizeof(ev->text), "%s",
			       l->why[0] ? l->why : "closed by the target");
	}
}

bool
fab_lane_more(const struct fab_lane *l)
{
	return l->batch_at < l->batch_len;
}

/*
 * There is one slot more than messages in flight, so that a slot may wait for
 * the next message to be on its way: what is posted then delays nobody.
 */
void
fab_lane_repost(struct fab_lane *l, unsigned slot)
{
	lane_post_spare(l);
	l->spare = (int)slot;
}

void
fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd, uint64_t deadline_ns)
{
	struct pollfd pfd[REPL_LANES_MAX * OFI_WAIT_FDS + 1];
	nfds_t n = 0;
	int left_ms;

	for (unsigned i = 0; i < count && i < REPL_LANES_MAX; i++) {
		struct fab_lane *l = lanes[i];

		if (l->closed || l->batch_at != l->batch_len ||
		    !ofi_queues_wait(l->fabric, &l->queues, l->eq, lane_tx_awaited(l), pfd, &n))
			return;
		/* Getting ready may itself have taken a message in. */
		if (lane_fill_batch(l, l->queues.rx) || l->closed)
			return;
		l->eq_looks = LANE_EQ_EVERY - 1;
	}
	if (wake_fd >= 0)
		pfd[n++] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
	left_ms = clock_left_ms(deadline_ns);
	(void)poll(pfd, n, left_ms < LANE_NAP_MS ? left_ms : LANE_NAP_MS);
}
