/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_odd MODE FILE - what programs do to their mappings beside using them; each mode leaves bytes
 * in FILE that were made durable. Of those here (pmem_odd_size.c, _name.c, _load.c, _signal.c,
 * _process.c and _kin.c have more):
 *
 *   part      a mapping of an odd length is taken back, its address is used for another file
 *   protect   mapped for reading, then made writable
 *   fixed     the pool is mapped over a mapping of another file, and moved
 *   nodrain   flushed but not drained before the mapping is taken back
 *   moves     threads move memory that is no pool's while others map the pool where that was
 *   over      threads write to a mapping that is mapped over itself meanwhile
 *   stays     mapped anew by mremap(2) beside the old mapping, which is used on
 *   paged     the first pages of the mapping become the last ones, by remap_file_pages(2)
 *   page      msync(2) of less than what was stored in its pages, all of which it syncs
 *   fsync     fsync(2) and its kind of the file, beside msync(2)
 *   steps     mapped in many steps, each beside another, and made longer in as many by mremap(2)
 *   large     all of a large file is synced at once
 *   looks     mapped for reading by a descriptor for both
 *   writes    pwrite(2) alone, of a file that it does not map
 *   reads     the same of one that is there, and that it maps for reading
 *   syncs     pwrite(2) and fsync(2), of a file that it does not map
 *   syncson   the same again and again until FILE.enough is there
 *   begins    the same, before it is mapped and stored to
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libpmem.h>

#include "pmem_odd.h"

#define MOVERS 3
#define MOVES  100UL
#define FILLS  (SIZE / 2)
#define STEPS  400UL
#define LARGE  (24 * SIZE)

char *
map_fd(int fd, size_t off, size_t len, int prot)
{
	char *at = mmap(NULL, len, prot, MAP_SHARED, fd, (off_t)off);

	check(at != MAP_FAILED, "mmap");
	return at;
}

int
file_new(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	check(fd >= 0 && ftruncate(fd, (off_t)size) == 0, path);
	return fd;
}

void
put(char *at, int c, size_t len)
{
	memset(at, c, len);
	(void)pmem_msync(at, len);
}

atomic_bool stop;

void *
persist_on(void *arg)
{
	char *at = arg;

	for (unsigned i = 0; !atomic_load(&stop); i++) {
		*at = (char)('a' + i % 26);
		pmem_persist(at, 1);
	}
	return NULL;
}

void
wait_for_file(const char *path, const char *suffix)
{
	char name[4096];

	(void)snprintf(name, sizeof(name), "%s.%s", path, suffix);
	for (int i = 0; i < 2000 && access(name, F_OK) != 0; i++)
		(void)usleep(10000);
}

void
say(const char *word)
{
	(void)puts(word);
	(void)fflush(stdout);
}

static void
part(const char *path)
{
	char other[4096], *at, *again;
	int fd = file_new(path, SIZE), fd2;

	(void)snprintf(other, sizeof(other), "%s.other", path);
	fd2 = file_new(other, SIZE);
	at = map_fd(fd, 0, 5 * PAGE, PROT_READ | PROT_WRITE);
	put(at, 'p', PAGE);
	/* In vain: its address is odd. */
	check(munmap(at + 1, PAGE) != 0, "munmap");
	put(at + PAGE, 'q', PAGE);
	/* So it is with an end behind all addresses. */
	check(munmap(at, 1UL << 47) != 0, "munmap");
	put(at + 2 * PAGE, 'r', PAGE);
	/* All five pages. */
	check(munmap(at, 4 * PAGE + 1) == 0, "munmap");
	again = mmap(at, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd2,
		     0);
	/* Another thread of the process may have taken the place meanwhile. */
	if (again == MAP_FAILED && errno == EEXIST)
		again = map_fd(fd2, 0, 5 * PAGE, PROT_READ | PROT_WRITE);
	check(again != MAP_FAILED, "mmap");
	put(again + 4 * PAGE, 'x', PAGE);
}

