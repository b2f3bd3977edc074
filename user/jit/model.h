/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of a trace (layer 0, for jit/ only): IR, snapshots and prototypes as copied from the
 * target; inlined frames, recorded bytecode and labels as the higher layers compute them. */
#ifndef JIT_MODEL_H
#define JIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

#include "detect/lj/ir.h"

/* A prototype that the trace runs. */
struct lj_code {
	uint64_t proto;
	uint32_t fp;  /* fingerprint (unwind/lj/fingerprint.h) */
	uint32_t *bc; /* with the instructions restored that traces replaced */
	uint32_t sizebc;
	uint64_t *kgc; /* [i]: address of the object that operand D = i stands for */
	double *kn;    /* [i]: number */
	uint32_t nkgc, nkn;
	bool vararg;
	uint8_t numparams;
};

/* Returns the address of the object that operand i stands for; 0 if it stands for no object. */
static inline uint64_t lj_code_kgc(const struct lj_code *code, uint32_t i)
{
	return i < code->nkgc ? code->kgc[i] : 0;
}

/* A function's frame while the trace was recorded. Slots are counted as snapshots do: slot 0 holds
 * the function at the trace's own base, a frame's first local is at slot + lj_frame_slots(). */
struct lj_tframe {
	int32_t parent;		/* index; -1: not known */
	int32_t tail_called_by; /* index + 1 of the frame that it replaced by a tail call; 0:
				 * none */
	int32_t slot;		/* -1: not known */
	int32_t copied;		/* slots from a vararg function's arguments up to its frame */
	uint32_t code;
	uint32_t callpc;   /* the parent's instruction that called */
	bool returned;	   /* the trace returned to it, below its own frames (RETF) */
	bool called;	   /* the parent called a table or userdata with this __call */
	uint8_t compares;  /* LJ_MM_LT or LJ_MM_LE: it is this metamethod; LJ_MM_NONE: not known */
	uint8_t via_pcall; /* ffid of pcall() or xpcall() between it and the parent; 0: none. A tail
			    * call keeps it */
	uint64_t func;	   /* its GCfunc; 0: not known */
};

/* One instruction that was recorded, in order. */
struct bc_event {
	uint32_t pc;
	uint32_t frame : 22;
	uint32_t builtin : 7;	/* it calls this built-in function (lj_builtin()); 0: not known */
	uint32_t folded : 1;	/* its result was folded to a constant: it left no IR */
	uint32_t pure : 1;	/* it calls a built-in function that stores nothing */
	uint32_t ambiguous : 1; /* another path to the next snapshot is as likely */
};

struct lj_tsnap {
	uint16_t ref; /* of the first instruction after it */
	uint16_t mcofs;
	uint16_t branches; /* by guards: to its exit */
	uint16_t nent;
	uint16_t nlinks;
	uint64_t pc;
	int32_t slot;
	const uint32_t *map;
	/* GC32: the words behind the pc, one for each frame above the trace's, and for each continuation */
	const uint32_t *links;
	int32_t step;  /* index of the step before which, or in which, it stands; -1: not known */
	bool inside;   /* stands in a branching instruction; pc is the side not taken */
	bool on_c;     /* its topmost frame is a C function's, called by `frame` at callpc */
	int32_t frame; /* -1: not known */
	uint32_t callpc;
};

struct lj_mc_entry {
	uint32_t mcofs;
	int32_t step; /* -1: not known */
};

struct lj_trace {
	struct lj_layout lj;
	uint32_t fp; /* lj_fp_trace() */
	uint32_t nins, nk, nsnap, npre, mcloop, szmcode;
	uint32_t loopref; /* of LOOP; 0: none */
	uint64_t startpc;
	uint64_t
		loop_exit; /* the bytecode behind the loop at which a root trace began; 0: at none */
	bool by_guards;	   /* snapshots without mcofs: lj_trace_guards() found it */
	struct lj_ins *ir; /* [0] is reference nk. Words that hold a constant's value are NOPs */
	uint64_t *consts;  /* [ref - nk]: the value of a constant: KGC, KPTR, KNUM ...; 0: none */
	struct lj_tsnap *snap;
	uint32_t *map;
	uint8_t *code_bytes; /* machine code */

