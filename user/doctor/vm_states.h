/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The VMs of a process: each has a global_State. No variable of a stripped build leads to it, and
 * the registers of a thread do so only while Lua runs. But it and its main thread point at each
 * other, at known offsets: so the process's memory is searched for such a pair. What was found is a
 * VM; how many there are is known if all memory was searched.
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
 * Searches the pages that are in main memory. A process that writes such pairs itself has as many
 * VMs as it likes. -ESRCH, -EACCES, -ETIMEDOUT: `out` is what was found so far.
 */
int vm_states_find(pid_t pid, const struct vm_file *files, size_t n, struct budget *work,
		   struct vm_states *out);

#endif
