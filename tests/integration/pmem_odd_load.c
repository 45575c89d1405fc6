/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is not run by main(): constructors of libraries, and handlers of atexit(3):
 *
 *   early     a library of the program's has mapped it in its constructor
 *   loaded    the same of a library that it loads, $LOADED; it writes on until FILE.enough is there
 *   atexit    persists in a handler of atexit(3), while it is mapped
 *   openssl   it uses OpenSSL, from between mapping and persisting on, and is slow to end
 *   crypto    the same of OpenSSL that it has from its beginning on, and persists after that
 *   meanwhile a thread loads a library, $LOADED, which takes until FILE.enough is there
 *   crossed   a thread loads $LOADED, whose constructor persists, while another one opens the pool
 *   joins     it loads $LOADED, whose constructor waits for a thread that persists
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define LOAD_STRINGS 2U /* of OpenSSL's interface: with nothing to do it registers nothing */

void early_write(void);

static void
early(const char *path)
{
	(void)path;
	early_write();
}

static void
loaded(const char *path)
{
	char enough[4096];
	void (*write)(void);
	void *library;

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	check(setenv("EARLY_POOL", path, 1) == 0, "setenv");
	library = dlopen(getenv("LOADED"), RTLD_NOW);
	check(library != NULL, "dlopen");
	write = (void (*)(void))(uintptr_t)dlsym(library, "early_write");
	check(write != NULL, "early_write");
	while (access(enough, F_OK)) {
		write();
		(void)usleep(10000);
	}
}

static void *
load_long(void *arg)
{
	(void)arg;
	check(dlopen(getenv("LOADED"), RTLD_NOW) != NULL, "dlopen");
	return NULL;
}

static void
meanwhile(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), enough[4096];
	pthread_t loader;

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	check(setenv("EARLY_WAITS", enough, 1) == 0, "setenv");
	check(!pthread_create(&loader, NULL, load_long, NULL), "thread");
	wait_for_file(path, "enough.begun");
	/* A function of libpmem's is looked up first, which waits by itself. */
	memset(at, 'm', PAGE);
	check(msync(at, PAGE, MS_SYNC) == 0, "msync");
	(void)pthread_join(loader, NULL);
}

static void *
load_crossed(void *path)
{
	wait_for_file(path, "repl.slow");
	return load_long(NULL);
}

static void
crossed(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), enough[4096];
	pthread_t loader;

	/* It tells when it begins, and does not wait. */
	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	(void)close(file_new(enough, 1));
	check(setenv("EARLY_WAITS", enough, 1) == 0, "setenv");
	check(setenv("EARLY_POOL", path, 1) == 0, "setenv");
	check(!pthread_create(&loader, NULL, load_crossed, (void *)(uintptr_t)path), "thread");
	put(at + PAGE, 'c', PAGE);
	(void)pthread_join(loader, NULL);
}

static void
joins(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'j', PAGE);
	check(msync(at + PAGE, PAGE, MS_SYNC) == 0, "msync");
	check(setenv("EARLY_POOL", path, 1) == 0, "setenv");
	check(setenv("EARLY_THREAD", "1", 1) == 0, "setenv");
	(void)load_long(NULL);
}

static char *at_end;

static void
put_at_exit(void)
{
	put(at_end, 'e', PAGE);
}

static void
at_exit(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	at_end = at + PAGE;
	check(atexit(put_at_exit) == 0, "atexit");
	put(at, 'a', PAGE);
}

static void
take_time(void)
{
	(void)sleep(1);
}

static void
use_openssl(const char *path, int flags, void (*ends)(void))
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	void *library = dlopen("libcrypto.so.3", flags);
	int (*init)(uint64_t, const void *) = NULL;

	at_end = at + PAGE;
	check(atexit(ends) == 0, "atexit");
	if (library)
		init = (int (*)(uint64_t, const void *))(uintptr_t)dlsym(library,
									 "OPENSSL_init_crypto");
	check(init != NULL && init(LOAD_STRINGS, NULL) == 1, "OPENSSL_init_crypto");
	put(at, 'a', PAGE);
}

static void
by_openssl(const char *path)
{
	use_openssl(path, RTLD_NOW, take_time);
}

static void
by_linked_openssl(const char *path)
{
	use_openssl(path, RTLD_NOW | RTLD_NOLOAD, put_at_exit);
}

const struct odd_mode odd_load[] = {
	{"early", early},
	{"loaded", loaded},
	{"atexit", at_exit},
	{"openssl", by_openssl},
	{"crypto", by_linked_openssl},
	{"crossed", crossed},
	{"joins", joins},
	{"meanwhile", meanwhile},
	{NULL, NULL},
};
