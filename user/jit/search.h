/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The backtracking search for the recorded bytecode (layer 3), between its files: search.c is the
 * driver, search_call.c enters and leaves functions, snap_match.c decides where snapshots stand.
 */
#ifndef JIT_SEARCH_H
#define JIT_SEARCH_H

#include "callee.h"
#include "frames.h"
#include "attrib_ir.h"
#include "lua/lj/bc.h"

#define LJ_ALTERNATIVE 256 /* steps of another path that are compared */

/* A path from a branch to the next snapshot. If the path over the other side explains the trace as well, the steps where
 * they differ are ambiguous. */
struct alternative {
	uint32_t goal; /* snapshots passed when it is found; 0: no search for one */
	uint32_t from; /* the step at which it begins */
	bool found;
	uint32_t tries;	 /* of all such searches */
	uint32_t unmade; /* instructions before that snapshot which no step has made */
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
	uint32_t snap;	/* the next one */
	uint32_t since; /* index in history[] of the last one */
	uint32_t retf;	/* reference from which to look for the next RETF */
	uint32_t guard; /* the next of guards[] */
};

/* Returns a jump's target (bc_j: distance from the next instruction). */
static inline uint32_t lj_path_target(uint32_t pc, uint32_t ins)
{
	return pc + 1 + lj_bc_d(ins) - 0x8000u;
}

/* Continues the search at a choice. False: a dead end; the state is restored. */
bool lj_path_try(struct path *p, struct at a, uint32_t pc, int frame);

/* Saves the path to the next snapshot. Returns false, so that the caller backtracks. */
bool lj_path_found_alternative(struct path *p);

#define LJ_NO_INS 0xffu /* not a branching instruction */

/* Continues on either side of a branch: at `next`, or at the jump's target. Returns as lj_path_try(). */
bool lj_path_branch(struct path *p, struct at a, uint32_t next, uint32_t target, uint32_t ins);

/* Executes a call and continues: at next, or for a tail call in the caller. Returns as
 * lj_path_try(). */
bool lj_path_call(struct path *p, struct at a, uint32_t ins, uint32_t next, bool tail);

/* True if the instruction calls, or may call, a metamethod. Fills in *what and *callee. */
bool lj_path_may_call(const struct path *p, struct at a, uint32_t ins, enum calls_what *what,
		      struct callee *callee);

/* Continues in the callee that *what says; at next if nothing is called. */
bool lj_path_call_what(struct path *p, struct at a, enum calls_what what,
		       const struct callee *callee, uint32_t ins, uint32_t next, bool tail);

/* Continues in a Lua function. */
bool lj_path_enter(struct path *p, struct at a, const struct callee *callee, uint32_t ins,
		   bool tail);

/* Continues in the caller; below the trace's own frames, in the one that a RETF names. */
bool lj_path_leave(struct path *p, struct at a);

/* True if snapshot s, on a C function's frame, has it called from pc; also if its link is not
 * known. */
bool snap_match_is_called(const struct lj_trace *t, const struct lj_tsnap *s, int frame,
			  uint32_t pc);

/* True if snapshot s stands at pc of this frame: same position, slot and caller. */
bool snap_match_is_at(const struct path *p, const struct lj_tsnap *s, int frame, uint32_t pc);

/* True if the next snapshot may stand here: the IR since the last one stores and computes no more
 * than the bytecode on the path. Stores of C functions are not counted. */
bool snap_match_is_likely(const struct path *p, struct at a);

/* True if IR was recorded since the last snapshot, but there is no step: another turn of the loop
 * comes first. A comparison is an exception: its second snapshot follows its operands
 * (rec_comp_prep). */
bool snap_match_is_next_turn(const struct path *p, struct at a);

/* True if the guard after the next snapshot is a comparison that this branch may have left. */
bool snap_match_guards_comparison(const struct path *p, struct at a, uint32_t ins);

/* Sets the position of snapshot s: before this step of a frame, or inside it. The second undoes
 * it. */
void snap_match_set(struct lj_tsnap *s, uint32_t step, int frame, bool inside);
void snap_match_clear(struct lj_tsnap *s);

/* Copies the frames of recorded snapshots to their copies in a loop's body. */
void snap_match_set_copies(struct lj_trace *t);

/* Finds the recorded bytecode, and labels the IR with it. g: global_State; names: the VM's
 * functions, NULL: not known. Returns 0; -EBADMSG: it cannot be followed; -ENOMEM. Bounded by the
 * limits in search.c. */
int lj_trace_path(struct lj_trace *t, const struct lb_mem *mem, const struct lj_layout *lj,
		  uint64_t g, const struct lj_ffnames *names);

#endif
