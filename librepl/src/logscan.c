/* SPDX-License-Identifier: BSD-3-Clause */
#include "logscan.h"

#include <inttypes.h>

/* A record at a place of its own run, or below the run start of an earlier one. */
static bool
scan_record(const uint8_t *area, const struct logfmt_header *h, uint64_t position, uint64_t limit,
	    uint64_t *next)
{
	struct logfmt_record rec;
	uint64_t end;

	if (!logfmt_record_read(area, h, position, &rec))
		return false;
	if (position < h->run_start ? rec.run >= h->run : rec.run != h->run)
		return false;
	end = position + logfmt_record_size(rec.len);
	if (end > limit)
		return false;
	*next = end;
	return true;
}

static int
scan_tail_check(const struct logfmt_header *h, uint64_t tail, struct err *e)
{
	uint64_t least = h->head > h->run_start ? h->head : h->run_start;

	if (tail % LOGFMT_ALIGN == 0 && tail >= least && tail <= logscan_tail_max(h, h->head))
		return 0;
	return err_set(e, REPL_E_CORRUPT,
		       "the log's tail is said to be at %" PRIu64 ", which is not from %" PRIu64
		       " to %" PRIu64 ": get the pool from a replica",
		       tail, least, logscan_tail_max(h, h->head));
}

int
logscan_run(const uint8_t *area, const struct logfmt_header *h, struct logscan *out, struct err *e)
{
	bool told = h->kind != REPL_LOG_CHECKSUM;
	uint64_t must = h->run_start; /* up to here records must be there */
	uint64_t limit = logscan_tail_max(h, h->head);
	struct logscan s = {.tail = h->head};
	int rc;

	if (told) {
		must = limit = logfmt_tail_read(area, h->kind);
		rc = scan_tail_check(h, must, e);
		if (rc)
			return rc;
	}
	while (s.tail < limit && scan_record(area, h, s.tail, limit, &s.tail))
		s.records++;
	if (s.tail < must)
		return err_set(e, REPL_E_CORRUPT,
			       "the log's record at %" PRIu64
			       " is damaged, though there are others up to %" PRIu64
			       ": get the pool from a replica",
			       s.tail, must);
	*out = s;
	return 0;
}