	struct lj_code *codes;
	uint32_t ncodes;
	struct lj_tframe *frames;
	uint32_t nframes;
	struct bc_event *history;
	uint32_t nhistory;
	int32_t *label;	   /* [ref - LJ_REF_BIAS]: step for which it was recorded; -1: not known */
	size_t cells_left; /* of alignments (attrib_mcode.c) */
	struct lj_mc_entry *mc_entries;
	uint32_t nmc_entries;
};

/* Returns instruction ref, which is in [nk, nins). */
static inline const struct lj_ins *lj_ins_at(const struct lj_trace *t, uint32_t ref)
{
	return &t->ir[ref - t->nk];
}
static inline bool lj_ref_ok(const struct lj_trace *t, uint32_t ref)
{
	return ref >= t->nk && ref < t->nins;
}

/* True if it computes an upvalue's address. */
static inline bool lj_is_uref(const struct lj_ins *ir)
{
	return ir->o == LJ_IR_UREFO || ir->o == LJ_IR_UREFC;
}

/* True for an addition or subtraction of integers without an overflow check. */
static inline bool lj_is_narrowed(const struct lj_ins *ir)
{
	return (ir->o == LJ_IR_ADD || ir->o == LJ_IR_SUB) && (ir->t & LJ_IRT_TYPE) == LJ_IRT_INT;
}

/* Returns the end of the recorded instructions. A loop's copies follow them. */
static inline uint32_t lj_recorded_end(const struct lj_trace *t)
{
	return t->loopref ? t->loopref : t->nins;
}

/* True for the guard that the function at the trace's base is the recorded one. */
static inline bool lj_guards_own(const struct lj_trace *t, const struct lj_ins *ir)
{
	return ir->o == LJ_IR_EQ && lj_ref_ok(t, ir->op1) &&
	       lj_ins_at(t, ir->op1)->o == LJ_IR_SLOAD && !lj_ins_at(t, ir->op1)->op1;
}

/* Returns how many slots a function and its link take: a frame's first local is behind these. */
static inline uint32_t lj_frame_slots(const struct lj_trace *t)
{
	return lj_is_gc32(&t->lj) ? 1 : 2;
}

/* Returns a slot's snapshot entry: flags, and a reference in the lower 16 bits; 0: there is
 * none. */
static inline uint32_t lj_snap_entry(const struct lj_tsnap *s, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < s->nent; i++)
		if (s->map[i] >> 24 == slot)
			return s->map[i];
	return 0;
}

/* Returns the value of the constant with reference ref: KGC, KPTR, KNUM ...; 0: none. */
uint64_t lj_trace_const(const struct lj_trace *t, uint32_t ref);

/* Returns the link of the frame at this slot of a snapshot, as it would be on the Lua stack; 0: it is not known. */
uint64_t lj_snap_link(const struct lj_trace *t, const struct lj_tsnap *s, int32_t slot);

/* Returns the pc at which the continuation below the frame at this slot returns; 0: it is not known. */
uint64_t lj_snap_contpc(const struct lj_trace *t, const struct lj_tsnap *s, int32_t slot);

/* Returns the string key (GCstr) of a table lookup: the instruction's operand 2. */
uint64_t lj_trace_key(const struct lj_trace *t, const struct lj_ins *ir);

/* Returns the index of the prototype whose bytecode holds this address, and the position; or -1. */
int lj_trace_code(const struct lj_trace *t, uint64_t pc, uint32_t *bcpos);

/* Returns the label of instruction ref: the step for which it was recorded. */
static inline int32_t *lj_label_of(const struct lj_trace *t, uint32_t ref)
{
	return &t->label[ref - LJ_REF_BIAS];
}
static inline const struct lj_code *lj_code_of(const struct lj_trace *t, int32_t step)
{
	return &t->codes[t->frames[t->history[step].frame].code];
}

/* Returns the bytecode instruction of a step. */
static inline uint32_t lj_step_ins(const struct lj_trace *t, uint32_t step)
{
	return lj_code_of(t, (int32_t)step)->bc[t->history[step].pc];
}

/* True if the step calls a Lua function. */
static inline bool lj_step_enters(const struct lj_trace *t, uint32_t step)
{
	const struct bc_event *next = &t->history[step + 1];

	return step + 1 < t->nhistory && !next->pc && next->frame != t->history[step].frame;
}

/* Returns the table of a lookup; for other instructions operand 1. */
uint32_t lj_trace_table(const struct lj_trace *t, const struct lj_ins *ir);

/* Frees all that lookup.c does not use: the cache holds thousands of traces. */
void lj_trace_keep_lookup(struct lj_trace *t);

#endif
