/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides what an instruction calls, from values and guards (layer 2, for jit/ only). The recorder
 * decided from the same values.
 */
#ifndef JIT_CALLEE_H
#define JIT_CALLEE_H

#include "func.h"
#include "value.h"

struct lj_ffnames;

struct calls {
	struct sim *l;
	const struct lj_ffnames *names;
	struct func_guard guards[LJ_FUNC_GUARDS];
	uint32_t nguards;
};

struct callee {
	struct func func;
	uint32_t guard;	   /* number of the guard that fixes it, from 1; 0: there is none */
	uint8_t via_pcall; /* ffid of the pcall() or xpcall() that calls it; 0: none */
	uint8_t above;	   /* slots from a directly called function's frame up to its frame */
	bool called;	   /* the called object has it for __call */
};

enum calls_what {
	CALLS_UNKNOWN, /* not decided */
	CALLS_NOTHING, /* no metamethod is called */
	CALLS_THIS,
};

/* Decides what an instruction calls: a call's function, or a metamethod. */
enum calls_what lj_calls(const struct calls *c, const struct lj_tframe *f, uint32_t ins,
			 struct callee *out);

/* True if the trace finds metamethod mm in an operand's metatable. */
bool lj_calls_of(const struct calls *c, const struct value *operand, enum lj_mm mm);

/* Returns the number of arguments in a call's bytecode; -1: not known. Not for iterators. */
int lj_calls_arguments(const struct sim *l, uint32_t ins);

#define LJ_CHAIN_MAX 8 /* tables in a chain of __index */

/* Returns the table that an object's metatable has for __index (references); obj 0: the one of
 * strings. 0: not known. */
uint32_t lj_calls_index_table(const struct sim *l, uint32_t obj);

/* Copies the function that a cdata's C type has under a string key in its __index table. */
bool lj_calls_method(const struct sim *l, const struct value *cdata, uint64_t gcstr,
		     struct value *out);

/* Returns the GCfunc of a value; 0: not known. */
uint64_t lj_calls_function(const struct calls *c, const struct value *v);

/* Returns the name of a built-in function; NULL for other values and unknown ones. */
const char *lj_calls_builtin(const struct calls *c, const struct value *v);

/* Copies the operands of an instruction in the order of its metamethod; returns how many. */
uint32_t lj_operands(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value arg[3]);

#endif
