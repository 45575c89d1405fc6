/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define CONTEXT_MAX 256

struct level {
	const char *name;
	int priority; /* of syslog */
};

static const struct level levels[] = {
	[CONF_LEVEL_ERROR] = {"error", LOG_ERR},
	[CONF_LEVEL_WARNING] = {"warning", LOG_WARNING},
	[CONF_LEVEL_INFO] = {"info", LOG_INFO},
	[CONF_LEVEL_DEBUG] = {"debug", LOG_DEBUG},
};

/* One log a process. Threads read the atomic fields without the lock. */
static struct {
	_Atomic int fd;
	_Atomic int level;
	_Atomic bool syslog;
	pthread_mutex_t lock;      /* guards context */
	char context[CONTEXT_MAX]; /* escaped, with ": " behind it, or "" */
} state = {
	.fd = STDERR_FILENO,
	.level = CONF_LEVEL_INFO,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* A line under construction; what does not fit is dropped and the end marked. */
struct line {
	char text[LOG_LINE_MAX];
	size_t len;
	bool cut;
};

/* All of it or nothing, so that no escape is cut in two. Room is kept for "...\n". */
static void
line_add(struct line *l, const char *text)
{
	size_t len = strlen(text);

	if (l->cut || len > sizeof(l->text) - 4 - l->len) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->len, text, len);
	l->len += len;
}

static void
line_add_escaped(struct line *l, const char *text)
{
	for (; *text && !l->cut; text++) {
		unsigned char c = (unsigned char)*text;
		char unit[5] = {(char)c};

		if (c == '\n')
			(void)strcpy(unit, "\\n");
		else if (c == '\t')
			(void)strcpy(unit, "\\t");
		else if (c == '\\')
			(void)strcpy(unit, "\\\\");
		else if (c < 0x20 || c > 0x7e)
			(void)snprintf(unit, sizeof(unit), "\\x%02x", c);
		line_add(l, unit);
	}
}

static void
line_add_context(struct line *l)
{
	(void)pthread_mutex_lock(&state.lock);
	line_add(l, state.context);
	(void)pthread_mutex_unlock(&state.lock);
}

static void
line_end(struct line *l)
{
	const char *end = l->cut ? "...\n" : "\n";

	memcpy(l->text + l->len, end, strlen(end));
	l->len += strlen(end);
}

/* ISO 8601 in UTC with milliseconds. */
static void
line_add_head(struct line *l, int level)
{
	struct timespec now;
	struct tm tm;
	char date[32], head[96];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	(void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(head, sizeof(head), "%s.%03ldZ repld[%ld] %s: ", date, now.tv_nsec / 1000000,
		       (long)getpid(), levels[level].name);
	line_add(l, head);
}

/* A short write is not continued: the rest would land in another process's line. */
static void
write_line(const char *line, size_t len)
{
	ssize_t n;

	do
		n = write(state.fd, line, len);
	while (n < 0 && errno == EINTR);
}

__attribute__((format(printf, 2, 0))) static void
log_message(int level, const char *fmt, va_list ap)
{
	char text[LOG_LINE_MAX];
	struct line l = {.len = 0};
	int saved = errno;

	if (level > state.level)
		return;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	if (!state.syslog)
		line_add_head(&l, level);
	line_add_context(&l);
	line_add_escaped(&l, text);
	line_end(&l);
	if (state.syslog)
		syslog(levels[level].priority, "%.*s", (int)l.len - 1, l.text);
	else
		write_line(l.text, l.len);
	errno = saved;
}

#define LOG_FUNCTION(name, level)                                                                  \
	void name(const char *fmt, ...)                                                            \
	{                                                                                          \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, fmt);                                                                 \
		log_message(level, fmt, ap);                                                       \
		va_end(ap);                                                                        \
	}

LOG_FUNCTION(log_error, CONF_LEVEL_ERROR)
LOG_FUNCTION(log_warning, CONF_LEVEL_WARNING)
LOG_FUNCTION(log_info, CONF_LEVEL_INFO)
LOG_FUNCTION(log_debug, CONF_LEVEL_DEBUG)

void
log_set_context(const char *text)
{
	struct line l = {.len = 0};

	if (text && *text) {
		line_add_escaped(&l, text);
		if (l.len > sizeof(state.context) - 3)
			l.len = sizeof(state.context) - 3;
		l.text[l.len++] = ':';
		l.text[l.len++] = ' ';
	}
	(void)pthread_mutex_lock(&state.lock);
	memcpy(state.context, l.text, l.len);
	state.context[l.len] = '\0';
	(void)pthread_mutex_unlock(&state.lock);
}

int
log_status(int errnum)
{
	switch (errnum) {
	case EROFS:
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return err_from_errno(errnum);
	default:
		return REPL_E_CONFIG;
	}
}

/* Non-blocking, so that a FIFO without a reader is refused instead of waited for. */
static int
open_file(const char *path, int *out, struct err *e)
{
	struct stat st;
	int rc = 0;
	int fd =
		open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0 && errno == ENXIO)
		return err_set(e, REPL_E_CONFIG, "key 'log': '%s' is not a regular file", path);
	if (fd < 0)
		return err_errno(e, log_status(errno), errno, "key 'log': '%s'", path);
	if (fstat(fd, &st))
		rc = err_errno(e, REPL_E_CONFIG, errno, "key 'log': '%s'", path);
	else if (!S_ISREG(st.st_mode))
		rc = err_set(e, REPL_E_CONFIG, "key 'log': '%s' is not a regular file", path);
	if (rc)
		(void)close(fd);
	else
		*out = fd;
	return rc;
}

/* By somebody who may make none, as in root's /var/log, where serve has found one or made it. */
static bool
is_removed(const char *path, const struct err *e)
{
	struct stat st;

	return (e->errnum == EACCES || e->errnum == EPERM) && lstat(path, &st) && errno == ENOENT;
}

static int
log_open_by(const struct conf *c, bool session, struct err *e)
{
	int fd = STDERR_FILENO;
	int rc = 0;

	if (c->log == CONF_LOG_FILE)
		rc = open_file(c->log_file, &fd, e);
	if (rc)
		(void)err_prefix(e, "%s", c->path);
	if (rc == REPL_E_CONFIG && !(session && is_removed(c->log_file, e)))
		return rc;
	log_close();
	if (c->log == CONF_LOG_SYSLOG)
		openlog("repld", LOG_PID, LOG_DAEMON);
	state.fd = fd;
	state.level = c->log_level;
	state.syslog = c->log == CONF_LOG_SYSLOG;
	if (rc) {
		log_error("%s: messages go to standard error", e->text);
		err_clear(e);
	}
	return 0;
}

int
log_open(const struct conf *c, struct err *e)
{
	return log_open_by(c, false, e);
}

int
log_open_session(const struct conf *c, struct err *e)
{
	return log_open_by(c, true, e);
}

void
log_close(void)
{
	int fd = state.fd;

	state.fd = STDERR_FILENO;
	if (fd != STDERR_FILENO)
		(void)close(fd);
	if (state.syslog)
		closelog();
	state.syslog = false;
}
