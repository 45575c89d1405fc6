/* SPDX-License-Identifier: BSD-3-Clause */
/* A mapping shows the file's bytes, keeps what is stored, and reports what it cannot map or sync.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <libpmem2.h>
#include <linux/magic.h>

#include "pmem.h"

#define POOL_SIZE 65536U

static int
temp_file(char path[64], size_t size)
{
	int fd;

	(void)snprintf(path, 64, "%s", "/tmp/repl-pmem-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

/* A page for which there is no space left. */
static const uint8_t *full;

int
madvise(void *addr, size_t len, int advice)
{
	const uint8_t *at = addr;

	if (!full || full < at || full >= at + len ||
	    (advice != MADV_REMOVE && advice != MADV_POPULATE_WRITE))
		return (int)syscall(SYS_madvise, addr, len, advice);
	errno = advice == MADV_REMOVE ? ENOSPC : EFAULT;
	return -1;
}

/* A device that fails under the next sync, which lasts until another one has been, or a while. */
static _Atomic bool fails;
static _Atomic unsigned syncs;
static sem_t begun, another;

int
msync(void *addr, size_t len, int flags)
{
	struct timespec until;

	syncs++;
	if (!atomic_exchange(&fails, false)) {
		(void)sem_post(&another);
		return (int)syscall(SYS_msync, addr, len, flags);
	}
	(void)sem_post(&begun);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 250000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)sem_timedwait(&another, &until);
	errno = EIO;
	return -1;
}

/* A machine that libpmem2 takes for one with eADR: what it gives for a mapping does nothing. */
static bool eadr;
static unsigned lines, nothings;
static pmem2_flush_fn lines_real;

void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (eadr && fd >= 0)
		flags &= ~MAP_SYNC;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

enum pmem2_granularity
pmem2_map_get_store_granularity(struct pmem2_map *map)
{
	(void)map;
	return eadr ? PMEM2_GRANULARITY_BYTE : PMEM2_GRANULARITY_PAGE;
}

static void
flush_lines(const void *ptr, size_t len)
{
	lines++;
	lines_real(ptr, len);
}

static void
flush_nothing(const void *ptr, size_t len)
{
	(void)ptr;
	(void)len;
	nothings++;
}

pmem2_flush_fn
pmem2_get_flush_fn(struct pmem2_map *map)
{
	enum pmem2_granularity (*granularity)(struct pmem2_map *) = NULL;
	pmem2_flush_fn (*real)(struct pmem2_map *) = NULL;

	*(void **)&granularity = dlsym(RTLD_NEXT, "pmem2_map_get_store_granularity");
	*(void **)&real = dlsym(RTLD_NEXT, "pmem2_get_flush_fn");
	assert_true(granularity && real);
	if (!eadr)
		return real(map);
	if (granularity(map) != PMEM2_GRANULARITY_CACHE_LINE)
		return flush_nothing;
	lines_real = real(map);
	return flush_lines;
}

static bool
survives(const void *arg, int fd)
{
	return fd >= 0 && *(const bool *)arg;
}

/* Not by what libpmem2 says of the machine: by what is known of the pool. */
static void
an_empty_flush_is_for_caches_that_survive(void **state)
{
	bool caches = false;
	struct statfs fs;

	(void)state;
	if (statfs("/tmp", &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		skip();
	for (unsigned round = 0; round < 3; round++) {
		struct range r = {.off = 4096, .len = 8};
		struct pmem_map *m;
		char path[64];
		int fd = temp_file(path, POOL_SIZE);

		if (round > 0)
			pmem_caches(survives, &caches);
		caches = round == 2;
		lines = nothings = 0;
		eadr = true;
		assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, NULL), REPL_OK);
		eadr = false;
		assert_int_equal(pmem_map_granularity(m), PROFILE_GRAN_BYTE);
		memcpy((uint8_t *)pmem_map_addr(m) + 4096, "durable", 8);
		assert_int_equal(pmem_map_persist(m, &r, 1, NULL), REPL_OK);
		assert_int_equal(lines, !caches);
		assert_int_equal(nothings, caches);
		pmem_map_free(m);
		(void)close(fd);
		(void)unlink(path);
	}
	pmem_caches(NULL, NULL);
}

