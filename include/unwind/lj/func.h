/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Functions: the GCfunc in a frame's slot, its prototype's fingerprint, and the position of a pc in
 * its bytecode. Functions that were read are kept in seen[], a direct-mapped cache.
 */
#ifndef LUABPF_UNWIND_LJ_FUNC_H
#define LUABPF_UNWIND_LJ_FUNC_H

#include <unwind/lj/state.h>

/* Returns the hash of a chunk's name; of adjacent frames' common name it is computed once. */
static __always_inline __u64 lj_name_fp(const struct lb_mem *mem, struct lj_walk *w, __u64 name)
{
	const __u8 *bytes;

	if (lb_is_new_name(lj_common(w), &w->cache, name) && !(name & 7)) {
		bytes = lj_maybe(mem, w, name, LJ_AT(w, STR_SIZE));
		if (bytes)
			w->name_fp = lj_fp_str(&w->lj, bytes);
	}
	return w->name_fp;
}

/* Returns a fingerprint with the first constants added. */
static __always_inline __u64 lj_fp_constants(const struct lb_mem *mem, struct lj_walk *w,
					     __u64 hash, const struct lj_fp_parts *parts)
{
	__u32 nkgc = parts->nkgc, nkn = parts->nkn;
	const __u8 *bytes;
	__u64 str;

	if (!(nkgc | nkn) || parts->kgc & 7)
		return hash;
	bytes = lj_maybe(mem, w, parts->kgc, (LJ_AT(w, FP_KGC) + 8 * nkn) & 63);
	if (!bytes)
		return hash;
	hash = lj_fp_kn(hash, bytes + LJ_AT(w, FP_KGC), nkn);
	if (!nkgc)
		return hash;
	hash = lj_fp_kgc(&w->lj, hash, bytes, nkgc);
	str = lj_ref(w, bytes, LJ_AT(w, FP_KGC_FIRST));
	bytes = str & 7 ? 0 : lj_maybe(mem, w, str, LJ_AT(w, STR_SIZE));
	return bytes ? lb_fp_word(hash, LJ_FP_FACTOR_STR, lj_fp_str(&w->lj, bytes)) : hash;
}

/*
 * Returns a prototype's fingerprint. Its name, constants and debug information may have been paged
 * out: then it matches none that user space computes, and only the sent bytes are known.
 */
static __always_inline __u32 lj_proto_fp(const struct lb_mem *mem, struct lj_walk *w,
					 const __u8 *head, __u64 kind, __u64 proto)
{
	struct lj_fp_parts *parts = &w->parts; /* not on BPF's stack */
	__u64 hash = lj_fp_head(&w->lj, head, kind, proto, parts);
	const __u8 *bytes;

	hash = lb_fp_word(hash, LJ_FP_FACTOR_NAME, lj_name_fp(mem, w, parts->name));
	if (parts->ndebug) {
		bytes = lj_maybe(mem, w, parts->debug, (parts->ndebug + 7) & ~7u & 127);
		if (bytes)
			hash = lj_fp_debug(hash, bytes, parts->ndebug);
	}
	return lb_fp_end(lj_fp_constants(mem, w, hash, parts));
}

/*
 * As lj_at(). A GC32 frame's function has no tag, so that the object behind it may be a guess that
 * cannot be read.
 */
static __always_inline int lj_func_bytes(const struct lb_mem *mem, struct lj_walk *w,
					 const __u8 **bytes, __u32 size, __u64 addr)
{
	if (!lj_is_32(w))
		return lj_at(mem, w, bytes, size, addr);
	*bytes = lj_maybe(mem, w, addr, size);
	return *bytes ? 0 : -1;
}

/* Fills seen[i] with the prototype whose bytecode begins at bc. Returns 0, or -1
 * if the bytes before bc are no GCproto. */
