/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's half of fabric: the data port and all lanes of a session behind
 * one completion queue, so that one thread sees everything that has arrived.
 */
#include "fabric_ofi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "regions.h"
#include "target.h"
#include "wire.h"

#define SERVER_BATCH   32
#define SERVER_CM_DATA 256
/*
 * The tcp provider reads ahead: what it holds in its own buffer no longer wakes
 * the descriptor. So the first sleeps after something was heard are short.
 */
#define SERVER_NAPS     50
#define SERVER_NAP_MS   2
#define SERVER_EQ_EVERY 64 /* polls between looks at the event queue when all have joined */
#define SERVER_FD_MAX   4096
#define SERVER_SPARE_TX 16
#define SERVER_TX_TRIES 1000 /* looks for answers that have left when there is room for none */
#define SERVER_DEFER_S  600  /* no data port is open for longer */
#define SERVER_REFUSALS 1024 /* requests taken off the queue when the port closes */

/* A socket address as libfabric and the kernel hand it out. */
union server_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

enum server_state { LANE_FREE, LANE_ACCEPTED, LANE_JOINED, LANE_GONE };

struct server_lane {
	struct fid_ep *ep;
	enum server_state state;
	bool closed_told;
	struct ofi_op *recv_op;
};

struct fab_server {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq; /* of the lanes */
	struct ofi_queues queues;
	/*
	 * The port's own queue goes with it: tcp keeps connections that have asked
	 * for nothing yet in the queue, and they point to the pep when it is gone.
	 */
	struct fid_eq *port_eq;
	struct fid_pep *pep;
	uint64_t key;
	struct fid_mr **mrs;     /* REGIONS_MAX; NULL where not registered */
	uint64_t *mr_addr;       /* ... where they begin */
	struct fi_info *request; /* of the FAB_REQUEST given out last */
	uint16_t port;
	enum ofi_imm imm;
	bool rdma;
	unsigned depth;
	unsigned slots;
	size_t msg_size;
	size_t stride;     /* from one receive buffer to the next */
	uint8_t *recv_mem; /* slots * stride a lane */
	bool borrowed;     /* ... of the caller's */
	struct fid_mr *recv_mr;
	void *recv_desc;
	uint8_t *window_mem; /* window bytes a lane, or NULL */
	size_t window;
	struct fid_mr *window_mr;
	unsigned replies;
	unsigned lane_count;
	unsigned polls;
	unsigned naps; /* since a message came */
	struct server_lane *lanes;
	struct fi_cq_data_entry batch[SERVER_BATCH];
	unsigned batch_at, batch_len;
	struct fab_event held; /* a fault found on the way to sleep */
	union {
		struct fi_eq_cm_entry entry;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + SERVER_CM_DATA];
	} cm;
};

static int
server_listen_at(struct fab_server *s, const struct fab_params *p, uint16_t port,
		 struct fi_info **info, struct err *e)
{
	char address[TARGET_ADDRESS_MAX];
	int ret;
	int rc = ofi_info_new(p->provider, p->host, port, FI_SOURCE, info, e);

	if (rc)
		return rc;
	if (!s->fabric) {
		struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};

		ret = fi_fabric((*info)->fabric_attr, &s->fabric, NULL);
		if (ret)
			return ofi_err(e, REPL_E_FAILED, ret, "fi_fabric");
		ret = fi_eq_open(s->fabric, &eq_attr, &s->eq, NULL);
		if (ret)
			return ofi_err(e, err_from_errno(-ret), ret, "fi_eq_open");
		ret = fi_eq_open(s->fabric, &eq_attr, &s->port_eq, NULL);
		if (ret)
			return ofi_err(e, err_from_errno(-ret), ret, "fi_eq_open");
	}
	ret = fi_passive_ep(s->fabric, *info, &s->pep, NULL);
	if (!ret)
		ret = fi_pep_bind(s->pep, &s->port_eq->fid, 0);
	if (!ret)
		ret = fi_listen(s->pep);
	if (ret) {
		ofi_close(s->pep ? &s->pep->fid : NULL);
		s->pep = NULL;
		if (ret == -FI_EADDRNOTAVAIL)
			return err_set(e, REPL_E_CONFIG,
				       "data port: '%s' is no address of this machine; correct "
				       "data-address in repld.conf",
				       p->host);
		return err_set(e, ret == -FI_EADDRINUSE ? REPL_E_BUSY : REPL_E_FAILED,
			       "data port %s: %s", target_address(p->host, port, address),
			       fi_strerror(-ret));
	}
	return 0;
}

