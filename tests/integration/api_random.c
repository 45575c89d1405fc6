/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_random - seeded random operations, a thread and a stripe of the pool for
 * each lane; after each the bytes are looked for in the targets' pool files.
 *
 *   api_random FILE SIZE SEED LANES SECONDS [KEY=VALUE ...] [peek=POOL-FILE ...]
 *
 * FILE may be a device-DAX device, SIZE then in multiples of 2 MiB. In the end it says how many
 * bytes the RNIC took from the pool itself, and what the profile says of that. Exit status 3: a
 * replica that was not lost has other bytes.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE_MAX_OP (4UL << 20)
#define MANY        300 /* disjoint ranges before one drain: more than a lane notes */
#define NOTED_MAX   (MANY + 1)
#define PEEKS_MAX   REPL_TARGETS_MAX

struct set {
	struct repl *r;
	uint8_t *mem;
	size_t size;
	uint8_t *peek[PEEKS_MAX];
	unsigned peek_count;
	double until;
	atomic_bool failed, differs;
};

struct noted {
	size_t off, len;
};

struct worker {
	struct set *set;
	unsigned lane;
	uint64_t seed;
	size_t from, size; /* its stripe */
	struct noted noted[NOTED_MAX];
	unsigned noted_count;
	uint64_t ops;
};

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t
draw(struct worker *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed * 0x2545f4914f6cdd1dULL;
}

/* Each power of two of the size is as likely as another. */
static size_t
draw_len(struct worker *w, size_t most)
{
	size_t len = (size_t)1 << draw(w) % 23;

	len += draw(w) % len;
	if (len > SIZE_MAX_OP)
		len = SIZE_MAX_OP;
	return len < most ? len : most;
}

static bool
fault(struct worker *w, const char *what)
{
	(void)fprintf(stderr, "lane %u, operation %" PRIu64 ": %s: %s\n", w->lane, w->ops, what,
		      repl_errormsg());
	atomic_store(&w->set->failed, true);
	return false;
}

static bool
differs(struct worker *w)
{
	atomic_store(&w->set->differs, true);
	return fault(w, "the target's file differs after the call");
}

/* New bytes in a range of the stripe, noted to be looked for. */
static void
dirty(struct worker *w, size_t off, size_t len)
{
	uint8_t *p = w->set->mem + off;
	uint64_t x = draw(w);

	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		p[i] = (uint8_t)(x >> (i % 8 * 8));
	}
	w->noted[w->noted_count++] = (struct noted){.off = off, .len = len};
}

static bool
look(struct worker *w)
{
	struct set *s = w->set;

	for (unsigned i = 0; i < w->noted_count; i++) {
		const struct noted *n = &w->noted[i];

		for (unsigned p = 0; p < s->peek_count; p++)
			if (memcmp(s->mem + n->off, s->peek[p] + n->off, n->len) != 0)
				return differs(w);
	}
	w->noted_count = 0;
	return true;
}

static size_t
draw_off(struct worker *w, size_t len)
{
	return w->from + draw(w) % (w->size - len + 1);
}

static bool
one_persist(struct worker *w)
{
	size_t len = draw_len(w, w->size), off = draw_off(w, len);

	dirty(w, off, len);
	return repl_persist(w->set->r, w->lane, off, len) == 0 || fault(w, "persist");
}

/* A few flushes, apart, overlapping or adjacent, and a drain. */
static bool
one_drain(struct worker *w)
{
	unsigned count = 1 + (unsigned)(draw(w) % 20);
	size_t off = 0, len = 0;

	for (unsigned i = 0; i < count; i++) {
		size_t end = off + len, past = len;

		len = draw_len(w, w->size / 4);
		if (i == 0 || draw(w) % 3 == 0)
			off = draw_off(w, len);
		else if (draw(w) % 2 && end + len <= w->from + w->size)
			off = end;
		else
			off -= off - w->from < past / 2 ? 0 : past / 2;
		if (off + len > w->from + w->size)
			len = w->from + w->size - off;
		dirty(w, off, len);
		if (repl_flush(w->set->r, w->lane, off, len))
			return fault(w, "flush");
	}
	return repl_drain(w->set->r, w->lane) == 0 || fault(w, "drain");
}

static bool
one_many(struct worker *w)
{
	size_t step = w->size / MANY;

	for (size_t i = 0; i < MANY; i++) {
		size_t len = 1 + draw(w) % (step / 2);

		dirty(w, w->from + i * step, len);
		if (repl_flush(w->set->r, w->lane, w->from + i * step, len))
			return fault(w, "flush of many");
	}
	return repl_drain(w->set->r, w->lane) == 0 || fault(w, "drain of many");
}

static bool
one_atomic8(struct worker *w)
{
	size_t len = draw_len(w, 65536), off = draw_off(w, len);
	size_t at = (draw_off(w, 16) + 7) / 8 * 8;

	dirty(w, off, len);
	if (repl_flush(w->set->r, w->lane, off, len))
		return fault(w, "flush");
	dirty(w, at, 8);
	return repl_persist_atomic8(w->set->r, w->lane, at) == 0 || fault(w, "atomic8");
}

static bool
one_pair(struct worker *w)
{
	size_t half = w->size / 2, a_len = draw_len(w, half), b_len = draw_len(w, half);
	size_t a = w->from + draw(w) % (half - a_len + 1);
	size_t b = w->from + half + draw(w) % (half - b_len + 1);
	bool swap = draw(w) % 2;

	dirty(w, a, a_len);
	dirty(w, b, b_len);
	if (repl_persist_pair(w->set->r, w->lane, swap ? b : a, swap ? b_len : a_len, swap ? a : b,
			      swap ? a_len : b_len))
		return fault(w, "pair");
	return true;
}

