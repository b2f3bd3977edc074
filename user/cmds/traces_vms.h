/* SPDX-License-Identifier: BSD-2-Clause */
/* The VMs whose traces are reported: found once, or while a recording's samples show them. */
#ifndef CMDS_TRACES_VMS_H
#define CMDS_TRACES_VMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/mem_remote.h"
#include "cli/cli.h"
#include "doctor/luajit_vms.h"
#include "prof/prof.h"
#include "record/sources.h"
#include "traces/shares.h"

struct traced_vm {
	pid_t pid;
	char *command; /* foreign */
	struct luajit_vm at;
	struct mem_remote mem;
	struct traces_vm *vm;
	uint64_t heap_ns, heap_at; /* how long the last search of all functions took, and when */
	bool was_read;		   /* at least once */
	struct traces_shares shares;
	struct sources sources; /* its source files; of an annotation */
};

struct traced_vms {
	struct traced_vm **at;
	size_t n;
	struct traced_thread *threads; /* VM by thread */
	struct luajit_finder *finder;
	size_t nrows; /* of the profile, that were looked at */
	bool incomplete;
	bool hold_sources; /* of each process */
	struct ended_sources ended;
};

void traced_vms_free(struct traced_vms *vms);

/* Adds those of a process. Errors: luajit_vms_find(). */
int traced_vms_find(struct traced_vms *vms, pid_t pid, struct error *err);

/* Reads all of them: traces and the penalty cache; all functions, too, if that is cheap now. */
int traced_vms_read(struct traced_vms *vms, bool heap);

/* Opens a source file as the VM's process would (out/source.h). -ESRCH: it ended too soon. */
int traced_vm_open_source(void *vm, const char *path, FILE **out);

/* Samples until the recording is over, reads the VMs meanwhile, and counts shares. *status: the
 * command's, as waitpid() gives it. */
int traced_vms_record(struct traced_vms *vms, const struct options *opts, int *status,
		      struct error *err);

#endif
