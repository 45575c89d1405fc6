/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmem.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <libpmem2.h>
#include <linux/magic.h>

#include "words.h"

#define PMEM_ROOM_MIN   ((size_t)1 << 40)
#define PMEM_ROOM_TIMES 16
#define PMEM_ALIGN      ((size_t)2 << 20) /* of large pages */
#define PMEM_SETTLE     ((size_t)64 << 10)

enum pmem_durable {
	PMEM_FLUSH, /* lines, then a drain */
	PMEM_SYNC,  /* pages, by one sync */
	PMEM_NONE,  /* memory is all there is */
};

struct pmem_map {
	struct pmem2_vm_reservation *reserved; /* NULL: there is no room to grow */
	size_t lead;                           /* in front of the mapping, for its alignment */
	struct pmem2_source *source;
	struct pmem2_map *map;        /* of the first part; later ones lie behind it */
	_Atomic pmem2_flush_fn flush; /* others use it while the mapping grows */
	pmem2_drain_fn drain;
	uint8_t *addr;
	_Atomic size_t size;
	size_t room; /* size that it may grow to */
	bool write;
	uint64_t fd_off;          /* of the source's file, where the mapping begins */
	_Atomic size_t file_size; /* what of the mapping is the source's page cache: from 0 on */
	enum profile_granularity granularity;
	enum pmem_durable durable;
	uint64_t page_size;
	char *path;
	pthread_mutex_t sync_lock; /* of one sync at a time, and lost */
	bool lost;                 /* a sync has failed */
	struct pmem_map *copy;     /* gets what is made durable here; the next one is its own's */
	pthread_mutex_t copy_lock; /* of what is stored to copies */
};

static struct {
	pmem_survive_fn survive;
	const void *arg;
} caches;

void
pmem_caches(pmem_survive_fn survive, const void *arg)
{
	caches.survive = survive;
	caches.arg = arg;
}

/* libpmem2 returns its own codes below PMEM2_E_UNKNOWN, and -errno. */
static int
pmem_fail(struct err *e, int rc, const char *path)
{
	int code = rc <= PMEM2_E_UNKNOWN ? REPL_E_IO : err_from_errno(-rc);

	return err_set(e, code, "map %s: libpmem2: %s", path, pmem2_errormsg());
}

static bool
pmem_is_device(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode);
}

/* A device file lies on devtmpfs, which has the magic of tmpfs. */
static bool
pmem_in_memory(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) != 0)
		return false;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

static enum profile_granularity
pmem_granularity(enum pmem2_granularity g)
{
	switch (g) {
	case PMEM2_GRANULARITY_BYTE:
		return PROFILE_GRAN_BYTE;
	case PMEM2_GRANULARITY_CACHE_LINE:
		return PROFILE_GRAN_CACHE_LINE;
	case PMEM2_GRANULARITY_PAGE:
		break;
	}
	return PROFILE_GRAN_PAGE;
}

/*
 * Finer than a page is what MAP_SYNC works for, DAX. It is asked here again, and not of the pool's
 * addresses: libpmem2 takes the word of PMEM2_FORCE_GRANULARITY against it.
 */
static bool
pmem_is_dax(int fd, size_t off)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	if (pmem_is_device(fd))
		return true;
	p = mmap(NULL, len, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd, (off_t)off);
	return p != MAP_FAILED && munmap(p, len) == 0;
}

static enum profile_granularity
pmem_granularity_found(const struct pmem_map *m, int fd)
{
	enum profile_granularity g = pmem_granularity(pmem2_map_get_store_granularity(m->map));

	return g == PROFILE_GRAN_PAGE || pmem_is_dax(fd, m->fd_off) ? g : PROFILE_GRAN_PAGE;
}

/* Any granularity will do: what is found decides how it is flushed. */
static int
pmem_config_fill(struct pmem2_config *c, const struct pmem_map *m, size_t off, size_t size)
{
	unsigned prot = PMEM2_PROT_READ | (m->write ? PMEM2_PROT_WRITE : 0);
	int rc;

	rc = pmem2_config_set_required_store_granularity(c, PMEM2_GRANULARITY_PAGE);
	if (rc == 0)
		rc = pmem2_config_set_sharing(c, PMEM2_SHARED);
	if (rc == 0)
		rc = pmem2_config_set_length(c, size);
	if (rc == 0)
		rc = pmem2_config_set_offset(c, off);
	if (rc == 0)
		rc = pmem2_config_set_protection(c, prot);
	if (rc == 0 && m->reserved)
		rc = pmem2_config_set_vm_reservation(c, m->reserved, m->lead);
	return rc;
}