static void
stores_reach_the_file(void **state)
{
	struct range r[] = {{40000, 8}, {100, 6}, {4096, 4096}};
	struct pmem_map *m;
	struct err e;
	uint64_t word = 0x1122334455667788U;
	char path[64];
	char have[8];
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_size(m), POOL_SIZE);
	pmem_map_copy(m, 100, "hello", 6);
	pmem_map_store8(m, 40000, &word);
	assert_int_equal(pmem_map_persist(m, r, 3, &e), REPL_OK);
	assert_int_equal(pmem_map_persist(m, NULL, 0, &e), REPL_OK);
	assert_memory_equal((char *)pmem_map_addr(m) + 100, "hello", 6);
	pmem_map_free(m);
	assert_int_equal(pread(fd, have, 6, 100), 6);
	assert_string_equal(have, "hello");
	assert_int_equal(pread(fd, have, 8, 40000), 8);
	assert_memory_equal(have, &word, 8);
	(void)close(fd);
	(void)unlink(path);
}

static void
read_only_descriptor_maps_for_reading_only(void **state)
{
	struct pmem_map *m = NULL;
	struct err e;
	char path[64];
	int fd = temp_file(path, POOL_SIZE);
	int ro = open(path, O_RDONLY | O_CLOEXEC);

	(void)state;
	err_clear(&e);
	assert_int_equal(pwrite(fd, "x", 1, 5000), 1);
	assert_int_equal(pmem_map_new(ro, path, POOL_SIZE, false, &m, &e), REPL_OK);
	assert_int_equal(((char *)pmem_map_addr(m))[5000], 'x');
	pmem_map_free(m);
	assert_int_not_equal(pmem_map_new(ro, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_null(m);
	assert_non_null(strstr(e.text, path));
	(void)close(ro);
	(void)close(fd);
	(void)unlink(path);
}

static void
size_beyond_the_file_is_refused(void **state)
{
	struct pmem_map *m = NULL;
	struct err e;
	char path[64];
	int fd = temp_file(path, 4096);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_E_IO);
	assert_null(m);
	assert_non_null(strstr(e.text, "libpmem2: "));
	(void)close(fd);
	(void)unlink(path);
}

/* Stands for a device that fails: the pages to sync are gone. */
static void
failed_sync_is_an_error_not_an_abort(void **state)
{
	struct range r = {4100, 8};
	struct pmem_map *m;
	struct err e;
	char path[64];
	void *hole;
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	if (pmem_map_granularity(m) != PROFILE_GRAN_PAGE)
		skip();
	hole = (char *)pmem_map_addr(m) + 4096;
	assert_int_equal(munmap(hole, 4096), 0);
	if (pmem_map_persist(m, &r, 1, &e) == REPL_OK) {
		print_message("/tmp is memory: nothing to sync\n");
	} else {
		assert_int_equal(e.code, REPL_E_IO);
		assert_non_null(strstr(e.text, path));
	}
	pmem_map_free(m);
	(void)close(fd);
	(void)unlink(path);
}

static void *
persist_main(void *arg)
{
	struct range r = {0, 8};

	return (void *)(intptr_t)pmem_map_persist(arg, &r, 1, NULL);
}

/*
 * Of two syncs at a time one is told the error, which may be for what the other one was to make
 * durable. And once pages are lost a later sync finds them clean.
 */
static void
failed_sync_fails_those_beside_and_behind_it(void **state)
{
	struct range r = {4096, 8};
	struct pmem_map *m;
	struct err e;
	pthread_t thread;
	char path[64];
	void *rc = NULL;
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	if (!pmem_map_groups(m))
		skip();
	assert_int_equal(sem_init(&begun, 0, 0) | sem_init(&another, 0, 0), 0);
	atomic_store(&fails, true);
	assert_int_equal(pthread_create(&thread, NULL, persist_main, m), 0);
	while (sem_wait(&begun) != 0)
		;
	assert_int_equal(pmem_map_persist(m, &r, 1, &e), REPL_E_IO);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(pthread_join(thread, &rc), 0);
	assert_int_equal((intptr_t)rc, REPL_E_IO);
	assert_int_equal(pmem_map_persist(m, &r, 1, &e), REPL_E_IO);
	pmem_map_free(m);
	(void)close(fd);
	(void)unlink(path);
}

static void
written_through_is_in_the_mapping_or_an_error(void **state)
{
	struct rlimit was, low;
	struct pmem_map *m;
	struct err e;
	char path[64];
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_write(m, 4090, "hello world", 11, &e), REPL_OK);
	assert_memory_equal((char *)pmem_map_addr(m) + 4090, "hello world", 11);
	/* Stands for a disk that is full. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	low = (struct rlimit){.rlim_cur = 8192, .rlim_max = was.rlim_max};
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	if (pmem_map_write(m, 8188, "hello world", 11, &e) == REPL_OK) {
		print_message("/tmp is memory: stored, not written\n");
	} else {
		assert_int_equal(e.code, REPL_E_IO);
		assert_non_null(strstr(e.text, path));
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	pmem_map_free(m);
	(void)close(fd);
	(void)unlink(path);
}

/* Opening takes time and memory for what is used, not for what is mapped. */
static void
huge_sparse_pool_opens_at_once(void **state)
{
	size_t size = (size_t)1 << 40;
	struct pmem_map *m;
	struct err e;
	char path[64];
	int fd = temp_file(path, 4096);

	(void)state;
	err_clear(&e);
#ifdef __SANITIZE_THREAD__
	size >>= 4; /* it has no address space for more */
#endif
	if (ftruncate(fd, (off_t)size) == 0) {
		assert_int_equal(pmem_map_new(fd, path, size, true, &m, &e), REPL_OK);
		pmem_map_copy(m, size - 5, "last", 5);
		pmem_map_free(m);
	}
	(void)close(fd);
	(void)unlink(path);
}

/* In place: who has the address of the mapping goes on using it. */
static void
mapping_grows_behind_its_end(void **state)
{
	struct range r = {POOL_SIZE - 4096, 8192};
	struct pmem_map *m;
	struct err e;
	char path[64], have[6];
	uint8_t *addr;
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	addr = pmem_map_addr(m);
	assert_true(pmem_map_room(m) >= 2 * POOL_SIZE);
	pmem_map_copy(m, POOL_SIZE - 6, "first", 6);
	assert_int_equal(ftruncate(fd, 2 * POOL_SIZE), 0);
	/* What was mapped behind and not taken is replaced. */
	assert_int_equal(pmem_map_extend(m, POOL_SIZE, fd, POOL_SIZE, 4096, &e), REPL_OK);
	assert_int_equal(pmem_map_extend(m, POOL_SIZE, fd, POOL_SIZE, POOL_SIZE, &e), REPL_OK);
	assert_int_equal(pmem_map_size(m), POOL_SIZE);
	pmem_map_set_size(m, 2 * POOL_SIZE);
	assert_int_equal(pmem_map_size(m), 2 * POOL_SIZE);
	assert_ptr_equal(pmem_map_addr(m), addr);
	pmem_map_copy(m, 2 * POOL_SIZE - 6, "later", 6);
	assert_int_equal(pmem_map_persist(m, &r, 1, &e), REPL_OK);
	assert_string_equal((char *)addr + POOL_SIZE - 6, "first");
	assert_int_equal(pread(fd, have, 6, 2 * POOL_SIZE - 6), 6);
	assert_string_equal(have, "later");
	pmem_map_free(m);
	(void)close(fd);
	(void)unlink(path);
}

/* Bytes of the last page behind the file's end are there, and of no file. It grows in that page,
 * and out of it. */
static void
mapping_of_any_size(void **state)
{
	static const size_t sizes[] = {1, 4095, 4097, POOL_SIZE - 1, POOL_SIZE + 777};
	struct range r = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t size = sizes[i], grown[] = {size + 1, size + 4096, 2 * POOL_SIZE};
		struct pmem_map *m;
		struct err e;
		char path[64], have = 0;
		int fd = temp_file(path, size);
		uint8_t *addr;

		err_clear(&e);
		assert_int_equal(pmem_map_new(fd, path, size, true, &m, &e), REPL_OK);
		assert_int_equal(pmem_map_size(m), size);
		addr = pmem_map_addr(m);
		for (unsigned k = 0; k <= 3; k++) {
			uint64_t last = size - 1;

			pmem_map_put(m, last, "x", 1);
			r = (struct range){.off = last, .len = 1};
			assert_int_equal(pmem_map_persist(m, &r, 1, &e), REPL_OK);
			assert_int_equal(pread(fd, &have, 1, (off_t)last), 1);
			assert_int_equal(have, 'x');
			assert_int_equal(lseek(fd, 0, SEEK_END), size);
			if (k == 3)
				break;
			assert_int_equal(ftruncate(fd, (off_t)grown[k]), 0);
			assert_int_equal(pmem_map_extend(m, size, fd, size, grown[k] - size, &e),
					 REPL_OK);
			pmem_map_set_size(m, grown[k]);
			assert_ptr_equal(pmem_map_addr(m), addr);
			assert_int_equal(addr[size - 1], 'x');
			size = grown[k];
		}
		pmem_map_free(m);
		/* To be read only, of a file that is about to grow. */
		assert_int_equal(ftruncate(fd, (off_t)size + 100000), 0);
		assert_int_equal(pmem_map_new(fd, path, sizes[i], false, &m, &e), REPL_OK);
		assert_int_equal(pmem_map_size(m), sizes[i]);
		pmem_map_free(m);
		/* One that is too short, if by a byte. */
		assert_int_equal(ftruncate(fd, (off_t)sizes[i] - 1), 0);
		assert_int_not_equal(pmem_map_new(fd, path, sizes[i], true, &m, &e), REPL_OK);
		(void)close(fd);
		(void)unlink(path);
	}
}

