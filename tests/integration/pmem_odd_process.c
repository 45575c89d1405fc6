/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs do with processes, threads and descriptors while they have a pool:
 *
 *   locked    the file is locked by fcntl(2), and remains so
 *   daemon    a child closes all descriptors before it writes
 *   forks     threads persist without a pause while others map, and one forks
 *   cancel    a thread is cancelled while it persists
 *   stderr    the pool is the file on standard error's descriptor
 *   last      main() leaves by pthread_exit(3) before its threads, whose last one ends the program
 *   lastc11   the same by thrd_exit(3)
 *   closed    standard input, output and error are closed, and written to all the same
 *   narrow    its address space has got a limit that it has reached
 *   limited   it gives itself a limit of addresses, some GiB, and goes on
 *   lives     main() returns while threads persist
 *   number    a file of its own, and then a connection, has the number of standard error
 *   stores    made durable by nothing that is followed, and a child exits
 *   unseen    children of _Fork(3) and clone(2) write to the pool, the second when that is open
 *   borrows   a child of vfork(2) writes to a pool that nobody has made durable before or after
 *   shares    a child of vfork(2) writes to the pool before and after another thread opens it
 *   holds     until FILE.enough is there; it says when it has made something durable
 *   prints    the same, and what it prints last is left to exit(3)
 *   later     as holds to a file that is there, until FILE.later is
 *   goeson    to a file that is there, again and again until FILE.enough is
 *   adds      to a file that is there, and is killed
 *   meets     the same, when it has mapped it and FILE.go is there
 *   other     a second pool beside it, FILE.2, is stored to, and killed when this one is durable
 *   scrapes   it reads its own METRICS, by all numbers that they may have been written by; with a
 * child leaves    it has left its environment and its directory before it maps the file
 */
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define FORKS 20

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
on_stderr(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at;

	check(dup2(fd, STDERR_FILENO) >= 0, "dup2");
	at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(at + PAGE, 'e', 10);
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
last_c11(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t thread;

	put(at, 'a', PAGE);
	check(!pthread_create(&thread, NULL, put_late, at + 64 * PAGE), "thread");
	thrd_exit(0);
}

static void
narrow(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	const struct rlimit limit = {.rlim_cur = PAGE, .rlim_max = PAGE};

	check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
	put(at, 'a', PAGE);
}

static void *
put_one(void *at)
{
	put(at, 't', PAGE);
	return NULL;
}

static void
limited(const char *path)
{
	const struct rlimit limit = {.rlim_cur = 8UL << 30, .rlim_max = 8UL << 30};
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t thread;

	put(at, 'a', PAGE);
	check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
	check(malloc(64UL << 20) != NULL, "malloc");
	check(!pthread_create(&thread, NULL, put_one, at + PAGE), "thread");
	(void)pthread_join(thread, NULL);
}

static void
lives(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pthread_t writer;

	put(at, 'a', PAGE);
	for (int i = 0; i < 4; i++)
		check(!pthread_create(&writer, NULL, persist_on, at + (i + 1) * 64), "thread");
	(void)usleep(20000);
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
borrows(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	pid_t child = vfork();
	int status;

	if (child == 0) {
		at[PAGE] = 'a';
		(void)pmem_msync(at + PAGE, PAGE);
		_exit(0);
	}
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child");
}

static void
other(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), second[4096];

	put(at, 'a', PAGE);
	(void)snprintf(second, sizeof(second), "%s.2", path);
	memset(map_fd(file_new(second, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), 'b', PAGE);
	put(at, '2', 1);
	(void)raise(SIGKILL);
}

static void
holds(const char *path)
{
	put(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), 'h', PAGE);
	say("holds");
	wait_for_file(path, "enough");
}

static void
prints(const char *path)
{
	holds(path);
	(void)printf("ends");
}

static void
later(const char *path)
{
	char *at = map_fd(open(path, O_RDWR), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at + PAGE, 'l', PAGE);
	say("added");
	wait_for_file(path, "later");
}

static void
goes_on(const char *path)
{
	char *at = map_fd(open(path, O_RDWR), 0, SIZE, PROT_READ | PROT_WRITE), enough[4096];

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	for (int i = 0; access(enough, F_OK) != 0; i++) {
		put(at + PAGE, 'a' + i % 26, PAGE);
		(void)usleep(10000);
	}
}

static void
add(char *at)
{
	put(at + PAGE, 'a', PAGE);
	put(at + 2 * PAGE, 'a', PAGE);
	(void)raise(SIGKILL);
}

static void
adds(const char *path)
{
	add(map_fd(open(path, O_RDWR), 0, SIZE, PROT_READ | PROT_WRITE));
}

static void
meets(const char *path)
{
	char *at = map_fd(open(path, O_RDWR), 0, SIZE, PROT_READ | PROT_WRITE);

	say("maps");
	wait_for_file(path, "go");
	add(at);
}

#define SCRAPES 64

static void
scrapes(const char *path)
{
	const char *metrics = getenv("METRICS");
	int fd[SCRAPES], status = 0;
	char byte;
	pid_t pid;

	check(metrics != NULL, "METRICS");
	put(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), 's', PAGE);
	while (access(metrics, F_OK) != 0)
		(void)usleep(10000);
	for (int i = 0; i < SCRAPES; i++)
		check((fd[i] = open(metrics, O_RDONLY)) >= 0, metrics);
	pid = fork();
	for (int i = 0; pid == 0 && i < SCRAPES; i++)
		status |= pread(fd[i], &byte, 1, 0) != 1;
	if (pid == 0)
		_exit(status);
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "what a child reads");
	for (int i = 0; i < SCRAPES; i++)
		check(close(fd[i]) == 0, "close");
}

static void
leaves(const char *path)
{
	check(clearenv() == 0, "clearenv");
	check(chdir("/") == 0, "chdir");
	put(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE) + PAGE, 'l', PAGE);
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

const struct odd_mode odd_process[] = {
	{"locked", locked},    {"daemon", daemon_child},
	{"forks", forks},      {"cancel", cancel},
	{"stderr", on_stderr}, {"leaves", leaves},
	{"scrapes", scrapes},  {"holds", holds},
	{"prints", prints},    {"adds", adds},
	{"goeson", goes_on},   {"later", later},
	{"other", other},      {"unseen", unseen},
	{"number", number},    {"narrow", narrow},
	{"lives", lives},      {"limited", limited},
	{"stores", stores},    {"borrows", borrows},
	{"shares", shares},    {"last", last},
	{"lastc11", last_c11}, {"closed", closed_standard},
	{"meets", meets},      {NULL, NULL},
};
