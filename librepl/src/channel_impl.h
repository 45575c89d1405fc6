/* SPDX-License-Identifier: BSD-3-Clause */
/* What channel_open.c, which bounds an open, and channel.c, which does it, have in common. */
#ifndef LIBREPL_CHANNEL_IMPL_H
#define LIBREPL_CHANNEL_IMPL_H

#include "channel.h"

/* As channel_open(), but libssh may wait inside for as long as it likes. */
int channel_open_here(const struct channel_options *o, uint64_t deadline_ns, struct channel **out,
		      struct err *e);

/* The opposite of channel_detach(). */
void channel_attach(struct channel *c, const _Atomic int *cancel, struct channel_fds *fds);

#endif
