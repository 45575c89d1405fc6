/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * err - an error code with its text, filled where the fault is known.
 *
 * Functions that can fail take a struct err * as their last parameter, fill it
 * once at the place where the cause is known and return its code. Callers add
 * context only where they know something new (err_prefix). NULL is allowed.
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stdbool.h>

#include "librepl.h"

#define ERR_TEXT_MAX 1024

struct err {
	int code;                /* enum repl_status */
	enum repl_reason reason; /* what the code alone does not tell; NONE: it does */
	int errnum;              /* of this program's call that failed; 0: none has */
	bool by_target;          /* the target has said so */
	char text[ERR_TEXT_MAX];
};

/* Clear to REPL_OK and "". */
void err_clear(struct err *e);

/* pthread_create(3) has failed to start what, e.g. "the data thread": REPL_E_LIMIT. */
int err_thread(struct err *e, int errnum, const char *what);

/* Set code and formatted text, return code. Never sets REPL_OK. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Of the error that was set, what its code does not tell. Returns the code. */
int err_because(struct err *e, enum repl_reason reason);

/* As err_set, with ": " and strerror(errnum) appended, and of EMFILE and EFBIG the limit's name. */
int err_errno(struct err *e, int code, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * There is no connection to a place of this address family for want of something that is this
 * machine's own; 0: errnum tells of nothing such.
 */
int err_connect(struct err *e, int errnum, int family, const char *place);

/* All of it, as one who works for us has met it; returns the code. */
int err_copy(struct err *to, const struct err *from);

/* Put "prefix: " before the text; returns the code. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put more behind the text, as far as there is room; all else stays. Returns the code. */
int err_suffix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The status for an errno: ENOENT -> NOT_FOUND, ENOSPC/EDQUOT -> NOSPC, ... */
int err_from_errno(int errnum);

/* The exit status of replctl for a code (REPL_STATUS_TABLE); 1 if unknown. */
int err_exit_status(int code);

/* Symbolic name without prefix, lower case, '-' for '_': "not-found". Never NULL. */
const char *err_name(int code);

/* Inverse of err_name(); REPL_E_FAILED for an unknown name. */
int err_by_name(const char *name);

#endif
