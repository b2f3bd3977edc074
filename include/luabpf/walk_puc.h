/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The walker for PUC Lua 5.1 to 5.5.
 *
 * A lua_State has a chain of CallInfos, one for each function that was called and not yet left
 * (lstate.h); in 5.1 an array, later a list. L->ci is the innermost, base_ci the outermost, which
 * belongs to no function:
 *
 *     L->ci --previous--> CallInfo --previous--> ... --previous--> base_ci
 *              |func              |func                               |func
 *     stack: [ function args ... ][ function args ... ]     ...     [ nil ] = L->stack
 *
 * A step emits frames and goes down the chain. Each walk proves the layout: it has to come to
 * base_ci over slots of the Lua stack, one below the other, that hold functions.
 *
 * A coroutine has no pointer to the thread that resumed it, but both have something on the C stack:
 * luaD_rawrunprotected (ldo.c) keeps a struct lua_longjmp there for each protected call, and
 * L->errorJmp is the innermost of L's. lua_resume made L's outermost one. The resumer is the next
 * that is active above that.
 *
 *     sp -> | C functions called by L             |
 *           | lua_longjmp    <- L->errorJmp       |
 *           | luaV_execute and so on, all of L    |  higher addresses
 *           | lua_longjmp    previous == NULL     |      |
 *           | lua_resume(L)                       |      v
 *           | C functions, luaV_execute of parent |
 *           | lua_longjmp    <- parent->errorJmp  |
 *           | ...                                 |
 */
#ifndef LUABPF_WALK_PUC_H
#define LUABPF_WALK_PUC_H

#include "puc_print.h"
#include "walk.h"

enum puc_phase {
	PUC_PHASE_SCAN,	    /* search the C stack for the lua_State that runs */
	PUC_PHASE_NOTE,	    /* look through the C stack below luaV_execute's frame */
	PUC_PHASE_TOP,	    /* where does the topmost function stand? */
	PUC_PHASE_COLLECTS, /* does the collector run, which a C function has called? */
	PUC_PHASE_FRAME,    /* frames */
	PUC_PHASE_JMP,	    /* to the outermost lua_longjmp of a coroutine */
};

/*
 * What is known of a closure. Within one sample the target stands still, and so it stays true. What
 * was proved of its prototype may count in later samples: lb_is_proved().
 */
struct puc_seen {
	__u64 func; /* address of the closure */
	__u64 ptr;  /* Proto, C function */
	__u64 code; /* first instruction */
	__u32 sizecode;
	__u32 print;
	__u32 sample; /* cache.sample when this was read; anything else is stale */
	__u32 kind;   /* enum lb_frame_kind */
	__u64 epoch;  /* of a prototype: lb_walk.epoch when print was made */
} LB_LINE_ALIGNED;

/* A lua_State that was looked at. */
struct puc_thread {
	__u64 L;
	__u64 g;
	__u64 ci, base_ci;
	__u64 stack, stack_last;
	__u64 jmp;     /* errorJmp; 0: none */
	__u64 key;     /* how deep it is on the C stack: errorJmp, or where it was seen */
	__u64 savedpc; /* 5.1 */
	__u64 main_L;  /* the main thread of g */
	__u32 main;    /* this is it */
	__u32 hooked;  /* 5.1: a hook or a finalizer runs */
};

/*
 * What had resumed a coroutine when it was seen last, in any process. It is proved each time: a
 * coroutine is resumed by one thread for long, mostly.
 */
struct puc_resumed {
	__u64 child, by;
};

#define PUC_SEEN_BITS 10
#define PUC_SEEN (1 << PUC_SEEN_BITS)
#define PUC_RESUMED 256 /* power of two */
#define PUC_TRIED 16	/* power of two */
#define PUC_BLOCK 128	/* words of the C stack read at once, power of two */

