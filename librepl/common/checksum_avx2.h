/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checksum_avx2 - sum64() by instructions that not every x86-64 has: checksum.c asks the CPU.
 */
#ifndef COMMON_CHECKSUM_AVX2_H
#define COMMON_CHECKSUM_AVX2_H

#include <stddef.h>
#include <stdint.h>

uint64_t sum64_avx2(const void *data, size_t len);

#endif
