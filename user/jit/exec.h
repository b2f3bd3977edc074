/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A step of the way: which instructions it made, and what it put into slots. Which of these files
 * does which bytecode: jit/attrib_ir.c (lj_label_step()). For lj_trace*.c only.
 */
#ifndef JIT_EXEC_H
#define JIT_EXEC_H

#include "value.h"

enum {
	ARGUMENTS = 16, /* of a call that are followed */
	RESULTS = 8,
};

/* One of a set of operations (a wanted_fn). */
bool lj_step_is(const struct lj_trace *t, const struct lj_ins *ir, op_set set);

/* An object's field is loaded that is a table, or one that is none (a wanted_fn): of a table its
 * metatable, of a function its globals; or its pc. */
bool lj_step_is_field(const struct lj_trace *t, const struct lj_ins *ir, op_set is_table);

/* What goes through reference `ref`: a load or a store. 0: none. */
uint32_t lj_step_through(struct sim *l, op_set ops, uint32_t ref, struct value *stored);

/* What is loaded from a place (a reference); not known, when that is 0. */
struct value lj_step_loaded(struct sim *l, uint32_t at);

/* Did the trace find that a table's array ends before an index? */
bool lj_step_beyond(struct sim *l, const struct value *table, const struct value *index);

/* What an object (a reference; 0: not known) does not have may be its metatable's: whether it has
 * one is made sure of, whatever comes of that (lj_record_mm_lookup). */
void lj_step_metatable(struct sim *l, uint32_t obj);

/* v is stored to a place; 0: it is not known. */
void lj_step_stored(struct sim *l, uint32_t at, struct value *v);

/* The string (GCstr) that the step in hand has for operand i; 0: none. */
uint64_t lj_step_string(const struct lj_trace *t, int32_t step, uint32_t i);

/* The step's result is ref, when there is one. */
void lj_step_result(struct sim *l, struct value *v, uint32_t ref);

/* A slot is loaded when it is used first. */
void lj_step_load(struct sim *l, struct value *v);

/* How many slots a call's arguments may take, up to ARGUMENTS. */
uint32_t lj_step_arguments(const struct sim *l, uint32_t ins);

/* Is what a function of math makes known, or its argument? */
bool lj_step_folds(struct sim *l, const struct lj_tframe *f, uint32_t ins, const char *name,
		   struct value *out);

/* A bit operation of two, or of the first two of many. 0: not known. */
uint32_t lj_step_bits(struct sim *l, const struct lj_tframe *f, uint32_t ins, op_set ops);

/* What a call of a function that is not Lua's makes. */
struct value lj_step_made(struct sim *l, const struct lj_tframe *f, uint32_t ins);
void lj_step_builtin(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* The step's next instruction of this operation that is nobody's yet; 0: none. */
uint32_t lj_step_next(struct sim *l, uint8_t o);

/*
 * A string that is made in a buffer, into which this was put last; NULL: whatever it was. 0: none.
 */
uint32_t lj_step_buffer(struct sim *l, const struct value *last);

/* A new cdata; 0: none. */
uint32_t lj_step_new_cdata(struct sim *l);

/* The guard of a cdata's C type (argv2cdata). */
void lj_step_ctype(struct sim *l, struct value *cdata);

/* A field or an element (its index) of a cdata, or a method of its type. False: none of these. */
bool lj_step_cdata(struct sim *l, uint32_t ins, struct value *cdata, const struct value *index,
		   struct value *dst);

/* Upvalues and tables. False: neither. */
bool lj_step_place(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* What takes a metamethod's frame its arguments. */
void lj_step_metamethod(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* Loops, calls, returns; and what else writes slots. */
void lj_step_control(struct sim *l, const struct lj_tframe *f, uint32_t ins);

#endif
