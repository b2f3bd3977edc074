/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The walker for LuaJIT 2.1, GC64, x86-64.
 *
 * A frame on the Lua stack (lj_frame.h, LJ_FR2):
 *
 *      base-4  base-3  base-2  base-1      | base ...
 *     [cont    contpc] func    PC/delta|ft | slots ...
 *
 * The walk keeps the base of the frame in hand, the pc at which it stands, and the cframe (the VM's
 * frame on the C stack) that runs it. A step emits the frame and goes to the one below by its link:
 *
 *     LUA    the link is the caller's pc; the instruction before it holds the distance
 *     CONT   metamethod: distance in the link, pc in the continuation's slot
 *     C, CP  called from C: distance in the link, pc from the next outer cframe
 *     VARG   a vararg function: its frame proper lies below, and is passed over
 *     PCALL  distance in the link
 *
 * At the bottom of a coroutine the walk goes on in the lua_State that resumed it: the VM's resume
 * puts the child's cframe directly below the parent's.
 *
 * In compiled code the frames of inlined functions are only virtual. The snapshot to the left of
 * the instruction pointer has them: for each frame the slot of its link and of its function, both
 * constants of the trace's IR (lj_snap.c). They are walked first, in the same way.
 */
#ifndef LUABPF_WALK_LJ_H
#define LUABPF_WALK_LJ_H

#include "layout.h"
#include "lj_print.h"
#include "walk.h"

enum lj_phase {
	LJ_PHASE_LEAF,	 /* which words that a helper pushed are BASE and PC? */
	LJ_PHASE_TRACES, /* which trace has called the collector? */
	LJ_PHASE_MCODE,	 /* which snapshot is left of the place in the machine code? */
	LJ_PHASE_SNAP,	 /* virtual frames out of the snapshot */
	LJ_PHASE_FRAME,	 /* frames on the Lua stack */
	LJ_PHASE_PARENT, /* from a coroutine to the thread that resumed it */
	LJ_PHASE_SEARCH, /* ditto, when C code lies between them */
};

/*
 * What is known of a function. Within one sample the target stands still, and so it stays true.
 * What was proved of its prototype may stay true for longer: lb_is_trusted().
 */
struct lj_seen {
	__u64 func;
	__u64 ptr; /* prototype, C function or ffid */
	__u64 bc;  /* first instruction */
	__u32 sizebc;
	__u32 print;
	__u32 sample;	/* cache.sample when this was read; anything else is stale */
	__u32 kind;	/* enum lb_frame_kind */
	__u32 trust;	/* of a prototype: lb_walk.trust when print was made */
	__u32 distance; /* in slots to the frame below, of a frame with this link */
	__u64 link;
	__u64 pad[2]; /* to a line of the processor's cache */
};

/* What a lua_State says of itself. */
struct lj_thread {
	__u64 g, base, stack, maxstack;
	__u64 cframe; /* raw */
};

/* What a cframe has saved. */
struct lj_cframe {
	__u64 pc;
	__u64 prev; /* raw */
};

#define LJ_SEEN_BITS 10
#define LJ_SEEN (1 << LJ_SEEN_BITS)
#define LJ_SNAPMAP 256 /* nent is one byte; one more for the pc */
#define LJ_VIRTUAL_BITS 7
#define LJ_VIRTUALS (1 << LJ_VIRTUAL_BITS)
#define LJ_LEFT_BITS 10
#define LJ_LEFTS (1 << LJ_LEFT_BITS)
#define LJ_SEARCH 2048 /* words of C stack searched for a cframe */
#define LJ_BLOCK 64    /* of which are read at once, and the length of a cframe more */

/*
 * The virtual frames of a snapshot, and what the walk knew when it had come through them. All of it
 * was told by the trace's constants, which are as they were while the trace lives: it may stay true
 * for as long as a prototype's fingerprint, lb_is_trusted().
 */
#define LJ_VIRTUAL_FRAMES 24
struct lj_virtual {
	__u64 map; /* address of the snapshot's entries */
	__u64 pc, snap_pc, base_func;
	__u32 print; /* of the trace */
	__u32 trust;
	__u32 n; /* frames */
	__u8 flags, skip, exact, joint;
	struct lb_frame frame[LJ_VIRTUAL_FRAMES];
};

