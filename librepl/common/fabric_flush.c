/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libfabric says of a flush: FI_RMA_PMEM, by which a provider promises that
 * FI_COMMIT_COMPLETE means durable. Without it the flag is accepted and ignored.
 */
#include "fabric_flush.h"

#include <stdarg.h>
#include <stdio.h>

#include "fabric_ofi.h"

static void __attribute__((format(printf, 3, 4)))
flush_is(struct fab_flush *out, enum fab_flush_state state, const char *fmt, ...)
{
	va_list ap;

	out->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(out->text, sizeof(out->text), fmt, ap);
	va_end(ap);
}

static void
flush_no_claim(const char *provider, struct fab_flush *out)
{
	uint32_t v = fi_version();

	flush_is(out, FAB_FLUSH_NO, "libfabric %u.%u: %s does not promise it (FI_RMA_PMEM)",
		 FI_MAJOR(v), FI_MINOR(v), provider);
}

/*
 * tcp sets the flag on every processor and flushes where it knows how to: what it
 * says is no evidence, and from outside nobody sees a cache line.
 */
static void
flush_by_cpu(const struct fi_info *info, struct fab_flush *out)
{
	const char *name = info->fabric_attr->prov_name;

	if (info->caps & FI_RMA_PMEM)
		flush_is(out, FAB_FLUSH_CLAIMED,
			 "%s says FI_RMA_PMEM on every CPU, which proves nothing", name);
	else
		flush_no_claim(name, out);
}

static void
flush_by_device(const struct fi_info *info, void *mem, size_t len, struct fab_flush *out)
{
	const char *device = info->domain_attr->name;
	struct err e;

	err_clear(&e);
	if (flush_device_probe(device, mem, len, &e))
		flush_is(out, FAB_FLUSH_NO, "%.150s", e.text);
	else if (!(info->caps & FI_RMA_PMEM))
		flush_no_claim("verbs", out);
	else
		flush_is(out, FAB_FLUSH_YES, "tried: %.32s takes it, libfabric promises it",
			 device);
}

void
fab_flush_probe(const char *provider, const char *host, void *mem, size_t len,
		struct fab_flush *out)
{
	struct fi_info *info = NULL;
	struct err e;

	err_clear(&e);
	if (ofi_info_new(provider, host, 0, FI_SOURCE, &info, &e)) {
		flush_is(out, FAB_FLUSH_NO, "libfabric: %.140s", e.text);
		return;
	}
	if (ofi_is_rdma(info))
		flush_by_device(info, mem, len, out);
	else
		flush_by_cpu(info, out);
	fi_freeinfo(info);
}
