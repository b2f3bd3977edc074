// SPDX-License-Identifier: BSD-2-Clause
/*
 * The starts that LuaJIT has no trace for, from three places:
 *
 *   jit_State.penalty	the last 64 starts whose recording was aborted, with the last reason; a
 *			blacklisted one keeps its entry until 64 others were aborted
 *   bytecode		a blacklisted start's instruction is ILOOP, IFORL, IITERL, IFUNCF or IFUNCV;
 *			its function has the flag PROTO_ILOOP. A function of jit.off() has PROTO_NOJIT,
 *			too
 *   jit_State.cur, pc	the last start that was recorded, and the instruction at which that ended
 *
 * An entry counts only if its address is that of an instruction that can start a trace, in a
 * function that can be read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/fingerprint.h>

#include "base/array.h"
#include "lua/foreign.h"
#include "lua/lj/bc.h"
#include "lua/lj/proto.h"
#include "lua/lj/proto_parts.h"
#include "reader.h"

#define PENALTY_MIN 72 /* lj_jit.h */
#define PENALTY_BYTES (LJ_PENALTY_SIZE * LJ_PENALTY_SLOTS)
#define REASONS_MOST 40
#define KEPT_MOST 10000

struct penalty {
	uint64_t pc;
	uint32_t val, reason;
};

/* ---- the penalty cache ----------------------------------------------------------------------- */

static struct penalty slot_of(const struct lj_layout *lj, const uint8_t *cache, uint32_t i)
{
	const uint8_t *p = cache + (size_t)i * LJ_OFF(lj, PENALTY_SIZE);

	return (struct penalty){
		.pc = lj_ref_at(lj, p, LJ_OFF(lj, PENALTY_PC)),
		.val = lb_short(p, LJ_OFF(lj, PENALTY_VAL)),
		.reason = lb_short(p, LJ_OFF(lj, PENALTY_REASON)),
	};
}

/* True if this may be a penalty cache: entries are used in order, from the first on. */
static bool is_cache(const struct lj_layout *lj, const uint8_t *cache)
{
	uint32_t next = foreign_half(cache, LJ_OFF(lj, PENALTY_SIZE) * LJ_OFF(lj, PENALTY_SLOTS));
	uint32_t used = 0, i;

	for (i = 0; i < LJ_OFF(lj, PENALTY_SLOTS); i++) {
		struct penalty slot = slot_of(lj, cache, i);

		if (!slot.pc && (slot.val || slot.reason))
			return false;
		if (!slot.pc)
			continue;
		if (used != i || slot.pc & 3 || slot.pc >> 47 || slot.val < PENALTY_MIN ||
		    slot.reason >= REASONS_MOST)
			return false;
		used++;
	}
	return next < LJ_OFF(lj, PENALTY_SLOTS) &&
	       (used == LJ_OFF(lj, PENALTY_SLOTS) || next == used);
}

/* -ENOENT: not found, or it is being changed. */
static int read_cache(const struct traces_reader *rd, uint8_t cache[PENALTY_BYTES + 4])
{
	const struct lj_layout *lj = rd->lj;
	const uint32_t before[] = {LJ_OFF(lj, PENALTY_BEFORE_PARENT),
				   LJ_OFF(lj, PENALTY_BEFORE_PARENT_2020)};
	uint32_t size = LJ_OFF(lj, PENALTY_SIZE) * LJ_OFF(lj, PENALTY_SLOTS) + 4;
	int r;

	for (int tries = 0; tries < 3; tries++)
		for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
			r = mem_read(rd->mem, cache, size,
				     rd->g + lj->g2trace + lj->j_parent - before[i]);
			if (r)
				return r;
			if (is_cache(lj, cache))
				return 0;
		}
	return -ENOENT;
}

/* ---- one start ------------------------------------------------------------------------------- */