/* Addresses cost nothing, but a limit on them may be set: as much as is given, down to size. */
static void
pmem_reserve(struct pmem_map *m, size_t size)
{
	size_t least = size + (PMEM_ALIGN - size % PMEM_ALIGN) % PMEM_ALIGN;
	size_t room = size > SIZE_MAX / 2 / PMEM_ROOM_TIMES ? size : size * PMEM_ROOM_TIMES;
	uintptr_t at;

	if (size > SIZE_MAX / 2)
		return;
	room = room < PMEM_ROOM_MIN ? PMEM_ROOM_MIN : room;
	for (;; room /= 2) {
		room -= room % PMEM_ALIGN;
		room = room < least ? least : room;
		if (pmem2_vm_reservation_new(&m->reserved, NULL, room + PMEM_ALIGN) == 0)
			break;
		m->reserved = NULL;
		if (room == least)
			return;
	}
	at = (uintptr_t)pmem2_vm_reservation_get_address(m->reserved);
	m->lead = (PMEM_ALIGN - at % PMEM_ALIGN) % PMEM_ALIGN;
	m->room = room;
}

/*
 * What is to be mapped for so many bytes: whole units, of a device or pages of a file. 0: to the
 * file's end, which lies in the last page of these; libpmem2 takes that page no other way.
 */
static int
pmem_length(const struct pmem_map *m, size_t off, size_t size, size_t *length)
{
	size_t align, file_size;
	int rc = pmem2_source_alignment(m->source, &align);

	if (rc == 0)
		rc = pmem2_source_size(m->source, &file_size);
	if (rc)
		return rc;
	*length = size + (align - size % align) % align;
	if (off + size <= file_size && off + *length > file_size)
		*length = 0;
	return 0;
}

static int
pmem_map_open(struct pmem_map *m, int fd, size_t off, size_t size)
{
	struct pmem2_config *config = NULL;
	size_t length = 0;
	int rc;

	rc = pmem2_source_from_fd(&m->source, fd);
	if (rc == 0)
		rc = pmem_length(m, off, size, &length);
	if (rc == 0)
		rc = pmem2_config_new(&config);
	if (rc == 0)
		rc = pmem_config_fill(config, m, off, length);
	if (rc == 0)
		rc = pmem2_map_new(&m->map, config, m->source);
	(void)pmem2_config_delete(&config);
	return rc;
}

static bool
pmem_caches_survive(int fd)
{
	return caches.survive && caches.survive(caches.arg, fd);
}

/*
 * The function by which libpmem2 flushes lines on this processor: of memory that it is told to be
 * such as needs it, since of a mapping it gives an empty one where it takes the machine for one
 * with eADR. It is asked once, and the memory stays: pmem2_map_delete() of a mapping that it has
 * not made itself leaves that registered, where another one might come to lie.
 */
static struct {
	pthread_once_t once;
	struct pmem2_source *source;
	struct pmem2_map *map;
	int rc;
} lines = {.once = PTHREAD_ONCE_INIT};

static void
lines_init(void)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	lines.rc = p == MAP_FAILED ? -errno : pmem2_source_from_anon(&lines.source, len);
	if (lines.rc == 0)
		lines.rc = pmem2_map_from_existing(&lines.map, lines.source, p, len,
						   PMEM2_GRANULARITY_CACHE_LINE);
}

static int
pmem_line_flush(pmem2_flush_fn *flush)
{
	(void)pthread_once(&lines.once, lines_init);
	if (lines.rc == 0)
		*flush = pmem2_get_flush_fn(lines.map);
	return lines.rc;
}

/* What lies behind fd is in the mapping from now on. */
static int
pmem_flush_choose(struct pmem_map *m, int fd)
{
	pmem2_flush_fn flush = NULL;
	int rc;

	if (m->granularity != PROFILE_GRAN_BYTE || pmem_caches_survive(fd))
		return 0;
	rc = pmem_line_flush(&flush);
	if (rc == 0)
		m->flush = flush;
	return rc;
}

int
pmem_map_new(int fd, const char *path, size_t size, bool write, struct pmem_map **out,
	     struct err *e)
{
	return pmem_map_new_at(fd, path, 0, size, size, write, out, e);
}

