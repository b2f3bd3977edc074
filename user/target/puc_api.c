// SPDX-License-Identifier: BSD-2-Clause
#include "target/puc_api.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/x86_insn.h"

#define MAX_BRANCHES 64
#define MAX_CALLS 32 /* of functions that are handed on what is followed, in a file */

struct value {
	struct puc_path path;
	int16_t pad; /* compared as bytes */
	int32_t add;
};

struct state {
	struct value reg[X86_REGS];
};

struct branch {
	size_t at;
	struct state state;
};

/* A function, and what its arguments are. */
struct call {
	uint64_t start;
	struct state state;
};

struct calls {
	struct call call[MAX_CALLS];
	unsigned n;
};

struct walk {
	const uint8_t *text;
	size_t size;
	uint64_t start; /* its address */
	uint8_t seen[PUC_API_TEXT / 8];
	struct branch branch[MAX_BRANCHES];
	unsigned nbranches;
	struct puc_fact *facts;
	size_t nfacts, max;
	int16_t from, to;    /* depths of what is noted */
	struct calls *calls; /* NULL: are not followed */
};

static void note(struct walk *w, const struct value *v, int64_t disp, uint8_t width)
{
	int64_t at = v->add + disp;
	struct puc_fact f;
	size_t i;

	if (!v->path.depth || v->path.depth < w->from || at < 0 || at > UINT16_MAX ||
	    w->nfacts == w->max)
		return;
	memset(&f, 0, sizeof(f)); /* padding, too: compared as bytes */
	f.path = v->path;
	f.at = (uint16_t)at;
	f.width = width;
	for (i = 0; i < w->nfacts; i++)
		if (!memcmp(&w->facts[i], &f, sizeof(f)))
			return;
	w->facts[w->nfacts++] = f;
}

/* Bytes that an instruction's memory operand has; 0: not one that matters. */
static uint8_t width_of(const struct x86_insn *in)
{
	uint8_t full = in->wide ? 8 : in->word ? 2 : 4, op = in->op;

	if (in->map == 1)
		return op == 0xb6 || op == 0xbe ? 1 : op == 0xb7 || op == 0xbf ? 2 : 0;
	if (in->map)
		return 0;
	if (op < 0x40 || (op >= 0x84 && op <= 0x8b) || op == 0xc6 || op == 0xc7 || op == 0xf6 ||
	    op == 0xf7 || op == 0xfe)
		return op & 1 ? full : 1;
	if (op == 0x63)
		return 4;
	if (op == 0x80)
		return 1;
	if (op == 0xff) /* push, call and jmp are of 64 bits */
		return (in->reg & 7) >= 2 ? 8 : full;
	return op == 0x81 || op == 0x83 || op == 0x69 || op == 0x6b ? full : 0;
}

static struct value loaded(const struct walk *w, const struct value *base, int64_t disp)
{
	struct value v = {};
	int64_t at = base->add + disp;

	/* below a struct there is nothing, but below L->top there are values */
	if (at < (base->path.depth == 2 && w->calls ? INT16_MIN : 0) || at > INT16_MAX ||
	    !base->path.depth || base->path.depth >= w->to)
		return v;
	v.path = base->path;
	v.path.d[v.path.depth++ - 1] = (int16_t)at;
	return v;
}

static void moved(struct value *v, int64_t by)
{
	int64_t add = v->add + by;

	if (add < -UINT16_MAX || add > UINT16_MAX)
		*v = (struct value){};
	else
		v->add = (int32_t)add;
}

/* add and sub of a constant: true when the instruction is one */
static bool add_constant(const struct x86_insn *in, int64_t *by)
{
	if (in->map || !in->wide || in->mod != 3 || (in->op != 0x81 && in->op != 0x83))
		return false;
	*by = (in->reg & 7) == 5 ? -in->imm : in->imm;
	return (in->reg & 7) == 0 || (in->reg & 7) == 5;
}

/* The register that an instruction gives a value we know of, and that value. */
static bool gives(const struct walk *w, const struct state *s, const struct x86_insn *in,
		  uint8_t *reg, struct value *v)
{
	bool indexed = x86_is_mem(in) && (in->index != X86_NONE || in->base >= X86_REGS);
	int64_t by;

	if (add_constant(in, &by)) {
		*reg = in->rm;
		*v = s->reg[in->rm];
		moved(v, by);
		return true;
	}
	if (in->map || !in->wide || indexed)
		return false;
	if (in->op == 0x89 && in->mod == 3) {
		*reg = in->rm;
		*v = s->reg[in->reg];
		return true;
	}
	*reg = in->reg;
	if (in->op == 0x8b) {
		*v = in->mod == 3 ? s->reg[in->rm] : loaded(w, &s->reg[in->base], in->disp);
		return true;
	}
	if (in->op == 0x8d && in->mod != 3) {
		*v = s->reg[in->base];
		moved(v, in->disp);
		return true;
	}
	return false;
}

