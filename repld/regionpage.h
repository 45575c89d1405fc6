/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * regionpage - how the pages begin that say what a region of the sidecar is: magic,
 * version, flags, epoch, checksum; docs/POOL-FORMAT.md, 1.7 and 1.8. Pure.
 */
#ifndef REPLD_REGIONPAGE_H
#define REPLD_REGIONPAGE_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define REGION_PAGE 4096U

/* What a kind of page must be like. */
struct region_page {
	const char *region; /* in front of error texts */
	const char *magic;  /* 8 bytes */
	uint16_t version;
	uint16_t flags; /* that are known */
	size_t end;     /* behind it all is zero */
};

/* Begin, fill from byte 24 on, seal. */
void region_page_begin(uint8_t page[REGION_PAGE], const char *magic, uint16_t version,
		       uint32_t epoch);
void region_page_set_flags(uint8_t page[REGION_PAGE], uint16_t flags);
void region_page_seal(uint8_t page[REGION_PAGE]);

/* REPL_E_CORRUPT, or REPL_E_VERSION of a whole one of a newer version. */
int region_page_open(const uint8_t page[REGION_PAGE], const struct region_page *kind,
		     struct err *e);

/* Before it is opened: which kind to expect. */
uint16_t region_page_version(const uint8_t page[REGION_PAGE]);
uint32_t region_page_epoch(const uint8_t page[REGION_PAGE]);
uint16_t region_page_flags(const uint8_t page[REGION_PAGE]);

#endif
