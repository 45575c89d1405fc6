/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pooldevice - pools on device-DAX devices (docs/POOL-FORMAT.md, 5). In the
 * pool's place there is a symbolic link to the device, which nobody but the
 * target's administrator makes; the sidecar stands beside the link. There is
 * a pool if there is a sidecar.
 */
#ifndef REPLD_POOLDEVICE_H
#define REPLD_POOLDEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "err.h"
#include "generation.h"

#define POOLDEVICE_SYSFS "/sys"

/* Bytes of the device-DAX device of that number; 0 if it is none. sysfs: "/sys". */
uint64_t pooldevice_size(const char *sysfs, dev_t number);

/* What tells that device from another one in its place; false: nothing does. */
bool pooldevice_identity(const char *sysfs, dev_t number, struct gen_id *id);

/* Whether leaf in directory dir is a link to such a device. It is not opened. */
bool pooldevice_is(int dir, const char *leaf);

/* Whether leaf is a link, and what it leads to is not there. */
bool pooldevice_is_away(int dir, const char *leaf);

/* Whether an open pool's file is one. */
bool pooldevice_is_open(const struct stat *st);

/*
 * Open the device that leaf leads to, for what flags say, with a shared flock,
 * or for its making with an exclusive one, which goes with the descriptor:
 * REPL_E_BUSY if it can't be had. A device that has gone, or, but for its making, may not
 * be opened is REPL_E_IO: udev may be late with it. Call if pooldevice_is().
 */
int pooldevice_open(int dir, const char *leaf, const char *name, int flags, bool making, int *fd,
		    struct stat *st, struct err *e);

/* REPL_E_NOSPC if the device has no size bytes. */
int pooldevice_check(const struct stat *st, const char *name, uint64_t size, struct err *e);

/* Make its first size bytes zeros, durably. */
int pooldevice_zero(int fd, const char *path, uint64_t size, struct err *e);

/* Make durable what has been stored in its first size bytes, whoever did. */
int pooldevice_settle(int fd, const char *path, uint64_t size, struct err *e);

/* pread(2) at the beginning, which such a device can't; false if it can't be mapped. */
bool pooldevice_head(int fd, const char *path, void *buf, size_t size);

#endif
