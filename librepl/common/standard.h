/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard - the descriptors of standard input, output and error, which a program may have closed:
 * a connection would get their numbers, and what the program says go there.
 */
#ifndef COMMON_STANDARD_H
#define COMMON_STANDARD_H

/* Those that are closed are /dev/null from now on. */
void standard_take(void);

#endif