LB_SUBPROG int lj_learn_proto(const struct lb_mem *mem, struct lj_walk *w, __u32 i, __u64 bc)
{
	struct lj_seen *seen;
	const __u8 *head;
	__u64 kind;

	if (!w)
		return -1;
	seen = &w->seen[i & (LJ_SEEN - 1)];
	seen->bc = bc;
	seen->ptr = bc - LJ_AT(w, PROTO_SIZE);
	if (bc & 7 || bc >> 47 || lj_func_bytes(mem, w, &head, LJ_AT(w, PROTO_SIZE), seen->ptr))
		return -1;
	kind = lb_word(head, LJ_AT(w, PROTO_KIND));
	if (LJ_KIND_GCT(kind) != LJ_GCT_PROTO)
		return -1;
	seen->sizebc = (__u32)(kind >> 32);
	seen->fp = lj_proto_fp(mem, w, head, kind, seen->ptr);
	seen->kind = LB_FRAME_LUA;
	seen->epoch = w->epoch;
	return 0;
}

/* Resets an entry of seen[] and gives it a key. */
static __always_inline struct lj_seen *lj_forget(struct lj_walk *w, __u32 i, __u64 key)
{
	struct lj_seen *seen = &w->seen[i & (LJ_SEEN - 1)];

	seen->func = key;
	seen->sample = w->cache.sample;
	seen->kind = 0;
	seen->bc = 0;
	seen->fp = 0;
	seen->epoch = 0;
	seen->link = 0;
	return seen;
}

static __always_inline __u32 lj_seen_index(__u64 key)
{
	return lb_table_index(key, LJ_SEEN_BITS);
}

/* As lj_func(), for a prototype whose closure is not known. */
LB_SUBPROG int lj_proto(const struct lb_mem *mem, struct lj_walk *w, __u64 proto)
{
	__u32 i = lj_seen_index(proto);
	const struct lj_seen *seen;

	if (!w)
		return -1;
	seen = &w->seen[i];
	if (seen->func == proto &&
	    (seen->sample == w->cache.sample || lb_is_proved(lj_common(w), seen->epoch)))
		return seen->kind ? (int)i : -1;
	lj_forget(w, i, proto);
	return lj_learn_proto(mem_accessor(mem), w, i, proto + LJ_AT(w, PROTO_SIZE)) ? -1 : (int)i;
}

/*
 * Returns the index in seen[] of the GCfunc at func, or -1 if func does not address a GCfunc. An
 * entry of this sample is not read again.
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
	was = seen->func == func && lb_is_proved(lj_common(w), seen->epoch) ? seen->bc : 0;
	if (!was)
		lj_forget(w, i, func);
	if (func & 7) /* no object */
		return -1;
	if (lj_func_bytes(mem, w, &head, LJ_AT(w, FUNC_READ), func))
		return -1;
	kind = lb_word(head, LJ_AT(w, FUNC_KIND));
	if (LJ_KIND_GCT(kind) != LJ_GCT_FUNC)
		return -1;
	ffid = (__u8)(kind >> 8 * (LJ_FUNC_FFID - LJ_FUNC_KIND));
	pc = lj_ref(w, head, LJ_AT(w, FUNC_PC));
	if (was) { /* the prototype is proved: checks that func still is its closure */
		if (!ffid && pc == was) {
			seen->sample = w->cache.sample;
			return (int)i;
		}
		lj_forget(w, i, func);
	}
	seen->bc = pc; /* of C and fast functions, too: one instruction in GG_State.bcff */
	seen->sizebc = 1;
	if (ffid == 1) {
		seen->ptr = lb_word(head, LJ_AT(w, FUNC_F)) & ((1ULL << 48) - 1);
		seen->kind = LB_FRAME_C;
		return (int)i;
	}
	if (ffid) {
		seen->ptr = ffid;
		seen->kind = LB_FRAME_FF;
		return (int)i;
	}
	return lj_learn_proto(mem_accessor(mem), w, i, pc) ? -1 : (int)i;
}

