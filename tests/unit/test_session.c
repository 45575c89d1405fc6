/* SPDX-License-Identifier: BSD-3-Clause */
/* A session serves each request in its place and refuses all others with the next step. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "checksum.h"
#include "hex.h"
#include "session_client.h"
#include "target.h"

#define GEN "12345678-1234-4234-8234-123456789abc"
#define NIL "00000000-0000-0000-0000-000000000000"

/* ---- order ---- */

static void
hello_comes_first_and_once(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct json_object *o;
	uint64_t v;

	client_start(&c, &d->conf);
	call_refused(&c, REPL_E_PROTOCOL, "ping", "{}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.list", "{}");
	o = call(&c, REPL_OK, "hello", "{\"versions\":[7,1],\"later\":true}", NULL);
	assert_int_equal(control_get_u64(o, "version", 1, 1, &v, NULL), 0);
	assert_int_equal(control_get_u64(o, "heartbeat_timeout_ms", 5000, 5000, &v, NULL), 0);
	assert_true(control_has(o, "limits"));
	json_object_put(o);
	call_refused(&c, REPL_E_PROTOCOL, "hello", "{\"versions\":[1]}");
	call_ok(&c, "ping", "{}");
	call_ok(&c, "bye", "{}");
	assert_null(client_answer(&c));
	assert_int_equal(client_join(&c), REPL_OK);
}

