/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Sends the memory of a LuaJIT prototype at its first sample: the allocation, the chunk's name and
 * string constants.
 */
#ifndef LUABPF_EMIT_LJ_BPF_H
#define LUABPF_EMIT_LJ_BPF_H

#include "emit_part.bpf.h"

#define LJ_NAME_BYTES 456 /* of a chunk's name: a longer one is source text */
#define LJ_KSTRS 48
#define LJ_KSTR_BYTES 48 /* the object, and as much of its text */

struct lj_kstr_ctx {
	struct lb_proto_record *r;
	const struct lj_layout *lj;
	__u32 n;
};

/* Appends constant i: a string, or the type of another object. Skips those at the end of a mapping. */
static long emit_lj_kstr(__u32 i, struct lj_kstr_ctx *ctx)
{
	struct lb_proto_record *r = ctx->r;
	__u32 no = ctx->n - 1 - i;
	__u64 ref = r->words[(lj_is_gc32(ctx->lj) ? no / 2 : no) & (LB_PROTO_WORDS - 1)];

	if (lj_is_gc32(ctx->lj))
		ref = no & 1 ? ref >> 32 : (__u32)ref;
	emit_part(r, ref, LJ_KSTR_BYTES);
	return 0;
}

/* Constant i is at k[-1 - i]. */
static __always_inline void emit_lj_kstrs(struct lb_proto_record *r, const struct lj_layout *lj,
					  __u64 k, __u32 n)
{
	struct lj_kstr_ctx ctx = {.r = r, .lj = lj, .n = n < LJ_KSTRS ? n : LJ_KSTRS};
	__u32 size = ctx.n * lj_ref_size(lj);

	if (!bpf_probe_read_user(r->words, size, (void *)(k - size)))
		lb_rare_loop(ctx.n, emit_lj_kstr, &ctx);
}

static __always_inline void emit_lj_name(struct lb_proto_record *r, const struct lj_layout *lj,
					 __u64 str)
{
	__u32 size;

	if (bpf_probe_read_user(r->words, LJ_OFF(lj, STR_SIZE), (void *)str))
		return;
	size = lj->str_len == LJ_OFF(lj, STR_LEN) ? lb_half(r->words, LJ_OFF(lj, STR_LEN))
						  : lb_half(r->words, LJ_OFF(lj, STR_LEN_2017));
	emit_part(r, str, LJ_OFF(lj, STR_SIZE) + 1 + (size < LJ_NAME_BYTES ? size : LJ_NAME_BYTES));
}

/* Sizes and pointers are those of the copy. */
LB_SUBPROG int emit_lj_proto(const struct lb_rec_sample *sample, __u64 proto, __u32 fp)
{
	const struct lj_layout *lj;
	struct lb_proto_record *r;
	struct lb_build *build;
	__u32 key, n;
	__u64 k, name;

	if (!sample)
		return -1;
	key = sample->build;
	build = bpf_map_lookup_elem(&builds, &key);
	r = emit_begin(sample, proto, fp);
	if (!build || !r)
		return -1;
	lj = &build->lj.lj;
	if (bpf_probe_read_user(r->words, LJ_OFF(lj, PROTO_SIZE), (void *)proto))
		return 0; /* user space reads it from the live process */
	k = lj_ref_at(lj, r->words, LJ_OFF(lj, PROTO_K));
	n = lb_half(r->words, LJ_OFF(lj, PROTO_SIZEKGC));
	name = lj_ref_at(lj, r->words, LJ_OFF(lj, PROTO_CHUNKNAME));
	if (!emit_part(r, proto, lb_half(r->words, LJ_OFF(lj, PROTO_SIZEPT))))
		emit_part(r, proto, LJ_OFF(lj, PROTO_SIZE));
	emit_lj_name(r, lj, name);
	emit_lj_kstrs(r, lj, k, n);
	return emit_send(r);
}

#endif
