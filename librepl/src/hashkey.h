/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hashkey - what both sides hash by in one comparison: drawn for it, known to nobody who chose
 * what is compared. A target of an earlier version takes none.
 */
#ifndef LIBREPL_HASHKEY_H
#define LIBREPL_HASHKEY_H

#include "checksum.h"
#include "remote.h"

int hashkey_draw(struct hash_key *k, const struct remote *r, struct err *e);

/* Member "key" of a request, if there is one. */
void hashkey_add(const struct hash_key *k, struct json_object *params);

#endif
