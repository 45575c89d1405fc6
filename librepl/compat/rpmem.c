/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "damaged.h"
#include "descriptor.h"
#include "environment.h"
#include "le.h"
#include "repl_set.h"
#include "report.h"
#include "text.h"

#define PAGE 4096U

/* A drain of more may take longer than op-timeout allows, and a call be for all of a large pool. */
#define PIECE ((size_t)4 << 20)

struct rpmem_pool {
	struct repl *r;
	char *mem;      /* the caller's range */
	size_t size;    /* ... of it */
	size_t header;  /* bytes of it that are not replicated */
	unsigned lanes; /* granted */
	bool filling;   /* made by pmempool, as a copy of another replica */
	size_t filled;  /* ... to there, from the header on: closed it is whole if that is all */
	bool pmempool;  /* opened by it: read to be copied */
	bool copied;    /* ... as it was begun */
	_Atomic bool told_away;
	char target[TARGET_MAX];
	size_t undrained[REPL_LANES_MAX];
	_Atomic bool inside[REPL_LANES_MAX]; /* a thread is */
};

/* ---- opening ---- */

static void
attr_encode(const struct rpmem_pool_attr *a, uint8_t out[PMDK_ATTR_SIZE])
{
	memcpy(out, a->signature, 8);
	put_le32(out + 8, a->major);
	put_le32(out + 12, a->compat_features);
	put_le32(out + 16, a->incompat_features);
	put_le32(out + 20, a->ro_compat_features);
	memcpy(out + 24, a->poolset_uuid, 16);
	memcpy(out + 40, a->uuid, 16);
	memcpy(out + 56, a->next_uuid, 16);
	memcpy(out + 72, a->prev_uuid, 16);
	memcpy(out + 88, a->user_flags, 16);
}

static void
attr_decode(const uint8_t in[PMDK_ATTR_SIZE], struct rpmem_pool_attr *a)
{
	memcpy(a->signature, in, 8);
	a->major = get_le32(in + 8);
	a->compat_features = get_le32(in + 12);
	a->incompat_features = get_le32(in + 16);
	a->ro_compat_features = get_le32(in + 20);
	memcpy(a->poolset_uuid, in + 24, 16);
	memcpy(a->uuid, in + 40, 16);
	memcpy(a->next_uuid, in + 56, 16);
	memcpy(a->prev_uuid, in + 72, 16);
	memcpy(a->user_flags, in + 88, 16);
}

/* "TARGET/SET", which is librepl's form. */
static int
target_text(const char *target, const char *set, char out[TARGET_MAX])
{
	int n;

	if (!target || !*target || !set || !*set)
		return report_set(EINVAL, "no target or no pool set name is given");
	if (strchr(target, '/'))
		return report_set(
			EINVAL,
			"target '%.128s': the form is [user@]host[:port], the name of the "
			"pool set stands by itself",
			target);
	n = snprintf(out, TARGET_MAX, "%s/%s", target, set);
	if (n < 0 || n >= (int)TARGET_MAX)
		return report_set(EINVAL, "target '%.64s' and pool set name are too long", target);
	return 0;
}

static int
arguments_check(const void *addr, size_t size, const unsigned *nlanes)
{
	if (!addr || (uintptr_t)addr % PAGE)
		return report_set(EINVAL, "pool address %p is not a multiple of %u", addr, PAGE);
	if (size < RPMEM_MIN_POOL || size % PAGE)
		return report_set(EINVAL, "pool size %zu is not a multiple of %u from %zu on", size,
				  PAGE, RPMEM_MIN_POOL);
	if (!nlanes || *nlanes == 0)
		return report_set(EINVAL, "no lanes are asked for");
	return 0;
}

/*
 * What pmempool could not open in this thread, and did not find gone: it may have more than one
 * that it can open. For pmempool sync it is only one that has to be made anew.
 */
static _Thread_local char away[TARGET_MAX];

static void
note_away(const char *text, int rc)
{
	if (rc && rc != REPL_E_NOT_FOUND)
		(void)snprintf(away, sizeof(away), "%s", text);
	else if (strcmp(away, text) == 0)
		away[0] = '\0';
}

