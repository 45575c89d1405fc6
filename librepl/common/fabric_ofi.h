/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_ofi - what the two halves of fabric share: how a provider is asked
 * for, and libfabric's errors as struct err. Included by fabric*.c only.
 */
#ifndef COMMON_FABRIC_OFI_H
#define COMMON_FABRIC_OFI_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "fabric.h"

/* What a posted operation is, found again through its context pointer. */
enum ofi_kind { OFI_RECV, OFI_WRITE, OFI_READ, OFI_SEND };

struct ofi_op {
	struct fi_context2 context; /* first: its address is the context */
	enum ofi_kind kind;
	unsigned lane;
	unsigned slot;
};

/*
 * Load libfabric, once for all threads. Nothing of it may be called before that
 * has succeeded; ofi_info_new() sees to it.
 */
int ofi_load(struct err *e);

/*
 * Info for a provider and numeric address; flags FI_SOURCE to listen, 0 to
 * connect. Asks for what the protocol needs: EP_MSG, RMA by offset with keys
 * of ours, one thread a domain, progress by the caller.
 */
int ofi_info_new(const char *provider, const char *host, uint16_t port, uint64_t flags,
		 struct fi_info **out, struct err *e);

/* Fill e from a libfabric return code (negative). */
int ofi_err(struct err *e, int code, long ret, const char *what);

/* Close a fid through its common member; NULL is allowed. */
void ofi_close(struct fid *fid);

/*
 * The two completion queues of an endpoint: messages complete into rx, RMA into
 * tx, so that polling for a message does not look at both. rx asks for no
 * descriptor and cannot be slept on; tx has one, which wakes for whatever
 * arrives on the sockets.
 */
struct ofi_queues {
	struct fid_cq *rx;
	struct fid_cq *tx; /* the one to sleep on */
};

/*
 * Immediates. A provider either takes a posted receive for each, whose context
 * tells the lane (verbs, mode FI_RX_CQ_DATA; 32 bits), or none: then the
 * completion has no context, but the data has 64 bits (tcp), and the upper half
 * carries the lane's number.
 */
enum ofi_imm { OFI_IMM_NONE, OFI_IMM_RECV, OFI_IMM_WIDE };
#define OFI_IMM_LANE_SHIFT 32

enum ofi_imm ofi_imm_of(const struct fi_info *info);

int ofi_queues_open(struct fid_domain *domain, size_t rx_size, size_t tx_size, struct ofi_queues *q,
		    struct err *e);
void ofi_queues_close(struct ofi_queues *q);
int ofi_queues_bind(struct fid_ep *ep, const struct ofi_queues *q);

/* The descriptor behind a wait object, or -1. */
int ofi_wait_fd(struct fid *fid);

#endif
