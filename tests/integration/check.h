/* SPDX-License-Identifier: BSD-3-Clause */
/* check - how a program of a test ends when it can't go on. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with what and errno, if not ok. */
static inline void
check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

#endif
