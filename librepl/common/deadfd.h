/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadfd - a descriptor that the child of a fork gives up, while a call that it returns to may have
 * the number still. Closed, that would be the next file's that the child opens.
 */
#ifndef COMMON_DEADFD_H
#define COMMON_DEADFD_H

/*
 * The number becomes a socket's that is connected to nobody, any use of which fails at once; where
 * there is none to be had it is closed.
 */
void deadfd_put(int fd);

#endif
