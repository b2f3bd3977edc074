/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recognises the VMs of a recording's processes, also after exec and dlopen(), and registers them
 * with BPF and the symbolizer.
 */
#ifndef RECORD_TARGETS_H
#define RECORD_TARGETS_H

#include <stdint.h>

#include <unwind/abi.h>

#include "base/error.h"
#include "process.h"
#include "vm_found.h"
#include "detect/scan.h"

struct targets {
	struct processes processes;
	/* set by the owner, who outlives them */
	struct scan *scan;
	bool everywhere; /* --all: mappings are looked at again only when BPF asks */
	bool zones;	 /* are recorded */
	bool sampling; /* a process is sampled when it was registered: waits for its family's program */
	vm_found_fn *on_vm_found; /* each VM that is recognised; NULL */
	void *on_vm_found_arg;

	uint64_t round;		/* drains of the ring so far */
	uint32_t epochs;	/* images of processes seen so far */
	struct error unsampled; /* a VM of a target that is not sampled, and why */
	bool waits;		/* for Lua: mappings are looked at each round */
	bool had_lua;		/* a VM was recognised, in one that may have ended */
	bool closed;		/* the files of a process could not be opened: it may run Lua */
	uint64_t *not_lua;	/* the owner's, see losses.h */
};

/*
 * A child of a target, which BPF has put beside its parent. *target: NULL, or what is known of its pid; then the
 * target. Its pidfd is open, or -1 when it has ended: then the next look ends it here. -ENOENT, -ESTALE: BPF does not
 * know this image.
 */
int targets_adopt(struct targets *targets, const struct lb_rec_task *rec, struct process **target);

/*
 * A process that BPF has recognised by its files. *target: NULL, or what is known of its pid; then
 * the target, with its pidfd as of targets_adopt(). Libraries that came later are for the next look.
 */
int targets_take(struct targets *targets, const struct lb_rec_task *rec, struct process **target);

/* The VMs of a process at some time. */
struct target_scan {
	uint64_t image, mapped; /* process_image(), process_mapped(), from before it */
	uint32_t exec_vm;	/* process_exec_pages(), likewise */
	struct lb_proc vms;
	struct error unknown; /* a VM that is not sampled, and why */
	int result;	      /* of scan_process() */
};

/* True if a process that is no target has a VM. BPF knows its files then. */
bool targets_have_vm(struct targets *targets, pid_t pid, struct target_scan *scan);

/*
 * Looks at the image that the process runs now, and registers it with BPF and the symbolizer. exec_id: 0: BPF
 * stores the exec_id at the process's first event, if it has a VM. -ENODATA: it has no VM. -ENOTSUP: it has
 * none that luabpf samples. In both cases it is registered: it may load one later.
 */
int targets_recognise(struct targets *targets, struct process *target, uint64_t exec_id,
		      struct error *err);

/* The same of a new target that was scanned before it was added. */
void targets_meet(struct targets *targets, struct process *target, const struct target_scan *scan);

/*
 * Adds the sample of this record, if it has one, to those that BPF has counted as lost because it did not know the VMs of the
 * process. The next look at the process decides: without a VM, or a new one, they are not_lua.
 */
void targets_undecided(struct process *target, const struct lb_rec_task *rec);

/*
 * The process is registered, and BPF has seen another number of executable pages than when its VMs were last known. Looks
 * at its mappings, if BPF has asked for no look in the last 10 ms. The last look decides on the undecided samples, if it was at
 * as many pages as the record has.
 */
void targets_look_again(struct targets *targets, struct process *target,
			const struct lb_rec_task *rec);

/* Scans for libraries loaded since the last look. now: CLOCK_MONOTONIC. */
void targets_look(struct targets *targets, uint64_t now);

/* This round left records in the ring: calls image_left() for each process. */
void targets_left(struct targets *targets);

/* Says for each process whether BPF makes the fingerprint of a prototype once in an epoch. */
void targets_share(struct targets *targets);

#endif