/*
 * The arguments are those of libpmemobj's own calls, so only the caller tells the two apart. A
 * caller that can't be told, for example behind a wrapper, is nobody: nothing is removed, and the
 * error says what is damaged.
 */
static bool
is_pmempool(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libpmempool.so");
}

static int
remove_damaged(const char *text)
{
	struct repl_config *cfg = environment_config(1, text);
	int rc;

	damaged_note(text, false);
	if (!cfg)
		return -1;
	rc = repl_set_remove(cfg, text, false, true, true);
	repl_config_free(cfg);
	if (rc)
		return report_repl(rc, "create");
	report_log(REPORT_WARNING, "%s: was damaged, is made anew", text);
	return 0;
}

/* What create and open share. */
struct start {
	bool create;
	bool pmempool; /* it is the caller */
	bool has;      /* in or out, as attr */
	uint8_t attr[PMDK_ATTR_SIZE];
};

/* What helps where an opening has failed. */
static const char *
start_next(const struct start *how, int rc)
{
	if (how->create || how->pmempool)
		return "";
	if (rc == REPL_E_CORRUPT)
		return "; next: put back what is missing or was changed; if that is lost, and not "
		       "of a local replica at the target: pmempool sync of the set file, which "
		       "makes the replica anew";
	return rc == REPL_E_NOT_FOUND ? "; next: pmempool sync of the set file, which makes it"
				      : "";
}

/*
 * PMDK has made the parts that were lost, and may end before it reads anything, as where a replica
 * can't be opened. They pass for whole as soon as they have headers; in a set of one header, at
 * once.
 */
static int
parts_begin(uint8_t *addr, size_t size)
{
	uint8_t *page;

	return repl_set_has_new(addr, size) ? descriptor_keep(addr + PMDK_HEADER_SIZE, &page) : 0;
}

/* A copy that goes on without its target is none. */
static int
start_open(struct start *how, struct repl_config *cfg, const char *text, void *addr, size_t size,
	   struct repl **r)
{
	int rc = 0;

	if (how->pmempool)
		rc = how->create ? repl_config_set(cfg, "on-loss", "fail")
				 : parts_begin(addr, size);
	if (rc)
		return rc;
	if (!how->create)
		return repl_set_open(cfg, text, addr, size, !how->pmempool, how->attr, &how->has,
				     r);
	return repl_set_create(cfg, text, addr, size, how->has ? how->attr : NULL, how->pmempool,
			       r);
}

static RPMEMpool *
pool_start(struct start *how, const char *target, const char *set, void *addr, size_t size,
	   unsigned *nlanes)
{
	char text[TARGET_MAX], warning[ENVIRONMENT_WARNING_MAX];
	struct repl_config *cfg;
	RPMEMpool *p;
	int rc;

	if (target_text(target, set, text) || arguments_check(addr, size, nlanes))
		return NULL;
	cfg = environment_config(*nlanes, text);
	p = calloc(1, sizeof(*p));
	if (!cfg || !p) {
		repl_config_free(cfg);
		free(p);
		return NULL;
	}
	rc = start_open(how, cfg, text, addr, size, &p->r);
	repl_config_free(cfg);
	environment_warning(warning);
	if (how->pmempool)
		note_away(text, rc);
	damaged_note(text, how->pmempool && rc == REPL_E_CORRUPT);
	if (rc) {
		char what[ENVIRONMENT_WARNING_MAX + 16];

		(void)snprintf(what, sizeof(what), "%s%s", how->create ? "create" : "open",
			       warning);
		(void)report_repl_next(rc, what, start_next(how, rc));
		free(p);
		return NULL;
	}
	p->mem = addr;
	p->size = size;
	p->header = repl_set_header(p->r);
	p->lanes = repl_lanes(p->r) < *nlanes ? repl_lanes(p->r) : *nlanes;
	p->pmempool = how->pmempool;
	(void)snprintf(p->target, sizeof(p->target), "%s", text);
	*nlanes = p->lanes;
	if (warning[0])
		report_log(REPORT_WARNING, "%s%s", text, warning);
	report_log(REPORT_INFO, "%s: %s with %u lanes", text, how->create ? "created" : "open",
		   p->lanes);
	return p;
}

/* Of a call by which PMDK goes on to something else. */
static int
parts_end(const RPMEMpool *p)
{
	int rc = p->pmempool ? descriptor_give() : 0;

	return rc ? report_repl(rc, p->target) : 0;
}