static bool is_function_header(const struct lj_layout *lj, uint32_t ins)
{
	return lj_bc_op(ins) >= lj_bc_funcf_21(lj) && lj_bc_op(ins) < lj_bc_funcf_21(lj) + LJ_FUNCC;
}

/* Three neighbours: FORL, IFORL, JFORL and so on. */
enum form { FORM_HOT, FORM_NO_TRACE, FORM_TRACE, FORM_NONE };

static enum form form_of(const struct lj_layout *lj, uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	if (is_function_header(lj, ins))
		return (enum form)((lj_bc_op(ins) - lj_bc_funcf_21(lj)) % 3);
	if (op >= LJ_BC_FORL && op <= LJ_BC_JLOOP)
		return (enum form)((op - LJ_BC_FORL) % 3);
	if (op == LJ_BC_ITERN)
		return FORM_HOT;
	/* a blacklisted ITERN: its ISNEXT was made a JMP */
	return op == LJ_BC_ITERC ? FORM_NO_TRACE : FORM_NONE;
}

/* Returns the position that a jump leads to. */
static uint32_t target(uint32_t pos, uint32_t ins)
{
	return pos + 1 + lj_bc_d(ins) - 0x8000;
}

/* The lines of the bytecodes [from, to]. */
static struct traces_lines lines_of(const struct lj_proto *pt, uint32_t from, uint32_t to)
{
	struct traces_lines lines = {.pt = pt};

	for (uint32_t i = from; i <= to && i < pt->sizebc; i++) {
		int32_t line = lj_proto_line(pt, i);

		if (line <= 0)
			continue;
		if (!lines.from || line < lines.from)
			lines.from = line;
		if (line > lines.to)
			lines.to = line;
	}
	return lines;
}

static struct traces_lines start_lines(const struct lj_layout *lj, const struct traces_place *at)
{
	uint32_t ins = lj_proto_ins(at->pt, at->bcpos), from = at->bcpos, to = from;
	uint8_t op = lj_bc_op(ins);

	if (is_function_header(lj, ins))
		return (struct traces_lines){at->pt, at->pt->firstline,
					     at->pt->firstline + (int32_t)at->pt->numline};
	if (op == LJ_BC_LOOP || op == LJ_BC_ILOOP) /* jumps behind the loop */
		to = target(from, ins) - 1;
	else if (op == LJ_BC_FORL || op == LJ_BC_IFORL || op == LJ_BC_ITERL || op == LJ_BC_IITERL)
		from = target(to, ins);		   /* the body, before it */
	else if (lj_proto_has_ins(at->pt, to + 1)) /* ITERN or ITERC, before an ITERL */
		from = target(to + 1, lj_proto_ins(at->pt, to + 1));
	/* "repeat until true" has no jump back */
	return from <= to ? lines_of(at->pt, from, to) : lines_of(at->pt, at->bcpos, at->bcpos);
}

static struct traces_start *find(struct traces_vm *vm, uint64_t pc, const struct lj_proto *pt)
{
	for (size_t i = 0; i < vm->nstarts; i++)
		if (vm->starts[i].pc == pc && vm->starts[i].at.pt == pt)
			return &vm->starts[i];
	return NULL;
}

/* The start at this instruction, a new one if need be. -ENOENT: none can be here. */
static int start_at(struct traces_vm *vm, const struct traces_place *at, uint64_t pc,
		    struct traces_start **out)
{
	const struct lj_layout *lj = vm->reader->lj;
	uint32_t ins = lj_proto_ins(at->pt, at->bcpos);
	enum form form = form_of(lj, ins);
	struct traces_start *start = find(vm, pc, at->pt);

