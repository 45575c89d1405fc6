/* SPDX-License-Identifier: BSD-3-Clause */
/* tcpraw_io - what both sides of tcpraw share: a socket with a deadline. */
#ifndef COMMON_TCPRAW_IO_H
#define COMMON_TCPRAW_IO_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "spin.h"
#include "tcpraw.h"

struct tcpraw_io {
	int fd;
	unsigned spin_us;
	struct spin spin;
	uint64_t deadline_ns;
	uint64_t patience_ns; /* for a peer that moves nothing; 0: until the deadline */
	uint64_t quiet_ns;    /* since when it has been asleep for it; 0: it moves */
	uint8_t *buf;         /* TCPRAW_SIZE_MAX bytes */
};

struct tcpraw_command {
	uint16_t op; /* enum tcpraw_op */
	uint16_t spin_us;
	uint32_t size;
	uint64_t count;
};

void tcpraw_command_encode(uint8_t *buf, const struct tcpraw_command *c);

/* REPL_E_PROTOCOL if a field is out of its bounds. */
int tcpraw_command_decode(const uint8_t *buf, struct tcpraw_command *c, struct err *e);

/* A numeric address; the caller frees *out by freeaddrinfo(). */
int tcpraw_resolve(const char *address, uint16_t port, struct addrinfo **out, struct err *e);

/* Takes the descriptor on 0 only: makes it non-blocking and TCP_NODELAY, makes the buffer. */
int tcpraw_io_init(struct tcpraw_io *io, int fd, uint64_t deadline_ns, struct err *e);
void tcpraw_io_fini(struct tcpraw_io *io);

/* REPL_E_TIMEOUT if it has passed: for loops in which a peer never pauses. */
int tcpraw_check_deadline(const struct tcpraw_io *io, struct err *e);

/* All of len bytes or an error. */
int tcpraw_recv(struct tcpraw_io *io, void *buf, size_t len, struct err *e);
int tcpraw_send(struct tcpraw_io *io, const void *buf, size_t len, struct err *e);

/* Stream of bytes through io->buf in chunks of size at most. */
int tcpraw_drop(struct tcpraw_io *io, uint64_t bytes, uint32_t size, struct err *e);
int tcpraw_pour(struct tcpraw_io *io, uint64_t bytes, uint32_t size, struct err *e);

#endif
