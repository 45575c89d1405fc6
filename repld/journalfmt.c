/* SPDX-License-Identifier: BSD-3-Clause */
#include "journalfmt.h"

#include <inttypes.h>
#include <string.h>

#include "le.h"
#include "regionpage.h"

#define VERSION         1
#define VERSION_PART    2 /* with a position */
#define HEADER_MAGIC    "REPLJRNL"
#define COMMIT_MAGIC    "REPLJCMT"
#define FLAG_GENERATION 1U

enum { AT_UUID = 24, AT_HEADER_END = 40 };

enum {
	AT_STATE = 24,
	AT_ZERO = 28,
	AT_COUNT = 32,
	AT_BYTES = 40,
	AT_CHAIN = 48,
	AT_CURRENT = 56,
	AT_HISTORY = 72,
	AT_COMMIT_END = AT_HISTORY + GEN_HISTORY * GEN_ID_SIZE,
	AT_POSITION = AT_COMMIT_END,
	AT_PART_END = AT_POSITION + 8,
};

static const struct region_page header_page = {"journal", HEADER_MAGIC, VERSION, 0, AT_HEADER_END};
static const struct region_page commit_page = {"journal", COMMIT_MAGIC, VERSION, FLAG_GENERATION,
					       AT_COMMIT_END};
static const struct region_page part_page = {"journal", COMMIT_MAGIC, VERSION_PART, FLAG_GENERATION,
					     AT_PART_END};

void
journal_header_encode(const struct journal_header *h, uint8_t page[JOURNAL_PAGE])
{
	region_page_begin(page, HEADER_MAGIC, VERSION, h->epoch);
	memcpy(page + AT_UUID, h->pool_uuid.b, GEN_ID_SIZE);
	region_page_seal(page);
}

int
journal_header_decode(const uint8_t page[JOURNAL_PAGE], struct journal_header *h, struct err *e)
{
	int rc = region_page_open(page, &header_page, e);

	if (rc)
		return rc;
	h->epoch = region_page_epoch(page);
	memcpy(h->pool_uuid.b, page + AT_UUID, GEN_ID_SIZE);
	return 0;
}

void
journal_commit_encode(const struct journal_commit *c, uint8_t page[JOURNAL_PAGE])
{
	region_page_begin(page, COMMIT_MAGIC, c->position ? VERSION_PART : VERSION, c->epoch);
	region_page_set_flags(page, c->has_generation ? FLAG_GENERATION : 0);
	put_le32(page + AT_STATE, (uint32_t)c->state);
	put_le64(page + AT_COUNT, c->count);
	put_le64(page + AT_BYTES, c->bytes);
	put_le64(page + AT_CHAIN, c->chain);
	if (c->has_generation) {
		memcpy(page + AT_CURRENT, c->generation.current.b, GEN_ID_SIZE);
		for (unsigned i = 0; i < GEN_HISTORY; i++)
			memcpy(page + AT_HISTORY + (size_t)i * GEN_ID_SIZE,
			       c->generation.history[i].b, GEN_ID_SIZE);
	}
	put_le64(page + AT_POSITION, c->position);
	region_page_seal(page);
}

int
journal_commit_decode(const uint8_t page[JOURNAL_PAGE], struct journal_commit *c, struct err *e)
{
	struct journal_commit got = {0};
	uint32_t state = get_le32(page + AT_STATE);
	/* What is newer still is refused by the newest that is known. */
	bool part = region_page_version(page) >= VERSION_PART;
	int rc = region_page_open(page, part ? &part_page : &commit_page, e);

	if (rc)
		return rc;
	if (state < SIDECAR_UP_TO_DATE || state > SIDECAR_UNKNOWN || get_le32(page + AT_ZERO))
		return err_set(e, REPL_E_CORRUPT, "journal: state %" PRIu32 " is not known", state);
	got.epoch = region_page_epoch(page);
	got.state = (enum sidecar_state)state;
	got.count = get_le64(page + AT_COUNT);
	got.bytes = get_le64(page + AT_BYTES);
	got.chain = get_le64(page + AT_CHAIN);
	got.has_generation = region_page_flags(page) & FLAG_GENERATION;
	got.position = part ? get_le64(page + AT_POSITION) : 0;
	if (got.position > INT64_MAX || (part && !got.position))
		return err_set(e, REPL_E_CORRUPT, "journal: position %" PRIu64, got.position);
	memcpy(got.generation.current.b, page + AT_CURRENT, GEN_ID_SIZE);
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		memcpy(got.generation.history[i].b, page + AT_HISTORY + (size_t)i * GEN_ID_SIZE,
		       GEN_ID_SIZE);
	*c = got;
	return 0;
}
