/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem_abi - calls librpmem.so.1 as a program that was linked with the old one.
 *
 *   rpmem_abi TARGET          two set files are there: abi.set, 4M with headers, and raw.set, 4M
 *                             without
 *   rpmem_abi TARGET many     many.set, 32M without headers: flushed by MiBs, drained once
 *   rpmem_abi TARGET less     many.set is there: the first 4M of it are opened, and written
 *   rpmem_abi TARGET small    small.set, without headers: 64K of it are made, and filled;
 *                             or opened with other bytes, and a page is flushed
 *   rpmem_abi TARGET closed   abi.set; standard input, output and error are closed, and written to
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpmem.h"

#define SIZE ((size_t)4 << 20)

static const char *target;
static char *mem;

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "%d: not so: %s (errno %d, %s)\n", __LINE__, #cond,  \
				      errno, rpmem_errormsg());                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* The call fails with that errno and a text. */
#define FAILS(call, num)                                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHECK(!(call));                                                                    \
		CHECK(errno == (num));                                                             \
		CHECK(rpmem_errormsg()[0]);                                                        \
	} while (0)
#define INVALID(call) FAILS((call) == 0, EINVAL)

static void
attr_fill(struct rpmem_pool_attr *a)
{
	unsigned char *bytes = (unsigned char *)a;

	for (size_t i = 0; i < sizeof(*a); i++)
		bytes[i] = (unsigned char)(i * 5 + 1);
	memcpy(a->signature, "PMEMOBJ", 8);
	a->incompat_features = 6;
}

static void
test_arguments(void)
{
	struct rpmem_pool_attr a;
	unsigned lanes = 1, none = 0;

	attr_fill(&a);
	CHECK(sizeof(a) == 104);
	CHECK(!rpmem_check_version(1, 0) && !rpmem_check_version(1, 3));
	CHECK(rpmem_check_version(1, 4) && rpmem_check_version(2, 0));
	FAILS(rpmem_create(NULL, "abi.set", mem, SIZE, &lanes, &a), EINVAL);
	FAILS(rpmem_create(target, "", mem, SIZE, &lanes, &a), EINVAL);
	FAILS(rpmem_create(target, "abi.set", mem + 1, SIZE, &lanes, &a), EINVAL);
	FAILS(rpmem_create(target, "abi.set", mem, SIZE - 1, &lanes, &a), EINVAL);
	FAILS(rpmem_create(target, "abi.set", mem, 4096, &lanes, &a), EINVAL);
	FAILS(rpmem_create(target, "abi.set", mem, SIZE, &none, &a), EINVAL);
	FAILS(rpmem_create(target, "abi.set", mem, SIZE, NULL, &a), EINVAL);
	FAILS(rpmem_create(target, "abi.set", mem, SIZE, &lanes, NULL), EINVAL);
	FAILS(rpmem_create(target, "raw.set", mem, SIZE, &lanes, &a), EINVAL);
	FAILS(rpmem_create(target, "none.set", mem, SIZE, &lanes, &a), ENOENT);
	FAILS(rpmem_create(target, "../abi.set", mem, SIZE, &lanes, &a), EINVAL);
	FAILS(rpmem_open(target, "abi.set", mem, SIZE, &lanes, &a), ENOENT);
	FAILS(rpmem_remove(target, "abi.set", 0) == 0, ENOENT);
	FAILS(rpmem_remove(target, "abi.set", 4) == 0, EINVAL);
	CHECK(rpmem_remove(target, "abi.set", RPMEM_REMOVE_FORCE) == 0);
}

static void *
other_thread(void *text)
{
	CHECK(!rpmem_errormsg()[0]);
	(void)rpmem_remove("", "", 0);
	CHECK(strcmp(rpmem_errormsg(), text) != 0);
	return NULL;
}

