/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The media variant of pmem.h: the pool is what everybody sees, the media are
 * what a power cut leaves of it, see media_survival.h.
 *
 * The mapping is the pool file's, so that a killed process loses nothing of
 * it, as a killed process never does. A power cut is: kill, media_cut, start again.
 * For that there is kept beside the pool either PATH.media, an image that begins
 * as a copy of the pool and gets only what pmem_map_persist() was given, or
 * PATH.dirty, the record of what the CPU has stored and not flushed.
 *
 *   REPL_MEDIA_DOMAIN=dmp|mhp|wsp and REPL_MEDIA_DDIO=on|off   the machine; the
 *       first ones by default.
 *   REPL_MEDIA_GRANULARITY=byte|cache_line|page   what the mapping says it has;
 *       page by default. Persisting rounds to 4096 bytes for page, else to 64. With
 *       page only the flushed survives, in all domains.
 *   REPL_MEDIA_EVICT=SEED   lines (pages) also reach the media at random and at
 *       once, as caches write back when they please: of a copy, and of what lies
 *       near a range that is persisted. Ranges that are persisted together are so
 *       in any order and take their time, as some stores do: what relies on
 *       unflushed bytes being absent, or on an order that nobody asked for, is
 *       found out.
 *   REPL_MEDIA_NAP_US=N     how much time that is at most; 500.
 *   PATH.kill, a file with a number N, taken away when the pool is mapped for
 *       writing: the process kills itself at the N-th store or persist after that.
 *       So a cut meets what is over in a moment, like a replay.
 *   REPL_MEDIA_DROP=N       every N-th range is forgotten instead of persisted:
 *       shows that a test would notice a flush that is missing.
 */
#include "pmem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filewrite.h"
#include "media_survival.h"

#define MEDIA_CHUNK      (1U << 20)
#define MEDIA_ROOM       ((size_t)1 << 36)
#define EVICT_NEAR       (128U << 10)
#define EVICT_ONE_IN     4U
#define EVICT_NAP_US     500U
#define STORE_NAP_ONE_IN 32U

/* What one thread has read of a file is not written to its image behind what another one has. */
static pthread_mutex_t images = PTHREAD_MUTEX_INITIALIZER;

struct pmem_map {
	uint8_t *addr;
	_Atomic size_t size;
	size_t room; /* addresses held, from addr on */
	struct media_settings set;
	bool write;
	int image;                 /* or -1 */
	struct media_dirty *dirty; /* or NULL */
	bool evict;
	uint64_t nap_us;         /* at most */
	_Atomic uint64_t random; /* state of the generator, never 0 */
	uint64_t drop;           /* every how many ranges one is dropped, 0: never */
	_Atomic uint64_t ranges; /* persisted or dropped so far */
	uint64_t kill;           /* after so many stores and persists the process is, 0: never */
	_Atomic uint64_t lived;  /* stores and persists */
	char *path;              /* of the image */
};

/* Of each pool its own, by its name: a pool that is met again meets the same. */
static void
media_seed(struct pmem_map *m, const char *path)
{
	const char *text = getenv("REPL_MEDIA_EVICT");
	const char *nap = getenv("REPL_MEDIA_NAP_US");
	const char *slash = strrchr(path, '/');

	m->evict = text != NULL;
	if (!m->evict)
		return;
	m->nap_us = nap ? strtoull(nap, NULL, 0) : EVICT_NAP_US;
	if (m->nap_us == 0)
		m->nap_us = 1;
	m->random = strtoull(text, NULL, 0);
	for (const char *c = slash ? slash + 1 : path; *c; c++)
		m->random = (m->random ^ (uint8_t)*c) * 0x9e3779b97f4a7c15U;
	m->random |= 1;
}

static void
media_set_drop(struct pmem_map *m)
{
	const char *text = getenv("REPL_MEDIA_DROP");

	m->drop = text ? strtoull(text, NULL, 0) : 0;
}

static void
media_set_kill(struct pmem_map *m, const char *pool)
{
	char path[4096];
	unsigned n = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s.kill", pool);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fscanf(f, "%u", &n) == 1)
		m->kill = n;
	(void)fclose(f);
	(void)unlink(path);
}

static void
media_live(struct pmem_map *m)
{
	if (m->kill > 0 && atomic_fetch_add(&m->lived, 1) + 1 == m->kill)
		(void)raise(SIGKILL);
}

/* xorshift64 */
static uint64_t
media_random(struct pmem_map *m)
{
	uint64_t was = atomic_load(&m->random), is;

	do {
		is = was ^ was << 13;
		is ^= is >> 7;
		is ^= is << 17;
	} while (!atomic_compare_exchange_weak(&m->random, &was, is));
	return is;
}

