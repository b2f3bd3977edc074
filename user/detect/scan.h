/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which VMs does a process have? Looks at its executable mappings; what a file holds is found out
 * once and kept by device, inode and time of its last change.
 */
#ifndef DETECT_SCAN_H
#define DETECT_SCAN_H

#include <stdbool.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/error.h"
#include "base/text.h"
#include "build.h"

struct scan;

int scan_new(struct scan **out);
void scan_free(struct scan **scan);

/*
 * Fills proc->module[]. New builds are appended to the scan's table: the index is what
 * lb_module.build holds. Returns 0 also when the process has no VM (nmodules is 0). When it has one
 * of an unknown build, err says what was measured, and of one too many, that it is; and when it has
 * no other, -ENOTSUP. -ESRCH: it has ended. -EINTR, without a word: a signal was caught
 * (base/signals.h).
 */
int scan_process(struct scan *scan, pid_t pid, struct lb_proc *proc, struct error *err);

/* For a process that has no Lua: what to do about it. */
void scan_no_lua_remedy(struct scan *scan, pid_t pid, struct text *remedy);

/*
 * The next of the files that were looked into, each given once; false: there is none. Files that
 * are not sampled are left out: what holds one has to be looked at.
 */
bool scan_next_file(struct scan *scan, struct lb_file_key *key, struct lb_file *file);

/* Builds seen so far; NULL beyond the last. */
const struct vm_build *scan_build(const struct scan *scan, uint32_t index);

#endif
