/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile - what is known of a target and where it is known from.
 *
 * Pure. The target fills a profile with evidence, sends it as JSON on the
 * control channel (control.h), and both sides and replctl show the same text.
 * A field whose evidence is missing keeps the value that is safe: the domain
 * that needs most work, DDIO on, receive buffers in DRAM.
 */
#ifndef COMMON_PROFILE_H
#define COMMON_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What survives a power cut, in the taxonomy's terms. */
enum profile_domain {
	PROFILE_DMP = 0, /* DIMMs and memory controller: caches are lost */
	PROFILE_MHP = 1, /* caches included (eADR) */
	PROFILE_WSP = 2, /* the NIC's buffers included */
};

enum profile_ddio { PROFILE_DDIO_ON = 0, PROFILE_DDIO_OFF = 1 };
enum profile_rqwrb { PROFILE_RQWRB_DRAM = 0, PROFILE_RQWRB_PM = 1 };

/* Who writes the bytes of an RMA write into memory. */
enum profile_provider {
	PROFILE_PROVIDER_SOFTWARE = 0, /* the target's CPU: tcp, rxe, siw */
	PROFILE_PROVIDER_IB = 1,       /* an RNIC, InfiniBand or RoCE rules */
	PROFILE_PROVIDER_IWARP = 2,
};

/* Whether the provider can reach the pool's own memory: an RNIC must have it registered. */
enum profile_rma { PROFILE_RMA_YES = 0, PROFILE_RMA_NO = 1 };

/* Whether a write can ask the fabric itself to make it durable before it completes. */
enum profile_flush { PROFILE_FLUSH_NO = 0, PROFILE_FLUSH_YES = 1 };

/* What "durable" means for this pool. */
enum profile_class {
	PROFILE_CLASS_MEDIA = 0,  /* flushed to the persistence domain */
	PROFILE_CLASS_PAGE = 1,   /* synced to the device under the page cache */
	PROFILE_CLASS_MEMORY = 2, /* tmpfs: survives the process, not the power */
};

/* libpmem2 store granularity. */
enum profile_granularity {
	PROFILE_GRAN_BYTE = 0,
	PROFILE_GRAN_CACHE_LINE = 1,
	PROFILE_GRAN_PAGE = 2,
};

enum profile_field {
	PROFILE_F_GRANULARITY,
	PROFILE_F_CLASS,
	PROFILE_F_DOMAIN,
	PROFILE_F_DDIO,
	PROFILE_F_RQWRB,
	PROFILE_F_PROVIDER,
	PROFILE_F_RMA,
	PROFILE_F_FLUSH,
	PROFILE_F_COUNT
};

#define PROFILE_SOURCE_MAX 160

struct profile {
	int value[PROFILE_F_COUNT];                       /* the enums above */
	bool known[PROFILE_F_COUNT];                      /* false: safe default */
	char source[PROFILE_F_COUNT][PROFILE_SOURCE_MAX]; /* "libpmem2", "repld.conf: ddio" */
	char provider_name[32];                           /* "tcp", "verbs" */
	char provider_why[200];                           /* why not the one preferred, or "" */
	char filesystem[32];                              /* "tmpfs", "ext4", "xfs-dax" */
};

/* All fields safe, unknown, source "not probed". */
void profile_init(struct profile *p);

void profile_set(struct profile *p, enum profile_field f, int value, const char *source);

/*
 * The value to act on: the safe default unless the field is known and its
 * value is one of its enum, whatever a peer has filled in.
 */
int profile_get(const struct profile *p, enum profile_field f);

const char *profile_field_name(enum profile_field f);            /* "persistence-domain" */
const char *profile_value_name(enum profile_field f, int value); /* "dmp"; NULL if unknown */

/* -1 if unknown. */
int profile_field_by_name(const char *name);
int profile_value_by_name(enum profile_field f, const char *name);

/*
 * Lines "field = value (source)", for a field that is not known "field = value
 * (assumed: source)", before them provider and filesystem without a source.
 * Returns the length needed, as snprintf.
 */
size_t profile_format(const struct profile *p, char *buf, size_t size);

#endif
