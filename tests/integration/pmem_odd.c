/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_odd MODE FILE - what programs do to their mappings beside using them;
 * each mode leaves bytes in FILE that were made durable.
 *
 *   grow      the file gets longer, and is mapped at its end
 *   recreate  the file is deleted and made anew while it stays mapped
 *   part      a mapping of an odd length is taken back, its address is used for another file
 *   protect   mapped for reading, then made writable
 *   fixed     the pool is mapped over a mapping of another file, and moved
 *   daemon    a child closes all descriptors before it writes
 *   nodrain   flushed but not drained before the mapping is taken back
 *   forks     threads persist without a pause while others map, and one forks
 *   cancel    a thread is cancelled while it persists
 *   exit      exits in a signal handler, in the middle of a persist
 *   handler   a signal handler forks that has interrupted the mapping of the pool
 *   stderr    the pool is the file on standard error's descriptor
 *   moves     threads move memory that is no pool's while others map the pool where that was
 *   renamed   the file is made, mapped and half filled by another name
 *   linked    the same, with link(2)
 *   unnamed   the same of a file that had no name, by O_TMPFILE
 *   directory the same, and its directory gets its name
 *   aliased   the same, and its name is a symbolic link to the one that it gets
 *   stays     mapped anew by mremap(2) beside the old mapping, which is used on
 *   early     a library of the program's has mapped it in its constructor
 *   locked    the file is locked by fcntl(2), and remains so
 *   page      msync(2) of less than what was stored in its pages, all of which it syncs
 *   beyond    msync(2) of a mapping that is longer than the file
 *   fsync     fsync(2) and its kind of the file, beside msync(2)
 *   longer    the file gets longer, and what is there is neither mapped nor made durable
 *   last      main() leaves by pthread_exit(3) before its threads, whose last one ends the program
 *   regrown   the file gets shorter and as long again while it stays mapped
 *   punched   bytes of the file become zero by fallocate(2) and madvise(2)
 *   shrink    the file gets shorter than its mapping, which is synced
 *   steps     mapped in many steps, each beside another, and made longer in as many by mremap(2)
 *   amid      a signal handler persists in the middle of a copy to the same page
 *   ticks     a signal handler persists, often while its thread does
 *   forkticks the same, while it forks and other threads persist
 *   jumps     a signal handler leaves a copy by siglongjmp(3)
 *   closed    standard input, output and error are closed, and written to all the same
 *   large     all of a large file is synced at once
 *   sized     made durable while the file is empty, and while its size is odd
 *   behind    it gets longer by an odd length, and what is there is made durable, often
 *   narrow    its address space has got a limit that it has reached
 *   number    a file of its own, and then a connection, has the number of standard error
 *   stores    made durable by nothing that is followed, and a child exits
 *   looks     mapped for reading by a descriptor for both
 *   unseen    children of _Fork(3) and clone(2) write to the pool that the parent has open
 *   shares    a child of vfork(2) writes to the pool before and after another thread opens it
 *   leaves    it has left its environment and its directory before it maps the file
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpmem.h>

#define SIZE    (1UL << 20)
#define PAGE    4096UL
#define WRITERS 6
#define FORKS   20
#define MOVERS  3
#define MOVES   100UL
#define HANDLED 100U
#define STEPS   400UL
#define LARGE   (24 * SIZE)

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static char *
map_fd(int fd, size_t off, size_t len, int prot)
{
	char *at = mmap(NULL, len, prot, MAP_SHARED, fd, (off_t)off);

	check(at != MAP_FAILED, "mmap");
	return at;
}

static int
file_new(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	check(fd >= 0 && ftruncate(fd, (off_t)size) == 0, path);
	return fd;
}

static void
put(char *at, int c, size_t len)
{
	memset(at, c, len);
	(void)pmem_msync(at, len);
}

static void
grow(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *more;

	put(at, 'a', 100);
	for (size_t size = SIZE; size < 8 * SIZE; size += SIZE) {
		check(ftruncate(fd, (off_t)(size + SIZE)) == 0, "ftruncate");
		check(pwrite(fd, "by a call", 9, (off_t)(size + 3 * PAGE)) == 9, "pwrite");
		more = map_fd(fd, size, SIZE, PROT_READ | PROT_WRITE);
		put(more + SIZE - 300, 'b', 300);
		put(at + size / SIZE * PAGE, 'c', 100);
	}
}

