/* SPDX-License-Identifier: BSD-3-Clause */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct status_row {
	int code;
	int exit_status;
	const char *symbol;
	const char *text;
};

static const struct status_row status_rows[] = {
#define STATUS_ROW(name, value, exit_status, text) {value, exit_status, #name, text},
	REPL_STATUS_TABLE(STATUS_ROW)
#undef STATUS_ROW
};

#define STATUS_COUNT (sizeof(status_rows) / sizeof(status_rows[0]))

/* The row order follows the values (0, -1, -2, ...), as the unit test checks. */
static const struct status_row *
status_row(int code)
{
	if (code > 0 || (size_t) - (long)code >= STATUS_COUNT)
		return NULL;
	return &status_rows[-code];
}

const char *
repl_strstatus(int status)
{
	const struct status_row *row = status_row(status);

	return row ? row->text : "unknown status";
}

int
err_exit_status(int code)
{
	const struct status_row *row = status_row(code);

	return row ? row->exit_status : 1;
}

/* "REPL_E_NOT_FOUND" -> "not-found"; out has room for every symbol. */
static void
symbol_to_name(const char *symbol, char *out, size_t size)
{
	const char *s = symbol + strlen("REPL_");
	size_t i = 0;

	if (strncmp(s, "E_", 2) == 0)
		s += 2;
	for (; *s && i + 1 < size; s++, i++) {
		if (*s == '_')
			out[i] = '-';
		else
			out[i] = (char)(*s >= 'A' && *s <= 'Z' ? *s - 'A' + 'a' : *s);
	}
	out[i] = '\0';
}

const char *
err_name(int code)
{
	static _Thread_local char name[32];
	const struct status_row *row = status_row(code);

	if (!row)
		return "unknown";
	symbol_to_name(row->symbol, name, sizeof(name));
	return name;
}

int
err_by_name(const char *name)
{
	char have[32];

	for (size_t i = 0; i < STATUS_COUNT; i++) {
		symbol_to_name(status_rows[i].symbol, have, sizeof(have));
		if (strcmp(have, name) == 0)
			return status_rows[i].code;
	}
	return REPL_E_FAILED;
}

/* All but the text. */
static void
err_begin(struct err *e, int code)
{
	e->code = code;
	e->reason = REPL_REASON_NONE;
	e->errnum = 0;
	e->by_target = false;
}

void
err_clear(struct err *e)
{
	if (!e)
		return;
	err_begin(e, REPL_OK);
	e->text[0] = '\0';
}

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (code >= 0)
		code = REPL_E_FAILED;
	if (!e)
		return code;
	err_begin(e, code);
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

/* Of a limit its name, which strerror() does not tell. */
static const char *
limit_of(int errnum)
{
	struct rlimit size;

	switch (errnum) {
	case EMFILE:
		return ": raise the limit, RLIMIT_NOFILE";
	case EFBIG:
		if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY)
			return ": raise the limit, RLIMIT_FSIZE";
		return ": the file system takes none of that size";
	default:
		return "";
	}
}

int
err_errno(struct err *e, int code, int errnum, const char *fmt, ...)
{
	va_list ap;
	char why[128];
	size_t used;

	if (code >= 0)
		code = REPL_E_FAILED;
	if (!e)
		return code;
	err_begin(e, code);
	e->errnum = errnum;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	(void)snprintf(e->text + used, sizeof(e->text) - used, ": %s%s",
		       strerror_r(errnum, why, sizeof(why)), limit_of(errnum));
	return code;
}

int
err_because(struct err *e, enum repl_reason reason)
{
	if (!e)
		return REPL_E_FAILED;
	e->reason = reason;
	return e->code;
}

int
err_connect(struct err *e, int errnum, int family, const char *place)
{
	switch (errnum) {
	case EMFILE:
	case ENFILE:
		(void)err_set(e, REPL_E_LIMIT,
			      "%s: too many open files: raise the limit, RLIMIT_NOFILE", place);
		break;
	case EADDRNOTAVAIL:
		/* IPv6 says the same of a place that no address of this machine reaches. */
		if (family != AF_INET)
			return err_set(e, REPL_E_UNREACHABLE,
				       "%s: there is no address to connect from, or no local port "
				       "is free (net.ipv4.ip_local_port_range)",
				       place);
		/* That place alone is not to be had: others have ports of their own. */
		(void)err_set(e, REPL_E_UNREACHABLE,
			      "%s: no local port is free: widen net.ipv4.ip_local_port_range",
			      place);
		break;
	case ENOBUFS:
	case ENOMEM:
		(void)err_set(e, REPL_E_UNREACHABLE, "%s: no memory for a connection", place);
		break;
	default:
		return 0;
	}
	return err_because(e, REPL_REASON_LOCAL);
}

/* It does not tell the one from the other. */
int
err_thread(struct err *e, int errnum, const char *what)
{
	if (errnum != EAGAIN)
		return err_errno(e, REPL_E_LIMIT, errnum, "starting %s", what);
	return err_set(e, REPL_E_LIMIT,
		       "starting %s: no memory for its stack (RLIMIT_DATA, RLIMIT_AS) or too many "
		       "threads (RLIMIT_NPROC, pids.max of a control group)",
		       what);
}

int
err_copy(struct err *to, const struct err *from)
{
	if (to)
		*to = *from;
	return from->code;
}

int
err_prefix(struct err *e, const char *fmt, ...)
{
	va_list ap;
	char old[ERR_TEXT_MAX];
	size_t used;

	if (!e)
		return REPL_E_FAILED;
	memcpy(old, e->text, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	/* A long cause is cut at its end: the prefix names the object. */
	(void)snprintf(e->text + used, sizeof(e->text) - used, ": %.*s",
		       (int)(sizeof(e->text) - used), old);
	return e->code;
}

int
err_suffix(struct err *e, const char *fmt, ...)
{
	va_list ap;
	size_t used;

	if (!e)
		return REPL_E_FAILED;
	used = strlen(e->text);
	va_start(ap, fmt);
	(void)vsnprintf(e->text + used, sizeof(e->text) - used, fmt, ap);
	va_end(ap);
	return e->code;
}

int
err_from_errno(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return REPL_E_NOT_FOUND;
	case EEXIST:
		return REPL_E_EXISTS;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return REPL_E_NOSPC;
	case ENOMEM:
		return REPL_E_NOMEM;
	case EMFILE:
	case ENFILE:
		return REPL_E_LIMIT;
	case ETIMEDOUT:
		return REPL_E_TIMEOUT;
	case EIO:
	case EROFS:   /* what the kernel makes of a file system whose disk fails */
	case EUCLEAN: /* what a file system says that finds itself damaged ... */
	case EBADMSG: /* ... by a checksum */
	case ESTALE:
	case EREMOTEIO:
		return REPL_E_IO;
	case ELOOP:
	case EXDEV:
	case EACCES:
	case EPERM:
		return REPL_E_REFUSED;
	default:
		return REPL_E_FAILED;
	}
}
