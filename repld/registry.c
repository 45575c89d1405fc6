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
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "le.h"
#include "lock.h"
#include "log.h"
#include "poolpath.h"

#define REGISTRY_DIR ".repld"
#define SLOTS_FILE   "sessions"
#define SLOTS_MAX    10000U /* as of sessions-max */
#define SLOT_SIZE    8U
#define PIDS_OFF     ((off_t)1 << 40)
#define FILE_MAX     24
#define CHANCES      16U /* looks for a free slot before all are looked at */
#define ENTRY_LATE_S 3   /* then a session has told what it is, if it can */

/*
 * A session holds one slot of SLOTS_FILE locked for its life: the lock takes no space, so that
 * a session can be had where a disk is full. In the slot stands when it came. Its entry is
 * SLOT.json, the next one SLOT.tmp: both of REGISTRY_ENTRY_SIZE, with zeros behind the entry, they
 * are exchanged. From PIDS_OFF on, where no bytes are, it has that of its process's number locked.
 * The lock of the directory is held while slots are taken or looked at.
 */
struct registry {
	int dir;
	int slots;
	unsigned slot; /* SLOTS_MAX: none */
};

static const char *const entry_suffixes[] = {".json", ".tmp"};

#define SUFFIXES (sizeof(entry_suffixes) / sizeof(entry_suffixes[0]))

static void
file_name(char out[FILE_MAX], unsigned slot, const char *suffix)
{
	(void)snprintf(out, FILE_MAX, "%u%s", slot, suffix);
}

static void
remove_files(int dir, unsigned slot)
{
	char name[FILE_MAX];

	for (size_t i = 0; i < SUFFIXES; i++) {
		file_name(name, slot, entry_suffixes[i]);
		(void)unlinkat(dir, name, 0);
	}
}

static int
dir_lock(int dir, struct err *e)
{
	if (lock_take(dir, LOCK_NAMES_MS))
		return 0;
	if (errno != EWOULDBLOCK)
		return err_errno(e, err_from_errno(errno), errno,
				 "lock of the registry of sessions, '" REGISTRY_DIR
				 "' in the pool directory");
	/* It is held for a few small files: no other writer is in the way. */
	(void)err_set(e, REPL_E_TIMEOUT,
		      "the registry of sessions, '" REGISTRY_DIR
		      "' in the pool directory, is locked by a session that does not come to an "
		      "end within %u s: mostly since the target's disk stalls",
		      LOCK_NAMES_MS / 1000);
	return err_because(e, REPL_REASON_TARGET_IO);
}

/* ---- slots ---- */

static struct flock
slots_lock(unsigned first, unsigned count)
{
	return (struct flock){
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)first * SLOT_SIZE,
		.l_len = (off_t)count * SLOT_SIZE,
	};
}

