/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that a recording is opened for: it ends with the last of them. */
#ifndef RECORD_ROOTS_H
#define RECORD_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "process.h"
#include "targets.h"

/* -ESRCH: it has ended. */
int roots_add(struct processes *processes, pid_t pid, struct process **out, struct error *err);

/* From session_options. */
struct roots {
	const pid_t *pids;
	size_t npids;
	bool may_lack, follow, children;
};

/*
 * Adds the processes and their children, as far as these are asked for; recognises and attaches
 * them. -ENODATA: one of them has no Lua, or with children none has.
 */
int roots_open(struct targets *targets, const struct roots *roots, struct error *err);

#endif
