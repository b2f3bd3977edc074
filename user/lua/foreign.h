/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers for reading a target's objects, of any family: plausible addresses, numbers inside copied
 * bytes, and readable prefixes.
 */
#ifndef LUA_FOREIGN_H
#define LUA_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <unwind/mem.h>

/* Both families allocate their objects aligned to 8. */
static inline bool foreign_plausible(uint64_t ptr)
{
	return ptr && !(ptr & 7) && !(ptr >> 47);
}

/* As lb_word() and lb_half(), but without alignment. */
static inline uint64_t foreign_word(const uint8_t *bytes, unsigned offset)
{
	uint64_t v;

	memcpy(&v, bytes + offset, sizeof(v));
	return v;
}

static inline uint32_t foreign_half(const uint8_t *bytes, unsigned offset)
{
	uint32_t v;

	memcpy(&v, bytes + offset, sizeof(v));
	return v;
}

/* Copies the readable prefix of [addr, addr + size). Returns its size: all, or a multiple of grain,
 * which is a power of 2. Binary search: O(log size) reads. */
uint32_t foreign_prefix(const struct lb_mem *mem, void *dst, uint64_t addr, uint32_t size,
			uint32_t grain);

#endif
