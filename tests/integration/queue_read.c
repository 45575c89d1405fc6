/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_read FILE - threads read from the second replica without end while another one persists
 * more than its queue has room for. The configuration is that of REPL_CONFIG. No replica is lost.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define READERS 2U
#define SIZE    (4U << 20)
#define PART    (64U << 10)
#define ROUNDS  128U

static struct repl *handle;
static _Atomic bool over;
static _Atomic unsigned long reads;

static void
give_up(const char *what)
{
	(void)printf("%s: %s\n", what, repl_errormsg());
	exit(1);
}

static void *
reader(void *arg)
{
	unsigned lane = (unsigned)(uintptr_t)arg;
	uint8_t *buf = malloc(SIZE);

	while (buf && !atomic_load(&over)) {
		int rc = repl_read(handle, lane, 1, buf, 0, SIZE);

		if (rc && rc != REPL_E_BUSY)
			give_up("read");
		reads += rc == 0;
	}
	free(buf);
	return NULL;
}

static void
none_is_lost(void)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	for (unsigned i = 0; i < repl_replicas(handle); i++) {
		if (repl_stat(handle, i, &st))
			give_up("stat");
		if (st.error_count == 0)
			continue;
		(void)printf("replica %u was lost: %s\n", i, st.reason);
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	struct repl_config *cfg = NULL;
	pthread_t threads[READERS];
	uint8_t *mem;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 2;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return 2;
	if (repl_config_new(&cfg) || repl_config_load(cfg, NULL) ||
	    repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &handle))
		give_up("open");
	repl_config_free(cfg);
	for (unsigned i = 0; i < READERS; i++) {
		if (pthread_create(&threads[i], NULL, reader, (void *)(uintptr_t)(i + 1)))
			return 2;
	}
	while (reads < READERS)
		(void)usleep(1000);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t off = (size_t)i * PART % SIZE;

		memset(mem + off, (int)(i + 1), PART);
		if (repl_persist(handle, 0, off, PART))
			give_up("persist");
	}
	over = true;
	for (unsigned i = 0; i < READERS; i++)
		(void)pthread_join(threads[i], NULL);
	none_is_lost();
	if (repl_close(handle))
		give_up("close");
	(void)printf("%lu reads\n", reads);
	return 0;
}