static void
recreate(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *fresh;

	put(at, 'o', PAGE);
	check(unlink(path) == 0, "unlink");
	fd = file_new(path, 2 * SIZE);
	fresh = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE);
	put(at + PAGE, 'o', PAGE);
	put(fresh + 2 * PAGE, 'n', PAGE);
	put(fresh + SIZE + PAGE, 'n', PAGE);
	put(at + 3 * PAGE, 'o', PAGE);
	(void)munmap(at, SIZE);
	put(fresh + 4 * PAGE, 'n', PAGE);
}

static void
part(const char *path)
{
	char other[4096], *at, *again;
	int fd = file_new(path, SIZE), fd2;

	(void)snprintf(other, sizeof(other), "%s.other", path);
	fd2 = file_new(other, SIZE);
	at = map_fd(fd, 0, 5 * PAGE, PROT_READ | PROT_WRITE);
	put(at, 'p', PAGE);
	/* In vain: its address is odd. */
	check(munmap(at + 1, PAGE) != 0, "munmap");
	put(at + PAGE, 'q', PAGE);
	/* So it is with an end behind all addresses. */
	check(munmap(at, 1UL << 47) != 0, "munmap");
	put(at + 2 * PAGE, 'r', PAGE);
	/* All five pages. */
	check(munmap(at, 4 * PAGE + 1) == 0, "munmap");
	again = mmap(at, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd2,
		     0);
	/* Another thread of the process may have taken the place meanwhile. */
	if (again == MAP_FAILED && errno == EEXIST)
		again = map_fd(fd2, 0, 5 * PAGE, PROT_READ | PROT_WRITE);
	check(again != MAP_FAILED, "mmap");
	put(again + 4 * PAGE, 'x', PAGE);
}

static void
protect(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ);

	check(mprotect(at, SIZE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	put(at + PAGE, 'w', PAGE);
}

static void
fixed(const char *path)
{
	char other[4096], *at, *moved;
	int fd = file_new(path, SIZE);

	(void)snprintf(other, sizeof(other), "%s.other", path);
	at = map_fd(file_new(other, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	check(mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at, "mmap");
	put(at + PAGE, 'f', PAGE);
	moved = map_fd(fd, SIZE / 2, SIZE / 2, PROT_READ | PROT_WRITE);
	/* Where a mapping of the pool's second half was is its first half now. */
	moved = mremap(at, SIZE / 2, SIZE / 2, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	check(moved != MAP_FAILED, "mremap");
	put(moved + 3 * PAGE, 'm', PAGE);
	put(at + SIZE / 2, 'h', PAGE);
}

static void
daemon_child(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pid_t child = fork();
	int other, status;

	check(child >= 0, "fork");
	if (child != 0) {
		check(waitpid(child, &status, 0) == child && status == 0, "waitpid");
		return;
	}
	for (int fd = 3; fd < 1024; fd++)
		(void)close(fd);
	/* Their numbers get used for others. */
	for (int i = 0; i < 20; i++) {
		other = open("/dev/zero", O_RDWR);
		check(other >= 0, "/dev/zero");
	}
	put(at + PAGE, 'd', PAGE);
	exit(0);
}

static void
nodrain(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'n', 10);
	for (size_t i = 1; i < 100; i++)
		(void)pmem_memset_nodrain(at + i * PAGE, (int)i, 1000);
	check(munmap(at, SIZE) == 0, "munmap");
}

static atomic_bool stop;

static void *
persist_on(void *arg)
{
	char *at = arg;

	for (unsigned i = 0; !atomic_load(&stop); i++) {
		*at = (char)('a' + i % 26);
		pmem_persist(at, 1);
	}
	return NULL;
}

static void *
map_on(void *arg)
{
	const char *path = arg;
	int fd = open(path, O_RDWR);

	while (!atomic_load(&stop)) {
		char *at = map_fd(fd, 0, PAGE, PROT_READ | PROT_WRITE);

		pmem_persist(at + 100, 1);
		(void)munmap(at, PAGE);
	}
	return NULL;
}

static void
forks(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t writer[WRITERS], mapper;
	int status;

	for (int i = 0; i < WRITERS; i++)
		check(!pthread_create(&writer[i], NULL, persist_on, at + (i + 1) * 64), "thread");
	check(!pthread_create(&mapper, NULL, map_on, (void *)(uintptr_t)path), "thread");
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		check(child >= 0, "fork");
		if (child == 0) {
			/* Another file of the child's own. */
			void *anon = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

			pmem_persist(anon, 1);
			(void)munmap(anon, PAGE);
			(void)munmap(at, SIZE);
			_exit(0);
		}
		check(waitpid(child, &status, 0) == child && status == 0, "waitpid");
	}
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++)
		(void)pthread_join(writer[i], NULL);
	(void)pthread_join(mapper, NULL);
}

static void
cancel(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t t;

	for (int i = 0; i < 50; i++) {
		check(!pthread_create(&t, NULL, persist_on, at), "thread");
		(void)usleep(1000);
		(void)pthread_cancel(t);
		atomic_store(&stop, true);
		(void)pthread_join(t, NULL);
		atomic_store(&stop, false);
	}
	put(at + PAGE, 'c', 10);
}

static void
on_alarm(int sig)
{
	(void)sig;
	exit(0);
}

static _Atomic unsigned handled;

/*
 * One signal, a while from now. Handlers ask for the next one at their end: a timer that goes on by
 * itself leaves nothing to what it interrupts, where a handler takes longer than its period.
 */
static void
tick_in(suseconds_t us)
{
	const struct itimerval once = {.it_value.tv_usec = us};

	check(setitimer(ITIMER_REAL, &once, NULL) == 0, "setitimer");
}

static void
on_timer(int number)
{
	pid_t child = fork();

	(void)number;
	if (child == 0)
		_exit(0);
	(void)waitpid(child, NULL, 0);
	if (++handled < HANDLED)
		tick_in(1000);
}

/* Before anything is flushed: there are no threads, whose locks a handler's fork would wait for. */
static void
fork_in_handler(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at;

	/* So many that one more takes its time. */
	for (int i = 0; i < 250; i++)
		(void)map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	(void)signal(SIGALRM, on_timer);
	tick_in(1000);
	while (handled < HANDLED) {
		at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
		check(munmap(at, SIZE) == 0, "munmap");
	}
	put(map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), 'h', PAGE);
}

