/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A sample of a thread that may run LuaJIT: finds the VM and its topmost frame, and walks. */
#ifndef LUABPF_SAMPLE_LJ_BPF_H
#define LUABPF_SAMPLE_LJ_BPF_H

#include <unwind/lj/unwind.h>
#include "modules.bpf.h"
#include "regs.bpf.h"
#include "thread.bpf.h"

/* The kind of LuaJIT that these programs are compiled for. */
#ifdef LUABPF_GC32
#define LJ_FAMILY LB_FAMILY_LJ32
#else
#define LJ_FAMILY LB_FAMILY_LJ
#endif

/* Sets the walk's build and text to this module's. Returns 0, or -1 for another family's. */
static __always_inline int lj_module(struct lj_walk *w, const struct lb_proc *proc, __u32 i)
{
	const struct lb_module *module;
	struct lb_build *build;
	__u32 key;

	if (i >= LB_MODULES)
		return -1;
	module = &proc->module[i];
	key = module->build;
	if (module->family != LJ_FAMILY)
		return -1;
	if (w->build_of != key + 1) {
		build = bpf_map_lookup_elem(&builds, &key);
		if (!build)
			return -1;
		w->lj = build->lj.lj;
		w->build_of = key + 1;
	}
	w->vm_start = module->vm_start;
	w->vm_end = module->vm_end;
	w->text_lo = module->text_lo;
	w->text_hi = module->text_hi;
	w->rec.build = key;
	return 0;
}

/* Returns 0 if VM g of a module runs on this thread. g is 0: the one that its register leads to. */
LB_SUBPROG int lj_try(struct lj_walk *w, const struct lb_proc *proc, __u32 module, __u64 g)
{
	if (!w || !proc || lj_module(w, proc, module))
		return -1;
	return lj_find_vm(0, w, &w->regs, g ? g : w->regs.gl - w->lj.g2disp);
}

/* A search for the VM that runs on this thread. The walk has the module that was tried last. */
struct lj_find {
	struct lj_walk *w;
	const struct lb_proc *proc;
	struct lb_thread *thread;
	__u32 module; /* in which it was found: index into proc->module[] */
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
		f->module = i;
		if (!lj_try(f->w, f->proc, i, 0))
			return 0;
	}
	return -1;
}

/* The VMs that ran on this thread before: the one whose cframe is the innermost. */
static __always_inline int lj_find_known(struct lj_find *f)
{
	__u64 best = ~0ULL;
	__u32 i, module, at = LB_THREAD_VMS;

	for (i = 0; i < LB_THREAD_VMS; i++) {
		if (!f->thread->vms.g[i])
			break;
		module = module_of_id(f->proc, f->thread->vms.module[i]);
		if (lj_try(f->w, f->proc, module, f->thread->vms.g[i]) || f->w->cframe >= best)
			continue;
		best = f->w->cframe;
		at = i;
	}
	if (at >= LB_THREAD_VMS)
		return -1;
	f->module = module_of_id(f->proc, f->thread->vms.module[at]);
	if (at == i - 1) /* the walk is set on the one that was tried last */
		return 0;
	return lj_try(f->w, f->proc, f->module, f->thread->vms.g[at]);
}

/*
 * Tries a VM that a known one called, and that has run compiled code since before the attach: only
 * its register leads to it. It is the inner one when its cframe is nearer to sp.
 */
static __always_inline int lj_find_inner(struct lj_find *f)
{
	__u64 known = f->w->g, cframe = f->w->cframe, g = f->w->regs.gl - f->w->lj.g2disp;

	if (g == known || (!lj_find_vm(0, f->w, &f->w->regs, g) && f->w->cframe < cframe))
		return 0;
	if (f->w->g)
		return lj_find_vm(0, f->w, &f->w->regs, known);
	f->w->g = known; /* no other field has changed */
	f->w->fault = 0;
	return 0;
}

static long lj_walk_step(__u32 i, struct lj_walk **w)
{
	return lj_step(0, *w) != LB_MORE;
}

/* Compiled code keeps the register that leads to the global_State; callees may reuse it. */
static __always_inline int lj_find_by_register(struct lj_find *f)
{
	__u32 i;

	for (i = 0; i < LB_MODULES; i++) {
		if (i >= f->proc->nmodules)
			break;
		f->module = i;
		if (!lj_try(f->w, f->proc, i, 0))
			return 0;
	}
	return -1;
}

