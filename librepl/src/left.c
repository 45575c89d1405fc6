/* SPDX-License-Identifier: BSD-3-Clause */
#include "left.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct left *first;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
fork_child(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	first = NULL;
}

static void
init(void)
{
	(void)pthread_atfork(NULL, NULL, fork_child);
}

bool
left_is_full(const char *what)
{
	unsigned count = 0;

	(void)pthread_once(&once, init);
	(void)pthread_mutex_lock(&lock);
	for (const struct left *l = first; l; l = l->next)
		count += strcmp(l->what, what) == 0;
	(void)pthread_mutex_unlock(&lock);
	return count >= LEFT_MAX;
}

void
left_add(struct left *l)
{
	(void)pthread_once(&once, init);
	(void)pthread_mutex_lock(&lock);
	l->next = first;
	first = l;
	(void)pthread_mutex_unlock(&lock);
}

void
left_remove(const struct left *l)
{
	struct left **at = &first;

	(void)pthread_mutex_lock(&lock);
	while (*at && *at != l)
		at = &(*at)->next;
	if (*at)
		*at = l->next;
	(void)pthread_mutex_unlock(&lock);
}
