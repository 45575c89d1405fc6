/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_prepare - for librepl-preload.so alone, whose symbols have the version of those of
 * repl_set.h.
 */
#ifndef LIBREPL_REPL_PREPARE_H
#define LIBREPL_REPL_PREPARE_H

#include "librepl.h"

/*
 * What the first repl_open() of a process has loaded, libfabric and its providers, is loaded when
 * this returns, and later ones need nothing of the dynamic linker. What is in the way of that
 * repl_open() says.
 */
REPL_API void repl_prepare(void);

#endif
