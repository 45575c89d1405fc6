/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * authkeys - the public keys that the embedded SSH server lets in.
 *
 * The file has lines "type base64 [comment]", empty lines and comments (#).
 * The option "restrict" is allowed in front, as the server grants nothing that
 * it would take away; a line with any other option is skipped, since to ignore
 * an option would widen what the key may do.
 */
#ifndef REPLD_AUTHKEYS_H
#define REPLD_AUTHKEYS_H

#include <stdbool.h>

#include "err.h"

struct authkeys;

/*
 * Read the file. It must belong to root or the effective user and be writable
 * by nobody else (REPL_E_REFUSED names the mode and what to do). tell: warn of each line that is
 * skipped.
 */
int authkeys_read(const char *path, bool tell, struct authkeys **out, struct err *e);
void authkeys_free(struct authkeys *k);

/* type as in the file, e.g. "ssh-ed25519". */
bool authkeys_contain(const struct authkeys *k, const char *type, const char *base64);

/* Number of keys. */
unsigned authkeys_count(const struct authkeys *k);

#endif
