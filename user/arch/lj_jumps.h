/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the jumps in LuaJIT's assembler VM. PC is one past the running instruction; only
 * from a jump, which sets it to its target, to the end of the fetch there it is the address of the
 * next instruction itself.
 */
#ifndef ARCH_LJ_JUMPS_H
#define ARCH_LJ_JUMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sets the bits of all instructions of VM code at which PC may be a jump's target. sites has a bit
 * for each byte of text, the lowest of each byte first.
 */
void lj_jumps_scan(const uint8_t *text, size_t size, bool gc32, uint8_t *sites);

/* Sets the bits of the instructions by which calls store their links: mov [BASE-8], PC; in GC32
 * mov [BASE-4], PC. */
void lj_links_scan(const uint8_t *text, size_t size, bool gc32, uint8_t *sites);

/*
 * Finds vm_exit_interp's fetch of the instruction at which a trace exited: at offsets [lo, hi) PC
 * is that instruction's address, and vmstate is INTERP already. Both are 0 if it is not found.
 */
void lj_exit_scan(const uint8_t *text, size_t size, uint32_t *lo, uint32_t *hi);

#endif
