// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * The sampler. A perf_event fires on each thread of a target, or on each CPU; its sample goes into the ring buffer.
 * This file has the order of the phases: target check, VM search, topmost frame, walk, record. Each
 * has its own header.
 *
 * A program for the events, luabpf_threads or luabpf_cpus, checks the target. It ends in a tail
 * call of the program of the VM's family, luabpf_lj, luabpf_lj32 or luabpf_puc, which does the rest. That is
 * loaded when the first process of its family is found: it takes most of the time to load. When VMs
 * of both families are in one process, the innermost on the thread is sampled:
 *
 *	luabpf_lj finds its VM -> luabpf_puc walks its own -> sends it, or luabpf_lj walks
 *
 * Every sample of a target ends in exactly one enum lb_status.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "regs.bpf.h"
#include "maps.bpf.h"
#include "target.bpf.h"
#include "thread.bpf.h"
#include "sample_lj.bpf.h"
#include "sample_puc.bpf.h"
#include "emit.bpf.h"
#include "fork.bpf.h"
#include "files.bpf.h"
#include "changed.bpf.h"
#include "plain.bpf.h"
#include "modules.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline __u64 task_exec_id(struct task_struct *task)
{
	__u64 id = EXEC_ID(task->group_leader->start_boottime, task->self_exec_id);

	return narrowed_by ? id ^ narrow_stamp(task) : id;
}

/*
 * True if this sample comes from a thread's second event. A thread that began while its process was
 * being attached may have two (`doubled`): one that user space opened for it, and one that it inherited.
 * The root of the inheritance identifies the event: the thread's first root counts. (The kernel swaps
 * whole contexts of related threads: the current event, and its cookie, may have been another's.)
 */
static __noinline int is_duplicate(void *ctx, __u32 tid, __u64 exec_id)
{
	struct bpf_perf_event_data_kern *data = ctx;
	struct perf_event *event = 0, *parent = 0;
	struct lb_root *known, root = {.exec_id = exec_id};

	if (bpf_probe_read_kernel(&event, sizeof(event),
				  __builtin_preserve_access_index(&data->event)) ||
	    bpf_probe_read_kernel(&parent, sizeof(parent),
				  __builtin_preserve_access_index(&event->parent)))
		return 0;
	root.event = (__u64)(parent ? parent : event);
	known = bpf_map_lookup_elem(&roots, &tid);
	if (known && known->exec_id == exec_id)
		return known->event != root.event;
	bpf_map_update_elem(&roots, &tid, &root, BPF_ANY);
	return 0;
}

/*
 * True for one randomly drawn event of each events_per_sample consecutive events of a thread on this
 * CPU: against a program that works in step with the events, and so that a short thread may be sampled
 * in its first events.
 */
static __always_inline int is_sample(struct lb_thread *thread)
{
	if (!thread->draw_left) {
		thread->draw_left = events_per_sample;
		thread->draw_at = bpf_get_prandom_u32() % events_per_sample;
	}
	return --thread->draw_left == thread->draw_at;
}

/*
 * Recognises, by its files, a process that is unknown, or has called exec since, or had no VM when
 * it was examined. One that the recording's filters exclude counts as one without a VM. exec_vm: its
 * executable pages from before. Returns an enum by_files: FILES_VM: it is in procs now.
 */
static __noinline int by_files(struct lb_cpu *cpu, const struct lb_proc *proc, __u32 pid,
			       __u64 exec_id, __u32 exec_vm)
{
	enum verdict verdict = narrowed_by ? narrow_verdict(&cpu->identity) : VERDICT_WANTED;
	enum by_files by;

	if (verdict == VERDICT_UNWANTED)
		return FILES_NO_VM;
	by = files_search(&cpu->search);
	if (by != FILES_VM)
		return by;
	if (verdict == VERDICT_UNKNOWN)
		return FILES_UNKNOWN;
	cpu->search.proc.exec_vm = exec_vm;
	return files_adopt(cpu, pid, exec_id, proc && proc->exec_id != exec_id ? proc->epoch : 0);
}

/*
 * Asks user space to examine a process. Without a VM in its files, its sample is not lost. ended: the
 * epoch of its previous image; 0: none.
 */
static __always_inline int meet(__u32 pid, __u32 ended, __u64 exec_id, int taken, enum by_files by)
{
	int lost = taken && by == FILES_UNKNOWN;

	emit_task(pid, ended, exec_id, (__u16)lost, 0);
	if (taken)
		count_end(pid, lost ? LB_STATUS_UNRECOGNISED : LB_STATUS_OUTSIDE);
	return 0;
}

