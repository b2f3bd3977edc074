/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The VMs of a process: each has a global_State. Stripped builds have no symbol that leads to it, and
 * registers hold its address only while Lua runs. global_State and main thread point at each other
 * at known offsets. The search looks for such pairs. The count is complete if all memory was
 * searched.
 */
#ifndef DOCTOR_VM_STATES_H
#define DOCTOR_VM_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/budget.h"

struct vm_state {
	uint64_t g;
	uint64_t memory; /* bytes that the collector manages; machine code is not among them */
	uint32_t module; /* index of the VM's file */
	bool jit;	 /* LuaJIT: the compiler is on */
};

#define VM_STATES 256

struct vm_states {
	struct vm_state at[VM_STATES]; /* the first of n */
	size_t n;
	uint64_t memory; /* of all */
	bool complete;	 /* all memory was searched */
};

struct vm_file {
	const struct lb_build *build;
	const struct lb_module *at;
};

/*
 * Searches the pages that are in main memory. A process that writes such pairs itself can fake any
 * number of VMs. -ESRCH, -EACCES, -ETIMEDOUT: `out` has the VMs found until then.
 */
int vm_states_find(pid_t pid, const struct vm_file *files, size_t n, struct budget *work,
		   struct vm_states *out);

#endif
