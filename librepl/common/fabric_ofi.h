/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_ofi - what the two halves of fabric share: how a provider is asked
 * for, and libfabric's errors as struct err. Included by fabric*.c only.
 */
#ifndef COMMON_FABRIC_OFI_H
#define COMMON_FABRIC_OFI_H

#include <poll.h>

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
 * connect. Asks for what the protocol needs: EP_MSG, one thread a domain, and
 * of tcp RMA by offset with keys of ours and progress by the caller.
 */
int ofi_info_new(const char *provider, const char *host, uint16_t port, uint64_t flags,
		 struct fi_info **out, struct err *e);

/* Fill e from a libfabric return code (negative). */
int ofi_err(struct err *e, int code, long ret, const char *what);

/* Close a fid through its common member; NULL is allowed. */
void ofi_close(struct fid *fid);

/*
 * An RNIC moves the bytes (verbs): memory on both sides is registered, keys are
 * the provider's and remote addresses virtual. Else (tcp) neither.
 */
bool ofi_is_rdma(const struct fi_info *info);

/*
 * Whether this process may open what RDMA goes by, besides the device itself: the connection
 * manager's node and that of a device. The text says which it may not.
 */
int ofi_nodes_try(struct err *e);

/*
 * Register with an RNIC. REPL_E_LIMIT with a text that has the numbers where the
 * limit of locked memory is in the way.
 */
int ofi_mem_register(struct fid_domain *domain, void *mem, size_t len, uint64_t access,
		     struct fid_mr **out, struct err *e);

/*
 * Whether rights are not those that were asked for: libfabric's cache of registrations asks the
 * RNIC for all, to read and to write from afar among them, whoever asks it for which. Looked at
 * with len bytes at mem, which are registered as a part of as.
 */
bool ofi_mem_cached(struct fid_domain *domain, void *mem, size_t len, struct fid_mr *as);

/* REPL_E_LIMIT if the limit of locked memory does not leave room for len bytes more. */
int ofi_mem_limit(uint64_t len, struct err *e);

/* The same of half of the limit: the rest is for what can't be done without. */
int ofi_mem_spare(uint64_t len, struct err *e);

/*
 * What is registered stays in the children of this process: libibverbs finds the kernel to
 * copy where needed (5.12 and later), and does not hide pages from them instead.
 */
bool ofi_fork_safe(void);

/*
 * Pages of their own, zeroed, that take no memory until they are used; NULL if
 * there are none. Freed only after the domain that they were registered with:
 * libfabric may keep a registration until then.
 */
uint8_t *ofi_mem_new(size_t len);
void ofi_mem_free(uint8_t *mem, size_t len);

/*
 * The completion queues of an endpoint. With an RNIC messages complete into rx, RMA into tx, and
 * each is slept on by its own descriptor. With tcp a look at any queue costs a look at all
 * sockets, so that there is one for both, rx and tx being the same, and that is slept on, too. But
 * net leaves the descriptor of a queue readable from the first completion on, so that nothing
 * completes into the one that is slept on, wake: it wakes for whatever arrives on the sockets. That
 * of another provider would wake for nothing.
 */
struct ofi_queues {
	struct fid_cq *rx;
	struct fid_cq *tx;
	struct fid_cq *wake; /* with an RNIC: NULL */
	bool rdma;
};

#define OFI_WAIT_FDS 3 /* that ofi_queues_wait() fills in at most */

/*
 * Immediates. A provider either takes a posted receive for each, whose context
 * tells the lane (verbs, mode FI_RX_CQ_DATA; 32 bits), or none: then the
 * completion has no context, but the data has 64 bits (tcp), and the upper half
 * carries the lane's number.
 */
enum ofi_imm { OFI_IMM_NONE, OFI_IMM_RECV, OFI_IMM_WIDE };
#define OFI_IMM_LANE_SHIFT 32

enum ofi_imm ofi_imm_of(const struct fi_info *info);

/* Completions of messages and of RMA that there is room for. */
int ofi_queues_open(const struct fi_info *info, struct fid_domain *domain, size_t rx_size,
		    size_t tx_size, struct ofi_queues *q, struct err *e);
void ofi_queues_close(struct ofi_queues *q);
int ofi_queues_bind(struct fid_ep *ep, const struct ofi_queues *q);

/*
 * Get ready to sleep: false if something may be there already, else *n
 * descriptors are added to pfd. With an RNIC that of the event queue is among
 * them: a peer that goes away is told nowhere else; and that of tx only if it is
 * asked for, since everything that is sent would wake it.
 */
bool ofi_queues_wait(struct fid_fabric *fabric, const struct ofi_queues *q, struct fid_eq *eq,
		     bool tx, struct pollfd *pfd, nfds_t *n);

/* What a completion that failed means, for people. */
const char *ofi_fault_text(struct fid_cq *cq, const struct fi_cq_err_entry *fault);

/* The descriptor behind a wait object, or -1. */
int ofi_wait_fd(struct fid *fid);

#endif
