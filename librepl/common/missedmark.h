/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * missedmark - FILE.repl-missed, by which a program of replctl run says that it has made bytes of
 * the pool durable while somebody else had it. Who has it next, and so brings them to the replicas,
 * takes the mark before: what comes from then on makes another one. Until the first is answered it
 * is FILE.repl-taken, for others to see where that fails, or who does it is killed.
 */
#ifndef COMMON_MISSEDMARK_H
#define COMMON_MISSEDMARK_H

#include <stdbool.h>

/* The second is no longer: where a mark can be made it can be taken. */
#define MISSEDMARK_SUFFIX       ".repl-missed"
#define MISSEDMARK_TAKEN_SUFFIX ".repl-taken"
/* The same of earlier versions: one that such a version has left counts, and becomes the other. */
#define MISSEDMARK_TAKEN_BEFORE MISSEDMARK_SUFFIX "-taken"

/* There is one that nobody has taken. */
bool missedmark_is(const char *file);

/* There is one that is not answered, taken or not. */
bool missedmark_waits(const char *file);

/* False: there is none to be answered, taken now or before. */
bool missedmark_take(const char *file);

/* The replicas have what was asked for when it was taken. */
void missedmark_answered(const char *file);

#endif
