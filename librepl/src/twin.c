/* SPDX-License-Identifier: BSD-3-Clause */
#include "twin.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "procself.h"

#define TWIN_MAPS PROCSELF "/maps"
#define ALIGN     ((size_t)2 << 20) /* so that huge pages stay such */

/* The rest of the mapping at that address, no more than most; 0: it is not a shared one. */
static size_t
shared_at(FILE *f, uintptr_t at, size_t most)
{
	uintptr_t from = 0, to = 0;
	char perms[5] = "";
	char *line = NULL;
	size_t room = 0;

	while (to <= at && getline(&line, &room, f) > 0)
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, perms) != 3)
			to = 0;
	free(line);
	if (from > at || to <= at || perms[3] != 's')
		return 0;
	return to - at < most ? to - at : most;
}

static bool
pieces_map(FILE *f, const struct twin *t, const void *addr, size_t size)
{
	for (size_t done = 0, len; done < size; done += len) {
		uintptr_t from = (uintptr_t)addr + done;
		char *to = (char *)t->mem + done;

		len = shared_at(f, from, size - done);
		/* Of no bytes: it stays where it is, and gets a second place. */
		if (len == 0 ||
		    mremap((void *)from, 0, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
			return false;
	}
	return true;
}

bool
twin_map(struct twin *t, const void *addr, size_t size)
{
	FILE *f;
	bool mapped;

	*t = (struct twin){0};
	if (size > SIZE_MAX - ALIGN)
		return false;
	t->room_size = size + ALIGN;
	t->room = mmap(NULL, t->room_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	if (t->room == MAP_FAILED) {
		*t = (struct twin){0};
		return false;
	}
	t->mem = (char *)t->room + ((uintptr_t)addr - (uintptr_t)t->room) % ALIGN;
	f = fopen(TWIN_MAPS, "re");
	mapped = f && pieces_map(f, t, addr, size);
	if (f)
		(void)fclose(f);
	if (!mapped)
		twin_unmap(t);
	return mapped;
}

void
twin_unmap(struct twin *t)
{
	if (t->room)
		(void)munmap(t->room, t->room_size);
	*t = (struct twin){0};
}
