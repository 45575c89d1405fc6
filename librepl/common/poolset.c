/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset.h"

#include <string.h>

#include "conffile.h"

#define BLANKS   " \t\r"
#define PAGE     4096U
#define WORD_MAX 32U

/* What is left of a line, and its number. */
struct line {
	const char *at;
	size_t len;
	unsigned number;
};

bool
poolset_begins(const char *text, size_t len)
{
	size_t n = strlen(POOLSET_SIGNATURE);

	return len >= n && memcmp(text, POOLSET_SIGNATURE, n) == 0;
}

static size_t
span(const struct line *l, bool blanks)
{
	size_t n = 0;

	while (n < l->len && (strchr(BLANKS, l->at[n]) != NULL) == blanks)
		n++;
	return n;
}

static void
skip(struct line *l, size_t n)
{
	l->at += n;
	l->len -= n;
}

/* The next word of the line into buf; false if there is none or it is too long. */
static bool
word_next(struct line *l, char *buf, size_t size)
{
	size_t n;

	skip(l, span(l, true));
	n = span(l, false);
	if (n == 0 || n >= size)
		return false;
	memcpy(buf, l->at, n);
	buf[n] = '\0';
	skip(l, n);
	return true;
}

static int
line_end(struct line *l, struct err *e)
{
	skip(l, span(l, true));
	if (l->len == 0)
		return 0;
	return err_set(e, REPL_E_INVAL, "line %u: '%.*s' is one word too many", l->number,
		       l->len < WORD_MAX ? (int)l->len : (int)WORD_MAX, l->at);
}

static int
option_line(struct line *l, struct poolset *s, struct err *e)
{
	char word[WORD_MAX + 1] = "";

	(void)word_next(l, word, sizeof(word));
	if (s->headers != POOLSET_EACH)
		return err_set(e, REPL_E_INVAL, "line %u: a second OPTION", l->number);
	if (strcmp(word, "SINGLEHDR") == 0)
		s->headers = POOLSET_SINGLE;
	else if (strcmp(word, "NOHDRS") == 0)
		s->headers = POOLSET_NONE;
	else
		return err_set(e, REPL_E_INVAL,
			       "line %u: OPTION '%s' is neither SINGLEHDR nor NOHDRS", l->number,
			       word);
	return line_end(l, e);
}

static int
part_size(const struct line *l, const char *word, uint64_t *size, struct err *e)
{
	/* The size of the device that the path must be. */
	*size = 0;
	if (strcmp(word, "AUTO") == 0)
		return 0;
	if (parse_size(word, size))
		return err_set(e, REPL_E_INVAL,
			       "line %u: '%s' is no size: '64M', '1G', '16MiB', or bytes",
			       l->number, word);
	if (*size < POOLSET_PART_MIN || *size > INT64_MAX)
		return err_set(e, REPL_E_INVAL,
			       "line %u: a part of %llu bytes, from %u to below 2^63 are allowed",
			       l->number, (unsigned long long)*size, POOLSET_PART_MIN);
	return 0;
}

static int
part_line(struct line *l, const char *word, struct poolset *s, struct err *e)
{
	struct poolset_part *p;
	uint64_t size, total = 0;
	int rc = part_size(l, word, &size, e);

	if (rc)
		return rc;
	if (s->count == POOLSET_PARTS_MAX)
		return err_set(e, REPL_E_INVAL, "line %u: more than %u parts", l->number,
			       POOLSET_PARTS_MAX);
	for (unsigned i = 0; i < s->count; i++)
		total += s->parts[i].size;
	if (total > INT64_MAX - size)
		return err_set(e, REPL_E_INVAL, "line %u: the sizes add up to more than 2^63",
			       l->number);
	if (s->replicas == 0)
		s->replicas = 1;
	p = &s->parts[s->count++];
	p->line = l->number;
	p->size = size;
	p->replica = s->replicas - 1;
	if (s->count > 1 && p[-1].replica == p->replica)
		p->index = p[-1].index + 1;
	if (!word_next(l, p->path, sizeof(p->path)))
		return err_set(e, REPL_E_INVAL,
			       "line %u: a size without a path of 1 to %u bytes behind it",
			       l->number, POOLSET_PATH_MAX);
	for (size_t n = strlen(p->path); n > 0 && p->path[n - 1] == '/'; n--)
		p->path[n - 1] = '\0';
	if (!p->path[0])
		return err_set(e, REPL_E_INVAL, "line %u: '/' is no part", l->number);
	return line_end(l, e);
}