#define PUC_L_HEAD 128	     /* covers all of lua_State that is read, but errorJmp in 5.1 */
#define PUC_CLOSURE_HEAD 40  /* covers closure_p */
#define PUC_STACK_EXTRA 4096 /* bytes above stack_last that error handling may use (ldo.c) */

struct puc_walk {
	struct lb_walk; /* what all walkers have */

	/* set by the caller */
	struct puc_build;
	struct puc_own own;
	__u32 build_of;	     /* whose these are: the caller's to know */
	__u64 gc_lo, gc_hi;  /* text of the collector; 0, 0: not known */
	__u64 L_hint;	     /* lua_State that ran on this thread in the sample before; 0: none */
	__u32 scan_most;     /* words of the C stack searched at most; 0: PUC_SCAN_MOST */
	struct lb_gprs gprs; /* all registers; ip and sp are in regs */

	/* the lua_State in hand, the best so far while one is sought, and one that is looked at */
	struct puc_thread t, best, try;
	__u64 inner;	 /* errorJmp of the lua_State that runs: of several VMs the smallest is
			    innermost */
	__u64 ci;	 /* the frame in hand */
	__u64 above;	 /* stack slot of the function above it: each lies below the one before */
	__u64 pc;	 /* where the frame in hand stands: address of the next instruction */
	__u64 code_lo;	 /* code of the topmost function; PHASE_NOTE looks for pointers into it */
	__u64 code_size; /* bytes */

	/* what puc_look() read of the CallInfo in hand */
	__u64 func, previous, savedpc;
	__u64 fn; /* light C function */
	__u32 status;
	__s32 index;
	__u8 looked; /* it did, and has answered with index */
	__u8 phase;
	__u8 noted;    /* the C stack below luaV_execute's frame was looked through */
	__u8 pc_known; /* pc is set; else take what CallInfo holds */
	__u8 popped;   /* the topmost CallInfo was not filled in yet and passed over */
	__u8 hidden;   /* a coroutine's lua_longjmp was seen below luaV_execute's frame */
	__u8 open;     /* the best's topmost function is a C function that may run anything */
	__u8 proved;   /* the best is what resumed child, no doubt */
	__u8 unowned;  /* the innermost frame of luaV_execute is none of those that are known */
	__u8 tested;   /* what lies at the top of the C stack was tried */

	/* PHASE_SCAN, PHASE_NOTE */
	__u64 scan; /* next word */
	__u64 scan_from, scan_end;
	__u64 near;		 /* words below this address are tried as lua_States */
	__u64 seen_to;		 /* words below this address were seen */
	__u64 known[2];		 /* lua_States that are likely: what ran last, the main thread */
	__u64 known_L, known_at; /* the one of them seen last, and where */
	__u64 pending;	/* a return address into luaV_execute, whose lua_State is not known yet */
	__u64 vm_done;	/* those up to here were dealt with */
	__u64 floor;	/* errorJmps of interest lie above */
	__u64 key;	/* errorJmp of the best lua_State so far */
	__u64 child;	/* whose resumer is sought; 0: what runs is sought */
	__u64 loose;	/* a main thread without errorJmp: does it run here? 0: none was seen */
	__u64 loose_at; /* where it was seen last */
	__u64 vm_ret;	/* where the innermost return address into luaV_execute lies; 0: not seen */
	__u64 vm_ret_to;   /* that address */
	__u64 vm_ret_last; /* where the one seen last lies */
	__u64 collects;	   /* a word near sp leads into the collector; PHASE_COLLECTS: it runs */
	__u64 gc_inner;	   /* PHASE_COLLECTS: the return address that was seen last; 0: none */
	__u64 gc_within;   /* ditto, of those into the collector */
	__u64 pushed;	   /* a pointer into the topmost function's code, ditto */
	__u32 in_text;	   /* words that were seen which lead into the module's text */

