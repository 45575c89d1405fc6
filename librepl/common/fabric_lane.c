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
#include "regions.h"
#include "wire.h"

#define LANE_RMA_MAX  32
#define LANE_BATCH    8
#define LANE_RX_EVERY 8 /* looks for RMA alone between those for messages */

/*
 * The longest sleep with operations outstanding. The tcp provider reads ahead:
 * what it holds in its own buffer no longer wakes the descriptor.
 */
#define LANE_NAP_MS 2

#define LANE_CONNECT_LOOK_MS 100 /* at whether connecting was cancelled */

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
	unsigned number;   /* of the lane, on the server */
	uint8_t *send_mem; /* depth * msg_size */
	uint8_t *recv_mem; /* (depth + 1) * FAB_REPLY_MAX */
	struct ofi_op *recv_op;
	struct ofi_op rma_op[LANE_RMA_MAX];
	uint64_t sent, answered; /* messages; their buffers are used in turn */
	unsigned rma_free[LANE_RMA_MAX];
	unsigned rma_free_count;
	struct fi_cq_data_entry batch[LANE_BATCH];
	unsigned batch_at, batch_len;
	unsigned looks;
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
	return (int)fi_recv(l->ep, l->recv_mem + (size_t)slot * FAB_REPLY_MAX, FAB_REPLY_MAX, NULL,
			    0, op);
}

static int
lane_alloc(struct fab_lane *l)
{
	l->send_mem = malloc(l->depth * l->msg_size);
	l->recv_mem = calloc(l->depth + 1UL, FAB_REPLY_MAX);
	l->recv_op = calloc(l->depth + 1UL, sizeof(*l->recv_op));
	l->spare = (int)l->depth;
	if (!l->send_mem || !l->recv_mem || !l->recv_op)
		return -1;
	for (unsigned i = 0; i < LANE_RMA_MAX; i++)
		l->rma_free[l->rma_free_count++] = LANE_RMA_MAX - 1 - i;
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
	ret = ofi_queues_open(l->domain, l->depth + 8UL, LANE_RMA_MAX + 8UL, &l->queues, e);
	if (ret)
		return ret;
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

/* Wait for the answer to fi_connect(). */
static int
lane_await_connected(struct fab_lane *l, const struct fab_params *p, uint64_t deadline_ns,
		     struct err *e)
{
	struct fi_eq_err_entry fault = {0};
	struct fi_eq_cm_entry entry;
	struct pollfd pfd = {.fd = ofi_wait_fd(&l->eq->fid), .events = POLLIN};
	struct fid *fids[1] = {&l->eq->fid};
	uint32_t event;
	ssize_t n;
	int left;

	for (;;) {
		n = fi_eq_read(l->eq, &event, &entry, sizeof(entry), 0);
		if (n >= 0 && event == FI_CONNECTED)
			return 0;
		if (n >= 0)
			return err_set(e, REPL_E_UNREACHABLE, "data port %s:%u closed the lane",
				       p->host, (unsigned)p->port);
		if (n == -FI_EAVAIL) {
			(void)fi_eq_readerr(l->eq, &fault, 0);
			if (fault.err == FI_ECONNREFUSED)
				return err_set(e, REPL_E_UNREACHABLE,
					       "data port %s:%u refused the lane (a firewall, a "
					       "used token, or the port has closed)",
					       p->host, (unsigned)p->port);
			return err_set(e, REPL_E_UNREACHABLE, "data port %s:%u: %s", p->host,
				       (unsigned)p->port, fi_strerror(fault.err));
		}
		if (n != -FI_EAGAIN)
			return ofi_err(e, REPL_E_UNREACHABLE, n, "fi_eq_read");
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_TIMEOUT,
				       "data port %s:%u did not answer; is it reachable, or set "
				       "data-address and data-ports in repld.conf",
				       p->host, (unsigned)p->port);
		left = clock_left_ms(deadline_ns);
		if (p->cancel && atomic_load(p->cancel))
			return err_set(e, REPL_E_LOST, "data port %s:%u: given up connecting",
				       p->host, (unsigned)p->port);
		if (p->cancel && left > LANE_CONNECT_LOOK_MS)
			left = LANE_CONNECT_LOOK_MS;
		if (fi_trywait(l->fabric, fids, 1) == 0)
			(void)poll(&pfd, 1, left);
	}
}

