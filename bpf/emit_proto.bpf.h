/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Sends the prototypes of a stack's frames, each once; and when the ring's reader is woken. */
#ifndef LUABPF_EMIT_PROTO_BPF_H
#define LUABPF_EMIT_PROTO_BPF_H

#include "emit_lj.bpf.h"
#include "emit_puc.bpf.h"
#include "maps.bpf.h"

/* Samples between two queries of the fill level: a quarter of the ring holds thousands. */
#define RING_ASK 64

/* ns between two wake-ups for new functions. A wake-up takes longer than the rest of a sample: a program that makes
 * a VM for each request has new functions in each of them. */
#define RING_WAKE_PERIOD (5 * 1000 * 1000)

/* is_new: the reader should read the process's memory soon. */
static __always_inline __u64 ring_wakeup(int is_new, __u32 sample)
{
	__u64 now;

	if (is_new) {
		now = bpf_ktime_get_ns();
		if (now - ring_woken >= RING_WAKE_PERIOD) {
			ring_woken = now;
			return BPF_RB_FORCE_WAKEUP;
		}
	}
	if (sample % RING_ASK)
		return BPF_RB_NO_WAKEUP;
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
			       bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 4
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

/* Sends the prototype of one of a sample's frames, unless it was sent before. family: a constant,
 * here and below, so that a program holds no code of the other family. */
static __always_inline long emit_proto(struct lb_walk *w, __u32 i, enum lb_family family)
{
	const struct lb_frame *f = &w->rec.stack.frame[i & LB_MAX_FRAMES];
	__u64 proto = LB_FRAME_PTR(f);
	__u32 slot = LB_PROTO_SLOT(proto, w->rec.pid);
	__u32 tag = f->fp ^ w->rec.pid * 0x9e3779b1u ^ (__u32)(proto >> 3) ^ w->rec.epoch;

	if (LB_FRAME_KIND(f) != LB_FRAME_LUA)
		return 0;
	tag += !tag; /* 0 is an empty slot */
	if (proto_sent[slot] == tag)
		return 0;
	if (family == LB_FAMILY_PUC ? emit_puc_proto(&w->rec, proto, f->fp)
				    : emit_lj_proto(&w->rec, proto, f->fp)) {
		w->proto_sent = ~0U;
		return 1;
	}
	proto_sent[slot] = tag;
	w->proto_sent++;
	return 0;
}

static long emit_step_lj(__u32 i, struct lb_walk **w)
{
	return emit_proto(*w, i, LB_FAMILY_LJ);
}

static long emit_step_puc(__u32 i, struct lb_walk **w)
{
	return emit_proto(*w, i, LB_FAMILY_PUC);
}

#endif
