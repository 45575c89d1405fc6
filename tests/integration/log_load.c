/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_load - several writers on a log, and what must be in it afterwards.
 *
 * usage: log_load run SEED FILE JOURNAL KIND WRITERS CALLS TARGET [KEY=VALUE ...]
 *        log_load check FILE JOURNAL TARGET [KEY=VALUE ...]
 *
 * run makes the log, or opens the one that is there, says "ready", reads from
 * standard input the process id to kill after a random number of appends (or an
 * empty line: none), and appends until CALLS calls a writer are done or one fails.
 * A full log is trimmed. Each call is entered in JOURNAL before it is begun and when
 * it has returned.
 *
 * check opens the log: each append that returned is there, at its position, with
 * its bytes; of each writer at most the records of its last call beside them, in
 * order; what the last check did not find never comes up. It enters what it found.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define POOL_SIZE     (2UL << 20)
#define LOG_OFF       (1UL << 20)
#define LOG_SIZE      (512UL << 10)
#define WRITERS_MAX   8U
#define NUMBERS_MAX   200000U
#define SMALL_MAX     200U
#define LARGE_MAX     (40U << 10)
#define BATCH_MAX     5U
#define ACKS_MIN      10U
#define ACKS_SPREAD   600U
#define DELAY_US_MAX  1500U
#define GIVE_UP_POLLS 150000U

enum what { BEGUN, ACKED, GONE, TRIM_BEGUN, TRIM_ACKED, RUN };

/* A call of count records from number on, or a trim to position. */
struct entry {
	uint8_t what, writer, zero[2];
	uint32_t number, count;
	uint32_t zero2;
	uint64_t position;
};

struct load {
	struct repl *repl;
	struct repl_log *log;
	uint8_t *pool;
	int journal;
	uint64_t seed;
	unsigned calls;
	unsigned writers;
	_Atomic unsigned acks, running;
};

struct writer {
	struct load *load;
	pthread_t thread;
	unsigned index;
	uint64_t random;
	uint32_t number; /* of the next record, from 1 */
	int rc;
};

static uint64_t
mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* ---- records ---- */

static uint32_t
record_len(unsigned writer, uint32_t number)
{
	uint64_t r = mix(((uint64_t)writer << 32 | number) ^ 0x5151);

	return 8 + (uint32_t)(r >> 8) % (r % 16 ? SMALL_MAX : LARGE_MAX);
}

static void
record_fill(uint8_t *p, unsigned writer, uint32_t number)
{
	uint32_t len = record_len(writer, number);

	memcpy(p, &writer, 4);
	memcpy(p + 4, &number, 4);
	for (uint32_t i = 8; i < len; i++)
		p[i] = (uint8_t)(mix((uint64_t)writer << 32 | number) >> i % 8 * 8 ^ i);
}

/* ---- journal ---- */

static void
note(int journal, struct entry e)
{
	if (write(journal, &e, sizeof(e)) != (ssize_t)sizeof(e)) {
		perror("journal");
		_exit(3);
	}
}

struct known {
	uint8_t state; /* BEGUN, ACKED or GONE, of a number that was used */
	bool used;
	bool found;
	bool last; /* of the writer's last call */
	uint64_t position;
};

struct truth {
	struct known *records[WRITERS_MAX];
	uint32_t next[WRITERS_MAX]; /* number of the next record */
	uint64_t trim_acked, trim_begun;
};

static void
truth_call(struct truth *t, const struct entry *e)
{
	for (uint32_t i = 0; i < e->count && e->number + i < NUMBERS_MAX; i++) {
		struct known *k = &t->records[e->writer][e->number + i];

		k->used = true;
		k->state = e->what;
		if (i == 0)
			k->position = e->position;
	}
	if (e->number + e->count > t->next[e->writer])
		t->next[e->writer] = e->number + e->count;
}

static int
truth_read(struct truth *t, const char *path)
{
	struct entry e;
	FILE *f = fopen(path, "re");

	memset(t, 0, sizeof(*t));
	for (unsigned w = 0; w < WRITERS_MAX; w++) {
		t->records[w] = calloc(NUMBERS_MAX, sizeof(*t->records[w]));
		t->next[w] = 1;
		if (!t->records[w])
			return 1;
	}
	while (f && fread(&e, sizeof(e), 1, f) == 1) {
		if (e.what == TRIM_BEGUN && e.position > t->trim_begun)
			t->trim_begun = e.position;
		else if (e.what == TRIM_ACKED && e.position > t->trim_acked)
			t->trim_acked = e.position;
		else if (e.what <= GONE && e.writer < WRITERS_MAX)
			truth_call(t, &e);
	}
	if (f)
		(void)fclose(f);
	return 0;
}

static void
truth_free(struct truth *t)
{
	for (unsigned w = 0; w < WRITERS_MAX; w++)
		free(t->records[w]);
}

/* ---- run ---- */

