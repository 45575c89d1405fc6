/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control channel of a target that answers late, or more than it was asked: no answer is taken
 * for that to another request, and the session is given up for the reason that it has. And what a
 * target of an earlier version does not tell is not asked of it.
 */
#include "unit.h"

#include <stdio.h>

#include "channel.h"
#include "clock.h"
#include "remote.h"
#include "stage.h"

int __wrap_channel_open(const struct channel_options *o, uint64_t deadline_ns, struct channel **out,
			struct err *e);
void __wrap_channel_bound(struct channel *c, const _Atomic uint64_t *until);
void __wrap_channel_free(struct channel *c);
int __wrap_channel_write(struct channel *c, const void *data, size_t len, uint64_t deadline_ns,
			 struct err *e);
int __wrap_channel_read(struct channel *c, void *buf, size_t size, uint64_t deadline_ns,
			size_t *got, struct err *e);

static char said[1024];    /* by the target, and not read */
static unsigned written;   /* requests */
static char request[1024]; /* the last one, its begin */
static struct remote *session;
static struct err err;

int
__wrap_channel_open(const struct channel_options *o, uint64_t deadline_ns, struct channel **out,
		    struct err *e)
{
	(void)o;
	(void)deadline_ns;
	(void)e;
	*out = NULL;
	return 0;
}

void
__wrap_channel_bound(struct channel *c, const _Atomic uint64_t *until)
{
	(void)c;
	(void)until;
}

void
__wrap_channel_free(struct channel *c)
{
	(void)c;
}

int
__wrap_channel_write(struct channel *c, const void *data, size_t len, uint64_t deadline_ns,
		     struct err *e)
{
	size_t n = len < sizeof(request) - 1 ? len : sizeof(request) - 1;

	(void)c;
	(void)deadline_ns;
	(void)e;
	memcpy(request, data, n);
	request[n] = '\0';
	written++;
	return 0;
}

/* What is not there stays away till any deadline. */
int
__wrap_channel_read(struct channel *c, void *buf, size_t size, uint64_t deadline_ns, size_t *got,
		    struct err *e)
{
	size_t len = strlen(said);

	(void)c;
	(void)deadline_ns;
	if (len == 0)
		return err_set(e, REPL_E_TIMEOUT, "timed out");
	*got = len < size ? len : size;
	memcpy(buf, said, *got);
	memmove(said, said + *got, len - *got + 1);
	return 0;
}

/* The target says the answer to the request of that number. */
static void
answers(int id, const char *result)
{
	size_t len = strlen(said);

	(void)snprintf(said + len, sizeof(said) - len,
		       "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":%s}\n", id, result);
}

static int
call(const char *method)
{
	err_clear(&err);
	return remote_call_by(session, method, json_object_new_object(), clock_deadline(1000), NULL,
			      &err);
}

/* One that nobody waits for to the end. */
static int
ping(void)
{
	const _Atomic int cancel = 1;

	err_clear(&err);
	return remote_ping(session, json_object_new_object(), 1000, &cancel, &err);
}

/* It has greeted; the next request is 2. */
static int
begin(void **state)
{
	const struct repl_config config = {.connect_timeout_ms = 1000, .op_timeout_ms = 1000};
	const struct target target = {.host = "far"};

	(void)state;
	said[0] = '\0';
	answers(1, "{\"version\":1,\"heartbeat_ms\":500}");
	return remote_new(&config, &target, NULL, &session, &err);
}

static int
end(void **state)
{
	(void)state;
	remote_free(session, 0);
	return 0;
}

static void
late_answer_to_a_ping_is_that(void **state)
{
	(void)state;
	assert_int_equal(ping(), 0);
	answers(2, "{}");
	answers(3, "{}");
	assert_int_equal(call("status"), 0);
	/* One that has come is awaited no more. */
	answers(4, "{}");
	assert_int_equal(ping(), 0);
	answers(5, "{}");
	assert_int_equal(call("status"), 0);
}

/* Nothing that comes later can be told from the answers to what follows. */
static void
ping_without_answer_ends_it(void **state)
{
	(void)state;
	assert_int_equal(ping(), 0);
	assert_int_equal(call("status"), REPL_E_TIMEOUT);
	assert_non_null(strstr(err.text, "the answer to status"));
	written = 0;
	answers(2, "{}");
	answers(3, "{}");
	answers(4, "{}");
	assert_int_equal(call("status"), REPL_E_LOST);
	assert_int_equal(written, 0);
}

static void
answer_to_what_was_not_asked_ends_it(void **state)
{
	(void)state;
	answers(2, "{}");
	answers(3, "{}");
	assert_int_equal(call("status"), 0);
	written = 0;
	assert_int_equal(call("status"), REPL_E_PROTOCOL);
	assert_non_null(strstr(err.text, "was not asked"));
	assert_int_equal(call("status"), REPL_E_LOST);
	assert_int_equal(written, 0);
}