/*
 * What the head of a trace says (GCtrace). It is read in each sample: after a flush and two
 * collections another may lie at its address, and have its number, with machine code elsewhere.
 */
struct lj_gctrace {
	__u64 ir;
	__u64 snaps, maps; /* snapshots and snapmap */
	__u64 mcode;
	__u32 szmcode;
	__u32 nk; /* IR reference of the first constant */
	__u32 print;
	__u32 nsnap, spadjust;
	__u32 pad;
};

/* Which snapshot is left of a place in a trace's machine code: as above. */
struct lj_left {
	__u64 map; /* address of the snapshot's entries */
	__u32 mcofs;
	__u32 print; /* of the trace */
	__u32 trust;
	__u32 pad;
};

struct lj_walk {
	struct lb_walk; /* what all walkers have */

	struct lj_layout lj;
	struct lj_thread head;	/* of the lua_State that was read last */
	struct lj_cframe saved; /* of the cframe that was read last */
	__u64 stack;		/* of L */
	__u64 maxstack;		/* of L */
	__u64 base;
	__u64 pc;     /* "next instruction" pointer of the frame at base; 0: unknown */
	__u64 cframe; /* raw, of the C frame that runs the frame at base */
	__u64 jit_base;
	__u64 seed;	 /* of g's strings */
	__u64 link;	 /* of the frame at base, when link_known */
	__u64 entered;	 /* C code called the frame at base, which was just walked: how far what is
			    below   lies; or 0 */
	__u64 base_func; /* of the frame at base, by a snapshot: its slot may hold the one before
			    a tail call; 0: the slot has it */
	__u64 boundary,
		boundary_below; /* frames above and below C code that was not crossed yet; or 0 */
	__u8 phase;
	__u8 link_known; /* link is in a register: the slot does not hold it yet, or not any more */
	__u8 skip;	 /* pass over this frame: it is below a vararg frame */
	__u8 exact;	 /* pc is that of the instruction itself, not of the next one */
	__u8 linked;	 /* the frame at base was come to by a link that is its pc */
	__u8 joint;	 /* the frame at base is the topmost real one below virtual ones */

	/* PHASE_TRACES: of all traces, the only one that can have called. Then that which runs. */
	__u32 next_trace, ntraces; /* to look at next; how many there are at most */
	__u32 trace;		   /* 0: none was found */
	__u32 trace_mcofs;

	/* PHASE_MCODE: binary search over snapshots */
	__u64 snap_pc; /* the snapshot's pc */
	__u32 lo, hi;
	__u32 mcofs;
	__u32 leaf_base, leaf_pc; /* PHASE_LEAF: the pair to try */

	/* snapshot cursor: slots count from the trace's base: 0 func, 1 link, 2 first local */
	__s32 entry;		   /* index into snapmap, counts down */
	__s32 slot;		   /* of the function of the virtual frame in hand */
	__s32 distance;		   /* slots to the next one, once its link was seen */
	__u32 want;		   /* enum lj_want */
	__u32 constant;		   /* IR reference of that in hand */
	__u64 consts;		   /* IR of the trace whose constants are looked through */
	__u32 parents;		   /* ... how many traces above this one */
	struct lj_gctrace gctrace; /* the trace in hand */
	struct lj_gctrace parent;  /* ... that the one in hand grew from */
	__u64 map;		   /* of the snapshot in hand, which is to be kept; 0: it is not */

	__u64 search;	/* next word of the C stack, where the block begins */
	__u32 searched; /* words so far */
	__u32 in_block; /* words of the block at which a cframe may begin; 0: it is to be read */

	struct lj_seen seen[LJ_SEEN];
	struct lj_virtual virtual[LJ_VIRTUALS];
	struct lj_left left[LJ_LEFTS];
	__u32 snapmap[LJ_SNAPMAP + 2];
	__u64 block[LJ_BLOCK + LJ_CFRAME_SIZE / 8];
	struct lb_cache cache;
};

static __always_inline struct lb_walk *lj_common(struct lj_walk *w)
{
	return (struct lb_walk *)w; /* its first member */
}

