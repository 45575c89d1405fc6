/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * side - operations measured side by side: in turns, slice by slice, round by
 * round, so that what disturbs the machine disturbs them alike, and compared
 * round by round. Programs of tests/bench end by side_check() when something
 * fails: they have nothing to save.
 */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <librepl.h>

#define SIDE_ROUNDS_MAX  32
#define SIDE_SAMPLES_MAX 8192

/* What all sessions of a program have in common; from the command line. */
struct side_target {
	const char *host; /* [user@]host[:port] */
	const char *identity, *known_hosts;
};

/* A session on a pool of its own, of anonymous memory or in a file. */
struct side_pool {
	struct repl *r;
	uint8_t *mem;
	size_t size, room; /* room: bytes mapped, at least size */
};

struct side_options {
	const char *method;                /* as in repl.conf; NULL: auto */
	unsigned lanes;                    /* 0: 1 */
	size_t room;                       /* mapped, if more than the size */
	bool no_compare;                   /* REPL_OPEN_NO_COMPARE */
	const char *file;                  /* of the pool, which is made; NULL: anonymous memory */
	const char *after_crash, *on_loss; /* as in repl.conf; NULL: compare, fail */
};

/*
 * Open; makes the pool if it is not there. Returns REPL_E_REFUSED where the
 * method can't be had, else 0; anything else ends the program.
 */
int side_open(struct side_pool *p, const struct side_target *t, const char *pool, size_t size,
	      const struct side_options *o);
void side_close(struct side_pool *p);

/* "memory", "page", "media"; valid until the next call. */
const char *side_class(const struct side_pool *p);

struct side {
	const char *name;
	int (*op)(void *arg, uint64_t i); /* the i-th; 0, or what side_check() is to tell */
	void *arg;
	uint64_t i;
	double estimate_ns;
	double ns[SIDE_ROUNDS_MAX]; /* the median of each round, or its mean */
};

/*
 * Measure all in turns, each for slice_ns a round; a round before the first is
 * not kept. mean: take a round's mean instead of its median.
 */
void side_measure(struct side **sides, unsigned count, unsigned rounds, uint64_t slice_ns,
		  bool mean);

/* The median of the rounds. */
double side_ns(const struct side *s, unsigned rounds);

/* The median of the rounds' ratios. */
double side_ratio(const struct side *s, const struct side *to, unsigned rounds);

double side_median(const double *values, unsigned count);

uint64_t side_now_ns(void);

/* End the program with text and repl_errormsg() if rc is not 0. */
void side_check(int rc, const char *what);

#endif
