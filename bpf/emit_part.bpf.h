/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Parts of a prototype's record (struct lb_rec_proto). */
#ifndef LUABPF_EMIT_PART_BPF_H
#define LUABPF_EMIT_PART_BPF_H

#include "maps.bpf.h"

/* Offset of a member in a family's record. */
#define PART_AT(r, member) ((__u32)((__u8 *)(r)->member - (__u8 *)(r)))

static long emit_part_none(__u32 i, struct lb_rec_proto **rec)
{
	if (i < LB_PARTS)
		(*rec)->part[i].len = 0;
	return 0;
}

/* Fills a record's head. The ring's memory is not zeroed: every part is marked as not read. */
static __always_inline int emit_parts_begin(struct lb_rec_proto *rec,
					    const struct lb_rec_sample *sample, __u64 proto,
					    __u32 fp, __u32 nparts, __u32 size)
{
	if (!sample)
		return -1;
	rec->head.type = LB_REC_PROTO;
	rec->head.size = size;
	rec->proto = proto;
	rec->pid = sample->pid;
	rec->epoch = sample->epoch;
	rec->fp = fp;
	rec->build = sample->build;
	rec->nparts = nparts;
	rec->pad = 0;
	lb_loop(LB_PARTS, emit_part_none, &rec);
	return 0;
}

static __always_inline void emit_part(struct lb_rec_proto *rec, __u32 i, __u64 addr, __u32 at,
				      __u32 len)
{
	if (i >= LB_PARTS)
		return;
	rec->part[i].addr = addr;
	rec->part[i].at = at;
	rec->part[i].len = len;
}

#endif
