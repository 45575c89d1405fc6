/* SPDX-License-Identifier: BSD-3-Clause */
#include "conffile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOWN_MAX 80 /* bytes of a refused value that an error text repeats */

/* A file on its way through inih, which takes its lines from read_line(). */
struct conffile {
	const char *path;
	const struct conffile_key *keys;
	size_t count;
	void *obj;
	struct err *e;
	int rc;          /* of the first error that we found */
	const char *pos; /* next line */
	const char *end;
	unsigned line;                     /* number of the line handed out last */
	char value[CONFFILE_TEXT_MAX + 2]; /* of that line where inih has not all of it; else "" */
	unsigned given[CONFFILE_KEYS_MAX]; /* line that gave the key of that row, or 0 */
};

/* A value as an error text can carry it: on one line and bounded. */
static const char *
shown(const char *value, char out[SHOWN_MAX + 4])
{
	size_t i;

	for (i = 0; value[i] && i < SHOWN_MAX; i++) {
		unsigned char c = (unsigned char)value[i];

		out[i] = c < 0x20 || c == 0x7f ? '?' : value[i];
	}
	(void)strcpy(out + i, value[i] ? "..." : "");
	return out;
}

int
parse_uint(const char *text, unsigned max, unsigned *out)
{
	uint64_t v = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (unsigned)(*text - '0');
		if (v > max)
			return -1;
	}
	*out = (unsigned)v;
	return 0;
}

/* The power of two that a suffix stands for, -1 if it is none. */
static int
suffix_shift(const char *suffix)
{
	static const char letters[] = "KMGT";
	const char *letter;

	if (!*suffix)
		return 0;
	letter = strchr(letters, *suffix == 'k' ? 'K' : *suffix);
	if (!letter || (suffix[1] && strcmp(suffix + 1, "iB") != 0))
		return -1;
	return 10 * (int)(letter - letters + 1);
}

int
parse_size(const char *text, uint64_t *out)
{
	uint64_t v = 0;
	const char *p = text;
	int shift;

	for (; *p >= '0' && *p <= '9'; p++) {
		unsigned digit = (unsigned)(*p - '0');

		if (v > (UINT64_MAX - digit) / 10)
			return -1;
		v = v * 10 + digit;
	}
	shift = suffix_shift(p);
	if (p == text || shift < 0 || v > UINT64_MAX >> shift)
		return -1;
	*out = v << shift;
	return 0;
}

int
conffile_check_absolute(const char *value, struct err *e)
{
	char text[SHOWN_MAX + 4];

	if (value[0] == '/')
		return 0;
	return err_set(e, REPL_E_CONFIG, "'%s' is not an absolute path, which begins with '/'",
		       shown(value, text));
}

static int
set_text(const struct conffile_key *key, void *field, const char *value, struct err *e)
{
	char **text = field;
	char *copy;

	if (key->check && key->check(value, e))
		return REPL_E_CONFIG;
	copy = strdup(value);
	if (!copy)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	free(*text);
	*text = copy;
	return 0;
}

static int
set_uint(const struct conffile_key *key, void *field, const char *value, struct err *e)
{
	char text[SHOWN_MAX + 4];
	unsigned *out = field;
	unsigned v;

	if (parse_uint(value, key->max, &v) || v < key->min)
		return err_set(e, REPL_E_CONFIG, "'%s' is not a whole number from %u to %u",
			       shown(value, text), key->min, key->max);
	*out = v;
	return 0;
}

static int
set_size(const struct conffile_key *key, void *field, const char *value, struct err *e)
{
	char text[SHOWN_MAX + 4];
	unsigned *out = field;
	uint64_t v;

	if (parse_size(value, &v) || v < key->min || v > key->max)
		return err_set(e, REPL_E_CONFIG,
			       "'%s' is not a size from %u to %u bytes, such as 65536 or 64K",
			       shown(value, text), key->min, key->max);
	*out = (unsigned)v;
	return 0;
}

/* Grow "a, b" by a name; what does not fit is left off. */
static void
list_append(char *list, size_t size, const char *name)
{
	size_t used = strlen(list);

	(void)snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
}

static int
set_choice(const struct conffile_key *key, void *field, const char *value, struct err *e)
{
	char text[SHOWN_MAX + 4], list[256] = "";
	int *out = field;

	for (int i = 0; key->choices[i]; i++) {
		if (strcmp(key->choices[i], value) == 0) {
			*out = i;
			return 0;
		}
		list_append(list, sizeof(list), key->choices[i]);
	}
	return err_set(e, REPL_E_CONFIG, "'%s' is none of %s", shown(value, text), list);
}

