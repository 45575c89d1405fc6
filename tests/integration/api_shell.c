/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_shell - the public API of librepl by hand: a command a line on standard
 * input, an answer a line on standard output: STATUS MILLISECONDS TEXT.
 *
 *   config                            a new configuration
 *   set KEY VALUE                     repl_config_set()
 *   map FILE SIZE | anon SIZE         the memory to replicate
 *   open [FLAGS [SKEW [SIZE]]]        SKEW is added to the address
 *   close
 *   put OFF LEN SEED                  fill memory, no call of the library
 *   flush|persist LANE OFF LEN, drain LANE, atomic8 LANE OFF, pair LANE A ALEN B BLEN
 *   read LANE REPLICA OFF LEN         and compare with memory: TEXT is same or differs
 *   compare REPLICA                   read all, compare
 *   stat REPLICA | profile REPLICA | lanes | replicas
 *   busy LANE                         calls from two threads at once in one lane
 *   thread                            the error text of another thread
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#define WORDS_MAX 8
#define READ_SIZE (4UL << 20)

struct shell {
	struct repl_config *cfg;
	struct repl *r;
	uint8_t *mem;
	size_t size;
	char text[8192];
};

struct words {
	unsigned count;
	char *w[WORDS_MAX];
};

static size_t
number(const struct words *words, unsigned i)
{
	return i < words->count ? (size_t)strtoull(words->w[i], NULL, 0) : 0;
}

static const char *
status_name(int status)
{
	switch (status) {
#define NAME(name, value, exit_status, text)                                                       \
	case name:                                                                                 \
		return #name;
		REPL_STATUS_TABLE(NAME)
#undef NAME
	default:
		return "unknown";
	}
}

static void
say(struct shell *s, const char *text)
{
	(void)snprintf(s->text, sizeof(s->text), "%s", text);
}

/* ---- memory ---- */

static int
do_map(struct shell *s, const struct words *w)
{
	bool anon = strcmp(w->w[0], "anon") == 0;
	int fd = anon ? -1 : open(w->w[1], O_RDWR | O_CREAT, 0600);
	void *p;

	if (s->mem)
		(void)munmap(s->mem, s->size);
	s->mem = NULL;
	s->size = number(w, anon ? 1 : 2);
	if (!anon && (fd < 0 || ftruncate(fd, (off_t)s->size)))
		return REPL_E_FAILED;
	p = mmap(NULL, s->size, PROT_READ | PROT_WRITE,
		 anon ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	if (p == MAP_FAILED)
		return REPL_E_FAILED;
	s->mem = p;
	return 0;
}

static int
do_put(struct shell *s, const struct words *w)
{
	size_t off = number(w, 1), len = number(w, 2);
	uint64_t x = number(w, 3) * 2 + 1;

	if (!s->mem || off > s->size || len > s->size - off)
		return REPL_E_INVAL;
	for (size_t i = 0; i < len; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		s->mem[off + i] = (uint8_t)(x >> 56);
	}
	return 0;
}

/* ---- the set ---- */

static int
do_config(struct shell *s)
{
	repl_config_free(s->cfg);
	s->cfg = NULL;
	return repl_config_new(&s->cfg);
}

static int
do_open(struct shell *s, const struct words *w)
{
	size_t size = w->count > 3 ? number(w, 3) : s->size;

	return repl_open(s->cfg, s->mem + number(w, 2), size, (unsigned)number(w, 1), &s->r);
}

static int
do_close(struct shell *s)
{
	int rc = repl_close(s->r);

	s->r = NULL;
	return rc;
}

static int
read_compare(struct shell *s, unsigned lane, unsigned replica, size_t off, size_t len)
{
	/* Of a range that must be refused no byte may be written. */
	uint8_t *buf = malloc(len && len <= s->size ? len : 1);
	int rc = buf ? repl_read(s->r, lane, replica, buf, off, len) : REPL_E_NOMEM;

	if (!rc)
		say(s, memcmp(buf, s->mem + off, len) == 0 ? "same" : "differs");
	free(buf);
	return rc;
}

static int
do_compare(struct shell *s, const struct words *w)
{
	int rc = 0;

	say(s, "same");
	for (size_t at = 0; !rc && at < s->size && strcmp(s->text, "same") == 0; at += READ_SIZE) {
		size_t left = s->size - at;

		rc = read_compare(s, 0, (unsigned)number(w, 1), at,
				  left < READ_SIZE ? left : READ_SIZE);
	}
	return rc;
}

static int
do_stat(struct shell *s, const struct words *w)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	uint64_t latencies = 0;
	int rc = repl_stat(s->r, (unsigned)number(w, 1), &st);

	if (rc)
		return rc;
	for (unsigned i = 0; i < REPL_HIST_BUCKETS; i++)
		latencies += st.latency_ns[i];
	(void)snprintf(s->text, sizeof(s->text),
		       "flush=%" PRIu64 " merged=%" PRIu64 " drain=%" PRIu64 " message=%" PRIu64
		       " write=%" PRIu64 " read=%" PRIu64 " byte=%" PRIu64 " error=%" PRIu64
		       " missed=%" PRIu64 " histogram=%" PRIu64 " immediate=%" PRIu64
		       " connection=%d replication=%d data=%d reason=%s",
		       st.flush_count, st.merged_count, st.drain_count, st.message_count,
		       st.write_count, st.read_count, st.byte_count, st.error_count,
		       st.degraded_count, latencies, st.immediate_count, st.connection,
		       st.replication, st.data, st.reason);
	return 0;
}

