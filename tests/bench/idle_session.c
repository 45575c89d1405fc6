/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle_session - open a pool of 16 MiB, persist once, say so and do nothing for
 * a while: what a session costs that nobody uses.
 *
 * usage: idle_session FILE TARGET/POOL IDENTITY KNOWN-HOSTS SECONDS
 */
#include <fcntl.h>
#include <librepl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE (16U << 20)

static void *
map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *mem = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, SIZE) == 0)
		mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return mem == MAP_FAILED ? NULL : mem;
}

static int
fail(const char *what)
{
	(void)fprintf(stderr, "idle_session: %s: %s\n", what, repl_errormsg());
	return 1;
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg = NULL;
	struct repl *r = NULL;
	char *mem;

	if (argc != 6)
		return 2;
	mem = map_file(argv[1]);
	if (!mem) {
		perror(argv[1]);
		return 1;
	}
	if (repl_config_new(&cfg) || repl_config_add_target(cfg, argv[2]) ||
	    repl_config_set(cfg, "identity", argv[3]) ||
	    repl_config_set(cfg, "known-hosts", argv[4]))
		return fail("configuration");
	if (repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &r))
		return fail("open");
	memset(mem, 1, 64);
	if (repl_persist(r, 0, 0, 64))
		return fail("persist");
	(void)puts("open");
	(void)fflush(stdout);
	(void)sleep((unsigned)atoi(argv[5]));
	if (repl_close(r))
		return fail("close");
	repl_config_free(cfg);
	return 0;
}
