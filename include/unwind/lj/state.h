/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The state of a LuaJIT walk: of the current sample, and its caches of earlier ones. Its reads. */
#ifndef LUABPF_UNWIND_LJ_STATE_H
#define LUABPF_UNWIND_LJ_STATE_H

#include <unwind/lj/layout.h>
#include <unwind/lj/fingerprint.h>
#include <unwind/outer.h>

/* ~LJ_VMST_* (lj_obj.h); compiled code: the trace number */
enum {
	LJ_VMST_INTERP = -1,
	LJ_VMST_C = -2,
	LJ_VMST_GC = -3,
	LJ_VMST_EXIT = -4,
	LJ_VMST_RECORD = -5,
	LJ_VMST_OPT = -6,
	LJ_VMST_ASM = -7,
};

enum lj_phase {
	LJ_PHASE_LEAF,	 /* finds BASE and PC in rbp and rbx, or where a helper has pushed these */
	LJ_PHASE_STORED, /* takes BASE and PC as the VM stored them before it called C */
	LJ_PHASE_TRACES, /* finds the trace that called the collector */
	LJ_PHASE_HEADS,	 /* finds the trace that is being entered */
	LJ_PHASE_MCODE,	 /* finds the last snapshot at or before an offset in the machine code */
	LJ_PHASE_GUARDS, /* finds that of the first guard from there on, by its exit stub: without mcofs */
	LJ_PHASE_SNAP,	 /* virtual frames from the snapshot */
	LJ_PHASE_FRAME,	 /* frames on the Lua stack */
	LJ_PHASE_PARENT, /* from a coroutine to the thread that resumed it */
	LJ_PHASE_SEARCH, /* searches the C stack for the cframe of a resumer, an outer or an unknown VM */
};

/*
 * A function that was read. Within one sample the target is stopped, so that it stays true; its
 * prototype may count in later samples, too: lb_is_proved().
 */
struct lj_seen {
	__u64 func;
	__u64 ptr; /* prototype, C function or ffid */
	__u64 bc;  /* first instruction */
	__u32 sizebc;
	__u32 fp;
	__u32 sample;	/* cache.sample when this was read; anything else is stale */
	__u32 kind;	/* enum lb_frame_kind */
	__u32 distance; /* in slots to the frame below, of a frame with this link */
	__u32 pad;
	__u64 link;
	__u64 epoch; /* of a prototype: lb_walk.epoch when fp was computed */
};
_Static_assert(sizeof(struct lj_seen) == LB_LINE, "in one line of the processor's cache");

/* The fields of a lua_State. */
struct lj_thread {
	__u64 g, base, stack, maxstack;
	__u64 cframe; /* raw */
};

/* The words saved in a cframe. */
struct lj_cframe {
	__u64 pc;
	__u64 prev; /* raw */
};

#define LJ_SEEN_BITS 10
#define LJ_SEEN (1 << LJ_SEEN_BITS)
#define LJ_SNAPMAP 256 /* nent is one byte; more for the pc, in GC32 for links, too */
#define LJ_VIRTUAL_BITS 7
#define LJ_VIRTUALS (1 << LJ_VIRTUAL_BITS)
#define LJ_SNAP_CACHE_BITS 10
#define LJ_SNAP_CACHE (1 << LJ_SNAP_CACHE_BITS)
#define LJ_SEARCH 32768 /* words of C stack searched for a cframe */
#define LJ_BLOCK 64	/* of which are read at once, and LJ_CFRAME_WORDS more */
#define LJ_CFRAME_WORDS 16
_Static_assert(LJ_CFRAME_SIZE_MOST <= 8 * LJ_CFRAME_WORDS, "a cframe's words");

/*
 * The virtual frames of a snapshot, and the walk's state below them. All of it follows from the
 * trace's constants, which do not change while the trace lives: it may count for as long as a
 * prototype's fingerprint, lb_is_proved().
 */