int
pmem_map_new_at(int fd, const char *path, uint64_t fd_off, size_t size, size_t total, bool write,
		struct pmem_map **out, struct err *e)
{
	struct pmem_map *m = calloc(1, sizeof(*m));
	int rc;

	*out = NULL;
	if (m) {
		(void)pthread_mutex_init(&m->copy_lock, NULL);
		(void)pthread_mutex_init(&m->sync_lock, NULL);
		m->path = strdup(path);
	}
	if (!m || !m->path) {
		pmem_map_free(m);
		return err_set(e, REPL_E_NOMEM, "map %s: out of memory", path);
	}
	m->write = write;
	m->room = size;
	if (write || total > size)
		pmem_reserve(m, total);
	if (!m->reserved)
		m->room = size;
	if (m->room < total)
		rc = err_set(e, REPL_E_LIMIT, "map %s: no addresses for %zu bytes in a row", path,
			     total);
	else if ((rc = pmem_map_open(m, fd, fd_off, size)) != 0)
		rc = pmem_fail(e, rc, path);
	if (rc != 0) {
		pmem_map_free(m);
		return rc;
	}
	m->addr = pmem2_map_get_address(m->map);
	m->size = size;
	m->fd_off = fd_off;
	m->granularity = pmem_granularity_found(m, fd);
	m->file_size = m->granularity == PROFILE_GRAN_PAGE && !pmem_is_device(fd) ? size : 0;
	m->flush = pmem2_get_flush_fn(m->map);
	m->drain = pmem2_get_drain_fn(m->map);
	rc = pmem_flush_choose(m, fd);
	if (rc != 0) {
		rc = pmem_fail(e, rc, path);
		pmem_map_free(m);
		return rc;
	}
	m->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	/*
	 * A sync of tmpfs moves nothing, yet costs 0.6 us a commit, and a power
	 * cut takes the pool either way.
	 */
	if (pmem_in_memory(fd))
		m->durable = PMEM_NONE;
	else
		m->durable = m->granularity == PROFILE_GRAN_PAGE ? PMEM_SYNC : PMEM_FLUSH;
	*out = m;
	return REPL_OK;
}

void
pmem_map_free(struct pmem_map *m)
{
	if (!m)
		return;
	pmem_map_free(m->copy);
	(void)pthread_mutex_destroy(&m->copy_lock);
	(void)pthread_mutex_destroy(&m->sync_lock);
	if (m->map)
		(void)pmem2_map_delete(&m->map);
	if (m->source)
		(void)pmem2_source_delete(&m->source);
	/* With all that was mapped behind the first part. */
	if (m->reserved)
		(void)pmem2_vm_reservation_delete(&m->reserved);
	free(m->path);
	free(m);
}

void *
pmem_map_addr(const struct pmem_map *m)
{
	return m->addr;
}

size_t
pmem_map_size(const struct pmem_map *m)
{
	return atomic_load_explicit(&m->size, memory_order_acquire);
}

size_t
pmem_map_room(const struct pmem_map *m)
{
	size_t room = m->room;

	for (m = m->copy; m; m = m->copy)
		room = m->room < room ? m->room : room;
	return room;
}

/* Of the source, or -1. */
static int
pmem_fd(const struct pmem_map *m)
{
	int fd;

	return pmem2_source_get_fd(m->source, &fd) == 0 ? fd : -1;
}

/*
 * Not by libpmem2, whose trial of MAP_SYNC would leave addresses free for a
 * moment: what the first part was mapped with suits the next one.
 */
static void *
pmem_map_at(const struct pmem_map *m, uint8_t *at, size_t len, int fd, off_t off)
{
	int prot = PROT_READ | (m->write ? PROT_WRITE : 0);
	bool page = m->granularity == PROFILE_GRAN_PAGE;
	int flags = page ? MAP_SHARED : MAP_SHARED_VALIDATE | MAP_SYNC;

	return mmap(at, len, prot, flags | MAP_FIXED, fd, off);
}

