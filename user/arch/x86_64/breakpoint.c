// SPDX-License-Identifier: BSD-2-Clause
#include "arch/breakpoint.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define INT3 0xccUL /* one byte */

uint64_t breakpoint_put(uint64_t code, unsigned int at)
{
	return (code & ~(0xffUL << 8 * at)) | INT3 << 8 * at;
}

/* The next instruction is the one behind it. */
bool breakpoint_is_met(pid_t pid, uint64_t addr)
{
	struct user_regs_struct regs;

	return !ptrace(PTRACE_GETREGS, pid, 0, &regs) && regs.rip == addr + 1;
}

int breakpoint_continue_at(pid_t pid, uint64_t addr)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, 0, &regs))
		return -errno;
	regs.rip = addr;
	return ptrace(PTRACE_SETREGS, pid, 0, &regs) ? -errno : 0;
}
