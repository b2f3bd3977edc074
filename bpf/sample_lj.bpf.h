/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A sample of a thread that may run LuaJIT: which VM, its topmost frame, the walk. */
#ifndef LUABPF_SAMPLE_LJ_BPF_H
#define LUABPF_SAMPLE_LJ_BPF_H

#include <luabpf/find_lj.h>
#include "regs.bpf.h"
#include "thread.bpf.h"

/* Makes the walk one for this module's build. */
static __always_inline struct lj_build *lj_module(struct lj_walk *w, const struct lb_proc *proc,
						  __u32 i)
{
	const struct lb_module *module;
	struct lb_build *any;
	struct lj_build *build;
	__u32 key;

	if (i >= LB_MODULES)
		return 0;
	module = &proc->module[i];
	key = module->build;
	any = bpf_map_lookup_elem(&builds, &key);
	if (!any || any->family != LB_FAMILY_LJ)
		return 0;
	build = &any->lj;
	w->lj = build->lj;
	w->vm_start = module->vm_start;
	w->vm_end = module->vm_end;
	w->text_lo = module->text_lo;
	w->text_hi = module->text_hi;
	w->rec.build = key;
	return build;
}

struct lj_find {
	struct lj_walk *w;
	struct lb_proc *proc;
	struct lb_thread *thread;
	struct lj_build *build;
	__u32 module;
};

/* The instruction pointer is in a VM's text: its global_State is in a register. */
static __always_inline int lj_find_by_text(struct lj_find *f)
{
	__u32 i;

	for (i = 0; i < LB_MODULES; i++) {
		const struct lb_module *module = &f->proc->module[i];

		if (i >= f->proc->nmodules)
			break;
		if (f->w->regs.ip - module->vm_start >= module->vm_end - module->vm_start)
			continue;
		f->build = lj_module(f->w, f->proc, i);
		f->module = i;
		if (f->build && !lj_find_vm(0, f->w, &f->w->regs, f->w->regs.gl - f->w->lj.g2disp))
			return 0;
	}
	return -1;
}

/* The VMs that ran on this thread before: the one whose cframe is the innermost. */
static __always_inline int lj_find_known(struct lj_find *f)
{
	__u64 best = ~0ULL;
	__u32 i, at = LB_THREAD_VMS, last = LB_THREAD_VMS;

	for (i = 0; i < LB_THREAD_VMS; i++) {
		if (!f->thread->g[i])
			break;
		f->build = lj_module(f->w, f->proc, f->thread->module[i]);
		if (!f->build || lj_find_vm(0, f->w, &f->w->regs, f->thread->g[i]))
			continue;
		last = i;
		if (f->w->cframe < best) {
			best = f->w->cframe;
			at = i;
		}
	}
	if (at >= LB_THREAD_VMS)
		return -1;
	f->module = f->thread->module[at];
	if (at == i - 1 && at == last)
		return 0;
	f->build = lj_module(f->w, f->proc, f->module);
	return f->build ? lj_find_vm(0, f->w, &f->w->regs, f->thread->g[at]) : -1;
}

/*
 * A VM that one of the known ones called, and that runs compiled code since before it was looked
 * at: only its register tells. It is the inner one when its cframe is nearer.
 */
static __always_inline int lj_find_inner(struct lj_find *f)
{
	__u64 known = f->w->g, cframe = f->w->cframe, g = f->w->regs.gl - f->w->lj.g2disp;

	if (g == known || (!lj_find_vm(0, f->w, &f->w->regs, g) && f->w->cframe < cframe))
		return 0;
	if (f->w->g)
		return lj_find_vm(0, f->w, &f->w->regs, known);
	f->w->g = known; /* nothing else was touched */
	f->w->fault = 0;
	return 0;
}

static long lj_walk_step(__u32 i, struct lj_walk **w)
{
	return lj_step(0, *w) != LB_MORE;
}

/* Compiled code and the VM's callees keep the register that leads to the global_State, mostly. */
static __always_inline int lj_find_by_register(struct lj_find *f)
{
	__u32 i;

	for (i = 0; i < LB_MODULES; i++) {
		if (i >= f->proc->nmodules)
			break;
		f->build = lj_module(f->w, f->proc, i);
		f->module = i;
		if (f->build && !lj_find_vm(0, f->w, &f->w->regs, f->w->regs.gl - f->w->lj.g2disp))
			return 0;
	}
	return -1;
}

/*
 * The last resort: search the C stack for the VM's frame. Threads that never run Lua would pay for
 * it at each sample, so the pauses between two searches double, up to 64 samples.
 */
static __always_inline int lj_find_by_stack(struct lj_find *f)
{
	struct lj_walk *w = f->w;
	__u32 i;

	if (f->thread->scan_wait) {
		f->thread->scan_wait--;
		return -1;
	}
	LB_UNROLLED /* 6.1 sees no end of it */
	for (i = 0; i < LB_MODULES; i++) {
		if (i >= f->proc->nmodules)
			break;
		f->build = lj_module(w, f->proc, i);
		f->module = i;
		if (!f->build)
			continue;
		w->g = 0;
		w->L = 0;
		lj_search_from(w, (f->w->regs.sp + 7) & ~7ULL);
		bpf_loop(LB_MAX_STEPS, lj_walk_step, &w, 0);
		if (w->g && !lj_find_vm(0, w, &f->w->regs, w->g))
			return 0;
	}
	f->thread->scan_pause = f->thread->scan_pause ? f->thread->scan_pause * 2 : 1;
	if (f->thread->scan_pause > 64)
		f->thread->scan_pause = 64;
	f->thread->scan_wait = f->thread->scan_pause;
	return -1;
}

/* 0: a VM runs on this thread, and f->w is about it. Else an enum lb_end. */
static __always_inline enum lb_end lj_begin(struct lj_find *f, struct task_struct *task)
{
	__u32 cpu = bpf_get_smp_processor_id();

	f->w = bpf_map_lookup_elem(&walks, &cpu);
	if (!f->w || regs_read(&f->w->regs, task))
		return LB_END_NO_REGS;
	f->w->stack_hi = thread_stack(f->thread, task, f->w->regs.sp);
	if (!f->w->stack_hi)
		return LB_END_NO_STACK;
	f->w->cache.sample++;
	thread_walk(lj_common(f->w), task, f->proc);
	f->w->family = LB_FAMILY_LJ;
	f->w->exact = 0;
	if (lj_find_by_text(f) && (lj_find_known(f) || lj_find_inner(f)) &&
	    lj_find_by_register(f) && lj_find_by_stack(f))
		return LB_END_OUTSIDE;
	thread_remember(f->thread, f->w->g, f->module);
	return LB_END_RESOLVED;
}

static __always_inline enum lb_end lj_finish(struct lj_find *f)
{
	struct lj_walk *w = f->w;
	__u64 base;

	w->end = LB_END_TORN;
	if (lj_find_top(0, w, f->build, &f->w->regs, f->thread->traceno))
		return w->end;
	base = w->base;
	w->end = LB_END_LOOP;
	bpf_loop(LB_MAX_STEPS, lj_walk_step, &w, 0);
	if (w->trace)
		f->thread->traceno = w->trace;
	if (w->end == LB_END_TORN && !lj_find_again(0, w, &f->w->regs, base)) {
		w->end = LB_END_LOOP;
		bpf_loop(LB_MAX_STEPS, lj_walk_step, &w, 0);
	}
	return w->end;
}

#endif
