// SPDX-License-Identifier: BSD-2-Clause
#include "folded_name.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/*
 * Returns the index of the space in a name such as "trace 12" or "trace 1.5", else strlen(name).
 * Such a number before the count would read as a line of a differential profile.
 */
static size_t number_at(const char *name)
{
	size_t len = strlen(name), n = len;

	while (n && (is_digit(name[n - 1]) || name[n - 1] == '.'))
		n--;
	return n < len && n && name[n - 1] == ' ' ? n - 1 : len;
}

/* True if a byte looks like an escape, separates frames, or is a space that parsers split at. */
static bool is_escaped(const char *name, size_t i, size_t len, size_t number)
{
	switch (name[i]) {
	case ';':
	case '\t':
		return true;
	case ' ':
		return !i || i + 1 == len || i == number;
	case '\\':
		return name[i + 1] == 'x' && is_hex(name[i + 2]) && is_hex(name[i + 3]);
	default:
		return false;
	}
}

void folded_put_frame(struct text *out, struct text *name)
{
	const char *bytes = text_str(name);
	size_t len = strlen(bytes), number = number_at(bytes), from = 0;

	if (!len)
		text_puts(out, "\\x00"); /* a byte that no name has */
	for (size_t i = 0; i < len; i++) {
		if (!is_escaped(bytes, i, len, number))
			continue;
		text_put_utf8(out, bytes + from, i - from);
		text_printf(out, "\\x%02x", (unsigned char)bytes[i]);
		from = i + 1;
	}
	text_put_utf8(out, bytes + from, len - from);
}
