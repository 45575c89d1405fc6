/* SPDX-License-Identifier: BSD-3-Clause */
/* repld - the target daemon. */
#include <stdio.h>

int
main(void)
{
	(void)fputs("usage: repld serve|session [--config FILE]\n", stderr);
	return 2;
}
