/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_shell - the public API of librepl by hand: a command a line on standard
 * input, an answer a line on standard output: STATUS MILLISECONDS TEXT.
 *
 *   config                            a new configuration
 *   set KEY VALUE                     repl_config_set()
 *   map FILE SIZE [FROM] | anon SIZE  the memory to replicate; FROM is the place in the file
 *   private FILE SIZE | device SIZE   the same: stores stay with us; shared, and of no file's name
 *   open [FLAGS [SKEW [SIZE]]]        SKEW is added to the address
 *   close
 *   put OFF LEN SEED                  fill memory, no call of the library
 *   flush|persist LANE OFF LEN, drain LANE, atomic8 LANE OFF, pair LANE A ALEN B BLEN
 *   tail OFF [VALUE]                  8 bytes of memory, no call of the library
 *   append LANE TAIL LIMIT LEN SEED   TEXT is the offset
 *   commit LANE
 *   sync                              msync() of memory, no call of the library
 *   lock                              the file by fcntl(2), no call of the library
 *   extend SIZE                       the file and its mapping, no call of the library
 *   grow SIZE                         repl_grow()
 *   load LANES END                    threads persist below END on these lanes, till
 *   unload                            ... now: TEXT is how often, and the longest ms
 *   appenders LANES COUNT TAIL LIMIT LEN  threads append so often; TEXT is all or an error
 *   read LANE REPLICA OFF LEN         and compare with memory: TEXT is same or differs
 *   compare REPLICA                   read all, compare
 *   stat REPLICA | profile REPLICA | lanes | replicas
 *   behind LANE REPLICA               commit while another thread reads REPLICA by LANE
 *   busy LANE                         calls from two threads at once in one lane
 *   thread                            the error text of another thread
 *   chdir DIRECTORY
 *   leave                             main() does, by pthread_exit(3); a thread goes on
 *   and those of api_env.h
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#include "api_env.h"

#define WORDS_MAX   16
#define READ_SIZE   (4UL << 20)
#define MAP_ROOM    (4UL << 30) /* to grow into */
#define MAP_ALIGN   (2UL << 20) /* as mappings of device DAX want it */
#define WORKERS_MAX 8

/* A thread of load or of appenders. */
struct worker {
	struct shell *shell;
	pthread_t thread;
	unsigned lane;
	size_t end;              /* load */
	size_t tail, limit, len; /* appenders */
	unsigned count;
	unsigned done;
	double worst_ms;
	int rc;
	char why[200];
};

struct shell {
	struct repl_config *cfg;
	struct repl *r;
	uint8_t *mem;
	size_t size, mapped; /* with what it may grow into */
	size_t from;         /* the place in the file */
	int fd;              /* -1: anonymous */
	int sharing;         /* of the mapping */
	struct worker workers[WORKERS_MAX];
	unsigned worker_count;
	atomic_bool stop;
	char text[8192];
	char *line; /* of the command */
	size_t room;
};

static void commands_go_on(void *arg);

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

static void
unmap(struct shell *s)
{
	if (s->mem)
		(void)munmap(s->mem, s->mapped);
	if (s->fd >= 0)
		(void)close(s->fd);
	s->mem = NULL;
	s->fd = -1;
}

static int
map_at(struct shell *s, size_t off, size_t len)
{
	int flags = s->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : s->sharing;
	void *p = mmap(s->mem + off, len, PROT_READ | PROT_WRITE, flags | MAP_FIXED, s->fd,
		       s->fd < 0 ? 0 : (off_t)(s->from + off));

	return p == MAP_FAILED ? REPL_E_FAILED : 0;
}

