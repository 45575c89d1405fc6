/* SPDX-License-Identifier: BSD-3-Clause */
#include "holes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "extents.h"
#include "filelock.h"
#include "forks.h"
#include "localmem.h"
#include "procself.h"
#include "words.h"

/* A line of /proc/self/maps: whether addr is the first byte of a file, and of which. */
static bool
line_says(const char *line, uintptr_t addr, uint64_t *ino)
{
	uintptr_t from, to, off;

	return sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNxPTR " %*s %" SCNu64, &from, &to,
		      &off, ino) == 4 &&
	       from <= addr && addr < to && off + (addr - from) == 0;
}

/*
 * By the inode: of device numbers some file systems give two. Where that differs as well,
 * no hole is known, which costs time only.
 */
bool
holes_mapped_at(const void *addr, const struct stat *st)
{
	FILE *f = fopen(PROCSELF "/maps", "re");
	char *line = NULL;
	size_t room = 0;
	uint64_t ino = 0;
	bool found = false;

	while (f && !found && getline(&line, &room, f) > 0)
		found = line_says(line, (uintptr_t)addr, &ino);
	free(line);
	if (f)
		(void)fclose(f);
	return found && ino == st->st_ino;
}

uint64_t
holes_length_at(const char *path, const void *addr, uint64_t size)
{
	struct stat st;

	if (!path || stat(path, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size >= size ||
	    !holes_mapped_at(addr, &st))
		return size;
	return (uint64_t)st.st_size;
}

/*
 * Descriptors that are not closed yet, for who looks at their file again: the program may lock that
 * at any moment, also between a look whether it has and the end of one. Each is one number more
 * than the descriptor, above it how often this process was forked: in a child the number may be
 * another file's.
 */
#define UNCLOSED_MAX 64U

static _Atomic uint64_t unclosed[UNCLOSED_MAX];

/* In an empty place, else in one of a process that this one comes of. */
static bool
unclosed_put(int fd)
{
	uint64_t value = (uint64_t)forks_count() << 32 | ((unsigned)fd + 1);

	for (unsigned i = 0; i < 2 * UNCLOSED_MAX; i++) {
		_Atomic uint64_t *at = &unclosed[i % UNCLOSED_MAX];
		uint64_t was = atomic_load(at);

		if ((was == 0 || (i >= UNCLOSED_MAX && was >> 32 != forks_count())) &&
		    atomic_compare_exchange_strong(at, &was, value))
			return true;
	}
	return false;
}

/* One of that file, for the caller alone, or -1. forked: be it a parent's of this process. */
static int
unclosed_take(dev_t dev, ino_t ino, bool forked)
{
	for (unsigned i = 0; i < UNCLOSED_MAX; i++) {
		uint64_t value = atomic_load(&unclosed[i]);
		int fd = (int)(uint32_t)value - 1;
		struct stat seen;

		if (value == 0 || (!forked && value >> 32 != forks_count()) || fstat(fd, &seen) ||
		    seen.st_ino != ino || seen.st_dev != dev)
			continue;
		if (atomic_compare_exchange_strong(&unclosed[i], &value, 0))
			return fd;
	}
	return -1;
}

int
holes_open(const char *path, const void *addr)
{
	struct stat st;
	int fd;

	if (!path || stat(path, &st))
		return -1;
	fd = unclosed_take(st.st_dev, st.st_ino, false);
	/* Another one can't be had for a while without the lock's being lost. */
	if (fd < 0 && filelock_ours(&st))
		return -1;
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &st) || !holes_mapped_at(addr, &st))) {
		holes_close(fd);
		fd = -1;
	}
	return fd;
}

void
holes_close(int fd)
{
	if (fd >= 0 && !unclosed_put(fd))
		filelock_close(fd);
}

void
holes_end(dev_t dev, ino_t ino, bool forked)
{
	int fds[UNCLOSED_MAX];
	unsigned count = 0;

	while (count < UNCLOSED_MAX && (fds[count] = unclosed_take(dev, ino, forked)) >= 0)
		count++;
	while (count-- > 0) {
		/* For the next handle on it. */
		if (filelock_seen(fds[count]))
			holes_close(fds[count]);
		else
			(void)close(fds[count]);
	}
}

static void
holes_mark(struct holes *h, struct range data)
{
	uint64_t end = data.off + data.len;

	for (uint64_t at = data.off - data.off % HOLES_SEGMENT; at < end; at += HOLES_SEGMENT)
		h->map[at / HOLES_SEGMENT / 8] |= (uint8_t)(1U << at / HOLES_SEGMENT % 8);
}

static void
holes_data(void *arg, struct range data)
{
	holes_mark(arg, data);
}

static int
asked_row(const struct holes_asked *a, struct json_object *row, struct err *e)
{
	int64_t off = -1, len = -1;

	if (json_object_is_type(row, json_type_array) && json_object_array_length(row) == 2) {
		off = json_object_get_int64(json_object_array_get_idx(row, 0));
		len = json_object_get_int64(json_object_array_get_idx(row, 1));
	}
	if (off < 0 || len <= 0 || (uint64_t)off > a->size ||
	    (uint64_t)len > a->size - (uint64_t)off)
		return err_set(e, REPL_E_PROTOCOL, "pool.extents: bad answer");
	a->data(a->arg, (struct range){.off = (uint64_t)off, .len = (uint64_t)len});
	return 0;
}

