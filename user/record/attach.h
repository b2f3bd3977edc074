/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaches events to all threads of a process. */
#ifndef RECORD_ATTACH_H
#define RECORD_ATTACH_H

#include <stdbool.h>

#include "base/error.h"
#include "bpf/loader.h"
#include "process.h"

/*
 * Opens an event for each thread, which those that it starts inherit; with `children`, the
 * processes that it forks, too. Threads that begin meanwhile are found by looking again. doubled: it
 * may have inherited events. 0; -ESRCH: the process has ended; or what loader_attach() returns.
 */
int attach_process(struct loader *loader, struct process *process, bool children, bool doubled,
		   struct error *err);

/* loader_keep_time() of each thread of a process whose events are inherited. */
void attach_keep_time(struct loader *loader, struct process *process);

#endif
