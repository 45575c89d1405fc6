/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe_sysfs - what the kernel tells of the pool's device and of the RNICs.
 *
 * Each function answers one question for probe.c and says in *s (text, with
 * the file it comes from) what it saw. An answer is given only on evidence;
 * without it the text says what is missing.
 */
#ifndef REPLD_PROBE_SYSFS_H
#define REPLD_PROBE_SYSFS_H

#include <stdbool.h>
#include <sys/types.h>

#include "profile.h"

struct probe_seen {
	bool known;
	int value;     /* of the enum in question, if known */
	char text[96]; /* the raw finding */
	char source[160];
};

/* First line of a small file without its end, cut to size; false if it can't be read. */
bool probe_read_line(const char *path, char *out, size_t size);

/*
 * enum profile_domain of the nvdimm region that the device belongs to; through
 * stacked devices (LVM, RAID) only if all below agree.
 */
void probe_domain(const char *sysfs, bool character, dev_t dev, struct probe_seen *s);

/*
 * enum profile_provider of the RNICs. With several kinds the one that promises
 * least counts, as it is not known which will carry the lanes.
 */
void probe_rdma(const char *sysfs, struct probe_seen *s);

/*
 * PROFILE_DDIO_OFF if the root port of every RNIC has it switched off, by the
 * registers of Intel Xeon E5 v3 to Cascade Lake. cpu_known says that this is
 * such a processor: on others the same registers prove nothing.
 */
void probe_ddio(const char *sysfs, bool cpu_known, struct probe_seen *s);

#endif