static int
media_write(const struct pmem_map *m, uint64_t off, uint64_t len, struct err *e)
{
	int rc;

	(void)pthread_mutex_lock(&images);
	rc = filewrite_all(m->image, m->addr + off, len, (off_t)off);
	(void)pthread_mutex_unlock(&images);
	return rc ? err_errno(e, REPL_E_IO, errno, "write %s", m->path) : REPL_OK;
}

static uint64_t
media_unit(const struct pmem_map *m)
{
	return m->set.granularity == PROFILE_GRAN_PAGE ? MEDIA_PAGE : MEDIA_LINE;
}

/* The range rounded to whole units, cut by the end of the pool. */
static int
media_write_units(const struct pmem_map *m, uint64_t off, uint64_t len, struct err *e)
{
	uint64_t unit = media_unit(m);
	uint64_t first = off - off % unit;
	uint64_t end = (off + len + unit - 1) / unit * unit;

	if (end > m->size)
		end = m->size;
	return media_write(m, first, end - first, e);
}

/* The range reaches the media. */
static int
media_reach(struct pmem_map *m, uint64_t off, uint64_t len, struct err *e)
{
	if (m->dirty)
		media_dirty_clean(m->dirty, off, len);
	return m->image < 0 ? REPL_OK : media_write_units(m, off, len, e);
}

static void
media_evict(struct pmem_map *m, uint64_t off, uint64_t len)
{
	if (!m->evict || len == 0 || media_random(m) % EVICT_ONE_IN != 0)
		return;
	(void)media_reach(m, off + media_random(m) % len, 1, NULL);
}

/* Also what no store of ours has brought: RMA, in parts. */
static void
media_evict_near(struct pmem_map *m, uint64_t off)
{
	media_evict(m, off, m->size - off < EVICT_NEAR ? m->size - off : EVICT_NEAR);
}

/* Whoever cuts the power meanwhile finds what was done before this and nothing after. */
static void
media_nap(struct pmem_map *m, unsigned one_in)
{
	if (m->evict && media_random(m) % one_in == 0)
		(void)usleep((useconds_t)(media_random(m) % m->nap_us));
}

static bool
media_is_zero(const uint8_t *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

/* Holes stay holes. */
static int
media_fill(const struct pmem_map *m, struct err *e)
{
	int rc = REPL_OK;

	if (ftruncate(m->image, (off_t)m->size) != 0)
		return err_errno(e, REPL_E_IO, errno, "size %s", m->path);
	for (uint64_t off = 0; off < m->size && rc == REPL_OK; off += MEDIA_CHUNK) {
		uint64_t len = m->size - off < MEDIA_CHUNK ? m->size - off : MEDIA_CHUNK;

		if (!media_is_zero(m->addr + off, len))
			rc = media_write(m, off, len, e);
	}
	return rc;
}

/* By a temporary name: a kill half way leaves no half image. */
static int
media_create(struct pmem_map *m, int fd, struct err *e)
{
	char temp[4096];
	int rc;

	if (snprintf(temp, sizeof(temp), "%s.new", m->path) >= (int)sizeof(temp))
		return err_set(e, REPL_E_INVAL, "%s: too long", m->path);
	m->image = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (m->image < 0)
		return err_errno(e, err_from_errno(errno), errno, "create %s", temp);
	rc = media_fill(m, e);
	media_mark(m->image, fd);
	if (rc == REPL_OK && rename(temp, m->path) != 0)
		rc = err_errno(e, REPL_E_IO, errno, "rename %s", temp);
	return rc;
}

static int
media_open(struct pmem_map *m, int fd, struct err *e)
{
	struct stat st;
	uint64_t size;

	m->image = open(m->path, O_RDWR | O_CLOEXEC);
	if (m->image < 0 && errno == ENOENT)
		return media_create(m, fd, e);
	if (m->image < 0 || fstat(m->image, &st) != 0)
		return err_errno(e, err_from_errno(errno), errno, "open %s", m->path);
	if (!media_is_of(m->image, fd)) {
		(void)close(m->image);
		return media_create(m, fd, e);
	}
	/* A growth that was not recorded; or one of a file that nobody had mapped. */
	size = (uint64_t)st.st_size;
	if (size > m->size && ftruncate(m->image, (off_t)m->size) != 0)
		return err_errno(e, REPL_E_IO, errno, "size %s", m->path);
	return size < m->size ? media_write(m, size, m->size - size, e) : REPL_OK;
}

static void
media_take(int image, int fd, off_t size)
{
	static uint8_t buf[MEDIA_CHUNK];

	(void)pthread_mutex_lock(&images);
	for (off_t off = 0; off < size;) {
		size_t room = size - off < (off_t)sizeof(buf) ? (size_t)(size - off) : sizeof(buf);
		ssize_t n = pread(fd, buf, room, off);

		if (n <= 0 || filewrite_all(image, buf, (size_t)n, off) != 0)
			break;
		off += n;
	}
	(void)pthread_mutex_unlock(&images);
}

void
media_synced(int fd)
{
	char link[64], path[4096 - 8];
	struct stat st;
	ssize_t n;
	int image;

	/* It would make good what is left out. */
	if (getenv("REPL_MEDIA_DROP"))
		return;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - sizeof(".media"));
	if (n <= 0)
		return;
	memcpy(path + n, ".media", sizeof(".media"));
	image = open(path, O_RDWR | O_CLOEXEC);
	if (image < 0)
		return;
	if (fstat(image, &st) == 0 && media_is_of(image, fd))
		media_take(image, fd, st.st_size);
	(void)close(image);
}