#define LJ_VIRTUAL_FRAMES 24
struct lj_virtual {
	__u64 map; /* address of the snapshot's entries */
	__u64 pc, snap_pc, base_func;
	__u64 epoch; /* lb_walk.epoch when this was stored */
	__u32 fp;    /* of the trace */
	__u32 n;     /* frames */
	__u8 flags, skip, exact, joint;
	struct lb_frame frame[LJ_VIRTUAL_FRAMES];
} LB_LINE_ALIGNED;

/*
 * The snapshot left of an offset in a trace's machine code: counts as long as the above. Adjacent
 * code has adjacent entries, so that those of a loop share cache lines.
 */
struct lj_snap_cache {
	__u64 epoch;  /* lb_walk.epoch when this was stored */
	__u32 fp;     /* of the trace */
	__u32 mapofs; /* of the snapshot's entries */
	__u16 lo, hi; /* offsets [lo, hi) are right of it, and left of the next one */
};
#define LJ_SNAP_CACHE_BYTES 32 /* bytes of machine code that share two entries */
#define LJ_MCOFS_MOST 0xffffu  /* the limit of SnapShot.mcofs */

/*
 * The head of a trace (GCtrace). It is read in each sample: after a flush and two collections
 * another trace may have its address and its number, with machine code elsewhere.
 */
struct lj_gctrace {
	__u64 ir;
	__u64 snaps, maps; /* snapshots and snapmap */
	__u64 mcode;
	__u64 loop_exit; /* without mcofs: the bytecode behind the loop at which it began; 0: none */
	__u32 szmcode;
	__u32 nk; /* IR reference of the first constant */
	__u32 fp;
	__u32 nsnap, spadjust;
	__u32 mcloop;	 /* offset of the loop in the machine code; 0: no loop */
	__u32 snaps_are; /* enum lj_snaps */
	__u32 nsnapmap;	 /* GC32: entries of all snapshots */
};

/* The result of the last search for a coroutine's resumer, or for the thread that runs. */
#define LJ_RESUMER_BITS 4
#define LJ_RESUMERS (1 << LJ_RESUMER_BITS)
struct lj_resumer {
	__u64 key; /* the coroutine's cframe, exclusive or g; or lj_find_far()'s */
	union {
		__u64 L;    /* with cframe; 0: too far away to be found */
		__u64 next; /* lj_find_far(): where the search goes on, while cframe is 0 */
	};
	__u64 cframe;
	__u32 sample; /* in which it was searched for */
	__u32 pad;
};

/* PHASE_LEAF: the pair of BASE and PC to try. */
struct lj_leaf {
	__u32 base, pc;
	__u8 fault; /* of the walk, before */
};

/* PHASE_TRACES: the only trace that can have called. PHASE_HEADS: the trace whose head has ip. */
struct lj_trace_search {
	__u64 ip;
	__u32 next, n; /* to read next; upper bound of their number, PHASE_HEADS: those to try */
	__u32 mcofs;   /* PHASE_TRACES: of the call, in the trace that was found */
	__u32 side;    /* PHASE_HEADS: the trace after next; 0: that is a side trace */
};

/* PHASE_MCODE: binary search for the snapshot left of mcofs. PHASE_GUARDS: search by the guards. */
struct lj_snap_search {
	__u32 mcofs;
	__u32 lo, hi;		  /* PHASE_GUARDS: lo is an offset in the machine code */
	__u32 lo_mcofs, hi_mcofs; /* where the snapshots before lo and at hi begin */
	__u32 block, size;	  /* PHASE_GUARDS: the machine code that is in block[] */
	__u32 jump, jump_found;	  /* in it */
};

/* PHASE_SNAP. Slots count from the trace's base: 0 func, 1 link, 2 first local. */
struct lj_snap_cursor {
	__s32 entry;	 /* index into snapmap, counts down */
	__s32 slot;	 /* of the function of the current virtual frame */
	__s32 distance;	 /* slots to the next one, once its link was seen */
	__u32 next_link; /* GC32: index into snapmap of the next frame's link */
	__u32 nsnapmap;	 /* ... entries that were read */
	__u32 want;	 /* enum lj_want */
	__u32 constant;	 /* IR reference of the current constant */
	__u32 parents;	 /* ancestors of the trace whose constants were searched so far */
	__u64 consts;	 /* IR of the trace whose constants are searched */
};

