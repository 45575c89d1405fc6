/* SPDX-License-Identifier: BSD-3-Clause */
#include "statusd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "filewrite.h"
#include "ownwait.h"
#include "statusd_impl.h"
#include "thread.h"

#define METRICS_MS     5000
#define PROGRESS_MS    1000
#define IDLE_MS        10000 /* of a client that follows nothing */
#define ACCEPT_WAIT_MS 1000  /* after a lack of descriptors */
#define LOOK_MS        1000  /* for the end: a program may have closed what wakes it */
#define PAUSE_MS       100   /* where it can't wait: a program may allow itself no files any more */

/* ---- what happened, on its way to the thread ---- */

static void
state_of(const struct repl_stat *st, struct statusd_state *out)
{
	memset(out, 0, sizeof(*out));
	out->connection = st->connection;
	out->replication = st->replication;
	out->data = st->data;
	out->reason = st->reason_code;
	out->paused = st->paused;
}

static void
wake(const struct statusd *s)
{
	int fd = atomic_load(&s->event_fd);
	uint64_t one = 1;
	ssize_t n = fd < 0 ? 0 : write(fd, &one, sizeof(one));

	(void)n; /* full: it is awake anyway */
}

void
statusd_changed(struct statusd *s, unsigned replica)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	struct statusd_event *v;
	struct statusd_state now;

	if (!s || !ownwait_lock(&s->lock, &s->repl->abandoned))
		return;
	if (repl_stat(s->repl, replica, &st))
		goto out;
	state_of(&st, &now);
	if (memcmp(&now, &s->last[replica], sizeof(now)) == 0)
		goto out;
	s->last[replica] = now;
	if (s->event_end - s->event_begin == STATUSD_EVENTS)
		s->event_begin++; /* the thread has no time; the numbers show the gap */
	v = &s->events[s->event_end++ % STATUSD_EVENTS];
	v->replica = replica;
	v->stat = st;
	(void)clock_gettime(CLOCK_REALTIME, &v->at);
	wake(s);
out:
	pthread_mutex_unlock(&s->lock);
}

