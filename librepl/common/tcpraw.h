/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcpraw - a bare TCP connection to measure the data path against: ping-pong
 * and stream with the waiting strategy of the lanes and nothing else.
 *
 * The target listens on the address that its data port would use and serves
 * one connection, let in by a token that came over the control channel. The
 * initiator then sends commands of 16 bytes, little-endian:
 *
 *   offset size
 *   0      2    operation: enum tcpraw_op
 *   2      2    microseconds to spin before sleeping, at most TCPRAW_SPIN_US_MAX
 *   4      4    bytes of a message (ECHO) or a chunk, 1 .. TCPRAW_SIZE_MAX
 *   8      8    messages (ECHO) or bytes of the stream, at least 1
 *
 *   ECHO    each message that comes is sent back
 *   SINK    the stream is read and dropped, then its length is sent, 8 bytes
 *   SOURCE  the stream is sent
 *   END     the connection ends; all other fields are zero
 *
 * Starts no thread. Every function returns by its deadline.
 */
#ifndef COMMON_TCPRAW_H
#define COMMON_TCPRAW_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "wire.h"

#define TCPRAW_TOKEN_SIZE   WIRE_TOKEN_SIZE
#define TCPRAW_COMMAND_SIZE 16
#define TCPRAW_MAGIC        0x31575254U /* "TRW1", what the target says to a good token */
#define TCPRAW_SIZE_MAX     (1U << 20)
#define TCPRAW_SPIN_US_MAX  1000U
#define TCPRAW_CONNECT_MS   10000U

enum tcpraw_op { TCPRAW_ECHO = 1, TCPRAW_SINK = 2, TCPRAW_SOURCE = 3, TCPRAW_END = 4 };

/* ---- target ---- */

/*
 * Listen on a numeric address, on the first port of first .. last that is
 * free, 0 = any. The caller closes *fd.
 */
int tcpraw_listen(const char *address, uint16_t first, uint16_t last, int *fd, uint16_t *port,
		  struct err *e);

/*
 * Take the first connection that brings the token; the caller closes *conn.
 * Connections without it, however many, don't keep the rightful one out.
 * shutdown(2) of fd by another thread ends the waiting with an error.
 */
int tcpraw_accept(int fd, const uint8_t token[TCPRAW_TOKEN_SIZE], uint64_t deadline_ns, int *conn,
		  struct err *e);

/*
 * Obey a connection to its END. A wrong command or the deadline ends it with an
 * error, as does shutdown(2) of conn by another thread. conn stays open.
 */
int tcpraw_obey(int conn, uint64_t deadline_ns, struct err *e);

/* Both, one after the other. fd stays open. */
int tcpraw_serve(int fd, const uint8_t token[TCPRAW_TOKEN_SIZE], uint64_t deadline_ns,
		 struct err *e);

/* ---- initiator ---- */

struct tcpraw;

/*
 * The deadline is that of the connection: no later call on it lasts longer. The
 * target is waited for as long, and at most TCPRAW_CONNECT_MS.
 */
int tcpraw_connect(const char *host, uint16_t port, const uint8_t token[TCPRAW_TOKEN_SIZE],
		   uint64_t deadline_ns, struct tcpraw **out, struct err *e);

/* Says END, if it can at once, and closes; NULL is allowed. */
void tcpraw_free(struct tcpraw *c);

/*
 * Spin that long for a message before sleeping, here and at the target; 0
 * sleeps at once. Starts with SPIN_NS.
 */
void tcpraw_set_spin(struct tcpraw *c, unsigned spin_us);

/* A call ends with REPL_E_TIMEOUT, too, when nothing has moved for so long. */
void tcpraw_set_patience(struct tcpraw *c, unsigned patience_ms);

/* count round trips of size bytes; ns_out[i] is the time of the i-th. */
int tcpraw_pingpong(struct tcpraw *c, uint32_t size, uint32_t count, uint32_t *ns_out,
		    struct err *e);

/* Send bytes in chunks; *ns is the time until the target says that it has all. */
int tcpraw_stream_out(struct tcpraw *c, uint64_t bytes, uint32_t chunk, uint64_t *ns,
		      struct err *e);

/* The other way; *ns is the time until the last byte has come. */
int tcpraw_stream_in(struct tcpraw *c, uint64_t bytes, uint32_t chunk, uint64_t *ns, struct err *e);

#endif
