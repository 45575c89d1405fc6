/* SPDX-License-Identifier: BSD-3-Clause */
/* poolfile - a pool file of this machine, mapped for reading. */
#ifndef REPLCTL_POOLFILE_H
#define REPLCTL_POOLFILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "err.h"
#include "local.h"

struct poolfile {
	char *path; /* with links resolved, so that the sidecar beside it is found */
	int fd;
	void *mem;
	size_t size;
	struct stat opened; /* as it was when it was opened, or before it was settled */
};

void poolfile_init(struct poolfile *p);
void poolfile_fini(struct poolfile *p);

/*
 * One word of a shell command, allocated: what a link leads to, unless that is a device, since
 * records are beside that, or else the name as it is. NULL: no memory.
 */
char *poolfile_word(const char *path);

/*
 * A regular file that is not empty, and no pool set file. REPL_E_REFUSED: there is a record beside
 * a link to it, as poolname.h has it.
 */
int poolfile_open(struct poolfile *p, const char *path, struct err *e);

/* REPL_E_INVAL if a pool set file has that name; one that can't be looked at is none. */
int poolfile_no_set(const char *path, struct err *e);

/*
 * For a copy that counts, and the record beside it: no program has the pool open (PMDK locks the
 * file, the library the record), and what is read is what a crash of this machine would leave.
 * REPL_E_FAILED if it got another size since it was opened, or was written to meanwhile.
 */
int poolfile_settle(struct poolfile *p, struct local *l, struct err *e);

/* Behind that, where local_in_doubt(). REPL_E_FAILED as above. */
int poolfile_agree(struct poolfile *p, struct err *e);

/* Bytes of it that are no holes. */
uint64_t poolfile_data(const struct poolfile *p);

/* REPL_E_FAILED if another file got its name, or it became shorter, since it was opened. */
int poolfile_same(const struct poolfile *p, struct err *e);

/* And if it was written to: the record that is written beside it would be another one's. */
int poolfile_unchanged(const struct poolfile *p, struct err *e);

#endif