static void
exit_amid(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'x', 10);
	(void)signal(SIGALRM, on_alarm);
	(void)ualarm(50000, 0);
	(void)persist_on(at);
}

static void
on_stderr(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at;

	check(dup2(fd, STDERR_FILENO) >= 0, "dup2");
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(at + PAGE, 'e', 10);
}

static void *
move_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		char *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		check(at != MAP_FAILED, "mmap");
		at = mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
		check(at != MAP_FAILED, "mremap");
		(void)munmap(at, 2 * PAGE);
	}
	return NULL;
}

static void
moves(const char *path)
{
	int fd = file_new(path, MOVES * PAGE);
	pthread_t mover[MOVERS];

	/* So that the pool stays open. */
	(void)map_fd(fd, 0, PAGE, PROT_READ | PROT_WRITE);
	for (int i = 0; i < MOVERS; i++)
		check(!pthread_create(&mover[i], NULL, move_on, NULL), "thread");
	for (size_t i = 0; i < MOVES; i++) {
		char *at = map_fd(fd, i * PAGE, PAGE, PROT_READ | PROT_WRITE);

		put(at, 'm', 64);
		(void)munmap(at, PAGE);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < MOVERS; i++)
		(void)pthread_join(mover[i], NULL);
}

static void
renamed(const char *path)
{
	char by[4096];
	char *at, *part;
	int fd;

	for (int i = 0; i < 3; i++) {
		(void)snprintf(by, sizeof(by), "%s.new", path);
		fd = file_new(by, SIZE);
		at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
		part = map_fd(fd, 16 * PAGE, PAGE, PROT_READ | PROT_WRITE);
		(void)close(fd);
		put(at, 'a' + i, 3 * PAGE);
		check(i == 1 ? renameat(AT_FDCWD, by, AT_FDCWD, path) == 0 : rename(by, path) == 0,
		      "rename");
		put(at + 2 * PAGE, 'n', 2 * PAGE);
		put(part, 'p', 64);
		if (i < 2)
			(void)munmap(at, SIZE);
		if (i < 2)
			(void)munmap(part, PAGE);
	}
}

