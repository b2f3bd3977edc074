/* SPDX-License-Identifier: BSD-2-Clause */
/* The VMs that a process has mapped, in the order in which they were found: their ids. */
#ifndef RECORD_VM_MODULES_H
#define RECORD_VM_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/abi.h>

struct vm_modules {
	struct lb_module *at;
	uint32_t n;
};

/* 0 or -ENOMEM: it is empty then. */
int vm_modules_set(struct vm_modules *modules, const struct lb_module *at, uint32_t n);
void vm_modules_free(struct vm_modules *modules);

bool vm_modules_has(const struct vm_modules *modules, const struct lb_module *module);

/*
 * Adds one, in place of one that it overlaps, which was unloaded. BPF keeps ids, so the others keep theirs.
 * Returns 1 if it was not there, else 0. -ENOSPC: there are LB_MODULES_MOST; -ENOMEM.
 */
int vm_modules_add(struct vm_modules *modules, const struct lb_module *module);

#endif
