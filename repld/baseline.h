/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * baseline - the bare TCP connection (tcpraw.h) that an initiator measures its
 * lanes against: one thread that serves one connection for a bounded time.
 * It has nothing to do with pools.
 */
#ifndef REPLD_BASELINE_H
#define REPLD_BASELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

#define BASELINE_SECONDS_MAX 120

struct baseline;

/* Opens a port of first .. last (0 = any), makes the token, starts the thread. */
int baseline_new(const char *address, uint16_t first, uint16_t last, unsigned seconds,
		 struct baseline **out, struct err *e);

/* Ends the connection and the thread; NULL is allowed. */
void baseline_free(struct baseline *b);

/* It has come to its end by itself. */
bool baseline_ended(const struct baseline *b);

uint16_t baseline_port(const struct baseline *b);
const uint8_t *baseline_token(const struct baseline *b); /* TCPRAW_TOKEN_SIZE */

#endif
