/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_flush - what libibverbs says of native RDMA FLUSH, which libfabric does not
 * ask. One of two files is built: fabric_flush_verbs.c where <infiniband/verbs.h>
 * knows it (WITH_NATIVE_FLUSH), else fabric_flush_none.c.
 */
#ifndef COMMON_FABRIC_FLUSH_H
#define COMMON_FABRIC_FLUSH_H

#include <stddef.h>

#include "err.h"

/*
 * Whether the device flushes to persistence, registers mem for that and makes a
 * queue pair that asks for it. 0, or REPL_E_REFUSED with the first that it does
 * not in e. mem NULL: there is none to try.
 */
int flush_device_probe(const char *device, void *mem, size_t len, struct err *e);

#endif
