// SPDX-License-Identifier: BSD-2-Clause
#include "func.h"
#include "value.h"

#include <string.h>

#include <unwind/lj/fingerprint.h>

#include "lua/lj/bc.h"
#include "lua/lj/table.h"

bool lj_func_at(const struct lj_trace *t, const struct lb_mem *mem, uint64_t addr, struct func *out)
{
	uint8_t func[LJ_FUNC_READ];
	uint32_t pos;

	*out = (struct func){.addr = addr, .code = -1};
	if (mem_read(mem, func, LJ_OFF(&t->lj, FUNC_READ), addr) ||
	    lb_byte(func, LJ_OFF(&t->lj, FUNC_GCT)) != LJ_GCT_FUNC)
		return false;
	out->ffid = lb_byte(func, LJ_OFF(&t->lj, FUNC_FFID));
	if (!out->ffid)
		out->code =
			lj_trace_code(t, lj_ref_at(&t->lj, func, LJ_OFF(&t->lj, FUNC_PC)), &pos);
	return true;
}

bool lj_func_of(const struct lj_trace *t, const struct lb_mem *mem, uint32_t ref, struct func *out)
{
	const struct lj_ins *ir;
	uint32_t pos;

	*out = (struct func){.code = -1};
	if (!lj_ref_ok(t, ref) || ref >= LJ_REF_BIAS)
		return false;
	ir = lj_ins_at(t, ref);
	if (ir->o == LJ_IR_KPTR || ir->o == LJ_IR_KKPTR) {
		out->code = lj_trace_code(t, lj_trace_const(t, ref), &pos);
		return out->code >= 0 && !pos;
	}
	if (ir->o != LJ_IR_KGC || (ir->t & LJ_IRT_TYPE) != LJ_IRT_FUNC)
		return false;
	return lj_func_at(t, mem, lj_trace_const(t, ref), out);
}

uint64_t lj_func_uv(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
		    uint32_t idx)
{
	uint64_t at = closure + LJ_OFF(&t->lj, FUNC_UVPTR) + (uint64_t)lj_ref_size(&t->lj) * idx,
		 uv;

	return closure && !lj_reference(&t->lj, mem, at, &uv) ? uv : 0;
}

uint32_t lj_func_uref(const struct lj_trace *t, const struct lb_mem *mem, uint64_t uv,
		      uint32_t from, uint32_t to)
{
	for (; uv && from < to; from++) {
		const struct lj_ins *ir = lj_ins_at(t, from);

		if (lj_is_uref(ir) && ir->op1 < LJ_REF_BIAS &&
		    lj_func_uv(t, mem, lj_trace_const(t, ir->op1), ir->op2 >> 8) == uv)
			return from;
	}
	return 0;
}

/* Reads the GCupval of a closure. */
static bool read_upvalue(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
			 uint32_t idx, uint8_t uv[LJ_UPVAL_READ])
{
	uint64_t at = lj_func_uv(t, mem, closure, idx);

	return at && !mem_read(mem, uv, LJ_OFF(&t->lj, UPVAL_READ), at);
}

bool lj_func_upvalue(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
		     uint32_t idx, uint64_t *out)
{
	uint8_t uv[LJ_UPVAL_READ];

	return read_upvalue(t, mem, closure, idx, uv) &&
	       lb_byte(uv, LJ_OFF(&t->lj, UPVAL_IMMUTABLE)) &&
	       !lj_tvalue(&t->lj, mem, lj_ref_at(&t->lj, uv, LJ_OFF(&t->lj, UPVAL_V)), out);
}

bool lj_func_upvalue_changes(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
			     uint32_t idx)
{
	uint8_t uv[LJ_UPVAL_READ];

	return read_upvalue(t, mem, closure, idx, uv) &&
	       !lb_byte(uv, LJ_OFF(&t->lj, UPVAL_IMMUTABLE));
}

bool lj_func_is_for(const struct func_guard *g, uint32_t ins, uint64_t key)
{
	if (!lj_bc_is_call(ins))
		return g->mm == lj_bc_mm(ins);
	return key && g->key ? key == g->key : g->mm == LJ_MM_NONE || g->mm == LJ_MM_CALL;
}

/* Fills in the key under which a guarded function was loaded from a table. */
static void read_key(const struct lj_trace *t, const struct lb_mem *mem, uint32_t ref,
		     struct func_guard *g)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);
	char text[LJ_METAMETHOD_MAX];

	g->key = 0;
	g->table = 0;
	g->mm = LJ_MM_NONE;
	g->on = lj_ins_at(t, ref)->o == LJ_IR_FLOAD ? lj_ins_at(t, ref)->op1 : ref; /* its pc */
	if (ir->o != LJ_IR_HLOAD || !lj_ref_ok(t, ir->op1))
		return;
	ir = lj_ins_at(t, ir->op1);
	if (ir->o != LJ_IR_HREFK && ir->o != LJ_IR_HREF)
		return;
	g->key = lj_trace_key(t, ir);
	g->table = lj_trace_table(t, ir);
	if (!mem_read(mem, text, sizeof(text), g->key + lj_str_text(&t->lj)) &&
	    !memcmp(text, "__", 2) && memchr(text, 0, sizeof(text)))
		g->mm = lj_mm_named(text);
}

uint32_t lj_func_guards(const struct lj_trace *t, const struct lb_mem *mem,
			struct func_guard guards[LJ_FUNC_GUARDS])
{
	uint32_t ref, end = lj_recorded_end(t), n = 0;

	for (ref = LJ_REF_BIAS + 1; ref < end && n < LJ_FUNC_GUARDS; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		/* not the guard of a frame's own function, which is no call */
		if (ir->o == LJ_IR_EQ && lj_ref_ok(t, ir->op1) && !lj_guards_own(t, ir) &&
		    lj_func_of(t, mem, ir->op2, &guards[n].func)) {
			read_key(t, mem, ir->op1, &guards[n]);
			guards[n++].ref = ref;
		}
	}
	return n;
}
