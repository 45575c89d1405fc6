/* SPDX-License-Identifier: BSD-3-Clause */
#include "hint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

static const char tool[] = "replctl ";

/* Those that reach a target; of the last ones it depends on what they are given. */
static const char *const reaching[] = {"bench", "create",  "demote", "events",  "grow",   "info",
				       "list",  "newest",  "probe",  "promote", "remove", "resolve",
				       "run",   "restore", "status", "sync",    "verify", "why"};
static const char *const of_either[] = {"events", "status", "why"};

static bool
is_one_of(const char *word, size_t len, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == len && memcmp(names[i], word, len) == 0)
			return true;
	return false;
}

/* What a program that has the file open answers needs no connection. */
static bool
names_file(const char *args)
{
	while (strncmp(args, "--", 2) == 0)
		args += strcspn(args, " ") + (args[strcspn(args, " ")] == ' ');
	args += *args == '\'';
	return *args == '/' || *args == '.' ||
	       (strncmp(args, "FILE", 4) == 0 && strchr(" ;,)", args[4]));
}

/* command is what stands behind "replctl ". */
static bool
reaches(const char *command)
{
	size_t len = strspn(command, "abcdefghijklmnopqrstuvwxyz");

	if (command[len] != ' ' ||
	    !is_one_of(command, len, reaching, sizeof(reaching) / sizeof(reaching[0])))
		return false;
	return !is_one_of(command, len, of_either, sizeof(of_either) / sizeof(of_either[0])) ||
	       !names_file(command + len + 1);
}

/* " --NAME VALUE" behind *used; false: no room. */
static bool
add_option(char *out, size_t size, size_t *used, const char *name, const char *value)
{
	size_t len = strlen(name);

	if (!value)
		return true;
	if (*used + len >= size)
		return false;
	memcpy(out + *used, name, len);
	*used += len;
	if (!text_quote(value, out + *used, size - *used))
		return false;
	*used += strlen(out + *used);
	if (*used + 1 >= size)
		return false;
	out[(*used)++] = ' ';
	return true;
}

/* A word that is quoted is a name, whatever it says: "'" opens one where a word may begin. */
static bool
quote_turns(const char *text, size_t at, bool quoted)
{
	if (text[at] != '\'' || quoted)
		return text[at] == '\'';
	return at == 0 || strchr(" (/'", text[at - 1]);
}

void
hint_complete(char *text, size_t size, const struct ctl_options *o)
{
	char options[CTL_NEXT_MAX], out[CTL_NEXT_MAX];
	size_t len = 0, used = 0, at = 0;
	bool quoted = false;

	if (!add_option(options, sizeof(options), &len, "--config ", o->config) ||
	    !add_option(options, sizeof(options), &len, "--identity ", o->identity) ||
	    !add_option(options, sizeof(options), &len, "--known-hosts ", o->known_hosts) || !len)
		return;
	while (text[at]) {
		bool here = !quoted && (at == 0 || strchr(" (", text[at - 1])) &&
			    strncmp(text + at, tool, strlen(tool)) == 0 &&
			    reaches(text + at + strlen(tool));
		size_t most = here ? strlen(tool) : 1, add = here ? len : 0;

		if (used + most + add >= sizeof(out))
			return;
		quoted ^= quote_turns(text, at, quoted);
		memcpy(out + used, text + at, most);
		memcpy(out + used + most, options, add);
		used += most + add;
		at += most;
	}
	if (used >= size)
		return;
	memcpy(text, out, used);
	text[used] = '\0';
}
