/* SPDX-License-Identifier: BSD-3-Clause */
#include "revoked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
line_revokes(char *line, const char *base64)
{
	static const char blanks[] = " \t\r\n";
	char *save = NULL, *key = NULL;
	char *word = strtok_r(line, blanks, &save);

	if (!word || strcmp(word, "@revoked") != 0)
		return false;
	/* Hosts, type, key. */
	for (unsigned i = 0; i < 3; i++)
		key = strtok_r(NULL, blanks, &save);
	return key && strcmp(key, base64) == 0;
}

bool
revoked_find(const char *path, const char *base64)
{
	FILE *f = fopen(path, "re");
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (f && !found && getline(&line, &room, f) > 0)
		found = line_revokes(line, base64);
	free(line);
	if (f)
		(void)fclose(f);
	return found;
}
