/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User space's interface to the BPF side: loads it, registers target processes, attaches it to
 * threads, reads how samples ended.
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
	/* The kernel measures the run time of all BPF programs while the loader is open. */
	bool cost;
	uint64_t period_ns; /* CPU time between two samples */
	/* CPU time between two events at most; 0: each event is a sample. A thread that runs for
	 * less gets no event; each event costs the target a timer interrupt. */
	uint64_t event_ns;
	bool everywhere;   /* loader_attach_cpus() will be called */
	bool by_coroutine; /* records say which lua_State ran */
	bool by_zone; /* records have zones: loader_set_zone_layout() is called for each build */
	/* With everywhere, LB_NARROW_*: only processes of an identity with a verdict are sampled;
	 * 0: all are. */
	uint32_t narrowed_by;
	/* Number of processes whose samples' ends are counted for each; 0: none. */
	uint32_t by_process;
	/* The programs of families are loaded by the calling thread, which keeps the rights for it: a library
	 * starts no processes in its host. */
	bool in_process;
};

int loader_open(const struct loader_options *options, struct loader **out, struct error *err);
void loader_free(struct loader **loader);

/*
 * Requests the programs of families (LB_FAMILY_BIT()s). Each is loaded once, in another process unless the options had in_process. Samples
 * of VMs whose program is not loaded are lost as vm-family-loading.
 */
void loader_request_families(struct loader *loader, uint32_t families);

/* The same of those that may be needed later: loaded in the background, if not in_process. */
void loader_prepare_families(struct loader *loader, uint32_t families);

/* Waits until all that were requested, but for those that may be needed later, are loaded. */
int loader_wait_families(struct loader *loader, struct error *err);

/* Ends the processes that have loaded theirs. */
void loader_reap_families(struct loader *loader);

/* Keeps libbpf from printing: its errors are reported by ours. */
void loader_be_silent(void);

/* Returns 0 if the kernel allows the events of loader_attach(). Tries the calling thread. */
int loader_check_events(struct error *err);

/* Returns BPF's LB_STACKS counters, for ring_open(): valid as long as the loader lives. */
__u64 *loader_stack_counts(const struct loader *loader);

/* The ring buffer map, for ring_open(). */
int loader_ring_fd(const struct loader *loader);

int loader_set_build(struct loader *loader, uint32_t index, const struct lb_build *build);

/* Sets where a build keeps tables and strings, if options had by_zone. Sets the seed. */
int loader_set_zone_layout(struct loader *loader, uint32_t build, struct lb_zone_layout *layout);

/* Sets where a VM has its zone stack. */
int loader_set_zone(struct loader *loader, const struct lb_zone_key *key,
		    const struct lb_zone *zone);

/* Registers a file. Its build must be set before. */
int loader_set_file(struct loader *loader, const struct lb_file_key *key,
		    const struct lb_file *file);

/* Whether processes of this identity are sampled, if options had narrowed_by. */
int loader_set_verdict(struct loader *loader, const struct lb_identity *identity, bool wanted);

/*
 * Registers a process with n VMs, n <= LB_MODULES_MOST: sets proc->nmodules, families, module[] and more.
 * The caller keeps proc->more until the next call, or loader_drop_modules(). Sets proc->unsampled if there
 * is no room for all of them: the first LB_MODULES are sampled then. -E2BIG: too many processes.
 */
int loader_set_proc(struct loader *loader, pid_t pid, struct lb_proc *proc,
		    const struct lb_module *modules, uint32_t n);
/* Another process has a copy of this entry. False: the VMs are not there any more. */
bool loader_share_modules(struct loader *loader, const struct lb_proc *proc);
/* Releases the range of its VMs. */
void loader_drop_modules(struct loader *loader, struct lb_proc *proc);
/* Writes an entry that was read back. */
int loader_put_proc(struct loader *loader, pid_t pid, const struct lb_proc *proc);
/* Reads it back: BPF may have adopted its exec_id. -ENOENT: it was not set, or dropped. */
int loader_get_proc(struct loader *loader, pid_t pid, struct lb_proc *proc);
int loader_drop_proc(struct loader *loader, pid_t pid); /* it has ended */

/* BPF sends this prototype with the next sample that shows it, though it was sent before. */
void loader_send_again(struct loader *loader, pid_t pid, uint64_t proto);

/* Returns how many processes BPF knows. */
uint32_t loader_procs(const struct loader *loader);

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
	bool on_cpu;  /* all threads that run on this CPU; the rest does not count */
	int cpu;
};
int loader_attach(struct loader *loader, const struct loader_attach *how, struct error *err);

/* Samples all processes on each CPU that is online. */
int loader_attach_cpus(struct loader *loader, struct error *err);

/* Gives some of the events other periods at random (periods.h). To be called often. */
void loader_vary_periods(struct loader *loader);

/*
 * Keeps the CPU time of a thread that starts short ones, see keepers.h. To be called before
 * loader_attach(): a child started during that call has an event without a program, which a swap
 * would give to the thread. Does nothing if descriptors run short. Adds to the keepers of the
 * process, which loader_drop_keepers() releases.
 */
void loader_keep_time(struct loader *loader, pid_t tid, struct keeper **keepers);
void loader_drop_keepers(struct loader *loader, struct keeper **keepers);

/* CPU time in ns between two events. */
uint64_t loader_event_ns(const struct loader *loader);

/* Returns the CPU time in ns that the threads were sampled for so far. */
uint64_t loader_cpu_time(const struct loader *loader);

/* Begins an epoch: BPF computes each prototype's fingerprint again (lb_is_proved() in
 * unwind/unwind.h). To be called before each drain of the ring. */
void loader_next_epoch(struct loader *loader);

/* Returns the CLOCK_MONOTONIC time in ns of the first sample; 0: none yet. */
uint64_t loader_first_sample(const struct loader *loader);

/* Returns the number of samples so far by how they ended. */
int loader_status_counts(const struct loader *loader, uint64_t status_counts[LB_STATUS__MAX]);

/* The same of one process, if options had by_process. */
void loader_process_status_counts(const struct loader *loader, pid_t pid,
				  uint64_t status_counts[LB_STATUS__MAX]);

/* Returns the program's total run time and its number of runs, if options had cost. */
int loader_cost(const struct loader *loader, uint64_t *ns, uint64_t *runs);

/* Stops sampling; what is in the ring stays readable. */
void loader_detach(struct loader *loader);

#endif
