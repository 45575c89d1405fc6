/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a pool set come into being, and the headers that PMDK's tools read. */
#include "poolparts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "lock.h"
#include "poolpath.h"
#include "poolstore.h"
#include "space.h"

struct part_made {
	struct pool_place place;
	char temp[POOL_TEMP_MAX]; /* "" when it has its name, or is not made */
};

struct poolparts_made {
	struct poolparts *parts; /* borrowed; their fd are set */
	const char *name;
	int dirfd;
	unsigned published;
	struct part_made part[POOLSET_PARTS_MAX];
};

static int
part_make(struct poolparts_made *m, unsigned i, struct err *e)
{
	struct part_made *made = &m->part[i];
	struct poolpart *part = &m->parts->part[i];
	uint8_t random[8];
	char hex[sizeof(random) * 2 + 1];
	int rc = pool_place_open(m->dirfd, part->name, true, &made->place, e);

	if (rc)
		return rc;
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	hex_encode(random, sizeof(random), hex);
	(void)snprintf(made->temp, sizeof(made->temp), POOL_TEMP_PREFIX "%s", hex);
	part->fd = path_open(made->place.dir, made->temp, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (part->fd < 0) {
		made->temp[0] = '\0';
		return err_errno(e, err_from_errno(errno), errno, "make part '%s'", part->name);
	}
	if (!lock_take(part->fd, 0))
		return err_errno(e, err_from_errno(errno), errno, "lock part '%s'", part->name);
	return 0;
}

int
poolparts_make(struct poolparts *p, int dirfd, const char *name, struct poolparts_made **out,
	       struct err *e)
{
	struct poolparts_made *m = calloc(1, sizeof(*m));
	int rc = 0;

	*out = m;
	if (!m)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	m->parts = p;
	m->name = name;
	m->dirfd = dirfd;
	for (unsigned i = 0; i < p->count; i++)
		m->part[i].place.dir = -1;
	for (unsigned i = 0; !rc && i < p->count; i++)
		rc = part_make(m, i, e);
	return rc ? err_prefix(e, "pool set '%s'", name) : 0;
}

int
poolparts_fill(struct poolparts_made *m, const uint8_t *attr, struct err *e)
{
	struct poolparts *p = m->parts;
	int rc = poolparts_attr_check(p, attr, e);

	for (unsigned i = 0; !rc && i < p->count; i++) {
		rc = space_allocate(p->part[i].fd, p->part[i].file_size, e);
		if (rc)
			rc = err_prefix(e, "part '%s'", p->part[i].name);
	}
	if (!rc && p->headers != POOLSET_NONE)
		rc = poolparts_attr_set(p, attr, e);
	for (unsigned i = 0; !rc && i < p->count; i++) {
		if (fsync(p->part[i].fd) != 0)
			rc = err_errno(e, err_from_errno(errno), errno, "sync part '%s'",
				       p->part[i].name);
	}
	return rc ? err_prefix(e, "pool set '%s'", m->name) : 0;
}

static int
part_publish(struct poolparts_made *m, unsigned i, struct err *e)
{
	struct part_made *made = &m->part[i];

	if (pool_rename_new(made->place.dir, made->temp, made->place.leaf) != 0)
		return err_errno(e, err_from_errno(errno), errno, "rename part '%s'",
				 m->parts->part[i].name);
	made->temp[0] = '\0';
	m->published = i + 1;
	if (fsync(made->place.dir) != 0)
		return err_errno(e, REPL_E_IO, errno, "sync the directory of part '%s'",
				 m->parts->part[i].name);
	return 0;
}

int
poolparts_publish(struct poolparts_made *m, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < m->parts->count; i++)
		rc = part_publish(m, i, e);
	for (unsigned i = 0; rc && i < m->published; i++)
		(void)unlinkat(m->part[i].place.dir, m->part[i].place.leaf, 0);
	return rc ? err_prefix(e, "pool set '%s'", m->name) : 0;
}

void
poolparts_made_free(struct poolparts_made *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->parts->count; i++) {
		struct part_made *made = &m->part[i];
		bool begun = made->place.dir >= 0 && i >= m->published;

		if (made->temp[0])
			(void)unlinkat(made->place.dir, made->temp, 0);
		if (m->parts->part[i].fd >= 0)
			lock_drop(m->parts->part[i].fd);
		pool_place_close(&made->place);
		/* Directories that were made for it, too. */
		if (begun && lock_take(m->dirfd, LOCK_NAMES_MS)) {
			pool_place_prune(m->dirfd, m->parts->part[i].name);
			lock_drop(m->dirfd);
		}
	}
	free(m);
}

/* ---- headers ---- */