int
pmem_map_extend(struct pmem_map *m, uint64_t at, int fd, uint64_t fd_off, size_t len, struct err *e)
{
	/* The rest of a page that is mapped already. */
	size_t lead = (m->page_size - at % m->page_size) % m->page_size;
	int rc;

	if (at > m->room || len > m->room - at)
		return err_set(e, REPL_E_LIMIT,
			       "%s is mapped with %zu bytes and has addresses for %zu: open it "
			       "anew to let it grow beyond, or raise the limit on address space",
			       m->path, pmem_map_size(m), m->room);
	if (len > lead && pmem_map_at(m, m->addr + at + lead, len - lead, fd,
				      (off_t)(fd_off + lead)) == MAP_FAILED)
		return err_errno(e, err_from_errno(errno), errno, "map %zu bytes more of %s", len,
				 m->path);
	if ((rc = pmem_flush_choose(m, fd)) != 0)
		return pmem_fail(e, rc, m->path);
	if (pmem_fd(m) == fd && at == m->file_size && fd_off == m->fd_off + at)
		m->file_size = at + len;
	return REPL_OK;
}

void
pmem_map_set_size(struct pmem_map *m, size_t size)
{
	/* Who sees the size may make durable what lies below it. */
	if (m->copy)
		pmem_map_set_size(m->copy, size);
	atomic_store_explicit(&m->size, size, memory_order_release);
}

enum profile_granularity
pmem_map_granularity(const struct pmem_map *m)
{
	return m->granularity;
}

/*
 * One msync over the span: it writes dirty pages only, and two syncs cost more
 * than the clean pages between them. libpmem2's persist function would do the
 * same, but it aborts the process when the device fails; this way the error
 * reaches the initiator and the log.
 *
 * The kernel tells it once, to whichever of two syncs, and leaves what was lost clean: so there is
 * one at a time, and none behind one that has failed.
 */
static int
pmem_sync_span(struct pmem_map *m, const struct range *r, size_t count, struct err *e)
{
	uint64_t first = r[0].off;
	uint64_t end = r[0].off + r[0].len;
	uint8_t *start;
	int rc = REPL_OK;

	for (size_t i = 1; i < count; i++) {
		if (r[i].off < first)
			first = r[i].off;
		if (r[i].off + r[i].len > end)
			end = r[i].off + r[i].len;
	}
	first -= first % m->page_size;
	start = m->addr + first;
	(void)pthread_mutex_lock(&m->sync_lock);
	if (m->lost)
		rc = err_set(e, REPL_E_IO, "sync %s: an earlier one has failed", m->path);
	else if (msync(start, end - first, MS_SYNC) != 0)
		rc = err_errno(e, REPL_E_IO, errno, "sync %s, %llu bytes at %llu", m->path,
			       (unsigned long long)(end - first), (unsigned long long)first);
	m->lost |= rc != 0;
	(void)pthread_mutex_unlock(&m->sync_lock);
	return rc;
}

static int
pmem_persist_own(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	if (m->durable == PMEM_SYNC)
		return pmem_sync_span(m, r, count, e);
	if (m->durable == PMEM_FLUSH) {
		pmem2_flush_fn flush = m->flush;

		/* Where caches survive it is empty. */
		for (size_t i = 0; i < count; i++)
			flush(m->addr + r[i].off, r[i].len);
		m->drain();
	}
	return REPL_OK;
}

static bool
back_own(struct pmem_map *m, uint64_t off, size_t len)
{
	uint64_t from = off - off % m->page_size, end = off + len;

	/* Older kernels (before 5.14) don't know it. */
	if (len == 0 || madvise(m->addr + from, end - from, MADV_POPULATE_WRITE) == 0 ||
	    errno != EFAULT)
		return true;
	/* What can't be read either is the device's affair, but for tmpfs, which takes space for
	 * that. */
	return !pmem_in_memory(pmem_fd(m)) &&
	       madvise(m->addr + from, end - from, MADV_POPULATE_READ) != 0;
}

/* ---- copies ---- */

/*
 * Storing there is no SIGBUS: of a page that is stored to at *asked last it was. Only where pages
 * are synced may another file share their blocks.
 */
static bool
copy_takes(struct pmem_map *to, uint64_t off, uint64_t *asked)
{
	uint64_t page = off / to->page_size + 1;

	if (to->durable != PMEM_SYNC || page == *asked)
		return true;
	*asked = page;
	return back_own(to, off, 1);
}

static bool
copy_bytes(const struct pmem_map *m, struct pmem_map *to, uint64_t off, uint64_t end,
	   uint64_t *asked)
{
	for (; off < end; off++) {
		if (to->addr[off] == m->addr[off])
			continue;
		if (!copy_takes(to, off, asked))
			return false;
		to->addr[off] = m->addr[off];
	}
	return true;
}

