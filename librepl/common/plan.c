/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules follow the taxonomy of remote persistence (Kashyap et al.,
 * "Correct, Fast Remote Persistence", Table 2 for one update, Table 3 for an
 * ordered pair) in the columns Send (message) and Write (general-purpose and
 * appliance). Its native RDMA FLUSH is an RDMA read here, which pushes the
 * writes before it out of the NIC. Each row cites what it comes from.
 */
#include "plan.h"

#include <string.h>

#define BIT(x) (1U << (x))
#define ANY    (~0U)

/* How RMA bytes get into the pages of the pool. */
enum plan_path {
	PATH_CPU,   /* stores through the target's mapping: the kernel sees the page dirtied */
	PATH_VERBS, /* registered pages, behind the kernel's back; soft RNICs as well */
	PATH_UNKNOWN,
};

/* Sets of enum values; the first row that matches decides. */
struct rule {
	unsigned method, shape, class, domain, ddio, provider, path;
	bool allowed;
	const char *reason;
};

#define HARDWARE (BIT(PROFILE_PROVIDER_IB) | BIT(PROFILE_PROVIDER_IWARP))

static const struct rule rules[] = {
	/* Send, all twelve configurations: copy, flush where the domain needs it, acknowledge. */
	{BIT(PLAN_MESSAGE), ANY, ANY, ANY, ANY, ANY, ANY, true,
	 "the target's CPU copies and flushes, which is right everywhere"},

	{BIT(PLAN_COMPLETION) | BIT(PLAN_WRITE_IMM) | BIT(PLAN_WRITE_IMM_READ) | BIT(PLAN_DEPOSIT) |
		 BIT(PLAN_DEPOSIT_COMPLETION),
	 ANY, ANY, ANY, ANY, ANY, ANY, false, "no lane executes it yet"},

	/* WRITE_atomic has no counterpart in libfabric; plain writes can tear. */
	{ANY, BIT(PLAN_ATOMIC8), ANY, ANY, ANY, ANY, ANY, false,
	 "an RMA write may tear: the target's CPU must store the 8 bytes"},

	/* Not in the taxonomy, which has no page cache. */
	{BIT(PLAN_APPLIANCE), ANY, BIT(PROFILE_CLASS_PAGE), ANY, ANY, ANY, ANY, false,
	 "the page cache must be synced by the target"},
	{BIT(PLAN_GENERAL), ANY, BIT(PROFILE_CLASS_PAGE), ANY, ANY, ANY, BIT(PATH_VERBS), false,
	 "a sync does not see what an RNIC writes into the page cache"},
	{BIT(PLAN_GENERAL), ANY, BIT(PROFILE_CLASS_PAGE), ANY, ANY, ANY, BIT(PATH_UNKNOWN), false,
	 "the provider is not known, and a sync may not see what it writes into the page cache"},
	{BIT(PLAN_GENERAL), ANY, BIT(PROFILE_CLASS_PAGE), ANY, ANY, ANY, ANY, true,
	 "the provider stores through the mapping and the target syncs the pages"},

	/* Write under DMP + DDIO; in the other configurations more than is needed. */
	{BIT(PLAN_GENERAL), ANY, ANY, ANY, ANY, ANY, ANY, true,
	 "the target flushes what was written, which is right in every domain"},

	{BIT(PLAN_APPLIANCE), ANY, BIT(PROFILE_CLASS_MEMORY), ANY, ANY, ANY, ANY, true,
	 "the pool promises no more than memory, and a read proves the write visible"},

	/* Write under MHP; under WSP too: iWARP needs the read, the others lose little by it. */
	{BIT(PLAN_APPLIANCE), ANY, BIT(PROFILE_CLASS_MEDIA), BIT(PROFILE_MHP) | BIT(PROFILE_WSP),
	 ANY, ANY, ANY, true, "caches are in the persistence domain, and a read drains the NIC"},

	/* Write under DMP + not DDIO. */
	{BIT(PLAN_APPLIANCE), ANY, BIT(PROFILE_CLASS_MEDIA), BIT(PROFILE_DMP),
	 BIT(PROFILE_DDIO_OFF), HARDWARE, ANY, true,
	 "DDIO is off: a read drains the NIC's writes to the memory controller"},

	{BIT(PLAN_APPLIANCE), ANY, BIT(PROFILE_CLASS_MEDIA), BIT(PROFILE_DMP), ANY,
	 BIT(PROFILE_PROVIDER_SOFTWARE), ANY, false,
	 "a software provider leaves the data in CPU caches, which a power cut empties"},
	{BIT(PLAN_APPLIANCE), ANY, BIT(PROFILE_CLASS_MEDIA), BIT(PROFILE_DMP), BIT(PROFILE_DDIO_ON),
	 ANY, ANY, false, "DDIO may leave the data in CPU caches, which a power cut empties"},
};

