/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_load FILE COUNT - threads that persist a number, then the same number elsewhere, and
 * so on without end. The configuration is that of REPL_CONFIG. After COUNT rounds of all
 * threads "there" is printed: the time to be killed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define THREADS 4U
#define SIZE    (1U << 20)
#define STRIDE  8192U /* the second number is half of it behind the first */

static struct repl *handle;
static uint8_t *mem;
static _Atomic unsigned long rounds;
static unsigned long count;

static void
give_up(const char *what)
{
	(void)printf("%s: %s\n", what, repl_errormsg());
	exit(1);
}

static void
put(unsigned lane, size_t off, uint64_t value)
{
	*(uint64_t *)(void *)(mem + off) = value;
	if (repl_persist(handle, lane, off, STRIDE / 2))
		give_up("persist");
}

static void *
run(void *arg)
{
	unsigned lane = (unsigned)(uintptr_t)arg;

	for (uint64_t value = 1;; value++) {
		put(lane, (size_t)lane * STRIDE, value);
		put(lane, (size_t)lane * STRIDE + STRIDE / 2, value);
		if (atomic_fetch_add(&rounds, 1) + 1 == count) {
			(void)puts("there");
			(void)fflush(stdout);
		}
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg = NULL;
	pthread_t threads[THREADS];
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 2;
	count = strtoul(argv[2], NULL, 10);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return 2;
	if (repl_config_new(&cfg) || repl_config_load(cfg, NULL) ||
	    repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &handle))
		give_up("open");
	/* The numbers begin anew. */
	for (unsigned i = THREADS; i > 0; i--) {
		put(0, (size_t)(i - 1) * STRIDE + STRIDE / 2, 0);
		put(0, (size_t)(i - 1) * STRIDE, 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i))
			return 2;
	}
	(void)pthread_join(threads[0], NULL);
	return 1;
}