static unsigned
header_count(const struct poolparts *p)
{
	if (p->headers == POOLSET_NONE)
		return 0;
	return p->headers == POOLSET_SINGLE ? 1 : p->count;
}

int
poolparts_attr_check(const struct poolparts *p, const uint8_t *attr, struct err *e)
{
	bool none = !attr || pmdk_attr_none(attr);
	bool single;

	if (none && p->headers == POOLSET_NONE)
		return 0;
	if (none)
		return err_set(e, REPL_E_INVAL,
			       "its parts have headers, for which attributes must be given; a "
			       "set without them has OPTION NOHDRS");
	single = pmdk_attr_incompat(attr) & PMDK_SINGLEHDR;
	if (p->headers == POOLSET_NONE)
		return err_set(e, REPL_E_INVAL,
			       "OPTION NOHDRS leaves no place for attributes: the initiator's set "
			       "has headers");
	if (single != (p->headers == POOLSET_SINGLE))
		return err_set(e, REPL_E_INVAL,
			       "OPTION SINGLEHDR stands in the set file of %s only: both sides "
			       "need the same options",
			       single ? "the initiator" : "the target");
	return 0;
}

static int
header_read(const struct poolpart *part, uint8_t header[PMDK_HEADER_SIZE], struct err *e)
{
	ssize_t n = pread(part->fd, header, PMDK_HEADER_SIZE, 0);

	if (n == PMDK_HEADER_SIZE)
		return 0;
	return err_errno(e, REPL_E_IO, n < 0 ? errno : EIO, "the header of part '%s'", part->name);
}

static int
header_write(const struct poolpart *part, const uint8_t header[PMDK_HEADER_SIZE], struct err *e)
{
	ssize_t n = pwrite(part->fd, header, PMDK_HEADER_SIZE, 0);

	if (n == PMDK_HEADER_SIZE && fsync(part->fd) == 0)
		return 0;
	return err_errno(e, REPL_E_IO, errno, "the header of part '%s'", part->name);
}

int
poolparts_attr_get(const struct poolparts *p, uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	uint8_t header[PMDK_HEADER_SIZE], other[PMDK_ATTR_SIZE];
	int rc = 0;

	for (unsigned i = 0; !rc && i < header_count(p); i++) {
		rc = header_read(&p->part[i], header, e);
		if (!rc && !pmdk_header_attr(header, i ? other : attr))
			rc = err_set(e, REPL_E_CORRUPT,
				     "the header of part '%s' is damaged: 'pmempool sync' on the "
				     "initiator makes the replica anew",
				     p->part[i].name);
		/* The signature, version and features; and the set's UUID behind them. */
		if (!rc && i && memcmp(attr, other, 40) != 0)
			rc = err_set(e, REPL_E_CORRUPT,
				     "the headers of parts '%s' and '%s' are not of one pool",
				     p->part[0].name, p->part[i].name);
	}
	return rc;
}

/* Random UUIDs for the parts behind the first, whose is the replica's. */
static int
uuids_make(const struct poolparts *p, const uint8_t *attr, uint8_t (*uuid)[PMDK_UUID_SIZE],
	   struct err *e)
{
	size_t len = (p->count - 1) * (size_t)PMDK_UUID_SIZE;

	memcpy(uuid[0], pmdk_attr_uuid(attr), PMDK_UUID_SIZE);
	if (len && getrandom(uuid[1], len, 0) != (ssize_t)len)
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	for (unsigned i = 1; i < p->count; i++) {
		uuid[i][7] = (uint8_t)((uuid[i][7] & 0x0f) | 0x40);
		uuid[i][8] = (uint8_t)((uuid[i][8] & 0x3f) | 0x80);
	}
	return 0;
}

int
poolparts_attr_set(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	uint8_t uuid[POOLSET_PARTS_MAX][PMDK_UUID_SIZE], header[PMDK_HEADER_SIZE];
	/* PMDK links the headers: with one alone it is its own neighbour. */
	unsigned n = header_count(p);
	struct pmdk_part part = {.created_s = (uint64_t)time(NULL)};
	int rc = poolparts_attr_check(p, attr, e);

	if (!rc && n > 0)
		rc = uuids_make(p, attr, uuid, e);
	/* The first one last: until then the headers are seen not to belong together. */
	for (unsigned i = n; !rc && i > 0; i--) {
		memcpy(part.uuid, uuid[i - 1], PMDK_UUID_SIZE);
		memcpy(part.prev, uuid[(i - 1 + n - 1) % n], PMDK_UUID_SIZE);
		memcpy(part.next, uuid[i % n], PMDK_UUID_SIZE);
		pmdk_header_make(attr, &part, header);
		rc = header_write(&p->part[i - 1], header, e);
	}
	return rc;
}
