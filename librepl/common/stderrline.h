/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stderrline - a line to standard error, of which a program that says nothing there itself may not
 * know whether anybody reads it, nor that it is there: who has closed it gets its number for a file
 * of his own, or a connection. Behind a pipe whose reader is gone, or at the limit for the size of
 * files (RLIMIT_FSIZE), the kernel would end the program by a signal: the line is lost, and that is
 * all.
 */
#ifndef COMMON_STDERRLINE_H
#define COMMON_STDERRLINE_H

#include <stddef.h>

/*
 * What standard error is now is the program's own: for who is loaded with the program. Without this
 * call only a terminal, the journal, and what can't be read is written to.
 */
void stderrline_begin(void);

/* With its end of line. Any thread; for a reader that is slow it waits for a tenth of a second. */
void stderrline_put(const char *line, size_t len);

#endif
