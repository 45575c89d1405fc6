/* SPDX-License-Identifier: BSD-3-Clause */
#include "dirtyload.h"

#include <string.h>

static bool
header_read(struct dirtyload *l)
{
	const struct dirtyload_from *from = &l->from;
	uint8_t page[DIRTYPAGE_SIZE];

	return from->len && from->read(from->arg, 0, page) &&
	       !dirtypage_header_decode(page, &from->pool, from->len, &l->h, NULL) &&
	       !l->h.broken && l->h.pool_size <= from->pool_size;
}

static bool
activity_read(struct dirtyload *l)
{
	const struct dirtyload_from *from = &l->from;
	uint8_t page[DIRTYPAGE_SIZE];

	return from->read(from->arg, DIRTYPAGE_ACTIVITY, page) &&
	       dirtypage_activity_decode(page, &from->pool, l->activity);
}

/* Another one has the file's name by now, which no map knows. */
static bool
is_replaced(const struct dirtypage_file *was, const struct dirtypage_file *is)
{
	static const struct dirtypage_file unknown;

	if (memcmp(was, &unknown, sizeof(unknown)) == 0 ||
	    memcmp(is, &unknown, sizeof(unknown)) == 0)
		return false;
	return was->inode != is->inode || was->born != is->born;
}

void
dirtyload_begin(struct dirtyload *l, const struct dirtyload_from *from)
{
	memset(l, 0, sizeof(*l));
	l->from = *from;
	l->whole = header_read(l) && !is_replaced(&l->h.file, &from->file);
	l->covered = from->crashed && l->whole && from->keep && l->h.activity && activity_read(l);
	l->suspect = (from->crashed && !l->covered) || (from->len && !l->whole);
}

int
dirtyload_slot(const struct dirtyload *l, const uint8_t name[HASH128_SIZE])
{
	for (unsigned s = 0; l->whole && s < l->h.count; s++) {
		if (l->h.slot[s].tracked && memcmp(l->h.slot[s].name, name, HASH128_SIZE) == 0)
			return (int)s;
	}
	return -1;
}

bool
dirtyload_names(const struct dirtyload *l, const uint8_t name[HASH128_SIZE])
{
	for (unsigned s = 0; l->whole && s < l->h.count; s++) {
		if (memcmp(l->h.slot[s].name, name, HASH128_SIZE) == 0)
			return true;
	}
	return false;
}

/* A replica's map as it was left, in the blocks of then. All of a damaged page's are dirty. */
static void
map_read(const struct dirtyload *l, unsigned slot, struct dirtymap *m)
{
	const struct dirtyload_from *from = &l->from;
	uint64_t words[DIRTYMAP_PAGE_WORDS], epoch;
	uint8_t page[DIRTYPAGE_SIZE];

	for (unsigned p = 0; p < dirtymap_pages(m); p++) {
		uint64_t index = dirtypage_index(&l->h, slot, p);

		if (!from->read(from->arg, index, page) ||
		    !dirtypage_map_decode(page, &from->pool, index, &epoch, words) ||
		    epoch > l->h.slot[slot].epoch)
			dirtymap_page_set_all(m, p);
		else if (epoch == l->h.slot[slot].epoch)
			dirtymap_page_set(m, p, words);
		/* One of an earlier map: nothing of this one was in it yet. */
	}
}

static int
map_marks(const struct dirtyload *l, unsigned slot, dirtyload_mark *mark, void *arg, struct err *e)
{
	struct dirtymap *m = NULL;
	struct range run;
	int rc = dirtymap_new(l->h.pool_size, l->h.shift, &m, e);

	if (rc)
		return rc;
	map_read(l, slot, m);
	for (uint64_t at = 0; dirtymap_next(m, at, UINT64_MAX, &run); at = run.off + run.len)
		mark(arg, run.off, run.len);
	dirtymap_free(m);
	return 0;
}

int
dirtyload_marks(const struct dirtyload *l, int slot, dirtyload_mark *mark, void *arg, struct err *e)
{
	uint64_t end = l->h.pool_size;
	int rc = slot < 0 ? 0 : map_marks(l, (unsigned)slot, mark, arg, e);

	if (rc || (slot < 0 && !l->covered))
		return rc;
	/* What was being written when the program died may be there, and lacking in any replica. */
	for (uint64_t x = 0; l->covered && x < DIRTYPAGE_EXTENTS; x++) {
		if (l->activity[x / 64] >> (x % 64) & 1)
			mark(arg, x << l->h.extent_shift, 1ULL << l->h.extent_shift);
	}
	/* Grown by the program, and cut off before that was recorded: be it when the region was. */
	if (end > l->from.recorded && l->from.recorded > 0)
		end = l->from.recorded;
	mark(arg, end, UINT64_MAX);
	return 0;
}
