/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting a command so that it can be sampled from its first Lua instruction: it is held at its
 * entry point, when the dynamic linker has mapped its libraries and nothing of its own has run, and
 * let go once it was looked at and attached. Under sudo it runs as the user who called sudo.
 */
#ifndef PROC_LAUNCH_H
#define PROC_LAUNCH_H

#include <sys/types.h>

#include "base/error.h"

/*
 * Starts argv, with our stdin, stdout and stderr, and holds it. -ENOENT and others: it cannot be
 * run; -EINVAL: the caller of sudo is not to be known (base/sudo.h), and it was not started.
 */
int launch_start(char *const argv[], pid_t *pid, struct error *err);

/* Lets it go; nothing of the holding remains in it. */
int launch_release(pid_t pid);

#endif
