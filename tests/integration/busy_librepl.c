/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In librepl's place: what librepl-preload.so uses of it, with lanes that are in use for the
 * first BUSY calls of each kind. A line for each that was done goes to the file $BUSY_SAYS.
 */
#include <stdio.h>
#include <stdlib.h>

#include <librepl.h>
#include <stdbool.h>

#define BUSY 2

static int flushes, drains, commits;

static void
say(const char *what, size_t off, size_t len)
{
	const char *path = getenv("BUSY_SAYS");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (!f)
		abort();
	(void)fprintf(f, "%s %zu %zu\n", what, off, len);
	(void)fclose(f);
}

const char *
repl_errormsg(void)
{
	return "lane 0 is in use by another thread";
}

int
repl_config_new(struct repl_config **cfg)
{
	*cfg = NULL;
	return 0;
}

void
repl_config_free(struct repl_config *cfg)
{
	(void)cfg;
}

int
repl_config_load(struct repl_config *cfg, const char *path)
{
	(void)cfg;
	(void)path;
	return 0;
}

int
repl_config_add_target(struct repl_config *cfg, const char *target)
{
	(void)cfg;
	(void)target;
	return 0;
}

int
repl_config_set(struct repl_config *cfg, const char *key, const char *value)
{
	(void)cfg;
	(void)key;
	(void)value;
	return 0;
}

int
repl_open(const struct repl_config *cfg, void *addr, size_t size, unsigned flags, struct repl **out)
{
	(void)cfg;
	(void)addr;
	(void)size;
	(void)flags;
	*out = (struct repl *)(void *)&flushes;
	return 0;
}

int
repl_close(struct repl *r)
{
	(void)r;
	return 0;
}

void
repl_abandon(struct repl *r)
{
	(void)r;
}

unsigned
repl_lanes(const struct repl *r)
{
	(void)r;
	return 1;
}

unsigned
repl_replicas(const struct repl *r)
{
	(void)r;
	return 1;
}

int
repl_stat(struct repl *r, unsigned replica, struct repl_stat *st)
{
	(void)r;
	(void)replica;
	st->replication = REPL_REPL_ESTABLISHED;
	return 0;
}

int
repl_flush(struct repl *r, unsigned lane, size_t off, size_t len)
{
	(void)r;
	(void)lane;
	if (flushes++ < BUSY)
		return REPL_E_BUSY;
	say("flush", off, len);
	return 0;
}

int
repl_drain(struct repl *r, unsigned lane)
{
	(void)r;
	(void)lane;
	if (drains++ < BUSY)
		return REPL_E_BUSY;
	say("drain", 0, 0);
	return 0;
}

int
repl_commit(struct repl *r, unsigned lane)
{
	(void)r;
	(void)lane;
	if (commits++ < BUSY)
		return commits == 1 ? REPL_E_TIMEOUT : REPL_E_BUSY;
	say("commit", 0, 0);
	return 0;
}

int
repl_grow(struct repl *r, size_t new_size)
{
	(void)r;
	(void)new_size;
	return 0;
}

REPL_API void repl_prepare(void);

void
repl_prepare(void)
{
}

REPL_API int repl_open_run(const struct repl_config *cfg, void *addr, size_t size, bool anew,
			   struct repl **out);

int
repl_open_run(const struct repl_config *cfg, void *addr, size_t size, bool anew, struct repl **out)
{
	(void)anew;
	return repl_open(cfg, addr, size, REPL_OPEN_CREATE, out);
}
