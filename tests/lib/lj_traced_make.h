/* SPDX-License-Identifier: BSD-2-Clause */
/* What the makers of traces are made of: lj_traced_*.c only. */
#ifndef LIB_LJ_TRACED_MAKE_H
#define LIB_LJ_TRACED_MAKE_H

#include <unwind/lj/layout.h>

#include "lj_traced.h"
#include "lua/lj/bc.h"
#include "detect/lj/ir.h"

#define AD(op, a, d) ((uint32_t)LJ_BC_##op | (uint32_t)(a) << 8 | (uint32_t)(d) << 16)
#define ABC(op, a, b, c) AD(op, a, (uint32_t)(b) << 8 | (c))
#define JUMP(op, a, from, to) AD(op, a, 0x8000 + (to) - (from)-1)
#define HEADER(framesize) (0x59u | (framesize) << 8) /* FUNCF */

enum { SLOAD_TYPECHECK = 4, NUM = LJ_IRT_NUM, INT = LJ_IRT_INT, GUARD = LJ_IRT_GUARD };

/* Registers that the assembler gave: general ones, XMM from 16 on, none. */
enum { EAX = 0, ECX = 1, EBX = 3, EBP = 5, ESI = 6, EDI = 7, XMM6 = 22, XMM7 = 23, NO_REG = 0x80 };

struct traced_slot {
	uint8_t slot;
	uint16_t ref;
};

uint64_t tr_string(struct lj_traced *t, const char *text);

/* Without line information: positions are all that is asked for. object: its constant; 0: none. */
uint64_t tr_prototype_with(struct lj_traced *t, const uint32_t *bc, uint32_t nbc, double number,
			   uint64_t object);

uint64_t tr_prototype(struct lj_traced *t, const uint32_t *bc, uint32_t nbc, double number);

uint64_t tr_tv(const struct lj_traced *t, int32_t type, uint64_t object);

/* A table with one key. */
uint64_t tr_table(struct lj_traced *t, uint64_t key, uint64_t value);

/* With room for one upvalue. */
uint64_t tr_closure(struct lj_traced *t, uint64_t pt);

/* Sets fn's upvalue to `value`, and marks it as immutable; marks it as mutable. */
void tr_set_upvalue(struct lj_traced *t, uint64_t fn, uint64_t value);
void tr_change_upvalue(struct lj_traced *t, uint64_t fn);

/* Puts a reference (GCRef, MRef): of 32 bits in GC32. */
void tr_put_ref(struct lj_traced *t, uint64_t addr, uint64_t value);

void tr_put_ins(struct lj_traced *t, uint32_t ref, const struct lj_ins *ins);

uint16_t tr_constant(struct lj_traced *t, uint8_t o, uint8_t type, uint64_t value);

uint16_t tr_number(struct lj_traced *t, double d);

/* The same constant again where there is one, as LuaJIT does. */
uint16_t tr_integer(struct lj_traced *t, int16_t i);

uint16_t tr_ins(struct lj_traced *t, uint8_t o, uint8_t type, uint16_t op1, uint16_t op2,
		uint8_t r);

/* A snapshot before the next instruction, on main's frame. */
void tr_snapshot(struct lj_traced *t, uint16_t mcofs, uint32_t pc, const struct traced_slot *slots,
		 uint32_t n);

void tr_machine_code(struct lj_traced *t, const uint8_t *code, uint32_t size, uint32_t loop);

void tr_begins_at(struct lj_traced *t, uint32_t pc);

void tr_is(struct lj_traced *t, uint32_t mcofs, uint32_t pc, uint32_t callpc, uint32_t snap_pc);

/*
 * `for i = ..., 100`: adds 1 to i, and a guard at mcofs that leaves to pc when it is past the end.
 */
uint16_t tr_next_turn(struct lj_traced *t, uint16_t i, uint32_t mcofs, uint32_t pc,
		      const struct traced_slot *slots, uint32_t n);

/* The rows. */
void tr_lines(struct lj_traced *t);
void tr_inlined(struct lj_traced *t);
void tr_branch(struct lj_traced *t);
void tr_first_exit(struct lj_traced *t);
void tr_metamethods(struct lj_traced *t);
void tr_metatype(struct lj_traced *t);
void tr_operators(struct lj_traced *t);
void tr_returned(struct lj_traced *t);
void tr_upvalues(struct lj_traced *t);
void tr_search(struct lj_traced *t);
void tr_comparisons(struct lj_traced *t);
void tr_not_compared(struct lj_traced *t);
void tr_known(struct lj_traced *t);
void tr_characters(struct lj_traced *t);
void tr_looked_up_again(struct lj_traced *t);
void tr_no_keys(struct lj_traced *t);
void tr_new_key(struct lj_traced *t);
void tr_left_behind(struct lj_traced *t);
void tr_gc_check(struct lj_traced *t);
void tr_merged_search(struct lj_traced *t);
void tr_turns(struct lj_traced *t);
void tr_index_sum(struct lj_traced *t);
void tr_stepped(struct lj_traced *t);
void tr_gc_turn(struct lj_traced *t);
void tr_converted(struct lj_traced *t);
void tr_equality(struct lj_traced *t);
void tr_character(struct lj_traced *t);
void tr_remainder(struct lj_traced *t);
void tr_not_fetched(struct lj_traced *t);
void tr_nothing_returned(struct lj_traced *t);
void tr_same_end(struct lj_traced *t);
void tr_ambiguous(struct lj_traced *t);

#endif
