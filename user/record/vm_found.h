/* SPDX-License-Identifier: BSD-2-Clause */
/* The callback of a session for each VM that it recognises. */
#ifndef RECORD_VM_FOUND_H
#define RECORD_VM_FOUND_H

#include <sys/types.h>

struct lb_module;
struct vm_build;

typedef void vm_found_fn(void *arg, pid_t pid, const struct vm_build *build,
			 const struct lb_module *at);

#endif