/* Whether the last section has a part. */
static bool
section_begun(const struct poolset *s)
{
	return s->count > 0 && s->parts[s->count - 1].replica == s->replicas - 1;
}

static int
replica_line(struct line *l, struct poolset *s, struct err *e)
{
	skip(l, span(l, true));
	if (l->len > 0)
		return err_set(e, REPL_E_INVAL,
			       "line %u: a replica has no replicas on other machines: name them "
			       "all in the initiator's set file, here only local ones, 'REPLICA' "
			       "alone on its line",
			       l->number);
	if (!section_begun(s))
		return err_set(e, REPL_E_INVAL, "line %u: REPLICA without a part in front of it",
			       l->number);
	if (s->replicas == POOLSET_REPLICAS_MAX)
		return err_set(e, REPL_E_INVAL, "line %u: more than %u replicas", l->number,
			       POOLSET_REPLICAS_MAX - 1);
	s->replicas++;
	return 0;
}

static int
line_parse(struct line *l, struct poolset *s, struct err *e)
{
	char word[WORD_MAX + 1];

	skip(l, span(l, true));
	if (l->len == 0 || l->at[0] == '#')
		return 0;
	if (!word_next(l, word, sizeof(word)))
		return err_set(e, REPL_E_INVAL, "line %u: its first word has more than %u bytes",
			       l->number, WORD_MAX);
	if (strcmp(word, "OPTION") == 0)
		return option_line(l, s, e);
	if (strcmp(word, "REPLICA") == 0)
		return replica_line(l, s, e);
	return part_line(l, word, s, e);
}

static int
text_check(const char *text, size_t len, struct err *e)
{
	unsigned line = 1;

	if (len > POOLSET_FILE_MAX)
		return err_set(e, REPL_E_INVAL, "the set file has %zu bytes, at most %u are read",
			       len, POOLSET_FILE_MAX);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n')
			line++;
		else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
			return err_set(e, REPL_E_INVAL, "line %u: a byte 0x%02x", line, c);
	}
	return 0;
}

int
poolset_parse(const char *text, size_t len, struct poolset *out, struct err *e)
{
	struct line l = {.at = text};
	const char *end = text + len;
	int rc = text_check(text, len, e);

	memset(out, 0, sizeof(*out));
	while (!rc && l.at < end) {
		const char *nl = memchr(l.at, '\n', (size_t)(end - l.at));
		char word[sizeof(POOLSET_SIGNATURE)];

		l.len = (size_t)((nl ? nl : end) - l.at);
		if (++l.number > 1)
			rc = line_parse(&l, out, e);
		else if (!poolset_begins(l.at, l.len) || !word_next(&l, word, sizeof(word)))
			rc = err_set(e, REPL_E_INVAL, "line 1: is not " POOLSET_SIGNATURE);
		else
			rc = line_end(&l, e);
		l.at = nl ? nl + 1 : end;
	}
	if (!rc && out->count == 0)
		return err_set(e, REPL_E_INVAL, "no part: a line 'SIZE PATH' is missing");
	if (!rc && !section_begun(out))
		rc = err_set(e, REPL_E_INVAL, "the last REPLICA has no part");
	return rc;
}

uint64_t
poolset_part_off(enum poolset_headers headers, unsigned index)
{
	if (headers == POOLSET_NONE || (headers == POOLSET_SINGLE && index > 0))
		return 0;
	return POOLSET_HEADER;
}

uint64_t
poolset_part_len(enum poolset_headers headers, unsigned index, uint64_t size)
{
	return size / PAGE * PAGE - poolset_part_off(headers, index);
}
