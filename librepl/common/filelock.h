/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filelock - locks of this process by fcntl(2) or lockf(3): the kernel takes those on
 * a file away as soon as the process closes any descriptor of it. On a file of
 * the program's that is the program's affair and not the library's.
 */
#ifndef COMMON_FILELOCK_H
#define COMMON_FILELOCK_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * Whether it has one on the file; false where the kernel does not tell, true where there is no
 * descriptor or memory to ask it.
 */
bool filelock_ours(const struct stat *st);
bool filelock_seen(int fd);

/* Close it, or leave it open where that would take a lock away. -1 is allowed. */
void filelock_close(int fd);

#endif
