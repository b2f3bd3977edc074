/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A sample of a thread that may run PUC Lua: finds the lua_State, its topmost frame, and walks. */
#ifndef LUABPF_SAMPLE_PUC_BPF_H
#define LUABPF_SAMPLE_PUC_BPF_H

#include <unwind/puc/unwind.h>
#include "modules.bpf.h"
#include "regs.bpf.h"
#include "thread.bpf.h"

struct puc_sample {
	struct puc_walk *w;
	struct lb_proc *proc;
	struct lb_thread *thread;
};

/* Sets the walk's build and text to this module's. Returns 0, or -1 for another family's. */
static __always_inline int puc_module(struct puc_walk *w, const struct lb_proc *proc, __u32 i)
{
	const struct lb_module *module;
	struct lb_build *build;
	__u32 key;

	if (i >= LB_MODULES)
		return -1;
	module = &proc->module[i];
	if (module->family != LB_FAMILY_PUC)
		return -1;
	key = module->build;
	build = bpf_map_lookup_elem(&builds, &key);
	if (!build)
		return -1;
	/* large copies, rarely needed; by a helper, as each turn of a loop around this is verified */
	if (w->build_of != key + 1) {
		bpf_probe_read_kernel(&w->puc, sizeof(build->puc), &build->puc);
		bpf_probe_read_kernel(&w->stdlib, sizeof(w->stdlib), &build->stdlib);
		w->build_of = key + 1;
	}
	w->vm_start = module->vm_start;
	w->vm_end = module->vm_end;
	w->text_lo = module->text_lo;
	w->text_hi = module->text_hi;
	w->gc_lo = module->gc_lo;
	w->gc_hi = module->gc_hi;
	w->rec.build = key;
	return 0;
}

static long puc_walk_step(__u32 i, struct puc_walk **w)
{
	return puc_step(0, *w) != LB_MORE;
}

/* Walks the Lua stack of this module's VM on the thread. */
static __always_inline enum lb_status puc_walk_module(struct puc_sample *s, __u32 i)
{
	struct puc_walk *w = s->w;

	if (i >= s->proc->nmodules || puc_module(w, s->proc, i))
		return LB_STATUS_OUTSIDE;
	/* entries that were read by another build's layout are stale */
	lb_begin(&w->cache, w->cache.sample + 1);
	/* it ran last */
	w->L_hint = s->thread->puc_module == id_of_module(s->proc, i) ? s->thread->puc_L : 0;
	w->rec.stack.n = 0;
	w->rec.stack.flags = 0;
	puc_walk_begin(0, w);
	w->end = LB_STATUS_LOOP;
	lb_rare_loop(LB_MAX_STEPS, puc_walk_step, &w);
	puc_walk_end(0, s->w);
	return s->w->end;
}

/*
 * Walks the innermost of the VMs that are nested on the thread: its C frames begin nearest to sp.
 */
static __always_inline enum lb_status puc_walk_innermost(struct puc_sample *s)
{
	__u32 i, at = LB_MODULES;
	enum lb_status end = LB_STATUS_OUTSIDE;

	for (i = 0; i < LB_MODULES; i++) {
		enum lb_status its;

		if (i >= s->proc->nmodules)
			break;
		its = puc_walk_module(s, i);
		if (its == LB_STATUS_OUTSIDE)
			continue;
		if (at < LB_MODULES && s->w->inner >= s->w->innermost)
			continue;
		s->w->innermost = s->w->inner;
		end = its;
		at = i;
	}
	if (at >= LB_MODULES)
		return LB_STATUS_OUTSIDE;
	if (at != i - 1) /* the walk holds the last one, whatever its status */
		end = puc_walk_module(s, at);
	s->thread->puc_L = s->w->L;
	if (by_coroutine)
		s->w->rec.thread = s->w->L;
	s->thread->puc_module = id_of_module(s->proc, at);
	return end;
}

static __always_inline enum lb_status puc_sample(struct puc_sample *s,
						 const struct bpf_perf_event_data *event)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (regs_read(&s->w->regs, &s->w->gprs, event, task))
		return LB_STATUS_NO_REGS;
	s->w->stack_hi = thread_stack(s->thread, task, s->w->regs.sp);
	if (!s->w->stack_hi)
		return LB_STATUS_NO_STACK;
	thread_walk(puc_common(s->w), task, s->proc);
	return puc_walk_innermost(s);
}

#endif
