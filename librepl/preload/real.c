/* SPDX-License-Identifier: BSD-3-Clause */
#include "real.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "follow.h"

/* With ours: what is last in a real function is one that returns to its caller. */
static void
found(void **where, void *f)
{
	follow_real((const void *)(uintptr_t)found);
	follow_real(f);
	__atomic_store_n(where, f, __ATOMIC_RELEASE);
}

void
real_early(void **where, const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (f)
		found(where, f);
}

static void *
real_symbol(const char *library, const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	/* Never given back: what is found stays where it is. */
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	return !f && handle ? dlsym(handle, name) : f;
}

void *
real_once(void **where, const char *library, const char *name)
{
	void *f = __atomic_load_n(where, __ATOMIC_ACQUIRE);

	if (!f) {
		f = real_symbol(library, name);
		found(where, f);
	}
	return f;
}
