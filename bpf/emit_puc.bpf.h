/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Sends the memory of a PUC Lua prototype at its first sample: the Proto, its arrays, and the
 * strings that these name. Offsets are the layout's; sizes and pointers are those of the copy.
 */
#ifndef LUABPF_EMIT_PUC_BPF_H
#define LUABPF_EMIT_PUC_BPF_H

#include <unwind/puc/state.h>
#include "emit_part.bpf.h"

enum {
	PUC_PART_HEAD,
	PUC_PART_CODE,
	PUC_PART_LINEINFO,
	PUC_PART_ABSLINEINFO,
	PUC_PART_SOURCE,
	PUC_PART_P,
	PUC_PART_K,
	PUC_PART_LOCVARS,
	PUC_PART_UPVALUES,
	PUC_PART_STR,
	PUC_PARTS = PUC_PART_STR + LB_PUC_KS + 2 * LB_PUC_NAMES,
};
_Static_assert(PUC_PARTS <= LB_PARTS, "parts of a prototype");

/* Copies an array of the prototype: n elements of `size` bytes, as many as fit. */
#define EMIT_PUC_ARRAY(r, part, member, pointer, n, size)                                          \
	do {                                                                                       \
		__u64 addr_ = puc_word((r)->head, pointer);                                        \
		__u32 len_ = (n);                                                                  \
                                                                                                   \
		if (len_ > sizeof((r)->member) / (size))                                           \
			len_ = sizeof((r)->member) / (size);                                       \
		len_ *= (size);                                                                    \
		if (len_ && !bpf_probe_read_user((r)->member, len_, (void *)addr_))                \
			emit_part(&(r)->rec, part, addr_, PART_AT(r, member), len_);               \
	} while (0)

/* Copies as much of a TString as fits: user space reads a longer one from the live process. */
static __always_inline void emit_puc_str(struct lb_rec_puc_proto *r, __u32 i, __u64 str)
{
	if (i >= LB_PUC_KS + 2 * LB_PUC_NAMES || !str ||
	    bpf_probe_read_user(r->str[i], LB_PUC_STR_BYTES, (void *)str))
		return;
	emit_part(&r->rec, PUC_PART_STR + i, str, PART_AT(r, str) + i * LB_PUC_STR_BYTES,
		  LB_PUC_STR_BYTES);
}

struct puc_str_ctx {
	struct lb_rec_puc_proto *r;
	const struct puc_layout *puc;
};

static long emit_puc_k(__u32 i, struct puc_str_ctx *c)
{
	__u8 tt;

	if (i >= LB_PUC_KS)
		return 1;
	tt = c->r->k[i * PUC_TV_SIZE + PUC_TV_TT] & PUC_TT_MASK;
	if (tt == c->puc->tt_shrstr || tt == c->puc->tt_lngstr)
		emit_puc_str(c->r, i, lb_word(c->r->k, i * PUC_TV_SIZE));
	return 0;
}

static long emit_puc_locvar(__u32 i, struct puc_str_ctx *c)
{
	if (i >= LB_PUC_NAMES)
		return 1;
	emit_puc_str(c->r, LB_PUC_KS + i, lb_word(c->r->locvars, i * 16));
	return 0;
}

static long emit_puc_upvalue(__u32 i, struct puc_str_ctx *c)
{
	__u32 at = (c->puc->upvaldesc_size == 8 ? i * 8 : i * 16) & (LB_PUC_NAMES * 16 - 8);

	if (i >= LB_PUC_NAMES)
		return 1;
	emit_puc_str(c->r, LB_PUC_KS + LB_PUC_NAMES + i, lb_word(c->r->upvalues, at));
	return 0;
}

