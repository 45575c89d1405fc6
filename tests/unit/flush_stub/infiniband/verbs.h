/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As much of the interface of rdma-core 45 and later as fabric_flush_verbs.c calls, for a build
 * where libibverbs is older: test_flush_verbs.c plays the device behind it.
 */
#ifndef FLUSH_STUB_VERBS_H
#define FLUSH_STUB_VERBS_H

#include <stddef.h>
#include <stdint.h>

#define IBV_ACCESS_REMOTE_READ            (1 << 2)
#define IBV_ACCESS_FLUSH_PERSISTENT       (1 << 9)
#define IB_UVERBS_DEVICE_FLUSH_PERSISTENT (1ULL << 39)
#define IBV_QP_INIT_ATTR_PD               (1 << 0)
#define IBV_QP_INIT_ATTR_SEND_OPS_FLAGS   (1 << 6)
#define IBV_QP_EX_WITH_RDMA_WRITE         (1 << 0)
#define IBV_QP_EX_WITH_FLUSH              (1 << 11)
#define IBV_QPT_RC                        2

struct ibv_device;
struct ibv_context;
struct ibv_pd;
struct ibv_mr;
struct ibv_cq;
struct ibv_qp;
struct ibv_comp_channel;
struct ibv_query_device_ex_input;

struct ibv_device_attr_ex {
	uint64_t device_cap_flags_ex;
};

struct ibv_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
};

struct ibv_qp_init_attr_ex {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp_cap cap;
	int qp_type;
	uint32_t comp_mask;
	struct ibv_pd *pd;
	uint64_t send_ops_flags;
};

struct ibv_device **ibv_get_device_list(int *count);
void ibv_free_device_list(struct ibv_device **list);
const char *ibv_get_device_name(struct ibv_device *device);
struct ibv_context *ibv_open_device(struct ibv_device *device);
int ibv_close_device(struct ibv_context *context);
int ibv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);
int ibv_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access);
int ibv_dereg_mr(struct ibv_mr *mr);
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector);
int ibv_destroy_cq(struct ibv_cq *cq);
struct ibv_qp *ibv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int ibv_destroy_qp(struct ibv_qp *qp);

#endif
