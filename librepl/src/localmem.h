/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * localmem - bytes of the local pool where it is mapped, for who reads them beside the program.
 * Where its file has got shorter there are none, and to touch them would end the program by
 * SIGBUS: they are read by a call.
 */
#ifndef LIBREPL_LOCALMEM_H
#define LIBREPL_LOCALMEM_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct localmem {
	const uint8_t *mem; /* the pool's first byte */
	const char *file; /* that is mapped there; NULL: none is known, all of it counts as there */
};

/*
 * From off on; *got of them: the file ends there. REPL_E_IO, as LOCAL, for others that can't be
 * read: the replica would be taken to have them.
 */
int localmem_read(const struct localmem *m, void *to, size_t len, uint64_t off, size_t *got,
		  struct err *e);

/* How many there are at this moment. */
int localmem_has(const struct localmem *m, uint64_t off, uint64_t len, uint64_t *has,
		 struct err *e);

#endif
