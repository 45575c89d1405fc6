/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_exit WHEN FILE [LIBCRYPTO] - has FILE open, with the configuration of REPL_CONFIG, when
 * main() returns, and writes to it and closes it after that:
 *
 *   handler     in a handler that was registered with atexit(3) before the pool was opened
 *   destructor  in a destructor of the program
 *   never       not at all; but it takes its time to end
 *
 * With LIBCRYPTO, OpenSSL's library, that is cleaned up before, as it is in a program that has used
 * it before librepl was loaded.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE (1U << 20)

static const char *when = "";
static uint8_t *mem;
static struct repl *handle;

static void
write_and_close(void)
{
	mem[0] = 'x';
	if (repl_persist(handle, 0, 0, 1) || repl_close(handle)) {
		(void)fprintf(stderr, "%s\n", repl_errormsg());
		_exit(1);
	}
}

static void
on_exit_handler(void)
{
	if (strcmp(when, "handler") == 0)
		write_and_close();
}

__attribute__((destructor)) static void
on_unload(void)
{
	const struct timespec time = {.tv_nsec = 500000000};

	if (strcmp(when, "destructor") == 0)
		write_and_close();
	if (strcmp(when, "never") == 0)
		(void)nanosleep(&time, NULL);
}

static bool
clean_up_openssl(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	void *p = lib ? dlsym(lib, "OPENSSL_cleanup") : NULL;
	void (*clean_up)(void) = NULL;

	memcpy(&clean_up, &p, sizeof(p));
	return clean_up && atexit(clean_up) == 0;
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg = NULL;
	int fd = argc >= 3 ? open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	bool ok;

	if (fd < 0 || ftruncate(fd, SIZE) || atexit(on_exit_handler) ||
	    (argc == 4 && !clean_up_openssl(argv[3])))
		return 2;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ok = mem != MAP_FAILED && repl_config_new(&cfg) == 0 && repl_config_load(cfg, NULL) == 0 &&
	     repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &handle) == 0;
	repl_config_free(cfg);
	if (!ok) {
		(void)fprintf(stderr, "%s\n", repl_errormsg());
		return 1;
	}
	when = argv[1];
	return 0;
}
