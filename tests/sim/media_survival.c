/* SPDX-License-Identifier: BSD-3-Clause */
#include "media_survival.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define IMAGE_OF   "user.repl-of"
#define WORD_BITS  64U
#define DIRTY_ROOM ((size_t)1 << 36) /* bytes of pool that a record has addresses for */

/* One for each page of the pool, so that a pool that grows keeps its records. */
struct media_record {
	uint8_t before[MEDIA_PAGE];
	uint8_t stored[MEDIA_PAGE];
	/* A bit for each byte. */
	_Atomic uint64_t dirty[MEDIA_PAGE / WORD_BITS];
	uint8_t pad[MEDIA_PAGE - MEDIA_PAGE / 8];
};

struct media_dirty {
	struct media_record *records;
	size_t len; /* of the mapping, more than the file has */
	size_t size;
	int fd;
};

/* ---- settings ---- */

static int
setting(const char *name, const char *const *choices, unsigned *out, struct err *e)
{
	const char *text = getenv(name);
	char all[64] = "";

	*out = 0;
	if (!text)
		return REPL_OK;
	for (unsigned i = 0; choices[i]; i++) {
		size_t used = strlen(all);

		if (strcmp(text, choices[i]) == 0) {
			*out = i;
			return REPL_OK;
		}
		(void)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", choices[i]);
	}
	return err_set(e, REPL_E_CONFIG, "%s is '%s': use one of %s", name, text, all);
}

int
media_settings_read(struct media_settings *s, struct err *e)
{
	static const char *const granularities[] = {"page", "cache_line", "byte", NULL};
	static const enum profile_granularity values[] = {
		PROFILE_GRAN_PAGE, PROFILE_GRAN_CACHE_LINE, PROFILE_GRAN_BYTE};
	static const char *const domains[] = {"dmp", "mhp", "wsp", NULL};
	static const char *const ddios[] = {"on", "off", NULL};
	unsigned granularity, domain, ddio;
	int rc = setting("REPL_MEDIA_GRANULARITY", granularities, &granularity, e);

	if (rc == REPL_OK)
		rc = setting("REPL_MEDIA_DOMAIN", domains, &domain, e);
	if (rc == REPL_OK)
		rc = setting("REPL_MEDIA_DDIO", ddios, &ddio, e);
	if (rc != REPL_OK)
		return rc;
	s->granularity = values[granularity];
	s->survival = MEDIA_FLUSHED;
	/* A page cache is DRAM, whatever the machine does for its caches. */
	if (s->granularity == PROFILE_GRAN_PAGE)
		return REPL_OK;
	if (domain > 0)
		s->survival = MEDIA_ALL;
	else if (ddio == 1)
		s->survival = MEDIA_NOT_DIRTY;
	return REPL_OK;
}

/* ---- what the CPU has not flushed ---- */

static size_t
dirty_len(size_t size)
{
	return (size + MEDIA_PAGE - 1) / MEDIA_PAGE * sizeof(struct media_record);
}

int
media_dirty_grow(struct media_dirty *d, size_t size, struct err *e)
{
	struct stat st;

	if (dirty_len(size) > d->len)
		return err_set(e, REPL_E_LIMIT, "no addresses for records of %zu bytes", size);
	if (fstat(d->fd, &st) != 0 || ((uint64_t)st.st_size < dirty_len(size) &&
				       ftruncate(d->fd, (off_t)dirty_len(size)) != 0))
		return err_errno(e, REPL_E_IO, errno, "a record of %zu bytes", size);
	d->size = size;
	return REPL_OK;
}

int
media_dirty_open(const char *path, size_t size, struct media_dirty **out, struct err *e)
{
	struct media_dirty *d = calloc(1, sizeof(*d));
	void *p;
	int rc;

	*out = NULL;
	if (!d)
		return err_set(e, REPL_E_NOMEM, "record %s: out of memory", path);
	d->len = dirty_len(size > DIRTY_ROOM ? size : DIRTY_ROOM);
	d->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (d->fd < 0) {
		rc = err_errno(e, err_from_errno(errno), errno, "record %s", path);
		goto out;
	}
	p = mmap(NULL, d->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, d->fd, 0);
	if (p == MAP_FAILED) {
		rc = err_errno(e, err_from_errno(errno), errno, "map %s", path);
		goto out;
	}
	d->records = p;
	rc = media_dirty_grow(d, size, e);
	if (rc == REPL_OK) {
		*out = d;
		d = NULL;
	}
out:
	media_dirty_free(d);
	return rc;
}

void
media_dirty_free(struct media_dirty *d)
{
	if (!d)
		return;
	if (d->records)
		(void)munmap(d->records, d->len);
	if (d->fd >= 0)
		(void)close(d->fd);
	free(d);
}

/* Part of one line. The marks come when what they stand for is there, and before the store. */
static void
dirty_store_line(struct media_record *r, uint64_t at, const uint8_t *now, const uint8_t *src,
		 uint64_t len)
{
	_Atomic uint64_t *word = &r->dirty[at / WORD_BITS];
	uint64_t marked = *word, marks = 0;

	for (uint64_t i = 0; i < len; i++) {
		uint64_t bit = 1ULL << (at + i) % WORD_BITS;

		if (!(marked & bit) || now[i] != r->stored[at + i])
			r->before[at + i] = now[i];
		r->stored[at + i] = src[i];
		marks |= bit;
	}
	*word |= marks;
}

