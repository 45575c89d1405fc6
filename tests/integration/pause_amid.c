/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pause_amid FILE - a thread that makes a range durable is stopped amid reading it, by a page that
 * takes its time. "amid" is printed: the replica is to be paused now. When it is degraded the first
 * word gets a 1 and is made durable, then a word of the range behind that page gets one, and the
 * thread goes on. "done" is printed when it has come to its end: the time to be killed. The
 * configuration is that of REPL_CONFIG.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE  (1U << 20)
#define PAGE  4096U
#define RANGE (SIZE / 2) /* two pages, the slow one first */

static struct repl *handle;
static uint8_t *mem;
static int amid[2], go[2];

static void
give_up(const char *what)
{
	(void)printf("%s: %s\n", what, repl_errormsg());
	exit(1);
}

static void
persist(unsigned lane, size_t off, size_t len)
{
	if (repl_persist(handle, lane, off, len))
		give_up("persist");
}

static void
say(const char *word)
{
	(void)puts(word);
	(void)fflush(stdout);
}

static void
on_fault(int signal, siginfo_t *info, void *context)
{
	uint8_t *page = mem + RANGE;
	char c;

	(void)signal;
	(void)context;
	if ((uint8_t *)info->si_addr < page || (uint8_t *)info->si_addr >= page + PAGE ||
	    write(amid[1], "", 1) != 1 || read(go[0], &c, 1) != 1 ||
	    mprotect(page, PAGE, PROT_READ | PROT_WRITE))
		_exit(3);
}

static void *
drain(void *arg)
{
	(void)arg;
	persist(1, RANGE, 2 * PAGE);
	return NULL;
}

static bool
degraded(void)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	if (repl_stat(handle, 0, &st))
		give_up("stat");
	return st.replication == REPL_REPL_DEGRADED;
}

static void
begin(const char *file)
{
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	struct repl_config *cfg = NULL;
	int fd = open(file, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, SIZE) || pipe(amid) || pipe(go) ||
	    sigaction(SIGSEGV, &fault, NULL))
		exit(2);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		exit(2);
	if (repl_config_new(&cfg) || repl_config_load(cfg, NULL) ||
	    repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &handle))
		give_up("open");
	persist(0, 0, SIZE);
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	char c;

	if (argc != 2)
		return 2;
	begin(argv[1]);
	if (mprotect(mem + RANGE, PAGE, PROT_NONE) || pthread_create(&thread, NULL, drain, NULL) ||
	    read(amid[0], &c, 1) != 1)
		return 2;
	say("amid");
	while (!degraded())
		(void)usleep(1000);
	mem[0] = 1;
	persist(0, 0, 8);
	mem[RANGE + PAGE] = 1;
	if (write(go[1], "", 1) != 1)
		return 2;
	(void)pthread_join(thread, NULL);
	say("done");
	(void)pause();
	return 1;
}
