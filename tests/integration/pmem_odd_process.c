/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs do with processes, threads, signals and descriptors while they have a pool:
 *
 *   daemon    a child closes all descriptors before it writes
 *   forks     threads persist without a pause while others map, and one forks
 *   cancel    a thread is cancelled while it persists
 *   exit      exits in a signal handler, in the middle of a persist
 *   handler   a signal handler forks that has interrupted the mapping of the pool
 *   stderr    the pool is the file on standard error's descriptor
 *   last      main() leaves by pthread_exit(3) before its threads, whose last one ends the program
 *   lastc11   the same by thrd_exit(3)
 *   amid      a signal handler persists in the middle of a copy to the same page
 *   ticks     a signal handler persists, often while its thread does
 *   heap      a signal handler persists that has interrupted malloc(3), until FILE.enough is there
 *   forkticks as ticks, while it forks and other threads persist
 *   jumps     a signal handler leaves a copy by siglongjmp(3)
 *   closed    standard input, output and error are closed, and written to all the same
 *   narrow    its address space has got a limit that it has reached
 *   limited   it gives itself a limit of addresses, some GiB, and goes on
 *   atexit    persists in a handler of atexit(3), while it is mapped
 *   openssl   it uses OpenSSL, from between mapping and persisting on, and is slow to end
 *   crypto    the same of OpenSSL that it has from its beginning on, and persists after that
 *   meanwhile a thread loads a library, $LOADED, which takes until FILE.enough is there
 *   crossed   a thread loads $LOADED, whose constructor persists, while another one opens the pool
 *   joins     it loads $LOADED, whose constructor waits for a thread that persists
 *   lives     main() returns while threads persist
 *   number    a file of its own, and then a connection, has the number of standard error
 *   stores    made durable by nothing that is followed, and a child exits
 *   unseen    children of _Fork(3) and clone(2) write to the pool, the second when that is open
 *   borrows   a child of vfork(2) writes to a pool that nobody has made durable before or after
 *   shares    a child of vfork(2) writes to the pool before and after another thread opens it
 *   holds     until FILE.enough is there; it says when it has made something durable
 *   prints    the same, and what it prints last is left to exit(3)
 *   later     as holds to a file that is there, until FILE.later is
 *   adds      to a file that is there, and is killed
 *   cut       the file gets shorter than what was flushed, and then drained
 *   recut     it gets longer twice by the same odd length: another thread, cut_once.so, has cut it
 *   full      its disk, of less than the file would take, is full when all of the file is synced
 *   nameless  the same, and it has lost its name before
 *   unfull    the same, and half of the file becomes a hole
 *   shorter   it gets so behind what is durable while FILE.away is there, until FILE.enough is
 *   other     a second pool beside it, FILE.2, is stored to, and killed when this one is durable
 *   leaves    it has left its environment and its directory before it maps the file
 */
#include <dlfcn.h>
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
#include <threads.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define WRITERS 6
#define FORKS   20
#define HANDLED 100U
#define HOLES   (16 * SIZE)

#define LOAD_STRINGS 2U /* of OpenSSL's interface: with nothing to do it registers nothing */

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
on_heap_tick(int number)
{
	(void)number;
	handled++;
	put(handled_at, 'A' + (int)(handled % 26), 64);
	tick_in(1000);
}

