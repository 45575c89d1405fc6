/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.hash: what two sides compare before they copy. */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "control.h"
#include "describe.h"
#include "extents.h"
#include "hex.h"

#define BLOCK_MIN 4096
#define BLOCK_MAX (1U << 20)
#define COUNT_MAX 4096
#define HASH_TEXT (2 * (size_t)HASH128_SIZE)
#define KEY_TEXT  (2 * (size_t)HASH_KEY_SIZE)

/* Consecutive blocks of one request; the last one may be cut by the end of the pool. */
struct blocks {
	uint64_t off, count;
};

struct hashing {
	struct hash_key key;
	uint64_t size; /* of the pool */
	uint64_t block;
	uint64_t count; /* of all blocks */
	size_t ranges;
	struct blocks range[HANDLERS_HASH_RANGES];
	struct range bytes[HANDLERS_HASH_RANGES];
	uint8_t *buf; /* of a block, where the mapping is not to be touched; or NULL */
};

static int
add_blocks(struct hashing *h, uint64_t off, uint64_t count, struct err *e)
{
	uint64_t left = off < h->size ? h->size - off : 0;

	if (off % BLOCK_MIN)
		return err_set(e, REPL_E_INVAL, "off %llu is not a multiple of %d",
			       (unsigned long long)off, BLOCK_MIN);
	if (count < 1 || count > COUNT_MAX - h->count)
		return err_set(e, REPL_E_INVAL, "a request has 1 to %d blocks", COUNT_MAX);
	/* The last block begins inside the pool; nothing here can wrap. */
	if (left == 0 || (count - 1) * h->block >= left)
		return err_set(e, REPL_E_INVAL,
			       "%llu blocks of %llu bytes from %llu are not in the pool of %llu",
			       (unsigned long long)count, (unsigned long long)h->block,
			       (unsigned long long)off, (unsigned long long)h->size);
	h->range[h->ranges] = (struct blocks){.off = off, .count = count};
	h->bytes[h->ranges] = (struct range){
		.off = off, .len = count * h->block < left ? count * h->block : left};
	h->ranges++;
	h->count += count;
	return REPL_OK;
}

/* An element of ranges: [offset, number of blocks]. */
static int
add_row(struct hashing *h, struct json_object *row, struct err *e)
{
	int64_t off = -1, count = -1;

	if (json_object_is_type(row, json_type_array) && json_object_array_length(row) == 2 &&
	    json_object_is_type(json_object_array_get_idx(row, 0), json_type_int) &&
	    json_object_is_type(json_object_array_get_idx(row, 1), json_type_int)) {
		off = json_object_get_int64(json_object_array_get_idx(row, 0));
		count = json_object_get_int64(json_object_array_get_idx(row, 1));
	}
	if (off < 0 || count < 0)
		return err_set(e, REPL_E_INVAL, "ranges: not pairs of an offset and a number");
	return add_blocks(h, (uint64_t)off, (uint64_t)count, e);
}

int
handlers_get_hash_key(struct json_object *params, struct hash_key *k, struct err *e)
{
	uint8_t key[HASH_KEY_SIZE];
	const char *text;

	memset(k, 0, sizeof(*k));
	if (!control_has(params, "key"))
		return REPL_OK;
	if (control_get_text(params, "key", KEY_TEXT, &text, e))
		return REPL_E_INVAL;
	if (!hex_decode(text, strlen(text), key, sizeof(key)))
		return err_set(e, REPL_E_INVAL, "key: not %zu hexadecimal digits in lower case",
			       KEY_TEXT);
	hash_key_set(k, key);
	return REPL_OK;
}