/* It is mapped as from, and is to's when take() has been called: the pool's file. */
static void
take_name(const char *from, const char *to, int (*take)(const char *, const char *))
{
	int fd = file_new(from, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	(void)close(fd);
	put(at, 'a', 3 * PAGE);
	check(take(from, to) == 0, to);
	put(at + 2 * PAGE, 'n', 2 * PAGE);
}

static void
linked(const char *path)
{
	char by[4096];

	(void)snprintf(by, sizeof(by), "%s.new", path);
	take_name(by, path, link);
}

static void
unnamed(const char *path)
{
	char dir[4096], by[64], *at;
	int fd;

	(void)snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	fd = open(dir, O_RDWR | O_TMPFILE, 0600);
	check(fd >= 0 && ftruncate(fd, SIZE) == 0, dir);
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(at, 'a', 3 * PAGE);
	(void)snprintf(by, sizeof(by), "/proc/self/fd/%d", fd);
	check(linkat(AT_FDCWD, by, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0, path);
	put(at + 2 * PAGE, 'n', 2 * PAGE);
}

static int
publish(const char *from, const char *to)
{
	char by[4096], dir[4096];

	(void)snprintf(by, sizeof(by), "%s", from);
	(void)snprintf(dir, sizeof(dir), "%s", to);
	*strrchr(by, '/') = '\0';
	*strrchr(dir, '/') = '\0';
	return rmdir(dir) || rename(by, dir);
}

static void
directory(const char *path)
{
	char by[4096];
	const char *slash = strrchr(path, '/');

	(void)snprintf(by, sizeof(by), "%.*s.new", (int)(slash - path), path);
	check(mkdir(by, 0700) == 0, by);
	(void)strcat(by, slash);
	take_name(by, path, publish);
}

static void
aliased(const char *path)
{
	char by[4096], other[4096];

	(void)snprintf(by, sizeof(by), "%s.new", path);
	(void)snprintf(other, sizeof(other), "%s.1", path);
	check(symlink(other, path) == 0, "symlink");
	take_name(by, other, rename);
}

static void
stays(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *more;

	put(at, 'a', PAGE);
	more = mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	/* Not before Linux 5.13. */
	if (more == MAP_FAILED)
		more = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(more + PAGE, 'b', PAGE);
	put(at + 2 * PAGE, 'c', PAGE);
	more = mremap(at, 0, SIZE, MREMAP_MAYMOVE);
	check(more != MAP_FAILED, "mremap");
	put(more + 3 * PAGE, 'd', PAGE);
	put(at + 4 * PAGE, 'e', PAGE);
}

void early_write(void);

static void
early(const char *path)
{
	(void)path;
	early_write();
}

static void
check_locked(int fd, const char *when)
{
	struct flock lock = {.l_type = F_WRLCK};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK);
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, when);
}

static void
locked(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK};
	int fd = file_new(path, SIZE);
	char *at, *more;

	check(fcntl(fd, F_SETLK, &lock) == 0, "fcntl");
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	check_locked(fd, "mapped");
	put(at, 'a', PAGE);
	check_locked(fd, "opened");
	check(ftruncate(fd, (off_t)(2 * SIZE)) == 0, "ftruncate");
	check(pwrite(fd, "by a call", 9, (off_t)(SIZE + 3 * PAGE)) == 9, "pwrite");
	more = map_fd(fd, SIZE, SIZE, PROT_READ | PROT_WRITE);
	put(more, 'b', PAGE);
	check_locked(fd, "grown");
}

static void
page(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', 2 * PAGE);
	check(msync(at + PAGE, PAGE + 1, MS_SYNC) == 0, "msync");
	memset(at + 5 * PAGE, 'b', PAGE);
	check(msync(at + 5 * PAGE, 1, MS_SYNC) == 0, "msync");
}

static void
by_fsync(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', PAGE);
	check(fsync(fd) == 0, "fsync");
	check(fdatasync(fd) == 0, "fdatasync");
	check(sync_file_range(fd, 0, SIZE, SYNC_FILE_RANGE_WRITE) == 0, "sync_file_range");
	check(syncfs(fd) == 0, "syncfs");
	check(msync(at + PAGE, PAGE, MS_SYNC) == 0, "msync");
}

