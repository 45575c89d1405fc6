/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log - the daemon's log: one line a message, to stderr, a file or syslog.
 * Process-wide, set up once before threads start. Bytes from a peer are
 * escaped, so that one message is always one line.
 */
#ifndef REPLD_LOG_H
#define REPLD_LOG_H

#include "conf.h"
#include "err.h"

int log_open(const struct conf *c, struct err *e);
void log_close(void);

/* Text that goes in front of every line, e.g. "session 123 ops@host". */
void log_set_context(const char *text);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Async-signal-safe: write text and a newline to the log's descriptor. */
void log_signal(const char *text);

#endif