/* The beginning of one is enough; and so is a ping, or the first of several requests, to see it. */
static void
part_of_an_answer_ends_it(void **state)
{
	int64_t id;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		answers(2, "{}");
		strcat(said, "{");
		assert_int_equal(call("status"), 0);
		err_clear(&err);
		assert_int_equal(
			i ? remote_post(session, "status", json_object_new_object(), &id, &err)
			  : ping(),
			REPL_E_PROTOCOL);
		assert_int_equal(end(state), 0);
		assert_int_equal(begin(state), 0);
	}
}

/* Requests that are on their way together are answered together. */
static void
answers_to_several_may_come_at_once(void **state)
{
	int64_t id[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			remote_post(session, "status", json_object_new_object(), &id[i], &err), 0);
	answers(2, "{}");
	answers(3, "{}");
	assert_int_equal(remote_take(session, "status", id[0], NULL, &err), 0);
	assert_int_equal(remote_post(session, "status", json_object_new_object(), &id[0], &err), 0);
	assert_int_equal(remote_take(session, "status", id[1], NULL, &err), 0);
	answers(4, "{}");
	assert_int_equal(remote_take(session, "status", id[0], NULL, &err), 0);
	answers(5, "{}");
	assert_int_equal(call("status"), 0);
}

/* The target says of an opening what each version does, and what else is new. */
static void
answers_opening(int id, const char *more)
{
	char result[900];

	(void)snprintf(result, sizeof(result),
		       "{\"name\":\"p\",\"size\":4096,\"uuid\":\"%s\",\"state\":\"unknown\","
		       "\"generation\":\"%s\",\"history\":[],\"writer_open\":true,"
		       "\"writer\":\"\",\"created\":1,\"updated\":1,\"class\":\"page\","
		       "\"filesystem\":\"ext4\",\"sidecar\":\"ok\",\"epoch\":1,"
		       "\"profile\":{}%s}",
		       "11111111-1111-1111-1111-111111111111",
		       "22222222-2222-2222-2222-222222222222", more);
	answers(id, result);
}

static int
opening(enum remote_mode mode, const char *more)
{
	answers_opening(2, more);
	err_clear(&err);
	return remote_pool_open(session, "p", mode, &err);
}

/* A POSITION would end its lane there at the first drain, and so would that of each reconnect. */
static void
queue_to_a_target_without_positions_is_a_version(void **state)
{
	static const struct {
		bool queued;
		enum remote_mode mode;
		const char *more;
		int rc;
	} cases[] = {
		{true, REMOTE_WRITE, "", REPL_E_VERSION},
		{true, REMOTE_WRITE, ",\"journal_max\":0", 0},
		{true, REMOTE_READ, "", 0},
		{false, REMOTE_WRITE, "", 0},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(end(state), 0);
		assert_int_equal(begin(state), 0);
		if (cases[i].queued)
			remote_queue(session);
		assert_int_equal(opening(cases[i].mode, cases[i].more), cases[i].rc);
		if (cases[i].rc)
			assert_non_null(strstr(err.text, "repld is older"));
	}
}

/* Only where it is asked for, of a writer; a target of an earlier version begins one anew. */
static void
a_journal_is_resumed_where_the_target_says_so(void **state)
{
	static const struct {
		const char *answer;
		int rc;
		unsigned ahead;
	} cases[] = {
		{"{}", 0, 0},
		{"{\"resumed\":false,\"ahead\":16}", 0, 0},
		{"{\"resumed\":true}", 0, 1},
		{"{\"resumed\":true,\"ahead\":16}", 0, 16},
		{"{\"resumed\":true,\"ahead\":0}", REPL_E_PROTOCOL, 0},
		{"{\"resumed\":true,\"ahead\":true}", REPL_E_PROTOCOL, 0},
		{"{\"resumed\":7}", REPL_E_PROTOCOL, 0},
	};
	uint64_t ahead;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(end(state), 0);
		assert_int_equal(begin(state), 0);
		assert_int_equal(opening(REMOTE_READ, ""), 0);
		assert_null(strstr(request, "resume"));
		assert_int_equal(end(state), 0);
		assert_int_equal(begin(state), 0);
		assert_int_equal(opening(REMOTE_WRITE, ""), 0);
		assert_null(strstr(request, "resume"));
		assert_int_equal(end(state), 0);
		assert_int_equal(begin(state), 0);
		remote_keep_journal(session);
		assert_int_equal(opening(REMOTE_WRITE, ",\"journal_max\":65536"), 0);
		assert_non_null(strstr(request, "\"resume\":true"));
		answers(3, cases[i].answer);
		assert_int_equal(remote_journal_resume(session, 4096, &ahead, &err), cases[i].rc);
		assert_non_null(strstr(request, "\"resume\":true"));
		assert_true(cases[i].rc || ahead == cases[i].ahead);
	}
}