	if (form == FORM_TRACE || form == FORM_NONE || (is_function_header(lj, ins) && at->bcpos))
		return -ENOENT;
	if (!start) {
		if (vm->nstarts == KEPT_MOST)
			return -ENOBUFS;
		if (array_grow(&vm->starts, vm->nstarts, sizeof(*start)))
			return -ENOMEM;
		start = &vm->starts[vm->nstarts++];
		*start = (struct traces_start){
			.pc = pc,
			.at = *at,
			.lines = start_lines(lj, at),
			.kind = is_function_header(lj, ins) ? TRACES_FUNCTION : TRACES_LOOP,
			.reason = TRACES_NO_REASON,
		};
	}
	start->gone = false;
	start->state = form == FORM_HOT			? TRACES_PENALISED
		       : at->pt->flags & LJ_PROTO_NOJIT ? TRACES_JIT_OFF
							: TRACES_BLACKLISTED;
	*out = start;
	return 0;
}

static bool is_alive(const struct traces_reader *rd, uint64_t proto)
{
	size_t lo = 0, hi = rd->nheap;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (rd->heap[mid] < proto)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < rd->nheap && rd->heap[lo] == proto;
}

static int add_penalty(struct traces_vm *vm, const struct penalty *slot)
{
	struct traces_start *start;
	struct traces_place at;
	int r = traces_place_of(vm->reader, slot->pc, 0, &at);

	if (r == -ENOMEM)
		return r;
	if (r) {
		vm->unread_starts++;
		return 0;
	}
	if (vm->reader->has_heap && !is_alive(vm->reader, at.pt->addr))
		return 0; /* the function was collected */
	r = start_at(vm, &at, slot->pc, &start);
	if (r)
		return r == -ENOMEM ? r : 0; /* it was compiled since */
	start->penalty = slot->val;
	start->reason = (int)slot->reason;
	return 0;
}

/* *full: entries are overwritten, so that a start without one may be penalised. */
static int add_penalties(struct traces_vm *vm, bool *full)
{
	uint8_t cache[PENALTY_BYTES + 4] __attribute__((aligned(8)));
	int r = read_cache(vm->reader, cache);

	vm->has_penalties = !r;
	*full = r || slot_of(vm->reader->lj, cache, LJ_PENALTY_SLOTS - 1).pc;
	for (uint32_t i = 0; i < LJ_OFF(vm->reader->lj, PENALTY_SLOTS) && !r; i++) {
		struct penalty slot = slot_of(vm->reader->lj, cache, i);

		if (slot.pc)
			r = add_penalty(vm, &slot);
	}
	return r == -ENOENT ? 0 : r;
}

/* ---- patched bytecode ------------------------------------------------------------------------ */

/* True if LuaJIT has patched the prototype. */
static bool is_patched(const struct traces_reader *rd, uint64_t proto)
{
	uint8_t head[LJ_PROTO_SIZE];

	return !mem_read(rd->mem, head, LJ_OFF(rd->lj, PROTO_SIZE), proto) &&
	       head[LJ_OFF(rd->lj, PROTO_GCT)] == LJ_GCT_PROTO &&
	       head[LJ_OFF(rd->lj, PROTO_FLAGS)] & LJ_PROTO_ILOOP;
}

