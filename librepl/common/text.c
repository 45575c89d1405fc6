/* SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"

#include <stdint.h>
#include <string.h>

static unsigned
byte_at(const char *s, size_t i)
{
	return (unsigned char)s[i];
}

/* RFC 3629: the second byte's bounds shut out overlong forms, surrogates and > U+10FFFF. */
size_t
text_char_len(const char *s, size_t left)
{
	unsigned lo = 0x80;
	unsigned hi = 0xbf;
	unsigned lead;
	size_t len;

	if (left == 0)
		return 0;
	lead = byte_at(s, 0);
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (lead == 0xe0)
		lo = 0xa0;
	else if (lead == 0xf0)
		lo = 0x90;
	else if (lead == 0xed)
		hi = 0x9f;
	else if (lead == 0xf4)
		hi = 0x8f;
	if (left < len || byte_at(s, 1) < lo || byte_at(s, 1) > hi)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((byte_at(s, i) & 0xc0) != 0x80)
			return 0;
	return len;
}

static size_t
clean_char_len(const char *s, size_t left)
{
	size_t len = text_char_len(s, left);

	if (len == 1 && (byte_at(s, 0) < 0x20 || byte_at(s, 0) == 0x7f))
		return 0;
	if (len == 2 && byte_at(s, 0) == 0xc2 && byte_at(s, 1) < 0xa0)
		return 0;
	return len;
}

/* Each of its 8 bytes is from 0x20 to 0x7e. */
static bool
word_is_plain(uint64_t w)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
	uint64_t del = w ^ ones * 0x7f;

	return ((w | (w - ones * 0x20) | (del - ones)) & high) == 0;
}

size_t
text_plain_len(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t w;

	for (; len - i >= sizeof(w); i += sizeof(w)) {
		memcpy(&w, s + i, sizeof(w));
		if (!word_is_plain(w))
			break;
	}
	return i;
}

bool
text_is_clean(const char *s, size_t len)
{
	for (size_t i = text_plain_len(s, len), step; i < len; i += step) {
		step = clean_char_len(s + i, len - i);
		if (step == 0)
			return false;
	}
	return true;
}

void
text_clean(char *s)
{
	size_t left = strlen(s);

	while (left > 0) {
		size_t step = clean_char_len(s, left);

		if (step == 0) {
			*s = '?';
			step = 1;
		}
		s += step;
		left -= step;
	}
}

/* A part of the output; size counts down to what is left of it. */
static bool
put(char **out, size_t *size, const char *s, size_t len)
{
	if (len >= *size)
		return false;
	memcpy(*out, s, len);
	(*out)[len] = '\0';
	*out += len;
	*size -= len;
	return true;
}

void
text_shorten(char *out, size_t size, const char *text)
{
	size_t len = strlen(text), most = size - 1, at = 0, step;

	if (len > most) {
		most -= 3;
		while ((step = text_char_len(text + at, len - at)) != 0 && at + step <= most)
			at += step;
		/* What is no text is cut anywhere. */
		len = step == 0 ? most : at;
	}
	memcpy(out, text, len);
	out[len] = '\0';
	if (text[len])
		memcpy(out + len, "...", sizeof("..."));
}

bool
text_quote(const char *word, char *out, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789%+,-./:=@_";
	const char *quote = word[0] && word[strspn(word, plain)] == '\0' ? "" : "'";
	char *to = out;
	bool room = size > 0, fits = put(&to, &size, quote, strlen(quote));

	for (; fits && *word; word++)
		fits = *word == '\'' ? put(&to, &size, "'\\''", 4) : put(&to, &size, word, 1);
	fits = fits && put(&to, &size, quote, strlen(quote));
	if (!fits && room)
		out[0] = '\0';
	return fits;
}
