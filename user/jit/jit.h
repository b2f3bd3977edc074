/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a LuaJIT trace's machine code was made from, finer than its snapshots tell.
 *
 * A trace keeps a snapshot for each guard, and with it a bytecode position. LuaJIT moves guards
 * that do not change out of loops, and arithmetic has none: much machine code lies between two of
 * them, made from many lines, and of functions that were inlined. No record tells which; but
 * bytecode, intermediate code and machine code of the trace are all there, and in the same order.
 * So (docs/compiled.md):
 *
 *  1. jit/search.c: which bytecode was recorded, from snapshot to snapshot;
 *  2. jit/attrib_ir.c: which of it each instruction of the intermediate code comes from;
 *  3. jit/attrib_mcode.c: which of these each machine instruction was assembled from.
 *
 * The first two go hand in hand: what was made so far tells where the way goes on.
 */
#ifndef JIT_JIT_H
#define JIT_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

struct lj_ffnames;
struct lj_trace;

/*
 * Reads trace traceno of the VM whose global_State is g, and works it out. -EBADMSG: these bytes
 * are no trace, or none whose bytecode could be followed; errors of mem_read(); -ENOMEM. names: of
 * the VM's functions; NULL: they are not known, nor what pcall() calls.
 */
int lj_trace_read(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  uint32_t traceno, const struct lj_ffnames *names, struct lj_trace **out);
void lj_trace_free(struct lj_trace **t);

/* lj_fp_trace() of what was read. */
uint32_t lj_trace_fp(const struct lj_trace *t);

/*
 * A function that the machine code runs in, and where: bytecode position; of callers, of the call.
 */
struct lj_trace_frame {
	uint64_t proto; /* of pcall() and xpcall(): their ffid */
	bool fast;	/* it is one of these; pc is that number, too, print 0 */
	bool returned;	/* the trace returns to it, below the frames that it began on */
	uint32_t pc;
	uint32_t fp; /* fingerprint of the prototype (unwind/lj/fingerprint.h) */
};

/* Deepest nesting of inlined functions that is told. */
#define LJ_TRACE_FRAMES 32

/*
 * Machine code at offset mcofs stands, by its snapshot, on the frames was[0..*nwas), innermost
 * first, the last of which is the lowest that the trace knows; and was made from bytecode that
 * stands on is[]. Returns how many these are. -ENOENT: nothing finer is known than the snapshot.
 */
int lj_trace_frames(const struct lj_trace *t, uint32_t mcofs,
		    struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES],
		    struct lj_trace_frame snap_frames[LJ_TRACE_FRAMES], uint32_t *nsnap_frames);

#endif
