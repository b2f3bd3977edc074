/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The functions of closures and their fingerprints, with a direct-mapped cache of them, seen[]. */
#ifndef LUABPF_UNWIND_PUC_FUNC_H
#define LUABPF_UNWIND_PUC_FUNC_H

#include <unwind/puc/state.h>

/* Returns the hash of a chunk's name; of adjacent frames' common name it is computed once. */
static __always_inline __u64 puc_name_fp(const struct lb_mem *mem, struct puc_walk *w, __u64 name)
{
	const __u8 *bytes;

	if (lb_is_new_name(puc_common(w), &w->cache, name) && puc_is_pointer(name)) {
		bytes = puc_maybe(mem, w, name, PUC_FP_NAME);
		if (bytes)
			w->name_fp = puc_fp_name(bytes, &w->puc);
	}
	return w->name_fp;
}

/* As puc_fp_more(), of the first children. */
static __always_inline __u64 puc_fp_children(const struct lb_mem *mem, struct puc_walk *w, __u64 fp,
					     __u64 p, __u32 sizep)
{
	const __u8 *bytes;

	if (sizep > PUC_FP_PS)
		sizep = PUC_FP_PS;
	if (!sizep || !puc_is_pointer(p))
		return fp;
	bytes = puc_maybe(mem, w, p, 8 * sizep);
	return bytes ? puc_fp_p(fp, bytes, sizep) : fp;
}

/*
 * Returns a fingerprint with the first constants added. If they cannot be read, it matches none
 * that user space computes, and only the sent bytes are known.
 */
static __always_inline __u64 puc_fp_more(const struct lb_mem *mem, struct puc_walk *w, __u64 fp,
					 __u64 k, __u32 sizek)
{
	const __u8 *bytes;
	__u64 str;

	if (sizek > PUC_FP_KS)
		sizek = PUC_FP_KS;
	if (!sizek || !puc_is_pointer(k))
		return fp;
	bytes = puc_maybe(mem, w, k, PUC_TV_SIZE * sizek);
	if (!bytes)
		return fp;
	fp = puc_fp_k(fp, bytes, sizek, &w->puc, &str);
	if (!puc_is_pointer(str))
		return fp;
	bytes = puc_maybe(mem, w, str, PUC_FP_STR);
	return bytes ? puc_fp_str(fp, bytes) : fp;
}

/* Fills seen[i] with a Lua function's prototype. Returns i, or -1 if proto is no Proto. */
static __always_inline int puc_learn_proto(const struct lb_mem *mem, struct puc_walk *w, __u32 i,
					   __u64 proto)
{
	struct puc_seen *seen = &w->seen[i & (PUC_SEEN - 1)];
	__u32 size = w->puc.p_size;
	struct puc_fp_head h;
	const __u8 *head;
	__u64 fp;

	if (size > PUC_PROTO_HEAD)
		size = PUC_PROTO_HEAD;
	if (seen->ptr == proto && lb_is_proved(puc_common(w), seen->epoch)) {
		seen->kind = LB_FRAME_LUA;
		return (int)i;
	}
	seen->code = 0;
	seen->sizecode = 0;
	seen->fp = 0;
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
	fp = puc_fp_head(head, &w->puc, &h);
	seen->code = h.code;
	seen->sizecode = h.sizecode;
	if (seen->code & 3 || seen->code >> 47 || !seen->sizecode || seen->sizecode >> 31)
		return -1;
	fp = puc_fp_more(mem, w, fp, h.k, h.sizek);
	fp = puc_fp_children(mem, w, fp, h.p, h.sizep);
	fp = lb_fp_word(fp, PUC_FP_FACTOR_NAME, puc_name_fp(mem, w, h.source));
	seen->fp = lb_fp_end(fp);
	seen->kind = LB_FRAME_LUA;
	seen->epoch = w->epoch;
	return (int)i;
}

/* Returns the offset of a closure's Proto or C function, within PUC_CLOSURE_HEAD. */
static __always_inline __u32 puc_closure_p(const struct puc_walk *w)
{
	return w->puc.closure_p & 0x20 ? 32 : 24;
}

static __always_inline __u32 puc_seen_index(__u64 func)
{
	return lb_table_index(func, PUC_SEEN_BITS);
}

/*
 * Returns the index in seen[] of the closure at func, or -1 if func does not address a closure. An
 * entry of this sample is not read again. lua: the slot's type tag is a Lua function's. 5.1 has one tag for Lua
 * and C functions, 5.2.0 in the closure itself.
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
		seen->sample--; /* stale: the next lookup fails, too */
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
	seen->fp = 0;
	seen->epoch = 0;
	seen->ptr = ptr;
	seen->kind = LB_FRAME_C;
	return (int)i;
}

/* Indices of seen[], and: */
enum {
	PUC_LIGHT = PUC_SEEN, /* a light C function, its address in w->look.fn */
	PUC_NOT = -1,	      /* no function */
};

/* True if pc, the address of a next instruction, is this code's; its entry counts, too. */
static __always_inline int puc_pc_inside(__u64 code, __u64 bytes, __u64 pc)
{
	return !(pc & 3) && pc >= code && pc - code <= bytes;
}

/*
 * True if the closure at func, of a frame below its lua_State's topmost, was proved in this epoch to be a Lua
 * function's. It is not read: if a closure of another prototype had its address, savedpc would be
 * outside, as the proved prototype still has its memory (lb_is_proved()). A C function on top of a lua_State that has
 * resumed another may have any older savedpc: 5.1 stores one only in the CallInfo that makes a call.
 */
static __always_inline int puc_is_proved(const struct puc_walk *w, __u64 func)
{
	const struct puc_seen *seen = &w->seen[puc_seen_index(func)];

	return !(w->flags & LB_FRAME_THREAD) && seen->func == func && seen->kind == LB_FRAME_LUA &&
	       puc_pc_inside(seen->code, 4ULL * seen->sizecode, w->look.savedpc) &&
	       lb_is_proved((const struct lb_walk *)w, seen->epoch);
}

#endif
