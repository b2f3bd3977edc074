/* SPDX-License-Identifier: BSD-2-Clause */
#include "foreign.h"

uint32_t foreign_prefix(const struct lb_mem *mem, void *dst, uint64_t addr, uint32_t size,
			uint32_t grain)
{
	uint32_t done = 0, step;

	if (!mem_read(mem, dst, size, addr))
		return size;
	for (step = 1u << 31; step >= grain; step >>= 1)
		if (step < size - done && !mem_read(mem, (uint8_t *)dst + done, step, addr + done))
			done += step;
	return done;
}