static void
protect(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ);

	check(mprotect(at, SIZE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	put(at + PAGE, 'w', PAGE);
}

static void
fixed(const char *path)
{
	char other[4096], *at, *moved;
	int fd = file_new(path, SIZE);

	(void)snprintf(other, sizeof(other), "%s.other", path);
	at = map_fd(file_new(other, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);
	check(mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at, "mmap");
	put(at + PAGE, 'f', PAGE);
	moved = map_fd(fd, SIZE / 2, SIZE / 2, PROT_READ | PROT_WRITE);
	/* Where a mapping of the pool's second half was is its first half now. */
	moved = mremap(at, SIZE / 2, SIZE / 2, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	check(moved != MAP_FAILED, "mremap");
	put(moved + 3 * PAGE, 'm', PAGE);
	put(at + SIZE / 2, 'h', PAGE);
}

static void
nodrain(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'n', 10);
	for (size_t i = 1; i < 100; i++)
		(void)pmem_memset_nodrain(at + i * PAGE, (int)i, 1000);
	check(munmap(at, SIZE) == 0, "munmap");
}

static void *
move_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		char *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		check(at != MAP_FAILED, "mmap");
		at = mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
		check(at != MAP_FAILED, "mremap");
		(void)munmap(at, 2 * PAGE);
	}
	return NULL;
}

static void
moves(const char *path)
{
	int fd = file_new(path, MOVES * PAGE);
	pthread_t mover[MOVERS];

	/* So that the pool stays open. */
	(void)map_fd(fd, 0, PAGE, PROT_READ | PROT_WRITE);
	for (int i = 0; i < MOVERS; i++)
		check(!pthread_create(&mover[i], NULL, move_on, NULL), "thread");
	for (size_t i = 0; i < MOVES; i++) {
		char *at = map_fd(fd, i * PAGE, PAGE, PROT_READ | PROT_WRITE);

		put(at, 'm', 64);
		(void)munmap(at, PAGE);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < MOVERS; i++)
		(void)pthread_join(mover[i], NULL);
}

static atomic_uint filled;

/* Each part of it once. */
static void *
fill(void *arg)
{
	char *at = arg;

	for (size_t off = 0; off < FILLS; off += 512)
		put(at + off, 'f', 64);
	atomic_fetch_add(&filled, 1);
	return NULL;
}

static void
over(const char *path)
{
	int fd = file_new(path, 2 * FILLS);
	char *at = map_fd(fd, 0, 2 * FILLS, PROT_READ | PROT_WRITE);
	pthread_t filler[2];

	/* So that the pool stays open. */
	(void)map_fd(fd, 0, PAGE, PROT_READ | PROT_WRITE);
	put(at, 'o', 64);
	for (unsigned i = 0; i < 2; i++)
		check(!pthread_create(&filler[i], NULL, fill, at + i * FILLS), "thread");
	while (atomic_load(&filled) < 2) {
		check(mmap(at, 2 * FILLS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
			      at,
		      "mmap");
		(void)usleep(1000);
	}
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(filler[i], NULL);
}

static void
paged(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	put(at, 'a', SIZE);
	check(remap_file_pages(at, 5 * PAGE, 0, SIZE / PAGE - 5, 0) == 0, "remap_file_pages");
	put(at + 4 * PAGE - 100, 'b', 200);
	put(at + 5 * PAGE, 'c', 100);
}

static void
stays(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE), *more;

	put(at, 'a', PAGE);
	more = mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	/* Not before Linux 5.13. */
	if (more == MAP_FAILED)
		more = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);
	put(more + PAGE, 'b', PAGE);
	put(at + 2 * PAGE, 'c', PAGE);
	more = mremap(at, 0, SIZE, MREMAP_MAYMOVE);
	check(more != MAP_FAILED, "mremap");
	put(more + 3 * PAGE, 'd', PAGE);
	put(at + 4 * PAGE, 'e', PAGE);
}

static void
page(const char *path)
{
	char *at = map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', 2 * PAGE);
	check(msync(at + PAGE, PAGE + 1, MS_SYNC) == 0, "msync");
	memset(at + 5 * PAGE, 'b', PAGE);
	check(msync(at + 5 * PAGE, 1, MS_SYNC) == 0, "msync");
}

static void
by_fsync(const char *path)
{
	int fd = file_new(path, SIZE);
	char *at = map_fd(fd, 0, SIZE, PROT_READ | PROT_WRITE);

	memset(at + PAGE, 'a', PAGE);
	check(fsync(fd) == 0, "fsync");
	check(fdatasync(fd) == 0, "fdatasync");
	check(sync_file_range(fd, 0, SIZE, SYNC_FILE_RANGE_WRITE) == 0, "sync_file_range");
	check(syncfs(fd) == 0, "syncfs");
	check(msync(at + PAGE, PAGE, MS_SYNC) == 0, "msync");
}

