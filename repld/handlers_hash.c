/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.hash: what two sides compare before they copy. */
#include "handlers.h"

#include <stdlib.h>

#include "checksum.h"
#include "control.h"
#include "describe.h"
#include "extents.h"

#define BLOCK_MIN 4096
#define BLOCK_MAX (1U << 20)
#define COUNT_MAX 4096
#define HASH_TEXT (2 * (size_t)HASH128_SIZE)

struct blocks {
	uint64_t off, block, count;
};

static int
get_blocks(struct json_object *params, uint64_t size, struct blocks *b, struct err *e)
{
	if (control_get_u64(params, "off", 0, INT64_MAX, &b->off, e) ||
	    control_get_u64(params, "block", BLOCK_MIN, BLOCK_MAX, &b->block, e) ||
	    control_get_u64(params, "count", 1, COUNT_MAX, &b->count, e))
		return REPL_E_INVAL;
	if (b->off % BLOCK_MIN || b->block % BLOCK_MIN)
		return err_set(e, REPL_E_INVAL, "off %llu or block %llu is not a multiple of %d",
			       (unsigned long long)b->off, (unsigned long long)b->block, BLOCK_MIN);
	/* The last block begins inside the pool; nothing here can wrap. */
	if (b->off >= size || (b->count - 1) * b->block >= size - b->off)
		return err_set(e, REPL_E_INVAL,
			       "%llu blocks of %llu bytes from %llu are not in the pool of %llu",
			       (unsigned long long)b->count, (unsigned long long)b->block,
			       (unsigned long long)b->off, (unsigned long long)size);
	return REPL_OK;
}

/* A hole is not touched: on tmpfs already reading it takes memory. */
static void
hash_blocks(const struct state *s, uint64_t size, const struct blocks *b, char *text)
{
	const uint8_t *data = pmem_map_addr(s->map);
	uint8_t hash[HASH128_SIZE];
	uint64_t off = b->off;
	struct extents x;

	extents_init(&x, pool_extents_fd(s->pool), size);

	for (uint64_t i = 0; i < b->count; i++, off += b->block) {
		uint64_t len = size - off < b->block ? size - off : b->block;

		if (extents_hole(&x, off, len))
			extents_hash_zeros(len, hash);
		else
			hash128(data + off, len, hash);
		hex_encode(hash, sizeof(hash), text + i * HASH_TEXT);
	}
}

/*
 * Equal hashes spare a writer the copying, so what they are of must be durable:
 * an earlier session may have written it and ended before its flush.
 */
static int
blocks_persist(struct state *s, const struct blocks *b, uint64_t size, struct err *e)
{
	uint64_t len = b->count * b->block;
	struct range range = {.off = b->off, .len = len < size - b->off ? len : size - b->off};
	int rc;

	if (!s->write)
		return 0;
	rc = pmem_map_persist(s->map, &range, 1, e);
	if (rc)
		state_flush_lost(s);
	return rc;
}

int
handle_pool_hash(struct state *s, struct json_object *params, struct reply *r)
{
	uint64_t size = pmem_map_size(s->map);
	struct blocks b;
	char *text;

	if (get_blocks(params, size, &b, &r->err) || blocks_persist(s, &b, size, &r->err))
		return r->err.code;
	text = malloc(b.count * HASH_TEXT + 1);
	if (!text)
		return err_set(&r->err, REPL_E_NOMEM, "no memory for %llu hashes",
			       (unsigned long long)b.count);
	hash_blocks(s, size, &b, text);
	r->result = json_object_new_object();
	describe_add_text(r->result, "hashes", text);
	free(text);
	return REPL_OK;
}
