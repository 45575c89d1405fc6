/* SPDX-License-Identifier: BSD-3-Clause */
/* What is copied by words is all there, and no word of it in parts, whoever stores meanwhile. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "clock.h"
#include "words.h"

#define SIZE 65536U
#define HALF 0x100000001ULL
#define MS   150U

static _Alignas(64) uint8_t mem[SIZE + 64], copy[SIZE + 64];
static atomic_bool stop;

static void
test_all_places(void **state)
{
	uint8_t from[80], want[80], got[80];

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (size_t a = 0; a < 9; a++) {
		for (size_t b = 0; b < 9; b++) {
			for (size_t len = 0; len < 40; len++) {
				memset(want, 0, sizeof(want));
				memcpy(want + b, from + a, len);
				memset(got, 0, sizeof(got));
				words_load(got + b, from + a, len);
				assert_memory_equal(got, want, sizeof(want));
				memset(got, 0, sizeof(got));
				words_store(got + b, from + a, len);
				assert_memory_equal(got, want, sizeof(want));
			}
		}
	}
}

static void *
store(void *arg)
{
	_Atomic uint64_t *words = arg;

	for (uint64_t n = 1; !atomic_load(&stop); n++)
		for (size_t i = 0; i < SIZE / sizeof(*words); i++)
			atomic_store_explicit(&words[i], n % UINT32_MAX * HALF,
					      memory_order_relaxed);
	return NULL;
}

/* By memcpy() some are, on processors that copy by "rep movsb". */
static void
test_none_is_torn(void **state)
{
	uint64_t deadline_ns = clock_deadline(MS), word;
	pthread_t thread;
	size_t torn = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, store, mem), 0);
	for (size_t at = 8; clock_now_ns() < deadline_ns; at = at % 56 + 8) {
		/* The copy's words lie anywhere. */
		words_load(copy + at - 3, mem + at, SIZE - 64);
		for (size_t i = 0; i < SIZE - 64; i += sizeof(word)) {
			memcpy(&word, copy + at - 3 + i, sizeof(word));
			torn += (uint32_t)word != word >> 32;
		}
	}
	atomic_store(&stop, true);
	(void)pthread_join(thread, NULL);
	assert_int_equal(torn, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_places),
		cmocka_unit_test(test_none_is_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
