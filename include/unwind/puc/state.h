/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The state of a PUC Lua walk: of the current sample, and its caches of earlier ones. Its reads. */
#ifndef LUABPF_UNWIND_PUC_STATE_H
#define LUABPF_UNWIND_PUC_STATE_H

#include <unwind/puc/fingerprint.h>
#include <unwind/outer.h>

enum puc_phase {
	PUC_PHASE_SCAN,	    /* searches the C stack for the lua_State that runs, or a resumer */
	PUC_PHASE_WEIGH,    /* finds which of two lua_States called the C function that runs */
	PUC_PHASE_NOTE,	    /* searches the C stack below luaV_execute's frame for a pushed pc */
	PUC_PHASE_TOP,	    /* finds the topmost function and its pc */
	PUC_PHASE_COLLECTS, /* finds out whether a C function has called the collector */
	PUC_PHASE_FRAME,    /* frames on the Lua stack */
	PUC_PHASE_CODE,	    /* finds the function that has the current frame's saved pc */
	PUC_PHASE_JMP,	    /* goes to the outermost lua_longjmp of a coroutine */
};

/*
 * A closure that was read. Within one sample the target is stopped, so that it stays true; its
 * prototype may count in later samples, too: lb_is_proved().
 */
struct puc_seen {
	__u64 func; /* address of the closure */
	__u64 ptr;  /* Proto, C function */
	__u64 code; /* first instruction */
	__u32 sizecode;
	__u32 fp;
	__u32 sample; /* cache.sample when this was read; anything else is stale */
	__u32 kind;   /* enum lb_frame_kind */
	__u64 epoch;  /* of a prototype: lb_walk.epoch when fp was computed */
} LB_LINE_ALIGNED;

/* The fields of a lua_State, and its state on this C stack. */
struct puc_thread {
	__u64 L;
	__u64 g;
	__u64 ci, base_ci;
	__u64 stack, stack_last;
	__u64 jmp;     /* errorJmp; 0: none */
	__u64 depth;   /* address on the C stack, the smallest is innermost: errorJmp, or without
			  one the address where it was seen */
	__u64 savedpc; /* 5.1 */
	__u64 main_L;  /* the main thread of g */
	__u64 caller;  /* CallInfo of the topmost Lua function, or of the caller of a C function */
	__u64 resumed; /* the coroutine that it has resumed by Lua's own functions; 0: none */
	__u32 main;    /* it is the main thread */
	__u32 hooked;  /* 5.1: a hook or a finalizer runs */
};

/* A word that identifies a frame of luaV_execute, and its last address on the C stack; 0: none. */
struct puc_mark {
	__u64 word, at;
};

#define PUC_RIVALS 2			 /* compared with the best */
#define PUC_MARKS (2 * (1 + PUC_RIVALS)) /* two of each */

enum puc_weight {
	PUC_WEIGHS_NOT,
	PUC_WEIGHS_BEST,
	PUC_WEIGHS_RIVAL, /* the first; the others follow */
};

/*
 * The resumer of a coroutine when it was seen last, in any process. It is proved each time: most
 * coroutines are resumed by one thread for long.
 */
struct puc_resumed {
	__u64 child, by;
};

/*
 * C frames beyond the bound of a search, on top of the lua_State that runs: they were searched up to
 * `next`. key: that lua_State, its CallInfo and the page of sp.
 */
struct puc_gap {
	__u64 key, next;
};
#define PUC_GAP_BITS 4

enum puc_far {
	PUC_FAR_NOT,
	PUC_FAR_GAP,	/* searches a part of such C frames */
	PUC_FAR_CALLER, /* searches below the errorJmp above them */
};

/* A thread whose resumer, or calling VM, was not found when it was sought last. */
struct puc_alone {
	__u64 key;
	__u32 sample;
	__u32 pad;
};
#define PUC_ALONE_BITS 4

#define PUC_SEEN_BITS 10
#define PUC_SEEN (1 << PUC_SEEN_BITS)
#define PUC_RESUMED 256 /* power of two */
#define PUC_MAINS 64	/* power of two */
#define PUC_TRIED 16	/* power of two */
#define PUC_BLOCK 128	/* words of the C stack read at once, power of two */

