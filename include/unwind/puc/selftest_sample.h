/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Takes the sample of a struct puc_selftest, as bpf/sample_puc.bpf.h does for a process with one
 * module. The includer defines puc_selftest_run(), the loop, bounded by LB_MAX_STEPS.
 */
#ifndef LUABPF_UNWIND_PUC_SELFTEST_SAMPLE_H
#define LUABPF_UNWIND_PUC_SELFTEST_SAMPLE_H

#include <unwind/puc/unwind.h>
#include <unwind/puc/selftest.h>

/* Steps the walk until it stops, or for LB_MAX_STEPS. */
static void puc_selftest_run(const struct lb_mem *mem, struct puc_walk *w);

static __always_inline void puc_selftest_reset(struct puc_walk *w, const struct puc_selftest *in)
{
	__u32 i;

	puc_set_build(w, &in->build);
	for (i = 0; i < PUC_NO_RESUME; i++)
		w->stdlib.no_resume[i] = in->stdlib.no_resume[i];
	for (i = 0; i < PUC_API_CALLERS; i++)
		w->stdlib.api_caller[i] = in->stdlib.api_caller[i];
	w->stdlib.resume = in->stdlib.resume;
	w->stdlib.wrap = in->stdlib.wrap;
	w->regs = in->regs;
	w->gprs = in->gprs;
	w->vm_start = in->vm_start;
	w->vm_end = in->vm_end;
	w->text_lo = in->text_lo;
	w->text_hi = in->text_hi;
	w->gc_lo = in->gc_lo;
	w->gc_hi = in->gc_hi;
	w->stack_hi = in->stack_hi;
	w->L_hint = in->L;
	for (i = 0; i < PUC_SELFTEST_CHILDREN; i++)
		puc_note_resumed(w, in->child[i], in->resumer);
	lb_begin(&w->cache, in->sample);
	w->epoch = in->epoch;
	w->prove = 0;
	w->single = 1;
	w->rec.stack.n = 0;
	w->rec.stack.flags = 0;
}

/* Takes the sample; the frames are in w->rec.stack, its status in w->end. */
static __always_inline void puc_selftest_sample(const struct lb_mem *mem, struct puc_walk *w,
						const struct puc_selftest *in)
{
	puc_selftest_reset(w, in);
	puc_walk_begin(mem, w);
	w->end = LB_STATUS_LOOP;
	puc_selftest_run(mem, w);
	puc_walk_end(mem, w);
}

#endif
