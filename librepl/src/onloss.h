/* SPDX-License-Identifier: BSD-3-Clause */
/* onloss - what the loss of a replica is to the program, by ack and on-loss. */
#ifndef LIBREPL_ONLOSS_H
#define LIBREPL_ONLOSS_H

#include "repl_impl.h"

/* With on-loss = fail: REPL_E_LOST where one is lost that a drain needs. */
int onloss_check(struct repl *r, struct err *e);

/* With on-loss = fail or block: REPL_E_REFUSED where drains need what these replicas are for. */
int onloss_spare(const struct repl *r, uint32_t replicas, struct err *e);

#endif
