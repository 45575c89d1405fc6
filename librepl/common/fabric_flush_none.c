/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric_flush.h"

int
flush_device_probe(const char *device, void *mem, size_t len, struct err *e)
{
	(void)mem;
	(void)len;
	return err_set(
		e, REPL_E_REFUSED,
		"this build: no ibv_wr_flush (WITH_NATIVE_FLUSH, rdma-core 45), so %.32s was "
		"not asked",
		device);
}