/* A device's memory is shared, and no regular file is found by its name. */
static int
map_open(const struct words *w)
{
	if (strcmp(w->w[0], "anon") == 0)
		return -1;
	if (strcmp(w->w[0], "device") == 0)
		return memfd_create("device", MFD_CLOEXEC);
	return open(w->w[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int
do_map(struct shell *s, const struct words *w)
{
	bool anon = strcmp(w->w[0], "anon") == 0;
	bool named = !anon && strcmp(w->w[0], "device") != 0;
	struct stat st = {0};
	uintptr_t p;

	unmap(s);
	s->fd = map_open(w);
	s->sharing = strcmp(w->w[0], "private") == 0 ? MAP_PRIVATE : MAP_SHARED;
	s->size = number(w, named ? 2 : 1);
	s->from = named && w->count >= 4 ? number(w, 3) : 0;
	if (!anon && (s->fd < 0 || fstat(s->fd, &st) ||
		      (!S_ISCHR(st.st_mode) && ftruncate(s->fd, (off_t)(s->from + s->size)))))
		return REPL_E_FAILED;
	s->mapped = 16 * s->size + MAP_ROOM;
	p = (uintptr_t)mmap(NULL, s->mapped + MAP_ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	if (p == (uintptr_t)MAP_FAILED)
		return REPL_E_FAILED;
	/* What is left over at both ends goes with the process. */
	s->mem = (uint8_t *)((p + MAP_ALIGN - 1) / MAP_ALIGN * MAP_ALIGN);
	return map_at(s, 0, s->size);
}

static int
do_lock(struct shell *s)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(s->fd, F_SETLK, &l) ? REPL_E_FAILED : 0;
}

static int
do_extend(struct shell *s, const struct words *w)
{
	size_t before = s->size, size = number(w, 1);
	size_t page = before - before % 4096; /* which may be mapped already */

	if (!s->mem || s->fd < 0 || size < before || size > s->mapped ||
	    ftruncate(s->fd, (off_t)size))
		return REPL_E_FAILED;
	if (map_at(s, page, size - page))
		return REPL_E_FAILED;
	s->size = size;
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

static int
do_sync(struct shell *s)
{
	return msync(s->mem, s->size, MS_SYNC) ? REPL_E_IO : 0;
}

/* Set a tail word, or with no value say what it is. */
static int
do_tail(struct shell *s, const struct words *w)
{
	uint64_t *word = (uint64_t *)(void *)(s->mem + number(w, 1));

	if (w->count > 2)
		*word = number(w, 2);
	(void)snprintf(s->text, sizeof(s->text), "%" PRIu64, *word);
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
		       " missed=%" PRIu64 " reconnect=%" PRIu64 " histogram=%" PRIu64
		       " immediate=%" PRIu64 " uncopied=%" PRIu64 " lag_bytes=%" PRIu64
		       " lag_ms=%" PRIu64 " connection=%d replication=%d data=%d reason=%s",
		       st.flush_count, st.merged_count, st.drain_count, st.message_count,
		       st.write_count, st.read_count, st.byte_count, st.error_count,
		       st.degraded_count, st.reconnect_count, latencies, st.immediate_count,
		       st.uncopied_count, st.lag_bytes, st.lag_ms, st.connection, st.replication,
		       st.data, st.reason);
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

struct reader {
	struct shell *s;
	unsigned lane, replica;
};

static void *
reader_main(void *arg)
{
	const struct reader *k = arg;
	uint8_t byte;

	(void)!repl_read(k->s->r, k->lane, k->replica, &byte, 0, 1);
	return NULL;
}

/* The reader is inside the lane when a call there is refused. */
static int
do_behind(struct shell *s, const struct words *w)
{
	struct reader k = {s, (unsigned)number(w, 1), (unsigned)number(w, 2)};
	pthread_t t;
	int rc;

	if (pthread_create(&t, NULL, reader_main, &k))
		return REPL_E_FAILED;
	for (int i = 0; i < 10000 && repl_flush(s->r, k.lane, 0, 0) != REPL_E_BUSY; i++)
		(void)usleep(100);
	rc = repl_commit(s->r, 0);
	if (rc)
		say(s, repl_errormsg());
	(void)pthread_join(t, NULL);
	return rc;
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

static int
do_leave(struct shell *s)
{
	return env_main_leaves(commands_go_on, s) ? REPL_E_FAILED : 0;
}

/* ---- threads at work ---- */

static double
now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
worker_note(struct worker *k, int rc, double begin_ms)
{
	double ms = now_ms() - begin_ms;

	if (ms > k->worst_ms)
		k->worst_ms = ms;
	k->rc = rc;
	if (rc)
		(void)snprintf(k->why, sizeof(k->why), "%.199s", repl_errormsg());
	else
		k->done++;
}

/* Small ones, and some that go by RMA, each lane in its own pages. */
static void *
load_main(void *arg)
{
	struct worker *k = arg;
	size_t part = k->end / WORKERS_MAX / 4096 * 4096;
	uint8_t *mem = k->shell->mem + k->lane * part;
	unsigned seed = k->lane;

	while (!k->rc && !atomic_load(&k->shell->stop)) {
		size_t len = (unsigned)rand_r(&seed) % 16 == 0 ? 65536 : 64;
		size_t off = (unsigned)rand_r(&seed) % (part - len);
		double begin = now_ms();

		memset(mem + off, rand_r(&seed), len);
		worker_note(k, repl_persist(k->shell->r, k->lane, k->lane * part + off, len),
			    begin);
	}
	return NULL;
}

/* Each record is filled with its lane and number. */
static void *
append_main(void *arg)
{
	struct worker *k = arg;
	uint8_t *data = malloc(k->len);

	for (unsigned i = 0; data && !k->rc && i < k->count; i++) {
		double begin = now_ms();
		size_t off;

		memset(data, (int)(k->lane * 64 + i % 64), k->len);
		worker_note(
			k, repl_append(k->shell->r, k->lane, k->tail, k->limit, data, k->len, &off),
			begin);
		if (!k->rc && memcmp(k->shell->mem + off, data, k->len) != 0)
			k->rc = REPL_E_DIFFER;
	}
	free(data);
	return NULL;
}

static int
workers_start(struct shell *s, unsigned count, const struct worker *like, void *(*run)(void *))
{
	if (count > WORKERS_MAX || s->worker_count)
		return REPL_E_INVAL;
	atomic_store(&s->stop, false);
	for (unsigned i = 0; i < count; i++) {
		s->workers[i] = *like;
		s->workers[i].shell = s;
		s->workers[i].lane = i;
		if (pthread_create(&s->workers[i].thread, NULL, run, &s->workers[i]))
			return REPL_E_FAILED;
		s->worker_count++;
	}
	return 0;
}

static int
workers_end(struct shell *s)
{
	unsigned done = 0;
	double worst = 0;
	int rc = 0;

	for (unsigned i = 0; i < s->worker_count; i++) {
		struct worker *k = &s->workers[i];

		(void)pthread_join(k->thread, NULL);
		done += k->done;
		worst = k->worst_ms > worst ? k->worst_ms : worst;
		if (k->rc) {
			rc = k->rc;
			say(s, k->why);
		}
	}
	s->worker_count = 0;
	if (!rc)
		(void)snprintf(s->text, sizeof(s->text), "%u %.1f", done, worst);
	return rc;
}

static int
run_threads(struct shell *s, const struct words *w)
{
	struct worker like = {0};
	int rc;

	if (strcmp(w->w[0], "unload") == 0) {
		atomic_store(&s->stop, true);
		return workers_end(s);
	}
	if (strcmp(w->w[0], "load") == 0) {
		like.end = number(w, 2);
		return workers_start(s, (unsigned)number(w, 1), &like, load_main);
	}
	like.count = (unsigned)number(w, 2);
	like.tail = number(w, 3);
	like.limit = number(w, 4);
	like.len = number(w, 5);
	rc = workers_start(s, (unsigned)number(w, 1), &like, append_main);
	return rc ? rc : workers_end(s);
}

static int
do_append(struct shell *s, const struct words *w)
{
	size_t len = number(w, 4), off = 0;
	uint8_t *data = malloc(len + 1);
	int rc;

	if (!data)
		return REPL_E_NOMEM;
	memset(data, (int)number(w, 5), len);
	rc = repl_append(s->r, (unsigned)number(w, 1), number(w, 2), number(w, 3), data, len, &off);
	if (!rc)
		(void)snprintf(s->text, sizeof(s->text), "%zu", off);
	free(data);
	return rc;
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
	if (strcmp(c, "append") == 0)
		return do_append(s, w);
	if (strcmp(c, "commit") == 0)
		return repl_commit(s->r, lane);
	if (strcmp(c, "grow") == 0)
		return repl_grow(s->r, number(w, 1));
	if (strcmp(c, "load") == 0 || strcmp(c, "unload") == 0 || strcmp(c, "appenders") == 0)
		return run_threads(s, w);
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
	if (strcmp(c, "behind") == 0)
		return do_behind(s, w);
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
	int rc;

	if (env_run(w->w, w->count, &rc)) {
		say(s, rc ? strerror(errno) : "");
		return rc ? REPL_E_FAILED : 0;
	}
	if (strcmp(c, "config") == 0)
		return do_config(s);
	if (strcmp(c, "set") == 0)
		return repl_config_set(s->cfg, w->w[1], w->count > 2 ? w->w[2] : "");
	if (strcmp(c, "map") == 0 || strcmp(c, "anon") == 0 || strcmp(c, "private") == 0 ||
	    strcmp(c, "device") == 0)
		return do_map(s, w);
	if (strcmp(c, "lock") == 0)
		return do_lock(s);
	if (strcmp(c, "extend") == 0)
		return do_extend(s, w);
	if (strcmp(c, "sync") == 0)
		return do_sync(s);
	if (strcmp(c, "tail") == 0)
		return do_tail(s, w);
	if (strcmp(c, "put") == 0)
		return do_put(s, w);
	if (strcmp(c, "open") == 0)
		return do_open(s, w);
	if (strcmp(c, "close") == 0)
		return do_close(s);
	if (strcmp(c, "thread") == 0)
		return do_thread(s);
	if (strcmp(c, "leave") == 0)
		return do_leave(s);
	if (strcmp(c, "chdir") == 0)
		return chdir(w->w[1]) ? REPL_E_FAILED : 0;
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

static int
commands(struct shell *s)
{
	/* Also what a signal has interrupted. */
	while (getline(&s->line, &s->room, stdin) > 0 || (ferror(stdin) && errno == EINTR)) {
		if (!ferror(stdin))
			answer(s, s->line);
		clearerr(stdin);
	}
	free(s->line);
	(void)repl_close(s->r);
	repl_config_free(s->cfg);
	unmap(s);
	return 0;
}

/* In place of main(), whose last command is answered here. */
static void
commands_go_on(void *arg)
{
	(void)printf("%s 0 \n", status_name(0));
	(void)fflush(stdout);
	exit(commands(arg));
}

int
main(void)
{
	static struct shell s = {.fd = -1};

	return commands(&s);
}
