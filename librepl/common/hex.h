/* SPDX-License-Identifier: BSD-3-Clause */
/* hex - bytes as hexadecimal digits, in lower case only. Pure. */
#ifndef COMMON_HEX_H
#define COMMON_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void hex_encode(const uint8_t *data, size_t len, char *out); /* 2 * len + 1 bytes */

/* True if text is exactly out_len bytes; nothing is read behind a character that is no digit. */
bool hex_decode(const char *text, size_t text_len, uint8_t *out, size_t out_len);

#endif
