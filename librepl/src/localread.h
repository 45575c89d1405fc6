/* SPDX-License-Identifier: BSD-3-Clause */
/* localread - bytes of the local pool's file, for who does not read them where it is mapped. */
#ifndef LIBREPL_LOCALREAD_H
#define LIBREPL_LOCALREAD_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* All of them, or an error: REPL_E_IO for one that became shorter, as LOCAL. */
int localread(int fd, void *to, size_t len, uint64_t off, struct err *e);

#endif
