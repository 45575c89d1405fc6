/* SPDX-License-Identifier: BSD-3-Clause */
#include "takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fileclaim.h"
#include "log.h"
#include "poolstore.h"
#include "registry.h"

#define TERM_MS 2000
#define KILL_MS 2000

/* Of whose sidecar the writer is looked for. */
struct wanted {
	int pool_dirfd;
	const char *name;
	struct stat file;            /* by fileclaim_stat() */
	struct json_object *entries; /* of sessions, where several files look like it; or NULL */
};

/* Who has the exclusive one. */
static pid_t
line_holder(const char *line, const struct stat *file)
{
	bool exclusive;
	pid_t owner;

	return fileclaim_line(line, file, &owner, &exclusive) && exclusive ? owner : 0;
}

static bool
holds_lock(pid_t pid, const struct stat *file)
{
	FILE *f = fopen("/proc/locks", "re");
	char *line = NULL;
	size_t room = 0;
	bool holds = false;

	if (!f)
		return false;
	while (!holds && getline(&line, &room, f) > 0)
		holds = line_holder(line, file) == pid;
	free(line);
	(void)fclose(f);
	return holds;
}

/* By its status: the owner of /proc/PID tells nothing, sessions are not dumpable. */
static bool
is_of_user(pid_t pid, uid_t user)
{
	char path[32], *line = NULL;
	unsigned real, effective;
	bool is = false;
	size_t room = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (getline(&line, &room, f) > 0) {
		if (sscanf(line, "Uid: %u %u", &real, &effective) != 2)
			continue;
		is = real == user && effective == user;
		break;
	}
	free(line);
	(void)fclose(f);
	return is;
}

/*
 * But for root whom the kernel lets be signalled is of the same user, and /proc may hide what is
 * not dumpable (hidepid=, ProtectProc=).
 */
static bool
is_ours(pid_t pid, int pidfd)
{
	return geteuid() == 0 ? is_of_user(pid, 0) : pidfd_send_signal(pidfd, 0, NULL, 0) == 0;
}

static bool
pidfd_gone(int pidfd, int timeout_ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

/*
 * A descriptor of the process if it is a session of this user's and has the lock, else -1. It is
 * had before that is looked at and alive after: the number was not another's meanwhile.
 */
static int
holder_open(int pool_dirfd, pid_t pid, const struct stat *file)
{
	int pidfd;

	if (pid <= 1 || pid == getpid())
		return -1;
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0)
		return -1;
	if (is_ours(pid, pidfd) && registry_has_process(pool_dirfd, pid) && holds_lock(pid, file) &&
	    !pidfd_gone(pidfd, 0))
		return pidfd;
	(void)close(pidfd);
	return -1;
}

/* What a session says that it has open, NULL: nothing. It may be a second old. */
static const char *
pool_told(struct json_object *entries, pid_t pid)
{
	size_t n = entries ? json_object_array_length(entries) : 0;
	struct json_object *own, *pool;

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(entries, i);

		if (json_object_object_get_ex(o, "pid", &own) &&
		    json_object_get_int64(own) == pid &&
		    json_object_object_get_ex(o, "pool", &pool))
			return json_object_get_string(pool);
	}
	return NULL;
}

/* One that has the lock, and tells of the pool or of none. */
static int
holder_find(const struct wanted *w, bool tells, pid_t *pid)
{
	FILE *f = fopen("/proc/locks", "re");
	char *line = NULL;
	size_t room = 0;
	int pidfd = -1;

	if (!f)
		return -1;
	while (pidfd < 0 && getline(&line, &room, f) > 0) {
		const char *told;

		*pid = line_holder(line, &w->file);
		told = pool_told(w->entries, *pid);
		if (tells ? told && strcmp(told, w->name) == 0 : !told)
			pidfd = holder_open(w->pool_dirfd, *pid, &w->file);
	}
	free(line);
	(void)fclose(f);
	return pidfd;
}

/*
 * What a session says of itself is asked only where the lock may be another pool's, of another
 * subvolume: there may have been no space for it.
 */
static int
wanted_find(struct pool_store *s, int sidecar, struct wanted *w, struct err *e)
{
	struct stat plain;

	if (fstat(sidecar, &plain) != 0 || fileclaim_stat(sidecar, &w->file) != 0)
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': sidecar", w->name);
	if (plain.st_dev == w->file.st_dev)
		return 0;
	return registry_list(s->dirfd, &w->entries, NULL, e);
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
	struct wanted w = {.pool_dirfd = s->dirfd, .name = name};
	struct pool_files f;
	pid_t pid = 0;
	int pidfd = -1;
	int rc = pool_files_open(s, name, O_RDONLY, &f, e);

	if (rc)
		return rc;
	rc = wanted_find(s, f.sidecar_fd, &w, e);
	pool_files_close(&f);
	if (!rc && w.entries)
		pidfd = holder_find(&w, true, &pid);
	if (!rc && pidfd < 0)
		pidfd = holder_find(&w, false, &pid);
	if (!rc && pidfd < 0)
		rc = err_set(e, REPL_E_NOT_FOUND,
			     "pool '%s' is locked, and by no session of repld that has it open for "
			     "writing: a restore reads it, a program has it open in place, or a "
			     "session of another version of repld has it",
			     name);
	if (!rc)
		rc = holder_end(pid, pidfd, name, e);
	if (pidfd >= 0)
		(void)close(pidfd);
	json_object_put(w.entries);
	return rc;
}
