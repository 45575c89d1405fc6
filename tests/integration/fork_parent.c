/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_parent FILE - has FILE open, with the configuration of REPL_CONFIG, and forks children that
 * keep a copy of its memory; what it writes while they live reaches the replica, and comes back
 * from there. With an RNIC the pages of its buffers must stay its own and not become the child's.
 * Nor must the children lose the pool over it, as what is registered on a device-DAX device, which
 * FILE may be. In the end it says how many bytes were taken from the pool itself.
 * Exit status 3: what came back are other bytes.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE   (1U << 20)
#define ROUNDS 3
#define ALIGN  (2U << 20) /* of mappings of device DAX */
#define SMALL  64

static bool differs;

/* By message and by RMA, and all of it read again. */
static bool
one_round(struct repl *r, uint8_t *mem, uint8_t *seen, int round)
{
	memset(mem, 'a' + round, SIZE);
	if (repl_persist(r, 0, 0, SMALL) || repl_persist(r, 0, 0, SIZE) ||
	    repl_read(r, 0, 0, seen, 0, SIZE))
		return false;
	differs = memcmp(mem, seen, SIZE) != 0;
	return !differs;
}

static pid_t
child_new(struct repl *r, const volatile uint8_t *mem)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	repl_abandon(r);
	/* Without the pool it dies of that, and not when it is told to. */
	for (uint8_t seen = 0;; seen = (uint8_t)(seen + mem[SIZE - 1])) {
		const struct timespec nap = {.tv_nsec = 10000000};

		(void)nanosleep(&nap, NULL);
	}
}

/* It has lived until now. */
static bool
child_end(pid_t pid)
{
	int status = 0;

	return kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGKILL;
}

static uint8_t *
map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	void *mem;

	if (fd < 0 || fstat(fd, &st) || (!S_ISCHR(st.st_mode) && ftruncate(fd, SIZE)))
		return NULL;
	mem = mmap(NULL, S_ISCHR(st.st_mode) ? ALIGN : SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	return mem == MAP_FAILED ? NULL : mem;
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg = NULL;
	struct repl *r = NULL;
	uint8_t *seen = malloc(SIZE);
	uint8_t *mem = argc == 2 ? map(argv[1]) : NULL;
	struct repl_stat st = {.struct_size = sizeof(st)};
	pid_t pids[ROUNDS] = {0};
	bool ok = seen && mem;

	if (!ok)
		return 2;
	ok = repl_config_new(&cfg) == 0 && repl_config_load(cfg, NULL) == 0 &&
	     repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &r) == 0;
	for (int i = 0; ok && i < ROUNDS; i++) {
		pids[i] = child_new(r, mem);
		ok = pids[i] > 0 && one_round(r, mem, seen, i);
		if (!ok)
			(void)fprintf(stderr, "round %d\n", i);
	}
	if (!ok)
		(void)fprintf(stderr, "%s\n", repl_errormsg());
	for (int i = 0; i < ROUNDS; i++) {
		if (pids[i] > 0 && !child_end(pids[i])) {
			(void)fprintf(stderr, "child %d was not alive any more\n", i);
			ok = false;
		}
	}
	if (ok && repl_stat(r, 0, &st) == 0)
		(void)printf("%" PRIu64 " bytes uncopied\n", st.uncopied_count);
	if (repl_close(r))
		ok = false;
	repl_config_free(cfg);
	free(seen);
	if (differs)
		return 3;
	return ok ? 0 : 1;
}
