/* SPDX-License-Identifier: BSD-3-Clause */
/* poolname - the name of a pool's file, beside which its record and its socket are. */
#ifndef LIBREPL_POOLNAME_H
#define LIBREPL_POOLNAME_H

#include <stdbool.h>

#include "err.h"

/*
 * A link to a regular file becomes the name of that, as replctl and who maps the file know it; the
 * record and the lock of a pool are one then. Other names stay: a device may be called by a link.
 * *file, which may be NULL, is replaced. REPL_E_REFUSED: there is a record beside the link, as an
 * earlier version has kept it.
 */
int poolname_resolve(char **file, struct err *e);

/* There is a record beside it, of whatever. */
bool poolname_has_record(const char *file);

/* A link to a device: nothing is restored to that name while it is there. */
bool poolname_is_device(const char *path);

#endif