static void *
work(void *arg)
{
	static bool (*const kinds[])(struct worker *) = {
		one_persist, one_persist, one_drain, one_drain, one_atomic8, one_pair, one_many};
	struct worker *w = arg;

	/* Every kind at least once, however slow the machine. */
	while (!atomic_load(&w->set->failed) &&
	       (w->ops < sizeof(kinds) / sizeof(kinds[0]) || now() < w->set->until)) {
		size_t k = w->ops < sizeof(kinds) / sizeof(kinds[0])
				   ? w->ops
				   : draw(w) % (sizeof(kinds) / sizeof(kinds[0]));

		if (!kinds[k](w) || !look(w))
			break;
		w->ops++;
	}
	return NULL;
}

/* ---- set-up ---- */

static uint8_t *
map(const char *path, size_t size, bool write)
{
	int fd = open(path, write ? O_RDWR | O_CREAT : O_RDONLY, 0600);
	void *p = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 &&
	    (!write || S_ISCHR(st.st_mode) || ftruncate(fd, (off_t)size) == 0))
		p = mmap(NULL, size, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	if (p == MAP_FAILED)
		perror(path);
	return p == MAP_FAILED ? NULL : p;
}

static bool
options(char **v, struct repl_config *cfg, const char **peeks, unsigned *peek_count)
{
	for (; *v; v++) {
		char *value = strchr(*v, '=');

		if (!value)
			return false;
		*value++ = '\0';
		if (strcmp(*v, "peek") == 0 && *peek_count < PEEKS_MAX)
			peeks[(*peek_count)++] = value;
		else if (repl_config_set(cfg, *v, value))
			return false;
	}
	return true;
}

static bool
run(struct set *s, struct worker *w, unsigned lanes, uint64_t seed)
{
	pthread_t t[REPL_LANES_MAX];
	uint64_t ops = 0;

	if (repl_lanes(s->r) != lanes)
		return false;
	for (unsigned i = 0; i < lanes; i++) {
		w[i].set = s;
		w[i].lane = i;
		w[i].seed = (seed + i + 1) * 0x9e3779b97f4a7c15ULL;
		w[i].size = s->size / lanes;
		w[i].from = i * w[i].size;
		if (pthread_create(&t[i], NULL, work, &w[i]))
			abort();
	}
	for (unsigned i = 0; i < lanes; i++) {
		(void)pthread_join(t[i], NULL);
		ops += w[i].ops;
	}
	(void)printf("%" PRIu64 " operations\n", ops);
	return !s->failed;
}

/* What repl_read() gives is what is in memory. */
static bool
read_back(struct set *s)
{
	uint8_t *buf = malloc(s->size);
	bool ok = buf != NULL;

	for (unsigned i = 0; ok && i < repl_replicas(s->r); i++) {
		ok = repl_read(s->r, 0, i, buf, 0, s->size) == 0;
		if (ok && memcmp(buf, s->mem, s->size) != 0) {
			(void)fprintf(stderr, "replica %u differs in the end\n", i);
			atomic_store(&s->differs, true);
			ok = false;
		}
	}
	free(buf);
	return ok;
}

/* Of the first replica; without an RNIC there is nothing to be said. */
static bool
tell_source(struct repl *r)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	const char *text = NULL, *line;

	if (repl_stat(r, 0, &st) || repl_profile(r, 0, &text))
		return false;
	line = strstr(text, "large-writes = ");
	if (line)
		(void)printf("%" PRIu64 " of %" PRIu64 " bytes uncopied; %.*s\n", st.uncopied_count,
			     st.byte_count, (int)strcspn(line, "\n"), line);
	return line || st.uncopied_count == 0;
}

int
main(int argc, char **argv)
{
	const char *peeks[PEEKS_MAX];
	struct repl_config *cfg = NULL;
	struct worker *w = NULL;
	struct set s = {0};
	unsigned lanes;
	uint64_t seed;
	bool ok;

	if (argc < 6 || repl_config_new(&cfg))
		return 2;
	s.size = (size_t)strtoull(argv[2], NULL, 0);
	seed = strtoull(argv[3], NULL, 0);
	lanes = (unsigned)strtoul(argv[4], NULL, 0);
	s.mem = map(argv[1], s.size, true);
	w = calloc(lanes, sizeof(*w));
	/* A replica that is lost lacks what follows: that is to be told by the call. */
	ok = s.mem && w && repl_config_set(cfg, "lanes", argv[4]) == 0 &&
	     repl_config_set(cfg, "on-loss", "fail") == 0 &&
	     options(argv + 6, cfg, peeks, &s.peek_count) &&
	     repl_open(cfg, s.mem, s.size, REPL_OPEN_CREATE, &s.r) == 0;
	for (unsigned i = 0; ok && i < s.peek_count; i++)
		ok = (s.peek[i] = map(peeks[i], s.size, false)) != NULL;
	s.until = now() + strtod(argv[5], NULL);
	ok = ok && run(&s, w, lanes, seed) && read_back(&s) && tell_source(s.r);
	if (!ok)
		(void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, repl_errormsg());
	if (repl_close(s.r))
		ok = false;
	repl_config_free(cfg);
	free(w);
	if (s.differs)
		return 3;
	return ok ? 0 : 1;
}
