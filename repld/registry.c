/* SPDX-License-Identifier: BSD-3-Clause */
#include "registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "lock.h"
#include "poolpath.h"

#define REGISTRY_DIR ".repld"
#define LOCK_SUFFIX  ".lock"
#define BASE_MAX     64
#define FILE_MAX     (BASE_MAX + 8)
#define ENTRY_MAX    16384U
#define ENTRY_LATE_S 3 /* then a session has told what it is, if it can */

/*
 * A session's files are BASE.lock, held locked for its life, BASE.json, its
 * entry, and BASE.tmp, the next one: both of ENTRY_MAX bytes, with zeros behind the entry, they are
 * exchanged. The lock of the directory is held while
 * a lock file is made or probed, so that none is seen before it is locked.
 */
struct registry {
	int dir;
	int lock_fd;
	char base[BASE_MAX]; /* "" until there are files */
};

static void
file_name(char out[FILE_MAX], const char *base, const char *suffix)
{
	(void)snprintf(out, FILE_MAX, "%.*s%s", BASE_MAX - 1, base, suffix);
}

static void
remove_files(int dir, const char *base)
{
	static const char *const suffixes[] = {".json", ".tmp", LOCK_SUFFIX};
	char name[FILE_MAX];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		file_name(name, base, suffixes[i]);
		(void)unlinkat(dir, name, 0);
	}
}

static int
dir_lock(int dir, struct err *e)
{
	if (lock_take(dir, LOCK_NAMES_MS))
		return 0;
	return err_errno(e, errno == EWOULDBLOCK ? REPL_E_BUSY : err_from_errno(errno), errno,
			 "lock of the registry of sessions, '" REGISTRY_DIR
			 "' in the pool directory");
}

/* The entry of a live session, NULL if there is none yet or it is not one. */
static struct json_object *
entry_read(int dir, const char *base)
{
	struct json_object *o = NULL;
	char name[FILE_MAX], *text = NULL;
	struct stat st;
	ssize_t len;
	int fd;

	file_name(name, base, ".json");
	fd = path_open(dir, name, O_RDONLY, 0);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		goto out;
	text = malloc(ENTRY_MAX);
	if (!text)
		goto out;
	len = read(fd, text, ENTRY_MAX);
	if (len > 0 && control_parse(text, strnlen(text, (size_t)len), &o, NULL) != 0)
		o = NULL;
out:
	free(text);
	(void)close(fd);
	return o;
}

static bool
is_alive(int dir, const char *lock_name)
{
	int fd = path_open(dir, lock_name, O_RDONLY, 0);
	bool alive;

	/* What can't be opened is gone, or not of this user: leave it. */
	if (fd < 0)
		return errno != ENOENT;
	alive = !lock_take(fd, 0);
	(void)close(fd);
	return alive;
}

/* "BASE.lock" to BASE; false for another name. */
static bool
base_of(const char *name, char base[BASE_MAX])
{
	size_t len = strlen(name), suffix_len = strlen(LOCK_SUFFIX);

	if (len <= suffix_len || len - suffix_len >= BASE_MAX ||
	    strcmp(name + len - suffix_len, LOCK_SUFFIX) != 0)
		return false;
	memcpy(base, name, len - suffix_len);
	base[len - suffix_len] = '\0';
	return true;
}

