/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library that maps a pool, $EARLY_POOL, while it is loaded, and is told later to write to it. To
 * load it takes until the file $EARLY_WAITS is there; $EARLY_WAITS.begun is when it begins. With
 * $EARLY_THREAD it has a thread persist what it stores then, and waits for that.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libpmem.h>

#define SIZE (1UL << 20)

static char *pool;

static void
early_wait(const char *path)
{
	char begun[4096];

	(void)snprintf(begun, sizeof(begun), "%s.begun", path);
	(void)close(open(begun, O_RDWR | O_CREAT, 0600));
	while (access(path, F_OK))
		(void)usleep(10000);
}

static void *
early_persist(void *arg)
{
	(void)arg;
	memset(pool, 'e', 100);
	pmem_persist(pool, 100);
	return NULL;
}

__attribute__((constructor)) static void
early_map(void)
{
	const char *waits = getenv("EARLY_WAITS");
	const char *path = getenv("EARLY_POOL");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
	pthread_t thread;

	if (waits)
		early_wait(waits);
	if (fd >= 0 && ftruncate(fd, (off_t)SIZE) == 0)
		pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!pool || pool == MAP_FAILED)
		return;
	if (!getenv("EARLY_THREAD"))
		(void)early_persist(NULL);
	else if (pthread_create(&thread, NULL, early_persist, NULL) == 0)
		(void)pthread_join(thread, NULL);
}

__attribute__((visibility("default"))) void early_write(void);

void
early_write(void)
{
	memset(pool + SIZE / 2, 'w', 100);
	pmem_persist(pool + SIZE / 2, 100);
}
