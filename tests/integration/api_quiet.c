/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_quiet - what the library changes in the process that loads it: nothing.
 * Loads it by dlopen() so that the state before can be seen; compares signal
 * dispositions, the signal mask, threads and the environment after each step.
 * Whoever calls looks that nothing is printed but the faults found here.
 *
 *   api_quiet LIBRARY SIZE BAD-TARGET [KEY=VALUE ...]
 */
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define ENV_MAX 512

extern char **environ;

struct state {
	void *handler[NSIG];
	sigset_t mask;
	unsigned threads;
	char *env[ENV_MAX];
};

struct calls {
	__typeof__(repl_config_new) *config_new;
	__typeof__(repl_config_free) *config_free;
	__typeof__(repl_config_set) *config_set;
	__typeof__(repl_open) *open;
	__typeof__(repl_persist) *persist;
	__typeof__(repl_close) *close;
	__typeof__(repl_errormsg) *errormsg;
};

static unsigned
count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

static void
state_take(struct state *s)
{
	struct sigaction sa;

	memset(s, 0, sizeof(*s));
	for (int i = 1; i < NSIG; i++)
		if (sigaction(i, NULL, &sa) == 0)
			s->handler[i] = (void *)(uintptr_t)sa.sa_handler;
	(void)sigprocmask(SIG_SETMASK, NULL, &s->mask);
	s->threads = count_threads();
	for (unsigned i = 0; environ[i] && i < ENV_MAX; i++)
		s->env[i] = environ[i];
}

static bool
state_same(const struct state *a, const char *when, unsigned more_threads)
{
	struct state b;
	bool same = true;

	state_take(&b);
	for (int i = 1; i < NSIG; i++) {
		Dl_info info = {0};

		if (a->handler[i] == b.handler[i])
			continue;
		same = false;
		(void)dladdr(b.handler[i], &info);
		(void)fprintf(stderr, "%s: signal %d (%s) has a handler of %s\n", when, i,
			      sigabbrev_np(i), info.dli_fname ? info.dli_fname : "nobody");
	}
	if (memcmp(&a->mask, &b.mask, sizeof(b.mask)) != 0 ||
	    memcmp(a->env, b.env, sizeof(b.env)) != 0 || b.threads > a->threads + more_threads) {
		same = false;
		(void)fprintf(stderr, "%s: the mask, the environment or the threads (%u, %u)\n",
			      when, a->threads, b.threads);
	}
	return same;
}

/* Converting a data pointer to a function's is what dlsym() asks for. */
#define LOOK_UP(field, name)                                                                       \
	do {                                                                                       \
		void *p = dlsym(lib, #name);                                                       \
		memcpy(&c->field, &p, sizeof(p));                                                  \
		if (!p)                                                                            \
			return false;                                                              \
	} while (0)

static bool
look_up(void *lib, struct calls *c)
{
	LOOK_UP(config_new, repl_config_new);
	LOOK_UP(config_free, repl_config_free);
	LOOK_UP(config_set, repl_config_set);
	LOOK_UP(open, repl_open);
	LOOK_UP(persist, repl_persist);
	LOOK_UP(close, repl_close);
	LOOK_UP(errormsg, repl_errormsg);
	return true;
}

/* Open, write, close with what argv says; each in a state like before. */
static bool
session(const struct calls *c, const struct state *before, char **options, const char *target,
	size_t size, bool must_open)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct repl_config *cfg = NULL;
	struct repl *r = NULL;
	bool ok = mem != MAP_FAILED && c->config_new(&cfg) == 0;

	for (; ok && *options; options++) {
		char *value = strchr(*options, '=');

		*value = '\0';
		if (!target || strcmp(*options, "target") != 0)
			ok = c->config_set(cfg, *options, value + 1) == 0;
		*value = '=';
	}
	ok = ok && (!target || c->config_set(cfg, "target", target) == 0);
	if (ok && (c->open(cfg, mem, size, REPL_OPEN_CREATE, &r) == 0) != must_open) {
		(void)fprintf(stderr, "open: %s\n", c->errormsg());
		ok = false;
	}
	/* The heartbeat is the handle's one thread. */
	ok = ok && state_same(before, "after open", must_open ? 1 : 0);
	if (ok && must_open)
		ok = c->persist(r, 0, 0, size) == 0 && state_same(before, "after persist", 1);
	ok = c->close(r) == 0 && ok;
	c->config_free(cfg);
	(void)munmap(mem, size);
	return state_same(before, "after close", 0) && ok;
}

int
main(int argc, char **argv)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct state before;
	struct calls c;
	size_t size;
	void *lib;

	if (argc < 5)
		return 2;
	/* Also what is not the default stays as it is. */
	(void)sigaction(SIGINT, &ignore, NULL);
	state_take(&before);
	lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!lib || !look_up(lib, &c)) {
		(void)fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (!state_same(&before, "after loading", 0))
		return 1;
	size = (size_t)strtoull(argv[2], NULL, 0);
	if (!session(&c, &before, argv + 4, NULL, size, true) ||
	    !session(&c, &before, argv + 4, argv[3], size, false))
		return 1;
	return 0;
}