/* PHASE_SEARCH: linear search of the C stack for a cframe. */
struct lj_stack_search {
	__u64 addr;	 /* of block[] */
	__u64 lowest;	 /* address of a cframe */
	__u32 words;	 /* so far */
	__u32 in_block;	 /* words of the block at which a cframe may begin; 0: it is to be read */
	__u32 hit;	 /* ... whose return address may be a cframe's; LJ_BLOCK: none */
	__u32 result;	 /* enum lj_search */
	__u64 L, cframe; /* LJ_SEARCH_FOUND */
};

struct lj_walk {
	struct lb_walk; /* common to all walkers */

	struct lj_layout lj;
	__u32 build_of;		/* the build of lj: used by the caller only */
	__u64 L_hint;		/* outermost lua_State of the sample before; 0: none */
	struct lj_thread head;	/* of the lua_State that was read last */
	struct lj_cframe saved; /* of the cframe that was read last */
	__u64 stack;		/* of L */
	__u64 maxstack;		/* of L */
	__u64 base;
	__u64 pc;     /* "next instruction" pointer of the frame at base; 0: unknown */
	__u64 cframe; /* raw, of the C frame that runs the frame at base */
	__u64 jit_base;
	__u64 link;	 /* of the frame at base, when link_known */
	__u64 entered;	 /* distance to the frame below, when C code called the frame at base,
			    which was just walked; or 0 */
	__u64 base_func; /* of the frame at base, by a snapshot: its slot may hold the one before
			    a tail call; 0: the slot has it */
	__u64 boundary,
		boundary_below; /* frames above and below C code that was not crossed yet; or 0 */
	__u8 phase;
	__u8 in_loop;	 /* of rec.traceno, whose machine code has rec.mcofs there */
	__u8 moving;	 /* the Lua stack is being moved */
	__u8 link_known; /* link is in a register: the slot does not hold it yet, or no longer */
	__u8 skip;	 /* emit nothing for this frame, e.g. below a vararg frame */
	__u8 exact;	 /* pc is that of the instruction itself, not of the next one */
	__u8 linked;	 /* the walk came to the frame at base by a link that is its pc */
	__u8 joint;	 /* the frame at base is the topmost real one below virtual ones */

	__u32 trace;	/* of the compiled code that runs; 0: none was found */
	__u64 snap_pc;	/* of the current snapshot */
	__u64 map;	/* its entries, if its frames count for an epoch; else 0 */
	__u32 resumed;	/* index into resumers[] of the thread whose resumer is searched for */
	__u32 runs;	/* L is cur_L */
	__u32 switched; /* lj_find_switched() has found the thread */

	/* one for each phase that searches */
	struct lj_leaf leaf;
	struct lj_trace_search traces;
	struct lj_snap_search snaps;
	struct lj_snap_cursor cursor;
	struct lj_stack_search search;

	struct lj_gctrace gctrace; /* the current trace */
	struct lj_gctrace parent;  /* ... its ancestor that was read last */

	struct lj_resumer resumers[LJ_RESUMERS];
	struct lj_resumer nearer[LJ_RESUMERS];

	struct lj_fp_parts parts; /* of the prototype whose fingerprint is computed */

	struct lj_seen seen[LJ_SEEN] LB_LINE_ALIGNED;
	struct lj_virtual virtual[LJ_VIRTUALS];
	struct lj_snap_cache snap_cache[LJ_SNAP_CACHE] LB_LINE_ALIGNED;
	__u32 snapmap[LJ_SNAPMAP + 2];
	__u64 block[LJ_BLOCK + LJ_CFRAME_WORDS];
	struct lb_cache cache;
};
static __always_inline struct lb_walk *lj_common(struct lj_walk *w)
{
	return (struct lb_walk *)w; /* its first member */
}

