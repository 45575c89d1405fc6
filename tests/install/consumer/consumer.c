/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest program that needs the header and the library. */
#include <librepl.h>
#include <stdio.h>

int
main(void)
{
	return puts(repl_version()) < 0;
}
