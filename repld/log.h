/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log - the daemon's log: one line a message, to stderr, a file or syslog.
 *
 *   2026-03-01T12:00:00.123Z repld[4711] warning: session 7 ops@a: text
 *
 * Process-wide; opened before threads start, to stderr at level info until
 * then. Each line is written in one go, also by many threads and processes into
 * one file. Whatever is not printable ASCII, such as bytes from a peer, is
 * escaped (\n, \t, \\, \xHH), so that one message is always one line and no
 * terminal obeys it. A line that cannot be written is lost.
 */
#ifndef REPLD_LOG_H
#define REPLD_LOG_H

#include "conf.h"
#include "err.h"

#define LOG_LINE_MAX 2048 /* bytes with the newline; longer ones end in "..." */

/*
 * A file is made with mode 0600 and appended to; anything but a regular one is refused. Where its
 * disk, or the machine, can't have it opened now, stderr is told so and takes its place: pools may
 * be well on another disk.
 */
int log_open(const struct conf *c, struct err *e);

/*
 * The same in a session, where a file that is gone, and not its user's to make, has been removed:
 * pools are well without it.
 */
int log_open_session(const struct conf *c, struct err *e);

/*
 * Of a file that could not be opened by errnum: what this machine or its disk lacks, maybe for a
 * while only, is not the configuration's fault.
 */
int log_status(int errnum);

/* Back to stderr. */
void log_close(void);

/* Text that goes in front of every line, e.g. "session 123 ops@host"; copied, NULL for none. */
void log_set_context(const char *text);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
