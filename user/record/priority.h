/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While a recording opens, it looks at all processes, on CPUs that these may keep busy: its own nice
 * value is -10 meanwhile, so that they are sampled soon. That needs CAP_SYS_NICE (or RLIMIT_NICE).
 */
#ifndef RECORD_PRIORITY_H
#define RECORD_PRIORITY_H

#include <limits.h>

#define PRIORITY_KEPT INT_MAX

/* Returns the nice value that it had; PRIORITY_KEPT: it has it still. */
int priority_raise(void);

/* Gives it back, to the children that were started meanwhile, too. */
void priority_restore(int before);

#endif
