/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep - the next steps by which a file that a restore would replace is kept.
 */
#ifndef REPLCTL_KEEP_H
#define REPLCTL_KEEP_H

#include <stdbool.h>

#include "ctl.h"

/*
 * "mv -n FILE FILE.old; ", and so with what lies beside it and speaks of it; "": nothing is there.
 * It is ".old2" and so on where something was kept by that name before.
 */
void keep_moves(const char *file, char text[CTL_NEXT_MAX]);

/* What has to follow a restore without the record that was there, of a primary; or "". */
const char *keep_promote(bool was_primary);

/*
 * The next step where file was left half way as a replica, and may have more than target, which is
 * quoted.
 */
void keep_left_next(struct ctl *c, const char *file, const char *target);

#endif