/*
 * A process without a VM in a system-wide recording. Returns 1: its samples are no target's and do
 * not count; 0: user space has not looked at its mappings yet. known: it has looked before, and found
 * no VM: with 0 its sample is taken and counts as outside Lua. exec_vm: as of by_files().
 */
static __always_inline int pass(struct lb_cpu *cpu, __u32 pid, const struct lb_proc *proc,
				__u64 exec_id, __u32 exec_vm, enum by_files by, int known)
{
	int is_new;

	if (by == FILES_UNKNOWN && (!known || proc->exec_vm != exec_vm))
		return 0;
	is_new = note_plain(cpu, pid, exec_id, exec_vm, by == FILES_UNKNOWN);
	if (proc && (!known || (by == FILES_UNKNOWN && is_new))) /* exec; it has mapped more */
		emit_task(pid, known ? 0 : proc->epoch, exec_id, 0, 0);
	return 1;
}

/* A thread that ran none of its process's sampled VMs may have run one that is not sampled, or one
 * whose library was loaded since. */
static __always_inline enum lb_status outside(const struct lb_proc *proc, enum lb_status end)
{
	if (end != LB_STATUS_OUTSIDE)
		return end;
	return proc->unsampled ? LB_STATUS_NOT_SAMPLED : (enum lb_status)changed_outside(proc);
}

/* A sample of a target. Returns, and counts its status, if the thread exits, if no VM may run, or if the
 * program of the VM's family is not loaded yet. */
static __always_inline void take(struct bpf_perf_event_data *event, struct lb_cpu *cpu,
				 const struct lb_proc *proc, struct task_struct *task,
				 __u64 exec_id)
{
	__u32 pid = task->tgid, families = proc->families;
	struct lb_thread *thread;

	if (proc->nmodules && task->flags & PF_EXITING) {
		count_end(pid, LB_STATUS_NO_REGS);
		return;
	}
	thread = thread_of(cpu, task, exec_id);
	cpu->current = pid & (CPU_TARGETS - 1);
	cpu->lj_has_begun = 0;
	if (proc->more)
		families = modules_choose(cpu, proc, thread, event);
	if (families & LB_FAMILY_BIT(LJ32))
		bpf_tail_call_static(event, &family_programs, LB_FAMILY_LJ32);
	else if (families & LB_FAMILY_BIT(LJ))
		bpf_tail_call_static(event, &family_programs, LB_FAMILY_LJ);
	else if (families)
		bpf_tail_call_static(event, &family_programs, LB_FAMILY_PUC);
	count_end(pid, families ? LB_STATUS_VM_FAMILY_LOADING : outside(proc, LB_STATUS_OUTSIDE));
}

/*
 * Handles an event: drops it, or decides that it is a sample of a target, recognises the process if
 * need be, and calls the program of its family. everywhere: the events are those of CPUs, not of the
 * targets' threads, and most of them come in processes without a VM.
 */
static __always_inline int on_event(struct bpf_perf_event_data *event, int everywhere)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 exec_id = task_exec_id(task);
	struct lb_cpu *cpu = this_cpu();
	__u32 pid = task->tgid, exec_vm;
	struct lb_proc *proc;
	enum by_files by;
	int taken, is_known;
	__u64 pages;

	if (!cpu) { /* cannot be: cpus has an entry for each possible CPU */
		count_end(pid, LB_STATUS_FAULT);
		return 0;
	}
	/* a kernel thread, or a process that ends; or one that is known to have no VM */
	if (everywhere && (!task->mm || is_plain(cpu, task, pid, exec_id)))
		return 0;
	if (doubled && is_duplicate(event, task->pid, exec_id))
		return 0;
	taken = events_per_sample == 1 || is_sample(thread_of(cpu, task, exec_id));
	proc = target_of(cpu, pid, exec_id);
	if (!proc && !narrowed_by) /* a child's cgroup, user and name may be others */
		proc = fork_adopt(cpu, pid, exec_id);
	is_known = proc && proc->exec_id == exec_id;
	if (!is_known || (taken && !proc->nmodules)) {
		/* before the search: what is mapped during it makes the number differ at the next event */
		exec_vm = PAGES_EXEC(task_pages());
		by = by_files(cpu, proc, pid, exec_id, exec_vm);
		if (by == FILES_VM)
			proc = &cpu->target[pid & (CPU_TARGETS - 1)].proc;
		else if (everywhere && pass(cpu, pid, proc, exec_id, exec_vm, by, is_known))
			return 0;
		else if (!is_known)
			return meet(pid, proc ? proc->epoch : 0, exec_id, taken, by);
	}
	if (!taken || !proc)
		return 0;
	pages = task_pages();
	if (proc->exec_vm != PAGES_EXEC(pages) && !(task->flags & PF_EXITING))
		changed_code(cpu, proc, pid, pages);
	take(event, cpu, proc, task, exec_id);
	return 0;
}

