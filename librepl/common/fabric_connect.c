/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane of fabric on the initiator: its objects, and how it gets connected. */
#include "fabric_lane.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "target.h"

#define LANE_RMA_RDMA 16 /* with an RNIC, whose operations each have a bounce buffer */
#define LANE_SPARE_TX 16 /* done, and not yet seen to be */

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

#define PORT_HELP                                                                                  \
	"let it through the firewalls, or set data-address, data-told or data-ports in the "       \
	"target's repld.conf"

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

/* fi_connect() has not even begun. */
static int
lane_unconnected(const struct fab_lane *l, const struct fi_info *info, const struct fab_params *p,
		 int ret, struct err *e)
{
	const struct sockaddr *to = info->dest_addr;
	char address[TARGET_ADDRESS_MAX];
	int rc;

	if (is_network(-ret))
		return port_unreached(p, fi_strerror(-ret), e);
	(void)target_address(p->host, p->port, address);
	/* Of what an RNIC's ports lack nothing is known. */
	rc = l->rdma || !to ? 0 : err_connect(e, -ret, to->sa_family, address);
	return rc ? rc : ofi_err(e, REPL_E_UNREACHABLE, ret, "fi_connect");
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
	l->socket.fd = -1;
	l->next = l;
	l->depth = p->depth;
	l->msg_size = p->msg_size;
	l->key = p->key;
	l->imm = ofi_imm_of(info);
	l->number = p->lane;
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
		rc = lane_unconnected(l, info, p, rc, e);
		goto out;
	}
	*out = l;
	l = NULL;
out:
	fab_lane_free(l);
	fi_freeinfo(info);
	return rc;
}

static int
lane_take_socket(struct fab_lane *l, struct err *e)
{
	int rc = l->rdma ? 0 : lane_socket_find(&l->socket, l->ep, e);

	if (!rc && !l->rdma)
		lane_socket_keep(&l->socket);
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
			return lane_take_socket(l, e);
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
		for (unsigned i = 0; !rc && left == 0 && i < count; i++)
			lanes[i]->next = lanes[(i + 1) % count];
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
