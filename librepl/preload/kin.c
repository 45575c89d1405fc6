/* SPDX-License-Identifier: BSD-3-Clause */
#include "kin.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "real.h"
#include "thread.h"

#define MEMBERS   (2U * KIN_POOLS) /* who has a pool open, or had a moment ago */
#define MOMENT_NS 100000000L
#define STUCK_NS  10000000000ULL
#define JOIN_MAX  256U /* lines: to wait costs as much as to send them */

/*
 * A posted range: the number of its first line, whether holes are of it, and how many lines, or all
 * of them to the end.
 */
#define LINE       64U
#define FIRST_BITS 24
#define HOLES      (1ULL << (FIRST_BITS - 1))
#define LINES_ALL  (HOLES - 1)
#define LINE_LAST  ((1ULL << (64 - FIRST_BITS)) - 1)
#define POST_MAX   (LINES_ALL / 2 * LINE) /* more is posted in parts */

/*
 * Of a process that serves a pool: its thread for that holds the mutex until it ends, be that by a
 * signal or because the process becomes another program; the kernel tells.
 */
struct member {
	pthread_mutex_t alive;
	_Atomic uint64_t life; /* another one each time that it is taken, from 1 on */
	_Atomic pid_t pid;
};

struct kin_pool {
	pthread_mutex_t opening;
	uint64_t covered;            /* by who opens it: guarded by that */
	bool heir;                   /* likewise */
	_Atomic pid_t opener;        /* who does, or did */
	_Atomic dev_t opens_dev;     /* the file that is being opened */
	_Atomic ino_t opens_ino;     /* 0: none is */
	_Atomic uint64_t owner;      /* who has it open: see owner_of(); 0: nobody */
	_Atomic uint64_t size_after; /* of the file, that much and one; 0: nobody has told it */
	_Atomic dev_t dev;
	_Atomic ino_t ino;
	_Atomic bool longer, all;
	_Atomic uint32_t bell;              /* counts, too: who serves sleeps on it */
	_Atomic uint64_t asked, served;     /* counts of asking, and up to which */
	_Atomic uint32_t told;              /* counts changes of those, to sleep on */
	_Atomic uint64_t posts[KIN_RANGES]; /* 0: none */
};

struct kin {
	struct member members[MEMBERS];
	struct kin_pool pools[KIN_POOLS];
};

static struct kin *kin;

/* Of this process alone, of one pool: none waits for what is done for another one. */
static struct server {
	bool begun, open;
	_Atomic uint64_t self; /* as an owner; looked at without the lock */
	sem_t is_begun;
	void (*serve)(unsigned);
} servers[KIN_POOLS];

static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER; /* guards them */

/* ---- shared memory ---- */

/* True: the word was changed, or somebody says so. */
static bool
futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *limit)
{
	return syscall(SYS_futex, word, FUTEX_WAIT, value, limit, NULL, 0) == 0 || errno == EAGAIN;
}

static void
futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void
mutex_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	(void)pthread_mutexattr_init(&a);
	(void)pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	(void)pthread_mutex_init(m, &a);
	(void)pthread_mutexattr_destroy(&a);
}

/* died: who had it has died with it, else it is left as it was. */
static bool
mutex_take(pthread_mutex_t *m, bool *died)
{
	int rc = pthread_mutex_trylock(m);

	if (rc == EOWNERDEAD) {
		*died = true;
		rc = pthread_mutex_consistent(m);
	}
	return rc == 0;
}

static bool
mutex_try(pthread_mutex_t *m)
{
	bool died;

	return mutex_take(m, &died);
}

void
kin_begin(void)
{
	struct kin *k = real_mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (k == MAP_FAILED)
		return;
	for (unsigned i = 0; i < MEMBERS; i++)
		mutex_init(&k->members[i].alive);
	for (unsigned i = 0; i < KIN_POOLS; i++)
		mutex_init(&k->pools[i].opening);
	for (unsigned i = 0; i < KIN_POOLS; i++)
		(void)sem_init(&servers[i].is_begun, 0, 0);
	kin = k;
}