/* p, or NULL if it is not to be used after all, for librepl's last error. */
static RPMEMpool *
pool_started(RPMEMpool *p, int rc)
{
	int errnum;

	if (!rc)
		return p;
	(void)report_repl(rc, p->target);
	errnum = errno;
	(void)repl_close(p->r);
	free(p);
	errno = errnum;
	return NULL;
}

RPMEMpool *
rpmem_create(const char *target, const char *pool_set_name, void *pool_addr, size_t pool_size,
	     unsigned *nlanes, const struct rpmem_pool_attr *create_attr)
{
	static const uint8_t zero[PMDK_ATTR_SIZE];
	struct start how = {.create = true, .pmempool = is_pmempool(__builtin_return_address(0))};
	char text[TARGET_MAX];
	RPMEMpool *p;

	if (create_attr)
		attr_encode(create_attr, how.attr);
	how.has = memcmp(how.attr, zero, sizeof(zero)) != 0;
	if (how.pmempool && target_text(target, pool_set_name, text) == 0 && damaged_is(text) &&
	    remove_damaged(text))
		return NULL;
	p = pool_start(&how, target, pool_set_name, pool_addr, pool_size, nlanes);
	if (!p || !how.pmempool)
		return p;
	p->filling = true;
	p->filled = p->header;
	return pool_started(p, repl_set_fill(p->r));
}

RPMEMpool *
rpmem_open(const char *target, const char *pool_set_name, void *pool_addr, size_t pool_size,
	   unsigned *nlanes, struct rpmem_pool_attr *open_attr)
{
	struct start how = {.pmempool = is_pmempool(__builtin_return_address(0))};
	RPMEMpool *p = pool_start(&how, target, pool_set_name, pool_addr, pool_size, nlanes);

	if (!p && how.pmempool)
		descriptor_drop();
	if (p && !how.pmempool)
		p = pool_started(p, repl_set_agrees(p->r));
	if (p && !how.pmempool && repl_set_is_demoted(p->r))
		report_log(REPORT_WARNING,
			   "%s: was called up to date by somebody else than its last program, as "
			   "by replctl demote, or that is not known, as at a target of an earlier "
			   "version: what it has and the pool lacks is overwritten",
			   p->target);
	if (p && open_attr)
		attr_decode(how.attr, open_attr);
	return p;
}

int
rpmem_set_attr(RPMEMpool *rpp, const struct rpmem_pool_attr *attr)
{
	uint8_t bytes[PMDK_ATTR_SIZE];
	int rc;

	if (!rpp || !attr)
		return report_set(EINVAL, "no pool or no attributes are given");
	if (parts_end(rpp))
		return -1;
	attr_encode(attr, bytes);
	rc = repl_set_attr(rpp->r, bytes);
	return rc ? report_repl(rc, rpp->target) : 0;
}

/* The replica as a command takes it. */
static const char *
target_word(const RPMEMpool *p, char word[TARGET_MAX])
{
	if (!text_quote(p->target, word, TARGET_MAX))
		(void)strcpy(word, "TARGET/POOL");
	return word;
}

/* The next program does not open the pool with it: it may have what the pool lacks. */
static bool
is_kept(const RPMEMpool *p, int reason)
{
	return reason == REPL_REASON_PROMOTED ||
	       (reason == REPL_REASON_DIVERGED && !repl_set_is_single(p->r));
}

/* What the next program does with the replica. */
static const char *
loss_fate(const RPMEMpool *p, int reason)
{
	if (is_kept(p, reason))
		return "what they made durable is here alone";
	switch (reason) {
	case REPL_REASON_DIVERGED:
	case REPL_REASON_BEHIND:
	case REPL_REASON_UNRELATED:
		return "the next program that opens the pool overwrites what the replica has: what "
		       "counts there has to be copied away at the target before, or is kept by "
		       "replctl promote";
	case REPL_REASON_SIZE:
		return "the next program that opens the pool leaves it as it is";
	case REPL_REASON_POOL_MISSING:
	case REPL_REASON_DAMAGED:
		return "no program opens the pool before the replica is there again, as pmempool "
		       "sync of the set file makes it anew";
	default:
		return "the next program that opens the pool brings it up to date";
	}
}

