/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * descriptors - which of the process's file descriptors are the replicas'.
 *
 * Programs close descriptors that they have not opened, all above 2 for example. A connection's
 * would be gone then, and its number be a file's of the program's, to which the next message went.
 * So what librepl and the libraries below it open is noted, and only they close it. They are known
 * by their code, which calls.
 *
 * All functions are safe in a signal handler and behind vfork(2), and leave errno alone.
 */
#ifndef PRELOAD_DESCRIPTORS_H
#define PRELOAD_DESCRIPTORS_H

#include <stdbool.h>

/* librepl is there. */
void descriptors_begin(void);

/* caller is code of librepl's or of a library below it. */
bool descriptors_caller(const void *caller);

/*
 * The same. If so it opens a descriptor in a moment, which nobody can tell from the program's until
 * descriptors_take() has it.
 */
bool descriptors_opens(const void *caller);

/*
 * fd was opened by such code; below 0 is an error and stays one. The descriptor to use instead,
 * which is above standard error.
 */
int descriptors_take(int fd);

/* The same of one with another behind it. */
int descriptors_note(int fd);

/*
 * Such code has done to fd what one does to one's own. The kernel has handed it out, as it does the
 * event channels of RDMA, by no function that is interposed.
 */
void descriptors_adopt(int fd);

/*
 * caller, which is such code, closes fd, which is not noted: it is of libibverbs, the kernel had
 * handed it a descriptor of that number, and that was closed by the program, which has a file
 * there.
 */
bool descriptors_replaced(const void *caller, int fd);

enum descriptors_whose {
	DESCRIPTORS_PROGRAM, /* or in a child of this process, which may do what it likes */
	DESCRIPTORS_REPLICAS,
	DESCRIPTORS_LOST, /* it was the replicas', and its number is something else by now */
};

enum descriptors_whose descriptors_whose(int fd);

/* The same for the program, when what is just being opened has its place, within a moment. */
enum descriptors_whose descriptors_settled(int fd);

/* Any were the replicas' in this process. */
bool descriptors_any(void);

/*
 * In a child that has gone on before its handles are given up: it may have closed the connections
 * and have their numbers for files of its own, which are not closed then.
 */
void descriptors_inherit(void);

/* It is closed in a moment, or lost. */
void descriptors_drop(int fd);

/* The first from fd on that is the replicas', or -1. */
int descriptors_next(int fd);

/*
 * In the child of a fork: nothing is theirs. What librepl itself had open still, as of a pool that
 * was being opened or closed, is not any more: else it would lock the pool's file, and keep a
 * target's session, for as long as the child lives.
 */
void descriptors_forked(void);

#endif
