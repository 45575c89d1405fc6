/* SPDX-License-Identifier: BSD-3-Clause */
/* The series of replctl bench remotelog, taking turns. */
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "interrupt.h"
#include "out.h"
#include "remotelog.h"

#define SLICE_NS     (20U * NS_PER_MS) /* of the slowest series */
#define SLICES_MIN   8U                /* of a series, if it has so many appends */
#define WARM_UP      32U
#define RAW_MARGIN_S 20U
#define QUICK_OPS    16U /* between two looks for an interrupt */
#define REDRAW_NS    (200 * NS_PER_MS)
#define LINE_NS      (10 * NS_PER_S)

struct pace {
	uint64_t begin_ns, shown_ns;
	bool terminal, drawn;
	double slowest_ns; /* of one append, so far */
};

static bool
series_runs(const struct remotelog *rl, const struct remotelog_way *w, enum remotelog_tail t)
{
	return w->r && remotelog_wanted(rl, w, t) && !w->tails[t].why_not;
}

static double
noted(struct hist *into, const struct hist *slice)
{
	if (into)
		hist_merge(into, slice);
	return hist_mean(slice);
}

/*
 * The first of a slice is not counted: the other side has slept, and the
 * caches are another series'.
 */
static int
slice_raw(struct remotelog *rl, uint32_t n, struct hist *into, double *mean)
{
	static struct hist slice;
	int rc = bench_raw_renew(&rl->raw, rl->c, RAW_MARGIN_S);
	uint32_t part;

	for (uint32_t at = 0; !rc && at <= n && !interrupt_seen(); at += part) {
		part = n + 1 - at < QUICK_OPS ? n + 1 - at : QUICK_OPS;
		rc = tcpraw_pingpong(rl->raw.tcp, (uint32_t)rl->size, part, rl->samples + at,
				     &rl->c->err);
	}
	/* Of a slice that was cut short nothing is counted: far away it may take minutes. */
	if (rc || interrupt_seen())
		return rc;
	slice = (struct hist){0};
	for (uint32_t i = 1; i <= n; i++)
		hist_add(&slice, rl->samples[i]);
	*mean = noted(into, &slice);
	return 0;
}

static int
slice_series(struct remotelog *rl, struct pace *p, struct remotelog_way *w, enum remotelog_tail t,
	     uint32_t n, bool keep)
{
	static struct hist slice;
	uint64_t begin, end;
	double mean;
	int rc = remotelog_append(rl, w, t);

	slice = (struct hist){0};
	begin = clock_now_ns();
	for (uint32_t i = 0; !rc && i < n && !interrupt_seen(); i++) {
		rc = remotelog_append(rl, w, t);
		end = clock_now_ns();
		hist_add(&slice, end - begin);
		begin = end;
	}
	if (interrupt_seen())
		return rc;
	mean = noted(keep ? &w->tails[t].hist : NULL, &slice);
	if (mean > p->slowest_ns)
		p->slowest_ns = mean;
	return rc;
}

/* Each series once. */
static int
round_all(struct remotelog *rl, struct pace *p, uint32_t n, bool keep)
{
	double mean = 0;
	int rc = slice_raw(rl, n, keep ? &rl->raw_hist : NULL, &mean);

	for (unsigned i = 0; !rc && i < rl->way_count; i++) {
		struct remotelog_way *w = &rl->ways[i];

		for (enum remotelog_tail t = 0; !rc && t < REMOTELOG_TAILS; t++) {
			if (!series_runs(rl, w, t))
				continue;
			rc = slice_series(rl, p, w, t, n, keep);
		}
	}
	return rc;
}

/* As long as what disturbs the machine, or shorter. */
static uint32_t
slice_count(const struct remotelog *rl, struct pace *p)
{
	uint64_t left = rl->count - rl->done;
	uint64_t n = p->slowest_ns > 0 ? (uint64_t)((double)SLICE_NS / p->slowest_ns) : 1;

	/* One slow round is no reason to stay with small slices. */
	p->slowest_ns *= 0.9;
	if (n > rl->count / SLICES_MIN)
		n = rl->count / SLICES_MIN;
	if (n > REMOTELOG_SLICE_MAX)
		n = REMOTELOG_SLICE_MAX;
	if (n < 1)
		n = 1;
	return (uint32_t)(n < left ? n : left);
}

static void
tell(struct remotelog *rl, struct pace *p)
{
	uint64_t now = clock_now_ns(), left;
	char text[OUT_NUMBER_MAX];

	if (now - p->shown_ns < (p->terminal ? REDRAW_NS : LINE_NS) || !rl->done)
		return;
	p->shown_ns = now;
	left = (uint64_t)((double)(now - p->begin_ns) * (double)(rl->count - rl->done) /
			  (double)rl->done);
	out_duration(left, text);
	(void)fprintf(stderr, "%s%llu of %llu appends by each method, %s left%s",
		      p->terminal ? "\r" : "", (unsigned long long)rl->done,
		      (unsigned long long)rl->count, text, p->terminal ? "   " : "\n");
	p->drawn = p->terminal;
}

static int
check_all(struct remotelog *rl)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < rl->way_count; i++)
		for (enum remotelog_tail t = 0; !rc && t < REMOTELOG_TAILS; t++)
			if (series_runs(rl, &rl->ways[i], t) && rl->ways[i].tails[t].sequence > 0)
				rc = remotelog_check(rl, &rl->ways[i], t);
	return rc;
}

int
remotelog_run(struct remotelog *rl)
{
	struct pace p = {.terminal = isatty(STDERR_FILENO)};
	int rc = 0;

	rl->interrupted = interrupt_seen();
	if (!rl->interrupted)
		rc = round_all(rl, &p, WARM_UP, false);
	p.begin_ns = p.shown_ns = clock_now_ns();
	while (!rc && rl->done < rl->count && !rl->interrupted) {
		uint32_t n = slice_count(rl, &p);

		rc = round_all(rl, &p, n, true);
		rl->done += rc || interrupt_seen() ? 0 : n;
		tell(rl, &p);
		rl->interrupted = interrupt_seen();
	}
	if (p.drawn)
		(void)fprintf(stderr, "\r%*s\r", 79, "");
	return rc ? rc : check_all(rl);
}
