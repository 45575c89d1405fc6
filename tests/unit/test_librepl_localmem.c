/* SPDX-License-Identifier: BSD-3-Clause */
/* What a file that got shorter has lost is not read, and what can't be read for another reason is
 * an error. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "localmem.h"

#define PAGE 4096U
#define SIZE (64 * PAGE)
#define MS   300U

static char path[] = "/tmp/repl-localmem-XXXXXX";
static int fd;
static uint8_t *mem, buf[SIZE];
static struct localmem m;
static struct err e;
static ssize_t whole; /* 0: what is not there as a whole is not read at all */
static int forbidden; /* the call is */
static unsigned calls;

/* Instead of libc's: some kernels tell how much there is, others need not. */
ssize_t
process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
		 const struct iovec *from, unsigned long from_count, unsigned long flags)
{
	long got;

	calls++;
	if (forbidden) {
		errno = forbidden;
		return -1;
	}
	got = syscall(SYS_process_vm_readv, pid, to, to_count, from, from_count, flags);
	if (whole && got >= 0 && (size_t)got < from->iov_len) {
		errno = EFAULT;
		return -1;
	}
	return got;
}

static int
set_up(void **state)
{
	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/repl-localmem-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(mem != MAP_FAILED);
	memset(mem, 'a', SIZE);
	m = (struct localmem){.mem = mem, .file = path};
	err_clear(&e);
	whole = 0;
	forbidden = 0;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	(void)munmap(mem, SIZE);
	(void)unlink(path);
	return close(fd);
}

static size_t
read_at(uint64_t off, size_t len)
{
	size_t got = 0;

	assert_int_equal(localmem_read(&m, buf, len, off, &got, &e), 0);
	return got;
}

static uint64_t
has_at(uint64_t off, uint64_t len)
{
	uint64_t has = 0;

	assert_int_equal(localmem_has(&m, off, len, &has, &e), 0);
	return has;
}

static void
it_ends_where_the_file_does(void **state)
{
	(void)state;
	assert_int_equal(read_at(100, SIZE - 100), SIZE - 100);
	assert_int_equal(has_at(100, SIZE - 100), SIZE - 100);
	assert_int_equal(ftruncate(fd, 10 * PAGE), 0);
	for (whole = 0; whole < 2; whole++) {
		assert_int_equal(read_at(100, SIZE - 100), 10 * PAGE - 100);
		assert_int_equal(read_at(10 * PAGE, 100), 0);
		assert_int_equal(read_at(20 * PAGE + 7, 2 * PAGE), 0);
	}
	assert_int_equal(has_at(100, SIZE - 100), 10 * PAGE - 100);
	assert_int_equal(has_at(10 * PAGE, 1), 0);
	assert_int_equal(has_at(20 * PAGE, PAGE), 0);
	assert_int_equal(has_at(PAGE, PAGE), PAGE);
	assert_int_equal(buf[0], 'a');
	/* It is as long again. */
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(read_at(0, SIZE), SIZE);
	assert_int_equal(has_at(0, SIZE), SIZE);
}

static void
fails(uint64_t off, size_t len)
{
	size_t got;

	err_clear(&e);
	assert_int_equal(localmem_read(&m, buf, len, off, &got, &e), REPL_E_IO);
	assert_int_equal(e.reason, REPL_REASON_LOCAL);
}

/* A page that the disk does not give, be it. */
static void
what_it_has_must_be_read(void **state)
{
	(void)state;
	assert_int_equal(mprotect(mem + 5 * PAGE, PAGE, PROT_NONE), 0);
	fails(0, SIZE);
	fails(5 * PAGE, PAGE);
	assert_int_equal(read_at(0, 5 * PAGE), 5 * PAGE);
	assert_int_equal(read_at(6 * PAGE, PAGE), PAGE);
}

static void
another_file_of_the_name_says_nothing(void **state)
{
	char other[sizeof(path) + 8];
	uint64_t has;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGE), 0);
	(void)snprintf(other, sizeof(other), "%s.1", path);
	assert_int_equal(rename(path, other), 0);
	fails(0, SIZE);
	(void)close(open(path, O_CREAT | O_RDWR, 0600));
	fails(0, SIZE);
	assert_int_equal(localmem_has(&m, PAGE, PAGE, &has, &e), REPL_E_IO);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(read_at(0, SIZE), PAGE);
}

static void
it_is_read_where_the_call_is_forbidden(void **state)
{
	(void)state;
	forbidden = EPERM;
	assert_int_equal(read_at(PAGE, 3 * PAGE), 3 * PAGE);
	assert_int_equal(has_at(PAGE, 3 * PAGE), 3 * PAGE);
	assert_int_equal(buf[3 * PAGE - 1], 'a');
}

static void
memory_of_no_file_is_all_there(void **state)
{
	(void)state;
	m.file = NULL;
	calls = 0;
	assert_int_equal(read_at(PAGE, 3 * PAGE), 3 * PAGE);
	assert_int_equal(has_at(PAGE, 3 * PAGE), 3 * PAGE);
	assert_int_equal(calls, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static atomic_bool stop;

static void *
store(void *arg)
{
	_Atomic uint64_t *words = arg;

	for (uint64_t n = 1; !atomic_load(&stop); n++)
		for (size_t i = 0; i < 2 * PAGE / sizeof(*words); i++)
			atomic_store_explicit(&words[i], n % UINT32_MAX * 0x100000001ULL,
					      memory_order_relaxed);
	return NULL;
}

/* Wherever the range begins, and its copy: words that are in it as a whole. */
static void
no_word_is_torn(void **state)
{
	uint64_t deadline_ns = clock_deadline(MS), word;
	pthread_t thread;
	size_t torn = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, store, mem), 0);
	for (unsigned n = 0; clock_now_ns() < deadline_ns; n++) {
		size_t off = n % 16, to = n / 16 % 8, len = n / 128 % 2 ? 1000 : PAGE + 96, got;

		forbidden = n / 256 % 4 ? 0 : EPERM;
		assert_int_equal(localmem_read(&m, buf + to, len, off, &got, &e), 0);
		assert_int_equal(got, len);
		for (size_t i = -off % 8; i + sizeof(word) <= len; i += sizeof(word)) {
			memcpy(&word, buf + to + i, sizeof(word));
			torn += (uint32_t)word != word >> 32;
		}
	}
	atomic_store(&stop, true);
	(void)pthread_join(thread, NULL);
	assert_int_equal(torn, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_ends_where_the_file_does),
		TEST(what_it_has_must_be_read),
		TEST(another_file_of_the_name_says_nothing),
		TEST(it_is_read_where_the_call_is_forbidden),
		TEST(memory_of_no_file_is_all_there),
		cmocka_unit_test_setup_teardown(no_word_is_torn, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
