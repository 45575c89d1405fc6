/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report - what the functions of librpmem.so.1 leave behind: errno, each thread's
 * text, and lines in the file that RPMEM_LOG_FILE names; without one, or where it can't be
 * opened, on standard error. RPMEM_LOG_LEVEL tells which; 0 is none.
 */
#ifndef LIBREPL_COMPAT_REPORT_H
#define LIBREPL_COMPAT_REPORT_H

enum report_level { REPORT_ERROR = 1, REPORT_WARNING = 2, REPORT_INFO = 3 };

const char *report_text(void);

/* Set errno and the text, log it; returns -1. */
int report_set(int errnum, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for librepl's last error in this thread, of status rc. */
int report_repl(int rc, const char *what);
int report_repl_next(int rc, const char *what, const char *next); /* with that behind it */

/* A line in the log, if it is kept at that level. Does not touch the text or errno. */
void report_log(enum report_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
