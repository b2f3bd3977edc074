// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * The sampler. A perf_event fires on each thread of a target; its sample goes into the ring buffer.
 * This file has the order of the phases: target check, registers, VM search, topmost frame, walk,
 * record. Each has its own header.
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
#include "plain.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline __u64 task_exec_id(struct task_struct *task)
{
	__u64 id = EXEC_ID(task->group_leader->start_boottime, task->self_exec_id);

	return narrowed_by ? id ^ narrow_stamp(task) : id;
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

/*
 * families: those that this program knows, a constant. When VMs of both are nested on one thread,
 * the innermost is sampled.
 */
static __always_inline enum lb_status sample(const struct bpf_perf_event_data *event,
					     struct lb_proc *proc, struct lb_thread *thread,
					     __u32 families)
{
	struct puc_sample puc = {.proc = proc, .thread = thread};
	enum lb_status lj_status = LB_STATUS_OUTSIDE, puc_status = LB_STATUS_OUTSIDE;
	struct lj_walk *lj = 0;

	if (bpf_get_current_task_btf()->flags & PF_EXITING)
		return LB_STATUS_NO_REGS;
	if (families & proc->families & LB_FAMILY_BIT(PUC))
		puc_status = puc_sample(&puc, event);
	if (families & proc->families & LB_FAMILY_BIT(LJ))
		lj_status = lj_begin(&lj, event, proc, thread);
	if (families & LB_FAMILY_BIT(PUC) && puc_status != LB_STATUS_OUTSIDE && puc.w &&
	    (lj_status != LB_STATUS_RESOLVED || puc.w->inner < lj->cframe))
		return send(puc_common(puc.w), &puc.w->cache, thread, puc_status, LB_FAMILY_PUC);
	if (!(families & LB_FAMILY_BIT(LJ)) || lj_status != LB_STATUS_RESOLVED)
		return lj_status;
	return send(lj_common(lj), &lj->cache, thread, lj_finish(lj, thread), LB_FAMILY_LJ);
}

/*
 * True if this sample comes from a thread's second event. A thread that began while its process was
 * being attached may have two: one that user space opened for it, and one that it inherited. The
 * root of the inheritance identifies the event: the thread's first root counts. (The kernel swaps
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
 * True for one event of each run, drawn at random: against a program that works in step with the
 * events, and so that a short task is sampled even in a CPU's first events.
 */
static __always_inline int is_sample(struct lb_cpu *cpu)
{
	if (!cpu->draw_left) {
		cpu->draw_left = events_per_sample;
		cpu->draw_at = bpf_get_prandom_u32() % events_per_sample;
	}
	return --cpu->draw_left == cpu->draw_at;
}

/* A thread that ran none of its process's sampled VMs may have run an unsampled one. */
static __always_inline enum lb_status outside(const struct lb_proc *proc, enum lb_status end)
{
	return end == LB_STATUS_OUTSIDE && proc->unsampled ? LB_STATUS_NOT_SAMPLED : end;
}

/*
 * Recognises, by its files, a process that is unknown, or has called exec since, or had no VM when
 * it was examined. One that is not wanted has none.
 */
static __noinline int by_files(struct lb_cpu *cpu, const struct lb_proc *proc, __u32 pid,
			       __u64 exec_id)
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
	return files_adopt(cpu, pid, exec_id, proc && proc->exec_id != exec_id ? proc->epoch : 0);
}

/* Asks user space to examine a process. Without a VM in its files, its sample is not lost. */
static __always_inline int meet(__u32 pid, __u32 ended, __u64 exec_id, int taken, enum by_files by)
{
	int lost = taken && by == FILES_UNKNOWN;

	emit_task(pid, ended, exec_id, lost);
	if (taken)
		count_end(pid, lost ? LB_STATUS_UNRECOGNISED : LB_STATUS_OUTSIDE);
	return 0;
}

/*
 * A process without a VM in a system-wide recording. Returns 1: its samples are no target's and do
 * not count; 0: user space has not looked at it yet. known: user space has, and found no VM.
 */
static __always_inline int pass(struct lb_cpu *cpu, const struct task_struct *task,
				const struct lb_proc *proc, __u64 exec_id, enum by_files by,
				int known)
{
	__u32 pid = task->tgid;
	int is_new;

	if (by == FILES_UNKNOWN && !known)
		return 0;
	is_new = note_plain(cpu, task, pid, exec_id, by == FILES_UNKNOWN);
	if (proc && (!known || (by == FILES_UNKNOWN && is_new))) /* exec; it has mapped more */
		emit_task(pid, known ? 0 : proc->epoch, exec_id, 0);
	return 1;
}

/*
 * everywhere: the events are those of CPUs, not of the targets' threads, and most of them come in
 * processes without a VM.
 */
static __always_inline int on_event(struct bpf_perf_event_data *event, __u32 families,
				    int everywhere)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 exec_id = task_exec_id(task);
	struct lb_cpu *cpu = this_cpu();
	__u32 pid = task->tgid;
	struct lb_proc *proc;
	enum by_files by;
	int taken, is_known;

	if (!cpu) { /* cannot be: cpus has an entry for each possible CPU */
		count_end(pid, LB_STATUS_FAULT);
		return 0;
	}
	/* a kernel thread, or a process that ends; or one that was met before */
	if (everywhere && (!task->mm || is_plain(cpu, task, pid, exec_id)))
		return 0;
	if (doubled && is_duplicate(event, task->pid, exec_id))
		return 0;
	taken = events_per_sample == 1 || is_sample(cpu);
	proc = target_of(cpu, pid, exec_id);
	if (!proc && !narrowed_by) /* a child's cgroup, user and name may be others */
		proc = fork_adopt(cpu, pid, exec_id);
	is_known = proc && proc->exec_id == exec_id;
	if (!is_known || (taken && !proc->nmodules)) {
		by = by_files(cpu, proc, pid, exec_id);
		if (by == FILES_VM)
			proc = &cpu->target[pid & (CPU_TARGETS - 1)].proc;
		else if (everywhere && pass(cpu, task, proc, exec_id, by, is_known))
			return 0;
		else if (!is_known)
			return meet(pid, proc ? proc->epoch : 0, exec_id, taken, by);
	}
	if (!taken || !proc)
		return 0;
	if (everywhere && proc->exec_vm != (__u32)task->mm->exec_vm)
		look_again(proc, pid, exec_id, (__u32)task->mm->exec_vm);
	if (proc->families & ~families) /* since an exec */
		count_end(pid, LB_STATUS_VM_FAMILY_NOT_LOADED);
	else
		count_end(pid, outside(proc, proc->nmodules ? sample(event, proc,
								     thread_of(cpu, task, exec_id),
								     families)
							    : LB_STATUS_OUTSIDE));
	return 0;
}

/* Only the program of the targets' families is loaded: the verifier has less to follow. */

SEC("perf_event")
int luabpf_lj(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, LB_FAMILY_BIT(LJ), 0);
}

SEC("perf_event")
int luabpf_puc(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, LB_FAMILY_BIT(PUC), 0);
}

SEC("perf_event")
int luabpf_any(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, LB_FAMILIES, 0);
}

SEC("perf_event")
int luabpf_all(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, LB_FAMILIES, 1);
}
