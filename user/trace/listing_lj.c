// SPDX-License-Identifier: BSD-2-Clause
/*
 * lj_bcdump.h: header, then each prototype with its length, children before parents; the last one is
 * the dumped function. Numbers are ULEB128.
 */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "listing_priv.h"

enum { FLAG_BE = 1, FLAG_STRIP = 2 }; /* BCDUMP_F_* */

static uint32_t uleb(struct dump_cursor *c)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint8_t byte = cursor_byte(c);

		value |= shift < 32 ? (uint32_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return value;
	}
	c->bad = true;
	return 0;
}

/* lj_debug.c: lines are stored as differences from the first one, in 1, 2 or 4 bytes */
static int read_lines(struct dump_cursor *c, uint32_t first, uint32_t numline, uint32_t *lines,
		      size_t n)
{
	size_t size = numline < 256 ? 1 : numline < 65536 ? 2 : 4;
	const uint8_t *at = cursor_skip(c, n, size);

	for (size_t i = 0; at && i < n; i++) {
		uint32_t delta = 0;

		memcpy(&delta, at + i * size, size);
		lines[i] = first + delta;
	}
	return at ? 0 : -EBADMSG;
}

static int read_proto(struct dump_cursor *c, struct listing *listing)
{
	static const uint64_t key[2];
	__free uint32_t *lines = NULL;
	struct listing_function f = {};
	struct listing_code code = {};
	uint32_t size_debug, first, numline;
	const uint8_t *begin, *debug;

	cursor_skip(c, 4, 1); /* flags, numparams, framesize, sizeuv */
	uleb(c);	      /* sizekgc */
	uleb(c);	      /* sizekn */
	code.n = uleb(c);
	size_debug = uleb(c);
	if (!size_debug || c->bad)
		return c->bad ? -EBADMSG : -ENODATA;
	first = uleb(c);
	numline = uleb(c);
	begin = c->at;
	code.ins = cursor_skip(c, code.n, sizeof(uint32_t));
	if (!code.ins || size_debug > (uint64_t)(c->end - c->at))
		return -EBADMSG;
	debug = c->end - size_debug;
	f.first = first & INT32_MAX;
	f.last = (first + numline) & INT32_MAX;
	f.code = hash_sip(key, begin, debug - begin);
	lines = calloc(code.n + 1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	code.lines = lines;
	c->at = debug;
	if (read_lines(c, first, numline, lines, code.n))
		return -EBADMSG;
	return listing_add(listing, &f, &code);
}

int listing_parse_lj(struct dump_cursor *c, struct listing *listing)
{
	uint32_t flags, len;

	cursor_skip(c, 4, 1); /* ESC "LJ" version */
	flags = uleb(c);
	if (flags & FLAG_BE)
		return -EBADMSG;
	if (flags & FLAG_STRIP)
		return -ENODATA;
	cursor_skip(c, uleb(c), 1); /* chunk name */
	while ((len = uleb(c))) {
		struct dump_cursor proto = *c;
		int ret;

		if (!cursor_skip(c, len, 1))
			return -EBADMSG;
		proto.end = c->at;
		ret = read_proto(&proto, listing);
		if (ret)
			return ret;
	}
	listing->root = listing->n ? listing->n - 1 : 0;
	return 0;
}
