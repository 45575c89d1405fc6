/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A driver for compilers without libFuzzer: seeded mutations of the harness's
 * own valid inputs. The same arguments give the same inputs, so a failure is
 * repeated by repeating the command. "FILE..." runs the content of files.
 */
#include <string.h>

#include "fuzz.h"

#define SEEDS_MAX 32

struct corpus {
	uint8_t data[SEEDS_MAX][FUZZ_INPUT_MAX];
	size_t len[SEEDS_MAX];
	unsigned count;
};

struct input {
	uint8_t data[FUZZ_INPUT_MAX];
	size_t len;
};

static uint64_t rng_state;

/* splitmix64 */
static uint64_t
rng_next(void)
{
	uint64_t z = (rng_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static size_t
rng_below(size_t n)
{
	return (size_t)(rng_next() % n);
}

static const uint64_t corner_numbers[] = {
	0,          1,          2,         7,          8,
	16,         255,        256,       257,        4095,
	4096,       65535,      65536,     1U << 20,   0x7fffffff,
	0x80000000, UINT32_MAX, INT64_MAX, 1ULL << 63, UINT64_MAX - 7,
	UINT64_MAX,
};

static const char *const corner_texts[] = {
	"{",    "}",  "[",     "]",   "\"",      ":",       ",",    "null",
	"true", "-1", "1e999", "1.0", "\\u0000", "\\ud800", "\xff", "\xc3\xa4",
	"NaN",  "\n", "\x1b",  "{}",  "[[[[[[[", "\"id\":", "\\",   "9223372036854775808",
	"'",    "/*", "-0",    " ",   "\t",      "\"\"",    "\xc2", "18446744073709551616",
};

static void
put_bytes(struct input *in, const void *bytes, size_t len)
{
	size_t at;

	if (len > in->len)
		return;
	at = rng_below(in->len - len + 1);
	memcpy(in->data + at, bytes, len);
}

static void
insert_bytes(struct input *in, const void *bytes, size_t len)
{
	size_t at = rng_below(in->len + 1);

	if (len > sizeof(in->data) - in->len)
		return;
	memmove(in->data + at + len, in->data + at, in->len - at);
	memcpy(in->data + at, bytes, len);
	in->len += len;
}

static void
remove_bytes(struct input *in)
{
	size_t at = rng_below(in->len);
	size_t len = 1 + rng_below(in->len - at);

	memmove(in->data + at, in->data + at + len, in->len - at - len);
	in->len -= len;
}

static void
mutate_once(struct input *in, const struct corpus *c)
{
	uint64_t number = corner_numbers[rng_below(sizeof(corner_numbers) / sizeof(uint64_t))];
	const char *text = corner_texts[rng_below(sizeof(corner_texts) / sizeof(char *))];
	unsigned other = (unsigned)rng_below(c->count);
	size_t at = rng_below(in->len);
	size_t from = rng_below(c->len[other]);

	switch (rng_below(8)) {
	case 0:
		in->data[at] ^= (uint8_t)(1U << rng_below(8));
		break;
	case 1:
		in->data[at] = (uint8_t)rng_next();
		break;
	case 2: /* little-endian, as on the wire */
		put_bytes(in, &number, (size_t)1 << rng_below(4));
		break;
	case 3:
		insert_bytes(in, text, strlen(text));
		break;
	case 4:
		put_bytes(in, text, strlen(text));
		break;
	case 5:
		remove_bytes(in);
		break;
	case 6:
		in->len = at;
		break;
	default:
		insert_bytes(in, c->data[other] + from, 1 + rng_below(c->len[other] - from));
		break;
	}
}

/* An allocation of the exact size lets a sanitizer see one read too far. */
static void
run(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	FUZZ_CHECK(copy != NULL);
	memcpy(copy, data, len);
	(void)LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void
run_mutated(const struct corpus *c)
{
	unsigned pick = (unsigned)rng_below(c->count);
	size_t times = 1 + rng_below(4);
	struct input in;

	in.len = c->len[pick];
	memcpy(in.data, c->data[pick], in.len);
	for (size_t i = 0; i < times && in.len > 0; i++)
		mutate_once(&in, c);
	run(in.data, in.len);
}

static int
run_file(const char *path)
{
	struct input in;
	FILE *f = fopen(path, "rb");

	if (!f) {
		perror(path);
		return 1;
	}
	in.len = fread(in.data, 1, sizeof(in.data), f);
	(void)fclose(f);
	run(in.data, in.len);
	return 0;
}

static unsigned long
number_or_zero(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *end == '\0' ? n : 0;
}

int
main(int argc, char **argv)
{
	static struct corpus c;
	unsigned long count = argc > 1 ? number_or_zero(argv[1]) : 100000;
	int failed = 0;

	if (count == 0) {
		for (int i = 1; i < argc; i++)
			failed |= run_file(argv[i]);
		return failed;
	}
	rng_state = argc > 2 ? number_or_zero(argv[2]) : 1;
	while (c.count < SEEDS_MAX && (c.len[c.count] = fuzz_seed(c.count, c.data[c.count])) > 0) {
		run(c.data[c.count], c.len[c.count]);
		c.count++;
	}
	FUZZ_CHECK(c.count > 0);
	for (unsigned long i = 0; i < count; i++)
		run_mutated(&c);
	return 0;
}