#define PUC_L_HEAD 128		  /* covers all of lua_State that is read, but errorJmp in 5.1 */
#define PUC_CLOSURE_HEAD 40	  /* covers closure_p */
#define PUC_STACK_MOST (1u << 24) /* bytes: LUAI_MAXSTACK is a million slots */
#define PUC_STACK_EXTRA 4096	  /* bytes above stack_last that error handling may use (ldo.c) */
/* 5.1 has no LUAI_MAXSTACK: LUAI_MAXCALLS is 20000, each of up to 250 slots; a new block is up to twice that */
#define PUC_STACK_MOST_51 (1u << 28)

/* puc_look(): the current CallInfo. */
struct puc_look {
	__u64 func, previous, savedpc;
	__u64 fn; /* light C function */
	__u32 status;
	__s32 index;
	__u8 done;	/* it has read it, and returned index */
	__u8 moved;	/* the stack is being moved: unwind/puc/look.h */
	__u8 was_fault; /* fault, before the current CallInfo was read */
	__u8 unread;	/* the slot of the current CallInfo cannot be read */
};

/* Candidates for the lua_State that runs, or for a resumer: unwind/puc/thread.h and find.h. */
struct puc_search {
	struct puc_thread best, try; /* so far, and the one that is tried */
	/* active further out than the best, with C functions on top that the best may have called
	 * back; the innermost two, that one first. L 0: none was seen */
	struct puc_thread rival[PUC_RIVALS];
	__u64 floor;	      /* only errorJmps above this count */
	__u64 depth;	      /* the best lua_State's so far; ~0: none */
	__u64 child;	      /* coroutine whose resumer is sought; 0: the one that runs is */
	__u64 follow;	      /* a coroutine that the best has resumed, to be tried; 0: none */
	__u64 unconfirmed;    /* a main thread without errorJmp that may run here; 0: not seen */
	__u64 unconfirmed_at; /* the address where it was seen last */
	/* the best's topmost function may run another lua_State: a host's C function,
	 * coroutine.resume, a hook, or one that could not be read */
	__u8 may_call;
	__u8 try_may_call; /* may_call, of the one that is tried */
	__u8 further_out;  /* the one that is tried is not nested in the best: puc_is_better() */
	__u8 proved;	   /* the best is certain */
	__u8 missed;	   /* the search was ended by its bound */
};

/* PUC_PHASE_SCAN, PUC_PHASE_NOTE, PUC_PHASE_WEIGH: linear search of the C stack. */
struct puc_scan {
	__u64 next; /* word */
	__u64 from, end;
	__u64 near;		 /* words below this address are tried as lua_States */
	__u64 known[2];		 /* likely lua_States: the one that ran last, the main thread */
	__u64 known_L, known_at; /* the one of them seen last, and its address on the C stack */
	__u64 pending;	/* address of a return address into luaV_execute without lua_State so far */
	__u64 vm_done;	/* those up to this address are done */
	__u64 jmp_done; /* jmp_bufs up to this address are done */
	__u64 vm_ret;	/* address of the innermost return address into luaV_execute; 0: not seen */
	__u64 vm_ret_to;   /* that return address */
	__u64 vm_ret_last; /* address of the one seen last */
	__u32 most;	   /* words searched from sp on, instead of PUC_SCAN_MOST; 0: that */
	__u32 in_text;	   /* words seen that point into the module's text */
	__u8 hidden;	   /* a lua_longjmp that is its lua_State's outermost was seen */
	__u8 unowned;	   /* the innermost frame of luaV_execute is no known lua_State's */
	__u8 tested;	   /* the words at the top of the C stack were tried */
	__u64 tried[PUC_TRIED];
};

/* Words of the C stack that were read for such a search, and those of them that are worth a look. */
struct puc_block {
	__u64 word[PUC_BLOCK];
	__u64 at, to;	      /* it holds [at, to) */
	__u32 remaining;      /* some of it is to be looked at */
	__u32 hits, next_hit; /* words that are worth a look, and the next of them */
	__u8 hit[PUC_BLOCK];  /* indices of the hits */
};

