/* SPDX-License-Identifier: BSD-2-Clause */
/* Which functions a trace calls: what its constants, guards and upvalues tell. For lj_trace*.c
 * only. */
#ifndef SYM_LJ_TRACE_FUNC_H
#define SYM_LJ_TRACE_FUNC_H

#include "sym/lj_trace_priv.h"

#define LJ_FUNC_GUARDS 256
#define LJ_METAMETHOD_MAX 12

/* A function that the trace has for a constant. */
struct func {
	uint64_t addr;	/* GCfunc; 0: only its prototype is known */
	int code;	/* index; -1: no Lua function */
	bool protected; /* pcall() calls it */
};

/* A guard that a call's function is this one (rec_call_specialize). */
struct func_guard {
	uint32_t ref;
	struct func func;
	uint64_t key;		    /* GCstr under which a table had it; 0: not known */
	char mm[LJ_METAMETHOD_MAX]; /* "__add": it was found as a metamethod; else empty */
};

/* The function that constant ref is, or whose bytecode it points to. */
bool lj_func_of(const struct lj_trace *t, const struct lb_mem *mem, uint32_t ref, struct func *out);

/* A closure's upvalue, when it never changes and is a function. */
bool lj_func_upvalue(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
		     uint32_t idx, struct func *out);

/* Fills in the guards of what was recorded, in order; returns how many. */
uint32_t lj_func_guards(const struct lj_trace *t, const struct lb_mem *mem,
			struct func_guard guards[LJ_FUNC_GUARDS]);

/* Could the guard be for the function that this instruction calls? key: as in the guard, when it is
 * known. */
bool lj_func_is_for(const struct func_guard *g, uint32_t ins, uint64_t key);

#endif
