/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What processes that come of one another do with a pool at the same time:
 *
 *   kin       children write to all of the pool while their parent has it open, and it grows
 *   quiet     the same, and their parent makes nothing durable
 *   strays    children of _Fork(3), clone(2) and vfork(2) do
 *   heirs     the parent takes its mapping back while its children write on
 *   killed    the one of them that has the pool open is killed, and the next one, and the next one
 *   spread    the same, and the next one has flushed more ranges than can be posted
 *   executes  it becomes another program
 *   lingers   it is killed, and a child of it holds its lock and its connections for a while
 *   alarmed   signal handlers make bytes durable while processes exit
 *   counts    a child counts what was made durable, in FILE.count, until a replica is lost
 *   flushed   a child flushes, and exits without a drain
 *   cuts      a child makes the file shorter than what its parent has flushed, and then drains
 *   cutaway_kin  a child cuts a pool that has lost its name, and makes it long again
 *   adrift_kin  the same, and makes it longer
 *   beyond_kin  a child syncs a mapping that is longer than the file
 *   apart     a child that was there before the pool was mapped makes bytes of the file zero
 *   renewed   the same, and another file had the pool's name when the child was made
 *   supplanted  the same, and the child has that one mapped still
 *   opening   the same while the pool is being opened, and compared; REPLICA is the replica's file
 *   anew_kin  the file is made anew, and zeros of it are durable first by a child that was there
 *             before, or by its parent when the child has mapped it
 *   amid_kin  a signal handler makes a child amid an opening, which stays while the pool is closed
 *             and opened again; the opening begins when FILE.enough is there
 *   drain_kin  a signal handler makes a child amid a drain, which returns to that; FILE.enough: the
 *             target is stopped; the child opens the pool itself when FILE.left is there
 *   wait_kin  the same while the drain waits for another thread's, for which there is one lane
 *   open_kin, growth_kin
 *             the same amid what opens the pool and lets it grow
 *   stopped   the parent is stopped while a child makes more durable than can be posted
 *   all       all are killed when the last child's bytes are durable; it says so
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define CHILDREN 4U
#define POOL     (16 * SIZE)
#define PUTS     150U
#define WORDS    64U            /* that ranges are posted in: KIN_RANGES */
#define FAR      (1025UL << 20) /* from all of them: in one word with any it's all to the end */
#define FAR_POOL (FAR + (1UL << 20))

static char *
pool_map(const char *path, size_t size)
{
	return map_fd(file_new(path, size), 0, size, PROT_READ | PROT_WRITE);
}

static void
reap(unsigned n)
{
	int status;

	for (unsigned i = 0; i < n; i++)
		check(wait(&status) > 0 && status == 0, "a child");
}

/* Small ones everywhere, some on a line that others use too, and a large one. */
static void
write_all_over(char *at, unsigned child)
{
	unsigned random = child + 1;

	for (unsigned i = 0; i < PUTS; i++) {
		random = random * 1103515245U + 12345U;
		put(at + (random >> 4) % (POOL - 200), 'a' + (int)(i % 26), 1 + random % 199);
		put(at + child, 'A' + (int)child, 1);
		if (i == PUTS / 2)
			put(at + (child + 1) * (POOL / 8), 'l', 2 * SIZE + 100);
	}
}

static void
grow(const char *path)
{
	int fd = open(path, O_RDWR);

	check(fd >= 0 && ftruncate(fd, (off_t)(2 * POOL)) == 0, "ftruncate");
	put(map_fd(fd, POOL, POOL, PROT_READ | PROT_WRITE) + PAGE, 'g', 3 * PAGE);
	check(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, POOL / 2, PAGE) == 0,
	      "fallocate");
}

static void
children(const char *path, char *at)
{
	for (unsigned i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		check(child >= 0, "fork");
		if (child != 0)
			continue;
		write_all_over(at, i);
		if (i == 2)
			grow(path);
		_exit(0);
	}
}

static void
kin(const char *path)
{
	char *at = pool_map(path, POOL);

	put(at, 'p', PAGE);
	children(path, at);
	write_all_over(at, CHILDREN);
	reap(CHILDREN);
}

