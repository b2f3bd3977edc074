// SPDX-License-Identifier: BSD-2-Clause
#include "api.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "arch/insn_data.h"

#define MAX_BRANCHES 64
#define MAX_CALLS 32 /* calls with arguments that are followed */

struct api_value {
	struct puc_path path;
	int16_t pad; /* compared as bytes */
	int32_t add;
};

struct api_state {
	struct api_value reg[INSN_REGS];
};

struct branch {
	size_t at;
	struct api_state state;
};

/* A function and the values of its arguments. */
struct call {
	uint64_t start;
	struct api_state state;
};

struct api_calls {
	struct call call[MAX_CALLS];
	unsigned n;
};

struct api_walk {
	const uint8_t *text;
	size_t size;
	uint64_t start; /* its address */
	uint8_t seen[PUC_API_TEXT / 8];
	struct branch branch[MAX_BRANCHES];
	unsigned nbranches;
	struct puc_fact *facts;
	size_t nfacts, max;
	int16_t from, to;	 /* depths: facts have `from` at least, loads end at `to` */
	struct api_calls *calls; /* NULL: calls are not followed */
};

static void note(struct api_walk *w, const struct api_value *v, int64_t disp, uint8_t width)
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

static struct api_value loaded(const struct api_walk *w, const struct api_value *base, int64_t disp)
{
	struct api_value v = {};
	int64_t at = base->add + disp;

	/* structs have no negative offsets, but L->top has: values lie below it */
	if (at < (base->path.depth == 2 && w->calls ? INT16_MIN : 0) || at > INT16_MAX ||
	    !base->path.depth || base->path.depth >= w->to)
		return v;
	v.path = base->path;
	v.path.d[v.path.depth++ - 1] = (int16_t)at;
	return v;
}

static void moved(struct api_value *v, int64_t by)
{
	int64_t add = v->add + by;

	if (add < -UINT16_MAX || add > UINT16_MAX)
		*v = (struct api_value){};
	else
		v->add = (int32_t)add;
}

static void step(struct api_walk *w, struct api_state *s, const struct insn *in)
{
	struct api_value v = {};
	struct insn_def def;
	bool known = insn_def(in, &def);
	uint8_t r;

	if (known && def.load) {
		v = loaded(w, &s->reg[def.from], def.by);
	} else if (known) {
		v = s->reg[def.from];
		moved(&v, def.by);
	}
	if (v.add && v.path.depth)
		note(w, &v, 0, PUC_ADDRESS);
	else if (insn_accesses_field(in))
		note(w, &s->reg[in->base], in->disp, (uint8_t)in->mem_size);
	for (r = 0; r < INSN_REGS; r++)
		if (insn_writes(in, r))
			s->reg[r] = (struct api_value){};
	if (known)
		s->reg[def.reg] = v;
	if (!insn_is_call(in))
		return;
	for (r = 0; r < INSN_REGS; r++)
		if (insn_is_caller_saved(r))
			s->reg[r] = (struct api_value){};
}

static void later(struct api_walk *w, size_t at, const struct api_state *s)
{
	if (at < w->size && w->nbranches < MAX_BRANCHES) {
		w->branch[w->nbranches].at = at;
		w->branch[w->nbranches++].state = *s;
	}
}

/* Records a call, or a tail call, with those of its arguments that are deep enough to follow. */
static void leave(struct api_walk *w, size_t to, const struct api_state *s)
{
	struct call call = {.start = w->start + to};
	bool any = false;
	unsigned i;

	if (!w->calls || w->calls->n == MAX_CALLS)
		return;
	for (i = 0; i < INSN_ARGS; i++) {
		const struct api_value *v = &s->reg[insn_arg[i]];

		if (v->path.depth < w->from)
			continue;
		call.state.reg[insn_arg[i]] = *v;
		any = true;
	}
	for (i = 0; i < w->calls->n; i++)
		any &= memcmp(&w->calls->call[i], &call, sizeof(call)) != 0;
	if (any)
		w->calls->call[w->calls->n++] = call;
}

/* Executes the code until it ends or was visited before. */
static void follow(struct api_walk *w, size_t at, struct api_state s)
{
	while (at < w->size && !(w->seen[at >> 3] & 1 << (at & 7))) {
		struct insn in;

		if (!insn_decode(w->text + at, w->size - at, &in))
			return;
		w->seen[at >> 3] |= (uint8_t)(1 << (at & 7));
		at += in.len;
		if (insn_is_branch(&in))
			later(w, at + (size_t)in.imm, &s); /* leaves the text: beyond size */
		if (insn_is_call(&in) && in.relative)
			leave(w, at + (size_t)in.imm, &s);
		step(w, &s, &in);
		if (insn_is_jump(&in))
			at += (size_t)in.imm;
		else if (insn_ends(&in))
			return;
		if (insn_is_jump(&in) && at >= w->size)
			leave(w, at, &s);
	}
}

static void follow_all(struct api_walk *w, const struct api_state *entry)
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
	struct api_walk w = {.text = text, .facts = facts, .max = PUC_FACTS, .from = 1, .to = 3};
	struct api_state entry = {};

	w.size = size < PUC_API_TEXT ? size : PUC_API_TEXT;
	entry.reg[insn_arg[0]].path.depth = 1;
	follow_all(&w, &entry);
	return w.nfacts;
}

/* The function's size is unknown; its branches do not reach the bytes behind it. */
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
	struct api_calls *calls __free = calloc(1, sizeof(*calls));
	uint8_t text[PUC_API_TEXT];
	struct api_walk w = {.text = text,
			     .facts = facts,
			     .max = PUC_DEEP_FACTS,
			     .from = PUC_DEEP,
			     .to = PUC_PATH + 1,
			     .calls = calls};
	unsigned i;

	if (!calls)
		return 0;
	calls->call[calls->n++] = (struct call){.start = start};
	calls->call[0].state.reg[insn_arg[0]].path.depth = 1;
	for (i = 0; i < calls->n; i++) {
		w.start = calls->call[i].start;
		w.size = read_text(elf, w.start, text);
		follow_all(&w, &calls->call[i].state);
	}
	return w.nfacts;
}