/* By the policy nobody else has been told. */
static void
log_loss(const RPMEMpool *p)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	char word[TARGET_MAX], remove[TARGET_MAX + 128] = "";

	if (repl_stat(p->r, 0, &st) || st.replication == REPL_REPL_ESTABLISHED)
		return;
	(void)target_word(p, word);
	if (is_kept(p, st.reason_code))
		(void)snprintf(remove, sizeof(remove),
			       "; where nothing in it counts: replctl remove --force %s, then "
			       "pmempool sync of the set file",
			       word);
	report_log(REPORT_WARNING,
		   "%s: closed without it, %llu drains went without it: %s; %s; next: replctl why "
		   "%s%s",
		   p->target, (unsigned long long)st.degraded_count, st.reason,
		   loss_fate(p, st.reason_code), word, remove);
}

/* To go on without a replica is silent by itself. At the first call that does, and when it is back.
 */
static void
tell_loss(RPMEMpool *p)
{
	bool lost = repl_set_is_away(p->r);
	struct repl_stat st = {.struct_size = sizeof(st)};
	char word[TARGET_MAX];
	int saved = errno;

	if (atomic_load_explicit(&p->told_away, memory_order_relaxed) == lost ||
	    atomic_exchange(&p->told_away, lost) == lost)
		return;
	if (!lost)
		report_log(REPORT_WARNING, "%s: the replica is back, and has everything",
			   p->target);
	else if (!repl_stat(p->r, 0, &st))
		report_log(REPORT_WARNING, "%s: REPLICA LOST: %s; next: replctl why %s", p->target,
			   st.reason, target_word(p, word));
	errno = saved;
}

/* Of a call that writes. */
static int
write_done(RPMEMpool *p, int rc)
{
	int ret = rc ? report_repl(rc, p->target) : 0;

	tell_loss(p);
	return ret;
}

/* PMDK closes it as well when it could not copy all, or had no turn to copy anything. */
static int
fill_end(RPMEMpool *p)
{
	int rc;

	if (p->filled < p->size) {
		repl_set_unfilled(p->r);
		return report_set(EIO,
				  "%s: the copy was not finished, %zu of %zu bytes: it is none to "
				  "restore from",
				  p->target, p->filled - p->header, p->size - p->header);
	}
	rc = repl_set_filled(p->r);
	return rc ? report_repl(rc, "the copy was not finished") : 0;
}

int
rpmem_close(RPMEMpool *rpp)
{
	int rc, filled = 0;

	if (!rpp)
		return report_set(EINVAL, "no pool is given");
	log_loss(rpp);
	report_log(REPORT_INFO, "%s: closed", rpp->target);
	if (rpp->filling)
		filled = fill_end(rpp);
	rc = repl_close(rpp->r);
	if (rpp->pmempool) {
		away[0] = '\0';
		descriptor_drop();
	}
	free(rpp);
	if (rc)
		(void)report_repl(rc, "close");
	return rc || filled ? -1 : 0;
}

int
rpmem_remove(const char *target, const char *pool_set, int flags)
{
	char text[TARGET_MAX], warning[ENVIRONMENT_WARNING_MAX], what[ENVIRONMENT_WARNING_MAX + 16];
	struct repl_config *cfg;
	int rc;

	if (flags & ~(RPMEM_REMOVE_FORCE | RPMEM_REMOVE_POOL_SET))
		return report_set(EINVAL, "unknown flags 0x%x", (unsigned)flags);
	if (target_text(target, pool_set, text))
		return -1;
	cfg = environment_config(1, text);
	if (!cfg)
		return -1;
	rc = repl_set_remove(cfg, text, flags & RPMEM_REMOVE_POOL_SET, flags & RPMEM_REMOVE_FORCE,
			     false);
	repl_config_free(cfg);
	environment_warning(warning);
	(void)snprintf(what, sizeof(what), "remove%s", warning);
	if (rc)
		return report_repl(rc, what);
	report_log(REPORT_INFO, "%s: removed", text);
	return 0;
}

/* ---- persistence ---- */

