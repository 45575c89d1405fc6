/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve - the embedded SSH server (libssh): public keys only, subsystem "repl"
 * only, a process a connection, which runs "repld session" as its child on a
 * socket pair.
 */
#ifndef REPLD_SERVE_H
#define REPLD_SERVE_H

#include "conf.h"
#include "err.h"

/*
 * Listen and serve until SIGTERM or SIGINT. Prints one line "listening on
 * ADDRESS:PORT" to the log when ready. self is the path of this program, for
 * the children.
 */
int serve_run(const struct conf *c, const char *self, struct err *e);

#endif
