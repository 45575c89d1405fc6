/* SPDX-License-Identifier: BSD-3-Clause */
#include "takeover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "log.h"
#include "poolstore.h"
#include "registry.h"

#define TERM_MS 2000
#define KILL_MS 2000

#define FDINFO_MAX 4096

/* A file that the kernel makes up: whole in one read, or not what is looked for. */
static bool
fdinfo_has_lock(int proc, const char *number)
{
	char path[sizeof("fdinfo/") + NAME_MAX], text[FDINFO_MAX];
	char *line, *save = NULL;
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "fdinfo/%s", number);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	/* "lock:   1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF" */
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "lock:", 5) == 0 && strstr(line, " FLOCK ") &&
		    strstr(line, " WRITE "))
			return true;
	return false;
}

/* Whether one of the descriptors of the process holds the exclusive lock on that file. */
static bool
holds_lock(int proc, const struct stat *file)
{
	int fd = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	bool holds = false;
	struct dirent *d;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while (!holds && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.' || fstatat(dirfd(dir), d->d_name, &st, 0) != 0 ||
		    st.st_dev != file->st_dev || st.st_ino != file->st_ino)
			continue;
		holds = fdinfo_has_lock(proc, d->d_name);
	}
	(void)closedir(dir);
	return holds;
}

static bool
pidfd_gone(int pidfd, int timeout_ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

/*
 * A descriptor of the process if it is this user's and has the lock, else -1. It is had before
 * that is looked at and alive after: the number was not another's meanwhile.
 */
static int
holder_open(pid_t pid, const struct stat *file)
{
	char path[32];
	struct stat st;
	bool is;
	int proc, pidfd;

	if (pid <= 1 || pid == getpid())
		return -1;
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%ld", (long)pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	is = proc >= 0 && fstat(proc, &st) == 0 && st.st_uid == geteuid() &&
	     holds_lock(proc, file) && !pidfd_gone(pidfd, 0);
	if (proc >= 0)
		(void)close(proc);
	if (is)
		return pidfd;
	(void)close(pidfd);
	return -1;
}

/* The first session of the registry that is the holder. */
static int
holder_find(int pool_dirfd, const struct stat *file, pid_t *pid, int *pidfd, struct err *e)
{
	struct json_object *entries = NULL;
	uint64_t value;
	int rc = registry_list(pool_dirfd, &entries, e);

	*pidfd = -1;
	if (rc)
		return rc;
	/* What an entry says of its pool may be a second old; the lock is what counts. */
	for (size_t i = 0; *pidfd < 0 && i < json_object_array_length(entries); i++) {
		struct json_object *o = json_object_array_get_idx(entries, i);

		if (control_get_u64(o, "pid", 2, INT32_MAX, &value, NULL))
			continue;
		*pid = (pid_t)value;
		*pidfd = holder_open(*pid, file);
	}
	json_object_put(entries);
	return 0;
}

static int
holder_end(pid_t pid, int pidfd, const char *name, struct err *e)
{
	log_warning("pool '%s': session of process %ld is ended for a promotion", name, (long)pid);
	/* In order, if it can: it takes in what its ring holds and says what it was doing. */
	(void)pidfd_send_signal(pidfd, SIGTERM, NULL, 0);
	if (pidfd_gone(pidfd, TERM_MS))
		return 0;
	log_warning("pool '%s': process %ld does not end, it is killed", name, (long)pid);
	(void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	if (pidfd_gone(pidfd, KILL_MS))
		return 0;
	return err_set(e, REPL_E_TIMEOUT,
		       "pool '%s': its writer, process %ld on the target, can't be ended: it "
		       "hangs in the kernel, look at the device of the pool directory",
		       name, (long)pid);
}

int
takeover_end_writer(struct pool_store *s, const char *name, struct err *e)
{
	struct pool_files f;
	struct stat st;
	pid_t pid = 0;
	int pidfd = -1;
	int rc = pool_files_open(s, name, O_RDONLY, &f, e);

	if (rc)
		return rc;
	if (fstat(f.sidecar_fd, &st) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "pool '%s': sidecar", name);
	pool_files_close(&f);
	if (!rc)
		rc = holder_find(s->dirfd, &st, &pid, &pidfd, e);
	if (!rc && pidfd < 0)
		rc = err_set(e, REPL_E_NOT_FOUND,
			     "pool '%s' is locked, and by no session of repld that has it open for "
			     "writing: a restore reads it, or a program has it open in place",
			     name);
	if (!rc)
		rc = holder_end(pid, pidfd, name, e);
	if (pidfd >= 0)
		(void)close(pidfd);
	return rc;
}
