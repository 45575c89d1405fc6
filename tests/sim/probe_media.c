/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine that the media build plays may have an RNIC: what libfabric's tcp
 * stores then counts as stored by that (media_survival.h). So the probe has to
 * say so, or nothing that relies on DDIO being off would be chosen: of what a
 * software provider stores no rule believes that.
 *
 *   REPL_MEDIA_NIC=ib|iwarp   the provider's class, instead of what is found
 */
#include <stdlib.h>

#include "probe.h"

int __real_probe_run(const struct conf *c, int fd, const enum profile_granularity *granularity,
		     const char *provider, const char *sysfs, struct probe *out, struct err *e);
int __wrap_probe_run(const struct conf *c, int fd, const enum profile_granularity *granularity,
		     const char *provider, const char *sysfs, struct probe *out, struct err *e);

int
__wrap_probe_run(const struct conf *c, int fd, const enum profile_granularity *granularity,
		 const char *provider, const char *sysfs, struct probe *out, struct err *e)
{
	const char *nic = getenv("REPL_MEDIA_NIC");
	int rc = __real_probe_run(c, fd, granularity, provider, sysfs, out, e);

	if (rc == REPL_OK && nic)
		profile_set(&out->profile, PROFILE_F_PROVIDER,
			    profile_value_by_name(PROFILE_F_PROVIDER, nic),
			    "media build: REPL_MEDIA_NIC");
	return rc;
}
