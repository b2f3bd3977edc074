/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that a trace calls, from its constants, guards and upvalues (layer 1, for jit/
 * only). */
#ifndef JIT_FUNC_H
#define JIT_FUNC_H

#include "model.h"
#include "lua/lj/bc.h"

#define LJ_FUNC_GUARDS 256
#define LJ_METAMETHOD_MAX 12

/* A function that is a constant of the trace. */
struct func {
	uint64_t addr; /* GCfunc; 0: only its prototype is known */
	int code;      /* index; -1: no Lua function, or not one of the trace's */
	uint8_t ffid;  /* a fast function's; 0: a Lua function, or not known */
};

/* A guard that a call's function is this one (rec_call_specialize). */
struct func_guard {
	uint32_t ref;
	struct func func;
	uint32_t on;	/* reference of the guarded value */
	uint64_t key;	/* GCstr under which a table had it; 0: not known */
	uint32_t table; /* that table; 0: not known */
	enum lj_mm mm;	/* as which it was found in a metatable */
};

/* Copies the function of constant ref, which is a GCfunc or a pointer to bytecode. False: it is
 * neither. */
bool lj_func_of(const struct lj_trace *t, const struct lb_mem *mem, uint32_t ref, struct func *out);

/* Reads the GCfunc at addr. False: it cannot be read. */
bool lj_func_at(const struct lj_trace *t, const struct lb_mem *mem, uint64_t addr,
		struct func *out);

/* Returns the address of a closure's GCupval, which closures share; 0: it cannot be read. */
uint64_t lj_func_uv(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
		    uint32_t idx);

/* Returns the first reference in [from, to) of the address of a GCupval in a constant function; 0: none. */
uint32_t lj_func_uref(const struct lj_trace *t, const struct lb_mem *mem, uint64_t uv,
		      uint32_t from, uint32_t to);

/* Copies the TValue of a closure's upvalue, in GC64's form, if it is immutable. */
bool lj_func_upvalue(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
		     uint32_t idx, uint64_t *out);

/* True if the upvalue is certainly mutable. */
bool lj_func_upvalue_changes(const struct lj_trace *t, const struct lb_mem *mem, uint64_t closure,
			     uint32_t idx);

/* Fills in the guards of recorded calls, in order; returns how many. */
uint32_t lj_func_guards(const struct lj_trace *t, const struct lb_mem *mem,
			struct func_guard guards[LJ_FUNC_GUARDS]);

/* True if the guard may be for the function that this instruction calls. key: as in the guard, if
 * known. */
bool lj_func_is_for(const struct func_guard *g, uint32_t ins, uint64_t key);

#endif
