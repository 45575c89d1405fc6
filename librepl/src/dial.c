/* SPDX-License-Identifier: BSD-3-Clause */
#include "dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "left.h"
#include "target.h"
#include "thread.h"

#define AGENT_MS 100 /* for an answer that takes no thought */

/* Shared by the caller and the helper thread; the last one out frees it. */
struct lookup {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t ready;
	bool done;
	bool abandoned;
	int rc;     /* of getaddrinfo */
	int errnum; /* for EAI_SYSTEM */
	struct addrinfo *list;
	struct left left; /* while it is abandoned */
	char port[8];
	char host[];
};

static void
lookup_free(struct lookup *l)
{
	if (!l)
		return;
	if (l->list)
		freeaddrinfo(l->list);
	(void)pthread_cond_destroy(&l->ready);
	(void)pthread_mutex_destroy(&l->lock);
	free(l);
}

static int
lookup_new(const char *host, unsigned port, struct lookup **out, struct err *e)
{
	pthread_condattr_t attr;
	size_t len = strlen(host) + 1;
	struct lookup *l = calloc(1, sizeof(*l) + len);

	if (!l)
		return err_set(e, REPL_E_NOMEM, "out of memory looking up '%s'", host);
	memcpy(l->host, host, len);
	l->left.what = l->host;
	(void)snprintf(l->port, sizeof(l->port), "%u", port & 0xffffU);
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&l->ready, &attr);
	(void)pthread_condattr_destroy(&attr);
	*out = l;
	return REPL_OK;
}

static int
lookup_resolve(const struct lookup *l, int flags, struct addrinfo **list)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = flags | AI_NUMERICSERV,
	};

	return getaddrinfo(l->host, l->port, &hints, list);
}

static void *
lookup_thread(void *arg)
{
	struct lookup *l = arg;
	struct addrinfo *list = NULL;
	int rc = lookup_resolve(l, AI_ADDRCONFIG, &list);
	int errnum = errno;
	bool abandoned;

	(void)pthread_mutex_lock(&l->lock);
	l->rc = rc;
	l->errnum = errnum;
	l->list = rc == 0 ? list : NULL;
	l->done = true;
	abandoned = l->abandoned;
	(void)pthread_cond_signal(&l->ready);
	(void)pthread_mutex_unlock(&l->lock);
	if (abandoned) {
		left_remove(&l->left);
		lookup_free(l);
	}
	return NULL;
}

/* Milliseconds to wait until the deadline or the next look at cancel; 0: no more. */
static int
dial_left_ms(uint64_t deadline_ns, const _Atomic int *cancel)
{
	int left = clock_left_ms(deadline_ns);

	if (dial_cancelled(cancel))
		return 0;
	return cancel && left > DIAL_LOOK_MS ? DIAL_LOOK_MS : left;
}

/* True if the answer is there; false leaves l to the thread. */
static bool
lookup_wait(struct lookup *l, uint64_t deadline_ns, const _Atomic int *cancel)
{
	bool done;
	int left;

	(void)pthread_mutex_lock(&l->lock);
	while (!l->done && (left = dial_left_ms(deadline_ns, cancel)) > 0) {
		uint64_t until_ns = clock_deadline((unsigned)left);
		struct timespec ts = {
			.tv_sec = (time_t)(until_ns / NS_PER_S),
			.tv_nsec = (long)(until_ns % NS_PER_S),
		};

		(void)pthread_cond_timedwait(&l->ready, &l->lock, &ts);
	}
	done = l->done;
	l->abandoned = !done;
	/* Before the thread can see that, which takes it away again. */
	if (!done)
		left_add(&l->left);
	(void)pthread_mutex_unlock(&l->lock);
	return done;
}

/* On success *out holds the addresses, to be freed with lookup_free(). */
static int
lookup_run(const char *host, unsigned port, uint64_t deadline_ns, const _Atomic int *cancel,
	   struct lookup **out, struct err *e)
{
	struct lookup *l = NULL;
	char name[TARGET_ADDRESS_MAX];
	int rc = lookup_new(host, port, &l, e);

