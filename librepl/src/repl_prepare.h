/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_prepare - for librepl-preload.so alone. The symbols have the version of those of repl_set.h,
 * of which a hash of this file is a part, too.
 */
#ifndef LIBREPL_REPL_PREPARE_H
#define LIBREPL_REPL_PREPARE_H

#include <stdbool.h>

#include "librepl.h"

/*
 * What the first repl_open() of a process has loaded, libfabric and its providers, is loaded when
 * this returns, and later ones need nothing of the dynamic linker. What is in the way of that
 * repl_open() says.
 */
REPL_API void repl_prepare(void);

/*
 * repl_open() with REPL_OPEN_CREATE for a program that knows nothing of it, and may store to the
 * pool meanwhile. anew: it has put the file in the place of the one that the record speaks of:
 * zeros are what it holds, and no sign of a loss.
 */
REPL_API int repl_open_run(const struct repl_config *cfg, void *addr, size_t size, bool anew,
			   struct repl **out);

#endif
