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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "real.h"

#define PAUSE_NS        100000L
#define PAUSES          2000U
#define DESCRIPTORS_MAX 65536 /* one with a higher number is not noted */

static atomic_bool begun;

/* What a number was open for when it was taken; 0: it is not the replicas'. */
static _Atomic uint64_t taken[DESCRIPTORS_MAX];
static atomic_int end; /* none from there on */
static _Atomic pid_t owner;
static atomic_uint opening; /* descriptors that are not taken yet */
static __thread unsigned opening_here __attribute__((tls_model("initial-exec")));

/* ---- who calls ---- */

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
	static const char *const names[] = {"librepl.so",   "librepl-preload.so", "libssh.so",
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

/* Each time anew: libfabric is loaded later than librepl. */
bool
descriptors_caller(const void *caller)
{
	struct dl_find_object found;

	return atomic_load_explicit(&begun, memory_order_relaxed) &&
	       _dl_find_object((void *)(uintptr_t)caller, &found) == 0 &&
	       is_ours(found.dlfo_link_map->l_name);
}

bool
descriptors_opens(const void *caller)
{
	bool ours = descriptors_caller(caller);

	if (ours) {
		atomic_store(&owner, getpid());
		opening_here++;
		atomic_fetch_add(&opening, 1);
	}
	return ours;
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
note(int fd)
{
	int was;

	if (fd >= DESCRIPTORS_MAX)
		return;
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
		note(fd);
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
	note(fd);
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

void
descriptors_forked(void)
{
	int to = atomic_load(&end);

	for (int fd = 0; fd < to; fd++)
		atomic_store(&taken[fd], 0);
	atomic_store(&end, 0);
	atomic_store(&opening, 0);
	opening_here = 0;
}
