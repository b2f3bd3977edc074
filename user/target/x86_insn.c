/* SPDX-License-Identifier: BSD-2-Clause */
/* Opcode maps: Intel's manual, volume 2, appendix A. */
#include "target/x86_insn.h"

#include <string.h>

struct reader {
	const uint8_t *p, *start, *end;
};

static bool byte(struct reader *r, uint8_t *b)
{
	if (r->p >= r->end)
		return false;
	*b = *r->p++;
	return true;
}

static bool number(struct reader *r, unsigned size, int64_t *v)
{
	uint64_t bits = 0;

	if ((size_t)(r->end - r->p) < size)
		return false;
	memcpy(&bits, r->p, size);
	r->p += size;
	*v = size && size < 8 ? (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size)
			      : (int64_t)bits;
	return true;
}

static bool is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 || b == 0x2e ||
	       b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

/* One-byte opcodes: does a ModRM byte follow? */
static bool has_modrm(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	if (op == 0x63 || op == 0x69 || op == 0x6b)
		return true;
	if (op >= 0x80 && op <= 0x8f)
		return true;
	return op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
	       (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op >= 0xfe;
}

static bool invalid(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) >= 6;
	return (op >= 0x60 && op <= 0x62) || op == 0x82 || op == 0x9a || op == 0xc8 ||
	       (op >= 0xca && op <= 0xcb) || (op >= 0xcd && op <= 0xcf) ||
	       (op >= 0xd4 && op <= 0xd7) || (op >= 0xe4 && op <= 0xe7) || op == 0xea ||
	       (op >= 0xec && op <= 0xef) || (op >= 0xa0 && op <= 0xa3);
}

/* Bytes of the immediate of a one-byte opcode. word: size of an operand-sized one (2 or 4). */
static unsigned imm_size(const struct x86_insn *in, unsigned word)
{
	uint8_t op = in->op;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? word : 0;
	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xb0 && op <= 0xb7) || (op >= 0xe0 && op <= 0xe3))
		return 1;
	if (op >= 0xb8 && op <= 0xbf)
		return in->wide ? 8 : word;
	switch (op) {
	case 0x6a:
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xa8:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xeb:
		return 1;
	case 0x68:
	case 0x69:
	case 0x81:
	case 0xa9:
	case 0xc7:
		return word;
	case 0xe8:
	case 0xe9:
		return 4;
	case 0xc2:
		return 2;
	case 0xf6:
		return (in->reg & 7) < 2 ? 1 : 0;
	case 0xf7:
		return (in->reg & 7) < 2 ? word : 0;
	default:
		return 0;
	}
}

static bool has_modrm_0f(uint8_t op)
{
	return !((op >= 0x80 && op <= 0x8f) || (op >= 0xc8 && op <= 0xcf) || op == 0x05 ||
		 op == 0x0b || op == 0x31 || op == 0x77 || op == 0xa2 || (op & 0xf6) == 0xa0);
}

static unsigned imm_size_0f(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return 4;
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	       (op >= 0xc4 && op <= 0xc6);
}

static void read_base(struct x86_insn *in, uint8_t modrm, uint8_t sib, uint8_t rex)
{
	in->base = in->index = X86_NONE;
	if (in->mod == 3)
		return;
	if (in->sib) {
		in->index = (uint8_t)((sib >> 3 & 7) | (rex & 2) << 2);
		if (in->index == X86_RSP)
			in->index = X86_NONE;
		if (in->mod || (sib & 7) != 5)
			in->base = (uint8_t)((sib & 7) | (rex & 1) << 3);
	} else if (!in->mod && (modrm & 7) == 5) {
		in->base = X86_RIP;
	} else {
		in->base = in->rm;
	}
}

static bool read_modrm(struct reader *r, uint8_t rex, struct x86_insn *in)
{
	uint8_t modrm, sib = 0;
	int64_t disp = 0;
	unsigned size;

	if (!byte(r, &modrm))
		return false;
	in->modrm = true;
	in->mod = modrm >> 6;
	in->reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
	in->rm = (uint8_t)((modrm & 7) | (rex & 1) << 3);
	in->sib = in->mod != 3 && (modrm & 7) == 4;
	if (in->sib && !byte(r, &sib))
		return false;
	size = in->mod == 1 ? 1 : in->mod == 2 ? 4 : 0;
	if (in->mod == 0 && ((modrm & 7) == 5 || (in->sib && (sib & 7) == 5)))
		size = 4;
	if (!number(r, size, &disp))
		return false;
	in->disp = (int32_t)disp;
	read_base(in, modrm, sib, rex);
	return true;
}

/* VEX: two or three bytes, then an opcode with ModRM. Only lengths are told of these. */
static bool read_vex(struct reader *r, uint8_t first, struct x86_insn *in)
{
	uint8_t b1, b2 = 0, rex;
	unsigned map = 1;

	if (!byte(r, &b1) || (first == 0xc4 && !byte(r, &b2)) || !byte(r, &in->op))
		return false;
	if (first == 0xc4)
		map = b1 & 0x1f;
	rex = (uint8_t)((b1 & 0x80 ? 0 : 4) | (first == 0xc4 && !(b1 & 0x20) ? 1 : 0));
	in->map = 3;
	if (in->op == 0x77 && map == 1)
		return true;
	if (!read_modrm(r, rex, in))
		return false;
	return number(r, map == 3 ? 1 : map == 1 ? imm_size_0f(in->op) : 0, &in->imm);
}