/* A second file goes on where the first ends. */
static void
mapping_grows_by_another_file(void **state)
{
	struct pmem_map *m;
	struct err e;
	char path[64], path2[64], have[5];
	int fd = temp_file(path, POOL_SIZE), fd2 = temp_file(path2, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_extend(m, POOL_SIZE, fd2, 4096, 4096, &e), REPL_OK);
	pmem_map_set_size(m, POOL_SIZE + 4096);
	pmem_map_copy(m, POOL_SIZE - 2, "seam", 4);
	pmem_map_free(m);
	assert_int_equal(pread(fd, have, 2, POOL_SIZE - 2), 2);
	assert_int_equal(pread(fd2, have + 2, 2, 4096), 2);
	assert_memory_equal(have, "seam", 4);
	(void)close(fd);
	(void)close(fd2);
	(void)unlink(path);
	(void)unlink(path2);
}

/* A copy gets what is made durable and nothing else, in the part that comes by growth, too. */
static void
copies_follow(void **state)
{
	struct range r[2] = {{.off = 101, .len = 30}, {.off = 4096, .len = 16}};
	struct range late = {.off = POOL_SIZE, .len = 4};
	struct pmem_map *m, *copies[2];
	uint64_t differed;
	struct err e;
	char path[64], paths[2][64];
	int fd = temp_file(path, 2 * POOL_SIZE), fds[2];

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	for (int i = 0; i < 2; i++) {
		fds[i] = temp_file(paths[i], 2 * POOL_SIZE);
		assert_int_equal(pmem_map_new(fds[i], paths[i], POOL_SIZE, true, &copies[i], &e),
				 REPL_OK);
		assert_int_equal(pmem_map_add_copy(m, copies[i], &e), 0);
	}
	assert_ptr_equal(pmem_map_copy_of(m), copies[0]);
	assert_ptr_equal(pmem_map_copy_of(copies[0]), copies[1]);
	pmem_map_copy(m, 90, "not to be copied, nor to be left out here", 41);
	pmem_map_copy(m, 4096, "another", 8);
	assert_int_equal(pmem_map_persist(m, r, 2, &e), REPL_OK);
	for (int i = 0; i < 2; i++) {
		const char *at = pmem_map_addr(copies[i]);

		assert_memory_equal(at + 101, (char *)pmem_map_addr(m) + 101, 30);
		assert_int_equal(at[100] | at[131], 0);
		assert_string_equal(at + 4096, "another");
	}
	assert_int_equal(pmem_map_extend(m, POOL_SIZE, fd, POOL_SIZE, POOL_SIZE, &e), REPL_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pmem_map_extend(copies[i], POOL_SIZE, fds[i], POOL_SIZE, POOL_SIZE, &e),
			REPL_OK);
	pmem_map_set_size(m, 2 * POOL_SIZE);
	assert_int_equal(pmem_map_size(copies[1]), 2 * POOL_SIZE);
	pmem_map_copy(m, POOL_SIZE, "late", 4);
	assert_int_equal(pmem_map_persist(m, &late, 1, &e), REPL_OK);
	assert_memory_equal((char *)pmem_map_addr(copies[1]) + POOL_SIZE, "late", 4);
	assert_int_equal(pmem_map_settle_copies(m, &differed, &e), 0);
	assert_true(differed > 0);
	assert_memory_equal(pmem_map_addr(copies[1]), pmem_map_addr(m), 2 * POOL_SIZE);
	assert_int_equal(pmem_map_settle_copies(m, &differed, &e), 0);
	assert_true(differed == 0);
	pmem_map_free(m);
	for (int i = 0; i < 2; i++) {
		(void)close(fds[i]);
		(void)unlink(paths[i]);
	}
	(void)close(fd);
	(void)unlink(path);
}

