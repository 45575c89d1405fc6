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

/* Where each version of control groups tells what; cached: what it gives back before anything. */
struct layout {
	const char *mount, *limit, *used, *cached[2];
};

static const struct layout layouts[] = {
	{"", "memory.max", "memory.current", {"\ninactive_file ", "\nactive_file "}},
	{"/memory",
	 "memory.limit_in_bytes",
	 "memory.usage_in_bytes",
	 {"\ntotal_inactive_file ", "\ntotal_active_file "}},
};

static bool
text_read(const char *dir, const char *name, char text[TEXT_MAX])
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	do {
		n = read(fd, text, TEXT_MAX - 1);
	} while (n < 0 && errno == EINTR);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* No number, as "max", is no bound. */
static uint64_t
number(const char *text)
{
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

static uint64_t
group_room(const char *dir, const struct layout *l)
{
	char text[TEXT_MAX];
	uint64_t limit, used;

	if (!text_read(dir, l->limit, text))
		return UINT64_MAX;
	limit = number(text);
	if (limit == UINT64_MAX || !text_read(dir, l->used, text))
		return UINT64_MAX;
	used = number(text);
	if (text_read(dir, "memory.stat", text))
		for (unsigned i = 0; i < 2; i++) {
			const char *at = strstr(text, l->cached[i]);
			uint64_t cached = at ? number(at + strlen(l->cached[i])) : 0;

			used -= cached < used ? cached : used;
		}
	used += OWN;
	return used < limit ? limit - used : 0;
}

/* Of the group and of all above it. */
static uint64_t
path_room(const char *root, const struct layout *l, const char *group)
{
	char dir[PATH_MAX];
	uint64_t least = UINT64_MAX;
	size_t top;

	(void)snprintf(dir, sizeof(dir), "%.*s%s", GROUP_MAX, root, l->mount);
	top = strlen(dir);
	(void)snprintf(dir + top, sizeof(dir) - top, "%.*s", GROUP_MAX - 16, group);
	for (;;) {
		uint64_t room = group_room(dir, l);
		char *end = strrchr(dir + top, '/');

		if (room < least)
			least = room;
		if (!end)
			return least;
		*end = '\0';
	}
}

/* One line a hierarchy: number, controllers, path; of version 2 no controllers. */
static uint64_t
line_room(const char *root, const char *line)
{
	const char *controllers = strchr(line, ':');
	const char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return UINT64_MAX;
	if (path == controllers + 1)
		return path_room(root, &layouts[0], path + 1);
	if (path - controllers == 7 && strncmp(controllers + 1, "memory", 6) == 0)
		return path_room(root, &layouts[1], path + 1);
	return UINT64_MAX;
}

uint64_t
memroom_of(const char *groups, const char *root)
{
	uint64_t least = UINT64_MAX;
	char line[GROUP_MAX];
	FILE *f = fopen(groups, "re");

	while (f && fgets(line, sizeof(line), f)) {
		uint64_t room;

		line[strcspn(line, "\n")] = '\0';
		room = line_room(root, line);
		if (room < least)
			least = room;
	}
	if (f)
		(void)fclose(f);
	return least;
}

uint64_t
memroom_bytes(void)
{
	struct sysinfo machine;

	if (sysinfo(&machine) || machine.freeswap)
		return UINT64_MAX;
	return memroom_of("/proc/self/cgroup", "/sys/fs/cgroup");
}
