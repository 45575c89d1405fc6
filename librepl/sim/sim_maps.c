/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * after-crash = dirty-map: the region of a node's sidecar that keeps its program's
 * dirty maps and activity log, as librepl/src/dirty*.c writes it. What it says is
 * encoded and decoded, and what it is worth is judged, by the real code; modelled
 * is the file: pages are durable after a sync, before it a power cut keeps any of
 * them, or tears one. At each write the program, or its machine, may die.
 */
#include <stdlib.h>
#include <string.h>

#include "dirtyload.h"
#include "extentlog.h"
#include "librepl.h"
#include "sim_impl.h"

#define MAP_PAGES   5U
#define PAGES       (DIRTYPAGE_MAPS + SIM_NODES * MAP_PAGES)
#define PLACE_SIZE  ((uint64_t)PAGES * DIRTYPAGE_SIZE)
#define ROUND_NS    (1000 * SIM_MS)
#define IDLE_ROUNDS 3U
#define LAG_NS      ((IDLE_ROUNDS - 1) * ROUND_NS)
#define MIB         (UINT64_C(1) << 20)

/* One of two that a region may be in: a new one is written beside the old one. */
struct place {
	uint8_t now[PAGES][DIRTYPAGE_SIZE], disk[PAGES][DIRTYPAGE_SIZE];
	uint64_t wrote[PAGES]; /* sums, of what its writer knows to be there */
	uint32_t unsynced;
};

struct sim_maps {
	struct place place[2];
	/* of the program that runs */
	struct extentlog log;
	struct dirtypage_header layout;
	int at; /* the place that is its region's; -1: it has none */
	bool armed, keep, broken, told;
	bool disowned; /* the next sidecar names no region */
	uint64_t round_at;
};

/* Four blocks of the simulation lie in a page of a map, two of them in an extent. */
uint64_t
maps_block_off(unsigned block)
{
	return block / 4 * 128 * MIB + block / 2 % 2 * 8 * MIB + block % 2 * MIB;
}

uint64_t
maps_pool_size(unsigned blocks)
{
	return (uint64_t)blocks / 4 * 128 * MIB;
}

unsigned
maps_blocks(uint64_t pool_size)
{
	return (unsigned)(pool_size / (128 * MIB) * 4);
}

bool
maps_new(struct sim *s)
{
	s->maps = calloc(s->nodes, sizeof(*s->maps));
	return s->maps != NULL;
}

void
maps_free(struct sim *s)
{
	free(s->maps);
	s->maps = NULL;
}

/* ---- the file ---- */

static int
page_write(struct sim *s, unsigned n, uint64_t index, const uint8_t page[DIRTYPAGE_SIZE])
{
	struct sim_node *node = &s->node[n];
	struct place *p = &s->maps[n].place[s->maps[n].at];
	uint64_t sum = sum64(page, DIRTYPAGE_SIZE);

	if (p->wrote[index] == sum)
		return 0;
	if (node->map_fails) {
		node->map_fails--;
		return REPL_E_IO;
	}
	if (s->now < node->beside_fails_until)
		return REPL_E_IO;
	p->wrote[index] = sum;
	memcpy(p->now[index], page, DIRTYPAGE_SIZE);
	p->unsynced |= 1U << index;
	return script_dies(s, n) ? REPL_E_LOST : 0;
}

static int
pages_sync(struct sim *s, unsigned n)
{
	struct place *p = &s->maps[n].place[s->maps[n].at];

	for (unsigned i = 0; i < PAGES; i++)
		if (p->unsynced >> i & 1)
			memcpy(p->disk[i], p->now[i], DIRTYPAGE_SIZE);
	p->unsynced = 0;
	return script_dies(s, n) ? REPL_E_LOST : 0;
}

void
maps_power(struct sim *s, unsigned n)
{
	for (unsigned a = 0; a < 2; a++) {
		struct place *p = &s->maps[n].place[a];

		for (unsigned i = 0; p->unsynced && i < PAGES; i++) {
			uint64_t random;

			if (!(p->unsynced >> i & 1))
				continue;
			random = sim_random(s);
			if (random % 3)
				memcpy(p->disk[i], p->now[i],
				       random % 3 == 1 ? DIRTYPAGE_SIZE : 20 + random / 3 % 4000);
			memcpy(p->now[i], p->disk[i], DIRTYPAGE_SIZE);
		}
		p->unsynced = 0;
	}
}

static int
place_named(const struct sim_node *node)
{
	return node->meta.dirty_len ? (int)((node->meta.dirty_off - SIDECAR_SIZE) / PLACE_SIZE)
				    : -1;
}

