/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF side as user space sees it: load it, tell it which processes are targets, attach it to
 * threads, read how samples ended. The only code that sees the skeleton.
 */
#ifndef BPF_LOADER_H
#define BPF_LOADER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/error.h"

struct loader;

struct loader_options {
	/* Have the kernel measure BPF programs' run time (all of them, while this is open). */
	bool cost;
	/* LB_FAMILY_BIT()s of the targets' VMs; samples of a process with others count as
	 * other-family. */
	uint32_t families;
	uint64_t period_ns; /* CPU time between two samples */
	/* Between two events at most; 0: each event is a sample. A thread that runs for less has
	 * none; each costs the target a timer's interrupt. */
	uint64_t event_ns;
	/* Of so many processes, count how the samples of each ended; 0: of none. */
	uint32_t by_process;
};

int loader_open(const struct loader_options *options, struct loader **out, struct error *err);
void loader_free(struct loader **loader);

/* Does the kernel allow the events that loader_attach() opens? Tried on the calling thread. */
int loader_check_events(struct error *err);

/* The LB_STACKS words in which BPF counts, for ring_open(): valid as long as the loader lives. */
__u64 *loader_stack_counts(const struct loader *loader);

/* The ring buffer map, for ring_open(). */
int loader_ring_fd(const struct loader *loader);

int loader_set_build(struct loader *loader, uint32_t index, const struct lb_build *build);

/* What a file holds; its build was set. */
int loader_set_file(struct loader *loader, const struct lb_file_key *key,
		    const struct lb_file *file);
int loader_set_proc(struct loader *loader, pid_t pid, const struct lb_proc *proc);
/* As it is now: BPF may have adopted its exec_id. -ENOENT: it was not set, or dropped. */
int loader_get_proc(struct loader *loader, pid_t pid, struct lb_proc *proc);
int loader_drop_proc(struct loader *loader, pid_t pid); /* it has ended */

struct keeper; /* an event of a process, see loader_keep_time() */

/*
 * Samples a thread from now on, or from its next exec, every period_ns of its CPU time, and all
 * threads that it starts; with `children`, the processes that it forks, too. -ESRCH: it has ended.
 */
struct loader_attach {
	pid_t tid;
	bool children;
	bool on_exec;
	bool doubled; /* the thread may have inherited an event already */
};
int loader_attach(struct loader *loader, const struct loader_attach *how, struct error *err);

/*
 * Lets a thread that is sampled keep its time. When the kernel switches from a thread to one that
 * it started, it may swap what they have counted instead of stopping and starting each: then what a
 * thread has used since its last event is lost with the child, when that ends. A thread that starts
 * a short one every so often had no samples at all. With an event that is not inherited - a dummy,
 * never enabled - the two are not alike, and nothing is swapped (perf_event_context_sched_out() of
 * kernel/events/core.c). To be called before the thread is attached: a child that it starts while
 * it is has an event without a program, which a swap would leave it with. As long as there are
 * descriptors to spare. Adds to the keepers of the process, which loader_drop_keepers() releases.
 */
void loader_keep_time(struct loader *loader, pid_t tid, struct keeper **keepers);
void loader_drop_keepers(struct loader *loader, struct keeper **keepers);

/* CPU time in ns between two events. */
uint64_t loader_event_ns(const struct loader *loader);

/* CPU time in ns that the threads were sampled for; known once they are detached. */
uint64_t loader_cpu_time(const struct loader *loader);

/* Begins an epoch: BPF makes the fingerprint of each prototype again (lb_is_proved() in walk.h). To
 * be called before each drain of the ring. */
void loader_next_epoch(struct loader *loader);

/* When the first sample was sent, CLOCK_MONOTONIC in ns; 0: none was. */
uint64_t loader_first_sample(const struct loader *loader);

/* How samples ended, so far. */
int loader_ends(const struct loader *loader, uint64_t ends[LB_STATUS__MAX]);

/* Of one process, where that was asked for. */
void loader_process_ends(const struct loader *loader, pid_t pid, uint64_t ends[LB_STATUS__MAX]);

/* Nanoseconds that the program took in all, and how often it ran, while this loader counted. */
int loader_cost(const struct loader *loader, uint64_t *ns, uint64_t *runs);

/* Stops sampling; what is in the ring stays readable. */
void loader_detach(struct loader *loader);

#endif
