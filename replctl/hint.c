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

/* Those that ask the program that has a file open: a configuration may say where it answers. */
static const char *const asking[] = {"events", "metrics", "pause", "resume",
				     "status", "wait",    "why"};

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

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

enum needs { NEEDS_NOTHING, NEEDS_CONFIG, NEEDS_ALL };

/* command is what stands behind "replctl ". */
static enum needs
needs_of(const char *command)
{
	size_t len = strspn(command, "abcdefghijklmnopqrstuvwxyz");
	bool of_file;

	if (command[len] != ' ')
		return NEEDS_NOTHING;
	of_file = names_file(command + len + 1);
	if (is_one_of(command, len, reaching, COUNT(reaching)) &&
	    !(of_file && is_one_of(command, len, of_either, COUNT(of_either))))
		return NEEDS_ALL;
	return of_file && is_one_of(command, len, asking, COUNT(asking)) ? NEEDS_CONFIG
									 : NEEDS_NOTHING;
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
	size_t lens[] = {[NEEDS_NOTHING] = 0, [NEEDS_CONFIG] = 0, [NEEDS_ALL] = 0};
	size_t len = 0, used = 0, at = 0;
	bool quoted = false;

	if (!add_option(options, sizeof(options), &len, "--config ", o->config))
		return;
	lens[NEEDS_CONFIG] = len;
	if (!add_option(options, sizeof(options), &len, "--identity ", o->identity) ||
	    !add_option(options, sizeof(options), &len, "--known-hosts ", o->known_hosts) || !len)
		return;
	lens[NEEDS_ALL] = len;
	while (text[at]) {
		bool here = !quoted && (at == 0 || strchr(" (", text[at - 1])) &&
			    strncmp(text + at, tool, strlen(tool)) == 0;
		size_t most = here ? strlen(tool) : 1;
		size_t add = here ? lens[needs_of(text + at + most)] : 0;

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
