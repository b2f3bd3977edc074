/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the VMs in a process's executable mappings. Each file is scanned once; the results are
 * cached by device, inode and time of last change.
 */
#ifndef DETECT_SCAN_H
#define DETECT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/error.h"
#include "build.h"

struct scan;

int scan_new(struct scan **out);
void scan_free(struct scan **scan);

/*
 * Sets proc->nmodules, families and unsampled; scan_modules() has the VMs. Appends new builds to the scan's table, which lb_module.build indexes.
 * Returns 0 also if the process has no VM (nmodules is 0). If a VM is not sampled (unknown build,
 * or beyond a limit), err says why; if no other VM is, returns -ENOTSUP. -ESRCH: it has ended.
 * -EINTR: a signal was caught (base/signals.h), err is not set.
 */
int scan_process(struct scan *scan, pid_t pid, struct lb_proc *proc, struct error *err);

/* process_mapped() of the process that was scanned last. */
uint64_t scan_mapped(const struct scan *scan);

/* The VMs of the process that was scanned last, proc->nmodules; valid until the next scan. */
const struct lb_module *scan_modules(const struct scan *scan);

/*
 * How many files of the process that was scanned last could not be opened, for lack of rights or
 * because they are deleted: without CAP_CHECKPOINT_RESTORE these have no path.
 */
uint32_t scan_unopened(const struct scan *scan);

/*
 * Sets err to why the last scanned process has no known VM: none found, or files that could not be
 * opened. Adds the remedy.
 */
void scan_no_lua(struct scan *scan, pid_t pid, struct error *err);

/*
 * Returns the next scanned file, each once; false: none is left. Skips files with a VM that is not
 * sampled: a process that maps one has to be scanned.
 */
bool scan_next_file(struct scan *scan, struct lb_file_key *key, struct lb_file *file);

/* Returns how many files are remembered, and how many builds are in the table. */
size_t scan_files(const struct scan *scan, size_t *builds);

/* Returns a build of the table; NULL beyond the last. */
const struct vm_build *scan_build(const struct scan *scan, uint32_t index);

#endif
