// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "text.h"

/* Makes room for `more` bytes and the NUL. */
static bool reserve(struct text *text, size_t more)
{
	size_t need, cap = text->cap ? text->cap : 64;
	char *data;

	if (text->err)
		return false;
	if (more >= SIZE_MAX / 2 - text->len) {
		text->err = -ENOMEM;
		return false;
	}
	need = text->len + more + 1;
	if (need <= text->cap)
		return true;
	while (cap < need)
		cap *= 2;
	data = realloc(text->data, cap);
	if (!data) {
		text->err = -ENOMEM;
		return false;
	}
	text->data = data;
	text->cap = cap;
	return true;
}

void text_put(struct text *text, const char *data, size_t len)
{
	if (!reserve(text, len))
		return;
	if (len)
		memcpy(text->data + text->len, data, len);
	text->len += len;
	text->data[text->len] = '\0';
}

void text_puts(struct text *text, const char *s)
{
	text_put(text, s, strlen(s));
}

void text_putc(struct text *text, char c)
{
	text_put(text, &c, 1);
}

void text_printf(struct text *text, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0 || !reserve(text, len))
		return;
	va_start(ap, fmt);
	vsnprintf(text->data + text->len, len + 1, fmt, ap);
	va_end(ap);
	text->len += len;
}

/* Returns the length of the UTF-8 sequence of two to four bytes at p, or 0 (Unicode 15, table
 * 3-7). */
static size_t utf8_sequence(const unsigned char *p, size_t left)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > left)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	}
	return n;
}

/*
 * Controls from U+0080 on: C1, the line and paragraph separators, and all of category Cf of Unicode
 * 15.1 (bidirectional and other format characters, tags). Includes unassigned code points between
 * these.
 */
static bool is_control(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x80, 0x9f},	    {0xad, 0xad},	{0x600, 0x605},	    {0x61c, 0x61c},
		{0x6dd, 0x6dd},	    {0x70f, 0x70f},	{0x890, 0x891},	    {0x8e2, 0x8e2},
		{0x180e, 0x180e},   {0x200b, 0x200f},	{0x2028, 0x202e},   {0x2060, 0x206f},
		{0xfeff, 0xfeff},   {0xfff0, 0xfffb},	{0x110bd, 0x110bd}, {0x110cd, 0x110cd},
		{0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* Returns the code point of a sequence of n bytes that utf8_sequence() accepted. */
static uint32_t code_point(const unsigned char *p, size_t n)
{
	uint32_t c = p[0] & (0x7f >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static void put_escaped(struct text *text, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";
	const char escape[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};

	text_put(text, escape, sizeof(escape));
}

/* Returns the length of the character at p, with a sign: negative if it is to be escaped. */
static ssize_t character(const unsigned char *p, size_t left, bool strict)
{
	size_t n;
	bool plain;

	if (p[0] < 0x80)
		return (p[0] >= 0x20 && p[0] != 0x7f) || (p[0] == '\t' && !strict) ? 1 : -1;
	n = utf8_sequence(p, left);
	plain = n ? !is_control(code_point(p, n)) : p[0] >= 0xa0 && !strict;
	n = n ? n : 1;
	return plain ? (ssize_t)n : -(ssize_t)n;
}

/* Runs of plain characters are put at once. */
static void put_filtered(struct text *text, const char *data, size_t len, bool strict)
{
	const unsigned char *p = (const unsigned char *)data;
	size_t i = 0, from = 0;

	while (i < len) {
		ssize_t n = character(p + i, len - i, strict);

		if (n > 0) {
			i += (size_t)n;
			continue;
		}
		text_put(text, data + from, i - from);
		for (; n < 0; n++)
			put_escaped(text, p[i++]);
		from = i;
	}
	text_put(text, data + from, len - from);
}

void text_put_clean(struct text *text, const char *data, size_t len)
{
	put_filtered(text, data, len, false);
}

void text_put_utf8(struct text *text, const char *data, size_t len)
{
	put_filtered(text, data, len, true);
}

const char *text_str(const struct text *text)
{
	return text->data ? text->data : "";
}

int text_err(const struct text *text)
{
	return text->err;
}

void text_clear(struct text *text)
{
	text->len = 0;
	if (text->data)
		text->data[0] = '\0';
}

void text_free(struct text *text)
{
	free(text->data);
	*text = (struct text){0};
}
