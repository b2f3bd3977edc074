// SPDX-License-Identifier: BSD-2-Clause
/*
 * ldump.c and lundump.c of each version. A function is, in the order of its fields:
 *
 *     5.1       source, lines, 4 bytes, code, constants, protos, line info, locals, upvalue names
 *     5.2       lines, 3 bytes, code, constants, protos, upvalues, source, line info, ...
 *     5.3, 5.4  source, lines, 3 bytes, code, constants, upvalues, protos, line info, ...
 *
 * Prototypes nest, by the nesting of functions in the source, which Lua limits to 200.
 */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "listing_priv.h"

#define DEPTH_MAX 250

struct puc {
	struct dump_cursor *c;
	struct listing *listing;
	unsigned version;
};

/* 5.4: groups of 7 bits, the most significant ones first; the last byte has bit 7 */
static uint64_t varint(struct dump_cursor *c)
{
	uint64_t value = 0;

	for (int i = 0; i < 10; i++) {
		uint8_t byte = cursor_byte(c);

		value = value << 7 | (byte & 0x7f);
		if (byte & 0x80)
			return value;
	}
	c->bad = true;
	return 0;
}

static uint64_t read_int(struct puc *p)
{
	return p->version >= 54 ? varint(p->c) : cursor_word(p->c);
}

static void skip_string(struct puc *p)
{
	uint64_t size;
	const uint8_t *at;

	if (p->version >= 54) {
		size = varint(p->c);
	} else if (p->version == 53) {
		size = cursor_byte(p->c);
		if (size == 0xff && (at = cursor_skip(p->c, 1, sizeof(size))))
			memcpy(&size, at, sizeof(size));
	} else {
		at = cursor_skip(p->c, 1, sizeof(size));
		size = 0;
		if (at)
			memcpy(&size, at, sizeof(size));
		cursor_skip(p->c, size, 1); /* with its NUL */
		return;
	}
	if (size)
		cursor_skip(p->c, size - 1, 1);
}

/* The bytes of a constant, by its type; lobject.h has the variants */
static void skip_constant(struct puc *p)
{
	switch (cursor_byte(p->c)) {
	case 0: /* nil */
		return;
	case 1: /* boolean; 5.4: false */
		if (p->version < 54)
			cursor_byte(p->c);
		return;
	case 0x11: /* 5.4: true */
		return;
	case 3:
	case 0x13: /* integer, float */
		cursor_skip(p->c, 1, 8);
		return;
	case 4:
	case 0x14: /* short and long strings */
		skip_string(p);
		return;
	}
	p->c->bad = true;
}

static void skip_constants(struct puc *p)
{
	uint64_t n = read_int(p);

	for (; n && !p->c->bad; n--)
		skip_constant(p);
}

/* 5.1 - 5.3: the line of each instruction */
static void read_lines(struct puc *p, struct listing_code *code)
{
	uint64_t n = read_int(p);
	const uint8_t *at = cursor_skip(p->c, n, sizeof(uint32_t));

	if (at && n >= code->n)
		memcpy(code->lines, at, code->n * sizeof(uint32_t));
	else
		code->n = 0;
}

#define ABSLINEINFO (-0x80) /* 5.4: the line is in the other table */

/* 5.4: differences from line to line, and absolute lines for some instructions, in their order */
static void read_deltas(struct puc *p, struct listing_code *code, int32_t line)
{
	uint64_t n = read_int(p), nabs;
	const uint8_t *deltas = cursor_skip(p->c, n, 1);
	uint64_t pc = UINT64_MAX, abs_line = 0;

	nabs = read_int(p);
	if (!deltas || n < code->n)
		code->n = 0;
	for (size_t i = 0; i < code->n; i++) {
		int8_t delta = deltas[i];

		if (delta != ABSLINEINFO) {
			line = (int32_t)((uint32_t)line + (uint32_t)(int32_t)delta);
		} else {
			if (!nabs--) {
				p->c->bad = true;
				return;
			}
			pc = read_int(p);
			abs_line = read_int(p);
			if (pc != i)
				p->c->bad = true;
			line = (int32_t)abs_line;
		}
		code->lines[i] = line;
	}
	for (; nabs && !p->c->bad; nabs--) {
		read_int(p);
		read_int(p);
	}
}