	__u64 tried[PUC_TRIED];
	struct puc_seen seen[PUC_SEEN] LB_LINE_ALIGNED;
	struct puc_resumed resumed[PUC_RESUMED];
	__u64 block[PUC_BLOCK];
	__u64 block_at, block_to; /* it holds [block_at, block_to) */
	__u32 in_block;		  /* not all of it was looked at yet */
	__u32 hits, next_hit;	  /* words in it that are worth a look, and the next of them */
	__u64 any_pc;		  /* in a register */
	__u8 not_a_frame, full;	  /* how a run of frames ended */
	__u8 hit[PUC_BLOCK];	  /* their indices */
	__u64 innermost;	  /* inner of the best VM so far, of several: the caller's */
	struct lb_cache cache;
};
/* A pair of places: the first has what was noted later. */
static __always_inline struct puc_resumed *puc_resumed(struct puc_walk *w, __u64 child)
{
	return &w->resumed[(__u32)(child >> 4) * 0x9e3779b1u >> 24 & (PUC_RESUMED - 2)];
}

/* What had resumed child, by all that is known; 0: nothing is. */
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
 * For this walk: lb_read() of cache.h, where there may be nothing, as the address is a guess;
 * lb_need() and lb_need_at() of walk.h.
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

/* As puc_word(), of 4 bytes; what is read of a shorter field is masked by the caller. */
static __always_inline __u32 puc_half(const __u8 *bytes, __u16 offset)
{
	return lb_half(bytes + (offset & 0x7c), 0) >> 8 * (offset & 3);
}

/* Ditto, of one byte, in a head of at most `most` bytes, a power of two. */
static __always_inline __u8 puc_byte(const __u8 *bytes, __u16 offset, __u32 most)
{
	return lb_byte(bytes + (offset & (most - 1)), 0);
}

/* Could an object of Lua's lie here? */
static __always_inline int puc_is_pointer(__u64 addr)
{
	return !(addr & 7) && addr - (1 << 16) < (1ULL << 47) - (1 << 16);
}

static __always_inline enum lb_more puc_end(struct puc_walk *w, enum lb_end end)
{
	if (w->fault && end != LB_END_OUTSIDE)
		end = LB_END_FAULT;
	if (end == LB_END_RESOLVED && !w->rec.stack.n)
		end = LB_END_TORN; /* a lua_State that runs has a frame */
	w->end = end;
	return LB_STOP;
}

/* Bytes that may have been paged out, in place: valid until the next read. */
static __always_inline const __u8 *puc_maybe(const struct lb_mem *mem, struct puc_walk *w,
					     __u64 addr, __u32 size)
{
	return lb_maybe(mem, puc_common(w), &w->cache, addr, size);
}

/* Which string a chunk's name is. */
static __always_inline __u64 puc_name_print(const struct lb_mem *mem, struct puc_walk *w,
					    __u64 name)
{
	const __u8 *bytes;

	if (lb_is_new_name(puc_common(w), &w->cache, name) && puc_is_pointer(name)) {
		bytes = puc_maybe(mem, w, name, PUC_PRINT_NAME);
		if (bytes)
			w->name_print = puc_print_name(bytes, &w->puc);
	}
	return w->name_print;
}

/*
 * Takes the first constants into a fingerprint. Where they cannot be read, it agrees with none that
 * user space reads, and what was shipped with it is all that is known.
 */
static __always_inline __u64 puc_print_more(const struct lb_mem *mem, struct puc_walk *w,
					    __u64 print, __u64 k, __u32 sizek)
{
	const __u8 *bytes;
	__u64 str;

	if (sizek > PUC_PRINT_KS)
		sizek = PUC_PRINT_KS;
	if (!sizek || !puc_is_pointer(k))
		return print;
	bytes = puc_maybe(mem, w, k, PUC_TV_SIZE * sizek);
	if (!bytes)
		return print;
	print = puc_print_k(print, bytes, sizek, &w->puc, &str);
	if (!puc_is_pointer(str))
		return print;
	bytes = puc_maybe(mem, w, str, PUC_PRINT_STR);
	return bytes ? puc_print_str(print, bytes) : print;
}

