/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Takes the sample of a struct lb_selftest, in the order of bpf/luabpf.bpf.c, for a process with
 * one module. The includer defines lb_selftest_run(), the loop, with the bound of the contract
 * (unwind.h).
 */
#ifndef LUABPF_UNWIND_LJ_SELFTEST_SAMPLE_H
#define LUABPF_UNWIND_LJ_SELFTEST_SAMPLE_H

#include <unwind/lj/selftest.h>

/* Steps the walk until it stops, or LB_MAX_STEPS were made. */
static void lb_selftest_run(const struct lb_mem *mem, struct lj_walk *w);

static __always_inline void lb_selftest_reset(struct lj_walk *w, const struct lb_selftest *in)
{
	w->lj = in->build.lj;
	w->vm_start = in->vm_start;
	w->vm_end = in->vm_end;
	w->text_lo = in->text_lo;
	w->text_hi = in->text_hi;
	w->stack_hi = in->stack_hi;
	lb_begin(&w->cache, in->sample);
	w->rec.stack.n = 0;
	w->rec.stack.flags = 0;
	w->rec.traceno = 0;
	w->epoch = in->epoch;
	w->prove = 0;
	w->single = 1;
	w->g = 0;
	w->L_hint = 0;
	w->regs = in->regs;
}

static __always_inline int lb_selftest_known(const struct lb_mem *mem, struct lj_walk *w,
					     const struct lb_selftest *in)
{
	__u64 best = ~0ULL, g = 0;
	__u32 i;

	for (i = 0; i < LB_THREAD_VMS && in->known[i]; i++) {
		if (lj_find_vm(mem, w, &in->regs, in->known[i]) || w->cframe >= best)
			continue;
		best = w->cframe;
		g = in->known[i];
	}
	return g ? lj_find_vm(mem, w, &in->regs, g) : -1;
}

static __always_inline int lb_selftest_search(const struct lb_mem *mem, struct lj_walk *w,
					      const struct lb_selftest *in)
{
	lj_search_unknown(w, in->regs.sp);
	lb_selftest_run(mem, w);
	w->L_hint = w->L;
	return w->g ? lj_find_vm(mem, w, &in->regs, w->g) : -1;
}

static __always_inline int lb_selftest_find(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lb_selftest *in)
{
	__u64 g = in->regs.gl - in->build.lj.g2disp;

	if (lj_in_vm(w, in->regs.ip) && !lj_find_vm(mem, w, &in->regs, g))
		return 0;
	if (!lb_selftest_known(mem, w, in) || !lj_find_vm(mem, w, &in->regs, g))
		return 0;
	return lb_selftest_search(mem, w, in);
}

static __always_inline void lb_selftest_walk(const struct lb_mem *mem, struct lj_walk *w)
{
	w->end = LB_STATUS_LOOP;
	lb_selftest_run(mem, w);
	lj_walk_end(mem, w);
}

/* Takes the sample; the frames are in w->rec.stack, its status in w->end. */
static __always_inline void lb_selftest_sample(const struct lb_mem *mem, struct lj_walk *w,
					       const struct lb_selftest *in)
{
	__u64 base;

	lb_selftest_reset(w, in);
	if (lb_selftest_find(mem, w, in)) {
		w->end = LB_STATUS_OUTSIDE;
		return;
	}
	w->end = LB_STATUS_STACK_CHANGING;
	if (lj_walk_begin(mem, w, &in->build, &in->regs, in->traceno))
		return;
	base = w->base;
	lb_selftest_walk(mem, w);
	if (w->end == LB_STATUS_STACK_CHANGING && !lj_walk_again(mem, w, &in->regs, base))
		lb_selftest_walk(mem, w);
}

#endif
