/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_env - what a program does to itself while its replicas are open; commands of api_shell:
 *
 *   stack BYTES             the default stack of its threads
 *   alarm US                SIGALRM every US microseconds, which interrupts calls; 0: no more
 *   become UID              another user, with its group, for good
 *   root DIRECTORY          chroot(2)
 *   deny ERRNO NAME...      these system calls fail so, in all threads, for good
 */
#ifndef TESTS_API_ENV_H
#define TESTS_API_ENV_H

#include <stdbool.h>

/* False: no command of these. Otherwise *rc is 0, or -1 with errno. */
bool env_run(char *const *word, unsigned count, int *rc);

#endif
