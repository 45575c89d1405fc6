/* SPDX-License-Identifier: BSD-3-Clause */
/* A session ends on silence and on what it can't trust, and never calls a torn pool whole. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "clock.h"
#include "pool.h"
#include "registry.h"
#include "session_client.h"

/* ---- looks at what is recorded ---- */

static const char *_Atomic looks_in; /* a pool directory, when a session next unmaps its pool */
static enum sidecar_state seen;

void __real_pmem_map_free(struct pmem_map *m);
void __wrap_pmem_map_free(struct pmem_map *m);

/* When nothing of the lanes and the journal is left. */
void
__wrap_pmem_map_free(struct pmem_map *m)
{
	struct pool_store *store = NULL;
	struct pool_info info;

	if (m && looks_in) {
		assert_int_equal(pool_store_new(looks_in, &store, NULL), 0);
		assert_int_equal(pool_info(store, "a", &info, NULL), 0);
		seen = info.meta.state;
		pool_store_free(store);
		looks_in = NULL;
	}
	__real_pmem_map_free(m);
}

/* ---- a disk that takes long, once ---- */

static _Atomic int slow_ms; /* the next tidying of a journal, which is due then */

uint64_t __real_pool_journal_tidy_at(const struct pool *p);
uint64_t __wrap_pool_journal_tidy_at(const struct pool *p);
bool __wrap_pool_journal_tidy(struct pool *p);
bool __real_pool_journal_tidy(struct pool *p);

uint64_t
__wrap_pool_journal_tidy_at(const struct pool *p)
{
	return atomic_load(&slow_ms) ? 0 : __real_pool_journal_tidy_at(p);
}

bool
__wrap_pool_journal_tidy(struct pool *p)
{
	int ms = atomic_exchange(&slow_ms, 0);

	(void)poll(NULL, 0, ms);
	return ms > 0 || __real_pool_journal_tidy(p);
}

/* ---- a disk that stalls, or takes nothing ---- */

static _Atomic bool stalls; /* updates of the registry wait until it does not */
static _Atomic unsigned stalled;
static _Atomic int refuses;  /* what becomes of them; 0: they go through */
static _Atomic unsigned ups; /* how many there were */

int __real_registry_update(struct registry *r, const char *entry, struct err *e);
int __wrap_registry_update(struct registry *r, const char *entry, struct err *e);

int
__wrap_registry_update(struct registry *r, const char *entry, struct err *e)
{
	uint64_t deadline = clock_deadline(2 * WAIT_MS);

	if (atomic_load(&stalls))
		atomic_fetch_add(&stalled, 1);
	while (atomic_load(&stalls) && clock_left_ms(deadline) > 0)
		(void)poll(NULL, 0, 5);
	atomic_fetch_add(&ups, 1);
	if (atomic_load(&refuses))
		return err_set(e, atomic_load(&refuses), "status %d", atomic_load(&refuses));
	return __real_registry_update(r, entry, e);
}

/* ---- ends ---- */

static void
assert_ends_with_null_id(struct client *c)
{
	struct json_object *o = client_answer(c), *id;

	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "id", &id));
	assert_null(id);
	assert_true(control_has(o, "error"));
	json_object_put(o);
	assert_null(client_answer(c));
	assert_int_equal(client_join(c), REPL_E_PROTOCOL);
}

static void
broken_framing_ends_the_session(void **state)
{
	static const char *const lines[] = {
		"garbage\n",
		"\n",
		"[]\n",
		"{\"a\":1} {}\n",
		"\x16\x03\x01\x02\n",
		"{\"a\":\n",
		"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}\n",
	};
	struct target_dir *d = *state;
	struct client c;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		client_hello(&c, &d->conf, "t");
		client_send(&c, lines[i], strlen(lines[i]));
		assert_ends_with_null_id(&c);
	}
}

static void
huge_line_ends_the_session(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	char *huge = malloc(CONTROL_LINE_MAX + 1);

	assert_non_null(huge);
	memset(huge, 'a', CONTROL_LINE_MAX + 1);
	client_hello(&c, &d->conf, "t");
	client_send(&c, huge, CONTROL_LINE_MAX + 1);
	assert_ends_with_null_id(&c);
	free(huge);
}