static int
range_check(const RPMEMpool *p, size_t off, size_t len, unsigned lane)
{
	if (!p)
		return report_set(EINVAL, "no pool is given");
	if (lane >= p->lanes)
		return report_set(EINVAL, "lane %u of %u", lane, p->lanes);
	if (off < p->header)
		return report_set(EINVAL,
				  "offset %zu: the first %zu bytes are the pool's header, which is "
				  "not replicated",
				  off, p->header);
	if (off > p->size || len > p->size - off)
		return report_set(EINVAL, "%zu bytes at %zu are outside the pool of %zu", len, off,
				  p->size);
	return 0;
}

static int
write_check(const RPMEMpool *p, size_t off, size_t len, unsigned lane, unsigned flags)
{
	int rc;

	if (flags & ~RPMEM_PERSIST_RELAXED)
		return report_set(EINVAL, "unknown flags 0x%x", flags);
	if (range_check(p, off, len, lane) || parts_end(p))
		return -1;
	rc = repl_set_begin(p->r);
	return rc ? report_repl(rc, p->target) : 0;
}

/*
 * What a call does on a lane, made again while that is in use: by the library, as for a replica
 * that comes back, or what it is for is on its way on another lane, for longer than op-timeout.
 * Nothing is wrong then, and libpmemobj would end the program. A thread that finds another one in
 * its lane is told.
 */
#define LANE_CALL(p, lane, rc, call)                                                               \
	do {                                                                                       \
		bool alone = !atomic_exchange(&(p)->inside[lane], true);                           \
                                                                                                   \
		do                                                                                 \
			(rc) = (call);                                                             \
		while ((rc) == REPL_E_BUSY && alone);                                              \
		if (alone)                                                                         \
			atomic_store(&(p)->inside[lane], false);                                   \
	} while (0)

static int
lane_drain(RPMEMpool *p, unsigned lane)
{
	int rc;

	LANE_CALL(p, lane, rc, repl_drain(p->r, lane));
	p->undrained[lane] = 0;
	return rc;
}

static int
pool_persist(RPMEMpool *p, size_t off, size_t len, unsigned lane, unsigned flags)
{
	bool fills = p->filling && off <= p->filled && len > p->filled - off;
	size_t end = off + len;
	/* What the copy has PMDK syncs nowhere, and has unmapped when the replica is closed. */
	int rc = p->filling ? repl_set_settle(p->mem + off, len) : 0;

	off -= p->header;
	/* Smaller ones are one store on the target as they are. */
	if (!rc && !(flags & RPMEM_PERSIST_RELAXED) && len == 8 && off % 8 == 0)
		LANE_CALL(p, lane, rc, repl_persist_atomic8(p->r, lane, off));
	else
		for (size_t n; !rc && len > 0; off += n, len -= n) {
			n = len < PIECE ? len : PIECE;
			LANE_CALL(p, lane, rc, repl_persist(p->r, lane, off, n));
		}
	if (!rc && fills)
		p->filled = end;
	return write_done(p, rc);
}

int
rpmem_flush(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane, unsigned flags)
{
	int rc = 0;

	if (write_check(rpp, offset, length, lane, flags))
		return -1;
	/* Atomic, or too much for one drain: done at once. */
	if ((!(flags & RPMEM_FLUSH_RELAXED) && length == 8) || length > PIECE)
		return pool_persist(rpp, offset, length, lane, flags);
	if (length > PIECE - rpp->undrained[lane])
		rc = lane_drain(rpp, lane);
	if (!rc)
		LANE_CALL(rpp, lane, rc, repl_flush(rpp->r, lane, offset - rpp->header, length));
	rpp->undrained[lane] += length;
	return write_done(rpp, rc);
}

int
rpmem_drain(RPMEMpool *rpp, unsigned lane, unsigned flags)
{
	if (flags)
		return report_set(EINVAL, "unknown flags 0x%x", flags);
	if (!rpp || lane >= rpp->lanes)
		return report_set(EINVAL, "lane %u of %u", lane, rpp ? rpp->lanes : 0);
	return write_done(rpp, lane_drain(rpp, lane));
}

int
rpmem_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane, unsigned flags)
{
	if (write_check(rpp, offset, length, lane, flags))
		return -1;
	return pool_persist(rpp, offset, length, lane, flags);
}