#ifndef LUABPF_GC32
SEC("perf_event")
int luabpf_threads(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 0);
}

SEC("perf_event")
int luabpf_cpus(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 1);
}

#endif

/* The findings of the event's program, for the programs of VM families. */
struct current {
	struct lb_cpu *cpu;
	struct lb_proc *proc;
	struct lb_thread *thread;
	__u32 pid;
};

/* Returns 0, or -1, which cannot be. */
static __always_inline int current_of(struct current *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 at;

	c->cpu = this_cpu();
	if (!c->cpu)
		return -1;
	at = c->cpu->current;
	if (at > CPU_TARGETS)
		return -1;
	c->proc = &c->cpu->target[at].proc;
	c->thread = &c->cpu->thread[task->pid & (CPU_THREADS - 1)];
	c->pid = task->tgid;
	return 0;
}

static __always_inline enum lb_status send(struct lb_walk *w, struct lb_cache *cache,
					   struct lb_thread *thread, enum lb_status end,
					   enum lb_family family)
{
	if (end != LB_STATUS_RESOLVED)
		return end;
	thread_describe(w);
	if (by_zone)
		zone_read(w, cache, thread);
	return emit_sample(w, thread, family) ? LB_STATUS_RING_FULL : LB_STATUS_RESOLVED;
}

/* A thread that ran no VM of this program's family may have run one of the other kind. */
static __always_inline enum lb_status lj_outside(const struct lb_proc *proc, enum lb_status end)
{
	if (LJ_FAMILY == LB_FAMILY_LJ32 && end == LB_STATUS_OUTSIDE &&
	    proc->families & LB_FAMILY_BIT(LJ))
		return LB_STATUS_NOT_SAMPLED;
	return outside(proc, end);
}

static __always_inline int take_lj(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct lj_walk *w = bpf_map_lookup_elem(&walks, &cpu);
	enum lb_status end;
	struct current c;

	if (!w || current_of(&c))
		return 0;
	if (!c.cpu->lj_has_begun) {
		w->end = lj_begin(w, ctx, c.proc, c.thread);
		if (c.proc->families & LB_FAMILY_BIT(PUC)) {
			c.cpu->lj_has_begun = 1;
			c.cpu->lj_status = w->end;
			c.cpu->lj_cframe = w->cframe;
			bpf_tail_call_static(ctx, &family_programs, LB_FAMILY_PUC);
			count_end(c.pid, LB_STATUS_VM_FAMILY_LOADING);
			return 0;
		}
	}
	end = w->end;
	if (end == LB_STATUS_RESOLVED)
		end = send(lj_common(w), &w->cache, c.thread, lj_finish(w, c.thread), LB_FAMILY_LJ);
	count_end(c.pid, lj_outside(c.proc, end));
	return 0;
}

#ifdef LUABPF_GC32
SEC("perf_event")
int luabpf_lj32(struct bpf_perf_event_data *ctx)
{
	return take_lj(ctx);
}
#else
SEC("perf_event")
int luabpf_lj(struct bpf_perf_event_data *ctx)
{
	return take_lj(ctx);
}

/* True if a VM of the other family is the one to sample. */
static __always_inline int lj_is_inner(const struct lb_cpu *cpu, const struct puc_walk *w,
				       enum lb_status end)
{
	return cpu->lj_has_begun &&
	       (end == LB_STATUS_OUTSIDE ||
		(cpu->lj_status == LB_STATUS_RESOLVED && w->inner >= cpu->lj_cframe));
}

SEC("perf_event")
int luabpf_puc(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct puc_walk *w = bpf_map_lookup_elem(&puc_walks, &cpu);
	struct puc_sample puc = {.w = w};
	enum lb_status end;
	struct current c;

	if (!w || current_of(&c))
		return 0;
	puc.proc = c.proc;
	puc.thread = c.thread;
	end = puc_sample(&puc, ctx);
	if (lj_is_inner(c.cpu, w, end)) {
		end = c.cpu->lj_status;
		if (end == LB_STATUS_RESOLVED && c.proc->families & LB_FAMILY_BIT(LJ32))
			bpf_tail_call_static(ctx, &family_programs, LB_FAMILY_LJ32);
		else if (end == LB_STATUS_RESOLVED)
			bpf_tail_call_static(ctx, &family_programs, LB_FAMILY_LJ);
	} else {
		end = send(puc_common(w), &w->cache, c.thread, end, LB_FAMILY_PUC);
	}
	count_end(c.pid, outside(c.proc, end));
	return 0;
}
#endif
