/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmdk - what replication costs a program of PMDK's: transactions of libpmemobj
 * unreplicated, followed by the preload library, through a pool set, and the
 * like of them by the API; persists of 64 bytes, flushes and copies followed
 * against those of the API, and persists of memory that is no pool against
 * libpmem alone. In turns. Prints one JSON object. To be run by replctl run, with
 * DIR/object and DIR/plain as pools.
 *
 * usage: pmdk HOST IDENTITY KNOWN-HOSTS ROUNDS SLICE-MS DIR [POOL-SET]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpmem.h>
#include <libpmemobj.h>

#include "side.h"

#define PLAIN  (16U << 20)
#define RECORD 64U
#define COPY   (1U << 20)
#define DRAIN  32U /* flushes for a drain: what is left of the drain's price is small */
#define OBJECT 128U
#define SLOTS  4096U /* objects; then each new one takes the place of the oldest */

struct root {
	uint64_t count;
	PMEMoid slots[SLOTS];
};

struct objects {
	PMEMobjpool *pop;
	struct root *root;
};

static struct side_pool api;
static uint8_t bytes[COPY];
static void (*real_persist)(const void *addr, size_t len);

/* ---- transactions ---- */

static struct objects
objects_open(const char *path, size_t size)
{
	struct objects o = {.pop = pmemobj_create(path, "bench", size, 0600)};

	if (!o.pop) {
		(void)fprintf(stderr, "%s: %s\n", path, pmemobj_errormsg());
		exit(1);
	}
	o.root = pmemobj_direct(pmemobj_root(o.pop, sizeof(struct root)));
	if (!o.root)
		exit(1);
	return o;
}

static int
transaction(void *arg, uint64_t i)
{
	struct objects *o = arg;
	PMEMoid *slot = &o->root->slots[i % SLOTS];
	volatile int rc = 0;

	TX_BEGIN(o->pop)
	{
		pmemobj_tx_add_range_direct(slot, sizeof(*slot));
		pmemobj_tx_add_range_direct(&o->root->count, sizeof(o->root->count));
		if (!OID_IS_NULL(*slot))
			pmemobj_tx_free(*slot);
		*slot = pmemobj_tx_alloc(OBJECT, 1);
		memset(pmemobj_direct(*slot), (int)i, OBJECT);
		o->root->count++;
	}
	TX_ONABORT
	{
		rc = REPL_E_FAILED;
	}
	TX_END
	return rc;
}

/* What a program of its own does for the same: the object, then that it counts. */
static int
by_api(void *arg, uint64_t i)
{
	size_t at = 4096 + i % SLOTS * OBJECT;

	(void)arg;
	memset(api.mem + at, (int)i, OBJECT);
	pmem_persist(api.mem + at, OBJECT);
	memcpy(api.mem, &i, sizeof(i));
	pmem_persist(api.mem, sizeof(i));
	return repl_persist_pair(api.r, 0, at, OBJECT, 0, sizeof(i));
}

static void
measure_transactions(const char *dir, const char *set, unsigned rounds, uint64_t slice_ns)
{
	struct objects o[3];
	struct side side[4] = {{.name = "unreplicated", .op = transaction, .arg = &o[0]},
			       {.name = "replctl run", .op = transaction, .arg = &o[1]},
			       {.name = "the API", .op = by_api},
			       {.name = "pool set", .op = transaction, .arg = &o[2]}};
	struct side *sides[] = {&side[0], &side[1], &side[2], &side[3]};
	unsigned count = set ? 4 : 3;
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/alone", dir);
	o[0] = objects_open(path, PLAIN);
	(void)snprintf(path, sizeof(path), "%s/object", dir);
	o[1] = objects_open(path, PLAIN);
	if (set)
		o[2] = objects_open(set, 0);
	side_measure(sides, count, rounds, slice_ns, true);
	(void)printf("\"transactions\": [");
	for (unsigned i = 0; i < count; i++)
		(void)printf("%s{\"name\": \"%s\", \"ns\": %.0f, \"ratio\": %.3f}", i ? ", " : "",
			     side[i].name, side_ns(&side[i], rounds),
			     side_ratio(&side[i], &side[0], rounds));
	(void)printf("],\n");
	for (unsigned i = 0; i < count - 1; i++)
		pmemobj_close(o[i].pop);
}

/* ---- single operations ---- */

static int
api_persist(void *arg, uint64_t i)
{
	size_t at = i % 1024 * RECORD;

	(void)arg;
	api.mem[at]++;
	pmem_persist(api.mem + at, RECORD);
	return repl_persist(api.r, 0, at, RECORD);
}

static int
run_persist(void *arg, uint64_t i)
{
	uint8_t *at = (uint8_t *)arg + i % 1024 * RECORD;

	++*at;
	pmem_persist(at, RECORD);
	return 0;
}

