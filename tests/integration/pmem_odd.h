/* SPDX-License-Identifier: BSD-3-Clause */
/* pmem_odd - what its modes have in common. */
#ifndef TESTS_PMEM_ODD_H
#define TESTS_PMEM_ODD_H

#include <stdatomic.h>
#include <stddef.h>

#include "check.h"

#define SIZE (1UL << 20)
#define PAGE 4096UL

struct odd_mode {
	const char *name;
	void (*run)(const char *path);
};

/* Up to one without a name. */
extern const struct odd_mode odd_size[];
extern const struct odd_mode odd_name[];
extern const struct odd_mode odd_load[];
extern const struct odd_mode odd_signal[];
extern const struct odd_mode odd_process[];
extern const struct odd_mode odd_kin[];

/* A new file of that size, and a mapping of one, which are what is asked for. */
int file_new(const char *path, size_t size);
char *map_fd(int fd, size_t off, size_t len, int prot);

/* Bytes of the pool that are made durable. */
void put(char *at, int c, size_t len);

/* Threads go on until then. */
extern atomic_bool stop;

#define WRITERS 6 /* of those threads */

/* A thread that makes one byte durable until then, over and over. */
void *persist_on(void *at);

/* FILE.SUFFIX is there, or a while is over. */
void wait_for_file(const char *path, const char *suffix);

/* A line on standard output, at once. */
void say(const char *word);

#endif
