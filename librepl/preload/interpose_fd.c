/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions by which descriptors come and go: what librepl opens is noted,
 * and nobody else closes it. See descriptors.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "descriptors.h"
#include "filelock.h"
#include "pools.h"
#include "real.h"
#include "resize.h"

#define EXPORT __attribute__((visibility("default")))
#define OURS   descriptors_caller(__builtin_return_address(0))

/* The same, of who is to give the new descriptor to descriptors_take(), whatever comes. */
#define OPENS descriptors_opens(__builtin_return_address(0))

/* X(name): those that are called by way of libc, since a thread can be cancelled in some. */
#define NEXT_TABLE(X)                                                                              \
	X(open)                                                                                    \
	X(openat)                                                                                  \
	X(mkostemp)                                                                                \
	X(accept4)                                                                                 \
	X(fcntl)                                                                                   \
	X(close)                                                                                   \
	X(dup2)                                                                                    \
	X(closefrom)

static struct {
#define NEXT_MEMBER(name) __typeof__(&name) name;
	NEXT_TABLE(NEXT_MEMBER)
#undef NEXT_MEMBER
} next;

/* Looked up at once: to do so when they are called is too late in a handler or an allocator. */
__attribute__((constructor)) static void
next_init(void)
{
#define NEXT_FIND(name) next.name = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name);
	NEXT_TABLE(NEXT_FIND)
#undef NEXT_FIND
}

/*
 * ---- they come ----
 *
 * With the flag for execve(2), too, which libfabric leaves out: a command that the program runs
 * would have the connections, and might have other rights and outlive it.
 */

static mode_t
mode_of(int flags, va_list ap)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

static int
opened(int fd, int flags)
{
	if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH) && pools_any())
		pools_opened(fd);
	return fd;
}

struct opening {
	int dir;
	const char *path;
	int flags;
	mode_t mode;
};

static int
open_by(const void *arg)
{
	const struct opening *o = arg;

	if (o->dir == AT_FDCWD && next.open)
		return next.open(o->path, o->flags, o->mode);
	return next.openat ? next.openat(o->dir, o->path, o->flags, o->mode)
			   : (int)syscall(SYS_openat, o->dir, o->path, o->flags, o->mode);
}

/* With O_TRUNC: of a pool it takes all away, as truncate(2) does. */
static int
open_empty(const struct opening *o)
{
	int saved_errno = errno, fd;
	struct stat before;

	if (fstatat(o->dir, o->path, &before, 0) || !S_ISREG(before.st_mode)) {
		errno = saved_errno;
		return open_by(o);
	}
	fd = resize_by(&before, 0, open_by, o);
	resized(&before, resize_left(&before, fd, o->dir, o->path));
	return fd;
}

static int
open_for(bool ours, int dir, const char *path, int flags, mode_t mode)
{
	struct opening o = {dir, path, flags | (ours ? O_CLOEXEC : 0), mode};

	if (ours)
		return descriptors_take(open_by(&o));
	return opened((flags & O_TRUNC) && pools_any() ? open_empty(&o) : open_by(&o), flags);
}

EXPORT int
open(const char *path, int flags, ...)
{
	bool ours = OPENS;
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return open_for(ours, AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));

EXPORT int
openat(int dir, const char *path, int flags, ...)
{
	bool ours = OPENS;
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return open_for(ours, dir, path, flags, mode);
}

EXPORT int openat64(int dir, const char *path, int flags, ...) __attribute__((alias("openat")));

