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
	PLAN_MESSAGE = 0,            /* payload in the message; the target copies and flushes */
	PLAN_GENERAL = 1,            /* RMA write, then a message asks for the flush */
	PLAN_APPLIANCE = 2,          /* RMA write, then an RMA read on the same lane */
	PLAN_COMPLETION = 3,         /* RMA write, its completion at the target's end */
	PLAN_WRITE_IMM = 4,          /* RMA write with immediate data; the target flushes */
	PLAN_WRITE_IMM_READ = 5,     /* RMA write with immediate data, then an RMA read */
	PLAN_DEPOSIT = 6,            /* message into the receive ring, then an RMA read */
	PLAN_DEPOSIT_COMPLETION = 7, /* message into the receive ring, its completion */
	PLAN_METHOD_COUNT
};

#define PLAN_BIT(method) (1U << (method)) /* sets of methods */

/* Those that every lane executes; the others need something of provider or session. */
#define PLAN_CAN_ALWAYS (PLAN_BIT(PLAN_MESSAGE) | PLAN_BIT(PLAN_GENERAL) | PLAN_BIT(PLAN_APPLIANCE))

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
	unsigned forbid;    /* methods not to be chosen while another is correct */
	unsigned can;       /* methods that provider and session can execute */
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

const char *plan_method_name(enum plan_method m); /* "general-purpose"; "unknown" */
int plan_method_by_name(const char *name);        /* -1 if unknown */

#endif
