/* SPDX-License-Identifier: BSD-3-Clause */
#include "baseline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "tcpraw.h"

struct baseline {
	uint8_t token[TCPRAW_TOKEN_SIZE];
	uint16_t port;
	uint64_t deadline_ns;
	int listen_fd;
	pthread_mutex_t lock; /* guards conn and stop */
	bool lock_made;
	int conn; /* of the thread, which alone opens it; closed after it has ended */
	bool stop;
	_Atomic bool ended;
	pthread_t thread;
	bool thread_started;
};

/* Known to baseline_free() from here on, unless that came first. */
static bool
baseline_note(struct baseline *b, int conn)
{
	bool go_on;

	pthread_mutex_lock(&b->lock);
	b->conn = conn;
	go_on = !b->stop;
	pthread_mutex_unlock(&b->lock);
	return go_on;
}

static void *
baseline_main(void *arg)
{
	struct baseline *b = arg;
	struct err e;
	int conn = -1;
	int rc;

	err_clear(&e);
	rc = tcpraw_accept(b->listen_fd, b->token, b->deadline_ns, &conn, &e);
	/* One connection: whoever comes later is refused by the kernel. */
	(void)shutdown(b->listen_fd, SHUT_RDWR);
	if (!rc && baseline_note(b, conn))
		rc = tcpraw_obey(conn, b->deadline_ns, &e);
	if (rc)
		log_info("%s", e.text);
	atomic_store(&b->ended, true);
	return NULL;
}

static int
baseline_start(struct baseline *b, struct err *e)
{
	sigset_t all, old;
	int ret;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&b->thread, NULL, baseline_main, b);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return err_thread(e, ret, "the baseline's thread");
	b->thread_started = true;
	return 0;
}

int
baseline_new(const char *address, uint16_t first, uint16_t last, unsigned seconds,
	     struct baseline **out, struct err *e)
{
	struct baseline *b = calloc(1, sizeof(*b));
	int rc;

	*out = NULL;
	if (!b)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	b->listen_fd = b->conn = -1;
	b->deadline_ns = clock_deadline(seconds * 1000);
	b->lock_made = pthread_mutex_init(&b->lock, NULL) == 0;
	if (!b->lock_made) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	if (getrandom(b->token, sizeof(b->token), 0) != (ssize_t)sizeof(b->token)) {
		rc = err_errno(e, REPL_E_FAILED, errno, "getrandom");
		goto out;
	}
	rc = tcpraw_listen(address, first, last, &b->listen_fd, &b->port, e);
	if (!rc)
		rc = baseline_start(b, e);
	if (rc)
		goto out;
	*out = b;
	b = NULL;
out:
	baseline_free(b);
	return rc;
}

/* Whatever the thread waits for ends. */
static void
baseline_stop(struct baseline *b)
{
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	(void)shutdown(b->listen_fd, SHUT_RDWR);
	if (b->conn >= 0)
		(void)shutdown(b->conn, SHUT_RDWR);
	pthread_mutex_unlock(&b->lock);
	(void)pthread_join(b->thread, NULL);
}

void
baseline_free(struct baseline *b)
{
	if (!b)
		return;
	if (b->thread_started)
		baseline_stop(b);
	if (b->conn >= 0)
		(void)close(b->conn);
	if (b->listen_fd >= 0)
		(void)close(b->listen_fd);
	if (b->lock_made)
		(void)pthread_mutex_destroy(&b->lock);
	explicit_bzero(b->token, sizeof(b->token));
	free(b);
}

bool
baseline_ended(const struct baseline *b)
{
	return atomic_load(&b->ended);
}

uint16_t
baseline_port(const struct baseline *b)
{
	return b->port;
}

const uint8_t *
baseline_token(const struct baseline *b)
{
	return b->token;
}