/*
 * For this walk: lb_read() of cache.h, where there may be nothing, as the address is a guess;
 * lb_need() and lb_need_at() of walk.h.
 */
static __always_inline int lj_guess(const struct lb_mem *mem, struct lj_walk *w, void *dst,
				    __u32 size, __u64 addr)
{
	return lb_read(mem, &w->cache, dst, size, addr);
}

static __always_inline int lj_read(const struct lb_mem *mem, struct lj_walk *w, void *dst,
				   __u32 size, __u64 addr)
{
	return lb_need(mem, lj_common(w), &w->cache, dst, size, addr);
}

static __always_inline int lj_at(const struct lb_mem *mem, struct lj_walk *w, const __u8 **bytes,
				 __u32 size, __u64 addr)
{
	return lb_need_at(mem, lj_common(w), &w->cache, bytes, size, addr);
}

static __always_inline enum lb_more lj_end(struct lj_walk *w, enum lb_end end)
{
	if (end == LB_END_RESOLVED && !w->rec.stack.n) /* the VM is about to return to its host */
		end = LB_END_OUTSIDE;
	if (w->fault)
		end = LB_END_FAULT;
	if (end == LB_END_RESOLVED && !w->rec.stack.n)
		end = LB_END_TORN; /* a VM that runs has a frame */
	w->end = end;
	return LB_STOP;
}

/* Bytes at addr that may be missing, in place: valid until the next read. size is at most
 * LB_READ_MOST. */
static __always_inline const __u8 *lj_maybe(const struct lb_mem *mem, struct lj_walk *w, __u64 addr,
					    __u32 size)
{
	return lb_maybe(mem, lj_common(w), &w->cache, addr, size);
}

/* Which string a chunk's name is. */
static __always_inline __u64 lj_name_print(const struct lb_mem *mem, struct lj_walk *w, __u64 name)
{
	const __u8 *bytes;

	if (lb_is_new_name(lj_common(w), &w->cache, name) && !(name & 7)) {
		bytes = lj_maybe(mem, w, name, LJ_STR_SIZE);
		if (bytes)
			w->name_print = lj_print_str(bytes);
	}
	return w->name_print;
}

/* Takes the first constants into a fingerprint. */
static __always_inline __u64 lj_print_constants(const struct lb_mem *mem, struct lj_walk *w,
						__u64 sum, __u64 kgc, __u32 nkgc)
{
	const __u8 *bytes;
	__u64 str;

	if (!nkgc || kgc & 7)
		return sum;
	bytes = lj_maybe(mem, w, kgc, LJ_PRINT_KGC);
	if (!bytes)
		return sum;
	sum = lj_print_kgc(sum, bytes, nkgc);
	str = lb_word(bytes, LJ_PRINT_KGC - 8);
	bytes = str & 7 ? 0 : lj_maybe(mem, w, str, LJ_STR_SIZE);
	return bytes ? lb_print_word(sum, LJ_PRINT_FACTOR_STR, lj_print_str(bytes)) : sum;
}

/*
 * Fingerprint of a prototype. Its name, constants and debug information may have been paged out:
 * then it agrees with none that user space reads, and what was shipped with it is all that is
 * known.
 */
static __always_inline __u32 lj_proto_print(const struct lb_mem *mem, struct lj_walk *w,
					    const __u8 *head, __u64 kind, __u64 proto)
{
	struct lj_print_parts parts;
	__u64 sum = lj_print_head(head, kind, proto, &parts);
	const __u8 *bytes;

	sum = lb_print_word(sum, LJ_PRINT_FACTOR_NAME, lj_name_print(mem, w, parts.name));
	if (parts.ndebug) {
		bytes = lj_maybe(mem, w, parts.debug, (parts.ndebug + 7) & ~7u & 127);
		if (bytes)
			sum = lj_print_debug(sum, bytes, parts.ndebug);
	}
	return lb_print_end(lj_print_constants(mem, w, sum, parts.kgc, parts.nkgc));
}

/* Fills seen[i] with the prototype whose bytecode begins at bc. Returns i, or -1 when there is
 * none. */
