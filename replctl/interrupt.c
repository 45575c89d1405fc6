/* SPDX-License-Identifier: BSD-3-Clause */
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "err.h"

enum { SIGS = 3 };

static const int sigs[SIGS] = {SIGINT, SIGTERM, SIGHUP};
static bool ignored[SIGS];
static _Atomic int seen; /* 0, or the status that a call which it cuts short ends with */
static const char *guarded;

static void
note(int sig)
{
	(void)sig;
	atomic_store(&seen, REPL_E_LOST);
}

/* Not looked up later: while libfabric is loaded (fabric_load.c) they are not what they were. */
void
interrupt_begin(void)
{
	struct sigaction now;

	for (size_t i = 0; i < SIGS; i++)
		ignored[i] = sigaction(sigs[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void
interrupt_catch(void)
{
	struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND | SA_RESTART};

	for (size_t i = 0; i < SIGS; i++)
		if (!ignored[i])
			(void)sigaction(sigs[i], &action, NULL);
}

bool
interrupt_seen(void)
{
	return atomic_load(&seen) != 0;
}

const _Atomic int *
interrupt_flag(void)
{
	return &seen;
}

static void
say(const char *text)
{
	ssize_t n = write(STDERR_FILENO, text, strlen(text));

	(void)n;
}

static void
bus_error(int sig)
{
	(void)sig;
	say("\nreplctl: ");
	say(guarded);
	say(" became shorter, or its device failed, while it was being read\n");
	_exit(1);
}

void
interrupt_guard_mapping(const char *file)
{
	struct sigaction action = {.sa_handler = bus_error};

	guarded = file;
	(void)sigaction(SIGBUS, &action, NULL);
}
