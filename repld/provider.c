/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider.h"

#include <stdio.h>
#include <string.h>

#include "control.h"
#include "fabric.h"

#define PROVIDERS_MAX 8
#define PROVIDER_MAX  16
#define PAGE          4096U

/* What can be used here; which is wanted most is the initiator's choice. */
static const char *const providers_known[] = {"tcp", "verbs"};

static const char *
provider_usable(const char *name, const char *address, struct err *why)
{
	for (size_t i = 0; i < sizeof(providers_known) / sizeof(providers_known[0]); i++) {
		if (strcmp(name, providers_known[i]) != 0)
			continue;
		return fab_provider_at(name, address, why) ? providers_known[i] : NULL;
	}
	(void)err_set(why, REPL_E_REFUSED, "%.*s: not known here", PROVIDER_MAX, name);
	return NULL;
}

int
provider_choose(struct json_object *params, const char *address, const char **provider,
		struct err *e)
{
	struct json_object *list;
	struct err why;
	int rc;

	err_clear(&why);
	rc = control_get_array(params, "providers", PROVIDERS_MAX, &list, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *name = json_object_array_get_idx(list, i);

		if (!json_object_is_type(name, json_type_string))
			return err_set(e, REPL_E_INVAL, "member 'providers' holds more than texts");
		err_clear(&why);
		*provider = provider_usable(json_object_get_string(name), address, &why);
		if (*provider)
			return REPL_OK;
	}
	return err_set(e, why.code == REPL_E_LIMIT ? REPL_E_LIMIT : REPL_E_REFUSED,
		       "no provider that was asked for can be used here, at address %s: %s",
		       address, why.code ? why.text : "none was asked for");
}

/* ---- may the pool be registered? ---- */

static void
rma_is(struct probe *p, enum profile_rma value, const char *source)
{
	profile_set(&p->profile, PROFILE_F_RMA, (int)value, source);
}

static void
probe_rma(struct pmem_map *map, bool write, bool copied, const char *provider, const char *address,
	  struct probe *out)
{
	char text[PROFILE_SOURCE_MAX];
	struct err e;
	int rc;

	err_clear(&e);
	out->rma_untried = false;
	if (copied) {
		rma_is(out, PROFILE_RMA_NO,
		       "local replicas: the target's CPU stores into each, nothing else does");
	} else if (strcmp(provider, "verbs") != 0) {
		rma_is(out, PROFILE_RMA_YES, "libfabric: tcp stores by the CPU");
	} else if (profile_get(&out->profile, PROFILE_F_CLASS) == PROFILE_CLASS_PAGE) {
		rma_is(out, PROFILE_RMA_NO,
		       "page cache: a sync does not see what an RNIC writes into it");
	} else if (!map) {
		(void)snprintf(out->profile.source[PROFILE_F_RMA], PROFILE_SOURCE_MAX,
			       "no pool is mapped");
	} else {
		rc = fab_mem_probe(provider, address, pmem_map_addr(map), PAGE, write, &e);
		(void)snprintf(text, sizeof(text), "tried: %.140s",
			       rc ? e.text : "a page of the pool was registered");
		rma_is(out, rc ? PROFILE_RMA_NO : PROFILE_RMA_YES, text);
		out->rma_untried = rc == REPL_E_REFUSED && !write;
	}
}

/* ---- does the fabric flush by itself? ---- */

static void
flush_look(struct pmem_map *map, const char *provider, const char *address, struct probe_seen *s)
{
	struct fab_flush f = {FAB_FLUSH_CLAIMED, "it is asked when lanes are opened"};

	if (address[0])
		fab_flush_probe(provider, address, map ? pmem_map_addr(map) : NULL, PAGE, &f);
	*s = (struct probe_seen){.known = f.state != FAB_FLUSH_CLAIMED,
				 .value = f.state == FAB_FLUSH_YES ? PROFILE_FLUSH_YES
								   : PROFILE_FLUSH_NO};
	/* What is not known says why in its text. */
	(void)snprintf(s->text, sizeof(s->text), "%.90s",
		       !s->known                       ? f.text
		       : s->value == PROFILE_FLUSH_YES ? "yes"
						       : "no");
	(void)snprintf(s->source, sizeof(s->source), "%s", s->known ? f.text : "libfabric");
}

int
provider_probe(const struct conf *c, int fd, struct pmem_map *map, bool write, bool copied,
	       const char *provider, const char *address, struct probe *out, struct err *e)
{
	enum profile_granularity granularity = map ? pmem_map_granularity(map) : PROFILE_GRAN_PAGE;
	struct probe_seen seen;
	int rc = probe_run(c, fd, map ? &granularity : NULL, provider, "/sys", out, e);

	if (rc)
		return rc;
	probe_rma(map, write, copied, provider, address, out);
	flush_look(map, provider, address, &seen);
	return probe_field(c, PROFILE_F_FLUSH, &seen, out, e);
}
