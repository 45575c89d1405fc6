/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procself - what the kernel tells of this process, asked by the calling thread: a program's main()
 * may leave by pthread_exit(3), and /proc/self, which is that of main(), names no memory and no
 * descriptors then. So does process_vm_readv(2) of getpid(): gettid() is for that.
 */
#ifndef COMMON_PROCSELF_H
#define COMMON_PROCSELF_H

#define PROCSELF "/proc/thread-self"

#endif
