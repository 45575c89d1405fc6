/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmdk.h"

#include <stdio.h>
#include <string.h>

#include "le.h"

#define SIGNATURE_SIZE 8

/* Offsets in the header. */
enum {
	AT_MAJOR = 8,
	AT_COMPAT = 12,
	AT_INCOMPAT = 16,
	AT_RO_COMPAT = 20,
	AT_UUID = 24,
	AT_CREATED = 120,
	AT_ARCH = 128,
	AT_HALF = 2048, /* end of what CKSUM_2K spans */
	AT_SHUTDOWN = 4024,
	AT_CHECKSUM = 4088,
};

/* Offsets in the attributes; up to the features they are the header's. */
enum {
	ATTR_INCOMPAT = AT_INCOMPAT,
	ATTR_SET = 24,
	ATTR_UUID = 40,
	ATTR_NEXT = 56,
	ATTR_PREV = 72,
	ATTR_ARCH = 88,
};

/* Offsets in the shutdown state. */
enum {
	SDS_COUNT = 0,
	SDS_DEVICE = 8,
	SDS_DIRTY = 16,
	SDS_CHECKSUM = 56,
	SDS_SIZE = 64,
};

static const struct {
	char signature[SIGNATURE_SIZE];
	const char *type;
} types[] = {
	{"PMEMOBJ", "obj"},
	{"PMEMLOG", "log"},
	{"PMEMBLK", "blk"},
};

/* Fletcher-64 over words of 32 bits; len is a multiple of 4. */
struct fletcher {
	uint32_t lo, hi;
};

static void
fletcher_add(struct fletcher *f, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i += 4) {
		f->lo += get_le32(p + i);
		f->hi += f->lo;
	}
}

static uint64_t
fletcher_value(const struct fletcher *f)
{
	return (uint64_t)f->hi << 32 | f->lo;
}

/* What the checksum does not span, its own field among it, counts as zeros. */
static void
fletcher_add_zeros(struct fletcher *f, size_t len)
{
	f->hi += f->lo * (uint32_t)(len / 4);
}

static uint64_t
header_sum(const uint8_t *header)
{
	struct fletcher f = {0};
	size_t end = AT_CHECKSUM;

	if (get_le32(header + AT_INCOMPAT) & PMDK_CKSUM_2K)
		end = AT_HALF;
	fletcher_add(&f, header, end);
	fletcher_add_zeros(&f, PMDK_HEADER_SIZE - end);
	return fletcher_value(&f);
}

static uint64_t
shutdown_sum(const uint8_t *sds)
{
	struct fletcher f = {0};

	fletcher_add(&f, sds, SDS_CHECKSUM);
	fletcher_add_zeros(&f, SDS_SIZE - SDS_CHECKSUM);
	return fletcher_value(&f);
}

static enum pmdk_shutdown
shutdown_of(const uint8_t *header)
{
	const uint8_t *sds = header + AT_SHUTDOWN;

	if (!(get_le32(header + AT_INCOMPAT) & PMDK_SDS))
		return PMDK_SHUTDOWN_NONE;
	if (shutdown_sum(sds) != get_le64(sds + SDS_CHECKSUM))
		return PMDK_SHUTDOWN_DAMAGED;
	if (sds[SDS_DIRTY] == 0)
		return PMDK_SHUTDOWN_CLEAN;
	if (get_le64(sds + SDS_COUNT) == 0 && get_le64(sds + SDS_DEVICE) == 0)
		return PMDK_SHUTDOWN_OPEN;
	return PMDK_SHUTDOWN_BOUND;
}

static void
copy_printable(char *dst, const uint8_t *src, size_t size)
{
	size_t n = strnlen((const char *)src, size - 1);

	for (size_t i = 0; i < n; i++)
		dst[i] = src[i] >= 0x20 && src[i] < 0x7f ? (char)src[i] : '?';
	dst[n] = '\0';
}

bool
pmdk_parse(const uint8_t *head, size_t len, struct pmdk_header *h)
{
	memset(h, 0, sizeof(*h));
	if (len < PMDK_HEADER_SIZE)
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (memcmp(head, types[i].signature, SIGNATURE_SIZE) == 0)
			h->type = types[i].type;
	}
	if (!h->type)
		return false;
	h->major = get_le32(head + AT_MAJOR);
	h->compat = get_le32(head + AT_COMPAT);
	h->incompat = get_le32(head + AT_INCOMPAT);
	h->ro_compat = get_le32(head + AT_RO_COMPAT);
	memcpy(h->uuid, head + AT_UUID, sizeof(h->uuid));
	h->created_s = get_le64(head + AT_CREATED);
	h->checksum_ok = header_sum(head) == get_le64(head + AT_CHECKSUM);
	h->shutdown = shutdown_of(head);
	if (len >= PMDK_HEAD_SIZE && strcmp(h->type, "obj") == 0)
		copy_printable(h->layout, head + PMDK_HEADER_SIZE, sizeof(h->layout));
	return true;
}

void
pmdk_shutdown_reset(uint8_t header[PMDK_HEADER_SIZE])
{
	uint8_t *sds = header + AT_SHUTDOWN;

	memset(sds, 0, SDS_SIZE);
	put_le64(sds + SDS_CHECKSUM, shutdown_sum(sds));
	put_le64(header + AT_CHECKSUM, header_sum(header));
}

bool
pmdk_shutdown_settle(uint8_t header[PMDK_HEADER_SIZE], bool dax)
{
	struct pmdk_header h;

	/* With a wrong checksum PMDK says what is wrong. */
	if (!pmdk_parse(header, PMDK_HEADER_SIZE, &h) || !h.checksum_ok)
		return false;
	/* Where no device is named, it is strange only to one that counts. */
	if (h.shutdown != PMDK_SHUTDOWN_BOUND && (h.shutdown != PMDK_SHUTDOWN_OPEN || !dax))
		return false;
	pmdk_shutdown_reset(header);
	return true;
}

