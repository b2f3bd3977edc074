/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The zone of a sample: where the VM keeps its zone stack, and the names that were sent. */
#ifndef LUABPF_ZONE_BPF_H
#define LUABPF_ZONE_BPF_H

#include <unwind/zone.h>
#include "maps.bpf.h"

/* Copies a VM's entry to its thread's. Returns 0, or -1 when it has none, or is being changed. */
static __noinline int zone_take(const struct lb_walk *w, struct lb_thread *thread)
{
	__u32 version = *(volatile __u32 *)&zones_version; /* before the lookup */
	struct lb_zone_key key = {.g = w->rec.vm, .pid = w->rec.pid, .epoch = w->rec.epoch};
	const struct lb_zone *zone = bpf_map_lookup_elem(&zones, &key);

	thread->zone_g = 0;
	if (!zone)
		return -1;
	thread->zone = *zone;
	if (thread->zone.check != lb_zone_check(&key, &thread->zone))
		return -1;
	thread->zones_version = version;
	thread->zone_g = w->rec.vm;
	return 0;
}

/*
 * lb_zone_read() as a global function: the verifier checks it once, not at each call. Kernels before
 * 6.8 do so even if no code calls it: without zones, its first line ends it there.
 */
LB_SUBPROG __u64 zone_read_stack(struct lb_walk *w, struct lb_cache *cache,
				 const struct lb_zone_layout *layout, const struct lb_zone *zone)
{
	if (!by_zone || !w || !cache || !layout || !zone)
		return LB_ZONE_UNKNOWN;
	return lb_zone_read(0, w, cache, layout, zone);
}

/*
 * Sets rec.zone: UNSEEN without a valid entry in `zones`, ABSENT if the VM has no zone stack, else what
 * lb_zone_read() returns. Returns 0. Not inlined: its BPF stack would add to that of the walks.
 */
static __noinline int zone_read(struct lb_walk *w, struct lb_cache *cache, struct lb_thread *thread)
{
	__u32 build = w->rec.build;
	__u64 word = LB_ZONE_ABSENT;

	if ((thread->zone_g != w->rec.vm || thread->zones_version != zones_version) &&
	    zone_take(w, thread)) {
		w->rec.zone = LB_ZONE(LB_ZONE_UNSEEN, 0);
		return 0;
	}
	if (thread->zone.table) {
		w->zone_depth = thread->zone_depth;
		word = zone_read_stack(w, cache, bpf_map_lookup_elem(&zone_layouts, &build),
				       &thread->zone);
		thread->zone_depth = w->zone_depth;
	}
	w->rec.zone = LB_ZONE(word, thread->zone.generation);
	return 0;
}

/* True if user space has to be woken to find the VM's zone stack: the zones of samples are unknown
 * until it has. */
static __always_inline int zone_is_asked(const struct lb_walk *w)
{
	return by_zone && LB_ZONE_WORD(w->rec.zone) == LB_ZONE_UNSEEN;
}

/* Sends the name of a sample's zone, unless it was sent before. Returns 0, or -1 when the ring is
 * full. */
static __always_inline int emit_zone(struct lb_walk *w)
{
	__u64 word = LB_ZONE_WORD(w->rec.zone), *sent = &zone_sent[word & (ZONES_SENT - 1)];
	__u32 len = w->zone.len;

	if (!by_zone || word < LB_ZONE_NAMES || *sent == word)
		return 0;
	if (len > LB_ZONE_TEXT)
		len = LB_ZONE_TEXT;
	w->zone.head.type = LB_REC_ZONE;
	w->zone.head.size = LB_ZONE_SIZE(len);
	w->zone.word = word;
	w->zone.pad = 0;
	if (bpf_ringbuf_output(&ring, &w->zone, LB_ZONE_SIZE(len), BPF_RB_NO_WAKEUP))
		return -1;
	*sent = word;
	return 0;
}

#endif
