// SPDX-License-Identifier: BSD-2-Clause
/*
 * A build's layout follows from the numbers in its VM's text (arch/lj_facts.h). They must be
 * consistent with each other.
 *
 * global_State has two layouts, which these offsets distinguish:
 *
 *	global_State until 2020-06, and Tarantool's	since 2020-06-23
 *	  ... strempty, hookmask			  ... strempty, hookmask
 *	  mainthref	= hookmask + 7			  str
 *	  registrytv	= hookmask + 15			  vmstate	= hookmask + 39
 *	  vmstate elsewhere				  mainthref	= vmstate + 8
 *							  tmpbuf, tmptv, tmptv2, nilnode
 *							  registrytv	= vmstate + 88
 *
 * In GC32: mainthref = hookmask + 3, registrytv is the next multiple of 8; and since 2020-06-23
 * mainthref = vmstate + 4, registrytv = vmstate + 64, or + 80 since 2021-06 (tmptv2).
 */
#include "measure.h"

#include "arch/lj_facts.h"

const char *const lj_fact_names[LJ_FACTS] = {
	[LJ_FACT_G2DISP] = "GG_G2DISP",	   [LJ_FACT_VMSTATE] = "vmstate",
	[LJ_FACT_HOOKMASK] = "hookmask",   [LJ_FACT_CUR_L] = "cur_L",
	[LJ_FACT_JIT_BASE] = "jit_base",   [LJ_FACT_TRACE] = "J.trace",
	[LJ_FACT_PARENT] = "J.parent",	   [LJ_FACT_EXITNO] = "J.exitno",
	[LJ_FACT_EXIT] = "LJ_VMST_EXIT",   [LJ_FACT_CFRAME_PREV] = "SAVE_CFRAME",
	[LJ_FACT_STR_LEN] = "GCstr.len",   [LJ_FACT_FUNCF] = "BC_FUNCF",
	[LJ_FACT_GC_TOTAL] = "gc.total",   [LJ_FACT_GC_THRESHOLD] = "gc.threshold",
	[LJ_FACT_FUNCC_END] = "BC_FUNCC",  [LJ_FACT_MCOFS] = "SnapShot.mcofs",
	[LJ_FACT_SPACE4] = "CFRAME_SPACE", [LJ_FACT_SPACE6] = "CFRAME_SPACE",
};

/* LuaJIT 2.0: all of its builds have these numbers of bytecode. */
static bool is_20(const struct lj_measured *m)
{
	return m->gc32 && m->fact[LJ_FACT_FUNCF] == LJ_FUNCF_20;
}

/*
 * Returns registrytv's offset, by global_State's layout; 0: it is neither. Since 2020-06-23 it follows
 * vmstate at a distance; before, and in Tarantool's, it is aligned to 8 behind
 *
 *     u8 hookmask, dispatchmode, vmevmask; GCRef mainthref
 *
 * where Tarantool's, whose vmstate is behind them, has i32 hookcount before mainthref.
 */
static uint32_t registrytv(const struct lj_measured *m)
{
	uint32_t vmstate = m->fact[LJ_FACT_VMSTATE], hookmask = m->fact[LJ_FACT_HOOKMASK];
	bool tmptv2 = m->fact[LJ_FACT_CUR_L] - vmstate > 136, hookcount;

	if (m->gc32) {
		if (vmstate == hookmask + 39)
			return vmstate + (tmptv2 ? 80 : 64);
		if ((hookmask & 3) != 1 || vmstate == hookmask)
			return 0;
		hookcount = vmstate > hookmask && !is_20(m);
		return (hookmask + 3 + (hookcount ? 4 : 0) + 4 + 7) & ~7u;
	}
	if (vmstate == hookmask + 39)
		return vmstate + 88;
	return (hookmask & 7) == 1 && vmstate != hookmask ? hookmask + 15 : 0;
}

/* Returns how many states before EXIT, C and GC are the interpreter's: INTERP, or Tarantool's three
 * (INTERP, LFUNC, FFUNC). */
static uint32_t interp_states(uint32_t exit)
{
	return (uint8_t)~exit - 2u;
}

static bool is_str_len(const struct lj_measured *m)
{
	uint32_t len = m->fact[LJ_FACT_STR_LEN];

	if (m->gc32)
		return len == LJ32_STR_LEN || len == LJ32_STR_LEN_2017;
	return len == LJ_STR_LEN || len == LJ_STR_LEN_2017;
}