static __always_inline int lj_learn_proto(const struct lb_mem *mem, struct lj_walk *w, __u32 i,
					  __u64 bc)
{
	struct lj_seen *seen = &w->seen[i & (LJ_SEEN - 1)];
	const __u8 *head;
	__u64 kind;

	seen->bc = bc;
	seen->ptr = bc - LJ_PROTO_SIZE;
	if (bc & 7 || bc >> 47 || lj_at(mem, w, &head, LJ_PROTO_SIZE, seen->ptr))
		return -1;
	kind = lb_word(head, LJ_PROTO_KIND);
	if (LJ_KIND_GCT(kind) != LJ_GCT_PROTO)
		return -1;
	seen->sizebc = (__u32)(kind >> 32);
	seen->print = lj_proto_print(mem, w, head, kind, seen->ptr);
	seen->kind = LB_FRAME_LUA;
	seen->trust = w->trust;
	return (int)i;
}

/* Begins anew with an entry of seen[]. */
static __always_inline struct lj_seen *lj_forget(struct lj_walk *w, __u32 i, __u64 key)
{
	struct lj_seen *seen = &w->seen[i & (LJ_SEEN - 1)];

	seen->func = key;
	seen->sample = w->cache.sample;
	seen->kind = 0;
	seen->bc = 0;
	seen->print = 0;
	seen->trust = 0;
	seen->link = 0;
	return seen;
}

static __always_inline __u32 lj_seen_index(__u64 key)
{
	return (__u32)(key >> 3) * 0x9e3779b1u >> (32 - LJ_SEEN_BITS);
}

/* As lj_func(), for a prototype whose closure is not known. */
LB_SUBPROG int lj_proto(const struct lb_mem *mem, struct lj_walk *w, __u64 proto)
{
	__u32 i = lj_seen_index(proto);
	const struct lj_seen *seen;

	if (!w)
		return -1;
	seen = &w->seen[i];
	if (seen->func == proto && lb_is_trusted(lj_common(w), seen->trust))
		return (int)i;
	lj_forget(w, i, proto);
	return lj_learn_proto(mem, w, i, proto + LJ_PROTO_SIZE);
}

/*
 * Looks a GCfunc up. Returns its index in seen[], or -1 when there is no function at func.
 * Within one sample each function is read once.
 */
LB_SUBPROG int lj_func(const struct lb_mem *mem, struct lj_walk *w, __u64 func)
{
	__u32 i = lj_seen_index(func);
	struct lj_seen *seen;
	const __u8 *head;
	__u64 kind, pc, was;
	__u8 ffid;

	if (!w)
		return -1;
	seen = &w->seen[i];
	if (seen->func == func && seen->sample == w->cache.sample)
		return seen->kind ? (int)i : -1;
	was = seen->func == func && lb_is_trusted(lj_common(w), seen->trust) ? seen->bc : 0;
	if (!was)
		lj_forget(w, i, func);
	if (func & 7) /* no object */
		return -1;
	if (lj_at(mem, w, &head, LJ_FUNC_READ, func))
		return -1;
	kind = lb_word(head, LJ_FUNC_KIND);
	if (LJ_KIND_GCT(kind) != LJ_GCT_FUNC)
		return -1;
	ffid = (__u8)(kind >> 8 * (LJ_FUNC_FFID - LJ_FUNC_KIND));
	pc = lb_word(head, LJ_FUNC_PC);
	if (was) { /* the prototype was proved: is this its closure still? */
		if (!ffid && pc == was) {
			seen->sample = w->cache.sample;
			return (int)i;
		}
		lj_forget(w, i, func);
	}
	seen->bc = pc; /* of C and fast functions, too: one instruction in GG_State.bcff */
	seen->sizebc = 1;
	if (ffid == 1) {
		seen->ptr = lb_word(head, LJ_FUNC_F) & ((1ULL << 48) - 1);
		seen->kind = LB_FRAME_C;
		return (int)i;
	}
	if (ffid) {
		seen->ptr = ffid;
		seen->kind = LB_FRAME_FF;
		return (int)i;
	}
	return lj_learn_proto(mem, w, i, pc);
}

/* The slot's value is a function's address with its type, as frames hold it. */
static __always_inline int lj_is_func(__u64 tv)
{
	return LJ_TV_TYPE(tv) == LJ_TFUNC;
}

