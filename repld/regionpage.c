/* SPDX-License-Identifier: BSD-3-Clause */
#include "regionpage.h"

#include <string.h>

#include "checksum.h"
#include "le.h"

enum { AT_MAGIC = 0, AT_VERSION = 8, AT_FLAGS = 10, AT_EPOCH = 12, AT_SUM = 16 };

static uint64_t
page_sum(const uint8_t *page)
{
	uint64_t rest = sum64(page + AT_SUM + 8, REGION_PAGE - AT_SUM - 8);

	return sum64_seeded(page, AT_SUM, rest);
}

void
region_page_begin(uint8_t page[REGION_PAGE], const char *magic, uint16_t version, uint32_t epoch)
{
	memset(page, 0, REGION_PAGE);
	memcpy(page + AT_MAGIC, magic, 8);
	put_le16(page + AT_VERSION, version);
	put_le32(page + AT_EPOCH, epoch);
}

void
region_page_set_flags(uint8_t page[REGION_PAGE], uint16_t flags)
{
	put_le16(page + AT_FLAGS, flags);
}

void
region_page_seal(uint8_t page[REGION_PAGE])
{
	put_le64(page + AT_SUM, page_sum(page));
}

int
region_page_open(const uint8_t page[REGION_PAGE], const struct region_page *kind, struct err *e)
{
	if (memcmp(page + AT_MAGIC, kind->magic, 8) != 0)
		return err_set(e, REPL_E_CORRUPT, "%s: no magic bytes '%s'", kind->region,
			       kind->magic);
	if (get_le64(page + AT_SUM) != page_sum(page))
		return err_set(e, REPL_E_CORRUPT, "%s: page '%s' has a wrong checksum",
			       kind->region, kind->magic);
	if (get_le16(page + AT_VERSION) > kind->version)
		return err_set(e, REPL_E_VERSION,
			       "%s: version %u, this program knows up to %u: a newer version made "
			       "it",
			       kind->region, get_le16(page + AT_VERSION), kind->version);
	if (get_le16(page + AT_VERSION) != kind->version)
		return err_set(e, REPL_E_CORRUPT, "%s: version %u is none", kind->region,
			       get_le16(page + AT_VERSION));
	if (get_le16(page + AT_FLAGS) & ~kind->flags)
		return err_set(e, REPL_E_CORRUPT, "%s: flags 0x%x are not known", kind->region,
			       get_le16(page + AT_FLAGS));
	for (size_t i = kind->end; i < REGION_PAGE; i++)
		if (page[i])
			return err_set(e, REPL_E_CORRUPT, "%s: reserved bytes are not zero",
				       kind->region);
	return 0;
}

uint16_t
region_page_version(const uint8_t page[REGION_PAGE])
{
	return get_le16(page + AT_VERSION);
}

uint32_t
region_page_epoch(const uint8_t page[REGION_PAGE])
{
	return get_le32(page + AT_EPOCH);
}

uint16_t
region_page_flags(const uint8_t page[REGION_PAGE])
{
	return get_le16(page + AT_FLAGS);
}