static bool read_opcode(struct reader *r, uint8_t op, uint8_t rex, unsigned word,
			struct x86_insn *in)
{
	in->op = op;
	in->wide = rex & 8;
	if (op != 0x0f) {
		if (invalid(op) || (has_modrm(op) && !read_modrm(r, rex, in)))
			return false;
		if (op >= 0x50 && op <= 0x5f) /* push, pop: the register is in the opcode */
			in->rm = (uint8_t)((op & 7) | (rex & 1) << 3);
		if (op >= 0x90 && op <= 0xbf)
			in->rm = has_modrm(op) ? in->rm : (uint8_t)((op & 7) | (rex & 1) << 3);
		return number(r, imm_size(in, word), &in->imm);
	}
	if (!byte(r, &in->op))
		return false;
	in->map = in->op == 0x38 ? 2 : in->op == 0x3a ? 3 : 1;
	if (in->map > 1) {
		bool imm = in->map == 3;

		return byte(r, &in->op) && read_modrm(r, rex, in) && number(r, imm, &in->imm);
	}
	if (has_modrm_0f(in->op) && !read_modrm(r, rex, in))
		return false;
	if (in->op >= 0xc8 && in->op <= 0xcf)
		in->rm = (uint8_t)((in->op & 7) | (rex & 1) << 3);
	return number(r, imm_size_0f(in->op), &in->imm);
}

bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *in)
{
	struct reader r = {p, p, p + (n < 15 ? n : 15)};
	uint8_t b, rex = 0;
	unsigned word = 4;
	bool ok;

	memset(in, 0, sizeof(*in));
	do {
		if (!byte(&r, &b))
			return false;
		if (b == 0x66) {
			word = 2;
			in->word = true;
		}
	} while (is_prefix(b));
	if ((b & 0xf0) == 0x40) {
		rex = b;
		if (!byte(&r, &b))
			return false;
	}
	if (b == 0xc4 || b == 0xc5)
		ok = read_vex(&r, b, in);
	else
		ok = read_opcode(&r, b, rex, word, in);
	in->len = (uint8_t)(r.p - r.start);
	return ok;
}

/* Does an arithmetic group's instruction only compare? /7 of 80-83; /0, /1 of F6, F7 test. */
static bool only_compares(const struct x86_insn *in)
{
	uint8_t sub = in->reg & 7;

	if (in->op >= 0x80 && in->op <= 0x83)
		return sub == 7;
	return (in->op == 0xf6 || in->op == 0xf7) && sub < 2;
}

static bool writes_map0(const struct x86_insn *in, uint8_t r)
{
	uint8_t op = in->op;
	bool to_reg = in->reg == r, to_rm = in->modrm && in->mod == 3 && in->rm == r;

	if (op < 0x40) {
		if (op >= 0x38) /* cmp */
			return false;
		return (op & 7) < 2 ? to_rm : (op & 7) < 4 ? to_reg : r == 0;
	}
	if ((op >= 0x58 && op <= 0x5f) || (op >= 0x90 && op <= 0x97) || (op >= 0xb0 && op <= 0xbf))
		return in->rm == r || (op >= 0x91 && op <= 0x97 && r == 0);
	if (only_compares(in) || (op >= 0x50 && op <= 0x57) || (op >= 0x70 && op <= 0x7f) ||
	    op == 0x84 || op == 0x85 || op == 0x68 || op == 0x6a || op == 0xa8 || op == 0xa9)
		return false;
	switch (op) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8a:
	case 0x8b:
	case 0x8d:
		return to_reg;
	case 0x86:
	case 0x87:
		return to_reg || to_rm;
	case 0x98:
		return r == 0;
	case 0x99:
		return r == X86_RDX;
	case 0xf6:
	case 0xf7:
		return to_rm || ((in->reg & 7) >= 4 && (r == 0 || r == X86_RDX));
	case 0xff:
	case 0xfe:
		return (in->reg & 7) < 2 && to_rm;
	case 0xe8:
	case 0xe9:
	case 0xeb:
		return false;
	default:
		return in->modrm ? to_rm : true;
	}
}

static bool writes_map1(const struct x86_insn *in, uint8_t r)
{
	uint8_t op = in->op;
	bool to_reg = in->reg == r, to_rm = in->modrm && in->mod == 3 && in->rm == r;

	if (op >= 0x80 && op <= 0x8f)
		return false;
	if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xbe ||
	    op == 0xbf || op == 0x2c || op == 0x2d || op == 0xbc || op == 0xbd || op == 0xb8 ||
	    op == 0x50 || op == 0xd7 || op == 0xc5)
		return to_reg;
	if (op == 0x7e || (op >= 0x90 && op <= 0x9f) || (op >= 0xa4 && op <= 0xa5) ||
	    (op >= 0xab && op <= 0xad) || op == 0xb3 || op == 0xba || op == 0xbb)
		return to_rm;
	if (op >= 0xc8 && op <= 0xcf)
		return in->rm == r;
	if (op == 0xc0 || op == 0xc1)
		return to_reg || to_rm;
	/* SSE between xmm registers and memory: 10-17, 28-2f, 51-7f, c2, c6, d0-ff; and nop,
	 * prefetch */
	return !((op >= 0x10 && op <= 0x1f) || (op >= 0x28 && op <= 0x2f) ||
		 (op >= 0x51 && op <= 0x7f) || op == 0xc2 || op == 0xc4 || op == 0xc6 ||
		 op >= 0xd0);
}

bool x86_writes(const struct x86_insn *in, uint8_t r)
{
	if (in->map == 0)
		return writes_map0(in, r);
	return in->map == 1 ? writes_map1(in, r) : true;
}
