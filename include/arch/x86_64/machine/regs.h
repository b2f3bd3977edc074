/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The members of pt_regs, x86-64. Macros: `from` points into a program's context or to kernel memory, and the verifier
 * accepts only one type of pointer at an instruction.
 */
#ifndef MACHINE_REGS_H
#define MACHINE_REGS_H

#define REGS_IP(from) ((from)->rip)
#define REGS_SP(from) ((from)->rsp)

/* True for registers of user mode: cs has the privilege level (CPL). */
#define REGS_CPL_USER 3
#define REGS_ARE_USERS(from) (((from)->cs & REGS_CPL_USER) == REGS_CPL_USER)

/* True if the jump "above" (ja), which a uprobe is at, will be taken: neither carry nor zero. */
#define REGS_FLAG_CARRY 0x01
#define REGS_FLAG_ZERO 0x40
#define REGS_ARE_ABOVE(from) (!((from)->eflags & (REGS_FLAG_CARRY | REGS_FLAG_ZERO)))

/* Fills a struct lb_regs. */
#define REGS_ROLES(out, from)                                                                      \
	do {                                                                                       \
		(out)->ip = (from)->rip;                                                           \
		(out)->sp = (from)->rsp;                                                           \
		(out)->base = (from)->rdx;                                                         \
		(out)->pc = (from)->rbx;                                                           \
		(out)->rb = (from)->rbp;                                                           \
		(out)->gl = (from)->r14;                                                           \
		(out)->rd = (from)->rax;                                                           \
		(out)->ra = (from)->rcx;                                                           \
		(out)->kept[0] = (from)->r12;                                                      \
		(out)->kept[1] = (from)->r13;                                                      \
		(out)->kept[2] = (from)->r15;                                                      \
	} while (0)

/* Fills a struct lb_gprs, by the registers' numbers in an instruction's encoding. */
#define REGS_ALL(out, from)                                                                        \
	do {                                                                                       \
		(out)->r[0] = (from)->rax;                                                         \
		(out)->r[1] = (from)->rcx;                                                         \
		(out)->r[2] = (from)->rdx;                                                         \
		(out)->r[3] = (from)->rbx;                                                         \
		(out)->r[4] = (from)->rsp;                                                         \
		(out)->r[5] = (from)->rbp;                                                         \
		(out)->r[6] = (from)->rsi;                                                         \
		(out)->r[7] = (from)->rdi;                                                         \
		(out)->r[8] = (from)->r8;                                                          \
		(out)->r[9] = (from)->r9;                                                          \
		(out)->r[10] = (from)->r10;                                                        \
		(out)->r[11] = (from)->r11;                                                        \
		(out)->r[12] = (from)->r12;                                                        \
		(out)->r[13] = (from)->r13;                                                        \
		(out)->r[14] = (from)->r14;                                                        \
		(out)->r[15] = (from)->r15;                                                        \
	} while (0)

#endif
