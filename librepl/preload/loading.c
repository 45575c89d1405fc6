/* SPDX-License-Identifier: BSD-3-Clause */
#include "loading.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "descriptors.h"
#include "pools_impl.h"
#include "thread.h"

#define LOOK_NS  5000000000ULL /* our own take some of that on a busy machine */
#define PAUSE_NS 100000L

/* Since when a thread waits for the linker's lock; 0: none does. */
static _Atomic uint64_t since_ns;
static atomic_bool told; /* that it is long */

static void *
look(void *arg)
{
	(void)arg;
	/* Of the program itself: nothing is loaded, but the lock is taken. */
	(void)dlopen(NULL, RTLD_LAZY);
	atomic_store(&since_ns, 0);
	if (!atomic_exchange(&told, false))
		return NULL;
	for (unsigned i = 0; i < pool_count; i++)
		atomic_store(&pools[i].try_now, true);
	return NULL;
}

static bool
is_long(void)
{
	uint64_t since = atomic_load(&since_ns);

	return since && now_ns() - since >= LOOK_NS;
}

/*
 * When this thread's own look has begun, or 0: another one's is long. One that was about to end may
 * have had the lock before this thread took that.
 */
static uint64_t
look_begin(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t mine = now_ns(), none = 0;

	while (!atomic_compare_exchange_strong(&since_ns, &none, mine)) {
		if (is_long())
			return 0;
		(void)nanosleep(&pause, NULL);
		mine = now_ns();
		none = 0;
	}
	/* It is none of the program's. */
	descriptors_begin();
	if (thread_start_detached(look, NULL))
		atomic_store(&since_ns, 0);
	return mine;
}

/* Of another thread's look that was long and has ended meanwhile no more is known. */
bool
loading_now(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t mine;

	do {
		mine = look_begin();
		while (mine && atomic_load(&since_ns) == mine && !is_long())
			(void)nanosleep(&pause, NULL);
		if (mine && atomic_load(&since_ns) != mine)
			return false;
		atomic_store(&told, true);
		if (is_long())
			return true;
	} while (mine == 0);
	return false;
}

void
loading_forked(void)
{
	atomic_store(&since_ns, 0);
}
