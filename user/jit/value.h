/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Going the way of a trace with IR references for values: what a slot holds, and which instruction
 * has the operation and the operands that the bytecode asks for. For lj_trace*.c only.
 */
#ifndef JIT_VALUE_H
#define JIT_VALUE_H

#include "ops.h"

#define SLOTS 320 /* of all frames (lj_jit.h, LJ_MAX_JSLOTS is 250) and of one more */

enum value_kind {
	VAL_ENTRY_SLOT, /* what slot `ref` held when the trace began: an SLOAD */
	VAL_UNKNOWN, /* not known; made by step `by`. Where ref is set: `num` more than that; where
			bits_of is: some bits of that */
	VAL_REF,
	VAL_NUM,      /* a number that the bytecode, or an upvalue that never changes, has */
	VAL_TYPENAME, /* what type() makes of a value of `type` */
	VAL_PLACE,    /* a struct or array inside a cdata: `ofs` bytes behind pointer `ref` */
	VAL_OBJ,      /* an object that either has; nil, false, true, and a string that was made
			   of such: address 0 */
};

struct value {
	enum value_kind kind;
	uint32_t ref;
	int32_t by; /* -1: not known */
	double num;
	uint64_t obj; /* address */
	uint8_t type; /* of the object: LJ_IRT_* */
	uint32_t ctype, ofs;
	uint32_t bits_of; /* reference; 0: none */
	bool number;	  /* of VAL_UNKNOWN: it is a number, whichever */
};

/* What the step put to the place that reference `at` is. */
struct stored {
	uint32_t at;
	struct value v;
};

struct calls;

struct sim {
	struct lj_trace *t;
	const struct lb_mem *mem;
	const struct calls *calls;
	const struct lj_cdata *cdata; /* NULL: the VM uses no C types */
	struct value slot[SLOTS];     /* those from `top` on are unset */
	uint32_t top;
	struct value elsewhere; /* a slot that is not known */
	uint32_t done;		/* steps that were gone */
	uint32_t met;		/* snapshots that were met */
	int32_t step;		/* in hand */
	uint32_t retf;		/* the last RETF: slots are counted from another base since */
	uint32_t visits;	/* of instructions, in searches */
	int multres;		/* results that the next CALLM takes; -1: not known */
	int next_frame;		/* the step after it stands on this frame; -1: there is none */
	bool enters;		/* it is the first of that */
	uint32_t lo, hi;	/* references that it may have made */
	uint32_t cur;		/* all below are settled */
	bool divides;		/* a product by the reciprocal will do */
	bool index;		/* it is looked up in a table */
	bool peeks;		/* what is found stays nobody's */
	bool keyed;		/* a string tells an access: its table need not be known */
	bool astray;		/* a step was gone that would have left what is not there */

	uint32_t *newrefs; /* all NEWREFs, in order */
	uint32_t nnewrefs;
	struct stored *stores; /* in order: a store that another one follows may be gone */
	uint32_t nstores, maxstores;
	uint32_t *settled; /* references, in the order in which they were labelled */
	uint32_t nsettled;
	struct value *saved; /* what slots held at the marks, one mark after the other */
	size_t nsaved, maxsaved;
};

/* A point of the way to which it can be taken back. */
struct sim_mark {
	uint32_t top, done, met, cur, nsettled, nstores, retf;
	int multres;
	size_t saved;
};

/* 0 or -ENOMEM: nothing was changed. */
int lj_sim_mark(struct sim *l, struct sim_mark *mark);
/* As it was at the mark; later marks are void. The step in hand is told anew. */
void lj_sim_back(struct sim *l, const struct sim_mark *mark);

/* Keeps what is stored; the last value that was, NULL: none. */
void lj_value_store(struct sim *l, uint32_t at, const struct value *v);
const struct value *lj_value_stored(const struct sim *l, uint32_t at);

/* Values that bytecode tells: a number, an object of this type (LJ_IRT_*); code's number or string
 * idx. */
