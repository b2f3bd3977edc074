/* SPDX-License-Identifier: BSD-2-Clause */
/* A breakpoint in another process, by ptrace. */
#ifndef ARCH_BREAKPOINT_H
#define ARCH_BREAKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the 8 bytes of code with a breakpoint at byte `at` of them. */
uint64_t breakpoint_put(uint64_t code, unsigned int at);

/* True if the stopped process has just run the breakpoint at this address. */
bool breakpoint_is_met(pid_t pid, uint64_t addr);

/* Sets the stopped process to continue at this address. Returns 0 or -errno. */
int breakpoint_continue_at(pid_t pid, uint64_t addr);

#endif
