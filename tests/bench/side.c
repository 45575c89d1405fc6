/* SPDX-License-Identifier: BSD-3-Clause */
#include "side.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL
#define WARM_UP  16U

uint64_t
side_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

void
side_check(int rc, const char *what)
{
	if (!rc)
		return;
	(void)fprintf(stderr, "%s: %s: %s\n", what, repl_strstatus(rc), repl_errormsg());
	exit(1);
}

static struct repl_config *
config(const struct side_target *t, const char *pool, const struct side_options *o)
{
	struct repl_config *cfg = NULL;
	char text[600];

	(void)snprintf(text, sizeof(text), "%s/%s", t->host, pool);
	side_check(repl_config_new(&cfg), "config");
	side_check(repl_config_add_target(cfg, text), "target");
	side_check(repl_config_set(cfg, "identity", t->identity), "identity");
	side_check(repl_config_set(cfg, "known-hosts", t->known_hosts), "known-hosts");
	side_check(repl_config_set(cfg, "on-loss", o->on_loss ? o->on_loss : "fail"), "on-loss");
	if (o->after_crash)
		side_check(repl_config_set(cfg, "after-crash", o->after_crash), "after-crash");
	side_check(repl_config_set(cfg, "op-timeout", "60000"), "op-timeout");
	side_check(repl_config_set(cfg, "method", o->method ? o->method : "auto"), "method");
	(void)snprintf(text, sizeof(text), "%u", o->lanes ? o->lanes : 1);
	side_check(repl_config_set(cfg, "lanes", text), "lanes");
	return cfg;
}

static void *
map(const struct side_pool *p, const char *file)
{
	int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *mem = MAP_FAILED;

	if (!file || (fd >= 0 && posix_fallocate(fd, 0, (off_t)p->room) == 0))
		mem = mmap(NULL, p->room, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (mem == MAP_FAILED) {
		perror(file ? file : "mmap");
		exit(1);
	}
	if (fd >= 0)
		(void)close(fd);
	return mem;
}

int
side_open(struct side_pool *p, const struct side_target *t, const char *pool, size_t size,
	  const struct side_options *o)
{
	struct repl_config *cfg = config(t, pool, o);
	int rc;

	p->r = NULL;
	p->size = size;
	p->room = o->room > size ? o->room : size;
	p->mem = map(p, o->file);
	rc = repl_open(cfg, p->mem, size,
		       REPL_OPEN_CREATE | (o->no_compare ? REPL_OPEN_NO_COMPARE : 0), &p->r);
	repl_config_free(cfg);
	if (rc != REPL_E_REFUSED)
		side_check(rc, pool);
	return rc;
}

void
side_close(struct side_pool *p)
{
	side_check(repl_close(p->r), "close");
	(void)munmap(p->mem, p->room);
	p->r = NULL;
	p->mem = NULL;
}

const char *
side_class(const struct side_pool *p)
{
	static const char fact[] = "durability-class = ";
	static char word[32];
	const char *text = NULL, *at;

	(void)snprintf(word, sizeof(word), "?");
	side_check(repl_profile(p->r, 0, &text), "profile");
	at = strstr(text, fact);
	if (at)
		(void)sscanf(at + sizeof(fact) - 1, "%31s", word);
	return word;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median_in_place(double *values, unsigned count)
{
	if (count == 0)
		return 0;
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double
side_median(const double *values, unsigned count)
{
	double sorted[SIDE_ROUNDS_MAX];

	memcpy(sorted, values, count * sizeof(*values));
	return median_in_place(sorted, count);
}

/* One slice; the first operation finds cold caches and a sleeping target, and is not counted. */
static double
slice(struct side *s, uint64_t slice_ns, bool mean)
{
	static double samples[SIDE_SAMPLES_MAX];
	uint64_t want =
		s->estimate_ns > 0 ? (uint64_t)((double)slice_ns / s->estimate_ns) : WARM_UP;
	unsigned count = (unsigned)(want < 2                  ? 2
				    : want < SIDE_SAMPLES_MAX ? want
							      : SIDE_SAMPLES_MAX);
	uint64_t begin, first, end;

	side_check(s->op(s->arg, s->i++), s->name);
	first = begin = side_now_ns();
	for (unsigned i = 0; i < count; i++) {
		side_check(s->op(s->arg, s->i++), s->name);
		end = side_now_ns();
		samples[i] = (double)(end - begin);
		begin = end;
	}
	s->estimate_ns = (double)(begin - first) / count;
	return mean ? s->estimate_ns : median_in_place(samples, count);
}

void
side_measure(struct side **sides, unsigned count, unsigned rounds, uint64_t slice_ns, bool mean)
{
	for (unsigned round = 0; round <= rounds; round++) {
		for (unsigned i = 0; i < count; i++) {
			/* Another one first each time. */
			struct side *s = sides[(i + round) % count];
			double ns = slice(s, slice_ns, mean);

			if (round > 0)
				s->ns[round - 1] = ns;
		}
	}
}

double
side_ns(const struct side *s, unsigned rounds)
{
	return side_median(s->ns, rounds);
}

double
side_ratio(const struct side *s, const struct side *to, unsigned rounds)
{
	double ratios[SIDE_ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++)
		ratios[i] = to->ns[i] > 0 ? s->ns[i] / to->ns[i] : 0;
	return median_in_place(ratios, rounds);
}
