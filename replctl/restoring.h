/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restoring - FILE.restoring, the file that a restore writes to.
 *
 * It lies beside FILE, belongs to one restore at a time, is kept when that ends early,
 * and is taken up by the next one.
 */
#ifndef REPLCTL_RESTORING_H
#define REPLCTL_RESTORING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "err.h"
#include "sidecar.h"

struct restoring {
	const char *file; /* borrowed: what it will become */
	char *path;
	char *sidecar_path; /* FILE.repl */
	char *dir_path;
	int dirfd;
	int fd;
	uint64_t size; /* of it, when it is open */
	bool sparse;   /* set by the caller: takes space as it is written */
	bool replaces; /* there is a FILE */
	int old_fd;    /* FILE, locked, if there is one */
	struct stat old;
	bool has_sidecar; /* there is a FILE.repl */
	struct stat sidecar;
	bool removed; /* what it held could not be synced */
	bool placed;  /* it is FILE */
};

/* Opens the directory. On an error, too, restoring_fini() frees. */
int restoring_init(struct restoring *r, const char *file, struct err *e);
void restoring_fini(struct restoring *r);

/* Is there a FILE? Refused (REPL_E_REFUSED) if it is not a regular one. */
int restoring_look(struct restoring *r, struct err *e);

/* REPL_E_BUSY if a program has the FILE that is replaced open and locked, as PMDK does. */
int restoring_lock_replaced(struct restoring *r, struct err *e);

/*
 * What restoring_open() would be refused by: REPL_E_NOSPC, with the bytes wanted and free, if a
 * file of size bytes does not fit; REPL_E_BUSY if another restore has it; one that is no file of an
 * earlier restore of this user, or of FILE's; a directory that can't be written to. It is locked,
 * if it is there, until restoring_fini().
 */
int restoring_check(struct restoring *r, uint64_t size, struct err *e);

/*
 * Open or make it, of size bytes; it begins as a copy of a FILE
 * that it replaces, so that only what differs has to come over the network.
 * A sparse one does not begin as a copy, which would fill its holes.
 */
int restoring_open(struct restoring *r, uint64_t size, struct err *e);

/*
 * Give the parts that nobody wrote to their space, unless it is to be sparse: who maps
 * the file would learn of a full disk by SIGBUS.
 */
int restoring_allocate(const struct restoring *r, struct err *e);

/*
 * Sync it. A FILE or FILE.repl other than those that restoring_look() saw is REPL_E_EXISTS. What
 * can't be synced is removed, and told so.
 */
int restoring_settle(struct restoring *r, struct err *e);

/*
 * Behind that, and when FILE.repl speaks of the data that are replaced no more: put it in FILE's
 * place, with owner and mode of the one replaced. Behind an error placed tells where the data are.
 */
int restoring_place(struct restoring *r, struct err *e);

/* FILE.repl, which is the caller's, is removed: nothing is known of what was restored. */
int restoring_forget(const struct restoring *r, struct err *e);

#endif