void
maps_damage(struct sim *s, unsigned n, uint32_t random)
{
	int at = place_named(&s->node[n]);
	unsigned page = random % 4 ? DIRTYPAGE_MAPS + (random >> 4) % (PAGES - DIRTYPAGE_MAPS)
				   : random >> 2 & 1;
	unsigned byte = random >> 8 & 63;

	if (at < 0)
		return;
	/* Most of what there is stands in the first bytes of a page. */
	s->maps[n].place[at].now[page][byte] ^= (uint8_t)(1U << (random >> 20 & 7));
	memcpy(s->maps[n].place[at].disk[page], s->maps[n].place[at].now[page], DIRTYPAGE_SIZE);
}

/* ---- what is written ---- */

static void
replica_name(unsigned k, uint8_t name[HASH128_SIZE])
{
	memset(name, 0, HASH128_SIZE);
	name[0] = (uint8_t)(k + 1);
}

static int
header_write(struct sim *s, unsigned n)
{
	struct sim_maps *m = &s->maps[n];
	struct dirtypage_header h = m->layout;
	uint8_t page[DIRTYPAGE_SIZE];
	int rc;

	h.activity = m->keep;
	h.broken = m->broken;
	for (unsigned k = 0; k < s->nodes; k++) {
		const struct sim_keeper *keeper = &s->node[n].app.keeper[k];

		h.slot[k] = (struct dirtypage_slot){.tracked = keeper->tracked,
						    .untrusted = keeper->worth.untrusted ||
								 keeper->worth.suspect,
						    .base = keeper->worth.base,
						    .epoch = keeper->worth.epoch};
		replica_name(k, h.slot[k].name);
	}
	dirtypage_header_encode(&h, &s->node[n].meta.pool_uuid, page);
	rc = page_write(s, n, 0, page);
	if (!rc)
		m->told = m->broken;
	return rc;
}

static int
activity_write(struct sim *s, unsigned n)
{
	uint8_t page[DIRTYPAGE_SIZE];

	dirtypage_activity_encode(s->maps[n].log.want, &s->node[n].meta.pool_uuid, page);
	return page_write(s, n, DIRTYPAGE_ACTIVITY, page);
}

static int
map_write(struct sim *s, unsigned n, unsigned k)
{
	struct sim_maps *m = &s->maps[n];
	const struct sim_keeper *keeper = &s->node[n].app.keeper[k];
	uint32_t bits = keeper->tracked ? keeper->dirty | keeper->batch : 0;
	struct dirtymap *map = NULL;
	int rc = dirtymap_new(m->layout.pool_size, m->layout.shift, &map, NULL);

	for (unsigned b = 0; b < SIM_BLOCKS && !rc; b++)
		if (bits >> b & 1)
			(void)dirtymap_set(map, maps_block_off(b), 1);
	for (unsigned p = 0; !rc && p < dirtymap_pages(map); p++) {
		uint64_t words[DIRTYMAP_PAGE_WORDS] = {0},
			 index = dirtypage_index(&m->layout, k, p);
		uint8_t page[DIRTYPAGE_SIZE];

		dirtymap_page_get(map, p, words);
		dirtypage_map_encode(words, &s->node[n].meta.pool_uuid, index, keeper->worth.epoch,
				     page);
		rc = page_write(s, n, index, page);
	}
	dirtymap_free(map);
	return rc;
}

static int
maps_write(struct sim *s, unsigned n)
{
	int rc = 0;

	for (unsigned k = 0; k < s->nodes && !rc; k++)
		rc = map_write(s, n, k);
	return rc;
}

/* Whether the program still lives. */
static bool
region_fail(struct sim *s, unsigned n)
{
	if (!s->node[n].app.running)
		return false;
	s->maps[n].broken = true;
	if (s->maps[n].at >= 0 && !header_write(s, n))
		(void)pages_sync(s, n);
	return s->node[n].app.running;
}

static bool
region_name(struct sim *s, unsigned n, uint64_t off, uint64_t len)
{
	struct sidecar meta = s->node[n].meta;

	meta.dirty_off = off;
	meta.dirty_len = len;
	return media_sidecar(s, n, &meta);
}

static int
region_rebuild(struct sim *s, unsigned n)
{
	struct sim_maps *m = &s->maps[n];
	struct dirtypage_header old = m->layout;
	int was = m->at, rc;

	if (s->now < s->node[n].full_until)
		return REPL_E_NOSPC;
	m->layout = (struct dirtypage_header){
		.count = s->nodes,
		.shift = DIRTYMAP_SHIFT_MIN,
		.extent_shift = atomic_load(&m->log.shift),
		.pool_size = s->node[n].app.map_size,
	};
	m->at = place_named(&s->node[n]) == 0;
	memset(m->place[m->at].wrote, 0, sizeof(m->place[m->at].wrote));
	rc = maps_write(s, n);
	if (!rc)
		rc = activity_write(s, n);
	if (!rc)
		rc = header_write(s, n);
	if (!rc)
		rc = pages_sync(s, n);
	if (!rc && !region_name(s, n, SIDECAR_SIZE + (uint64_t)m->at * PLACE_SIZE,
				dirtypage_region_len(&m->layout)))
		rc = REPL_E_IO;
	if (rc) {
		m->layout = old;
		m->at = was;
	}
	return rc;
}

