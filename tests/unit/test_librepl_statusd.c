/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that closes all descriptors, as a daemon does that begins, closes those of the status
 * thread: that waits as before, and no longer reads or closes what has their numbers next. One that
 * may have few files open, or no more at all, has a status thread that waits, too. What has changed
 * before the end is told before the end. An answer that no line has room for is told of by an
 * error.
 */
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "statusd_impl.h"
#include "tempdir.h"

#define LOOK_NS  NS_PER_S          /* for so long it is watched */
#define SPENT_NS (200 * NS_PER_MS) /* of a processor; one that does not wait spends all */
#define FOLLOW   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"events\"}\n"
#define METRICS  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"metrics\"}\n"

static uint64_t
spent_ns(const struct statusd *s)
{
	struct timespec ts;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(s->thread, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* The descriptor of the other connected socket. */
static int
other_end(int fd)
{
	struct sockaddr_un a;

	for (int other = STDERR_FILENO + 1; other < 64; other++) {
		socklen_t len = sizeof(a);

		if (other != fd && getpeername(other, (struct sockaddr *)&a, &len) == 0)
			return other;
	}
	return -1;
}

static char dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 8];

static struct statusd *
start_with(struct repl *r, struct repl_config *cfg, unsigned named)
{
	struct statusd *s = NULL;
	struct err e;

	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/sock", dir);
	cfg->status_socket = path;
	r->cfg = cfg;
	err_clear(&e);
	if (statusd_new(r, &s, &e))
		fail_msg("%s", e.text);
	s->doc.replica_count = named;
	for (unsigned i = 0; i < named; i++)
		memset(s->doc.replica[i], 'r', TARGET_TEXT_MAX - 1);
	if (statusd_start(s, &e))
		fail_msg("%s", e.text);
	return s;
}

static struct statusd *
start(struct repl *r, struct repl_config *cfg)
{
	return start_with(r, cfg, 0);
}

/* A client that is served; its descriptor. */
static int
follow(void)
{
	char answer[8];
	int fd = statussock_connect(path, NULL);

	assert_true(fd >= 0);
	assert_int_equal(send(fd, FOLLOW, strlen(FOLLOW), 0), strlen(FOLLOW));
	assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20000), 1);
	assert_true(recv(fd, answer, sizeof(answer), 0) > 0);
	return fd;
}

static void
assert_waits(const struct statusd *s)
{
	uint64_t before_ns = spent_ns(s), begin_ns = clock_now_ns();

	while (clock_now_ns() - begin_ns < LOOK_NS && spent_ns(s) - before_ns < SPENT_NS)
		(void)usleep(10000);
	assert_true(spent_ns(s) - before_ns < SPENT_NS);
}

static void
what_the_program_closes_is_left_alone(void **state)
{
	struct repl_config cfg = {0};
	struct repl r = {0};
	struct statusd *s = start(&r, &cfg);
	int fd = follow(), client = other_end(fd), event = s->event_fd;

	(void)state;
	assert_true(client >= 0 && event >= 0);
	assert_int_equal(close(client), 0);
	assert_int_equal(close(event), 0);

	while (s->event_fd >= 0 && spent_ns(s) < SPENT_NS)
		(void)usleep(10000);
	assert_waits(s);
	/* They are others' now. */
	assert_int_equal(dup2(fd, client), client);
	assert_int_equal(dup2(fd, event), event);
	statusd_stop(s);
	assert_int_equal(close(client) | close(event) | close(fd), 0);
	tempdir_free(dir);
}

static void
limit_files(rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void
few_files_are_no_reason_to_spin(void **state)
{
	struct repl_config cfg = {0};
	struct repl r = {0};
	struct rlimit limit;
	struct statusd *s;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	s = start(&r, &cfg);
	limit_files(16);
	fd = follow();
	limit_files(0);
	/* What it waits for was allowed before. */
	assert_int_equal(write(s->event_fd, &(uint64_t){1}, sizeof(uint64_t)), sizeof(uint64_t));
	assert_waits(s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(close(fd), 0);
	fd = follow();
	statusd_stop(s);
	assert_int_equal(close(fd), 0);
	tempdir_free(dir);
}

/* As when a replica is lost while the handle is being closed. */
static void
what_comes_before_the_end_is_told(void **state)
{
	struct repl_config cfg = {0};
	struct repl r = {.replica_count = 1};
	char bytes[8192] = "";
	struct statusd *s;
	size_t len = 0;
	ssize_t n;
	int fd;

	(void)state;
	assert_int_equal(pthread_mutex_init(&r.reason_lock, NULL), 0);
	cfg.target_count = 1;
	s = start(&r, &cfg);
	fd = follow();
	atomic_store(&r.replicas[0].replication, REPL_REPL_DEGRADED);
	statusd_changed(s, 0);
	statusd_stop(s);
	while (len < sizeof(bytes) - 1 &&
	       (n = recv(fd, bytes + len, sizeof(bytes) - 1 - len, 0)) > 0)
		len += (size_t)n;
	if (!strstr(bytes, "\"event\""))
		fail_msg("no event in: %s", bytes);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pthread_mutex_destroy(&r.reason_lock), 0);
	tempdir_free(dir);
}

static void
an_answer_that_is_too_long_is_an_error(void **state)
{
	struct repl_config cfg = {0};
	struct repl r = {0};
	struct statusd *s = start_with(&r, &cfg, REPL_TARGETS_MAX);
	struct json_object *o = NULL, *result = NULL;
	static char answer[4096];
	int fd = statussock_connect(path, NULL);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t len = 0;
	ssize_t n;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(send(fd, METRICS, strlen(METRICS), 0), strlen(METRICS));
	do {
		assert_int_equal(poll(&p, 1, 20000), 1);
		n = recv(fd, answer + len, sizeof(answer) - len, 0);
		assert_true(n > 0);
		len += (size_t)n;
	} while (answer[len - 1] != '\n' && len < sizeof(answer));
	assert_int_equal(control_parse(answer, len - 1, &o, &e), 0);
	assert_int_equal(control_answer_check(o, 1, &result, NULL, 0, &e), REPL_E_LIMIT);
	assert_non_null(strstr(e.text, "metrics-file"));
	json_object_put(o);
	assert_int_equal(close(fd), 0);
	statusd_stop(s);
	tempdir_free(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_program_closes_is_left_alone),
		cmocka_unit_test(few_files_are_no_reason_to_spin),
		cmocka_unit_test(what_comes_before_the_end_is_told),
		cmocka_unit_test(an_answer_that_is_too_long_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
