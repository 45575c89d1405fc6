/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keeper - one thread a replica: it pings, notices a loss when nothing is written, gets
 * the replica back (connect, judge, resync) and installs it again.
 *
 * What it does next is decided by replica_fsm. Where a pool set is copied by pmempool
 * it does no more than ping: such a replica stays lost.
 */
#ifndef LIBREPL_KEEPER_H
#define LIBREPL_KEEPER_H

#include "repl_impl.h"
#include "resync.h"

/* Begin with what the opening has left: replicas that are installed or lost. */
int keepers_start(struct repl *r, struct err *e);

/* End them all, cutting short what they do; those that are installed stay open. */
void keepers_stop(struct repl *r);

/* The replica has a keeper, who gives signs of life and may free its remote. */
bool keeper_runs(const struct repl *r, unsigned replica);

/* In the child of a fork: close what they have open. */
void keepers_abandon(struct repl *r);

/* By the operator: give the replica up until it is resumed. */
void keeper_pause(struct repl *r, unsigned replica);

/* Try again now, also one that is standalone. */
void keeper_resume(struct repl *r, unsigned replica);

/* Of the resync under way, or the last one. */
const struct resync_progress *keeper_progress(const struct repl *r, unsigned replica);

#endif
