/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives up, for the rest of a run, the rights that it does not use: capabilities, then system calls.
 * A run names its uses; the two tables of rights are in caps.c and confine.c.
 */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/uses.h"

/*
 * From now on, and in all children: only the capabilities and system calls of `uses`. A capability
 * that the process does not have is not gained. Another system call ends the process with exit
 * status 1 and a message. Neither can be undone, nor does exec gain rights.
 * 0 also without the filter where the kernel has none: confine_has_filters().
 */
int confine(unsigned uses, struct error *err);

/* True if this kernel filters system calls (CONFIG_SECCOMP_FILTER). */
bool confine_has_filters(void);

#endif
