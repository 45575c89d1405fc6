/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text - text from outside, which people will read on a terminal.
 *
 * Clean text is well-formed UTF-8 (no overlong form, no surrogate) without
 * control characters: neither ASCII's nor U+0080 to U+009F. Pure.
 */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed UTF-8 character at s, of which left bytes are there; 0 if none. */
size_t text_char_len(const char *s, size_t left);

/*
 * So many bytes at s are printable ASCII, which is clean: a multiple of 8, and where that ends
 * others look closer. Long texts are hashes in hexadecimal: a character at a time is dear.
 */
size_t text_plain_len(const char *s, size_t len);

bool text_is_clean(const char *s, size_t len);

/* Replace each byte that keeps the string from being clean by '?'. */
void text_clean(char *s);

/* Copy text; what does not fit is cut off between two characters, and "..." shows it. size > 4. */
void text_shorten(char *out, size_t size, const char *text);

/* word as one word of a shell command, quoted where that is needed; false and "": no room. */
bool text_quote(const char *word, char *out, size_t size);

#endif
