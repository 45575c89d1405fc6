/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hotline - what it costs to flush one line again and again, against lines in
 * turn: 8 bytes in one place, a counter that rotates over ten blocks of 256
 * bytes, and a register (its value is the XOR of the ten). A local loop of
 * store, CLWB, SFENCE, which is what a target with cache-line granularity does
 * for the tail of a log. Prints one JSON object.
 *
 * usage: hotline ROUNDS SLICE-MS [FILE]    FILE: to be mapped, on persistent memory
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "side.h"

#define BLOCKS 10U
#define BLOCK  256U
#define SIZE   4096U
#define LOOP   1000U

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static bool
has_clwb(void)
{
	unsigned a = 0, b = 0, c = 0, d = 0;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_CLWB);
}

__attribute__((target("clwb"))) static void
store(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
	_mm_clwb(at);
	_mm_sfence();
}
#else
static bool
has_clwb(void)
{
	return false;
}

static void
store(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}
#endif

static uint64_t *
block(void *mem, uint64_t i)
{
	return (uint64_t *)((uint8_t *)mem + i % BLOCKS * BLOCK);
}

static int
one_place(void *mem, uint64_t i)
{
	for (uint64_t n = i * LOOP; n < (i + 1) * LOOP; n++)
		store(mem, n);
	return 0;
}

static int
rotating_counter(void *mem, uint64_t i)
{
	for (uint64_t n = i * LOOP; n < (i + 1) * LOOP; n++)
		store(block(mem, n), n);
	return 0;
}

/* What goes into the next block is the value XORed with the nine others. */
static int
rotating_register(void *mem, uint64_t i)
{
	for (uint64_t n = i * LOOP; n < (i + 1) * LOOP; n++) {
		uint64_t x = n;

		for (unsigned other = 1; other < BLOCKS; other++)
			x ^= *block(mem, n + other);
		store(block(mem, n), x);
	}
	return 0;
}

static void *
map(const char *file)
{
	int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *mem = MAP_FAILED;

	if (!file || (fd >= 0 && ftruncate(fd, 3 * SIZE) == 0))
		mem = mmap(NULL, 3 * SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (mem == MAP_FAILED) {
		perror(file ? file : "mmap");
		exit(1);
	}
	if (fd >= 0)
		(void)close(fd);
	memset(mem, 0, 3 * SIZE);
	return mem;
}

int
main(int argc, char **argv)
{
	struct side one = {.name = "one place", .op = one_place};
	struct side counter = {.name = "rotating counter", .op = rotating_counter};
	struct side reg = {.name = "rotating register", .op = rotating_register};
	struct side *sides[] = {&one, &counter, &reg};
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	uint8_t *mem;

	if (argc < 3 || argc > 4 || rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	if (!has_clwb()) {
		(void)puts("{\"clwb\": false}");
		return 0;
	}
	mem = map(argc > 3 ? argv[3] : NULL);
	for (unsigned i = 0; i < 3; i++)
		sides[i]->arg = mem + (size_t)i * SIZE;
	side_measure(sides, 3, rounds, (uint64_t)atoi(argv[2]) * 1000000U, true);
	(void)printf(
		"{\"clwb\": true, \"one_ns\": %.1f, \"counter_ns\": %.1f, "
		"\"register_ns\": %.1f, \"counter_to_one\": %.3f, \"register_to_one\": %.3f}\n",
		side_ns(&one, rounds) / LOOP, side_ns(&counter, rounds) / LOOP,
		side_ns(&reg, rounds) / LOOP, side_ratio(&counter, &one, rounds),
		side_ratio(&reg, &one, rounds));
	return 0;
}