	if (rc)
		return rc;
	if (lookup_resolve(l, AI_NUMERICHOST, &l->list) != 0) {
		if (left_is_full(host)) {
			lookup_free(l);
			return err_set(e, REPL_E_TIMEOUT,
				       "%s: not tried: %u lookups before still wait for the "
				       "resolver",
				       target_address(host, port, name), LEFT_MAX);
		}
		rc = thread_start_detached(lookup_thread, l);
		if (rc) {
			lookup_free(l);
			return err_errno(e, REPL_E_LIMIT, rc, "no thread to look up '%s'", host);
		}
		if (!lookup_wait(l, deadline_ns, cancel))
			return err_set(e, REPL_E_TIMEOUT,
				       "%s: no answer from the resolver by the deadline",
				       target_address(host, port, name));
	}
	if (l->rc) {
		rc = err_set(e, REPL_E_UNREACHABLE, "%s: host name not resolved: %s",
			     target_address(host, port, name),
			     l->rc == EAI_SYSTEM ? strerror(l->errnum) : gai_strerror(l->rc));
		lookup_free(l);
		return rc;
	}
	*out = l;
	return REPL_OK;
}

/* Wait for a connect in progress; 0 or an errno. */
static int
dial_finish(int fd, uint64_t deadline_ns, const _Atomic int *cancel)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int errnum = 0;
	socklen_t len = sizeof(errnum);

	for (;;) {
		int left = dial_left_ms(deadline_ns, cancel);
		int n = poll(&p, 1, left);

		if (n > 0)
			break;
		if (n < 0 && errno != EINTR)
			return errno;
		if (left == 0)
			return ETIMEDOUT;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0)
		return errno;
	return errnum;
}

static int
dial_address(const struct addrinfo *a, uint64_t deadline_ns, const _Atomic int *cancel, int *out)
{
	int fd =
		socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
	int one = 1;
	int errnum = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0)
		errnum = errno == EINPROGRESS ? dial_finish(fd, deadline_ns, cancel) : errno;
	if (errnum) {
		(void)close(fd);
		return errnum;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*out = fd;
	return 0;
}

int
dial_tcp(const char *host, unsigned port, uint64_t deadline_ns, const _Atomic int *cancel, int *fd,
	 struct err *e)
{
	struct lookup *l = NULL;
	uint64_t left = 0;
	int errnum = EADDRNOTAVAIL, family = AF_UNSPEC;
	char name[TARGET_ADDRESS_MAX];
	int rc = lookup_run(host, port, deadline_ns, cancel, &l, e);

	if (rc)
		return rc;
	(void)target_address(host, port, name);
	for (const struct addrinfo *a = l->list; a; a = a->ai_next)
		left++;
	for (const struct addrinfo *a = l->list; a && errnum && !dial_cancelled(cancel);
	     a = a->ai_next, left--) {
		/* A silent address must not eat the time of those after it. */
		uint64_t now = clock_now_ns();
		uint64_t share = deadline_ns > now ? (deadline_ns - now) / left : 0;

		family = a->ai_family;
		errnum = dial_address(a, now + share, cancel, fd);
	}
	lookup_free(l);
	if (errnum == 0)
		return REPL_OK;
	if (dial_cancelled(cancel))
		return err_set(e, dial_cancelled(cancel), "%s: given up connecting", name);
	if (errnum == ETIMEDOUT)
		return err_set(e, REPL_E_TIMEOUT,
			       "%s: no answer to the TCP connection by the deadline", name);
	rc = err_connect(e, errnum, family, name);
	if (rc)
		return rc;
	/* A filter of packets or of system calls; the other side was not asked. */
	if (errnum == EPERM || errnum == EACCES)
		return err_errno(e, REPL_E_UNREACHABLE, errnum,
				 "%s: this program may not connect there", name);
	return err_errno(e, REPL_E_UNREACHABLE, errnum,
			 "%s: is an SSH server running there? cannot connect", name);
}

const char *
dial_silent_agent(void)
{
	/* SSH_AGENTC_REQUEST_IDENTITIES with its length before it. */
	static const unsigned char request[] = {0, 0, 0, 1, 11};
	const char *path = secure_getenv("SSH_AUTH_SOCK");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct pollfd p = {.fd = -1, .events = POLLIN};
	bool silent = false;

	if (!path || strlen(path) >= sizeof(a.sun_path))
		return NULL;
	memcpy(a.sun_path, path, strlen(path));
	p.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p.fd < 0)
		return NULL;
	/* EAGAIN: connections that the agent does not take have queued up. */
	if (connect(p.fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		silent = errno == EAGAIN;
	else if (send(p.fd, request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request))
		silent = poll(&p, 1, AGENT_MS) == 0;
	(void)close(p.fd);
	return silent ? path : NULL;
}
