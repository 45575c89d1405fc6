/* SPDX-License-Identifier: BSD-3-Clause */
#include "descriptors.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "filelock.h"
#include "real.h"

#define PAUSE_NS        100000L
#define PAUSES          2000U
#define DESCRIPTORS_MAX 65536 /* one with a higher number is not noted */

static atomic_bool begun;

/* What a number was open for when it was taken; 0: it is not the replicas'. */
static _Atomic uint64_t taken[DESCRIPTORS_MAX];
static atomic_bool handles[DESCRIPTORS_MAX]; /* it is librepl's own: a program has none */
static atomic_int end;                       /* none from there on */
static _Atomic pid_t owner;
static atomic_uint opening; /* descriptors that are not taken yet */
static __thread unsigned opening_here __attribute__((tls_model("initial-exec")));
static __thread bool for_handle __attribute__((tls_model("initial-exec"))); /* of that */

/* ---- who calls ---- */

#define LIBRARY       "librepl.so"
#define VERBS_LIBRARY "libibverbs.so"

static bool
is_library(const char *path, const char *library)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, library, strlen(library)) == 0;
}

static bool
is_ours(const char *path)
{
	static const char *const names[] = {LIBRARY,        "librepl-preload.so", "libssh.so",
					    "libfabric.so", "librdmacm.so",       VERBS_LIBRARY};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (is_library(path, names[i]))
			return true;
	}
	return false;
}

void
descriptors_begin(void)
{
	atomic_store(&begun, true);
}

/* The path of its library, or NULL. Each time anew: libfabric is loaded later than librepl. */
static const char *
library_of(const void *caller)
{
	struct dl_find_object found;

	if (!atomic_load_explicit(&begun, memory_order_relaxed) ||
	    _dl_find_object((void *)(uintptr_t)caller, &found))
		return NULL;
	return found.dlfo_link_map->l_name;
}

bool
descriptors_caller(const void *caller)
{
	const char *path = library_of(caller);

	return path && is_ours(path);
}

bool
descriptors_opens(const void *caller)
{
	const char *path = library_of(caller);

	if (!path || !is_ours(path))
		return false;
	atomic_store(&owner, getpid());
	opening_here++;
	for_handle = is_library(path, LIBRARY);
	atomic_fetch_add(&opening, 1);
	return true;
}

/* ---- what is theirs ---- */

/* Of a socket or a file no other has the same; of an eventfd or a timer all have. */
static uint64_t
identity(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	return ((uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_rdev << 20) |
	       1ULL << 63;
}

static void
note(int fd, bool handle)
{
	int was;

	if (fd >= DESCRIPTORS_MAX)
		return;
	atomic_store(&handles[fd], handle);
	atomic_store(&taken[fd], identity(fd));
	was = atomic_load(&end);
	while (was <= fd && !atomic_compare_exchange_weak(&end, &was, fd + 1))
		;
}

void
descriptors_adopt(int fd)
{
	int saved = errno;

	if (fd > STDERR_FILENO && descriptors_any() &&
	    descriptors_whose(fd) != DESCRIPTORS_REPLICAS)
		note(fd, false);
	errno = saved;
}

/* What the kernel has handed out is no file of a name, unlike most that a program has. */
bool
descriptors_replaced(const void *caller, int fd)
{
	struct dl_find_object found;
	int saved = errno;
	struct stat st;
	bool replaced;

	if (!descriptors_any() || _dl_find_object((void *)(uintptr_t)caller, &found) ||
	    !is_library(found.dlfo_link_map->l_name, VERBS_LIBRARY))
		return false;
	replaced = fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) != 0;
	errno = saved;
	return replaced;
}

int
descriptors_note(int fd)
{
	int saved = errno, higher = -1;

	if (fd < 0)
		return fd;
	/* What the program prints would go there. */
	if (fd <= STDERR_FILENO)
		higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (higher >= 0) {
		(void)syscall(SYS_close, fd);
		fd = higher;
	}
	note(fd, for_handle);
	errno = saved;
	return fd;
}

int
descriptors_take(int fd)
{
	fd = descriptors_note(fd);
	/* None, in a child of a handler that had interrupted this. */
	if (opening_here > 0) {
		atomic_fetch_sub(&opening, 1);
		opening_here--;
	}
	return fd;
}

enum descriptors_whose
descriptors_whose(int fd)
{
	uint64_t id = fd < 0 || fd >= atomic_load(&end) ? 0 : atomic_load(&taken[fd]);
	int saved = errno;
	bool same;

	if (id == 0 || atomic_load(&owner) != getpid())
		return DESCRIPTORS_PROGRAM;
	same = identity(fd) == id;
	errno = saved;
	return same ? DESCRIPTORS_REPLICAS : DESCRIPTORS_LOST;
}

bool
descriptors_any(void)
{
	return atomic_load(&owner) == getpid();
}

/* Not for long, since an open(2) may take its time; not for one that this handler has interrupted.
 */
enum descriptors_whose
descriptors_settled(int fd)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int saved = errno;

	/* No thread is cancelled here, and a child has no such threads. */
	for (unsigned i = 0;
	     i < PAUSES && atomic_load(&opening) > opening_here && descriptors_any(); i++)
		(void)syscall(SYS_nanosleep, &pause, NULL);
	errno = saved;
	return descriptors_whose(fd);
}

void
descriptors_inherit(void)
{
	atomic_store(&owner, getpid());
}

void
descriptors_drop(int fd)
{
	atomic_store(&taken[fd], 0);
}

int
descriptors_next(int fd)
{
	int to = atomic_load(&end);

	for (fd = fd < 0 ? 0 : fd; fd < to; fd++) {
		if (descriptors_whose(fd) == DESCRIPTORS_REPLICAS)
			return fd;
	}
	return -1;
}

/*
 * Not closed: of what a handler's fork has interrupted the number is in use still, and by whoever
 * has a handle of its own to abandon. Where there is no dead one it is. No lock by fcntl(2) goes
 * with it that the child has taken.
 */
static void
deaden(int fd, int dead)
{
	if (!filelock_seen(fd) && (dead < 0 || syscall(SYS_dup3, dead, fd, O_CLOEXEC) < 0))
		(void)syscall(SYS_close, fd);
}

void
descriptors_forked(void)
{
	int to = atomic_load(&end);
	/* It is connected to nobody: any call fails at once. */
	int dead = to > 0 ? (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

	for (int fd = 0; fd < to; fd++) {
		uint64_t id = atomic_load(&taken[fd]);

		if (id && atomic_load(&handles[fd]) && identity(fd) == id)
			deaden(fd, dead);
		atomic_store(&taken[fd], 0);
	}
	if (dead >= 0)
		(void)syscall(SYS_close, dead);
	atomic_store(&end, 0);
	atomic_store(&opening, 0);
	opening_here = 0;
}