static int
region_make(struct sim *s, unsigned n)
{
	struct sim_maps *m = &s->maps[n];
	int rc;

	extentlog_off(&m->log);
	extentlog_grow(&m->log, s->node[n].app.map_size);
	rc = region_rebuild(s, n);
	if (!rc)
		extentlog_on(&m->log, m->log.want);
	m->armed = rc == 0;
	return rc;
}

bool
maps_begin(struct sim *s, unsigned n)
{
	struct sim_maps *m = &s->maps[n];

	if (region_make(s, n) == 0)
		return true;
	if (!region_fail(s, n))
		return false;
	m->told = m->told || sim_broken(s, SIM_REGION_KEPT) || region_name(s, n, 0, 0);
	return m->told;
}

bool
maps_grow(struct sim *s, unsigned n)
{
	if (s->maps[n].at >= 0 && region_make(s, n))
		return region_fail(s, n);
	return s->node[n].app.running;
}

/* In order: those that are well are tracked, too, and lack what was not drained. */
bool
maps_finish(struct sim *s, unsigned n)
{
	struct sim_app *app = &s->node[n].app;
	struct sim_maps *m = &s->maps[n];

	for (unsigned k = 0; k < s->nodes; k++) {
		struct sim_keeper *keeper = &app->keeper[k];

		if (k == n)
			continue;
		if (!keeper->tracked) {
			keeper->tracked = true;
			dirtytrack_begin(&keeper->worth);
			keeper->worth.base = keeper->label;
		}
		for (unsigned l = 0; l < SIM_LANES; l++)
			keeper->dirty |= app->lane[l].pending;
	}
	m->broken = m->told = m->keep = false;
	m->disowned = region_rebuild(s, n) && !sim_broken(s, SIM_REGION_KEPT);
	if (app->running && m->disowned)
		(void)region_name(s, n, 0, 0);
	return app->running;
}

bool
maps_untold(const struct sim *s, unsigned n)
{
	return s->maps[n].broken && !s->maps[n].told;
}

bool
maps_disown(struct sim *s, unsigned n)
{
	struct sim_maps *m = &s->maps[n];

	if (m->at < 0 || !maps_untold(s, n))
		return false;
	extentlog_off(&m->log);
	m->armed = false;
	m->at = -1;
	m->disowned = true;
	return true;
}

void
maps_record(const struct sim *s, unsigned n, struct sidecar *meta)
{
	if (s->maps[n].disowned)
		meta->dirty_off = meta->dirty_len = 0;
}

void
maps_recorded(struct sim *s, unsigned n)
{
	if (s->maps[n].disowned)
		s->maps[n].told = s->maps[n].broken;
}

/* ---- while it runs ---- */

bool
maps_use(struct sim *s, unsigned n, uint32_t blocks, bool *on)
{
	struct sim_maps *m = &s->maps[n];
	int rc;

	*on = true;
	if (sim_broken(s, SIM_NO_ACTIVITY))
		return true;
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		if (blocks >> b & 1)
			*on &= extentlog_use(&m->log, maps_block_off(b), 1);
	if (*on || !m->armed || m->broken)
		return true;
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		if (blocks >> b & 1)
			extentlog_want(&m->log, maps_block_off(b), 1);
	rc = activity_write(s, n);
	if (!rc && !sim_broken(s, SIM_ACTIVE_UNSYNCED))
		rc = pages_sync(s, n);
	if (rc)
		return region_fail(s, n);
	extentlog_on(&m->log, m->log.want);
	return true;
}

static bool
queues_are_young(const struct sim *s, unsigned n)
{
	const struct shipqueue *q = &s->node[n].app.q;

	for (unsigned k = 0; k < s->nodes; k++) {
		const struct shipment *first = q->view[k].open ? q->view[k].unacked : NULL;

		if (first && s->now - first->queued_ns >= LAG_NS)
			return false;
	}
	return true;
}

static void
idle_settle(struct sim *s, unsigned n, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	uint32_t shift = atomic_load(&s->maps[n].log.shift), blocks = 0;

	for (unsigned b = 0; b < SIM_BLOCKS; b++) {
		uint64_t x = maps_block_off(b) >> shift;

		blocks |= (uint32_t)(idle[x / 64] >> (x % 64) & 1) << b;
	}
	if (!sim_broken(s, SIM_RETIRE_UNSYNCED))
		media_flush(s, n, blocks);
}