static void step(struct walk *w, struct state *s, const struct x86_insn *in)
{
	struct value v = {};
	uint8_t reg = X86_NONE, r;
	bool known = gives(w, s, in, &reg, &v);

	if (known && v.add && v.path.depth)
		note(w, &v, 0, PUC_ADDRESS);
	else if (x86_is_mem(in) && in->index == X86_NONE && in->base < X86_REGS && width_of(in))
		note(w, &s->reg[in->base], in->disp, width_of(in));
	for (r = 0; r < X86_REGS; r++)
		if (x86_writes(in, r))
			s->reg[r] = (struct value){};
	if (known)
		s->reg[reg] = v;
	if (!x86_is_call(in))
		return;
	for (r = 0; r < X86_REGS; r++) /* what a callee may change */
		if (r <= X86_RDX || r == X86_RSI || r == X86_RDI || (r >= 8 && r <= 11))
			s->reg[r] = (struct value){};
}

static void later(struct walk *w, size_t at, const struct state *s)
{
	if (at < w->size && w->nbranches < MAX_BRANCHES) {
		w->branch[w->nbranches].at = at;
		w->branch[w->nbranches++].state = *s;
	}
}

/* In the order of arguments. */
static const uint8_t argument[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, 8, 9};

/* Control goes to another function: of what it is handed on, what is deep enough is followed. */
static void leave(struct walk *w, size_t to, const struct state *s)
{
	struct call call = {.start = w->start + to};
	bool any = false;
	unsigned i;

	if (!w->calls || w->calls->n == MAX_CALLS)
		return;
	for (i = 0; i < sizeof(argument); i++) {
		const struct value *v = &s->reg[argument[i]];

		if (v->path.depth < w->from)
			continue;
		call.state.reg[argument[i]] = *v;
		any = true;
	}
	for (i = 0; i < w->calls->n; i++)
		any &= memcmp(&w->calls->call[i], &call, sizeof(call)) != 0;
	if (any)
		w->calls->call[w->calls->n++] = call;
}

/* Follows the code until it ends or was seen before. */
static void follow(struct walk *w, size_t at, struct state s)
{
	while (at < w->size && !(w->seen[at >> 3] & 1 << (at & 7))) {
		struct x86_insn in;

		if (!x86_decode(w->text + at, w->size - at, &in))
			return;
		w->seen[at >> 3] |= (uint8_t)(1 << (at & 7));
		at += in.len;
		if (x86_is_jcc_rel(&in))
			later(w, at + (size_t)in.imm, &s); /* leaves the text: beyond size */
		if (!in.map && in.op == 0xe8)
			leave(w, at + (size_t)in.imm, &s);
		step(w, &s, &in);
		if (x86_is_jmp_rel(&in))
			at += (size_t)in.imm;
		else if (x86_ends(&in))
			return;
		if (x86_is_jmp_rel(&in) && at >= w->size)
			leave(w, at, &s);
	}
}

static void follow_all(struct walk *w, const struct state *entry)
{
	memset(w->seen, 0, sizeof(w->seen));
	w->nbranches = 0;
	follow(w, 0, *entry);
	while (w->nbranches) {
		struct branch *b = &w->branch[--w->nbranches];

		follow(w, b->at, b->state);
	}
}

size_t puc_api_facts(const uint8_t *text, size_t size, struct puc_fact facts[PUC_FACTS])
{
	struct walk w = {.text = text, .facts = facts, .max = PUC_FACTS, .from = 1, .to = 3};
	struct state entry = {};

	w.size = size < PUC_API_TEXT ? size : PUC_API_TEXT;
	entry.reg[X86_RDI].path.depth = 1;
	follow_all(&w, &entry);
	return w.nfacts;
}

/* The function's end is not known: of what lies behind it nothing is come to. */
static size_t read_text(struct elf_file *elf, uint64_t start, uint8_t text[PUC_API_TEXT])
{
	size_t size = PUC_API_TEXT;

	while (size && elf_read(elf, start, text, size))
		size /= 2;
	return size;
}

size_t puc_api_deep_facts(struct elf_file *elf, uint64_t start,
			  struct puc_fact facts[PUC_DEEP_FACTS])
{
	struct calls *calls __free = calloc(1, sizeof(*calls));
	uint8_t text[PUC_API_TEXT];
	struct walk w = {.text = text,
			 .facts = facts,
			 .max = PUC_DEEP_FACTS,
			 .from = PUC_DEEP,
			 .to = PUC_PATH + 1,
			 .calls = calls};
	unsigned i;

	if (!calls)
		return 0;
	calls->call[calls->n++] = (struct call){.start = start};
	calls->call[0].state.reg[X86_RDI].path.depth = 1;
	for (i = 0; i < calls->n; i++) {
		w.start = calls->call[i].start;
		w.size = read_text(elf, w.start, text);
		follow_all(&w, &calls->call[i].state);
	}
	return w.nfacts;
}