static void
beyond(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, 4 * SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', PAGE);
	check(msync(at, 4 * SIZE, MS_SYNC) == 0, "msync");
	check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
	memset(at + SIZE, 'b', PAGE);
	check(msync(at, 4 * SIZE, MS_SYNC) == 0, "msync");
	memset(at + PAGE, 'c', PAGE);
	check(pmem_msync(at, 4 * SIZE) == 0, "pmem_msync");
}

static void
shrink(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', SIZE);
	check(ftruncate(fd, SIZE / 2) == 0, "ftruncate");
	memset(at + PAGE, 'b', PAGE);
	check(msync(at, SIZE, MS_SYNC) == 0, "msync");
}

static void
map_step(char *at, int fd, size_t i)
{
	check(mmap(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		   (off_t)(i * PAGE)) == at + i * PAGE,
	      "mmap");
}

static void
steps(const char *path)
{
	int fd = file_new(path, STEPS * PAGE);
	char *at = mmap(NULL, STEPS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *more;

	check(at != MAP_FAILED, "mmap");
	/* Behind the one before, in front of it, and between two. */
	for (size_t i = 0; i < STEPS / 2; i++)
		map_step(at, fd, i);
	for (size_t i = STEPS; i-- > STEPS / 2 + 100;)
		map_step(at, fd, i);
	for (size_t i = STEPS / 2; i < STEPS / 2 + 100; i += 2)
		map_step(at, fd, i);
	for (size_t i = STEPS / 2 + 1; i < STEPS / 2 + 100; i += 2)
		map_step(at, fd, i);
	/* Not on all file systems are they one for the kernel, which makes none longer else. */
	more = mmap(NULL, STEPS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(more != MAP_FAILED, "mmap");
	map_step(more, fd, 0);
	check(munmap(more + PAGE, (STEPS - 1) * PAGE) == 0, "munmap");
	for (size_t i = 1; i < STEPS; i++)
		check(mremap(more, i * PAGE, (i + 1) * PAGE, 0) == more, "mremap");
	for (size_t i = 0; i < STEPS; i += 7) {
		put(at + i * PAGE, 's', 64);
		put(more + i * PAGE + 100, 'm', 64);
	}
}

static char *volatile handled_at;
static char *closed;
static sigjmp_buf back;
static volatile sig_atomic_t jump;

static void
on_closed(int number)
{
	(void)number;
	put(handled_at, 'h', 64);
	check(mprotect(closed, PAGE, PROT_READ) == 0, "mprotect");
	if (jump)
		siglongjmp(back, 1);
}

/* The copy comes to a page that can't be read. */
static void
copy_amid(char *to, void *(*copy)(void *, const void *, size_t))
{
	check(mprotect(closed, PAGE, PROT_NONE) == 0, "mprotect");
	if (sigsetjmp(back, 1) == 0)
		(void)copy(to, closed - 100, 300);
}

static char *
closed_new(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	closed = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(closed != MAP_FAILED, "mmap");
	memset(closed, 'c', 2 * PAGE);
	closed += PAGE;
	(void)signal(SIGSEGV, on_closed);
	put(at, 'a', PAGE);
	return at;
}

static void
amid(const char *path)
{
	char *at = closed_new(path);

	handled_at = at + PAGE + 400;
	copy_amid(at + PAGE, pmem_memcpy_persist);
	handled_at = at + 9 * PAGE;
	copy_amid(at + 8 * PAGE, pmem_memcpy_nodrain);
	pmem_drain();
}

static void
on_tick(int number)
{
	(void)number;
	put(handled_at + (size_t)handled * 64, 'A' + (int)(handled % 26), 64);
	if (++handled < 2 * HANDLED)
		tick_in(2000);
}

static void
tick_on(char *at, void (*work)(char *))
{
	handled_at = at + SIZE / 2;
	put(at, 'a', PAGE);
	(void)signal(SIGALRM, on_tick);
	tick_in(2000);
	while (handled < 2 * HANDLED)
		work(at + PAGE);
}

static void
put_page(char *at)
{
	put(at, 'a' + (int)(handled % 26), PAGE);
}

static void
ticks(const char *path)
{
	tick_on(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), put_page);
}

static void
fork_once(char *at)
{
	pid_t child = fork();
	int status;

	(void)at;
	if (child == 0)
		_exit(0);
	check(child > 0, "fork");
	while (waitpid(child, &status, 0) < 0)
		check(errno == EINTR, "waitpid");
}

static void
forkticks(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t writer[WRITERS];
	sigset_t tick;

	(void)sigemptyset(&tick);
	(void)sigaddset(&tick, SIGALRM);
	(void)pthread_sigmask(SIG_BLOCK, &tick, NULL);
	for (int i = 0; i < WRITERS; i++)
		check(!pthread_create(&writer[i], NULL, persist_on, at + (i + 1) * 64), "thread");
	(void)pthread_sigmask(SIG_UNBLOCK, &tick, NULL);
	tick_on(at, fork_once);
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++)
		(void)pthread_join(writer[i], NULL);
}

