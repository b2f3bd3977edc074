/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command that runs as another user than the terminal's must not type into it: what it typed,
 * root's shell would run (CVE-2016-2779).
 */
#ifndef PROC_TERMINAL_H
#define PROC_TERMINAL_H

#include <sys/types.h>

/*
 * In a child of ours, before it becomes the user: from now on it and what it starts cannot put
 * characters into a terminal's input, unless our terminal is this user's or we have none. Ctrl-C and
 * job control stay as they are.
 */
int terminal_guard(uid_t uid);

#endif