static int
alone_persist(void *arg, uint64_t i)
{
	uint8_t *at = (uint8_t *)arg + i % 1024 * RECORD;

	++*at;
	real_persist(at, RECORD);
	return 0;
}

/* Flushes, and one drain for all of them. */
static int
run_flushes(void *arg, uint64_t i)
{
	uint8_t *at = arg;

	for (unsigned k = 0; k < DRAIN; k++) {
		at[(i + k) % 1024 * RECORD]++;
		pmem_flush(at + (i + k) % 1024 * RECORD, RECORD);
	}
	pmem_drain();
	return 0;
}

static int
api_flushes(void *arg, uint64_t i)
{
	int rc = 0;

	(void)arg;
	for (unsigned k = 0; !rc && k < DRAIN; k++) {
		size_t at = (i + k) % 1024 * RECORD;

		api.mem[at]++;
		pmem_flush(api.mem + at, RECORD);
		rc = repl_flush(api.r, 0, at, RECORD);
	}
	pmem_drain();
	return rc ? rc : repl_drain(api.r, 0);
}

static int
run_copy(void *arg, uint64_t i)
{
	(void)pmem_memcpy_persist((uint8_t *)arg + (i % 8 + 1) * COPY, bytes, COPY);
	return 0;
}

static int
api_copy(void *arg, uint64_t i)
{
	size_t at = (i % 8 + 1) * COPY;

	(void)arg;
	(void)pmem_memcpy_persist(api.mem + at, bytes, COPY);
	return repl_persist(api.r, 0, at, COPY);
}

static void
measure_pair(const char *name, struct side *to, struct side *s, unsigned rounds, uint64_t slice_ns,
	     const char *end)
{
	struct side *sides[] = {to, s};

	side_measure(sides, 2, rounds, slice_ns, false);
	(void)printf("{\"name\": \"%s\", \"to\": \"%s\", \"to_ns\": %.1f, \"ns\": %.1f, "
		     "\"ratio\": %.3f}%s",
		     name, to->name, side_ns(to, rounds), side_ns(s, rounds),
		     side_ratio(s, to, rounds), end);
}

static void
measure_operations(const char *dir, unsigned rounds, uint64_t slice_ns)
{
	static uint8_t outside[1024 * RECORD] __attribute__((aligned(4096)));
	char path[4096];
	uint8_t *pool;
	int is_pmem;

	(void)snprintf(path, sizeof(path), "%s/plain", dir);
	pool = pmem_map_file(path, PLAIN, PMEM_FILE_CREATE, 0600, NULL, &is_pmem);
	if (!pool) {
		perror(path);
		exit(1);
	}
	(void)printf("\"operations\": [");
	measure_pair("persist of 64 B", &(struct side){.name = "repl_persist()", .op = api_persist},
		     &(struct side){.name = "followed", .op = run_persist, .arg = pool}, rounds,
		     slice_ns, ",\n");
	measure_pair("32 flushes of 64 B and a drain",
		     &(struct side){.name = "repl_flush(), repl_drain()", .op = api_flushes},
		     &(struct side){.name = "followed", .op = run_flushes, .arg = pool}, rounds,
		     slice_ns, ",\n");
	measure_pair("pmem_memcpy_persist() of 1 MiB",
		     &(struct side){.name = "repl_persist()", .op = api_copy},
		     &(struct side){.name = "followed", .op = run_copy, .arg = pool}, rounds,
		     slice_ns, ",\n");
	measure_pair("persist of 64 B outside of pools",
		     &(struct side){.name = "libpmem alone", .op = alone_persist, .arg = outside},
		     &(struct side){.name = "followed", .op = run_persist, .arg = outside}, rounds,
		     slice_ns, "]}\n");
	(void)pmem_unmap(pool, PLAIN);
}

int
main(int argc, char **argv)
{
	struct side_target target;
	unsigned rounds;
	uint64_t slice_ns;
	void *libpmem = dlopen("libpmem.so.1", RTLD_NOW);

	if ((argc != 7 && argc != 8) || !libpmem)
		return 2;
	target = (struct side_target){argv[1], argv[2], argv[3]};
	rounds = (unsigned)atoi(argv[4]);
	slice_ns = (uint64_t)atoi(argv[5]) * 1000000U;
	if (rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	real_persist = (void (*)(const void *, size_t))(uintptr_t)dlsym(libpmem, "pmem_persist");
	if (!real_persist)
		return 2;
	(void)side_open(&api, &target, "api", PLAIN, &(struct side_options){.lanes = 1});
	(void)printf("{\"class\": \"%s\", ", side_class(&api));
	measure_transactions(argv[6], argc == 8 ? argv[7] : NULL, rounds, slice_ns);
	measure_operations(argv[6], rounds, slice_ns);
	side_close(&api);
	return 0;
}
