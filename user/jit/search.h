/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for the way that a trace was recorded on, between its files: jit/search.c goes on
 * and tries, jit/search_call.c knows calls and returns, jit/snap_match.c where snapshots
 * stand.
 */
#ifndef JIT_SEARCH_H
#define JIT_SEARCH_H

#include "callee.h"
#include "frames.h"
#include "attrib_ir.h"
#include "lua/lj/bc.h"

#define LJ_ALTERNATIVE 256 /* steps of another way that are looked at */

/* Another way than that which is gone: it is sought up to the next snapshot. */
struct alternative {
	uint32_t goal; /* snapshots that are met then; 0: none is sought */
	uint32_t from; /* the step that it begins at */
	bool found;
	uint32_t tries; /* of all that were sought */
	uint32_t nhistory;
	struct {
		uint32_t pc, code;
	} step[LJ_ALTERNATIVE];
};

struct path {
	struct lj_trace *t;
	const struct lb_mem *mem;
	uint32_t tries, choices;
	bool failed; /* out of memory */
	struct calls calls;
	struct alternative alt;
};

struct at {
	uint32_t pc;
	int frame;
	uint32_t snap;	/* the next to be met */
	uint32_t since; /* step at which the last one was */
	uint32_t retf;	/* reference from which the next return to a lower frame is searched */
	uint32_t guard; /* the next of guards[] */
};

/* bc_j: distance from the next instruction. */
static inline uint32_t lj_path_target(uint32_t pc, uint32_t ins)
{
	return pc + 1 + lj_bc_d(ins) - 0x8000u;
}

/* Goes on from there. False: that leads nowhere, and all is as it was. */
bool lj_path_try(struct path *p, struct at a, uint32_t pc, int frame);

/*
 * An alternative that was sought leads to the next snapshot. Returns false, for all to be taken
 * back.
 */
bool lj_path_found_alternative(struct path *p);

#define LJ_NO_INS 0xffu /* no instruction that branches */

/* To one or the other, by this instruction. As lj_path_try(). */
bool lj_path_branch(struct path *p, struct at a, uint32_t one, uint32_t other, uint32_t ins);

/* A call; then on from next, a tail call's to the caller. As lj_path_try(). */
bool lj_path_call(struct path *p, struct at a, uint32_t ins, uint32_t next, bool tail);

/* Does this instruction call a metamethod, or could it for all that is known? Which: *what. */
bool lj_path_may_call(const struct path *p, struct at a, uint32_t ins, enum calls_what *what,
		      struct callee *callee);

/* What is called is this, as far as it is known; goes on at next if it is nothing. */
bool lj_path_call_what(struct path *p, struct at a, enum calls_what what,
		       const struct callee *callee, uint32_t ins, uint32_t next, bool tail);

/* Into a Lua function. */
bool lj_path_enter(struct path *p, struct at a, const struct callee *callee, uint32_t ins,
		   bool tail);

/* To the caller; below the trace's own frames, to where a RETF says. */
bool lj_path_leave(struct path *p, struct at a);

/* Does a snapshot on the frame of a C function have that be called by the instruction at pc? True,
 * too, where its link is not known. */
bool snap_match_is_called(const struct lj_trace *t, const struct lj_tsnap *s, int frame,
			  uint32_t pc);

/* Does snapshot s stand at pc of this frame, by position and caller? */
bool snap_match_is_at(const struct path *p, const struct lj_tsnap *s, int frame, uint32_t pc);

/* Could the next snapshot be met now? Not when more was stored since the last one than the bytecode
 * on the way says. What a C function stores is not in it. */
bool snap_match_is_likely(const struct path *p, struct at a);

/* Was something recorded since the last snapshot, although no step was made? Then a loop is gone
 * round first. But a comparison has a second one behind its operands (rec_comp_prep). */
bool snap_match_is_next_turn(const struct path *p, struct at a);

/* Is the guard after the next snapshot a comparison, which a branch may have left? */
bool snap_match_guards_comparison(const struct path *p, struct at a, uint32_t ins);

/* Snapshot s stands before this step of a frame, or inside it. */
void snap_match_place(struct lj_tsnap *s, uint32_t step, int frame, bool inside);
void snap_match_unplace(struct lj_tsnap *s);

/* The snapshots of a loop's body are copies of recorded ones: they stand on the same frames. */
void snap_match_place_copies(struct lj_trace *t);

/*
 * Finds the bytecode that was recorded, and labels the intermediate code with it. 0, -EBADMSG: it
 * cannot be followed; -ENOMEM. g: global_State; names: of its functions; NULL: they are not known.
 */
int lj_trace_path(struct lj_trace *t, const struct lb_mem *mem, const struct lj_layout *lj,
		  uint64_t g, const struct lj_ffnames *names);

#endif