/* Is pc, a "next instruction" pointer, one of this function's? Entry counts, too. */
static __always_inline int lj_pc_inside(const struct lj_seen *seen, __u64 pc)
{
	return seen->bc && !(pc & 3) && pc >= seen->bc && pc - seen->bc <= 4ULL * seen->sizebc;
}

/*
 * Bytecode position of pc in a function, or LB_NO_PC. After an exit to a patched loop header pc may
 * point behind GCtrace.startins, the copy of the instruction that the patch replaced.
 */
LB_SUBPROG __u32 lj_position(const struct lb_mem *mem, struct lj_walk *w, int index, __u64 pc)
{
	const struct lj_seen *seen;
	__u64 exact, start, trace;

	if (!w)
		return LB_NO_PC;
	seen = &w->seen[index & (LJ_SEEN - 1)];
	exact = w->exact;
	if (lj_pc_inside(seen, pc)) {
		__u32 pos = (__u32)((pc - seen->bc) >> 2);

		if (exact)
			return pos < seen->sizebc ? pos : LB_NO_PC;
		return pos ? pos - 1 : 0;
	}
	if (!pc || pc & 3 || pc >> 47)
		return LB_NO_PC;
	trace = pc - 4 - LJ_TRACE_STARTINS;
	if (lj_guess(mem, w, w->scratch, LJ_TRACE_READ, trace))
		return LB_NO_PC;
	start = lb_word(w->scratch, LJ_TRACE_STARTPC);
	if (lb_byte(w->scratch, LJ_TRACE_GCT) != LJ_GCT_TRACE || !lj_pc_inside(seen, start))
		return LB_NO_PC;
	return (__u32)((start - seen->bc) >> 2);
}

/*
 * Distance in slots from a frame to the one below, by a FRAME_LUA link, the pc after a call
 * instruction (BC_CALLM .. BC_ITERN): its A. 0 when there is no call.
 */
LB_SUBPROG __u32 lj_call_distance(const struct lb_mem *mem, struct lj_walk *w, __u64 pc)
{
	__u32 ins;

	if (!w || pc & 3 || pc < 1 << 20 || pc >> 47 || lj_read(mem, w, &ins, sizeof(ins), pc - 4))
		return 0;
	if ((ins & 0xff) + 1 - w->lj.bc_call > 5)
		return 0;
	return 2 + (ins >> 8 & 0xff);
}

/*
 * Reads what the cframe in hand has saved. A frame that lua_cpcall made has no frame on the Lua
 * stack; its SAVE_NRES is negative and tells how high the stack was (lj_debug.c, debug_framepc):
 * returns 1 when it is such a one and `frame` lies below that mark, 0 when it counts, < 0 on
 * failure.
 */
LB_SUBPROG int lj_read_cframe(const struct lb_mem *mem, struct lj_walk *w, __u64 frame)
{
	const __u8 *bytes;
	__s32 nres;

	if (!w || !w->cframe || lj_at(mem, w, &bytes, LJ_CFRAME_SAVED, w->cframe))
		return -1;
	w->saved.pc = lb_word(bytes, LJ_CFRAME_PC);
	w->saved.prev = lb_word(bytes, LJ_CFRAME_PREV) & LJ_CFRAME_RAWMASK;
	nres = (__s32)lb_half(bytes, LJ_CFRAME_NRES);
	return nres < 0 && frame < w->stack + (__u64)(-(__s64)nres);
}

#define LJ_MAX_CPCALLS 8

/*
 * Crosses a boundary from Lua to the C code that called it, between two frames (their slots at
 * `frame` and `below`): takes the next outer cframe, and from it the pc at which a Lua function
 * below stands (that which a finalizer or a hook interrupted).
 */
LB_SUBPROG int lj_cross_c(const struct lb_mem *mem, struct lj_walk *w, __u64 frame, __u64 below)
{
	int crossed = 0, i, r;

	if (!w)
		return -1;
	w->pc = 0;
	for (i = 0; i < LJ_MAX_CPCALLS; i++) {
		r = lj_read_cframe(mem, w, crossed ? below : frame);
		if (r < 0)
			return -1;
		if (!r && crossed) {
			w->pc = w->saved.pc;
			return 0;
		}
		if (!r)
			crossed = 1;
		if (!w->saved.prev) /* the outermost: LJ_PHASE_PARENT goes on from it */
			return 0;
		w->cframe = w->saved.prev;
	}
	return -1;
}

