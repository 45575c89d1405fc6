/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of a pool set's parts, which PMDK's tools read, and what an initiator wants
 * kept in them.
 *
 * In a set of directories, or with local replicas, the headers are those of a set of this
 * machine's: its replicas are linked with one another, and their UUIDs are derived from the one
 * that the initiator has given. What it has said of its own replicas is in the sidecar. In any
 * other set the first header says that, as PMDK's own target had it, until it is promoted.
 */
#include "poolparts.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "filesystem.h"
#include "le.h"

#define ATTR_IDENTITY 40U /* signature, version, features, UUID of the set */

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

	if (n == PMDK_HEADER_SIZE && filesystem_sync(part->fd) == 0)
		return 0;
	return err_errno(e, REPL_E_IO, errno, "the header of part '%s'", part->name);
}

/* A random UUID's version and variant. */
static void
uuid_mark(uint8_t uuid[PMDK_UUID_SIZE])
{
	uuid[7] = (uint8_t)((uuid[7] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

/* Of linked headers: that of part i of a section. The pool's first one has the replica's own. */
static void
uuid_derive(const uint8_t *attr, unsigned replica, unsigned i, uint8_t uuid[PMDK_UUID_SIZE])
{
	uint8_t text[PMDK_UUID_SIZE + 8];

	memcpy(text, pmdk_attr_uuid(attr), PMDK_UUID_SIZE);
	put_le32(text + PMDK_UUID_SIZE, replica);
	put_le32(text + PMDK_UUID_SIZE + 4, i);
	if (replica == 0 && i == 0) {
		memcpy(uuid, text, PMDK_UUID_SIZE);
		return;
	}
	hash128(text, sizeof(text), uuid);
	uuid_mark(uuid);
}

static unsigned
section_count(const struct poolparts *p)
{
	unsigned n = 0;

	for (; p; p = p->next)
		n++;
	return n;
}

/* The header of part i of section r; p is the pool's own. uuid: those of r's parts. */
static void
header_fill(const struct poolparts *p, const struct poolparts *r, unsigned i, const uint8_t *attr,
	    uint8_t (*uuid)[PMDK_UUID_SIZE], uint64_t created_s, uint8_t header[PMDK_HEADER_SIZE])
{
	/* PMDK links the headers: with one alone it is its own neighbour. */
	unsigned n = header_count(r), sections = section_count(p);
	struct pmdk_part part = {.created_s = created_s};
	uint8_t mine[PMDK_ATTR_SIZE], prev[PMDK_UUID_SIZE], next[PMDK_UUID_SIZE];

	memcpy(mine, attr, sizeof(mine));
	if (p->linked) {
		uuid_derive(attr, (r->replica + sections - 1) % sections, 0, prev);
		uuid_derive(attr, (r->replica + 1) % sections, 0, next);
		pmdk_attr_link(mine, prev, next);
	}
	memcpy(part.uuid, uuid[i], PMDK_UUID_SIZE);
	memcpy(part.prev, uuid[(i + n - 1) % n], PMDK_UUID_SIZE);
	memcpy(part.next, uuid[(i + 1) % n], PMDK_UUID_SIZE);
	pmdk_header_make(mine, &part, header);
}

/* Random UUIDs for the parts behind the first, unless they are derived. */
static int
uuids_make(const struct poolparts *p, const struct poolparts *r, const uint8_t *attr,
	   uint8_t (*uuid)[PMDK_UUID_SIZE], struct err *e)
{
	unsigned n = header_count(r);

	for (unsigned i = 0; i < n; i++) {
		if (i == 0 || p->linked) {
			uuid_derive(attr, r->replica, i, uuid[i]);
			continue;
		}
		if (getrandom(uuid[i], PMDK_UUID_SIZE, 0) != PMDK_UUID_SIZE)
			return err_errno(e, REPL_E_FAILED, errno, "getrandom");
		uuid_mark(uuid[i]);
	}
	return 0;
}

static int
section_write(const struct poolparts *p, const struct poolparts *r, const uint8_t *attr,
	      struct err *e)
{
	uint8_t uuid[POOLSET_PARTS_MAX][PMDK_UUID_SIZE], header[PMDK_HEADER_SIZE];
	int rc = uuids_make(p, r, attr, uuid, e);

	/* The first one last: until then the headers are seen not to belong together. */
	for (unsigned i = header_count(r); !rc && i > 0; i--) {
		header_fill(p, r, i - 1, attr, uuid, (uint64_t)time(NULL), header);
		rc = header_write(&r->part[i - 1], header, e);
	}
	return rc;
}

static int
sections_write(const struct poolparts *p, const struct poolparts *r, const uint8_t *attr,
	       struct err *e)
{
	int rc = r->next ? sections_write(p, r->next, attr, e) : 0;

	return rc ? rc : section_write(p, r, attr, e);
}

int
poolparts_attr_set(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	int rc = poolparts_attr_check(p, attr, e);

	return rc || p->headers == POOLSET_NONE ? rc : sections_write(p, p, attr, e);
}

struct look {
	bool whole;  /* its checksum is right */
	bool ours;   /* it is of this pool */
	bool exact;  /* and links as we link */
	unsigned at; /* what it says it is of its section's parts, as far as it is ours */
};

/*
 * Of part i of section r of a linked set. 'pmempool sync' on this machine gives UUIDs of its own to
 * what it makes anew: that is ours, and not exact.
 */
static int
header_look(const struct poolparts *p, const struct poolparts *r, unsigned i, const uint8_t *attr,
	    struct look *look, struct err *e)
{
	uint8_t uuid[POOLSET_PARTS_MAX][PMDK_UUID_SIZE], header[PMDK_HEADER_SIZE];
	uint8_t found[PMDK_ATTR_SIZE], wanted[PMDK_HEADER_SIZE];
	struct pmdk_header h;
	int rc = header_read(&r->part[i], header, e);

	if (!rc)
		rc = uuids_make(p, r, attr, uuid, e);
	if (rc)
		return rc;
	look->whole = pmdk_header_attr(header, found);
	look->ours = memcmp(found, attr, ATTR_IDENTITY) == 0;
	(void)pmdk_parse(header, sizeof(header), &h);
	header_fill(p, r, i, attr, uuid, h.created_s, wanted);
	look->exact = memcmp(header, wanted, sizeof(header)) == 0;
	look->at = i;
	for (unsigned k = 0; look->whole && look->ours && k < header_count(r); k++)
		if (memcmp(h.uuid[PMDK_UUID_PART], uuid[k], PMDK_UUID_SIZE) == 0)
			look->at = k;
	return 0;
}

static int
wrong_place(const struct poolpart *part, const struct look *look, unsigned i, struct err *e)
{
	return err_set(e, REPL_E_CORRUPT,
		       "by its header part '%s' is number %u of its section, and the set file has "
		       "it as number %u: put the lines back into the order in which the pool was "
		       "made",
		       part->name, look->at + 1, i + 1);
}

/* One without a whole header is told by its size. */
static bool
header_is_there(const struct poolpart *part)
{
	struct stat st;

	return part->fd >= 0 && fstat(part->fd, &st) == 0 && st.st_size >= PMDK_HEADER_SIZE;
}

/* Whether its header is whole, and of a set of another UUID. */
static bool
is_foreign(const struct poolpart *part, const uint8_t *attr)
{
	uint8_t header[PMDK_HEADER_SIZE], found[PMDK_ATTR_SIZE];

	return header_is_there(part) && header_read(part, header, NULL) == 0 &&
	       pmdk_header_attr(header, found) &&
	       memcmp(found + PMDK_ATTR_SET_UUID, attr + PMDK_ATTR_SET_UUID, PMDK_UUID_SIZE) != 0;
}

int
poolparts_attr_foreign(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	if (pmdk_attr_none(attr))
		return 0;
	for (const struct poolparts *r = p; r; r = r->next)
		for (unsigned i = 0; i < header_count(r); i++)
			if (is_foreign(&r->part[i], attr))
				return err_set(e, REPL_E_REFUSED,
					       "part '%s' belongs to another pool: is the right "
					       "disk mounted?",
					       r->part[i].name);
	return 0;
}

/* Of the pool's own, to which its local replicas would be made equal. */
static int
cannot_lead(const struct poolpart *part, const struct look *look, struct err *e)
{
	return err_set(e, REPL_E_CORRUPT,
		       "the header of part '%s' %s, and local replicas are not made equal to that: "
		       "put back what was there, or let 'pmempool sync' of the set file on the "
		       "target make it anew from them",
		       part->name, look->whole ? "is not of this pool" : "is damaged");
}

int
poolparts_attr_own(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], bool write,
		   struct err *e)
{
	struct look look;
	int rc = poolparts_attr_foreign(p, attr, e);

	for (const struct poolparts *r = p; !rc && p->linked && r; r = r->next)
		for (unsigned i = 0; !rc && i < header_count(r); i++) {
			if (!header_is_there(&r->part[i]))
				continue;
			rc = header_look(p, r, i, attr, &look, e);
			if (!rc && look.at != i)
				rc = wrong_place(&r->part[i], &look, i, e);
			else if (!rc && write && r == p && p->next && !(look.whole && look.ours))
				rc = cannot_lead(&r->part[i], &look, e);
		}
	return rc;
}

static int
linked_get(const struct poolparts *p, const uint8_t *kept, uint8_t *attr, struct err *e)
{
	struct look look;
	int rc = poolparts_attr_foreign(p, kept, e);

	memcpy(attr, kept, PMDK_ATTR_SIZE);
	for (unsigned i = 0; !rc && i < header_count(p); i++) {
		rc = header_look(p, p, i, kept, &look, e);
		if (!rc && (!look.whole || !look.ours))
			rc = err_set(e, REPL_E_CORRUPT,
				     "the header of part '%s' %s: 'pmempool sync' on the initiator "
				     "makes the replica anew",
				     p->part[i].name,
				     look.whole ? "is not of this pool" : "is damaged");
		else if (!rc && look.at != i)
			rc = wrong_place(&p->part[i], &look, i, e);
	}
	return rc;
}

int
poolparts_attr_mend(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], bool *same,
		    struct err *e)
{
	int rc = 0;

	for (const struct poolparts *r = p; !rc && r; r = r->next) {
		struct look look;
		bool exact = true, told = false;

		for (unsigned i = 0; !rc && i < header_count(r); i++) {
			rc = header_look(p, r, i, attr, &look, e);
			if (!rc && look.at != i)
				rc = wrong_place(&r->part[i], &look, i, e);
			/* What is wrong with the pool's own is told, and not mended here. */
			told = told || (r == p && !(look.whole && look.ours));
			exact = exact && look.exact;
		}
		if (!rc && !exact && !told) {
			*same = false;
			rc = section_write(p, r, attr, e);
		}
	}
	return rc;
}

int
poolparts_attr_link(struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	bool exact = true;
	int rc = 0;

	p->linked = true;
	for (unsigned i = 0; !rc && i < header_count(p); i++) {
		struct look look;

		rc = header_look(p, p, i, attr, &look, e);
		if (!rc && look.whole && !look.ours)
			rc = err_set(e, REPL_E_CORRUPT,
				     "part '%s' is of another pool: move it away, and bring back "
				     "the one that was there",
				     p->part[i].name);
		exact = exact && look.exact;
	}
	return rc || exact ? rc : section_write(p, p, attr, e);
}

int
poolparts_attr_get(const struct poolparts *p, const uint8_t kept[PMDK_ATTR_SIZE],
		   uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	uint8_t header[PMDK_HEADER_SIZE], other[PMDK_ATTR_SIZE];
	int rc = 0;

	if (p->linked)
		return linked_get(p, kept, attr, e);
	for (unsigned i = 0; !rc && i < header_count(p); i++) {
		rc = header_read(&p->part[i], header, e);
		if (!rc && !pmdk_header_attr(header, i ? other : attr))
			rc = err_set(e, REPL_E_CORRUPT,
				     "the header of part '%s' is damaged: 'pmempool sync' on the "
				     "initiator makes the replica anew",
				     p->part[i].name);
		/* The signature, version and features; and the set's UUID behind them. */
		if (!rc && i && memcmp(attr, other, ATTR_IDENTITY) != 0)
			rc = err_set(e, REPL_E_CORRUPT,
				     "the headers of parts '%s' and '%s' are not of one pool",
				     p->part[0].name, p->part[i].name);
	}
	return rc;
}
