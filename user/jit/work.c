// SPDX-License-Identifier: BSD-2-Clause
#include "work.h"

#define W(name) (1u << W_##name)

uint32_t lj_work_own(const struct lj_ins *ir)
{
	bool fp = (ir->t & LJ_IRT_TYPE) == LJ_IRT_NUM || (ir->t & LJ_IRT_TYPE) == LJ_IRT_FLOAT;

	switch (ir->o) {
	case LJ_IR_BNOT:
		return W(NOT);
	case LJ_IR_BSWAP:
		return W(BSWAP);
	case LJ_IR_BAND:
		return W(AND) | W(LOAD) | W(COMPARE);
	case LJ_IR_BOR:
		return W(OR);
	case LJ_IR_BXOR:
		return W(XOR) | W(NOT);
	case LJ_IR_BSHL ... LJ_IR_BROR:
		return W(SHIFT) | (ir->o == LJ_IR_BSHL ? W(ADD) | W(LEA) : 0);
	case LJ_IR_ADD:
	case LJ_IR_ADDOV:
		return fp ? W(FADD) : W(ADD) | W(LEA) | W(SUB);
	case LJ_IR_SUB:
	case LJ_IR_SUBOV:
		return fp ? W(FSUB) : W(SUB) | W(LEA) | W(ADD) | W(NEG);
	case LJ_IR_MUL:
	case LJ_IR_MULOV:
		return fp ? W(FMUL) : W(MUL) | W(SHIFT) | W(LEA) | W(ADD);
	case LJ_IR_DIV:
		return fp ? W(FDIV) : W(CALL);
	case LJ_IR_NEG:
		return fp ? W(FXOR) : W(NEG);
	case LJ_IR_ABS:
		return W(FAND);
	case LJ_IR_MIN:
		return fp ? W(FMIN) : W(COMPARE);
	case LJ_IR_MAX:
		return fp ? W(FMAX) : W(COMPARE);
	case LJ_IR_FPMATH:
		return W(FSQRT) | W(ROUND) | W(CALL);
	case LJ_IR_CONV:
		return W(CVT) | (fp ? 0 : W(LOAD) | W(SHIFT));
	case LJ_IR_TOBIT:
		return W(FADD);
	case LJ_IR_AREF:
	case LJ_IR_STRREF:
	case LJ_IR_FREF:
	case LJ_IR_TMPREF:
		return W(LEA) | W(ADD) | W(SHIFT);
	case LJ_IR_HREFK:
	case LJ_IR_UREFO:
	case LJ_IR_UREFC:
		return W(LOAD) | W(LEA) | W(ADD);
	case LJ_IR_HREF: /* the size of the hash is first */
		return W(LOAD);
	case LJ_IR_ALOAD ... LJ_IR_VLOAD:
		if (ir->o == LJ_IR_SLOAD && ir->op2 & LJ_IRSLOAD_PARENT)
			return 0; /* in the parent trace's register or spill slot */
		return W(LOAD) | (ir->o == LJ_IR_SLOAD || ir->o == LJ_IR_XLOAD ? W(CVT) : 0);
	case LJ_IR_ASTORE ... LJ_IR_XSTORE:
		return W(STORE);
	case LJ_IR_BUFHDR:
	case LJ_IR_RETF:
		return W(STORE);
	case LJ_IR_MOD:
	case LJ_IR_POW:
	case LJ_IR_LDEXP:
	case LJ_IR_NEWREF:
	case LJ_IR_SNEW ... LJ_IR_CNEWI:
	case LJ_IR_BUFPUT:
	case LJ_IR_BUFSTR:
	case LJ_IR_TOSTR:
	case LJ_IR_STRTO:
	case LJ_IR_CALLN ... LJ_IR_CALLXS:
		return W(CALL);
	case LJ_IR_ALEN:
	case LJ_IR_GCSTEP:
		return W(CALL) | W(STORE);
	default:
		return 0;
	}
}

bool lj_work_is_manifold(uint8_t o)
{
	return o == LJ_IR_HREF || (o >= LJ_IR_SNEW && o <= LJ_IR_OBAR) || o == LJ_IR_GCSTEP ||
	       o == LJ_IR_ALEN || o == LJ_IR_RETF || (o >= LJ_IR_CALLN && o <= LJ_IR_CALLXS);
}
