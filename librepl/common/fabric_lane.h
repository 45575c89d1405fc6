/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_lane - the initiator's half of fabric, one connected endpoint: connecting it
 * (fabric_connect.c), what moves over it (fabric_lane.c) and its socket (fabric_sockets.c).
 * Included by these only.
 *
 * Each lane has a fabric, domain and queues of its own: the tcp provider's
 * progress is a domain's, so lanes of different threads would otherwise meet
 * at one lock and do each other's work.
 */
#ifndef COMMON_FABRIC_LANE_H
#define COMMON_FABRIC_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "fabric_ofi.h"
#include "fabric_source.h"
#include "regions.h"
#include "wire.h"

#define LANE_RMA_MAX  32
#define LANE_BATCH    8
#define LANE_HELD_MAX (WIRE_DEPTH_MAX + LANE_RMA_MAX) /* messages and RMA that may be under way */

/* A message or RMA as it is given to the provider. */
struct lane_post {
	enum ofi_kind kind;
	struct ofi_op *op; /* NULL: no completion is asked for */
	void *desc;        /* of the memory of iov */
	struct iovec iov;
	struct fi_rma_iov rma;
	uint64_t data, flags;
};

/* What the system sends by, where that is no RNIC. */
struct lane_socket {
	int fd; /* the provider's; -1: none */
	struct sockaddr_storage own, peer;
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
	struct lane_socket socket;
	struct fab_lane *next; /* of the session's, in a ring; they go together */
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

/* Post the receive of a slot; libfabric's code. */
int lane_post_recv(struct fab_lane *l, unsigned slot);

/* Of an endpoint that is connected, without an RNIC. */
int lane_socket_find(struct lane_socket *s, struct fid_ep *ep, struct err *e);

/*
 * The system takes no byte more to send. One of the program's that has the number by now, since
 * the program has closed what is not its own, is left alone.
 */
void lane_socket_cut(const struct lane_socket *s);

/* Its number becomes that of a socket that is connected to nobody: the connection is another's. */
void lane_socket_abandon(const struct lane_socket *s);

/* It stays connected, also where what is idle is forgotten on the way. */
void lane_socket_keep(const struct lane_socket *s);

/* Bytes that it has got through, both ways. */
uint64_t lane_socket_moved(const struct lane_socket *s);

#endif