static bool
is_late(int dir, const char *lock_name)
{
	struct stat st;

	return fstatat(dir, lock_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       time(NULL) >= st.st_mtime + ENTRY_LATE_S;
}

/*
 * Under the directory's lock: count the live sessions, gather entries and count those who should
 * have one by now, remove the dead ones'.
 */
static int
scan(int registry, unsigned *alive, struct json_object *entries, unsigned *untold, struct err *e)
{
	int fd = path_open(registry, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	char base[BASE_MAX];
	struct dirent *d;

	*alive = 0;
	if (!dir) {
		int rc = err_errno(e, err_from_errno(errno), errno, "read registry of sessions");

		if (fd >= 0)
			(void)close(fd);
		return rc;
	}
	while ((d = readdir(dir)) != NULL) {
		struct json_object *o;

		if (!base_of(d->d_name, base))
			continue;
		if (!is_alive(registry, d->d_name)) {
			remove_files(registry, base);
			continue;
		}
		(*alive)++;
		o = entries ? entry_read(registry, base) : NULL;
		if (!o && untold && is_late(registry, d->d_name))
			(*untold)++;
		if (o && json_object_array_add(entries, o) != 0)
			json_object_put(o);
	}
	(void)closedir(dir);
	return 0;
}

static int
make_lock_file(struct registry *r, struct err *e)
{
	char name[FILE_MAX];
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	(void)snprintf(r->base, sizeof(r->base), "%ld-%016llx", (long)getpid(),
		       (unsigned long long)random);
	file_name(name, r->base, LOCK_SUFFIX);
	r->lock_fd = path_open(r->dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (r->lock_fd < 0 || !lock_take(r->lock_fd, 0))
		return err_errno(e, err_from_errno(errno), errno, "register session '%s'", name);
	return 0;
}

/* Without the space there is nothing that would only seem to be an entry. */
static void
reserve(const struct registry *r)
{
	static const char *const suffixes[] = {".json", ".tmp"};
	char name[FILE_MAX];

	for (unsigned i = 0; i < 2; i++) {
		int fd;

		file_name(name, r->base, suffixes[i]);
		fd = path_open(r->dir, name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0 || posix_fallocate(fd, 0, ENTRY_MAX) != 0)
			(void)unlinkat(r->dir, name, 0);
		if (fd >= 0)
			(void)close(fd);
	}
}

/* Under the directory's lock, so that the limit is exact. */
static int
enter(struct registry *r, unsigned sessions_max, struct err *e)
{
	unsigned alive;
	int rc;

	rc = scan(r->dir, &alive, NULL, NULL, e);
	if (rc)
		return rc;
	if (alive >= sessions_max)
		return err_set(
			e, REPL_E_LIMIT,
			"%u sessions are open and sessions-max is %u: wait for one to end or "
			"raise sessions-max in repld.conf",
			alive, sessions_max);
	rc = make_lock_file(r, e);
	if (!rc)
		reserve(r);
	return rc;
}

static int
dir_open(int pool_dirfd, int *dir, struct err *e)
{
	*dir = path_open(pool_dirfd, REGISTRY_DIR, O_RDONLY | O_DIRECTORY, 0);
	if (*dir >= 0)
		return 0;
	return err_errno(e, err_from_errno(errno), errno,
			 "registry of sessions, '" REGISTRY_DIR "' in the pool directory");
}

int
registry_join(int pool_dirfd, unsigned sessions_max, struct registry **out, struct err *e)
{
	struct registry *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_set(e, REPL_E_NOMEM, "no memory to register the session");
	r->dir = r->lock_fd = -1;
	if (mkdirat(pool_dirfd, REGISTRY_DIR, 0700) != 0 && errno != EEXIST) {
		rc = err_errno(e, err_from_errno(errno), errno,
			       "make '" REGISTRY_DIR "' in the pool directory");
		goto out;
	}
	rc = dir_open(pool_dirfd, &r->dir, e);
	if (rc)
		goto out;
	rc = dir_lock(r->dir, e);
	if (rc)
		goto out;
	rc = enter(r, sessions_max, e);
	lock_drop(r->dir);
	if (rc)
		goto out;
	*out = r;
	r = NULL;
out:
	registry_leave(r);
	return rc;
}

void
registry_leave(struct registry *r)
{
	if (!r)
		return;
	if (r->lock_fd >= 0) {
		remove_files(r->dir, r->base);
		lock_drop(r->lock_fd);
		(void)close(r->lock_fd);
	}
	if (r->dir >= 0)
		(void)close(r->dir);
	free(r);
}

static bool
write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

/* Where files can't be exchanged, or there is no other, the next entry needs space anew. */
static int
entry_replace(int dir, const char *temp, const char *name)
{
	return renameat2(dir, temp, dir, name, RENAME_EXCHANGE) == 0
		       ? 0
		       : renameat(dir, temp, dir, name);
}

int
registry_update(struct registry *r, struct json_object *o, struct err *e)
{
	char temp[FILE_MAX], name[FILE_MAX], entry[ENTRY_MAX] = {0};
	const char *text;
	size_t len;
	int rc = 0;
	int fd;

	text = json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len);
	if (!text)
		return err_set(e, REPL_E_NOMEM, "no memory for the session's entry");
	if (len > ENTRY_MAX)
		return err_set(e, REPL_E_INVAL, "the session's entry has %zu bytes, %u are allowed",
			       len, ENTRY_MAX);
	file_name(temp, r->base, ".tmp");
	file_name(name, r->base, ".json");
	memcpy(entry, text, len);
	/* In its place: what is truncated gives its space back. */
	fd = path_open(r->dir, temp, O_WRONLY | O_CREAT, 0600);
	if (fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "session's entry '%s'", temp);
	/* Not synced: after a power cut there is no session to tell of. */
	if (!write_all(fd, entry, ENTRY_MAX) || entry_replace(r->dir, temp, name) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "session's entry '%s'", name);
	(void)close(fd);
	return rc;
}

int
registry_list(int pool_dirfd, struct json_object **out, unsigned *untold, struct err *e)
{
	struct json_object *entries = json_object_new_array();
	unsigned alive;
	int dir = -1;
	int rc = 0;

	if (untold)
		*untold = 0;
	if (!entries)
		return err_set(e, REPL_E_NOMEM, "no memory for the list of sessions");
	rc = dir_open(pool_dirfd, &dir, e);
	if (rc == REPL_E_NOT_FOUND) {
		/* No session was ever here. */
		err_clear(e);
		rc = 0;
		goto out;
	}
	if (!rc)
		rc = dir_lock(dir, e);
	if (rc)
		goto out;
	rc = scan(dir, &alive, entries, untold, e);
	lock_drop(dir);
out:
	if (dir >= 0)
		(void)close(dir);
	if (!rc) {
		*out = entries;
		entries = NULL;
	}
	json_object_put(entries);
	return rc;
}