static int
copy_full(const struct range *r, struct err *e)
{
	return err_set(e, REPL_E_NOSPC, "no space is left for %llu bytes at %llu of it: make room",
		       (unsigned long long)r->len, (unsigned long long)r->off);
}

/*
 * What is one store in a pool, 8 aligned bytes, is one in its copies, whatever is around it. What
 * is equal is not stored: its page would be written to the disk.
 */
static int
copy_range(const struct pmem_map *m, struct pmem_map *to, const struct range *r, struct err *e)
{
	uint64_t end = r->off + r->len, off = (r->off + 7) / 8 * 8, asked = 0;

	if (off > end)
		off = end;
	if (!copy_bytes(m, to, r->off, off, &asked))
		return copy_full(r, e);
	for (; off + 8 <= end; off += 8) {
		const uint64_t *from = (const uint64_t *)(const void *)(m->addr + off);
		uint64_t *at = (uint64_t *)(void *)(to->addr + off);
		uint64_t word = __atomic_load_n(from, __ATOMIC_RELAXED);

		if (__atomic_load_n(at, __ATOMIC_RELAXED) == word)
			continue;
		if (!copy_takes(to, off, &asked))
			return copy_full(r, e);
		__atomic_store_n(at, word, __ATOMIC_RELAXED);
	}
	return copy_bytes(m, to, off, end, &asked) ? 0 : copy_full(r, e);
}

/*
 * Under the lock: of two threads that make the same bytes durable the one that has read older ones
 * must not store them last.
 */
static int
persist_copies(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	int rc = REPL_OK;

	(void)pthread_mutex_lock(&m->copy_lock);
	for (struct pmem_map *to = m->copy; !rc && to; to = to->copy) {
		for (size_t i = 0; !rc && i < count; i++)
			rc = copy_range(m, to, &r[i], e);
		if (!rc)
			rc = pmem_persist_own(to, r, count, e);
		if (rc)
			rc = err_prefix(e, "local replica");
	}
	(void)pthread_mutex_unlock(&m->copy_lock);
	return rc;
}

int
pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	int rc = REPL_OK;

	if (count > 0)
		rc = pmem_persist_own(m, r, count, e);
	return rc || !m->copy || count == 0 ? rc : persist_copies(m, r, count, e);
}

int
pmem_map_add_copy(struct pmem_map *m, struct pmem_map *copy, struct err *e)
{
	struct pmem_map **at = &m->copy;

	if (pmem_map_size(copy) != pmem_map_size(m) || !copy->write || !m->write) {
		pmem_map_free(copy);
		return err_set(e, REPL_E_INVAL, "%s: a copy of another size, or to be read only",
			       m->path);
	}
	while (*at)
		at = &(*at)->copy;
	*at = copy;
	return 0;
}

struct pmem_map *
pmem_map_copy_of(const struct pmem_map *m)
{
	return m->copy;
}

int
pmem_map_settle_copies(struct pmem_map *m, uint64_t *differed, struct err *e)
{
	size_t size = pmem_map_size(m);
	int rc = 0;

	*differed = 0;
	for (struct pmem_map *to = m->copy; !rc && to; to = to->copy) {
		struct range whole = {.off = 0, .len = size};
		uint64_t before = *differed;

		for (uint64_t off = 0; !rc && off < size; off += PMEM_SETTLE) {
			size_t len = size - off < PMEM_SETTLE ? (size_t)(size - off) : PMEM_SETTLE;
			struct range r = {.off = off, .len = len};

			if (memcmp(m->addr + off, to->addr + off, len) == 0)
				continue;
			*differed += len;
			rc = copy_range(m, to, &r, e);
			if (!rc && to->durable != PMEM_SYNC)
				rc = pmem_persist_own(to, &r, 1, e);
		}
		if (!rc && to->durable == PMEM_SYNC && *differed > before)
			rc = pmem_persist_own(to, &whole, 1, e);
	}
	return rc ? err_prefix(e, "local replica") : 0;
}

/*
 * On tmpfs a first touch that reads maps 16 neighbours too, writable; one
 * that writes maps its page alone (0.36 us a page against 1.9 us). A page
 * cache with dirty tracking would fault a second time, and large folios need
 * no help: hence for tmpfs only.
 */