static int
set_value(const struct conffile_key *key, void *obj, const char *value, struct err *e)
{
	void *field = (char *)obj + key->offset;

	if (!*value)
		return err_set(e, REPL_E_CONFIG, "has no value");
	if (strlen(value) > CONFFILE_TEXT_MAX)
		return err_set(e, REPL_E_CONFIG, "value is longer than %u bytes",
			       CONFFILE_TEXT_MAX);
	for (const char *p = value; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return err_set(e, REPL_E_CONFIG, "value has the control character 0x%02x",
				       c);
	}
	switch (key->type) {
	case CONFFILE_TEXT:
		return set_text(key, field, value, e);
	case CONFFILE_UINT:
		return set_uint(key, field, value, e);
	case CONFFILE_SIZE:
		return set_size(key, field, value, e);
	case CONFFILE_CHOICE:
		return set_choice(key, field, value, e);
	case CONFFILE_CALL:
	case CONFFILE_LIST:
		return key->take(obj, value, e);
	}
	return err_set(e, REPL_E_CONFIG, "has no type");
}

/* set_value() with the key in the text, and every refusal a matter of configuration. */
static int
set_row(const struct conffile_key *key, void *obj, const char *value, struct err *e)
{
	int rc = set_value(key, obj, value, e);

	if (!rc || rc == REPL_E_NOMEM)
		return rc;
	(void)err_prefix(e, "key '%s'", key->name);
	if (e)
		e->code = REPL_E_CONFIG;
	return REPL_E_CONFIG;
}

/* No row for the key: say where it would belong, or which keys there are. */
static int
unknown_key(const struct conffile_key *keys, size_t count, const char *section, const char *name,
	    struct err *e)
{
	char text[SHOWN_MAX + 4], list[512] = "";

	(void)shown(name, text);
	if (!*section)
		return err_set(e, REPL_E_CONFIG, "key '%s': stands before the section [%s]", text,
			       keys[0].section);
	for (size_t i = 0; i < count; i++)
		if (strcmp(keys[i].section, section) == 0)
			list_append(list, sizeof(list), keys[i].name);
	return err_set(e, REPL_E_CONFIG, "key '%s': unknown; the keys are: %s", text, list);
}

/* The row's index, or count. */
static size_t
find_row(const struct conffile_key *keys, size_t count, const char *section, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
			break;
	return i;
}

int
conffile_set(const struct conffile_key *keys, size_t count, void *obj, const char *section,
	     const char *name, const char *value, struct err *e)
{
	size_t i = find_row(keys, count, section, name);

	if (i == count)
		return unknown_key(keys, count, section, name, e);
	return set_row(&keys[i], obj, value, e);
}

void
conffile_free(const struct conffile_key *keys, size_t count, void *obj)
{
	for (size_t i = 0; i < count; i++) {
		char **text = (void *)((char *)obj + keys[i].offset);

		if (keys[i].type != CONFFILE_TEXT)
			continue;
		free(*text);
		*text = NULL;
	}
}

/* Note the first error, of the line handed out last; inih goes on, read_line() does not. */
static void
fail(struct conffile *f, int rc)
{
	f->rc = rc;
	(void)err_prefix(f->e, "%s:%u", f->path, f->line);
}

/* inih names a section to the handler with its keys alone. */
static bool
is_section(const struct conffile *f, const char *name, size_t len)
{
	for (size_t i = 0; i < f->count; i++)
		if (strlen(f->keys[i].section) == len && memcmp(f->keys[i].section, name, len) == 0)
			return true;
	return false;
}

static int
unknown_section(const struct conffile *f, const char *name, size_t len)
{
	char text[SHOWN_MAX + 4], copy[SHOWN_MAX + 2];

	if (len > sizeof(copy) - 1)
		len = sizeof(copy) - 1;
	memcpy(copy, name, len);
	copy[len] = '\0';
	return err_set(f->e, REPL_E_CONFIG, "section [%s] is unknown, it should be [%s]",
		       shown(copy, text), f->keys[0].section);
}

/* What inih would cut or overlook without a word. Returns true after fail(). */
static bool
refuse_line(struct conffile *f, const char *line, size_t len)
{
	const char *close, *rest, *end = line + len;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)line[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f) {
			fail(f, err_set(f->e, REPL_E_CONFIG, "byte 0x%02x is not text", c));
			return true;
		}
	}
	if (len == 0 || line[0] != '[')
		return false;
	close = memchr(line, ']', len);
	if (!close)
		return false; /* inih refuses it */
	for (rest = close + 1; rest < end && (*rest == ' ' || *rest == '\t'); rest++)
		;
	if (rest != end && (*rest != ';' || rest == close + 1))
		fail(f, err_set(f->e, REPL_E_CONFIG,
				"text after a [section]: give it a line of its own"));
	else if (!is_section(f, line + 1, (size_t)(close - line - 1)))
		fail(f, unknown_section(f, line + 1, (size_t)(close - line - 1)));
	return f->rc != 0;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The value as inih has it: from the first '=' or ':' on, up to a ';' behind a blank. */
static void
note_value(struct conffile *f, const char *line, const char *end)
{
	const char *from = line, *to;
	size_t len;

	while (from < end && *from != '=' && *from != ':')
		from++;
	from += from < end;
	for (to = from; to < end && !(to > from && *to == ';' && is_blank(to[-1])); to++)
		;
	while (from < to && is_blank(*from))
		from++;
	while (to > from && is_blank(to[-1]))
		to--;
	len = (size_t)(to - from);
	if (len > CONFFILE_TEXT_MAX + 1)
		len = CONFFILE_TEXT_MAX + 1; /* too long, which set_value() says */
	memcpy(f->value, from, len);
	f->value[len] = '\0';
}

