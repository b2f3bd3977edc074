// SPDX-License-Identifier: BSD-2-Clause
#include "base/mem_limited.h"

#include <errno.h>

static int limited_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	struct mem_limited *limited = (struct mem_limited *)(uintptr_t)mem;

	if (!limited->remaining)
		return -EFAULT;
	limited->remaining--;
	return mem_read(limited->under, dst, size, addr);
}

void mem_limited_init(struct mem_limited *limited, const struct lb_mem *under, uint32_t reads)
{
	*limited =
		(struct mem_limited){.mem.read = limited_read, .under = under, .remaining = reads};
}