/* Stored all the same it would be a SIGBUS: blocks of a copy may be another file's, too. */
static void
a_copy_without_space_is_told(void **state)
{
	static const char bytes[4096] = "bytes";
	struct range r = {.off = 3, .len = 2 * 4096};
	struct pmem_map *m, *copy;
	uint64_t differed;
	struct err e;
	char path[64], path2[64];
	int fd = temp_file(path, POOL_SIZE), fd2 = temp_file(path2, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_new(fd2, path2, POOL_SIZE, true, &copy, &e), REPL_OK);
	assert_int_equal(pmem_map_add_copy(m, copy, &e), 0);
	full = (uint8_t *)pmem_map_addr(copy) + 4096;
	assert_true(pmem_map_back(m, 0, 4096) && pmem_map_back(m, 8192, 1));
	assert_false(pmem_map_back(m, 4000, 200));
	assert_true(pmem_map_put(m, 8192, bytes, sizeof(bytes)));
	assert_false(pmem_map_put(m, 4096, bytes, sizeof(bytes)));
	/* Nobody asks for what the file system can't share. */
	if (pmem_map_groups(copy)) {
		assert_int_equal(pmem_map_persist(m, &r, 1, &e), REPL_E_NOSPC);
		assert_int_equal(pmem_map_settle_copies(m, &differed, &e), REPL_E_NOSPC);
		assert_true(strstr(e.text, "no space is left"));
		assert_memory_equal(full, bytes + 8, 8);
	}
	full = NULL;
	assert_int_equal(pmem_map_settle_copies(m, &differed, &e), 0);
	assert_memory_equal(pmem_map_addr(copy), pmem_map_addr(m), POOL_SIZE);
	pmem_map_free(m);
	(void)close(fd);
	(void)close(fd2);
	(void)unlink(path);
	(void)unlink(path2);
}

