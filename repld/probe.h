/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe - evidence about this machine, into a profile.
 *
 * Reads sysfs below a given root and proc beside it, so that tests can show it
 * any machine. What can't be seen stays unknown, that is safe, and the field's
 * source says what was missing.
 */
#ifndef REPLD_PROBE_H
#define REPLD_PROBE_H

#include "conf.h"
#include "err.h"
#include "pmem.h"
#include "probe_sysfs.h"
#include "profile.h"

#define PROBE_FACTS_MAX 32

struct probe_fact {
	char name[48];
	char value[96];
	char source[160];
};

struct probe {
	struct profile profile;
	/* rma is "no" for a mapping for reading alone, which can't be pinned; a writer's may be. */
	bool rma_untried;
	unsigned fact_count;
	struct probe_fact facts[PROBE_FACTS_MAX];
};

/*
 * fd is an open pool (or the pool directory), granularity is that of its
 * mapping, NULL if it is not mapped. provider "tcp" or "verbs". sysfs is "/sys"
 * but in tests. Fails when fd can't be looked at, and with REPL_E_REFUSED when
 * the configuration states what evidence contradicts, without "trust-me".
 */
int probe_run(const struct conf *c, int fd, const enum profile_granularity *granularity,
	      const char *provider, const char *sysfs, struct probe *out, struct err *e);

/*
 * Whether what is in the processor's caches survives a power cut where fd's file lies: by the
 * admin's word, by evidence, or by both; where they contradict each other and the word is not to be
 * trusted, not. Any file, before a pool is probed.
 */
bool probe_caches_survive(const struct conf *c, int fd, const char *sysfs);

/*
 * Evidence for a field, or the admin's word in its place; against evidence only on "trust-me":
 * REPL_E_REFUSED. probe_run() does that for what it sees itself.
 */
int probe_field(const struct conf *c, enum profile_field f, const struct probe_seen *s,
		struct probe *p, struct err *e);

#endif