static void
test_thread_text(void)
{
	char text[256];
	pthread_t t;

	(void)rpmem_remove(target, "abi.set", 64);
	(void)snprintf(text, sizeof(text), "%s", rpmem_errormsg());
	CHECK(pthread_create(&t, NULL, other_thread, text) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(strcmp(rpmem_errormsg(), text) == 0);
}

static void
test_ranges(RPMEMpool *p, unsigned lanes, size_t header)
{
	char buf[16];

	INVALID(rpmem_persist(p, 8192, 8, lanes, 0));
	INVALID(rpmem_persist(p, 8192, 8, 0, 2));
	INVALID(rpmem_flush(p, 8192, 8, 0, 2));
	INVALID(rpmem_drain(p, lanes, 0));
	INVALID(rpmem_drain(p, 0, 1));
	INVALID(rpmem_deep_persist(p, SIZE - 8, 9, 0));
	INVALID(rpmem_persist(p, SIZE + 1, 0, 0, 0));
	INVALID(rpmem_persist(p, 8192, SIZE_MAX, 0, 0));
	INVALID(rpmem_read(p, buf, 8192, 8, lanes));
	INVALID(rpmem_read(p, buf, SIZE, 1, 0));
	INVALID(rpmem_read(p, NULL, 8192, 8, 0));
	INVALID(rpmem_persist(NULL, 8192, 8, 0, 0));
	if (header) {
		INVALID(rpmem_persist(p, header - 1, 1, 0, 0));
		INVALID(rpmem_flush(p, 0, 8, 0, 0));
		INVALID(rpmem_read(p, buf, 0, 8, 0));
	}
}

static void
put(RPMEMpool *p, size_t off, size_t len, int value, bool split)
{
	char *back = malloc(len);

	memset(mem + off, value, len);
	if (split) {
		CHECK(rpmem_flush(p, off, len, 0, RPMEM_FLUSH_RELAXED) == 0);
		CHECK(rpmem_drain(p, 0, 0) == 0);
	} else {
		CHECK(rpmem_persist(p, off, len, 0, 0) == 0);
	}
	CHECK(rpmem_read(p, back, off, len, 0) == 0);
	CHECK(memcmp(back, mem + off, len) == 0);
	free(back);
}

static void
test_pool(const char *set, struct rpmem_pool_attr *a)
{
	struct rpmem_pool_attr got, zero;
	unsigned lanes = 1024, more = 1;
	size_t header = a ? 4096 : 0;
	RPMEMpool *p = rpmem_create(target, set, mem, SIZE, &lanes, a), *q;

	CHECK(p && lanes >= 1 && lanes <= 64);
	test_ranges(p, lanes, header);
	put(p, header, 8, 1, false);
	put(p, header + 9, 4, 2, false);
	put(p, header + 100, 70000, 3, true);
	put(p, header, SIZE - header, 4, false);
	CHECK(rpmem_deep_persist(p, header, 100, lanes - 1) == 0);
	CHECK(rpmem_persist(p, SIZE, 0, 0, 0) == 0);
	FAILS(rpmem_open(target, set, mem, SIZE, &more, NULL), EBUSY);
	FAILS(rpmem_remove(target, set, 0) == 0, EBUSY);
	if (a) {
		a->user_flags[0] ^= 1;
		CHECK(rpmem_set_attr(p, a) == 0);
	} else {
		memset(&zero, 1, sizeof(zero));
		INVALID(rpmem_set_attr(p, &zero));
	}
	CHECK(rpmem_close(p) == 0);

	FAILS(rpmem_create(target, set, mem, SIZE, &more, a), EEXIST);
	FAILS(rpmem_open(target, set, mem, 2 * SIZE, &more, &got), EINVAL);
	memset(&zero, 0, sizeof(zero));
	more = 2;
	/* Less than the whole, as pmempool does to look at it. */
	p = rpmem_open(target, set, mem, 8192, &more, &got);
	CHECK(p && more == 2);
	CHECK(memcmp(&got, a ? a : &zero, sizeof(got)) == 0);
	memset(mem, 0, SIZE);
	CHECK(rpmem_read(p, mem, header, 8192 - header, 1) == 0);
	CHECK(mem[0] == 4 && mem[4095] == 4);
	INVALID(rpmem_read(p, mem, 8192, 1, 0));
	CHECK(rpmem_close(p) == 0);
	q = rpmem_open(target, set, mem, SIZE, &more, NULL);
	CHECK(q && rpmem_close(q) == 0);
	CHECK(rpmem_remove(target, set, RPMEM_REMOVE_POOL_SET) == 0);
	FAILS(rpmem_create(target, set, mem, SIZE, &more, a), ENOENT);
}

static void
test_many(void)
{
	size_t size = 8 * SIZE, step = SIZE / 4;
	unsigned lanes = 1;
	RPMEMpool *p;

	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	p = rpmem_create(target, "many.set", mem, size, &lanes, NULL);
	CHECK(p);
	memset(mem, 'm', size);
	for (size_t off = 0; off < size; off += step)
		CHECK(rpmem_flush(p, off, step, 0, RPMEM_FLUSH_RELAXED) == 0);
	CHECK(rpmem_drain(p, 0, 0) == 0);
	CHECK(rpmem_close(p) == 0);
}

static void
test_less(void)
{
	unsigned lanes = 1;
	RPMEMpool *p = rpmem_open(target, "many.set", mem, SIZE, &lanes, NULL);

	CHECK(p);
	memset(mem, 'l', SIZE);
	CHECK(rpmem_persist(p, 0, 4096, 0, 0) == 0);
	CHECK(rpmem_close(p) == 0);
}

static void
test_small(void)
{
	size_t size = 65536;
	unsigned lanes = 1;
	RPMEMpool *p = rpmem_create(target, "small.set", mem, size, &lanes, NULL);
	bool made = p;

	if (!made)
		p = rpmem_open(target, "small.set", mem, size, &lanes, NULL);
	CHECK(p);
	memset(mem, made ? 's' : 't', size);
	CHECK(rpmem_persist(p, 0, made ? size : 4096, 0, 0) == 0);
	CHECK(rpmem_close(p) == 0);
}

static void
test_closed(void)
{
	struct rpmem_pool_attr a;
	unsigned lanes = 1;
	struct stat st;
	RPMEMpool *p;

	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
	attr_fill(&a);
	p = rpmem_create(target, "abi.set", mem, SIZE, &lanes, &a);
	CHECK(p);
	for (int fd = 0; fd < 3; fd++) {
		CHECK(fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode));
		(void)!write(fd, "said\n", 5);
	}
	put(p, 8192, 70000, 1, false);
	CHECK(rpmem_close(p) == 0);
	CHECK(rpmem_remove(target, "abi.set", 0) == 0);
}

int
main(int argc, char **argv)
{
	struct rpmem_pool_attr a;

	if (argc != 2 &&
	    (argc != 3 || (strcmp(argv[2], "many") != 0 && strcmp(argv[2], "closed") != 0 &&
			   strcmp(argv[2], "less") != 0 && strcmp(argv[2], "small") != 0))) {
		(void)fputs("usage: rpmem_abi TARGET [many | less | small | closed]\n", stderr);
		return 2;
	}
	target = argv[1];
	if (argc == 3 && strcmp(argv[2], "many") == 0) {
		test_many();
		return 0;
	}
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	CHECK(!rpmem_errormsg()[0]);
	if (argc == 3 && strcmp(argv[2], "less") == 0) {
		test_less();
		return 0;
	}
	if (argc == 3 && strcmp(argv[2], "small") == 0) {
		test_small();
		return 0;
	}
	if (argc == 3) {
		test_closed();
		return 0;
	}
	attr_fill(&a);
	test_arguments();
	test_thread_text();
	test_pool("abi.set", &a);
	test_pool("raw.set", NULL);
	return 0;
}