static void
heap(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	char enough[4096];
	void *mem[64] = {NULL};

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	handled_at = at + SIZE / 2;
	put(at, 'a', PAGE);
	(void)signal(SIGALRM, on_heap_tick);
	tick_in(1000);
	for (unsigned i = 0; i % 4096 || access(enough, F_OK); i++) {
		free(mem[i % 64]);
		mem[i % 64] = malloc(1024 + i * 7919UL % (99 * 1024));
		check(mem[i % 64] != NULL, "malloc");
	}
	(void)signal(SIGALRM, SIG_IGN);
	check(handled > 0, "a handler");
	put(at + PAGE, 'b', PAGE);
	for (unsigned i = 0; i < 64; i++)
		free(mem[i]);
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
put_at_exit(void)
{
	put(handled_at, 'e', PAGE);
}

static void
at_exit(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	handled_at = at + PAGE;
	check(atexit(put_at_exit) == 0, "atexit");
	put(at, 'a', PAGE);
}

static void
take_time(void)
{
	(void)sleep(1);
}

static void
use_openssl(const char *path, int flags, void (*ends)(void))
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	void *library = dlopen("libcrypto.so.3", flags);
	int (*init)(uint64_t, const void *) = NULL;

	handled_at = at + PAGE;
	check(atexit(ends) == 0, "atexit");
	if (library)
		init = (int (*)(uint64_t, const void *))(uintptr_t)dlsym(library,
									 "OPENSSL_init_crypto");
	check(init != NULL && init(LOAD_STRINGS, NULL) == 1, "OPENSSL_init_crypto");
	put(at, 'a', PAGE);
}

static void
by_openssl(const char *path)
{
	use_openssl(path, RTLD_NOW, take_time);
}

static void
by_linked_openssl(const char *path)
{
	use_openssl(path, RTLD_NOW | RTLD_NOLOAD, put_at_exit);
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
cut(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', PAGE);
	memset(at + SIZE / 2, 'b', 100);
	pmem_flush(at + SIZE / 2, 100);
	check(truncate(path, SIZE / 4) == 0, "truncate");
	pmem_drain();
	put(at + PAGE, 'c', PAGE);
}

static void
wait_for_file(const char *path, const char *suffix)
{
	char name[4096];

	(void)snprintf(name, sizeof(name), "%s.%s", path, suffix);
	for (int i = 0; i < 2000 && access(name, F_OK) != 0; i++)
		(void)usleep(10000);
}

static void
say(const char *word)
{
	(void)puts(word);
	(void)fflush(stdout);
}

static void
shorter(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK};
	int fd = open(path, O_RDWR);
	struct stat st;
	size_t half;
	char *at;

	check(fd >= 0 && fstat(fd, &st) == 0, path);
	check(!strstr(path, "locked") || fcntl(fd, F_SETLK, &lock) == 0, "fcntl");
	half = (size_t)st.st_size / 2;
	at = map_fd(fd, 0, 2 * half, PROT_READ | PROT_WRITE);
	put(at, 'a', half);
	say("begun");
	wait_for_file(path, "away");
	put(at + PAGE, 'b', 2 * half - 2 * PAGE);
	check(ftruncate(fd, (off_t)half) == 0, "ftruncate");
	say("shorter");
	wait_for_file(path, "enough");
	put(at + 2 * PAGE, 'c', PAGE);
}

/* What the replicas have is overwritten, and what is a hole there. kin: by a child. */
static char *
fill(const char *path, int fd)
{
	char *at = map_fd(fd, 0, HOLES, PROT_READ | PROT_WRITE), filler[4096];
	int other, status;
	pid_t child;

	put(at + 3 * SIZE, 'a', PAGE);
	memset(at + 3 * SIZE, 'b', PAGE);
	memset(at + HOLES / 2 + SIZE, 'c', PAGE);
	(void)snprintf(filler, sizeof(filler), "%s.filler", path);
	other = file_new(filler, 0);
	while (write(other, filler, sizeof(filler)) > 0)
		;
	check(!strstr(path, "nameless") || unlink(path) == 0, path);
	if (!strstr(path, "kin")) {
		check(msync(at, HOLES, MS_SYNC) == 0, "msync");
		return at;
	}
	child = fork();
	if (child == 0)
		_exit(msync(at, HOLES, MS_SYNC) ? 1 : 0);
	check(waitpid(child, &status, 0) == child && status == 0, "its child");
	return at;
}

static void
full(const char *path)
{
	(void)fill(path, file_new(path, HOLES));
}

