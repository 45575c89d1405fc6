/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kin - processes that come of one another by fork(2), and one of them has a pool's replicas open.
 *
 * A replica has one writer. What another process of the kin makes durable it posts to memory that
 * all of them share, asks, and waits until who has the pool open has served it: has taken what is
 * posted, made it durable on the replicas, and said so. Any of them may end at any moment, be
 * killed, or become another program: the memory has words that are written at once and no lock
 * that stays with the dead.
 *
 * A range is posted by whole lines of 64 bytes, in one word. There are KIN_RANGES words for a pool;
 * when all are in use, ranges become one with what lies between them, if that is little; else who
 * posts waits until they were served.
 *
 * Pools are known by their numbers, which are the same in all the kin. All functions may be called
 * by any thread; kin_post(), kin_ask() and kin_wait() by a signal handler and behind vfork(2), too.
 */
#ifndef PRELOAD_KIN_H
#define PRELOAD_KIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define KIN_POOLS  32
#define KIN_RANGES 64U

/* Before the program runs. Without memory for it there is no kin, and nobody to wait for. */
void kin_begin(void);
bool kin_is(void);

/* In the child of a fork. */
void kin_forked(void);

/* ---- who opens ---- */

/*
 * The pool of that file may be opened: none of the kin has it or is about to. Else false. True is
 * followed by kin_opened() or kin_failed(), by the same thread. Who opens it makes the replicas
 * equal to the file: what was asked for up to here is served by that.
 */
bool kin_open(unsigned pool, dev_t dev, ino_t ino);
void kin_failed(unsigned pool);

/*
 * Who had it open, or was about to, has died, and the kernel may be on its way to close what that
 * had: between kin_open() and what follows.
 */
bool kin_inherits(unsigned pool);

/*
 * It is open here. serve() is called for it, by a thread of this process for this pool, each time
 * that somebody asks, until kin_closed().
 */
void kin_opened(unsigned pool, dev_t dev, ino_t ino, void (*serve)(unsigned));
void kin_closed(unsigned pool);

/* It is served here. */
bool kin_serves(unsigned pool);

struct kin_range {
	uint64_t off;
	uint64_t len; /* UINT64_MAX: up to the end of the file */
	bool holes;   /* see KIN_HOLES */
};

/* Where it ends in a pool of that size. */
uint64_t kin_range_end(const struct kin_range *r, uint64_t size);

/* What is posted reaches up to there, or UINT64_MAX: the file may be longer. */
uint64_t kin_end(unsigned pool);

/* Up to there is asked. What belongs to that is looked at after this: */
uint64_t kin_asked(unsigned pool);

/* Somebody has said kin_all() since this was asked last. */
bool kin_wants_all(unsigned pool);

/* Take what is posted: the number of ranges. When they are durable on the replicas, kin_served().
 */
unsigned kin_take(unsigned pool, struct kin_range ranges[KIN_RANGES]);
void kin_served(unsigned pool, uint64_t asked);

/* ---- the others ---- */

/* One of the kin, which is not this process, has the pool open, and that is of the same file. */
bool kin_has(unsigned pool, dev_t dev, ino_t ino);

/* The same of another file, which has the pool's name, or had. */
bool kin_has_other(unsigned pool, dev_t dev, ino_t ino);

/*
 * One of the kin, which may be this process, opens the pool of that file, or has died amid that. To
 * be asked before kin_has(): an opening that ends meanwhile is found by that one.
 */
bool kin_opens(unsigned pool, dev_t dev, ino_t ino);

#define KIN_ANY   1U /* whatever goes with it */
#define KIN_HOLES 2U /* holes are of it: they have taken the place of data */

/*
 * The range, of a len above 0, is to be durable on the replicas when that is asked for; one that
 * ends at UINT64_MAX goes up to the end of the file. how: KIN_* or 0. False, without KIN_ANY: too
 * much would go with it, since all words are in use. Who has asked and waited posts it once more.
 */
bool kin_post(unsigned pool, uint64_t off, uint64_t len, unsigned how);

/* The file may be longer, which is looked at when somebody asks next. */
void kin_longer(unsigned pool);

/* The file of the pool has that size; and what was told of it last, mine if nobody has any kin. */
void kin_resized(unsigned pool, uint64_t size);
uint64_t kin_size(unsigned pool, uint64_t mine);

/*
 * What who has it open has flushed, and not drained, is to be durable, too, when that is asked for.
 */
void kin_all(unsigned pool);

/* Ask for all that is posted: what to wait for. */
uint64_t kin_ask(unsigned pool);

/* Who has it open lives, or who opens it is stopped, and has not served that yet. */
bool kin_may_serve(unsigned pool, uint64_t asked);

enum kin_wait {
	KIN_SERVED,
	KIN_WAITS, /* for a moment: once more */
	KIN_NONE,  /* nobody has it open: somebody else may open it */
	KIN_STUCK, /* it is long ago, and who has it open, or opens it, is stopped, as by SIGSTOP */
};

/* No longer than a moment. since_ns: when it was asked, by CLOCK_MONOTONIC. */
enum kin_wait kin_wait(unsigned pool, uint64_t asked, uint64_t since_ns);

#endif