/* What is equal in a copy is not stored there, but flushed: it may not be durable. */
static void
equal_bytes_are_flushed_and_not_stored(void **state)
{
	struct range r = {.off = 3, .len = 2 * 4096};
	struct pmem_map *m, *copy;
	struct err e;
	char path[64], path2[64];
	int fd = temp_file(path, POOL_SIZE), fd2 = temp_file(path2, POOL_SIZE);
	unsigned before;

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_new(fd2, path2, POOL_SIZE, true, &copy, &e), REPL_OK);
	assert_int_equal(pmem_map_add_copy(m, copy, &e), 0);
	memset(pmem_map_addr(m), 5, 3 * 4096);
	memset(pmem_map_addr(copy), 5, 3 * 4096);
	/* A store would be a SIGSEGV. */
	assert_int_equal(mprotect(pmem_map_addr(copy), POOL_SIZE, PROT_READ), 0);
	before = syncs;
	assert_int_equal(pmem_map_persist(m, &r, 1, &e), REPL_OK);
	if (pmem_map_groups(copy))
		assert_int_equal(syncs, before + 2);
	pmem_map_free(m);
	(void)close(fd);
	(void)close(fd2);
	(void)unlink(path);
	(void)unlink(path2);
}

static void
growth_beyond_the_addresses_is_refused(void **state)
{
	struct pmem_map *m;
	struct err e;
	char path[64];
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_extend(m, POOL_SIZE, fd, POOL_SIZE, pmem_map_room(m), &e),
			 REPL_E_LIMIT);
	assert_int_equal(pmem_map_size(m), POOL_SIZE);
	pmem_map_free(m);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, false, &m, &e), REPL_OK);
	assert_int_equal(pmem_map_room(m), POOL_SIZE);
	pmem_map_free(m);
	(void)close(fd);
	(void)unlink(path);
}

