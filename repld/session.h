/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session - one initiator's session on two descriptors; knows nothing of SSH.
 */
#ifndef REPLD_SESSION_H
#define REPLD_SESSION_H

#include "conf.h"
#include "err.h"

/*
 * Serve requests from in, answers to out, until end of file, bye, a broken
 * frame or silence. Returns REPL_OK when the peer ended it in order. A pool
 * that is then open for writing is closed as not clean. A process that blocks
 * SIGTERM, SIGINT and SIGHUP in all its threads ends the session by them, too.
 */
int session_run(const struct conf *c, int in, int out, struct err *e);

#endif