bool
kin_is(void)
{
	return kin != NULL;
}

void
kin_forked(void)
{
	(void)pthread_mutex_init(&begin_lock, NULL);
	for (unsigned i = 0; i < KIN_POOLS; i++) {
		(void)sem_init(&servers[i].is_begun, 0, 0);
		servers[i].begun = servers[i].open = false;
		atomic_store(&servers[i].self, 0);
	}
}

/* ---- who serves ---- */

static uint64_t
owner_of(unsigned member, uint64_t life)
{
	return life * MEMBERS + member;
}

static uint64_t
member_take(void)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &kin->members[i];

		if (!mutex_try(&m->alive))
			continue;
		atomic_store(&m->pid, getpid());
		return owner_of(i, atomic_fetch_add(&m->life, 1) + 1);
	}
	return 0;
}

static bool
is_alive(uint64_t owner)
{
	struct member *m = &kin->members[owner % MEMBERS];

	if (owner == 0 || atomic_load(&m->life) != owner / MEMBERS)
		return false;
	if (!mutex_try(&m->alive))
		return true;
	(void)pthread_mutex_unlock(&m->alive);
	return false;
}

/* Not where it has another number for who asks than for itself. */
static bool
is_stopped(pid_t pid)
{
	char file[32], state;

	(void)snprintf(file, sizeof(file), "/proc/%d/stat", (int)pid);
	state = proc_state(file);
	return state == 'T' || state == 't';
}

static bool
opener_stopped(struct kin_pool *p)
{
	if (!is_stopped(atomic_load(&p->opener)))
		return false;
	if (!mutex_try(&p->opening))
		return true;
	(void)pthread_mutex_unlock(&p->opening);
	return false;
}

/* With the pool the place is another one's: there are not many. */
static bool
serve_ends(struct server *s)
{
	bool ends;

	(void)pthread_mutex_lock(&begin_lock);
	ends = !s->open;
	if (ends) {
		s->begun = false;
		atomic_store(&s->self, 0);
	}
	(void)pthread_mutex_unlock(&begin_lock);
	return ends;
}

static void *
serve_on(void *arg)
{
	struct server *s = arg;
	unsigned pool = (unsigned)(s - servers);
	struct kin_pool *p = &kin->pools[pool];
	uint64_t me = member_take();
	uint32_t bell;

	atomic_store(&s->self, me);
	(void)sem_post(&s->is_begun);
	if (!me)
		return NULL;
	for (;;) {
		bell = atomic_load(&p->bell);
		if (serve_ends(s))
			break;
		if (atomic_load(&p->owner) == me &&
		    atomic_load(&p->asked) != atomic_load(&p->served))
			s->serve(pool);
		(void)futex_wait(&p->bell, bell, NULL);
	}
	(void)pthread_mutex_unlock(&kin->members[me % MEMBERS].alive);
	return NULL;
}

/* The thread that serves is there, if it can be. */
static void
serve_begin(unsigned pool, void (*serve)(unsigned))
{
	struct server *s = &servers[pool];

	(void)pthread_mutex_lock(&begin_lock);
	s->open = true;
	if (!s->begun) {
		s->serve = serve;
		s->begun = thread_start_detached(serve_on, s) == 0;
		while (s->begun && sem_wait(&s->is_begun))
			;
		s->begun = s->begun && atomic_load(&s->self) != 0;
	}
	(void)pthread_mutex_unlock(&begin_lock);
}

static void
bell_ring(struct kin_pool *p)
{
	atomic_fetch_add(&p->bell, 1);
	futex_wake(&p->bell);
}

static uint64_t
self_of(unsigned pool)
{
	return atomic_load(&servers[pool].self);
}

/* Who waits is to look again. */
static void
waiters_wake(struct kin_pool *p)
{
	atomic_fetch_add(&p->told, 1);
	futex_wake(&p->told);
}

