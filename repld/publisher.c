/* SPDX-License-Identifier: BSD-3-Clause */
#include "publisher.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "thread.h"

struct publisher {
	struct registry *registry; /* of the thread, while it is there */
	pthread_mutex_t lock;      /* guards what follows */
	pthread_cond_t changed;
	bool stop;
	bool due; /* next is to be written */
	char next[REGISTRY_ENTRY_SIZE];
	struct err last;               /* what came of the last one that was written */
	char now[REGISTRY_ENTRY_SIZE]; /* of the thread: what it writes */
	pthread_t thread;
	bool thread_started;
};

/* It takes no memory and writes no log, which may: pools are mapped meanwhile, see pmem.h. */
static void *
publisher_main(void *arg)
{
	struct publisher *p = arg;
	struct err e;

	(void)pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->due && !p->stop)
			(void)pthread_cond_wait(&p->changed, &p->lock);
		if (p->stop)
			break;
		memcpy(p->now, p->next, sizeof(p->now));
		p->due = false;
		(void)pthread_mutex_unlock(&p->lock);
		err_clear(&e);
		(void)registry_update(p->registry, p->now, &e);
		(void)pthread_mutex_lock(&p->lock);
		p->last = e;
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

int
publisher_new(struct registry *r, struct publisher **out, struct err *e)
{
	struct publisher *p = calloc(1, sizeof(*p));
	int ret;

	*out = NULL;
	if (!p)
		return err_set(e, REPL_E_NOMEM, "no memory for the session's entry");
	p->registry = r;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->changed, NULL);
	ret = thread_start(&p->thread, publisher_main, p);
	if (ret)
		log_warning("status entry: no thread, so answers wait for the disk: %s",
			    strerror(ret));
	p->thread_started = ret == 0;
	*out = p;
	return 0;
}

void
publisher_free(struct publisher *p)
{
	if (!p)
		return;
	if (p->thread_started) {
		(void)pthread_mutex_lock(&p->lock);
		p->stop = true;
		(void)pthread_cond_signal(&p->changed);
		(void)pthread_mutex_unlock(&p->lock);
		(void)pthread_join(p->thread, NULL);
	}
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

int
publisher_put(struct publisher *p, struct json_object *o, struct err *e)
{
	char entry[REGISTRY_ENTRY_SIZE];
	int rc = registry_entry(o, entry, e);

	if (rc)
		return rc;
	if (!p->thread_started)
		return registry_update(p->registry, entry, e);
	(void)pthread_mutex_lock(&p->lock);
	memcpy(p->next, entry, sizeof(p->next));
	p->due = true;
	(void)pthread_cond_signal(&p->changed);
	rc = p->last.code;
	if (rc && e)
		*e = p->last;
	(void)pthread_mutex_unlock(&p->lock);
	return rc;
}