static int
media_map(struct pmem_map *m, int fd, const char *path, size_t size, bool write, struct err *e)
{
	int prot = PROT_READ | (write ? PROT_WRITE : 0);
	struct stat st;
	void *addr;

	if (fstat(fd, &st) != 0 || size == 0 || (uint64_t)st.st_size < size)
		return err_set(e, REPL_E_IO, "map %s: %zu bytes are not there", path, size);
	m->room = size > MEDIA_ROOM ? size : MEDIA_ROOM;
	addr = mmap(NULL, m->room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (addr != MAP_FAILED)
		m->addr = addr;
	if (addr == MAP_FAILED ||
	    mmap(addr, size, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return err_errno(e, err_from_errno(errno), errno, "map %s", path);
	m->size = size;
	m->write = write;
	return REPL_OK;
}

/* What lies beside the pool, as the configuration wants it. */
static int
media_keep(struct pmem_map *m, int fd, struct err *e)
{
	char record[4096];

	if (m->set.survival == MEDIA_FLUSHED)
		return media_open(m, fd, e);
	if (m->set.survival == MEDIA_ALL)
		return REPL_OK;
	(void)snprintf(record, sizeof(record), "%.*s.dirty",
		       (int)(strlen(m->path) - strlen(".media")), m->path);
	return media_dirty_open(record, m->size, &m->dirty, e);
}

/* What survives is what the image has. */
void
pmem_caches(pmem_survive_fn survive, const void *arg)
{
	(void)survive;
	(void)arg;
}

int
pmem_map_new(int fd, const char *path, size_t size, bool write, struct pmem_map **out,
	     struct err *e)
{
	struct pmem_map *m = calloc(1, sizeof(*m));
	int rc;

	*out = NULL;
	if (!m)
		return err_set(e, REPL_E_NOMEM, "map %s: out of memory", path);
	m->image = -1;
	media_seed(m, path);
	media_set_drop(m);
	if (asprintf(&m->path, "%s.media", path) < 0) {
		m->path = NULL;
		rc = err_set(e, REPL_E_NOMEM, "map %s: out of memory", path);
		goto out;
	}
	rc = media_settings_read(&m->set, e);
	if (rc == REPL_OK)
		rc = media_map(m, fd, path, size, write, e);
	if (rc == REPL_OK && write)
		rc = media_keep(m, fd, e);
	if (rc == REPL_OK && write)
		media_set_kill(m, path);
out:
	if (rc != REPL_OK) {
		pmem_map_free(m);
		return rc;
	}
	*out = m;
	return REPL_OK;
}

void
pmem_map_free(struct pmem_map *m)
{
	if (!m)
		return;
	if (m->addr)
		(void)munmap(m->addr, m->room);
	if (m->image >= 0)
		(void)close(m->image);
	media_dirty_free(m->dirty);
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
	return m->room;
}

/* The new part begins as zeros, on the media too. */
int
pmem_map_extend(struct pmem_map *m, uint64_t at, int fd, uint64_t fd_off, size_t len, struct err *e)
{
	int rc = REPL_OK;

	if (at != m->size || len > m->room - m->size)
		return err_set(e, REPL_E_LIMIT, "%s: no addresses for %zu bytes more", m->path,
			       len);
	if (m->image >= 0 && ftruncate(m->image, (off_t)(m->size + len)) != 0)
		return err_errno(e, err_from_errno(errno), errno, "size %s", m->path);
	if (mmap(m->addr + m->size, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)fd_off) == MAP_FAILED)
		return err_errno(e, err_from_errno(errno), errno, "map more of %s", m->path);
	if (m->dirty)
		rc = media_dirty_grow(m->dirty, m->size + len, e);
	return rc;
}

/* Only whole files have an image. */
int
pmem_map_new_at(int fd, const char *path, uint64_t fd_off, size_t size, size_t total, bool write,
		struct pmem_map **out, struct err *e)
{
	if (fd_off || total != size)
		return err_set(e, REPL_E_REFUSED, "map %s: the media build keeps no parts", path);
	return pmem_map_new(fd, path, size, write, out, e);
}

int
pmem_map_add_copy(struct pmem_map *m, struct pmem_map *copy, struct err *e)
{
	pmem_map_free(copy);
	return err_set(e, REPL_E_REFUSED, "map %s: the media build keeps no local replicas",
		       m->path);
}

struct pmem_map *
pmem_map_copy_of(const struct pmem_map *m)
{
	(void)m;
	return NULL;
}

int
pmem_map_settle_copies(struct pmem_map *m, uint64_t *differed, struct err *e)
{
	(void)m;
	(void)e;
	*differed = 0;
	return 0;
}

void
pmem_map_set_size(struct pmem_map *m, size_t size)
{
	atomic_store_explicit(&m->size, size, memory_order_release);
}

enum profile_granularity
pmem_map_granularity(const struct pmem_map *m)
{
	return m->set.granularity;
}

/* Any order and some time between: whoever cuts the power then sees a part of them. */
static void
media_shuffle(struct pmem_map *m, struct range *r, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t k = media_random(m) % i;
		struct range held = r[k];

		r[k] = r[i - 1];
		r[i - 1] = held;
	}
}

/*
 * Range by range also for page granularity: the real one syncs the whole span,
 * but nobody may rely on bytes that were not asked for.
 */
int
pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	int rc = REPL_OK;

	if (count > 0 && !m->write)
		return err_set(e, REPL_E_INVAL, "%s: mapped for reading", m->path);
	if (m->evict)
		media_shuffle(m, r, count);
	for (size_t i = 0; i < count && rc == REPL_OK; i++) {
		media_live(m);
		media_nap(m, EVICT_ONE_IN);
		if (m->drop && ++m->ranges % m->drop == 0)
			continue;
		rc = media_reach(m, r[i].off, r[i].len, e);
		media_evict_near(m, r[i].off);
	}
	return rc;
}

