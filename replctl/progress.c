/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "interrupt.h"
#include "out.h"
#include "text.h"

#define REDRAW_NS (NS_PER_S / 5)
#define LINE_NS   (2 * NS_PER_S)
#define BAR_MIN   10U
#define BAR_MAX   40U

static void
format_eta(char out[OUT_NUMBER_MAX], const struct transfer_progress *t, double rate)
{
	double left = rate > 0 ? (double)(t->total - t->done) / rate : -1;

	if (left < 0 || left > 1e7)
		(void)snprintf(out, OUT_NUMBER_MAX, "-:--");
	else if (left < 60)
		(void)snprintf(out, OUT_NUMBER_MAX, "0:%02u", (unsigned)left);
	else
		out_duration((uint64_t)(left * 1e9), out);
}

static void
format_bar(char *out, unsigned width, unsigned percent)
{
	unsigned full = width * percent / 100;

	out[0] = '[';
	memset(out + 1, ' ', width);
	memset(out + 1, '=', full);
	if (full < width)
		out[1 + full] = '>';
	out[width + 1] = ']';
	out[width + 2] = '\0';
}

size_t
progress_format(char out[PROGRESS_LINE_MAX], const char *verb, const struct transfer_progress *t,
		double rate, bool bar, unsigned columns)
{
	/* What is copied twice, as behind a journal that was refused half way, counts once. */
	struct transfer_progress upto = {.total = t->total,
					 .done = t->done < t->total ? t->done : t->total};
	unsigned percent = t->total ? (unsigned)((double)upto.done * 100 / (double)t->total) : 100;
	char done[OUT_NUMBER_MAX], total[OUT_NUMBER_MAX], speed[OUT_NUMBER_MAX];
	char eta[OUT_NUMBER_MAX], tail[OUT_NUMBER_MAX * 4 + 16], drawn[BAR_MAX + 4] = "";
	size_t used, room;

	out_size(upto.done, done);
	out_size(t->total, total);
	out_size((uint64_t)rate, speed);
	format_eta(eta, &upto, rate);
	(void)snprintf(tail, sizeof(tail), "%s of %s  %s/s  ETA %s", done, total, speed, eta);
	if (columns >= PROGRESS_LINE_MAX)
		columns = PROGRESS_LINE_MAX - 1;
	/* verb, " 100% ", the bar's brackets and a blank behind it */
	used = strlen(verb) + 6 + strlen(tail) + 3;
	room = columns > used ? columns - used : 0;
	if (bar && room >= BAR_MIN) {
		format_bar(drawn, room < BAR_MAX ? (unsigned)room : BAR_MAX, percent);
		(void)strcat(drawn, " ");
	}
	(void)snprintf(out, columns + 1U, "%s %3u%% %s%s", verb, percent, drawn, tail);
	return strlen(out);
}

static unsigned
terminal_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2)
		return 79;
	return size.ws_col - 1U;
}

static void
progress_draw(struct progress *p, const struct transfer_progress *t)
{
	char line[PROGRESS_LINE_MAX];
	size_t len;

	if (!p->terminal) {
		(void)progress_format(line, p->verb, t, p->rate, false, PROGRESS_LINE_MAX);
		(void)fprintf(stderr, "%s\n", line);
		return;
	}
	/* Blanks, not an escape sequence, take away what a longer line has left. */
	len = progress_format(line, p->verb, t, p->rate, true, terminal_columns());
	(void)fprintf(stderr, "\r%s%*s", line, (int)(p->drawn > len ? p->drawn - len : 0), "");
	(void)fflush(stderr);
	p->drawn = len;
}

void
progress_begin(struct progress *p, const char *verb, uint64_t total, bool quiet)
{
	const struct transfer_progress none = {.total = total};

	memset(p, 0, sizeof(*p));
	p->verb = verb;
	p->terminal = isatty(STDERR_FILENO);
	p->quiet = quiet;
	p->begin_ns = p->shown_ns = clock_now_ns();
	if (p->terminal)
		progress_draw(p, &none);
}

void
progress_wait(struct progress *p, const char *target)
{
	char line[PROGRESS_LINE_MAX];
	size_t room = terminal_columns() + 1U;

	memset(p, 0, sizeof(*p));
	p->begin_ns = clock_now_ns();
	if (!isatty(STDERR_FILENO))
		return;
	(void)snprintf(line, room < sizeof(line) ? room : sizeof(line), "connecting to %s", target);
	text_clean(line);
	p->drawn = strlen(line);
	(void)fprintf(stderr, "\r%s", line);
	(void)fflush(stderr);
}

int
progress_tell(void *arg, const struct transfer_progress *t)
{
	struct progress *p = arg;
	uint64_t now = clock_now_ns(), since = now - p->shown_ns;

	if (since >= (p->terminal ? REDRAW_NS : LINE_NS) && (p->terminal || !p->quiet)) {
		double rate = (double)(t->done - p->shown_done) * 1e9 / (double)since;

		p->rate = p->rate > 0 ? 0.7 * p->rate + 0.3 * rate : rate;
		p->shown_ns = now;
		p->shown_done = t->done;
		progress_draw(p, t);
	}
	return interrupt_seen();
}

uint64_t
progress_end(struct progress *p)
{
	if (p->drawn)
		(void)fprintf(stderr, "\r%*s\r", (int)p->drawn, "");
	p->drawn = 0;
	return clock_now_ns() - p->begin_ns;
}
