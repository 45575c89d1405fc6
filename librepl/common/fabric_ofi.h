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
enum ofi_kind { OFI_SEND, OFI_RECV, OFI_WRITE, OFI_READ };

struct ofi_op {
	struct fi_context2 context; /* first: its address is the context */
	enum ofi_kind kind;
	unsigned lane;
	unsigned slot;
};

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

/* The descriptor behind a wait object, or -1. */
int ofi_wait_fd(struct fid *fid);

#endif