EXPORT int
creat(const char *path, mode_t mode)
{
	return open_for(OPENS, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT int creat64(const char *path, mode_t mode) __attribute__((alias("creat")));

EXPORT int
mkostemp(char *path, int flags)
{
	bool ours = OPENS;
	int fd;

	if (!next.mkostemp)
		next_init();
	fd = next.mkostemp(path, flags | (ours ? O_CLOEXEC : 0));
	return ours ? descriptors_take(fd) : fd;
}

EXPORT int
socket(int domain, int type, int protocol)
{
	bool ours = OPENS;
	int fd = (int)syscall(SYS_socket, domain, type | (ours ? SOCK_CLOEXEC : 0), protocol);

	return ours ? descriptors_take(fd) : fd;
}

EXPORT int
socketpair(int domain, int type, int protocol, int fds[2])
{
	bool ours = OPENS;
	int rc = (int)syscall(SYS_socketpair, domain, type | (ours ? SOCK_CLOEXEC : 0), protocol,
			      fds);

	if (ours && rc == 0)
		fds[0] = descriptors_note(fds[0]);
	if (ours && rc == 0)
		fds[1] = descriptors_take(fds[1]);
	else if (ours)
		(void)descriptors_take(-1);
	return rc;
}

EXPORT int
accept4(int sock, struct sockaddr *addr, socklen_t *len, int flags)
{
	bool ours = OPENS;
	int fd;

	flags |= ours ? SOCK_CLOEXEC : 0;
	fd = next.accept4 ? next.accept4(sock, addr, len, flags)
			  : (int)syscall(SYS_accept4, sock, addr, len, flags);
	return ours ? descriptors_take(fd) : fd;
}

EXPORT int
eventfd(unsigned value, int flags)
{
	bool ours = OPENS;
	int fd = (int)syscall(SYS_eventfd2, value, flags | (ours ? EFD_CLOEXEC : 0));

	return ours ? descriptors_take(fd) : fd;
}

EXPORT int
epoll_create(int size)
{
	bool ours;
	int fd;

	if (size <= 0) {
		errno = EINVAL;
		return -1;
	}
	ours = OPENS;
	fd = (int)syscall(SYS_epoll_create1, ours ? EPOLL_CLOEXEC : 0);
	return ours ? descriptors_take(fd) : fd;
}

EXPORT int
epoll_create1(int flags)
{
	bool ours = OPENS;
	int fd = (int)syscall(SYS_epoll_create1, flags | (ours ? EPOLL_CLOEXEC : 0));

	return ours ? descriptors_take(fd) : fd;
}

EXPORT int
timerfd_create(int clock, int flags)
{
	bool ours = OPENS;
	int fd = (int)syscall(SYS_timerfd_create, clock, flags | (ours ? TFD_CLOEXEC : 0));

	return ours ? descriptors_take(fd) : fd;
}

EXPORT int
fcntl(int fd, int op, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, op);
	arg = va_arg(ap, void *);
	va_end(ap);
	/* None of libfabric's is to block. */
	if (op == F_SETFL && OURS)
		descriptors_adopt(fd);
	return next.fcntl ? next.fcntl(fd, op, arg) : (int)syscall(SYS_fcntl, fd, op, arg);
}

EXPORT int fcntl64(int fd, int op, ...) __attribute__((alias("fcntl")));

/* ---- they go ---- */

static int
close_real(int fd)
{
	return next.close ? next.close(fd) : (int)syscall(SYS_close, fd);
}

EXPORT int
close(int fd)
{
	bool ours = OURS;
	enum descriptors_whose whose = ours ? descriptors_whose(fd) : descriptors_settled(fd);

	if (whose == DESCRIPTORS_PROGRAM)
		return ours && descriptors_replaced(__builtin_return_address(0), fd)
			       ? 0
			       : close_real(fd);
	/* As of a number that is not open: who closes all goes on. */
	if (whose == DESCRIPTORS_REPLICAS && !ours) {
		errno = EBADF;
		return -1;
	}
	descriptors_drop(fd);
	return whose == DESCRIPTORS_LOST && ours ? 0 : close_real(fd);
}

static int
dup_real(int from, int to, int flags)
{
	if (flags >= 0)
		return (int)syscall(SYS_dup3, from, to, flags);
	if (!next.dup2)
		next_init();
	return next.dup2(from, to);
}

/*
 * A number that the program did not get from the system. One that is the replicas' is busy: the
 * connection has no other one. One that is not in use they may get any moment, so the
 * kernel is asked for it as for any that is free. flags -1: of dup2(2).
 */
static int
dup_onto(int from, int to, int flags)
{
	int by = flags > 0 && (flags & O_CLOEXEC) ? F_DUPFD_CLOEXEC : F_DUPFD, fd;
	bool used;

	while (from != to && descriptors_any()) {
		/* Before it is asked whose: they may open it in between. */
		used = to < 0 || fcntl(to, F_GETFD) >= 0;
		if (descriptors_settled(to) == DESCRIPTORS_REPLICAS) {
			errno = EBUSY;
			return -1;
		}
		if (used || (flags > 0 && (flags & ~O_CLOEXEC)))
			break;
		fd = fcntl(from, by, to);
		if (fd == to)
			return fd;
		if (fd < 0)
			break;
		filelock_close(fd);
	}
	return dup_real(from, to, flags);
}

EXPORT int
dup2(int from, int to)
{
	return OURS ? dup_real(from, to, -1) : dup_onto(from, to, -1);
}

EXPORT int
dup3(int from, int to, int flags)
{
	if (!OPENS)
		return dup_onto(from, to, flags);
	return descriptors_take(dup_real(from, to, flags | O_CLOEXEC));
}

EXPORT int
close_range(unsigned from, unsigned to, int flags)
{
	int fd, rc = 0;

	(void)descriptors_settled(-1);
	while (rc == 0 && from <= to && from <= INT_MAX &&
	       (fd = descriptors_next((int)from)) >= 0 && (unsigned)fd <= to) {
		if ((unsigned)fd > from)
			rc = (int)syscall(SYS_close_range, from, (unsigned)fd - 1, flags);
		from = (unsigned)fd + 1;
		if (from > to)
			return rc;
	}
	return rc ? rc : (int)syscall(SYS_close_range, from, to, flags);
}

EXPORT void
closefrom(int from)
{
	int fd;

	if (from < 0)
		from = 0;
	(void)descriptors_settled(-1);
	for (; (fd = descriptors_next(from)) >= 0; from = fd + 1) {
		for (int i = from; i < fd; i++)
			(void)close_real(i);
	}
	if (!next.closefrom)
		next_init();
	next.closefrom(from);
}