static void
pmem_touch(const struct pmem_map *m, uint64_t off, size_t len)
{
	uint64_t end = off + len;

	for (; off < end; off += m->page_size - off % m->page_size)
		(void)*(const volatile uint8_t *)(m->addr + off);
}

void
pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	if (m->durable == PMEM_NONE)
		pmem_touch(m, off, len);
	words_store(m->addr + off, src, len);
}

/* ---- by the file ---- */

/* Below this the system call costs more than what it spares. */
#define PMEM_BY_FILE ((size_t)4096)

/*
 * A file that was cut is for the mapping to tell, by a SIGBUS: a write would let it grow again,
 * with zeros where bytes of the pool have been.
 */
static bool
file_is_whole(const struct pmem_map *m, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size >= m->fd_off + m->file_size;
}

static bool
file_has(const struct pmem_map *m, uint64_t off, size_t len)
{
	return len >= PMEM_BY_FILE && off + len <= m->file_size;
}

bool
pmem_map_by_file(const struct pmem_map *m)
{
	return m->file_size > 0;
}

/* What the file does not take, for whatever reason, goes by the mapping, as does the rest. */
bool
pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	int fd = pmem_fd(m);
	ssize_t n = -1;

	if (file_has(m, off, len) && file_is_whole(m, fd))
		n = pwrite(fd, src, len, (off_t)(m->fd_off + off));
	if (n == (ssize_t)len && file_is_whole(m, fd))
		return !m->copy || pmem_map_back(m->copy, off, len);
	if (!pmem_map_back(m, off, len))
		return false;
	pmem_map_copy(m, off, src, len);
	return true;
}

void
pmem_map_get(const struct pmem_map *m, uint64_t off, void *dst, size_t len)
{
	ssize_t n = -1;

	if (file_has(m, off, len))
		n = pread(pmem_fd(m), dst, len, (off_t)(m->fd_off + off));
	if (n != (ssize_t)len)
		memcpy(dst, m->addr + off, len);
}

static bool
is_full(ssize_t written)
{
	return written == 0 || errno == ENOSPC || errno == EDQUOT;
}

/* Synced as data: times of the file alone are no reason to commit a journal. */
static int
file_write(int fd, const char *path, uint64_t off, const uint8_t *src, size_t len, struct err *e)
{
	while (len > 0) {
		struct iovec iov = {.iov_base = (void *)(uintptr_t)src, .iov_len = len};
		ssize_t n = pwritev2(fd, &iov, 1, (off_t)off, RWF_DSYNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, is_full(n) ? REPL_E_NOSPC : REPL_E_IO,
					 n < 0 ? errno : ENOSPC, "write %s, %zu bytes at %llu",
					 path, len, (unsigned long long)off);
		off += (uint64_t)n;
		src += n;
		len -= (size_t)n;
	}
	return 0;
}

int
pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len, struct err *e)
{
	struct range r = {.off = off, .len = len};
	int fd = pmem_fd(m);

	if (m->durable == PMEM_SYNC && !m->copy && fd >= 0)
		return file_write(fd, m->path, off, src, len, e);
	pmem_map_copy(m, off, src, len);
	return pmem_map_persist(m, &r, 1, e);
}

bool
pmem_map_zero(struct pmem_map *m, uint64_t off, size_t len, bool hole)
{
	uint8_t *at = m->addr + off;

	/* Not every file system has holes. One is not durable by flushing lines. */
	if (hole && madvise(at, len, MADV_REMOVE) == 0 &&
	    (m->durable != PMEM_FLUSH || msync(at, len, MS_SYNC) == 0))
		return true;
	if (hole && !pmem_map_back(m, off, len))
		return false;
	memset(at, 0, len);
	return true;
}

void
pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src)
{
	uint64_t v;

	memcpy(&v, src, sizeof(v));
	__atomic_store_n((uint64_t *)(void *)(m->addr + off), v, __ATOMIC_RELEASE);
}

bool
pmem_map_groups(const struct pmem_map *m)
{
	bool sync = m->durable == PMEM_SYNC;

	for (m = m->copy; m; m = m->copy)
		sync |= m->durable == PMEM_SYNC;
	return sync;
}

bool
pmem_map_back(struct pmem_map *m, uint64_t off, size_t len)
{
	for (; m; m = m->copy)
		if (!back_own(m, off, len))
			return false;
	return true;
}