static uint16_t
server_addr_port(const union server_addr *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in.sin_port);
}

/*
 * tcp accepts every connection and keeps it until it says something, each at
 * the price of a descriptor. So the kernel is to hand out only those that have
 * said something: they are answered at once. libfabric does not tell its
 * listening socket; it is the one that listens on our port.
 */
static void
server_defer_idle(const struct fab_server *s)
{
	static const int seconds = SERVER_DEFER_S;

	for (int fd = 0; fd < SERVER_FD_MAX; fd++) {
		union server_addr addr;
		socklen_t addr_len = sizeof(addr), len = sizeof(int);
		int listens = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens ||
		    getsockname(fd, &addr.sa, &addr_len) || server_addr_port(&addr) != s->port)
			continue;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
		break;
	}
}

/* The first port of the range that is free; *info is of the listening address. */
static int
server_listen(struct fab_server *s, const struct fab_params *p, struct fi_info **info,
	      struct err *e)
{
	union server_addr addr;
	size_t len = sizeof(addr);
	unsigned last = p->port_last < p->port ? p->port : p->port_last;
	int rc = REPL_E_FAILED;

	for (unsigned port = p->port; port <= last; port++) {
		rc = server_listen_at(s, p, (uint16_t)port, info, e);
		if (rc == 0)
			break;
		if (*info)
			fi_freeinfo(*info);
		*info = NULL;
		if (rc != REPL_E_BUSY)
			return rc;
	}
	if (rc) {
		return err_set(e, REPL_E_LIMIT,
			       "no free data port from %u to %u; widen data-ports in repld.conf",
			       (unsigned)p->port, last);
	}
	rc = fi_getname(&s->pep->fid, &addr, &len);
	if (rc)
		return ofi_err(e, REPL_E_FAILED, rc, "fi_getname");
	s->port = server_addr_port(&addr);
	s->rdma = ofi_is_rdma(*info);
	if (!s->rdma)
		server_defer_idle(s);
	return 0;
}