/* PUC_PHASE_WEIGH: luaV_execute's frame that called the topmost C function. */
struct puc_weighing {
	struct puc_mark mark[PUC_MARKS]; /* the best's, the rivals' */
	__u64 vm_at;	 /* address of the last return address into luaV_execute; 0: none */
	__u64 caller_at; /* address in the frame that called the best's C function; 0: not seen */
	__u8 result;	 /* enum puc_weight: the caller of the C function that runs */
};

/* PUC_PHASE_TOP, PUC_PHASE_NOTE: the topmost function. */
struct puc_top {
	__u64 code_lo;	 /* its code; PUC_PHASE_NOTE looks for pointers into it */
	__u64 code_size; /* bytes */
	__u64 pushed;	 /* a pointer into it on the C stack, the last one seen */
	__u64 any_pc;	 /* the same in a register */
	__u8 noted;	 /* the C stack below luaV_execute's frame was searched */
	__u8 popped;	 /* the topmost CallInfo was not filled in yet, and was skipped */
};

/* PUC_PHASE_COLLECTS. */
struct puc_collector {
	__u64 runs;   /* a word near sp points into it; then: it runs */
	__u64 inner;  /* the return address that was seen last; 0: none */
	__u64 within; /* the same of those into the collector */
};

/* C frames beyond the bound of a search: unwind/puc/far.h. */
struct puc_far_search {
	__u8 part; /* enum puc_far */
	__u64 L;   /* the lua_State on top of which they are */
	__u64 from, to, next;
	__u32 gap_at; /* index into gaps[] */
	struct puc_gap gaps[1 << PUC_GAP_BITS];
};

/* The search for an outer VM, or a resumer. */
struct puc_outer_search {
	__u64 key;
	struct puc_alone threads[1 << PUC_ALONE_BITS];
};

/* PUC_PHASE_CODE: linear search of seen[]. */
struct puc_code_search {
	__u32 next;  /* index to be tried next */
	__u32 steps; /* in all of the walk */
	__u32 last;  /* index of the function that had the code last */
};

struct puc_walk {
	struct lb_walk; /* what all walkers have */

	/* set by the caller */
	struct puc_build;
	struct puc_stdlib stdlib;
	__u32 build_of;	    /* the build that these are of; the caller's */
	__u64 gc_lo, gc_hi; /* text of the collector; 0, 0: not known */
	__u64 L_hint;	    /* lua_State that ran on this thread in the sample before; 0: none */
	__u64 mains[PUC_MAINS]; /* by thread: the main thread of the VM that ran last; 0: none */
	struct lb_gprs gprs;	/* all registers; ip and sp are in regs */

	/* the current lua_State and its current frame */
	struct puc_thread t;
	__u64 inner;   /* depth of the lua_State that runs, or sp if that can call no other VM:
			  the smallest of several VMs is innermost */
	__u64 ci;      /* the current frame */
	__u64 above;   /* stack slot of the function above it: each is below the one before */
	__u64 pc;      /* of the current frame: address of the next instruction */
	__u32 steps;   /* of this walk, so far */
	__u8 phase;    /* enum puc_phase */
	__u8 pc_known; /* pc is set; else the CallInfo's counts */
	__u8 not_a_frame, full; /* how a run of frames ended */

	/* one for each phase */
	struct puc_look look;
	struct puc_search search;
	struct puc_scan scan;
	struct puc_weighing weigh;
	struct puc_top top;
	struct puc_collector gc;
	struct puc_far_search far;
	struct puc_outer_search alone;
	struct puc_code_search code;

	struct puc_seen seen[PUC_SEEN] LB_LINE_ALIGNED;
	struct puc_resumed resumed[PUC_RESUMED];
	struct puc_block block;
	__u64 innermost; /* inner of the best VM so far; the caller's */
	struct lb_cache cache;
};

