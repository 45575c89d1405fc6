/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chooser - is the library's choice of a method the fastest one that is correct?
 *
 * For each size a session with method auto and one for each method by name take
 * turns. Then compound updates that fit in a message against singletons of the
 * same bytes. Prints one JSON object.
 *
 * usage: chooser HOST IDENTITY KNOWN-HOSTS ROUNDS SLICE-MS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "side.h"

#define POOL    (4U << 20)
#define METHODS (sizeof(methods) / sizeof(methods[0]))
#define LINE    64U

/* The first one is what the others are compared with. */
static const char *const methods[] = {"auto",           "message",    "general-purpose",
				      "appliance",      "completion", "write-imm",
				      "write-imm-read", "deposit",    "deposit-completion"};

static const size_t sizes[] = {8,    64,    256,   1024,  2048,  4096,   6144,
			       8192, 12288, 16384, 32768, 65536, 262144, 1048576};
static const size_t compounds[] = {72, 128, 1024, 2048, 4096, 16384};

struct way {
	struct side_pool pool;
	char refusal[1024];
	size_t len;
	struct side side, pair;
};

static size_t
place(const struct way *w, uint64_t i)
{
	size_t stride = (w->len + LINE - 1) / LINE * LINE;

	return (size_t)(i % (POOL / stride)) * stride;
}

static int
persist(void *arg, uint64_t i)
{
	struct way *w = arg;

	return repl_persist(w->pool.r, 0, place(w, i), w->len);
}

/* The last 8 bytes behind the others, as a record and a pointer. */
static int
pair(void *arg, uint64_t i)
{
	struct way *w = arg;
	size_t off = place(w, i);

	return repl_persist_pair(w->pool.r, 0, off, w->len - 8, off + w->len - 8, 8);
}

static void
print_text(const char *text)
{
	(void)putchar('"');
	for (; *text; text++)
		(void)putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\''
											  : *text);
	(void)putchar('"');
}

static void
print_methods(const struct way *ways)
{
	for (size_t m = 1; m < METHODS; m++) {
		(void)printf("%s{\"method\": \"%s\", \"runs\": %s, \"why\": ", m > 1 ? ", " : "",
			     methods[m], ways[m].pool.r ? "true" : "false");
		print_text(ways[m].refusal);
		(void)putchar('}');
	}
	(void)printf("],\n\"sizes\": [");
}

static void
print_size(const struct way *ways, size_t size, unsigned rounds, bool first)
{
	(void)printf("%s\n{\"size\": %zu, \"auto_ns\": %.0f, \"methods\": [", first ? "" : ",",
		     size, side_ns(&ways[0].side, rounds));
	first = true;
	for (size_t m = 1; m < METHODS; m++) {
		if (!ways[m].pool.r)
			continue;
		(void)printf("%s{\"method\": \"%s\", \"ns\": %.0f, \"auto_to_it\": %.3f}",
			     first ? "" : ", ", methods[m], side_ns(&ways[m].side, rounds),
			     side_ratio(&ways[0].side, &ways[m].side, rounds));
		first = false;
	}
	(void)printf("]}");
}

static void
measure_size(struct way *ways, size_t size, unsigned rounds, uint64_t slice_ns)
{
	struct side *sides[METHODS];
	unsigned count = 0;

	for (size_t m = 0; m < METHODS; m++) {
		struct way *w = &ways[m];

		if (!w->pool.r)
			continue;
		w->len = size;
		w->side = (struct side){.name = methods[m], .op = persist, .arg = w};
		sides[count++] = &w->side;
	}
	side_measure(sides, count, rounds, slice_ns, false);
}

/* On the session that chooses, and beside it a singleton that goes as a message, as the pair does.
 */
static void
measure_compound(struct way *w, struct way *message, size_t size, unsigned rounds,
		 uint64_t slice_ns, bool first)
{
	struct side *sides[] = {&w->side, &w->pair, &message->side};

	w->len = message->len = size;
	w->side = (struct side){.name = "singleton", .op = persist, .arg = w};
	w->pair = (struct side){.name = "compound", .op = pair, .arg = w};
	message->side = (struct side){.name = "message", .op = persist, .arg = message};
	side_measure(sides, 3, rounds, slice_ns, false);
	(void)printf("%s\n{\"size\": %zu, \"singleton_ns\": %.0f, \"message_ns\": %.0f, "
		     "\"compound_ns\": %.0f, \"ratio\": %.3f, \"message_ratio\": %.3f}",
		     first ? "" : ",", size, side_ns(&w->side, rounds),
		     side_ns(&message->side, rounds), side_ns(&w->pair, rounds),
		     side_ratio(&w->pair, &w->side, rounds),
		     side_ratio(&w->pair, &message->side, rounds));
}

int
main(int argc, char **argv)
{
	static struct way ways[METHODS];
	struct side_target target;
	unsigned rounds;
	uint64_t slice_ns;

	if (argc != 6)
		return 2;
	target = (struct side_target){argv[1], argv[2], argv[3]};
	rounds = (unsigned)atoi(argv[4]);
	slice_ns = (uint64_t)atoi(argv[5]) * 1000000U;
	if (rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	for (size_t m = 0; m < METHODS; m++) {
		char pool[64];

		(void)snprintf(pool, sizeof(pool), "chooser-%s", methods[m]);
		if (side_open(&ways[m].pool, &target, pool, POOL,
			      &(struct side_options){.method = methods[m]}))
			(void)snprintf(ways[m].refusal, sizeof(ways[m].refusal), "%s",
				       repl_errormsg());
	}
	(void)printf("{\"class\": \"%s\", \"methods\": [", side_class(&ways[0].pool));
	print_methods(ways);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		measure_size(ways, sizes[i], rounds, slice_ns);
		print_size(ways, sizes[i], rounds, i == 0);
	}
	(void)printf("],\n\"compounds\": [");
	for (size_t i = 0; i < sizeof(compounds) / sizeof(compounds[0]); i++)
		measure_compound(&ways[0], &ways[1], compounds[i], rounds, slice_ns, i == 0);
	(void)printf("]}\n");
	for (size_t m = 0; m < METHODS; m++)
		if (ways[m].pool.r)
			side_close(&ways[m].pool);
	return 0;
}
