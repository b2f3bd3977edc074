/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Makes a prototype's record (struct lb_rec_proto) in memory of this CPU, part by part, and sends
 * it. Records are packed: reading a program's functions out of scattered pages of the ring took
 * longer than copying them there.
 */
#ifndef LUABPF_EMIT_PART_BPF_H
#define LUABPF_EMIT_PART_BPF_H

#include "maps.bpf.h"

static __always_inline struct lb_proto_record *emit_begin(const struct lb_rec_sample *sample,
							  __u64 proto, __u32 fp)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct lb_proto_record *r = bpf_map_lookup_elem(&proto_records, &cpu);

	if (!r)
		return 0;
	r->rec.head.type = LB_REC_PROTO;
	r->rec.head.size = sizeof(r->rec);
	r->rec.proto = proto;
	r->rec.pid = sample->pid;
	r->rec.epoch = sample->epoch;
	r->rec.fp = fp;
	r->rec.build = sample->build;
	return r;
}

/* Where the next part begins in r->parts. */
static __always_inline __u32 emit_at(const struct lb_proto_record *r)
{
	return (r->rec.head.size - sizeof(r->rec)) & (LB_PARTS_BYTES - 1);
}

/*
 * Appends the bytes at addr, as many as fit into a part. Returns where they are in r->parts, or 0
 * when they cannot be read or the record is full: user space reads them from the live process.
 */
LB_SUBPROG int emit_part(struct lb_proto_record *r, __u64 addr, __u32 len)
{
	struct lb_part *part;
	__u32 at;

	if (!r || !len || r->rec.head.size > LB_PARTS_BYTES)
		return 0;
	if (len > LB_PART_MOST)
		len = LB_PART_MOST;
	at = emit_at(r);
	part = (struct lb_part *)(r->parts + at);
	at += sizeof(*part);
	if (bpf_probe_read_user(r->parts + at, len, (void *)addr))
		return 0;
	part->addr = addr;
	part->len = len;
	part->pad = 0;
	r->rec.head.size += LB_PART_SIZE(len);
	return (int)at;
}

/* Returns 0, or -1 when the ring is full. */
static __always_inline int emit_send(struct lb_proto_record *r)
{
	__u32 size = r->rec.head.size;

	if (size > sizeof(r->rec) + sizeof(r->parts))
		size = sizeof(r->rec) + sizeof(r->parts);
	return bpf_ringbuf_output(&ring, r, size, BPF_RB_NO_WAKEUP) ? -1 : 0;
}

/* A word of the bytes that a part holds. */
static __always_inline __u64 emit_word(const struct lb_proto_record *r, __u32 at)
{
	return lb_word(r->parts, at & (LB_PARTS_BYTES - 1));
}

#endif
