/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of the functions of each VM of a process, out of its loaded libraries. */
#ifndef SYM_VM_NAMES_H
#define SYM_VM_NAMES_H

#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

/* By the address of the VM's global_State; NULL: of no VM yet. */
struct vm_names;

void vm_names_free(struct vm_names **vms);

/*
 * Those of the VM at g; NULL: they cannot be read. missing: a function that has no name, so that
 * they are read once more, unless that was done in vain lately; 0: none.
 */
const struct names *vm_names_get(struct vm_names **vms, const struct lb_mem *mem,
				 const struct lb_build *build, uint64_t g, uint64_t missing,
				 uint32_t round);

#endif
