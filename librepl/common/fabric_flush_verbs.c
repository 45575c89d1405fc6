/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device is asked in the order in which a flush would need it: its capability, a
 * region, a queue pair. Nothing is sent.
 */
#include "fabric_flush.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <infiniband/verbs.h>

#define FLUSH_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_FLUSH_PERSISTENT)

static struct ibv_context *
device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (struct ibv_device **d = list; d && *d && !context; d++) {
		if (strcmp(ibv_get_device_name(*d), name) == 0)
			context = ibv_open_device(*d);
	}
	if (list)
		ibv_free_device_list(list);
	return context;
}

static int
no(struct err *e, const char *device, const char *what)
{
	return err_set(e, REPL_E_REFUSED, "%.32s: %s", device, what);
}

static int
region_try(struct ibv_pd *pd, const char *device, void *mem, size_t len, struct err *e)
{
	struct ibv_mr *mr = mem ? ibv_reg_mr(pd, mem, len, FLUSH_ACCESS) : NULL;

	if (!mem)
		return no(e, device, "no pool is mapped whose region could be tried");
	if (!mr)
		return err_set(e, REPL_E_REFUSED,
			       "%.32s: registering the pool for a persistent flush: %s", device,
			       strerror(errno));
	(void)ibv_dereg_mr(mr);
	return 0;
}

static int
queue_pair_try(struct ibv_context *context, struct ibv_pd *pd, const char *device, struct err *e)
{
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH,
	};
	struct ibv_qp *qp = cq ? ibv_create_qp_ex(context, &attr) : NULL;
	int rc = 0;

	if (!qp)
		rc = err_set(e, REPL_E_REFUSED, "%.32s: a queue pair that flushes: %s", device,
			     strerror(errno));
	else
		(void)ibv_destroy_qp(qp);
	if (cq)
		(void)ibv_destroy_cq(cq);
	return rc;
}

int
flush_device_probe(const char *device, void *mem, size_t len, struct err *e)
{
	struct ibv_context *context = device_open(device);
	struct ibv_device_attr_ex attr = {0};
	struct ibv_pd *pd;
	int rc;

	if (!context)
		return no(e, device, "libibverbs can't open it");
	pd = ibv_alloc_pd(context);
	if (ibv_query_device_ex(context, NULL, &attr) ||
	    !(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT))
		rc = no(e, device, "the device does not flush to persistence");
	else if (!pd)
		rc = no(e, device, "no protection domain");
	else
		rc = region_try(pd, device, mem, len, e);
	if (!rc)
		rc = queue_pair_try(context, pd, device, e);
	if (pd)
		(void)ibv_dealloc_pd(pd);
	(void)ibv_close_device(context);
	return rc;
}