static void
map_step(char *at, int fd, size_t i)
{
	check(mmap(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		   (off_t)(i * PAGE)) == at + i * PAGE,
	      "mmap");
}

static void
steps(const char *path)
{
	int fd = file_new(path, STEPS * PAGE);
	char *at = mmap(NULL, STEPS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *more;

	check(at != MAP_FAILED, "mmap");
	/* Behind the one before, in front of it, and between two. */
	for (size_t i = 0; i < STEPS / 2; i++)
		map_step(at, fd, i);
	for (size_t i = STEPS; i-- > STEPS / 2 + 100;)
		map_step(at, fd, i);
	for (size_t i = STEPS / 2; i < STEPS / 2 + 100; i += 2)
		map_step(at, fd, i);
	for (size_t i = STEPS / 2 + 1; i < STEPS / 2 + 100; i += 2)
		map_step(at, fd, i);
	/* Not on all file systems are they one for the kernel, which makes none longer else. */
	more = mmap(NULL, STEPS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(more != MAP_FAILED, "mmap");
	map_step(more, fd, 0);
	check(munmap(more + PAGE, (STEPS - 1) * PAGE) == 0, "munmap");
	for (size_t i = 1; i < STEPS; i++)
		check(mremap(more, i * PAGE, (i + 1) * PAGE, 0) == more, "mremap");
	for (size_t i = 0; i < STEPS; i += 7) {
		put(at + i * PAGE, 's', 64);
		put(more + i * PAGE + 100, 'm', 64);
	}
}

static void
large(const char *path)
{
	char *at = map_fd(file_new(path, LARGE), 0, LARGE, PROT_READ | PROT_WRITE);

	put(at, 'f', PAGE);
	put(at + PAGE, 'l', LARGE - PAGE);
}

static void
looks(const char *path)
{
	check(map_fd(file_new(path, SIZE), 0, SIZE, PROT_READ)[0] == '\0', "a byte");
}

static void
write_page(int fd, size_t at)
{
	char page[PAGE];

	memset(page, 'w', sizeof(page));
	check(pwrite(fd, page, sizeof(page), (off_t)at) == (ssize_t)PAGE, "pwrite");
}

static void
writes(const char *path)
{
	write_page(file_new(path, SIZE), PAGE);
}

static void
reads(const char *path)
{
	int fd = open(path, O_RDWR);
	char *at = map_fd(fd, 0, SIZE, PROT_READ);

	write_page(fd, PAGE);
	check(at[PAGE] == 'w', "a byte");
}

static int
write_synced(const char *path)
{
	int fd = file_new(path, SIZE);

	write_page(fd, PAGE);
	check(fsync(fd) == 0, "fsync");
	return fd;
}

static void
syncs(const char *path)
{
	(void)write_synced(path);
}

static void
syncs_on(const char *path)
{
	int fd = write_synced(path);
	char enough[4096];

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	while (access(enough, F_OK) != 0) {
		(void)usleep(10000);
		write_page(fd, PAGE);
		check(fsync(fd) == 0, "fsync");
	}
}

static void
begins(const char *path)
{
	put(map_fd(write_synced(path), 0, SIZE, PROT_READ | PROT_WRITE), 'b', PAGE);
}

static const struct odd_mode odd_map[] = {
	{"part", part},        {"protect", protect}, {"fixed", fixed},    {"nodrain", nodrain},
	{"page", page},        {"moves", moves},     {"fsync", by_fsync}, {"stays", stays},
	{"steps", steps},      {"looks", looks},     {"large", large},    {"paged", paged},
	{"over", over},        {"writes", writes},   {"reads", reads},    {"syncs", syncs},
	{"syncson", syncs_on}, {"begins", begins},   {NULL, NULL},
};

static const struct odd_mode *
mode_find(const char *name)
{
	static const struct odd_mode *const all[] = {odd_map,    odd_size,    odd_name, odd_load,
						     odd_signal, odd_process, odd_kin};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct odd_mode *m = all[i]; m->name; m++)
			if (strcmp(m->name, name) == 0)
				return m;
	return NULL;
}

int
main(int argc, char **argv)
{
	const struct odd_mode *m = argc == 3 ? mode_find(argv[1]) : NULL;

	if (!m)
		return 2;
	m->run(argv[2]);
	return 0;
}
