/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: api_unload LIBRARY TARGET KNOWN-HOSTS
 *
 * Loads librepl as a plugin would, opens a target that does not come in time, unloads it, and
 * is there until the end of standard input, when whatever an opening has left behind ends.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <librepl.h>

#define POOL 65536U

static _Alignas(4096) char pool[POOL];

static void *
look_up(void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	if (!p)
		(void)fprintf(stderr, "%s\n", dlerror());
	return p;
}

static int
open_and_fail(void *lib, const char *target, const char *known_hosts)
{
	__typeof__(repl_config_new) *config_new = look_up(lib, "repl_config_new");
	__typeof__(repl_config_set) *config_set = look_up(lib, "repl_config_set");
	__typeof__(repl_config_add_target) *add = look_up(lib, "repl_config_add_target");
	__typeof__(repl_config_free) *config_free = look_up(lib, "repl_config_free");
	__typeof__(repl_open) *open_pool = look_up(lib, "repl_open");
	struct repl_config *cfg = NULL;
	struct repl *r = NULL;
	int rc;

	if (!config_new || !config_set || !add || !config_free || !open_pool)
		return 2;
	rc = config_new(&cfg);
	rc = rc ? rc : config_set(cfg, "known-hosts", known_hosts);
	rc = rc ? rc : config_set(cfg, "connect-timeout", "500");
	rc = rc ? rc : config_set(cfg, "on-loss", "fail");
	rc = rc ? rc : add(cfg, target);
	rc = rc ? rc : open_pool(cfg, pool, POOL, REPL_OPEN_CREATE, &r);
	config_free(cfg);
	if (rc != REPL_E_TIMEOUT)
		(void)fprintf(stderr, "error %d\n", rc);
	return rc == REPL_E_TIMEOUT ? 0 : 1;
}

int
main(int argc, char **argv)
{
	void *lib = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	char c;
	int rc;

	if (!lib) {
		(void)fprintf(stderr, "%s\n", argc == 4 ? dlerror() : "arguments");
		return 2;
	}
	rc = open_and_fail(lib, argv[2], argv[3]);
	if (rc || dlclose(lib))
		return rc ? rc : 2;
	(void)puts("unloaded");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	(void)sleep(1);
	return 0;
}
