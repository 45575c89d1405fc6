/* SPDX-License-Identifier: BSD-3-Clause */
#include "revoked.h"

#include <errno.h>
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

int
revoked_find(const char *path, const char *base64, bool *found)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int errnum = 0;

	*found = false;
	if (!f)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM
			       ? 0
			       : errno;
	while (!*found && getline(&line, &room, f) > 0)
		*found = line_revokes(line, base64);
	if (!*found && !feof(f))
		errnum = errno ? errno : EIO;
	free(line);
	(void)fclose(f);
	return errnum;
}
