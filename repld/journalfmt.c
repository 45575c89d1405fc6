/* SPDX-License-Identifier: BSD-3-Clause */
#include "journalfmt.h"

#include <inttypes.h>
#include <string.h>

#include "checksum.h"
#include "le.h"

#define VERSION         1
#define HEADER_MAGIC    "REPLJRNL"
#define COMMIT_MAGIC    "REPLJCMT"
#define FLAG_GENERATION 1U

/* Both pages begin alike. */
enum { AT_MAGIC = 0, AT_VERSION = 8, AT_FLAGS = 10, AT_EPOCH = 12, AT_SUM = 16 };

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
};

static uint64_t
page_sum(const uint8_t *page)
{
	uint64_t rest = sum64(page + AT_SUM + 8, JOURNAL_PAGE - AT_SUM - 8);

	return sum64_seeded(page, AT_SUM, rest);
}

static void
page_begin(uint8_t *page, const char *magic, uint32_t epoch)
{
	memset(page, 0, JOURNAL_PAGE);
	memcpy(page + AT_MAGIC, magic, 8);
	put_le16(page + AT_VERSION, VERSION);
	put_le32(page + AT_EPOCH, epoch);
}

static int
page_open(const uint8_t *page, const char *magic, size_t end, uint16_t flags, struct err *e)
{
	if (memcmp(page + AT_MAGIC, magic, 8) != 0)
		return err_set(e, REPL_E_CORRUPT, "journal: no magic bytes '%s'", magic);
	if (get_le64(page + AT_SUM) != page_sum(page))
		return err_set(e, REPL_E_CORRUPT, "journal: page '%s' has a wrong checksum", magic);
	if (get_le16(page + AT_VERSION) != VERSION)
		return err_set(e, REPL_E_VERSION, "journal: version %u, not %d",
			       get_le16(page + AT_VERSION), VERSION);
	if (get_le16(page + AT_FLAGS) & ~flags)
		return err_set(e, REPL_E_CORRUPT, "journal: flags 0x%x are not known",
			       get_le16(page + AT_FLAGS));
	for (size_t i = end; i < JOURNAL_PAGE; i++)
		if (page[i])
			return err_set(e, REPL_E_CORRUPT, "journal: reserved bytes are not zero");
	return 0;
}

void
journal_header_encode(const struct journal_header *h, uint8_t page[JOURNAL_PAGE])
{
	page_begin(page, HEADER_MAGIC, h->epoch);
	memcpy(page + AT_UUID, h->pool_uuid.b, GEN_ID_SIZE);
	put_le64(page + AT_SUM, page_sum(page));
}

int
journal_header_decode(const uint8_t page[JOURNAL_PAGE], struct journal_header *h, struct err *e)
{
	int rc = page_open(page, HEADER_MAGIC, AT_HEADER_END, 0, e);

	if (rc)
		return rc;
	h->epoch = get_le32(page + AT_EPOCH);
	memcpy(h->pool_uuid.b, page + AT_UUID, GEN_ID_SIZE);
	return 0;
}

void
journal_commit_encode(const struct journal_commit *c, uint8_t page[JOURNAL_PAGE])
{
	page_begin(page, COMMIT_MAGIC, c->epoch);
	put_le16(page + AT_FLAGS, c->has_generation ? FLAG_GENERATION : 0);
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
	put_le64(page + AT_SUM, page_sum(page));
}

int
journal_commit_decode(const uint8_t page[JOURNAL_PAGE], struct journal_commit *c, struct err *e)
{
	struct journal_commit got = {0};
	uint32_t state = get_le32(page + AT_STATE);
	int rc = page_open(page, COMMIT_MAGIC, AT_COMMIT_END, FLAG_GENERATION, e);

	if (rc)
		return rc;
	if (state < SIDECAR_UP_TO_DATE || state > SIDECAR_UNKNOWN || get_le32(page + AT_ZERO))
		return err_set(e, REPL_E_CORRUPT, "journal: state %" PRIu32 " is not known", state);
	got.epoch = get_le32(page + AT_EPOCH);
	got.state = (enum sidecar_state)state;
	got.count = get_le64(page + AT_COUNT);
	got.bytes = get_le64(page + AT_BYTES);
	got.chain = get_le64(page + AT_CHAIN);
	got.has_generation = get_le16(page + AT_FLAGS) & FLAG_GENERATION;
	memcpy(got.generation.current.b, page + AT_CURRENT, GEN_ID_SIZE);
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		memcpy(got.generation.history[i].b, page + AT_HISTORY + (size_t)i * GEN_ID_SIZE,
		       GEN_ID_SIZE);
	*c = got;
	return 0;
}