static int
get_hashing(struct json_object *params, struct hashing *h, struct err *e)
{
	struct json_object *rows = NULL;
	uint64_t off, count;
	int rc = control_get_u64(params, "block", BLOCK_MIN, BLOCK_MAX, &h->block, e);

	if (!rc && h->block % BLOCK_MIN)
		rc = err_set(e, REPL_E_INVAL, "block %llu is not a multiple of %d",
			     (unsigned long long)h->block, BLOCK_MIN);
	if (rc || handlers_get_hash_key(params, &h->key, e))
		return REPL_E_INVAL;
	if (!control_has(params, "ranges")) {
		if (control_get_u64(params, "off", 0, INT64_MAX, &off, e) ||
		    control_get_u64(params, "count", 1, COUNT_MAX, &count, e))
			return REPL_E_INVAL;
		return add_blocks(h, off, count, e);
	}
	if (control_get_array(params, "ranges", HANDLERS_HASH_RANGES, &rows, e))
		return REPL_E_INVAL;
	for (size_t i = 0; !rc && i < json_object_array_length(rows); i++)
		rc = add_row(h, json_object_array_get_idx(rows, i), e);
	if (!rc && h->ranges == 0)
		rc = err_set(e, REPL_E_INVAL, "ranges: there is none");
	return rc;
}

/*
 * What is asked for in pieces is what was written: where all space is taken anyway it does
 * not pay to ask about each of its blocks.
 */
static int
holes_fd(const struct state *s, const struct hashing *h)
{
	bool pieces = h->ranges > 1 && !pool_get_info(s->pool)->meta.sparse;

	return pieces ? -1 : pool_extents_fd(s->pool);
}

static void
hash_block(const struct state *s, const struct hashing *h, uint64_t off, uint64_t len,
	   uint8_t hash[HASH128_SIZE])
{
	const uint8_t *data = (const uint8_t *)pmem_map_addr(s->map) + off;

	if (h->buf) {
		pmem_map_get(s->map, off, h->buf, len);
		data = h->buf;
	}
	hash128_keyed(&h->key, data, len, hash);
}

/* A hole is not touched: on tmpfs already reading it takes memory. */
static char *
hash_blocks(const struct state *s, const struct hashing *h, struct extents *x,
	    const struct blocks *b, char *text)
{
	uint8_t hash[HASH128_SIZE];
	uint64_t off = b->off;

	for (uint64_t i = 0; i < b->count; i++, off += h->block) {
		uint64_t len = h->size - off < h->block ? h->size - off : h->block;

		if (extents_hole(x, off, len))
			extents_hash_zeros(x, &h->key, len, hash);
		else
			hash_block(s, h, off, len, hash);
		hex_encode(hash, sizeof(hash), text);
		text += HASH_TEXT;
	}
	return text;
}

/*
 * Equal hashes spare a writer the copying, so what they are of must be durable:
 * an earlier session may have written it and ended before its flush.
 * Nor may a round log bring back what was there before.
 */
static int
blocks_persist(struct state *s, struct hashing *h, struct err *e)
{
	return s->write ? state_persist(s, h->bytes, h->ranges, e) : 0;
}

int
handle_pool_hash(struct state *s, struct json_object *params, struct reply *r)
{
	struct hashing h = {.size = pmem_map_size(s->map)};
	struct extents x;
	char *text, *at;

	if (get_hashing(params, &h, &r->err) || blocks_persist(s, &h, &r->err))
		return r->err.code;
	text = at = malloc(h.count * HASH_TEXT + 1);
	if (pmem_map_by_file(s->map))
		h.buf = malloc(h.block);
	if (!text || (pmem_map_by_file(s->map) && !h.buf)) {
		free(text);
		free(h.buf);
		return err_set(&r->err, REPL_E_NOMEM, "no memory for %llu hashes",
			       (unsigned long long)h.count);
	}
	extents_init(&x, holes_fd(s, &h), h.size);
	for (size_t i = 0; i < h.ranges; i++)
		at = hash_blocks(s, &h, &x, &h.range[i], at);
	r->result = json_object_new_object();
	describe_add_text(r->result, "hashes", text);
	free(text);
	free(h.buf);
	return REPL_OK;
}
