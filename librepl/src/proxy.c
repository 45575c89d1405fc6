/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define COMMAND_MAX 8192U
#define TERM_MS     200U  /* for a command to end by itself */
#define KILL_MS     1000U /* for the kernel to end it */

extern char **environ;

/* NULL: no such token. */
static const char *
token(char c, const struct proxy_words *w, const char *port)
{
	switch (c) {
	case '%':
		return "%";
	case 'h':
		return w->host;
	case 'n':
		return w->name;
	case 'p':
		return port;
	case 'r':
		return w->user;
	default:
		return NULL;
	}
}

/* The shell becomes the command: it is the one to be told to end. */
static int
expand(const char *command, const struct proxy_words *w, char *out, struct err *e)
{
	char port[12], one[2] = "";
	size_t n = (size_t)snprintf(out, COMMAND_MAX, "exec ");

	(void)snprintf(port, sizeof(port), "%u", w->port);
	for (const char *p = command; *p; p++) {
		const char *word = one;
		size_t len;

		one[0] = *p;
		if (*p == '%')
			word = token(*++p, w, port);
		if (!word)
			return err_set(e, REPL_E_CONFIG, "%s: ProxyCommand '%s': no such token",
				       w->host, command);
		len = strlen(word);
		if (n + len >= COMMAND_MAX)
			return err_set(e, REPL_E_CONFIG, "%s: ProxyCommand '%s': too long", w->host,
				       command);
		memcpy(out + n, word, len + 1);
		n += len;
	}
	return REPL_OK;
}

static const char *
shell_path(void)
{
	const char *shell = secure_getenv("SHELL");

	return shell && *shell ? shell : "/bin/sh";
}

/* With signals as a program finds them that a shell starts; it prints nothing in our name. */
static int
spawn(char *command, int fd, pid_t *pid)
{
	const char *shell = shell_path();
	char flag[] = "-c", *argv[] = {NULL, flag, command, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	argv[0] = (char *)(uintptr_t)shell;
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	rc = posix_spawnattr_init(&attr);
	if (rc)
		return rc;
	rc = posix_spawn_file_actions_init(&files);
	if (!rc) {
		(void)posix_spawnattr_setflags(&attr,
					       POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		(void)posix_spawnattr_setsigmask(&attr, &none);
		(void)posix_spawnattr_setsigdefault(&attr, &all);
		rc = posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO);
		if (!rc)
			rc = posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
		if (!rc)
			rc = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null",
							      O_WRONLY, 0);
		if (!rc)
			rc = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
		if (!rc)
			rc = posix_spawn(pid, shell, &files, &attr, argv, environ);
		(void)posix_spawn_file_actions_destroy(&files);
	}
	(void)posix_spawnattr_destroy(&attr);
	return rc;
}

/* Of the process that has the number now; 0: none, or nobody can tell. */
static uint64_t
start_of(pid_t pid)
{
	char path[32], line[1024];
	uint64_t started = 0;
	const char *at;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	/* The 22nd word; the second one, a name in brackets, may be of several. */
	at = strrchr(line, ')');
	for (unsigned word = 2; at && word < 22; word++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%" SCNu64, &started) == 1 ? started : 0;
}

/*
 * All of that is this machine's, and nothing is known of the target; but it is this target alone
 * that is away for it.
 */
static int
spawn_failed(struct err *e, int errnum, const char *host, const char *command)
{
	switch (errnum) {
	case EAGAIN:
		(void)err_set(e, REPL_E_UNREACHABLE,
			      "%s: starting ProxyCommand '%s': too many processes (RLIMIT_NPROC, "
			      "pids.max of a control group)",
			      host, command);
		return err_because(e, REPL_REASON_LOCAL);
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EACCES:
	case ENOEXEC:
		(void)err_errno(e, REPL_E_UNREACHABLE, errnum,
				"%s: starting ProxyCommand '%s' by the shell %s (SHELL)", host,
				command, shell_path());
		return err_because(e, REPL_REASON_CONFIG);
	default:
		(void)err_errno(e, REPL_E_UNREACHABLE, errnum, "%s: starting ProxyCommand '%s'",
				host, command);
		return err_because(e, REPL_REASON_LOCAL);
	}
}

int
proxy_start(const char *command, const struct proxy_words *words, int *fd, struct proxy *proxy,
	    struct err *e)
{
	char *text = malloc(COMMAND_MAX);
	int pair[2], rc;

	if (!text)
		return err_set(e, REPL_E_NOMEM, "out of memory for a ProxyCommand");
	rc = expand(command, words, text, e);
	if (rc)
		goto out;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		rc = err_errno(e, REPL_E_LIMIT, errno, "%s: sockets for a ProxyCommand",
			       words->host);
		goto out;
	}
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	rc = spawn(text, pair[1], &proxy->pid);
	(void)close(pair[1]);
	if (rc) {
		(void)close(pair[0]);
		rc = spawn_failed(e, rc, words->host, command);
	} else {
		*fd = pair[0];
		proxy->started = start_of(proxy->pid);
	}
out:
	free(text);
	return rc;
}

/* What has the number may be another one by now. */
static bool
is_other(const struct proxy *proxy)
{
	uint64_t started = proxy->started ? start_of(proxy->pid) : 0;

	return started && started != proxy->started;
}

static void
tell(const struct proxy *proxy, int pidfd, int sig)
{
	if (pidfd >= 0)
		(void)pidfd_send_signal(pidfd, sig, NULL, 0);
	else
		(void)kill(proxy->pid, sig);
}

/* It has ended, and was waited for by us or the program; or it is no child of the program. */
static bool
gone_within(const struct proxy *proxy, int pidfd, unsigned ms)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	uint64_t deadline_ns = clock_deadline(ms);
	siginfo_t how;

	for (;;) {
		how.si_pid = 0;
		if (waitid(pidfd < 0 ? P_PID : P_PIDFD, (id_t)(pidfd < 0 ? proxy->pid : pidfd),
			   &how, WEXITED | WNOHANG) ||
		    how.si_pid)
			return true;
		if (clock_now_ns() >= deadline_ns)
			return false;
		(void)nanosleep(&moment, NULL);
	}
}

/*
 * By a descriptor of the process it stays the one that was looked at. Without one, where the
 * process has none left, another would have to come to its number in that moment.
 */
void
proxy_stop(const struct proxy *proxy)
{
	int pidfd = pidfd_open(proxy->pid, 0);

	/* Looked at behind that: until now the number has been its own, then. */
	if (!is_other(proxy) && !gone_within(proxy, pidfd, 0)) {
		tell(proxy, pidfd, SIGTERM);
		if (!gone_within(proxy, pidfd, TERM_MS)) {
			tell(proxy, pidfd, SIGKILL);
			(void)gone_within(proxy, pidfd, KILL_MS);
		}
	}
	if (pidfd >= 0)
		(void)close(pidfd);
}