/* The oldest event that was not sent; false: there is none. */
static bool
event_take(struct statusd *s, struct statusd_event *out, uint64_t *number)
{
	bool found;

	pthread_mutex_lock(&s->lock);
	found = s->event_begin != s->event_end;
	if (found) {
		*number = s->event_begin + 1;
		*out = s->events[s->event_begin++ % STATUSD_EVENTS];
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

static bool
followed(const struct statusd *s)
{
	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0 && s->clients[i].follows)
			return true;
	return false;
}

static void
tell_followers(struct statusd *s, const char *kind, uint64_t number, const struct timespec *at,
	       unsigned replica)
{
	struct json_object *o = statusreq_event(&s->doc, kind, number, at, replica);
	size_t len;
	char *line = o ? control_line(o, &len) : NULL;

	json_object_put(o);
	for (unsigned i = 0; line && i < STATUSD_CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0 && s->clients[i].follows)
			statusclient_send(&s->clients[i], line, len);
	free(line);
}

void
statusd_send_events(struct statusd *s)
{
	struct statusd_event v;
	uint64_t number;

	while (event_take(s, &v, &number)) {
		s->doc.stat[v.replica] = v.stat;
		tell_followers(s, "state", number, &v.at, v.replica);
	}
}

static void
send_progress(struct statusd *s)
{
	struct timespec now;

	statusd_snapshot(s);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	for (unsigned i = 0; i < s->doc.replica_count; i++)
		if (s->doc.stat[i].replication == REPL_REPL_RESYNCING)
			tell_followers(s, "progress", 0, &now, i);
}

/* ---- the thread ---- */

void
statusd_snapshot(struct statusd *s)
{
	s->doc.size = atomic_load(&s->repl->size);
	for (unsigned i = 0; i < s->doc.replica_count; i++) {
		s->doc.stat[i].struct_size = sizeof(s->doc.stat[i]);
		(void)!repl_stat(s->repl, i, &s->doc.stat[i]);
	}
}

/*
 * Made anew: what somebody has put there, a FIFO or a link, is neither waited for nor followed. By
 * no stream: replctl run sees what opens and closes a descriptor here, and not what libc does
 * within.
 */
static int
metrics_open(const char *temp)
{
	(void)unlink(temp);
	return open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static void
metrics_write(struct statusd *s)
{
	struct err e;
	size_t len;
	char *text;
	bool whole;
	int fd;

	err_clear(&e);
	statusd_snapshot(s);
	text = statusdoc_metrics(&s->doc, &len);
	errno = 0;
	fd = text ? metrics_open(s->metrics_temp) : -1;
	whole = fd >= 0 && filewrite_all(fd, text, len, 0) == 0;
	if (fd >= 0)
		whole &= close(fd) == 0;
	/* A reader finds a whole file or none: an old one may call a lost replica established. */
	if (!whole || rename(s->metrics_temp, s->metrics_path)) {
		(void)err_errno(&e, REPL_E_FAILED, errno, "%s", s->metrics_path);
		if (fd >= 0)
			(void)unlink(s->metrics_temp);
		(void)unlink(s->metrics_path);
	}
	(void)snprintf(s->doc.metrics_error, sizeof(s->doc.metrics_error), "%s", e.text);
	free(text);
}

static void
accept_one(struct statusd *s)
{
	int fd = accept4(s->sock.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			s->accept_ns = clock_deadline(ACCEPT_WAIT_MS);
		return;
	}
	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++) {
		struct statusclient *c = &s->clients[i];

		if (c->fd < 0) {
			statusclient_begin(c, fd, clock_deadline(IDLE_MS));
			return;
		}
	}
	(void)close(fd);
}

static void
serve_client(struct statusd *s, struct statusclient *c, short revents)
{
	const char *line;
	size_t len;

	/* Closed by the program: the number may be another file's next. */
	if (revents & POLLNVAL) {
		c->fd = -1;
		statusclient_end(c);
		return;
	}
	if (revents & (POLLIN | POLLHUP | POLLERR))
		statusclient_receive(c);
	while (c->fd >= 0 && (line = statusclient_line(c, &len)) != NULL) {
		c->idle_ns = clock_deadline(IDLE_MS);
		statusreq_serve(s, c, line, len);
	}
	if (c->fd >= 0 && (revents & POLLOUT))
		statusclient_flush(c);
	if (c->fd >= 0 && !c->follows && clock_now_ns() >= c->idle_ns)
		statusclient_end(c);
}

/* What is due by the clock; returns when the next is. */
static uint64_t
do_timed(struct statusd *s)
{
	uint64_t now = clock_now_ns(), next = clock_deadline(LOOK_MS);

	if (s->metrics_path) {
		if (now >= s->metrics_ns) {
			metrics_write(s);
			s->metrics_ns = clock_deadline(METRICS_MS);
		}
		next = s->metrics_ns < next ? s->metrics_ns : next;
	}
	if (followed(s)) {
		if (now >= s->progress_ns) {
			send_progress(s);
			s->progress_ns = clock_deadline(PROGRESS_MS);
		}
		if (s->progress_ns < next)
			next = s->progress_ns;
	}
	statusd_send_events(s);
	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0 && !s->clients[i].follows && s->clients[i].idle_ns < next)
			next = s->clients[i].idle_ns;
	if (s->accept_ns > now && s->accept_ns < next)
		next = s->accept_ns;
	return next;
}

static void
wait_and_serve(struct statusd *s, uint64_t until_ns)
{
	struct pollfd p[2 + STATUSD_CLIENTS_MAX];
	struct statusclient *polled[STATUSD_CLIENTS_MAX];
	unsigned count = 0;
	uint64_t woken;
	ssize_t n;

	p[0] = (struct pollfd){.fd = s->event_fd, .events = POLLIN};
	p[1] = (struct pollfd){.fd = clock_now_ns() < s->accept_ns ? -1 : s->sock.fd,
			       .events = POLLIN};
	/* No more of them than there may be files: poll takes none then. */
	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0)
			polled[count++] = &s->clients[i];
	for (unsigned i = 0; i < count; i++)
		p[2 + i] = (struct pollfd){
			.fd = polled[i]->fd,
			.events = (short)(POLLIN | (polled[i]->out_len ? POLLOUT : 0))};
	if (poll(p, 2 + count, clock_left_ms(until_ns)) < 0) {
		(void)poll(NULL, 0, PAUSE_MS);
		return;
	}
	/* Closed by the program: the thread looks every now and then. */
	if (p[0].revents & POLLNVAL) {
		atomic_store(&s->event_fd, -1);
	} else if (p[0].revents) {
		n = read(s->event_fd, &woken, sizeof(woken));
		(void)n;
	}
	for (unsigned i = 0; i < count; i++)
		if (polled[i]->fd >= 0)
			serve_client(s, polled[i], p[2 + i].revents);
	if (p[1].revents)
		accept_one(s);
}

