/* SPDX-License-Identifier: BSD-3-Clause */
/* proc - what proc(5) tells. Nothing is allocated: a signal handler may ask. */
#ifndef PRELOAD_PROC_H
#define PRELOAD_PROC_H

/* Call take() for each line of a file; of a very long one for what it begins with. -1 and errno. */
int proc_lines(const char *file, void (*take)(void *, const char *), void *arg);

/* The state in a file stat of a process, as R, S, T or Z. 0: nobody knows. */
char proc_state(const char *file);

#endif
