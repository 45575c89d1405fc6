/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target - parse "[user@]host[:ssh-port]/pool" and check pool names. Pure.
 *
 * host may be an IPv6 address in brackets. User and host hold only characters
 * that mean nothing to a shell, as ssh may hand them to a ProxyCommand. A pool
 * name is a relative path of components of at most TARGET_COMPONENT_MAX
 * printable ASCII characters; none is empty, begins with a dot or ends in
 * ".repl" (the sidecar's suffix). The target resolves it beneath its pool
 * directory only.
 */
#ifndef COMMON_TARGET_H
#define COMMON_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

#define TARGET_USER_MAX      64
#define TARGET_HOST_MAX      256
#define TARGET_POOL_MAX      255 /* whole name */
#define TARGET_COMPONENT_MAX 200 /* leaves room for suffixes of other files beside it */
#define TARGET_ADDRESS_MAX   (TARGET_HOST_MAX + 16)
#define TARGET_TEXT_MAX      (TARGET_USER_MAX + TARGET_HOST_MAX + TARGET_POOL_MAX + 16)

struct target {
	char user[TARGET_USER_MAX];     /* "" = as ssh would choose */
	char host[TARGET_HOST_MAX];     /* without brackets */
	unsigned port;                  /* 0 = as ssh would choose */
	char pool[TARGET_POOL_MAX + 1]; /* "" if the text names a host only */
};

/*
 * need_pool: REPL_E_INVAL if there is no "/pool". The text names what is wrong;
 * *t is filled on success only.
 */
int target_parse(const char *text, bool need_pool, struct target *t, struct err *e);

/* "[user@]host[:port][/pool]"; size TARGET_TEXT_MAX holds every target. */
void target_format(const struct target *t, char *out, size_t size);

/* "host:port" as errors have it, an IPv6 address in brackets. Returns out. */
const char *target_address(const char *host, unsigned port, char out[TARGET_ADDRESS_MAX]);

/* 0 or REPL_E_INVAL with a text that names the rule that was broken. */
int pool_name_check(const char *name, struct err *e);

#endif
