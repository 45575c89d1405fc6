/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environment.h"
#include "le.h"
#include "repl_set.h"
#include "report.h"

#define PAGE       4096U
#define TARGET_MAX 768U

/* A drain of more may take longer than op-timeout allows, and a call be for all of a large pool. */
#define PIECE ((size_t)4 << 20)

struct rpmem_pool {
	struct repl *r;
	size_t size;     /* of the caller's range */
	size_t header;   /* bytes of it that are not replicated */
	unsigned lanes;  /* granted */
	bool filling;    /* made by pmempool, as a copy of another replica: closed it is whole */
	char target[64]; /* for texts */
	size_t undrained[REPL_LANES_MAX];
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
 * pmempool sync, of whose replicas a whole one is there, makes a damaged one anew. It
 * removes that first by running rpmemd on the target, which is not there: so what
 * this thread has found damaged is removed here, for libpmempool and nobody else. The
 * arguments are those of libpmemobj's own calls, so only the caller tells the two apart. A caller
 * that can't be told, for example behind a wrapper, is nobody: nothing is removed, and the error
 * says what is damaged.
 */
static _Thread_local char damaged[TARGET_MAX];

static bool
is_pmempool(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libpmempool.so");
}

static void
remove_damaged(const char *text)
{
	struct repl_config *cfg = environment_config(1, text);
	int rc = cfg ? repl_set_remove(cfg, text, false, true) : -1;

	repl_config_free(cfg);
	report_log(REPORT_WARNING, "%s: was damaged, is made anew%s", text,
		   rc ? ", but could not be removed" : "");
	damaged[0] = '\0';
}

/* What create and open share; attr in or out, *has likewise. */
static RPMEMpool *
pool_start(const char *target, const char *set, void *addr, size_t size, unsigned *nlanes,
	   bool create, uint8_t attr[PMDK_ATTR_SIZE], bool *has)
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
	if (create)
		rc = repl_set_create(cfg, text, addr, size, *has ? attr : NULL, &p->r);
	else
		rc = repl_set_open(cfg, text, addr, size, attr, has, &p->r);
	repl_config_free(cfg);
	environment_warning(warning);
	if (rc) {
		char what[ENVIRONMENT_WARNING_MAX + 16];

		(void)snprintf(what, sizeof(what), "%s%s", create ? "create" : "open", warning);
		(void)report_repl(rc, what);
		if (rc == REPL_E_CORRUPT)
			(void)snprintf(damaged, sizeof(damaged), "%s", text);
		free(p);
		return NULL;
	}
	p->size = size;
	p->header = repl_set_header(p->r);
	p->lanes = repl_lanes(p->r) < *nlanes ? repl_lanes(p->r) : *nlanes;
	(void)snprintf(p->target, sizeof(p->target), "%.63s", text);
	*nlanes = p->lanes;
	if (warning[0])
		report_log(REPORT_WARNING, "%s%s", text, warning);
	report_log(REPORT_INFO, "%s: %s with %u lanes", text, create ? "created" : "open",
		   p->lanes);
	return p;
}

RPMEMpool *
rpmem_create(const char *target, const char *pool_set_name, void *pool_addr, size_t pool_size,
	     unsigned *nlanes, const struct rpmem_pool_attr *create_attr)
{
	static const uint8_t zero[PMDK_ATTR_SIZE];
	uint8_t attr[PMDK_ATTR_SIZE] = {0};
	bool fills = is_pmempool(__builtin_return_address(0)), has;
	char text[TARGET_MAX];
	RPMEMpool *p;

	if (create_attr)
		attr_encode(create_attr, attr);
	has = memcmp(attr, zero, sizeof(zero)) != 0;
	if (damaged[0] && fills && target_text(target, pool_set_name, text) == 0 &&
	    strcmp(text, damaged) == 0)
		remove_damaged(text);
	p = pool_start(target, pool_set_name, pool_addr, pool_size, nlanes, true, attr, &has);
	if (p && fills && repl_set_fill(p->r) == 0)
		p->filling = true;
	return p;
}

RPMEMpool *
rpmem_open(const char *target, const char *pool_set_name, void *pool_addr, size_t pool_size,
	   unsigned *nlanes, struct rpmem_pool_attr *open_attr)
{
	uint8_t attr[PMDK_ATTR_SIZE] = {0};
	bool has = false;
	RPMEMpool *p =
		pool_start(target, pool_set_name, pool_addr, pool_size, nlanes, false, attr, &has);

	if (p && open_attr)
		attr_decode(attr, open_attr);
	return p;
}