static enum plan_path
plan_path_of(const struct profile *p)
{
	if (strncmp(p->provider_name, "verbs", strlen("verbs")) == 0)
		return PATH_VERBS;
	if (!p->known[PROFILE_F_PROVIDER])
		return PATH_UNKNOWN;
	if (profile_get(p, PROFILE_F_PROVIDER) != PROFILE_PROVIDER_SOFTWARE)
		return PATH_VERBS;
	return PATH_CPU;
}

static const struct rule *
plan_rule(const struct profile *p, enum plan_method m, enum plan_shape shape)
{
	unsigned class = BIT(profile_get(p, PROFILE_F_CLASS));
	unsigned domain = BIT(profile_get(p, PROFILE_F_DOMAIN));
	unsigned ddio = BIT(profile_get(p, PROFILE_F_DDIO));
	unsigned provider = BIT(profile_get(p, PROFILE_F_PROVIDER));
	unsigned path = BIT(plan_path_of(p));

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *r = &rules[i];

		if ((r->method & BIT(m)) && (r->shape & BIT(shape)) && (r->class & class) &&
		    (r->domain & domain) && (r->ddio & ddio) && (r->provider & provider) &&
		    (r->path & path))
			return r;
	}
	return NULL;
}

bool
plan_allowed(const struct profile *p, enum plan_method m, enum plan_shape shape,
	     const char **reason)
{
	const struct rule *r = plan_rule(p, m, shape);

	*reason = r ? r->reason : "no rule allows it";
	return r && r->allowed;
}

/* A pair pays for each round trip twice unless it is one message. */
static bool
plan_fits_message(enum plan_shape shape, size_t size, const struct plan_limits *lim)
{
	if (size > lim->inline_max || (lim->forbid & BIT(PLAN_MESSAGE)))
		return false;
	return shape == PLAN_COMPOUND || size <= lim->message_max;
}

struct plan
plan_choose(const struct profile *p, enum plan_shape shape, size_t size,
	    const struct plan_limits *lim)
{
	/* The one that needs no CPU of the target first. */
	static const enum plan_method by_rma[] = {PLAN_APPLIANCE, PLAN_GENERAL};
	const char *reason = "no other method may be chosen";

	if (shape == PLAN_ATOMIC8)
		return (struct plan){PLAN_MESSAGE,
				     "8 bytes, all or nothing: stored by the target's CPU"};
	if (plan_fits_message(shape, size, lim))
		return (struct plan){PLAN_MESSAGE, "small: one message each way is the least"};
	if (!lim->rma)
		return (struct plan){PLAN_MESSAGE, "RMA is not to be had on this pool"};
	for (size_t i = 0; i < sizeof(by_rma) / sizeof(by_rma[0]); i++) {
		if (!(lim->forbid & BIT(by_rma[i])) && plan_allowed(p, by_rma[i], shape, &reason))
			return (struct plan){by_rma[i], reason};
	}
	return (struct plan){PLAN_MESSAGE, reason};
}

static const char *const method_names[PLAN_METHOD_COUNT] = {
	[PLAN_MESSAGE] = "message",     [PLAN_GENERAL] = "general-purpose",
	[PLAN_APPLIANCE] = "appliance", [PLAN_COMPLETION] = "completion",
	[PLAN_WRITE_IMM] = "write-imm", [PLAN_WRITE_IMM_READ] = "write-imm-read",
	[PLAN_DEPOSIT] = "deposit",     [PLAN_DEPOSIT_COMPLETION] = "deposit-completion",
};

const char *
plan_method_name(enum plan_method m)
{
	return (unsigned)m < PLAN_METHOD_COUNT ? method_names[m] : "unknown";
}

int
plan_method_by_name(const char *name)
{
	for (int m = 0; m < PLAN_METHOD_COUNT; m++) {
		if (strcmp(method_names[m], name) == 0)
			return m;
	}
	return -1;
}
