/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forks - whether a handle is this process's own. In the child of a fork(2) what it has of its
 * parent's is of no use: threads and turns are the parent's, and connections are used by both.
 */
#ifndef LIBREPL_FORKS_H
#define LIBREPL_FORKS_H

/* Greater in the child of a fork than it was in its parent. */
unsigned forks_count(void);

#endif
