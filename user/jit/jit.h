/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source-line attribution inside a LuaJIT trace: maps an offset in its machine code to the bytecode
 * instruction, and the inlined frames, that it was compiled from. Layer 6, the interface of
 * user/jit.
 *
 * Each guard of a trace has a snapshot, with a bytecode position. LuaJIT hoists invariant guards
 * out of loops, and arithmetic has none. So the machine code between two snapshots may come from
 * many lines and inlined functions. No record says which. But the trace keeps its bytecode, IR and
 * machine code, all three in the same order. The phases (docs/compiled.md):
 *
 *   1. search.c: the bytecode that was recorded, by a backtracking search through the snapshots;
 *   2. attrib_ir.c: the bytecode instruction of each IR instruction, by abstract interpretation;
 *   3. attrib_mcode.c: the IR instruction of each machine instruction, by sequence alignment.
 *
 * Phases 1 and 2 run as one: the values that phase 2 computes decide the branches of phase 1.
 *
 * Layers: 0 the model; 1 values, frames, functions; 2 execution of an instruction, callees, branches; 3 the
 * search; 4 labels; 5 lookup; 6 the interface, with cache.h. A file uses its own layer and lower ones, but for the
 * search, which executes its steps by attrib_ir.c.
 */
#ifndef JIT_JIT_H
#define JIT_JIT_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

struct lj_ffnames;
struct lj_trace;

/* Reads trace traceno of the VM whose global_State is g, and attributes its code. Returns 0;
 * -EBADMSG: these bytes are no trace, or its bytecode could not be followed; errors of mem_read();
 * -ENOMEM. names: the VM's functions. NULL: not known, and then callees of pcall() are not
 * followed. */
int lj_trace_read(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  uint32_t traceno, const struct lj_ffnames *names, struct lj_trace **out);
void lj_trace_free(struct lj_trace **t);

/* A trace that may be gone, as its VM may be closed at any time. */
struct lj_trace_wanted {
	uint32_t no, fp;
	/* called for each prototype that was copied with it; NULL */
	void (*saw)(void *arg, uint64_t proto, uint32_t fp);
	void *arg;
};

/* The same of this trace. -ESTALE: another one has its number, or none; what that is was not read. */
int lj_trace_read_wanted(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
			 const struct lj_trace_wanted *wanted, const struct lj_ffnames *names,
			 struct lj_trace **out);

/* Returns lj_fp_trace() of the trace as it was read. */
uint32_t lj_trace_fp(const struct lj_trace *t);

/* A frame of the machine code: function and bytecode position (in callers: of the call). */
struct lj_trace_frame {
	uint64_t proto; /* for pcall() and xpcall(): the ffid */
	bool is_c; /* snapshots only: a built-in or C function that the trace exits to; no other field is set */
	bool fast;     /* it is one of these: pc is the ffid, too, and fp is 0 */
	bool returned; /* the trace returns to it, below the frames on which it began */
	uint32_t pc;
	uint32_t fp; /* fingerprint of the prototype (unwind/lj/fingerprint.h) */
};

/* The bytecode instructions that were recorded, in order: how many, and the i-th, whose frame is not
 * fast. */
uint32_t lj_trace_recorded(const struct lj_trace *t);
struct lj_trace_frame lj_trace_recorded_at(const struct lj_trace *t, uint32_t i);

/* Deepest nesting of inlined functions that is reported. */
#define LJ_TRACE_FRAMES 32

/* Fills in the frames at machine code offset mcofs, innermost first: exact_frames from line
 * attribution, snap_frames[0..*nsnap_frames) from the snapshot. The last frame of both is the
 * lowest that the trace knows. Returns the number of exact_frames; -ENOENT: only the snapshot is
 * known. */
int lj_trace_frames(const struct lj_trace *t, uint32_t mcofs,
		    struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES],
		    struct lj_trace_frame snap_frames[LJ_TRACE_FRAMES], uint32_t *nsnap_frames);

/* The frame to which the trace returns (RETF) with the next instructions, so that jit_base may be that frame's by now:
 * the lowest of lj_trace_frames() stands on it. -ENOENT: it does not return here. */
int lj_trace_returning(const struct lj_trace *t, uint32_t mcofs, struct lj_trace_frame *lower);

#endif
