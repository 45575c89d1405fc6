/* SPDX-License-Identifier: BSD-3-Clause */
#include "api.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "pools_impl.h"

#define LIBRARY "librepl.so.0"
#define OPENSSL "libcrypto.so.3"

#define INIT_NO_ATEXIT 0x00080000UL /* of OpenSSL's documented interface */

struct api api;

/*
 * Beside this library, else where the system has its libraries. Not by a run
 * path: whoever interposes dlopen(3), as sanitizers do, is the caller then.
 */
static void *
open_library(void)
{
	char path[PATH_MAX] = "";
	Dl_info self;
	const char *slash;
	void *library = NULL;

	if (dladdr(&api, &self) && (slash = strrchr(self.dli_fname, '/')) != NULL &&
	    snprintf(path, sizeof(path), "%.*s/" LIBRARY, (int)(slash - self.dli_fname),
		     self.dli_fname) < (int)sizeof(path))
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	/* Where it is there, its own error tells why it can't be loaded. */
	if (library || access(path, F_OK) == 0)
		return library;
	return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

void
api_begin(void)
{
	void *crypto = dlopen(OPENSSL, RTLD_NOW | RTLD_NOLOAD);
	int (*init)(uint64_t, const void *) = NULL;

	if (crypto)
		init = (int (*)(uint64_t, const void *))(uintptr_t)dlsym(crypto,
									 "OPENSSL_init_crypto");
	if (init)
		(void)init(INIT_NO_ATEXIT, NULL);
}

/*
 * A program may have loaded and used OpenSSL after it has mapped its pools, and that is cleaned up
 * before what was registered then. What is registered with OpenSSL last it calls first: librepl has
 * done so before, and calls libssh no more from there on.
 */
static void
openssl_begin(void)
{
	void *crypto = dlopen(OPENSSL, RTLD_NOW | RTLD_NOLOAD);
	int (*at_end)(void (*)(void)) = NULL;

	if (crypto)
		at_end = (int (*)(void (*)(void)))(uintptr_t)dlsym(crypto, "OPENSSL_atexit");
	if (at_end)
		(void)at_end(pools_end_openssl);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static bool there;
static atomic_bool loaded; /* looked at without it */

/*
 * A program that has opened no pool yet when another version is installed has this library of
 * before and that one's librepl.
 */
static const char *
load(void)
{
	void *library = open_library();

	if (!library)
		return dlerror();
#define API_LOAD(name)                                                                             \
	api.name = (__typeof__(&name))(uintptr_t)dlvsym(library, #name, LIBREPL_PRIVATE);          \
	if (!api.name)                                                                             \
		return LIBRARY " is of another build than this program's librepl-preload.so, as "  \
			       "after an upgrade below it: start the program again";
	API_PRIVATE(API_LOAD)
#undef API_LOAD
#define API_LOAD(name)                                                                             \
	api.name = (__typeof__(&name))(uintptr_t)dlsym(library, #name);                            \
	if (!api.name)                                                                             \
		return dlerror();
	API_PUBLIC(API_LOAD)
#undef API_LOAD
	openssl_begin();
	descriptors_begin();
	there = true;
	return NULL;
}

bool
api_loaded(void)
{
	return atomic_load(&loaded);
}

const char *
api_load(bool alone)
{
	const char *why;

	/* Of two pools the first flushes may come at once. */
	(void)pthread_mutex_lock(&lock);
	why = there ? NULL : load();
	if (!why && !alone && !loaded) {
		api.repl_prepare();
		atomic_store(&loaded, true);
	}
	(void)pthread_mutex_unlock(&lock);
	return why;
}

void
api_opened(void)
{
	atomic_store(&loaded, true);
}

bool
api_fork_begin(const struct timespec *end)
{
	return pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, end) == 0;
}

void
api_fork_end(void)
{
	(void)pthread_mutex_unlock(&lock);
}

void
api_forked(void)
{
	(void)pthread_mutex_init(&lock, NULL);
}