struct value lj_value_number(double num);
struct value lj_value_object(uint64_t addr, uint8_t type);
struct value lj_value_const(const struct lj_code *code, uint32_t idx);
struct value lj_value_string(const struct lj_code *code, uint32_t idx);

/* Is a value of this type of the intermediate code's true, or not, by that? Not a pointer, nor a
 * byte: these stand for other values. */
static inline bool lj_value_tells_truth(uint8_t type)
{
	return type < LJ_IRT_P64 ? type != 5 /* P32 */ && type != 7 /* PROTO */
				 : (type > LJ_IRT_P64 && type <= LJ_IRT_UDATA) ||
					   type == LJ_IRT_NUM || type == LJ_IRT_INT;
}

/* A constant, if not always which one? */
static inline bool lj_value_is_known(const struct value *v)
{
	return v->kind == VAL_NUM || v->kind == VAL_OBJ;
}

/* The integer constant that reference ref is; 0: it is none. */
int64_t lj_value_integer(const struct lj_trace *t, uint32_t ref);

/* The number or string that constant ref is. False: neither. */
bool lj_value_constant(const struct lj_trace *t, uint32_t ref, struct value *out);

/* `ofs` behind what reference `base` is; 0: behind nothing. */
struct lj_sum {
	uint32_t base;
	double ofs;
};

#define SUM_VISITS 4 /* what it takes to look at one, as instructions that are looked at */

/* What additions of constants make of a reference; integers of numbers are the same. */
struct lj_sum lj_value_sum(const struct lj_trace *t, uint32_t ref);

/* Is the value reference ref for sure? */
bool lj_value_is(const struct sim *l, const struct value *v, uint32_t ref);

/* Could it be, for all that is known? */
bool lj_value_may_be(const struct sim *l, const struct value *v, uint32_t ref);

/* All slots are as the trace found them. */
void lj_value_unset(struct sim *l);

/* A slot below SLOTS. */
struct value *lj_value_at(struct sim *l, uint32_t slot);

/* A frame's local; one that is not known where the frame's place is not. */
struct value *lj_value_slot(struct sim *l, const struct lj_tframe *f, uint32_t local);

/* The reference that a value is, also that of a slot that was loaded already. 0: none is known. */
uint32_t lj_value_ref(const struct sim *l, const struct value *v);

/* LJ_IRT_*; LJ_IRT_UNKNOWN. */
#define LJ_IRT_UNKNOWN 0xff
uint8_t lj_value_type(const struct sim *l, const struct value *v);

/* Is it one for sure? */
bool lj_value_is_number(const struct sim *l, const struct value *v);

/* The C type of a value that is a cdata; 0: not known. */
uint32_t lj_value_ctype(const struct sim *l, const struct value *v);

/* The type that a value stands for (ffi.typeof()); 0: not known, or it is none. */
uint32_t lj_value_ctype_named(const struct sim *l, const struct value *v);

/* Where the next snapshot is: what the step in hand may have made lies below. */
uint32_t lj_value_bound(const struct sim *l);

/* References that step made lie in [*lo, *hi): those between the snapshots before and after it. */
void lj_value_range(const struct sim *l, int32_t step, uint32_t *lo, uint32_t *hi);

/* v turns out to be reference ref: what made it made that. */
void lj_bind_ref(struct sim *l, struct value *v, uint32_t ref);

/* v is reference ref. */
void lj_value_set(struct value *v, uint32_t ref);

/* v is what the step in hand made; which reference that is, is not known. */
void lj_set_unknown(struct sim *l, struct value *v);

/* The step in hand made ref. */
void lj_claim_ref(struct sim *l, uint32_t ref);

typedef bool (*wanted_fn)(const struct lj_trace *t, const struct lj_ins *ir, op_set what);

/*
 * The instruction that is wanted and has the operands a and b, in either order; NULL: any. First
 * among those that the step in hand may have made, which settles it; then among what was there
 * before (a common subexpression). What is known of one operand at least has to speak for it. 0:
 * none.
 */
uint32_t lj_value_find(struct sim *l, wanted_fn wanted, op_set what, struct value *a,
		       struct value *b);

#endif
