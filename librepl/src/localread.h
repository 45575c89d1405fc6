/* SPDX-License-Identifier: BSD-3-Clause */
/* localread - bytes of the local pool's file, for who does not read them where it is mapped. */
#ifndef LIBREPL_LOCALREAD_H
#define LIBREPL_LOCALREAD_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* From off on; *got of them: the file ends there. */
int localread(int fd, void *to, size_t len, uint64_t off, size_t *got, struct err *e);

/* For who needs all of them: REPL_E_IO, as LOCAL. */
int localread_short(struct err *e);

#endif
