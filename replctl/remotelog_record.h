/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remotelog_record - records that tell by a checksum whether they are whole,
 * so that the end of a log can be found without a tail pointer.
 *
 * Pure. Little-endian: the sequence, from 1, then a checksum of all the other
 * bytes, then filler that follows from the sequence.
 */
#ifndef REPLCTL_REMOTELOG_RECORD_H
#define REPLCTL_REMOTELOG_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REMOTELOG_RECORD_MIN 16U

/* size is at least REMOTELOG_RECORD_MIN. */
void remotelog_record_make(uint8_t *out, size_t size, uint64_t sequence);

/* Whether it is that record and whole. */
bool remotelog_record_check(const uint8_t *record, size_t size, uint64_t sequence);

#endif
