// SPDX-License-Identifier: BSD-2-Clause
#include "frames.h"

#include "lua/lj/bc.h"

int lj_frames_add(struct lj_trace *t, struct lj_tframe frame)
{
	if (t->nframes == LJ_FRAMES_MAX)
		return -1;
	t->frames[t->nframes] = frame;
	return (int)t->nframes++;
}

uint64_t lj_frames_own(const struct lj_trace *t, const struct lb_mem *mem, uint32_t code)
{
	struct func func;
	uint32_t ref;

	for (ref = LJ_REF_BIAS - 4; ref >= t->nk; ref--)
		if (lj_func_of(t, mem, ref, &func) && func.code == (int)code && func.addr)
			return func.addr;
	return 0;
}

int lj_frames_first(struct lj_trace *t, const struct lb_mem *mem)
{
	const struct lj_tsnap *s = &t->snap[0];
	int32_t slot = s->slot;
	struct func func;
	uint32_t pos;
	int code = lj_trace_code(t, s->pc, &pos), first, f;

	if (code < 0)
		return -1;
	first = f = lj_frames_add(
		t, (struct lj_tframe){.parent = -1, .slot = slot, .code = (uint32_t)code});
	while (slot > 0 && f >= 0) {
		uint64_t link = lj_snap_link(t, s, slot);
		uint64_t delta;
		uint32_t ins, kind;
		int parent;
		bool known;

		known = lj_func_of(t, mem, lj_snap_entry(s, (uint32_t)slot) & 0xffff, &func);
		if (known && func.code >= 0)
			t->frames[f].func = func.addr;
		else if (known)
			t->frames[f].via_pcall = func.ffid;
		delta = link >> 3;
		kind = link & 7;
		if (kind & 3 && (!delta || delta > (uint64_t)slot))
			break;
		if (kind == LJ_FRAME_VARG)
			t->frames[f].copied = (int32_t)delta;
		if (kind == LJ_FRAME_VARG || (kind & 6) == LJ_FRAME_PCALL) {
			slot -= (int32_t)delta;
			continue;
		}
		if (kind == LJ_FRAME_CONT) /* a metamethod's: its return address is below it */
			link = lj_snap_contpc(t, s, slot);
		code = lj_trace_code(t, link, &pos);
		if ((kind & 3 && kind != LJ_FRAME_CONT) || code < 0 || !pos)
			break;
		ins = t->codes[code].bc[pos - 1];
		if (kind != LJ_FRAME_CONT && !lj_bc_is_call(ins))
			break;
		slot -= kind == LJ_FRAME_CONT ? (int32_t)delta
					      : (int32_t)lj_frame_slots(t) + lj_bc_a(ins);
		parent = lj_frames_add(
			t, (struct lj_tframe){.parent = -1, .slot = slot, .code = (uint32_t)code});
		if (parent < 0 || slot < 0)
			break;
		t->frames[f].parent = parent;
		t->frames[f].callpc = pos - 1;
		f = parent;
	}
	if (f >= 0 && !t->frames[f].func)
		t->frames[f].func = lj_frames_own(t, mem, t->frames[f].code);
	return first;
}

#define NO_STEP UINT32_MAX

/* Returns the step that loaded a local of the last one, through copies. NO_STEP: not known. */
static uint32_t fetched_by(const struct lj_trace *t, uint32_t local)
{
	uint32_t i = t->nhistory - 1, frame = t->history[i].frame;

	while (i-- > 0) {
		uint32_t ins = lj_step_ins(t, i);

		if (t->history[i].frame != frame)
			continue;
		if (lj_bc_mode_a(ins) == LJ_BCM_BASE && lj_bc_a(ins) <= local)
			return NO_STEP;
		if (lj_bc_mode_a(ins) != LJ_BCM_DST || lj_bc_a(ins) != local)
			continue;
		if (lj_bc_op(ins) != LJ_BC_MOV)
			return i;
		local = lj_bc_d(ins);
	}
	return NO_STEP;
}

uint64_t lj_frames_key(const struct lj_trace *t, uint32_t local)
{
	const struct lj_code *c = lj_code_of(t, (int32_t)t->nhistory - 1);
	uint32_t i = fetched_by(t, local), ins, k;

	if (i == NO_STEP)
		return 0;
	ins = lj_step_ins(t, i);
	k = lj_bc_op(ins) == LJ_BC_TGETS  ? lj_bc_c(ins)
	    : lj_bc_op(ins) == LJ_BC_GGET ? lj_bc_d(ins)
					  : c->nkgc;
	return lj_code_kgc(c, k);
}