static void
quiet(const char *path)
{
	children(path, pool_map(path, POOL));
	reap(CHILDREN);
}

static void
strays(const char *path)
{
	char *at = pool_map(path, SIZE);
	pid_t child;

	put(at, 'p', PAGE);
	child = _Fork();
	if (child == 0) {
		put(at + PAGE, 'c', PAGE);
		_exit(0);
	}
	reap(1);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		put(at + 2 * PAGE, 'd', PAGE);
		_exit(0);
	}
	reap(1);
	child = vfork();
	if (child == 0) {
		at[3 * PAGE] = 'v';
		(void)pmem_msync(at + 3 * PAGE, PAGE);
		_exit(0);
	}
	reap(1);
	(void)raise(SIGKILL);
}

static void
heirs(const char *path)
{
	char *at = pool_map(path, POOL);

	put(at, 'p', PAGE);
	children(path, at);
	check(munmap(at, POOL) == 0, "munmap");
	reap(CHILDREN);
}

/* A pool's file in common, and a word by which who began first goes first. */
static atomic_uint *
words_new(void)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(at != MAP_FAILED, "mmap");
	return at;
}

static void
kill_and_wait(pid_t child)
{
	int status;

	(void)kill(child, SIGKILL);
	check(waitpid(child, &status, 0) == child, "waitpid");
}

/* Each has the pool open when the one before is dead; bytes of the others are on their way then. */
static void
killed(const char *path)
{
	char *at = pool_map(path, SIZE);
	atomic_uint *word = words_new();
	int status;

	for (unsigned i = 0; i < 3; i++) {
		pid_t first = fork(), second;

		if (first == 0) {
			put(at + i * 16 * PAGE, 'f', PAGE);
			atomic_fetch_add(word, 1);
			for (;;)
				put(at + i * 16 * PAGE, 'f', PAGE);
		}
		while (atomic_load(word) == i)
			(void)usleep(1000);
		second = fork();
		if (second == 0) {
			for (unsigned n = 0; n < 200; n++)
				put(at + (i * 16 + 1 + n % 15) * PAGE, 'a' + (int)(n % 26), PAGE);
			_exit(0);
		}
		(void)usleep(3000);
		kill_and_wait(first);
		check(waitpid(second, &status, 0) == second && status == 0, "the second");
	}
}

static void
executes(const char *path)
{
	char *at = pool_map(path, SIZE);
	atomic_uint *word = words_new();
	pid_t first = fork();

	if (first == 0) {
		put(at, 'f', PAGE);
		atomic_store(word, 1);
		(void)execl("/bin/sleep", "sleep", "30", (char *)NULL);
		_exit(1);
	}
	while (atomic_load(word) == 0)
		(void)usleep(1000);
	(void)usleep(100000);
	put(at + PAGE, 'p', PAGE);
	kill_and_wait(first);
}

/* One that has the pool open. */
static pid_t
owner_fork(char *at, bool child)
{
	atomic_uint *word = words_new();
	pid_t first = fork();

	if (first == 0) {
		put(at, 'f', PAGE);
		if (child && _Fork() == 0) {
			(void)usleep(300000);
			_exit(0);
		}
		atomic_store(word, 1);
		for (;;)
			(void)pause();
	}
	while (atomic_load(word) == 0)
		(void)usleep(1000);
	return first;
}

static void
spread(const char *path)
{
	char *at = pool_map(path, POOL);

	kill_and_wait(owner_fork(at, false));
	for (size_t off = 0; off < POOL; off += 32 * PAGE) {
		at[off] = 's';
		pmem_flush(at + off, 1);
	}
	pmem_drain();
}

static pid_t
put_fork(char *at)
{
	pid_t second = fork();

	if (second == 0) {
		put(at, 's', PAGE);
		_exit(0);
	}
	return second;
}

static void
lingers(const char *path)
{
	char *at = pool_map(path, POOL);
	pid_t second;
	int status;

	kill_and_wait(owner_fork(at, true));
	second = put_fork(at + POOL / 2);
	check(waitpid(second, &status, 0) == second && status == 0, "the second");
}

