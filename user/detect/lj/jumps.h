/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jumps in LuaJIT's assembler VM (x86-64): between the instruction that sets PC to a jump's target
 * and the end of the fetch from there, PC is the address of the instruction that comes, while else
 * it is that behind the one that runs.
 */
#ifndef DETECT_LJ_JUMPS_H
#define DETECT_LJ_JUMPS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Sets the bits of all instructions of VM code at which PC may be a jump's target, by their
 * offsets: sites has a bit for each byte of text, the lowest of each byte first.
 */
void lj_jumps_scan(const uint8_t *text, size_t size, uint8_t *sites);

/* Sets the bits of the instructions by which calls store their links, mov [BASE-8], PC. */
void lj_links_scan(const uint8_t *text, size_t size, uint8_t *sites);

/*
 * Where vm_exit_interp fetches the instruction at which a trace was left: offsets [lo, hi) at which
 * PC is that instruction's, and the state set already. Both 0 when it is not found.
 */
void lj_exit_scan(const uint8_t *text, size_t size, uint32_t *lo, uint32_t *hi);

#endif
