/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts a command so that it can be sampled from its first Lua instruction. It is held at its
 * entry point, after the dynamic linker has mapped its libraries and before its own code runs, and
 * released when it is recognised and attached. Under sudo it runs as the user who called sudo.
 */
#ifndef PROC_LAUNCH_H
#define PROC_LAUNCH_H

#include <sys/types.h>

#include "base/error.h"

/*
 * Starts argv, with our stdin, stdout and stderr, and holds it. -ENOENT and others: it cannot be
 * run; -EINVAL: the caller of sudo is unknown (base/sudo.h), and it was not started.
 */
int launch_start(char *const argv[], pid_t *pid, struct error *err);

/* Releases it: the tracing ends, the breakpoint is removed already. */
int launch_release(pid_t pid);

#endif
