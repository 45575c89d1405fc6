/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_lock FILE - locks its pool by fcntl(2), and has it locked after opening the replicas that
 * REPL_CONFIG names, after closing them, and after opening them again with something to copy.
 */
#include <librepl.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (64UL << 20)

static int
is_locked(int fd)
{
	struct flock lock = {.l_type = F_WRLCK};
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int
once(const struct repl_config *cfg, int fd, void *pool)
{
	struct repl *r = NULL;

	if (repl_open(cfg, pool, SIZE, REPL_OPEN_CREATE, &r)) {
		(void)fprintf(stderr, "%s\n", repl_errormsg());
		return 1;
	}
	if (!is_locked(fd)) {
		(void)fprintf(stderr, "not locked any more after repl_open()\n");
		return 1;
	}
	if (repl_close(r) || !is_locked(fd)) {
		(void)fprintf(stderr, "not locked any more after repl_close()\n");
		return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct flock lock = {.l_type = F_WRLCK};
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1, rc = 1;
	char *pool = MAP_FAILED;
	struct repl_config *cfg = NULL;

	if (fd < 0 || ftruncate(fd, (off_t)SIZE) || fcntl(fd, F_SETLK, &lock))
		return 2;
	pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED || repl_config_new(&cfg) || repl_config_load(cfg, NULL))
		return 2;
	memset(pool, 'a', 10000);
	rc = once(cfg, fd, pool);
	memset(pool + SIZE / 2, 'b', 10000);
	if (!rc)
		rc = once(cfg, fd, pool);
	repl_config_free(cfg);
	return rc;
}