/* Zeros either way; a hole gives the space back where the file system has holes. */
static void
zeroed_range_reads_as_zeros(void **state)
{
	(void)state;
	for (unsigned hole = 0; hole < 2; hole++) {
		struct pmem_map *m;
		char path[64], page[4096];
		int fd = temp_file(path, POOL_SIZE);
		struct stat before, after;
		const char *mem;

		memset(page, 'x', sizeof(page));
		for (off_t off = 0; off < (off_t)POOL_SIZE; off += (off_t)sizeof(page))
			assert_int_equal(pwrite(fd, page, sizeof(page), off), sizeof(page));
		assert_int_equal(fstat(fd, &before), 0);
		assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, NULL), REPL_OK);
		mem = pmem_map_addr(m);
		full = (const uint8_t *)mem + 8192;
		assert_true(!hole || !pmem_map_zero(m, 8192, 16384, hole));
		assert_int_equal(mem[8192], 'x');
		full = NULL;
		assert_true(pmem_map_zero(m, 8192, 16384, hole));
		for (unsigned i = 0; i < POOL_SIZE; i++)
			assert_int_equal(mem[i], i >= 8192 && i < 24576 ? 0 : 'x');
		assert_int_equal(fstat(fd, &after), 0);
		assert_true(after.st_size == before.st_size);
		assert_true(hole || after.st_blocks >= before.st_blocks);
		pmem_map_free(m);
		(void)close(fd);
		(void)unlink(path);
	}
}

