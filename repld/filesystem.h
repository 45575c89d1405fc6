/* SPDX-License-Identifier: BSD-3-Clause */
/* filesystem - what an open file lies on, as a word; and its sync. */
#ifndef REPLD_FILESYSTEM_H
#define REPLD_FILESYSTEM_H

#include <stdbool.h>
#include <stddef.h>

#define FILESYSTEM_NAME_MAX 32

/* "ext4", "tmpfs", "xfs-dax", "devdax", ...; the magic number for an unknown one. */
void filesystem_name(int fd, char *out, size_t size);

/* Its pages are those of the device itself. */
bool filesystem_is_dax(int fd);

/* Its pages have no device. */
bool filesystem_in_memory(int fd);

/*
 * fsync(2) by an open file description of its own. The kernel tells each of them an error once: it
 * may be for what another thread has written, whose own sync would then report success.
 */
int filesystem_sync(int fd);

#endif
