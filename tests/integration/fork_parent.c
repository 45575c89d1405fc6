/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_parent FILE - has FILE open, with the configuration of REPL_CONFIG, and forks children that
 * keep a copy of its memory; what it writes while they live reaches the replica, and comes back
 * from there. With an RNIC the pages of its buffers must stay its own and not become the child's.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE   (1U << 20)
#define ROUNDS 3
#define SMALL  64

/* By message and by RMA, and all of it read again. */
static bool
one_round(struct repl *r, uint8_t *mem, uint8_t *seen, int round)
{
	memset(mem, 'a' + round, SIZE);
	return repl_persist(r, 0, 0, SMALL) == 0 && repl_persist(r, 0, 0, SIZE) == 0 &&
	       repl_read(r, 0, 0, seen, 0, SIZE) == 0 && memcmp(mem, seen, SIZE) == 0;
}

static pid_t
child_new(struct repl *r)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	repl_abandon(r);
	for (;;)
		(void)pause();
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg = NULL;
	struct repl *r = NULL;
	uint8_t *seen = malloc(SIZE);
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	pid_t pids[ROUNDS] = {0};
	bool ok = seen != NULL;
	uint8_t *mem;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 2;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ok = ok && mem != MAP_FAILED && repl_config_new(&cfg) == 0 &&
	     repl_config_load(cfg, NULL) == 0 &&
	     repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &r) == 0;
	for (int i = 0; ok && i < ROUNDS; i++) {
		pids[i] = child_new(r);
		ok = pids[i] > 0 && one_round(r, mem, seen, i);
		if (!ok)
			(void)fprintf(stderr, "round %d\n", i);
	}
	if (!ok)
		(void)fprintf(stderr, "%s\n", repl_errormsg());
	for (int i = 0; i < ROUNDS; i++) {
		if (pids[i] > 0 && kill(pids[i], SIGKILL) == 0)
			(void)waitpid(pids[i], NULL, 0);
	}
	if (repl_close(r))
		ok = false;
	repl_config_free(cfg);
	free(seen);
	return ok ? 0 : 1;
}