/* What goes by the file and by the mapping is one: also where it grows, and at odd places. */
static void
file_and_mapping_are_one(void **state)
{
	static uint8_t data[3 * POOL_SIZE], back[3 * POOL_SIZE];
	static const struct range rows[] = {{0, 4096},         {1, 4096},
					    {4095, 8193},      {100, 10},
					    {0, POOL_SIZE},    {POOL_SIZE - 5000, 10000},
					    {POOL_SIZE, 8192}, {2 * POOL_SIZE - 4096, 4096}};
	struct pmem_map *m;
	struct err e;
	char path[64];
	int fd = temp_file(path, 2 * POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_true(pmem_map_by_file(m));
	assert_int_equal(pmem_map_extend(m, POOL_SIZE, fd, POOL_SIZE, POOL_SIZE, &e), REPL_OK);
	pmem_map_set_size(m, 2 * POOL_SIZE);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct range *r = &rows[i];

		for (size_t k = 0; k < r->len; k++)
			data[k] = (uint8_t)(k * 7 + i + 1);
		pmem_map_put(m, r->off, data, r->len);
		assert_memory_equal((uint8_t *)pmem_map_addr(m) + r->off, data, r->len);
		memset(back, 0, sizeof(back));
		pmem_map_get(m, r->off, back, r->len);
		assert_memory_equal(back, data, r->len);
		pmem_map_copy(m, r->off, "mapped", 6);
		pmem_map_get(m, r->off, back, r->len);
		assert_memory_equal(back, "mapped", 6);
	}
	pmem_map_free(m);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

/* A pool in two files, the first from its second page on. */
static void
each_file_gets_its_own(void **state)
{
	static uint8_t data[POOL_SIZE], back[POOL_SIZE];
	struct pmem_map *m;
	struct err e;
	char path[64], path2[64];
	int fd = temp_file(path, POOL_SIZE), fd2 = temp_file(path2, POOL_SIZE);

	(void)state;
	err_clear(&e);
	memset(data, 'x', sizeof(data));
	assert_int_equal(pmem_map_new_at(fd, path, 4096, POOL_SIZE - 4096, 2 * POOL_SIZE - 8192,
					 true, &m, &e),
			 REPL_OK);
	assert_int_equal(pmem_map_extend(m, POOL_SIZE - 4096, fd2, 4096, POOL_SIZE - 4096, &e),
			 REPL_OK);
	pmem_map_set_size(m, 2 * POOL_SIZE - 8192);
	/* Over the seam, and in each of them. */
	pmem_map_put(m, POOL_SIZE - 12288, data, 16384);
	pmem_map_put(m, 0, data, 4096);
	pmem_map_put(m, 2 * POOL_SIZE - 12288, data, 4096);
	assert_int_equal(pread(fd, back, 4096, 0), 4096);
	assert_null(memchr(back, 'x', 4096));
	assert_int_equal(pread(fd, back, 4096, 4096), 4096);
	assert_memory_equal(back, data, 4096);
	assert_int_equal(pread(fd, back, 8192, POOL_SIZE - 8192), 8192);
	assert_memory_equal(back, data, 8192);
	assert_int_equal(pread(fd2, back, 4096, 0), 4096);
	assert_null(memchr(back, 'x', 4096));
	assert_int_equal(pread(fd2, back, 8192, 4096), 8192);
	assert_memory_equal(back, data, 8192);
	assert_int_equal(pread(fd2, back, 4096, POOL_SIZE - 4096), 4096);
	assert_memory_equal(back, data, 4096);
	pmem_map_get(m, POOL_SIZE - 12288, back, 16384);
	assert_memory_equal(back, data, 16384);
	pmem_map_free(m);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(fd2), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(path2), 0);
}

static sigjmp_buf bus;

static void
on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus, 1);
}