static char *alarmed_at;

static void
alarmed_put(int signal)
{
	(void)signal;
	put(alarmed_at, 'h', 1);
}

static void
alarms_begin(char *at)
{
	const struct itimerval often = {{0, 2000}, {0, 2000}};

	alarmed_at = at;
	(void)signal(SIGALRM, alarmed_put);
	check(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
	(void)usleep(20000);
}

static void
alarms_end(void)
{
	const struct itimerval never = {{0, 0}, {0, 0}};

	(void)setitimer(ITIMER_REAL, &never, NULL);
}

static void
alarmed(const char *path)
{
	char *at;

	/* Before the libraries' own, that is behind the pools' end. */
	check(atexit(alarms_end) == 0, "atexit");
	at = pool_map(path, SIZE);
	put(at, 'p', PAGE);
	for (unsigned i = 0; i < CHILDREN; i++) {
		if (fork() != 0)
			continue;
		put(at + (1 + i) * PAGE, 'c', PAGE);
		alarms_begin(at + (1 + i) * PAGE);
		exit(0);
	}
	reap(CHILDREN);
	alarms_begin(at);
}

static void
counts(const char *path)
{
	char *at = pool_map(path, SIZE), file[4096];
	uint64_t *count;

	check(snprintf(file, sizeof(file), "%s.count", path) < (int)sizeof(file), "a name");
	count = (uint64_t *)map_fd(file_new(file, PAGE), 0, PAGE, PROT_READ | PROT_WRITE);
	put(at, 0, PAGE);
	if (fork() == 0) {
		for (uint64_t i = 1;; i++) {
			memcpy(at, &i, sizeof(i));
			(void)pmem_msync(at, sizeof(i));
			*count = i;
		}
	}
	(void)pause();
}

static void
flushes(const char *path)
{
	char *at = pool_map(path, SIZE);
	pid_t child;

	put(at, 'p', PAGE);
	child = fork();
	if (child == 0) {
		(void)pmem_memset_nodrain(at + PAGE, 'n', 2 * PAGE);
		exit(0);
	}
	reap(1);
	(void)raise(SIGKILL);
}

static void
cuts(const char *path)
{
	char *at = pool_map(path, SIZE);

	put(at, 'p', PAGE);
	memset(at + SIZE / 2, 'b', 100);
	pmem_flush(at + SIZE / 2, 100);
	if (fork() == 0)
		_exit(truncate(path, SIZE / 4));
	reap(1);
	pmem_drain();
	put(at + PAGE, 'c', PAGE);
	(void)raise(SIGKILL);
}

static void
apart(const char *path)
{
	int fd, hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	atomic_uint *word = words_new();

	/* The one before has its number as long as that is open. */
	(void)unlink(path);
	fd = file_new(path, SIZE);

	if (fork() == 0) {
		while (atomic_load(word) == 0)
			(void)usleep(1000);
		check(fallocate(fd, hole, PAGE, 3 * PAGE) == 0, "fallocate");
		check(ftruncate(fd, SIZE / 2) == 0 && ftruncate(fd, SIZE) == 0, "ftruncate");
		_exit(0);
	}
	put(map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), 'p', SIZE);
	atomic_store(word, 1);
	reap(1);
}

/* The pool has lost its name, and a child that has it mapped cuts it and makes it long again. */
static void
cutaway(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	int fd = open(path, O_RDWR);
	char away[4096];

	check(fd >= 0, path);
	put(at, 'c', SIZE);
	check(snprintf(away, sizeof(away), "%s.away", path) > 0 && rename(path, away) == 0, away);
	if (fork() == 0) {
		check(ftruncate(fd, SIZE / 2) == 0 && ftruncate(fd, SIZE) == 0, "ftruncate");
		put(at, 'd', PAGE);
		_exit(0);
	}
	reap(1);
	put(at + PAGE, 'e', PAGE);
	check(rename(away, path) == 0, path);
}

