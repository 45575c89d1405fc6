/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <libpmem2.h>
#include <linux/magic.h>

#define PMEM_PREFAULT_MAX ((size_t)4 << 30)

enum pmem_durable {
	PMEM_FLUSH, /* lines, then a drain */
	PMEM_SYNC,  /* pages, by one sync */
	PMEM_NONE,  /* memory is all there is */
};

struct pmem_map {
	struct pmem2_source *source;
	struct pmem2_map *map;
	pmem2_flush_fn flush;
	pmem2_drain_fn drain;
	uint8_t *addr;
	size_t size;
	enum profile_granularity granularity;
	enum pmem_durable durable;
	uint64_t page_size;
	char *path;
};

/* libpmem2 returns its own codes below PMEM2_E_UNKNOWN, and -errno. */
static int
pmem_fail(struct err *e, int rc, const char *path)
{
	int code = rc <= PMEM2_E_UNKNOWN ? REPL_E_IO : err_from_errno(-rc);

	return err_set(e, code, "map %s: libpmem2: %s", path, pmem2_errormsg());
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

/* Any granularity will do: what libpmem2 finds decides how it is flushed. */
static int
pmem_config_fill(struct pmem2_config *c, size_t size, bool write)
{
	unsigned prot = PMEM2_PROT_READ | (write ? PMEM2_PROT_WRITE : 0);
	int rc;

	rc = pmem2_config_set_required_store_granularity(c, PMEM2_GRANULARITY_PAGE);
	if (rc == 0)
		rc = pmem2_config_set_sharing(c, PMEM2_SHARED);
	if (rc == 0)
		rc = pmem2_config_set_length(c, size);
	if (rc == 0)
		rc = pmem2_config_set_protection(c, prot);
	return rc;
}

static int
pmem_map_open(struct pmem_map *m, int fd, size_t size, bool write)
{
	struct pmem2_config *config = NULL;
	int rc;

	rc = pmem2_source_from_fd(&m->source, fd);
	if (rc == 0)
		rc = pmem2_config_new(&config);
	if (rc == 0)
		rc = pmem_config_fill(config, size, write);
	if (rc == 0)
		rc = pmem2_map_new(&m->map, config, m->source);
	(void)pmem2_config_delete(&config);
	return rc;
}

int
pmem_map_new(int fd, const char *path, size_t size, bool write, struct pmem_map **out,
	     struct err *e)
{
	struct pmem_map *m = calloc(1, sizeof(*m));
	int rc;

	*out = NULL;
	if (m)
		m->path = strdup(path);
	if (!m || !m->path) {
		pmem_map_free(m);
		return err_set(e, REPL_E_NOMEM, "map %s: out of memory", path);
	}
	rc = pmem_map_open(m, fd, size, write);
	if (rc != 0) {
		rc = pmem_fail(e, rc, path);
		pmem_map_free(m);
		return rc;
	}
	m->addr = pmem2_map_get_address(m->map);
	m->size = size;
	m->granularity = pmem_granularity(pmem2_map_get_store_granularity(m->map));
	m->flush = pmem2_get_flush_fn(m->map);
	m->drain = pmem2_get_drain_fn(m->map);
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
	if (m->map)
		(void)pmem2_map_delete(&m->map);
	if (m->source)
		(void)pmem2_source_delete(&m->source);
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
	return m->size;
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
 */
static int
pmem_sync_span(struct pmem_map *m, const struct range *r, size_t count, struct err *e)
{
	uint64_t first = r[0].off;
	uint64_t end = r[0].off + r[0].len;
	uint8_t *start;

	for (size_t i = 1; i < count; i++) {
		if (r[i].off < first)
			first = r[i].off;
		if (r[i].off + r[i].len > end)
			end = r[i].off + r[i].len;
	}
	first -= first % m->page_size;
	start = m->addr + first;
	if (msync(start, end - first, MS_SYNC) == 0)
		return REPL_OK;
	return err_errno(e, REPL_E_IO, errno, "sync %s, %llu bytes at %llu", m->path,
			 (unsigned long long)(end - first), (unsigned long long)first);
}

int
pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	if (count == 0)
		return REPL_OK;
	if (m->durable == PMEM_SYNC)
		return pmem_sync_span(m, r, count, e);
	if (m->durable == PMEM_FLUSH) {
		/* With byte granularity the flush is empty. */
		for (size_t i = 0; i < count; i++)
			m->flush(m->addr + r[i].off, r[i].len);
		m->drain();
	}
	return REPL_OK;
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
	memcpy(m->addr + off, src, len);
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
	return m->durable == PMEM_SYNC;
}

void
pmem_map_prefault(struct pmem_map *m)
{
	size_t len = m->size < PMEM_PREFAULT_MAX ? m->size : PMEM_PREFAULT_MAX;

	/* 0.2 s a GiB against 0.6 s page by page; older kernels don't know it. */
	if (m->durable == PMEM_NONE)
		(void)madvise(m->addr, len, MADV_POPULATE_READ);
}