/* True if pc, the address of a next instruction, is this function's; its entry counts, too. */
static __always_inline int lj_pc_inside(const struct lj_seen *seen, __u64 pc)
{
	return seen->bc && !(pc & 3) && pc >= seen->bc && pc - seen->bc <= 4ULL * seen->sizebc;
}

/*
 * True if the function at func was proved in this epoch to be a Lua function, and pc is inside. The
 * closure is not read: if a closure of another prototype had its address, pc would be outside, as
 * the proved prototype still has its memory (lb_is_proved()).
 */
static __always_inline int lj_is_proved(const struct lj_walk *w, __u64 func, __u64 pc)
{
	const struct lj_seen *seen = &w->seen[lj_seen_index(func)];

	return seen->func == func && seen->kind == LB_FRAME_LUA && lj_pc_inside(seen, pc) &&
	       lb_is_proved((const struct lb_walk *)w, seen->epoch);
}

/* As lj_func(), of a function that pc belongs to if it is a Lua function. */
static __always_inline int lj_func_at(const struct lb_mem *mem, struct lj_walk *w, __u64 func,
				      __u64 pc)
{
	return lj_is_proved(w, func, pc) ? (int)lj_seen_index(func) : lj_func(mem, w, func);
}

/* True if the function's slot of a frame has the type tag of a function. In GC32 it has no tag. */
static __always_inline int lj_is_func(const struct lj_walk *w, __u64 tv)
{
	return lj_is_32(w) || LJ_TV_TYPE(tv) == LJ_TFUNC;
}

/* The function's slot and the link of the frame whose last LJ_FRAME_BYTES below base are given. */
static __always_inline __u64 lj_frame_func(const struct lj_walk *w, const void *bytes)
{
	return lj_ref(w, bytes, 0);
}

static __always_inline __u64 lj_frame_link(const struct lj_walk *w, const void *bytes)
{
	return lj_is_32(w) ? lb_half(bytes, 4) : lb_word(bytes, 8);
}

/* Reads the same: the function's slot, the link, and the pc of a continuation. */
static __always_inline int lj_read_func(const struct lb_mem *mem, struct lj_walk *w, __u64 base,
					__u64 *func)
{
	return lj_read_ref(mem, w, func, base - LJ_AT(w, FRAME_BYTES));
}

static __always_inline int lj_read_link(const struct lb_mem *mem, struct lj_walk *w, __u64 base,
					__u64 *link)
{
	return lj_read_ref(mem, w, link, base - LJ_AT(w, FRAME_BYTES) / 2);
}

static __always_inline int lj_read_contpc(const struct lb_mem *mem, struct lj_walk *w, __u64 base,
					  __u64 *pc)
{
	return lj_read_ref(mem, w, pc, base - LJ_AT(w, FRAME_BYTES) * 3 / 2);
}

/* base of the lowest frame on the Lua stack, which belongs to no function. */
static __always_inline __u64 lj_bottom_base(const struct lj_walk *w)
{
	return w->stack + LJ_AT(w, FRAME_BYTES);
}

/*
 * Returns the bytecode position of pc in a function, or LB_NO_PC. After an exit to a patched
 * loop header pc may point at or behind GCtrace.startins, the copy of the replaced instruction.
 */
LB_SUBPROG __u32 lj_position(const struct lb_mem *mem, struct lj_walk *w, int index, __u64 pc)
{
	const struct lj_seen *seen;
	__u64 exact, start;
	const __u8 *trace;

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
	trace = lj_maybe(mem, w, pc - (exact ? 0 : 4) - LJ_AT(w, TRACE_STARTINS),
			 LJ_AT(w, TRACE_READ));
	if (!trace || lb_byte(trace, LJ_AT(w, TRACE_GCT)) != LJ_GCT_TRACE)
		return LB_NO_PC;
	start = lj_ref(w, trace, LJ_AT(w, TRACE_STARTPC));
	if (!lj_pc_inside(seen, start))
		return LB_NO_PC;
	return (__u32)((start - seen->bc) >> 2);
}

#endif