static void skip_names(struct puc *p)
{
	uint64_t n = read_int(p); /* local variables */

	for (; n && !p->c->bad; n--) {
		skip_string(p);
		read_int(p);
		read_int(p);
	}
	for (n = read_int(p); n && !p->c->bad; n--)
		skip_string(p);
}

static int read_function(struct puc *p, int depth);

static int read_protos(struct puc *p, int depth, size_t *nread)
{
	uint64_t n = read_int(p);
	int ret = 0;

	for (*nread = 0; !ret && *nread < n && !p->c->bad; (*nread)++)
		ret = read_function(p, depth + 1);
	return ret;
}

static void skip_upvalues(struct puc *p)
{
	cursor_skip(p->c, read_int(p), p->version >= 54 ? 3 : 2);
}

static int read_function(struct puc *p, int depth)
{
	static const uint64_t key[2];
	__free uint32_t *lines = NULL;
	struct listing_function f = {};
	struct listing_code code = {.version = p->version};
	const uint8_t *begin;
	bool is_vararg;
	int ret;

	if (depth == DEPTH_MAX)
		return -EBADMSG;
	if (p->version != 52)
		skip_string(p);
	f.first = read_int(p) & INT32_MAX;
	f.last = read_int(p) & INT32_MAX;
	cursor_skip(p->c, p->version == 51 ? 2 : 1, 1); /* 5.1: nups; numparams */
	is_vararg = cursor_byte(p->c);
	cursor_byte(p->c); /* maxstacksize */
	begin = p->c->at;
	code.n = read_int(p);
	code.ins = cursor_skip(p->c, code.n, sizeof(uint32_t));
	skip_constants(p);
	if (p->c->bad)
		return -EBADMSG;
	f.code = hash_sip(key, begin, p->c->at - begin);
	lines = calloc(code.n + 1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	code.lines = lines;
	code.skips_first = p->version >= 54 && is_vararg;
	if (p->version >= 53)
		skip_upvalues(p);
	ret = read_protos(p, depth, &f.ninner);
	if (p->version == 52) {
		skip_upvalues(p);
		skip_string(p);
	}
	if (ret)
		return ret;
	if (p->version >= 54)
		read_deltas(p, &code, f.first);
	else
		read_lines(p, &code);
	skip_names(p);
	if (p->c->bad)
		return -EBADMSG;
	return code.n ? listing_add(p->listing, &f, &code) : -ENODATA;
}

/* luaU_header() and checkHeader(): sizes and test values that this machine's Lua has */
static unsigned read_header(struct dump_cursor *c)
{
	static const struct {
		uint8_t version, len;
		const char *bytes; /* after the version */
	} headers[] = {
		{0x51, 7, "\0\1\4\10\4\10\0"},
		{0x52, 13, "\0\1\4\10\4\10\0\x19\x93\r\n\x1a\n"},
		{0x53, 12, "\0\x19\x93\r\n\x1a\n\4\10\4\10\10"},
		{0x54, 10, "\0\x19\x93\r\n\x1a\n\4\10\10"},
	};
	const uint8_t *at = cursor_skip(c, 5, 1);

	for (size_t i = 0; at && i < sizeof(headers) / sizeof(headers[0]); i++) {
		if (at[4] != headers[i].version)
			continue;
		at = cursor_skip(c, headers[i].len, 1);
		if (!at || memcmp(at, headers[i].bytes, headers[i].len))
			return 0;
		if (headers[i].version >= 0x53) /* LUAC_INT, LUAC_NUM, number of upvalues */
			cursor_skip(c, 17, 1);
		return 51 + headers[i].version - 0x51;
	}
	return 0;
}

int listing_parse_puc(struct dump_cursor *c, struct listing *listing)
{
	struct puc p = {.c = c, .listing = listing, .version = read_header(c)};
	int ret = p.version ? read_function(&p, 0) : -EBADMSG;

	listing->root = listing->n ? listing->n - 1 : 0;
	return ret;
}
