/* SPDX-License-Identifier: BSD-3-Clause */
/* replica_open - what a refusal says of a range that is no file: of device DAX, or where it can't
 * be told what is mapped. Only its record is in a directory. */
#ifndef LIBREPL_REPLICA_OPEN_H
#define LIBREPL_REPLICA_OPEN_H

#include <stdbool.h>

#include "repl_impl.h"

#define REPLICA_TAKE_MAX 8192U

bool replica_elsewhere(const struct repl *r);

/* How a replica's data are taken: where what is mapped is elsewhere, by the name of its record. */
void replica_take_by(const struct repl *r, const char *replica, char out[REPLICA_TAKE_MAX]);

/* Behind e's text: it is no file that could be resolved. */
int replica_differs_elsewhere(const struct repl *r, const struct remote *remote, struct err *e);

#endif
