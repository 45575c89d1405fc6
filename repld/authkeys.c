/* SPDX-License-Identifier: BSD-3-Clause */
#include "authkeys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define KEYS_MAX     1024U
#define LINE_LEN_MAX 16384

struct authkey {
	char *type;
	char *base64;
};

struct authkeys {
	bool tell;
	unsigned count;
	struct authkey keys[KEYS_MAX];
};

static const char blanks[] = " \t\r\n";

static bool
key_type_known(const char *word)
{
	return strncmp(word, "ssh-", 4) == 0 || strncmp(word, "ecdsa-sha2-", 11) == 0 ||
	       strncmp(word, "sk-", 3) == 0;
}

static bool
base64_valid(const char *word)
{
	size_t len = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789+/");

	return len >= 16 && strspn(word + len, "=") == strlen(word + len);
}

static int
authkeys_add(struct authkeys *k, const char *type, const char *base64, struct err *e)
{
	struct authkey *key = &k->keys[k->count];

	key->type = strdup(type);
	key->base64 = strdup(base64);
	if (!key->type || !key->base64) {
		free(key->type);
		free(key->base64);
		return err_set(e, REPL_E_NOMEM, "out of memory for authorized keys");
	}
	k->count++;
	return REPL_OK;
}

static void __attribute__((format(printf, 4, 5)))
authkeys_skip(const struct authkeys *k, const char *path, unsigned number, const char *fmt, ...)
{
	char why[LOG_LINE_MAX];
	va_list ap;

	if (!k->tell)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	log_warning("%s:%u: line skipped: %s", path, number, why);
}

static int
authkeys_parse_line(struct authkeys *k, const char *path, unsigned number, char *line,
		    struct err *e)
{
	char *save = NULL;
	char *word = strtok_r(line, blanks, &save);
	char *base64;

	if (!word || word[0] == '#')
		return REPL_OK;
	if (strcmp(word, "restrict") == 0)
		word = strtok_r(NULL, blanks, &save);
	if (!word || !key_type_known(word)) {
		authkeys_skip(k, path, number,
			      "begins neither with a key type nor with the option 'restrict'; "
			      "other options are not supported");
		return REPL_OK;
	}
	base64 = strtok_r(NULL, blanks, &save);
	if (!base64 || !base64_valid(base64)) {
		authkeys_skip(k, path, number, "no base64 key after '%s'", word);
		return REPL_OK;
	}
	if (k->count == KEYS_MAX) {
		authkeys_skip(k, path, number, "more than %u keys", KEYS_MAX);
		return REPL_OK;
	}
	return authkeys_add(k, word, base64, e);
}

static int
authkeys_check_file(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(e, REPL_E_IO, errno, "authorized keys '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, REPL_E_REFUSED, "authorized keys '%s' is no regular file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(
			e, REPL_E_REFUSED,
			"authorized keys '%s' belongs to uid %u: it must belong to root or to "
			"the user of repld, uid %u",
			path, (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, REPL_E_REFUSED,
			       "authorized keys '%s' has mode %03o, others may write to it: chmod "
			       "go-w '%s'",
			       path, (unsigned)st.st_mode & 0777U, path);
	return REPL_OK;
}

/* The next line, as far as it fits, and the length of all of it; -1: there is none. */
static ssize_t
next_line(FILE *f, char line[LINE_LEN_MAX])
{
	ssize_t len = 0;
	int ch;

	while ((ch = getc(f)) != EOF && ch != '\n') {
		if (len < LINE_LEN_MAX - 1)
			line[len] = (char)ch;
		len++;
	}
	line[len < LINE_LEN_MAX - 1 ? len : LINE_LEN_MAX - 1] = '\0';
	return ch == EOF && len == 0 ? -1 : len;
}

static int
authkeys_parse(struct authkeys *k, const char *path, FILE *f, struct err *e)
{
	char line[LINE_LEN_MAX];
	unsigned number = 0;
	int rc = REPL_OK;
	ssize_t len;

	while (!rc && (len = next_line(f, line)) >= 0) {
		number++;
		if (len > LINE_LEN_MAX - 1)
			authkeys_skip(k, path, number, "longer than %d bytes", LINE_LEN_MAX - 1);
		else if (strlen(line) < (size_t)len)
			authkeys_skip(k, path, number, "it has a zero byte");
		else
			rc = authkeys_parse_line(k, path, number, line, e);
	}
	if (!rc && ferror(f))
		rc = err_set(e, REPL_E_IO, "authorized keys '%s': read error", path);
	return rc;
}

int
authkeys_read(const char *path, bool tell, struct authkeys **out, struct err *e)
{
	struct authkeys *k = NULL;
	FILE *f = NULL;
	/* Non-blocking: a FIFO must not hold us here. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	*out = NULL;
	if (fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "authorized keys '%s'", path);
	rc = authkeys_check_file(fd, path, e);
	if (rc)
		goto out;
	k = calloc(1, sizeof(*k));
	f = fdopen(fd, "r");
	if (!k || !f) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory for authorized keys");
		goto out;
	}
	k->tell = tell;
	rc = authkeys_parse(k, path, f, e);
	if (!rc) {
		*out = k;
		k = NULL;
	}
out:
	if (f)
		(void)fclose(f);
	else
		(void)close(fd);
	authkeys_free(k);
	return rc;
}

void
authkeys_free(struct authkeys *k)
{
	if (!k)
		return;
	for (unsigned i = 0; i < k->count; i++) {
		free(k->keys[i].type);
		free(k->keys[i].base64);
	}
	free(k);
}

bool
authkeys_contain(const struct authkeys *k, const char *type, const char *base64)
{
	for (unsigned i = 0; i < k->count; i++)
		if (strcmp(k->keys[i].type, type) == 0 && strcmp(k->keys[i].base64, base64) == 0)
			return true;
	return false;
}

unsigned
authkeys_count(const struct authkeys *k)
{
	return k->count;
}