/* To about the middle of what is there. */
static int
writer_trim(struct writer *w)
{
	struct load *l = w->load;
	struct entry e = {.what = TRIM_BEGUN, .writer = (uint8_t)w->index};
	uint64_t at = repl_log_head(l->log), end = repl_log_tail(l->log);
	uint64_t until = at + (end - at) / 2;
	static _Thread_local uint8_t buf[8 + LARGE_MAX];
	size_t len;
	int rc = 0;

	while (at < until && (rc = repl_log_read(l->log, at, buf, sizeof(buf), &len, &at)) == 0)
		;
	if (rc == REPL_E_NOT_FOUND) /* another one trims */
		return 0;
	e.position = at;
	if (rc)
		return rc;
	note(l->journal, e);
	rc = repl_log_trim(l->log, w->index, at);
	e.what = TRIM_ACKED;
	if (!rc)
		note(l->journal, e);
	return rc;
}

static int
writer_call(struct writer *w, uint8_t *buf)
{
	struct load *l = w->load;
	struct entry e = {.what = BEGUN, .writer = (uint8_t)w->index, .number = w->number};
	struct iovec iov[BATCH_MAX];
	int rc;

	w->random = mix(w->random);
	e.count = w->random % 4 ? 1 : 1 + (uint32_t)(w->random >> 8) % BATCH_MAX;
	for (uint32_t i = 0; i < e.count; i++) {
		iov[i] = (struct iovec){buf, record_len(w->index, w->number + i)};
		record_fill(buf, w->index, w->number + i);
		buf += iov[i].iov_len;
	}
	note(l->journal, e);
	if (e.count == 1)
		rc = repl_log_append(l->log, w->index, iov[0].iov_base, iov[0].iov_len,
				     &e.position);
	else
		rc = repl_log_append_batch(l->log, w->index, iov, e.count, &e.position);
	if (rc)
		return rc;
	e.what = ACKED;
	note(l->journal, e);
	w->number += e.count;
	atomic_fetch_add(&l->acks, 1);
	return 0;
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	uint8_t *buf = malloc((8 + LARGE_MAX) * BATCH_MAX);

	for (unsigned i = 0; buf && !w->rc && i < w->load->calls; i++) {
		while ((w->rc = writer_call(w, buf)) == REPL_E_NOSPC) {
			w->rc = writer_trim(w);
			if (w->rc)
				break;
		}
	}
	if (w->rc)
		(void)fprintf(stderr, "writer %u: %s\n", w->index, repl_errormsg());
	free(buf);
	atomic_fetch_sub(&w->load->running, 1);
	return NULL;
}

static int
load_kill(struct load *l, pid_t pid)
{
	unsigned acks = ACKS_MIN + (unsigned)(mix(l->seed) % ACKS_SPREAD);

	for (unsigned i = 0; atomic_load(&l->acks) < acks; i++) {
		if (i == GIVE_UP_POLLS || atomic_load(&l->running) == 0)
			return 1;
		(void)usleep(100);
	}
	(void)usleep((unsigned)(mix(l->seed + 1) % DELAY_US_MAX));
	return kill(pid, SIGKILL);
}

static int
load_run(struct load *l, struct truth *t)
{
	struct writer writers[WRITERS_MAX] = {0};
	char line[32] = "";
	pid_t pid;
	int rc = 0;

	(void)printf("ready\n");
	(void)fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	pid = (pid_t)strtol(line, NULL, 10);
	note(l->journal, (struct entry){.what = RUN});
	atomic_store(&l->running, l->writers);
	for (unsigned i = 0; i < l->writers; i++) {
		writers[i] = (struct writer){.load = l, .index = i, .number = t->next[i]};
		writers[i].random = mix(l->seed * WRITERS_MAX + i);
		if (pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]))
			_exit(3);
	}
	if (pid > 0)
		rc = load_kill(l, pid);
	for (unsigned i = 0; i < l->writers; i++) {
		(void)pthread_join(writers[i].thread, NULL);
		if (pid == 0 && writers[i].rc)
			rc = 1;
	}
	(void)printf("%u calls returned\n", atomic_load(&l->acks));
	return rc;
}

/* ---- check ---- */

static bool
wrong(const char *what, unsigned writer, uint32_t number, uint64_t position)
{
	(void)printf("%s: writer %u record %u at %" PRIu64 "\n", what, writer, number, position);
	return false;
}

static bool
check_record(struct truth *t, const uint8_t *data, size_t len, uint64_t position)
{
	static uint8_t want[8 + LARGE_MAX];
	uint32_t writer = WRITERS_MAX, number = 0;
	struct known *k;

	if (len >= 8) {
		memcpy(&writer, data, 4);
		memcpy(&number, data + 4, 4);
	}
	if (writer >= WRITERS_MAX || number == 0 || number >= t->next[writer] ||
	    number >= NUMBERS_MAX || len != record_len(writer, number))
		return wrong("nobody's record", writer, number, position);
	record_fill(want, writer, number);
	k = &t->records[writer][number];
	if (memcmp(want, data, len) != 0)
		return wrong("torn", writer, number, position);
	if (!k->used || k->found || k->state == GONE)
		return wrong("one too many", writer, number, position);
	if (k->state == ACKED && k->position && k->position != position)
		return wrong("not in its place", writer, number, position);
	for (uint32_t n = number; n-- > 1 && t->records[writer][n].state != GONE;) {
		if (t->records[writer][n].found)
			break;
		/* Trimmed ones are all before. */
		if (t->records[writer][n].position > t->trim_begun)
			return wrong("one is missing before it", writer, number, position);
	}
	k->found = true;
	k->position = position;
	return true;
}

