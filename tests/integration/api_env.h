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

/*
 * main(), which calls it, ends by pthread_exit(3), and then go_on(arg) is called by another thread:
 * of the process's own entry in /proc, which is that of main(), nothing but the state is left by
 * then. Where it returns, -1 with errno, there is no thread.
 */
int env_main_leaves(void (*go_on)(void *arg), void *arg);

#endif
