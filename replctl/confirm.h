/* SPDX-License-Identifier: BSD-3-Clause */
/* confirm - no destruction without a yes. */
#ifndef REPLCTL_CONFIRM_H
#define REPLCTL_CONFIRM_H

#include "ctl.h"

/*
 * Ask the question on the terminal and take only "yes". With --force nothing
 * is asked. REPL_E_REFUSED with "yes" not said, or where there is no terminal
 * to ask on; again is then the next step: the command with --force.
 */
int confirm(struct ctl *c, const char *question, const char *again);

#endif
