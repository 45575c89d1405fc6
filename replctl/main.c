/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl - the admin tool. */
#include <stdio.h>

int
main(void)
{
	(void)fputs("usage: replctl COMMAND ...\n", stderr);
	return 2;
}
