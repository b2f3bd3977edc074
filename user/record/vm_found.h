/* SPDX-License-Identifier: BSD-2-Clause */
/* Notice of a VM: whoever opens a session may hear of each that is recognised. */
#ifndef RECORD_VM_FOUND_H
#define RECORD_VM_FOUND_H

#include <sys/types.h>

struct lb_module;
struct vm_build;

typedef void vm_found_fn(void *arg, pid_t pid, const struct vm_build *build,
			 const struct lb_module *at);

#endif
