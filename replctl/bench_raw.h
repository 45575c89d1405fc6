/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_raw - the bare TCP connection to the target that measurements are compared with. */
#ifndef REPLCTL_BENCH_RAW_H
#define REPLCTL_BENCH_RAW_H

#include "ctl.h"
#include "pulse.h"
#include "tcpraw.h"

#define BENCH_RAW_SECONDS_MAX 120

struct bench_raw {
	struct tcpraw *tcp;
	char address[REMOTE_ADDRESS_MAX];
	uint64_t end_ns;    /* the target closes it then */
	struct pulse pulse; /* the session that serves it has a pool open, and little else to do */
};

/* For at most that many seconds; a pool is open. The target hears from us until it is closed. */
int bench_raw_open(struct bench_raw *raw, struct ctl *c, unsigned seconds);

/* Close it, and open it anew if less than seconds are left; it has no more than there are. */
int bench_raw_renew(struct bench_raw *raw, struct ctl *c, unsigned seconds);

void bench_raw_close(struct bench_raw *raw);

#endif
