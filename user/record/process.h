/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of sampled processes, by pid. A process's struct owns all of its state; processes_end()
 * releases it and removes the process from BPF's map. Only the right to open source files is kept
 * for the report: under the pid, as samples are.
 */
#ifndef RECORD_PROCESS_H
#define RECORD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/hash.h"
#include "bpf/loader.h"
#include "sym/image.h"
#include "vm_modules.h"
#include "sources.h"

/* A process of -p, the command, or one that it started. */
struct process {
	pid_t pid;
	int pidfd;	 /* -1: it had ended at BPF's record of it; its samples are not read yet */
	bool is_root;	 /* of -p, or the command itself: the session ends with these */
	bool keeps_time; /* see loader_keep_time() */
	struct keeper *keepers;

	/* its VMs; a process that calls exec has others */
	struct lb_proc vms; /* if registered, as BPF has them; BPF may have set the exec_id since */
	struct vm_modules modules;
	bool registered;	/* BPF has vms */
	uint64_t sampled_round; /* of the last sample, or of when it was registered */
	uint64_t image_id;	/* process_image(), from before its VMs were looked for */
	uint64_t mapped;	/* identifies the executable mappings that were looked at last */
	uint64_t look_ns;	/* when they are looked at again, CLOCK_MONOTONIC */
	uint64_t maps_ns;   /* before that they are not read again, see process_maps_pause_ns() */
	uint64_t asked_ns;  /* before that BPF's requests cause no look */
	uint32_t looked_vm; /* process_exec_pages() of the last look; 0: there was none */
	uint64_t young_until;

	/* samples that BPF counted as lost, see targets_undecided(); 0 again when a look has decided */
	uint64_t undecided;
	uint64_t undecided_id;	    /* their exec_id */
	uint32_t undecided_vm;	    /* pages of executable mappings at the last of them */
	uint32_t undecided_modules; /* the fewest that BPF knew at one of them */

	/* the names of the image that samples of this epoch show; NULL: none was registered */
	struct image *image;
	uint32_t epoch;

	/* as whom the report opens source files, see sources.h; the report comes after the end */
	struct sources sources;

	UT_hash_handle hh;
};

struct processes {
	/* set by the owner, who outlives them */
	struct loader *loader;
	struct symbolizer *symbolizer;

	bool hold_sources; /* of each with a VM */

	struct process *all;   /* in the order in which they came */
	size_t nroots;	       /* of them */
	struct process *ended; /* of which nothing is left but .sources, that are held */
	struct ended_sources ended_sources;
	struct target_source *files_of_all;
};

/* Returns NULL if it is not in the table, or has ended. */
struct process *processes_find(const struct processes *processes, pid_t pid);

/* Returns the image of a record's epoch; NULL if it was replaced or has ended. */
struct image *processes_image(const struct processes *processes, uint32_t pid, uint32_t epoch);

/*
 * Adds one that is not there. -ESRCH: it has ended; unless its samples are to be read, then its
 * pidfd is -1. Or -ENOMEM, -EMFILE, ...
 */
int processes_add(struct processes *processes, pid_t pid, bool may_have_ended,
		  struct process **out);

/*
 * The process runs this image: its samples have another epoch. later: the caller sees to
 * image_learn(). 0 or -ENOMEM.
 */
int processes_set_image(struct processes *processes, struct process *process, uint32_t epoch,
			bool later);

/* The process has ended, and its samples were read. */
void processes_end(struct processes *processes, struct process *process);

/* Forgets the ended ones: no report will open their source files. */
void processes_forget_ended(struct processes *processes);

void processes_free(struct processes *processes);

#endif