/* ---- what is posted ---- */

static uint64_t
first_of(uint64_t post)
{
	return post >> FIRST_BITS;
}

/* The line behind it. */
static uint64_t
end_of(uint64_t post)
{
	uint64_t lines = post & LINES_ALL;

	return lines == LINES_ALL ? UINT64_MAX : first_of(post) + lines;
}

static uint64_t
post_of(uint64_t first, uint64_t end)
{
	if (first > LINE_LAST)
		first = LINE_LAST;
	return first << FIRST_BITS | (end - first < LINES_ALL ? end - first : LINES_ALL);
}

static uint64_t
joined(uint64_t a, uint64_t b)
{
	uint64_t first = first_of(a) < first_of(b) ? first_of(a) : first_of(b);
	uint64_t end = end_of(a) > end_of(b) ? end_of(a) : end_of(b);

	return post_of(first, end) | ((a | b) & HOLES);
}

static uint64_t
lines_of(uint64_t post)
{
	uint64_t lines = end_of(post) - first_of(post);

	return lines < UINT64_MAX / 2 ? lines : UINT64_MAX / 2;
}

/* Holes would be of more than they are. */
static bool
is_mixed(uint64_t a, uint64_t b)
{
	uint64_t one = joined(a, b);

	return (a & HOLES) != (b & HOLES) && one != a && one != b;
}

/* They touch, and as one word they are no more than they are. */
static bool
is_one(uint64_t a, uint64_t b)
{
	uint64_t one = joined(a, b);

	return !is_mixed(a, b) && first_of(a) <= end_of(b) && first_of(b) <= end_of(a) &&
	       (end_of(one) == end_of(a) || end_of(one) == end_of(b));
}

/* Where it costs least: with what it touches, alone, or with what is next to it. */
static unsigned
place_of(struct kin_pool *p, uint64_t post, uint64_t *was, uint64_t *cost)
{
	uint64_t least = UINT64_MAX, more; /* lines_of() is far less */
	unsigned best = 0;

	*was = 0;
	for (unsigned i = 0; i < KIN_RANGES; i++) {
		uint64_t there = atomic_load(&p->posts[i]);

		if (there == 0)
			more = 1;
		else if (is_one(there, post))
			more = 0;
		else
			more = 2 + lines_of(joined(there, post)) -
			       (is_mixed(there, post) ? 0 : lines_of(there));
		if (more < least) {
			least = more;
			best = i;
			*was = there;
		}
	}
	*cost = least;
	return best;
}

/* By an exchange even if that changes nothing: the bytes were stored before it is seen. */
static bool
post(struct kin_pool *p, uint64_t range, bool any)
{
	unsigned at;
	uint64_t was, cost;

	do {
		at = place_of(p, range, &was, &cost);
		if (!any && cost > lines_of(range) + JOIN_MAX)
			return false;
	} while (!atomic_compare_exchange_strong(&p->posts[at], &was,
						 was ? joined(was, range) : range));
	return true;
}

bool
kin_post(unsigned pool, uint64_t off, uint64_t len, unsigned how)
{
	uint64_t holes = how & KIN_HOLES ? HOLES : 0;
	uint64_t end = len > UINT64_MAX - off ? UINT64_MAX : off + len;

	for (uint64_t to; kin && off < end; off = to) {
		/* All to the end is one word. */
		to = end - off > POST_MAX && end != UINT64_MAX ? off + POST_MAX : end;
		if (!post(&kin->pools[pool], post_of(off / LINE, (to - 1) / LINE + 1) | holes,
			  how & KIN_ANY))
			return false;
	}
	return true;
}

void
kin_longer(unsigned pool)
{
	if (kin)
		atomic_store(&kin->pools[pool].longer, true);
}

void
kin_resized(unsigned pool, uint64_t size)
{
	if (kin)
		atomic_store(&kin->pools[pool].size_after, size + 1);
}

