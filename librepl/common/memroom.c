/* SPDX-License-Identifier: BSD-3-Clause */
#include "memroom.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define OWN       (16ULL << 20) /* of a session that opens lanes, and of the daemon */
#define TEXT_MAX  4096U
#define GROUP_MAX (PATH_MAX / 2)

/* What is left; UINT64_MAX: nothing bounds it. */
struct room {
	uint64_t memory, swap;
	uint64_t both; /* of the two together, which the first version counts in one */
};

struct bound {
	const char *limit, *used;
};

/* Where each version of control groups tells what; cached: what it gives back before anything. */
struct layout {
	const char *mount;
	struct bound memory, swap, both;
	const char *cached[2];
};

static const struct layout layouts[] = {
	{"",
	 {"memory.max", "memory.current"},
	 {"memory.swap.max", "memory.swap.current"},
	 {NULL, NULL},
	 {"\ninactive_file ", "\nactive_file "}},
	{"/memory",
	 {"memory.limit_in_bytes", "memory.usage_in_bytes"},
	 {NULL, NULL},
	 {"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"},
	 {"\ntotal_inactive_file ", "\ntotal_active_file "}},
};

static bool
text_read(const char *path, char text[TEXT_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd < 0)
		return false;
	do {
		n = read(fd, text, TEXT_MAX - 1);
	} while (n < 0 && errno == EINTR);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool
file_read(const char *dir, const char *name, char text[TEXT_MAX])
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       text_read(path, text);
}

/* No number, as "max", is no bound. */
static uint64_t
number(const char *text)
{
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

static void
lower(uint64_t *least, uint64_t value)
{
	*least = value < *least ? value : *least;
}

static uint64_t
sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t
left(const char *dir, const struct bound *b, uint64_t cached)
{
	char text[TEXT_MAX];
	uint64_t limit, used;

	if (!b->limit || !file_read(dir, b->limit, text))
		return UINT64_MAX;
	limit = number(text);
	if (limit == UINT64_MAX || !file_read(dir, b->used, text))
		return UINT64_MAX;
	used = number(text);
	used -= cached < used ? cached : used;
	return used < limit ? limit - used : 0;
}

static void
group_room(const char *dir, const struct layout *l, struct room *r)
{
	char text[TEXT_MAX];
	uint64_t cached = 0;

	if (file_read(dir, "memory.stat", text))
		for (unsigned i = 0; i < 2; i++) {
			const char *at = strstr(text, l->cached[i]);

			cached = sum(cached, at ? number(at + strlen(l->cached[i])) : 0);
		}
	lower(&r->memory, left(dir, &l->memory, cached));
	lower(&r->swap, left(dir, &l->swap, 0));
	lower(&r->both, left(dir, &l->both, cached));
}

/* Of the group and of all above it. */
static void
path_room(const char *root, const struct layout *l, const char *group, struct room *r)
{
	char dir[PATH_MAX], *end;
	size_t top;

	(void)snprintf(dir, sizeof(dir), "%.*s%s", GROUP_MAX, root, l->mount);
	top = strlen(dir);
	(void)snprintf(dir + top, sizeof(dir) - top, "%.*s", GROUP_MAX - 16, group);
	for (;;) {
		group_room(dir, l, r);
		end = strrchr(dir + top, '/');
		if (!end)
			return;
		*end = '\0';
	}
}

/* One line a hierarchy: number, controllers, path; of version 2 no controllers. */
static void
line_room(const char *root, const char *line, struct room *r)
{
	const char *controllers = strchr(line, ':');
	const char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (path && path == controllers + 1)
		path_room(root, &layouts[0], path + 1, r);
	else if (path && path - controllers == 7 && strncmp(controllers + 1, "memory", 6) == 0)
		path_room(root, &layouts[1], path + 1, r);
}

/* What is free, and what of caches is given back. */
static uint64_t
machine_room(const char *meminfo)
{
	static const char name[] = "\nMemAvailable:";
	char text[TEXT_MAX];
	const char *at = text_read(meminfo, text) ? strstr(text, name) : NULL;
	uint64_t kib = UINT64_MAX;

	if (at) {
		at += strlen(name);
		kib = number(at + strspn(at, " "));
	}
	return kib < UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}

uint64_t
memroom_of(const char *groups, const char *root, const char *meminfo, uint64_t swap)
{
	struct room r = {.memory = machine_room(meminfo), .swap = swap, .both = UINT64_MAX};
	FILE *f = fopen(groups, "re");
	char line[GROUP_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		line_room(root, line, &r);
	}
	if (f)
		(void)fclose(f);
	lower(&r.both, sum(r.memory, r.swap));
	if (r.both == UINT64_MAX)
		return UINT64_MAX;
	return r.both > OWN ? r.both - OWN : 0;
}

uint64_t
memroom_bytes(void)
{
	struct sysinfo machine;

	if (sysinfo(&machine))
		return UINT64_MAX;
	/* Also where there is no such file for a service. */
	return memroom_of("/proc/self/cgroup", "/sys/fs/cgroup", "/proc/meminfo",
			  (uint64_t)machine.freeswap * machine.mem_unit);
}