static void
jumps(const char *path)
{
	char *at = closed_new(path);

	jump = true;
	handled_at = at + 8 * PAGE;
	copy_amid(at + 4 * PAGE, pmem_memcpy_persist);
	put(at + 4 * PAGE, 'j', 2 * PAGE);
	put(at + 16 * PAGE, 'k', PAGE);
}

static void
closed_standard(const char *path)
{
	struct stat st;
	char *at;

	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
	at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < 10; i++) {
		put(at + i * PAGE, 'a', PAGE);
		(void)!write(STDOUT_FILENO, "said\n", 5);
		(void)!write(STDERR_FILENO, "told\n", 5);
	}
	for (int fd = 0; fd < 3; fd++)
		check(fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode), "a connection is there");
}

static void
large(const char *path)
{
	char *at = map_fd(file_new(path, LARGE), 0, LARGE, PROT_READ | PROT_WRITE);

	put(at, 'f', PAGE);
	put(at + PAGE, 'l', LARGE - PAGE);
}

static void *
put_late(void *arg)
{
	char *at = arg;

	for (size_t i = 0; i < 50; i++) {
		put(at + i * PAGE, 'l', PAGE);
		(void)usleep(5000);
	}
	return NULL;
}

static void
clean(void *arg)
{
	(void)arg;
	(void)usleep(600000);
	(void)printf("clean\n");
	(void)fflush(stdout);
}

static void
last(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t thread;

	put(at, 'a', PAGE);
	for (size_t i = 0; i < 3; i++)
		check(!pthread_create(&thread, NULL, put_late, at + i * 64 * PAGE), "thread");
	pthread_cleanup_push(clean, NULL);
	pthread_exit(NULL);
	pthread_cleanup_pop(0);
}

static void
longer(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, '1', 8);
	check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
	put(at, '2', 8);
	check(posix_fallocate(fd, SIZE, 2 * SIZE) == 0, "posix_fallocate");
	put(at, '3', 8);
	check(fallocate(fd, 0, 3 * SIZE, SIZE) == 0, "fallocate");
	put(at, '4', 8);
}

static void
regrown(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', SIZE);
	check(ftruncate(fd, 0) == 0 && ftruncate(fd, SIZE) == 0, "ftruncate");
	put(at + PAGE, 'b', SIZE / 2);
	check(truncate(path, 3 * PAGE + 100) == 0 && truncate(path, SIZE) == 0, "truncate");
	put(at + 8 * PAGE, 'c', PAGE);
}

static void
punched(const char *path)
{
	int fd = file_new(path, SIZE), hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < SIZE / PAGE; i++)
		put(at + i * PAGE, 'a' + (int)(i % 26), PAGE);
	check(fallocate(fd, hole, PAGE + 100, 3 * PAGE) == 0, "fallocate");
	check(madvise(at + 16 * PAGE, 2 * PAGE, MADV_REMOVE) == 0, "madvise");
	/* Not on all file systems. */
	if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 32 * PAGE, PAGE) == 0)
		check(ftruncate(fd, SIZE) == 0, "ftruncate");
	(void)fallocate(fd, FALLOC_FL_ZERO_RANGE, 64 * PAGE, PAGE);
}

static void
sized(const char *path)
{
	int fd = file_new(path, 0);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	check(msync(at, PAGE, MS_SYNC) == 0, "msync");
	check(ftruncate(fd, 5000) == 0, "ftruncate");
	put(at, 'a', 5000);
	put(at, 'b', 5000);
	check(ftruncate(fd, SIZE) == 0, "ftruncate");
	put(at + PAGE, 'c', 3 * PAGE);
}