/* Fills seen[i] with a Lua function's prototype. Returns i, or -1 when there is none. */
static __always_inline int puc_learn_proto(const struct lb_mem *mem, struct puc_walk *w, __u32 i,
					   __u64 proto)
{
	struct puc_seen *seen = &w->seen[i & (PUC_SEEN - 1)];
	__u32 size = w->puc.p_size;
	struct puc_print_head h;
	const __u8 *head;
	__u64 print;

	if (size > PUC_PROTO_HEAD)
		size = PUC_PROTO_HEAD;
	if (seen->ptr == proto && lb_is_proved(puc_common(w), seen->epoch)) {
		seen->kind = LB_FRAME_LUA;
		return (int)i;
	}
	seen->code = 0;
	seen->sizecode = 0;
	seen->print = 0;
	seen->epoch = 0;
	if (!puc_is_pointer(proto))
		return -1;
	if (puc_at(mem, w, &head, size, proto)) {
		seen->sample--;
		return -1;
	}
	if (lb_byte(head, PUC_GC_TT) != w->puc.tt_proto)
		return -1;
	seen->ptr = proto;
	print = puc_print_head(head, &w->puc, &h);
	seen->code = h.code;
	seen->sizecode = h.sizecode;
	if (seen->code & 3 || seen->code >> 47 || !seen->sizecode || seen->sizecode >> 31)
		return -1;
	print = puc_print_more(mem, w, print, h.k, h.sizek);
	print = lb_print_word(print, PUC_PRINT_FACTOR_NAME, puc_name_print(mem, w, h.source));
	seen->print = lb_print_end(print);
	seen->kind = LB_FRAME_LUA;
	seen->epoch = w->epoch;
	return (int)i;
}

/* Where a closure has its Proto or C function, within what PUC_CLOSURE_HEAD covers. */
static __always_inline __u32 puc_closure_p(const struct puc_walk *w)
{
	return w->puc.closure_p & 0x20 ? 32 : 24;
}

static __always_inline __u32 puc_seen_index(__u64 func)
{
	return lb_table_index(func, PUC_SEEN_BITS);
}

/*
 * Looks a closure up. Returns its index in seen[], or -1 when it is none. Within one sample each is
 * read once. lua: its type says that it is a Lua function; 5.1 has one type for both, 5.2.0 in the
 * closure itself.
 */
LB_SUBPROG int puc_closure(const struct lb_mem *mem, struct puc_walk *w, __u64 func, int lua)
{
	__u32 i = puc_seen_index(func);
	struct puc_seen *seen;
	const __u8 *head;
	int one_type;
	__u64 ptr;

	if (!w)
		return -1;
	seen = &w->seen[i];
	if (seen->func == func && seen->sample == w->cache.sample)
		return seen->kind ? (int)i : -1;
	if (seen->func != func)
		seen->epoch = 0;
	seen->func = func;
	seen->sample = w->cache.sample;
	seen->kind = 0;
	if (!puc_is_pointer(func))
		return -1;
	if (puc_at(mem, w, &head, PUC_CLOSURE_HEAD, func)) {
		seen->sample--; /* when it is asked for again, this has to be told again */
		return -1;
	}
	one_type = w->puc.closure_isC != PUC_NONE;
	if ((lb_byte(head, PUC_GC_TT) & PUC_TT_MASK) !=
	    (lua || one_type ? w->puc.tt_lcl : w->puc.tt_ccl))
		return -1;
	ptr = puc_word(head, (__u16)puc_closure_p(w));
	if (one_type)
		lua = !puc_byte(head, w->puc.closure_isC, 16);
	if (lua)
		return puc_learn_proto(mem, w, i, ptr);
	if (!ptr || ptr >> 47)
		return -1;
	seen->code = 0;
	seen->sizecode = 0;
	seen->print = 0;
	seen->epoch = 0;
	seen->ptr = ptr;
	seen->kind = LB_FRAME_C;
	return (int)i;
}