/* A target of an earlier version is told no key. */
static void
a_key_is_drawn_for_who_takes_one(void **state)
{
	static const struct {
		const char *more;
		int rc;
		bool takes;
	} cases[] = {
		{",\"hash_key\":true", 0, true},
		{"", 0, false},
		{",\"hash_key\":false", 0, false},
		{",\"hash_key\":1", REPL_E_PROTOCOL, false},
	};
	struct hash_key key[2];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(end(state), 0);
		assert_int_equal(begin(state), 0);
		assert_int_equal(opening(REMOTE_READ, cases[i].more), cases[i].rc);
		for (unsigned n = 0; n < 2; n++)
			assert_int_equal(hashkey_draw(&key[n], session, &err), 0);
		assert_int_equal(key[0].given, cases[i].takes);
		assert_int_equal(memcmp(&key[0], &key[1], sizeof(key[0])) != 0, cases[i].takes);
	}
}

#define HASH "00112233445566778899aabbccddeeff"

/* Of a pool of 8192 bytes. */
static void
what_a_journal_is_told_to_hold_is_checked(void **state)
{
	static const struct {
		const char *answer;
		int rc;
		unsigned count;
	} cases[] = {
		{"{\"ranges\":[],\"hashes\":\"\",\"bytes\":0,\"more\":false}", 0, 0},
		{"{\"ranges\":[[4096,4096],[0,1]],\"hashes\":\"" HASH HASH
		 "\",\"bytes\":5000,\"more\":true}",
		 0, 2},
		{"{\"ranges\":[[0,1]],\"hashes\":\"\",\"bytes\":9,\"more\":true}", REPL_E_PROTOCOL,
		 0},
		{"{\"ranges\":[[0,1]],\"hashes\":\"" HASH HASH "\",\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[[0,1]],\"hashes\":\"0011223344556677 899aabbccddeeff\","
		 "\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[[8192,1]],\"hashes\":\"" HASH "\",\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[[4096,4097]],\"hashes\":\"" HASH "\",\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[[4096,9223372036854775807]],\"hashes\":\"" HASH
		 "\",\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[[0,0]],\"hashes\":\"" HASH "\",\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[[-1,1]],\"hashes\":\"" HASH "\",\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[7],\"hashes\":\"" HASH "\",\"bytes\":9,\"more\":true}",
		 REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[],\"hashes\":\"\",\"bytes\":-1,\"more\":false}", REPL_E_PROTOCOL, 0},
		{"{\"ranges\":[],\"hashes\":\"\",\"bytes\":0}", REPL_E_PROTOCOL, 0},
	};
	static struct stage_kept kept[STAGE_KEPT_MAX];
	struct hash_key key = {.key = {0xab}};
	unsigned count;
	uint64_t bytes;
	int64_t id;
	bool more;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		answers(2 + (int)i, cases[i].answer);
		err_clear(&err);
		assert_int_equal(remote_journal_kept_ask(session, &key, &id, &err), 0);
		assert_int_equal(strstr(request, "\"key\":\"ab0000") != NULL, key.given);
		key.given = !key.given;
		assert_int_equal(
			remote_journal_kept(session, id, 8192, kept, &count, &bytes, &more, &err),
			cases[i].rc);
		if (cases[i].rc)
			continue;
		assert_int_equal(count, cases[i].count);
		assert_true(count == 0 || (kept[0].off == 4096 && kept[1].len == 1 && more &&
					   bytes == 5000 && kept[1].hash[15] == 0xff));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(late_answer_to_a_ping_is_that, begin, end),
		cmocka_unit_test_setup_teardown(a_key_is_drawn_for_who_takes_one, begin, end),
		cmocka_unit_test_setup_teardown(ping_without_answer_ends_it, begin, end),
		cmocka_unit_test_setup_teardown(answer_to_what_was_not_asked_ends_it, begin, end),
		cmocka_unit_test_setup_teardown(part_of_an_answer_ends_it, begin, end),
		cmocka_unit_test_setup_teardown(answers_to_several_may_come_at_once, begin, end),
		cmocka_unit_test_setup_teardown(queue_to_a_target_without_positions_is_a_version,
						begin, end),
		cmocka_unit_test_setup_teardown(a_journal_is_resumed_where_the_target_says_so,
						begin, end),
		cmocka_unit_test_setup_teardown(what_a_journal_is_told_to_hold_is_checked, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