int
fab_lane_connect(const struct fab_params *p, const uint8_t *hello, size_t hello_len,
		 uint64_t deadline_ns, struct fab_lane **out, struct err *e)
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
	l->regions = p->regions;
	l->inject_size = info->tx_attr->inject_size;
	if (lane_alloc(l)) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory for %u buffers of %zu bytes", p->depth,
			     p->msg_size);
		goto out;
	}
	rc = lane_open_objects(l, info, e);
	if (rc)
		goto out;
	rc = fi_connect(l->ep, info->dest_addr, hello, hello_len);
	if (rc) {
		rc = ofi_err(e, REPL_E_UNREACHABLE, rc, "fi_connect");
		goto out;
	}
	rc = lane_await_connected(l, p, deadline_ns, e);
	if (rc)
		goto out;
	*out = l;
	l = NULL;
out:
	fab_lane_free(l);
	fi_freeinfo(info);
	return rc;
}

void
fab_lane_free(struct fab_lane *l)
{
	if (!l)
		return;
	ofi_close(l->ep ? &l->ep->fid : NULL);
	ofi_queues_close(&l->queues);
	ofi_close(l->domain ? &l->domain->fid : NULL);
	ofi_close(l->eq ? &l->eq->fid : NULL);
	ofi_close(l->fabric ? &l->fabric->fid : NULL);
	free(l->send_mem);
	free(l->recv_mem);
	free(l->recv_op);
	free(l);
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

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	uint8_t *buf = l->send_mem + l->sent % l->depth * l->msg_size;
	ssize_t ret;

	if (l->closed)
		return lane_lost(l, e);
	/* No completion is asked for: the answer says that the buffer is free. */
	if (len <= l->inject_size)
		ret = fi_inject(l->ep, buf, len, 0);
	else
		ret = fi_send(l->ep, buf, len, NULL, 0, NULL);
	if (ret)
		return lane_post_failed(l, ret, e);
	l->sent++;
	lane_post_spare(l);
	return l->closed ? lane_lost(l, e) : 0;
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
	uint8_t *buf = l->send_mem + l->sent % l->depth * l->msg_size;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
	ssize_t ret;

	if (l->closed)
		return lane_lost(l, e);
	if (l->rma_free_count == 0)
		return err_set(e, REPL_E_BUSY, "too many operations outstanding");
	msg.context = lane_rma_op(l, OFI_SEND);
	ret = fi_sendmsg(l->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	if (ret) {
		l->rma_free_count++;
		return lane_post_failed(l, ret, e);
	}
	l->sent++;
	lane_post_spare(l);
	return l->closed ? lane_lost(l, e) : 0;
}

unsigned
fab_lane_rma_room(const struct fab_lane *l)
{
	return l->rma_free_count;
}

/* Each region has a key of its own and is addressed from its beginning. */
static int
lane_rma_at(const struct fab_lane *l, uint64_t off, size_t len, struct fi_rma_iov *rma,
	    struct err *e)
{
	unsigned i = l->regions ? regions_find(l->regions, off) : 0;

	if (l->regions && (len == 0 || regions_reach(l->regions, off, len) < len))
		return err_set(e, REPL_E_INVAL, "RMA of %zu bytes at %llu is in no region", len,
			       (unsigned long long)off);
	*rma = (struct fi_rma_iov){.addr = off, .len = len, .key = l->key + i};
	if (l->regions)
		rma->addr -= regions_get(l->regions, i).off;
	return 0;
}

/* Post a write; flags say when it is complete and whether data goes with it. */
static int
lane_write(struct fab_lane *l, struct fi_msg_rma *msg, const void *src, size_t len, uint64_t off,
	   uint64_t flags, struct err *e)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)src, .iov_len = len};
	struct fi_rma_iov rma;
	ssize_t ret;

	if (l->closed)
		return lane_lost(l, e);
	if (lane_rma_at(l, off, len, &rma, e))
		return REPL_E_INVAL;
	if (l->rma_free_count == 0)
		return err_set(e, REPL_E_BUSY, "too many RMA operations outstanding");
	msg->msg_iov = &iov;
	msg->rma_iov = &rma;
	msg->iov_count = msg->rma_iov_count = 1;
	msg->context = lane_rma_op(l, OFI_WRITE);
	ret = fi_writemsg(l->ep, msg, FI_COMPLETION | flags);
	if (ret) {
		l->rma_free_count++;
		return lane_post_failed(l, ret, e);
	}
	return 0;
}