/* Indices of seen[], and: */
enum {
	PUC_LIGHT = PUC_SEEN, /* a light C function, its address in w->fn */
	PUC_NOT = -1,	      /* no function */
};

/* Is pc, a "next instruction" pointer, one of this code's? Entry counts, too. */
static __always_inline int puc_pc_inside(__u64 code, __u64 bytes, __u64 pc)
{
	return !(pc & 3) && pc >= code && pc - code <= bytes;
}

/*
 * Is the closure at func, of a frame below the topmost, proved in this epoch to be a Lua function's?
 * It is not read: of another one at its address, whose prototype is another, savedpc would not be
 * inside, as the prototype that is proved still has its memory (lb_is_proved()).
 */
static __always_inline int puc_is_proved(const struct puc_walk *w, __u64 func)
{
	const struct puc_seen *seen = &w->seen[puc_seen_index(func)];

	return w->rec.stack.n && seen->func == func && seen->kind == LB_FRAME_LUA &&
	       puc_pc_inside(seen->code, 4ULL * seen->sizecode, w->savedpc) &&
	       lb_is_proved((const struct lb_walk *)w, seen->epoch);
}

static __always_inline int puc_look_anew(const struct lb_mem *mem, struct puc_walk *w)
{
	const __u8 *bytes;
	__u32 size = w->puc.ci_size;
	__u64 value;
	__u8 tt;

	if (size > sizeof(w->scratch))
		size = sizeof(w->scratch);
	if (!puc_is_pointer(w->ci) || puc_at(mem, w, &bytes, size, w->ci))
		return PUC_NOT;
	w->func = puc_word(bytes, w->puc.ci_func);
	w->savedpc = puc_word(bytes, w->puc.ci_savedpc);
	w->status = puc_half(bytes, w->puc.ci_callstatus) & w->puc.cist_mask;
	w->previous = w->puc.flags & PUC_CI_ARRAY ? w->ci - w->puc.ci_size
						  : puc_word(bytes, w->puc.ci_previous);
	if (w->func <= w->t.stack || w->func >= w->above || w->func & 7)
		return PUC_NOT;
	if (puc_at(mem, w, &bytes, PUC_TV_SIZE, w->func))
		return PUC_NOT;
	value = lb_word(bytes, PUC_TV_VALUE);
	tt = lb_byte(bytes, PUC_TV_TT) & PUC_TT_MASK;
	if (tt == w->puc.tt_lcl)
		return puc_is_proved(w, value) ? (int)puc_seen_index(value)
					       : puc_closure(mem, w, value, 1);
	if (tt == w->puc.tt_ccl)
		return puc_closure(mem, w, value, 0);
	/* luaD_poscall writes a result over the function, its value before its type */
	if (tt != w->puc.tt_lcf || value < 1 << 16 || value >> 47)
		return PUC_NOT;
	w->fn = value;
	return PUC_LIGHT;
}

/*
 * Reads the CallInfo in hand, w->ci, into w. Returns what function it belongs to: an index of
 * seen[], PUC_LIGHT or PUC_NOT.
 */
LB_SUBPROG int puc_look(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w)
		return PUC_NOT;
	if (w->looked)
		return w->index;
	w->index = puc_look_anew(mem, w);
	w->looked = 1;
	return w->index;
}

static __always_inline int puc_is_lua(const struct puc_walk *w, int index)
{
	return index >= 0 && index < PUC_SEEN &&
	       w->seen[index & (PUC_SEEN - 1)].kind == LB_FRAME_LUA;
}

/* The instruction before pc, by its number in a Lua function's code; LB_NO_PC. */
static __always_inline __u32 puc_position(const struct puc_seen *seen, __u64 pc)
{
	__u32 next;

	if (!puc_pc_inside(seen->code, 4ULL * seen->sizecode, pc))
		return LB_NO_PC;
	next = (__u32)((pc - seen->code) >> 2);
	return next - (next != 0);
}

