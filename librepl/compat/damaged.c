/* SPDX-License-Identifier: BSD-3-Clause */
#include "damaged.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 16U

static struct {
	pthread_mutex_t lock;
	unsigned count;
	struct {
		pthread_t thread;
		char target[TARGET_MAX];
	} name[NAMES_MAX]; /* the oldest first */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock; all.count if it is none. */
static unsigned
name_find(const char *target)
{
	unsigned i = 0;

	while (i < all.count && (!pthread_equal(all.name[i].thread, pthread_self()) ||
				 strcmp(all.name[i].target, target) != 0))
		i++;
	return i;
}

static void
name_drop(unsigned i)
{
	if (i < all.count)
		memmove(&all.name[i], &all.name[i + 1], (--all.count - i) * sizeof(all.name[0]));
}

void
damaged_note(const char *target, bool is)
{
	pthread_mutex_lock(&all.lock);
	name_drop(name_find(target));
	if (is && all.count == NAMES_MAX)
		name_drop(0);
	if (is) {
		all.name[all.count].thread = pthread_self();
		(void)snprintf(all.name[all.count++].target, TARGET_MAX, "%s", target);
	}
	pthread_mutex_unlock(&all.lock);
}

bool
damaged_is(const char *target)
{
	bool is;

	pthread_mutex_lock(&all.lock);
	is = name_find(target) < all.count;
	pthread_mutex_unlock(&all.lock);
	return is;
}
