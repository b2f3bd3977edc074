/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Fingerprint of a LuaJIT prototype (GCproto). The address of a collected prototype may be taken by
 * another: user space joins what it knows or reads later with a sample only when this agrees. So it
 * is made of all that tells two of one shape apart and is cheap to read:
 *
 *   head       sizes, lines, where each table lies, the chunk's name
 *   constants  the addresses of the first ones; and which string the first one is, as its address,
 *              too, may be another's by now
 *   debug information, its first bytes: the names of upvalues and locals
 *
 * Nothing that the VM changes while a prototype lives counts: bytecode is patched, the collector
 * marks.
 */
#ifndef LUABPF_LJ_PRINT_H
#define LUABPF_LJ_PRINT_H

#include "layout.h"
#include "mem.h"

#define LJ_PRINT_KGC 32	  /* bytes below GCproto.k that count, where there are constants */
#define LJ_PRINT_DEBUG 48 /* bytes of debug information that count */

static __always_inline __u64 lj_print_mix(__u64 h, __u64 more)
{
	return (h ^ h >> 29) * 0x9e3779b97f4a7c15ULL ^ more;
}

static __always_inline __u64 lj_print_head(const void *head, __u64 proto)
{
	__u64 h = lb_word(head, 8) >> 16; /* numparams .. sizebc */

	h = lj_print_mix(h, lb_word(head, LJ_PROTO_K) - proto);
	h = lj_print_mix(h, lb_word(head, LJ_PROTO_SIZEKGC));
	h = lj_print_mix(h, lb_half(head, LJ_PROTO_SIZEPT));
	h = lj_print_mix(h, lb_word(head, LJ_PROTO_CHUNKNAME));
	h = lj_print_mix(h, lb_word(head, LJ_PROTO_FIRSTLINE));
	h = lj_print_mix(h, lb_word(head, LJ_PROTO_UVINFO) - proto);
	return lj_print_mix(h, lb_word(head, LJ_PROTO_VARINFO) - proto);
}

/* What else is to be read. */
struct lj_print_parts {
	__u64 kgc;    /* address of LJ_PRINT_KGC bytes, the references to the first constants */
	__u64 debug;  /* address of debug information, aligned to 8 */
	__u32 nkgc;   /* constants that there are */
	__u32 ndebug; /* bytes of debug information, at most LJ_PRINT_DEBUG */
};

static __always_inline void lj_print_parts(const void *head, __u64 proto, struct lj_print_parts *p)
{
	__u64 end = proto + lb_half(head, LJ_PROTO_SIZEPT), at = lb_word(head, LJ_PROTO_UVINFO);

	if (!at)
		at = lb_word(head, LJ_PROTO_VARINFO);
	at &= ~7ULL; /* the end of the line table is as good */
	p->kgc = lb_word(head, LJ_PROTO_K) - LJ_PRINT_KGC;
	p->nkgc = lb_half(head, LJ_PROTO_SIZEKGC);
	p->debug = at;
	p->ndebug = 0;
	if (at > proto && at < end)
		p->ndebug = end - at < LJ_PRINT_DEBUG ? (__u32)(end - at) : LJ_PRINT_DEBUG;
}

/* refs: LJ_PRINT_KGC bytes; constants count down from their end. */
static __always_inline __u64 lj_print_kgc(__u64 h, const void *refs, __u32 nkgc)
{
	h = lj_print_mix(h, lb_word(refs, LJ_PRINT_KGC - 8));
	if (nkgc > 1)
		h = lj_print_mix(h, lb_word(refs, LJ_PRINT_KGC - 16));
	if (nkgc > 2)
		h = lj_print_mix(h, lb_word(refs, LJ_PRINT_KGC - 24));
	if (nkgc > 3)
		h = lj_print_mix(h, lb_word(refs, LJ_PRINT_KGC - 32));
	return h;
}

/* str: the first LJ_STR_SIZE bytes of the first constant. Other objects change as they live. */
static __always_inline __u64 lj_print_str(__u64 h, const void *str)
{
	if (lb_byte(str, LJ_STR_GCT) != LJ_GCT_STR)
		return h;
	return lj_print_mix(h, lb_half(str, LJ_STR_SID) | (__u64)lb_half(str, LJ_STR_HASH) << 32);
}

/* debug: size bytes, rounded up to 8; the bytes beyond size may be anything. */
static __always_inline __u64 lj_print_debug(__u64 h, const void *debug, __u32 size)
{
	__u32 i;

	for (i = 0; i < LJ_PRINT_DEBUG / 8; i++) {
		__u64 word;

		if (8 * i >= size)
			break;
		word = lb_word(debug, 8 * i);
		if (size - 8 * i < 8)
			word &= (1ULL << 8 * (size - 8 * i)) - 1;
		h = lj_print_mix(h, word);
	}
	return h;
}

static __always_inline __u32 lj_print_end(__u64 h)
{
	return (__u32)(lj_print_mix(h, 0) >> 32);
}

#endif
