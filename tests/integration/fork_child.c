/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_child FILE [resync] - has FILE open, with the configuration of REPL_CONFIG, and a child that
 * has abandoned it, whose process id is printed. Both end when input does. With resync it forks
 * when its replica, which somebody else is to take from it, is being brought back.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE (1U << 20)

static void
wait_for_end(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

static int
wait_for_resync(struct repl *handle, void *mem)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	int byte = 0;

	do {
		memset(mem, ++byte, SIZE);
		if (repl_persist(handle, 0, 0, SIZE) || repl_stat(handle, 0, &st))
			return -1;
		(void)usleep(1000);
	} while (st.replication != REPL_REPL_RESYNCING);
	return 0;
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg = NULL;
	struct repl *handle = NULL;
	int fd = argc >= 2 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *mem;
	pid_t pid;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 2;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED || repl_config_new(&cfg) || repl_config_load(cfg, NULL) ||
	    repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &handle) ||
	    repl_persist(handle, 0, 0, 100) || (argc == 3 && wait_for_resync(handle, mem))) {
		(void)fprintf(stderr, "%s\n", repl_errormsg());
		return 1;
	}
	repl_config_free(cfg);
	pid = fork();
	if (pid < 0)
		return 2;
	if (pid == 0) {
		repl_abandon(handle);
		(void)printf("%ld\n", (long)getpid());
		(void)fflush(stdout);
		wait_for_end();
		_exit(0);
	}
	wait_for_end();
	if (repl_close(handle))
		return 1;
	(void)waitpid(pid, NULL, 0);
	return 0;
}
