/* SPDX-License-Identifier: BSD-3-Clause */
/* repld - the target daemon: options, hardening of the process, then serve or session. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "become.h"
#include "conf.h"
#include "fabric.h"
#include "log.h"
#include "serve.h"
#include "session.h"

#define CONFIG_DEFAULT "/etc/repld.conf"
#define EXIT_OK        0
#define EXIT_FAILED    1
#define EXIT_USAGE     2
#define EXIT_CONFIG    10
#define EXIT_SIGBUS    11
#define SIGBUS_S       2U /* for its line in the log */

static const char usage_text[] =
	"usage: repld serve   [--config FILE]\n"
	"       repld session [--config FILE]\n"
	"       repld --help | --version\n"
	"\n"
	"  serve    listen for SSH connections by the embedded server\n"
	"  session  serve one initiator on standard input and output\n"
	"\n"
	"FILE is " CONFIG_DEFAULT " if there is one; see repld.conf(5) and repld(8).\n";

enum mode { MODE_SERVE, MODE_SESSION };

struct options {
	enum mode mode;
	const char *config; /* NULL: none */
};

/* ---- options ---- */

static int
usage_error(const char *what, const char *value)
{
	(void)fprintf(stderr, "repld: %s%s%s\n%s", what, value ? " " : "", value ? value : "",
		      usage_text);
	return EXIT_USAGE;
}

static int
mode_parse(const char *word, enum mode *mode)
{
	if (strcmp(word, "serve") == 0)
		*mode = MODE_SERVE;
	else if (strcmp(word, "session") == 0)
		*mode = MODE_SESSION;
	else
		return usage_error("not a command:", word);
	return EXIT_OK;
}

/* Returns an exit status; *done says that there is nothing more to do. */
static int
options_parse(int argc, char **argv, struct options *o, bool *done)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c;

	*done = true;
	while ((c = getopt_long(argc, argv, "c:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case 'h':
			(void)fputs(usage_text, stdout);
			return EXIT_OK;
		case 'V':
			(void)puts("repld " REPL_VERSION_TEXT);
			return EXIT_OK;
		default:
			(void)fputs(usage_text, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind >= argc)
		return usage_error("a command is missing", NULL);
	if (optind + 1 < argc)
		return usage_error("unexpected argument:", argv[optind + 1]);
	*done = false;
	return mode_parse(argv[optind], &o->mode);
}

/* ---- the process ---- */

/* Files opened later must not become standard input, output or error. */
static bool
standard_fds_open(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && close(fd) == 0;
}

/* Each lane takes descriptors; the hard limit is what the admin meant. */
static void
raise_nofile(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* No new privileges, and no copy of a pool's bytes in a core file. */
static bool
harden(void)
{
	const struct rlimit none = {0, 0};

	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	/* A log or a sidecar that may not get longer: the write says so. */
	(void)signal(SIGXFSZ, SIG_IGN);
	/* Ignored by who started us, the end of a connection's process would not be told. */
	(void)signal(SIGCHLD, SIG_DFL);
	/*
	 * What is registered with an RNIC stays, and others may do there what they are to:
	 * libfabric would watch the memory, and give all rights to all of it, receive buffers too.
	 */
	(void)setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
	/* Meant for programs that are tried; flushes that a pool's media need would be left out. */
	(void)unsetenv("PMEM2_FORCE_GRANULARITY");
	raise_nofile();
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && setrlimit(RLIMIT_CORE, &none) == 0;
}

/*
 * By an access to the pool's memory, within which this thread holds no lock of the log's, nor
 * of what that calls. Sent by somebody it may: hence the alarm.
 */
static void
on_sigbus(int signo)
{
	(void)signo;
	(void)alarm(SIGBUS_S);
	log_error("no space is left for its pool, or its file was truncated or its device "
		  "failed: this session ends, others go on; check the pool with replctl info");
	_exit(EXIT_SIGBUS);
}

/*
 * SIGBUS ends this process only: it serves one session. SIGTERM and its kind
 * are blocked, the session's loop reads them and closes the pool.
 */
static void
session_signals(void)
{
	struct sigaction sa = {.sa_handler = on_sigbus};
	sigset_t stop;

	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(SIGBUS, &sa, NULL);
	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTERM);
	(void)sigaddset(&stop, SIGINT);
	(void)sigaddset(&stop, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
}

/* ---- commands ---- */

static int
run_session(const struct conf *c, struct err *e)
{
	session_signals();
	return session_run(c, STDIN_FILENO, STDOUT_FILENO, e);
}

static int
run_serve(const struct conf *c, struct err *e)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return err_errno(e, REPL_E_FAILED, errno, "/proc/self/exe");
	self[n] = '\0';
	return serve_run(c, self, e);
}

static int
exit_status(int rc, const struct err *e)
{
	if (rc == REPL_OK)
		return EXIT_OK;
	if (rc != REPL_E_CONFIG)
		return EXIT_FAILED;
	(void)fprintf(stderr, "repld: %s\n", e->text);
	return EXIT_CONFIG;
}

static int
run(const struct options *o)
{
	struct conf conf;
	struct err e;
	int rc;

	memset(&conf, 0, sizeof(conf));
	err_clear(&e);
	rc = conf_read(o->config, &conf, &e);
	if (rc == REPL_OK)
		rc = o->mode == MODE_SERVE ? become_log(&conf, &e) : log_open_session(&conf, &e);
	if (rc) {
		(void)fprintf(stderr, "repld: %s\n", e.text);
		conf_fini(&conf);
		return rc == REPL_E_CONFIG ? EXIT_CONFIG : EXIT_FAILED;
	}
	rc = o->mode == MODE_SERVE ? run_serve(&conf, &e) : run_session(&conf, &e);
	if (rc && o->mode == MODE_SERVE && rc != REPL_E_CONFIG)
		log_error("%s", e.text);
	log_close();
	conf_fini(&conf);
	return exit_status(rc, &e);
}

int
main(int argc, char **argv)
{
	struct options o = {.mode = MODE_SESSION, .config = NULL};
	bool done;
	int rc;

	fab_leave_signals();
	if (!standard_fds_open())
		return EXIT_FAILED;
	rc = options_parse(argc, argv, &o, &done);
	if (done || rc)
		return rc;
	if (!harden()) {
		(void)fputs("repld: hardening the process failed\n", stderr);
		return EXIT_FAILED;
	}
	if (!o.config && access(CONFIG_DEFAULT, F_OK) == 0)
		o.config = CONFIG_DEFAULT;
	return run(&o);
}
