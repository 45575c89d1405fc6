/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_client - a client of session_run() for tests: a thread serves the
 * far end of a socket pair on a fresh pool directory. Include after unit.h.
 */
#ifndef TESTS_SESSION_CLIENT_H
#define TESTS_SESSION_CLIENT_H

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <json-c/json.h>

#include "control.h"
#include "log.h"
#include "session.h"

#define WAIT_MS   5000
#define POOL_SIZE (64 * 1024)

/* ---- a target directory and sessions on it ---- */

struct target_dir {
	char path[64];
	char log[96];
	struct conf conf;
};

struct client {
	int fd; /* our end */
	int session_fd;
	int rc; /* of session_run() */
	struct err err;
	const struct conf *conf;
	pthread_t thread;
	struct line_buf lines;
	int64_t id;
};

static inline int
setup(void **state)
{
	struct target_dir *d = calloc(1, sizeof(*d));
	struct err e;

	if (!d)
		return -1;
	(void)snprintf(d->path, sizeof(d->path), "/tmp/test_session.XXXXXX");
	if (!mkdtemp(d->path))
		return -1;
	(void)snprintf(d->log, sizeof(d->log), "%s.log", d->path);
	d->conf.pool_dir = d->path;
	d->conf.lanes_max = 4;
	d->conf.sessions_max = 8;
	d->conf.message_size_max = 16384;
	d->conf.heartbeat_ms = 1000;
	d->conf.heartbeat_timeout_ms = 5000;
	d->conf.idle_timeout_ms = 5000;
	d->conf.log = CONF_LOG_FILE;
	d->conf.log_file = d->log;
	d->conf.log_level = CONF_LEVEL_INFO;
	*state = d;
	return log_open(&d->conf, &e);
}

static inline int
teardown(void **state)
{
	struct target_dir *d = *state;
	char command[256];

	log_close();
	(void)snprintf(command, sizeof(command), "rm -rf '%s' '%s'", d->path, d->log);
	(void)!system(command);
	free(d);
	return 0;
}

static inline void *
session_main(void *arg)
{
	struct client *c = arg;

	c->rc = session_run(c->conf, c->session_fd, c->session_fd, &c->err);
	(void)shutdown(c->session_fd, SHUT_RDWR);
	return NULL;
}

static inline void
client_start(struct client *c, const struct conf *conf)
{
	int fds[2];

	memset(c, 0, sizeof(*c));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	c->fd = fds[0];
	c->session_fd = fds[1];
	c->conf = conf;
	line_buf_init(&c->lines);
	assert_int_equal(pthread_create(&c->thread, NULL, session_main, c), 0);
}

/* The session must come to its end by itself; returns what session_run() did. */
static inline int
client_join(struct client *c)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(c->thread, NULL, &until), 0);
	(void)close(c->session_fd);
	if (c->fd >= 0)
		(void)close(c->fd);
	line_buf_fini(&c->lines);
	return c->rc;
}

static inline int
client_hangup(struct client *c)
{
	(void)close(c->fd);
	c->fd = -1;
	return client_join(c);
}

static inline void
client_send(struct client *c, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);

		assert_true(n > 0);
		text += n;
		len -= (size_t)n;
	}
}

/* The next answer, NULL at end of file. */
static inline struct json_object *
client_answer(struct client *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	struct json_object *o = NULL;
	char *line, *space;
	size_t len, room;

	while (!(line = line_buf_next(&c->lines, &len))) {
		ssize_t n;

		assert_int_equal(line_buf_space(&c->lines, &space, &room, NULL), 0);
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		n = recv(c->fd, space, room, 0);
		if (n <= 0)
			return NULL;
		line_buf_filled(&c->lines, (size_t)n);
	}
	assert_int_equal(control_parse(line, len, &o, NULL), 0);
	return o;
}

/* Result of a call (may be NULL); status is what must come of it. */
static inline struct json_object *
call(struct client *c, int status, const char *method, const char *params, struct err *e)
{
	struct json_object *o, *result = NULL;
	struct err local;
	char line[8192], next[512] = "";
	int rc;

	e = e ? e : &local;
	err_clear(e);
	c->id++;
	rc = snprintf(line, sizeof(line),
		      "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\",\"params\":%s}\n",
		      (long long)c->id, method, params);
	assert_true(rc > 0 && (size_t)rc < sizeof(line));
	client_send(c, line, (size_t)rc);
	o = client_answer(c);
	assert_non_null(o);
	rc = control_answer_check(o, c->id, &result, next, sizeof(next), e);
	if (rc != status)
		fail_msg("%s %s: %d %s", method, params, rc, e->text);
	if (rc)
		assert_true(next[0]); /* each refusal has a next step */
	json_object_put(o);
	return result;
}

static inline void
call_ok(struct client *c, const char *method, const char *params)
{
	json_object_put(call(c, REPL_OK, method, params, NULL));
}

static inline void
call_refused(struct client *c, int status, const char *method, const char *params)
{
	assert_null(call(c, status, method, params, NULL));
}

static inline void
client_hello(struct client *c, const struct conf *conf, const char *peer)
{
	char params[256];

	client_start(c, conf);
	(void)snprintf(params, sizeof(params), "{\"versions\":[1],\"peer\":\"%s\"}", peer);
	call_ok(c, "hello", params);
}

static inline void
make_pool(struct client *c, const char *name)
{
	char params[128];

	(void)snprintf(params, sizeof(params), "{\"name\":\"%s\",\"size\":%d}", name, POOL_SIZE);
	call_ok(c, "pool.create", params);
}

static inline void
assert_text(struct json_object *o, const char *member, const char *text)
{
	const char *have = NULL;

	assert_int_equal(control_get_text(o, member, 4096, &have, NULL), 0);
	assert_string_equal(have, text);
}

/* What a later session is told about the state of a pool. */
static inline void
assert_state(const struct conf *conf, const char *name, const char *text)
{
	struct client c;
	struct json_object *info;
	char params[64];

	client_hello(&c, conf, "reader");
	(void)snprintf(params, sizeof(params), "{\"name\":\"%s\"}", name);
	info = call(&c, REPL_OK, "pool.info", params, NULL);
	assert_text(info, "state", text);
	json_object_put(info);
	call_ok(&c, "bye", "{}");
	assert_int_equal(client_join(&c), REPL_OK);
}

static inline void
assert_logged(const struct target_dir *d, const char *text)
{
	char all[16384];
	FILE *f = fopen(d->log, "r");
	size_t n;

	assert_non_null(f);
	n = fread(all, 1, sizeof(all) - 1, f);
	(void)fclose(f);
	all[n] = '\0';
	if (!strstr(all, text))
		fail_msg("'%s' is not in the log:\n%s", text, all);
}

#endif
