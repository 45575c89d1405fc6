/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolkept.h"

#include <stdlib.h>
#include <unistd.h>

#include "poolapply.h"

struct poolkept {
	int fd;
	uint64_t off; /* of the next one in the file */
	uint64_t left;
	uint32_t epoch;
	uint8_t buf[WIRE_MSG_SIZE_MAX];
};

int
poolkept_new(int fd, uint64_t off, uint64_t bytes, uint32_t epoch, struct poolkept **out,
	     struct err *e)
{
	struct poolkept *k = malloc(sizeof(*k));

	*out = k;
	if (!k)
		return err_set(e, REPL_E_NOMEM, "no memory to look at a journal");
	k->fd = fd;
	k->off = off;
	k->left = bytes;
	k->epoch = epoch;
	return 0;
}

void
poolkept_free(struct poolkept *k)
{
	free(k);
}

bool
poolkept_next(struct poolkept *k, uint64_t pool_size, struct wire_commit_view *v)
{
	size_t len;

	if (k->left < WIRE_HEADER_SIZE ||
	    poolapply_read(k->fd, k->buf, WIRE_HEADER_SIZE, k->off, NULL))
		return false;
	len = wire_stage_len(k->buf, WIRE_HEADER_SIZE, sizeof(k->buf));
	if (len == 0 || len > k->left || poolapply_read(k->fd, k->buf, len, k->off, NULL) ||
	    wire_stage_decode(k->buf, len, pool_size, v, NULL))
		return false;
	wire_stage_adopt(k->buf, len, k->epoch);
	v->epoch = k->epoch;
	/* Half of it written is as torn as it would be elsewhere. */
	if (pwrite(k->fd, k->buf, WIRE_HEADER_SIZE, (off_t)k->off) != WIRE_HEADER_SIZE)
		return false;
	k->off += len;
	k->left -= len;
	return true;
}