static enum lj_fact disagrees(const struct lj_measured *m, uint32_t cframe_size)
{
	const uint32_t *f = m->fact;
	uint32_t gap = f[LJ_FACT_JIT_BASE] - f[LJ_FACT_CUR_L], ref_size = m->gc32 ? 4 : 8;
	int i;

	for (i = 0; i < LJ_FACT_MCOFS; i++)
		if ((!f[i] || f[i] == LJ_FACT_DIFFERS) && !(is_20(m) && i == LJ_FACT_FUNCC_END))
			return i;
	if (!registrytv(m))
		return LJ_FACT_HOOKMASK;
	if (gap != ref_size && gap != 2 * ref_size) /* Tarantool's mem_L is between */
		return LJ_FACT_JIT_BASE;
	if (f[LJ_FACT_TRACE] >= f[LJ_FACT_G2DISP])
		return LJ_FACT_TRACE;
	if (f[LJ_FACT_PARENT] <= f[LJ_FACT_TRACE])
		return LJ_FACT_PARENT;
	if (f[LJ_FACT_EXITNO] != f[LJ_FACT_PARENT] + 4)
		return LJ_FACT_EXITNO;
	if (interp_states(f[LJ_FACT_EXIT]) != 1 && interp_states(f[LJ_FACT_EXIT]) != 3)
		return LJ_FACT_EXIT;
	/* above it are five pushed words: four registers and the return address; or two registers more */
	if (f[LJ_FACT_CFRAME_PREV] + (f[LJ_FACT_SPACE6] ? 64 : 48) != cframe_size)
		return LJ_FACT_CFRAME_PREV;
	if (!is_str_len(m))
		return LJ_FACT_STR_LEN;
	if (f[LJ_FACT_GC_TOTAL] > UINT8_MAX)
		return LJ_FACT_GC_TOTAL;
	if (f[LJ_FACT_GC_THRESHOLD] != f[LJ_FACT_GC_TOTAL] + ref_size)
		return LJ_FACT_GC_THRESHOLD;
	if (f[LJ_FACT_FUNCF] <= LJ_OP_JMP && !is_20(m))
		return LJ_FACT_FUNCF;
	if (f[LJ_FACT_FUNCC_END] != f[LJ_FACT_FUNCF] + 8 && !is_20(m))
		return LJ_FACT_FUNCC_END;
	return f[LJ_FACT_MCOFS] == LJ_FACT_DIFFERS ? LJ_FACT_MCOFS : LJ_FACTS;
}

enum lj_fact lj_layout_of(const struct lj_measured *m, uint32_t cframe_size, struct lj_layout *lj)
{
	const uint32_t *f = m->fact;
	enum lj_fact wrong = disagrees(m, cframe_size);

	if (wrong != LJ_FACTS)
		return wrong;
	*lj = (struct lj_layout){
		.g2disp = (uint16_t)f[LJ_FACT_G2DISP],
		.g2trace = (uint16_t)f[LJ_FACT_TRACE],
		.vmstate = (uint16_t)f[LJ_FACT_VMSTATE],
		.cur_L = (uint16_t)f[LJ_FACT_CUR_L],
		.jit_base = (uint16_t)f[LJ_FACT_JIT_BASE],
		.registrytv = (uint16_t)registrytv(m),
		.j_parent = (uint16_t)(f[LJ_FACT_PARENT] - f[LJ_FACT_TRACE]),
		.j_exitno = (uint16_t)(f[LJ_FACT_EXITNO] - f[LJ_FACT_TRACE]),
		.cframe_size = (uint8_t)cframe_size,
		.cframe_prev = (uint8_t)f[LJ_FACT_CFRAME_PREV],
		.str_len = (uint8_t)f[LJ_FACT_STR_LEN],
		.bc_funcf = (uint8_t)f[LJ_FACT_FUNCF],
		.interp_states = (uint8_t)interp_states(f[LJ_FACT_EXIT]),
		.mcofs = f[LJ_FACT_MCOFS] != 0,
		.gc32 = m->gc32,
		.v20 = is_20(m),
		.gc_total = (uint8_t)f[LJ_FACT_GC_TOTAL],
	};
	return LJ_FACTS;
}
