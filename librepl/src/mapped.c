/* SPDX-License-Identifier: BSD-3-Clause */
#include "mapped.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "holes.h"
#include "local.h"

#define PAGE 4096U

/* The pages of a file, though nobody can look at them. */
static bool
is_file(const uint8_t *mem, size_t size)
{
	char *path = NULL;
	struct stat st;
	bool is = local_find_file(mem, size, &path, NULL) == 0 && path && stat(path, &st) == 0 &&
		  holes_mapped_at(mem, &st) && (uint64_t)st.st_size >= size;

	free(path);
	return is;
}

bool
mapped_has(const uint8_t *mem, size_t size, size_t at)
{
	uint8_t byte, *page = (uint8_t *)((uintptr_t)(mem + at) / PAGE * PAGE);
	struct iovec to = {.iov_base = &byte, .iov_len = 1};
	struct iovec from = {.iov_base = (void *)(uintptr_t)(mem + at), .iov_len = 1};

	if (process_vm_readv(gettid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT)
		return true;
	/* What may be read, and raises SIGBUS; older kernels (before 5.14) don't tell. */
	return madvise(page, PAGE, MADV_POPULATE_READ) == 0 ||
	       (errno == EFAULT && is_file(mem, size));
}
