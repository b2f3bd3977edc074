/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Abstract interpretation of the recorded bytecode (layer 1, for jit/ only). Values are IR
 * references: the content of each slot, and the instruction with the operation and the operands of
 * a bytecode instruction.
 */
#ifndef JIT_VALUE_H
#define JIT_VALUE_H

#include <stddef.h>

#include "ops.h"

#define SLOTS 320 /* for all frames (lj_jit.h, LJ_MAX_JSLOTS is 250) and one more */

enum value_kind {
	VAL_ENTRY_SLOT, /* the content of slot `ref` when the trace began: an SLOAD */
	VAL_UNKNOWN,	/* not known; made by step `by`. ref set: that reference plus `num`; bits_of
		      * set: some bits of that reference */
	VAL_REF,
	VAL_NUM,      /* a constant number, from the bytecode or an immutable upvalue */
	VAL_TYPENAME, /* the result of type() for a value of `type` */
	VAL_PLACE,    /* a struct or array inside a cdata, `ofs` bytes after pointer `ref` */
	VAL_OBJ,      /* a constant object from the same sources; address 0: nil, false, true, or a
		       * string concatenated from constants */
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
	uint32_t minus;	  /* VAL_UNKNOWN only: it is the negative of that reference; 0: not known */
	bool number;	  /* VAL_UNKNOWN only: it is some number */
};

/* A value that a step stored to the address computed by reference `at`. */
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
	struct value slot[SLOTS];     /* those from `top` on are VAL_ENTRY_SLOT */
	uint32_t top;
	struct value elsewhere; /* stands in for a slot whose number is not known */
	uint32_t done;		/* steps executed */
	uint32_t next_snap;	/* snapshots passed: index of the next */
	int32_t step;		/* the current one */
	uint32_t retf;		/* the last RETF: later slots are counted from another base */
	uint32_t visits;	/* instructions visited by searches: the work budget */
	int multres;		/* results that the next CALLM takes; -1: not known */
	int next_frame;		/* frame of the step after the current one; -1: there is none */
	bool enters;		/* the current step enters it */
	uint32_t lo, hi;	/* range of references that the current step may have made */
	uint32_t cur;		/* one past the last labelled reference */
	bool divides;		/* a multiplication by the reciprocal matches, too */
	bool index;		/* operands are compared as table indices */
	bool peeks;		/* instructions found are not labelled */
	bool keyed;		/* a string key is enough to match an access: its table need not be
				 * known */
	bool dead_end;		/* dead end: a step needs an instruction that is not there */

	uint32_t *newrefs; /* all NEWREFs, in order */
	uint32_t nnewrefs;
	struct stored *stores; /* in order, as a later store may have eliminated one from the IR */
	uint32_t nstores, maxstores;
	uint32_t *claimed; /* labelled references, oldest first: the trail */
	uint32_t nclaimed;
	struct value *saved; /* slots at the marks, one mark after the other */
	size_t nsaved, maxsaved;
};

/* A choice point, to which the simulation can backtrack. */
struct sim_mark {
	uint32_t top, done, next_snap, cur, nclaimed, nstores, retf;
	int multres;
	size_t saved;
};

/* Saves the state. Returns 0, or -ENOMEM with nothing changed. */
int lj_sim_mark(struct sim *l, struct sim_mark *mark);
/* Restores the state at the mark; later marks become void. The caller sets the current step
 * anew. */
void lj_sim_back(struct sim *l, const struct sim_mark *mark);

/* Records a store; returns the value stored last to that address, NULL if nothing was stored. */
void lj_value_store(struct sim *l, uint32_t at, const struct value *v);
const struct value *lj_value_stored(const struct sim *l, uint32_t at);

/* Return constants of the bytecode: a number, an object of this type (LJ_IRT_*), number or string
 * idx of code. */
struct value lj_value_number(double num);
struct value lj_value_object(uint64_t addr, uint8_t type);
struct value lj_value_const(const struct lj_code *code, uint32_t idx);
struct value lj_value_string(const struct lj_code *code, uint32_t idx);

/* True if a value's IR type determines its truth. Pointers and bytes do not: they stand for other
 * values. */