/* Appends the frame of a function that stands at w->pc. */
static __always_inline enum lb_more lj_emit(const struct lb_mem *mem, struct lj_walk *w, int index)
{
	const struct lj_seen *seen = &w->seen[index & (LJ_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n >= LB_MAX_FRAMES) {
		w->rec.stack.flags |= LB_SAMPLE_CUT;
		return lj_end(w, LB_END_RESOLVED);
	}
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->word = LB_FRAME_WORD(seen->kind, w->flags, seen->ptr);
	f->print = seen->print;
	f->pc = LB_NO_PC;
	if (seen->kind == LB_FRAME_FF) {
		f->pc = (__u32)seen->ptr;
	} else if (seen->kind == LB_FRAME_LUA) {
		if (w->boundary && w->boundary_below == w->base - 8) {
			lj_cross_c(mem, w, w->boundary, w->boundary_below);
			w->boundary = 0;
		}
		f->pc = lj_position(mem, w, index, w->pc);
		if (f->pc == LB_NO_PC && w->linked)
			return lj_end(w, LB_END_TORN);
	} else if (w->linked) {
		return lj_end(w, LB_END_TORN); /* C functions make no calls by a pc */
	}
	w->linked = 0;
	w->flags = 0;
	w->exact = 0;
	w->rec.stack.n = n + 1;
	return LB_MORE;
}

static __always_inline int lj_is_main(const struct lj_walk *w)
{
	return w->L == w->g - w->lj.sizeof_L;
}

/*
 * Below the frame at base is C code. Which cframe that belongs to matters only when a Lua function
 * lies directly below (the victim of a finalizer or a hook), which is rare: so it is looked for
 * when the next boundary comes, or such a function.
 */
static __always_inline void lj_boundary(const struct lb_mem *mem, struct lj_walk *w, __u64 delta)
{
	w->pc = 0;
	/* the bottom of the main thread: nothing lies below */
	if (w->base - delta == w->stack + 16 && lj_is_main(w))
		return;
	if (w->boundary)
		lj_cross_c(mem, w, w->boundary, w->boundary_below);
	w->boundary = w->base - 8;
	w->boundary_below = w->base - delta - 8;
	w->pc = 0;
}

/*
 * At its end a trace makes its virtual frames real and moves jit_base up to the topmost one, before
 * it leaves its machine code. Then the frame at jit_base is not that of the function which the
 * virtual frames were called from: there are none any more, and the snapshot's pc is that of this
 * frame.
 */
static __always_inline int lj_snap_is_real(struct lj_walk *w, int index)
{
	const struct lj_seen *seen = &w->seen[index & (LJ_SEEN - 1)];

	w->joint = 0;
	if (!w->pc || seen->kind != LB_FRAME_LUA || lj_pc_inside(seen, w->pc) ||
	    !lj_pc_inside(seen, w->snap_pc))
		return 0;
	w->rec.stack.n = 0;
	w->pc = w->snap_pc;
	w->exact = 1;
	w->flags = LB_FRAME_THREAD | LB_FRAME_TRACE;
	return 1;
}

/*
 * A run of plain frames: Lua functions that Lua functions called, vararg functions among them, and
 * one at the end that C code did. What is not so plain is left to lj_step_frame(). Returns 1 when
 * there may be more of them.
 */
#define LJ_RUN 8

/* LUA, a pc; or C or CP, a distance. */
static __always_inline int lj_is_plain_link(const struct lj_walk *w, __u64 base, __u64 link)
{
	if (link & 1)
		return !(link & 2) && link >= 8 && link <= base - w->stack;
	return !(link & 2) && link >= 1 << 20 && !(link >> 47);
}

enum {
	LJ_HAND_SLOTS,
	LJ_HAND_CODE,
};
LB_SUBPROG int lj_run_frames(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 base, proper, pc, other, delta = 0;
	__u32 n, flags, exact, i;

	if (!w)
		return 0;
	n = w->rec.stack.n;
	flags = w->flags;
	base = w->base;
	pc = w->pc;
	exact = w->exact;
	other = w->base_func;
	if (w->skip | w->link_known || (w->boundary && !w->linked) || base > w->maxstack + 8 * 64 ||
	    base & 7 || pc & 3)
		return 0;
	lb_open_hands(&w->cache);
	LB_ROLLED
	for (i = 0; i < LJ_RUN && n < LB_MAX_FRAMES && base > w->stack + 16; i++) {
		struct lj_seen *seen;
		const __u8 *bytes;
		struct lb_frame *f;
		__u64 func, link, offset;

		bytes = lb_hold(mem, &w->cache, LJ_HAND_SLOTS, base - 16, 16);
		if (!bytes)
			break;
		func = lb_word(bytes, 0);
		link = lb_word(bytes, 8);
		proper = base;
		if ((link & 7) == LJ_FRAME_VARG && link < base - w->stack - 16) {
			proper -= link & ~7ULL;
			bytes = lb_hold(mem, &w->cache, LJ_HAND_SLOTS, proper - 16, 16);
			if (!bytes)
				break;
			link = lb_word(bytes, 8);
		}
		if (!lj_is_func(func) || !lj_is_plain_link(w, proper, link))
			break;
		func = LJ_TV_GCPTR(func);
		seen = &w->seen[lj_seen_index(func)];
		/* of a closure that took another's address pc is not inside: where two codes
		 * overlap, user space allows no trust */
		if (seen->func != func || (seen->sample != w->cache.sample &&
					   !lb_is_trusted(lj_common(w), seen->trust))) {
			lb_open_hands(&w->cache);
			if (lj_func(mem, w, func) < 0)
				break;
		}
		offset = pc - seen->bc;
		if (seen->kind != LB_FRAME_LUA || offset >= 4ULL * seen->sizebc + !exact ||
		    (other && other != func))
			break;
		if (seen->link != link && !(link & 1)) {
			__u32 ins;

			bytes = lb_hold(mem, &w->cache, LJ_HAND_CODE, link - 4, 4);
			if (!bytes)
				break;
			ins = lb_half(bytes, 0);
			if ((ins & 0xff) + 1 - w->lj.bc_call > 5)
				break;
			seen->link = link;
			seen->distance = 2 + (ins >> 8 & 0xff);
		}
		f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
		f->word = LB_FRAME_WORD(LB_FRAME_LUA, flags, seen->ptr);
		f->print = seen->print;
		f->pc = (__u32)(offset >> 2) - (offset != 0 && !exact);
		n++;
		flags = 0;
		exact = 0;
		other = 0;
		base = proper;
		if (link & 1) {
			delta = link & ~7ULL;
			break;
		}
		pc = link;
		base -= 8ULL * seen->distance;
	}
	if (n == w->rec.stack.n)
		return 0;
	w->rec.stack.n = n;
	w->base = base;
	w->pc = pc;
	w->flags = 0;
	w->exact = 0;
	w->joint = 0;
	w->base_func = 0;
	w->linked = !delta;
	w->entered = delta;
	return i == LJ_RUN;
}

/*
 * Looks up the function of the frame at base, whose slot holds func. In compiled code that may be
 * the one before a tail call; pc is one of the other's then.
 */
static __always_inline int lj_base_function(const struct lb_mem *mem, struct lj_walk *w, __u64 func)
{
	__u64 other = w->base_func;
	int index = lj_func(mem, w, func);
	int instead;

	w->base_func = 0;
	if (!other || other == func ||
	    (index >= 0 && lj_pc_inside(&w->seen[index & (LJ_SEEN - 1)], w->pc)))
		return index;
	instead = lj_func(mem, w, other);
	if (instead < 0 || !lj_pc_inside(&w->seen[instead & (LJ_SEEN - 1)], w->pc))
		return index < 0 ? index : lj_func(mem, w, func);
	return instead;
}

/*
 * A callback that C code makes into Lua has its frame before its function runs (lj_ccallback_enter)
 * and after that has returned (lj_ccallback_leave). Then C code runs, called from what lies below.
 */
static __always_inline int lj_is_idle_callback(const struct lb_mem *mem, struct lj_walk *w,
					       __u64 link, int index)
{
	const struct lj_seen *seen = &w->seen[index & (LJ_SEEN - 1)];
	const __u8 *cont;

	return !w->rec.stack.n && (link & 7) == LJ_FRAME_CONT && seen->kind == LB_FRAME_LUA &&
	       !lj_pc_inside(seen, w->pc) && !lj_at(mem, w, &cont, 8, w->base - 32) &&
	       lb_word(cont, 0) == LJ_CONT_FFI_CALLBACK;
}

/* Has the walk come to the bottom of this thread's stack? */
static __always_inline int lj_at_bottom(const struct lj_walk *w)
{
	return w->base == w->stack + 16;
}

/* Then it goes on in the thread that resumed this one; nobody resumes the main thread. */
static __always_inline enum lb_more lj_bottom(struct lj_walk *w)
{
	if (lj_is_main(w))
		return lj_end(w, LB_END_RESOLVED);
	w->phase = LJ_PHASE_PARENT;
	return LB_MORE;
}

static __always_inline enum lb_more lj_step_frame(const struct lb_mem *mem, struct lj_walk *w)
{
	const __u8 *bytes;
	__u64 func, link, delta, cont;
	__u32 distance;
	int index;

	w->entered = 0;
	if (lj_run_frames(mem, w))
		return LB_MORE;
	if (w->entered) {
		lj_boundary(mem, w, w->entered);
		w->base -= w->entered;
	}
	/* frame slot = base - 8; the lowest frame's is stack + 8, which belongs to no function */
	if (lj_at_bottom(w))
		return lj_bottom(w);
	if (w->base & 7 || w->base < w->stack + 16 || w->base > w->maxstack + 8 * 64 ||
	    w->rec.stack.n > LB_MAX_FRAMES)
		return lj_end(w, LB_END_TORN);
	if (lj_at(mem, w, &bytes, 16, w->base - 16))
		return lj_end(w, LB_END_FAULT);
	func = lb_word(bytes, 0);
	link = w->link_known ? w->link : lb_word(bytes, 8);
	w->link_known = 0;

	if (w->skip) {
		w->skip = 0;
	} else if (LJ_TV_GCPTR(func) != w->L) { /* dummy frames of errors in C hold L itself */
		if (!lj_is_func(func))
			return lj_end(w, LB_END_TORN);
		index = lj_base_function(mem, w, LJ_TV_GCPTR(func));
		if (index < 0)
			return lj_end(w, LB_END_TORN);
		if (w->joint && lj_snap_is_real(w, index))
			return LB_MORE;
		if (!lj_is_idle_callback(mem, w, link, index) && lj_emit(mem, w, index))
			return LB_STOP;
	}

	delta = link & ~7ULL;
	switch (link & 7) {
	case LJ_FRAME_LUA:
	case LJ_FRAME_LUAP: /* bit 2 belongs to the pc, which is 4-byte aligned */
		distance = lj_call_distance(mem, w, link);
		if (!distance)
			return lj_end(w, LB_END_TORN);
		w->pc = link;
		w->linked = 1;
		delta = 8ULL * distance;
		break;
	case LJ_FRAME_CONT:
		if (lj_at(mem, w, &bytes, 16, w->base - 32))
			return lj_end(w, LB_END_FAULT);
		cont = lb_word(bytes, 0);
		w->pc = lb_word(bytes, 8);
		if (cont == LJ_CONT_FFI_CALLBACK) { /* C code lies between */
			lj_boundary(mem, w, delta);
		} else if (cont == LJ_CONT_TAILCALL) { /* what lies below is yet to be called */
			w->pc = 0;
			w->skip = 1;
		}
		break;
	case LJ_FRAME_C:
	case LJ_FRAME_CP:
		lj_boundary(mem, w, delta);
		break;
	case LJ_FRAME_VARG:
		w->skip = 1;
		break;
	default: /* PCALL, PCALLH: below is the fast function itself */
		w->pc = 0;
		break;
	}
	if (!delta || delta > w->base - w->stack)
		return lj_end(w, LB_END_TORN);
	w->base -= delta;
	return lj_at_bottom(w) ? lj_bottom(w) : LB_MORE;
}

#endif