static void
behind(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', PAGE);
	check(ftruncate(fd, SIZE + 100) == 0, "ftruncate");
	for (int i = 0; i < 200; i++)
		put(at + SIZE, 'b', 100);
	check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
	put(at + SIZE + PAGE, 'c', PAGE);
}

static void
narrow(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	const struct rlimit limit = {.rlim_cur = PAGE, .rlim_max = PAGE};

	check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
	put(at, 'a', PAGE);
}

static void
number(const char *path)
{
	char other[4096], *at = map_fd(file_new(path, 2 * SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	int fd, pair[2];
	struct stat st;

	(void)snprintf(other, sizeof(other), "%s.other", path);
	(void)close(STDERR_FILENO);
	fd = file_new(other, 0);
	if (fd != STDERR_FILENO)
		exit(2);
	put(at, 'a', PAGE);
	if (fstat(fd, &st) || st.st_size != 0)
		exit(3);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) ||
	    dup2(pair[0], STDERR_FILENO) < 0)
		exit(2);
	/* This is told, too, else. */
	(void)fsync(open(path, O_RDONLY));
	if (read(pair[1], other, sizeof(other)) >= 0)
		exit(4);
}

static void
stores(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	int status;
	pid_t child;

	memset(at, 's', PAGE);
	child = fork();
	if (child == 0)
		exit(0);
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child");
}

static void
looks(const char *path)
{
	check(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ)[0] == '\0', "a byte");
}

/* What the child has written the parent makes durable, too. */
static void
child_ended(pid_t child, char *at)
{
	int status;

	check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child");
	check(msync(at, PAGE, MS_SYNC) == 0, "msync");
}

static void
unseen(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pid_t child;

	put(at, 'p', PAGE);
	child = _Fork();
	if (child == 0) {
		put(at + PAGE, 'c', PAGE);
		exit(0);
	}
	child_ended(child, at + PAGE);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		put(at + 2 * PAGE, 'd', PAGE);
		exit(0);
	}
	child_ended(child, at + 2 * PAGE);
}

static void *
put_when_told(void *arg)
{
	while (!atomic_load(&stop))
		(void)usleep(1000);
	put(arg, 't', PAGE);
	atomic_store(&stop, false);
	return NULL;
}

static void
shares(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t thread;
	pid_t child;
	int status;

	check(!pthread_create(&thread, NULL, put_when_told, at), "thread");
	child = vfork();
	if (child == 0) {
		at[PAGE] = 'a';
		(void)pmem_msync(at + PAGE, PAGE);
		atomic_store(&stop, true);
		while (atomic_load(&stop))
			(void)usleep(1000);
		at[2 * PAGE] = 'b';
		(void)pmem_msync(at + 2 * PAGE, PAGE);
		_exit(0);
	}
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child");
	(void)pthread_join(thread, NULL);
	put(at + 3 * PAGE, 'p', PAGE);
}

static void
leaves(const char *path)
{
	check(clearenv() == 0, "clearenv");
	check(chdir("/") == 0, "chdir");
	put(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE) + PAGE, 'l', PAGE);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *);
	} modes[] = {
		{"grow", grow},        {"recreate", recreate},   {"part", part},
		{"protect", protect},  {"fixed", fixed},         {"daemon", daemon_child},
		{"nodrain", nodrain},  {"forks", forks},         {"cancel", cancel},
		{"stderr", on_stderr}, {"exit", exit_amid},      {"page", page},
		{"moves", moves},      {"beyond", beyond},       {"shrink", shrink},
		{"renamed", renamed},  {"fsync", by_fsync},      {"handler", fork_in_handler},
		{"linked", linked},    {"directory", directory}, {"aliased", aliased},
		{"stays", stays},      {"early", early},         {"locked", locked},
		{"steps", steps},      {"leaves", leaves},       {"unseen", unseen},
		{"sized", sized},      {"number", number},       {"narrow", narrow},
		{"behind", behind},    {"stores", stores},       {"looks", looks},
		{"shares", shares},    {"large", large},         {"amid", amid},
		{"jumps", jumps},      {"ticks", ticks},         {"forkticks", forkticks},
		{"regrown", regrown},  {"punched", punched},     {"unnamed", unnamed},
		{"longer", longer},    {"last", last},           {"closed", closed_standard},
	};

	for (size_t i = 0; argc == 3 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]) == 0) {
			modes[i].run(argv[2]);
			return 0;
		}
	}
	return 2;
}
