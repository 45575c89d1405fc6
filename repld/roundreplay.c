/* SPDX-License-Identifier: BSD-3-Clause */
/* A round log that a dead writer has left: what it brings, and its end. */
#include "roundlog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deposits.h"
#include "space.h"

static int
region_read(int fd, const struct sidecar *meta, uint8_t *to, uint64_t len, struct err *e)
{
	uint64_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, to + done, len - done, (off_t)(meta->log_off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(
				e, REPL_E_IO, errno,
				"round log: read, at %llu of the sidecar; nothing was "
				"changed: open the pool again when the device can be read, "
				"or remove it and sync it again from its primary",
				(unsigned long long)(meta->log_off + done));
		if (n == 0)
			return err_set(e, REPL_E_CORRUPT, "round log: the file ends before it");
		done += (uint64_t)n;
	}
	return 0;
}

static int
region_open(int fd, const struct sidecar *meta, uint8_t **region, struct round_header *h,
	    struct err *e)
{
	uint8_t page[REGION_PAGE];
	int rc;

	_Static_assert(SIDECAR_REGION_ALIGN % REGION_PAGE == 0, "a region has a whole page");
	/* How long a newer version's may be is not known: the page says whose it is before that. */
	rc = region_read(fd, meta, page, sizeof(page), e);
	if (!rc)
		rc = round_header_decode(page, meta->log_len, h, e);
	if (rc)
		return rc;
	*region = malloc(meta->log_len);
	if (!*region)
		return err_set(e, REPL_E_NOMEM, "no memory to replay a round log");
	rc = region_read(fd, meta, *region, meta->log_len, e);
	if (!rc && (memcmp(&h->pool_uuid, &meta->pool_uuid, sizeof(h->pool_uuid)) != 0 ||
		    h->epoch > meta->epoch))
		rc = err_set(e, REPL_E_CORRUPT, "round log: it is not this pool's");
	return rc;
}

int
roundlog_replay(int sidecar_fd, const struct sidecar *meta, struct pmem_map *pool,
		struct roundlog_replayed *done, struct err *e)
{
	struct round_replay *r = malloc(sizeof(*r));
	struct deposits *d = malloc(sizeof(*d));
	struct wire_commit_view v;
	struct round_header h;
	uint8_t *region = NULL;
	int rc;

	memset(done, 0, sizeof(*done));
	if (!r || !d)
		rc = err_set(e, REPL_E_NOMEM, "no memory to replay a round log");
	else
		rc = region_open(sidecar_fd, meta, &region, &h, e);
	if (rc)
		goto out;
	if (pool)
		deposits_init(d, pool);
	d->back = true;
	d->whole = true;
	round_replay_begin(r, region, &h, meta->pool_size);
	while (!rc && round_replay_next(r, &v)) {
		uint64_t position = round_position(&v);

		if (pool)
			rc = deposits_apply(d, &v, e);
		done->messages += position == 0 || v.entry_count > 1;
		if (position > done->position)
			done->position = position;
	}
	if (!rc && pool)
		rc = deposits_flush(d, e);
	done->damaged = r->damaged;
out:
	free(region);
	free(d);
	free(r);
	return rc;
}

int
roundlog_drop(int sidecar_fd, struct sidecar *meta, const struct sidecar *as, struct err *e)
{
	struct sidecar next = *as;
	uint64_t off = as->log_off, len = as->log_len;
	int rc;

	next.log_off = next.log_len = 0;
	rc = sidecar_write(sidecar_fd, &next, e);
	if (rc)
		return rc;
	*meta = next;
	/* Only space: the next region cuts it as well. */
	if (!next.ring_len && !next.dirty_len && !next.journal_len)
		(void)space_cut(sidecar_fd, off, off + len, NULL);
	return 0;
}
