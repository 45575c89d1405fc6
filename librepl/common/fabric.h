/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric - connected endpoints over libfabric. The only file in front of
 * <rdma/...> is fabric*.c.
 *
 * Two objects: a fab_lane on the initiator, one connected endpoint with its
 * own completion queue; and a fab_server on the target, a listening port with
 * all lanes of a session behind one completion queue. Neither starts a
 * thread. A fab_lane is used by one thread at a time, a fab_server by one.
 */
#ifndef COMMON_FABRIC_H
#define COMMON_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct fab_lane;
struct fab_server;
struct regions;
struct regions_place;

enum fab_event_type {
	FAB_NONE = 0,
	FAB_RECV,    /* a message: data, len, slot */
	FAB_WRITTEN, /* an RMA write was delivered */
	FAB_READ,    /* an RMA read has its bytes */
	FAB_SENT,    /* a message of fab_lane_send_delivered() is in its buffer */
	FAB_IMM,     /* server: an RMA write with an immediate has arrived: imm */
	FAB_REQUEST, /* server: somebody wants to connect; data, len = connect data */
	FAB_JOINED,  /* server: the lane is connected */
	FAB_CLOSED,  /* the connection is gone; text says why */
};

struct fab_event {
	enum fab_event_type type;
	unsigned lane; /* server: index; FAB_IMM: the number of lanes if it can't be told */
	unsigned slot; /* FAB_RECV: to give back by *_repost() */
	const uint8_t *data;
	size_t len;
	uint32_t imm;
	char text[160];
};

struct fab_params {
	const char *provider;      /* "tcp", "verbs" */
	const char *host;          /* numeric address */
	uint16_t port;             /* connect; server: first of the range, 0 = any */
	uint16_t port_last;        /* server */
	unsigned depth;            /* messages in flight */
	size_t msg_size;           /* largest message */
	uint64_t key;              /* RMA key of the first region; the others' follow */
	unsigned lane;             /* connect: the lane's number on the server */
	const _Atomic int *cancel; /* connect: not NULL and not 0: no more waiting for the answer */
	/* Connect: of the pool, borrowed; NULL: all of it is the first. */
	const struct regions *regions;
	/*
	 * server: receive buffers of the caller's, borrowed, recv_stride bytes each,
	 * FAB_SERVER_SLOTS(depth) a lane, lane by lane; NULL: its own. Those of a
	 * lane are used in their order for as long as they are reposted in it.
	 */
	uint8_t *recv_mem;
	size_t recv_stride;
	size_t window; /* server: bytes a lane, for reads without regions; 0: none */
};

/* Receive buffers of a lane: an answer may go before the repost of what it answers. */
#define FAB_SERVER_SLOTS(depth) ((depth) + 1)

/* ... and more where immediates use them up: so many that want no answer are on their way. */
#define FAB_IMM_LOOSE 32U

/* ---- initiator ---- */

/* Begin to connect; hello is the connect data. The lane is good for nothing but what follows. */
int fab_lane_connect(const struct fab_params *p, const uint8_t *hello, size_t hello_len,
		     struct fab_lane **out, struct err *e);

/* Wait for the target's answers to all, of params like those of fab_lane_connect(). */
int fab_lanes_connected(struct fab_lane **lanes, unsigned count, const struct fab_params *p,
			uint64_t deadline_ns, struct err *e);
void fab_lane_free(struct fab_lane *l);

/*
 * The bytes that the lanes which were connected with this one have got through so far, both ways
 * and by TCP's count; of no meaning but that more of them have moved when it is another number.
 * All of them must be there still. With an RNIC always 0.
 */
uint64_t fab_lane_moved(const struct fab_lane *l);

/*
 * A free buffer of msg_size bytes to build a message in; NULL if depth messages
 * are unanswered. Each received message answers the oldest one sent.
 */
uint8_t *fab_lane_buf(struct fab_lane *l);

/* Send the first len bytes of the buffer from fab_lane_buf(). */
int fab_lane_send(struct fab_lane *l, size_t len, struct err *e);

