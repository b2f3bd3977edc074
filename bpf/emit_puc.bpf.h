/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Sends the memory of a PUC Lua prototype at its first sample: the Proto, its arrays, and the
 * strings that these name. Offsets are the layout's; sizes and pointers are those of the copy.
 */
#ifndef LUABPF_EMIT_PUC_BPF_H
#define LUABPF_EMIT_PUC_BPF_H

#include <unwind/puc/state.h>
#include "emit_part.bpf.h"

#define PUC_STRS 48	 /* that an array names */
#define PUC_STR_BYTES 72 /* the TString, and as much of its text */
#define PUC_SOURCE_BYTES 512
#define PUC_SMALL_BYTES 512
_Static_assert(PUC_PROTO_HEAD <= LB_PROTO_WORDS * 8, "the head is read there");

/* Appends an array of the prototype: n elements of `size` bytes, as many as fit in `most`. */
static __always_inline __u32 emit_puc_array(struct lb_proto_record *r, __u16 pointer, __u32 n,
					    __u32 size, __u32 most)
{
	__u64 addr = puc_word((const __u8 *)r->words, pointer);

	return emit_part(r, addr, (n < most / size ? n : most / size) * size);
}

/* Of an array that names objects. */
struct puc_strs {
	struct lb_proto_record *r;
	const struct puc_layout *puc;
	__u32 at, size; /* of the array that names them, and of its elements */
};

/* Appends as much of a TString as fits: user space reads a longer one from the live process. */
static long emit_puc_str(__u32 i, struct puc_strs *c)
{
	__u64 str = emit_word(c->r, c->at + i * c->size);

	if (str)
		emit_part(c->r, str, PUC_STR_BYTES);
	return 0;
}

static long emit_puc_k(__u32 i, struct puc_strs *c)
{
	__u8 tt = emit_word(c->r, c->at + i * PUC_TV_SIZE + PUC_TV_TT) & PUC_TT_MASK;

	if (tt == c->puc->tt_shrstr || tt == c->puc->tt_lngstr)
		emit_puc_str(i, c);
	return 0;
}

/* Appends how many upvalues a child has: in 5.1 so many instructions behind its CLOSURE are data. */
static long emit_puc_nups(__u32 i, struct puc_strs *c)
{
	__u64 child = emit_word(c->r, c->at + i * 8);

	if (child)
		emit_part(c->r, child + (c->puc->p_numparams & ~7U), 8);
	return 0;
}

static __always_inline void emit_puc_children(struct lb_proto_record *r,
					      const struct puc_layout *puc, __u32 n)
{
	struct puc_strs c = {.r = r, .puc = puc};

	if (n > PUC_STRS)
		n = PUC_STRS;
	c.at = emit_puc_array(r, puc->p_p, n, 8, PUC_SMALL_BYTES);
	if (c.at && puc->flags & PUC_CI_ARRAY)
		lb_rare_loop(n, emit_puc_nups, &c);
}

/* Appends an array of n elements, which begin with a string's address, and these strings. */
static __always_inline void emit_puc_names(struct lb_proto_record *r, __u16 pointer, __u32 n,
					   __u32 size)
{
	struct puc_strs c = {.r = r, .size = size};

	if (n > PUC_STRS)
		n = PUC_STRS;
	c.at = emit_puc_array(r, pointer, n, size, PUC_STRS * 16);
	if (c.at)
		lb_rare_loop(n, emit_puc_str, &c);
}

static __always_inline void emit_puc_constants(struct lb_proto_record *r,
					       const struct puc_layout *puc, __u32 n)
{
	struct puc_strs c = {.r = r, .puc = puc};

	if (n > PUC_STRS)
		n = PUC_STRS;
	c.size = PUC_TV_SIZE;
	c.at = emit_puc_array(r, puc->p_k, n, PUC_TV_SIZE, PUC_STRS * PUC_TV_SIZE);
	if (c.at)
		lb_rare_loop(n, emit_puc_k, &c);
}

/* Reads on in a chunk's name that is longer: mem_image joins the two parts. */
static __always_inline void emit_puc_source(struct lb_proto_record *r, const struct puc_layout *puc,
					    __u64 str)
{
	__u32 at = emit_part(r, str, PUC_STR_BYTES);
	__u8 tt = emit_word(r, at + PUC_GC_TT) & PUC_TT_MASK;

	if (!at || (puc->s_shrlen != PUC_NONE && tt == puc->tt_shrstr) ||
	    emit_word(r, at + puc->s_len) < PUC_STR_BYTES - puc->s_text)
		return;
	emit_part(r, str, PUC_SOURCE_BYTES);
}

static __always_inline void emit_puc_parts(struct lb_proto_record *r, const struct puc_layout *puc)
{
	const __u8 *head = (const __u8 *)r->words;

	emit_puc_array(r, puc->p_code, puc_half(head, puc->p_sizecode), 4, LB_PART_MOST);
	emit_puc_children(r, puc, puc_half(head, puc->p_sizep));
	if (puc->p_abslineinfo == PUC_NONE) {
		emit_puc_array(r, puc->p_lineinfo, puc_half(head, puc->p_sizelineinfo), 4,
			       LB_PART_MOST);
	} else {
		emit_puc_array(r, puc->p_lineinfo, puc_half(head, puc->p_sizelineinfo), 1,
			       LB_PART_MOST);
		emit_puc_array(r, puc->p_abslineinfo, puc_half(head, puc->p_sizeabslineinfo), 8,
			       PUC_SMALL_BYTES);
	}
	emit_puc_source(r, puc, puc_word(head, puc->p_source));
	emit_puc_constants(r, puc, puc_half(head, puc->p_sizek));
	emit_puc_names(r, puc->p_locvars, puc_half(head, puc->p_sizelocvars), 16);
	emit_puc_names(r, puc->p_upvalues, puc_half(head, puc->p_sizeupvalues),
		       puc->upvaldesc_size == 8 ? 8 : 16);
}

LB_SUBPROG int emit_puc_proto(const struct lb_rec_sample *sample, __u64 proto, __u32 fp)
{
	const struct puc_layout *puc;
	struct lb_proto_record *r;
	struct lb_build *build;
	__u32 key, size;

	if (!sample)
		return -1;
	key = sample->build;
	build = bpf_map_lookup_elem(&builds, &key);
	r = emit_begin(sample, proto, fp);
	if (!build || !r)
		return -1;
	puc = &build->puc.puc;
	size = puc->p_size < PUC_PROTO_HEAD ? puc->p_size : PUC_PROTO_HEAD;
	if (!emit_part(r, proto, size))
		return 0; /* user space reads it from the live process */
	bpf_probe_read_kernel(r->words, PUC_PROTO_HEAD, r->parts + sizeof(struct lb_part));
	emit_puc_parts(r, puc);
	return emit_send(r);
}

#endif
