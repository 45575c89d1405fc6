/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan - the cheapest method that is correct for a target.
 *
 * Pure: a function of profile, shape and size, kept as a table of rules with
 * the reason of each as text, so that a user can be told why.
 */
#ifndef COMMON_PLAN_H
#define COMMON_PLAN_H

#include <stddef.h>

#include "profile.h"

enum plan_method {
	PLAN_MESSAGE = 0,   /* payload in the message; the target copies and flushes */
	PLAN_GENERAL = 1,   /* RMA write, then a message asks for the flush */
	PLAN_APPLIANCE = 2, /* RMA write, then an RMA read on the same lane */
	PLAN_METHOD_COUNT
};

enum plan_shape {
	PLAN_SINGLETON, /* one range or several without order */
	PLAN_COMPOUND,  /* a durable before b */
	PLAN_ATOMIC8,   /* 8 bytes, all or nothing */
};

/* What the session negotiated. */
struct plan_limits {
	size_t inline_max;  /* largest payload of one message */
	size_t message_max; /* up to here a message is cheaper than write + flush */
	bool rma;           /* RMA writes may be used on this pool at all */
	unsigned forbid;    /* a bit a method: not to be chosen while another is correct */
};

struct plan {
	enum plan_method method;
	const char *reason; /* static text */
};

/* The method for size payload bytes of that shape. */
struct plan plan_choose(const struct profile *p, enum plan_shape shape, size_t size,
			const struct plan_limits *lim);

/*
 * Whether a method is correct at all for the profile and shape (ignoring
 * sizes); *reason says why or why not.
 */
bool plan_allowed(const struct profile *p, enum plan_method m, enum plan_shape shape,
		  const char **reason);

const char *plan_method_name(enum plan_method m); /* "message", "general-purpose", "appliance" */

#endif
