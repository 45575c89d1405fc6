/* SPDX-License-Identifier: BSD-3-Clause */
/* interrupt - signals of a program that works for long. */
#ifndef REPLCTL_INTERRUPT_H
#define REPLCTL_INTERRUPT_H

#include <stdbool.h>

/* What is ignored now stays so: by nohup(1), or by a shell of what it has in its background. */
void interrupt_begin(void);

/* From now on the first SIGINT, SIGTERM or SIGHUP is only noted; a second one ends the program. */
void interrupt_catch(void);
bool interrupt_seen(void);

/* For struct remote_hooks: a call to a target ends with REPL_E_LOST when one was noted. */
const _Atomic int *interrupt_flag(void);

/*
 * A mapped file that is cut by somebody else ends the program with a text and
 * status 1. file is borrowed for good.
 */
void interrupt_guard_mapping(const char *file);

#endif