static inline bool lj_value_has_truth(uint8_t type)
{
	return type < LJ_IRT_P64 ? type != 5 /* P32 */ && type != 7 /* PROTO */
				 : (type > LJ_IRT_P64 && type <= LJ_IRT_UDATA) ||
					   type == LJ_IRT_NUM || type == LJ_IRT_INT;
}

/* True if it is a constant, even one with an unknown address. */
static inline bool lj_value_is_known(const struct value *v)
{
	return v->kind == VAL_NUM || v->kind == VAL_OBJ;
}

/* Returns the integer constant of reference ref; 0 if it is no integer constant. */
int64_t lj_value_integer(const struct lj_trace *t, uint32_t ref);

/* Copies the number or string of constant ref. False: it is neither. */
bool lj_value_constant(const struct lj_trace *t, uint32_t ref, struct value *out);

/* An affine value: reference `base` plus `ofs`. base 0: `ofs` alone. */
struct lj_affine {
	uint32_t base;
	double ofs;
};

#define SUM_VISITS 4 /* cost of one, in visited instructions */

/* Returns the affine form of a reference: follows additions of constants, and conversions. */
struct lj_affine lj_value_affine(const struct lj_trace *t, uint32_t ref);

/* True if the value certainly is reference ref. */
bool lj_value_is(const struct sim *l, const struct value *v, uint32_t ref);

/* True if it may be reference ref. */
bool lj_value_may_be(const struct sim *l, const struct value *v, uint32_t ref);

/* Sets all slots to their content at the trace's entry. */
void lj_value_unset(struct sim *l);

/* Returns slot number `slot`, which is below SLOTS. */
struct value *lj_value_at(struct sim *l, uint32_t slot);

/* Returns a frame's local; an unknown value if the frame's slot is not known. */
struct value *lj_value_slot(struct sim *l, const struct lj_tframe *f, uint32_t local);

/* Returns argument i, from 0 on, of a call in frame f. */
struct value *lj_value_arg(struct sim *l, const struct lj_tframe *f, uint32_t ins, uint32_t i);

/* Returns the reference of a value, or of a loaded slot. 0: not known. */
uint32_t lj_value_ref(const struct sim *l, const struct value *v);

/* Returns the type of a value: LJ_IRT_* or LJ_IRT_UNKNOWN. */
#define LJ_IRT_UNKNOWN 0xff
uint8_t lj_value_type(const struct sim *l, const struct value *v);

/* True if it certainly is a number. */
bool lj_value_is_number(const struct sim *l, const struct value *v);

/* Returns the C type of a value that is a cdata; 0: not known. */
uint32_t lj_value_ctype(const struct sim *l, const struct value *v);

/* Returns the C type that a ctype object names (ffi.typeof()); 0 for other cdata and unknown ones. */
uint32_t lj_value_ctype_named(const struct sim *l, const struct value *v);

/* Returns the reference of the next snapshot: the current step's instructions are below it. */
uint32_t lj_value_bound(const struct sim *l);

/* Bounds the references that step made to [*lo, *hi), by the snapshots before and after it. */
void lj_value_range(const struct sim *l, int32_t step, uint32_t *lo, uint32_t *hi);

/* Binds v to reference ref: the step that made v is the one that made ref. */
void lj_bind_ref(struct sim *l, struct value *v, uint32_t ref);

/* Sets v to reference ref. */
void lj_value_set(struct value *v, uint32_t ref);

/* True for the conversion of an integer to a number. */
bool lj_is_number_of_int(const struct lj_trace *t, uint32_t ref);

/* Sets v to an unknown result of the current step. */
void lj_set_unknown(struct sim *l, struct value *v);

/* Labels ref with the current step. */
void lj_claim_ref(struct sim *l, uint32_t ref);

typedef bool (*wanted_fn)(const struct lj_trace *t, const struct lj_ins *ir, op_set what);

/* Returns the wanted instruction with operands a and b, in either order; NULL: any. 0: none.
 * Searches first what the current step may have made, and labels it; then earlier instructions
 * (CSE). At least one operand has to be known to match. O(instructions). */
uint32_t lj_value_find(struct sim *l, wanted_fn wanted, op_set what, struct value *a,
		       struct value *b);

#endif