static void
unfull(const char *path)
{
	int fd = file_new(path, HOLES);
	char *at = fill(path, fd);

	check(ftruncate(fd, HOLES / 2) == 0 && ftruncate(fd, HOLES) == 0, "ftruncate");
	check(msync(at, HOLES, MS_SYNC) == 0, "msync");
}

static void *
load_long(void *arg)
{
	(void)arg;
	check(dlopen(getenv("LOADED"), RTLD_NOW) != NULL, "dlopen");
	return NULL;
}

static void
meanwhile(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), enough[4096];
	pthread_t loader;

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	check(setenv("EARLY_WAITS", enough, 1) == 0, "setenv");
	check(!pthread_create(&loader, NULL, load_long, NULL), "thread");
	wait_for_file(path, "enough.begun");
	/* A function of libpmem's is looked up first, which waits by itself. */
	memset(at, 'm', PAGE);
	check(msync(at, PAGE, MS_SYNC) == 0, "msync");
	(void)pthread_join(loader, NULL);
}

static void *
load_crossed(void *path)
{
	wait_for_file(path, "repl.slow");
	return load_long(NULL);
}

static void
crossed(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE), enough[4096];
	pthread_t loader;

	/* It tells when it begins, and does not wait. */
	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	(void)close(file_new(enough, 1));
	check(setenv("EARLY_WAITS", enough, 1) == 0, "setenv");
	check(setenv("EARLY_POOL", path, 1) == 0, "setenv");
	check(!pthread_create(&loader, NULL, load_crossed, (void *)(uintptr_t)path), "thread");
	put(at + PAGE, 'c', PAGE);
	(void)pthread_join(loader, NULL);
}

static void
joins(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'j', PAGE);
	check(msync(at + PAGE, PAGE, MS_SYNC) == 0, "msync");
	check(setenv("EARLY_POOL", path, 1) == 0, "setenv");
	check(setenv("EARLY_THREAD", "1", 1) == 0, "setenv");
	(void)load_long(NULL);
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
adds(const char *path)
{
	char *at = map_fd(open(path, O_RDWR), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at + PAGE, 'a', PAGE);
	put(at + 2 * PAGE, 'a', PAGE);
	(void)raise(SIGKILL);
}

static void
leaves(const char *path)
{
	check(clearenv() == 0, "clearenv");
	check(chdir("/") == 0, "chdir");
	put(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE) + PAGE, 'l', PAGE);
}

static void
recut(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, 2 * SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', PAGE);
	check(ftruncate(fd, SIZE + 100) == 0, "ftruncate");
	put(at, 'b', 100);
	check(ftruncate(fd, SIZE + 100) == 0, "ftruncate");
	put(at + SIZE, 'c', 100);
}

const struct odd_mode odd_process[] = {
	{"daemon", daemon_child},
	{"forks", forks},
	{"cancel", cancel},
	{"stderr", on_stderr},
	{"exit", exit_amid},
	{"handler", fork_in_handler},
	{"leaves", leaves},
	{"cut", cut},
	{"recut", recut},
	{"shorter", shorter},
	{"full", full},
	{"nameless", full},
	{"unfull", unfull},
	{"holds", holds},
	{"prints", prints},
	{"adds", adds},
	{"later", later},
	{"other", other},
	{"unseen", unseen},
	{"number", number},
	{"narrow", narrow},
	{"atexit", at_exit},
	{"openssl", by_openssl},
	{"crypto", by_linked_openssl},
	{"crossed", crossed},
	{"joins", joins},
	{"meanwhile", meanwhile},
	{"lives", lives},
	{"limited", limited},
	{"stores", stores},
	{"borrows", borrows},
	{"shares", shares},
	{"amid", amid},
	{"jumps", jumps},
	{"ticks", ticks},
	{"heap", heap},
	{"forkticks", forkticks},
	{"last", last},
	{"lastc11", last_c11},
	{"closed", closed_standard},
	{NULL, NULL},
};
