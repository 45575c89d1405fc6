/* SPDX-License-Identifier: BSD-3-Clause */
/* watch - a screen that is drawn over and over, without a flicker, until an interrupt. */
#ifndef REPLCTL_WATCH_H
#define REPLCTL_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Standard output is a terminal that can be drawn on. */
bool watch_on_terminal(void);

/* Replace what is on the terminal by text, cut to its size. */
void watch_draw(const char *text);

/* False: nobody takes the output any more, which else is only told of by a write. */
bool watch_taken(void);

/* Wait a second; false when an interrupt has come, or nobody takes the output. */
bool watch_wait(void);

#endif
