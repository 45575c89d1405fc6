/* SPDX-License-Identifier: BSD-3-Clause */
#include "media_visited.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 2048U

static uint32_t
slot_of(uint64_t key, uint32_t slot_count)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (slot_count - 1);
}

static void *
grow(void *old, size_t count, size_t size)
{
	void *p = realloc(old, count * size);

	if (!p)
		abort();
	return p;
}

static void
slots_fill(struct visited *v)
{
	(void)memset(v->slot, 0xff, v->slot_count * sizeof(*v->slot));
	for (uint32_t n = 0; n < v->count; n++) {
		uint32_t i = slot_of(v->visit[n].key, v->slot_count);

		while (v->slot[i] != VISITED_NONE)
			i = (i + 1) & (v->slot_count - 1);
		v->slot[i] = n;
	}
}

/* At most half of the slots are in use. */
static void
visited_reserve(struct visited *v)
{
	if (v->count < v->capacity)
		return;
	v->capacity = v->capacity ? v->capacity * 2 : CAPACITY_FIRST;
	v->slot_count = v->capacity * 2;
	v->visit = grow(v->visit, v->capacity, sizeof(*v->visit));
	v->stack = grow(v->stack, v->capacity, sizeof(*v->stack));
	v->slot = grow(v->slot, v->slot_count, sizeof(*v->slot));
	slots_fill(v);
}

/* Without touching all of the table: the last one that was put in goes first. */
void
visited_clear(struct visited *v)
{
	v->depth = 0;
	if (v->count > v->slot_count / 16) {
		v->count = 0;
		slots_fill(v);
	}
	while (v->count > 0) {
		uint32_t i = slot_of(v->visit[--v->count].key, v->slot_count);

		while (v->slot[i] != v->count)
			i = (i + 1) & (v->slot_count - 1);
		v->slot[i] = VISITED_NONE;
	}
}

void
visited_add(struct visited *v, uint64_t key, uint32_t parent)
{
	uint32_t i;

	visited_reserve(v);
	i = slot_of(key, v->slot_count);
	while (v->slot[i] != VISITED_NONE) {
		if (v->visit[v->slot[i]].key == key)
			return;
		i = (i + 1) & (v->slot_count - 1);
	}
	v->slot[i] = v->count;
	v->stack[v->depth++] = v->count;
	v->visit[v->count++] = (struct visit){key, parent};
}

uint32_t
visited_next(struct visited *v)
{
	return v->depth > 0 ? v->stack[--v->depth] : VISITED_NONE;
}

void
visited_fini(struct visited *v)
{
	free(v->visit);
	free(v->slot);
	free(v->stack);
	(void)memset(v, 0, sizeof(*v));
}