/* The same, and the child makes it longer. */
static void
adrift(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	int fd = open(path, O_RDWR);
	char away[4096];

	check(fd >= 0, path);
	put(at, 'c', PAGE);
	check(snprintf(away, sizeof(away), "%s.away", path) > 0 && rename(path, away) == 0, away);
	if (fork() == 0) {
		check(ftruncate(fd, 2 * SIZE) == 0, "ftruncate");
		put(at + PAGE, 'd', PAGE);
		put(map_fd(fd, SIZE, SIZE, PROT_READ | PROT_WRITE) + PAGE, 'e', PAGE);
		_exit(0);
	}
	reap(1);
	check(rename(away, path) == 0, path);
}

/* Its parent has the pool open. */
static void
beyond(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, 4 * SIZE, PROT_READ | PROT_WRITE);

	put(at, 'p', PAGE);
	if (fork() == 0) {
		memset(at + PAGE, 'c', PAGE);
		_exit(msync(at, 4 * SIZE, MS_SYNC));
	}
	reap(1);
}

static void
stop_and_wait(pid_t pid)
{
	char file[64], text[64] = "";

	(void)kill(pid, SIGSTOP);
	check(snprintf(file, sizeof(file), "/proc/%d/stat", (int)pid) > 0, "a name");
	while (!strstr(text, ") T ")) {
		int fd = open(file, O_RDONLY);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		check(n > 0, file);
		text[n] = '\0';
		(void)close(fd);
	}
}

static void
renewed(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'b', SIZE);
	check(munmap(at, SIZE) == 0, "munmap");
	apart(path);
}

static void
supplanted(const char *path)
{
	put(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), 'b', SIZE);
	apart(path);
}

/* The file is replicated, deleted and made anew. */
static int
replace(const char *path)
{
	char *at = pool_map(path, SIZE);

	put(at, 'o', 3 * PAGE);
	check(munmap(at, SIZE) == 0 && unlink(path) == 0, "unlink");
	return file_new(path, SIZE);
}

static void
word_wait(atomic_uint *word, unsigned is)
{
	while (atomic_load(word) != is)
		(void)usleep(1000);
}

static void
zeros_fork(const char *path, atomic_uint *word, unsigned is)
{
	if (fork() != 0)
		return;
	word_wait(word, is);
	put(pool_map(path, SIZE), 0, SIZE);
	_exit(0);
}

static void
anew(const char *path)
{
	atomic_uint *word = words_new();
	char *at;
	int fd;

	/* Of a child that has never had it. */
	zeros_fork(path, word, 1);
	(void)close(replace(path));
	atomic_store(word, 1);
	reap(1);
	/* Mapped by the parent first. */
	zeros_fork(path, word, 2);
	fd = replace(path);
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	atomic_store(word, 2);
	reap(1);
	check(munmap(at, SIZE) == 0, "munmap");
	/* By the child. */
	if (fork() == 0) {
		word_wait(word, 3);
		(void)pool_map(path, SIZE);
		atomic_store(word, 4);
		word_wait(word, 5);
		_exit(0);
	}
	fd = replace(path);
	atomic_store(word, 3);
	word_wait(word, 4);
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(at, 0, SIZE);
	atomic_store(word, 5);
	reap(1);
	put(at + PAGE, 'n', PAGE);
}

/* Compared up to there at least. */
static void
replica_wait(void)
{
	const char *file = getenv("REPLICA");
	char got = 0;
	int fd;

	check(file != NULL, "REPLICA");
	while (got != 'p') {
		fd = open(file, O_RDONLY);
		if (fd >= 0 && pread(fd, &got, 1, 8 * PAGE) < 0)
			got = 0;
		(void)close(fd);
	}
}

static void
opening(const char *path)
{
	int fd = file_new(path, 4 * POOL), hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	pid_t parent = getpid();
	char *at;

	if (fork() == 0) {
		replica_wait();
		stop_and_wait(parent);
		if (fork() == 0) {
			(void)usleep(200000);
			(void)kill(parent, SIGCONT);
			_exit(0);
		}
		check(fallocate(fd, hole, PAGE, 3 * PAGE) == 0, "fallocate");
		reap(1);
		_exit(0);
	}
	at = map_fd(fd, 0, 4 * POOL, PROT_READ | PROT_WRITE);
	memset(at, 'p', 4 * POOL);
	put(at + 4 * POOL - PAGE, 'q', PAGE);
	reap(1);
}

