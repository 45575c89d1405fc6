/* SPDX-License-Identifier: BSD-3-Clause */
/* version - the library's own version. */
#include "librepl.h"

const char *
repl_version(void)
{
	return REPL_VERSION_TEXT;
}
