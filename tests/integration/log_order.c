/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_order - when a log stores the second of two things that must not both be half there.
 *
 * usage: log_order FILE TARGET [KEY=VALUE ...]
 *
 * A page of the log is taken away from writers. Who stores there first is made to look how many
 * flushes there were until then, and goes on.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define PAGE      4096UL
#define POOL_SIZE (1UL << 20)

static struct repl *repl;
static uint8_t *pool, *guarded;
static uint64_t begun, seen;

static uint64_t
flushes(void)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	return repl_stat(repl, 0, &st) ? 0 : st.flush_count;
}

static void
on_store(int sig, siginfo_t *info, void *context)
{
	uint8_t *at = info->si_addr;

	(void)context;
	if (at < guarded || at >= guarded + PAGE || mprotect(guarded, PAGE, PROT_READ | PROT_WRITE))
		(void)signal(sig, SIG_DFL);
	else
		seen = flushes();
}

static bool
guard(unsigned page)
{
	guarded = pool + page * PAGE;
	begun = flushes();
	seen = 0;
	return mprotect(guarded, PAGE, PROT_READ) == 0;
}

/* What was stored before is known to whoever copies the pool just now. */
static int
ordered(const char *what, int rc)
{
	(void)printf("%s: %d, stored behind %d flushes\n", what, rc,
		     seen ? (int)(seen - begun) : -1);
	return rc || seen <= begun;
}

static int
start(const char *file, const char *target, char **options, int count)
{
	struct repl_config *cfg = NULL;
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc;

	if (fd < 0 || ftruncate(fd, (off_t)POOL_SIZE))
		return REPL_E_FAILED;
	pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (pool == MAP_FAILED)
		return REPL_E_FAILED;
	rc = repl_config_new(&cfg);
	if (!rc)
		rc = repl_config_add_target(cfg, target);
	for (int i = 0; !rc && i < count; i++) {
		char *value = strchr(options[i], '=');

		if (!value)
			return REPL_E_INVAL;
		*value++ = '\0';
		rc = repl_config_set(cfg, options[i], value);
	}
	if (!rc)
		rc = repl_open(cfg, pool, POOL_SIZE, REPL_OPEN_CREATE, &repl);
	/* None is none that was seen. */
	if (!rc)
		rc = repl_persist(repl, 0, POOL_SIZE - PAGE, PAGE);
	repl_config_free(cfg);
	return rc;
}

int
main(int argc, char **argv)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};
	struct repl_log *log = NULL;
	uint64_t position = 0;
	int wrong = 0;

	sa.sa_sigaction = on_store;
	if (argc < 3 || start(argv[1], argv[2], argv + 3, argc - 3) ||
	    sigaction(SIGSEGV, &sa, NULL)) {
		(void)fprintf(stderr, "log_order: %s\n", repl_errormsg());
		return 2;
	}
	/* A header behind what it is believed with, then its copies one behind the other. */
	if (guard(0))
		wrong |= ordered("create",
				 repl_log_create(repl, 0, POOL_SIZE / 2, REPL_LOG_CHECKSUM, &log));
	repl_log_close(log);
	if (guard(1))
		wrong |= ordered("open", repl_log_open(repl, 0, &log));
	wrong |= repl_log_append(log, 0, "x", 1, &position);
	if (guard(1))
		wrong |= ordered("trim", repl_log_trim(log, 0, repl_log_tail(log)));
	repl_log_close(log);
	return repl_close(repl) || wrong;
}
