/* SPDX-License-Identifier: BSD-3-Clause */
/* space - allocate a file's space on media, so that no later write meets a full disk. */
#ifndef REPLD_SPACE_H
#define REPLD_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * Make the empty file fd size bytes of zeros that are really there.
 * REPL_E_NOSPC names the bytes wanted and free, REPL_E_LIMIT the limit on
 * the size of files. The file may then be partly filled.
 */
int space_allocate(int fd, uint64_t size, struct err *e);

/*
 * The same for a file of from bytes, which are kept: zeros that are really there
 * up to size. After an error cut it to what it was.
 */
int space_extend(int fd, uint64_t from, uint64_t size, struct err *e);

/*
 * Of a file of size bytes that others have written: what is a hole in it has its space, too. After
 * an error some holes may be left.
 */
int space_complete(int fd, uint64_t size, struct err *e);

/* The same, and all of them are written, so that to write over them changes no metadata. */
int space_fill(int fd, uint64_t from, uint64_t size, struct err *e);

/* The same of zeros that take space as they are written over. */
int space_extend_sparse(int fd, uint64_t size, struct err *e);

/*
 * Nothing is left of what fd holds from from up to to, and that space is free: zeros, or, where
 * nothing is behind that, the file ends at from. What is behind is kept, where the file system can:
 * it may be so much that to give it back takes long.
 */
int space_cut(int fd, uint64_t from, uint64_t to, struct err *e);

/* The same within the file, whose size stays. False: not on this file system. */
bool space_punch(int fd, uint64_t from, uint64_t to);

/*
 * REPL_E_NOSPC if less than that is free; takes nothing. all: what they come to with those that are
 * taken already, for one who takes a little after the other.
 */
int space_is_free(int fd, uint64_t bytes, uint64_t all, struct err *e);

/*
 * The same of space that is memory, which others take meanwhile: no call fails beyond what there
 * is, so it is asked for again each time that *share was taken, SPACE_SHARE or more. Of other space
 * that is UINT64_MAX.
 */
int space_share(int fd, uint64_t bytes, uint64_t all, uint64_t *share, struct err *e);

#define SPACE_SHARE (2U << 20)

#endif