/* This process has a file locked as FILE.repl is. */
static bool
any_flock(void)
{
	char file[64], text[1024];

	for (int fd = STDERR_FILENO + 1; fd < 256; fd++) {
		int info;
		ssize_t n = 0;

		(void)snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", fd);
		info = open(file, O_RDONLY);
		if (info >= 0)
			n = read(info, text, sizeof(text) - 1);
		(void)close(info);
		text[n > 0 ? n : 0] = '\0';
		if (strstr(text, "FLOCK"))
			return true;
	}
	return false;
}

static pthread_t opener;
static volatile pid_t forked;

static void
fork_amid(int number)
{
	(void)number;
	forked = fork();
	if (forked != 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)pause();
}

static void *
interrupt(void *arg)
{
	while (!any_flock())
		(void)usleep(1000);
	(void)pthread_kill(opener, SIGUSR1);
	while (!forked)
		(void)usleep(1000);
	(void)puts("forked");
	(void)fflush(stdout);
	return arg;
}

static void
amid(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), enough[4096];
	pthread_t thread;

	/* So that there is a FILE.repl, and all libraries. */
	put(at, 'a', PAGE);
	check(munmap(at, SIZE) == 0, "munmap");
	(void)puts("closed");
	(void)fflush(stdout);
	check(snprintf(enough, sizeof(enough), "%s.enough", path) < (int)sizeof(enough), "a name");
	while (access(enough, F_OK))
		(void)usleep(1000);
	(void)signal(SIGUSR1, fork_amid);
	opener = pthread_self();
	check(pthread_create(&thread, NULL, interrupt, NULL) == 0, "a thread");
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(at + PAGE, 'b', PAGE);
	check(pthread_join(thread, NULL) == 0 && forked > 0, "a child");
	check(munmap(at, SIZE) == 0, "munmap");
	put(map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE) + 2 * PAGE, 'c', PAGE);
	kill_and_wait(forked);
}

static void
fork_and_return(int number)
{
	(void)number;
	forked = fork();
}

/* A thread that sleeps in its drain, whose target answers to nothing. */
static bool
is_asleep(pid_t thread)
{
	char file[64], text[256] = "";
	int fd;

	check(snprintf(file, sizeof(file), "/proc/self/task/%d/stat", (int)thread) > 0, "a name");
	fd = open(file, O_RDONLY);
	check(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0, file);
	(void)close(fd);
	return strstr(text, ") S ") != NULL;
}

static atomic_bool drains;

/* Of a pool that is open, or is being opened, FILE.repl is locked. */
static void *
interrupt_drain(void *arg)
{
	pid_t thread = *(const pid_t *)arg;

	while (!atomic_load(&drains) || !any_flock() || !is_asleep(thread))
		(void)usleep(1000);
	(void)pthread_kill(opener, SIGUSR1);
	while (!forked)
		(void)usleep(1000);
	say("forked");
	return arg;
}

static _Atomic pid_t before_us;

static void *
drain_before(void *arg)
{
	atomic_store(&before_us, gettid());
	put((char *)arg + 4 * PAGE, 'e', PAGE);
	return arg;
}

static void
drain_of_another(char *at, pthread_t *thread)
{
	check(pthread_create(thread, NULL, drain_before, at) == 0, "a thread");
	while (!atomic_load(&before_us) || !is_asleep(atomic_load(&before_us)))
		(void)usleep(1000);
}

/* A call that a handler interrupts, and where the pool is mapped behind it. */
struct amid {
	bool closed, waits; /* the pool is, before; another thread is at it */
	char *(*call)(const char *path, char *at);
};

static char *
puts_byte(const char *path, char *at)
{
	(void)path;
	put(at + PAGE, 'b', PAGE);
	return at;
}

static char *
map_again(const char *path, size_t off)
{
	int fd = open(path, O_RDWR);

	check(fd >= 0 && ftruncate(fd, (off_t)(SIZE + off)) == 0, path);
	return map_fd(fd, off, SIZE, PROT_READ | PROT_WRITE);
}

