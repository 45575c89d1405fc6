/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "forks.h"
#include "ownwait.h"
#include "repl_impl.h"
#include "repl_lanes.h"

struct siblings {
	/* Guarded by all.lock. */
	struct siblings *next;
	unsigned forks; /* forks_count() of the process whose they are */
	unsigned count;
	uint8_t uuid[PMDK_UUID_SIZE]; /* zero: of one that has none */
	pthread_mutex_t lock;         /* guards the rest, held across calls */
	struct repl *first;           /* the one that was opened last */
	bool begun;                   /* there is a generation in common */
	struct generation chain;
};

static struct {
	pthread_mutex_t lock; /* never held across calls, but for fork(2) */
	sigset_t mask;        /* of the thread that has it */
	struct siblings *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* By no signal handler's thread that has it, which may fork. */
static void
all_lock(void)
{
	sigset_t every, mask;

	(void)sigfillset(&every);
	(void)pthread_sigmask(SIG_SETMASK, &every, &mask);
	pthread_mutex_lock(&all.lock);
	all.mask = mask;
}

static void
all_unlock(void)
{
	const sigset_t mask = all.mask;

	pthread_mutex_unlock(&all.lock);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void
all_begin(void)
{
	(void)pthread_atfork(all_lock, all_unlock, all_unlock);
}

/* ---- who they are ---- */

static struct siblings *
all_find(const uint8_t uuid[PMDK_UUID_SIZE])
{
	static const uint8_t none[PMDK_UUID_SIZE];
	struct siblings *s = all.first;

	if (memcmp(uuid, none, PMDK_UUID_SIZE) == 0)
		return NULL;
	while (s && (s->forks != forks_count() || memcmp(s->uuid, uuid, PMDK_UUID_SIZE) != 0))
		s = s->next;
	return s;
}

static struct siblings *
siblings_new(const uint8_t uuid[PMDK_UUID_SIZE])
{
	struct siblings *s = calloc(1, sizeof(*s));

	if (s && pthread_mutex_init(&s->lock, NULL)) {
		free(s);
		return NULL;
	}
	if (s) {
		memcpy(s->uuid, uuid, PMDK_UUID_SIZE);
		s->forks = forks_count();
		s->next = all.first;
		all.first = s;
	}
	return s;
}

int
siblings_join(struct repl *r, struct err *e)
{
	uint8_t uuid[PMDK_UUID_SIZE] = {0};
	struct siblings *s;

	if (r->set->has_attr)
		memcpy(uuid, r->set->attr + PMDK_ATTR_SET_UUID, PMDK_UUID_SIZE);
	(void)pthread_once(&once, all_begin);
	all_lock();
	s = all_find(uuid);
	if (!s)
		s = siblings_new(uuid);
	if (s)
		s->count++;
	all_unlock();
	if (!s)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	pthread_mutex_lock(&s->lock);
	for (struct repl *m = s->first; m; m = m->set->next)
		atomic_store(&m->set->beside, true);
	atomic_store(&r->set->beside, s->first != NULL);
	r->set->next = s->first;
	s->first = r;
	pthread_mutex_unlock(&s->lock);
	atomic_store(&r->set->siblings, s);
	return 0;
}

static void
siblings_free(struct siblings *s)
{
	struct siblings **at = &all.first;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

void
siblings_leave(struct repl *r)
{
	struct siblings *s = siblings_lock(r);
	struct repl **at;

	if (!s)
		return;
	for (at = &s->first; *at != r;)
		at = &(*at)->set->next;
	*at = r->set->next;
	atomic_store(&r->set->siblings, NULL);
	siblings_unlock(s);
	all_lock();
	if (--s->count == 0)
		siblings_free(s);
	all_unlock();
}

struct siblings *
siblings_lock(struct repl *r)
{
	struct siblings *s = r->set ? atomic_load(&r->set->siblings) : NULL;

	return s && ownwait_lock(&s->lock, &r->abandoned) ? s : NULL;
}

void
siblings_unlock(struct siblings *s)
{
	if (s)
		pthread_mutex_unlock(&s->lock);
}

/* ---- what they have in common ---- */

/* That none of them is known to be ahead of. */
static const struct sidecar *
siblings_newest(const struct siblings *s, const struct repl *r)
{
	const struct sidecar *newest = &r->set->found;

	for (const struct repl *m = s->first; m; m = m->set->next)
		if (gen_compare(&m->set->found.generation, &newest->generation) == GEN_AHEAD)
			newest = &m->set->found;
	return newest;
}

/* One that is whole is of that generation. */
static bool
siblings_whole(const struct siblings *s, const struct sidecar *newest)
{
	for (const struct repl *m = s->first; m; m = m->set->next)
		if (setsource_is_whole(&m->set->found) &&
		    !gen_id_is_nil(&newest->generation.current) &&
		    gen_compare(&m->set->found.generation, &newest->generation) == GEN_EQUAL)
			return true;
	return false;
}

/* filled: nobody goes on, so what is whole needs no new one. */
static int
siblings_begin(struct siblings *s, const struct repl *r, bool filled, struct err *e)
{
	const struct sidecar *newest = siblings_newest(s, r);
	struct gen_id id;

	if (s->begun)
		return 0;
	if (local_new_id(&id, e))
		return e->code;
	s->chain = newest->generation;
	if (!filled || !siblings_whole(s, newest))
		gen_advance(&s->chain, &id);
	s->begun = true;
	return 0;
}

int
siblings_generation(struct repl *r, struct generation *chain, struct err *e)
{
	struct siblings *s = siblings_lock(r);
	int rc;

	if (!s)
		return handle_abandoned(e);
	rc = siblings_begin(s, r, false, e);
	*chain = s->chain;
	siblings_unlock(s);
	return rc;
}

static bool
is_told(const struct repl *m)
{
	return m->set->told && atomic_load(&m->replicas[0].lost) == 0;
}

/*
 * The loss of another one waits until it is recorded, and a call of that one for the loss: the last
 * quarter of its time is for that.
 */
static uint64_t
deadline_record(const struct siblings *s, const struct repl *r, uint64_t deadline_ns)
{
	uint64_t early_ns = repl_loss_deadline(r);

	for (const struct repl *m = s->first; m && early_ns < deadline_ns; m = m->set->next)
		if (m != r && is_told(m))
			return early_ns;
	return deadline_ns;
}

int
siblings_record(struct repl *r, bool filled, uint64_t deadline_ns, struct err *e)
{
	struct siblings *s = siblings_lock(r);
	int rc;

	if (!s)
		return handle_abandoned(e);
	rc = siblings_begin(s, r, filled, e);
	if (!rc) {
		deadline_ns = deadline_record(s, r, deadline_ns);
		rc = repl_tell(r, &s->chain, deadline_ns, e);
		r->set->told = rc == 0;
		if (rc)
			siblings_advance(s, NULL, deadline_ns);
	}
	siblings_unlock(s);
	return rc;
}

/* Of those that speak against it one that can be read counts most. */
static enum setsource
member_judge(const struct siblings *s, const struct repl *r, const struct repl **other)
{
	enum setsource verdict = SETSOURCE_WHOLE;

	for (const struct repl *m = s->first; m; m = m->set->next) {
		enum setsource v = SETSOURCE_WHOLE;

		if (m != r)
			v = setsource_judge(&r->set->found, &m->set->found);
		if (v == SETSOURCE_WHOLE ||
		    (verdict != SETSOURCE_WHOLE && atomic_load(&m->set->unfinished)))
			continue;
		verdict = v;
		*other = m;
		if (!atomic_load(&m->set->unfinished))
			break;
	}
	return verdict;
}

enum setsource
siblings_judge(struct repl *r, const struct repl **other)
{
	struct siblings *s = siblings_lock(r);
	enum setsource verdict = s ? member_judge(s, r, other) : SETSOURCE_WHOLE;

	siblings_unlock(s);
	return verdict;
}

bool
siblings_earlier_whole(struct repl *r)
{
	struct siblings *s = siblings_lock(r);
	const struct repl *m = s ? r->set->next : NULL, *other;

	while (m &&
	       (atomic_load(&m->set->unfinished) || member_judge(s, m, &other) != SETSOURCE_WHOLE))
		m = m->set->next;
	siblings_unlock(s);
	return m != NULL;
}

bool
siblings_readable(struct repl *r)
{
	struct siblings *s = siblings_lock(r);
	const struct repl *m = s ? s->first : NULL;

	while (m && (m == r || atomic_load(&m->set->unfinished)))
		m = m->set->next;
	siblings_unlock(s);
	return m != NULL;
}

/* ---- when one is lost ---- */

/*
 * Of m, which is to be told now, and those behind it. One that hangs must leave the others time for
 * theirs. What has gone by before, as where the one that is lost has taken all of it, says nothing
 * of those that are well.
 */
static uint64_t
deadline_share(const struct repl *m, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_now_ns(), end_ns = deadline_ns;
	uint64_t least_ns = clock_deadline(m->cfg->op_timeout_ms / REPL_TELL_SHARE);
	unsigned count = 1;

	while ((m = m->set->next))
		count += is_told(m);
	if (now_ns < deadline_ns)
		end_ns = now_ns + (deadline_ns - now_ns) / count;
	return end_ns > least_ns ? end_ns : least_ns;
}

static unsigned
siblings_bases(const struct siblings *s, const struct repl *locked, struct gen_id *keep,
	       unsigned max)
{
	unsigned n = 0;

	for (struct repl *m = s->first; m && n + REPL_BASES_MAX <= max; m = m->set->next) {
		if (m != locked && !ownwait_lock(&m->lock, &m->abandoned))
			continue;
		n += repl_bases_kept(m, keep + n);
		if (m != locked)
			pthread_mutex_unlock(&m->lock);
	}
	return n;
}

void
siblings_advance(struct siblings *s, const struct repl *locked, uint64_t deadline_ns)
{
	struct gen_id keep[2 * REPL_BASES_MAX], id;
	bool any = s->begun;

	/* One that is lost over it may have the new generation: the others need another. */
	while (any && local_new_id(&id, NULL) == 0) {
		unsigned count = siblings_bases(s, locked, keep, 2 * REPL_BASES_MAX);

		any = false;
		gen_advance_keeping(&s->chain, &id, keep, count);
		for (struct repl *m = s->first; m; m = m->set->next)
			if (is_told(m) &&
			    repl_tell(m, &s->chain, deadline_share(m, deadline_ns), NULL))
				any = true;
	}
}

void
siblings_rejoin(struct siblings *s, struct repl *r)
{
	r->generation = s->chain;
	r->set->told = true;
}

/* ---- one after the other ---- */

bool
siblings_direct_begin(struct repl *r, bool opened)
{
	struct siblings *s = siblings_lock(r);
	bool live = false, others = false, may;

	for (struct repl *m = s ? s->first : NULL; m; m = m->set->next) {
		live = live || (m != r && is_told(m));
		others = others || (m != r && m->set->direct);
	}
	may = !others || (opened && live);
	r->set->direct = r->set->direct || may;
	siblings_unlock(s);
	return may;
}

void
siblings_direct_note(struct repl *r)
{
	struct siblings *s = siblings_lock(r);

	r->set->direct = true;
	siblings_unlock(s);
}

void
siblings_direct_end(struct repl *r)
{
	struct siblings *s = siblings_lock(r);

	r->set->direct = false;
	siblings_unlock(s);
}
