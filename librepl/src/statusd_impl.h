/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * statusd_impl - what is behind a struct statusd; shared by statusd.c (the
 * thread), statusclient.c (bytes of one client) and statusreq.c (requests).
 */
#ifndef LIBREPL_STATUSD_IMPL_H
#define LIBREPL_STATUSD_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "control.h"
#include "repl_impl.h"
#include "statusd.h"
#include "statusdoc.h"
#include "statussock.h"

#define STATUSD_EVENTS      64
#define STATUSD_REQUEST_MAX 4096
#define STATUSD_OUT_MAX     (1U << 20) /* that a client has not read: it is dropped */

struct statusclient {
	int fd; /* -1: free */
	bool follows;
	uint64_t idle_ns; /* then it is dropped, if it follows nothing */
	char in[STATUSD_REQUEST_MAX];
	size_t in_len, in_taken;
	char *out; /* what could not be sent yet */
	size_t out_len;
};

/* What counts as a change; compared as bytes. */
struct statusd_state {
	int connection, replication, data, reason, paused;
};

struct statusd_event {
	unsigned replica;
	struct timespec at;
	struct repl_stat stat;
};

struct statusd {
	struct repl *repl;
	pthread_t thread;
	_Atomic int event_fd; /* -1: the program has closed it */
	_Atomic bool stop;
	char *pool, *metrics_path, *metrics_temp;
	bool lock_made, started;

	pthread_mutex_t lock; /* guards what follows, up to the thread's own */
	struct statusd_state last[REPL_TARGETS_MAX];
	struct statusd_event events[STATUSD_EVENTS];
	uint64_t event_begin, event_end; /* numbers of events */

	/* The thread's own. */
	struct statussock sock;
	struct statusclient clients[STATUSD_CLIENTS_MAX];
	struct statusdoc doc;
	uint64_t metrics_ns, progress_ns, accept_ns;
};

/* Bring s->doc up to date; only by the thread, or before it runs. */
void statusd_snapshot(struct statusd *s);

/* To all who follow events now; only by the thread. */
void statusd_send_events(struct statusd *s);

/* ---- statusclient.c: none of these waits; each may end the client ---- */

void statusclient_begin(struct statusclient *c, int fd, uint64_t idle_ns);
void statusclient_end(struct statusclient *c);
void statusclient_receive(struct statusclient *c);
/* The next whole line, terminated, valid until the next receive; NULL: none yet. */
const char *statusclient_line(struct statusclient *c, size_t *len);
void statusclient_send(struct statusclient *c, const char *bytes, size_t len);
void statusclient_flush(struct statusclient *c);

/* ---- statusreq.c ---- */

void statusreq_serve(struct statusd *s, struct statusclient *c, const char *line, size_t len);
struct json_object *statusreq_event(const struct statusdoc *d, const char *kind, uint64_t number,
				    const struct timespec *at, unsigned replica);

#endif
