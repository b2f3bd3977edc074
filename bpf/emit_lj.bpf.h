/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Sends the memory of a LuaJIT prototype at its first sample: the allocation, the chunk's name and
 * up to LB_LJ_KSTRS string constants.
 */
#ifndef LUABPF_EMIT_LJ_BPF_H
#define LUABPF_EMIT_LJ_BPF_H

#include "emit_part.bpf.h"

enum {
	LJ_PART_PROTO,
	LJ_PART_NAME,
	LJ_PART_KSTR,
	LJ_PARTS = LJ_PART_KSTR + LB_LJ_KSTRS,
};

struct lj_kstr_ctx {
	struct lb_rec_lj_proto *rec;
	__u64 k;
};

/* Reads string constant i. Skips other objects, and strings at the end of a mapping. */
static long emit_lj_kstr(__u32 i, struct lj_kstr_ctx *ctx)
{
	struct lb_rec_lj_proto *r = ctx->rec;
	__u64 str = 0;

	if (i >= LB_LJ_KSTRS)
		return 1;
	if (bpf_probe_read_user(&str, sizeof(str), (void *)(ctx->k - 8 * (i + 1))) ||
	    bpf_probe_read_user(r->kstr[i], LB_LJ_KSTR_BYTES, (void *)str) ||
	    r->kstr[i][LJ_STR_GCT] != LJ_GCT_STR)
		return 0;
	emit_part(&r->rec, LJ_PART_KSTR + i, str, PART_AT(r, kstr) + i * LB_LJ_KSTR_BYTES,
		  LB_LJ_KSTR_BYTES);
	return 0;
}

static __always_inline void emit_lj_name(struct lb_rec_lj_proto *r, __u64 str)
{
	__u32 key = r->rec.build, size;
	struct lb_build *build = bpf_map_lookup_elem(&builds, &key);

	if (!build || bpf_probe_read_user(r->name, LJ_STR_SIZE, (void *)str))
		return;
	size = build->lj.lj.str_len == LJ_STR_LEN ? lb_half(r->name, LJ_STR_LEN)
						  : lb_half(r->name, LJ_STR_LEN_2017);
	if (size > LB_LJ_NAME_BYTES - LJ_STR_SIZE - 1) /* such a name is source text */
		size = LB_LJ_NAME_BYTES - LJ_STR_SIZE - 1;
	size += LJ_STR_SIZE + 1;
	if (!bpf_probe_read_user(r->name, size, (void *)str))
		emit_part(&r->rec, LJ_PART_NAME, str, PART_AT(r, name), size);
}

/* Sizes and pointers are those of the copy. */
LB_SUBPROG int emit_lj_proto(const struct lb_rec_sample *sample, __u64 proto, __u32 fp)
{
	struct lb_rec_lj_proto *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	struct lj_kstr_ctx ctx;
	__u32 size;

	if (!r)
		return -1;
	if (emit_parts_begin(&r->rec, sample, proto, fp, LJ_PARTS, sizeof(*r)) ||
	    bpf_probe_read_user(r->bytes, LJ_PROTO_SIZE, (void *)proto)) {
		bpf_ringbuf_discard(r, 0);
		return 0; /* user space reads it from the live process */
	}
	emit_part(&r->rec, LJ_PART_PROTO, proto, PART_AT(r, bytes), LJ_PROTO_SIZE);
	ctx.rec = r;
	ctx.k = lb_word(r->bytes, LJ_PROTO_K);
	emit_lj_name(r, lb_word(r->bytes, LJ_PROTO_CHUNKNAME));
	size = lb_half(r->bytes, LJ_PROTO_SIZEKGC);
	bpf_loop(size < LB_LJ_KSTRS ? size : LB_LJ_KSTRS, emit_lj_kstr, &ctx, 0);
	size = lb_half(r->bytes, LJ_PROTO_SIZEPT);
	if (size > LB_LJ_PROTO_BYTES) /* truncated */
		size = LB_LJ_PROTO_BYTES;
	if (!bpf_probe_read_user(r->bytes, size, (void *)proto))
		emit_part(&r->rec, LJ_PART_PROTO, proto, PART_AT(r, bytes), size);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
