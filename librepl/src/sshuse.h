/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sshuse - whether libssh may be called. It works with OpenSSL, which by default cleans itself up
 * in a handler of atexit(3) that is registered with its first use: a program that closes its pools
 * in an earlier handler, or a destructor, or leaves them open while it ends, would use what is
 * gone. So OpenSSL is told to register none; and where the program has used it before we were
 * loaded, or cleans it up itself, nobody calls libssh any more once that has begun.
 *
 * When we are loaded libssh is also told how to take a ProxyJump of ssh's config.
 */
#ifndef LIBREPL_SSHUSE_H
#define LIBREPL_SSHUSE_H

#include <stdbool.h>

/* Around calls into libssh; false: not any more, and no sshuse_leave(). */
bool sshuse_enter(void);
void sshuse_leave(void);

/* Whoever is inside is to come to an end. */
bool sshuse_ended(void);

/*
 * Around the reading of ssh's config, by this thread. What libssh runs of it, a "Match exec", finds
 * its signals as one that a shell starts, and prints nothing in our name. True: something was run.
 */
void sshuse_config_begin(void);
bool sshuse_config_end(void);

#endif
