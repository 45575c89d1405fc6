/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening a channel, by its deadline. libssh has waits inside that know none: for an agent that
 * asks a person, for what a "Match exec" of ssh's config runs, for a file on a server that hangs.
 * So a thread opens it, which is left behind when it is too late; it ends when its wait does.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel_impl.h"
#include "clock.h"
#include "dial.h"
#include "forks.h"
#include "left.h"
#include "standard.h"
#include "thread.h"

#define LOOK_MS   20U
#define GRACE_MS  200U /* for the thread to find out itself: it knows better what it waits for */
#define LOGIN_MAX (TARGET_USER_MAX + TARGET_HOST_MAX + 16)

/* Shared by the caller and the thread; the last one out frees it. */
struct opening {
	pthread_mutex_t lock; /* guards done, abandoned, and what is there when it is done */
	pthread_cond_t ready;
	bool done, abandoned;
	int rc;
	struct err err;
	struct channel *channel;
	/* The thread's own, as the caller's may be gone before it ends. */
	struct channel_options o;
	struct target target;
	char *identity, *known_hosts, *command;
	uint64_t deadline_ns;
	_Atomic int cancel;
	struct channel_fds fds;
	struct left left; /* while it is left behind */
	char login[LOGIN_MAX];
};

/* Each login is counted for itself. */
static void
login_name(const struct target *t, char name[LOGIN_MAX])
{
	(void)snprintf(name, LOGIN_MAX, "%s@%s:%u", t->user, t->host, t->port);
}

static void
opening_free(struct opening *w)
{
	channel_free(w->channel);
	free(w->identity);
	free(w->known_hosts);
	free(w->command);
	(void)pthread_cond_destroy(&w->ready);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

static bool
copied(char **out, const char *text)
{
	*out = text ? strdup(text) : NULL;
	return *out || !text;
}

static struct opening *
opening_new(const struct channel_options *o, uint64_t deadline_ns)
{
	pthread_condattr_t attr;
	struct opening *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->ready, &attr);
	(void)pthread_condattr_destroy(&attr);
	w->target = *o->target;
	login_name(&w->target, w->login);
	w->left.what = w->login;
	w->deadline_ns = deadline_ns;
	channel_fds_tell(&w->fds, -1, -1);
	if (!copied(&w->identity, o->identity) || !copied(&w->known_hosts, o->known_hosts) ||
	    !copied(&w->command, o->command)) {
		opening_free(w);
		return NULL;
	}
	w->o = (struct channel_options){.target = &w->target,
					.identity = w->identity,
					.known_hosts = w->known_hosts,
					.command = w->command,
					.cancel = &w->cancel,
					.fds = &w->fds};
	return w;
}

static void *
opening_thread(void *arg)
{
	struct opening *w = arg;
	struct channel *c = NULL;
	struct err e;
	bool abandoned;
	int rc;

	err_clear(&e);
	rc = channel_open_here(&w->o, w->deadline_ns, &c, &e);
	if (c)
		channel_detach(c);
	(void)pthread_mutex_lock(&w->lock);
	w->rc = rc;
	w->err = e;
	w->channel = c;
	w->done = true;
	abandoned = w->abandoned;
	(void)pthread_cond_signal(&w->ready);
	(void)pthread_mutex_unlock(&w->lock);
	if (abandoned) {
		left_remove(&w->left);
		opening_free(w);
	}
	return NULL;
}

/* What the caller is to know of it, and it of the caller. */
static void
opening_exchange(struct opening *w, const struct channel_options *o, uint64_t *until_ns)
{
	int status = o->cancel ? atomic_load(o->cancel) : 0;

	channel_fds_tell(o->fds, atomic_load(&w->fds.own), atomic_load(&w->fds.lent));
	if (status && !atomic_load(&w->cancel)) {
		atomic_store(&w->cancel, status);
		*until_ns = clock_deadline(GRACE_MS);
	}
}

/*
 * True if it is done; false leaves w to the thread. In the child of a handler that has interrupted
 * this there is none, nor whoever had the lock.
 */
static bool
opening_wait(struct opening *w, const struct channel_options *o, unsigned forks)
{
	uint64_t until_ns = w->deadline_ns + GRACE_MS * NS_PER_MS;
	bool done;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->done && clock_left_ms(until_ns) > 0 && forks_count() == forks) {
		uint64_t look_ns = clock_deadline(LOOK_MS);
		struct timespec ts = {
			.tv_sec = (time_t)(look_ns / NS_PER_S),
			.tv_nsec = (long)(look_ns % NS_PER_S),
		};

		(void)pthread_cond_timedwait(&w->ready, &w->lock, &ts);
		opening_exchange(w, o, &until_ns);
	}
	if (forks_count() != forks)
		return false;
	done = w->done;
	w->abandoned = !done;
	if (!done) {
		left_add(&w->left);
		if (!atomic_load(&w->cancel))
			atomic_store(&w->cancel, REPL_E_TIMEOUT);
	}
	(void)pthread_mutex_unlock(&w->lock);
	return done;
}

static const char inside[] = "ssh-agent, which may ask somebody, or a command of ssh's config";

/* It is left behind: what it waits for libssh does not tell. */
static int
opening_late(const char *host, const _Atomic int *cancel, struct err *e)
{
	const char *agent;

	if (cancel && atomic_load(cancel))
		return err_set(e, atomic_load(cancel), "%s: given up waiting for %s", host, inside);
	agent = dial_silent_agent();
	if (!agent)
		return err_set(e, REPL_E_TIMEOUT, "%s: timed out waiting for %s", host, inside);
	return err_set(e, REPL_E_TIMEOUT,
		       "%s: timed out waiting for %s: ssh-agent at '%s' does not answer: restart "
		       "it or unset SSH_AUTH_SOCK",
		       host, inside, agent);
}

int
channel_open(const struct channel_options *o, uint64_t deadline_ns, struct channel **out,
	     struct err *e)
{
	unsigned forks = forks_count();
	char login[LOGIN_MAX];
	struct opening *w;
	pthread_t thread;
	int rc;

	*out = NULL;
	/* The program may have closed them since. */
	standard_take();
	login_name(o->target, login);
	if (left_is_full(login))
		return err_set(e, REPL_E_TIMEOUT,
			       "%s: not tried: %u logins before still wait for %s", o->target->host,
			       LEFT_MAX, inside);
	w = opening_new(o, deadline_ns);
	if (!w)
		return err_set(e, REPL_E_NOMEM, "out of memory for an SSH channel");
	rc = thread_start(&thread, opening_thread, w);
	if (rc) {
		opening_free(w);
		return err_errno(e, REPL_E_LIMIT, rc,
				 "no thread to connect to '%s', raise the limit of processes "
				 "(RLIMIT_NPROC, pids of the cgroup) or of memory (RLIMIT_AS)",
				 o->target->host);
	}
	if (!opening_wait(w, o, forks)) {
		channel_fds_tell(o->fds, -1, -1);
		if (forks_count() != forks)
			return err_set(e, REPL_E_LOST,
				       "%s: it is the process that has forked this one which "
				       "connects",
				       o->target->host);
		(void)pthread_detach(thread);
		return opening_late(o->target->host, o->cancel, e);
	}
	(void)pthread_join(thread, NULL);
	rc = w->rc;
	if (rc && e)
		*e = w->err;
	*out = w->channel;
	w->channel = NULL;
	if (*out)
		channel_attach(*out, o->cancel, o->fds);
	else
		channel_fds_tell(o->fds, -1, -1);
	opening_free(w);
	return rc;
}