/*
 * The same, and FAB_SENT comes when the message lies in the target's receive
 * buffer: it takes one of fab_lane_rma_room() until then.
 */
int fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e);

/*
 * Post an RMA write or read of a range that lies in one region, which the target
 * has registered; FAB_WRITTEN or FAB_READ comes for each. Up to
 * fab_lane_rma_room() may be outstanding. FAB_WRITTEN says that the bytes are in
 * the target's memory; of a covered write, behind which stands something else
 * that proves it, no more than that src is free again.
 */
int fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e);
int fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			   struct err *e);
/*
 * The same, and FAB_WRITTEN says that the fabric has made the bytes durable, as far as the target's
 * end keeps what fab_lane_commits() says is promised: the profile knows.
 */
int fab_lane_write_committed(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			     struct err *e);
bool fab_lane_commits(const struct fab_lane *l);
int fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e);
unsigned fab_lane_rma_room(const struct fab_lane *l);

/* The most bytes of one operation. By bounce buffers go all with an RNIC, with tcp what fits. */
size_t fab_lane_rma_max(const struct fab_lane *l);
#define FAB_RMA_MAX     (1U << 20)
#define FAB_BOUNCE_SIZE 65536U

/* Read from the window that the target has told (FAB_READ). */
int fab_lane_read_window(struct fab_lane *l, void *dst, size_t len, const struct regions_place *at,
			 struct err *e);

/*
 * mem is where the program's pool begins, all of which is mapped there: with an RNIC large
 * writes of it (src is mem + off) may be taken from there, where that is safe, until
 * the lane is freed or cut. Their bytes are what is there when the RNIC sends them. Those
 * are counted in *uncopied, borrowed. No operation is outstanding.
 */
void fab_lane_source(struct fab_lane *l, const void *mem, _Atomic uint64_t *uncopied);

/*
 * Nothing that is stored from now on is sent, neither of what was posted nor of what is posted
 * later: the lane is shut down, which its user sees as FAB_CLOSED. Any thread, beside the one
 * that uses the lane, whatever that is amid; not beside fab_lane_free().
 */
void fab_lane_cut(struct fab_lane *l);

/*
 * In a child of the lane's process, which the connection goes on without: nothing is sent or taken
 * here from now on, whatever this thread is amid.
 */
void fab_lane_abandon(struct fab_lane *l);

struct fab_source_info {
	bool told;     /* with an RNIC; else none of this matters */
	bool pool;     /* large writes are, or will be, taken from the pool */
	char why[160]; /* not pool: why they are copied */
};

/* Any thread. */
void fab_lane_source_info(const struct fab_lane *l, struct fab_source_info *out);

/*
 * A covered write that shows the target 32 bits (FAB_IMM) when its bytes are in
 * place, in order with the messages of the lane. One that the target answers
 * takes a turn among the messages: it needs fab_lane_turn() and must not come
 * between fab_lane_buf() and fab_lane_send().
 */
struct fab_imm {
	uint32_t bits;
	bool answered;
};
int fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
		       const struct fab_imm *imm, struct err *e);

/* Fewer than depth messages are unanswered. */
bool fab_lane_turn(const struct fab_lane *l);

/* The next event without waiting: FAB_NONE if none. Never fails: loss is FAB_CLOSED. */
void fab_lane_poll(struct fab_lane *l, struct fab_event *ev);

/* More events are at hand: the next poll costs no system call. */
bool fab_lane_more(const struct fab_lane *l);

/* Give back the receive buffer of a FAB_RECV. */
void fab_lane_repost(struct fab_lane *l, unsigned slot);

/*
 * Sleep until one of the lanes, at most REPL_LANES_MAX, may have an event, the deadline passes or
 * wake_fd (-1: none) is readable. Does not spin: the caller does, by polling.
 */
void fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd, uint64_t deadline_ns);

/* ---- a flush of the fabric's own ---- */

