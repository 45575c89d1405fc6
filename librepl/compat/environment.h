/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * environment - what the old library's variables, and REPL_CONFIG, make of the
 * configuration. In a program that runs set-user-ID all of them are as if unset.
 */
#ifndef LIBREPL_COMPAT_ENVIRONMENT_H
#define LIBREPL_COMPAT_ENVIRONMENT_H

#include <stddef.h>

#include "librepl.h"

#define ENVIRONMENT_WARNING_MAX 256

/*
 * The configuration for one handle on "TARGET/SET". lanes: wished; the least of that, of what
 * librepl has and of RPMEM_MAX_NLANES is taken. After an error, which is reported,
 * NULL.
 */
struct repl_config *environment_config(unsigned lanes, const char *target);

/* "" or " (not used here: RPMEM_SSH, ...)", for the end of a text. */
void environment_warning(char out[ENVIRONMENT_WARNING_MAX]);

#endif