static void
no_common_version_names_both(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct err e;

	client_start(&c, &d->conf);
	(void)call(&c, REPL_E_VERSION, "hello", "{\"versions\":[2,3]}", &e);
	assert_non_null(strstr(e.text, "2, 3"));
	assert_non_null(strstr(e.text, "target 1"));
	call_refused(&c, REPL_E_PROTOCOL, "ping", "{}");
	call_ok(&c, "hello", "{\"versions\":[1]}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
out_of_order_is_refused_and_survived(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	client_hello(&c, &d->conf, "t");
	call_refused(&c, REPL_E_PROTOCOL, "pool.mark", "{\"state\":\"up-to-date\"}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.hash", "{\"off\":0,\"block\":4096,\"count\":1}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.close", "{}");
	call_refused(&c, REPL_E_PROTOCOL, "lanes.open", "{}");
	call_refused(&c, REPL_E_PROTOCOL, "lanes.close", "{}");
	make_pool(&c, "a");
	make_pool(&c, "b");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"read\"}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.mark", "{\"state\":\"up-to-date\"}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.open", "{\"name\":\"b\",\"mode\":\"read\"}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.create", "{\"name\":\"c\",\"size\":4096}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.remove", "{\"name\":\"b\"}");
	call_refused(&c, REPL_E_PROTOCOL, "lanes.close", "{}");
	call_ok(&c, "pool.close", "{}");
	call_ok(&c, "pool.open", "{\"name\":\"b\",\"mode\":\"read\"}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
unknown_method_is_told(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct err e;

	client_hello(&c, &d->conf, "t");
	assert_null(call(&c, REPL_E_PROTOCOL, "pool.destroy", "{}", &e));
	assert_non_null(strstr(e.text, "pool.destroy"));
	call_ok(&c, "ping", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

/* ---- parameters ---- */

static void
wrong_params_are_named(void **state)
{
	static const struct {
		const char *method, *params, *names;
	} rows[] = {
		{"pool.create", "{}", "name"},
		{"pool.create", "{\"name\":7,\"size\":4096}", "name"},
		{"pool.create", "{\"name\":\"x\"}", "size"},
		{"pool.create", "{\"name\":\"x\",\"size\":0}", "size"},
		{"pool.create", "{\"name\":\"x\",\"size\":-4096}", "size"},
		{"pool.create", "{\"name\":\"x\",\"size\":\"4096\"}", "size"},
		{"pool.create", "{\"name\":\"x\",\"size\":4096.5}", "size"},
		{"pool.create", "{\"name\":\"x\",\"size\":4096,\"uuid\":\"no\"}", "uuid"},
		{"pool.create", "{\"name\":\"../x\",\"size\":4096}", "name"},
		{"pool.create", "{\"name\":\"/x\",\"size\":4096}", "name"},
		{"pool.create", "{\"name\":\"\",\"size\":4096}", "name"},
		{"pool.info", "{\"name\":\"a/../b\"}", "name"},
		{"pool.remove", "{\"name\":\"a\\u0000b\"}", "name"},
		{"pool.open", "{\"name\":\"a\",\"mode\":\"append\"}", "append"},
		{"pool.open", "{\"name\":\"a\"}", "mode"},
		{"pool.list", "{\"after\":[]}", "after"},
		{"probe", "{\"name\":\"..\"}", "name"},
	};
	struct target_dir *d = *state;
	struct client c;
	struct err e;

	client_hello(&c, &d->conf, "t");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)call(&c, REPL_E_INVAL, rows[i].method, rows[i].params, &e);
		if (!strstr(e.text, rows[i].names))
			fail_msg("%s: '%s' does not name %s", rows[i].params, e.text,
				 rows[i].names);
	}
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
wrong_hash_and_mark_are_refused(void **state)
{
	static const char *const hashes[] = {
		"{\"off\":1,\"block\":4096,\"count\":1}",
		"{\"off\":65536,\"block\":4096,\"count\":1}",
		"{\"off\":0,\"block\":4096,\"count\":17}",
		"{\"off\":0,\"block\":4096,\"count\":4097}",
		"{\"off\":0,\"block\":4096,\"count\":0}",
		"{\"off\":0,\"block\":2097152,\"count\":1}",
		"{\"off\":0,\"block\":5000,\"count\":1}",
		"{\"off\":9223372036854771712,\"block\":1048576,\"count\":4096}",
		"{\"off\":0,\"block\":1048576,\"count\":2}",
		"{\"block\":4096,\"ranges\":[]}",
		"{\"block\":4096,\"ranges\":[[0]]}",
		"{\"block\":4096,\"ranges\":[0,1]}",
		"{\"block\":4096,\"ranges\":[[0,1],[0,\"1\"]]}",
		"{\"block\":4096,\"ranges\":[[0,1],[-4096,1]]}",
		"{\"block\":4096,\"ranges\":[[0,1],[65536,1]]}",
		"{\"block\":4096,\"ranges\":[[0,1],[1,1]]}",
		"{\"block\":4096,\"ranges\":[[0,0]]}",
		"{\"block\":4096,\"ranges\":[[0,9223372036854775807],[0,1]]}",
		"{\"off\":0,\"count\":1,\"block\":4096,\"ranges\":5}",
	};
	static const char *const keys[] = {
		"5",
		"\"\"",
		"\"000102030405060708090a0b0c0d0e0\"",
		"\"000102030405060708090a0b0c0d0e0f0\"",
		"\"000102030405060708090a0b0c0d0e0f00\"",
		"\"000102030405060708090A0B0C0D0E0F\"",
		"\"000102030405060708090a0b0c0d0e0g\"",
	};
	static const char *const marks[] = {
		"{}",
		"{\"state\":\"fine\"}",
		"{\"state\":\"up-to-date\",\"generation\":\"1\"}",
		"{\"state\":\"up-to-date\",\"history\":[]}",
		"{\"state\":\"outdated\",\"generation\":\"" GEN "\",\"history\":[5]}",
		"{\"state\":\"outdated\",\"position\":9}",
		"{\"state\":\"up-to-date\",\"generation\":\"" GEN "\",\"position\":9}",
		"{\"state\":\"outdated\",\"generation\":\"" GEN "\",\"position\":0}",
		"{\"state\":\"outdated\",\"generation\":\"" GEN "\",\"position\":-1}",
		"{\"state\":\"outdated\",\"generation\":\"" GEN "\",\"position\":\"9\"}",
	};
	struct target_dir *d = *state;
	char params[128];
	struct client c;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		(void)snprintf(params, sizeof(params),
			       "{\"off\":0,\"block\":4096,\"count\":1,\"key\":%s}", keys[i]);
		call_refused(&c, REPL_E_INVAL, "pool.hash", params);
		call_refused(&c, REPL_E_INVAL, "journal.kept", params);
	}
	for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
		call_refused(&c, REPL_E_INVAL, "pool.hash", hashes[i]);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		call_refused(&c, REPL_E_INVAL, "pool.mark", marks[i]);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		call_refused(&c, REPL_E_INVAL, "journal.commit", marks[i]);
	call_ok(&c, "pool.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
	assert_state(&d->conf, "a", "up-to-date");
}

static void
invalid_request_keeps_the_session(void **state)
{
	static const char *const lines[] = {
		"{}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1]}\n",
	};
	struct target_dir *d = *state;
	struct client c;

	client_hello(&c, &d->conf, "t");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct json_object *o, *error, *code;

		client_send(&c, lines[i], strlen(lines[i]));
		o = client_answer(&c);
		assert_true(json_object_object_get_ex(o, "error", &error));
		assert_true(json_object_object_get_ex(error, "code", &code));
		assert_true(json_object_get_int(code) == CONTROL_INVALID_REQUEST ||
			    json_object_get_int(code) == CONTROL_INVALID_PARAMS);
		json_object_put(o);
	}
	call_ok(&c, "ping", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

/* ---- pools ---- */

static void
hash_of_zeros(struct client *c)
{
	static const uint8_t zeros[8192];
	struct json_object *o;
	const char *text;
	uint8_t hash[HASH128_SIZE];
	char want[2 * HASH128_SIZE + 1];
	struct hash_key key;

	/* The last block is cut to 4 KiB by the end of the pool. */
	o = call(c, REPL_OK, "pool.hash", "{\"off\":4096,\"block\":8192,\"count\":8}", NULL);
	assert_int_equal(control_get_text(o, "hashes", 4096, &text, NULL), 0);
	assert_int_equal(strlen(text), 8 * 2 * HASH128_SIZE);
	hash128(zeros, 8192, hash);
	hex_encode(hash, sizeof(hash), want);
	assert_memory_equal(text, want, 2 * HASH128_SIZE);
	hash128(zeros, 4096, hash);
	hex_encode(hash, sizeof(hash), want);
	assert_memory_equal(text + (size_t)7 * 2 * HASH128_SIZE, want, 2 * HASH128_SIZE);
	json_object_put(o);
	/* The same as a list: backwards, and the last one cut. */
	o = call(c, REPL_OK, "pool.hash", "{\"block\":8192,\"ranges\":[[61440,1],[0,2]]}", NULL);
	assert_int_equal(control_get_text(o, "hashes", 4096, &text, NULL), 0);
	assert_int_equal(strlen(text), 3 * 2 * HASH128_SIZE);
	assert_memory_equal(text, want, 2 * HASH128_SIZE);
	hash128(zeros, 8192, hash);
	hex_encode(hash, sizeof(hash), want);
	assert_memory_equal(text + 2 * (size_t)HASH128_SIZE, want, 2 * HASH128_SIZE);
	json_object_put(o);
	/* By a key. */
	hash_key_set(&key, (const uint8_t *)"0123456789abcdef");
	o = call(c, REPL_OK, "pool.hash",
		 "{\"block\":4096,\"off\":0,\"count\":1,"
		 "\"key\":\"30313233343536373839616263646566\"}",
		 NULL);
	assert_int_equal(control_get_text(o, "hashes", 4096, &text, NULL), 0);
	hash128_keyed(&key, zeros, 4096, hash);
	hex_encode(hash, sizeof(hash), want);
	assert_string_equal(text, want);
	json_object_put(o);
}

/* It has all of a generation up to a position, however its writer waits. */
static void
a_part_is_told_by_its_position(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct json_object *o;
	uint64_t v;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"waits\":true}");
	call_ok(&c, "pool.mark",
		"{\"state\":\"outdated\",\"generation\":\"" GEN "\",\"position\":9}");
	call_ok(&c, "pool.close", "{}");
	o = call(&c, REPL_OK, "pool.info", "{\"name\":\"a\"}", NULL);
	assert_text(o, "state", "unknown");
	assert_text(o, "generation", GEN);
	assert_int_equal(control_get_u64(o, "position", 9, 9, &v, NULL), 0);
	assert_false(control_has(o, "waited"));
	json_object_put(o);
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"waits\":true}");
	call_ok(&c, "pool.mark", "{\"state\":\"up-to-date\",\"generation\":\"" GEN "\"}");
	call_ok(&c, "pool.close", "{}");
	o = call(&c, REPL_OK, "pool.info", "{\"name\":\"a\"}", NULL);
	assert_text(o, "state", "up-to-date");
	assert_false(control_has(o, "position"));
	json_object_put(o);
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
pool_lives_from_create_to_remove(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct json_object *o;
	const char *uuid, *generation;
	uint64_t v;
	char mark[256];

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_refused(&c, REPL_E_EXISTS, "pool.create", "{\"name\":\"a\",\"size\":4096}");
	o = call(&c, REPL_OK, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}", NULL);
	assert_int_equal(control_get_u64(o, "epoch", 1, 1, &v, NULL), 0);
	assert_int_equal(control_get_u64(o, "size", POOL_SIZE, POOL_SIZE, &v, NULL), 0);
	assert_true(control_has(o, "profile"));
	json_object_put(o);
	(void)snprintf(mark, sizeof(mark),
		       "{\"state\":\"inconsistent\",\"generation\":\"%s\",\"history\":[\"%s\"]}",
		       GEN, GEN);
	o = call(&c, REPL_OK, "pool.mark", mark, NULL);
	assert_text(o, "state", "inconsistent");
	assert_text(o, "generation", GEN);
	json_object_put(o);
	hash_of_zeros(&c);
	call_ok(&c, "pool.mark", "{\"state\":\"up-to-date\"}");
	call_ok(&c, "pool.close", "{}");
	o = call(&c, REPL_OK, "pool.info", "{\"name\":\"a\"}", NULL);
	assert_text(o, "state", "up-to-date");
	assert_text(o, "generation", GEN); /* a mark without chain leaves it alone */
	json_object_put(o);
	/* Who does not say that it is one does not know. */
	call_ok(&c, "pool.promote", "{\"name\":\"a\"}");
	call_refused(&c, REPL_E_REFUSED, "pool.remove", "{\"name\":\"a\",\"force\":true}");
	call_refused(&c, REPL_E_REFUSED, "pool.remove", "{\"name\":\"a\",\"primary\":false}");
	/* Nor does who has looked at another one of the name. */
	call_refused(&c, REPL_E_REFUSED, "pool.remove",
		     "{\"name\":\"a\",\"primary\":true,\"uuid\":\"" GEN "\",\"generation\":\"" GEN
		     "\"}");
	call_refused(&c, REPL_E_INVAL, "pool.remove",
		     "{\"name\":\"a\",\"primary\":true,\"uuid\":\"" GEN "\"}");
	o = call(&c, REPL_OK, "pool.info", "{\"name\":\"a\"}", NULL);
	assert_int_equal(control_get_text(o, "uuid", 36, &uuid, NULL), 0);
	assert_int_equal(control_get_text(o, "generation", 36, &generation, NULL), 0);
	(void)snprintf(mark, sizeof(mark),
		       "{\"name\":\"a\",\"primary\":true,\"uuid\":\"%s\",\"generation\":\"%s\"}",
		       uuid, generation);
	json_object_put(o);
	/* Nor who has seen none. */
	call_refused(&c, REPL_E_REFUSED, "pool.remove",
		     "{\"name\":\"a\",\"primary\":true,\"uuid\":\"" NIL "\",\"generation\":\"" NIL
		     "\"}");
	call_ok(&c, "pool.remove", mark);
	call_refused(&c, REPL_E_NOT_FOUND, "pool.info", "{\"name\":\"a\"}");
	call_ok(&c, "bye", "{}");
	assert_int_equal(client_join(&c), REPL_OK);
}

static void
second_writer_learns_who_holds(void **state)
{
	struct target_dir *d = *state;
	struct client one, two;
	struct err e;

	client_hello(&one, &d->conf, "ops@one pid 11");
	make_pool(&one, "a");
	call_ok(&one, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	client_hello(&two, &d->conf, "ops@two pid 22");
	(void)call(&two, REPL_E_BUSY, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}", &e);
	assert_non_null(strstr(e.text, "ops@one pid 11"));
	call_refused(&two, REPL_E_BUSY, "pool.remove", "{\"name\":\"a\"}");
	call_ok(&two, "pool.open", "{\"name\":\"a\",\"mode\":\"read\"}");
	call_ok(&two, "pool.close", "{}");
	call_ok(&one, "pool.close", "{}");
	call_ok(&two, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	assert_int_equal(client_hangup(&one), REPL_OK);
	assert_int_equal(client_hangup(&two), REPL_E_LOST);
}

/* How many a page has; the last one's name is *after then. */
static size_t
list_page(struct client *c, const char *method, char after[TARGET_POOL_MAX + 1], bool *more)
{
	char params[TARGET_POOL_MAX + 32] = "{}";
	struct json_object *o, *list, *last;
	size_t count;

	if (after[0])
		(void)snprintf(params, sizeof(params), "{\"after\":\"%s\"}", after);
	o = call(c, REPL_OK, method, params, NULL);
	assert_int_equal(control_get_array(o, "pools", 4096, &list, NULL), 0);
	assert_int_equal(control_get_bool(o, "more", more, NULL), 0);
	count = json_object_array_length(list);
	assert_true(count > 0);
	last = json_object_array_get_idx(list, count - 1);
	(void)snprintf(after, TARGET_POOL_MAX + 1, "%s",
		       json_object_get_string(json_object_object_get(last, "name")));
	json_object_put(o);
	return count;
}

/* Another name of pool "p". */
static void
link_pool(const struct target_dir *d, const char *name)
{
	char old[128], new[2 * TARGET_POOL_MAX];

	for (unsigned i = 0; i < 2; i++) {
		const char *suffix = i ? ".repl" : "";

		(void)snprintf(old, sizeof(old), "%s/p%s", d->path, suffix);
		(void)snprintf(new, sizeof(new), "%s/%s%s", d->path, name, suffix);
		assert_int_equal(link(old, new), 0);
	}
}

/* Of those with long names, of pools and of writers, an answer has room for less. */
static void
list_goes_on_after_a_page(void **state)
{
	struct target_dir *d = *state;
	char after[TARGET_POOL_MAX + 1] = "", name[TARGET_POOL_MAX + 1], writer[128] = "";
	struct client c;
	size_t count;
	bool more;

	memset(writer, 'w', sizeof(writer) - 1);
	client_hello(&c, &d->conf, writer);
	call_ok(&c, "pool.create", "{\"name\":\"p\",\"size\":4096}");
	call_ok(&c, "pool.open", "{\"name\":\"p\",\"mode\":\"write\"}");
	call_ok(&c, "pool.close", "{}");
	for (int i = 0; i < 600; i++) {
		(void)snprintf(name, sizeof(name), "p%0*d", i < 300 ? 199 : 3, i);
		link_pool(d, name);
	}
	count = list_page(&c, "status", after, &more);
	assert_true(more && count < 250);
	while (more) {
		size_t n = list_page(&c, "pool.list", after, &more);

		assert_true(n <= 256);
		count += n;
	}
	assert_int_equal(count, 601);
	assert_string_equal(after, "p599");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
probe_tells_facts_with_sources(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct json_object *o, *domain;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	json_object_put(call(&c, REPL_OK, "probe", "{}", NULL));
	o = call(&c, REPL_OK, "probe", "{\"name\":\"a\"}", NULL);
	assert_true(json_object_object_get_ex(o, "persistence-domain", &domain));
	assert_true(control_has(domain, "source"));
	assert_true(control_has(o, "facts"));
	json_object_put(o);
	assert_int_equal(client_hangup(&c), REPL_OK);
}

/* ---- others ---- */

static void
status_shows_every_session(void **state)
{
	struct target_dir *d = *state;
	struct client one, two;
	struct json_object *o, *list, *entry = NULL;
	const char *peer;

	client_hello(&one, &d->conf, "one\\u00e9");
	make_pool(&one, "a");
	client_hello(&two, &d->conf, "two");
	call_ok(&two, "pool.open", "{\"name\":\"a\",\"mode\":\"read\"}");
	o = call(&two, REPL_OK, "status", "{}", NULL);
	assert_int_equal(control_get_array(o, "sessions", 8, &list, NULL), 0);
	assert_int_equal(json_object_array_length(list), 2);
	for (size_t i = 0; i < 2; i++) {
		entry = json_object_array_get_idx(list, i);
		assert_int_equal(control_get_text(entry, "peer", 96, &peer, NULL), 0);
		if (strcmp(peer, "two") == 0)
			assert_text(entry, "pool", "a");
		else
			assert_string_equal(peer, "one??");
	}
	assert_int_equal(control_get_array(o, "pools", 64, &list, NULL), 0);
	assert_int_equal(json_object_array_length(list), 1);
	json_object_put(o);
	assert_int_equal(client_hangup(&one), REPL_OK);
	o = call(&two, REPL_OK, "status", "{}", NULL);
	assert_int_equal(control_get_array(o, "sessions", 8, &list, NULL), 0);
	assert_int_equal(json_object_array_length(list), 1);
	json_object_put(o);
	assert_int_equal(client_hangup(&two), REPL_OK);
}

static void
damaged_entry_is_nobodys(void **state)
{
	static const char *const entries[] = {"{\"session\":null}", "{\"session\":7}",
					      "{\"session\":[[]]}", "{\"peer\":\"one\"}"};
	struct target_dir *d = *state;
	struct client one, two;
	char path[128];

	client_hello(&one, &d->conf, "one");
	client_hello(&two, &d->conf, "two");
	(void)snprintf(path, sizeof(path), "%s/.repld/0.json", d->path);
	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		struct json_object *o, *list;
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		(void)fputs(entries[i], f);
		assert_int_equal(fclose(f), 0);
		o = call(&two, REPL_OK, "status", "{}", NULL);
		assert_int_equal(control_get_array(o, "sessions", 8, &list, NULL), 0);
		assert_int_equal(json_object_array_length(list), 2);
		json_object_put(o);
	}
	assert_int_equal(client_hangup(&one), REPL_OK);
	assert_int_equal(client_hangup(&two), REPL_OK);
}

static void
sessions_are_limited(void **state)
{
	struct target_dir *d = *state;
	struct client one, two;

	d->conf.sessions_max = 1;
	client_hello(&one, &d->conf, "one");
	client_start(&two, &d->conf);
	call_refused(&two, REPL_E_LIMIT, "hello", "{\"versions\":[1]}");
	assert_int_equal(client_hangup(&one), REPL_OK);
	call_ok(&two, "hello", "{\"versions\":[1]}");
	assert_int_equal(client_hangup(&two), REPL_OK);
}

static void
missing_pool_dir_is_told_to_the_peer(void **state)
{
	struct target_dir *d = *state;
	struct conf conf = d->conf;
	struct client c;
	struct err e;

	conf.pool_dir = NULL;
	client_start(&c, &conf);
	(void)call(&c, REPL_E_CONFIG, "hello", "{\"versions\":[1]}", &e);
	assert_non_null(strstr(e.text, "pool-dir"));
	assert_int_equal(client_hangup(&c), REPL_OK);
}

/* ---- lanes ---- */

static const char lanes_params[] = "{\"count\":9,\"msg_size\":1048576,\"depth\":4,"
				   "\"providers\":[\"verbs\",\"tcp\"]}";

static void
lanes_are_granted_within_limits(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct json_object *o, *list;
	uint64_t v;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	o = call(&c, REPL_OK, "lanes.open", lanes_params, NULL);
	assert_text(o, "provider", "tcp");
	assert_text(o, "address", "127.0.0.1");
	assert_int_equal(control_get_u64(o, "port", 1, 65535, &v, NULL), 0);
	assert_int_equal(control_get_u64(o, "msg_size", 16384, 16384, &v, NULL), 0);
	assert_int_equal(control_get_array(o, "lanes", 64, &list, NULL), 0);
	assert_int_equal(json_object_array_length(list), 4);
	json_object_put(o);
	call_refused(&c, REPL_E_PROTOCOL, "lanes.open", lanes_params);
	call_ok(&c, "lanes.close", "{}");
	call_refused(&c, REPL_E_PROTOCOL, "lanes.close", "{}");
	call_ok(&c, "lanes.open", lanes_params);
	call_ok(&c, "pool.close", "{}");
	call_refused(&c, REPL_E_PROTOCOL, "lanes.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
	assert_state(&d->conf, "a", "up-to-date");
}

static void
lanes_that_cannot_be_are_refused(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct rlimit old, low;
	struct err e;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"read\"}");
	(void)call(&c, REPL_E_REFUSED, "lanes.open",
		   "{\"count\":1,\"msg_size\":4096,\"depth\":2,\"providers\":[\"verbs\"]}", &e);
	assert_non_null(strstr(e.text, "verbs"));
	call_refused(&c, REPL_E_INVAL, "lanes.open",
		     "{\"count\":0,\"msg_size\":4096,\"depth\":2,\"providers\":[\"tcp\"]}");
	call_refused(&c, REPL_E_INVAL, "lanes.open",
		     "{\"count\":1,\"msg_size\":100,\"depth\":2,\"providers\":[\"tcp\"]}");
	call_refused(&c, REPL_E_INVAL, "lanes.open",
		     "{\"count\":1,\"msg_size\":4096,\"depth\":2,\"providers\":[1]}");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 40;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	(void)call(&c, REPL_E_LIMIT, "lanes.open", lanes_params, &e);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_non_null(strstr(e.text, "RLIMIT_NOFILE"));
	assert_non_null(strstr(e.text, "40"));
	assert_non_null(strstr(e.text, "64"));
	assert_int_equal(client_hangup(&c), REPL_OK);
}

/* The holes of a set's first part say nothing about the pool. */
static void
all_of_a_set_is_data(void **state)
{
	struct target_dir *d = *state;
	struct json_object *o, *rows;
	char path[128], want[2 * HASH128_SIZE + 1], keyed[2 * HASH128_SIZE + 1];
	uint8_t block[4096], hash[HASH128_SIZE];
	struct hash_key key;
	bool takes = false;
	const char *text;
	struct client c;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/s", d->path);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("PMEMPOOLSET\nOPTION NOHDRS\n2M p0\n2M p1\n", f);
	assert_int_equal(fclose(f), 0);
	client_hello(&c, &d->conf, "t");
	call_ok(&c, "pool.create", "{\"name\":\"s\",\"size\":4194304}");
	(void)snprintf(path, sizeof(path), "%s/p1", d->path);
	f = fopen(path, "r+");
	assert_non_null(f);
	memset(block, 'x', sizeof(block));
	assert_int_equal(fwrite(block, sizeof(block), 1, f), 1);
	assert_int_equal(fclose(f), 0);
	hash128(block, sizeof(block), hash);
	hex_encode(hash, sizeof(hash), want);
	hash_key_set(&key, (const uint8_t *)"0123456789abcdef");
	hash128_keyed(&key, block, sizeof(block), hash);
	hex_encode(hash, sizeof(hash), keyed);

	o = call(&c, REPL_OK, "pool.open", "{\"name\":\"s\",\"mode\":\"write\"}", NULL);
	assert_true(control_get_bool(o, "hash_key", &takes, NULL) == 0 && takes);
	json_object_put(o);
	o = call(&c, REPL_OK, "pool.hash", "{\"off\":2097152,\"block\":4096,\"count\":1}", NULL);
	assert_int_equal(control_get_text(o, "hashes", 4096, &text, NULL), 0);
	assert_string_equal(text, want);
	json_object_put(o);
	o = call(&c, REPL_OK, "pool.hash",
		 "{\"off\":2097152,\"block\":4096,\"count\":1,"
		 "\"key\":\"30313233343536373839616263646566\"}",
		 NULL);
	assert_int_equal(control_get_text(o, "hashes", 4096, &text, NULL), 0);
	assert_string_equal(text, keyed);
	json_object_put(o);
	o = call(&c, REPL_OK, "pool.extents", "{\"off\":0,\"grain\":4096}", NULL);
	assert_int_equal(control_get_array(o, "extents", 16, &rows, NULL), 0);
	assert_string_equal(json_object_to_json_string_ext(rows, JSON_C_TO_STRING_PLAIN),
			    "[[0,4194304]]");
	json_object_put(o);
	call_ok(&c, "pool.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

/* There for the next session, or gone; if it is there it is removed. */
static void
assert_left(const struct conf *conf, const char *name, bool there)
{
	struct client c;
	char params[64];

	client_hello(&c, conf, "next");
	(void)snprintf(params, sizeof(params), "{\"name\":\"%s\"}", name);
	if (there)
		call_ok(&c, "pool.remove", params);
	else
		call_refused(&c, REPL_E_NOT_FOUND, "pool.info", params);
	assert_int_equal(client_hangup(&c), REPL_OK);
}

#define PROVISIONAL "{\"name\":\"d/a\",\"size\":4096,\"provisional\":true}"
#define COMES_AGAIN "{\"name\":\"d/a\",\"size\":4096,\"provisional\":true,\"again\":true}"
#define WRITE_IT    "{\"name\":\"d/a\",\"mode\":\"write\"}"

static void
a_provisional_pool_goes_unless_something_is_recorded(void **state)
{
	static const struct {
		const char *calls[4][2]; /* after it was made */
		bool stays;
	} rows[] = {
		{{{"pool.open", WRITE_IT}, {"pool.close", "{}"}}, false},
		{{{"pool.open", WRITE_IT}}, false},
		{{{"ping", "{}"}}, false},
		{{{"bye", "{}"}}, false},
		{{{NULL}}, false},
		{{{"pool.open", "{\"name\":\"d/a\",\"mode\":\"read\"}"}}, false},
		{{{"pool.create", "{\"name\":\"b\",\"size\":4096,\"provisional\":true}"},
		  {"ping", "{}"}},
		 false},
		{{{"pool.open", WRITE_IT}, {"pool.mark", "{\"state\":\"inconsistent\"}"}}, true},
		{{{"pool.open", WRITE_IT},
		  {"pool.mark", "{\"state\":\"up-to-date\",\"generation\":"
				"\"11111111-1111-4111-8111-111111111111\"}"},
		  {"pool.close", "{}"}},
		 true},
		{{{"pool.remove", "{\"name\":\"d/a\"}"},
		  {"pool.create", "{\"name\":\"d/a\",\"size\":4096}"}},
		 true},
	};
	struct target_dir *d = *state;
	struct client c;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		client_hello(&c, &d->conf, "t");
		call_ok(&c, "pool.create", PROVISIONAL);
		for (size_t k = 0; k < 4 && rows[i].calls[k][0]; k++)
			call_ok(&c, rows[i].calls[k][0], rows[i].calls[k][1]);
		(void)client_hangup(&c);
		assert_left(&d->conf, "d/a", rows[i].stays);
		assert_left(&d->conf, "b", false);
	}
}

/* It may have gone before the pool was made, and who asks anew is to find it. */
static void
a_pool_stays_for_who_comes_again(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	for (unsigned told = 0; told < 2; told++) {
		client_hello(&c, &d->conf, "t");
		call_ok(&c, "pool.create", COMES_AGAIN);
		if (told)
			call_ok(&c, "ping", "{}");
		(void)client_hangup(&c);
		assert_left(&d->conf, "d/a", !told);
	}
}

static void
a_provisional_pool_that_another_has_opened_is_that_ones(void **state)
{
	struct target_dir *d = *state;
	struct client c, other;

	client_hello(&c, &d->conf, "t");
	client_hello(&other, &d->conf, "other");
	call_ok(&c, "pool.create", PROVISIONAL);
	call_ok(&other, "pool.open", WRITE_IT);
	call_refused(&c, REPL_E_BUSY, "pool.open", WRITE_IT);
	assert_int_equal(client_hangup(&c), REPL_OK);
	call_ok(&other, "pool.mark", "{\"state\":\"up-to-date\"}");
	call_ok(&other, "pool.close", "{}");
	assert_int_equal(client_hangup(&other), REPL_OK);
	assert_left(&d->conf, "d/a", true);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(hello_comes_first_and_once),
		T(no_common_version_names_both),
		T(out_of_order_is_refused_and_survived),
		T(unknown_method_is_told),
		T(wrong_params_are_named),
		T(wrong_hash_and_mark_are_refused),
		T(all_of_a_set_is_data),
		T(invalid_request_keeps_the_session),
		T(a_part_is_told_by_its_position),
		T(pool_lives_from_create_to_remove),
		T(second_writer_learns_who_holds),
		T(a_provisional_pool_goes_unless_something_is_recorded),
		T(a_pool_stays_for_who_comes_again),
		T(a_provisional_pool_that_another_has_opened_is_that_ones),
		T(list_goes_on_after_a_page),
		T(probe_tells_facts_with_sources),
		T(status_shows_every_session),
		T(damaged_entry_is_nobodys),
		T(sessions_are_limited),
		T(missing_pool_dir_is_told_to_the_peer),
		T(lanes_are_granted_within_limits),
		T(lanes_that_cannot_be_are_refused),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	(void)unsetenv("SSH_CONNECTION");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
