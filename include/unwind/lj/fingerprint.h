/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Fingerprint of a LuaJIT prototype (GCproto). The address of a collected prototype may be taken by
 * another: user space joins what it knows or reads later with a sample only when this agrees. So it
 * is made of all that distinguishes two of one shape and is cheap to read:
 *
 *   head       sizes, lines, where each table lies, the address of the chunk's name
 *   name       which string that is, as its address may be another's by now
 *   constants  the addresses of the first ones; which string the first one is; the first numbers
 *   debug information, its first bytes: the names of upvalues and locals
 *
 * Nothing that the VM changes while a prototype lives counts: bytecode is patched, the collector
 * marks.
 */
#ifndef LUABPF_UNWIND_LJ_FINGERPRINT_H
#define LUABPF_UNWIND_LJ_FINGERPRINT_H

#include <unwind/lj/layout.h>
#include <unwind/fingerprint.h>

enum {
	LJ_FP_KGCS = 4, /* objects that count */
	LJ_FP_KNS = 2,	/* numbers */
	LJ_FP_KGC = 32, /* bytes below GCproto.k that they take */
	LJ_FP_KGC_FIRST = 24,
	LJ32_FP_KGC = 16,
	LJ32_FP_KGC_FIRST = 12,
};
#define LJ_FP_DEBUG 48 /* bytes of debug information that count */

/* Factors of lb_fp_factor[]: each word that counts has one of its own, the head's come first. */
enum {
	LJ_FP_FACTOR_KGC = 8,
	LJ_FP_FACTOR_STR = LJ_FP_FACTOR_KGC + LJ_FP_KGCS,
	LJ_FP_FACTOR_DEBUG = LJ_FP_FACTOR_STR + 1,
	LJ_FP_FACTOR_NAME = LJ_FP_FACTOR_DEBUG + LJ_FP_DEBUG / 8,
	LJ_FP_FACTOR_KN,
};
_Static_assert(LJ_FP_FACTOR_KN + LJ_FP_KNS <= LB_FP_FACTORS, "factors");

/* Parts that are to be read, too. */
struct lj_fp_parts {
	__u64 name; /* address of the chunk's name */
	__u64 kgc; /* address of LJ_FP_KGC bytes, the references to the first objects; then numbers */
	__u64 debug;  /* address of debug information, aligned to 8 */
	__u32 nkgc;   /* objects that there are */
	__u32 nkn;    /* numbers, at most LJ_FP_KNS */
	__u32 ndebug; /* bytes of debug information, at most LJ_FP_DEBUG */
};

/* Returns the reference (GCRef, MRef) at an offset of bytes. */
static __always_inline __u64 lj_ref_at(const struct lj_layout *lj, const void *head, __u32 offset)
{
	return lj_is_gc32(lj) ? lb_half(head, offset) : lb_word(head, offset);
}

/*
 * kind: the word at LJ_PROTO_KIND. Each word is loaded once: what a load in place costs BPF is not
 * the load, but the check of its address before it.
 */
static __always_inline __u64 lj_fp_head(const struct lj_layout *lj, const void *head, __u64 kind,
					__u64 proto, struct lj_fp_parts *p)
{
	__u64 k = lj_ref_at(lj, head, LJ_OFF(lj, PROTO_K));
	__u64 sizekgc = lb_word(head, LJ_OFF(lj, PROTO_SIZEKGC));
	__u64 uvinfo = lj_ref_at(lj, head, LJ_OFF(lj, PROTO_UVINFO));
	__u64 varinfo = lj_ref_at(lj, head, LJ_OFF(lj, PROTO_VARINFO));
	__u64 sizept = lb_half(head, LJ_OFF(lj, PROTO_SIZEPT)), end = proto + sizept, hash;

	p->name = lj_ref_at(lj, head, LJ_OFF(lj, PROTO_CHUNKNAME));
	p->kgc = k - LJ_OFF(lj, FP_KGC);
	p->nkgc = (__u32)sizekgc;
	p->nkn = sizekgc >> 32 < LJ_FP_KNS ? (__u32)(sizekgc >> 32) : LJ_FP_KNS;
	p->debug = (uvinfo ? uvinfo : varinfo) & ~7ULL; /* the end of the line table is as good */
	p->ndebug = 0;
	if (p->debug > proto && p->debug < end)
		p->ndebug = end - p->debug < LJ_FP_DEBUG ? (__u32)(end - p->debug) : LJ_FP_DEBUG;
	hash = lb_fp_word(0, 0, kind >> 16); /* numparams .. sizebc */
	hash = lb_fp_word(hash, 1, k - proto);
	hash = lb_fp_word(hash, 2, sizekgc); /* and sizekn */
	hash = lb_fp_word(hash, 3, sizept);
	hash = lb_fp_word(hash, 4, p->name);
	hash = lb_fp_word(hash, 5, lb_word(head, LJ_OFF(lj, PROTO_FIRSTLINE))); /* and numline */
	hash = lb_fp_word(hash, 6, uvinfo - proto);
	return lb_fp_word(hash, 7, varinfo - proto);
}

