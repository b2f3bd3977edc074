/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing byte string. Out of memory is sticky: later calls do nothing, and the caller checks
 * text_err() once, at the end.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

struct text {
	char *data; /* NULL until something was put; NUL-terminated after that */
	size_t len, cap;
	int err;
};

void text_put(struct text *text, const char *data, size_t len);
void text_puts(struct text *text, const char *s);
void text_putc(struct text *text, char c);
void text_printf(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Puts foreign bytes so that they cannot steer a terminal or change the order in which text is
 * read: each byte of a control character becomes \xNN. These are C0 but for the tab, DEL, C1 both
 * as U+0080..U+009F and as a byte that belongs to no UTF-8 sequence, the format characters of
 * Unicode (category Cf, such as U+202E), U+2028 and U+2029. All else passes as it is, other bytes
 * that are not UTF-8 included.
 */
void text_put_clean(struct text *text, const char *data, size_t len);

/* The same, and each byte that belongs to no UTF-8 sequence and each tab becomes \xNN too. */
void text_put_utf8(struct text *text, const char *data, size_t len);

/* Returns the bytes as a C string; "" for none. */
const char *text_str(const struct text *text);
int text_err(const struct text *text); /* 0 or -ENOMEM */
void text_clear(struct text *text);    /* keeps the memory */
void text_free(struct text *text);

#define __text __attribute__((cleanup(text_free)))

#endif
