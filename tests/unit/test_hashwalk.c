/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of many small pieces the target is asked in few requests, all the way to the end. By each it is
 * told the walk's own key, unless it is one of an earlier version, which takes none.
 */
#include "unit.h"

#include "../../librepl/src/hashkey.c"
#include "../../librepl/src/hashwalk.c"
#include "../../librepl/src/localmem.c"
#include "../../librepl/src/localread.c"
#include "hex.h"

#define BLOCK  4096U
#define PIECE  (2 * BLOCK)
#define STRIDE (8 * BLOCK)
#define COUNT  2000U
#define RANGES 256U

static uint8_t *mem;
static unsigned requests, differing;
static unsigned asked_for[2 * COUNT]; /* ranges of the request of that number */
static int64_t taken;
static bool takes_key;
static struct hash_key key;
static char key_text[2 * HASH_KEY_SIZE + 1]; /* "": none has come */

unsigned
remote_heartbeat_ms(const struct remote *r)
{
	(void)r;
	return 1000;
}

uint64_t
remote_hash_ranges(const struct remote *r)
{
	(void)r;
	return RANGES;
}

bool
remote_hash_key(const struct remote *r)
{
	(void)r;
	return takes_key;
}

int
remote_random(const struct remote *r, void *to, size_t len, struct err *e)
{
	static uint8_t drawn;

	(void)r;
	(void)e;
	memset(to, ++drawn, len);
	return 0;
}

/* The first one of a walk is that of all. */
static void
key_take(struct json_object *params)
{
	uint8_t bytes[HASH_KEY_SIZE];
	const char *text;

	assert_int_equal(control_has(params, "key"), takes_key);
	if (!takes_key)
		return;
	assert_int_equal(control_get_text(params, "key", sizeof(key_text) - 1, &text, NULL), 0);
	assert_true(hex_decode(text, strlen(text), bytes, sizeof(bytes)));
	if (!key_text[0])
		memcpy(key_text, text, sizeof(key_text));
	assert_string_equal(text, key_text);
	hash_key_set(&key, bytes);
}

int
remote_post(struct remote *r, const char *method, struct json_object *params, int64_t *id,
	    struct err *e)
{
	struct json_object *rows = NULL;

	(void)r;
	(void)method;
	(void)e;
	asked_for[requests] = json_object_object_get_ex(params, "ranges", &rows)
				      ? (unsigned)json_object_array_length(rows)
				      : 1;
	key_take(params);
	json_object_put(params);
	*id = ++requests;
	return 0;
}

/* Every second block is not what it is here. */
int
remote_take(struct remote *r, const char *method, int64_t id, struct json_object **result,
	    struct err *e)
{
	static char text[RANGES * 2 * HASH128_SIZE * 2 + 1];
	const size_t digits = HASH128_SIZE * 2;
	uint8_t hash[HASH128_SIZE];

	(void)r;
	(void)e;
	assert_string_equal(method, "pool.hash");
	assert_int_equal(id, ++taken);
	hash128_keyed(&key, mem, BLOCK, hash);
	for (unsigned i = 0; i < 2 * asked_for[id - 1]; i++) {
		hex_encode(hash, sizeof(hash), text + i * digits);
		if (i % 2)
			text[i * digits] = text[i * digits] == '0' ? '1' : '0';
	}
	*result = json_object_new_object();
	json_object_object_add(*result, "hashes", json_object_new_string(text));
	return 0;
}

bool
remote_is_broken(struct remote *r)
{
	(void)r;
	return false;
}

bool
holes_mapped_at(const void *addr, const struct stat *st)
{
	(void)addr;
	(void)st;
	return false;
}

int
remote_beat(struct remote *r, struct err *e)
{
	(void)r;
	(void)e;
	return 0;
}

static bool
next_small(void *arg, uint64_t off, uint64_t max, struct range *piece)
{
	(void)arg;
	(void)max;
	piece->off = (off + STRIDE - 1) / STRIDE * STRIDE;
	piece->len = PIECE;
	return piece->off < (uint64_t)COUNT * STRIDE;
}

static int
differ(void *arg, uint64_t off, uint64_t len, struct err *e)
{
	(void)arg;
	(void)e;
	assert_int_equal(off % STRIDE, BLOCK);
	assert_int_equal(len, BLOCK);
	differing++;
	return 0;
}

static void
walk_once(void)
{
	struct hashwalk w = {.fd = -1,
			     .holes_fd = -1,
			     .size = (uint64_t)COUNT * STRIDE,
			     .block = BLOCK,
			     .next = next_small,
			     .differ = differ};
	struct err e;

	err_clear(&e);
	w.mem = mem;
	requests = differing = 0;
	taken = 0;
	memset(&key, 0, sizeof(key));
	memset(key_text, 0, sizeof(key_text));
	assert_int_equal(hashwalk_run(&w, &e), 0);
	assert_int_equal(differing, COUNT);
	assert_int_equal(taken, requests);
	assert_in_range(requests, COUNT / RANGES, COUNT / 32);
}

static void
test_small_pieces_go_in_bursts(void **state)
{
	char before[sizeof(key_text)];

	(void)state;
	mem = calloc(COUNT, STRIDE);
	assert_non_null(mem);
	walk_once();
	takes_key = true;
	walk_once();
	memcpy(before, key_text, sizeof(before));
	walk_once();
	assert_string_not_equal(key_text, before);
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_pieces_go_in_bursts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
