/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What PMDK's examples expect of a header that their packages leave out. Debian has the
 * examples' sources below /usr/share/doc; run_kills.sh builds them from there.
 */
#ifndef EX_COMMON_H
#define EX_COMMON_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#define CREATE_MODE_RW (S_IWUSR | S_IRUSR)

/* 0 if it does. */
static inline int
file_exists(const char *path)
{
	return access(path, F_OK);
}

static inline unsigned
find_last_set_64(uint64_t v)
{
	return 63U - (unsigned)__builtin_clzll(v);
}

#endif