uint64_t
kin_size(unsigned pool, uint64_t mine)
{
	uint64_t after = kin ? atomic_load(&kin->pools[pool].size_after) : 0;

	return after ? after - 1 : mine;
}

void
kin_all(unsigned pool)
{
	if (kin)
		atomic_store(&kin->pools[pool].all, true);
}

bool
kin_wants_all(unsigned pool)
{
	return kin && atomic_exchange(&kin->pools[pool].all, false);
}

static uint64_t
bytes_to(uint64_t line)
{
	return line > UINT64_MAX / LINE ? UINT64_MAX : line * LINE;
}

uint64_t
kin_end(unsigned pool)
{
	struct kin_pool *p;
	uint64_t end = 0;

	if (!kin)
		return 0;
	p = &kin->pools[pool];
	if (atomic_exchange(&p->longer, false))
		return UINT64_MAX;
	for (unsigned i = 0; i < KIN_RANGES; i++) {
		uint64_t there = atomic_load(&p->posts[i]);

		if (there && bytes_to(end_of(there)) > end)
			end = bytes_to(end_of(there));
	}
	return end;
}

uint64_t
kin_asked(unsigned pool)
{
	return kin ? atomic_load(&kin->pools[pool].asked) : 0;
}

uint64_t
kin_range_end(const struct kin_range *r, uint64_t size)
{
	return r->len == UINT64_MAX ? size : r->off + r->len;
}

unsigned
kin_take(unsigned pool, struct kin_range ranges[KIN_RANGES])
{
	struct kin_pool *p;
	unsigned n = 0;

	if (!kin)
		return 0;
	p = &kin->pools[pool];
	for (unsigned i = 0; i < KIN_RANGES; i++) {
		uint64_t there = atomic_exchange(&p->posts[i], 0);
		uint64_t off = bytes_to(first_of(there)), end = bytes_to(end_of(there));

		if (there)
			ranges[n++] = (struct kin_range){.off = off,
							 .len = end == UINT64_MAX ? end : end - off,
							 .holes = there & HOLES};
	}
	return n;
}

void
kin_served(unsigned pool, uint64_t asked)
{
	if (!kin)
		return;
	atomic_store(&kin->pools[pool].served, asked);
	waiters_wake(&kin->pools[pool]);
}

/* ---- who opens ---- */

static bool
is_file(const struct kin_pool *p, dev_t dev, ino_t ino)
{
	return p->dev == dev && p->ino == ino;
}

static void
opening_begin(struct kin_pool *p, dev_t dev, ino_t ino)
{
	atomic_store(&p->opener, getpid());
	atomic_store(&p->opens_ino, 0);
	atomic_store(&p->opens_dev, dev);
	atomic_store(&p->opens_ino, ino);
}

static void
opening_end(struct kin_pool *p)
{
	atomic_store(&p->opens_ino, 0);
	(void)pthread_mutex_unlock(&p->opening);
}

bool
kin_open(unsigned pool, dev_t dev, ino_t ino)
{
	struct kin_range dropped[KIN_RANGES];
	struct kin_pool *p;
	bool died = false;
	uint64_t owner;

	if (!kin)
		return true;
	p = &kin->pools[pool];
	if (!mutex_take(&p->opening, &died))
		return false;
	opening_begin(p, dev, ino);
	owner = atomic_load(&p->owner);
	p->heir = died;
	if (owner == self_of(pool) || !is_alive(owner)) {
		p->heir = died || (owner && owner != self_of(pool));
		p->covered = kin_asked(pool);
		(void)kin_take(pool, dropped);
		return true;
	}
	/* What is another file's by now is another pool, which the replicas will say. */
	p->covered = atomic_load(&p->served);
	if (!is_file(p, dev, ino))
		return true;
	opening_end(p);
	return false;
}