static int
server_alloc_lanes(struct fab_server *s, unsigned lanes, const struct fab_params *p, struct err *e)
{
	size_t recv_len = (size_t)lanes * s->slots * s->stride;

	s->lanes = calloc(lanes, sizeof(*s->lanes));
	s->mrs = calloc(REGIONS_MAX, sizeof(struct fid_mr *));
	s->mr_addr = calloc(REGIONS_MAX, sizeof(*s->mr_addr));
	if (!s->lanes || !s->mrs || !s->mr_addr)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	s->lane_count = lanes;
	/* Buffers of lanes that stay idle cost nothing, but where they are pinned. */
	s->recv_mem = s->borrowed ? p->recv_mem : ofi_mem_new(recv_len);
	if (!s->recv_mem)
		return err_set(e, REPL_E_NOMEM,
			       "no memory for %u buffers of %zu bytes (RLIMIT_DATA, RLIMIT_AS)",
			       lanes * s->slots, s->stride);
	s->window = p->window;
	if (s->window) {
		s->window_mem = ofi_mem_new(lanes * s->window);
		if (!s->window_mem)
			return err_set(
				e, REPL_E_NOMEM,
				"no memory for %u windows of %zu bytes (RLIMIT_DATA, RLIMIT_AS)",
				lanes, s->window);
	}
	for (unsigned i = 0; i < lanes; i++) {
		s->lanes[i].recv_op = calloc(s->slots, sizeof(struct ofi_op));
		if (!s->lanes[i].recv_op)
			return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	return 0;
}

/* Without an RNIC: under a key that no region has, addressed from its beginning. */
static int
server_register_window(struct fab_server *s, struct err *e)
{
	size_t len = s->lane_count * s->window;
	int ret;

	if (!s->window_mem)
		return 0;
	ret = fi_mr_reg(s->domain, s->window_mem, len, FI_REMOTE_READ, 0, s->key + REGIONS_MAX, 0,
			&s->window_mr, NULL);
	return ret ? ofi_err(e, err_from_errno(-ret), ret, "registering a window for RMA") : 0;
}

/* What an RNIC is to reach must be registered; so must not be too much for the limits. */
static int
server_register_mem(struct fab_server *s, struct err *e)
{
	int rc;

	if (!s->rdma)
		return server_register_window(s, e);
	rc = ofi_mem_register(s->domain, s->recv_mem, (size_t)s->lane_count * s->slots * s->stride,
			      FI_RECV, &s->recv_mr, e);
	if (!rc)
		s->recv_desc = fi_mr_desc(s->recv_mr);
	if (!rc && s->window_mem)
		rc = ofi_mem_register(s->domain, s->window_mem, s->lane_count * s->window,
				      FI_REMOTE_READ, &s->window_mr, e);
	return rc;
}

/* Sizes of a lane's queues: answers on their way, and buffers. */
static size_t
server_tx_size(const struct fab_server *s)
{
	return 2UL * s->depth + SERVER_SPARE_TX;
}

int
fab_server_new(const struct fab_params *p, unsigned lanes, struct fab_server **out, struct err *e)
{
	struct fi_info *info = NULL;
	struct fab_server *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (!s)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	s->depth = p->depth;
	s->msg_size = p->msg_size;
	s->key = p->key;
	s->borrowed = p->recv_mem != NULL;
	s->stride = s->borrowed ? p->recv_stride : p->msg_size;
	rc = server_listen(s, p, &info, e);
	if (rc)
		goto out;
	s->imm = ofi_imm_of(info);
	s->slots = FAB_SERVER_SLOTS(p->depth);
	/* Each immediate uses one up; on a ring there are none. */
	if (s->imm == OFI_IMM_RECV && !s->borrowed)
		s->slots += FAB_IMM_LOOSE;
	rc = server_alloc_lanes(s, lanes, p, e);
	if (rc)
		goto out;
	rc = fi_domain(s->fabric, info, &s->domain, NULL);
	if (rc) {
		rc = ofi_err(e, err_from_errno(-rc), rc, "fi_domain");
		goto out;
	}
	rc = ofi_queues_open(info, s->domain, (size_t)lanes * s->slots + SERVER_BATCH,
			     s->rdma ? lanes * server_tx_size(s) : SERVER_BATCH, &s->queues, e);
	if (!rc)
		rc = server_register_mem(s, e);
	if (rc)
		goto out;
	*out = s;
	s = NULL;
out:
	fi_freeinfo(info);
	fab_server_free(s);
	return rc;
}

void
fab_server_free(struct fab_server *s)
{
	if (!s)
		return;
	fab_server_close_port(s);
	for (unsigned i = 0; i < s->lane_count; i++)
		ofi_close(s->lanes[i].ep ? &s->lanes[i].ep->fid : NULL);
	for (unsigned i = 0; s->mrs && i < REGIONS_MAX; i++)
		ofi_close(s->mrs[i] ? &s->mrs[i]->fid : NULL);
	ofi_close(s->recv_mr ? &s->recv_mr->fid : NULL);
	ofi_close(s->window_mr ? &s->window_mr->fid : NULL);
	ofi_queues_close(&s->queues);
	ofi_close(s->domain ? &s->domain->fid : NULL);
	ofi_close(s->eq ? &s->eq->fid : NULL);
	ofi_close(s->fabric ? &s->fabric->fid : NULL);
	for (unsigned i = 0; i < s->lane_count; i++)
		free(s->lanes[i].recv_op);
	if (!s->borrowed)
		ofi_mem_free(s->recv_mem, (size_t)s->lane_count * s->slots * s->stride);
	ofi_mem_free(s->window_mem, s->lane_count * s->window);
	free(s->mrs);
	free(s->mr_addr);
	free(s->lanes);
	free(s);
}

int
fab_server_register(struct fab_server *s, unsigned region, void *mem, size_t len, bool write,
		    struct err *e)
{
	uint64_t access = FI_REMOTE_READ | (write ? FI_REMOTE_WRITE : 0);
	int ret;

	if (s->mrs[region])
		return 0;
	s->mr_addr[region] = (uintptr_t)mem;
	if (s->rdma)
		return ofi_mem_register(s->domain, mem, len, access, &s->mrs[region], e);
	ret = fi_mr_reg(s->domain, mem, len, access, 0, s->key + region, 0, &s->mrs[region], NULL);
	return ret ? ofi_err(e, err_from_errno(-ret), ret, "registering memory for RMA") : 0;
}

int
fab_server_can_pin(const struct fab_server *s, uint64_t len, struct err *e)
{
	return s->rdma ? ofi_mem_limit(len, e) : 0;
}

/* Virtual addresses: a region's is where it was registered from. */
bool
fab_server_place(const struct fab_server *s, unsigned region, struct regions_place *out)
{
	if (!s->rdma || !s->mrs[region])
		return false;
	*out = (struct regions_place){.addr = s->mr_addr[region], .key = fi_mr_key(s->mrs[region])};
	return true;
}

bool
fab_server_window(struct fab_server *s, unsigned lane, uint8_t **mem, struct regions_place *out)
{
	if (!s->window_mr)
		return false;
	*mem = s->window_mem + lane * s->window;
	*out = (struct regions_place){.addr = s->rdma ? (uintptr_t)*mem : lane * s->window,
				      .key = fi_mr_key(s->window_mr)};
	return true;
}

uint16_t
fab_server_port(const struct fab_server *s)
{
	return s->port;
}

bool
fab_server_immediates(const struct fab_server *s)
{
	return s->imm != OFI_IMM_NONE;
}

/* The next connection request; -FI_EAGAIN if there is none. */
static ssize_t
server_read_request(struct fab_server *s)
{
	struct fi_eq_err_entry fault = {0};
	uint32_t event;
	ssize_t n = fi_eq_read(s->port_eq, &event, &s->cm, sizeof(s->cm), 0);

	if (n == -FI_EAVAIL)
		(void)fi_eq_readerr(s->port_eq, &fault, 0);
	if (n < (ssize_t)sizeof(s->cm.entry) || event != FI_CONNREQ)
		return -FI_EAGAIN;
	s->request = s->cm.entry.info;
	return n;
}

void
fab_server_close_port(struct fab_server *s)
{
	fab_server_reject(s);
	for (unsigned i = 0; s->pep && i < SERVER_REFUSALS && server_read_request(s) > 0; i++)
		fab_server_reject(s);
	ofi_close(s->pep ? &s->pep->fid : NULL);
	ofi_close(s->port_eq ? &s->port_eq->fid : NULL);
	s->pep = NULL;
	s->port_eq = NULL;
}

static uint8_t *
server_slot(const struct fab_server *s, unsigned lane, unsigned slot)
{
	return s->recv_mem + ((size_t)lane * s->slots + slot) * s->stride;
}

static int
server_post_recv(struct fab_server *s, unsigned lane, unsigned slot)
{
	struct server_lane *l = &s->lanes[lane];
	struct ofi_op *op = &l->recv_op[slot];

	op->kind = OFI_RECV;
	op->lane = lane;
	op->slot = slot;
	return (int)fi_recv(l->ep, server_slot(s, lane, slot), s->msg_size, s->recv_desc, 0, op);
}

int
fab_server_accept(struct fab_server *s, unsigned lane, struct err *e)
{
	struct server_lane *l = &s->lanes[lane];
	int ret;

	if (!s->request)
		return err_set(e, REPL_E_FAILED, "no connection request to accept");
	if (l->state != LANE_FREE) {
		fab_server_reject(s);
		return err_set(e, REPL_E_BUSY, "lane %u is connected", lane);
	}
	if (s->rdma) {
		s->request->tx_attr->size = server_tx_size(s);
		s->request->tx_attr->inject_size = FAB_REPLY_MAX;
		s->request->rx_attr->size = s->slots;
	}
	ret = fi_endpoint(s->domain, s->request, &l->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(l->ep, &s->eq->fid, 0);
	if (!ret)
		ret = ofi_queues_bind(l->ep, &s->queues);
	if (!ret)
		ret = fi_enable(l->ep);
	for (unsigned i = 0; !ret && i < s->slots; i++)
		ret = server_post_recv(s, lane, i);
	if (!ret)
		ret = fi_accept(l->ep, NULL, 0);
	fi_freeinfo(s->request);
	s->request = NULL;
	if (ret) {
		ofi_close(l->ep ? &l->ep->fid : NULL);
		l->ep = NULL;
		return ofi_err(e, err_from_errno(-ret), ret, "accepting a lane");
	}
	l->state = LANE_ACCEPTED;
	return 0;
}

void
fab_server_reject(struct fab_server *s)
{
	if (!s->request)
		return;
	if (s->pep)
		(void)fi_reject(s->pep, s->request->handle, NULL, 0);
	fi_freeinfo(s->request);
	s->request = NULL;
}

static unsigned
server_lane_of(const struct fab_server *s, const struct fid *fid)
{
	unsigned i;

	for (i = 0; i < s->lane_count; i++) {
		if (s->lanes[i].ep && &s->lanes[i].ep->fid == fid)
			break;
	}
	return i;
}

static void
server_poll_port(struct fab_server *s, struct fab_event *ev)
{
	ssize_t n;

	if (!s->pep)
		return;
	fab_server_reject(s); /* one that was not answered */
	n = server_read_request(s);
	if (n < 0)
		return;
	ev->type = FAB_REQUEST;
	ev->data = s->cm.entry.data;
	ev->len = (size_t)n - sizeof(s->cm.entry);
}

/* One event of a lane's connection, if there is one and it means something to the caller. */
static void
server_poll_eq(struct fab_server *s, struct fab_event *ev)
{
	struct fi_eq_err_entry fault = {0};
	struct fi_eq_cm_entry entry = {0};
	uint32_t event;
	ssize_t n = fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0);

	if (n == -FI_EAVAIL) {
		(void)fi_eq_readerr(s->eq, &fault, 0);
		entry.fid = fault.fid;
	} else if (n < 0 || (event != FI_CONNECTED && event != FI_SHUTDOWN)) {
		return;
	}
	ev->lane = server_lane_of(s, entry.fid);
	if (ev->lane >= s->lane_count)
		return;
	if (n >= 0 && event == FI_CONNECTED) {
		ev->type = FAB_JOINED;
		s->lanes[ev->lane].state = LANE_JOINED;
		return;
	}
	ev->type = FAB_CLOSED;
	(void)snprintf(ev->text, sizeof(ev->text), "%s",
		       n < 0 ? fi_strerror(fault.err) : "closed by the initiator");
}

/* FAB_CLOSED is given out once for a lane, whichever queue says it first. */
static void
server_closed_once(struct fab_server *s, struct fab_event *ev)
{
	struct server_lane *l = &s->lanes[ev->lane];

	if (l->closed_told) {
		ev->type = FAB_NONE;
		return;
	}
	l->closed_told = true;
	l->state = LANE_GONE;
}

static void
server_cq_fault(struct fab_server *s, struct fab_event *ev)
{
	struct fi_cq_err_entry fault = {0};
	const struct ofi_op *op;

	if (fi_cq_readerr(s->queues.rx, &fault, 0) <= 0 || !fault.op_context)
		return;
	op = fault.op_context;
	ev->type = FAB_CLOSED;
	ev->lane = op->lane;
	(void)snprintf(ev->text, sizeof(ev->text), "%s", ofi_fault_text(s->queues.rx, &fault));
}

static bool
server_eq_due(struct fab_server *s)
{
	return s->pep || ++s->polls % SERVER_EQ_EVERY == 0;
}

/* Read completions into the batch; a fault becomes *ev. */
static bool
server_fill_batch(struct fab_server *s, struct fab_event *ev)
{
	ssize_t n = fi_cq_read(s->queues.rx, s->batch, SERVER_BATCH);

	s->batch_at = 0;
	s->batch_len = n > 0 ? (unsigned)n : 0;
	if (n > 0)
		s->naps = 0;
	if (n < 0 && n != -FI_EAGAIN)
		server_cq_fault(s, ev);
	return n > 0;
}

static void
server_on_message(struct fab_server *s, const struct fi_cq_data_entry *c, struct fab_event *ev)
{
	const struct ofi_op *op = c->op_context;

	ev->type = FAB_RECV;
	ev->lane = op->lane;
	ev->slot = op->slot;
	ev->data = server_slot(s, op->lane, op->slot);
	ev->len = c->len;
}

/* Which lane it came from: told by the receive that it took, or by the initiator. */
static void
server_on_immediate(struct fab_server *s, const struct fi_cq_data_entry *c, struct fab_event *ev)
{
	uint64_t lane = c->data >> OFI_IMM_LANE_SHIFT;

	ev->type = FAB_IMM;
	ev->imm = (uint32_t)c->data;
	if (s->imm == OFI_IMM_RECV) {
		const struct ofi_op *op = c->op_context;

		ev->lane = op->lane;
		fab_server_repost(s, op->lane, op->slot);
	} else {
		bool known = lane < s->lane_count && s->lanes[lane].state != LANE_FREE;

		ev->lane = known ? (unsigned)lane : s->lane_count;
	}
}

void
fab_server_poll(struct fab_server *s, struct fab_event *ev)
{
	const struct fi_cq_data_entry *c;

	ev->type = FAB_NONE;
	if (s->held.type != FAB_NONE) {
		*ev = s->held;
		s->held.type = FAB_NONE;
	} else if (s->batch_at == s->batch_len && !server_fill_batch(s, ev) &&
		   ev->type == FAB_NONE && server_eq_due(s)) {
		server_poll_eq(s, ev);
		if (ev->type == FAB_NONE)
			server_poll_port(s, ev);
	}
	if (ev->type == FAB_NONE && s->batch_at < s->batch_len) {
		c = &s->batch[s->batch_at++];
		if (c->flags & FI_REMOTE_WRITE)
			server_on_immediate(s, c, ev);
		else
			server_on_message(s, c, ev);
	}
	if (ev->type == FAB_CLOSED)
		server_closed_once(s, ev);
}

bool
fab_server_more(const struct fab_server *s)
{
	return s->batch_at < s->batch_len;
}

void
fab_server_repost(struct fab_server *s, unsigned lane, unsigned slot)
{
	/* A lane that is a buffer short would stall its initiator: it ends instead. */
	if (s->lanes[lane].state != LANE_GONE && server_post_recv(s, lane, slot))
		fab_server_drop(s, lane);
}

/*
 * With an RNIC answers that have left are seen by looking for them. One to a lane that has gone
 * stands in front of all others until it is taken off. With tcp the look lets the provider send
 * on, and takes nothing from the queue, in which messages arrive.
 */
static void
server_take_sent(struct fab_server *s)
{
	struct fi_cq_err_entry fault = {0};
	struct fi_cq_data_entry done;

	if (!s->rdma)
		(void)fi_cq_read(s->queues.rx, NULL, 0);
	else if (fi_cq_read(s->queues.tx, &done, 1) == -FI_EAVAIL)
		(void)fi_cq_readerr(s->queues.tx, &fault, 0);
}

int
fab_server_reply(struct fab_server *s, unsigned lane, const void *data, size_t len)
{
	struct server_lane *l = &s->lanes[lane];
	ssize_t ret;

	if (l->state == LANE_GONE || !l->ep)
		return REPL_E_LOST;
	if (s->rdma && ++s->replies % SERVER_SPARE_TX == 0)
		server_take_sent(s);
	/* Answers never outnumber what the initiator has in flight, so there is room when they are
	 * seen to have left. */
	ret = fi_inject(l->ep, data, len, 0);
	for (unsigned i = 0; ret == -FI_EAGAIN && i < SERVER_TX_TRIES; i++) {
		server_take_sent(s);
		ret = fi_inject(l->ep, data, len, 0);
	}
	return ret ? REPL_E_LOST : 0;
}

void
fab_server_drop(struct fab_server *s, unsigned lane)
{
	struct server_lane *l = &s->lanes[lane];

	if (l->ep && l->state != LANE_GONE)
		(void)fi_shutdown(l->ep, 0);
}

/*
 * With tcp sleeps on the completion queue alone: net does not clear the
 * descriptor of an event queue that has once had an event. What a lane's event
 * queue has to say after it has joined, the completion queue says too: posted
 * receives end with an error when the connection goes. The port is open for a
 * moment only and is looked at by the clock.
 */
void
fab_server_wait(struct fab_server *s, int wake_fd, uint64_t deadline_ns)
{
	struct pollfd pfd[1 + OFI_WAIT_FDS] = {{.fd = wake_fd, .events = POLLIN}};
	nfds_t n = 1;
	int left_ms;

	if (s->batch_at != s->batch_len ||
	    !ofi_queues_wait(s->fabric, &s->queues, s->eq, false, pfd, &n))
		return;
	/* Getting ready may itself have taken a message in. */
	if (server_fill_batch(s, &s->held) || s->held.type != FAB_NONE)
		return;
	left_ms = clock_left_ms(deadline_ns);
	if (s->pep || s->naps < SERVER_NAPS) {
		s->naps++;
		left_ms = left_ms < SERVER_NAP_MS ? left_ms : SERVER_NAP_MS;
	}
	/* A descriptor of -1 is passed over. */
	(void)poll(pfd, n, left_ms);
	s->polls = SERVER_EQ_EVERY - 1;
}