/* Returns the pair of entries that child may have, the later one first. */
static __always_inline struct puc_resumed *puc_resumed(struct puc_walk *w, __u64 child)
{
	return &w->resumed[(__u32)(child >> 4) * 0x9e3779b1u >> 24 & (PUC_RESUMED - 2)];
}

/* Returns the last known resumer of child; 0: unknown. */
static __always_inline __u64 puc_resumed_by(struct puc_walk *w, __u64 child)
{
	const struct puc_resumed *r = puc_resumed(w, child);

	return r[0].child == child ? r[0].by : r[1].child == child ? r[1].by : 0;
}

static __always_inline void puc_note_resumed(struct puc_walk *w, __u64 child, __u64 by)
{
	struct puc_resumed *r = puc_resumed(w, child);

	if (r[1].child == child) {
		r[1].by = by;
		return;
	}
	if (r[0].child != child)
		r[1] = r[0];
	r[0].child = child;
	r[0].by = by;
}

static __always_inline void puc_set_build(struct puc_walk *w, const struct puc_build *build)
{
	*(struct puc_build *)&w->puc = *build; /* its first member */
}

static __always_inline struct lb_walk *puc_common(struct puc_walk *w)
{
	return (struct lb_walk *)w; /* its first member */
}

/*
 * For this walk: lb_read() of unwind/cache.h, for an address that is a guess; lb_need() and
 * lb_need_at() of unwind/unwind.h.
 */
static __always_inline int puc_guess(const struct lb_mem *mem, struct puc_walk *w, void *dst,
				     __u32 size, __u64 addr)
{
	return lb_read(mem, &w->cache, dst, size, addr);
}

static __always_inline int puc_read(const struct lb_mem *mem, struct puc_walk *w, void *dst,
				    __u32 size, __u64 addr)
{
	return lb_need(mem, puc_common(w), &w->cache, dst, size, addr);
}

static __always_inline int puc_at(const struct lb_mem *mem, struct puc_walk *w, const __u8 **bytes,
				  __u32 size, __u64 addr)
{
	return lb_need_at(mem, puc_common(w), &w->cache, bytes, size, addr);
}

/* As puc_word(), of 4 bytes; the caller masks a shorter field. */
static __always_inline __u32 puc_half(const __u8 *bytes, __u16 offset)
{
	return lb_half(bytes + (offset & 0x7c), 0) >> 8 * (offset & 3);
}

/* The same of one byte, in a head of at most `most` bytes, a power of two. */
static __always_inline __u8 puc_byte(const __u8 *bytes, __u16 offset, __u32 most)
{
	return lb_byte(bytes + (offset & (most - 1)), 0);
}

/* Returns the size that a Lua stack can have, in bytes. */
static __always_inline __u64 puc_stack_most(const struct puc_walk *w)
{
	return w->puc.flags & PUC_CI_ARRAY ? PUC_STACK_MOST_51 : PUC_STACK_MOST;
}

/* True if addr may be that of a Lua object. */
static __always_inline int puc_is_pointer(__u64 addr)
{
	return !(addr & 7) && addr - (1 << 16) < (1ULL << 47) - (1 << 16);
}

static __always_inline enum lb_more puc_end(struct puc_walk *w, enum lb_status end)
{
	if (w->fault && end != LB_STATUS_OUTSIDE)
		end = LB_STATUS_FAULT;
	if (end == LB_STATUS_RESOLVED && !w->rec.stack.n)
		end = LB_STATUS_STACK_CHANGING; /* a lua_State that runs has a frame */
	w->end = end;
	return LB_STOP;
}

/* Ends the walk with the frames so far: more lie below. */
static __always_inline enum lb_more puc_cut(struct puc_walk *w)
{
	w->rec.stack.flags |= LB_SAMPLE_CUT;
	return puc_end(w, LB_STATUS_RESOLVED);
}

/* Returns bytes in place, valid until the next read; 0: they may have been paged out. */
static __always_inline const __u8 *puc_maybe(const struct lb_mem *mem, struct puc_walk *w,
					     __u64 addr, __u32 size)
{
	return lb_maybe(mem, puc_common(w), &w->cache, addr, size);
}

#endif
