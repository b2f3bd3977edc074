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

/* A constant in a table: BCDUMP_KTAB_* */
static void skip_in_table(struct dump_cursor *c)
{
	uint32_t type = uleb(c);

	if (type >= 5)
		cursor_skip(c, type - 5, 1);
	for (uint32_t n = type == 3 ? 1 : type == 4 ? 2 : 0; n; n--)
		uleb(c);
}

/* Counts the prototypes among n constants: BCDUMP_KGC_* */
static size_t count_protos(struct dump_cursor *c, uint32_t n)
{
	static const uint8_t numbers[] = {0, 0, 2, 2, 4};
	size_t protos = 0;

	for (; n && !c->bad; n--) {
		uint32_t type = uleb(c);

		protos += type == 0;
		if (type == 1) {
			uint64_t narray = uleb(c), nhash = uleb(c);

			for (uint64_t i = narray + 2 * nhash; i && !c->bad; i--)
				skip_in_table(c);
		}
		if (type >= 5)
			cursor_skip(c, type - 5, 1);
		for (uint8_t k = type < 5 ? numbers[type] : 0; k; k--)
			uleb(c);
	}
	return c->bad ? 0 : protos;
}

static int read_proto(struct dump_cursor *c, struct listing *listing)
{
	static const uint64_t key[2];
	__free uint32_t *lines = NULL;
	struct listing_function f = {};
	struct listing_code code = {};
	uint32_t size_debug, first, numline, nuv, nkgc;
	const uint8_t *begin, *debug;
	struct dump_cursor constants;

	cursor_skip(c, 3, 1); /* flags, numparams, framesize */
	nuv = cursor_byte(c);
	nkgc = uleb(c);
	uleb(c); /* sizekn */
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
	constants = (struct dump_cursor){.at = c->at, .end = debug};
	cursor_skip(&constants, nuv, 2);
	f.ninner = count_protos(&constants, nkgc);
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
