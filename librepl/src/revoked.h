/* SPDX-License-Identifier: BSD-3-Clause */
/* revoked - host keys that known_hosts names as revoked: libssh passes over such lines. */
#ifndef LIBREPL_REVOKED_H
#define LIBREPL_REVOKED_H

#include <stdbool.h>

/*
 * *found: whether a line "@revoked HOSTS TYPE KEY" of that file has the key, given in base64; for
 * whichever hosts, as a key that somebody else may have is nobody's. A file that is not there, or
 * not for us to read, has none, as with ssh. 0, or an errno: it can't be told.
 */
int revoked_find(const char *path, const char *base64, bool *found);

#endif
