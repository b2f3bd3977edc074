/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbolic execution of one bytecode instruction (layer 2, for jit/ only): labels the IR
 * instructions that it made, and updates slots. lj_label_step() in attrib_ir.c dispatches to the
 * exec_*.c files.
 */
#ifndef JIT_EXEC_H
#define JIT_EXEC_H

#include "value.h"

enum {
	ARGUMENTS = 16, /* arguments of a call that are tracked */
	RESULTS = 8,
};

/* In the order of LJ_BC_ADDVN .. MODVN: the operations that folding may leave. */
extern const op_set lj_trace_arith[5];

/* True if the operation is one of a set (a wanted_fn). */
bool lj_step_is(const struct lj_trace *t, const struct lj_ins *ir, op_set set);

/* True for the load of an object's field that is a table (a table's metatable, a function's
 * globals), or is none (a function's pc). A wanted_fn. */
bool lj_step_is_field(const struct lj_trace *t, const struct lj_ins *ir, op_set is_table);

/* Returns the load or store through address `ref`. 0: none. */
uint32_t lj_step_through(struct sim *l, op_set ops, uint32_t ref, struct value *stored);

/* Returns the value loaded from address `at` (a reference; 0: not known, as is the value then). */
struct value lj_step_loaded(struct sim *l, uint32_t at);

/* True if the trace guards that an index is beyond a table's array. */
bool lj_step_beyond(struct sim *l, const struct value *table, const struct value *index);

/* Labels the load of an object's metatable (obj: a reference; 0: not known), and its guard. The
 * recorder makes both for a failed lookup, even without a metatable (lj_record_mm_lookup). */
void lj_step_metatable(struct sim *l, uint32_t obj);

/* Labels the store of v to address `at`, and records it. at 0: the address is not known. */
void lj_step_stored(struct sim *l, uint32_t at, struct value *v);

/* Returns the string (GCstr) that operand i of a step stands for; 0: none. */
uint64_t lj_step_string(const struct lj_trace *t, int32_t step, uint32_t i);

/* Sets v to ref; for 0 to an unknown result of the step. */
void lj_step_result(struct sim *l, struct value *v, uint32_t ref);

/* Binds a slot to its SLOAD: a slot is loaded at its first use. */
void lj_step_load(struct sim *l, struct value *v);

/* True if a math function's result is a constant, or its argument itself. */
bool lj_step_folds(struct sim *l, const struct lj_tframe *f, uint32_t ins, const char *name,
		   struct value *out);

/* Returns x to the power y (lj_opt_narrow_pow, simplify_numpow_k, lj_opt_split_pow). */
struct value lj_step_power(struct sim *l, struct value *x, struct value *y);

/* Returns the bit operation on the first two arguments. 0: not known. */
uint32_t lj_step_bits(struct sim *l, const struct lj_tframe *f, uint32_t ins, op_set ops);

/* Return, or write to slots, the results of a call of a built-in function. */
struct value lj_step_made(struct sim *l, const struct lj_tframe *f, uint32_t ins);
void lj_step_builtin(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* Return the step's next unlabelled instruction: one that is wanted, one of an operation. 0: none. */
uint32_t lj_step_next_of(struct sim *l, wanted_fn wanted, op_set what);
uint32_t lj_step_next(struct sim *l, uint8_t o);

/* Executes an arithmetic operation (which: as in lj_trace_arith) on a 64-bit cdata. False: neither operand is known to
 * be one. */
bool lj_step_int64(struct sim *l, struct value *dst, struct value *b, struct value *c,
		   uint32_t which);

/* Copies the result of tonumber() for a cdata, or for an unknown value if its next conversion is a cdata's. */
bool lj_step_tonumber(struct sim *l, struct value *cdata, struct value *out);

/* True if instruction ref certainly takes one of the n values in f's locals from `first` on: as operand, or among the
 * arguments of a call. Constants do not count. */
bool lj_step_takes(struct sim *l, uint32_t ref, const struct lj_tframe *f, uint32_t first,
		   uint32_t n);

/* Returns the string that is made of these values in a buffer. 0: none. */
uint32_t lj_step_buffer(struct sim *l, const struct lj_tframe *f, uint32_t first, uint32_t n);

/* Returns a new cdata; 0: none. */
uint32_t lj_step_new_cdata(struct sim *l);

/* Labels the guard of a cdata's C type (argv2cdata). */
void lj_step_ctype(struct sim *l, struct value *cdata);

/* Executes an access to a cdata: a field, an element (its index), a method of its type. False: none
 * of these. */
bool lj_step_cdata(struct sim *l, uint32_t ins, struct value *cdata, const struct value *index,
		   struct value *dst);

/* Returns the length of a table or string; 0: not known. */
uint32_t lj_step_length(struct sim *l, struct value *of);

/* Execute rawset(table, key, v) and table.insert(table, v). */
void lj_step_rawset(struct sim *l, struct value *table, struct value *key, struct value *v);
void lj_step_append(struct sim *l, struct value *table, struct value *v);

/* Executes accesses to upvalues and tables. False: it is neither. */
bool lj_step_memref(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* Copies the operands to a metamethod's frame. */
void lj_step_metamethod(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* Executes loops, calls, returns and all else that writes slots. */
void lj_step_control(struct sim *l, const struct lj_tframe *f, uint32_t ins);

#endif
