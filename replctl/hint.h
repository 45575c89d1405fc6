/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hint - a next step as it can be typed: with the options that say how targets are reached, where
 * this call was given them. Pure.
 */
#ifndef REPLCTL_HINT_H
#define REPLCTL_HINT_H

#include <stddef.h>

#include "ctl.h"

/*
 * Put them into each command of replctl's in text that reaches a target; there are size bytes. What
 * would not fit whole is left as it is.
 */
void hint_complete(char *text, size_t size, const struct ctl_options *o);

#endif
