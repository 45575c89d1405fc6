/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_file - a bare TCP stream of a file: from one file's mapping into another
 * file, which is synced at the end. tcp_baseline's stream goes between two small buffers
 * that stay in the cache; this one moves what a copy of a pool has to move, and nothing else.
 *
 * usage: tcp_file FROM TO
 *
 * TO is made: once into a new file by pwrite(2), which finds it pages for less than a mapping
 * does; then, the median of three, over it by a mapping whose pages were touched before.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "tcpraw.h"
#include "tcpraw_io.h"

#define TIMEOUT_MS 120000
#define CHUNK      (1U << 20)
#define BUFFER     (2U << 20) /* stays in the cache, and fills a huge page */
#define TIMES      4U
#define GIB        1073741824.0

static struct err err;

static void
check(int failed, const char *what)
{
	if (!failed)
		return;
	(void)fprintf(stderr, "tcp_file: %s: %s\n", what, err.text);
	exit(1);
}

static void
check_errno(int failed, const char *what)
{
	if (!failed)
		return;
	perror(what);
	exit(1);
}

static void
receive_new(struct tcpraw_io *io, int fd, size_t size)
{
	static uint8_t buf[BUFFER];

	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < BUFFER ? size - at : BUFFER;
		check(tcpraw_recv(io, buf, n, &err), "receiving");
		check_errno(pwrite(fd, buf, n, (off_t)at) != (ssize_t)n, "write");
	}
}

static void
receive_again(struct tcpraw_io *io, uint8_t *to, size_t size)
{
	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < CHUNK ? size - at : CHUNK;
		check(tcpraw_recv(io, to + at, n, &err), "receiving");
	}
}

/* The target: all of it into the file, durable, then one byte says so. */
static void
receive(struct tcpraw_io *io, int fd, size_t size)
{
	uint8_t answer = 0, *to = NULL;

	for (unsigned i = 0; i < TIMES; i++) {
		if (i == 0)
			receive_new(io, fd, size);
		else
			receive_again(io, to, size);
		check_errno(fdatasync(fd), "sync");
		check(tcpraw_send(io, &answer, 1, &err), "answering");
		if (i > 0)
			continue;
		to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
		check_errno(to == MAP_FAILED, "mmap");
	}
}

static uint64_t
send_once(struct tcpraw_io *io, const uint8_t *from, size_t size)
{
	uint64_t begin_ns = clock_now_ns();
	uint8_t answer;

	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < CHUNK ? size - at : CHUNK;
		check(tcpraw_send(io, from + at, n, &err), "sending");
	}
	check(tcpraw_recv(io, &answer, 1, &err), "the answer");
	return clock_now_ns() - begin_ns;
}

static int
by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
send_all(struct tcpraw_io *io, const uint8_t *from, size_t size)
{
	uint64_t ns[TIMES];

	for (unsigned i = 0; i < TIMES; i++)
		ns[i] = send_once(io, from, size);
	qsort(ns + 1, TIMES - 1, sizeof(ns[0]), by_value);
	(void)printf("file of %zu MiB: new %.2f GiB/s, again %.2f GiB/s\n", size >> 20,
		     (double)size / GIB * 1e9 / (double)ns[0],
		     (double)size / GIB * 1e9 / (double)ns[TIMES / 2]);
}

/* Both ends of a connection over loopback. */
static void
connected(int fds[2])
{
	uint8_t token[TCPRAW_TOKEN_SIZE];
	struct addrinfo *ai = NULL;
	uint16_t port;
	int listener;

	check_errno(getrandom(token, sizeof(token), 0) != sizeof(token), "getrandom");
	check(tcpraw_listen("127.0.0.1", 0, 0, &listener, &port, &err), "listen");
	check(tcpraw_resolve("127.0.0.1", port, &ai, &err), "address");
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check_errno(fds[0] < 0 || connect(fds[0], ai->ai_addr, ai->ai_addrlen), "connect");
	check_errno(send(fds[0], token, sizeof(token), 0) != sizeof(token), "send");
	check(tcpraw_accept(listener, token, clock_deadline(TIMEOUT_MS), &fds[1], &err), "accept");
	freeaddrinfo(ai);
	(void)close(listener);
}

int
main(int argc, char **argv)
{
	struct tcpraw_io io = {.fd = -1};
	uint8_t *from;
	struct stat st;
	int in, out, fds[2], status;
	size_t size;
	pid_t pid;

	if (argc != 3) {
		(void)fputs("usage: tcp_file FROM TO\n", stderr);
		return 2;
	}
	in = open(argv[1], O_RDONLY | O_CLOEXEC);
	check_errno(in < 0 || fstat(in, &st) || st.st_size == 0, argv[1]);
	size = (size_t)st.st_size;
	out = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check_errno(out < 0 || ftruncate(out, st.st_size), argv[2]);
	connected(fds);
	pid = fork();
	check_errno(pid < 0, "fork");
	check(tcpraw_io_init(&io, fds[pid == 0], clock_deadline(TIMEOUT_MS), &err), "socket");
	(void)close(fds[pid != 0]);
	if (pid == 0) {
		receive(&io, out, size);
		_exit(0);
	}
	from = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, in, 0);
	check_errno(from == MAP_FAILED, "mmap");
	send_all(&io, from, size);
	tcpraw_io_fini(&io);
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