/* numbers: n words, at most LJ_FP_KNS. */
static __always_inline __u64 lj_fp_kn(__u64 hash, const void *numbers, __u32 n)
{
	return lb_fp_words(hash, LJ_FP_FACTOR_KN, numbers, n, LJ_FP_KNS);
}

/* refs: LJ_FP_KGC bytes; objects count down from their end. */
static __always_inline __u64 lj_fp_kgc(const struct lj_layout *lj, __u64 hash, const void *refs,
				       __u32 nkgc)
{
	__u32 i, first = LJ_OFF(lj, FP_KGC_FIRST), size = LJ_OFF(lj, FP_KGC) / LJ_FP_KGCS;

	LB_UNROLLED
	for (i = 0; i < LJ_FP_KGCS; i++)
		if (i < nkgc)
			hash = lb_fp_word(hash, LJ_FP_FACTOR_KGC + i,
					  lj_ref_at(lj, refs, first - size * i));
	return hash;
}

/*
 * str: the first LJ_STR_SIZE bytes of an object. Returns the identity of a GCstr; 0 for other
 * objects, which change while they live.
 */
static __always_inline __u64 lj_fp_str(const struct lj_layout *lj, const void *str)
{
	__u64 kind = lb_word(str, LJ_OFF(lj, STR_KIND));

	if (LJ_KIND_GCT(kind) != LJ_GCT_STR)
		return 0;
	return kind >> 32 | (__u64)lb_half(str, LJ_OFF(lj, STR_HASH)) << 32;
}

/* The words of a GCtrace that its fingerprint is made of, each with its neighbours. */
struct lj_trace_words {
	__u64 kind; /* gct, nsnap, nins */
	__u64 ir;
	__u64 nk;    /* and nsnapmap */
	__u64 start; /* startins, szmcode */
	__u64 mcode;
	__u64 startpc;
};

/* head: the first LJ_TRACE_READ bytes of a trace. */
static __always_inline struct lj_trace_words lj_trace_words(const struct lj_layout *lj,
							    const void *head)
{
	return (struct lj_trace_words){
		.kind = lb_word(head, LJ_OFF(lj, TRACE_KIND)),
		.ir = lb_word(head, LJ_OFF(lj, TRACE_IR)),
		.nk = lb_word(head, LJ_OFF(lj, TRACE_NK)),
		.start = lb_word(head, LJ_OFF(lj, TRACE_STARTINS)),
		.mcode = lb_word(head, LJ_OFF(lj, TRACE_MCODE)),
		.startpc = lj_ref_at(lj, head, LJ_OFF(lj, TRACE_STARTPC)),
	};
}

/*
 * Fingerprint of a trace. Numbers of traces that were flushed are given again. Where its parts and
 * its machine code lie, how large they are, and the bytecode at which it begins distinguish it.
 */
static __always_inline __u32 lj_fp_trace(const struct lj_trace_words *t)
{
	__u64 hash = lb_fp_word(0, 0, t->ir);

	hash = lb_fp_word(hash, 1, t->nk);
	hash = lb_fp_word(hash, 2, t->kind >> 32);
	hash = lb_fp_word(hash, 3, t->mcode);
	hash = lb_fp_word(hash, 4, t->start);
	hash = lb_fp_word(hash, 5, t->startpc);
	return lb_fp_end(hash);
}

/* debug: size bytes, rounded up to 8; the bytes beyond size may be anything. */
static __always_inline __u64 lj_fp_debug(__u64 hash, const void *debug, __u32 size)
{
	__u64 last = ~0ULL >> (8 * (0 - size) & 63);
	__u32 i;

	LB_UNROLLED
	for (i = 0; i < LJ_FP_DEBUG / 8; i++) {
		if (8 * i + 8 < size)
			hash = lb_fp_word(hash, LJ_FP_FACTOR_DEBUG + i, lb_word(debug, 8 * i));
		else if (8 * i < size)
			hash = lb_fp_word(hash, LJ_FP_FACTOR_DEBUG + i,
					  lb_word(debug, 8 * i) & last);
	}
	return hash;
}

#endif