/* The bits of callstatus say of the frame above why it was called without an instruction. */
static __always_inline void puc_flag_above(struct puc_walk *w)
{
	__u32 n = w->rec.stack.n;
	__u64 flags = 0;

	if (w->flags & LB_FRAME_THREAD || !n) /* it is none of this lua_State */
		return;
	if (w->status & w->puc.cist_hooked)
		flags |= LB_FRAME_HOOK;
	if (w->status & w->puc.cist_fin)
		flags |= LB_FRAME_FIN;
	if (flags)
		w->rec.stack.frame[(n - 1) & LB_MAX_FRAMES].word |= flags << 48;
}

static __always_inline int puc_in_vm(const struct puc_walk *w, __u64 ip)
{
	return (int)lb_within(ip, w->vm_start, w->vm_end - w->vm_start);
}

/*
 * 5.1 counts tail calls of Lua functions only: it leaves the number of a C function as it was, and
 * after a return hook it is -1. It is an old one, too, while luaD_precall makes a call: that of a
 * function which has begun nothing, outside of luaV_execute. (A tail call is counted there, after
 * luaD_precall.)
 */
static __always_inline int puc_is_tail_called(const struct puc_walk *w, __u32 kind, __u64 begins)
{
	if (!(w->puc.flags & PUC_CI_ARRAY))
		return (w->status & w->puc.cist_tail) != 0;
	if (!w->rec.stack.n && w->pc == begins && !puc_in_vm(w, w->regs.ip))
		return 0;
	return kind == LB_FRAME_LUA && (__s32)w->status > 0;
}

/*
 * A tail call is under way (lvm.c, OP_TAILCALL): the callee was called, and is just being moved
 * down to the caller's place. Its function lies there already, while pc is not in its code, or at
 * its beginning: no function that has called another stands there.
 */
static __always_inline int puc_is_moving_down(const struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	const struct lb_frame *above = &w->rec.stack.frame[(n - 1) & LB_MAX_FRAMES];

	return n == 1 && !(w->flags & LB_FRAME_THREAD) && !w->pc_known && puc_is_lua(w, index) &&
	       (above->word & ((1ULL << 48) - 1)) == seen->ptr &&
	       (w->savedpc <= seen->code || w->savedpc - seen->code > 4ULL * seen->sizecode);
}

/* Appends the frame in hand, of which puc_look() returned the index. */
static __always_inline enum lb_more puc_emit(struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n >= LB_MAX_FRAMES) {
		w->rec.stack.flags |= LB_SAMPLE_CUT;
		return puc_end(w, LB_END_RESOLVED);
	}
	if (puc_is_moving_down(w, index)) {
		w->rec.stack.frame[0].word |= (__u64)LB_FRAME_TAIL << 48;
		return LB_MORE;
	}
	puc_flag_above(w);
	if (puc_is_tail_called(w, seen->kind, seen->code))
		w->flags |= LB_FRAME_TAIL;
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->pc = LB_NO_PC;
	f->print = 0;
	if (index == PUC_LIGHT) {
		f->word = LB_FRAME_WORD(LB_FRAME_C, w->flags, w->fn);
	} else {
		f->word = LB_FRAME_WORD(seen->kind, w->flags, seen->ptr);
		f->print = seen->print;
		if (seen->kind == LB_FRAME_LUA)
			f->pc = puc_position(seen, w->pc_known ? w->pc : w->savedpc);
	}
	w->flags = 0;
	w->pc_known = 0;
	w->rec.stack.n = n + 1;
	return LB_MORE;
}

