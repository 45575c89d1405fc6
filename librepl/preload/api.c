/* SPDX-License-Identifier: BSD-3-Clause */
#include "api.h"

#include <dlfcn.h>
#include <stdint.h>

struct api api;

/* Of OpenSSL's documented interface: leave no handler that runs at exit. */
#define INIT_NO_ATEXIT 0x00080000UL

/*
 * libssh uses OpenSSL, whose handler at exit may come before the pools are closed.
 * A program that uses OpenSSL itself has decided before.
 */
static void
keep_openssl(void)
{
	void *crypto = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	int (*init)(uint64_t, const void *) = NULL;

	if (crypto)
		init = (int (*)(uint64_t, const void *))(uintptr_t)dlsym(crypto,
									 "OPENSSL_init_crypto");
	if (init)
		(void)init(INIT_NO_ATEXIT, NULL);
}

const char *
api_load(void)
{
	static void *library;

	if (library)
		return NULL;
	keep_openssl();
	/* Found beside this library, by the run path, or where the system has its libraries. */
	library = dlopen("librepl.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
#define API_LOAD(name)                                                                             \
	api.name = (__typeof__(&name))(uintptr_t)dlsym(library, #name);                            \
	if (!api.name) {                                                                           \
		library = NULL;                                                                    \
		return dlerror();                                                                  \
	}
	API_TABLE(API_LOAD)
#undef API_LOAD
	return NULL;
}
