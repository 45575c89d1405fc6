/* SPDX-License-Identifier: BSD-3-Clause */
#include "hex.h"

void
hex_encode(const uint8_t *data, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*out++ = digits[data[i] >> 4];
		*out++ = digits[data[i] & 15];
	}
	*out = '\0';
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool
hex_decode(const char *text, size_t text_len, uint8_t *out, size_t out_len)
{
	if (text_len % 2 != 0 || text_len / 2 != out_len)
		return false;
	for (size_t i = 0; i < out_len; i++) {
		int high = hex_value(text[2 * i]), low;

		if (high < 0)
			return false;
		low = hex_value(text[2 * i + 1]);
		if (low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