/* base_ci is reached: is this a lua_State's? */
static __always_inline enum lb_more puc_step_bottom(const struct lb_mem *mem, struct puc_walk *w)
{
	const __u8 *bytes;
	__u32 size = w->puc.ci_size;

	if (size > sizeof(w->scratch))
		size = sizeof(w->scratch);
	if (puc_at(mem, w, &bytes, size, w->ci))
		return puc_end(w, LB_END_FAULT);
	if (puc_word(bytes, w->puc.ci_func) != w->t.stack)
		return puc_end(w, LB_END_TORN);
	w->status = puc_half(bytes, w->puc.ci_callstatus) & w->puc.cist_mask;
	if (!(w->puc.flags & PUC_CI_ARRAY))
		puc_flag_above(w);
	if (w->t.main) /* nobody resumes the main thread */
		return puc_end(w, LB_END_RESOLVED);
	w->phase = PUC_PHASE_JMP;
	return LB_MORE;
}

/*
 * Ditto, for most frames: a Lua function that stands where it called another, as any other does.
 * Returns 0 when it is not one of these.
 */
static __always_inline int puc_emit_plain(struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n < 2 || n >= LB_MAX_FRAMES || w->flags || w->pc_known ||
	    w->status & (w->puc.cist_tail | w->puc.cist_hooked | w->puc.cist_fin) ||
	    !puc_is_lua(w, index))
		return 0;
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->word = LB_FRAME_WORD(LB_FRAME_LUA, 0ULL, seen->ptr);
	f->print = seen->print;
	f->pc = puc_position(seen, w->savedpc);
	w->rec.stack.n = n + 1;
	return 1;
}

/*
 * Is the CallInfo in hand to be passed over, as there is no function in its slot? Of the topmost
 * that is so while a call is being set up, or a tail call moves the callee down over the caller.
 */
static __always_inline int puc_pop(struct puc_walk *w)
{
	if (w->popped || w->fault || !puc_is_pointer(w->previous) || w->previous == w->t.base_ci)
		return 0;
	w->popped = 1;
	w->ci = w->previous;
	w->looked = 0;
	return 1;
}

/*
 * A function's slot below the topmost has none. Before 5.4 that is so while a C function's pcall
 * deals with an error: luaD_pcall puts what was thrown there, before it drops the CallInfos of what
 * had failed. They run no more: goes on with the C function, on top. Returns 0 when this is not so.
 */
static __always_inline int puc_drop_failed(const struct lb_mem *mem, struct puc_walk *w)
{
	int index;

	if (w->child || !w->rec.stack.n || puc_in_vm(w, w->regs.ip) || w->func <= w->t.stack ||
	    w->func >= w->above || !puc_pop(w))
		return 0;
	index = puc_look(mem, w);
	if (index == PUC_NOT || puc_is_lua(w, index))
		return 0;
	w->rec.stack.n = 0;
	w->flags = LB_FRAME_THREAD;
	w->phase = PUC_PHASE_TOP;
	return 1;
}

struct puc_run {
	const struct lb_mem *mem;
	struct puc_walk *w;
};

/* Appends the frame of w->ci and goes to the one below. Returns 0 when there may be one. */
static long puc_run_step(__u32 turn, struct puc_run *run)
{
	struct puc_walk *w = run->w;
	int index;

	(void)turn;
	if (w->ci == w->t.base_ci)
		return 1;
	index = puc_look(mem_door(run->mem), w);
	if (index == PUC_NOT) {
		w->not_a_frame = 1;
		return 1;
	}
	if (!puc_emit_plain(w, index) && puc_emit(w, index)) {
		w->full = 1;
		return 1;
	}
	w->above = w->func;
	w->ci = w->previous;
	w->looked = 0;
	return 0;
}

LB_SUBPROG int puc_step_frames(const struct lb_mem *mem, struct puc_walk *w)
{
	struct puc_run run = {.mem = mem, .w = w};

	if (!w)
		return LB_STOP;
	w->not_a_frame = 0;
	w->full = 0;
	lb_loop(LB_MAX_FRAMES + 1, puc_run_step, &run);
	if (w->full)
		return LB_STOP;
	if (w->not_a_frame)
		return puc_drop_failed(mem, w) ? LB_MORE : puc_end(w, LB_END_TORN);
	return w->ci == w->t.base_ci ? puc_step_bottom(mem, w) : LB_MORE;
}

#endif
