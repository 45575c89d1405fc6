/* SPDX-License-Identifier: BSD-3-Clause */
#include "sshuse.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <libssh/libssh.h>

#define LIBRARY        "libcrypto.so.3"
#define INIT_NO_ATEXIT 0x00080000UL /* of OpenSSL's documented interface */
#define END_MS         1000U        /* for who is inside to come out */

static atomic_uint inside;
static atomic_bool ended;
static atomic_uint configs;            /* how many threads read ssh's config */
static _Thread_local bool config_read; /* this one: what it forks is a command of that */
static _Thread_local bool command_run; /* one was */

/* Called by OpenSSL before it cleans anything up. */
static void
end(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	atomic_store(&ended, true);
	for (unsigned i = 0; i < END_MS && atomic_load(&inside) > 0; i++)
		(void)nanosleep(&moment, NULL);
}

/*
 * For a command: libssh leaves it the signals of its thread, all blocked in ours, and the program's
 * standard error. First none has an effect of the program's, then none is blocked.
 */
static void
as_by_a_shell(void)
{
	int null = open("/dev/null", O_WRONLY);
	sigset_t none;

	for (int signo = 1; signo <= SIGRTMAX; signo++)
		(void)signal(signo, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0 && null != STDERR_FILENO) {
		(void)dup2(null, STDERR_FILENO);
		(void)close(null);
	}
}

/* Others fork, too, where memory for what is a thread's own may not be had any more. */
static bool
forks_command(void)
{
	return atomic_load(&configs) > 0 && config_read;
}

static void
fork_parent(void)
{
	if (forks_command())
		command_run = true;
}

/* Who was inside is not in this process. */
static void
fork_child(void)
{
	if (forks_command())
		as_by_a_shell();
	atomic_store(&inside, 0);
	atomic_store(&configs, 0);
}

/*
 * A ProxyJump is had of libssh as a ProxyCommand only, which channel.c runs. From 0.11 on libssh
 * makes one only where this is set, and does not tell of a jump otherwise: the target would be
 * dialled past it. That is here since libssh looks at the environment, which is not to be changed
 * when other threads run.
 */
static void
jumps_by_command(void)
{
	if (ssh_version(SSH_VERSION_INT(0, 11, 0)))
		(void)setenv("OPENSSH_PROXYJUMP", "1", 1);
}

/*
 * When we are loaded: whoever asks the dynamic linker something later may have to wait for a thread
 * that is about to load a library, and that one for him, where its constructor opens a pool. A
 * libssh that was built with another library than OpenSSL needs none of this.
 */
__attribute__((constructor)) static void
begin(void)
{
	void *crypto = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
	int (*init)(uint64_t, const void *) = NULL;
	int (*at_end)(void (*)(void)) = NULL;

	if (crypto) {
		init = (int (*)(uint64_t, const void *))(uintptr_t)dlsym(crypto,
									 "OPENSSL_init_crypto");
		at_end = (int (*)(void (*)(void)))(uintptr_t)dlsym(crypto, "OPENSSL_atexit");
	}
	if (init)
		(void)init(INIT_NO_ATEXIT, NULL);
	if (at_end)
		(void)at_end(end);
	(void)pthread_atfork(NULL, fork_parent, fork_child);
	jumps_by_command();
}

void
sshuse_config_begin(void)
{
	config_read = true;
	command_run = false;
	(void)atomic_fetch_add(&configs, 1);
}

bool
sshuse_config_end(void)
{
	(void)atomic_fetch_sub(&configs, 1);
	config_read = false;
	return command_run;
}

bool
sshuse_enter(void)
{
	(void)atomic_fetch_add(&inside, 1);
	if (!atomic_load(&ended))
		return true;
	(void)atomic_fetch_sub(&inside, 1);
	return false;
}

void
sshuse_leave(void)
{
	(void)atomic_fetch_sub(&inside, 1);
}

bool
sshuse_ended(void)
{
	return atomic_load(&ended);
}
