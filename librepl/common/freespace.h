/* SPDX-License-Identifier: BSD-3-Clause */
/* freespace - what a file system has free: where that is memory, what may be taken (memroom.h). */
#ifndef COMMON_FREESPACE_H
#define COMMON_FREESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Of the file system of fd: its space is memory (tmpfs). */
bool freespace_is_memory(int fd);

/*
 * Bytes, UINT64_MAX if nothing bounds them that is known; for so many: what is little takes no more
 * memory than what is kept for processes.
 */
uint64_t freespace_bytes(int fd, uint64_t wanted);

#endif
