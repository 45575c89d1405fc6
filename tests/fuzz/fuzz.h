/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz - what a harness gives to a driver: libFuzzer's or fuzz_main.c.
 *
 * A harness fails by abort() (FUZZ_CHECK) or by what a sanitizer finds.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_INPUT_MAX 8192

/* data has exactly size bytes. Always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes valid input number i into buf of FUZZ_INPUT_MAX bytes; its length, 0 if there is none. */
size_t fuzz_seed(unsigned i, uint8_t *buf);

#define FUZZ_CHECK(cond)                                                                           \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
