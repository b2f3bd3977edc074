/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the processes of this machine that run Lua. Needs no BPF. */
#ifndef DOCTOR_PS_H
#define DOCTOR_PS_H

#include <stddef.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/error.h"
#include "detect/build.h"
#include "proc/cgroup.h"
#include "proc/narrow.h"
#include "proc/process.h"
#include "vm_states.h"

struct ps_vm {
	const struct vm_build *build;
	struct lb_module at; /* addresses in the process */
	char path[4200];     /* as the process sees it: foreign; "" if unknown */
};

/* A process that has a VM, or a problem. */
struct ps_process {
	pid_t pid;
	uid_t uid;
	size_t threads;
	struct cgroup cgroup;
	char command[PROCESS_NAME]; /* foreign */
	struct ps_vm *vms;
	size_t nvms;
	struct vm_states states;
	struct error problem; /* why a VM, or what may be one, is not profiled: foreign */
};

/*
 * Calls fn for each that matches, by process id; a nonzero return ends it and is returned. *refused: how many
 * could not be looked into for lack of rights. -ENOENT: there is no /proc; -EMFILE, -ENFILE, -ENOMEM.
 */
int ps_each(const struct narrow *narrow, int (*fn)(void *arg, const struct ps_process *process),
	    void *arg, size_t *refused, struct error *err);

#endif