void
pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	media_live(m);
	media_nap(m, STORE_NAP_ONE_IN);
	if (m->dirty)
		media_dirty_store(m->dirty, m->addr, off, src, len);
	memcpy(m->addr + off, src, len);
	media_evict(m, off, len);
}

bool
pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	pmem_map_copy(m, off, src, len);
	return true;
}

void
pmem_map_get(const struct pmem_map *m, uint64_t off, void *dst, size_t len)
{
	memcpy(dst, (const uint8_t *)pmem_map_addr(m) + off, len);
}

/* As if it were: what comes that way is stored and flushed by the same rules. */
bool
pmem_map_by_file(const struct pmem_map *m)
{
	(void)m;
	return true;
}

int
pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len, struct err *e)
{
	struct range r = {.off = off, .len = len};

	pmem_map_copy(m, off, src, len);
	return pmem_map_persist(m, &r, 1, e);
}

bool
pmem_map_zero(struct pmem_map *m, uint64_t off, size_t len, bool hole)
{
	static const uint8_t zeros[MEDIA_PAGE];

	(void)hole;
	for (size_t n; len > 0; off += n, len -= n) {
		n = len < sizeof(zeros) ? len : sizeof(zeros);
		pmem_map_copy(m, off, zeros, n);
	}
	return true;
}

void
pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src)
{
	uint64_t v;

	media_live(m);
	media_nap(m, STORE_NAP_ONE_IN);
	memcpy(&v, src, sizeof(v));
	if (m->dirty)
		media_dirty_store(m->dirty, m->addr, off, src, sizeof(v));
	__atomic_store_n((uint64_t *)(void *)(m->addr + off), v, __ATOMIC_RELEASE);
	media_evict(m, off, sizeof(v));
}

bool
pmem_map_groups(const struct pmem_map *m)
{
	return m->set.granularity == PROFILE_GRAN_PAGE;
}

bool
pmem_map_back(struct pmem_map *m, uint64_t off, size_t len)
{
	(void)m;
	(void)off;
	(void)len;
	return true;
}