bool
pmdk_attr_none(const uint8_t attr[PMDK_ATTR_SIZE])
{
	static const uint8_t zero[PMDK_ATTR_SIZE];

	return memcmp(attr, zero, sizeof(zero)) == 0;
}

uint32_t
pmdk_attr_incompat(const uint8_t attr[PMDK_ATTR_SIZE])
{
	return get_le32(attr + ATTR_INCOMPAT);
}

const uint8_t *
pmdk_attr_uuid(const uint8_t attr[PMDK_ATTR_SIZE])
{
	return attr + ATTR_UUID;
}

void
pmdk_attr_link(uint8_t attr[PMDK_ATTR_SIZE], const uint8_t prev[PMDK_UUID_SIZE],
	       const uint8_t next[PMDK_UUID_SIZE])
{
	memcpy(attr + ATTR_PREV, prev, PMDK_UUID_SIZE);
	memcpy(attr + ATTR_NEXT, next, PMDK_UUID_SIZE);
}

static uint8_t *
header_uuid(uint8_t *header, enum pmdk_uuid which)
{
	return header + AT_UUID + (size_t)which * PMDK_UUID_SIZE;
}

void
pmdk_header_make(const uint8_t attr[PMDK_ATTR_SIZE], const struct pmdk_part *part,
		 uint8_t header[PMDK_HEADER_SIZE])
{
	memset(header, 0, PMDK_HEADER_SIZE);
	memcpy(header, attr, AT_UUID);
	memcpy(header_uuid(header, PMDK_UUID_SET), attr + ATTR_SET, PMDK_UUID_SIZE);
	memcpy(header_uuid(header, PMDK_UUID_PART), part->uuid, PMDK_UUID_SIZE);
	memcpy(header_uuid(header, PMDK_UUID_PREV_PART), part->prev, PMDK_UUID_SIZE);
	memcpy(header_uuid(header, PMDK_UUID_NEXT_PART), part->next, PMDK_UUID_SIZE);
	memcpy(header_uuid(header, PMDK_UUID_PREV_REPLICA), attr + ATTR_PREV, PMDK_UUID_SIZE);
	memcpy(header_uuid(header, PMDK_UUID_NEXT_REPLICA), attr + ATTR_NEXT, PMDK_UUID_SIZE);
	put_le64(header + AT_CREATED, part->created_s);
	memcpy(header + AT_ARCH, attr + ATTR_ARCH, PMDK_ATTR_SIZE - ATTR_ARCH);
	pmdk_shutdown_reset(header);
}

bool
pmdk_header_attr(const uint8_t header[PMDK_HEADER_SIZE], uint8_t attr[PMDK_ATTR_SIZE])
{
	const uint8_t *uuid = header + AT_UUID;

	memcpy(attr, header, AT_UUID);
	memcpy(attr + ATTR_SET, uuid + PMDK_UUID_SET * PMDK_UUID_SIZE, PMDK_UUID_SIZE);
	memcpy(attr + ATTR_UUID, uuid + PMDK_UUID_PART * PMDK_UUID_SIZE, PMDK_UUID_SIZE);
	memcpy(attr + ATTR_PREV, uuid + PMDK_UUID_PREV_REPLICA * PMDK_UUID_SIZE, PMDK_UUID_SIZE);
	memcpy(attr + ATTR_NEXT, uuid + PMDK_UUID_NEXT_REPLICA * PMDK_UUID_SIZE, PMDK_UUID_SIZE);
	memcpy(attr + ATTR_ARCH, header + AT_ARCH, PMDK_ATTR_SIZE - ATTR_ARCH);
	/* A page of zeros, as of a file that was made in the place of a lost one, has its checksum.
	 */
	return !pmdk_attr_none(attr) && header_sum(header) == get_le64(header + AT_CHECKSUM);
}

const char *
pmdk_shutdown_name(enum pmdk_shutdown s)
{
	static const char *const names[] = {
		[PMDK_SHUTDOWN_NONE] = "not kept",
		[PMDK_SHUTDOWN_CLEAN] = "clean",
		[PMDK_SHUTDOWN_OPEN] = "open or killed",
		[PMDK_SHUTDOWN_BOUND] = "open or killed, bound to its device",
		[PMDK_SHUTDOWN_DAMAGED] = "damaged",
	};

	return (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : "unknown";
}

void
pmdk_incompat_format(uint32_t incompat, char *buf, size_t size)
{
	static const char *const names[] = {"SINGLEHDR", "CKSUM_2K", "SDS"};
	size_t at = 0;
	int n;

	buf[0] = '\0';
	for (unsigned i = 0; i < 32 && at < size; i++) {
		if (!(incompat & 1U << i))
			continue;
		if (i < sizeof(names) / sizeof(names[0]))
			n = snprintf(buf + at, size - at, "%s%s", at ? ", " : "", names[i]);
		else
			n = snprintf(buf + at, size - at, "%s0x%x", at ? ", " : "", 1U << i);
		if (n < 0)
			return;
		at += (size_t)n;
	}
}

void
pmdk_uuid_format(const uint8_t uuid[PMDK_UUID_SIZE], char text[PMDK_UUID_TEXT])
{
	/* The first three fields are little-endian integers. */
	(void)snprintf(text, PMDK_UUID_TEXT, "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		       get_le32(uuid), get_le16(uuid + 4), get_le16(uuid + 6), uuid[8], uuid[9],
		       uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]);
}