/*
 * For this walk: lb_read() of cache.h, for an address that is a guess; lb_need() and lb_need_at()
 * of unwind.h.
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

/* The offset of a field in this walk's build. */
#define LJ_AT(w, name) LJ_OFF(&(w)->lj, name)

static __always_inline int lj_is_32(const struct lj_walk *w)
{
	return lj_is_gc32(&w->lj);
}

/* True if the build is one of LuaJIT 2.0, of which there are no GC64 ones. */
static __always_inline int lj_is_20(const struct lj_walk *w)
{
	return lj_is_32(w) && w->lj.v20;
}

/* Returns the number that 2.1 has for an instruction's operation, from that of CALLM on. */
static __always_inline __u32 lj_op(const struct lj_walk *w, __u32 ins)
{
	return (ins & 0xff) + (lj_is_20(w) ? LJ_OPS_20 : 0);
}

/* Returns the reference (GCRef, MRef) at an offset of bytes. */
static __always_inline __u64 lj_ref(const struct lj_walk *w, const void *bytes, __u32 offset)
{
	return lj_ref_at(&w->lj, bytes, offset);
}

/* lj_read() of a reference. */
static __always_inline int lj_read_ref(const struct lb_mem *mem, struct lj_walk *w, __u64 *ref,
				       __u64 addr)
{
	__u32 half = 0;
	int r;

	if (!lj_is_32(w))
		return lj_read(mem, w, ref, sizeof(*ref), addr);
	r = lj_read(mem, w, &half, sizeof(half), addr);
	*ref = half;
	return r;
}

/* Returns the reference in a word: in GC32 its lower half. */
static __always_inline __u64 lj_tv_low(const struct lj_walk *w, __u64 word)
{
	return lj_is_32(w) ? (__u32)word : word;
}

static __always_inline __u64 lj_tv_gcptr(const struct lj_walk *w, __u64 tv)
{
	return lj_is_32(w) ? LJ32_TV_GCPTR(tv) : LJ_TV_GCPTR(tv);
}

/* Returns the bytes at addr, valid until the next read; NULL if they cannot be read at once. */
static __always_inline const __u8 *lj_guess_at(const struct lb_mem *mem, struct lj_walk *w,
					       __u32 size, __u64 addr)
{
	return lb_ready(mem, &w->cache, addr, size) ? lb_bytes(&w->cache, addr) : 0;
}

/* Begins with the frame at w->base, the topmost one of its thread. */
static __always_inline void lj_enter_frames(struct lj_walk *w)
{
	w->flags = LB_FRAME_THREAD;
	w->base_func = 0;
	w->link_known = 0;
	w->linked = 0;
	w->boundary = 0;
	w->skip = 0;
	w->joint = 0;
	w->exact = 0;
	w->pc = 0;
	w->phase = LJ_PHASE_FRAME;
}

static __always_inline enum lb_more lj_stop(struct lj_walk *w, enum lb_status end)
{
	if (end == LB_STATUS_RESOLVED &&
	    !w->rec.stack.n) /* the VM is about to return to its host */
		end = LB_STATUS_OUTSIDE;
	if (w->fault)
		end = LB_STATUS_FAULT;
	if (end == LB_STATUS_RESOLVED && !w->rec.stack.n)
		end = LB_STATUS_STACK_CHANGING; /* a VM that runs has a frame */
	w->end = end;
	return LB_STOP;
}

/* Ends the walk with the frames so far: more lie below. */
static __always_inline enum lb_more lj_cut(struct lj_walk *w)
{
	w->rec.stack.flags |= LB_SAMPLE_CUT;
	return lj_stop(w, LB_STATUS_RESOLVED);
}

/* Returns the bytes at addr in place, valid until the next read; NULL: they cannot be read. size is
 * at most LB_READ_MOST. */
static __always_inline const __u8 *lj_maybe(const struct lb_mem *mem, struct lj_walk *w, __u64 addr,
					    __u32 size)
{
	return lb_maybe(mem, lj_common(w), &w->cache, addr, size);
}

#endif