static char *
grows(const char *path, char *at)
{
	char *behind = map_again(path, SIZE);

	put(behind + PAGE, 'g', PAGE);
	check(munmap(behind, SIZE) == 0, "munmap");
	return at;
}

static char *
unmaps(const char *path, char *at)
{
	check(munmap(at, SIZE) == 0, "munmap");
	return map_again(path, 0);
}

static void
returns_to(const char *path, const struct amid *amid)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), word[4096];
	pid_t self = getpid(), thread = gettid();
	pthread_t other, before;
	int status;

	put(at, 'a', PAGE);
	if (amid->closed)
		at = unmaps(path, at);
	check(snprintf(word, sizeof(word), "pid %d", (int)self) > 0, "a word");
	say(word);
	wait_for_file(path, "enough");
	(void)signal(SIGUSR1, fork_and_return);
	opener = pthread_self();
	if (amid->waits)
		drain_of_another(at, &before);
	check(pthread_create(&other, NULL, interrupt_drain, &thread) == 0, "a thread");
	atomic_store(&drains, true);
	at = amid->call(path, at);
	if (getpid() != self) {
		say("returned");
		wait_for_file(path, "left");
		put(at + 3 * PAGE, 'd', PAGE);
		_exit(munmap(at, SIZE));
	}
	check(pthread_join(other, NULL) == 0, "a child");
	check(!amid->waits || pthread_join(before, NULL) == 0, "a drain");
	put(at + 2 * PAGE, 'c', PAGE);
	check(munmap(at, SIZE) == 0, "munmap");
	check(snprintf(word, sizeof(word), "%s.left", path) > 0, "a name");
	check(close(creat(word, 0600)) == 0, word);
	check(waitpid(forked, &status, 0) == forked && status == 0, "the child");
}

static void
amid_drain(const char *path)
{
	returns_to(path, &(const struct amid){.call = puts_byte});
}

static void
amid_wait(const char *path)
{
	returns_to(path, &(const struct amid){.waits = true, .call = puts_byte});
}

static void
amid_open(const char *path)
{
	returns_to(path, &(const struct amid){.closed = true, .call = puts_byte});
}

static void
amid_growth(const char *path)
{
	returns_to(path, &(const struct amid){.call = grows});
}

static void
stopped(const char *path)
{
	char *at = pool_map(path, FAR_POOL);
	pid_t parent = getpid();

	put(at, 'p', PAGE);
	if (fork() == 0) {
		stop_and_wait(parent);
		for (size_t i = 0; i < WORDS; i++)
			put(at + 2 * i * PAGE, 's', PAGE);
		put(at + FAR, 'f', PAGE);
		(void)kill(parent, SIGCONT);
		put(at + PAGE, 'c', PAGE);
		_exit(0);
	}
	reap(1);
	put(at, 'q', PAGE);
}

static void
all(const char *path)
{
	char *at = pool_map(path, SIZE);

	put(at, 'p', PAGE);
	if (fork() == 0) {
		put(at + PAGE, 'a', 5 * PAGE);
		(void)kill(0, SIGKILL);
	}
	(void)pause();
}

const struct odd_mode odd_kin[] = {
	{"kin", kin},
	{"quiet", quiet},
	{"strays", strays},
	{"heirs", heirs},
	{"killed", killed},
	{"spread", spread},
	{"executes", executes},
	{"lingers", lingers},
	{"alarmed", alarmed},
	{"counts", counts},
	{"flushed", flushes},
	{"all", all},
	{"cuts", cuts},
	{"stopped", stopped},
	{"apart", apart},
	{"cutaway_kin", cutaway},
	{"opening", opening},
	/* With FILE.enough. */
	{"amid_kin", amid},
	{"drain_kin", amid_drain},
	{"wait_kin", amid_wait},
	{"open_kin", amid_open},
	{"growth_kin", amid_growth},
	{"anew_kin", anew},
	{"renewed", renewed},
	{"supplanted", supplanted},
	{"adrift_kin", adrift},
	{"beyond_kin", beyond},
	{NULL, NULL},
};