static void
half_a_line_is_not_served(void **state)
{
	static const char half[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"pool.remove\","
				   "\"params\":{\"name\":\"a\"}}";
	struct target_dir *d = *state;
	struct client c;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	client_send(&c, half, strlen(half));
	assert_int_equal(client_hangup(&c), REPL_OK);
	assert_state(&d->conf, "a", "up-to-date");
}

static void
unclean_end_marks_the_pool_unknown(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	make_pool(&c, "b");
	make_pool(&c, "c");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	assert_int_equal(client_hangup(&c), REPL_E_LOST);
	assert_state(&d->conf, "a", "unknown");
	assert_logged(d, "end of file before pool.close, pool 'a' was open for writing");

	client_hello(&c, &d->conf, "t");
	call_ok(&c, "pool.open", "{\"name\":\"b\",\"mode\":\"write\"}");
	client_send(&c, "}\n", 2);
	assert_ends_with_null_id(&c);
	assert_state(&d->conf, "b", "unknown");

	client_hello(&c, &d->conf, "t");
	call_ok(&c, "pool.open", "{\"name\":\"c\",\"mode\":\"write\"}");
	call_ok(&c, "pool.mark", "{\"state\":\"inconsistent\"}");
	call_ok(&c, "bye", "{}");
	assert_int_equal(client_join(&c), REPL_OK);
	assert_state(&d->conf, "c", "inconsistent"); /* worse than unknown */
}

/* To take in what is left in lanes and journals may take long. */
static void
lost_writers_pool_is_unknown_before_it_is_closed(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	call_ok(&c, "pool.mark",
		"{\"state\":\"up-to-date\","
		"\"generation\":\"11111111-1111-4111-8111-111111111111\"}");
	looks_in = d->path;
	assert_int_equal(client_hangup(&c), REPL_E_LOST);
	assert_null(looks_in);
	assert_int_equal(seen, SIDECAR_UNKNOWN);
	assert_state(&d->conf, "a", "unknown");
}

static void
silence_ends_the_session(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	d->conf.idle_timeout_ms = 60;
	client_start(&c, &d->conf);
	assert_null(client_answer(&c));
	assert_int_equal(client_join(&c), REPL_E_TIMEOUT);
	assert_logged(d, "silent for 60 ms");

	/* A line that never ends is silence, too. */
	client_start(&c, &d->conf);
	client_send(&c, "{", 1);
	assert_null(client_answer(&c));
	assert_int_equal(client_join(&c), REPL_E_TIMEOUT);

	/* However it comes. */
	client_start(&c, &d->conf);
	for (int i = 0; i < 400 && send(c.fd, "{", 1, MSG_NOSIGNAL) == 1; i++)
		(void)poll(NULL, 0, 5);
	assert_int_equal(send(c.fd, "{", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(client_join(&c), REPL_E_TIMEOUT);
}

/* What came while the session was busy with itself was in time. */
static void
session_that_was_busy_looks_before_it_calls_the_peer_silent(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	d->conf.heartbeat_timeout_ms = 250;
	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	atomic_store(&slow_ms, 600);
	for (int i = 0; i < 40 && atomic_load(&slow_ms); i++) {
		call_ok(&c, "ping", "{}");
		(void)poll(NULL, 0, 50);
	}
	assert_int_equal(atomic_load(&slow_ms), 0);
	call_ok(&c, "ping", "{}");
	call_ok(&c, "bye", "{}");
	assert_int_equal(client_join(&c), REPL_OK);
}

static bool
status_tells(struct client *c, const char *text)
{
	struct json_object *o = call(c, REPL_OK, "status", "{}", NULL);
	bool tells = strstr(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN), text);

	json_object_put(o);
	return tells;
}

/* Its entry is told of when the disk goes on, and that is the latest. */
static void
disk_that_stalls_keeps_no_answer(void **state)
{
	struct target_dir *d = *state;
	struct client c, other;
	uint64_t deadline;

	atomic_store(&stalled, 0);
	atomic_store(&stalls, true);
	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	deadline = clock_deadline(WAIT_MS);
	while (!atomic_load(&stalled) && clock_left_ms(deadline) > 0)
		call_ok(&c, "ping", "{}");
	atomic_store(&stalls, false);
	assert_int_equal(atomic_load(&stalled), 1);

	client_hello(&other, &d->conf, "o");
	deadline = clock_deadline(WAIT_MS);
	while (!status_tells(&other, "\"mode\":\"write\"") && clock_left_ms(deadline) > 0)
		call_ok(&c, "ping", "{}");
	assert_true(status_tells(&other, "\"mode\":\"write\""));
	call_ok(&other, "bye", "{}");
	assert_int_equal(client_join(&other), REPL_OK);
	call_ok(&c, "bye", "{}");
	assert_int_equal(client_join(&c), REPL_OK);
}

/* Entries are written of what changes at once, until what becomes of them was looked at. */
static void
publish_so(struct client *c, int status)
{
	uint64_t deadline = clock_deadline(WAIT_MS);

	atomic_store(&refuses, status);
	atomic_store(&ups, 0);
	/* The fourth was put when the second was written. */
	while (atomic_load(&ups) < 4 && clock_left_ms(deadline) > 0) {
		call_ok(c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
		call_ok(c, "pool.close", "{}");
	}
	assert_true(atomic_load(&ups) >= 4);
	/* Served when what was to be logged before it is. */
	call_ok(c, "ping", "{}");
}

static unsigned
lines_with(const struct target_dir *d, const char *text)
{
	char line[LOG_LINE_MAX];
	FILE *f = fopen(d->log, "r");
	unsigned count = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		count += strstr(line, text) != NULL;
	(void)fclose(f);
	return count;
}

/* A full disk may be full for weeks, and the entry is written each second. */
static void
entry_that_can_t_be_written_is_told_of_once(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	call_ok(&c, "pool.mark",
		"{\"state\":\"up-to-date\","
		"\"generation\":\"11111111-1111-4111-8111-111111111111\"}");
	call_ok(&c, "pool.close", "{}");
	publish_so(&c, REPL_E_NOSPC);
	assert_int_equal(lines_with(d, "status entry: "), 1);
	publish_so(&c, REPL_E_IO);
	assert_int_equal(lines_with(d, "status entry: "), 2);
	publish_so(&c, REPL_OK);
	assert_int_equal(lines_with(d, "status entry: "), 2);
	publish_so(&c, REPL_E_IO);
	assert_int_equal(lines_with(d, "status entry: "), 3);
	atomic_store(&refuses, REPL_OK);
	call_ok(&c, "bye", "{}");
	assert_int_equal(client_join(&c), REPL_OK);
}

static void
missing_heartbeat_gives_up_the_pool(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	d->conf.heartbeat_timeout_ms = 250;
	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	for (int i = 0; i < 4; i++) {
		(void)poll(NULL, 0, 80);
		call_ok(&c, "ping", "{}");
	}
	assert_null(client_answer(&c));
	assert_int_equal(client_join(&c), REPL_E_TIMEOUT);
	assert_state(&d->conf, "a", "unknown");
}

/* ---- floods ---- */

static void *
flood_main(void *arg)
{
	static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
	struct client *c = arg;

	for (int i = 0; i < 5000; i++)
		client_send(c, ping, sizeof(ping) - 1);
	return NULL;
}

static void
flood_is_answered_message_by_message(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	pthread_t thread;

	client_hello(&c, &d->conf, "t");
	assert_int_equal(pthread_create(&thread, NULL, flood_main, &c), 0);
	for (int i = 0; i < 5000; i++) {
		struct json_object *o = client_answer(&c);

		assert_non_null(o);
		assert_true(control_has(o, "result"));
		json_object_put(o);
	}
	(void)pthread_join(thread, NULL);
	call_ok(&c, "ping", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
peer_that_does_not_read_is_left(void **state)
{
	static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
	struct target_dir *d = *state;
	struct client c;
	uint64_t deadline = clock_deadline(WAIT_MS);

	d->conf.heartbeat_timeout_ms = 100;
	client_hello(&c, &d->conf, "t");
	assert_int_equal(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
	while (send(c.fd, ping, sizeof(ping) - 1, MSG_NOSIGNAL) > 0 || errno == EAGAIN) {
		assert_true(clock_left_ms(deadline) > 0);
		(void)poll(NULL, 0, errno == EAGAIN ? 5 : 0);
	}
	assert_int_equal(client_join(&c), REPL_E_TIMEOUT);
	assert_logged(d, "has not read its answers");
}

/* ---- signals ---- */

static void
child_main(const struct conf *conf, int fd)
{
	sigset_t stop;
	struct err e;

	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	_exit(session_run(conf, fd, fd, &e) == REPL_E_LOST ? 7 : 1);
}

static void
sigterm_closes_the_pool(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	int fds[2], status = 0;
	pid_t pid;

	memset(&c, 0, sizeof(c));
	line_buf_init(&c.lines);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(fds[0]);
		child_main(&d->conf, fds[1]);
	}
	(void)close(fds[1]);
	c.fd = fds[0];
	call_ok(&c, "hello", "{\"versions\":[1]}");
	make_pool(&c, "a");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\"}");
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	(void)close(c.fd);
	line_buf_fini(&c.lines);
	assert_state(&d->conf, "a", "unknown");
	assert_logged(d, "stopped by a signal");
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(broken_framing_ends_the_session),
		T(huge_line_ends_the_session),
		T(half_a_line_is_not_served),
		T(unclean_end_marks_the_pool_unknown),
		T(lost_writers_pool_is_unknown_before_it_is_closed),
		T(silence_ends_the_session),
		T(session_that_was_busy_looks_before_it_calls_the_peer_silent),
		T(disk_that_stalls_keeps_no_answer),
		T(entry_that_can_t_be_written_is_told_of_once),
		T(missing_heartbeat_gives_up_the_pool),
		T(flood_is_answered_message_by_message),
		T(peer_that_does_not_read_is_left),
		T(sigterm_closes_the_pool),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	(void)unsetenv("SSH_CONNECTION");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