void
kin_failed(unsigned pool)
{
	struct kin_pool *p;
	uint64_t owner;

	if (!kin)
		return;
	p = &kin->pools[pool];
	owner = atomic_load(&p->owner);
	/* It is waited for once. */
	if (!is_alive(owner))
		(void)atomic_compare_exchange_strong(&p->owner, &owner, 0);
	opening_end(p);
}

bool
kin_inherits(unsigned pool)
{
	return kin && kin->pools[pool].heir;
}

void
kin_opened(unsigned pool, dev_t dev, ino_t ino, void (*serve)(unsigned))
{
	struct kin_pool *p;

	if (!kin)
		return;
	p = &kin->pools[pool];
	serve_begin(pool, serve);
	atomic_store(&p->owner, 0);
	p->dev = dev;
	p->ino = ino;
	kin_served(pool, p->covered);
	atomic_store(&p->owner, self_of(pool));
	opening_end(p);
	/* Somebody may have asked before. */
	bell_ring(p);
}

void
kin_closed(unsigned pool)
{
	uint64_t me = self_of(pool);
	struct kin_pool *p;

	if (!kin)
		return;
	p = &kin->pools[pool];
	if (me && atomic_compare_exchange_strong(&p->owner, &me, 0))
		waiters_wake(p);
	(void)pthread_mutex_lock(&begin_lock);
	servers[pool].open = false;
	(void)pthread_mutex_unlock(&begin_lock);
	bell_ring(p);
}

bool
kin_serves(unsigned pool)
{
	uint64_t me = self_of(pool);

	return kin && me && atomic_load(&kin->pools[pool].owner) == me;
}

/* ---- the others ---- */

static bool
is_had(unsigned pool)
{
	uint64_t owner = kin ? atomic_load(&kin->pools[pool].owner) : 0;

	return owner && owner != self_of(pool);
}

bool
kin_has(unsigned pool, dev_t dev, ino_t ino)
{
	return is_had(pool) && is_file(&kin->pools[pool], dev, ino);
}

bool
kin_has_other(unsigned pool, dev_t dev, ino_t ino)
{
	return is_had(pool) && !is_file(&kin->pools[pool], dev, ino);
}

bool
kin_opens(unsigned pool, dev_t dev, ino_t ino)
{
	struct kin_pool *p = kin ? &kin->pools[pool] : NULL;

	return p && atomic_load(&p->opens_ino) == ino && atomic_load(&p->opens_dev) == dev;
}

uint64_t
kin_ask(unsigned pool)
{
	uint64_t asked;

	if (!kin)
		return 0;
	asked = atomic_fetch_add(&kin->pools[pool].asked, 1) + 1;
	bell_ring(&kin->pools[pool]);
	return asked;
}

bool
kin_may_serve(unsigned pool, uint64_t asked)
{
	struct kin_pool *p;

	if (!kin)
		return false;
	p = &kin->pools[pool];
	return atomic_load(&p->served) < asked &&
	       (is_alive(atomic_load(&p->owner)) || opener_stopped(p));
}

static bool
is_long(uint64_t since_ns)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec - since_ns >= STUCK_NS;
}

/* A signal handler may cut each wait short. */
enum kin_wait
kin_wait(unsigned pool, uint64_t asked, uint64_t since_ns)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	struct kin_pool *p;
	uint64_t owner;
	uint32_t told;

	if (!kin)
		return KIN_SERVED;
	p = &kin->pools[pool];
	told = atomic_load(&p->told);
	if (atomic_load(&p->served) >= asked)
		return KIN_SERVED;
	owner = atomic_load(&p->owner);
	if (owner && futex_wait(&p->told, told, &moment))
		return KIN_WAITS;
	if (!is_alive(owner))
		return is_long(since_ns) && opener_stopped(p) ? KIN_STUCK : KIN_NONE;
	return is_long(since_ns) && is_stopped(atomic_load(&kin->members[owner % MEMBERS].pid))
		       ? KIN_STUCK
		       : KIN_WAITS;
}