/* Whether a session has one of them. */
static bool
slots_held(int slots, unsigned first, unsigned count)
{
	struct flock lock = slots_lock(first, count);

	return fcntl(slots, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Behind the last that is held. The kernel walks all locks at each look: hence not one by one. */
static unsigned
slots_end(int slots)
{
	unsigned low = 0, high = SLOTS_MAX;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (slots_held(slots, middle, SLOTS_MAX - middle))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Which of those before end are held, and how many. */
static unsigned
slots_scan(int slots, unsigned end, bool held[SLOTS_MAX])
{
	unsigned count = 0;

	memset(held, 0, SLOTS_MAX * sizeof(held[0]));
	for (unsigned i = 0; i < end; i++) {
		held[i] = slots_held(slots, i, 1);
		count += held[i];
	}
	return count;
}

static struct flock
pid_lock(pid_t pid, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = PIDS_OFF + pid,
		.l_len = 1,
	};
}

/* The lock is a shared one, which a file system that is read-only allows: slots_held() sees it,
 * too. */
static bool
slot_take(int slots, unsigned slot)
{
	struct flock lock = slots_lock(slot, 1);
	struct flock process = pid_lock(getpid(), F_RDLCK);
	uint8_t since[SLOT_SIZE];

	lock.l_type = F_RDLCK;
	if (fcntl(slots, F_OFD_SETLK, &lock) != 0 || fcntl(slots, F_OFD_SETLK, &process) != 0)
		return false;
	put_le64(since, clock_now_ns() / NS_PER_S);
	/* Without space for it the session counts as one that came long ago. */
	if (pwrite(slots, since, SLOT_SIZE, (off_t)slot * SLOT_SIZE) != (ssize_t)SLOT_SIZE)
		log_debug("slot %u of the registry of sessions: %s", slot, strerror(errno));
	return true;
}

static bool
slot_is_late(int slots, unsigned slot)
{
	uint8_t since[SLOT_SIZE];

	if (pread(slots, since, SLOT_SIZE, (off_t)slot * SLOT_SIZE) != (ssize_t)SLOT_SIZE)
		return true;
	return clock_now_ns() / NS_PER_S >= get_le64(since) + ENTRY_LATE_S;
}

/* ---- sessions ---- */

/* The entry of a live session, NULL if there is none yet or it is not one. */
static struct json_object *
entry_read(int dir, unsigned slot)
{
	struct json_object *o = NULL;
	char name[FILE_MAX], *text = NULL;
	struct stat st;
	ssize_t len;
	int fd;

	file_name(name, slot, ".json");
	fd = path_open(dir, name, O_RDONLY, 0);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		goto out;
	text = malloc(REGISTRY_ENTRY_SIZE);
	if (!text)
		goto out;
	len = read(fd, text, REGISTRY_ENTRY_SIZE);
	if (len > 0 && control_parse(text, strnlen(text, (size_t)len), &o, NULL) != 0)
		o = NULL;
out:
	free(text);
	(void)close(fd);
	return o;
}

/* "SLOT.json" and the like to SLOT; false for another name. */
static bool
slot_of(const char *name, unsigned *slot)
{
	char again[FILE_MAX];

	if (sscanf(name, "%5u", slot) != 1 || *slot >= SLOTS_MAX)
		return false;
	for (size_t i = 0; i < SUFFIXES; i++) {
		file_name(again, *slot, entry_suffixes[i]);
		if (strcmp(name, again) == 0)
			return true;
	}
	return false;
}

/* Under the directory's lock: what dead sessions have left. */
static int
sweep(int registry, const bool held[SLOTS_MAX], struct err *e)
{
	int fd = path_open(registry, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *d;
	unsigned slot;

	if (!dir) {
		int rc = err_errno(e, err_from_errno(errno), errno, "read registry of sessions");

		if (fd >= 0)
			(void)close(fd);
		return rc;
	}
	while ((d = readdir(dir)) != NULL)
		if (slot_of(d->d_name, &slot) && !held[slot])
			(void)unlinkat(registry, d->d_name, 0);
	(void)closedir(dir);
	return 0;
}

/* Under the directory's lock: gather entries, and count those who should have one by now. */
static void
gather(int dir, int slots, const bool held[SLOTS_MAX], struct json_object *entries,
       unsigned *untold)
{
	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		struct json_object *o;

		if (!held[i])
			continue;
		o = entry_read(dir, i);
		if (!o && untold && slot_is_late(slots, i))
			(*untold)++;
		if (o)
			control_append(entries, o);
	}
}

/* Without the space there is nothing that would only seem to be an entry. */
static void
reserve(const struct registry *r)
{
	char name[FILE_MAX];

	for (size_t i = 0; i < SUFFIXES; i++) {
		int fd;

		file_name(name, r->slot, entry_suffixes[i]);
		fd = path_open(r->dir, name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0 || posix_fallocate(fd, 0, REGISTRY_ENTRY_SIZE) != 0)
			(void)unlinkat(r->dir, name, 0);
		if (fd >= 0)
			(void)close(fd);
	}
}

/* A free one before end, if chance finds one: among many that is done soon. */
static bool
free_by_chance(int slots, unsigned end, unsigned *slot)
{
	uint32_t at[CHANCES] = {0};

	(void)!getrandom(at, sizeof(at), GRND_NONBLOCK);
	for (unsigned i = 0; i < CHANCES; i++) {
		*slot = at[i] % end;
		if (!slots_held(slots, *slot, 1))
			return true;
	}
	return false;
}

/*
 * Under the directory's lock, so that the limit is exact: a slot for one more. Mostly that is the
 * one behind all others. Where as many have been had as sessions may be, one of those that is free
 * tells that they are not that many. All are looked at where none is found so, where more than may
 * be have been had, and where nobody is left, since what dead sessions have left is removed then.
 */
static int
find_free(const struct registry *r, unsigned most, unsigned *slot, struct err *e)
{
	bool held[SLOTS_MAX];
	unsigned alive, end;

	*slot = slots_end(r->slots);
	if (*slot > 0 && *slot < most)
		return 0;
	end = *slot;
	if (end == most && free_by_chance(r->slots, end, slot))
		return 0;
	alive = slots_scan(r->slots, end, held);
	if (alive >= most)
		return err_set(e, REPL_E_LIMIT,
			       "%u session%s open and sessions-max is %u: wait for one to end or "
			       "raise sessions-max in repld.conf",
			       alive, alive == 1 ? " is" : "s are", most);
	for (*slot = 0; held[*slot];)
		(*slot)++;
	return alive == 0 ? sweep(r->dir, held, e) : 0;
}

static int
enter(struct registry *r, unsigned sessions_max, struct err *e)
{
	unsigned most = sessions_max < SLOTS_MAX ? sessions_max : SLOTS_MAX, slot;
	int rc = find_free(r, most, &slot, e);

	if (rc)
		return rc;
	if (!slot_take(r->slots, slot))
		return err_errno(e, err_from_errno(errno), errno,
				 "lock of '" REGISTRY_DIR "/" SLOTS_FILE "' in the pool directory");
	r->slot = slot;
	remove_files(r->dir, slot);
	reserve(r);
	return 0;
}

static int
dir_open(int pool_dirfd, int *dir, struct err *e)
{
	*dir = path_open(pool_dirfd, REGISTRY_DIR, O_RDONLY | O_DIRECTORY, 0);
	if (*dir >= 0)
		return 0;
	return path_own_error(errno,
			      "registry of sessions, '" REGISTRY_DIR "' in the pool directory", e);
}

static int
slots_open(int dir, int flags, int *slots, struct err *e)
{
	*slots = path_open(dir, SLOTS_FILE, flags, 0600);
	if (*slots < 0 && errno == EROFS)
		*slots = path_open(dir, SLOTS_FILE, O_RDONLY, 0);
	if (*slots >= 0)
		return 0;
	return path_own_error(
		errno,
		"registry of sessions, '" REGISTRY_DIR "/" SLOTS_FILE "' in the pool directory", e);
}

static int
registry_open(struct registry *r, int pool_dirfd, struct err *e)
{
	int rc;

	if (mkdirat(pool_dirfd, REGISTRY_DIR, 0700) != 0 && errno != EEXIST && errno != EROFS)
		return path_own_error(errno, "make '" REGISTRY_DIR "' in the pool directory", e);
	rc = dir_open(pool_dirfd, &r->dir, e);
	return rc ? rc : slots_open(r->dir, O_RDWR | O_CREAT, &r->slots, e);
}

int
registry_join(int pool_dirfd, unsigned sessions_max, struct registry **out, struct err *e)
{
	struct registry *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_set(e, REPL_E_NOMEM, "no memory to register the session");
	r->dir = r->slots = -1;
	r->slot = SLOTS_MAX;
	rc = registry_open(r, pool_dirfd, e);
	if (rc == REPL_E_NOT_FOUND) {
		/* It could not be made: the file system is read-only, and nothing but read here. */
		err_clear(e);
		rc = 0;
	} else if (!rc) {
		rc = dir_lock(r->dir, e);
		if (!rc) {
			rc = enter(r, sessions_max, e);
			lock_drop(r->dir);
		}
	}
	if (rc) {
		registry_leave(r);
		return rc;
	}
	*out = r;
	return 0;
}

void
registry_leave(struct registry *r)
{
	if (!r)
		return;
	if (r->slot < SLOTS_MAX)
		remove_files(r->dir, r->slot);
	if (r->slots >= 0)
		(void)close(r->slots);
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
registry_entry(struct json_object *o, char entry[REGISTRY_ENTRY_SIZE], struct err *e)
{
	size_t len;
	const char *text = json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len);

	if (!text)
		return err_set(e, REPL_E_NOMEM, "no memory for the session's entry");
	if (len > REGISTRY_ENTRY_SIZE)
		return err_set(e, REPL_E_INVAL, "the session's entry has %zu bytes, %u are allowed",
			       len, REGISTRY_ENTRY_SIZE);
	memset(entry, 0, REGISTRY_ENTRY_SIZE);
	memcpy(entry, text, len);
	return 0;
}

int
registry_update(struct registry *r, const char entry[REGISTRY_ENTRY_SIZE], struct err *e)
{
	char temp[FILE_MAX], name[FILE_MAX];
	int rc = 0;
	int fd;

	if (r->slot == SLOTS_MAX)
		return 0;
	file_name(temp, r->slot, ".tmp");
	file_name(name, r->slot, ".json");
	/* In its place: what is truncated gives its space back. */
	fd = path_open(r->dir, temp, O_WRONLY | O_CREAT, 0600);
	if (fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "session's entry '%s'", temp);
	/* Not synced: after a power cut there is no session to tell of. */
	if (!write_all(fd, entry, REGISTRY_ENTRY_SIZE) || entry_replace(r->dir, temp, name) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "session's entry '%s'", name);
	(void)close(fd);
	return rc;
}

bool
registry_has_process(int pool_dirfd, pid_t pid)
{
	struct flock lock = pid_lock(pid, F_WRLCK);
	int dir = -1, slots = -1;
	bool has;

	has = dir_open(pool_dirfd, &dir, NULL) == 0 &&
	      slots_open(dir, O_RDONLY, &slots, NULL) == 0 &&
	      fcntl(slots, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (slots >= 0)
		(void)close(slots);
	if (dir >= 0)
		(void)close(dir);
	return has;
}

int
registry_list(int pool_dirfd, struct json_object **out, unsigned *untold, struct err *e)
{
	struct json_object *entries = json_object_new_array();
	int dir = -1, slots = -1;
	bool held[SLOTS_MAX];
	int rc;

	if (untold)
		*untold = 0;
	if (!entries)
		return err_set(e, REPL_E_NOMEM, "no memory for the list of sessions");
	rc = dir_open(pool_dirfd, &dir, e);
	if (!rc)
		rc = slots_open(dir, O_RDONLY, &slots, e);
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
	(void)slots_scan(slots, slots_end(slots), held);
	rc = sweep(dir, held, e);
	if (!rc)
		gather(dir, slots, held, entries, untold);
	lock_drop(dir);
out:
	if (slots >= 0)
		(void)close(slots);
	if (dir >= 0)
		(void)close(dir);
	if (!rc) {
		*out = entries;
		entries = NULL;
	}
	json_object_put(entries);
	return rc;
}