static int add_patched(struct traces_vm *vm, uint64_t proto)
{
	struct traces_place at = {};
	int r = traces_function_at(vm->reader, proto, &at.pt);

	if (r)
		return r == -ENOMEM ? r : 0; /* it was freed since */
	for (; lj_proto_has_ins(at.pt, at.bcpos); at.bcpos++) {
		uint32_t ins = lj_proto_ins(at.pt, at.bcpos);
		struct traces_start *start;

		if (form_of(vm->reader->lj, ins) != FORM_NO_TRACE || lj_bc_op(ins) == LJ_BC_ITERC)
			continue;
		at.line = lj_proto_line(at.pt, at.bcpos);
		r = start_at(vm, &at, proto + LJ_OFF(vm->reader->lj, PROTO_SIZE) + 4ULL * at.bcpos,
			     &start);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

/* ---- the last abort -------------------------------------------------------------------------- */

struct abort_state {
	uint64_t startpc, pc, pt, fn;
	uint64_t errinfo;
	bool has_errinfo;
};

/* Finds jit_State.cur: two of its pointers are those of the buffers that jit_State has. */
static int find_cur(const struct traces_reader *rd, uint64_t *cur)
{
	uint64_t trace = rd->g + rd->lj->g2trace, bufs[2];
	uint8_t before[2048] __attribute__((aligned(8)));
	uint32_t size = rd->lj->g2trace < sizeof(before) ? rd->lj->g2trace & ~7u : sizeof(before);
	uint32_t snap = LJ_OFF(rd->lj, TRACE_SNAP);
	int at, r = mem_read(rd->mem, bufs, sizeof(bufs), trace + LJ_J_SNAPBUF);

	if (!r)
		r = mem_read(rd->mem, before, size, trace - size);
	if (r)
		return r;
	if (!bufs[0] || !bufs[1])
		return -ENOENT;
	for (at = (int)size + LJ_J_SNAPBUF - 16; at >= (int)snap; at -= 8)
		if (foreign_word(before, (unsigned int)at) == bufs[0] &&
		    foreign_word(before, (unsigned int)at + 8) == bufs[1]) {
			*cur = trace - size + (unsigned int)at - snap;
			return 0;
		}
	return -ENOENT;
}

/* True for what errinfo can be: nil, a small number, a function; in GC64. */
static bool is_errinfo(uint64_t tv)
{
	double n;

	memcpy(&n, &tv, sizeof(n));
	return tv == UINT64_MAX || LJ_TV_TYPE(tv) == LJ_TFUNC || (n >= 1 && n < 256);
}

/* jit_State's tail grew: the first of its offsets at which there is such a value. */
static void read_errinfo(const struct traces_reader *rd, uint64_t parent, struct abort_state *a)
{
	const uint32_t offsets[] = {LJ_J_ERRINFO, LJ_J_ERRINFO_2025};

	if (!rd->lj->mcofs) {
		a->has_errinfo = !mem_read(rd->mem, &a->errinfo, 8, parent + LJ_J_ERRINFO_2020) &&
				 is_errinfo(a->errinfo);
		return;
	}
	for (size_t i = 0; i < 2 && !a->has_errinfo; i++)
		a->has_errinfo = !mem_read(rd->mem, &a->errinfo, 8, parent + offsets[i]) &&
				 is_errinfo(a->errinfo);
}

/* -ENOENT: the last recording was no root trace's, or was not aborted, or one is going on. */
static int read_abort(const struct traces_reader *rd, struct abort_state *a)
{
	uint64_t parent = rd->g + rd->lj->g2trace + rd->lj->j_parent, cur = 0;
	uint8_t bytes[LJ_J_READ] __attribute__((aligned(8)));
	uint32_t exit[2];
	int r = find_cur(rd, &cur);

	if (!r)
		r = mem_read(rd->mem, bytes, LJ_OFF(rd->lj, J_READ), cur);
	if (!r)
		r = mem_read(rd->mem, exit, sizeof(exit), parent);
	if (r)
		return r;
	if (exit[0] || exit[1] || lb_short(bytes, LJ_OFF(rd->lj, TRACE_TRACENO)))
		return -ENOENT;
	a->startpc = lj_ref_at(rd->lj, bytes, LJ_OFF(rd->lj, TRACE_STARTPC));
	a->pc = foreign_word(bytes, LJ_OFF(rd->lj, J_PC));
	a->fn = foreign_word(bytes, LJ_OFF(rd->lj, J_FN));
	a->pt = foreign_word(bytes, LJ_OFF(rd->lj, J_PT));
	if (!lj_is_gc32(rd->lj))
		read_errinfo(rd, parent, a);
	return 0;
}

/* The name of a bytecode, or of a built-in function, that errinfo is. */
static void info_text(const struct traces_reader *rd, uint64_t tv, char *buf, size_t size)
{
	uint8_t func[LJ_FUNC_READ];
	double n;

	memcpy(&n, &tv, sizeof(n));
	if (LJ_TV_TYPE(tv) == LJ_TFUNC) {
		const char *name = NULL;

		if (!mem_read(rd->mem, func, sizeof(func), LJ_TV_GCPTR(tv)))
			name = lj_ffname(rd->names, func[LJ_FUNC_FFID]);
		snprintf(buf, size, "%s", name ? name : "");
	} else if (n >= 1 && n < LJ_BC__LISTED) {
		snprintf(buf, size, "%s", lj_bc_rows[(int)n].name);
	} else if (n >= LJ_BC__LISTED && n < 256) {
		snprintf(buf, size, "%d", (int)n);
	}
}

static int add_cause(struct traces_vm *vm)
{
	struct traces_reader *rd = vm->reader;
	struct abort_state a = {}, again = {};
	int r = rd->lj->v20 ? -ENOENT : read_abort(rd, &a);

	if (r || read_abort(rd, &again) || memcmp(&a, &again, sizeof(a)))
		return 0;
	for (size_t i = 0; i < vm->nstarts; i++) {
		struct traces_start *start = &vm->starts[i];

		if (start->gone || start->pc != a.startpc)
			continue;
		start->has_cause = true;
		start->cause = (struct traces_place){};
		start->info[0] = '\0';
		if (a.pt && traces_place_of(rd, a.pc, a.pt, &start->cause) == -ENOMEM)
			return -ENOMEM;
		if (a.has_errinfo)
			info_text(rd, a.errinfo, start->info, sizeof(start->info));
	}
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

/* Looks at the starts that the lists above do not have any more. */
static int look_again(struct traces_vm *vm, bool full)
{
	struct traces_reader *rd = vm->reader;

	for (size_t i = 0; i < vm->nstarts; i++) {
		struct traces_start *start = &vm->starts[i], *same;
		struct traces_place at = {};
		int r;

		if (!start->gone || (rd->has_heap && !is_alive(rd, start->at.pt->addr)))
			continue;
		r = traces_place_of(rd, start->pc, start->at.pt->addr, &at);
		if (!r && at.pt == start->at.pt)
			r = start_at(vm, &at, start->pc, &same);
		if (r == -ENOMEM)
			return r;
		start->gone |= start->state == TRACES_PENALISED && !full; /* jit.flush() */
	}
	return 0;
}

int traces_read_starts(struct traces_vm *vm)
{
	struct traces_reader *rd = vm->reader;
	bool full = false;
	int r;

	vm->unread_starts = 0;
	for (size_t i = 0; i < vm->nstarts; i++)
		vm->starts[i].gone = true;
	r = add_penalties(vm, &full);
	for (size_t i = 0; i < rd->nheap && !r; i++)
		if (is_patched(rd, rd->heap[i]))
			r = add_patched(vm, rd->heap[i]);
	if (!r)
		r = look_again(vm, full);
	return r ? r : add_cause(vm);
}

void traces_reason(const struct traces_vm *vm, const struct traces_start *start, char *buf,
		   size_t size)
{
	static const struct {
		bool is_20, is_21;
		const char *text;
	} rows[] = {
#define TRACES_REASON(is_20, is_21, text) {is_20, is_21, text},
#include "reasons.def"
#undef TRACES_REASON
	};
	int reason = start->reason;

	buf[0] = '\0';
	if (reason == TRACES_NO_REASON)
		snprintf(buf, size, "%s",
			 start->state == TRACES_JIT_OFF ? "jit.off()" : "not known any more");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *named = strstr(rows[i].text, " %s");
		int len = named ? (int)(named - rows[i].text) : (int)strlen(rows[i].text);

		if (!(vm->reader->lj->v20 ? rows[i].is_20 : rows[i].is_21) || reason--)
			continue;
		snprintf(buf, size, "%.*s%s%s", len, rows[i].text, named && *start->info ? " " : "",
			 named ? start->info : "");
		return;
	}
}