/* Returns 0 when registers or known VMs lead to the one that runs on this thread: w has it. */
LB_SUBPROG int lj_find(struct lj_walk *w, const struct lb_proc *proc, struct lb_thread *thread)
{
	struct lj_find f = {.w = w, .proc = proc, .thread = thread};

	if (!w || !proc || !thread ||
	    (lj_find_by_text(&f) && (lj_find_known(&f) || lj_find_inner(&f)) &&
	     lj_find_by_register(&f)))
		return -1;
	thread_remember(thread, w->g, id_of_module(proc, f.module));
	return 0;
}

/* Not lj_walk_step(): its callees would add their BPF stack below this one. */
static long lj_search_step(__u32 i, struct lj_walk **w)
{
	return lj_step_search(0, *w) != LB_MORE;
}

/*
 * Searches the C stack for the VM's frame, as the last resort. Threads that never run Lua would pay for it at each sample, so
 * the pauses between two searches double, up to 64 samples; not where more VMs run on the thread than are remembered.
 */
LB_SUBPROG int lj_find_by_stack(struct lj_walk *w, const struct lb_proc *proc,
				struct lb_thread *thread)
{
	__u32 i;

	if (!w || !proc || !thread)
		return -1;
	if (thread->scan_wait && !thread->vms.g[LB_THREAD_VMS - 1]) {
		thread->scan_wait--;
		return -1;
	}
	LB_UNROLLED /* the verifier of 6.1 finds no bound of the rolled loop */
	for (i = 0; i < LB_MODULES; i++) {
		if (i >= proc->nmodules)
			break;
		if (lj_module(w, proc, i))
			continue;
		lj_search_unknown(w, w->regs.sp);
		lb_rare_loop(LB_MAX_STEPS, lj_search_step, &w);
		w->L_hint = w->L;
		if (w->g && !lj_try(w, proc, i, w->g)) {
			thread_remember(thread, w->g, id_of_module(proc, i));
			return 0;
		}
	}
	thread->scan_pause = thread->scan_pause ? thread->scan_pause * 2 : 1;
	if (thread->scan_pause > 64)
		thread->scan_pause = 64;
	thread->scan_wait = thread->scan_pause;
	return -1;
}

/* Returns LB_STATUS_RESOLVED when a VM runs on this thread, with the walk set to it; else the
 * sample's status. */
static __always_inline enum lb_status lj_begin(struct lj_walk *w,
					       const struct bpf_perf_event_data *event,
					       const struct lb_proc *proc, struct lb_thread *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (regs_read(&w->regs, 0, event, task))
		return LB_STATUS_NO_REGS;
	w->stack_hi = thread_stack(thread, task, w->regs.sp);
	if (!w->stack_hi)
		return LB_STATUS_NO_STACK;
	lb_begin(&w->cache, w->cache.sample + 1);
	thread_walk(lj_common(w), task, proc);
	w->L_hint = thread->lj_L;
	if (lj_find(w, proc, thread) && lj_find_by_stack(w, proc, thread))
		return LB_STATUS_OUTSIDE;
	return LB_STATUS_RESOLVED;
}

/* Most walks take one step: it is called directly. Not inlined: there are two calls. */
static __noinline int lj_walk_all(struct lj_walk *w)
{
	w->end = LB_STATUS_LOOP;
	if (lj_step(0, w) == LB_MORE)
		bpf_loop(LB_MAX_STEPS - 1, lj_walk_step, &w, 0);
	lj_walk_end(0, w);
	return 0;
}

static __always_inline enum lb_status lj_finish(struct lj_walk *w, struct lb_thread *thread)
{
	struct lb_build *build = bpf_map_lookup_elem(&builds, &w->rec.build);
	__u64 base;

	w->end = LB_STATUS_STACK_CHANGING;
	if (!build || lj_walk_begin(0, w, &build->lj, &w->regs, thread->traceno))
		return w->end;
	base = w->base;
	if (by_coroutine) /* the walk leads to its resumers */
		w->rec.thread = w->L;
	lj_walk_all(w);
	thread->lj_L = w->L;
	if (w->trace)
		thread->traceno = w->trace;
	if (w->end == LB_STATUS_STACK_CHANGING && !lj_walk_again(0, w, &w->regs, base))
		lj_walk_all(w);
	return w->end;
}

#endif
