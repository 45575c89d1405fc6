/* SPDX-License-Identifier: BSD-3-Clause */
#include "keep.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "missedmark.h"
#include "out.h"
#include "sidecar.h"

/* A file and what lies beside it and speaks of it. */
static const char *const kept_parts[] = {"", SIDECAR_SUFFIX, MISSEDMARK_SUFFIX,
					 MISSEDMARK_TAKEN_SUFFIX, MISSEDMARK_TAKEN_BEFORE};
#define KEPT_PARTS (sizeof(kept_parts) / sizeof(kept_parts[0]))

static bool
part_is_there(const char *file, const char *suffix, const char *part)
{
	struct stat st;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s%s", file, suffix, part);
	return lstat(path, &st) == 0;
}

static bool
any_is_there(const char *file, const char *suffix)
{
	bool any = false;

	for (size_t i = 0; i < KEPT_PARTS; i++)
		any = any || part_is_there(file, suffix, kept_parts[i]);
	return any;
}

void
keep_moves(const char *file, char text[CTL_NEXT_MAX])
{
	char *word = out_quote(file);
	char old[16] = ".old";
	size_t len = 0;

	/* What was kept before, and may be the best there is, stays. */
	for (unsigned n = 2; any_is_there(file, old) && n < 1000; n++)
		(void)snprintf(old, sizeof(old), ".old%u", n);
	text[0] = '\0';
	/* -n: what it has kept stays, too, when the command is given once more. */
	for (size_t i = 0; word && i < KEPT_PARTS && len < CTL_NEXT_MAX; i++)
		if (part_is_there(file, "", kept_parts[i]))
			len += (size_t)snprintf(text + len, CTL_NEXT_MAX - len,
						"mv -n %s%s %s%s%s; ", word, kept_parts[i], word,
						old, kept_parts[i]);
	free(word);
}

const char *
keep_promote(bool was_primary)
{
	return was_primary
		       ? "; then replctl promote TARGET/POOL (by its own target: it was a primary)"
		       : "";
}

void
keep_left_next(struct ctl *c, const char *file, const char *target)
{
	char *word = out_quote(file);
	char keep[CTL_NEXT_MAX];

	keep_moves(file, keep);
	ctl_next_newest(c, target,
			"if that is this file: replctl promote --force TARGET/POOL (where it lies, "
			"as it is); or, to keep it: %sreplctl restore --force %s %s",
			keep, target, word ? word : "FILE");
	free(word);
}