void
media_dirty_store(struct media_dirty *d, const uint8_t *mem, uint64_t off, const void *src,
		  size_t len)
{
	const uint8_t *from = src;

	while (len > 0) {
		uint64_t part = MEDIA_LINE - off % MEDIA_LINE;

		if (part > len)
			part = len;
		dirty_store_line(&d->records[off / MEDIA_PAGE], off % MEDIA_PAGE, mem + off, from,
				 part);
		off += part;
		from += part;
		len -= part;
	}
}

void
media_dirty_clean(struct media_dirty *d, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;

	for (off -= off % MEDIA_LINE; off < end; off += MEDIA_LINE)
		d->records[off / MEDIA_PAGE].dirty[off % MEDIA_PAGE / WORD_BITS] = 0;
}

void
media_dirty_take_back(const struct media_dirty *d, uint8_t *mem)
{
	for (uint64_t line = 0; line < d->size; line += MEDIA_LINE) {
		struct media_record *r = &d->records[line / MEDIA_PAGE];
		uint64_t at = line % MEDIA_PAGE;
		uint64_t word = r->dirty[at / WORD_BITS];

		for (unsigned i = 0; word && i < MEDIA_LINE; i++)
			if ((word >> i & 1) && mem[line + i] == r->stored[at + i])
				mem[line + i] = r->before[at + i];
	}
}

/* ---- images ---- */

static struct timespec
media_born(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) || !(st.stx_mask & STATX_BTIME))
		return (struct timespec){0};
	return (struct timespec){.tv_sec = st.stx_btime.tv_sec, .tv_nsec = st.stx_btime.tv_nsec};
}

void
media_mark(int image, int fd)
{
	const struct timespec born = media_born(fd);

	(void)fsetxattr(image, IMAGE_OF, &born, sizeof(born), 0);
}

bool
media_is_of(int image, int fd)
{
	struct timespec born = media_born(fd), of;

	return fgetxattr(image, IMAGE_OF, &of, sizeof(of)) != (ssize_t)sizeof(of) ||
	       (of.tv_sec == born.tv_sec && of.tv_nsec == born.tv_nsec);
}

static bool
image_is_there(const char *image, const char *path)
{
	int at = open(image, O_RDONLY | O_CLOEXEC), fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is = at >= 0 && fd >= 0 && media_is_of(at, fd);

	if (at >= 0)
		(void)close(at);
	if (fd >= 0)
		(void)close(fd);
	return is;
}

/* ---- the cut ---- */

/* The file's bytes, to be changed in place: its owner and mode stay. */
static int
cut_map(const char *path, uint8_t **mem, size_t *size, struct err *e)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		*size = (size_t)st.st_size;
		p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (p == MAP_FAILED) {
		int code = err_errno(e, err_from_errno(errno), errno, "map %s", path);

		if (fd >= 0)
			(void)close(fd);
		return code;
	}
	(void)close(fd);
	*mem = p;
	return REPL_OK;
}

static int
cut_to_image(const char *image, uint8_t *mem, size_t size, uint64_t keep, struct err *e)
{
	uint8_t *held = NULL;
	size_t held_size = 0;
	int rc = cut_map(image, &held, &held_size, e);

	if (rc != REPL_OK)
		return rc;
	/* What a pool has grown by and the image has not is not there yet. */
	if (held_size > size)
		held_size = size;
	if (held_size > keep)
		memcpy(mem + keep, held + keep, held_size - keep);
	(void)munmap(held, held_size);
	return REPL_OK;
}

static int
cut_take_back(const char *record, uint8_t *mem, size_t size, uint64_t keep, struct err *e)
{
	struct media_dirty *d = NULL;
	int rc = media_dirty_open(record, size, &d, e);

	if (rc != REPL_OK)
		return rc;
	media_dirty_clean(d, 0, keep);
	media_dirty_take_back(d, mem);
	media_dirty_free(d);
	return REPL_OK;
}

int
media_cut(const char *path, uint64_t keep, struct err *e)
{
	struct media_settings s;
	char image[4096], record[4096];
	uint8_t *mem = NULL;
	size_t size = 0;
	int rc = media_settings_read(&s, e);

	if (rc == REPL_OK)
		rc = cut_map(path, &mem, &size, e);
	if (rc != REPL_OK)
		return rc;
	(void)snprintf(image, sizeof(image), "%s.media", path);
	(void)snprintf(record, sizeof(record), "%s.dirty", path);
	if (s.survival == MEDIA_FLUSHED && image_is_there(image, path))
		rc = cut_to_image(image, mem, size, keep, e);
	else if (s.survival == MEDIA_NOT_DIRTY && access(record, F_OK) == 0)
		rc = cut_take_back(record, mem, size, keep, e);
	(void)munmap(mem, size);
	if (rc == REPL_OK) {
		(void)unlink(image);
		(void)unlink(record);
	}
	return rc;
}
