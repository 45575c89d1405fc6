/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restore - what the parts of replctl restore share: the command itself (cmd_restore.c), and
 * whether the file may be replaced by what the replica has, and what else can be done
 * (restore_check.c).
 */
#ifndef REPLCTL_RESTORE_H
#define REPLCTL_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "boot.h"
#include "commands.h"
#include "local.h"
#include "restoring.h"
#include "sidecar.h"
#include "transfer.h"

struct restore {
	struct ctl *c;
	struct restoring temp;
	struct local old;      /* held so that nobody replicates the file that is replaced */
	struct sidecar before; /* its record, as it lay there till it was to tell nothing */
	bool recorded;         /* there is that */
	bool made;             /* there was none, and one is made that tells nothing */
	struct sidecar meta;
	enum boot_power power; /* of a primary: it may lack what its replicas have */
	struct transfer_progress sum;
	uint64_t begin_ns;         /* of the copy: the lanes are open */
	uint64_t ns;               /* until it is durable */
	bool here;                 /* what failed is of this machine */
	struct resolved *resolved; /* NULL: of a command of its own */
	bool shutdown_reset;       /* the file differs from the replica by that */
	char *quoted_file, *quoted_target;
};

/*
 * The checks, in their order. Each returns 0 or the code of c->err, behind which the next step is
 * told. Before there is a connection: what lies there can be replaced at all, and is asked to be.
 */
int restore_check_file(struct restore *r);

/* What is replaced, and its record, are nobody's until the restore has ended. */
int restore_lock_old(struct restore *r);

/* The replica is known (meta): nothing goes that may be the best there is. */
int restore_check_replaced(struct restore *r);

/* What the replica has is whole, or it is forced. */
int restore_check_state(struct restore *r);

/* The data are here, and not in place yet: no program has gone on with the file meanwhile. */
int restore_check_missed(struct restore *r);

/* Of a primary whose power is not BOOT_KEPT: what it may lack; text has ERR_TEXT_MAX bytes. */
void restore_power_text(char *text, const char *target, enum boot_power power);

/* What of the replica is not to be had without force, or NULL. */
const char *restore_lacks(const struct sidecar *meta);

/* The file that is replaced, by its record. */
bool restore_was_primary(const struct restore *r);

/* "--force ", as it was given, or "". */
const char *restore_force(const struct restore *r);

#endif