static int
do_profile(struct shell *s, const struct words *w)
{
	const char *text = "";
	int rc = repl_profile(s->r, (unsigned)number(w, 1), &text);

	say(s, text);
	for (char *c = s->text; *c; c++)
		if (*c == '\n')
			*c = ';';
	return rc;
}

/* ---- threads ---- */

struct busy {
	struct shell *s;
	unsigned lane;
	atomic_uint ok, busy, other;
};

static void *
busy_main(void *arg)
{
	struct busy *b = arg;

	for (unsigned i = 0; i < 2000; i++) {
		int rc = repl_persist(b->s->r, b->lane, 0, 64);

		if (rc == 0)
			b->ok++;
		else if (rc == REPL_E_BUSY && strstr(repl_errormsg(), "in use by another thread"))
			b->busy++;
		else
			b->other++;
	}
	return NULL;
}

static int
do_busy(struct shell *s, const struct words *w)
{
	struct busy b = {.s = s, .lane = (unsigned)number(w, 1)};
	pthread_t t[2];

	for (unsigned i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, busy_main, &b))
			return REPL_E_FAILED;
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
	(void)snprintf(s->text, sizeof(s->text), "ok=%u busy=%u other=%u", b.ok, b.busy, b.other);
	return 0;
}

static void *
thread_main(void *arg)
{
	struct shell *s = arg;

	(void)snprintf(s->text, sizeof(s->text), "before='%s' ", repl_errormsg());
	if (repl_config_set(s->cfg, "no-such-key", "1") == 0)
		return NULL;
	(void)snprintf(s->text + strlen(s->text), 400, "after='%.300s' ", repl_errormsg());
	return NULL;
}

/* Make an error here, then one in another thread; each has its own text. */
static int
do_thread(struct shell *s)
{
	pthread_t t;

	if (repl_config_set(s->cfg, "lanes", "many") == 0 ||
	    pthread_create(&t, NULL, thread_main, s))
		return REPL_E_FAILED;
	(void)pthread_join(t, NULL);
	(void)snprintf(s->text + strlen(s->text), 400, "here='%.300s'", repl_errormsg());
	return 0;
}

/* ---- commands ---- */

static int
run_io(struct shell *s, const struct words *w)
{
	const char *c = w->w[0];
	unsigned lane = (unsigned)number(w, 1);

	if (!s->r)
		return REPL_E_INVAL;
	if (strcmp(c, "flush") == 0)
		return repl_flush(s->r, lane, number(w, 2), number(w, 3));
	if (strcmp(c, "persist") == 0)
		return repl_persist(s->r, lane, number(w, 2), number(w, 3));
	if (strcmp(c, "drain") == 0)
		return repl_drain(s->r, lane);
	if (strcmp(c, "atomic8") == 0)
		return repl_persist_atomic8(s->r, lane, number(w, 2));
	if (strcmp(c, "pair") == 0)
		return repl_persist_pair(s->r, lane, number(w, 2), number(w, 3), number(w, 4),
					 number(w, 5));
	if (strcmp(c, "read") == 0)
		return read_compare(s, lane, (unsigned)number(w, 2), number(w, 3), number(w, 4));
	if (strcmp(c, "compare") == 0)
		return do_compare(s, w);
	if (strcmp(c, "stat") == 0)
		return do_stat(s, w);
	if (strcmp(c, "profile") == 0)
		return do_profile(s, w);
	if (strcmp(c, "busy") == 0)
		return do_busy(s, w);
	if (strcmp(c, "lanes") == 0 || strcmp(c, "replicas") == 0) {
		(void)snprintf(s->text, sizeof(s->text), "%u",
			       *c == 'l' ? repl_lanes(s->r) : repl_replicas(s->r));
		return 0;
	}
	say(s, "unknown command");
	return REPL_E_INVAL;
}

static int
run(struct shell *s, const struct words *w)
{
	const char *c = w->w[0];

	if (strcmp(c, "config") == 0)
		return do_config(s);
	if (strcmp(c, "set") == 0)
		return repl_config_set(s->cfg, w->w[1], w->count > 2 ? w->w[2] : "");
	if (strcmp(c, "map") == 0 || strcmp(c, "anon") == 0)
		return do_map(s, w);
	if (strcmp(c, "put") == 0)
		return do_put(s, w);
	if (strcmp(c, "open") == 0)
		return do_open(s, w);
	if (strcmp(c, "close") == 0)
		return do_close(s);
	if (strcmp(c, "thread") == 0)
		return do_thread(s);
	return run_io(s, w);
}

static void
answer(struct shell *s, char *line)
{
	struct timespec a, b;
	struct words w = {0};
	char *save = NULL;
	long ms;
	int rc;

	for (char *c = strtok_r(line, " \n", &save); c && w.count < WORDS_MAX;
	     c = strtok_r(NULL, " \n", &save))
		w.w[w.count++] = c;
	if (w.count == 0)
		return;
	s->text[0] = '\0';
	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	rc = run(s, &w);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
	if (rc && s->text[0] == '\0')
		say(s, repl_errormsg());
	(void)printf("%s %ld %s\n", status_name(rc), ms, s->text);
	(void)fflush(stdout);
}

int
main(void)
{
	struct shell s = {0};
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0)
		answer(&s, line);
	free(line);
	(void)repl_close(s.r);
	repl_config_free(s.cfg);
	if (s.mem)
		(void)munmap(s.mem, s.size);
	return 0;
}
