/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "filewrite.h"
#include "librepl.h"
#include "stderrline.h"

#define TEXT_MAX 2048

static _Thread_local char last_text[TEXT_MAX];

const char *
report_text(void)
{
	return last_text;
}

static int
log_level(void)
{
	const char *text = secure_getenv("RPMEM_LOG_LEVEL");

	return text && *text ? atoi(text) : REPORT_WARNING;
}

/* PMDK's own texts do not say why a replica is not made or opened. */
static void
print_line(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char last[TEXT_MAX];
	char line[TEXT_MAX + 16];
	bool again = true;
	int n;

	/* Whoever prints may take its time, or be gone since a fork: others do without. */
	if (pthread_mutex_trylock(&lock))
		return;
	again = strcmp(text, last) == 0;
	(void)snprintf(last, sizeof(last), "%s", text);
	n = again ? 0 : snprintf(line, sizeof(line), "librpmem: %s\n", text);
	if (n > 0)
		stderrline_put(line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
	(void)pthread_mutex_unlock(&lock);
}

/* Opened for each line: a handle to keep would have to survive fork() and close(). */
static void
log_line(enum report_level level, const char *text)
{
	static const char *const names[] = {
		[REPORT_ERROR] = "error", [REPORT_WARNING] = "warning", [REPORT_INFO] = "info"};
	const char *path = secure_getenv("RPMEM_LOG_FILE");
	char line[TEXT_MAX + 64], when[32] = "";
	time_t now = time(NULL);
	struct tm tm;
	int fd, n;

	if (log_level() < (int)level)
		return;
	fd = path && *path
		     ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			    0600)
		     : -1;
	if (fd < 0) {
		print_line(text);
		return;
	}
	if (gmtime_r(&now, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	n = snprintf(line, sizeof(line), "%s librpmem[%ld] %s: %s\n", when, (long)getpid(),
		     names[level], text);
	if (n > 0)
		filewrite_line(fd, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
	(void)close(fd);
}

int
report_set(int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(last_text, sizeof(last_text), fmt, ap);
	va_end(ap);
	log_line(REPORT_ERROR, last_text);
	errno = errnum;
	return -1;
}

void
report_log(enum report_level level, const char *fmt, ...)
{
	char text[TEXT_MAX];
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_line(level, text);
	errno = saved;
}

/* By what the old library's manual says of each case. */
static const struct {
	int status, errnum;
} errnums[] = {
	{REPL_E_INVAL, EINVAL},
	{REPL_E_NOMEM, ENOMEM},
	{REPL_E_NOT_FOUND, ENOENT},
	{REPL_E_EXISTS, EEXIST},
	{REPL_E_BUSY, EBUSY},
	{REPL_E_REFUSED, EPERM},
	{REPL_E_DIVERGED, EINVAL},
	{REPL_E_UNREACHABLE, ECONNREFUSED},
	{REPL_E_AUTH, EACCES},
	{REPL_E_TIMEOUT, ETIMEDOUT},
	{REPL_E_CONFIG, EINVAL},
	{REPL_E_PROTOCOL, EPROTO},
	{REPL_E_VERSION, EPROTONOSUPPORT},
	{REPL_E_LIMIT, ENOMEM},
	{REPL_E_NOSPC, ENOSPC},
	{REPL_E_IO, EIO},
	{REPL_E_LOST, ECONNRESET},
};

int
report_repl(int rc, const char *what)
{
	return report_repl_next(rc, what, "");
}

int
report_repl_next(int rc, const char *what, const char *next)
{
	int errnum = EREMOTEIO;

	for (size_t i = 0; i < sizeof(errnums) / sizeof(errnums[0]); i++)
		if (errnums[i].status == rc)
			errnum = errnums[i].errnum;
	return report_set(errnum, "%s: %s%s", what, repl_errormsg(), next);
}