enum fab_flush_state {
	FAB_FLUSH_NO,      /* and text is the first reason */
	FAB_FLUSH_CLAIMED, /* the provider says so, and nothing shows whether it is true */
	FAB_FLUSH_YES,
};

struct fab_flush {
	enum fab_flush_state state;
	char text[160]; /* what was asked, and what it said */
};

/*
 * Whether what is written to that address may be made durable by the fabric itself
 * (fab_lane_write_committed()). mem, a page of the pool, is registered for a moment where an RNIC
 * would have it; NULL: none is at hand.
 */
void fab_flush_probe(const char *provider, const char *host, void *mem, size_t len,
		     struct fab_flush *out);

/* ---- target ---- */

/* Listen. Up to lanes connections are accepted. */
int fab_server_new(const struct fab_params *p, unsigned lanes, struct fab_server **out,
		   struct err *e);

/*
 * Register memory for RMA under p->key + region, addressed from 0; write says
 * whether RMA writes are allowed. A region that is registered stays so. region
 * is below REGIONS_MAX.
 */
int fab_server_register(struct fab_server *s, unsigned region, void *mem, size_t len, bool write,
			struct err *e);
void fab_server_free(struct fab_server *s);

uint16_t fab_server_port(const struct fab_server *s);

/* The provider can say which lane an immediate came from: they may be used. */
bool fab_server_immediates(const struct fab_server *s);

/* Stop listening; pending requests are dropped, lanes go on. */
void fab_server_close_port(struct fab_server *s);

/* Answer the FAB_REQUEST given out last; data of it is invalid after. */
int fab_server_accept(struct fab_server *s, unsigned lane, struct err *e);
void fab_server_reject(struct fab_server *s);

void fab_server_poll(struct fab_server *s, struct fab_event *ev);
bool fab_server_more(const struct fab_server *s);
void fab_server_repost(struct fab_server *s, unsigned lane, unsigned slot);

/* Send a small message (at most FAB_REPLY_MAX bytes), copied before return. */
#define FAB_REPLY_MAX 64
int fab_server_reply(struct fab_server *s, unsigned lane, const void *data, size_t len);

/* Shut one lane down; FAB_CLOSED follows if it was connected. */
void fab_server_drop(struct fab_server *s, unsigned lane);

void fab_server_wait(struct fab_server *s, int wake_fd, uint64_t deadline_ns);

/*
 * Where a region that is registered, and the window of a lane, lie for the other
 * side. False with a provider whose keys are ours: there regions are addressed
 * from 0.
 */
bool fab_server_place(const struct fab_server *s, unsigned region, struct regions_place *out);
/* So many bytes more may be registered: REPL_E_LIMIT says what is in the way. */
int fab_server_can_pin(const struct fab_server *s, uint64_t len, struct err *e);

bool fab_server_window(struct fab_server *s, unsigned lane, uint8_t **mem,
		       struct regions_place *out);

/*
 * libfabric's first look for providers takes a few hundred milliseconds. Begin
 * it in a thread of its own, while SSH connects; NULL (nothing begun) is no
 * error. Freeing waits for it.
 */
struct fab_warm;
struct fab_warm *fab_warm_new(void);
void fab_warm_free(struct fab_warm *w);

/*
 * Nothing that libfabric brings along takes the process's signals while it is loaded, not for a
 * moment. That is by an environment variable: before there is a thread, and for the programs that
 * are started, too.
 */
void fab_leave_signals(void);

/* Whether libfabric has the provider at a numeric address of this machine; *e says why not. */
bool fab_provider_at(const char *provider, const char *host, struct err *e);

/* Whether there is an RDMA device at all; costs a look into /sys. */
bool fab_rdma_present(void);

/*
 * Whether memory can be registered for RMA with the provider that listens at host:
 * an error says why not. REPL_E_REFUSED if the kernel pins no such mapping: one that
 * is shared and for reading alone, which says nothing of one for writing. Costs
 * opening the device.
 */
int fab_mem_probe(const char *provider, const char *host, void *mem, size_t len, bool write,
		  struct err *e);

#endif
