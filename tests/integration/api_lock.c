/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_lock FILE - locks its pool by fcntl(2), and has it locked after opening the replicas that
 * REPL_CONFIG names, after closing them, and after opening them again with something to copy.
 *
 * api_lock FILE amid - locks it at the moment at which the library closes a descriptor of it, which
 * nobody could tell from a look before, and has it locked when the replica was lost, which it waits
 * for when it has said that it has opened it, and is back. What the library has open of the file
 * is closed at the end.
 *
 * api_lock FILE left - locks it, opens it, and its main() leaves by pthread_exit(3), before the
 * replica is lost; that was so when it has said that it is open.
 */
#include <librepl.h>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api_env.h"

#define SIZE (64UL << 20)

static int watched = -1;        /* the program's own descriptor of its pool */
static atomic_bool amid;        /* it is locked by that before another one is closed */
static _Atomic unsigned closed; /* so many were */

static bool
is_watched(int fd)
{
	struct stat is, own;

	return fd != watched && fstat(fd, &is) == 0 && fstat(watched, &own) == 0 &&
	       is.st_dev == own.st_dev && is.st_ino == own.st_ino;
}

/* In front of libc's. */
__attribute__((visibility("default"))) int
close(int fd)
{
	int (*real)(int) = (int (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "close");
	struct flock lock = {.l_type = F_WRLCK};

	if (is_watched(fd)) {
		atomic_fetch_add(&closed, 1);
		if (atomic_load(&amid))
			(void)fcntl(watched, F_SETLK, &lock);
	}
	return real(fd);
}

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

/* Descriptors of the pool beside the program's. */
static unsigned
others(void)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned n = 0;

	while (d && (entry = readdir(d)))
		n += entry->d_name[0] != '.' && is_watched((int)strtol(entry->d_name, NULL, 10));
	if (d)
		(void)closedir(d);
	return n;
}

static int
lost_and_back(struct repl *r, char *pool)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	(void)puts("open");
	(void)fflush(stdout);
	for (unsigned i = 0; i < 3000; i++) {
		memset(pool + SIZE / 4, 'c' + (int)(i % 20), 10000);
		if (repl_persist(r, 0, SIZE / 4, 10000) || repl_stat(r, 0, &st))
			return 1;
		if (st.reconnect_count > 0 && st.replication == REPL_REPL_ESTABLISHED)
			return 0;
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	(void)fprintf(stderr, "it does not come back: %s\n", st.reason);
	return 1;
}

static int
amid_closing(const struct repl_config *cfg, char *pool)
{
	struct repl *r = NULL;
	int rc;

	atomic_store(&amid, true);
	if (repl_open(cfg, pool, SIZE, REPL_OPEN_CREATE, &r)) {
		(void)fprintf(stderr, "%s\n", repl_errormsg());
		return 1;
	}
	rc = lost_and_back(r, pool);
	if (atomic_load(&closed) && !is_locked(watched)) {
		(void)fprintf(stderr, "what was locked amid %u closings is not any more\n",
			      atomic_load(&closed));
		rc = 1;
	}
	atomic_store(&amid, false);
	if (repl_close(r) || others() > 0 || atomic_load(&closed) == 0) {
		(void)fprintf(stderr, "%u descriptors of the pool are left, %u were closed\n",
			      others(), atomic_load(&closed));
		rc = 1;
	}
	return rc;
}

struct left {
	struct repl_config *cfg;
	struct repl *r;
	char *pool;
};

static void
left(void *arg)
{
	const struct left *l = arg;
	int rc = lost_and_back(l->r, l->pool);

	if (!rc && !is_locked(watched)) {
		(void)fprintf(stderr, "not locked any more when the replica is back\n");
		rc = 1;
	}
	rc |= repl_close(l->r) != 0;
	repl_config_free(l->cfg);
	if (!rc && !is_locked(watched)) {
		(void)fprintf(stderr, "not locked any more after repl_close()\n");
		rc = 1;
	}
	exit(rc);
}

static int
main_leaves(struct repl_config *cfg, char *pool)
{
	static struct left l;

	l.cfg = cfg;
	l.pool = pool;
	if (repl_open(cfg, pool, SIZE, REPL_OPEN_CREATE, &l.r))
		(void)fprintf(stderr, "%s\n", repl_errormsg());
	else
		(void)env_main_leaves(left, &l);
	return 1;
}

int
main(int argc, char **argv)
{
	bool by_amid = argc > 2 && strcmp(argv[2], "amid") == 0;
	struct flock lock = {.l_type = F_WRLCK};
	int fd = argc >= 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1, rc = 1;
	char *pool = MAP_FAILED;
	struct repl_config *cfg = NULL;

	watched = fd;
	if (fd < 0 || ftruncate(fd, (off_t)SIZE) || (!by_amid && fcntl(fd, F_SETLK, &lock)))
		return 2;
	pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED || repl_config_new(&cfg) || repl_config_load(cfg, NULL))
		return 2;
	memset(pool, 'a', 10000);
	if (argc > 2) {
		rc = by_amid ? amid_closing(cfg, pool) : main_leaves(cfg, pool);
		repl_config_free(cfg);
		return rc;
	}
	rc = once(cfg, fd, pool);
	memset(pool + SIZE / 2, 'b', 10000);
	if (!rc)
		rc = once(cfg, fd, pool);
	repl_config_free(cfg);
	return rc;
}
