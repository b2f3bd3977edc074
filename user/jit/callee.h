/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an instruction of the way calls, as far as the values that it works on tell: those that the
 * recorder had when it decided the same. For lj_trace*.c only.
 */
#ifndef JIT_CALLEE_H
#define JIT_CALLEE_H

#include "func.h"
#include "value.h"

struct calls {
	struct sim *l;
	const struct lj_ffnames *names;
	struct func_guard guards[LJ_FUNC_GUARDS];
	uint32_t nguards;
};

struct callee {
	struct func func;
	uint32_t guard;	   /* number of the guard that it is the one, from 1; 0: there is none */
	uint8_t via_pcall; /* ffid of pcall() or xpcall(), which calls it; 0: none */
	uint8_t above;	   /* slots that its frame lies above that of a function called at once */
	bool called;	   /* what was called has it for __call */
};

enum calls_what {
	CALLS_UNKNOWN, /* not told */
	CALLS_NOTHING, /* no metamethod is called */
	CALLS_THIS,
};

/* What an instruction of this frame calls that is a call, or may call a metamethod. */
enum calls_what lj_calls(const struct calls *c, const struct lj_tframe *f, uint32_t ins,
			 struct callee *out);

/* Does the trace find metamethod mm in an operand's metatable? */
bool lj_calls_of(const struct calls *c, const struct value *operand, const char *mm);

/* How many arguments a call is written with; -1: not known. Not an iterator's. */
int lj_calls_arguments(const struct sim *l, uint32_t ins);

#define LJ_CHAIN_MAX 8 /* tables that are each other's __index */

/* The table that an object's metatable has for __index (references); obj 0: that of strings. 0:
 * none that is known. */
uint32_t lj_calls_index_table(const struct sim *l, uint32_t obj);

/* The function that a cdata's C type has under a string in its __index table. */
bool lj_calls_method(const struct sim *l, const struct value *cdata, uint64_t gcstr,
		     struct value *out);

/* The GCfunc that a value is; 0: not known. */
uint64_t lj_calls_function(const struct calls *c, const struct value *v);

/* The name of a value that is a built-in function; NULL: it is none, or not known. */
const char *lj_calls_builtin(const struct calls *c, const struct value *v);

enum branch_to { BRANCH_UNKNOWN, BRANCH_NEXT, BRANCH_JUMP };

/* Where an instruction goes that goes to either of two, as far as the values on which that depends
 * tell: their types, a guard that was met before. */
enum branch_to lj_branches(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* May this guard be one that a comparison left? Not when it compares other numbers. */
bool lj_branch_may_guard(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			 const struct lj_ins *guard);

/* Would it have left a guard, which the trace does not have before its next snapshot? It compares
 * numbers, then, that are not both constant. */
bool lj_branch_needs_guard(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* The operands of an instruction as its metamethod takes them; returns how many. */
uint32_t lj_operands(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value arg[3]);

#endif