/*
 * The fgets of inih. What is longer than its buffer, which is short, has its end cut off: it gets
 * the name from it, and take_pair() the value from us. Leading blanks are taken off, because inih
 * would take an indented line for more of the value above it.
 */
static char *
read_line(char *out, int size, void *stream)
{
	struct conffile *f = stream;
	const char *line = f->pos, *end;
	size_t len;

	if (f->rc || f->pos == f->end)
		return NULL;
	f->line++;
	end = memchr(line, '\n', (size_t)(f->end - line));
	f->pos = end ? end + 1 : f->end;
	if (!end)
		end = f->end;
	while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
		end--;
	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	if (line < end && (*line == ';' || *line == '#'))
		line = end;
	len = (size_t)(end - line);
	if (refuse_line(f, line, len))
		return NULL;
	f->value[0] = '\0';
	if (len > (size_t)size - 2) {
		note_value(f, line, end);
		len = (size_t)size - 2;
	}
	memcpy(out, line, len);
	(void)strcpy(out + len, "\n");
	return out;
}

/* The handler of inih: non-zero when the pair was taken. */
static int
take_pair(void *user, const char *section, const char *name, const char *value)
{
	struct conffile *f = user;
	size_t i = find_row(f->keys, f->count, section, name);
	int rc;

	if (f->value[0])
		value = f->value;
	if (i == f->count)
		rc = unknown_key(f->keys, f->count, section, name, f->e);
	else if (f->given[i] && f->keys[i].type != CONFFILE_LIST)
		rc = err_set(f->e, REPL_E_CONFIG, "key '%s': given before in line %u", name,
			     f->given[i]);
	else
		rc = set_row(&f->keys[i], f->obj, value, f->e);
	if (rc) {
		fail(f, rc);
		return 0;
	}
	f->given[i] = f->line;
	return 1;
}

static int
parse(struct conffile *f)
{
	int line = ini_parse_stream(read_line, f, take_pair, f);

	if (line == -2)
		return err_set(f->e, REPL_E_NOMEM, "%s: out of memory", f->path);
	/* inih goes on after a line that is no INI: the first one in the file counts. */
	if (line > 0 && (!f->rc || (unsigned)line < f->line))
		return err_set(f->e, REPL_E_CONFIG,
			       "%s:%d: neither 'key = value' nor [section] nor a comment", f->path,
			       line);
	return f->rc;
}

/* Non-blocking, so that a FIFO without a writer is refused instead of waited for. */
static int
open_regular(const char *path, int *out, struct err *e)
{
	struct stat st;
	int rc = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	/* What this machine lacks is not to be corrected in the file. */
	if (fd < 0)
		return err_errno(
			e, err_from_errno(errno) == REPL_E_LIMIT ? REPL_E_LIMIT : REPL_E_CONFIG,
			errno, "%s", path);
	if (fstat(fd, &st))
		rc = err_errno(e, REPL_E_CONFIG, errno, "%s", path);
	else if (!S_ISREG(st.st_mode))
		rc = err_set(e, REPL_E_CONFIG, "%s: %s", path,
			     S_ISDIR(st.st_mode) ? "is a directory" : "is not a regular file");
	if (rc)
		(void)close(fd);
	else
		*out = fd;
	return rc;
}

/* The whole file in a new buffer. */
static int
read_all(const char *path, char **out, size_t *len, struct err *e)
{
	char *data = malloc(CONFFILE_SIZE_MAX + 1);
	size_t used = 0;
	ssize_t got = 1;
	int fd = -1;
	int rc = data ? open_regular(path, &fd, e) : err_set(e, REPL_E_NOMEM, "out of memory");

	while (!rc && got != 0 && used <= CONFFILE_SIZE_MAX) {
		got = read(fd, data + used, CONFFILE_SIZE_MAX + 1 - used);
		if (got > 0)
			used += (size_t)got;
		else if (got < 0 && errno != EINTR)
			rc = err_errno(e, REPL_E_CONFIG, errno, "%s", path);
	}
	if (!rc && used > CONFFILE_SIZE_MAX)
		rc = err_set(e, REPL_E_CONFIG, "%s: is larger than %u bytes", path,
			     CONFFILE_SIZE_MAX);
	if (fd >= 0)
		(void)close(fd);
	if (rc) {
		free(data);
		return rc;
	}
	*out = data;
	*len = used;
	return 0;
}

int
conffile_load(const char *path, const struct conffile_key *keys, size_t count, void *obj,
	      struct err *e)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct conffile f = {.path = path, .keys = keys, .count = count, .obj = obj, .e = e};
	char *data = NULL;
	size_t len;
	int rc;

	assert(count > 0 && count <= CONFFILE_KEYS_MAX);
	rc = read_all(path, &data, &len, e);
	if (rc)
		return rc;
	f.pos = data;
	f.end = data + len;
	if (len >= strlen(bom) && memcmp(data, bom, strlen(bom)) == 0)
		f.pos += strlen(bom);
	rc = parse(&f);
	free(data);
	return rc;
}
