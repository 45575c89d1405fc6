/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_each - a step of opening, on all replicas at once: it takes as long as the
 * slowest replica, not as their sum.
 */
#ifndef LIBREPL_REPL_EACH_H
#define LIBREPL_REPL_EACH_H

#include "repl_impl.h"

/*
 * OpenSSH's sshd drops connections at random when more than ten have not logged in
 * (MaxStartups), and repld serve when more than 16 have not.
 */
#define EACH_LOGINS_MAX 8U

struct each_step {
	/* Called in a thread of its own with all signals blocked, *e being clear. */
	int (*run)(struct repl *r, unsigned replica, struct err *e);
	unsigned per_host; /* so many at a time of one server, 0: any number */
	/*
	 * The first of those that have a remote goes before the others, and these not at all if it
	 * fails: first by server and pool, not by the configuration's order, so that others agree.
	 */
	bool one_first;
};

/*
 * Returns when the step is over for all replicas: 0, or the first failure, in time, with
 * its text. With that r->cut is set, which the other steps are to end by soon. Who is done
 * is pinged until all are, since a target does not bear silence for long.
 */
int repl_each(struct repl *r, const struct each_step *step, struct err *e);

#endif
