/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that maps a pool, $EARLY_POOL, while it is loaded, and is told later to write to it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libpmem.h>

#define SIZE (1UL << 20)

static char *pool;

__attribute__((constructor)) static void
early_map(void)
{
	const char *path = getenv("EARLY_POOL");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;

	if (fd >= 0 && ftruncate(fd, (off_t)SIZE) == 0)
		pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!pool || pool == MAP_FAILED)
		return;
	memset(pool, 'e', 100);
	pmem_persist(pool, 100);
}

__attribute__((visibility("default"))) void early_write(void);

void
early_write(void)
{
	memset(pool + SIZE / 2, 'w', 100);
	pmem_persist(pool + SIZE / 2, 100);
}