/* A pool that lost its end is not made whole by a write, with zeros where its bytes were. */
static void
cut_file_does_not_grow_again(void **state)
{
	static uint8_t data[8192];
	struct sigaction was, act = {.sa_handler = on_bus};
	struct pmem_map *m;
	volatile unsigned hits = 0;
	struct stat st;
	struct err e;
	char path[64];
	int fd = temp_file(path, POOL_SIZE);

	(void)state;
	err_clear(&e);
	assert_int_equal(pmem_map_new(fd, path, POOL_SIZE, true, &m, &e), REPL_OK);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(sigaction(SIGBUS, &act, &was), 0);
	if (sigsetjmp(bus, 1) == 0)
		pmem_map_put(m, POOL_SIZE - sizeof(data), data, sizeof(data));
	else
		hits++;
	if (sigsetjmp(bus, 1) == 0)
		pmem_map_get(m, POOL_SIZE - sizeof(data), data, sizeof(data));
	else
		hits++;
	assert_int_equal(sigaction(SIGBUS, &was, NULL), 0);
	assert_int_equal(hits, 2);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 4096);
	pmem_map_free(m);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

/* What is said to be finer than a page and is page cache would be lost, flushed or not. */
static void
page_cache_is_synced_whatever_granularity_is_forced(void **state)
{
	static const char *const forced[] = {"BYTE", "CACHE_LINE", "PAGE"};
	bool memory = false;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct range r = {.off = 4100, .len = 8};
		struct pmem_map *m;
		struct statfs fs;
		struct err e;
		char path[64];
		int fd = temp_file(path, POOL_SIZE);

		err_clear(&e);
		assert_int_equal(fstatfs(fd, &fs), 0);
		memory = fs.f_type == TMPFS_MAGIC;
		assert_int_equal(setenv("PMEM2_FORCE_GRANULARITY", forced[i], 1), 0);
		assert_int_equal(pmem_map_new_at(fd, path, 0, 4096, POOL_SIZE, true, &m, &e), 0);
		assert_int_equal(pmem_map_extend(m, 4096, fd, 4096, POOL_SIZE - 4096, &e), 0);
		pmem_map_set_size(m, POOL_SIZE);
		assert_int_equal(unsetenv("PMEM2_FORCE_GRANULARITY"), 0);
		assert_int_equal(pmem_map_granularity(m), PROFILE_GRAN_PAGE);
		assert_true(pmem_map_by_file(m));
		atomic_store(&syncs, 0);
		pmem_map_copy(m, r.off, "12345678", r.len);
		assert_int_equal(pmem_map_persist(m, &r, 1, &e), 0);
		assert_int_equal(syncs, memory ? 0 : 1);
		assert_int_equal(pmem_map_groups(m), !memory);
		pmem_map_free(m);
		assert_int_equal(close(fd), 0);
		assert_int_equal(unlink(path), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_cache_is_synced_whatever_granularity_is_forced),
		cmocka_unit_test(file_and_mapping_are_one),
		cmocka_unit_test(each_file_gets_its_own),
		cmocka_unit_test(cut_file_does_not_grow_again),
		cmocka_unit_test(stores_reach_the_file),
		cmocka_unit_test(an_empty_flush_is_for_caches_that_survive),
		cmocka_unit_test(read_only_descriptor_maps_for_reading_only),
		cmocka_unit_test(size_beyond_the_file_is_refused),
		cmocka_unit_test(failed_sync_is_an_error_not_an_abort),
		cmocka_unit_test(failed_sync_fails_those_beside_and_behind_it),
		cmocka_unit_test(written_through_is_in_the_mapping_or_an_error),
		cmocka_unit_test(huge_sparse_pool_opens_at_once),
		cmocka_unit_test(mapping_grows_behind_its_end),
		cmocka_unit_test(mapping_of_any_size),
		cmocka_unit_test(mapping_grows_by_another_file),
		cmocka_unit_test(copies_follow),
		cmocka_unit_test(a_copy_without_space_is_told),
		cmocka_unit_test(equal_bytes_are_flushed_and_not_stored),
		cmocka_unit_test(growth_beyond_the_addresses_is_refused),
		cmocka_unit_test(zeroed_range_reads_as_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
