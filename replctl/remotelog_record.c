/* SPDX-License-Identifier: BSD-3-Clause */
#include "remotelog_record.h"

#include <string.h>

#include "checksum.h"
#include "le.h"

#define WORD 8U

static uint64_t
record_sum(const uint8_t *record, size_t size)
{
	return sum64_seeded(record, WORD,
			    sum64(record + REMOTELOG_RECORD_MIN, size - REMOTELOG_RECORD_MIN));
}

void
remotelog_record_make(uint8_t *out, size_t size, uint64_t sequence)
{
	put_le64(out, sequence);
	memset(out + REMOTELOG_RECORD_MIN, (int)(sequence & 0xff), size - REMOTELOG_RECORD_MIN);
	put_le64(out + WORD, record_sum(out, size));
}

bool
remotelog_record_check(const uint8_t *record, size_t size, uint64_t sequence)
{
	return get_le64(record) == sequence && get_le64(record + WORD) == record_sum(record, size);
}
