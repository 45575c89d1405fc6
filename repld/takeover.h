/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * takeover - end the session that has a pool open for writing.
 *
 * A promotion that does not wait for the old primary fences it this way: the process that
 * could still apply its updates does not exist any more when this returns. Whatever was
 * acknowledged is in the pool, or in its ring for whoever opens it next.
 */
#ifndef REPLD_TAKEOVER_H
#define REPLD_TAKEOVER_H

#include "pool.h"

/*
 * SIGTERM, 2 s later SIGKILL, to the one process that is a session of the registry, runs
 * under this uid and holds the writer lock of the pool's sidecar; to nothing else. Returns when
 * it is gone. REPL_E_NOT_FOUND if no session has the lock, REPL_E_TIMEOUT if it can't die.
 */
int takeover_end_writer(struct pool_store *s, const char *name, struct err *e);

#endif
