/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmdk - the header at the beginning of a pool that PMDK 1.x or 2.x has made.
 *
 * Pure. A replica is an image of the pool, so its header is that of the
 * initiator, the shutdown state (what its device said when it was opened last)
 * with it. PMDK takes a state that was bound to another device for a failure of
 * ADR and refuses the pool: whoever moves an image to another device resets it.
 */
#ifndef COMMON_PMDK_H
#define COMMON_PMDK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMDK_HEADER_SIZE 4096
/* The header, and behind it what names the layout of a libpmemobj pool. */
#define PMDK_HEAD_SIZE  (PMDK_HEADER_SIZE + 1024)
#define PMDK_UUID_SIZE  16
#define PMDK_UUID_TEXT  37
#define PMDK_LAYOUT_MAX 1024

enum pmdk_incompat {
	PMDK_SINGLEHDR = 1U << 0,
	PMDK_CKSUM_2K = 1U << 1, /* the checksum spans the first half only */
	PMDK_SDS = 1U << 2,      /* the shutdown state counts */
};

enum pmdk_uuid {
	PMDK_UUID_SET,
	PMDK_UUID_PART,
	PMDK_UUID_PREV_PART,
	PMDK_UUID_NEXT_PART,
	PMDK_UUID_PREV_REPLICA,
	PMDK_UUID_NEXT_REPLICA,
	PMDK_UUID_COUNT
};

enum pmdk_shutdown {
	PMDK_SHUTDOWN_NONE,    /* this pool does not keep it */
	PMDK_SHUTDOWN_CLEAN,   /* closed by its program */
	PMDK_SHUTDOWN_OPEN,    /* open, or its program was killed; no device is named */
	PMDK_SHUTDOWN_BOUND,   /* the same, bound to one device's identity and count */
	PMDK_SHUTDOWN_DAMAGED, /* checksum wrong: PMDK makes it anew by itself */
};

struct pmdk_header {
	const char *type; /* "obj", "log", "blk"; static */
	uint32_t major, compat, incompat, ro_compat;
	uint8_t uuid[PMDK_UUID_COUNT][PMDK_UUID_SIZE];
	uint64_t created_s;
	bool checksum_ok;
	enum pmdk_shutdown shutdown;
	char layout[PMDK_LAYOUT_MAX]; /* of "obj": printable; "" for others */
};

/*
 * Take apart the first len bytes of a pool. False if they do not begin as a
 * pool of PMDK's does; whatever else may be wrong with them is told in *h.
 */
bool pmdk_parse(const uint8_t *head, size_t len, struct pmdk_header *h);

/*
 * Make the shutdown state that of a pool closed in order, and the checksum
 * that of the header as it is now. The header is one that pmdk_parse() takes
 * and whose checksum matches.
 */
void pmdk_shutdown_reset(uint8_t header[PMDK_HEADER_SIZE]);

/*
 * Everything in a replica is durable, whatever its program's device thought of its own caches:
 * an image that comes to another device may be opened there. Resets the shutdown state where
 * PMDK would take it for a failure of that device, true if so; nothing of what is no pool of
 * PMDK's or has a checksum that does not match. dax: the device is one whose unsafe shutdowns
 * PMDK counts.
 */
bool pmdk_shutdown_settle(uint8_t header[PMDK_HEADER_SIZE], bool dax);

/*
 * What an initiator of librpmem's wants kept of its pool, as one row of bytes:
 * signature 8, major, compat, incompat, ro_compat 4 each (little-endian), then
 * the UUIDs of the set, of this replica, of the next and of the previous one,
 * and 16 bytes that the header holds as its architecture flags.
 */
#define PMDK_ATTR_SIZE     104
#define PMDK_ATTR_SET_UUID 24 /* where the UUID of the set is */

/* What else is in a part's header; the replica's own UUID is that of part 0. */
struct pmdk_part {
	uint8_t uuid[PMDK_UUID_SIZE], prev[PMDK_UUID_SIZE], next[PMDK_UUID_SIZE];
	uint64_t created_s;
};

/* All zero: there are none. */
bool pmdk_attr_none(const uint8_t attr[PMDK_ATTR_SIZE]);

/* Features of the attributes, enum pmdk_incompat. */
uint32_t pmdk_attr_incompat(const uint8_t attr[PMDK_ATTR_SIZE]);

/* The replica's own UUID in them: where PMDK_UUID_SIZE bytes are. */
const uint8_t *pmdk_attr_uuid(const uint8_t attr[PMDK_ATTR_SIZE]);

/* Replace the UUIDs of the previous and the next replica in them. */
void pmdk_attr_link(uint8_t attr[PMDK_ATTR_SIZE], const uint8_t prev[PMDK_UUID_SIZE],
		    const uint8_t next[PMDK_UUID_SIZE]);

/* The header of a part, whole, as of a pool that was closed in order. */
void pmdk_header_make(const uint8_t attr[PMDK_ATTR_SIZE], const struct pmdk_part *part,
		      uint8_t header[PMDK_HEADER_SIZE]);

/* The attributes in the header of the first part. False if its checksum does not match, or it is
 * zero. */
bool pmdk_header_attr(const uint8_t header[PMDK_HEADER_SIZE], uint8_t attr[PMDK_ATTR_SIZE]);

const char *pmdk_shutdown_name(enum pmdk_shutdown s); /* "clean", ... */

/* Names of the set bits, "SINGLEHDR, CKSUM_2K"; what has no name as a number. */
void pmdk_incompat_format(uint32_t incompat, char *buf, size_t size);

/* In the byte order of PMDK's tools. */
void pmdk_uuid_format(const uint8_t uuid[PMDK_UUID_SIZE], char text[PMDK_UUID_TEXT]);

#endif