int
rpmem_set_attr(RPMEMpool *rpp, const struct rpmem_pool_attr *attr)
{
	uint8_t bytes[PMDK_ATTR_SIZE];
	int rc;

	if (!rpp || !attr)
		return report_set(EINVAL, "no pool or no attributes are given");
	attr_encode(attr, bytes);
	rc = repl_set_attr(rpp->r, bytes);
	return rc ? report_repl(rc, rpp->target) : 0;
}

/* By the policy nobody else has been told. */
static void
log_loss(const RPMEMpool *p)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	if (repl_stat(p->r, 0, &st) == 0 && st.replication == REPL_REPL_DEGRADED)
		report_log(REPORT_WARNING, "%s: lost, %llu drains went without it: %s", p->target,
			   (unsigned long long)st.degraded_count, st.reason);
}

int
rpmem_close(RPMEMpool *rpp)
{
	int rc;

	if (!rpp)
		return report_set(EINVAL, "no pool is given");
	log_loss(rpp);
	report_log(REPORT_INFO, "%s: closed", rpp->target);
	if (rpp->filling && repl_set_filled(rpp->r))
		report_log(REPORT_WARNING, "%s: is not known to be whole", rpp->target);
	rc = repl_close(rpp->r);
	free(rpp);
	return rc ? report_repl(rc, "close") : 0;
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
	rc = repl_set_remove(cfg, text, flags & RPMEM_REMOVE_POOL_SET, flags & RPMEM_REMOVE_FORCE);
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
	if (range_check(p, off, len, lane))
		return -1;
	rc = repl_set_begin(p->r);
	return rc ? report_repl(rc, p->target) : 0;
}

static int
pool_persist(RPMEMpool *p, size_t off, size_t len, unsigned lane, unsigned flags)
{
	int rc = 0;

	off -= p->header;
	/* Smaller ones are one store on the target as they are. */
	if (!(flags & RPMEM_PERSIST_RELAXED) && len == 8 && off % 8 == 0)
		rc = repl_persist_atomic8(p->r, lane, off);
	else
		for (size_t n; !rc && len > 0; off += n, len -= n) {
			n = len < PIECE ? len : PIECE;
			rc = repl_persist(p->r, lane, off, n);
		}
	return rc ? report_repl(rc, p->target) : 0;
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
	if (length > PIECE - rpp->undrained[lane]) {
		rc = repl_drain(rpp->r, lane);
		rpp->undrained[lane] = 0;
	}
	if (!rc)
		rc = repl_flush(rpp->r, lane, offset - rpp->header, length);
	rpp->undrained[lane] += length;
	return rc ? report_repl(rc, rpp->target) : 0;
}

int
rpmem_drain(RPMEMpool *rpp, unsigned lane, unsigned flags)
{
	int rc;

	if (flags)
		return report_set(EINVAL, "unknown flags 0x%x", flags);
	if (!rpp || lane >= rpp->lanes)
		return report_set(EINVAL, "lane %u of %u", lane, rpp ? rpp->lanes : 0);
	rc = repl_drain(rpp->r, lane);
	rpp->undrained[lane] = 0;
	return rc ? report_repl(rc, rpp->target) : 0;
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

int
rpmem_read(RPMEMpool *rpp, void *buff, size_t offset, size_t length, unsigned lane)
{
	uint8_t *at = buff;
	int rc;

	if (range_check(rpp, offset, length, lane))
		return -1;
	if (!buff && length)
		return report_set(EINVAL, "no place to read to");
	rc = repl_set_readable(rpp->r);
	/* libpmemobj reads at open what it has itself; only pmempool reads to copy it. */
	if (rc && !is_pmempool(__builtin_return_address(0))) {
		rc = repl_set_begin(rpp->r);
		if (!rc)
			rc = repl_set_readable(rpp->r);
	}
	offset -= rpp->header;
	for (size_t n; !rc && length > 0; at += n, offset += n, length -= n) {
		n = length < PIECE ? length : PIECE;
		rc = repl_read(rpp->r, lane, 0, at, offset, n);
	}
	return rc ? report_repl(rc, rpp->target) : 0;
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