int
holes_ask(const struct holes_asked *a, uint64_t *off, struct err *e)
{
	struct json_object *params = json_object_new_object(), *result = NULL, *rows = NULL;
	uint64_t next = 0;
	int rc;

	control_add(params, "off", json_object_new_int64((int64_t)*off));
	control_add(params, "grain", json_object_new_int64(a->grain));
	rc = remote_call(a->remote, "pool.extents", params, &result, e);
	if (!rc)
		rc = control_get_array(result, "extents", CONTROL_LINE_MAX, &rows, e);
	if (!rc)
		rc = control_get_u64(result, "next", 0, INT64_MAX, &next, e);
	rc = control_answer_bad(rc, "pool.extents", e);
	for (size_t i = 0; !rc && i < json_object_array_length(rows); i++)
		rc = asked_row(a, json_object_array_get_idx(rows, i), e);
	/* It could go on for ever. */
	if (!rc && next < a->size && next < *off + a->grain)
		rc = err_set(e, REPL_E_PROTOCOL, "pool.extents: does not come to its end");
	*off = next;
	json_object_put(result);
	return rc;
}

/*
 * Here, from the first run on. One look a segment: there may be millions of runs, and one is as
 * much as all of them.
 */
static int
holes_here(struct holes *h, int fd, struct range data, struct err *e)
{
	int rc = 0;

	while (!rc && data.len) {
		uint64_t end = data.off + data.len + HOLES_SEGMENT - 1;

		holes_mark(h, data);
		data = extents_next(fd, end - end % HOLES_SEGMENT, h->size);
		rc = h->tell ? h->tell(h->arg, e) : 0;
	}
	return rc;
}

int
holes_find(struct holes *h, struct remote *remote, int fd, uint64_t size, struct err *e)
{
	struct holes_asked asked = {.remote = remote,
				    .size = size,
				    .grain = HOLES_SEGMENT,
				    .data = holes_data,
				    .arg = h};
	struct range data = extents_next(fd, 0, size);
	int rc;

	h->map = NULL;
	h->size = size;
	if (data.len == size)
		return 0;
	h->map = calloc(1, size / HOLES_SEGMENT / 8 + 1);
	if (!h->map)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	rc = holes_here(h, fd, data, e);
	for (uint64_t off = 0; !rc && off < size;) {
		rc = holes_ask(&asked, &off, e);
		if (!rc && h->tell)
			rc = h->tell(h->arg, e);
	}
	return rc;
}

void
holes_fini(struct holes *h)
{
	free(h->map);
	h->map = NULL;
}

uint64_t
holes_next(const struct holes *h, uint64_t off)
{
	uint64_t at = off;

	while (h->map && at < h->size) {
		uint8_t bits = h->map[at / HOLES_SEGMENT / 8];

		if (bits >> at / HOLES_SEGMENT % 8 & 1)
			break;
		at += bits ? HOLES_SEGMENT : (8 - at / HOLES_SEGMENT % 8) * (uint64_t)HOLES_SEGMENT;
	}
	return at < h->size ? at : h->size;
}

#define BLANK_PIECE 16384U

/*
 * Read by calls: of a bad disk, or of a hole where the file system is full, a load would be a
 * SIGBUS. What can't be read is not known to be zeros; who needs it says why it can't.
 */
static bool
is_zero(const struct localmem *m, struct range data)
{
	_Alignas(WORDS_SIZE) uint8_t bytes[BLANK_PIECE];
	size_t n, got;

	for (uint64_t done = 0; done < data.len; done += n) {
		n = data.len - done < sizeof(bytes) ? (size_t)(data.len - done) : sizeof(bytes);
		if (localmem_read(m, bytes, n, data.off + done, &got, NULL) || got < n ||
		    bytes[0] != 0 || memcmp(bytes, bytes + 1, n - 1) != 0)
			return false;
	}
	return true;
}

bool
holes_blank(const char *path, const void *addr, uint64_t size)
{
	/* Without a name it is no less what may not be touched, as a device's. */
	const struct localmem m = {.mem = addr, .file = path ? path : ""};
	int fd = holes_open(path, addr);
	struct range data = extents_next(fd, 0, size);
	bool blank = true;

	while (blank && data.len) {
		blank = is_zero(&m, data);
		data = extents_next(fd, data.off + data.len, size);
	}
	holes_close(fd);
	return blank;
}

int
holes_touch(const uint8_t *mem, uint64_t off, uint64_t len, struct err *e)
{
	if (extents_touch(mem + off, len))
		return 0;
	return err_set(e, REPL_E_NOMEM,
		       "the file system of the local pool is full, and to read its holes in the "
		       "%" PRIu64 " bytes at %" PRIu64 " would take space: make room",
		       len, off);
}