/* Acknowledged ones are there from the head on; the others are known from now on. */
static bool
check_all(struct truth *t, uint64_t head, int journal, unsigned *found)
{
	for (unsigned w = 0; w < WRITERS_MAX; w++)
		for (uint32_t n = 1; n < t->next[w]; n++) {
			struct known *k = &t->records[w][n];
			struct entry e = {.writer = (uint8_t)w, .number = n, .count = 1};

			*found += k->found;
			if (k->state == ACKED && !k->found && k->position >= head && k->position)
				return wrong("acknowledged, and lost", w, n, k->position);
			if (k->state != BEGUN)
				continue;
			e.what = k->found ? ACKED : GONE;
			e.position = k->found ? k->position : 0;
			note(journal, e);
		}
	return true;
}

static int
load_check(struct load *l, struct truth *t)
{
	static uint8_t buf[8 + LARGE_MAX];
	uint64_t head = repl_log_head(l->log), at = head, next;
	unsigned found = 0;
	size_t len;
	int rc;

	if (head < t->trim_acked || head > (t->trim_begun > 0 ? t->trim_begun : 0)) {
		(void)printf("head %" PRIu64 ", trimmed to %" PRIu64 " or %" PRIu64 "\n", head,
			     t->trim_acked, t->trim_begun);
		return 1;
	}
	while ((rc = repl_log_read(l->log, at, buf, sizeof(buf), &len, &next)) == 0) {
		if (!check_record(t, buf, len, at))
			return 1;
		at = next;
	}
	if (rc != REPL_E_NOT_FOUND || at != repl_log_tail(l->log)) {
		(void)printf("read at %" PRIu64 ": %s\n", at, repl_errormsg());
		return 1;
	}
	if (!check_all(t, head, l->journal, &found))
		return 1;
	if (head > 0)
		note(l->journal, (struct entry){.what = TRIM_ACKED, .position = head});
	(void)printf("%u records from %" PRIu64 " to %" PRIu64 ", all of them right\n", found, head,
		     at);
	return 0;
}

/* ---- opening ---- */

static uint8_t *
pool_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, POOL_SIZE) == 0)
		p = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static int
load_open(struct load *l, const char *target, char **options, int count)
{
	struct repl_config *cfg = NULL;
	int rc = repl_config_new(&cfg);

	if (!rc)
		rc = repl_config_add_target(cfg, target);
	if (!rc)
		rc = repl_config_set(cfg, "on-loss", "fail");
	for (int i = 0; !rc && i < count; i++) {
		char *value = strchr(options[i], '=');

		if (!value)
			return 2;
		*value++ = '\0';
		rc = repl_config_set(cfg, options[i], value);
	}
	if (!rc)
		rc = repl_open(cfg, l->pool, POOL_SIZE, REPL_OPEN_CREATE, &l->repl);
	repl_config_free(cfg);
	return rc;
}

static int
log_start(struct load *l, int kind)
{
	int rc = repl_log_open(l->repl, LOG_OFF, &l->log);

	if (rc == REPL_E_NOT_FOUND && kind)
		rc = repl_log_create(l->repl, LOG_OFF, LOG_SIZE, (enum repl_log_kind)kind, &l->log);
	return rc;
}

int
main(int argc, char **argv)
{
	bool run = argc >= 9 && strcmp(argv[1], "run") == 0;
	const char *file = run ? argv[3] : argv[2], *journal = run ? argv[4] : argv[3];
	int options = run ? 9 : 5, rc;
	struct load l = {.journal = -1};
	struct truth t;

	if (argc < 5 || (!run && strcmp(argv[1], "check") != 0))
		return 2;
	l.pool = pool_map(file);
	l.journal = open(journal, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (!l.pool || l.journal < 0 || truth_read(&t, journal))
		return 3;
	rc = load_open(&l, argv[options - 1], argv + options, argc - options);
	if (!rc)
		rc = log_start(&l, run ? atoi(argv[5]) : 0);
	if (rc) {
		(void)fprintf(stderr, "log_load: open: %s\n", repl_errormsg());
		return 4;
	}
	if (run) {
		l.seed = strtoull(argv[2], NULL, 0);
		l.writers = (unsigned)strtoul(argv[6], NULL, 10) % (WRITERS_MAX + 1);
		l.calls = (unsigned)strtoul(argv[7], NULL, 10);
		rc = load_run(&l, &t);
	} else {
		rc = load_check(&l, &t);
	}
	repl_log_close(l.log);
	(void)repl_close(l.repl);
	(void)close(l.journal);
	truth_free(&t);
	return rc;
}