/* What is durable on the target is so in its own sense, whichever function asked for it. */
int
rpmem_deep_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane)
{
	return rpmem_persist(rpp, offset, length, lane, 0);
}

/*
 * pmempool reads to copy it to other replicas. Before that, and before it changes anything, it
 * reads the pool's descriptor of each, and takes the first one in the set's order.
 */
static bool
is_choosing(const RPMEMpool *p, size_t offset, size_t length)
{
	return offset == p->header && length <= PAGE;
}

/* What a program wrote while the replica was away is in no copy of it. */
static void
tell_unclosed(RPMEMpool *p, size_t offset, size_t length)
{
	if (p->copied || is_choosing(p, offset, length) || repl_set_closed(p->r))
		return;
	p->copied = true;
	report_log(REPORT_WARNING,
		   "%s: its last writer ended without closing it, or it was promoted since; all "
		   "that this replica acknowledged "
		   "is copied from it, and what was written while it was lost is not in it: where "
		   "the set has another one replctl newest, with all of them, tells which has more",
		   p->target);
}

static int
source_check(RPMEMpool *p, size_t offset, size_t length)
{
	int rc = repl_set_source(p->r, is_choosing(p, offset, length));

	if (rc)
		return report_repl(rc, p->target);
	if (!away[0] || repl_set_closed(p->r)) {
		tell_unclosed(p, offset, length);
		return 0;
	}
	return report_set(EPERM,
			  "%s: was not closed by its last program, and %s, which can't be opened, "
			  "may have more; nothing was changed; next: the same when that can be "
			  "opened; to give it up, replctl remove --force of it or, where its "
			  "machine is gone, an empty target in its line of the pool set file",
			  p->target, away);
}

/* libpmemobj reads at open what it has itself: a copy that was not finished is finished first. */
static int
program_check(const RPMEMpool *p)
{
	int rc = repl_set_readable(p->r);

	if (rc)
		rc = repl_set_begin(p->r);
	if (!rc)
		rc = repl_set_readable(p->r);
	return rc ? report_repl(rc, p->target) : 0;
}

static int
pool_read(RPMEMpool *p, uint8_t *at, size_t off, size_t len, unsigned lane)
{
	int rc = 0;

	off -= p->header;
	for (size_t n; !rc && len > 0; at += n, off += n, len -= n) {
		n = len < PIECE ? len : PIECE;
		LANE_CALL(p, lane, rc, repl_read(p->r, lane, 0, at, off, n));
	}
	return rc ? report_repl(rc, p->target) : 0;
}

/* Into a local part, whose header PMDK has written before. It syncs nothing of what it reads. */
static int
part_copy(RPMEMpool *p, uint8_t *at, size_t off, size_t len, unsigned lane)
{
	size_t own = off == p->header ? DESCRIPTOR_SIZE : 0;
	uint8_t *page;
	int rc = descriptor_keep(at - (off - p->header), &page);

	if (rc)
		return report_repl(rc, p->target);
	if (pool_read(p, page, off, own, lane) ||
	    pool_read(p, at + own, off + own, len - own, lane))
		return -1;
	rc = repl_set_settle(at + own, len - own);
	return rc ? report_repl(rc, p->target) : 0;
}

int
rpmem_read(RPMEMpool *rpp, void *buff, size_t offset, size_t length, unsigned lane)
{
	if (range_check(rpp, offset, length, lane))
		return -1;
	if (!buff && length)
		return report_set(EINVAL, "no place to read to");
	if (rpp->pmempool ? source_check(rpp, offset, length) : program_check(rpp))
		return -1;
	return rpp->pmempool && !is_choosing(rpp, offset, length)
		       ? part_copy(rpp, buff, offset, length, lane)
		       : pool_read(rpp, buff, offset, length, lane);
}

/* ---- the library ---- */

const char *
rpmem_check_version(unsigned major_required, unsigned minor_required)
{
	if (major_required == RPMEM_MAJOR_VERSION && minor_required <= RPMEM_MINOR_VERSION)
		return NULL;
	(void)report_set(EINVAL, "librpmem version %u.%u is required, this is %d.%d",
			 major_required, minor_required, RPMEM_MAJOR_VERSION, RPMEM_MINOR_VERSION);
	return report_text();
}

const char *
rpmem_errormsg(void)
{
	return report_text();
}
