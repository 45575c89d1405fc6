/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane of fabric on the initiator: what moves over it. */
#include "fabric_lane.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "words.h"

#define LANE_RX_EVERY 8   /* looks for RMA alone between those for messages */
#define LANE_EQ_EVERY 256 /* looks between those at the event queue, with an RNIC */

/*
 * The longest sleep with operations outstanding. The tcp provider reads ahead:
 * what it holds in its own buffer no longer wakes the descriptor.
 */
#define LANE_NAP_MS 2

_Static_assert(REPL_TARGETS_MAX <= REPL_LANES_MAX, "one lane of each replica can be waited for");

int
lane_post_recv(struct fab_lane *l, unsigned slot)
{
	struct ofi_op *op = &l->recv_op[slot];

	op->kind = OFI_RECV;
	op->slot = slot;
	return (int)fi_recv(l->ep, l->recv_mem + (size_t)slot * FAB_REPLY_MAX, FAB_REPLY_MAX,
			    l->desc, 0, op);
}

void
fab_lane_source(struct fab_lane *l, const void *mem, _Atomic uint64_t *uncopied)
{
	source_begin(&l->source, mem, uncopied);
}

/*
 * Whoever is amid a step has looked before, and may have copied anything since. So it is who sends
 * that is stopped. An RNIC's queue pair is in its error state when the call returns: what was
 * posted is not sent any more, however often it would have been tried again. A socket takes bytes
 * under a lock of its own, which its end needs as well: who is taking some has done so before, and
 * those are of before; who comes later is refused, be it the provider with what it has queued. That
 * waits for no peer, at most for this machine's disk, from which a page of the program's is being
 * read. fi_shutdown() would do, but of tcp it is for the lane's own thread.
 */
void
fab_lane_cut(struct fab_lane *l)
{
	if (l->rdma)
		(void)fi_shutdown(l->ep, 0);
	else
		lane_socket_cut(&l->socket);
}

void
fab_lane_abandon(struct fab_lane *l)
{
	lane_socket_abandon(&l->socket);
}

void
fab_lane_source_info(const struct fab_lane *l, struct fab_source_info *out)
{
	source_info(&l->source, out);
}

uint64_t
fab_lane_moved(const struct fab_lane *l)
{
	const struct fab_lane *at = l;
	uint64_t sum = 0;

	do
		sum += lane_socket_moved(&at->socket);
	while ((at = at->next) != l);
	return sum;
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