static void *
statusd_main(void *arg)
{
	struct statusd *s = arg;

	while (!atomic_load(&s->stop))
		wait_and_serve(s, do_timed(s));
	/* What came with the end, such as the loss of a replica, is told before it. */
	statusd_send_events(s);
	return NULL;
}

/* ---- beginning and end ---- */

static void
statusd_free(struct statusd *s)
{
	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++)
		statusclient_end(&s->clients[i]);
	statussock_close(&s->sock);
	if (s->metrics_path)
		(void)unlink(s->metrics_path);
	if (s->event_fd >= 0)
		(void)close(s->event_fd);
	if (s->lock_made)
		(void)pthread_mutex_destroy(&s->lock);
	free(s->pool);
	free(s->metrics_path);
	free(s->metrics_temp);
	free(s);
}

static int
socket_start(struct statusd *s, const struct repl *r, struct err *e)
{
	const char *wish = r->cfg->status_socket;
	bool automatic = !wish || strcmp(wish, "auto") == 0;
	char *path = NULL;
	int rc;

	if (wish && strcmp(wish, "none") == 0)
		return 0;
	if (!automatic)
		return statussock_open(&s->sock, wish, e);
	if (!s->pool[0] || !r->local.path)
		return 0;
	if (asprintf(&path, "%s" STATUSSOCK_SUFFIX, s->pool) < 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	/* Nobody asked for it: a directory without room for it is no reason to fail. */
	rc = statussock_open(&s->sock, path, NULL);
	(void)rc;
	free(path);
	return 0;
}

static int
metrics_start(struct statusd *s, const struct repl *r, struct err *e)
{
	if (!r->cfg->metrics_file)
		return 0;
	s->metrics_path = strdup(r->cfg->metrics_file);
	if (!s->metrics_path ||
	    asprintf(&s->metrics_temp, "%s.%ld.tmp", s->metrics_path, (long)getpid()) < 0) {
		s->metrics_temp = NULL;
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	return 0;
}

static void
doc_init(struct statusd *s, const struct repl *r)
{
	s->doc.pool = s->pool;
	s->doc.no_file = !r->file;
	s->doc.lanes = r->lane_count;
	s->doc.replica_count = r->replica_count;
	s->doc.begin_s = (uint64_t)time(NULL);
	for (unsigned i = 0; i < r->replica_count; i++) {
		target_format(&r->cfg->targets[i], s->doc.replica[i], sizeof(s->doc.replica[i]));
		s->doc.async[i] = r->cfg->async[i];
	}
	statusd_snapshot(s);
	for (unsigned i = 0; i < r->replica_count; i++)
		state_of(&s->doc.stat[i], &s->last[i]);
}

int
statusd_start(struct statusd *s, struct err *e)
{
	int ret;

	if (!s)
		return 0;
	ret = thread_start(&s->thread, statusd_main, s);
	s->started = ret == 0;
	return ret ? err_thread(e, ret, "the status thread") : 0;
}

static int
statusd_init(struct statusd *s, struct repl *r, struct err *e)
{
	const char *file = r->cfg->pool_file ? r->cfg->pool_file : r->file;

	s->repl = r;
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->pool = strdup(file ? file : "");
	s->lock_made = pthread_mutex_init(&s->lock, NULL) == 0;
	if (s->event_fd < 0)
		return err_errno(e, REPL_E_LIMIT, errno, "eventfd");
	if (!s->pool || !s->lock_made)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	doc_init(s, r);
	return 0;
}

int
statusd_new(struct repl *r, struct statusd **out, struct err *e)
{
	struct statusd *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (!s)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++)
		s->clients[i].fd = -1;
	statussock_init(&s->sock);
	rc = statusd_init(s, r, e);
	if (!rc)
		rc = socket_start(s, r, e);
	if (!rc)
		rc = metrics_start(s, r, e);
	if (!rc && s->sock.fd < 0 && !s->metrics_path) {
		statusd_free(s); /* nobody to tell */
		return 0;
	}
	if (rc)
		statusd_free(s);
	else
		*out = s;
	return rc;
}

void
statusd_stop(struct statusd *s)
{
	if (!s)
		return;
	atomic_store(&s->stop, true);
	wake(s);
	if (s->started)
		(void)pthread_join(s->thread, NULL);
	statusd_free(s);
}

void
statusd_abandon(struct statusd *s)
{
	int fd;

	if (!s)
		return;
	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0)
			(void)close(s->clients[i].fd);
	statussock_abandon(&s->sock);
	/* The number may be another file's when a call goes on that was interrupted. */
	fd = atomic_exchange(&s->event_fd, -1);
	if (fd >= 0)
		(void)close(fd);
}
