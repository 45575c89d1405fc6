/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lab_link - a link between this network namespace and another that loses,
 * delays, doubles, reorders and slows down packets when it is told to.
 *
 * usage: lab_link NAME NETNS SEED
 *
 * Makes the tun devices NAME here and "far" in NETNS; both go with it. Reads a
 * line from standard input: WAY WHAT [NUMBER] with WAY out, in or both, and
 * WHAT drop, loss PERCENT, double PERCENT, reorder PERCENT, delay MS, rate KBIT
 * a second (0: any), or clear, which is answered by "hurt N": packets since the
 * last one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "lab.h"

#define PACKET_MAX 2048U
#define QUEUE_MAX  8192U
#define LATE_US    30000U  /* of a packet that others overtake */
#define WAIT_US    500000U /* at most in front of a slow link: what comes then is dropped */

struct packet {
	uint64_t due_us, order;
	uint32_t len;
	uint8_t bytes[PACKET_MAX];
};

struct way {
	int from, to;
	bool drop;
	unsigned loss, twice, reorder; /* percent */
	uint64_t delay_us, kbit;
	uint64_t free_us;                /* when all that came before is through */
	struct packet *queue[QUEUE_MAX]; /* unordered */
	unsigned count;
};

static uint64_t chance, order, hurt;
static struct way ways[2];

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static bool
happens(unsigned percent)
{
	chance = lab_mix(chance);
	return (chance >> 33) % 100 < percent;
}

static int
tun_new(const char *name)
{
	struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	(void)snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		die("tun");
	return fd;
}

static int
tun_in(const char *netns)
{
	char path[256];
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there, fd;

	(void)snprintf(path, sizeof(path), "/run/netns/%s", netns);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (here < 0 || there < 0 || setns(there, CLONE_NEWNET))
		die(path);
	fd = tun_new("far");
	if (setns(here, CLONE_NEWNET))
		die("setns");
	(void)close(here);
	(void)close(there);
	return fd;
}

static void
put_off(struct way *w, const uint8_t *bytes, uint32_t len)
{
	uint64_t now = now_us(), free_us = w->free_us > now ? w->free_us : now;
	struct packet *p;

	if (w->count == QUEUE_MAX || (w->kbit && free_us - now > WAIT_US) ||
	    !(p = malloc(sizeof(*p))))
		return;
	if (w->delay_us || w->kbit)
		hurt++;
	w->free_us = free_us + (w->kbit ? len * 8000ULL / w->kbit : 0);
	p->due_us = w->free_us + w->delay_us;
	if (happens(w->reorder)) {
		p->due_us += LATE_US;
		hurt++;
	}
	p->order = order++;
	p->len = len;
	memcpy(p->bytes, bytes, len);
	w->queue[w->count++] = p;
}

static void
take(struct way *w)
{
	uint8_t bytes[PACKET_MAX];
	ssize_t n;

	while ((n = read(w->from, bytes, sizeof(bytes))) > 0) {
		if (w->drop || happens(w->loss)) {
			hurt++;
			continue;
		}
		put_off(w, bytes, (uint32_t)n);
		if (happens(w->twice)) {
			put_off(w, bytes, (uint32_t)n);
			hurt++;
		}
	}
}

/* The packet that is due first; -1 if there is none. */
static int
first_of(const struct way *w)
{
	int best = -1;

	for (unsigned i = 0; i < w->count; i++)
		if (best < 0 || w->queue[i]->due_us < w->queue[best]->due_us ||
		    (w->queue[i]->due_us == w->queue[best]->due_us &&
		     w->queue[i]->order < w->queue[best]->order))
			best = (int)i;
	return best;
}

/* Send what is due; how long until the next is, in ms, or -1. */
static int
give(struct way *w)
{
	int at;

	while ((at = first_of(w)) >= 0) {
		struct packet *p = w->queue[at];
		uint64_t now = now_us();

		if (p->due_us > now)
			return (int)((p->due_us - now) / 1000 + 1);
		(void)!write(w->to, p->bytes, p->len);
		w->queue[at] = w->queue[--w->count];
		free(p);
	}
	return -1;
}

static void
set(struct way *w, const char *what, unsigned number)
{
	if (strcmp(what, "drop") == 0)
		w->drop = true;
	else if (strcmp(what, "loss") == 0)
		w->loss = number;
	else if (strcmp(what, "double") == 0)
		w->twice = number;
	else if (strcmp(what, "reorder") == 0)
		w->reorder = number;
	else if (strcmp(what, "delay") == 0)
		w->delay_us = (uint64_t)number * 1000;
	else if (strcmp(what, "rate") == 0)
		w->kbit = number;
	else if (strcmp(what, "clear") == 0) {
		w->drop = false;
		w->loss = w->twice = w->reorder = 0;
		w->delay_us = w->kbit = 0;
	}
}

/* False at the end of standard input. */
static bool
obey(void)
{
	char line[80], way[8], what[16];
	unsigned number = 0;
	ssize_t n = read(0, line, sizeof(line) - 1);

	if (n <= 0)
		return false;
	line[n] = '\0';
	for (char *rest = line, *one; (one = strsep(&rest, "\n")) != NULL;) {
		if (sscanf(one, "%7s %15s %u", way, what, &number) < 2)
			continue;
		if (strcmp(way, "in") != 0)
			set(&ways[0], what, number);
		if (strcmp(way, "out") != 0)
			set(&ways[1], what, number);
		if (strcmp(what, "clear") == 0) {
			(void)printf("hurt %llu\n", (unsigned long long)hurt);
			(void)fflush(stdout);
			hurt = 0;
		}
	}
	return true;
}

static int
sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

int
main(int argc, char **argv)
{
	int near, far;

	if (argc != 4)
		return 2;
	chance = strtoull(argv[3], NULL, 10);
	near = tun_new(argv[1]);
	far = tun_in(argv[2]);
	ways[0] = (struct way){.from = near, .to = far};
	ways[1] = (struct way){.from = far, .to = near};
	(void)puts("up");
	(void)fflush(stdout);
	for (;;) {
		struct pollfd p[3] = {{.fd = 0, .events = POLLIN},
				      {.fd = near, .events = POLLIN},
				      {.fd = far, .events = POLLIN}};
		int wait = sooner(give(&ways[0]), give(&ways[1]));

		if (poll(p, 3, wait) < 0 && errno != EINTR)
			die("poll");
		if (p[0].revents && !obey())
			return 0;
		take(&ways[0]);
		take(&ways[1]);
	}
}
