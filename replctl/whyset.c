/* SPDX-License-Identifier: BSD-3-Clause */
#include "whyset.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pmdk.h"
#include "poolset.h"
#include "sidecar.h"
#include "text.h"

#define WORD_MAX 256

/* The next word of a line; false: there is none, or it is too long. */
static bool
word_next(const char **at, char word[WORD_MAX])
{
	size_t n;

	*at += strspn(*at, " \t");
	n = strcspn(*at, " \t\r\n");
	if (n == 0 || n >= WORD_MAX)
		return false;
	memcpy(word, *at, n);
	word[n] = '\0';
	*at += n;
	return true;
}

/* "REPLICA host set" */
static bool
line_remote(const char *line, char name[2 * WORD_MAX])
{
	char word[WORD_MAX], host[WORD_MAX], set[WORD_MAX];

	if (!word_next(&line, word) || strcmp(word, "REPLICA") != 0 || !word_next(&line, host) ||
	    !word_next(&line, set))
		return false;
	(void)snprintf(name, 2 * WORD_MAX, "%s/%s", host, set);
	return true;
}

static bool
set_file(const char *text, struct whyset *out)
{
	char name[2 * WORD_MAX], quoted[4 * sizeof(name)];
	unsigned count = 0;
	size_t len;

	out->next[0] = '\0';
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += line != text;
		if (!line_remote(line, name))
			continue;
		count++;
		len = strlen(out->next);
		if (text_quote(name, quoted, sizeof(quoted)))
			(void)snprintf(out->next + len, sizeof(out->next) - len, "%sreplctl why %s",
				       len ? "; " : "", quoted);
	}
	(void)snprintf(out->what, sizeof(out->what),
		       "a pool set file with %u remote replica%s, of librpmem.so.1", count,
		       count == 1 ? "" : "s");
	return count > 0;
}

/* PMDK links the replicas of a set, and the parts of each: what is alone is its own neighbour. */
static bool
set_part(const uint8_t *head, size_t len, struct whyset *out)
{
	struct pmdk_header h;
	bool alone = true;

	if (!pmdk_parse(head, len, &h))
		return false;
	for (int i = PMDK_UUID_PREV_PART; i < PMDK_UUID_COUNT; i++)
		alone = alone && memcmp(h.uuid[i], h.uuid[PMDK_UUID_PART], PMDK_UUID_SIZE) == 0;
	(void)snprintf(out->what, sizeof(out->what), "part of a pool set");
	(void)snprintf(out->next, sizeof(out->next),
		       "replctl why with the pool set file, whose lines REPLICA name the replicas");
	return !alone;
}

/* As one of them has it that is replicated as a pool of its own, by replctl run. */
static bool
has_record(const char *file)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s" SIDECAR_SUFFIX, file);

	return n > 0 && n < (int)sizeof(path) && access(path, F_OK) == 0;
}

bool
whyset_look(const char *file, struct whyset *out)
{
	uint8_t head[64 * 1024 + 1];
	int fd = has_record(file) ? -1 : open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head) - 1, 0);

	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return false;
	head[n] = '\0';
	if (poolset_begins((const char *)head, (size_t)n))
		return set_file((const char *)head, out);
	return set_part(head, (size_t)n, out);
}