static __always_inline void emit_puc_strings(struct lb_rec_puc_proto *r,
					     const struct puc_layout *puc)
{
	struct puc_str_ctx ctx = {.r = r, .puc = puc};

	bpf_loop(r->rec.part[PUC_PART_K].len / PUC_TV_SIZE, emit_puc_k, &ctx, 0);
	bpf_loop(r->rec.part[PUC_PART_LOCVARS].len / 16, emit_puc_locvar, &ctx, 0);
	bpf_loop(r->rec.part[PUC_PART_UPVALUES].len >> (puc->upvaldesc_size == 8 ? 3 : 4),
		 emit_puc_upvalue, &ctx, 0);
}

static __always_inline void emit_puc_lines(struct lb_rec_puc_proto *r, const struct puc_layout *puc)
{
	if (puc->p_abslineinfo == PUC_NONE) {
		EMIT_PUC_ARRAY(r, PUC_PART_LINEINFO, lineinfo, puc->p_lineinfo,
			       puc_half(r->head, puc->p_sizelineinfo), 4);
		return;
	}
	EMIT_PUC_ARRAY(r, PUC_PART_LINEINFO, lineinfo, puc->p_lineinfo,
		       puc_half(r->head, puc->p_sizelineinfo), 1);
	EMIT_PUC_ARRAY(r, PUC_PART_ABSLINEINFO, abslineinfo, puc->p_abslineinfo,
		       puc_half(r->head, puc->p_sizeabslineinfo), 8);
}

static __always_inline void emit_puc_source(struct lb_rec_puc_proto *r,
					    const struct puc_layout *puc)
{
	__u64 str = puc_word(r->head, puc->p_source);

	if (!bpf_probe_read_user(r->source, LB_PUC_STR_BYTES, (void *)str))
		emit_part(&r->rec, PUC_PART_SOURCE, str, PART_AT(r, source), LB_PUC_STR_BYTES);
	if (!bpf_probe_read_user(r->source, sizeof(r->source), (void *)str))
		emit_part(&r->rec, PUC_PART_SOURCE, str, PART_AT(r, source), sizeof(r->source));
}

LB_SUBPROG int emit_puc_proto(const struct lb_rec_sample *sample, __u64 proto, __u32 fp)
{
	struct lb_rec_puc_proto *r;
	const struct puc_layout *puc;
	struct lb_build *build;
	__u32 key, size;

	if (!sample)
		return -1;
	key = sample->build;
	build = bpf_map_lookup_elem(&builds, &key);
	if (!build)
		return -1;
	puc = &build->puc.puc;
	size = puc->p_size < PUC_PROTO_HEAD ? puc->p_size : PUC_PROTO_HEAD;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return -1;
	if (emit_parts_begin(&r->rec, sample, proto, fp, PUC_PARTS, sizeof(*r)) ||
	    bpf_probe_read_user(r->head, size, (void *)proto)) {
		bpf_ringbuf_discard(r, 0);
		return 0; /* user space reads it from the live process */
	}
	emit_part(&r->rec, PUC_PART_HEAD, proto, PART_AT(r, head), size);
	EMIT_PUC_ARRAY(r, PUC_PART_CODE, code, puc->p_code, puc_half(r->head, puc->p_sizecode), 4);
	EMIT_PUC_ARRAY(r, PUC_PART_P, p, puc->p_p, puc_half(r->head, puc->p_sizep), 8);
	EMIT_PUC_ARRAY(r, PUC_PART_K, k, puc->p_k, puc_half(r->head, puc->p_sizek), PUC_TV_SIZE);
	EMIT_PUC_ARRAY(r, PUC_PART_LOCVARS, locvars, puc->p_locvars,
		       puc_half(r->head, puc->p_sizelocvars), 16);
	EMIT_PUC_ARRAY(r, PUC_PART_UPVALUES, upvalues, puc->p_upvalues,
		       puc_half(r->head, puc->p_sizeupvalues) * (puc->upvaldesc_size & 0x18), 1);
	emit_puc_lines(r, puc);
	emit_puc_source(r, puc);
	emit_puc_strings(r, puc);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