int
fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	struct fi_msg_rma msg = {0};

	/*
	 * Without a completion level tcp reports success for a wrong key or a
	 * range out of bounds, and before the target's memory has the bytes.
	 */
	return lane_write(l, &msg, src, len, off, FI_DELIVERY_COMPLETE, e);
}

int
fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	struct fi_msg_rma msg = {0};

	/* Delivery costs tcp a message of the target's; what stands behind this says more. */
	return lane_write(l, &msg, src, len, off, 0, e);
}

int
fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
		   const struct fab_imm *imm, struct err *e)
{
	struct fi_msg_rma msg = {.data = imm->bits};
	int rc;

	if (l->imm == OFI_IMM_NONE)
		return err_set(e, REPL_E_INVAL, "the provider knows no write with an immediate");
	if (imm->answered && !fab_lane_turn(l))
		return err_set(e, REPL_E_BUSY, "too many messages unanswered");
	if (l->imm == OFI_IMM_WIDE)
		msg.data |= (uint64_t)l->number << OFI_IMM_LANE_SHIFT;
	rc = lane_write(l, &msg, src, len, off, FI_REMOTE_CQ_DATA, e);
	if (rc == 0 && imm->answered) {
		l->sent++; /* the buffer of this turn stays unused */
		lane_post_spare(l);
	}
	return rc;
}

int
fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	struct iovec iov = {.iov_base = dst, .iov_len = len};
	struct fi_rma_iov rma;
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &rma, .rma_iov_count = 1};
	ssize_t ret;

	if (l->closed)
		return lane_lost(l, e);
	if (lane_rma_at(l, off, len, &rma, e))
		return REPL_E_INVAL;
	if (l->rma_free_count == 0)
		return err_set(e, REPL_E_BUSY, "too many RMA operations outstanding");
	msg.context = lane_rma_op(l, OFI_READ);
	ret = fi_readmsg(l->ep, &msg, FI_COMPLETION);
	if (ret) {
		l->rma_free_count++;
		return lane_post_failed(l, ret, e);
	}
	return 0;
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
		       fault.err == FI_ECANCELED ? "closed by the target" : fi_strerror(fault.err));
}

/* Read completions from one queue into the batch. */
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
		l->rma_free[l->rma_free_count++] = op->slot;
		ev->type = op->kind == OFI_WRITE ? FAB_WRITTEN : FAB_READ;
		break;
	case OFI_SEND:
		l->rma_free[l->rma_free_count++] = op->slot;
		ev->type = FAB_SENT;
		break;
	}
}

/*
 * A look at an empty queue costs a system call, so first where something is
 * awaited; elsewhere only that the connection is gone could be seen.
 */
static void
lane_look(struct fab_lane *l)
{
	bool rma = l->rma_free_count < LANE_RMA_MAX;
	bool messages = l->sent != l->answered;

	if (rma && !messages) {
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
	struct pollfd pfd[REPL_TARGETS_MAX + 1];
	nfds_t n = 0;
	int left_ms;

	for (unsigned i = 0; i < count && i < REPL_TARGETS_MAX; i++) {
		struct fab_lane *l = lanes[i];
		struct fid *fids[1] = {&l->queues.tx->fid};

		if (l->closed || l->batch_at != l->batch_len || fi_trywait(l->fabric, fids, 1) != 0)
			return;
		/* fi_trywait() itself may have taken a message in. */
		if (lane_fill_batch(l, l->queues.rx) || l->closed)
			return;
		pfd[n++] = (struct pollfd){.fd = ofi_wait_fd(fids[0]), .events = POLLIN};
	}
	if (wake_fd >= 0)
		pfd[n++] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
	left_ms = clock_left_ms(deadline_ns);
	(void)poll(pfd, n, left_ms < LANE_NAP_MS ? left_ms : LANE_NAP_MS);
}