static int
idle_off(struct sim *s, unsigned n, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	int rc = extentlog_retire_end(&s->maps[n].log, idle) ? activity_write(s, n) : 0;

	return rc ? rc : pages_sync(s, n);
}

void
maps_tick(struct sim *s, unsigned n)
{
	struct sim_maps *m = &s->maps[n];
	uint64_t idle[DIRTYPAGE_EXTENT_WORDS];
	bool any;
	int rc;

	if (s->now < m->round_at || m->at < 0)
		return;
	m->round_at = s->now + ROUND_NS;
	if (m->broken) {
		if (!m->told && !header_write(s, n))
			(void)pages_sync(s, n);
		return;
	}
	any = queues_are_young(s, n) && extentlog_retire_begin(&m->log, idle);
	rc = maps_write(s, n);
	if (!rc)
		rc = header_write(s, n);
	if (!rc)
		rc = pages_sync(s, n);
	if (!rc && any) {
		idle_settle(s, n, idle);
		rc = idle_off(s, n, idle);
	}
	if (rc)
		(void)region_fail(s, n);
}

/* ---- reading ---- */

struct reading {
	const struct sim *s;
	const struct place *place;
	const struct dirtyload *load;
	struct sim_keeper *keeper;
};

static bool
load_read(void *arg, uint64_t index, uint8_t page[DIRTYPAGE_SIZE])
{
	const struct reading *r = arg;
	uint64_t words[DIRTYMAP_PAGE_WORDS] = {0}, epoch;
	const struct gen_id *pool = &r->load->from.pool;

	memcpy(page, r->place->now[index], DIRTYPAGE_SIZE);
	if (index >= DIRTYPAGE_MAPS && sim_broken(r->s, SIM_DAMAGED_CLEAN) &&
	    !dirtypage_map_decode(page, pool, index, &epoch, words)) {
		memset(words, 0, sizeof(words));
		dirtypage_map_encode(words, pool, index, 0, page);
	}
	return true;
}

static void
load_mark(void *arg, uint64_t off, uint64_t len)
{
	const struct reading *r = arg;

	for (unsigned b = 0; b < maps_blocks(r->load->from.pool_size); b++)
		if (maps_block_off(b) >= off && maps_block_off(b) - off < len)
			r->keeper->dirty |= 1U << b;
}

static void
load_replica(struct sim *s, unsigned n, unsigned k, struct reading *r, const struct gen_id *found)
{
	struct sim_keeper *keeper = &s->node[n].app.keeper[k];
	const struct dirtyload *l = r->load;
	uint8_t name[HASH128_SIZE];
	int slot;

	replica_name(k, name);
	slot = dirtyload_slot(l, name);
	keeper->tracked = true;
	keeper->worth.suspect = l->suspect;
	dirtytrack_begin(&keeper->worth);
	keeper->worth.base = slot < 0 ? *found : l->h.slot[slot].base;
	/* One that is neither in a map nor in a log is not known of. */
	keeper->worth.untrusted |=
		slot < 0 ? !l->covered || !dirtyload_names(l, name) : l->h.slot[slot].untrusted;
	r->keeper = keeper;
	if (dirtyload_marks(l, slot, load_mark, r, NULL))
		keeper->worth.untrusted = true;
}

void
maps_load(struct sim *s, unsigned n, bool crashed, const struct gen_id *found)
{
	const struct sim_node *node = &s->node[n];
	struct sim_maps *m = &s->maps[n];
	int at = place_named(node);
	struct dirtyload load = {.from = {.pool = node->meta.pool_uuid}};
	struct reading r = {.s = s, .place = &m->place[at < 0 ? 0 : at], .load = &load};
	struct dirtyload_from from = {.read = load_read,
				      .arg = &r,
				      .pool = node->meta.pool_uuid,
				      .len = node->meta.dirty_len,
				      .pool_size = node->app.map_size,
				      .recorded = node->meta.pool_size,
				      .crashed = crashed,
				      .keep = true};

	dirtyload_begin(&load, &from);
	for (unsigned k = 0; k < s->nodes; k++)
		if (k != n)
			load_replica(s, n, k, &r, found);
	memset(&m->log, 0, sizeof(m->log));
	extentlog_init(&m->log, node->app.map_size,
		       sim_broken(s, SIM_RETIRE_BUSY)
			       ? 1
			       : IDLE_ROUNDS + (unsigned)(SIM_OP_TIMEOUT / ROUND_NS));
	m->at = -1;
	m->keep = true;
	m->armed = m->broken = m->told = m->disowned = false;
	m->round_at = s->now + ROUND_NS;
}
